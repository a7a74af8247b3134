//! One request and its response: from a connection to the outcome.

use std::time::{Duration, Instant};

use bytes::Bytes;
use gate_model::{Delivery, Nanos, Outcome};
use gate_wire::{BodyEnd, Decoder, Event, conclude};
use http::{HeaderMap, Request, Response, header};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use tokio::time::timeout_at;

use crate::client::{Client, Cut, unanswered};
use crate::clock::{Zero, later};
use crate::connection::{Connection, Unanswered};
use crate::record::{Ending, Measurement, Record};
use crate::requests::Prepared;
use crate::target::ConnectError;
use crate::words::{self, Loss};

/// How much of an error's body is read.
const ERROR_BODY: usize = 64 << 10;
/// How long an error's body is waited for.
const ERROR_BODY_WAIT: Duration = Duration::from_secs(5);
/// How long the end of the body is waited for after the terminal event, so that the connection can be kept.
const DRAIN: Duration = Duration::from_secs(1);

/// Which connection a request takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    /// One at rest; a new one where there is none.
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
}

/// Sends a request and follows it to its end. Always gives a sample, and never sends twice.
pub(crate) async fn measure(client: &Client, prepared: Prepared, timing: Timing, source: Source) -> Measurement {
    let mut record = Record::new(&prepared.planned, timing.intended, timing.start, timing.zero);
    let deadline = later(timing.start, client.timeouts.total);
    let ending = client.within(deadline, exchange(client, prepared.request, source, &mut record)).await;
    record.finish(ending, &client.redactor)
}

async fn exchange(client: &Client, request: Request<Full<Bytes>>, source: Source, record: &mut Record) -> Ending {
    let (connection, response) = match answer(client, request, source, record).await {
        Ok(answer) => answer,
        Err(ending) => return ending,
    };
    let read = connection.stamps().read().unwrap_or_else(Instant::now);
    record.headers(response.status().as_u16(), read);
    if !response.status().is_success() {
        return error_answer(client, connection, response, record).await;
    }
    match compression(response.headers()) {
        Some(encoding) => Ending::new(
            Outcome::Decode,
            format!("the answer is compressed ({encoding}), which was not asked for: does a proxy compress it?"),
        ),
        None => stream(client, connection, response, record).await,
    }
}

/// The head of the response, with the connection it came on.
async fn answer(
    client: &Client,
    mut request: Request<Full<Bytes>>,
    source: Source,
    record: &mut Record,
) -> Result<(Connection, Response<Incoming>), Ending> {
    let deadline = first_token_deadline(client, record);
    loop {
        let idle = if source == Source::Pool { client.pool.take().await } else { None };
        let is_new = idle.is_none();
        let mut connection = match idle {
            Some(connection) => connection,
            None => connect(client, record).await?,
        };
        record.sent_on(connection.stamps());
        let answered = timeout_at(deadline.into(), connection.send(request)).await;
        match answered.map_err(|_| no_first_token(client))? {
            Ok(response) => return Ok((connection, response)),
            Err(Unanswered::Unsent(unsent)) if !is_new => {
                tracing::debug!("a connection closed before the request was written; another takes it");
                request = *unsent;
            }
            Err(Unanswered::Unsent(_)) => return Err(unanswered(Loss::Closed)),
            Err(Unanswered::Failed(error)) => return Err(unanswered(connection.loss(&error))),
        }
    }
}

async fn connect(client: &Client, record: &mut Record) -> Result<Connection, Ending> {
    let first_token = first_token_deadline(client, record);
    let deadline = later(Instant::now(), client.timeouts.connect);
    match client.connect(deadline.min(first_token)).await {
        Ok(connection) => {
            record.connected(Instant::now());
            Ok(connection)
        }
        Err(ConnectError::Late(_)) if first_token < deadline => Err(no_first_token(client)),
        Err(error) => {
            if let ConnectError::Exhausted(what) = error {
                // The target has no part in it: the run ends, and nothing is said of the target.
                client.cut(Cut::Exhausted(what));
            }
            Err(Ending::new(error.outcome(), error.words(client.timeouts.connect)))
        }
    }
}

fn first_token_deadline(client: &Client, record: &Record) -> Instant {
    later(record.start(), client.timeouts.first_token)
}

fn no_first_token(client: &Client) -> Ending {
    Ending::new(Outcome::TimeoutFirstToken, format!("no token within {}", client.timeouts.first_token))
}

