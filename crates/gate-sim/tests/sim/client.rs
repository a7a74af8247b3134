//! A client that reads raw bytes, and what to ask a server.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use gate_model::{EngineParams, Faults, Latency, Nanos};
use gate_sim::{Server, Truth, TruthRequest};
use serde_json::Value;

/// A fast engine: 2 ms to the first token, .2 ms to each other.
pub(crate) fn fast() -> EngineParams {
    EngineParams {
        ttft: Latency::constant(Nanos::from_millis(2)),
        tpot: Latency::constant(Nanos(200_000)),
        role_chunk: None,
        ..EngineParams::default()
    }
}

pub(crate) fn start(params: EngineParams) -> Server {
    Server::start(SocketAddr::from(([127, 0, 0, 1], 0)), params).unwrap()
}

pub(crate) fn connect(server: &Server) -> TcpStream {
    let stream = TcpStream::connect(server.address()).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    stream
}

pub(crate) fn post(body: &str) -> String {
    post_to("/v1/chat/completions", body)
}

pub(crate) fn post_to(path: &str, body: &str) -> String {
    format!("POST {path} HTTP/1.1\r\nhost: sim\r\ncontent-length: {}\r\n\r\n{body}", body.len())
}

pub(crate) fn chat(tokens: u32, more: &str) -> String {
    post(&format!(r#"{{"model":"m","messages":[{{"role":"user","content":"a b c"}}],"max_tokens":{tokens}{more}}}"#))
}

pub(crate) fn streamed(tokens: u32) -> String {
    chat(tokens, r#","stream":true"#)
}

pub(crate) fn get(path: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nhost: sim\r\n\r\n")
}

/// An answer, and how its connection ended where it did not end well.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) head: String,
    /// As text, where it is one.
    pub(crate) body: String,
    pub(crate) bytes: Vec<u8>,
    /// The sizes of its chunks, the last one left out; none where it came in one body.
    pub(crate) chunks: Vec<usize>,
    pub(crate) broken: Option<ErrorKind>,
}

impl Answer {
    /// The data of each event.
    pub(crate) fn events(&self) -> Vec<&str> {
        self.body.split_terminator("\n\n").map(|event| event.strip_prefix("data: ").unwrap()).collect()
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap()
    }

    /// The text of all content events.
    pub(crate) fn text(&self) -> String {
        let chunks = self.events().into_iter().filter(|data| *data != "[DONE]");
        chunks.filter_map(|data| content(&serde_json::from_str(data).unwrap())).collect()
    }

    pub(crate) fn words(&self) -> usize {
        self.text().split_whitespace().count()
    }
}

pub(crate) fn content(chunk: &Value) -> Option<String> {
    chunk["choices"][0]["delta"]["content"].as_str().map(str::to_owned)
}

/// Reads one byte; `UnexpectedEof` is the clean end of the connection.
pub(crate) fn byte(stream: &mut TcpStream) -> Result<u8, ErrorKind> {
    let mut byte = [0];
    match stream.read(&mut byte) {
        Ok(0) => Err(ErrorKind::UnexpectedEof),
        Ok(_) => Ok(byte[0]),
        Err(error) => Err(error.kind()),
    }
}

pub(crate) fn line(stream: &mut TcpStream) -> Result<String, ErrorKind> {
    let mut line = Vec::new();
    while !line.ends_with(b"\r\n") {
        line.push(byte(stream)?);
    }
    Ok(String::from_utf8(line).unwrap().trim_end().to_owned())
}

pub(crate) fn read_exactly(stream: &mut TcpStream, length: usize, into: &mut Vec<u8>) -> Result<(), ErrorKind> {
    (0..length).try_for_each(|_| byte(stream).map(|byte| into.push(byte)))
}

/// The body so far stays in `body` when the connection breaks.
pub(crate) fn read_body(
    stream: &mut TcpStream,
    head: &str,
    body: &mut Vec<u8>,
    chunks: &mut Vec<usize>,
) -> Result<(), ErrorKind> {
    let Some(length) = head.lines().find_map(|line| line.strip_prefix("content-length: ")) else {
        assert!(head.contains("transfer-encoding: chunked"), "{head}");
        loop {
            let size = usize::from_str_radix(&line(stream)?, 16).unwrap();
            read_exactly(stream, size, body)?;
            assert_eq!(line(stream)?, "");
            if size == 0 {
                return Ok(());
            }
            chunks.push(size);
        }
    };
    read_exactly(stream, length.parse().unwrap(), body)
}

pub(crate) fn read(stream: &mut TcpStream) -> Result<Answer, ErrorKind> {
    let mut head = String::new();
    loop {
        match line(stream)?.as_str() {
            "" => break,
            line => head += &format!("{line}\n"),
        }
    }
    let (mut body, mut chunks) = (Vec::new(), Vec::new());
    let broken = read_body(stream, &head, &mut body, &mut chunks).err();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    Ok(Answer { status, head, body: String::from_utf8_lossy(&body).into_owned(), bytes: body, chunks, broken })
}

pub(crate) fn exchange(stream: &mut TcpStream, request: &str) -> Answer {
    stream.write_all(request.as_bytes()).unwrap();
    read(stream).unwrap()
}

pub(crate) fn ask(server: &Server, request: &str) -> Answer {
    exchange(&mut connect(server), request)
}

/// The truth once every request has ended.
pub(crate) fn settled(server: &Server) -> Truth {
    for _ in 0..3_000 {
        let truth = server.truth();
        if truth.requests.iter().all(|request| request.end.is_some()) {
            return truth;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    panic!("requests that never end: {:?}", server.truth());
}

pub(crate) fn only(server: &Server) -> TruthRequest {
    let mut truth = settled(server);
    assert_eq!(truth.requests.len(), 1);
    truth.requests.remove(0)
}

/// Sends a request that will stall after so many writes, and reads what there is.
pub(crate) fn read_stalled(server: &Server, request: &str, writes: usize) -> Answer {
    let mut stream = connect(server);
    stream.write_all(request.as_bytes()).unwrap();
    let written = || {
        let truth = server.truth();
        truth.requests.first().is_some_and(|request| request.status.is_some() && request.writes.len() == writes)
    };
    let guard = Instant::now();
    while !written() {
        assert!(guard.elapsed() < Duration::from_secs(60), "{:?}", server.truth());
        std::thread::sleep(Duration::from_millis(10));
    }
    stream.set_read_timeout(Some(Duration::from_millis(500))).unwrap();
    let answer = read(&mut stream).unwrap();
    assert!(matches!(answer.broken, Some(ErrorKind::WouldBlock | ErrorKind::TimedOut)), "{answer:?}");
    assert_eq!(server.truth().requests[0].end, None);
    answer
}

pub(crate) fn faulty(set: impl FnOnce(&mut Faults)) -> EngineParams {
    let mut params = fast();
    set(&mut params.faults);
    params
}
