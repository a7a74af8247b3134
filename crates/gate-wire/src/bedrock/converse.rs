//! Bedrock's `converse-stream`: one shape for every model.

mod event;

use gate_model::{Delivery, Message, Role, Secret};
use serde_json::{Map, Value, json};
use url::Url;

use super::{EVENT_STREAM, models_path, stem};
use crate::framing::EventStream;
use crate::reader::decoder;
use crate::request::{Ends, parted, present};
use crate::{Ask, Decoder, Dialect, Keep, WireRequest, image};

const ENDS: Ends = Ends { prefix: "", streamed: "/converse-stream", whole: "/converse", stream_type: EVENT_STREAM };

/// The dialect. Nothing in it asks for an exact length: `OutputLength::Exact` sends what `AtMost` sends.
pub(crate) struct BedrockConverse;

impl Dialect for BedrockConverse {
    fn request(&self, base: &Url, key: Option<&Secret>, ask: &Ask<'_>) -> WireRequest {
        ENDS.request(base, &stem(ask), key, fields(ask), ask)
    }

    fn models_path(&self, base: &Url) -> String {
        models_path(&ENDS, base)
    }

    fn decoder(&self, delivery: Delivery, keep: Keep) -> Box<dyn Decoder> {
        decoder::<EventStream>(event::Events, event::Answer, delivery, keep)
    }
}

/// The body's fields. A system prompt is one of them, not a message; the path has the model.
fn fields(ask: &Ask<'_>) -> Map<String, Value> {
    let text = |message: &Message| json!({"text": message.text});
    let (system, rest) = parted(ask.prompt);
    let turns = rest.into_iter().map(|message| {
        let role = if message.role == Role::Assistant { "assistant" } else { "user" };
        json!({"role": role, "content": image::parts(message, image::converse_part, |text| json!({"text": text}))})
    });
    present([
        ("system", (!system.is_empty()).then(|| system.into_iter().map(text).collect())),
        ("messages", Some(turns.collect())),
        ("inferenceConfig", Some(json!({"maxTokens": ask.max_output_tokens}))),
    ])
}
