//! A script played on a connection, each event at its time.

use std::io;
use std::time::{Duration, Instant};

use gate_engine::{Fate, Script};
use gate_model::Nanos;
use tokio::io::AsyncWriteExt;

use crate::chat::ChatRequest;
use crate::dialect::{Answer, embedded_error, event};
use crate::http::{Connection, LAST_CHUNK, Refusal, chunk, head};
use crate::ledger::Ledger;
use crate::timer::Timer;

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
    pub(crate) chat: &'a ChatRequest,
    pub(crate) arrived: Instant,
    pub(crate) number: u32,
    pub(crate) script: Script,
}

impl Playback<'_, '_> {
    /// Plays it to its end. An error means that the client is gone.
    pub(crate) async fn play(mut self) -> io::Result<Next> {
        if self.script.fate == Fate::Http500 {
            return self.fail().await;
        }
        self.ledger.answered(self.number, 200);
        if self.chat.stream { self.stream().await } else { self.body().await }
    }

    async fn fail(&mut self) -> io::Result<Next> {
        let message = "The server had an error while processing your request. Sorry about that!";
        self.ledger.answered(self.number, 500);
        self.ledger.ended(self.number, Instant::now());
        self.connection.answer(500, &Refusal::new(500, message).body(), "").await?;
        Ok(Next::Serve)
    }

    async fn stream(&mut self) -> io::Result<Next> {
        let head = head(200, "text/event-stream", "cache-control: no-cache\r\ntransfer-encoding: chunked\r\n");
        self.connection.stream.write_all(head.as_bytes()).await?;

        let timer = Timer::new();
        let mut answer = Answer::new(self.chat, self.number);
        for step in std::mem::take(&mut self.script.events) {
            let bytes = chunk(&answer.next(step.kind));
            timer.wait_until(self.due(step.at)).await;
            self.write(bytes.as_bytes(), step.kind.tokens()).await?;
        }
        timer.wait_until(self.due(self.script.end)).await;
        let (last, next) = match self.script.fate {
            Fate::Complete => (answer.closing(), Next::Serve),
            Fate::StreamError => (vec![event(&embedded_error()), event(&"[DONE]")], Next::Close),
            Fate::Truncate => (Vec::new(), Next::Close),
            Fate::Stall => return self.stall().await,
            Fate::Reset | Fate::Dead | Fate::Http500 => return Ok(self.reset()),
        };
        let last: String = last.iter().map(|event| chunk(event)).collect();
        self.finish(&(last + LAST_CHUNK)).await?;
        Ok(next)
    }

    /// An answer in one body, when its last token is due; faults in the middle happen in the middle of the body.
    async fn body(&mut self) -> io::Result<Next> {
        let tokens = self.script.tokens();
        let fate = self.script.fate;
        let body = match fate {
            Fate::StreamError => embedded_error().to_string(),
            _ => Answer::new(self.chat, self.number).body(tokens),
        };
        let whole = head(200, "application/json", &format!("content-length: {}\r\n", body.len())) + &body;
        Timer::new().wait_until(self.due(self.script.end)).await;
        if matches!(fate, Fate::Complete | Fate::StreamError) {
            if fate == Fate::Complete {
                self.ledger.wrote(self.number, Instant::now(), tokens);
            }
            self.finish(&whole).await?;
            return Ok(Next::Serve);
        }
        let part = whole.as_bytes().get(..whole.len() - body.len() / 2).unwrap_or_default();
        self.write(part, 0).await?;
        match fate {
            Fate::Stall => self.stall().await,
            Fate::Truncate => {
                self.ledger.ended(self.number, Instant::now());
                Ok(Next::Close)
            }
            _ => Ok(self.reset()),
        }
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

    async fn write(&mut self, bytes: &[u8], tokens: u32) -> io::Result<()> {
        self.ledger.wrote(self.number, Instant::now(), tokens);
        self.connection.stream.write_all(bytes).await
    }

    async fn finish(&mut self, bytes: &str) -> io::Result<()> {
        self.ledger.ended(self.number, Instant::now());
        self.connection.stream.write_all(bytes.as_bytes()).await
    }

    fn due(&self, at: Nanos) -> Instant {
        self.arrived.checked_add(at.to_duration()).unwrap_or(self.arrived)
    }
}
