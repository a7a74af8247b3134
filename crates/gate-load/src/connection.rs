//! HTTP/1.1 connections, driven by the task that uses them, and the pool they rest in.

use std::cell::RefCell;
use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::client::conn::http1;

use crate::stamped::Stamps;
use crate::transport::Transport;
use crate::words::Loss;

/// The most bytes of a response's head.
const HEAD: usize = 64 << 10;

/// A connection and what drives it. Nothing is read from the socket except while its user waits for the result.
pub(crate) struct Connection {
    sender: http1::SendRequest<Full<Bytes>>,
    /// Absent once the connection is over.
    driver: Option<http1::Connection<Transport, Full<Bytes>>>,
    /// Why it is over.
    fault: Option<hyper::Error>,
    stamps: Arc<Stamps>,
}

/// Why a request has no response.
pub(crate) enum Unanswered {
    /// Not one byte of it was written; here it is back.
    Unsent(Box<Request<Full<Bytes>>>),
    /// The exchange failed.
    Failed(hyper::Error),
}

impl Connection {
    /// HTTP over a transport whose reads and writes these stamps tell.
    pub(crate) async fn new(transport: Transport, stamps: Arc<Stamps>) -> Result<Self, hyper::Error> {
        let (sender, driver) = http1::Builder::new().max_buf_size(HEAD).handshake(transport).await?;
        Ok(Self { sender, driver: Some(driver), fault: None, stamps })
    }

    /// Its stamps.
    pub(crate) fn stamps(&self) -> &Arc<Stamps> {
        &self.stamps
    }

    /// How it was lost, by the error of an exchange on it.
    pub(crate) fn loss(&self, error: &hyper::Error) -> Loss {
        match Loss::of(error, self.fault.as_ref()) {
            Loss::Garbled(_) if self.stamps.is_alerted() => Loss::Encrypted,
            loss => loss,
        }
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
    use std::net::{TcpListener, TcpStream};
    use std::time::{Duration, Instant};

    use http_body_util::BodyExt;
    use rustls::{ServerConfig, ServerConnection};
    use url::Url;

    use super::*;
    use crate::target::Target;
    use crate::tls::Trust;

    /// A chunked response, and where the bytes of its payload are.
    fn response(frames: usize) -> (Vec<u8>, Vec<usize>) {
        let mut bytes = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n".to_vec();
        let mut payload = Vec::new();
        for frame in 0..frames {
            let text = format!("data: {{\"n\":{frame},\"pad\":\"{}\"}}\n\n", "x".repeat(frame * 7 % 90));
            bytes.extend_from_slice(format!("{:x}\r\n", text.len()).as_bytes());
            payload.extend(bytes.len()..bytes.len() + text.len());
            bytes.extend_from_slice(format!("{text}\r\n").as_bytes());
        }
        bytes.extend_from_slice(b"0\r\n\r\n");
        (bytes, payload)
    }

    /// Numbers that look random, always the same ones.
    fn draws() -> impl Iterator<Item = u64> {
        std::iter::successors(Some(1_u64), |draw| {
            Some(draw.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407))
        })
    }

    /// Cuts bytes into pieces of all sizes up to 300.
    fn pieces(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
        let mut rest = bytes;
        draws().map_while(move |draw| {
            let (piece, later) = rest.split_at((1 + (draw >> 33) as usize % 300).min(rest.len()));
            rest = later;
            (!piece.is_empty()).then_some(piece)
        })
    }

    /// What is on the wire, and where: for each byte of what is said, the offset at which a reader can know it.
    struct Wire {
        bytes: Vec<u8>,
        known: Vec<u64>,
    }

    /// Plain HTTP: a byte is known when it has come.
    fn plain(stream: &mut TcpStream, said: &[u8]) -> Wire {
        assert!(stream.read(&mut [0; 4096]).unwrap() > 0);
        Wire { bytes: said.to_vec(), known: (1..=said.len() as u64).collect() }
    }

