//! A dialect that a spec describes: a template of the request, and JSON pointers into each event.

use gate_model::{Custom, CustomFraming, Delivery, Secret, Usage};
use serde::Deserialize;
use serde_json::{Map, Value};
use url::Url;

use crate::framing::{Ndjson, Sse};
use crate::message::is_error;
use crate::piece::Piece;
use crate::progress::{Means, Progress};
use crate::reader::{Schema, decoder};
use crate::request::{Draft, EVENT_STREAM, Route, bearer, chat, joined};
use crate::shape::{Count, Found};
use crate::{Ask, Decoder, Dialect, Keep, WireRequest};

/// The dialect.
pub(crate) struct Described(Custom);

impl Described {
    /// The dialect of a description; without one, nothing in an answer counts.
    pub(crate) fn new(custom: Option<&Custom>) -> Self {
        Self(custom.cloned().unwrap_or_else(|| Custom {
            path: String::new(),
            body: Map::new(),
            text: "/".to_owned(),
            input_tokens: None,
            output_tokens: None,
            end: None,
            framing: CustomFraming::Sse,
        }))
    }
}

impl Dialect for Described {
    fn request(&self, base: &Url, key: Option<&Secret>, ask: &Ask<'_>) -> WireRequest {
        let (tail, query) =
            self.0.path.split_once('?').map_or((self.0.path.as_str(), None), |(tail, query)| (tail, Some(query)));
        let mut base = base.clone();
        if let Some(query) = query {
            let joined = base.query().map_or_else(|| query.to_owned(), |own| format!("{query}&{own}"));
            base.set_query(Some(&joined));
        }
        let route = Route { prefix: "", tail, models: "" };
        let stream_type = match self.0.framing {
            CustomFraming::Sse => EVENT_STREAM,
            CustomFraming::Ndjson => "application/x-ndjson",
        };
        let fields = self.0.body.iter().map(|(name, value)| (name.clone(), filled(value, ask))).collect();
        Draft { route: &route, stream_type, headers: bearer(key), fields }.finish(&base, ask)
    }

    /// A description has no list of models; most servers have this one.
    fn models_path(&self, _: &Url) -> String {
        "/v1/models".to_owned()
    }

    fn decoder(&self, delivery: Delivery, keep: Keep) -> Box<dyn Decoder> {
        let pointers = Pointers { custom: self.0.clone(), has_text: false };
        match self.0.framing {
            CustomFraming::Sse => decoder::<Sse>(pointers.clone(), pointers, delivery, keep),
            CustomFraming::Ndjson => decoder::<Ndjson>(pointers.clone(), pointers, delivery, keep),
        }
    }
}

/// A value of the template with what is asked for in its place.
fn filled(template: &Value, ask: &Ask<'_>) -> Value {
    match template {
        Value::String(text) if text == "{{max_tokens}}" => ask.max_output_tokens.into(),
        Value::String(text) if text == "{{messages}}" => chat(&ask.prompt.messages),
        Value::String(text) => filled_text(text, ask).into(),
        Value::Array(items) => items.iter().map(|item| filled(item, ask)).collect(),
        Value::Object(fields) => fields.iter().map(|(name, value)| (name.clone(), filled(value, ask))).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) => template.clone(),
    }
}

/// A text with the prompt and the model in their places; what those hold is not a template.
fn filled_text(text: &str, ask: &Ask<'_>) -> String {
    let mut filled = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("{{") {
        filled.push_str(before);
        if let Some(after) = after.strip_prefix("prompt}}") {
            filled.push_str(&joined(&ask.prompt.messages));
            rest = after;
        } else if let Some(after) = after.strip_prefix("model}}") {
            filled.push_str(ask.model.unwrap_or_default());
            rest = after;
        } else {
            filled.push_str("{{");
            rest = after;
        }
    }
    filled + rest
}

