//! Whether what is taken bears the stamp of the read that completed it.

use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::{Duration, Instant};

use gate_model::{Http, Stamping};
use http_body_util::BodyExt;
use rustls::{ServerConfig, ServerConnection};
use tokio::runtime::{Builder, LocalOptions};
use url::Url;

use super::*;
use crate::proxy::ProxyEnv;
use crate::receive::Receiver;
use crate::target::Target;
use crate::tls::Trust;

/// How many frames are sent.
const FRAMES: usize = 20_000;

/// What a server says, and for each byte of each answer in it: which byte completes what it is in.
struct Speech {
    bytes: Vec<u8>,
    answers: Vec<Vec<usize>>,
}

/// The text of a frame, which begins with the number of its answer.
fn text(answer: usize, frame: usize) -> String {
    format!("{answer} {}\n", "x".repeat(frame * 7 % 90))
}

/// A chunked answer of HTTP/1.1. Of a chunk's data every byte is known when it has come.
fn chunked() -> Speech {
    let mut bytes = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n".to_vec();
    let mut answer = Vec::new();
    for frame in 0..FRAMES {
        let text = text(0, frame);
        bytes.extend_from_slice(format!("{:x}\r\n", text.len()).as_bytes());
        answer.extend(bytes.len()..bytes.len() + text.len());
        bytes.extend_from_slice(format!("{text}\r\n").as_bytes());
    }
    bytes.extend_from_slice(b"0\r\n\r\n");
    Speech { bytes, answers: vec![answer] }
}

