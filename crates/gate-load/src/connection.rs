//! Connections and the pool they rest in. One of HTTP/1.1 is driven by the task that uses it; one of HTTP/2 is shared.

use std::cell::RefCell;
use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use gate_model::HttpVersion;
use http::uri::Scheme;
use http::{Request, Response};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::client::conn::http1;

use crate::multiplexed::Multiplexed;
use crate::stamped::{Opening, Sent, Stamps, Told};
use crate::transport::{Connected, TlsSlot, Transport};
use crate::words::{Loss, is_refused};

/// The most bytes of a response's head.
pub(crate) const HEAD: usize = 64 << 10;

/// The most fields in it.
const HEADERS: usize = 500;

/// A connection, or a share of one.
pub(crate) struct Connection {
    line: Line,
    stamps: Arc<Stamps>,
    tls_fault: TlsSlot,
}

enum Line {
    One(Box<Single>),
    Two(Multiplexed),
}

/// A connection of HTTP/1.1 and what drives it. Nothing is read from the socket except while its user waits for the
/// result.
struct Single {
    sender: http1::SendRequest<Full<Told>>,
    /// Absent once the connection is over.
    driver: Option<http1::Connection<Transport, Full<Told>>>,
    /// Why it is over.
    fault: Option<hyper::Error>,
}

/// Why a request has no response.
pub(crate) enum Unanswered {
    /// Not one byte of it was written.
    Unsent,
    /// The server says that it has not looked at it.
    Refused(hyper::Error),
    /// The exchange failed.
    Failed(hyper::Error),
}

impl Connection {
    /// HTTP over a transport whose reads and writes these stamps tell.
    pub(crate) async fn new(connected: Connected, stamps: Arc<Stamps>) -> Result<Self, hyper::Error> {
        let Connected { transport, phases, http, tls_fault } = connected;
        let line = match http {
            HttpVersion::Http1 => {
                let (sender, driver) =
                    http1::Builder::new().max_buf_size(HEAD).max_headers(HEADERS).handshake(transport).await?;
                Line::One(Box::new(Single { sender, driver: Some(driver), fault: None }))
            }
            HttpVersion::Http2 => {
                let scheme = if phases.tls.is_some() { Scheme::HTTPS } else { Scheme::HTTP };
                Line::Two(Multiplexed::new(transport, scheme).await?)
            }
        };
        Ok(Self { line, stamps, tls_fault })
    }

    /// Its stamps.
    pub(crate) fn stamps(&self) -> &Arc<Stamps> {
        &self.stamps
    }

    /// Which version of HTTP is spoken on it.
    pub(crate) fn http(&self) -> HttpVersion {
        match self.line {
            Line::One(_) => HttpVersion::Http1,
            Line::Two(_) => HttpVersion::Http2,
        }
    }

    /// Starts an exchange, and tells when its request was sent.
    pub(crate) fn begin(&self) -> Sent {
        if let Line::One(_) = self.line {
            self.stamps.begin();
        }
        Sent::default()
    }

    /// How it was lost, by the error of an exchange on it.
    pub(crate) fn loss(&self, error: &hyper::Error) -> Loss {
        if let Some(words) = self.tls_fault.get() {
            return Loss::Tls(words.clone());
        }
        if self.is_other_version() {
            return Loss::OtherVersion(self.http());
        }
        let fault = match &self.line {
            Line::One(single) => single.fault.as_ref(),
            Line::Two(_) => None,
        };
        match Loss::of(error, fault) {
            Loss::Garbled(_) if self.stamps.opening() == Opening::Alert => Loss::Encrypted,
            loss => loss,
        }
    }

    /// Whether the server speaks the other version of HTTP. Over TLS both have agreed on one.
    pub(crate) fn is_other_version(&self) -> bool {
        match self.line {
            Line::One(_) => self.stamps.opening() == Opening::Http2,
            Line::Two(_) => self.stamps.opening() == Opening::Other,
        }
    }

    /// Sends a request that has begun, and waits for the response's head.
    pub(crate) async fn send(
        &mut self,
        request: Request<Bytes>,
        sent: &Sent,
    ) -> Result<Response<Incoming>, Unanswered> {
        let request = request.map(|body| Full::new(Told::new(body, &self.stamps, sent)));
        let answered = match &mut self.line {
            Line::One(single) => {
                let response = single.sender.try_send_request(request);
                single.drive(response).await
            }
            Line::Two(multiplexed) => multiplexed.send(request).await,
        };
        answered.map_err(|mut error| match error.take_message() {
            Some(_) => Unanswered::Unsent,
            None => {
                let error = error.into_error();
                if is_refused(&error) { Unanswered::Refused(error) } else { Unanswered::Failed(error) }
            }
        })
    }

