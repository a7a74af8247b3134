//! Other tools' result files become runs, which are then judged like any other.
//!
//! `samples` is the neutral format: JSON Lines, one object per measured request in send order. Of other tools the files are
//! read that have each request: a file with percentiles alone says too little to be judged. Those that are not read yet say
//! so.

mod arms;
mod k6;
mod row;
mod samples;
mod seen;
mod vegeta;
mod vllm;

use std::str::FromStr;

use gate_model::{AssembleError, GateSpec, Pattern, Run};

pub use arms::{Spot, as_baseline, with_reference};

/// A format that can be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// The neutral format: JSON Lines, one object per request.
    Samples,
    /// vLLM's `bench serve --save-result --save-detailed`.
    Vllm,
    /// `k6 run --out json=FILE`.
    K6,
    /// `vegeta encode -to json`.
    Vegeta,
}

/// Formats of the product that a later version will read.
const NOT_YET: [&str; 6] = ["guidellm", "aiperf", "genai-perf", "llmperf", "inference-perf", "locust"];

impl Format {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Samples, Self::Vllm, Self::K6, Self::Vegeta];

    /// The name that is typed.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Samples => "samples",
            Self::Vllm => "vllm",
            Self::K6 => "k6",
            Self::Vegeta => "vegeta",
        }
    }

    /// The format that a text seems to be of, by the names in its first lines.
    #[must_use]
    pub fn of(text: &str) -> Option<Self> {
        let start: String = text.chars().take(4_096).collect();
        let has = |names: &[&str]| names.iter().all(|name| start.contains(&format!("\"{name}\"")));
        match () {
            () if has(&["send_s", "status"]) => Some(Self::Samples),
            () if has(&["type", "metric", "data"]) || k6::is_summary(&start) => Some(Self::K6),
            () if has(&["code", "timestamp", "latency"]) => Some(Self::Vegeta),
            () if has(&["request_throughput"]) || has(&["mean_ttft_ms"]) || has(&["input_lens"]) => Some(Self::Vllm),
            () => None,
        }
    }
}

/// Why a name is not a format that can be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FormatError {
    /// A format of the product that this version does not read.
    #[error("the format `{name}` is not yet supported: convert the file to `samples`, or use one of {}", names(), name = .0)]
    NotYet(String),
    /// No such format.
    #[error("unknown format `{name}`: this version reads {}; not yet supported are {}", names(), .not_yet.join(", "))]
    Unknown {
        /// The name as written.
        name: String,
        /// Formats that come later.
        not_yet: &'static [&'static str],
    },
}

fn names() -> String {
    Format::ALL.map(|format| format!("`{}`", format.name())).join(", ")
}

/// A text from outside as a message shows it.
pub(crate) fn shortened(text: &str) -> String {
    text.chars().take(60).map(|symbol| if symbol.is_control() { ' ' } else { symbol }).collect()
}

impl FromStr for Format {
    type Err = FormatError;

    fn from_str(text: &str) -> Result<Self, FormatError> {
        match Self::ALL.into_iter().find(|format| format.name() == text) {
            Some(format) => Ok(format),
            None if NOT_YET.contains(&text) => Err(FormatError::NotYet(text.to_owned())),
            None => Err(FormatError::Unknown { name: text.to_owned(), not_yet: &NOT_YET }),
        }
    }
}

/// What a run is made of besides the format.
#[derive(Clone, Debug)]
pub struct Import<'a> {
    /// The spec the run is judged by.
    pub spec: GateSpec,
    /// The file's text.
    pub text: &'a str,
    /// The version of `gate`.
    pub gate: &'a str,
    /// Identifies the run.
    pub run_id: &'a str,
    /// When the run started, or else when the file was read; RFC 3339 in UTC.
    pub started: &'a str,
}

