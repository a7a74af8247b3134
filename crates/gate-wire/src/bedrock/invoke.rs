//! Bedrock's `invoke-with-response-stream`, with Anthropic's messages inside.

use std::borrow::Cow;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use gate_model::{Delivery, Secret};
use url::Url;

use super::{EVENT_STREAM, models_path, stem};
use crate::anthropic::{self, Answer, Events};
use crate::framing::{EventStream, Frame, Framing};
use crate::reader::decoder;
use crate::request::Ends;
use crate::{Ask, Decoder, Dialect, Keep, WireRequest};

const ENDS: Ends =
    Ends { prefix: "", streamed: "/invoke-with-response-stream", whole: "/invoke", stream_type: EVENT_STREAM };

/// The version of Anthropic's messages that Bedrock wants named.
const VERSION: &str = "bedrock-2023-05-31";

/// The dialect: Anthropic's, without its headers, and with the model in the path.
pub(crate) struct BedrockInvoke;

impl Dialect for BedrockInvoke {
    fn request(&self, base: &Url, key: Option<&Secret>, ask: &Ask<'_>) -> WireRequest {
        let mut fields = anthropic::fields(ask);
        fields.shift_remove("model");
        fields.shift_remove("stream");
        fields.shift_insert(0, "anthropic_version".to_owned(), VERSION.into());
        ENDS.request(base, &stem(ask), key, fields, ask)
    }

    fn models_path(&self, base: &Url) -> String {
        models_path(&ENDS, base)
    }

    fn decoder(&self, delivery: Delivery, keep: Keep) -> Box<dyn Decoder> {
        decoder::<Chunks>(Events::default(), Answer, delivery, keep)
    }
}

/// Cuts a body into the events that its chunks hold as base64.
#[derive(Default)]
struct Chunks(EventStream);

impl Framing for Chunks {
    fn feed(&mut self, bytes: &[u8], sink: &mut impl FnMut(u64, Frame<'_>)) {
        self.0.feed(bytes, &mut |end, frame| unpacked(end, frame, sink));
    }

    fn finish(&mut self, sink: &mut impl FnMut(u64, Frame<'_>)) {
        self.0.finish(&mut |end, frame| unpacked(end, frame, sink));
    }

    fn offset(&self) -> u64 {
        self.0.offset()
    }
}

/// What a chunk holds.
#[derive(serde::Deserialize)]
struct Chunk<'a> {
    #[serde(borrow)]
    bytes: Cow<'a, str>,
}

/// Gives what a chunk holds; any other frame as it is.
fn unpacked(end: u64, frame: Frame<'_>, sink: &mut impl FnMut(u64, Frame<'_>)) {
    if let Frame::Event { name, data, closed } = frame {
        let chunk = serde_json::from_slice::<Chunk<'_>>(data);
        let inner = chunk.ok().and_then(|chunk| BASE64_STANDARD.decode(chunk.bytes.as_bytes()).ok());
        return sink(end, Frame::Event { name, data: inner.as_deref().unwrap_or(data), closed });
    }
    sink(end, frame);
}