    /// Waits for `wanted`, a part of an answer on this connection. When this gives a frame, the last read is the one
    /// that completed it.
    pub(crate) async fn drive<F: Future>(&mut self, wanted: F) -> F::Output {
        match &mut self.line {
            Line::One(single) => single.drive(wanted).await,
            Line::Two(_) => wanted.await,
        }
    }

    /// Another share of it, where it can be shared.
    fn share(&self) -> Option<Self> {
        match &self.line {
            Line::One(_) => None,
            Line::Two(multiplexed) => Some(Self {
                line: Line::Two(multiplexed.clone()),
                stamps: Arc::clone(&self.stamps),
                tls_fault: self.tls_fault.clone(),
            }),
        }
    }

    /// Whether it can be shared, and stands.
    fn is_shared(&self) -> bool {
        matches!(&self.line, Line::Two(multiplexed) if multiplexed.is_open())
    }

    /// Whether the server takes one more request on it at once.
    fn has_room(&self) -> bool {
        matches!(&self.line, Line::Two(multiplexed) if multiplexed.has_room())
    }

    /// Whether it can take a request, and no other has it.
    fn is_idle(&mut self, cx: &mut Context<'_>) -> bool {
        match &mut self.line {
            Line::One(single) => single.is_idle(cx),
            Line::Two(_) => false,
        }
    }
}

impl Single {
    /// Waits for `wanted` while driving the connection in the same task. hyper does not read the socket again while a
    /// frame waits to be taken.
    async fn drive<F: Future>(&mut self, wanted: F) -> F::Output {
        let mut wanted = pin!(wanted);
        poll_fn(|cx| {
            if let Poll::Ready(output) = wanted.as_mut().poll(cx) {
                return Poll::Ready(output);
            }
            self.step(cx);
            wanted.as_mut().poll(cx)
        })
        .await
    }

    /// Drives the connection as far as the socket allows.
    fn step(&mut self, cx: &mut Context<'_>) {
        if let Some(driver) = &mut self.driver
            && let Poll::Ready(result) = Pin::new(driver).poll(cx)
        {
            self.fault = result.err();
            self.driver = None;
        }
    }

    /// Whether it can take a request: the last exchange is complete, and the server has not closed.
    fn is_idle(&mut self, cx: &mut Context<'_>) -> bool {
        self.step(cx);
        self.driver.is_some() && self.sender.is_ready()
    }
}

/// Connections for the next requests.
#[derive(Default)]
pub(crate) struct Pool {
    /// At rest; the one used last is used first.
    idle: RefCell<Vec<Connection>>,
    /// One for all, or as many as it takes for all; the first that has room is used.
    shared: RefCell<Vec<Connection>>,
}

impl Pool {
    /// Whether it has a connection that all share.
    pub(crate) fn is_shared(&self) -> bool {
        self.shared.borrow().iter().any(Connection::is_shared)
    }

    fn share(&self) -> Option<Connection> {
        let mut shared = self.shared.borrow_mut();
        shared.retain(Connection::is_shared);
        shared.iter().find(|connection| connection.has_room())?.share()
    }

    /// Takes a connection that still stands; those the server has closed meanwhile are dropped.
    pub(crate) async fn take(&self) -> Option<Connection> {
        if let Some(shared) = self.share() {
            return Some(shared);
        }
        poll_fn(|cx| {
            let mut idle = self.idle.borrow_mut();
            while let Some(mut connection) = idle.pop() {
                connection.stamps.doubt();
                if connection.is_idle(cx) {
                    return Poll::Ready(Some(connection));
                }
                tracing::debug!("the server closed an idle connection");
            }
            Poll::Ready(None)
        })
        .await
    }

    /// A new connection stands: from now on all may share it, where it can be shared and no other has room.
    pub(crate) fn opened(&self, connection: &Connection) {
        if self.share().is_none() {
            self.shared.borrow_mut().extend(connection.share());
        }
    }

    /// Keeps a connection whose exchange is complete; drops it where it cannot be used again.
    pub(crate) async fn put(&self, mut connection: Connection) {
        if poll_fn(|cx| Poll::Ready(connection.is_idle(cx))).await {
            self.idle.borrow_mut().push(connection);
        }
    }
}

#[cfg(test)]
mod tests;
