//! A connection of the operating system's: over TCP, or to a Unix socket.

use std::io;
#[cfg(unix)]
use std::os::fd::{AsFd, BorrowedFd};
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, Interest, ReadBuf};
use tokio::net::TcpStream;
#[cfg(unix)]
use tokio::net::UnixStream;

/// A stream of bytes to the target, or to its proxy.
#[derive(Debug)]
pub(crate) enum Socket {
    /// Over TCP.
    Tcp(TcpStream),
    /// To a Unix socket.
    #[cfg(unix)]
    Unix(UnixStream),
}

/// Does the same to whatever stream it is.
macro_rules! on {
    ($socket:expr, $stream:ident => $done:expr) => {
        match $socket {
            Socket::Tcp($stream) => $done,
            #[cfg(unix)]
            Socket::Unix($stream) => $done,
        }
    };
}

impl Socket {
    /// Whether there may be something to read. Pair it with [`Socket::try_read`].
    pub(crate) fn poll_read_ready(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        on!(self, stream => stream.poll_read_ready(cx))
    }

    /// Reads by a call of one's own, such as `recvmsg`; where that would block, the socket counts as not ready until
    /// more has come.
    pub(crate) fn try_read<R>(&self, read: impl FnOnce() -> io::Result<R>) -> io::Result<R> {
        on!(self, stream => stream.try_io(Interest::READABLE, read))
    }

    /// Whether the peer has closed, by the system's word: what the runtime knows may be older.
    #[cfg(unix)]
    pub(crate) fn is_closed(&self) -> bool {
        use rustix::net::{RecvFlags, recv};
        let peeked = recv(self, &mut [0_u8; 1], RecvFlags::PEEK | RecvFlags::DONTWAIT);
        !matches!(peeked, Ok((1.., _)) | Err(rustix::io::Errno::AGAIN | rustix::io::Errno::INTR))
    }

    /// Not known here before it is read.
    #[cfg(not(unix))]
    pub(crate) fn is_closed(&self) -> bool {
        false
    }
}

#[cfg(unix)]
impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        on!(self, stream => stream.as_fd())
    }
}

impl AsyncRead for Socket {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, to: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        on!(self.get_mut(), stream => Pin::new(stream).poll_read(cx, to))
    }
}

impl AsyncWrite for Socket {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        on!(self.get_mut(), stream => Pin::new(stream).poll_write(cx, bytes))
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        on!(self.get_mut(), stream => Pin::new(stream).poll_write_vectored(cx, parts))
    }

    fn is_write_vectored(&self) -> bool {
        on!(self, stream => stream.is_write_vectored())
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        on!(self.get_mut(), stream => Pin::new(stream).poll_flush(cx))
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        on!(self.get_mut(), stream => Pin::new(stream).poll_shutdown(cx))
    }
}
