//! A server that does exactly what a script says, one thread a connection.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use rustls::{ServerConfig, ServerConnection, StreamOwned};

/// One step of an answer.
#[derive(Clone, Debug)]
pub(crate) enum Act {
    /// Writes bytes in one call.
    Write(Vec<u8>),
    /// Writes bytes again and again, until the client closes.
    Flood(Vec<u8>),
    /// Waits this many milliseconds.
    Pause(u64),
    /// Waits until the client closes.
    Hold,
    /// Closes the writing side only, then waits until the client closes.
    HalfClose,
    /// Closes.
    Close,
    /// Closes by a reset.
    Reset,
}

pub(crate) use Act::{Close, Flood, HalfClose, Hold, Pause, Reset, Write as Put};

/// A request as the server saw it.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    /// Method and path.
    pub(crate) line: String,
    /// The head, in lower case.
    pub(crate) head: String,
    pub(crate) body: String,
    /// Which connection, from 0.
    pub(crate) connection: u32,
}

impl Seen {
    /// The index of a measured request.
    pub(crate) fn measured(&self) -> Option<usize> {
        let (_, rest) = self.body.split_once("measured-")?;
        rest.split('.').next()?.parse().ok()
    }

    pub(crate) fn is_warmup(&self) -> bool {
        self.body.contains("warmup-")
    }
}

/// What a server converses over.
pub(crate) trait Peer: Read + Write {
    fn socket(&self) -> &TcpStream;
}

impl Peer for &TcpStream {
    fn socket(&self) -> &TcpStream {
        self
    }
}

impl Peer for StreamOwned<ServerConnection, &TcpStream> {
    fn socket(&self) -> &TcpStream {
        self.sock
    }
}

/// What the server does with each request.
pub(crate) type Script = Arc<dyn Fn(&Seen) -> Vec<Act> + Send + Sync>;

/// Serves a script on a port of its own until the process ends.
pub(crate) fn serve(script: impl Fn(&Seen) -> Vec<Act> + Send + Sync + 'static) -> SocketAddr {
    serve_on(TcpListener::bind("127.0.0.1:0").unwrap(), script)
}

pub(crate) fn serve_on(
    listener: TcpListener,
    script: impl Fn(&Seen) -> Vec<Act> + Send + Sync + 'static,
) -> SocketAddr {
    let script: Script = Arc::new(script);
    accept_on(listener, move |stream, connection| converse(stream, connection, &script))
}

/// Serves a script over TLS, where `config` says how each connection is; where it has nothing to say, the handshake
/// is left to wait.
pub(crate) fn serve_tls(
    config: impl Fn(u32) -> Option<Arc<ServerConfig>> + Send + Sync + 'static,
    script: impl Fn(&Seen) -> Vec<Act> + Send + Sync + 'static,
) -> SocketAddr {
    let script: Script = Arc::new(script);
    accept_on(TcpListener::bind("127.0.0.1:0").unwrap(), move |stream, connection| match config(connection) {
        Some(config) => {
            let tls = ServerConnection::new(config).unwrap();
            converse(StreamOwned::new(tls, stream), connection, &script);
        }
        None => hold(stream),
    })
}

/// Has each connection served in a thread of its own.
pub(crate) fn accept_on(listener: TcpListener, serve: impl Fn(&TcpStream, u32) + Send + Sync + 'static) -> SocketAddr {
    let address = listener.local_addr().unwrap();
    let serve = Arc::new(serve);
    let connections = AtomicU32::new(0);
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let (stream, serve) = (stream.unwrap(), Arc::clone(&serve));
            let connection = connections.fetch_add(1, Ordering::SeqCst);
            std::thread::spawn(move || serve(&stream, connection));
        }
    });
    address
}

/// As [`serve`], with a health check that is always well and warm-up that is always `ok`.
pub(crate) fn serve_measured(script: impl Fn(usize, &Seen) -> Vec<Act> + Send + Sync + 'static) -> SocketAddr {
    serve(well(script))
}

