//! One request and its response: from a connection to the outcome.

use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::Poll;
use std::time::{Duration, Instant, SystemTime};

use gate_model::{Delivery, Nanos, Outcome};
use gate_wire::{BodyEnd, Decoder, Event, Keep, conclude};
use http::{HeaderMap, Response, header};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use tokio::task::yield_now;
use tokio::time::{Sleep, timeout_at};

use crate::abort::quota;
use crate::client::{Client, Cut, unanswered};
use crate::clock::{Zero, later};
use crate::connection::{Connection, Unanswered};
use crate::record::{Ending, Held, Measurement, Record, Text};
use crate::requests::{Draft, Prepared};
use crate::stamped::Receipt;
use crate::target::ConnectError;
use crate::words::{self, Loss};

/// How much of an error's body is read.
const ERROR_BODY: usize = 64 << 10;
/// How long an error's body is waited for.
const ERROR_BODY_WAIT: Duration = Duration::from_secs(5);
/// How long the end of the body is waited for after the terminal event, so that the connection can be kept.
const DRAIN: Duration = Duration::from_secs(1);
/// How much of that a request keeps its slot: most servers end the body at once, and the next request then finds the
/// connection at rest.
const SLOT_DRAIN: Duration = Duration::from_millis(5);

/// Which connection a request takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    /// One at rest or shared; a new one where there is none.
    Pool,
    /// A new one.
    New,
}

/// When a request was due, and when it was taken up.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Timing {
    pub(crate) zero: Zero,
    pub(crate) intended: Nanos,
    pub(crate) start: Instant,
    /// When it had its slot, under a cap.
    pub(crate) slot: Option<Instant>,
}

impl Timing {
    /// From when its time limits count: what it waits for before is no fault of the server's.
    pub(crate) fn begun(&self) -> Instant {
        self.slot.unwrap_or(self.start)
    }
}

/// Sends a request and follows it to its end. Always gives a sample, and sends again only what the server has not looked
/// at. Its slot is given back when its answer is complete.
pub(crate) async fn measure(
    client: &Client,
    prepared: &Prepared,
    timing: Timing,
    source: Source,
    held: Held,
) -> Measurement {
    let terms = &client.terms;
    let mut record = Record::new(&prepared.planned, timing, held, terms.with_times);
    let deadline = later(timing.begun(), terms.timeouts.total);
    let ending = terms.within(deadline, exchange(client, prepared, source, &mut record)).await;
    record.finish(ending, terms)
}

async fn exchange(client: &Client, prepared: &Prepared, source: Source, record: &mut Record) -> Ending {
    let terms = &client.terms;
    let (connection, response) = match answer(client, &prepared.draft, source, record).await {
        Ok(answer) => answer,
        Err(ending) => return ending,
    };
    record.headers(response.status().as_u16(), connection.stamps().last().at);
    if let Some(replica) = terms.replica.as_ref().and_then(|name| response.headers().get(name)) {
        record.replica(&String::from_utf8_lossy(replica.as_bytes()), &terms.redactor);
    }
    if !response.status().is_success() {
        return error_answer(client, connection, response, record).await;
    }
    match compression(response.headers()) {
        Some(encoding) => Ending::new(
            Outcome::Decode,
            format!("the answer is compressed ({encoding}), which was not asked for: does a proxy compress it?"),
        ),
        None => {
            let keep = if prepared.conversation.is_some() { Keep::Text } else { terms.keep() };
            stream(client, connection, response, keep, record).await
        }
    }
}