/// A frame of HTTP/2.
fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    [&length[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
}

/// Answers of HTTP/2 on several streams, their frames dealt at random. A frame is known when all of it has come.
fn framed(streams: &[u32]) -> Speech {
    let mut bytes = [frame(4, 0, 0, &[]), frame(4, 1, 0, &[])].concat();
    for stream in streams {
        // The first entry of the static table that is a status: 200.
        bytes.extend(frame(1, 4, *stream, &[0x88]));
    }
    let mut answers = vec![Vec::new(); streams.len()];
    for (number, draw) in (0..FRAMES).zip(draws()) {
        let answer = (draw >> 33) as usize % streams.len();
        let text = text(answer, number);
        bytes.extend(frame(0, 0, streams[answer], text.as_bytes()));
        answers[answer].extend(std::iter::repeat_n(bytes.len() - 1, text.len()));
    }
    for stream in streams {
        bytes.extend(frame(0, 1, *stream, &[]));
    }
    Speech { bytes, answers }
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

/// What a server answers, once it has read enough of what the client says.
type Answer = fn(&[u8]) -> Option<Speech>;

fn one(asked: &[u8]) -> Option<Speech> {
    asked.ends_with(b"\r\n\r\n?").then(chunked)
}

/// How many requests share a connection.
const SHARED: usize = 8;

fn two(asked: &[u8]) -> Option<Speech> {
    let mut rest = asked.get(24..)?;
    let mut streams = Vec::new();
    while let Some((head, tail)) = rest.split_at_checked(9) {
        let length = u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize;
        let is_last = head[3] < 2 && head[4] & 1 == 1;
        if is_last {
            streams.push(u32::from_be_bytes(head[5..9].try_into().unwrap()));
        }
        rest = tail.get(length..)?;
    }
    (streams.len() == SHARED).then(|| framed(&streams))
}

/// What is on the wire, and where: for each byte of what is said, the offset at which a reader can know it.
struct Wire {
    bytes: Vec<u8>,
    /// How many bytes were before them.
    before: u64,
    known: Vec<u64>,
    answers: Vec<Vec<usize>>,
}

/// Nothing around it: a byte is known when it has come.
fn plain(stream: &mut TcpStream, answer: Answer) -> Wire {
    let mut asked = Vec::new();
    loop {
        let mut buffer = [0; 4096];
        let count = stream.read(&mut buffer).unwrap();
        assert!(count > 0, "the client closed");
        asked.extend_from_slice(&buffer[..count]);
        if let Some(Speech { bytes, answers }) = answer(&asked) {
            return Wire { known: (1..=bytes.len() as u64).collect(), bytes, before: 0, answers };
        }
    }
}

/// TLS, in records of all sizes: a byte is known when its record has come to its end.
fn encrypted(stream: &mut TcpStream, answer: Answer, config: ServerConfig) -> Wire {
    let mut tls = ServerConnection::new(Arc::new(config)).unwrap();
    let mut before = 0;
    let mut asked = Vec::new();
    let said = loop {
        if tls.wants_write() {
            before += tls.write_tls(stream).unwrap() as u64;
            continue;
        }
        if let Some(said) = answer(&asked) {
            break said;
        }
        assert!(tls.read_tls(stream).unwrap() > 0);
        let state = tls.process_new_packets().unwrap();
        let start = asked.len();
        asked.resize(start + state.plaintext_bytes_to_read(), 0);
        tls.reader().read_exact(&mut asked[start..]).unwrap();
    };
    let mut wire = Wire { bytes: Vec::new(), before, known: Vec::new(), answers: said.answers };
    for piece in pieces(&said.bytes) {
        tls.writer().write_all(piece).unwrap();
        while tls.wants_write() {
            tls.write_tls(&mut wire.bytes).unwrap();
        }
        wire.known.resize(wire.known.len() + piece.len(), before + wire.bytes.len() as u64);
    }
    wire
}

fn certified(alpn: &[u8], versions: &[&'static rustls::SupportedProtocolVersion]) -> ServerConfig {
    let rcgen::CertifiedKey { cert, signing_key } = rcgen::generate_simple_self_signed(["x".to_owned()]).unwrap();
    let key = rustls_pki_types::PrivatePkcs8KeyDer::from(signing_key.serialize_der());
    let mut config = ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_protocol_versions(versions)
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![cert.der().clone()], key.into())
        .unwrap();
    config.alpn_protocols = vec![alpn.to_vec()];
    config
}

/// Writes in pieces, some in a hurry, some not, so that reads split and join them in many ways. Gives for each piece its
/// end and the instant before it was written.
fn hurry(stream: &mut TcpStream, wire: &Wire) -> Vec<(u64, Instant)> {
    let mut end = wire.before;
    let mut written = Vec::new();
    for (piece, draw) in pieces(&wire.bytes).zip(draws()) {
        end += piece.len() as u64;
        written.push((end, Instant::now()));
        stream.write_all(piece).unwrap();
        if draw >> 56 == 0 {
            std::thread::sleep(Duration::from_micros(300));
        }
    }
    written
}

/// What the client took at once: how much, of which answer, and the last read: where it was, its stamp, and when it was
/// over.
struct Taken {
    size: usize,
    answer: Option<usize>,
    read: (u64, u64),
    at: Instant,
    seen: Instant,
}

fn check(http: Http, clock: Stamping, tls: Option<ServerConfig>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let scheme = if tls.is_some() { "https" } else { "http" };
    let base = Url::parse(&format!("{scheme}://{}", listener.local_addr().unwrap())).unwrap();
    let answer: Answer = if http == Http::Two { two } else { one };
    let server = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        stream.set_nodelay(true).unwrap();
        let wire = match tls {
            None => plain(&mut stream, answer),
            Some(config) => encrypted(&mut stream, answer, config),
        };
        let written = hurry(&mut stream, &wire);
        // The client closes when it has all; what else it says is of no interest.
        while stream.read(&mut [0; 4096]).is_ok_and(|count| count > 0) {}
        (wire, written)
    });
    let runtime = Builder::new_current_thread().enable_all().build_local(LocalOptions::default()).unwrap();
    let answers = runtime.block_on(follow(&base, http, clock));
    drop(runtime);
    let (wire, written) = server.join().unwrap();
    let mut reads = BTreeSet::new();
    for taken in answers {
        let answer = taken.first().and_then(|taken| taken.answer).unwrap();
        let mut known = wire.answers[answer].iter().map(|byte| wire.known[*byte]);
        assert_eq!(taken.iter().map(|taken| taken.size).sum::<usize>(), known.len());
        for Taken { size, read: (before, after), at, seen, .. } in taken {
            for known in known.by_ref().take(size) {
                assert!(before < known && known <= after, "known at {known}, the last read: {before} to {after}");
            }
            let piece = written.partition_point(|(end, _)| *end < after);
            // Two clocks are read one after the other to be compared.
            let (slack, (_, write)) = (Duration::from_micros(50), written[piece]);
            assert!(write <= at + slack && at <= seen, "written at {write:?}, stamped {at:?}, read by {seen:?}");
            reads.insert(after);
        }
    }
    assert!(reads.len() > 10, "the server's pieces all came in a few reads");
}

/// Follows all answers, each in a task of its own.
async fn follow(base: &Url, http: Http, clock: Stamping) -> Vec<Vec<Taken>> {
    let trust = Trust { insecure: true, ..Trust::default() };
    let target = Target::new(base, None, &trust, &ProxyEnv::default(), http).unwrap();
    let stamps = Stamps::new(&Receiver::new(clock));
    let deadline = Instant::now() + Duration::from_secs(20);
    let Ok(connected) = target.connect(deadline, &stamps).await else { panic!("no connection") };
    let connection = Connection::new(connected, stamps).await.unwrap();
    let shares = (1..SHARED).map_while(|_| connection.share()).collect::<Vec<_>>();
    let tasks: Vec<_> =
        shares.into_iter().chain([connection]).map(|share| tokio::task::spawn_local(follow_one(share))).collect();
    let mut answers = Vec::new();
    for task in tasks {
        answers.push(task.await.unwrap());
    }
    answers
}

