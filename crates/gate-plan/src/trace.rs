//! The times and lengths of real traffic, from a file.

use std::sync::Arc;

use gate_model::{Nanos, PerSecond};
use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::Offset;
use serde_json::{Map, Value};

use crate::lengths::most;

/// How much of a wrong value is shown, in characters.
const SHOWN: usize = 40;

/// The longest time of a trace's clock, in seconds: some 30,000 years, more than any.
const MOST_SECONDS: f64 = 1e12;

const INPUT: &str = "a whole number of tokens, from 1 to 10,000,000";
const OUTPUT: &str = "a whole number of tokens, from 0 to 10,000,000";

/// One request of a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraceRow {
    /// Its line in the file, from 1.
    pub line: u64,
    /// When, from the first of the trace.
    pub at: Nanos,
    /// Its input tokens.
    pub input_tokens: u32,
    /// Its output tokens, at least 1: one that generated nothing asks for one.
    pub output_tokens: u32,
}

/// The rows of a `load.trace`, by time. A clone shares them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trace {
    rows: Arc<[TraceRow]>,
}

/// Why a text is not a trace. Every error names the line.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TraceError {
    /// No row at all.
    #[error("the trace holds no request: it has a head such as `timestamp,input,output` and a line for each request")]
    Empty,
    /// A head without a column that is needed.
    #[error("the trace's first line has no column for {what}: call it {names}; found were {found}")]
    NoColumn {
        /// What is missing.
        what: &'static str,
        /// The names it may have.
        names: String,
        /// The columns there are.
        found: String,
    },
    /// A line that cannot be read at all.
    #[error("line {line} of the trace is not {expected}: {message}")]
    Unreadable {
        /// The line, from 1.
        line: u64,
        /// What it must be.
        expected: &'static str,
        /// What is wrong.
        message: String,
    },
    /// A value that is missing, of the wrong kind or out of range.
    #[error("line {line} of the trace: `{field}` is {found}, and must be {expected}")]
    Wrong {
        /// The line, from 1.
        line: u64,
        /// The column or field.
        field: String,
        /// What stands there, shortened.
        found: String,
        /// What it must be.
        expected: &'static str,
    },
}

/// A row with its time on the trace's own clock, in seconds from where that begins.
struct Clocked {
    line: u64,
    at: Clock,
    input_tokens: u32,
    output_tokens: u32,
}

/// A time in whole nanoseconds, wide enough for every date.
type Clock = i128;

impl Trace {
    /// Reads a trace:
    ///
    /// - **CSV with a head**: `TIMESTAMP,ContextTokens,GeneratedTokens` (Azure's LLM inference traces),
    ///   `arrival_timestamp,num_prefill_tokens,num_decode_tokens`, `arrived_at,…`, or `timestamp,input,output`; columns
    ///   in any order, others ignored. A time is a number of seconds, or a date and time, of UTC where it says nothing
    ///   else.
    /// - **JSON Lines** (Mooncake's traces): `timestamp` in milliseconds, `input_length` and `output_length`. Their
    ///   `hash_ids`, which say what prompts have in common, are ignored: `prompts.shared_prefix` stands for it.
    ///
    /// Rows are sorted by time, and the first is at zero.
    ///
    /// # Errors
    ///
    /// [`TraceError`] for the first row that is wrong.
    pub fn parse(text: &str) -> Result<Self, TraceError> {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let mut rows = if text.trim_start().starts_with('{') { lines(text) } else { columns(text) }?;
        rows.sort_by_key(|row| row.at);
        let first = rows.first().ok_or(TraceError::Empty)?.at;
        let row = |row: &Clocked| TraceRow {
            line: row.line,
            at: Nanos(i64::try_from(row.at - first).unwrap_or(i64::MAX)),
            input_tokens: row.input_tokens,
            output_tokens: row.output_tokens.max(1),
        };
        Ok(Self { rows: rows.iter().map(row).collect() })
    }

    /// The rows, by time; there is at least one.
    #[must_use]
    pub fn rows(&self) -> &[TraceRow] {
        &self.rows
    }

    /// The time of the last row.
    #[must_use]
    pub fn duration(&self) -> Nanos {
        self.rows.last().map_or(Nanos::ZERO, |row| row.at)
    }

    /// The mean rate from the first row to the last; `None` where all are at one time.
    #[must_use]
    pub fn rate(&self) -> Option<PerSecond> {
        let lasts = self.duration().as_secs_f64();
        (lasts > 0.0).then(|| PerSecond((self.rows.len() - 1) as f64 / lasts))
    }
}

