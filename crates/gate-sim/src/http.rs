//! The server's side of HTTP/1.1: as much as clients of an inference server use.

use std::io::{self, Write as _};
use std::time::Duration;

use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// The longest request line with headers.
const MOST_HEAD: usize = 64 * 1024;
/// The most headers.
const MOST_HEADERS: usize = 128;
/// The longest body.
const MOST_BODY: usize = 16 * 1024 * 1024;
/// The longest line that announces a chunk.
const MOST_CHUNK_LINE: usize = 4 * 1024;
/// How long a closing connection is read on, so that the client gets the answer and no reset.
const LINGER: Duration = Duration::from_secs(1);

/// A request, read whole.
#[derive(Debug)]
pub(crate) struct Request {
    pub(crate) method: String,
    /// Without the query.
    pub(crate) path: String,
    /// Without the question mark; empty where there is none.
    pub(crate) query: String,
    pub(crate) body: Vec<u8>,
    pub(crate) keep_alive: bool,
}

/// Why a request is not answered with 200; its dialect makes a body of it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Refusal {
    pub(crate) status: u16,
    pub(crate) message: String,
    /// The field that is wrong.
    pub(crate) param: Option<String>,
    /// OpenAI's name for what is wrong, where there is one.
    pub(crate) code: Option<&'static str>,
}

impl Refusal {
    pub(crate) fn new(status: u16, message: &str) -> Self {
        Self { status, message: message.to_owned(), param: None, code: None }
    }

    pub(crate) fn bad_request(message: &str) -> Self {
        Self::new(400, message)
    }

    /// Names the field that is wrong.
    pub(crate) fn param(self, param: &str) -> Self {
        Self { param: Some(param.to_owned()), ..self }
    }

    /// Names what is wrong.
    pub(crate) fn code(self, code: &'static str) -> Self {
        Self { code: Some(code), ..self }
    }
}

/// Why there is no request.
#[derive(Debug)]
pub(crate) enum NoRequest {
    /// The client is gone, or has nothing more to ask.
    Gone,
    /// It asked in a way that ends the connection.
    Refused(Refusal),
}

impl From<io::Error> for NoRequest {
    fn from(_: io::Error) -> Self {
        Self::Gone
    }
}

impl From<Refusal> for NoRequest {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

/// How the end of a body is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Framing {
    Length(usize),
    Chunked,
}

#[derive(Debug)]
struct Head {
    /// Bytes of the head itself.
    length: usize,
    method: String,
    path: String,
    query: String,
    framing: Framing,
    keep_alive: bool,
    expects_continue: bool,
}

/// A connection with the bytes read ahead.
pub(crate) struct Connection<'a> {
    pub(crate) stream: &'a mut TcpStream,
    buffer: Vec<u8>,
}

impl<'a> Connection<'a> {
    pub(crate) fn new(stream: &'a mut TcpStream) -> Self {
        Self { stream, buffer: Vec::new() }
    }

    /// The next request, with its whole body.
    pub(crate) async fn request(&mut self) -> Result<Request, NoRequest> {
        let head = loop {
            if let Some(head) = parse_head(&self.buffer)? {
                break head;
            }
            if self.buffer.len() > MOST_HEAD {
                return Err(Refusal::new(431, "The request's headers are too large.").into());
            }
            self.fill().await?;
        };
        self.buffer.drain(..head.length);
        if head.expects_continue && self.buffer.is_empty() {
            self.stream.write_all(b"HTTP/1.1 100 Continue\r\n\r\n").await?;
        }
        let body = match head.framing {
            Framing::Length(length) => self.take(length).await?,
            Framing::Chunked => self.chunks().await?,
        };
        Ok(Request { method: head.method, path: head.path, query: head.query, body, keep_alive: head.keep_alive })
    }

    /// Answers with one text.
    pub(crate) async fn answer_text(&mut self, content_type: &str, text: &str) -> io::Result<()> {
        self.write(&whole(200, content_type, "", text.as_bytes())).await
    }

    /// Answers with one JSON body; `more` holds whole header lines.
    pub(crate) async fn answer(&mut self, status: u16, body: &Value, more: &str) -> io::Result<()> {
        self.write(&whole(status, "application/json", more, body.to_string().as_bytes())).await
    }