/// The head of the response, with the connection it came on.
async fn answer(
    client: &Client,
    draft: &Draft,
    mut source: Source,
    record: &mut Record,
) -> Result<(Connection, Response<Incoming>), Ending> {
    let deadline = first_token_deadline(client, record);
    loop {
        let ready = if source == Source::Pool { client.pool.take().await } else { None };
        let is_new = ready.is_none();
        let mut connection = match ready {
            Some(connection) => connection,
            None => connect(client, record).await?,
        };
        let request = draft.request().map_err(|error| Ending::new(Outcome::Cancelled, error.to_string()))?;
        let sent = connection.begin();
        record.writing(Instant::now(), sent.clone());
        let answered = timeout_at(deadline.into(), connection.send(request, &sent)).await;
        match answered.map_err(|_| no_first_token(client))? {
            Ok(response) => return Ok((connection, response)),
            Err(Unanswered::Unsent) if !is_new => {
                tracing::debug!("a connection closed before the request was written; another takes it");
            }
            Err(Unanswered::Refused(_)) if !is_new => {
                tracing::debug!("the server takes no more on this connection; a new one takes the request");
                source = Source::New;
            }
            Err(Unanswered::Unsent) if connection.is_other_version() => {
                return Err(unanswered(Loss::OtherVersion(connection.http())));
            }
            Err(Unanswered::Unsent) => return Err(unanswered(Loss::Closed)),
            Err(Unanswered::Failed(error) | Unanswered::Refused(error)) => {
                return Err(unanswered(connection.loss(&error)));
            }
        }
    }
}

async fn connect(client: &Client, record: &mut Record) -> Result<Connection, Ending> {
    let timeouts = &client.terms.timeouts;
    let first_token = first_token_deadline(client, record);
    let deadline = later(Instant::now(), timeouts.connect);
    // In a box: what connecting and a handshake need is not kept for as long as the stream lasts.
    match Box::pin(client.connect(deadline.min(first_token))).await {
        Ok((connection, phases)) => {
            record.connected(Instant::now(), phases);
            client.opened(&connection);
            Ok(connection)
        }
        Err(ConnectError::Late(_)) if first_token < deadline => Err(no_first_token(client)),
        Err(error) => {
            if let ConnectError::Exhausted(what) = error {
                // The target has no part in it: the run ends, and nothing is said of the target.
                client.terms.cuts.cut(Cut::Exhausted(what));
            }
            Err(Ending::new(error.outcome(), error.words(timeouts.connect)))
        }
    }
}

fn first_token_deadline(client: &Client, record: &Record) -> Instant {
    later(record.begun(), client.terms.timeouts.first_token)
}

fn no_first_token(client: &Client) -> Ending {
    Ending::new(Outcome::TimeoutFirstToken, format!("no token within {}", client.terms.timeouts.first_token))
}

fn compression(headers: &HeaderMap) -> Option<String> {
    let encoding = headers.get(header::CONTENT_ENCODING)?.to_str().ok()?;
    let is_none = |one: &str| one.is_empty() || one.eq_ignore_ascii_case("identity");
    (!encoding.split(',').map(str::trim).all(is_none)).then(|| encoding.to_owned())
}

/// What the next wait for bytes is for, and until when it lasts.
enum Wait {
    FirstToken(Instant),
    NextEvent(Instant),
    EndOfBody(Instant),
}

impl Wait {
    fn next(client: &Client, record: &Record, terminal: Option<Instant>) -> Self {
        match (terminal, record.last_event_since_token()) {
            (Some(terminal), _) => Self::EndOfBody(terminal + DRAIN),
            (None, Some(event)) => Self::NextEvent(later(event, client.terms.timeouts.stall)),
            (None, None) => Self::FirstToken(first_token_deadline(client, record)),
        }
    }

    fn deadline(&self) -> Instant {
        let (Self::FirstToken(deadline) | Self::NextEvent(deadline) | Self::EndOfBody(deadline)) = self;
        *deadline
    }
}

/// How many frames are taken at once before it is the turn of other requests.
const FRAMES_A_TURN: u32 = 64;

/// Waits for frames of a body, each until a deadline of its own.
struct Patience {
    /// One timer serves all: it is set again only when it rings too early, not with every frame.
    timer: Pin<Box<Sleep>>,
    /// How many frames came without a wait.
    at_once: u32,
}