/// Reads CSV.
fn columns(text: &str) -> Result<Vec<Clocked>, TraceError> {
    const TIMES: [&str; 4] = ["timestamp", "arrival_timestamp", "arrived_at", "time"];
    const INPUTS: [&str; 5] = ["input", "input_tokens", "input_length", "contexttokens", "num_prefill_tokens"];
    const OUTPUTS: [&str; 5] = ["output", "output_tokens", "output_length", "generatedtokens", "num_decode_tokens"];
    let mut reader = csv::ReaderBuilder::new().trim(csv::Trim::All).from_reader(text.as_bytes());
    let unreadable = |error: &csv::Error| TraceError::Unreadable {
        line: error.position().map_or(1, csv::Position::line),
        expected: "a line of the columns that the first line names",
        message: error.to_string(),
    };
    let head = reader.headers().map_err(|error| unreadable(&error))?.clone();
    if head.iter().all(str::is_empty) {
        return Err(TraceError::Empty);
    }
    let column = |what: &'static str, names: &[&str]| {
        let place = head.iter().position(|name| names.contains(&name.to_ascii_lowercase().as_str()));
        place.ok_or_else(|| TraceError::NoColumn {
            what,
            names: quoted(names.iter().copied()),
            found: quoted(head.iter().take(8)),
        })
    };
    let (time, input, output) =
        (column("the time", &TIMES)?, column("the input length", &INPUTS)?, column("the output length", &OUTPUTS)?);
    let mut rows = Vec::new();
    for record in reader.records() {
        let record = record.map_err(|error| unreadable(&error))?;
        let line = record.position().map_or(0, csv::Position::line);
        let wrong = |column: usize, expected: &'static str| TraceError::Wrong {
            line,
            field: head.get(column).unwrap_or_default().to_owned(),
            found: format!("`{}`", record.get(column).unwrap_or_default().chars().take(SHOWN).collect::<String>()),
            expected,
        };
        let tokens = |column: usize| record.get(column).and_then(|text| most(text.parse().ok()?));
        let at = record.get(time).and_then(clock);
        rows.push(Clocked {
            line,
            at: at.ok_or_else(|| wrong(time, "a number of seconds, or a date and time"))?,
            input_tokens: tokens(input).filter(|tokens| *tokens > 0).ok_or_else(|| wrong(input, INPUT))?,
            output_tokens: tokens(output).ok_or_else(|| wrong(output, OUTPUT))?,
        });
    }
    Ok(rows)
}

fn quoted<'a>(names: impl Iterator<Item = &'a str>) -> String {
    let short = |name: &str| format!("`{}`", name.chars().take(SHOWN).collect::<String>());
    names.map(short).collect::<Vec<_>>().join(", ")
}

/// A time of a CSV file.
fn clock(text: &str) -> Option<Clock> {
    if let Ok(seconds) = text.parse::<f64>() {
        return nanos(seconds);
    }
    let dated = text.parse::<Timestamp>().ok();
    let dated = dated.or_else(|| Offset::UTC.to_timestamp(text.parse::<DateTime>().ok()?).ok());
    dated.map(Timestamp::as_nanosecond)
}

fn nanos(seconds: f64) -> Option<Clock> {
    (seconds.abs() <= MOST_SECONDS).then(|| (seconds * 1e9).round() as Clock)
}

/// Reads JSON Lines.
fn lines(text: &str) -> Result<Vec<Clocked>, TraceError> {
    let lines = (1..).zip(text.lines()).filter(|(_, line)| !line.trim().is_empty());
    lines.map(|(line, text)| object(line, text)).collect()
}

fn object(line: u64, text: &str) -> Result<Clocked, TraceError> {
    let unreadable = |message: String| TraceError::Unreadable { line, expected: "a JSON object", message };
    let fields: Map<String, Value> = serde_json::from_str(text).map_err(|error| unreadable(error.to_string()))?;
    let wrong = |field: &str, expected: &'static str| TraceError::Wrong {
        line,
        field: field.to_owned(),
        found: fields.get(field).map_or("missing".to_owned(), |value| value.to_string().chars().take(SHOWN).collect()),
        expected,
    };
    let tokens = |field: &str| fields.get(field).and_then(Value::as_u64).and_then(most);
    let at = fields.get("timestamp").and_then(Value::as_f64).and_then(|millis| nanos(millis / 1e3));
    let input = tokens("input_length").filter(|tokens| *tokens > 0);
    Ok(Clocked {
        line,
        at: at.ok_or_else(|| wrong("timestamp", "a number of milliseconds"))?,
        input_tokens: input.ok_or_else(|| wrong("input_length", INPUT))?,
        output_tokens: tokens("output_length").ok_or_else(|| wrong("output_length", OUTPUT))?,
    })
}
