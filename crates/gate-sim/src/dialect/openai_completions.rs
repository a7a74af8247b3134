//! OpenAI completions, the older route.

use gate_model::Api;
use serde_json::{Value, json};

use super::openai::{self, Names};
use super::{Dialect, Reply};
use crate::ask::{self, Ask, Fields, present};
use crate::http::Refusal;

const NAMES: Names = Names { id: "cmpl", chunk: "text_completion", whole: "text_completion" };

/// `POST /v1/completions`.
pub(crate) struct OpenaiCompletions;

impl Dialect for OpenaiCompletions {
    fn api(&self) -> Api {
        Api::OpenaiCompletions
    }

    fn ask(&self, body: &[u8]) -> Result<Ask, Refusal> {
        let fields = openai::fields(body)?;
        let (stream, include_usage) = openai::delivery(&fields)?;
        let max_tokens = openai::max_tokens(&fields, &["max_tokens"])?;
        let prompt_tokens = prompt_tokens(&fields)?;
        Ok(Ask { model: ask::model(&fields), stream, include_usage, max_tokens, prompt_tokens, ..Ask::default() })
    }

    fn content(&self, reply: &Reply<'_>, out: &mut Vec<u8>) {
        openai::chunk(reply, NAMES, choice(reply.delta(), None), out);
    }

    fn closing(&self, reply: &Reply<'_>, out: &mut Vec<u8>) {
        openai::closing(reply, NAMES, choice("", Some(reply.reason("length", "stop"))), out);
    }

    fn body(&self, reply: &Reply<'_>) -> Value {
        openai::whole(reply, NAMES, choice(&reply.text, Some(reply.reason("length", "stop"))))
    }

    fn embedded_failure(&self) -> Value {
        openai::embedded_failure()
    }

    fn broken_stream(&self, _: &Reply<'_>, out: &mut Vec<u8>) {
        openai::broken_stream(out);
    }
}

fn choice(text: &str, reason: Option<&str>) -> Value {
    json!({"index": 0, "text": text, "logprobs": null, "finish_reason": reason})
}

/// The tokens of the prompt: a text, or its tokens. Of several prompts there would be several answers, which the
/// simulated engine does not give.
fn prompt_tokens(fields: &Fields) -> Result<u32, Refusal> {
    match present(fields, "prompt") {
        None => Err(openai::missing("prompt")),
        Some(Value::String(text)) => Ok(ask::prompt_tokens(text.split_whitespace().count())),
        Some(Value::Array(items)) => match items.as_slice() {
            [Value::String(text)] => Ok(ask::prompt_tokens(text.split_whitespace().count())),
            tokens if !tokens.is_empty() && tokens.iter().all(Value::is_u64) => {
                Ok(u32::try_from(tokens.len()).unwrap_or(u32::MAX))
            }
            _ => {
                let message = "Invalid 'prompt': this engine serves one prompt a request, as a string, as an array \
                               of one string, or as an array of token IDs.";
                Err(Refusal::bad_request(message).param("prompt"))
            }
        },
        Some(other) => Err(openai::wrong_type("prompt", "a string or an array", other)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(body: &str) -> Result<Ask, String> {
        OpenaiCompletions.ask(body.as_bytes()).map_err(|refusal| refusal.message)
    }

    #[test]
    fn reads_a_prompt_in_each_of_its_forms() {
        for (prompt, tokens) in [(r#""one two three""#, 4), (r#"["one two three"]"#, 4), ("[5,6,7,8,9]", 5)] {
            let ask = parse(&format!(r#"{{"model":"m","prompt":{prompt},"stream":true,"max_tokens":9}}"#)).unwrap();
            assert_eq!((ask.prompt_tokens, ask.max_tokens, ask.stream, ask.include_usage), (tokens, 9, true, false));
        }
        assert_eq!(parse(r#"{"prompt":"a"}"#).unwrap().max_tokens, 16);
    }

    #[test]
    fn refuses_in_the_words_of_the_dialect() {
        for (body, message) in [
            ("[]", "We could not parse the JSON body"),
            ("{}", "Missing required parameter: 'prompt'."),
            (r#"{"prompt":5}"#, "expected a string or an array, but got an integer"),
            (r#"{"prompt":[]}"#, "one prompt a request"),
            (r#"{"prompt":["a","b"]}"#, "one prompt a request"),
            (r#"{"prompt":"a","max_tokens":0}"#, "Expected a value >= 1, but got 0"),
        ] {
            let refusal = parse(body).unwrap_err();
            assert!(refusal.contains(message), "{body}: {refusal}");
        }
    }
}
