//! OpenAI chat completions, with the variants of the servers that speak it.

mod choice;

use gate_model::{Delivery, MaxTokensField, Secret};
use url::Url;

use crate::framing::Sse;
use crate::openai::{Openai, auth, fields, models_path, route_on};
use crate::reader::decoder;
use crate::request::{Draft, EVENT_STREAM, Route, chat};
use crate::{Ask, Decoder, Dialect, Keep, WireRequest};

const ROUTE: Route<'_> = Route { prefix: "/v1", tail: "/chat/completions", models: "/models" };

/// The dialect.
pub(crate) struct OpenaiChat;

impl Dialect for OpenaiChat {
    fn request(&self, base: &Url, key: Option<&Secret>, ask: &Ask<'_>) -> WireRequest {
        let fields = fields(ask, ("messages", chat(&ask.prompt.messages)), ask.max_tokens_field.name());
        let route = route_on(base, ROUTE);
        Draft { route: &route, stream_type: EVENT_STREAM, headers: auth(base, key), fields }.finish(base, ask)
    }

    fn models_path(&self, base: &Url) -> String {
        models_path(base, ROUTE)
    }

    fn decoder(&self, delivery: Delivery, keep: Keep) -> Box<dyn Decoder> {
        let (chunks, whole) = (Openai::<choice::Streamed>::default(), Openai::<choice::Whole>::default());
        decoder::<Sse>(chunks, whole, delivery, keep)
    }

    /// OpenAI and Azure refuse `max_tokens` with "use 'max_completion_tokens' instead". A message that only names the
    /// field, such as one that says the value is too large, wants nothing else.
    fn wants_field(&self, status: u16, body: &[u8]) -> Option<MaxTokensField> {
        let wanted = MaxTokensField::MaxCompletionTokens;
        let message = self.error_message(body).filter(|_| status == 400)?.to_ascii_lowercase();
        let refuses = ["unsupported", "not supported", "instead"].iter().any(|word| message.contains(word));
        (refuses && message.contains(wanted.name())).then_some(wanted)
    }
}

#[cfg(test)]
mod tests {
    use gate_model::{Message, Outcome, OutputLength, Prompt, Role, Usage};
    use serde_json::{Value, json};

    use super::*;
    use crate::{BodyEnd, EventKind, StreamState, conclude};

    fn request(url: &str, extra_body: Value) -> WireRequest {
        let messages = vec![Message::new(Role::System, "be brief"), Message::new(Role::User, "hi")];
        let Value::Object(extra_body) = extra_body else { panic!("an object") };
        let prompt = Prompt { messages };
        let ask = Ask {
            model: Some("m"),
            prompt: &prompt,
            max_output_tokens: 20,
            max_tokens_field: MaxTokensField::MaxTokens,
            output: OutputLength::AtMost,
            delivery: Delivery::Streamed,
            extra_body: &extra_body,
        };
        OpenaiChat.request(&Url::parse(url).unwrap(), Some(&Secret::new("sk-1")), &ask)
    }

    #[test]
    fn the_route_is_joined() {
        for (url, path, models) in [
            ("http://h", "/v1/chat/completions", "/v1/models"),
            ("http://h/", "/v1/chat/completions", "/v1/models"),
            ("http://h/v1", "/v1/chat/completions", "/v1/models"),
            ("http://h/v1/", "/v1/chat/completions", "/v1/models"),
            ("http://h/api/paas/v4", "/api/paas/v4/chat/completions", "/api/paas/v4/models"),
            ("http://h/v1/chat/completions", "/v1/chat/completions", "/v1/models"),
            ("http://h/chat/completions", "/chat/completions", "/models"),
            ("http://h/d/gpt?api-version=1", "/d/gpt/chat/completions?api-version=1", "/d/gpt/models?api-version=1"),
        ] {
            assert_eq!(request(url, json!({})).path, path, "{url}");
            assert_eq!(OpenaiChat.models_path(&Url::parse(url).unwrap()), models, "{url}");
        }
    }

    #[test]
    fn the_body_asks_for_a_stream_with_usage() {
        let body = String::from_utf8(request("http://h", json!({})).body).unwrap();
        assert_eq!(
            body,
            r#"{"model":"m","messages":[{"role":"system","content":"be brief"},{"role":"user","content":"hi"}],"#
                .to_owned()
                + r#""stream":true,"stream_options":{"include_usage":true},"max_tokens":20}"#
        );
    }