    /// Writes all of it: at once where the kernel has room, as it nearly always has.
    pub(crate) async fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        let written = match self.stream.try_write(bytes) {
            Err(error) if error.kind() != io::ErrorKind::WouldBlock => return Err(error),
            written => written.unwrap_or(0),
        };
        match bytes.get(written..) {
            None | Some([]) => Ok(()),
            Some(rest) => self.stream.write_all(rest).await,
        }
    }

    /// Waits until the client closes its side, reading nothing; for ever where it sends more first.
    pub(crate) async fn until_closed(&self) {
        if let Ok(1..) = self.stream.peek(&mut [0]).await {
            std::future::pending().await
        }
    }

    /// Waits until the client closes its side, reading whatever comes.
    pub(crate) async fn until_gone(&mut self) {
        loop {
            self.buffer.clear();
            if self.fill().await.is_err() {
                return;
            }
        }
    }

    /// Closes in a way that delivers what was written: no reset on account of unread bytes.
    pub(crate) async fn close(&mut self) {
        if self.stream.shutdown().await.is_ok() {
            // Whether the client closed or time is up makes no difference.
            let _ = tokio::time::timeout(LINGER, self.until_gone()).await;
        }
    }

    async fn fill(&mut self) -> io::Result<()> {
        self.buffer.reserve(8 * 1024);
        match self.stream.read_buf(&mut self.buffer).await? {
            0 => Err(io::ErrorKind::UnexpectedEof.into()),
            _ => Ok(()),
        }
    }

    /// The next bytes, exactly as many.
    async fn take(&mut self, length: usize) -> io::Result<Vec<u8>> {
        while self.buffer.len() < length {
            self.fill().await?;
        }
        let rest = self.buffer.split_off(length);
        Ok(std::mem::replace(&mut self.buffer, rest))
    }

    /// A body in chunks, without trailers.
    async fn chunks(&mut self) -> Result<Vec<u8>, NoRequest> {
        let malformed = || Refusal::bad_request("The request's chunked body is malformed.");
        let mut body = Vec::new();
        loop {
            let (line, size) = loop {
                match httparse::parse_chunk_size(&self.buffer) {
                    Ok(httparse::Status::Complete(found)) => break found,
                    Ok(httparse::Status::Partial) if self.buffer.len() < MOST_CHUNK_LINE => self.fill().await?,
                    _ => return Err(malformed().into()),
                }
            };
            let size = usize::try_from(size).ok().filter(|size| body.len().saturating_add(*size) <= MOST_BODY);
            let size = size.ok_or_else(too_large)?;
            self.buffer.drain(..line);
            body.append(&mut self.take(size).await?);
            if self.take(2).await? != b"\r\n" {
                return Err(malformed().into());
            }
            if size == 0 {
                return Ok(body);
            }
        }
    }
}

fn too_large() -> Refusal {
    Refusal::new(413, "The request's body is too large.")
}

/// The head of a request, once it is there.
fn parse_head(buffer: &[u8]) -> Result<Option<Head>, Refusal> {
    let mut headers = [httparse::EMPTY_HEADER; MOST_HEADERS];
    let mut request = httparse::Request::new(&mut headers);
    let length = match request.parse(buffer) {
        Ok(httparse::Status::Complete(length)) => length,
        Ok(httparse::Status::Partial) => return Ok(None),
        Err(httparse::Error::TooManyHeaders) => return Err(Refusal::new(431, "The request has too many headers.")),
        Err(error) => return Err(Refusal::bad_request(&format!("The request is not HTTP: {error}."))),
    };
    if request.version != Some(1) {
        return Err(Refusal::new(505, "Only HTTP/1.1 is served here."));
    }
    let target = request.path.unwrap_or_default();
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let mut head = Head {
        length,
        method: request.method.unwrap_or_default().to_owned(),
        path: path.to_owned(),
        query: query.to_owned(),
        framing: Framing::Length(0),
        keep_alive: true,
        expects_continue: false,
    };
    let mut framings = Vec::new();
    for header in request.headers.iter() {
        let value = String::from_utf8_lossy(header.value);
        let value = value.trim();
        match header.name.to_ascii_lowercase().as_str() {
            "content-length" => framings.push(content_length(value)?),
            "transfer-encoding" if value.eq_ignore_ascii_case("chunked") => framings.push(Framing::Chunked),
            "transfer-encoding" => {
                return Err(Refusal::new(501, "Only the transfer encoding `chunked` is known here."));
            }
            "connection" => {
                let close = value.split(',').any(|token| token.trim().eq_ignore_ascii_case("close"));
                head.keep_alive &= !close;
            }
            "expect" => head.expects_continue = value.eq_ignore_ascii_case("100-continue"),
            _ => {}
        }
    }
    framings.dedup();
    match framings.as_slice() {
        [] => {}
        [framing] => head.framing = *framing,
        _ => return Err(Refusal::bad_request("The request gives its body's length twice.")),
    }
    Ok(Some(head))
}

fn content_length(value: &str) -> Result<Framing, Refusal> {
    let digits = !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit());
    if !digits {
        return Err(Refusal::bad_request("The request's content-length is not a number."));
    }
    match value.parse() {
        Ok(length) if length <= MOST_BODY => Ok(Framing::Length(length)),
        _ => Err(too_large()),
    }
}

/// The head of an answer; `more` holds whole header lines.
pub(crate) fn head(status: u16, content_type: &str, more: &str) -> String {
    let reason = match status {
        200 => "OK",
        400 => "Bad Request",
        401 => "Unauthorized",
        404 => "Not Found",
        405 => "Method Not Allowed",
        413 => "Content Too Large",
        429 => "Too Many Requests",
        431 => "Request Header Fields Too Large",
        500 => "Internal Server Error",
        501 => "Not Implemented",
        503 => "Service Unavailable",
        505 => "HTTP Version Not Supported",
        _ => "",
    };
    format!("HTTP/1.1 {status} {reason}\r\nserver: gate-sim\r\ncontent-type: {content_type}\r\n{more}\r\n")
}

/// An answer in one body; `more` holds whole header lines.
pub(crate) fn whole(status: u16, content_type: &str, more: &str, body: &[u8]) -> Vec<u8> {
    let head = head(status, content_type, &format!("content-length: {}\r\n{more}", body.len()));
    [head.as_bytes(), body].concat()
}

/// Appends one chunk of a chunked body; nothing where there is no data, since an empty chunk is the last one.
pub(crate) fn chunk(data: &[u8], out: &mut Vec<u8>) {
    if !data.is_empty() {
        // A vector takes everything.
        let _ = write!(out, "{:x}\r\n", data.len());
        out.extend(data);
        out.extend(b"\r\n");
    }
}

/// The end of a chunked body.
pub(crate) const LAST_CHUNK: &[u8] = b"0\r\n\r\n";