/// Why a file is not a run. Every error names the line, and the field where one is wrong.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ImportError {
    /// No row at all.
    #[error("the file holds no request: a `samples` file has one JSON object a line, one for each request")]
    Empty,
    /// A tool's file without a request.
    #[error("the file holds no request")]
    NoRequest,
    /// A tool's file that is no JSON.
    #[error("it is not the JSON that this tool writes: {what}")]
    NotJson {
        /// What is wrong.
        what: String,
    },
    /// A field of a tool's file.
    #[error("`{field}`: {what}")]
    Field {
        /// The field.
        field: String,
        /// What is wrong.
        what: String,
    },
    /// A line of a tool's file.
    #[error("line {line} is none that this tool writes: {what}")]
    Line {
        /// The line, from 1.
        line: usize,
        /// What is wrong.
        what: String,
    },
    /// A request of a tool's file.
    #[error("request {request}: {what}")]
    Request {
        /// Its place in the file, from 1.
        request: usize,
        /// What is wrong.
        what: String,
    },
    /// A file that seems to be another tool's.
    #[error("{error}; it looks like `--from {}`", .seems.name())]
    Other {
        /// What is wrong with it in the format that was named.
        error: Box<ImportError>,
        /// What it seems to be.
        seems: Format,
    },
    /// A line that is not a JSON object.
    #[error("line {line} is not a JSON object: {message}")]
    NotAnObject {
        /// The line, from 1.
        line: usize,
        /// What is wrong.
        message: String,
    },
    /// A field that is there twice.
    #[error("line {line}: `{field}` is there twice: remove one of the two")]
    FieldTwice {
        /// The line, from 1.
        line: usize,
        /// The field, shortened.
        field: String,
    },
    /// A field that must be there is not.
    #[error("line {line}: `{field}` is missing{}", if *.nullable { "; a failed request has null there" } else { "" })]
    Missing {
        /// The line, from 1.
        line: usize,
        /// The field.
        field: &'static str,
        /// Whether null would do on the row of a failed request.
        nullable: bool,
    },
    /// A field with a value of the wrong kind.
    #[error("line {line}: `{field}` is {found}, and must be {expected}")]
    Wrong {
        /// The line, from 1.
        line: usize,
        /// The field.
        field: &'static str,
        /// What it must be.
        expected: &'static str,
        /// What stands there, shortened.
        found: String,
    },
    /// The last token comes before the first.
    #[error("line {line}: `e2e_ms` is {e2e_ms}, less than `ttft_ms` with {ttft_ms}: both count from the same start")]
    EndsBeforeItStarts {
        /// The line, from 1.
        line: usize,
        /// Time to the last token, in milliseconds, as written.
        e2e_ms: String,
        /// Time to the first token, in milliseconds, as written.
        ttft_ms: String,
    },
    /// Rows out of send order.
    #[error("line {line}: `send_s` is {send_s}, earlier than the row before: sort the rows by `send_s`")]
    Unsorted {
        /// The line, from 1.
        line: usize,
        /// The send time in seconds, as written.
        send_s: String,
    },
    /// A row of a scenario the spec does not have.
    #[error("line {line}: the spec has no scenario `{scenario}`: {}", known(.expected))]
    UnknownScenario {
        /// The line, from 1.
        line: usize,
        /// The scenario as written.
        scenario: String,
        /// The scenarios the spec has.
        expected: Vec<String>,
    },
    /// A row that does not say which of the spec's scenarios it is of.
    #[error("line {line}: `scenario` is missing, and the spec has several: {}", known(.expected))]
    NoScenario {
        /// The line, from 1.
        line: usize,
        /// The scenarios the spec has.
        expected: Vec<String>,
    },
    /// A scenario of the spec without a row of the target.
    #[error(
        "no row of the target has `scenario` \"{scenario}\", and the spec has that scenario: give it its rows, or judge \
         by a spec without it"
    )]
    NoRows {
        /// The scenario.
        scenario: String,
    },
    /// A turn that the spec's conversations do not have.
    #[error(
        "line {line}: `turn` is {turn}, and counts from 0, but conversations of the spec have at most {most} turn{}: \
         check `prompts.turns`", if *.most == 1 { "" } else { "s" }
    )]
    NoSuchTurn {
        /// The line, from 1.
        line: usize,
        /// The turn.
        turn: u16,
        /// How many the spec's conversations have.
        most: u32,
    },
    /// Rows of the reference alone.
    #[error("line {line}: every row has `arm` \"reference\": without a row of the target there is nothing to judge")]
    NoTarget {
        /// The first of them, from 1.
        line: usize,
    },
    /// More rows of one arm than of the other.
    #[error(
        "there are {target} requests of the target and {reference} of the reference, and each needs one in the other \
         arm: give both as many, failed ones too"
    )]
    Unpaired {
        /// How many of the target.
        target: usize,
        /// How many of the reference.
        reference: usize,
    },
    /// Some rows name their pair, and this one does not.
    #[error("{at}: `pair` is missing, and other rows have it: give it to all, or to none to pair them by order")]
    NoPair {
        /// Where.
        at: Spot,
    },
    /// Two rows of an arm name one pair.
    #[error("{at}: an earlier row of the same arm has `pair` {pair} too: a pair is one request of each arm")]
    PairTwice {
        /// Where.
        at: Spot,
        /// The pair.
        pair: u32,
    },
    /// A pair with a row of one arm alone.
    #[error("{at}: no row of the other arm has `pair` {pair}")]
    PairAlone {
        /// Where.
        at: Spot,
        /// The pair.
        pair: u32,
    },
    /// A file that is laid beside another, and one of them has both arms already.
    #[error("the rows of one file have `arm` \"reference\" already: give both arms in one file, or each in its own")]
    HasReference,
    /// Parts that do not make one run.
    #[error("{0}")]
    Parts(#[from] AssembleError),
    /// More rows than a run can have.
    #[error("the file holds more than {} requests", u32::MAX)]
    TooMany,
}

