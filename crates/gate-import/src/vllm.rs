//! vLLM's `bench serve`, and SGLang's `bench_serving` in the same words: the result with its details.
//!
//! Its TTFT counts from when the request was sent; its ITL are the gaps between chunks with content, whose sum is what comes
//! after the first token, so that a request's last token is TTFT and all of them. Its TPOT is (e2e − TTFT) ÷ (tokens − 1), as
//! ours; of chat its own e2e goes on to the chunk with the usage, so that its TPOT is a little larger. Tokens are the
//! server's usage, or counted by its tokenizer. Failed requests are in none of its percentiles; here they are failed
//! requests.

use gate_model::Outcome;
use serde_json::{Map, Value};

use crate::ImportError;
use crate::seen::Seen;

/// `is_steady`: whether the spec's load has no shape, so that nothing but rates depends on when requests were sent.
pub(crate) fn read(text: &str, is_steady: bool) -> Result<Vec<(usize, Seen)>, ImportError> {
    let result = object(text)?;
    let ttfts = list(&result, "ttfts")?;
    let counted = |name: &'static str| -> Result<&Vec<Value>, ImportError> {
        let values = list(&result, name)?;
        match values.len() == ttfts.len() {
            true => Ok(values),
            false => Err(ImportError::Field {
                field: name.to_owned(),
                what: format!("it has {} requests, and `ttfts` has {}", values.len(), ttfts.len()),
            }),
        }
    };
    let (itls, inputs, outputs) = (counted("itls")?, counted("input_lens")?, counted("output_lens")?);
    let errors = if result.contains_key("errors") { Some(counted("errors")?) } else { None };
    let starts = if result.contains_key("start_times") { Some(counted("start_times")?) } else { None };
    let mut requests = Vec::new();
    for (at, ttft) in ttfts.iter().enumerate() {
        let wrong = |what: &str| ImportError::Request { request: at + 1, what: what.to_owned() };
        let count = |values: &Vec<Value>, what: &str| values.get(at).and_then(Value::as_u64).ok_or_else(|| wrong(what));
        let ttft = ttft.as_f64().ok_or_else(|| wrong("its `ttfts` is no number"))?;
        let gaps = itls.get(at).and_then(Value::as_array).ok_or_else(|| wrong("its `itls` is no list"))?;
        let gaps: Option<f64> = gaps.iter().map(Value::as_f64).sum();
        let gaps = gaps.ok_or_else(|| wrong("one of its `itls` is no number"))?;
        let input = count(inputs, "its `input_lens` is no count")?;
        let output = count(outputs, "its `output_lens` is no count")?;
        let error = match errors.and_then(|errors| errors.get(at)) {
            None | Some(Value::Null) => "",
            Some(error) => error.as_str().ok_or_else(|| wrong("its `errors` is no text"))?,
        };
        let start = match starts.and_then(|starts| starts.get(at)) {
            None => 0.0,
            Some(start) => start.as_f64().ok_or_else(|| wrong("its `start_times` is no number"))?,
        };
        // It writes an error's text, or nothing where a request simply has no answer.
        let is_ok = error.is_empty() && ttft > 0.0;
        requests.push((
            at + 1,
            Seen {
                send_s: start,
                outcome: if is_ok { Outcome::Ok } else { by_words(error) },
                status: None,
                ttft_s: is_ok.then_some(ttft),
                e2e_s: is_ok.then_some(ttft + gaps),
                input_tokens: Some(input),
                output_tokens: is_ok.then_some(output),
            },
        ));
    }
    if starts.is_none() {
        if !is_steady {
            return Err(ImportError::Field {
                field: "start_times".to_owned(),
                what: "it is not there, and what a ramp, spike or soak shows depends on when requests were sent: use a version of the tool that writes it".to_owned(),
            });
        }
        spread(&mut requests, result.get("duration").and_then(Value::as_f64))?;
    }
    Ok(requests)
}

/// The result: a file of one, or the last line of one that results are appended to.
fn object(text: &str) -> Result<Map<String, Value>, ImportError> {
    let text = text.trim();
    let whole: Result<Value, _> = serde_json::from_str(text);
    let value = whole.or_else(|error| match text.lines().last() {
        Some(last) if text.lines().count() > 1 => serde_json::from_str(last),
        _ => Err(error),
    });
    match value.map_err(|error| ImportError::NotJson { what: error.to_string() })? {
        Value::Object(result) => Ok(result),
        _ => Err(ImportError::NotJson { what: "it is no object".to_owned() }),
    }
}

fn list<'a>(result: &'a Map<String, Value>, name: &'static str) -> Result<&'a Vec<Value>, ImportError> {
    let values = result.get(name).and_then(Value::as_array);
    values.ok_or_else(|| ImportError::Field {
        field: name.to_owned(),
        what: "it is not there: write the result with `--save-result --save-detailed`".to_owned(),
    })
}

/// Earlier versions do not write when requests were sent. They are spread over the run's own duration, so that its rates are
/// those that the tool says; the order is the file's.
fn spread(requests: &mut [(usize, Seen)], duration: Option<f64>) -> Result<(), ImportError> {
    let duration =
        duration.filter(|duration| duration.is_finite() && *duration > 0.0).ok_or_else(|| ImportError::Field {
            field: "duration".to_owned(),
            what: "it is not there, and neither is `start_times`: when requests were sent is not known".to_owned(),
        })?;
    let last = requests.iter().filter_map(|(_, one)| one.e2e_s).fold(0.0, f64::max);
    let room = (duration - last).max(0.0);
    let gaps = requests.len().saturating_sub(1).max(1) as f64;
    for (at, (_, one)) in requests.iter_mut().enumerate() {
        one.send_s = room * at as f64 / gaps;
    }
    Ok(())
}

/// A failure by what is written of it: the reason phrase of a status, or an exception.
fn by_words(error: &str) -> Outcome {
    let error = error.to_ascii_lowercase();
    let says = |words: &[&str]| words.iter().any(|word| error.contains(word));
    match () {
        () if says(&["too many requests"]) => Outcome::Http429,
        () if says(&["internal server error", "bad gateway", "service unavailable", "gateway time"]) => {
            Outcome::Http5xx
        }
        () if says(&[
            "bad request",
            "unauthorized",
            "forbidden",
            "not found",
            "unprocessable",
            "payload too large",
        ]) =>
        {
            Outcome::Http4xx
        }
        () if says(&["timeout", "timed out"]) => Outcome::TimeoutTotal,
        () if says(&["cannot connect", "connection refused", "connect call failed"]) => Outcome::Connect,
        () if error.is_empty() => Outcome::Empty,
        () => Outcome::Reset,
    }
}