async fn follow_one(mut connection: Connection) -> Vec<Taken> {
    let stamps = Arc::clone(connection.stamps());
    let sent = connection.begin();
    let request = Request::post("/").header("host", "x").body(Bytes::from_static(b"?")).unwrap();
    let Ok(response) = connection.send(request, &sent).await else { panic!("no response") };
    assert!(sent.at().is_some_and(|sent| sent <= stamps.last().at));
    let mut answer = Vec::new();
    let mut body = response.into_body();
    while let Some(frame) = connection.drive(body.frame()).await {
        let data = frame.unwrap().into_data().unwrap();
        let digit = data.first().filter(|byte| byte.is_ascii_digit());
        let (read, at, seen) = (stamps.last_read(), stamps.last().at, stamps.seen().unwrap());
        if !data.is_empty() {
            answer.push(Taken {
                size: data.len(),
                answer: digit.map(|digit| usize::from(digit - b'0')),
                read,
                at,
                seen,
            });
        }
    }
    answer
}

/// The clocks that there are here.
fn clocks() -> impl Iterator<Item = Stamping> {
    [Stamping::User].into_iter().chain(cfg!(target_os = "linux").then_some(Stamping::Kernel))
}

#[test]
fn the_last_read_is_always_the_one_that_completed_the_frame() {
    clocks().for_each(|clock| check(Http::One, clock, None));
}

#[test]
fn under_tls_the_last_read_is_always_the_one_that_completed_the_record() {
    for version in [&rustls::version::TLS12, &rustls::version::TLS13] {
        clocks().for_each(|clock| check(Http::One, clock, Some(certified(b"http/1.1", &[version]))));
    }
}

#[test]
fn over_http2_the_last_read_is_always_the_one_that_completed_the_frame_of_any_stream() {
    clocks().for_each(|clock| check(Http::Two, clock, None));
}

#[test]
fn over_http2_under_tls_it_is_the_one_that_completed_the_record_of_the_frame() {
    for version in [&rustls::version::TLS12, &rustls::version::TLS13] {
        clocks().for_each(|clock| check(Http::Two, clock, Some(certified(b"h2", &[version]))));
    }
}

#[cfg(target_os = "linux")]
#[test]
fn the_kernels_stamp_is_the_arrival_however_late_the_read() {
    let (listener, late) = (TcpListener::bind("127.0.0.1:0").unwrap(), Duration::from_millis(50));
    let runtime = Builder::new_current_thread().enable_all().build().unwrap();
    let stamped = |clock| {
        runtime.block_on(async {
            let stream = tokio::net::TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
            let (mut server, _) = listener.accept().unwrap();
            let stamps = Stamps::new(&Receiver::new(clock));
            let mut stream = crate::stamped::Stamped::new(crate::socket::Socket::Tcp(stream), Arc::clone(&stamps));
            let mut gaps = Vec::new();
            for _ in 0..20 {
                let before = Instant::now();
                server.write_all(&[0; 7]).unwrap();
                // Nobody polls meanwhile, as when the thread is busy.
                std::thread::sleep(late);
                let mut bytes = [0; 16];
                assert_eq!(tokio::io::AsyncReadExt::read(&mut stream, &mut bytes).await.unwrap(), 7);
                gaps.push(stamps.last().at.duration_since(before));
            }
            gaps.sort();
            gaps[gaps.len() / 2]
        })
    };
    assert!(stamped(Stamping::User) >= late);
    assert!(stamped(Stamping::Kernel) < late / 2, "the stamp is that of the read");
}

#[cfg(unix)]
#[test]
fn a_connection_is_not_taken_once_it_is_closed_even_if_the_runtime_has_not_heard_of_it() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let base = Url::parse(&format!("http://{}", listener.local_addr().unwrap())).unwrap();
    let (answered, close) = std::sync::mpsc::channel();
    let (closed, is_closed) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        assert!(stream.read(&mut [0; 4096]).unwrap() > 0);
        stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").unwrap();
        close.recv().unwrap();
        drop(stream);
        closed.send(()).unwrap();
    });
    let runtime = Builder::new_current_thread().enable_all().build_local(LocalOptions::default()).unwrap();
    runtime.block_on(async {
        let target = Target::new(&base, None, &Trust::default(), &ProxyEnv::default(), Http::One).unwrap();
        let stamps = Stamps::new(&Receiver::new(Stamping::User));
        let Ok(connected) = target.connect(Instant::now() + Duration::from_secs(20), &stamps).await else { panic!() };
        let mut connection = Connection::new(connected, stamps).await.unwrap();
        let request = Request::get("/").header("host", "x").body(Bytes::new()).unwrap();
        let sent = connection.begin();
        let Ok(response) = connection.send(request, &sent).await else { panic!("no response") };
        assert!(connection.drive(response.into_body().frame()).await.is_none());
        let pool = Pool::default();
        pool.put(connection).await;
        let connection = pool.take().await.expect("it stands");
        pool.put(connection).await;
        // The thread blocks, so that the runtime asks the system nothing.
        answered.send(()).unwrap();
        is_closed.recv().unwrap();
        assert!(pool.take().await.is_none());
    });
}
