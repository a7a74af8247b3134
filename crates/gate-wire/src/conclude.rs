//! From what was decoded to the request's outcome.

use gate_model::Outcome;

use crate::{MAX_EVENT, StreamError, StreamState, Undecodable};

/// How a response body ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BodyEnd {
    /// By the peer's close, before or at the promised end.
    Clean,
    /// By a reset.
    Reset,
}

/// The outcome of a response with a 2xx status, with a sentence for people unless it is `ok`.
///
/// An error in the stream comes first, then what could not be decoded, then how the body ended. A reset after the
/// terminal event costs nothing: the answer was complete. `content_type` is only quoted: what a body is, its bytes say.
#[must_use]
pub fn conclude(state: &StreamState, content_type: Option<&str>, end: BodyEnd) -> (Outcome, Option<String>) {
    let (outcome, message) = match failed(state, end) {
        Some(failure) => failure,
        None => return (Outcome::Ok, None),
    };
    let quote_type = matches!(outcome, Outcome::Decode | Outcome::NotStreamed)
        || (outcome == Outcome::Truncated && state.events == 0);
    let message = match content_type.filter(|_| quote_type) {
        Some(content_type) => format!("{message} (content type `{content_type}`)"),
        None => message,
    };
    (outcome, Some(message))
}

fn failed(state: &StreamState, end: BodyEnd) -> Option<(Outcome, String)> {
    let tokens = state.content_events;
    let after = format!("after {tokens} event{} with content", if tokens == 1 { "" } else { "s" });
    if let Some(error) = &state.error {
        return Some((Outcome::StreamError, reported(error)));
    }
    if let Some(failure) = &state.failure {
        let (outcome, message) = undecodable(failure);
        let hint = if matches!(failure, Undecodable::Foreign { .. }) { no_text(state) } else { None };
        return Some((outcome, message + &hint.unwrap_or_default()));
    }
    if end == BodyEnd::Reset && !state.ended {
        return Some((Outcome::Reset, format!("the connection was lost in the middle of the answer, {after}")));
    }
    let foreign = state.foreign_events;
    if foreign > 0 && tokens == 0 && state.finish_reason.is_none() {
        let hint = no_text(state).unwrap_or_else(|| ": is `target.api` right?".to_owned());
        let message = format!("{foreign} of {} events are not of this dialect{hint}", state.events);
        return Some((Outcome::Decode, message));
    }
    let hint = no_text(state).unwrap_or_default();
    if !state.ended && state.finish_reason.is_none() {
        let message = match state.events {
            0 => "the server closed the answer without a single event".to_owned(),
            _ => format!("the stream broke off {after}, with neither a terminal event nor a finish reason{hint}"),
        };
        return Some((Outcome::Truncated, message));
    }
    if tokens == 0 {
        let reason = state.finish_reason.as_deref().unwrap_or("none");
        return Some((Outcome::Empty, format!("the answer ended without a token (finish reason: {reason}){hint}")));
    }
    None
}

/// What to look at where a custom dialect found no text.
fn no_text(state: &StreamState) -> Option<String> {
    let pointer = state.no_text_at.as_ref()?;
    Some(format!(": no event had text at `target.custom.text` ({pointer})"))
}

fn reported(error: &StreamError) -> String {
    match (&error.kind, error.message.as_str()) {
        (Some(kind), "") => format!("the server reported an error in its answer: {kind}"),
        (Some(kind), message) => format!("the server reported an error in its answer: {kind}: {message}"),
        (None, "") => "the server reported an error in its answer, without a message".to_owned(),
        (None, message) => format!("the server reported an error in its answer: {message}"),
    }
}

fn undecodable(failure: &Undecodable) -> (Outcome, String) {
    let quoted = |message: &Option<String>| message.as_ref().map(|text| format!(": {text}")).unwrap_or_default();
    let message = match failure {
        Undecodable::Compressed { encoding } => {
            format!("the answer is {encoding}, though `accept-encoding: identity` was sent: does a proxy compress it?")
        }
        Undecodable::Html { message } => {
            format!("the answer is an HTML page{}: does `target.url` point at the API?", quoted(message))
        }
        Undecodable::Foreign { message } => format!("the answer is not of this dialect{}", quoted(message)),
        Undecodable::Malformed { event, message } => format!("event {event} of the stream is not JSON: {message}"),
        Undecodable::Damaged { frame, message } => {
            format!("frame {frame} of the stream is damaged: {message}: does a proxy alter it?")
        }
        Undecodable::TooLong => format!("the answer, or an event of it, is longer than {} MiB", MAX_EVENT >> 20),
        Undecodable::Cut => return (Outcome::Truncated, "the server closed the answer before its end".to_owned()),
        Undecodable::Streamed => {
            "the server sent a stream, though one whole answer was asked for (`target.stream: false`)".to_owned()
        }
        Undecodable::NotStreamed => {
            let message = "the server sent one whole answer instead of a stream: it ignores `stream: true`";
            return (Outcome::NotStreamed, message.to_owned());
        }
    };
    (Outcome::Decode, message)
}