fn compression(headers: &HeaderMap) -> Option<String> {
    let encoding = headers.get(header::CONTENT_ENCODING)?.to_str().ok()?;
    (!encoding.is_empty() && !encoding.eq_ignore_ascii_case("identity")).then(|| encoding.to_owned())
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
            (None, Some(event)) => Self::NextEvent(later(event, client.timeouts.stall)),
            (None, None) => Self::FirstToken(first_token_deadline(client, record)),
        }
    }

    fn deadline(&self) -> Instant {
        let (Self::FirstToken(deadline) | Self::NextEvent(deadline) | Self::EndOfBody(deadline)) = self;
        *deadline
    }
}

/// Decodes the body of a 2xx response as it comes.
async fn stream(
    client: &Client,
    mut connection: Connection,
    response: Response<Incoming>,
    record: &mut Record,
) -> Ending {
    let (head, mut body) = response.into_parts();
    let mut decoder = client.dialect.decoder(client.delivery);
    let note = |record: &mut Record, event: Event, at| match client.delivery {
        Delivery::Streamed => record.event(event.kind, at),
        Delivery::Whole => record.whole(event.kind, at),
    };
    let mut terminal = None;
    let end = loop {
        let wait = Wait::next(client, record, terminal);
        let Ok(frame) = timeout_at(wait.deadline().into(), connection.drive(body.frame())).await else {
            match wait {
                Wait::FirstToken(_) => return no_first_token(client),
                Wait::NextEvent(_) => {
                    let stall = client.timeouts.stall;
                    record.stream(decoder.state(), &client.redactor);
                    return Ending::new(Outcome::TimeoutStall, format!("no event for {stall} in mid-stream"));
                }
                Wait::EndOfBody(_) => break BodyEnd::Clean,
            }
        };
        match frame {
            Some(Ok(frame)) => {
                let read = connection.stamps().read().unwrap_or_else(Instant::now);
                let bytes = frame.data_ref().map_or(&[][..], |bytes| bytes);
                record.bytes(bytes.len());
                decoder.feed(bytes, &mut |event| note(record, event, read));
                if decoder.state().ended {
                    terminal.get_or_insert(read);
                }
                if is_failed(&*decoder) {
                    record.ended(read);
                    break BodyEnd::Clean;
                }
            }
            None => {
                let ended = connection.stamps().ended().unwrap_or_else(Instant::now);
                decoder.finish(&mut |event| note(record, event, ended));
                record.ended(ended);
                client.pool.put(connection).await;
                break BodyEnd::Clean;
            }
            Some(Err(error)) => {
                record.ended(connection.stamps().ended().unwrap_or_else(Instant::now));
                match connection.loss(&error) {
                    Loss::Reset | Loss::Tls(_) => break BodyEnd::Reset,
                    Loss::Garbled(words) if terminal.is_none() => {
                        record.stream(decoder.state(), &client.redactor);
                        return Ending::new(Outcome::Decode, format!("the answer's framing is broken: {words}"));
                    }
                    // The decoder's state says whether anything is missing.
                    Loss::Closed | Loss::Garbled(_) | Loss::Encrypted => break BodyEnd::Clean,
                }
            }
        }
    };
    record.stream(decoder.state(), &client.redactor);
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
    let (head, body) = response.into_parts();
    let deadline = (Instant::now() + ERROR_BODY_WAIT).min(later(record.start(), client.timeouts.total));
    let (bytes, rest) = error_body(&mut connection, body, deadline).await;
    record.bytes(bytes.len());
    record.ended(connection.stamps().ended().unwrap_or_else(Instant::now));
    if rest == Rest::None {
        client.pool.put(connection).await;
    }
    record.wants(client.dialect.wants_field(head.status.as_u16(), &bytes));
    // Secrets go before the message is cut to its length, so that no part of one is left standing.
    let text = String::from_utf8_lossy(&bytes);
    let message = client.dialect.error_message(client.redactor.redact(&text).as_bytes());
    let location = head.headers.get(header::LOCATION).and_then(|value| value.to_str().ok());
    let location = location.map(|location| words::clean(location, &client.redactor));
    let outcome = match head.status.as_u16() {
        429 => Outcome::Http429,
        300..=499 => Outcome::Http4xx,
        500..=599 => Outcome::Http5xx,
        _ => Outcome::Decode,
    };
    Ending::new(outcome, words::status(head.status, message, location.as_deref()))
}
