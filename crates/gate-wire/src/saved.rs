//! What the decoder sees in a saved body.

use std::borrow::Cow;
use std::fmt::Write;
use std::io::Read;

use flate2::read::{MultiGzDecoder, ZlibDecoder};
use gate_model::{Delivery, Outcome, Usage};
use serde::Serialize;
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::framing::compressed;
use crate::{BodyEnd, Decoder, Dialect, Keep, StreamState, Transcript, Undecodable, conclude};

/// The longest body after decompression: 256 MiB.
const LONGEST: u64 = 256 << 20;

/// What a body holds. Events are counted from 0; hashes are SHA-256 over UTF-8, in lower-case hex. How a request would
/// end is for people: it is no part of the JSON.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Decoded {
    /// Events of any kind.
    pub events: u64,
    /// The first with anything generated.
    pub first_token_event: Option<u64>,
    /// The first with text or a refusal.
    pub first_text_event: Option<u64>,
    /// Events with anything generated.
    pub content_events: u64,
    /// How many carry each kind; one may carry several.
    pub events_by_kind: KindCounts,
    /// Unicode scalar values of text and refusals, of all choices.
    pub text_chars: u64,
    /// Their hash, choice after choice.
    pub text_sha256: String,
    /// Unicode scalar values of reasoning.
    pub reasoning_chars: u64,
    /// Its hash.
    pub reasoning_sha256: String,
    /// Token counts, normalised.
    pub usage: Option<Usage>,
    /// The last report of usage as it was sent.
    pub usage_reported: Option<Value>,
    /// The finish reason.
    pub finish_reason: Option<String>,
    /// Whether the terminal event was seen, or a whole answer.
    pub ended: bool,
    /// The terminal event's name.
    pub terminator: Option<String>,
    /// The first error, or what could not be decoded, with a type that begins with `gate:`.
    pub error: Option<DecodedError>,
    /// The choices, where there are several.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub choices: Vec<DecodedChoice>,
    /// Comment lines, where there are any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub comment_lines: Option<u64>,
    /// The first event with opaque data, where there is any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_opaque_event: Option<u64>,
    /// Events that are not JSON, where there are any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unparseable_events: Option<u64>,
    /// Present, and true, where the end of the body gave an event that had not ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pending_at_eof: Option<bool>,
    /// How a request with this answer ends.
    #[serde(skip)]
    pub outcome: Outcome,
    /// A sentence about that, unless there is nothing to say.
    #[serde(skip)]
    pub reason: Option<String>,
}

/// How many events carry each kind of content.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct KindCounts {
    /// Visible text.
    pub text: u64,
    /// Reasoning.
    pub reasoning: u64,
    /// A tool call's name or arguments.
    pub tool: u64,
    /// A refusal.
    pub refusal: u64,
}

/// An error in a body.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct DecodedError {
    /// Its type.
    #[serde(rename = "type")]
    pub kind: Option<String>,
    /// Its message.
    pub message: Option<String>,
}

/// One of several choices.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct DecodedChoice {
    /// Its index.
    pub index: u64,
    /// Unicode scalar values of its text.
    pub text_chars: u64,
    /// The text's hash.
    pub text_sha256: String,
    /// Its finish reason.
    pub finish_reason: Option<String>,
}

/// Decodes a saved body of a response with a 2xx status. Nothing is known of its headers: what it is, its first bytes
/// say. One whole answer is decoded as such.
#[must_use]
pub fn decode_saved(dialect: &dyn Dialect, bytes: &[u8]) -> Decoded {
    let body = decompressed(bytes);
    let decode = |delivery| {
        let mut decoder = dialect.decoder(delivery, Keep::Text);
        decoder.feed(&body, &mut |_| ());
        decoder.finish(&mut |_| ());
        decoder
    };
    let streamed = decode(Delivery::Streamed);
    let mut decoded = match streamed.state().failure {
        Some(Undecodable::NotStreamed) => {
            let decoded = Decoded::of(decode(Delivery::Whole).as_ref());
            let reason =
                decoded.reason.or_else(|| Some("as one whole answer, where no stream is asked for".to_owned()));
            Decoded { reason, ..decoded }
        }
        _ => Decoded::of(streamed.as_ref()),
    };
    // A file may hold what was sent compressed; a request never asks for that.
    if let Some(encoding) = compressed(bytes) {
        let failure = Some(Undecodable::Compressed { encoding });
        (decoded.outcome, decoded.reason) =
            conclude(&StreamState { failure, ..StreamState::default() }, None, BodyEnd::Clean);
    }
    decoded
}

