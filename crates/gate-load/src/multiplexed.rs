//! HTTP/2: one connection for many requests at once.
//!
//! More requests than the server takes at once (`MAX_CONCURRENT_STREAMS`) wait for their turn on the same connection:
//! the limit is the server's, and so is the wait.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::{HeaderMap, Request, Response, Uri, header, uri};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::client::conn::{TrySendError, http2};
use hyper::rt::{Executor, Read, ReadBufCursor, Write};
use tokio::task::spawn_local;

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
    sender: http2::SendRequest<Full<Bytes>>,
    scheme: uri::Scheme,
}

impl Multiplexed {
    /// HTTP/2 over a transport. What drives the connection is spawned, and ends with its last share.
    pub(crate) async fn new(transport: Transport, scheme: uri::Scheme) -> Result<Self, hyper::Error> {
        let (sender, driver) = http2::Builder::new(Local)
            .initial_stream_window_size(STREAM_WINDOW)
            .initial_connection_window_size(CONNECTION_WINDOW)
            .max_header_list_size(HEAD)
            .handshake(ByRounds { transport, left: 0 })
            .await?;
        spawn_local(async move {
            // Each request is told why by its own error.
            if let Err(error) = driver.await {
                tracing::debug!(%error, "a connection ended");
            }
        });
        Ok(Self { sender, scheme })
    }

    /// Whether it takes requests.
    pub(crate) fn is_open(&self) -> bool {
        !self.sender.is_closed()
    }

    /// Sends a request and waits for the response's head.
    pub(crate) async fn send(
        &mut self,
        mut request: Request<Full<Bytes>>,
    ) -> Result<Response<Incoming>, TrySendError<Request<Full<Bytes>>>> {
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
