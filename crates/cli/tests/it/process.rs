//! The gateway's binary as a child process.

use std::{
    net::TcpListener,
    path::Path,
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

/// A running `pgqueue-gateway serve`; killed when dropped.
pub struct GatewayProcess {
    child: Child,
    arguments: Vec<String>,
    port: u16,
}

impl GatewayProcess {
    /// Starts the gateway on free ports and waits until it accepts connections.
    pub fn start(database_url: &str) -> Self {
        let (port, http_port) = (free_port(), free_port());
        let arguments = [
            "serve",
            "--database-url",
            database_url,
            "--listen",
            &format!("127.0.0.1:{port}"),
            "--http-listen",
            &format!("127.0.0.1:{http_port}"),
        ]
        .map(str::to_owned)
        .to_vec();
        let gateway = Self { child: spawn(&arguments), arguments, port };
        gateway.wait_until_it_listens();
        gateway
    }

    pub fn bootstrap(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// SIGKILL, then the same command again.
    pub fn kill_and_restart(&mut self) {
        self.kill();
        self.child = spawn(&self.arguments);
    }

    fn kill(&mut self) {
        self.child.kill().expect("SIGKILL");
        self.child.wait().expect("the killed process is reaped");
    }

    fn wait_until_it_listens(&self) {
        let deadline = Instant::now() + Duration::from_secs(30);
        while std::net::TcpStream::connect(("127.0.0.1", self.port)).is_err() {
            assert!(Instant::now() < deadline, "the gateway does not listen");
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

impl Drop for GatewayProcess {
    fn drop(&mut self) {
        self.kill();
    }
}

fn spawn(arguments: &[String]) -> Child {
    Command::new(Path::new(env!("CARGO_BIN_EXE_pgqueue-gateway")))
        .args(arguments)
        .stdin(Stdio::null())
        .spawn()
        .expect("the gateway's binary starts")
}

fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").expect("a free port").local_addr().expect("an address").port()
}