/// The body without its compression. One that breaks off is decoded as far as it goes; one that is none stays as it is.
fn decompressed(bytes: &[u8]) -> Cow<'_, [u8]> {
    let reader: Box<dyn Read + '_> = match compressed(bytes) {
        Some("gzip") => Box::new(MultiGzDecoder::new(bytes)),
        Some("deflate") => Box::new(ZlibDecoder::new(bytes)),
        _ => return Cow::Borrowed(bytes),
    };
    let mut body = Vec::new();
    match reader.take(LONGEST).read_to_end(&mut body) {
        Err(_) if body.is_empty() => Cow::Borrowed(bytes),
        _ => Cow::Owned(body),
    }
}

impl Decoded {
    /// What a decoder has seen so far, which keeps the text.
    #[must_use]
    pub fn of(decoder: &dyn Decoder) -> Self {
        let state = decoder.state();
        let nothing = Transcript::default();
        let transcript = decoder.transcript().unwrap_or(&nothing);
        let choices = &transcript.choices;
        let (text_chars, text_sha256) = measure(choices.iter().map(|choice| choice.text.as_str()));
        let (reasoning_chars, reasoning_sha256) = measure(choices.iter().map(|choice| choice.reasoning.as_str()));
        let several = choices.iter().filter(|_| choices.len() > 1).map(|choice| {
            let (text_chars, text_sha256) = measure([choice.text.as_str()]);
            let finish_reason = choice.finish_reason.clone();
            DecodedChoice { index: choice.index, text_chars, text_sha256, finish_reason }
        });
        let some = |count: u64| (count > 0).then_some(count);
        let (outcome, reason) = conclude(state, None, BodyEnd::Clean);
        let reason = reason.or_else(|| state.unread_usage().map(str::to_owned));
        Self {
            events: state.events,
            first_token_event: transcript.first_token_event,
            first_text_event: transcript.first_text_event,
            content_events: state.content_events,
            events_by_kind: KindCounts {
                text: transcript.text_events,
                reasoning: transcript.reasoning_events,
                tool: transcript.tool_events,
                refusal: transcript.refusal_events,
            },
            text_chars,
            text_sha256,
            reasoning_chars,
            reasoning_sha256,
            usage: state.usage,
            usage_reported: transcript.usage_reported.clone(),
            finish_reason: state.finish_reason.clone(),
            ended: state.ended,
            terminator: transcript.terminator.clone(),
            error: error(state),
            choices: several.collect(),
            comment_lines: some(transcript.comment_lines),
            first_opaque_event: transcript.first_opaque_event,
            unparseable_events: some(transcript.unparseable_events),
            pending_at_eof: transcript.pending_at_eof.then_some(true),
            outcome,
            reason,
        }
    }
}

/// The server's own error, else what could not be decoded.
fn error(state: &StreamState) -> Option<DecodedError> {
    if let Some(error) = &state.error {
        let message = Some(error.message.clone()).filter(|message| !message.is_empty());
        return Some(DecodedError { kind: error.kind.clone(), message });
    }
    let kind = match state.failure.as_ref()? {
        // The page's words are not the server's.
        Undecodable::Html { .. } => {
            return Some(DecodedError { kind: Some("gate:not-a-stream".into()), message: None });
        }
        Undecodable::Compressed { .. } => "gate:compressed",
        Undecodable::Foreign { .. } => "gate:not-a-stream",
        Undecodable::Malformed { .. } => "gate:malformed",
        Undecodable::Damaged { .. } => "gate:damaged",
        Undecodable::TooLong => "gate:too-long",
        Undecodable::Cut => "gate:cut",
        Undecodable::Streamed | Undecodable::NotStreamed => "gate:not-streamed",
    };
    let (_, message) = conclude(state, None, BodyEnd::Clean);
    Some(DecodedError { kind: Some(kind.to_owned()), message })
}

