//! The way from a gateway to Postgres, which a test can cut.

use std::io;

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{
        TcpListener, TcpStream,
        tcp::{OwnedReadHalf, OwnedWriteHalf},
    },
    sync::watch,
};

/// A TCP proxy on a loopback port; it ends with the test's runtime.
pub struct Link {
    port: u16,
    far_port: u16,
    state: watch::Sender<State>,
}

#[derive(Debug, Clone, Copy, Default)]
struct State {
    is_cut: bool,
    resets: u32,
}

impl Link {
    pub async fn to(port: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let link =
            Self { port: listener.local_addr().unwrap().port(), far_port: port, state: watch::Sender::default() };
        let state = link.state.subscribe();
        tokio::spawn(async move {
            loop {
                let (near, _) = listener.accept().await.unwrap();
                tokio::spawn(connect(near, port, state.clone()));
            }
        });
        link
    }

    /// The database URL that goes through the link.
    pub fn url(&self, url: &str) -> String {
        url.replace(&format!(":{}/", self.far_port), &format!(":{}/", self.port))
    }

    /// From now on not a byte passes, and no end is told: the way a stopped machine or a lost
    /// network looks. Connections can still be made.
    pub fn cut(&self) {
        self.state.send_modify(|state| state.is_cut = true);
    }

    /// What was held up arrives late.
    pub fn resume(&self) {
        self.state.send_modify(|state| state.is_cut = false);
    }

    /// What was held up is lost with its connections; new ones work.
    pub fn reset(&self) {
        self.state.send_modify(|state| *state = State { is_cut: false, resets: state.resets + 1 });
    }
}

/// Ends when both sides or a reset end it.
async fn connect(near: TcpStream, port: u16, state: watch::Receiver<State>) -> io::Result<()> {
    let far = TcpStream::connect(("127.0.0.1", port)).await?;
    for stream in [&near, &far] {
        stream.set_nodelay(true)?;
    }
    let resets = state.borrow().resets;
    let mut reset = state.clone();
    let ((from_near, to_near), (from_far, to_far)) = (near.into_split(), far.into_split());
    tokio::select! {
        (there, back) = async { tokio::join!(pump(from_near, to_far, state.clone()), pump(from_far, to_near, state)) } =>
            there.and(back),
        _ = reset.wait_for(|state| state.resets != resets) => Ok(()),
    }
}

async fn pump(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, mut state: watch::Receiver<State>) -> io::Result<()> {
    let mut buffer = vec![0; 65_536];
    loop {
        let length = from.read(&mut buffer).await.unwrap_or(0);
        // The link itself being gone ends it as well.
        if state.wait_for(|state| !state.is_cut).await.is_err() || length == 0 {
            return to.shutdown().await;
        }
        to.write_all(&buffer[..length]).await?;
    }
}
