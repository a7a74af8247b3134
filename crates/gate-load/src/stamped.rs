//! The socket as hyper sees it: every read and write is stamped.

use std::cell::{Cell, RefCell};
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};
use std::time::Instant;

use hyper::rt::ReadBufCursor;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

/// Bytes taken by one read at most. One buffer serves all connections of the thread.
const READ: usize = 64 << 10;

/// The buffer that reads of every connection go through.
#[derive(Clone)]
pub(crate) struct Scratch(Rc<RefCell<Box<[u8]>>>);

impl Scratch {
    pub(crate) fn new() -> Self {
        Self(Rc::new(RefCell::new(vec![0; READ].into_boxed_slice())))
    }
}

/// When a connection last did what.
#[derive(Debug, Default)]
pub(crate) struct Stamps {
    /// When the last bytes came.
    read: Cell<Option<Instant>>,
    /// When the peer was seen to have closed.
    closed: Cell<Option<Instant>>,
    /// When the last bytes were handed to the socket.
    written: Cell<Option<Instant>>,
    /// The same, once nothing waits to be written.
    flushed: Cell<Option<Instant>>,
    /// How many bytes had come after each read.
    #[cfg(test)]
    pub(crate) offsets: RefCell<Vec<u64>>,
}

impl Stamps {
    /// Starts a new exchange.
    pub(crate) fn begin(&self) {
        self.read.set(None);
        self.written.set(None);
        self.flushed.set(None);
    }

    /// When the last bytes of the request were handed to the socket; `None` before all of them were.
    pub(crate) fn sent(&self) -> Option<Instant> {
        self.flushed.get()
    }

    /// When the last bytes came.
    pub(crate) fn read(&self) -> Option<Instant> {
        self.read.get()
    }

    /// When the peer was seen to have closed, else when the last bytes came.
    pub(crate) fn ended(&self) -> Option<Instant> {
        self.closed.get().or_else(|| self.read.get())
    }

    #[cfg(test)]
    fn note(&self, bytes: usize) {
        let mut offsets = self.offsets.borrow_mut();
        let before = offsets.last().copied().unwrap_or(0);
        offsets.push(before + bytes as u64);
    }
}

/// A TCP connection with [`Stamps`].
pub(crate) struct Stamped {
    stream: TcpStream,
    stamps: Rc<Stamps>,
    scratch: Scratch,
}

impl Stamped {
    pub(crate) fn new(stream: TcpStream, stamps: Rc<Stamps>, scratch: Scratch) -> Self {
        Self { stream, stamps, scratch }
    }
}

impl hyper::rt::Read for Stamped {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, mut to: ReadBufCursor<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let mut scratch = this.scratch.0.borrow_mut();
        let room = to.remaining().min(scratch.len());
        let mut from = ReadBuf::new(scratch.get_mut(..room).unwrap_or_default());
        let result = ready!(Pin::new(&mut this.stream).poll_read(cx, &mut from));
        let now = Instant::now();
        if from.filled().is_empty() {
            this.stamps.closed.set(Some(now));
        } else {
            this.stamps.read.set(Some(now));
            #[cfg(test)]
            this.stamps.note(from.filled().len());
        }
        to.put_slice(from.filled());
        Poll::Ready(result)
    }
}

impl Stamped {
    fn wrote(&self, result: io::Result<usize>) -> Poll<io::Result<usize>> {
        if result.is_ok() {
            self.stamps.written.set(Some(Instant::now()));
        }
        Poll::Ready(result)
    }
}

impl hyper::rt::Write for Stamped {
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

    /// Called by hyper when it has handed over everything it holds: head and body of a request alike.
    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        this.stamps.flushed.set(this.stamps.written.get());
        Pin::new(&mut this.stream).poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_shutdown(cx)
    }
}
