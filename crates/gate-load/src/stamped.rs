//! The socket: every read and write is stamped. Under TLS it lies beneath, so that an event bears the stamp of the
//! read that completed its record.

use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Instant;

use bytes::{Buf, Bytes};
use hyper_util::client::legacy::connect::{Connected, Connection};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::receive::Receiver;
use crate::socket::Socket;

/// A read of a connection that gave bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Receipt {
    /// When they came.
    pub(crate) at: Instant,
    /// Which read it was, from 1.
    pub(crate) number: u64,
}

/// When a connection last did what. The lock is never waited for: only the I/O thread takes it, but a stream under
/// TLS has to be `Send`.
pub(crate) struct Stamps {
    receiver: Arc<Receiver>,
    times: Mutex<Times>,
}

#[derive(Default)]
struct Times {
    /// How many reads gave bytes.
    reads: u64,
    /// When the last bytes came.
    read: Option<Instant>,
    /// When the peer was seen to have closed.
    closed: Option<Instant>,
    /// When the last bytes were handed to the socket.
    written: Option<Instant>,
    /// Requests whose last bytes are taken to be written, but may still wait for it.
    unflushed: Vec<Sent>,
    /// The read that completed the last content event.
    content: u64,
    /// Whether the socket is asked, at the next read, if the peer has closed.
    is_doubted: bool,
    /// The first bytes that came.
    opening: Vec<u8>,
    /// From which offset to which the last read went.
    #[cfg(test)]
    last_read: (u64, u64),
    /// When the last read was over.
    #[cfg(test)]
    seen: Option<Instant>,
}

/// How many of the first bytes are kept.
const OPENING: usize = 5;

/// What the first bytes that came begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Opening {
    /// None came.
    Nothing,
    /// A TLS alert: what a TLS server says to plain HTTP.
    Alert,
    /// TLS.
    Tls,
    /// HTTP/2: its first frame holds settings.
    Http2,
    /// Anything else.
    Other,
}

impl Stamps {
    /// The stamps of a new connection.
    pub(crate) fn new(receiver: &Arc<Receiver>) -> Arc<Self> {
        Arc::new(Self { receiver: Arc::clone(receiver), times: Mutex::default() })
    }

    fn times(&self) -> MutexGuard<'_, Times> {
        self.times.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts a new exchange, the only one on the connection.
    pub(crate) fn begin(&self) {
        self.times().read = None;
    }

    /// The last read.
    pub(crate) fn last(&self) -> Receipt {
        let times = self.times();
        Receipt { at: times.read.unwrap_or_else(Instant::now), number: times.reads }
    }

    /// When the peer was seen to have closed, else when the last bytes came.
    pub(crate) fn ended(&self) -> Instant {
        let times = self.times();
        times.closed.or(times.read).unwrap_or_else(Instant::now)
    }

    /// Notes that a read completed a content event. Gives how many of the ones before it this makes upper bounds: one,
    /// where it came in the same read, whosever it was.
    pub(crate) fn content(&self, read: Receipt) -> u32 {
        u32::from(std::mem::replace(&mut self.times().content, read.number) == read.number)
    }

    /// Has the next read ask the socket whether the peer has closed, which the runtime may not have heard of yet.
    pub(crate) fn doubt(&self) {
        self.times().is_doubted = true;
    }

    /// What the first bytes that came begin.
    pub(crate) fn opening(&self) -> Opening {
        match *self.times().opening {
            [] => Opening::Nothing,
            [0x15, 0x03, ..] => Opening::Alert,
            [0x16, 0x03, ..] => Opening::Tls,
            // Length, kind and flags of the frame.
            [0, 0, _, 4, 0] => Opening::Http2,
            _ => Opening::Other,
        }
    }

