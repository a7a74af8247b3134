//! The socket: every read and write is stamped. Under TLS it lies beneath, so that an event bears the stamp of the
//! read that completed its record.

use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Instant;

use hyper_util::client::legacy::connect::{Connected, Connection};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

/// When a connection last did what. The lock is never waited for: only the I/O thread takes it, but a stream under
/// hyper-rustls has to be `Send`.
#[derive(Debug, Default)]
pub(crate) struct Stamps(Mutex<Times>);

#[derive(Debug, Default)]
struct Times {
    /// When the last bytes came.
    read: Option<Instant>,
    /// When the peer was seen to have closed.
    closed: Option<Instant>,
    /// When the last bytes were handed to the socket.
    written: Option<Instant>,
    /// The same, once nothing waits to be written.
    flushed: Option<Instant>,
    /// The first bytes that came.
    opening: Vec<u8>,
    /// From which offset to which the last read went.
    #[cfg(test)]
    last_read: (u64, u64),
}

/// How many of the first bytes are kept.
const OPENING: usize = 2;

impl Stamps {
    fn times(&self) -> MutexGuard<'_, Times> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts a new exchange.
    pub(crate) fn begin(&self) {
        let mut times = self.times();
        times.read = None;
        times.written = None;
        times.flushed = None;
    }

    /// When the last bytes of the request were handed to the socket; `None` before all of them were.
    pub(crate) fn sent(&self) -> Option<Instant> {
        self.times().flushed
    }

    /// When the last bytes came.
    pub(crate) fn read(&self) -> Option<Instant> {
        self.times().read
    }

    /// When the peer was seen to have closed, else when the last bytes came.
    pub(crate) fn ended(&self) -> Option<Instant> {
        let times = self.times();
        times.closed.or(times.read)
    }

    /// Whether the first bytes that came are those of a TLS alert: what a TLS server says to plain HTTP.
    pub(crate) fn is_alerted(&self) -> bool {
        self.times().opening == [0x15, 0x03]
    }

    /// A read gave these bytes; none where the peer has closed.
    fn took(&self, bytes: &[u8]) {
        let now = Some(Instant::now());
        let mut times = self.times();
        if bytes.is_empty() {
            times.closed = now;
            return;
        }
        times.read = now;
        let missing = OPENING.saturating_sub(times.opening.len());
        times.opening.extend(bytes.iter().take(missing));
        #[cfg(test)]
        {
            let (_, before) = times.last_read;
            times.last_read = (before, before + bytes.len() as u64);
        }
    }

    /// From which offset to which the last read went.
    #[cfg(test)]
    pub(crate) fn last_read(&self) -> (u64, u64) {
        self.times().last_read
    }
}

/// A TCP connection with [`Stamps`].
pub(crate) struct Stamped {
    stream: TcpStream,
    stamps: Arc<Stamps>,
}

impl Stamped {
    pub(crate) fn new(stream: TcpStream, stamps: Arc<Stamps>) -> Self {
        Self { stream, stamps }
    }

    fn wrote(&self, result: io::Result<usize>) -> Poll<io::Result<usize>> {
        if result.is_ok() {
            self.stamps.times().written = Some(Instant::now());
        }
        Poll::Ready(result)
    }
}

impl AsyncRead for Stamped {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, to: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let before = to.filled().len();
        let result = ready!(Pin::new(&mut this.stream).poll_read(cx, to));
        this.stamps.took(to.filled().get(before..).unwrap_or_default());
        Poll::Ready(result)
    }
}

impl AsyncWrite for Stamped {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let result = ready!(Pin::new(&mut this.stream).poll_write(cx, bytes));
        this.wrote(result)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let result = ready!(Pin::new(&mut this.stream).poll_write_vectored(cx, parts));
        this.wrote(result)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    /// Called by hyper when it has handed over everything it holds, head and body of a request alike, and by TLS when
    /// the records of it are written.
    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        {
            let mut times = this.stamps.times();
            times.flushed = times.written;
        }
        Pin::new(&mut this.stream).poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_shutdown(cx)
    }
}

impl Connection for Stamped {
    fn connected(&self) -> Connected {
        Connected::new()
    }
}
