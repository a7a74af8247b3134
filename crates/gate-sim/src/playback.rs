//! A script played on a connection, each event at its time.

use std::io;
use std::time::{Duration, Instant};

use gate_engine::{Fate, Script};
use gate_model::Nanos;
use tokio::io::AsyncWriteExt;

use crate::ask::Ask;
use crate::dialect::{Answer, Dialect};
use crate::http::{Connection, LAST_CHUNK, Refusal, chunk, head, whole};
use crate::ledger::Ledger;
use crate::timer::Timer;

/// What a proxy or a login page in front of an engine says.
const PAGE: &str = "<!DOCTYPE html>\n<html>\n<head><title>Welcome</title></head>\n<body><p>You are not talking to the \
    engine.</p></body>\n</html>\n";

/// How long a stalled connection is held for a client that never leaves.
const LONGEST_STALL: Duration = Duration::from_secs(600);

/// What becomes of the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// It serves the next request.
    Serve,
    /// It is closed.
    Close,
    /// It is reset.
    Reset,
}

/// One script to be played for one request.
pub(crate) struct Playback<'a, 'b> {
    pub(crate) connection: &'a mut Connection<'b>,
    pub(crate) ledger: &'a Ledger,
    pub(crate) dialect: &'static dyn Dialect,
    pub(crate) ask: &'a Ask,
    pub(crate) arrived: Instant,
    pub(crate) number: u32,
    pub(crate) script: Script,
    /// How much of a stream a proxy holds back; 0: nothing.
    pub(crate) buffer_bytes: usize,
}

/// Events that are written together.
#[derive(Default)]
struct Burst {
    body: String,
    /// The tokens of each.
    events: Vec<u32>,
}

impl Playback<'_, '_> {
    /// Plays it to its end. An error means that the client is gone.
    pub(crate) async fn play(mut self) -> io::Result<Next> {
        match self.script.fate {
            Fate::Http429 => self.refuse(&self.dialect.rate_limit(), "retry-after: 1\r\n").await,
            Fate::Http500 => self.refuse(&self.dialect.failure(), "").await,
            Fate::Html200 => self.at_once(200, whole(200, "text/html; charset=utf-8", "", PAGE)).await,
            _ if self.ask.stream => self.stream().await,
            _ => self.body().await,
        }
    }

    async fn refuse(&mut self, refusal: &Refusal, more: &str) -> io::Result<Next> {
        let body = self.dialect.refusal(refusal).to_string();
        self.at_once(refusal.status, whole(refusal.status, "application/json", more, &body)).await
    }

    async fn at_once(&mut self, status: u16, answer: String) -> io::Result<Next> {
        self.ledger.answered(self.number, status);
        self.finish(&answer, &[]).await?;
        Ok(Next::Serve)
    }

    async fn stream(&mut self) -> io::Result<Next> {
        let timer = Timer::new();
        let mut answer = Answer::new(self.dialect, self.ask, self.number, &self.script);
        timer.wait_until(self.due(self.script.headers)).await;
        self.ledger.answered(self.number, 200);
        let head = head(200, self.dialect.stream_type(), "cache-control: no-cache\r\ntransfer-encoding: chunked\r\n");
        self.connection.stream.write_all(head.as_bytes()).await?;

        let mut held = Burst::default();
        for event in std::mem::take(&mut self.script.events) {
            let encoded = answer.next(event);
            if encoded.is_empty() {
                continue;
            }
            held.body += &encoded;
            held.events.push(event.kind.tokens());
            // Made ready before it is due, so that nothing but the write comes after.
            let ready = (held.body.len() >= self.buffer_bytes).then(|| std::mem::take(&mut held));
            let ready = ready.map(|burst| (chunk(&burst.body), burst.events));
            timer.wait_until(self.due(event.at)).await;
            if let Some((bytes, events)) = ready {
                self.write(bytes.as_bytes(), &events).await?;
            }
        }
        let (last, next) = match self.script.fate {
            Fate::Complete | Fate::Empty | Fate::SlowHeaders => (answer.closing(self.script.end), Next::Serve),
            Fate::StreamError => (self.dialect.broken_stream(), Next::Close),
            _ => (String::new(), Next::Close),
        };
        timer.wait_until(self.due(self.script.end)).await;
        match self.script.fate {
            // Neither is an end of the stream: what a proxy holds then is lost.
            Fate::Stall => self.stall().await,
            Fate::Reset => Ok(self.reset()),
            _ => {
                self.finish(&(chunk(&(held.body + &last)) + LAST_CHUNK), &held.events).await?;
                Ok(next)
            }
        }
    }

    /// An answer in one body, when its last token is due; faults in the middle happen in the middle of the body.
    async fn body(&mut self) -> io::Result<Next> {
        let tokens = self.script.tokens();
        let fate = self.script.fate;
        let body = match fate {
            Fate::StreamError => self.dialect.embedded_failure().to_string(),
            _ => Answer::new(self.dialect, self.ask, self.number, &self.script).body(self.script.end, tokens),
        };
        let whole = whole(200, "application/json", "", &body);
        Timer::new().wait_until(self.due(self.script.end)).await;
        self.ledger.answered(self.number, 200);
        match fate {
            Fate::StreamError => self.finish(&whole, &[]).await?,
            Fate::Complete | Fate::Empty | Fate::SlowHeaders => self.finish(&whole, &[tokens]).await?,
            _ => {
                let part = whole.as_bytes().get(..whole.len() - body.len() / 2).unwrap_or_default();
                self.write(part, &[0]).await?;
                return match fate {
                    Fate::Stall => self.stall().await,
                    Fate::Truncate => {
                        self.ledger.ended(self.number, Instant::now());
                        Ok(Next::Close)
                    }
                    _ => Ok(self.reset()),
                };
            }
        }
        Ok(Next::Serve)
    }

    async fn stall(&mut self) -> io::Result<Next> {
        let left = tokio::time::timeout(LONGEST_STALL, self.connection.until_gone()).await.is_ok();
        if left {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        self.ledger.ended(self.number, Instant::now());
        Ok(Next::Close)
    }

    fn reset(&self) -> Next {
        self.ledger.ended(self.number, Instant::now());
        Next::Reset
    }

    /// Writes events, each with its tokens.
    async fn write(&mut self, bytes: &[u8], events: &[u32]) -> io::Result<()> {
        self.ledger.wrote(self.number, Instant::now(), events);
        self.connection.stream.write_all(bytes).await
    }

    /// Writes the last of the answer.
    async fn finish(&mut self, bytes: &str, events: &[u32]) -> io::Result<()> {
        let now = Instant::now();
        self.ledger.wrote(self.number, now, events);
        self.ledger.ended(self.number, now);
        self.connection.stream.write_all(bytes.as_bytes()).await
    }

    fn due(&self, at: Nanos) -> Instant {
        self.arrived.checked_add(at.to_duration()).unwrap_or(self.arrived)
    }
}
