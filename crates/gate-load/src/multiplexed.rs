//! HTTP/2: one connection for many requests at once.
//!
//! Where that has as many as the server takes at once (`MAX_CONCURRENT_STREAMS`), another is opened, as the pools of
//! other clients do: the limit is one of connections, and says nothing of how fast the server is. A server that lowers
//! it later makes a request wait; what waits is not sent yet, so that the wait is part of its `write`.

use std::cell::Cell;
use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use http::{HeaderMap, Request, Response, Uri, header, uri};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::client::conn::{TrySendError, http2};
use hyper::rt::{Executor, Read, ReadBufCursor, Write};
use tokio::task::spawn_local;

use crate::stamped::Told;
use crate::transport::Transport;

/// How much of one answer may lie unread. What is decoded is read at once, so that no answer comes near it.
const STREAM_WINDOW: u32 = 4 << 20;
/// How much of all answers together.
const CONNECTION_WINDOW: u32 = 64 << 20;
/// The most bytes of a response's head.
const HEAD: u32 = 64 << 10;
/// How many rounds of the other tasks lie between two reads of a connection: a response's head passes through one task
/// on its way to the one that waits for it.
const ROUNDS: u32 = 2;

/// A share of a connection.
#[derive(Clone)]
pub(crate) struct Multiplexed {
    sender: http2::SendRequest<Full<Told>>,
    scheme: uri::Scheme,
    /// How many requests the server takes at once.
    limit: Rc<Cell<usize>>,
    /// Held by each share.
    shares: Rc<()>,
}

impl Multiplexed {
    /// HTTP/2 over a transport. What drives the connection is spawned, and ends with its last share.
    pub(crate) async fn new(transport: Transport, scheme: uri::Scheme) -> Result<Self, hyper::Error> {
        let heard = Rc::new(Cell::new(false));
        let (sender, mut driver) = http2::Builder::new(Local)
            .initial_stream_window_size(STREAM_WINDOW)
            .initial_connection_window_size(CONNECTION_WINDOW)
            .max_header_list_size(HEAD)
            .handshake(ByRounds { transport, left: 0, heard: Rc::clone(&heard) })
            .await?;
        // The first that a server says is how many it takes.
        let limit = Rc::new(Cell::new(1));
        let known = Rc::clone(&limit);
        spawn_local(async move {
            let driven = poll_fn(|cx| {
                let driven = Pin::new(&mut driver).poll(cx);
                if heard.get() {
                    known.set(driver.current_max_send_streams());
                }
                driven
            });
            // Each request is told why by its own error.
            if let Err(error) = driven.await {
                tracing::debug!(%error, "a connection ended");
            }
        });
        Ok(Self { sender, scheme, limit, shares: Rc::default() })
    }

    /// Whether it takes requests.
    pub(crate) fn is_open(&self) -> bool {
        !self.sender.is_closed()
    }

    /// Whether the server takes one more request at once than there are other shares.
    pub(crate) fn has_room(&self) -> bool {
        Rc::strong_count(&self.shares) <= self.limit.get()
    }

    /// Sends a request and waits for the response's head.
    pub(crate) async fn send(
        &mut self,
        mut request: Request<Full<Told>>,
    ) -> Result<Response<Incoming>, TrySendError<Request<Full<Told>>>> {
        *request.uri_mut() = self.absolute(request.uri(), request.headers());
        request.headers_mut().remove(header::HOST);
        self.sender.try_send_request(request).await
    }

    /// The URI with the host that HTTP/1.1 has in a header.
    fn absolute(&self, uri: &Uri, headers: &HeaderMap) -> Uri {
        let mut parts = uri.clone().into_parts();
        let host = headers.get(header::HOST).and_then(|host| uri::Authority::try_from(host.as_bytes()).ok());
        parts.scheme = Some(self.scheme.clone());
        parts.authority = parts.authority.or(host);
        Uri::from_parts(parts).unwrap_or_else(|_| uri.clone())
    }
}

/// Runs what drives a connection on the I/O thread.
#[derive(Clone)]
struct Local;

impl<F: Future + 'static> Executor<F> for Local {
    fn execute(&self, future: F) {
        spawn_local(future);
    }
}

/// A transport that is read again only after every task that waits for what the last read brought had its turn: the
/// runtime runs tasks in the order in which they were woken. So what they take bears the stamp of the read that
/// completed it.
struct ByRounds {
    transport: Transport,
    /// Rounds until it may be read.
    left: u32,
    /// Whether anything has come.
    heard: Rc<Cell<bool>>,
}

impl Read for ByRounds {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, to: ReadBufCursor<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        if let Some(left) = this.left.checked_sub(1) {
            this.left = left;
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        let read = Pin::new(&mut this.transport).poll_read(cx, to);
        if read.is_ready() {
            this.left = ROUNDS;
            this.heard.set(true);
        }
        read
    }
}

impl Write for ByRounds {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().transport).poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().transport).poll_write_vectored(cx, parts)
    }

    fn is_write_vectored(&self) -> bool {
        self.transport.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().transport).poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().transport).poll_shutdown(cx)
    }
}