impl Patience {
    fn until(deadline: Instant) -> Self {
        let left = deadline.saturating_duration_since(Instant::now());
        Self { timer: Box::pin(tokio::time::sleep(left)), at_once: 0 }
    }

    /// Whether the last frame came without a wait.
    fn is_at_once(&self) -> bool {
        self.at_once > 0
    }

    /// Waits for `wanted` until a deadline; `None` where that passes first.
    async fn wait<F: Future>(&mut self, deadline: Instant, wanted: F) -> Option<F::Output> {
        if self.at_once == FRAMES_A_TURN {
            self.at_once = 0;
            yield_now().await;
        }
        self.at_once += 1;
        let mut wanted = pin!(wanted);
        poll_fn(|cx| {
            if let Poll::Ready(output) = wanted.as_mut().poll(cx) {
                return Poll::Ready(Some(output));
            }
            self.at_once = 0;
            let deadline = deadline.into();
            if deadline < self.timer.deadline() {
                self.timer.as_mut().reset(deadline);
            }
            while self.timer.as_mut().poll(cx).is_ready() {
                if self.timer.deadline() >= deadline {
                    return Poll::Ready(None);
                }
                self.timer.as_mut().reset(deadline);
            }
            Poll::Pending
        })
        .await
    }
}

/// Decodes the body of a 2xx response as it comes.
async fn stream(
    client: &Client,
    mut connection: Connection,
    response: Response<Incoming>,
    keep: Keep,
    record: &mut Record,
) -> Ending {
    let terms = &client.terms;
    let (head, mut body) = response.into_parts();
    let stamps = Arc::clone(connection.stamps());
    let mut decoder = terms.writer.dialect().decoder(terms.delivery, keep);
    let note = |record: &mut Record, event: Event, read: Receipt| match terms.delivery {
        Delivery::Streamed => record.event(event.kind, read, &stamps),
        Delivery::Whole => record.whole(event.kind, read.at),
    };
    let mut patience = Patience::until(first_token_deadline(client, record));
    let mut terminal = None;
    let end = loop {
        let wait = Wait::next(client, record, terminal);
        let kept_until = terminal.filter(|_| record.has_slot()).map(|terminal| terminal + SLOT_DRAIN);
        let until = kept_until.unwrap_or(wait.deadline());
        let frame = patience.wait(until, connection.drive(body.frame())).await;
        if frame.is_none() && kept_until.is_some() {
            record.free_slot();
            continue;
        }
        // The timer is not looked at where bytes never pause.
        let is_late = patience.is_at_once() && stamps.last().at > wait.deadline();
        let Some(frame) = frame.filter(|frame| !(is_late && matches!(frame, Some(Ok(_))))) else {
            match wait {
                Wait::FirstToken(_) => return no_first_token(client),
                Wait::NextEvent(_) => {
                    let stall = terms.timeouts.stall;
                    record.stream(decoder.state(), &terms.redactor);
                    return Ending::new(Outcome::TimeoutStall, format!("no event for {stall} in mid-stream"));
                }
                Wait::EndOfBody(_) => break BodyEnd::Clean,
            }
        };
        match frame {
            Some(Ok(frame)) => {
                let read = stamps.last();
                let bytes = frame.data_ref().map_or(&[][..], |bytes| bytes);
                record.bytes(bytes.len());
                decoder.feed(bytes, &mut |event| note(record, event, read));
                if let Some((key, reason)) = record.goes_on(decoder.state().usage.and_then(|usage| usage.output)) {
                    terms.aborts.give_up(reason);
                    terms.cuts.cut(Cut::Spent(key));
                }
                if decoder.state().ended {
                    terminal.get_or_insert(read.at);
                }
                if is_failed(&*decoder) {
                    record.ended(read.at);
                    break BodyEnd::Clean;
                }
            }
            None => {
                let ended = stamps.ended();
                let last = Receipt { at: ended, ..stamps.last() };
                decoder.finish(&mut |event| note(record, event, last));
                record.ended(ended);
                client.release(connection).await;
                break BodyEnd::Clean;
            }
            Some(Err(error)) => {
                record.ended(stamps.ended());
                match connection.loss(&error) {
                    Loss::Reset | Loss::Ended(_) | Loss::Tls(_) => break BodyEnd::Reset,
                    Loss::Garbled(words) if terminal.is_none() => {
                        record.stream(decoder.state(), &terms.redactor);
                        return Ending::new(Outcome::Decode, format!("the answer's framing is broken: it is {words}"));
                    }
                    // The decoder's state says whether anything is missing.
                    Loss::Closed | Loss::Garbled(_) | Loss::Encrypted | Loss::OtherVersion(_) => {
                        break BodyEnd::Clean;
                    }
                }
            }
        }
    };
    record.stream(decoder.state(), &terms.redactor);
    terms.unread_usage(decoder.state());
    let is_counted = decoder.state().usage.is_some_and(|usage| usage.output.is_some());
    if let Some(transcript) = decoder.transcript() {
        let visible = transcript.choices.first().map(|choice| choice.text.clone()).unwrap_or_default();
        let is_uncounted = !is_counted && !transcript.cut;
        record.text(Text { visible, generated: transcript.generated(), is_uncounted });
    }
    let content_type = head.headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let (outcome, message) = conclude(decoder.state(), content_type, end);
    Ending { outcome, message }
}