/// Reads events by the description's pointers.
#[derive(Clone)]
struct Pointers {
    custom: Custom,
    /// Whether an event had a text where it is looked for.
    has_text: bool,
}

impl Schema for Pointers {
    type Event<'a, P: Piece> = Value;

    fn take<P: Piece>(&mut self, event: Value, progress: &mut Progress<P>) -> Option<Means> {
        let Self { custom, has_text } = self;
        let at = |pointer: &Option<String>| event.pointer(pointer.as_deref()?);
        let text = event.pointer(&custom.text);
        if let Some(text) = text.and_then(Value::as_str) {
            progress.say(0, Found { text: P::of(text.as_bytes()), ..Found::default() });
            *has_text = true;
            progress.state.no_text_at = None;
        } else if !*has_text && progress.state.no_text_at.is_none() {
            progress.state.no_text_at = Some(custom.text.clone());
        }
        let (input, output) = (at(&custom.input_tokens), at(&custom.output_tokens));
        let told = |value: Option<&Value>, before: Option<u64>| value.and_then(count).or(before);
        let before = progress.state.usage.unwrap_or_default();
        let usage = Usage { input: told(input, before.input), output: told(output, before.output), ..Usage::default() };
        if usage != Usage::default() {
            progress.state.usage = Some(usage);
        }
        let end = at(&custom.end);
        if end.is_some_and(is_end) {
            progress.finish(end.and_then(Value::as_str).map(str::to_owned));
            return Some(Means::End("end"));
        }
        if is_error(&event) {
            return Some(Means::Error);
        }
        (text.is_some() || input.is_some() || output.is_some() || end.is_some()).then_some(Means::More)
    }
}

/// Whether a value says that the event is the last: it is neither null, false nor empty.
fn is_end(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::Bool(is_end) => *is_end,
        Value::Number(_) => true,
        Value::String(text) => !text.is_empty(),
        Value::Array(items) => !items.is_empty(),
        Value::Object(fields) => !fields.is_empty(),
    }
}

fn count(value: &Value) -> Option<u64> {
    Count::deserialize(value).ok()?.0
}

#[cfg(test)]
mod tests {
    use gate_model::Outcome;

    use super::*;
    use crate::{BodyEnd, Decoded, EventKind, conclude};

    fn described(framing: CustomFraming, end: Option<&str>) -> Described {
        let pointer = |pointer: &str| Some(pointer.to_owned());
        Described(Custom {
            path: "/generate".to_owned(),
            body: Map::new(),
            text: "/choices/0/text".to_owned(),
            input_tokens: pointer("/usage/in"),
            output_tokens: pointer("/usage/out"),
            end: end.map(str::to_owned),
            framing,
        })
    }

    fn decode(dialect: &Described, delivery: Delivery, body: &str) -> (Vec<EventKind>, Decoded, Outcome) {
        let (mut decoder, mut kinds) = (dialect.decoder(delivery, Keep::Text), Vec::new());
        decoder.feed(body.as_bytes(), &mut |event| kinds.push(event.kind));
        decoder.finish(&mut |event| kinds.push(event.kind));
        let outcome = conclude(decoder.state(), None, BodyEnd::Clean).0;
        (kinds, Decoded::of(decoder.as_ref()), outcome)
    }

    const LINES: &str = "{\"choices\":[{\"text\":\"a\"}]}\n{\"ping\":1}\n{\"choices\":[{\"text\":\"\"}],\"usage\":{\"in\":3}}\n\
                         {\"usage\":{\"out\":2},\"done\":\"length\"}\n";