    /// TLS, in records of all sizes: a byte is known when its record has come to its end.
    fn encrypted(stream: &mut TcpStream, said: &[u8], config: ServerConfig) -> Wire {
        let mut tls = ServerConnection::new(Arc::new(config)).unwrap();
        let mut before = 0;
        let mut request = Vec::new();
        while !request.ends_with(b"\r\n\r\n") {
            if tls.wants_write() {
                before += tls.write_tls(stream).unwrap() as u64;
            } else {
                assert!(tls.read_tls(stream).unwrap() > 0);
                let state = tls.process_new_packets().unwrap();
                let start = request.len();
                request.resize(start + state.plaintext_bytes_to_read(), 0);
                tls.reader().read_exact(&mut request[start..]).unwrap();
            }
        }
        let mut wire = Wire { bytes: Vec::new(), known: Vec::new() };
        for piece in pieces(said) {
            tls.writer().write_all(piece).unwrap();
            while tls.wants_write() {
                tls.write_tls(&mut wire.bytes).unwrap();
            }
            wire.known.resize(wire.known.len() + piece.len(), before + wire.bytes.len() as u64);
        }
        wire
    }

    /// Writes in pieces, some in a hurry, some not, so that reads split and join them in many ways.
    fn hurry(stream: &mut TcpStream, bytes: &[u8]) {
        for (piece, draw) in pieces(bytes).zip(draws()) {
            stream.write_all(piece).unwrap();
            if draw >> 56 == 0 {
                std::thread::sleep(Duration::from_micros(300));
            }
        }
    }

    fn check(scheme: &str, wire: impl FnOnce(&mut TcpStream, &[u8]) -> Wire + Send + 'static) {
        let (said, payload) = response(20_000);
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let base = Url::parse(&format!("{scheme}://{}", listener.local_addr().unwrap())).unwrap();
        let server = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            stream.set_nodelay(true).unwrap();
            let wire = wire(&mut stream, &said);
            hurry(&mut stream, &wire.bytes);
            let _ = stream.read(&mut [0; 1]);
            wire.known
        });
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let (reads, sizes) = runtime.block_on(follow(&base));
        let known = server.join().unwrap();
        let mut taken = payload.into_iter().map(|byte| known[byte]);
        assert_eq!(sizes.iter().sum::<usize>(), taken.len());
        for ((before, after), size) in reads.iter().zip(sizes) {
            for known in taken.by_ref().take(size) {
                assert!(*before < known && known <= *after, "known at {known}, the last read: {before} to {after}");
            }
        }
        let reads = reads.iter().collect::<std::collections::BTreeSet<_>>();
        assert!(reads.len() > 10, "the server's pieces all came in a few reads");
    }

    /// Reads a response: for each frame its size, and the offsets from and to which the last read went.
    async fn follow(base: &Url) -> (Vec<(u64, u64)>, Vec<usize>) {
        let target = Target::new(base, &Trust { insecure: true, ..Trust::default() }).unwrap();
        target.resolve().await.unwrap();
        let stamps = Arc::new(Stamps::default());
        let deadline = Instant::now() + Duration::from_secs(20);
        let Ok(transport) = target.connect(deadline, &stamps).await else { panic!("no connection") };
        let mut connection = Connection::new(transport, Arc::clone(&stamps)).await.unwrap();
        stamps.begin();
        let request = Request::get("/").header("host", "x").body(Full::default()).unwrap();
        let Ok(response) = connection.send(request).await else { panic!("no response") };
        assert!(stamps.sent().is_some_and(|sent| Some(sent) <= stamps.read()));
        let (mut reads, mut sizes) = (Vec::new(), Vec::new());
        let mut body = response.into_body();
        while let Some(frame) = connection.drive(body.frame()).await {
            sizes.push(frame.unwrap().into_data().unwrap().len());
            reads.push(stamps.last_read());
        }
        (reads, sizes)
    }

    #[test]
    fn the_last_read_is_always_the_one_that_completed_the_frame() {
        check("http", plain);
    }

    #[test]
    fn under_tls_the_last_read_is_always_the_one_that_completed_the_record() {
        let rcgen::CertifiedKey { cert, signing_key } = rcgen::generate_simple_self_signed(["x".to_owned()]).unwrap();
        for version in [&rustls::version::TLS12, &rustls::version::TLS13] {
            let key = rustls_pki_types::PrivatePkcs8KeyDer::from(signing_key.serialize_der());
            let provider = Arc::new(rustls::crypto::ring::default_provider());
            let config = ServerConfig::builder_with_provider(provider)
                .with_protocol_versions(&[version])
                .unwrap()
                .with_no_client_auth()
                .with_single_cert(vec![cert.der().clone()], key.into())
                .unwrap();
            check("https", |stream, said| encrypted(stream, said, config));
        }
    }
}
