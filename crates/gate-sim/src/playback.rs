//! A script played on a connection, each event at its time.

use std::io;
use std::time::{Duration, Instant};

use gate_engine::{Fate, Script};
use gate_model::Nanos;

use crate::alarm::Alarm;
use crate::ask::Ask;
use crate::dialect::{Answer, Dialect};
use crate::http::{Connection, LAST_CHUNK, Refusal, chunk, head, whole};
use crate::ledger::Ledger;

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
    pub(crate) alarm: &'a Alarm,
    pub(crate) dialect: &'static dyn Dialect,
    pub(crate) ask: &'a Ask,
    pub(crate) arrived: Instant,
    pub(crate) number: u32,
    pub(crate) script: Script,
    /// How much of a stream a proxy holds back; 0: nothing.
    pub(crate) buffer_bytes: usize,
}

/// The most bytes that are written together only because they are due at the same instant.
const MOST_TOGETHER: usize = 64 * 1024;

/// Events that are written together.
#[derive(Default)]
struct Burst {
    body: Vec<u8>,
    events: u32,
    tokens: u32,
}

impl Burst {
    fn clear(&mut self) {
        self.body.clear();
        (self.events, self.tokens) = (0, 0);
    }
}

impl Playback<'_, '_> {
    /// Plays it to its end. An error means that the client is gone.
    pub(crate) async fn play(mut self) -> io::Result<Next> {
        match self.script.fate {
            Fate::Http429 => self.refuse(&self.dialect.rate_limit(), "retry-after: 1\r\n").await,
            Fate::Http500 => self.refuse(&self.dialect.failure(), "").await,
            Fate::Html200 => self.at_once(200, &whole(200, "text/html; charset=utf-8", "", PAGE.as_bytes())).await,
            _ if self.ask.stream => self.stream().await,
            _ => self.body().await,
        }
    }

    async fn refuse(&mut self, refusal: &Refusal, more: &str) -> io::Result<Next> {
        let body = self.dialect.refusal(refusal).to_string();
        let headers = self.dialect.refusal_headers(refusal) + more;
        self.at_once(refusal.status, &whole(refusal.status, "application/json", &headers, body.as_bytes())).await
    }

    async fn at_once(&mut self, status: u16, answer: &[u8]) -> io::Result<Next> {
        self.ledger.answered(self.number, status);
        self.finish(answer, &Burst::default()).await?;
        Ok(Next::Serve)
    }

    async fn stream(&mut self) -> io::Result<Next> {
        let mut answer = Answer::new(self.dialect, self.ask, self.number, &self.script);
        self.alarm.wait_until(self.due(self.script.headers)).await;
        self.ledger.answered(self.number, 200);
        let head = head(200, self.dialect.stream_type(), "cache-control: no-cache\r\ntransfer-encoding: chunked\r\n");
        self.connection.write(head.as_bytes()).await?;

        let (mut held, mut wire) = (Burst::default(), Vec::new());
        let mut events = std::mem::take(&mut self.script.events).into_iter().peekable();
        while let Some(event) = events.next() {
            let before = held.body.len();
            answer.next(event, &mut held.body);
            if held.body.len() > before {
                held.events += 1;
                held.tokens += event.kind.tokens();
            }
            let size = held.body.len();
            let together = size < MOST_TOGETHER && events.peek().is_some_and(|next| next.at == event.at);
            if size == 0 || size < self.buffer_bytes || together {
                continue;
            }
            // Made ready before it is due, so that nothing but the write comes after.
            wire.clear();
            chunk(&held.body, &mut wire);
            let due = self.due(event.at);
            self.alarm.wait_until(due).await;
            self.write(&wire, &held, due).await?;
            held.clear();
        }
        let next = match self.script.fate {
            Fate::Complete | Fate::Empty | Fate::SlowHeaders => {
                answer.closing(self.script.end, &mut held.body);
                Next::Serve
            }
            Fate::StreamError => {
                answer.broken(self.script.end, &mut held.body);
                Next::Close
            }
            _ => Next::Close,
        };
        self.alarm.wait_until(self.due(self.script.end)).await;
        match self.script.fate {
            // Neither is an end of the stream: what a proxy holds then is lost.
            Fate::Stall => self.stall().await,
            Fate::Reset => Ok(self.reset()),
            _ => {
                wire.clear();
                chunk(&held.body, &mut wire);
                wire.extend(LAST_CHUNK);
                self.finish(&wire, &held).await?;
                Ok(next)
            }
        }
    }

    /// An answer in one body, when its last token is due; faults in the middle happen in the middle of the body.
    async fn body(&mut self) -> io::Result<Next> {
        let fate = self.script.fate;
        let body = match fate {
            Fate::StreamError => self.dialect.embedded_failure().to_string().into_bytes(),
            _ => {
                let tokens = self.script.tokens();
                Answer::new(self.dialect, self.ask, self.number, &self.script).body(self.script.end, tokens)
            }
        };
        let whole = whole(200, "application/json", "", &body);
        let due = self.due(self.script.end);
        self.alarm.wait_until(due).await;
        self.ledger.answered(self.number, 200);
        let one = |tokens| Burst { body: Vec::new(), events: 1, tokens };
        match fate {
            Fate::StreamError => self.finish(&whole, &Burst::default()).await?,
            Fate::Complete | Fate::Empty | Fate::SlowHeaders => {
                let generates = self.dialect.api().generates();
                let tokens = if generates { self.script.tokens() } else { 0 };
                self.finish(&whole, &one(tokens)).await?;
            }
            _ => {
                let part = whole.get(..whole.len() - body.len() / 2).unwrap_or_default();
                self.write(part, &one(0), due).await?;
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

    /// Writes these bytes, which hold the events of a burst.
    async fn write(&mut self, bytes: &[u8], burst: &Burst, due: Instant) -> io::Result<()> {
        self.write_at(bytes, burst, due, Instant::now()).await
    }

    async fn write_at(&mut self, bytes: &[u8], burst: &Burst, due: Instant, now: Instant) -> io::Result<()> {
        self.ledger.writing(self.number, due, now, burst.events, burst.tokens);
        self.connection.write(bytes).await?;
        self.ledger.wrote(self.number, Instant::now());
        Ok(())
    }

    /// Writes the last of the answer.
    async fn finish(&mut self, bytes: &[u8], burst: &Burst) -> io::Result<()> {
        let now = Instant::now();
        self.ledger.ended(self.number, now);
        if burst.events == 0 {
            return self.connection.write(bytes).await;
        }
        self.write_at(bytes, burst, self.due(self.script.end), now).await
    }

    fn due(&self, at: Nanos) -> Instant {
        self.arrived.checked_add(at.to_duration()).unwrap_or(self.arrived)
    }
}
