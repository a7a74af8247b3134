//! OpenAI responses.

mod event;

use gate_model::{Delivery, OutputLength, Role, Secret};
use serde_json::{Map, Value, json};
use url::Url;

use crate::framing::Sse;
use crate::openai::{auth, models_path, route_on};
use crate::reader::decoder;
use crate::request::{Draft, EVENT_STREAM, Route, chat_with, present};
use crate::{Ask, Decoder, Dialect, Keep, WireRequest, image};

const ROUTE: Route<'_> = Route { prefix: "/v1", tail: "/responses", models: "/models" };

/// The dialect. Usage needs no asking for.
pub(crate) struct OpenaiResponses;

impl Dialect for OpenaiResponses {
    fn request(&self, base: &Url, key: Option<&Secret>, ask: &Ask<'_>) -> WireRequest {
        let route = route_on(base, ROUTE);
        Draft { route: &route, stream_type: EVENT_STREAM, headers: auth(base, key), fields: fields(ask) }
            .finish(base, ask)
    }

    fn models_path(&self, base: &Url) -> String {
        models_path(base, ROUTE)
    }

    fn decoder(&self, delivery: Delivery, keep: Keep) -> Box<dyn Decoder> {
        decoder::<Sse>(event::Events, event::Answer, delivery, keep)
    }
}

/// The body's fields. One message of the user's is its text: some servers take nothing else. `ignore_eos` and
/// `min_tokens` are what vLLM, SGLang and llama.cpp know.
fn fields(ask: &Ask<'_>) -> Map<String, Value> {
    let input = match ask.prompt.messages.as_slice() {
        [only] if only.role == Role::User && only.images.is_empty() => only.text.as_str().into(),
        messages => chat_with(messages, image::responses_part, |text| json!({"type": "input_text", "text": text})),
    };
    let exact = ask.output == OutputLength::Exact;
    present([
        ("model", ask.model.map(Value::from)),
        ("input", Some(input)),
        ("stream", (ask.delivery == Delivery::Streamed).then_some(true.into())),
        ("max_output_tokens", Some(ask.max_output_tokens.into())),
        ("ignore_eos", exact.then_some(true.into())),
        ("min_tokens", exact.then_some(ask.max_output_tokens.into())),
    ])
}
