//! The neutral `samples` format: JSON Lines, one object per measured request in send order.

use gate_model::{Arm, Nanos, Outcome, Request, Run, Series};
use serde_json::{Map, Value, value::Number};

/// The measured requests of a run as `samples` lines, in send order.
///
/// Times are in milliseconds with six decimals and `send_s` in seconds with nine, so nothing is lost in a round
/// trip; of a long run, whose requests are kept in short, latencies are as near as seven digits are, and an `ok` is
/// written for the status of a request that was. A failed request has null latencies. Its `status` is the HTTP status where that says how it failed, and
/// otherwise the outcome's name (an error inside a 200 stream is `stream_error`, not 200). `scenario` is written
/// when the run has several, and `turn` (from 0) of the later turns of a conversation. Warm-up requests are left out.
#[must_use]
pub fn samples(run: &Run) -> String {
    run.requests().map(|request| row(run, request).to_string() + "\n").collect()
}

fn row(run: &Run, request: Request<'_>) -> Value {
    let of = |series: Series| request.value(series).filter(|_| request.outcome() == Outcome::Ok);
    let millis = |series: Series| of(series).map_or(Value::Null, |nanos| decimal(nanos / 1e6, 6));
    let count = |series: Series| of(series).map_or(Value::Null, |tokens| Value::from(tokens as u64));
    let mut row = Map::new();
    row.insert("send_s".to_owned(), seconds(request.intended()));
    row.insert("status".to_owned(), status(request));
    row.insert("ttft_ms".to_owned(), millis(Series::Ttft));
    row.insert("tpot_ms".to_owned(), millis(Series::Tpot));
    row.insert("e2e_ms".to_owned(), millis(Series::E2e));
    row.insert("output_tokens".to_owned(), count(Series::OutputTokens));
    row.insert("input_tokens".to_owned(), count(Series::InputTokens));
    if let (true, Some(name)) =
        (run.header.scenarios.len() > 1, run.header.scenarios.get(usize::from(request.scenario())))
    {
        row.insert("scenario".to_owned(), Value::from(name.as_str()));
    }
    if request.turn() > 0 {
        row.insert("turn".to_owned(), Value::from(request.turn()));
    }
    let arm = match request.arm() {
        Arm::Target => "target",
        Arm::Reference => "reference",
    };
    row.insert("arm".to_owned(), Value::from(arm));
    if let Some(pair) = request.pair() {
        row.insert("pair".to_owned(), Value::from(pair));
    }
    Value::Object(row)
}

/// The HTTP status where it agrees with the outcome, or the outcome's name.
fn status(request: Request<'_>) -> Value {
    match (request.outcome(), request.sample().and_then(|sample| sample.status)) {
        (Outcome::Ok | Outcome::Http4xx | Outcome::Http429 | Outcome::Http5xx, Some(status)) => Value::from(status),
        (outcome, _) => Value::from(outcome.name()),
    }
}

fn seconds(point: Nanos) -> Value {
    decimal(point.as_secs_f64(), 9)
}

/// The number with at most this many decimals.
fn decimal(value: f64, decimals: usize) -> Value {
    let rounded = format!("{value:.decimals$}").parse::<f64>().unwrap_or(value);
    Number::from_f64(rounded).map_or(Value::Null, Value::Number)
}