    /// A read gave these bytes at this instant; none where the peer has closed.
    fn took(&self, bytes: &[u8], at: Instant) {
        let mut times = self.times();
        // The wall clock, by which the kernel stamps, may have been set between two reads.
        let at = times.read.map_or(at, |before| before.max(at));
        if bytes.is_empty() {
            times.closed = Some(at);
            return;
        }
        times.reads += 1;
        times.read = Some(at);
        let missing = OPENING.saturating_sub(times.opening.len());
        times.opening.extend(bytes.iter().take(missing));
        #[cfg(test)]
        {
            let (_, before) = times.last_read;
            times.last_read = (before, before + bytes.len() as u64);
            times.seen = Some(Instant::now());
        }
    }

    /// From which offset to which the last read went.
    #[cfg(test)]
    pub(crate) fn last_read(&self) -> (u64, u64) {
        self.times().last_read
    }

    /// When the last read was over.
    #[cfg(test)]
    pub(crate) fn seen(&self) -> Option<Instant> {
        self.times().seen
    }
}

/// When the last bytes of a request were handed to the socket, once they were.
#[derive(Clone, Default)]
pub(crate) struct Sent(Arc<OnceLock<Instant>>);

impl Sent {
    /// `None` before all of them were. A request without a body never tells.
    pub(crate) fn at(&self) -> Option<Instant> {
        self.0.get().copied()
    }
}

/// The body of a request that tells when it was sent. HTTP/2 takes a body once the server lets its stream begin, and as
/// far as its window reaches.
pub(crate) struct Told {
    bytes: Bytes,
    stamps: Arc<Stamps>,
    sent: Sent,
}

impl Told {
    /// A body that is written to the connection with these stamps.
    pub(crate) fn new(bytes: Bytes, stamps: &Arc<Stamps>, sent: &Sent) -> Self {
        Self { bytes, stamps: Arc::clone(stamps), sent: sent.clone() }
    }
}

impl Buf for Told {
    fn remaining(&self) -> usize {
        self.bytes.remaining()
    }

    fn chunk(&self) -> &[u8] {
        self.bytes.chunk()
    }

    fn advance(&mut self, count: usize) {
        self.bytes.advance(count);
        if count > 0 && self.bytes.is_empty() {
            self.stamps.times().unflushed.push(self.sent.clone());
        }
    }
}

/// A connection with [`Stamps`].
pub(crate) struct Stamped {
    stream: Socket,
    stamps: Arc<Stamps>,
}

impl Stamped {
    pub(crate) fn new(stream: Socket, stamps: Arc<Stamps>) -> Self {
        stamps.receiver.prepare(&stream);
        Self { stream, stamps }
    }

    /// Writes, and stamps where that succeeds. The stamp is taken before: what answers a request may come before the
    /// call returns.
    fn write(&mut self, write: impl FnOnce(Pin<&mut Socket>) -> Poll<io::Result<usize>>) -> Poll<io::Result<usize>> {
        let at = Instant::now();
        let written = ready!(write(Pin::new(&mut self.stream)))?;
        self.stamps.times().written = Some(at);
        Poll::Ready(Ok(written))
    }
}

impl AsyncRead for Stamped {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, to: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        if std::mem::take(&mut this.stamps.times().is_doubted) && this.stream.is_closed() {
            this.stamps.took(&[], Instant::now());
            return Poll::Ready(Ok(()));
        }
        let before = to.filled().len();
        let at = ready!(this.stamps.receiver.poll(&mut this.stream, cx, to))?;
        this.stamps.took(to.filled().get(before..).unwrap_or_default(), at);
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Stamped {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.get_mut().write(|stream| stream.poll_write(cx, bytes))
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.get_mut().write(|stream| stream.poll_write_vectored(cx, parts))
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    /// Called by hyper when it has handed over everything it holds, head and body of a request alike, and by TLS when
    /// the records of it are written.
    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        {
            let Times { written, unflushed, .. } = &mut *this.stamps.times();
            for Sent(sent) in unflushed.drain(..) {
                written.map(|written| sent.set(written));
            }
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
