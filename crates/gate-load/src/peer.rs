//! Whom a connection is opened to: a server in the network, or a Unix socket.

mod server;
#[cfg(unix)]
mod unix;

use std::io;
#[cfg(unix)]
use std::path::PathBuf;
use std::time::Duration;

use rustix::io::Errno;

use crate::socket::Socket;
use crate::target::ConnectError;

pub(crate) use server::Server;

/// Whom a connection is opened to.
pub(crate) enum Peer {
    /// A server in the network.
    Server(Server),
    /// A Unix socket.
    #[cfg(unix)]
    Unix(PathBuf),
}

/// A new connection.
pub(crate) struct Opened {
    pub(crate) socket: Socket,
    /// How long the peer's name was looked up, where it was.
    pub(crate) dns: Option<Duration>,
}

impl Peer {
    /// Opens a connection.
    pub(crate) async fn open(&self) -> Result<Opened, ConnectError> {
        match self {
            Self::Server(server) => server.open().await,
            #[cfg(unix)]
            Self::Unix(path) => Ok(Opened { socket: Socket::Unix(unix::open(path).await?), dns: None }),
        }
    }

    /// Has the next connection look up the peer's name again.
    pub(crate) fn look_up_again(&self) {
        match self {
            Self::Server(server) => server.look_up_again(),
            #[cfg(unix)]
            Self::Unix(_) => {}
        }
    }

    /// Where it was found, the address in use first.
    pub(crate) fn addresses(&self) -> Vec<String> {
        match self {
            Self::Server(server) => server.addresses().iter().map(ToString::to_string).collect(),
            #[cfg(unix)]
            Self::Unix(path) => vec![path.display().to_string()],
        }
    }
}

/// What this machine has run out of, where that is why there is no connection: no fault of the peer.
fn exhausted(error: &io::Error) -> Option<&'static str> {
    match error.kind() {
        io::ErrorKind::AddrNotAvailable => Some("free local ports"),
        io::ErrorKind::OutOfMemory => Some("memory"),
        _ => match Errno::from_io_error(error)? {
            Errno::MFILE | Errno::NFILE => Some("file descriptors (raise `ulimit -n`)"),
            Errno::NOBUFS | Errno::NOMEM => Some("memory for sockets"),
            Errno::ADDRNOTAVAIL => Some("free local ports"),
            _ => None,
        },
    }
}