/// The length and the hash of a text in parts.
fn measure<'a>(parts: impl IntoIterator<Item = &'a str>) -> (u64, String) {
    let (mut chars, mut hash) = (0, Sha256::new());
    for part in parts {
        chars += part.chars().count() as u64;
        hash.update(part);
    }
    let hex = hash.finalize().iter().fold(String::new(), |mut hex, byte| {
        let _ = write!(hex, "{byte:02x}");
        hex
    });
    (chars, hex)
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use flate2::Compression;
    use flate2::write::{GzEncoder, ZlibEncoder};

    use super::*;
    use crate::by_name;

    const CHAT: &[u8] = b"data: {\"choices\":[{\"delta\":{\"content\":\"a\"},\"finish_reason\":\"stop\"}]}\n\n";

    fn decoded(body: &[u8]) -> Decoded {
        decode_saved(by_name("openai-chat").unwrap().as_ref(), body)
    }

    #[test]
    fn a_compressed_body_is_what_it_holds() {
        let mut gzip = GzEncoder::new(Vec::new(), Compression::default());
        gzip.write_all(CHAT).unwrap();
        let mut zlib = ZlibEncoder::new(Vec::new(), Compression::default());
        zlib.write_all(CHAT).unwrap();
        let (gzip, zlib) = (gzip.finish().unwrap(), zlib.finish().unwrap());
        for packed in [&gzip, &zlib] {
            let Decoded { outcome, reason, .. } = decoded(CHAT);
            let seen = decoded(packed);
            assert_eq!(seen.outcome, Outcome::Decode, "a request asks for no compression");
            assert_eq!(Decoded { outcome, reason, ..seen }, decoded(CHAT));
        }
        assert_eq!(decoded(&[&gzip[..], &gzip[..]].concat()).events, 2);
        assert!(decoded(&gzip[..12]).error.is_some(), "nothing of it can be read");
    }

    #[test]
    fn a_whole_answer_is_decoded_as_one() {
        let whole = decoded(b"{\"choices\":[{\"message\":{\"content\":\"ab\"}}],\"usage\":{\"prompt_tokens\":3}}");
        assert_eq!((whole.events, whole.content_events, whole.text_chars), (1, 1, 2));
        assert_eq!((whole.ended, whole.error, whole.outcome), (true, None, Outcome::Ok));
        assert!(whole.reason.unwrap().contains("one whole answer"));
    }

    #[test]
    fn the_outcome_is_told_to_people_alone() {
        for (body, outcome, word) in [
            (&b"data: {\"type\":\"ping\"}\n\ndata: [DONE]\n\n"[..], Outcome::Decode, "is `target.api` right?"),
            (&CHAT[..30], Outcome::Truncated, "broke off"),
            (b"\x00\x01", Outcome::Decode, "not of this dialect"),
        ] {
            let seen = decoded(body);
            assert!(seen.outcome == outcome && seen.reason.as_ref().unwrap().contains(word), "{seen:?}");
            let json = serde_json::to_value(&seen).unwrap();
            assert!(json.get("outcome").is_none() && json.get("reason").is_none(), "{json}");
        }
        assert_eq!((decoded(CHAT).outcome, decoded(CHAT).reason), (Outcome::Ok, None));
    }

    #[test]
    fn usage_that_is_no_numbers_is_told_from_none() {
        let with = |usage: &str| {
            let report = format!("data: {{\"choices\":[],\"usage\":{usage}}}\n\n");
            let seen = decoded(&[CHAT, report.as_bytes()].concat());
            assert_eq!(seen.outcome, Outcome::Ok);
            seen.reason
        };
        let unread = Some("its usage has no count that is a whole number, so its tokens are not counted".to_owned());
        for usage in [
            r#"{"prompt_tokens":-3,"completion_tokens":-1}"#,
            r#"{"prompt_tokens":"3","completion_tokens":"1"}"#,
            r#"{"prompt_tokens":99999999999999999999999,"completion_tokens":0.5}"#,
        ] {
            assert_eq!(with(usage), unread, "{usage}");
        }
        assert_eq!(with("null"), None);
        assert_eq!(with(r#"{"prompt_tokens":3,"completion_tokens":1}"#), None);
    }

    #[test]
    fn what_cannot_be_decoded_has_a_type_of_gates_own() {
        for (body, kind) in [
            (&b"<html>"[..], "gate:not-a-stream"),
            (b"upstream is gone", "gate:not-a-stream"),
            (b"data: x\n\n", "gate:malformed"),
            (b"\x28\xb5\x2f\xfd", "gate:compressed"),
        ] {
            assert_eq!(decoded(body).error.and_then(|error| error.kind).as_deref(), Some(kind));
        }
        assert_eq!(decoded(b"").error, None);
        assert_eq!(decoded(&CHAT[..30]).error, None, "a stream that was cut is no error");
    }
}
