//! Vegeta's results as `vegeta encode -to json` writes them: a line for each request.
//!
//! It sees an HTTP call: `latency` is from when the request was sent, connecting with it, to the end of the body, and is our e2e. It knows no
//! first token and no tokens. Its own percentiles have failed requests in them; here they are failed requests.

use gate_model::Outcome;
use jiff::Timestamp;
use serde::Deserialize;

use crate::ImportError;
use crate::seen::{Seen, by_status};

#[derive(Deserialize)]
struct Line {
    code: u64,
    timestamp: String,
    /// Nanoseconds.
    latency: f64,
    #[serde(default)]
    error: String,
}

pub(crate) fn read(text: &str) -> Result<Vec<(usize, Seen)>, ImportError> {
    let lines = (1..).zip(text.lines()).filter(|(_, line)| !line.trim().is_empty());
    lines.map(|(number, line)| Ok((number, request(number, line)?))).collect()
}

fn request(number: usize, text: &str) -> Result<Seen, ImportError> {
    let wrong = |what: String| ImportError::Line { line: number, what };
    let line: Line = serde_json::from_str(text).map_err(|error| wrong(error.to_string()))?;
    let at: Timestamp = line
        .timestamp
        .parse()
        .map_err(|_| wrong(format!("`timestamp` is no time: {}", crate::shortened(&line.timestamp))))?;
    // A code of 0 is no answer.
    let (outcome, status) = match line.code {
        0 => (by_words(&line.error), None),
        code => by_status(code).ok_or_else(|| wrong(format!("`code` is {code}, and no HTTP status")))?,
    };
    Ok(Seen {
        send_s: at.as_nanosecond() as f64 / 1e9,
        outcome,
        status,
        ttft_s: None,
        e2e_s: Some(line.latency / 1e9),
        input_tokens: None,
        output_tokens: None,
    })
}

fn by_words(error: &str) -> Outcome {
    let error = error.to_ascii_lowercase();
    match () {
        () if error.contains("dial ") && error.contains("timeout") => Outcome::TimeoutConnect,
        () if error.contains("timeout") || error.contains("deadline") => Outcome::TimeoutTotal,
        () if error.contains("dial ") || error.contains("refused") || error.contains("no such host") => {
            Outcome::Connect
        }
        () if error.contains("tls") || error.contains("x509") => Outcome::Tls,
        () => Outcome::Reset,
    }
}
