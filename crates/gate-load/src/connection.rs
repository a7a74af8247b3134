//! HTTP/1.1 connections, driven by the task that uses them, and the pool they rest in.

use std::cell::RefCell;
use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::client::conn::http1;
use tokio::net::TcpStream;

use crate::stamped::{Scratch, Stamped, Stamps};

/// The most bytes of a response's head.
const HEAD: usize = 64 << 10;

/// A connection and what drives it. Nothing is read from the socket except while its user waits for the result.
pub(crate) struct Connection {
    sender: http1::SendRequest<Full<Bytes>>,
    /// Absent once the connection is over.
    driver: Option<http1::Connection<Stamped, Full<Bytes>>>,
    /// Why it is over.
    fault: Option<hyper::Error>,
    stamps: Rc<Stamps>,
}

/// Why a request has no response.
pub(crate) enum Unanswered {
    /// Not one byte of it was written; here it is back.
    Unsent(Box<Request<Full<Bytes>>>),
    /// The exchange failed.
    Failed(hyper::Error),
}

impl Connection {
    pub(crate) async fn new(stream: TcpStream, scratch: Scratch) -> Result<Self, hyper::Error> {
        let stamps = Rc::new(Stamps::default());
        let io = Stamped::new(stream, Rc::clone(&stamps), scratch);
        let (sender, driver) = http1::Builder::new().max_buf_size(HEAD).handshake(io).await?;
        Ok(Self { sender, driver: Some(driver), fault: None, stamps })
    }

    /// Its stamps.
    pub(crate) fn stamps(&self) -> &Rc<Stamps> {
        &self.stamps
    }

    /// Why the connection is over, where hyper told the connection rather than the exchange.
    pub(crate) fn fault(&self) -> Option<&hyper::Error> {
        self.fault.as_ref()
    }

    /// Sends a request and waits for the response's head.
    pub(crate) async fn send(&mut self, request: Request<Full<Bytes>>) -> Result<Response<Incoming>, Unanswered> {
        let response = self.sender.try_send_request(request);
        self.drive(response).await.map_err(|mut error| match error.take_message() {
            Some(request) => Unanswered::Unsent(Box::new(request)),
            None => Unanswered::Failed(error.into_error()),
        })
    }

    /// Waits for `wanted` while driving the connection in the same task. hyper does not read the socket again while a
    /// frame waits to be taken, so when this gives a frame, the last read is the one that completed it.
    pub(crate) async fn drive<F: Future>(&mut self, wanted: F) -> F::Output {
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

/// Connections at rest; the one used last is used first.
#[derive(Default)]
pub(crate) struct Pool(RefCell<Vec<Connection>>);

impl Pool {
    /// Takes a connection that still stands; those the server has closed meanwhile are dropped.
    pub(crate) async fn take(&self) -> Option<Connection> {
        poll_fn(|cx| {
            let mut idle = self.0.borrow_mut();
            while let Some(mut connection) = idle.pop() {
                if connection.is_idle(cx) {
                    return Poll::Ready(Some(connection));
                }
                tracing::debug!("the server closed an idle connection");
            }
            Poll::Ready(None)
        })
        .await
    }

    /// Keeps a connection whose exchange is complete; drops it where it cannot be used again.
    pub(crate) async fn put(&self, mut connection: Connection) {
        if poll_fn(|cx| Poll::Ready(connection.is_idle(cx))).await {
            self.0.borrow_mut().push(connection);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::TcpListener;
    use std::time::Duration;

    use http_body_util::BodyExt;

    use super::*;

    /// A chunked response, where its head ends, and the offset just past each byte of its payload.
    fn response(frames: usize) -> (Vec<u8>, u64, Vec<u64>) {
        let mut bytes = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n".to_vec();
        let head = bytes.len() as u64;
        let mut payload = Vec::new();
        for frame in 0..frames {
            let text = format!("data: {{\"n\":{frame},\"pad\":\"{}\"}}\n\n", "x".repeat(frame * 7 % 90));
            bytes.extend_from_slice(format!("{:x}\r\n", text.len()).as_bytes());
            payload.extend((1..=text.len()).map(|byte| (bytes.len() + byte) as u64));
            bytes.extend_from_slice(format!("{text}\r\n").as_bytes());
        }
        bytes.extend_from_slice(b"0\r\n\r\n");
        (bytes, head, payload)
    }

    /// Whether the last read is the one that brought the bytes from `first` to `last`.
    fn assert_last_read_brought(stamps: &Stamps, first: u64, last: u64) {
        let offsets = stamps.offsets.borrow();
        let [.., before, after] = [&[0], &offsets[..]].concat()[..] else { panic!("no read") };
        assert!(before < first && last <= after, "bytes {first} to {last}, but the last read was {before} to {after}");
    }

    /// Writes in pieces of all sizes, some in a hurry, some not, so that reads split and join them in many ways.
    fn serve(listener: &TcpListener, bytes: &[u8]) {
        let (mut stream, _) = listener.accept().unwrap();
        stream.set_nodelay(true).unwrap();
        assert!(stream.read(&mut [0; 4096]).unwrap() > 0);
        let (mut rest, mut draw) = (bytes, 1_u64);
        while !rest.is_empty() {
            draw = draw.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let (piece, later) = rest.split_at((1 + (draw >> 33) as usize % 300).min(rest.len()));
            stream.write_all(piece).unwrap();
            rest = later;
            if draw >> 56 == 0 {
                std::thread::sleep(Duration::from_micros(300));
            }
        }
        let _ = stream.read(&mut [0; 1]);
    }

    #[test]
    fn the_last_read_is_always_the_one_that_completed_the_frame() {
        let (bytes, head, payload) = response(20_000);
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let server = std::thread::spawn(move || serve(&listener, &bytes));
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let stream = TcpStream::connect(address).await.unwrap();
            let mut connection = Connection::new(stream, Scratch::new()).await.unwrap();
            let stamps = Rc::clone(connection.stamps());
            let request = Request::get("/").header("host", "x").body(Full::default()).unwrap();
            let Ok(response) = connection.send(request).await else { panic!("no response") };
            assert!(stamps.sent().is_some_and(|sent| Some(sent) <= stamps.read()));
            let offsets = stamps.offsets.borrow().clone();
            assert!(offsets.last() >= Some(&head));
            let mut body = response.into_body();
            let mut taken = 0;
            while let Some(frame) = connection.drive(body.frame()).await {
                let data = frame.unwrap().into_data().unwrap();
                assert_last_read_brought(&stamps, payload[taken], payload[taken + data.len() - 1]);
                taken += data.len();
            }
            assert_eq!(taken, payload.len());
            assert!(stamps.offsets.borrow().len() > 10, "the server's pieces all came in a few reads");
        });
        server.join().unwrap();
    }
}
