//! Bedrock: the routes of a model, whose streams are AWS event streams.

mod converse;
mod invoke;

pub(crate) use converse::BedrockConverse;
pub(crate) use invoke::BedrockInvoke;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use url::Url;

use crate::Ask;
use crate::request::Ends;

/// The media type of Bedrock's streams.
const EVENT_STREAM: &str = "application/vnd.amazon.eventstream";

/// What AWS escapes in a path's segment: everything but unreserved characters.
const ESCAPED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// `/model/ID`, the model's name escaped as AWS does: an ARN has colons and slashes.
fn stem(ask: &Ask<'_>) -> String {
    format!("/model/{}", utf8_percent_encode(ask.model.unwrap_or_default(), ESCAPED))
}

/// Bedrock lists its models on another host. This one answers that path with a 403 or a 404, which says that it is
/// there.
fn models_path(ends: &Ends, base: &Url) -> String {
    ends.beside(base, "", "/foundation-models")
}

#[cfg(test)]
mod tests {
    use gate_model::{Api, Delivery};

    use crate::{Keep, StreamState, dialect};

    /// The state after a frame with these headers and this payload.
    fn decode(headers: &[(&str, &str)], payload: &[u8]) -> StreamState {
        let mut bytes = Vec::new();
        for (name, value) in headers {
            bytes.push(name.len() as u8);
            bytes.extend(name.as_bytes());
            bytes.push(7);
            bytes.extend((value.len() as u16).to_be_bytes());
            bytes.extend(value.as_bytes());
        }
        let length = 16 + bytes.len() + payload.len();
        let mut frame = [(length as u32).to_be_bytes(), (bytes.len() as u32).to_be_bytes()].concat();
        frame.extend(crc32fast::hash(&frame).to_be_bytes());
        frame.extend([&bytes, payload].concat());
        frame.extend(crc32fast::hash(&frame).to_be_bytes());
        let mut decoder = dialect(Api::BedrockConverse, None).decoder(Delivery::Streamed, Keep::Nothing);
        decoder.feed(&frame, &mut |_| {});
        decoder.finish(&mut |_| {});
        decoder.state().clone()
    }

    #[test]
    fn an_exception_says_who_is_to_blame() {
        for (kind, server) in [
            ("internalServerException", true),
            ("modelStreamErrorException", true),
            ("modelTimeoutException", true),
            ("serviceUnavailableException", true),
            ("throttlingException", false),
            ("validationException", false),
        ] {
            let headers = [(":message-type", "exception"), (":exception-type", kind)];
            for payload in [&b"{\"message\":\"m\"}"[..], b"m"] {
                let error = decode(&headers, payload).error.unwrap();
                assert_eq!((error.kind.as_deref(), error.message.as_str(), error.server), (Some(kind), "m", server));
            }
        }
    }

    #[test]
    fn a_frame_of_no_known_type_is_foreign() {
        let state = decode(&[(":event-type", "new"), (":message-type", "event")], b"{\"new\":1}");
        assert_eq!((state.events, state.foreign_events, state.failure), (1, 1, None));
    }
}
