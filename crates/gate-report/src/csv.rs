//! Every measured request as a row of CSV.

use gate_model::{Arm, Nanos, Request, Run, Series};

use crate::bounded::TEXT;
use crate::escape;
use crate::layout::clip;

/// The names of the columns: times in milliseconds but for `send_s`, since the request was due where nothing else is
/// said.
const HEAD: [&str; 20] = [
    "index",
    "scenario",
    "arm",
    "pair",
    "turn",
    "send_s",
    "outcome",
    "status",
    "send_lag_ms",
    "connected_ms",
    "ttft_ms",
    "ttfa_ms",
    "tpot_ms",
    "e2e_ms",
    "stall_ms",
    "input_tokens",
    "cached_tokens",
    "output_tokens",
    "replica",
    "message",
];

/// The measured requests of a run as CSV (RFC 4180) with a header, in send order; a cell is empty where there is nothing.
///
/// Where a long run keeps requests in short, what only a whole sample has is empty. A text that a spreadsheet would take
/// for a formula begins with an apostrophe.
#[must_use]
pub fn requests_csv(run: &Run) -> String {
    let mut text = row(HEAD.iter().map(|name| (*name).to_owned()));
    for request in run.requests() {
        text.push_str(&row(cells(run, request).into_iter()));
    }
    text
}

fn row(cells: impl Iterator<Item = String>) -> String {
    cells.collect::<Vec<_>>().join(",") + "\r\n"
}

fn cells(run: &Run, one: Request<'_>) -> [String; 20] {
    let sample = one.sample();
    let millis = |nanos: f64| shortest(nanos / 1e6);
    let series = |series: Series| one.value(series).map(millis).unwrap_or_default();
    let count = |series: Series| one.value(series).map(shortest).unwrap_or_default();
    let since_due = |at: Option<Nanos>| at.map(|at| millis((at - one.intended()).0 as f64)).unwrap_or_default();
    let scenario = run.header.scenarios.get(usize::from(one.scenario())).map_or("", String::as_str);
    [
        one.index().to_string(),
        quoted(scenario),
        match one.arm() {
            Arm::Target => "target".to_owned(),
            Arm::Reference => "reference".to_owned(),
        },
        one.pair().map(|pair| pair.to_string()).unwrap_or_default(),
        one.turn().to_string(),
        shortest(one.intended().as_secs_f64()),
        one.outcome().name().to_owned(),
        sample.and_then(|sample| sample.status).map(|status| status.to_string()).unwrap_or_default(),
        series(Series::SendLag),
        since_due(one.had_connection()),
        series(Series::Ttft),
        series(Series::Ttfa),
        series(Series::Tpot),
        series(Series::E2e),
        series(Series::Stall),
        count(Series::InputTokens),
        count(Series::CachedTokens),
        one.output_tokens().map(|(tokens, _)| tokens.to_string()).unwrap_or_default(),
        quoted(sample.and_then(|sample| sample.replica.as_deref()).unwrap_or_default()),
        quoted(sample.and_then(|sample| sample.error.as_deref()).unwrap_or_default()),
    ]
}

/// A number as short as it reads the same; nothing where it is none.
fn shortest(value: f64) -> String {
    if value.is_finite() { value.to_string() } else { String::new() }
}

/// A text from outside as a cell: on one line, of bounded length, no formula, in quotes where it needs them.
fn quoted(text: &str) -> String {
    let text = clip(&escape::terminal(text), TEXT);
    let text = if text.starts_with(['=', '+', '-', '@']) { format!("'{text}") } else { text };
    if text.contains([',', '"', '\'']) { format!("\"{}\"", text.replace('"', "\"\"")) } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cell_is_one_text_and_no_formula() {
        assert_eq!(quoted("plain"), "plain");
        assert_eq!(quoted("a, b"), "\"a, b\"");
        assert_eq!(quoted("say \"no\""), "\"say \"\"no\"\"\"");
        assert_eq!(quoted("two\r\nlines\t\u{1b}[31mred"), "two lines red");
        assert_eq!(quoted("=1+1"), "\"'=1+1\"");
        for start in ["+1", "-1", "@x", "\u{200b}=1"] {
            assert!(quoted(start).starts_with("\"'"), "{start:?}");
        }
        assert_eq!(shortest(f64::NAN), "");
        assert_eq!((shortest(1.0), shortest(0.25)), ("1".to_owned(), "0.25".to_owned()));
    }
}
