//! From a TCP connection to what HTTP is spoken over: itself, or TLS on top of it.

use std::future::{Ready, ready};
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use http::Uri;
use hyper::rt::{Read, ReadBufCursor, Write};
use hyper_rustls::{HttpsConnector, MaybeHttpsStream};
use hyper_util::rt::TokioIo;
use rustls::ClientConfig;
use tokio::io::{AsyncBufRead, AsyncWrite};
use tower_service::Service;

use crate::stamped::Stamped;

/// What HTTP is spoken over.
pub(crate) type Transport = Box<dyn Duplex>;

/// What can be read and written.
pub(crate) trait Duplex: Read + Write + Unpin {}

impl<T: Read + Write + Unpin> Duplex for T {}

/// Why there is no TLS on a connection.
pub(crate) type TlsFailure = Box<dyn std::error::Error + Send + Sync>;

/// The connection itself.
pub(crate) fn plain(stream: Stamped) -> Transport {
    Box::new(TokioIo::new(stream))
}

/// TLS over the connection, with the server that `uri` names.
pub(crate) async fn secured(stream: Stamped, uri: Uri, config: Arc<ClientConfig>) -> Result<Transport, TlsFailure> {
    let mut connector = HttpsConnector::from((Standing(Some(stream)), config));
    connector.enforce_https();
    Ok(match connector.call(uri).await? {
        MaybeHttpsStream::Https(tls) => Box::new(ByRead(tls)),
        MaybeHttpsStream::Http(stream) => Box::new(stream),
    })
}

/// The connector beneath TLS: it gives the connection that stands already, so that connecting and the handshake are
/// two steps, each with its own failures.
struct Standing(Option<Stamped>);

impl Service<Uri> for Standing {
    type Response = TokioIo<Stamped>;
    type Error = io::Error;
    type Future = Ready<io::Result<TokioIo<Stamped>>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Uri) -> Self::Future {
        ready(self.0.take().map(TokioIo::new).ok_or_else(|| io::ErrorKind::NotConnected.into()))
    }
}

/// A TLS stream that reads its socket again only when everything is taken that it has decrypted. Its own read goes on
/// for as long as there is room, and what an earlier read of the socket brought would bear the stamp of a later one.
struct ByRead<T>(TokioIo<T>);

impl<T: AsyncBufRead + Unpin> Read for ByRead<T> {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, mut to: ReadBufCursor<'_>) -> Poll<io::Result<()>> {
        let mut tls = Pin::new(self.get_mut().0.inner_mut());
        let decrypted = ready!(tls.as_mut().poll_fill_buf(cx))?;
        let taken = decrypted.len().min(to.remaining());
        to.put_slice(decrypted.get(..taken).unwrap_or_default());
        tls.consume(taken);
        Poll::Ready(Ok(()))
    }
}

impl<T: AsyncWrite + Unpin> Write for ByRead<T> {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().0).poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().0).poll_write_vectored(cx, parts)
    }

    fn is_write_vectored(&self) -> bool {
        self.0.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().0).poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().0).poll_shutdown(cx)
    }
}