/// Whether nothing that may follow can change the outcome.
fn is_failed(decoder: &dyn Decoder) -> bool {
    decoder.state().error.is_some() || decoder.state().failure.is_some()
}

/// Whether there is more of a body than was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rest {
    /// It was read to its end.
    None,
    /// It is longer, late or broken.
    Unread,
}

/// The beginning of an error's body, at most 64 kB of it.
pub(crate) async fn error_body(connection: &mut Connection, mut body: Incoming, deadline: Instant) -> (Vec<u8>, Rest) {
    let mut bytes = Vec::new();
    while bytes.len() < ERROR_BODY {
        match timeout_at(deadline.into(), connection.drive(body.frame())).await {
            Ok(Some(Ok(frame))) => bytes.extend_from_slice(frame.data_ref().map_or(&[][..], |bytes| bytes)),
            Ok(None) => return (bytes, Rest::None),
            Ok(Some(Err(_))) | Err(_) => break,
        }
    }
    bytes.truncate(ERROR_BODY);
    (bytes, Rest::Unread)
}

/// Reads what a response with another status says.
async fn error_answer(
    client: &Client,
    mut connection: Connection,
    response: Response<Incoming>,
    record: &mut Record,
) -> Ending {
    let terms = &client.terms;
    let (head, body) = response.into_parts();
    let deadline = (Instant::now() + ERROR_BODY_WAIT).min(later(record.begun(), terms.timeouts.total));
    let (bytes, rest) = error_body(&mut connection, body, deadline).await;
    record.bytes(bytes.len());
    record.ended(connection.stamps().ended());
    if rest == Rest::None {
        client.release(connection).await;
    }
    record.wants(terms.writer.dialect().wants_field(head.status.as_u16(), &bytes));
    // Secrets go before the message is cut to its length, so that no part of one is left standing.
    let text = String::from_utf8_lossy(&bytes);
    record.quota(quota(head.status, &head.headers, &text, SystemTime::now()));
    let message = terms.writer.dialect().error_message(terms.redactor.redact(&text).as_bytes());
    let location = head.headers.get(header::LOCATION).and_then(|value| value.to_str().ok());
    let location = location.map(|location| words::clean(location, &terms.redactor));
    let outcome = match head.status.as_u16() {
        429 => Outcome::Http429,
        300..=499 => Outcome::Http4xx,
        500..=599 => Outcome::Http5xx,
        _ => Outcome::Decode,
    };
    Ending::new(outcome, words::status(head.status, message, location.as_deref()))
}
