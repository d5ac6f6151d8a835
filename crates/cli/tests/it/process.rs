//! The gateway's binary as a child process.

use std::{
    fs::File,
    net::{SocketAddr, TcpListener},
    os::fd::AsRawFd,
    process::{Child, Command, ExitStatus, Stdio},
    sync::LazyLock,
    time::{Duration, Instant},
};

/// Kept open: a build that puts another binary in its place does not change what a long run starts.
static BINARY: LazyLock<File> =
    LazyLock::new(|| File::open(env!("CARGO_BIN_EXE_pgqueue-gateway")).expect("the gateway's binary"));

/// A running `pgqueue-gateway serve`; killed when dropped.
pub struct GatewayProcess {
    child: Child,
    arguments: Vec<String>,
    port: u16,
    http_port: u16,
}

impl GatewayProcess {
    /// Starts the gateway on free ports and waits until it accepts connections.
    pub fn start(database_url: &str, options: &[&str]) -> Self {
        Self::start_under(&[], database_url, options)
    }

    /// The same as an argument of another command that becomes it, such as `prlimit`.
    pub fn start_under(command: &[&str], database_url: &str, options: &[&str]) -> Self {
        let (port, http_port) = (free_port(), free_port());
        let (listen, http_listen) = (format!("127.0.0.1:{port}"), format!("127.0.0.1:{http_port}"));
        let binary = format!("/proc/{}/fd/{}", std::process::id(), BINARY.as_raw_fd());
        let fixed =
            [&binary, "serve", "--database-url", database_url, "--listen", &listen, "--http-listen", &http_listen];
        let arguments: Vec<String> =
            command.iter().chain(&fixed).chain(options).map(|&argument| argument.to_owned()).collect();
        let gateway = Self { child: spawn(&arguments), arguments, port, http_port };
        gateway.wait_until_it_listens();
        gateway
    }

    pub fn address(&self) -> SocketAddr {
        ([127, 0, 0, 1], self.port).into()
    }

    pub fn bootstrap(&self) -> String {
        self.address().to_string()
    }

    pub fn http_address(&self) -> SocketAddr {
        ([127, 0, 0, 1], self.http_port).into()
    }

    /// SIGKILL.
    pub fn kill(&mut self) {
        self.child.kill().expect("SIGKILL");
        self.child.wait().expect("the killed process is reaped");
    }

    /// SIGTERM; returns when the process has ended.
    pub fn terminate(&mut self) -> ExitStatus {
        let terminated = Command::new("kill").args(["-TERM", &self.child.id().to_string()]).status();
        assert!(terminated.expect("kill").success());
        self.child.wait().expect("the process is reaped")
    }

    /// The same command again.
    pub fn restart(&mut self) {
        self.child = spawn(&self.arguments);
    }

    fn wait_until_it_listens(&self) {
        let deadline = Instant::now() + Duration::from_secs(30);
        while std::net::TcpStream::connect(self.address()).is_err() {
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
    Command::new(&arguments[0]).args(&arguments[1..]).stdin(Stdio::null()).spawn().expect("the gateway's binary starts")
}

fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").expect("a free port").local_addr().expect("an address").port()
}