    #[test]
    fn pointers_say_what_counts() {
        use EventKind::{Bare, End, Text};
        let lines = described(CustomFraming::Ndjson, Some("/done"));
        let (kinds, decoded, outcome) = decode(&lines, Delivery::Streamed, LINES);
        assert_eq!((kinds, outcome), (vec![Text, Bare, Bare, End], Outcome::Ok));
        let usage = Usage { input: Some(3), output: Some(2), ..Usage::default() };
        assert_eq!((decoded.usage, decoded.text_chars), (Some(usage), 1));
        assert_eq!((decoded.finish_reason.as_deref(), decoded.terminator.as_deref()), (Some("length"), Some("end")));

        let whole = "{\"choices\":[{\"text\":\"a\"}],\"usage\":{\"out\":1}}";
        assert_eq!(decode(&lines, Delivery::Whole, whole).2, Outcome::Ok);
    }

    #[test]
    fn done_ends_a_stream_without_a_pointer() {
        let events = described(CustomFraming::Sse, None);
        let body = "data: {\"choices\":[{\"text\":\"a\"}]}\n\n";
        assert_eq!(decode(&events, Delivery::Streamed, body).2, Outcome::Truncated);
        assert_eq!(decode(&events, Delivery::Streamed, &format!("{body}data: [DONE]\n\n")).2, Outcome::Ok);
        let error = format!("{body}data: {{\"error\":\"gone\"}}\n\n");
        assert_eq!(decode(&events, Delivery::Streamed, &error).2, Outcome::StreamError);
    }

    #[test]
    fn a_text_that_is_nowhere_is_told() {
        let sentence = |delivery, body: &str| {
            let mut decoder = described(CustomFraming::Ndjson, Some("/done")).decoder(delivery, Keep::Nothing);
            decoder.feed(body.as_bytes(), &mut |_| ());
            decoder.finish(&mut |_| ());
            conclude(decoder.state(), None, BodyEnd::Clean)
        };
        let hint = "no event had text at `target.custom.text` (/choices/0/text)";
        for (body, outcome, message) in [
            (
                "{\"t\":\"a\",\"usage\":{\"out\":2}}\n{\"done\":\"stop\"}\n",
                Outcome::Empty,
                format!("the answer ended without a token (finish reason: stop): {hint}"),
            ),
            (
                "{\"t\":\"a\"}\n{\"done\":true}\n",
                Outcome::Decode,
                format!("1 of 2 events are not of this dialect: {hint}"),
            ),
            (
                "{\"choices\":[{\"text\":1}]}\n{\"done\":false}\n",
                Outcome::Truncated,
                format!(
                    "the stream broke off after 0 events with content, with neither a terminal event nor a finish reason: {hint}"
                ),
            ),
            // Where text was found, its place is not what is wrong.
            (
                "{\"choices\":[{\"text\":\"\"}]}\n{\"done\":\"stop\"}\n",
                Outcome::Empty,
                "the answer ended without a token (finish reason: stop)".to_owned(),
            ),
        ] {
            assert_eq!(sentence(Delivery::Streamed, body), (outcome, Some(message)), "{body}");
        }
        let (outcome, message) = sentence(Delivery::Whole, "{\"t\":\"a\"}");
        assert!(outcome == Outcome::Decode && message.as_ref().is_some_and(|text| text.ends_with(hint)), "{message:?}");
    }

    #[test]
    fn an_end_is_anything_but_nothing() {
        let lines = described(CustomFraming::Ndjson, Some("/done"));
        for (end, is_end) in [
            ("null", false),
            ("false", false),
            ("\"\"", false),
            ("[]", false),
            ("true", true),
            ("0", true),
            ("\"stop\"", true),
            ("{\"x\":1}", true),
        ] {
            let body = format!("{{\"choices\":[{{\"text\":\"a\"}}],\"done\":{end}}}\n");
            assert_eq!(decode(&lines, Delivery::Streamed, &body).1.ended, is_end, "{end}");
        }
    }

    #[test]
    fn without_a_description_nothing_counts() {
        let body = "data: {\"choices\":[{\"text\":\"a\"}]}\n\ndata: [DONE]\n\n";
        assert_eq!(decode(&Described::new(None), Delivery::Streamed, body).2, Outcome::Decode);
    }
}