/// The scenarios of a spec, in words.
fn known(names: &[String]) -> String {
    match names {
        [only] => format!("its only one is `{only}`"),
        all => format!("its scenarios are `{}`", all.join("`, `")),
    }
}

/// Reads a file as a run.
///
/// A row's times become points in time as `gate` itself would have measured them: t0 is `send_s`, counted from the
/// first row's. The last token is `e2e_ms` after that. TPOT follows from these by its one definition,
/// (e2e − ttft) ÷ (output tokens − 1); the row's own `tpot_ms` is used only where `e2e_ms` is null, since other tools
/// define it otherwise. Imported token counts count as the server's usage.
///
/// A file may hold both arms of a side-by-side run, as many rows of each, each arm in its own send order; where no row
/// has a `pair`, the i-th row of the reference is the pair of the i-th row of the target. The run has the arms that the
/// file has: the spec in its header loses a `reference` that has no row, and where it has none gets the target's own.
///
/// Where the spec has several scenarios each row names its own, and each has rows. Those that run in turn become
/// sections, whose times count from the first of their own rows; `send_s` may start anew in each. Together they are one
/// section. A `turn` is that within a conversation, from 0.
///
/// # Errors
/// [`ImportError`], with the line and the field.
pub fn import(format: Format, import: Import<'_>) -> Result<Run, ImportError> {
    let text = import.text;
    let rows = match format {
        Format::Samples => samples::read(text, &import.spec),
        Format::Vllm => {
            vllm::read(text, is_steady(&import.spec)).and_then(|seen| samples::placed(seen::rows(seen)?, &import.spec))
        }
        Format::K6 => k6::read(text).and_then(|seen| samples::placed(seen::rows(seen)?, &import.spec)),
        Format::Vegeta => vegeta::read(text).and_then(|seen| samples::placed(seen::rows(seen)?, &import.spec)),
    };
    rows.and_then(|rows| samples::run_of(rows, format.name(), import)).map_err(|error| match Format::of(text) {
        Some(seems) if seems != format => ImportError::Other { error: Box::new(error), seems },
        _ => error,
    })
}

/// Whether no scenario's load has a shape.
fn is_steady(spec: &GateSpec) -> bool {
    spec.sections().into_iter().flatten().all(|scenario| spec.load_of(scenario).pattern == Pattern::Steady)
}

/// Whether a file holds rows of a reference, so that it can be judged by checks relative to one. Nothing else of it is
/// checked.
#[must_use]
pub fn has_reference(format: Format, text: &str) -> bool {
    // Other tools measure one endpoint at a time.
    format == Format::Samples && samples::has_reference(text)
}
