//! A server on loopback that answers as a test says, and remembers what it was asked.

use std::sync::{Arc, Mutex};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// A request as it came.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    pub(crate) method: String,
    /// The path with its query.
    pub(crate) path: String,
    head: String,
    pub(crate) body: Vec<u8>,
}

impl Asked {
    /// A header's value, by its name in lower case.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.head
            .lines()
            .filter_map(|line| line.split_once(':'))
            .find_map(|(named, value)| named.eq_ignore_ascii_case(name).then_some(value.trim()))
    }
}

/// An answer.
#[derive(Clone, Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(&'static str, String)>,
    pub(crate) body: Vec<u8>,
    /// How many bytes it says it has; `None` is the truth.
    pub(crate) claims: Option<usize>,
}

impl Reply {
    pub(crate) fn new(status: u16, body: impl Into<Vec<u8>>) -> Self {
        Self { status, headers: Vec::new(), body: body.into(), claims: None }
    }

    pub(crate) fn with(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.headers.push((name, value.into()));
        self
    }
}

/// A running server, and all that it was asked.
pub(crate) struct Server {
    /// Its address, such as `http://127.0.0.1:40000`.
    pub(crate) origin: String,
    asked: Arc<Mutex<Vec<Asked>>>,
}

impl Server {
    /// Starts on a free port; it ends with the runtime. Each connection is for one request.
    pub(crate) async fn start(answer: impl FnMut(&Asked) -> Reply + Send + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let origin = format!("http://{}", listener.local_addr().unwrap());
        let asked = Arc::new(Mutex::new(Vec::new()));
        let (log, answer) = (Arc::clone(&asked), Arc::new(Mutex::new(answer)));
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (log, answer) = (Arc::clone(&log), Arc::clone(&answer));
                tokio::spawn(async move {
                    serve(stream, |asked| {
                        log.lock().unwrap().push(asked.clone());
                        let mut answer = answer.lock().unwrap();
                        answer(asked)
                    })
                    .await;
                });
            }
        });
        Self { origin, asked }
    }

    pub(crate) fn asked(&self) -> Vec<Asked> {
        self.asked.lock().unwrap().clone()
    }

    /// Methods and paths, in order.
    pub(crate) fn log(&self) -> Vec<String> {
        self.asked().iter().map(|asked| format!("{} {}", asked.method, asked.path)).collect()
    }
}

async fn serve(mut stream: TcpStream, answer: impl FnOnce(&Asked) -> Reply) {
    let mut bytes = Vec::new();
    let asked = loop {
        if stream.read_buf(&mut bytes).await.unwrap_or(0) == 0 {
            return;
        }
        if let Some(asked) = parsed(&bytes) {
            break asked;
        }
    };
    let Reply { status, headers, body, claims } = answer(&asked);
    let length = claims.unwrap_or(body.len());
    let mut head = format!("HTTP/1.1 {status} Words\r\nconnection: close\r\n");
    if status != 204 {
        head.push_str(&format!("content-length: {length}\r\n"));
    }
    for (name, value) in headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    head.push_str("\r\n");
    let _ = stream.write_all(head.as_bytes()).await;
    let _ = stream.write_all(&body).await;
    let _ = stream.shutdown().await;
}

fn parsed(bytes: &[u8]) -> Option<Asked> {
    let end = bytes.windows(4).position(|window| window == b"\r\n\r\n")?;
    let head = String::from_utf8(bytes[..end].to_vec()).unwrap();
    let mut first = head.lines().next()?.split(' ');
    let (method, path) = (first.next()?.to_owned(), first.next()?.to_owned());
    let mut asked = Asked { method, path, head, body: bytes[end + 4..].to_vec() };
    let length: usize = asked.header("content-length").map_or(0, |length| length.parse().unwrap());
    asked.body.truncate(length);
    (asked.body.len() == length).then_some(asked)
}
