//! A script played on a connection, each event at its time.

use std::io;
use std::time::{Duration, Instant, SystemTime};

use gate_engine::{Fate, Script, ScriptEvent};
use gate_model::Nanos;

use crate::alarm::Alarm;
use crate::ask::Ask;
use crate::dialect::{Answer, Dialect};
use crate::http::{Connection, LAST_CHUNK, Refusal, chunk, head, whole};
use crate::ledger::Ledger;
use crate::queue::{Place, Queue, Service};

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
    pub(crate) queue: &'a Queue,
    /// Its place in the queue, or its slot; none where the answer needs none, and once it has given it back.
    pub(crate) place: Option<Place<'a>>,
    /// When one who is refused for too many requests may come back.
    pub(crate) retry_after: Nanos,
    pub(crate) dialect: &'static dyn Dialect,
    pub(crate) ask: &'a Ask,
    pub(crate) arrived: Instant,
    pub(crate) number: u32,
    /// As if it were served at once, until it is served.
    pub(crate) script: Script,
    /// How much of a stream a proxy holds back; 0: nothing.
    pub(crate) buffer_bytes: usize,
}

/// The most bytes that are written together only because they are due at the same instant.
const MOST_TOGETHER: usize = 64 * 1024;

/// The most events of an answer that is written at once, head and end included.
const MOST_AT_ONCE: usize = 64;

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
            Fate::Http401 => self.refuse(&self.dialect.unauthorised(), "").await,
            Fate::Http429 => {
                let seconds = self.retry_after.to_duration().as_millis().div_ceil(1_000);
                self.refuse(&self.dialect.rate_limit(), &format!("retry-after: {seconds}\r\n")).await
            }
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
        let mut answer = Answer::new(self.dialect, self.ask, self.number, SystemTime::now(), &self.script);
        if let Some(service) = self.place.as_ref().and_then(Place::at_once) {
            self.served(service, &mut answer);
        }
        let head = head(200, self.dialect.stream_type(), "cache-control: no-cache\r\ntransfer-encoding: chunked\r\n");
        if self.is_due_at_once() {
            return self.one_write(head.into_bytes(), answer).await;
        }
        self.wait_until(self.due(self.script.headers)).await?;
        self.ledger.answered(self.number, 200);
        self.connection.write(head.as_bytes()).await?;

        let mut held = Burst::default();
        if self.place.as_ref().is_some_and(|place| place.at_once().is_none()) {
            let roles = self.script.events.partition_point(|event| event.kind.tokens() == 0);
            let roles: Vec<_> = self.script.events.drain(..roles).collect();
            self.events(roles, &mut answer, &mut held).await?;
            let service = self.called().await?;
            self.served(service, &mut answer);
        }
        let events = std::mem::take(&mut self.script.events);
        self.events(events, &mut answer, &mut held).await?;
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
        self.wait_until(self.due(self.script.end)).await?;
        match self.script.fate {
            // Neither is an end of the stream: what a proxy holds then is lost.
            Fate::Stall => self.stall().await,
            Fate::Reset => Ok(self.reset()),
            _ => {
                if next == Next::Serve {
                    self.give_back(answer.text());
                } else {
                    self.place = None;
                }
                let mut wire = Vec::new();
                chunk(&held.body, &mut wire);
                wire.extend(LAST_CHUNK);
                self.finish(&wire, &held).await?;
                Ok(next)
            }
        }
    }

    /// Plays these events; what a proxy holds back stays in `held`.
    async fn events(&mut self, events: Vec<ScriptEvent>, answer: &mut Answer<'_>, held: &mut Burst) -> io::Result<()> {
        let mut wire = Vec::new();
        let mut events = events.into_iter().peekable();
        while let Some(event) = events.next() {
            self.add(event, answer, held);
            let size = held.body.len();
            let together = size < MOST_TOGETHER && events.peek().is_some_and(|next| next.at == event.at);
            if size == 0 || size < self.buffer_bytes || together {
                continue;
            }
            // Made ready before it is due, so that nothing but the write comes after.
            wire.clear();
            chunk(&held.body, &mut wire);
            let due = self.due(event.at);
            self.wait_until(due).await?;
            self.write(&wire, held, due).await?;
            held.clear();
        }
        Ok(())
    }

    fn add(&self, event: ScriptEvent, answer: &mut Answer<'_>, held: &mut Burst) {
        let before = held.body.len();
        answer.next(event, &mut held.body);
        if held.body.len() > before {
            held.events += 1;
            held.tokens += event.kind.tokens();
        }
    }

    /// Whether status, headers and the whole of a short answer are due at one instant.
    fn is_due_at_once(&self) -> bool {
        let Script { fate, headers, events, end } = &self.script;
        let is_served = self.place.as_ref().is_none_or(|place| place.at_once().is_some());
        let first = events.first().map(|event| event.at);
        is_served
            && matches!(fate, Fate::Complete | Fate::SlowHeaders)
            && first == Some(*headers)
            && first == Some(*end)
            && events.len() <= MOST_AT_ONCE
    }

    /// Writes the whole answer with its head.
    async fn one_write(&mut self, mut wire: Vec<u8>, mut answer: Answer<'_>) -> io::Result<Next> {
        let mut burst = Burst::default();
        for event in std::mem::take(&mut self.script.events) {
            self.add(event, &mut answer, &mut burst);
        }
        chunk(&burst.body, &mut wire);
        burst.body.clear();
        answer.closing(self.script.end, &mut burst.body);
        chunk(&burst.body, &mut wire);
        wire.extend(LAST_CHUNK);
        self.wait_until(self.due(self.script.end)).await?;
        self.ledger.answered(self.number, 200);
        self.give_back(answer.text());
        self.finish(&wire, &burst).await?;
        Ok(Next::Serve)
    }

    /// Waits for a slot; an error means that the client is gone.
    async fn called(&mut self) -> io::Result<Service> {
        let Some(place) = &mut self.place else { return std::future::pending().await };
        tokio::select! {
            biased;
            service = place.service() => Ok(service),
            () = self.connection.until_closed() => Err(io::ErrorKind::UnexpectedEof.into()),
        }
    }

    /// It is served: its tokens come as much later as it waited and its prompt takes.
    fn served(&mut self, service: Service, answer: &mut Answer<'_>) {
        let waited = self.place.as_ref().map_or(Nanos::ZERO, |place| place.waited(service, self.arrived));
        self.ledger.served(self.number, waited, service.reading.cached);
        let empty = Script { fate: self.script.fate, headers: Nanos::ZERO, events: Vec::new(), end: Nanos::ZERO };
        self.script = std::mem::replace(&mut self.script, empty).delayed(waited + service.reading.takes);
        answer.served(&self.script, service.reading.cached);
    }

    /// The answer ends well, with this text: its slot is free before the client can know.
    fn give_back(&mut self, text: &str) {
        if let Some(place) = self.place.take() {
            place.answered(text);
        }
    }

    /// Waits until something is due. Where a slot depends on it, an error tells that the client has left.
    async fn wait_until(&self, due: Instant) -> io::Result<()> {
        if !self.queue.is_limited() {
            self.alarm.wait_until(due).await;
            return Ok(());
        }
        tokio::select! {
            biased;
            () = self.alarm.wait_until(due) => Ok(()),
            () = self.connection.until_closed() => Err(io::ErrorKind::UnexpectedEof.into()),
        }
    }

    /// An answer in one body, when its last token is due; faults in the middle happen in the middle of the body.
    async fn body(&mut self) -> io::Result<Next> {
        let fate = self.script.fate;
        let mut answer = Answer::new(self.dialect, self.ask, self.number, SystemTime::now(), &self.script);
        let service = self.called().await?;
        self.served(service, &mut answer);
        let body = match fate {
            Fate::StreamError => self.dialect.embedded_failure().to_string().into_bytes(),
            _ => answer.body(self.script.end, self.script.tokens()),
        };
        let whole = whole(200, "application/json", "", &body);
        let due = self.due(self.script.end);
        self.wait_until(due).await?;
        self.ledger.answered(self.number, 200);
        let one = |tokens| Burst { body: Vec::new(), events: 1, tokens };
        match fate {
            Fate::StreamError => self.finish(&whole, &Burst::default()).await?,
            Fate::Complete | Fate::Empty | Fate::SlowHeaders => {
                let generates = self.dialect.api().generates();
                let tokens = if generates { self.script.tokens() } else { 0 };
                self.give_back(if generates { answer.text() } else { "" });
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