    #[test]
    fn extra_fields_win() {
        let extra = json!({"stream_options": {"continuous_usage_stats": true}, "max_tokens": 5, "x": {"y": [1]}});
        let body: Value = serde_json::from_slice(&request("http://h", extra).body).unwrap();
        assert_eq!(body["stream_options"], json!({"include_usage": true, "continuous_usage_stats": true}));
        assert_eq!((&body["max_tokens"], &body["x"]), (&json!(5), &json!({"y": [1]})));
    }

    #[test]
    fn the_key_is_a_bearer_token_in_custody() {
        let request = request("http://h", json!({}));
        let header = |wanted| request.headers.iter().find(|(name, _)| *name == wanted).map(|(_, value)| value.expose());
        assert_eq!(header("authorization"), Some("Bearer sk-1"));
        assert_eq!(header("accept-encoding"), Some("identity"));
        assert!(!format!("{request:?}").contains("sk-1"));
    }

    fn decode(body: &str) -> (Vec<EventKind>, StreamState) {
        let (mut decoder, mut kinds) = (OpenaiChat.decoder(Delivery::Streamed, Keep::Nothing), Vec::new());
        decoder.feed(body.as_bytes(), &mut |event| kinds.push(event.kind));
        decoder.finish(&mut |event| kinds.push(event.kind));
        (kinds, decoder.state().clone())
    }

    /// The kind of one event with this delta.
    fn delta(delta: &str) -> EventKind {
        decode(&format!("data: {{\"choices\":[{{\"index\":0,\"delta\":{delta}}}]}}\n\n")).0[0]
    }

    fn outcome(body: &str, end: BodyEnd) -> (Outcome, String) {
        let (outcome, message) = conclude(&decode(body).1, Some("text/plain"), end);
        (outcome, message.unwrap_or_default())
    }

    const TOKEN: &str = "data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n\n";
    const FINISH: &str = "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n";
    const DONE: &str = "data: [DONE]\n\n";

