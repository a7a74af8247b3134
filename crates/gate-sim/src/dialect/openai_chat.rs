//! OpenAI chat completions.

use gate_model::Api;
use serde::Serialize;
use serde_json::{Value, json};

use super::openai::{self, Names};
use super::{Dialect, Reply};
use crate::ask::{self, Ask, Fields, present};
use crate::http::Refusal;

/// The model that refuses `max_tokens`, as OpenAI's newer ones do: for testing a client's switch.
const WANTS_MAX_COMPLETION_TOKENS: &str = "wants-max-completion-tokens";

const NAMES: Names = Names { id: "chatcmpl", chunk: "chat.completion.chunk", whole: "chat.completion" };

/// `POST /v1/chat/completions`.
pub(crate) struct OpenaiChat;

impl Dialect for OpenaiChat {
    fn api(&self) -> Api {
        Api::OpenaiChat
    }

    fn ask(&self, body: &[u8]) -> Result<Ask, Refusal> {
        let fields = openai::fields(body)?;
        let (stream, include_usage) = openai::delivery(&fields)?;
        let model = ask::model(&fields);
        if model == WANTS_MAX_COMPLETION_TOKENS && present(&fields, "max_tokens").is_some() {
            let message = "Unsupported parameter: 'max_tokens' is not supported with this model. Use \
                           'max_completion_tokens' instead.";
            return Err(Refusal::bad_request(message).param("max_tokens").code("unsupported_parameter"));
        }
        let max_tokens = openai::max_tokens(&fields, &["max_completion_tokens", "max_tokens"])?;
        Ok(Ask { model, stream, include_usage, max_tokens, prompt_tokens: prompt_tokens(&fields)?, ..Ask::default() })
    }

    /// The role, without content.
    fn opening(&self, reply: &Reply<'_>, out: &mut Vec<u8>) {
        openai::chunk(reply, NAMES, Choice::new(Delta { role: Some("assistant"), content: Some("") }), out);
    }

    /// The role stands in the first event, whatever it carries.
    fn content(&self, reply: &Reply<'_>, out: &mut Vec<u8>) {
        let delta = Delta { role: (!reply.opened).then_some("assistant"), content: Some(reply.delta()) };
        openai::chunk(reply, NAMES, Choice::new(delta), out);
    }

    fn closing(&self, reply: &Reply<'_>, out: &mut Vec<u8>) {
        let reason = Some(reply.reason("length", "stop"));
        openai::closing(reply, NAMES, Choice { finish_reason: reason, ..Choice::new(Delta::default()) }, out);
    }

    fn body(&self, reply: &Reply<'_>) -> Value {
        let message = json!({"role": "assistant", "content": reply.text, "refusal": null});
        let reason = reply.reason("length", "stop");
        let choice = json!({"index": 0, "message": message, "logprobs": null, "finish_reason": reason});
        openai::whole(reply, NAMES, choice)
    }

    fn embedded_failure(&self) -> Value {
        openai::embedded_failure()
    }

    fn broken_stream(&self, _: &Reply<'_>, out: &mut Vec<u8>) {
        openai::broken_stream(out);
    }
}

/// The choice of a chunk.
#[derive(Serialize)]
struct Choice<'a> {
    index: u32,
    delta: Delta<'a>,
    logprobs: Option<()>,
    finish_reason: Option<&'static str>,
}

#[derive(Default, Serialize)]
struct Delta<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    role: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    content: Option<&'a str>,
}

impl<'a> Choice<'a> {
    fn new(delta: Delta<'a>) -> Self {
        Self { index: 0, delta, logprobs: None, finish_reason: None }
    }
}

fn prompt_tokens(fields: &Fields) -> Result<u32, Refusal> {
    let messages = match present(fields, "messages") {
        None => return Err(openai::missing("messages")),
        Some(Value::Array(messages)) if messages.is_empty() => {
            let message = "Invalid 'messages': empty array. Expected an array with minimum length 1, but got an empty \
                           array instead.";
            return Err(Refusal::bad_request(message).param("messages"));
        }
        Some(Value::Array(messages)) => messages,
        Some(other) => return Err(openai::wrong_type("messages", "an array of objects", other)),
    };
    if let Some((position, other)) = messages.iter().enumerate().find(|(_, message)| !message.is_object()) {
        return Err(openai::wrong_type(&format!("messages[{position}]"), "an object", other));
    }
    Ok(ask::prompt_tokens(ask::words_of_messages(messages)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(body: &str) -> Result<Ask, String> {
        OpenaiChat.ask(body.as_bytes()).map_err(|refusal| refusal.message)
    }

    #[test]
    fn reads_what_matters_and_ignores_the_rest() {
        let body = r#"{"model":"m","messages":[{"role":"system","content":"one two three"},
            {"role":"user","content":[{"type":"text","text":"four five"},{"type":"image_url"}]}],
            "stream":true,"stream_options":{"include_usage":true},"max_tokens":7,"temperature":0.5}"#;
        let expected = Ask {
            model: "m".into(),
            stream: true,
            include_usage: true,
            max_tokens: 7,
            prompt_tokens: 7,
            ..Ask::default()
        };
        assert_eq!(parse(body), Ok(expected));
        let plain = parse(r#"{"messages":[{"role":"user"}],"stream":null}"#).unwrap();
        assert_eq!((plain.stream, plain.include_usage, plain.max_tokens, plain.prompt_tokens), (false, false, 16, 0));
        let vision = parse(
            r#"{"messages":[{"role":"user","content":[{"type":"text","text":"What is this?"},
            {"type":"image_url","image_url":{"url":"data:image/png;base64,iVBORw0KGgo="}}]},
            {"role":"assistant","content":null,"tool_calls":[]},{"role":"user","content":"And now?"}],"tools":[]}"#,
        );
        assert_eq!(vision.unwrap().prompt_tokens, 7);
        let both = parse(r#"{"messages":[{}],"max_completion_tokens":3,"max_tokens":9}"#).unwrap();
        assert_eq!(both.max_tokens, 3);
    }

    #[test]
    fn refuses_in_the_words_of_the_dialect() {
        for (body, message) in [
            ("", "We could not parse the JSON body"),
            ("[]", "We could not parse the JSON body"),
            ("{}", "Missing required parameter: 'messages'."),
            (r#"{"messages":"hi"}"#, "expected an array of objects, but got a string"),
            (r#"{"messages":[]}"#, "Invalid 'messages': empty array."),
            (r#"{"messages":["hi"]}"#, "Invalid type for 'messages[0]': expected an object, but got a string"),
            (r#"{"messages":[{}],"max_tokens":0}"#, "Expected a value >= 1, but got 0"),
            (r#"{"messages":[{}],"max_tokens":-4}"#, "Expected a value >= 1, but got -4"),
            (r#"{"messages":[{}],"max_tokens":1.5}"#, "expected an integer, but got a decimal number"),
            (r#"{"messages":[{}],"max_tokens":99999999999}"#, "max_tokens is too large: 99999999999."),
            (r#"{"messages":[{}],"stream":"yes"}"#, "Invalid type for 'stream': expected a boolean"),
            (r#"{"messages":[{}],"stream_options":{}}"#, "only allowed when 'stream' is enabled"),
        ] {
            let refusal = parse(body).unwrap_err();
            assert!(refusal.contains(message), "{body}: {refusal}");
        }
    }
}