/// A script that answers well, except to measured requests.
pub(crate) fn well(
    script: impl Fn(usize, &Seen) -> Vec<Act> + Send + Sync + 'static,
) -> impl Fn(&Seen) -> Vec<Act> + Send + Sync + 'static {
    move |seen| match seen.measured() {
        Some(index) => script(index, seen),
        None if seen.is_warmup() => stream(&["warm"]),
        None => vec![Put(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n".to_vec())],
    }
}

pub(crate) fn converse(peer: impl Peer, connection: u32, script: &Script) {
    peer.socket().set_nodelay(true).unwrap();
    let mut reader = BufReader::new(peer);
    while let Some(seen) = read(&mut reader, connection) {
        for act in script(&seen) {
            match act {
                Act::Write(bytes) => {
                    if reader.get_mut().write_all(&bytes).is_err() {
                        return;
                    }
                }
                Act::Flood(bytes) => {
                    while reader.get_mut().write_all(&bytes).is_ok() {}
                    return;
                }
                Act::Pause(millis) => std::thread::sleep(Duration::from_millis(millis)),
                Act::Hold => return hold(reader.get_mut()),
                Act::HalfClose => {
                    reader.get_ref().socket().shutdown(Shutdown::Write).unwrap();
                    return hold(reader.get_mut());
                }
                Act::Close => return,
                Act::Reset => {
                    rustix::net::sockopt::set_socket_linger(reader.get_ref().socket(), Some(Duration::ZERO)).unwrap();
                    return;
                }
            }
        }
    }
}

fn hold(mut stream: impl Read) {
    let mut byte = [0];
    while matches!(stream.read(&mut byte), Ok(1)) {}
}

fn read(reader: &mut BufReader<impl Read>, connection: u32) -> Option<Seen> {
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if reader.read_line(&mut head).ok()? == 0 {
            return None;
        }
    }
    let line = head.lines().next()?.to_owned();
    let head = head.to_lowercase();
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")?.parse().ok());
    let mut body = vec![0; length.unwrap_or(0)];
    reader.read_exact(&mut body).ok()?;
    Some(Seen { line, head, body: String::from_utf8(body).unwrap(), connection })
}

/// The head of an answer with these header lines.
pub(crate) fn head(status: &str, headers: &[&str]) -> Act {
    let headers: String = headers.iter().map(|header| format!("{header}\r\n")).collect();
    Act::Write(format!("HTTP/1.1 {status}\r\n{headers}\r\n").into_bytes())
}

/// The head of a chunked event stream.
pub(crate) fn stream_head() -> Act {
    head("200 OK", &["content-type: text/event-stream", "transfer-encoding: chunked"])
}

/// A chunk of a chunked body.
pub(crate) fn chunk(text: &str) -> Act {
    Act::Write(format!("{:x}\r\n{text}\r\n", text.len()).into_bytes())
}

/// The end of a chunked body.
pub(crate) fn last_chunk() -> Act {
    Act::Write(b"0\r\n\r\n".to_vec())
}

/// A chat chunk with this content.
pub(crate) fn token(text: &str) -> String {
    format!("data: {{\"choices\":[{{\"index\":0,\"delta\":{{\"content\":\"{text}\"}},\"finish_reason\":null}}]}}\n\n")
}

/// A chat chunk that only names the role.
pub(crate) fn role() -> String {
    "data: {\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":\"\"}}]}\n\n".to_owned()
}

/// A chat chunk that finishes.
pub(crate) fn finish(reason: &str) -> String {
    format!("data: {{\"choices\":[{{\"index\":0,\"delta\":{{}},\"finish_reason\":\"{reason}\"}}]}}\n\n")
}

pub(crate) const DONE: &str = "data: [DONE]\n\n";

/// A whole well-formed stream, each token its own chunk.
pub(crate) fn stream(tokens: &[&str]) -> Vec<Act> {
    let mut acts = vec![stream_head(), chunk(&role())];
    acts.extend(tokens.iter().map(|text| chunk(&token(text))));
    acts.extend([chunk(&finish("stop")), chunk(DONE), last_chunk()]);
    acts
}

/// A whole answer that isn't a stream.
pub(crate) fn document(status: &str, content_type: &str, body: &str) -> Vec<Act> {
    let length = format!("content-length: {}", body.len());
    vec![head(status, &[&format!("content-type: {content_type}"), &length]), Act::Write(body.into())]
}
