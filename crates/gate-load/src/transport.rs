//! From a TCP connection to what HTTP is spoken over: itself, or TLS on top of it.

use std::error::Error;
use std::future::{Ready, ready};
use std::io;
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, ready};

use gate_model::HttpVersion;
use http::Uri;
use hyper::rt::{Read, ReadBufCursor, Write};
use hyper_rustls::{HttpsConnector, MaybeHttpsStream};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncBufRead, AsyncWrite};
use tower_service::Service;

use crate::stamped::Stamped;
use crate::target::Phases;
use crate::tls::{Explain, Tls, TlsFault};

/// What HTTP is spoken over.
pub(crate) type Transport = Box<dyn Duplex>;

/// What can be read and written.
pub(crate) trait Duplex: Read + Write + Unpin {}

impl<T: Read + Write + Unpin> Duplex for T {}

/// What went wrong with TLS after the handshake, in words: HTTP/2 passes no cause on.
pub(crate) type TlsSlot = Arc<OnceLock<String>>;

/// A new connection to the target.
pub(crate) struct Connected {
    pub(crate) transport: Transport,
    pub(crate) phases: Phases,
    /// What is spoken on it.
    pub(crate) http: HttpVersion,
    /// What went wrong with TLS after the handshake, in words.
    pub(crate) tls_fault: TlsSlot,
}

/// A connection with TLS on it.
pub(crate) struct Secured {
    pub(crate) transport: Transport,
    /// What both sides agreed to speak.
    pub(crate) http: HttpVersion,
    pub(crate) fault: TlsSlot,
}

/// The connection itself.
pub(crate) fn plain(stream: Stamped) -> Transport {
    Box::new(TokioIo::new(stream))
}

/// TLS over the connection.
pub(crate) async fn secured(stream: Stamped, tls: &Tls) -> Result<Secured, TlsFault> {
    let mut connector = HttpsConnector::from((Standing(Some(stream)), tls.config()));
    connector.enforce_https();
    let fault = |error: &(dyn Error + 'static)| tls.explain().handshake(error);
    let stream = match connector.call(tls.server()).await.map_err(|error| fault(&*error))? {
        MaybeHttpsStream::Https(stream) => stream,
        MaybeHttpsStream::Http(_) => return Err(fault(&io::Error::from(io::ErrorKind::Unsupported))),
    };
    let http = tls.agreed(stream.inner().get_ref().1.alpn_protocol())?;
    let fault = TlsSlot::default();
    let transport = Box::new(ByRead { stream, explain: tls.explain().clone(), fault: Arc::clone(&fault) });
    Ok(Secured { transport, http, fault })
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
struct ByRead<T> {
    stream: TokioIo<T>,
    explain: Explain,
    fault: TlsSlot,
}

impl<T: AsyncBufRead + AsyncWrite + Unpin> ByRead<T> {
    fn stream(self: Pin<&mut Self>) -> Pin<&mut TokioIo<T>> {
        Pin::new(&mut self.get_mut().stream)
    }

    fn poll_decrypted(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<&[u8]>> {
        let Self { stream, explain, fault } = self;
        Pin::new(stream.inner_mut()).poll_fill_buf(cx).map_err(|error| {
            if let Some(words) = explain.alert(&error) {
                fault.get_or_init(|| words);
            }
            error
        })
    }

    /// A server that refuses our certificate says so, and closes. What is written then fails before that was read.
    fn wrote(&mut self, cx: &mut Context<'_>, result: Poll<io::Result<usize>>) -> Poll<io::Result<usize>> {
        if let Poll::Ready(Err(error)) = result {
            return Poll::Ready(Err(match self.poll_decrypted(cx) {
                Poll::Ready(Err(cause)) => cause,
                Poll::Ready(Ok(_)) | Poll::Pending => error,
            }));
        }
        result
    }
}

impl<T: AsyncBufRead + AsyncWrite + Unpin> Read for ByRead<T> {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, mut to: ReadBufCursor<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let decrypted = ready!(this.poll_decrypted(cx))?;
        let taken = decrypted.len().min(to.remaining());
        to.put_slice(decrypted.get(..taken).unwrap_or_default());
        Pin::new(this.stream.inner_mut()).consume(taken);
        Poll::Ready(Ok(()))
    }
}

impl<T: AsyncBufRead + AsyncWrite + Unpin> Write for ByRead<T> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let result = self.as_mut().stream().poll_write(cx, bytes);
        self.wrote(cx, result)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let result = self.as_mut().stream().poll_write_vectored(cx, parts);
        self.wrote(cx, result)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.stream().poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.stream().poll_shutdown(cx)
    }
}
