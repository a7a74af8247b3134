//! k6's stream of points as `k6 run --out json=FILE` writes it: of each request its `http_req_duration`.
//!
//! It sees an HTTP call: `http_req_duration` is sending, waiting and receiving, without connecting, and is our e2e. A point's
//! time is when the request ended. It knows no first token and no tokens. Its summary has percentiles alone, which say too
//! little to be judged.

use gate_model::Outcome;
use jiff::Timestamp;
use serde::Deserialize;

use crate::ImportError;
use crate::seen::{Seen, by_status};

/// What is read of each request.
const METRIC: &str = "http_req_duration";

#[derive(Deserialize)]
struct Line {
    #[serde(rename = "type")]
    kind: String,
    #[serde(default)]
    metric: String,
    #[serde(default)]
    data: serde_json::Value,
}

#[derive(Deserialize)]
struct Point {
    time: String,
    /// Milliseconds.
    value: f64,
    #[serde(default)]
    tags: Tags,
}

#[derive(Default, Deserialize)]
struct Tags {
    #[serde(default)]
    status: String,
    #[serde(default)]
    error_code: String,
}

/// Whether a text is k6's summary, which has percentiles alone.
pub(crate) fn is_summary(start: &str) -> bool {
    ["\"metrics\"", "\"root_group\""].iter().any(|name| start.contains(name)) && !start.contains("\"Point\"")
}

pub(crate) fn read(text: &str) -> Result<Vec<(usize, Seen)>, ImportError> {
    if is_summary(text.get(..4_096.min(text.len())).unwrap_or(text)) {
        return Err(ImportError::Field {
            field: "metrics".to_owned(),
            what: "it is a summary, whose percentiles say too little to be judged: write each request with `k6 run --out json=FILE`".to_owned(),
        });
    }
    let mut requests = Vec::new();
    for (number, text) in (1..).zip(text.lines()).filter(|(_, line)| !line.trim().is_empty()) {
        let wrong = |what: String| ImportError::Line { line: number, what };
        let line: Line = serde_json::from_str(text).map_err(|error| wrong(error.to_string()))?;
        if line.kind == "Point" && line.metric == METRIC {
            let point: Point = serde_json::from_value(line.data).map_err(|error| wrong(error.to_string()))?;
            requests.push((number, request(&point).map_err(wrong)?));
        }
    }
    Ok(requests)
}

fn request(point: &Point) -> Result<Seen, String> {
    let ended: Timestamp =
        point.time.parse().map_err(|_| format!("`time` is no time: {}", crate::shortened(&point.time)))?;
    let (outcome, status) = match point.tags.status.parse::<u64>() {
        Ok(0) | Err(_) => (by_code(&point.tags.error_code), None),
        Ok(status) => by_status(status).ok_or_else(|| format!("`status` is {status}, and no HTTP status"))?,
    };
    let took = point.value / 1e3;
    Ok(Seen {
        send_s: ended.as_nanosecond() as f64 / 1e9 - took,
        outcome,
        status,
        ttft_s: None,
        e2e_s: Some(took),
        input_tokens: None,
        output_tokens: None,
    })
}

/// A failure by k6's error code: 1050 is the request's own timeout, 1211 that of connecting, 1100 on is DNS, 1200 on TCP, 1300 on TLS.
fn by_code(code: &str) -> Outcome {
    match code.parse::<u32>() {
        Ok(1050) => Outcome::TimeoutTotal,
        Ok(1211) => Outcome::TimeoutConnect,
        Ok(1100..=1199 | 1210 | 1212 | 1213) => Outcome::Connect,
        Ok(1300..=1399) => Outcome::Tls,
        _ => Outcome::Reset,
    }
}