    #[test]
    fn a_token_is_what_the_model_generated() {
        use EventKind::{Bare, Reasoning, Text, ToolCall};
        for (json, kind) in [
            (r#"{"role":"assistant"}"#, Bare),
            (r#"{"role":"assistant","content":"","refusal":null,"tool_calls":null,"reasoning":""}"#, Bare),
            (r#"{"content":null}"#, Bare),
            (r#"{"content":[]}"#, Bare),
            ("null", Bare),
            (r#"{"content":" "}"#, Text),
            (r#"{"content":"\ud83d"}"#, Text),
            (r#"{"refusal":"no"}"#, Text),
            (r#"{"content":[{"type":"text","text":"a"}]}"#, Text),
            (r#"{"content":[{"type":"thinking","thinking":[{"type":"text","text":"a"}]}]}"#, Reasoning),
            (r#"{"content":[{"type":"reference","reference_ids":[1]}]}"#, Bare),
            (r#"{"content":"","reasoning_content":"a"}"#, Reasoning),
            (r#"{"reasoning":"a","reasoning_details":[{"text":"a"}]}"#, Reasoning),
            (r#"{"reasoning_details":[{"summary":"a"}]}"#, Reasoning),
            (r#"{"reasoning_details":[{"type":"reasoning.encrypted","data":"xx"}]}"#, Bare),
            (r#"{"content":"a","reasoning":"b"}"#, Text),
            (r#"{"tool_calls":[{"index":0,"id":"c","function":{"name":"f","arguments":""}}]}"#, ToolCall),
            (r#"{"tool_calls":[{"index":0,"function":{"arguments":""}}]}"#, Bare),
            (r#"{"tool_calls":[{"index":0,"custom":{"name":"","input":"x"}}]}"#, ToolCall),
            (r#"{"function_call":{"arguments":"{"}}"#, ToolCall),
        ] {
            assert_eq!(delta(json), kind, "{json}");
        }
    }

    #[test]
    fn usage_is_the_last_report_normalised() {
        let usage = |json: &str| decode(&format!("data: {{\"choices\":[],\"usage\":{json}}}\n\n{DONE}")).1.usage;
        let counts = |input, output, cached, reasoning| Some(Usage { input, output, cached, reasoning });
        let xai = r#"{"prompt_tokens":12,"completion_tokens":1,"total_tokens":303,"completion_tokens_details":{"reasoning_tokens":290}}"#;
        assert_eq!(usage(xai), counts(Some(12), Some(291), None, Some(290)));
        let hit = r#"{"prompt_tokens":9,"completion_tokens":2.0,"prompt_cache_hit_tokens":8,"total_tokens":"11"}"#;
        assert_eq!(usage(hit), counts(Some(9), Some(2), Some(8), None));
        assert_eq!(usage(r#"{"prompt_tokens":-1,"completion_tokens":{}}"#), None);
        assert_eq!(usage("null"), None);

        let twice = r#"data: {"choices":[{"usage":{"completion_tokens":1}}],"usage":null}

data: {"choices":[],"x_groq":{"id":"r","usage":{"completion_tokens":2}}}

data: {"choices":[],"usage":{}}

"#;
        assert_eq!(decode(twice).1.usage, counts(None, Some(2), None, None));
    }

    #[test]
    fn the_finish_reason_is_the_first_choices_and_stays() {
        let body = r#"data: {"choices":[{"index":1,"finish_reason":"length"}]}

data: {"choices":[{"index":0,"finish_reason":"stop"},{"index":2,"finish_reason":"error"}]}

data: {"choices":[{"index":0,"finish_reason":null}]}

data: {"choices":[{"index":1,"finish_reason":"length"}]}

"#;
        assert_eq!(decode(body).1.finish_reason.as_deref(), Some("stop"));
    }

    #[test]
    fn every_ending_has_its_outcome() {
        let json = r#"{"object":"chat.completion","choices":[{"message":{"content":"a"}}]}"#;
        let anthropic = "event: ping\ndata: {\"type\":\"ping\"}\n\n";
        let pretty = "{\n  \"error\": {\n    \"code\": 503,\n    \"message\": \"busy\"\n  }\n}\n";
        for (body, clean, reset) in [
            (format!("{TOKEN}{FINISH}{DONE}"), Outcome::Ok, Outcome::Ok),
            (format!("{TOKEN}{DONE}"), Outcome::Ok, Outcome::Ok),
            (format!("{TOKEN}{FINISH}"), Outcome::Ok, Outcome::Reset),
            (TOKEN.to_owned(), Outcome::Truncated, Outcome::Reset),
            (format!("{TOKEN}data: {{\"choi"), Outcome::Truncated, Outcome::Reset),
            (String::new(), Outcome::Truncated, Outcome::Reset),
            (format!("{FINISH}{DONE}"), Outcome::Empty, Outcome::Empty),
            (format!("{TOKEN}{{\"error\":\"late\"}}\n\n{DONE}"), Outcome::StreamError, Outcome::StreamError),
            (format!("{TOKEN}{pretty}"), Outcome::StreamError, Outcome::StreamError),
            ("event: error\ndata: out of memory\n\n".to_owned(), Outcome::StreamError, Outcome::StreamError),
            (
                "data: {\"object\":\"error\",\"message\":\"m\"}\n\n".to_owned(),
                Outcome::StreamError,
                Outcome::StreamError,
            ),
            (format!("{TOKEN}data: {{\"choi\n\n{FINISH}{DONE}"), Outcome::Decode, Outcome::Decode),
            (format!("{TOKEN}{DONE}data: x\n\n"), Outcome::Ok, Outcome::Ok),
            (format!("{anthropic}{anthropic}"), Outcome::Decode, Outcome::Reset),
            (format!("{anthropic}{TOKEN}{DONE}"), Outcome::Ok, Outcome::Ok),
            ("Internal Server Error".to_owned(), Outcome::Decode, Outcome::Decode),
            ("{\"detail\":\"Not Found\"}".to_owned(), Outcome::Decode, Outcome::Decode),
            (json.to_owned(), Outcome::NotStreamed, Outcome::NotStreamed),
        ] {
            assert_eq!(outcome(&body, BodyEnd::Clean).0, clean, "{body}");
            assert_eq!(outcome(&body, BodyEnd::Reset).0, reset, "{body}");
        }
    }

    #[test]
    fn messages_say_what_came() {
        for (body, message) in [
            (
                "data: {\"error\":{\"type\":\"server_error\",\"message\":\"m\"}}\n\n",
                "the server reported an error in its answer: server_error: m",
            ),
            (
                "data: nope\n\n",
                "event 1 of the stream is not JSON: expected ident at line 1 column 2: `nope` (content type `text/plain`)",
            ),
            ("{\"detail\":\"Not Found\"}", "the answer is not of this dialect: Not Found (content type `text/plain`)"),
            (
                TOKEN,
                "the stream broke off after 1 event with content, with neither a terminal event nor a finish reason",
            ),
        ] {
            assert_eq!(outcome(body, BodyEnd::Clean).1, message);
        }
    }

    #[test]
    fn a_huge_event_is_one_token() {
        let body = TOKEN.replace("\"a\"", &format!("\"{}\"", "A".repeat(1 << 20))) + DONE;
        assert_eq!(decode(&body).0, [EventKind::Text, EventKind::End]);
    }
}
