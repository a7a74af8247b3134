//! One line of a `samples` file, checked field by field.

use std::fmt;

use gate_model::{Arm, Nanos, Outcome};
use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::{Map, Value};

use crate::ImportError;

/// How much of a wrong value is shown, in characters.
const SHOWN: usize = 60;

/// The largest time a field may hold, in its own unit: past it, points in time would not fit.
const LARGEST: f64 = 9e9;
/// The largest count.
const MOST: f64 = 1e15;

/// One request, as the file has it.
pub(crate) struct Row {
    /// Seconds, from any start.
    pub(crate) send_s: f64,
    pub(crate) outcome: Outcome,
    pub(crate) status: Option<u16>,
    pub(crate) ttft: Option<Nanos>,
    /// From t0 to the last token.
    pub(crate) e2e: Option<Nanos>,
    pub(crate) output_tokens: Option<u64>,
    pub(crate) input_tokens: Option<u64>,
    pub(crate) scenario: Option<String>,
    /// The turn within its conversation, from 0.
    pub(crate) turn: u16,
    pub(crate) arm: Arm,
    pub(crate) pair: Option<u32>,
}

/// A line's fields, with the line's number for messages.
struct Fields {
    line: usize,
    fields: Map<String, Value>,
}

impl Row {
    /// Reads one line.
    pub(crate) fn parse(line: usize, text: &str) -> Result<Self, ImportError> {
        let not_an_object = |message: String| ImportError::NotAnObject { line, message };
        let fields = match serde_json::from_str(text) {
            Ok(Object { twice: Some(field), .. }) => {
                return Err(ImportError::FieldTwice { line, field: clip(&field.escape_debug().to_string()) });
            }
            Ok(Object { fields, .. }) => Fields { line, fields },
            Err(error) => {
                return Err(not_an_object(match serde_json::from_str::<Value>(text) {
                    Ok(other) => format!("it is {}", shown(&other)),
                    Err(_) => without_place(&error),
                }));
            }
        };
        let (outcome, status) = fields.status()?;
        let send_s = fields.number("send_s")?.ok_or_else(|| fields.wrong("send_s", SECONDS))?;
        let ttft_ms = fields.nullable("ttft_ms")?;
        let tpot_ms = fields.nullable("tpot_ms")?;
        let e2e_ms = fields.nullable("e2e_ms")?;
        let output_tokens = fields.nullable_count("output_tokens")?;
        if outcome == Outcome::Ok && ttft_ms.is_none() {
            return Err(fields.wrong("ttft_ms", "a number on the row of a request that was ok"));
        }
        // Where only TPOT is known, the last token follows from it.
        let from_tpot = || {
            let gaps = output_tokens?.checked_sub(1)?;
            Some(ttft_ms? + tpot_ms.unwrap_or(0.0) * gaps as f64).filter(|_| gaps == 0 || tpot_ms.is_some())
        };
        let last_ms = e2e_ms.or_else(from_tpot);
        if outcome == Outcome::Ok && last_ms.is_none() {
            return Err(fields.wrong("e2e_ms", "a number on the row of a request that was ok"));
        }
        if let (Some(ttft_ms), Some(last_ms)) = (ttft_ms, last_ms)
            && last_ms < ttft_ms
        {
            let [e2e_ms, ttft_ms] = [last_ms, ttft_ms].map(|millis| millis.to_string());
            return Err(ImportError::EndsBeforeItStarts { line, e2e_ms, ttft_ms });
        }
        let nanos = |millis: f64| Nanos::from_secs_f64(millis / 1e3);
        Ok(Self {
            send_s,
            outcome,
            status,
            ttft: ttft_ms.map(nanos),
            e2e: last_ms.map(nanos),
            output_tokens,
            input_tokens: fields.count("input_tokens")?,
            scenario: fields.text("scenario")?.map(str::to_owned),
            turn: fields.turn()?,
            arm: fields.arm()?,
            pair: fields.pair()?,
        })
    }
}

const SECONDS: &str = "a number of seconds from 0 to 9000000000";
const MILLIS: &str = "a number of milliseconds from 0 to 9000000000, or null";
const COUNT: &str = "a whole number from 0 to 1000000000000000";
const TURN: &str = "a whole number from 0 to 65535";
const PAIR: &str = "a whole number from 0 to 4294967295";

impl Fields {
    /// The field's value; `None` where it is absent or null.
    fn get(&self, field: &str) -> Option<&Value> {
        self.fields.get(field).filter(|value| !value.is_null())
    }

    fn wrong(&self, field: &'static str, expected: &'static str) -> ImportError {
        let found = shown(self.fields.get(field).unwrap_or(&Value::Null));
        ImportError::Wrong { line: self.line, field, expected, found }
    }

    fn present(&self, field: &'static str, nullable: bool) -> Result<(), ImportError> {
        let missing = ImportError::Missing { line: self.line, field, nullable };
        if self.fields.contains_key(field) { Ok(()) } else { Err(missing) }
    }

    /// A number of seconds or milliseconds; the field must be there.
    fn number(&self, field: &'static str) -> Result<Option<f64>, ImportError> {
        self.present(field, false)?;
        self.time(field, SECONDS)
    }

    /// A number of milliseconds, or null; the field must be there.
    fn nullable(&self, field: &'static str) -> Result<Option<f64>, ImportError> {
        self.present(field, true)?;
        self.time(field, MILLIS)
    }

    fn time(&self, field: &'static str, expected: &'static str) -> Result<Option<f64>, ImportError> {
        let Some(value) = self.get(field) else { return Ok(None) };
        let number = value.as_f64().filter(|number| (0.0..=LARGEST).contains(number));
        number.map(Some).ok_or_else(|| self.wrong(field, expected))
    }

    /// A count, or null; the field must be there.
    fn nullable_count(&self, field: &'static str) -> Result<Option<u64>, ImportError> {
        self.present(field, true)?;
        self.count(field)
    }

    /// A count, if there is one.
    fn count(&self, field: &'static str) -> Result<Option<u64>, ImportError> {
        let Some(value) = self.get(field) else { return Ok(None) };
        whole(value).map(Some).ok_or_else(|| self.wrong(field, COUNT))
    }

    fn text(&self, field: &'static str) -> Result<Option<&str>, ImportError> {
        let Some(value) = self.get(field) else { return Ok(None) };
        value.as_str().map(Some).ok_or_else(|| self.wrong(field, "a text"))
    }

    fn pair(&self) -> Result<Option<u32>, ImportError> {
        let Some(value) = self.get("pair") else { return Ok(None) };
        let pair = whole(value).and_then(|pair| u32::try_from(pair).ok());
        pair.map(Some).ok_or_else(|| self.wrong("pair", PAIR))
    }

    fn turn(&self) -> Result<u16, ImportError> {
        let Some(value) = self.get("turn") else { return Ok(0) };
        let turn = whole(value).and_then(|turn| u16::try_from(turn).ok());
        turn.ok_or_else(|| self.wrong("turn", TURN))
    }

    fn arm(&self) -> Result<Arm, ImportError> {
        match self.text("arm")? {
            None | Some("target") => Ok(Arm::Target),
            Some("reference") => Ok(Arm::Reference),
            Some(_) => Err(self.wrong("arm", "\"target\" or \"reference\"")),
        }
    }

    /// The outcome, and the HTTP status where the row has one.
    fn status(&self) -> Result<(Outcome, Option<u16>), ImportError> {
        self.present("status", false)?;
        let unknown =
            || self.wrong("status", "an HTTP status (200 to 599) or the name of an outcome, such as \"reset\"");
        match self.get("status") {
            Some(Value::String(name)) => {
                let outcome = Outcome::ALL.into_iter().find(|outcome| outcome.name() == name);
                outcome.map(|outcome| (outcome, None)).ok_or_else(unknown)
            }
            Some(value) => {
                let status = value.as_u64().and_then(|status| u16::try_from(status).ok()).ok_or_else(unknown)?;
                let outcome = match status {
                    200..=299 => Outcome::Ok,
                    429 => Outcome::Http429,
                    300..=499 => Outcome::Http4xx,
                    500..=599 => Outcome::Http5xx,
                    _ => return Err(unknown()),
                };
                Ok((outcome, Some(status)))
            }
            None => Err(unknown()),
        }
    }
}

/// A count. Tools that write `12.0` mean 12.
fn whole(value: &Value) -> Option<u64> {
    let number = value.as_f64().filter(|number| number.fract() == 0.0 && (0.0..=MOST).contains(number));
    // Every whole number up to there is a double.
    number.map(|number| number as u64)
}

/// A JSON object, and a field that it has twice: which of the two is meant, nobody knows.
struct Object {
    fields: Map<String, Value>,
    twice: Option<String>,
}

impl<'de> Deserialize<'de> for Object {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Reader;
        impl<'de> Visitor<'de> for Reader {
            type Value = Object;

            fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                out.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Object, A::Error> {
                let mut object = Object { fields: Map::new(), twice: None };
                while let Some((field, value)) = entries.next_entry::<String, Value>()? {
                    if object.fields.contains_key(&field) {
                        object.twice.get_or_insert(field);
                    } else {
                        object.fields.insert(field, value);
                    }
                }
                Ok(object)
            }
        }
        from.deserialize_map(Reader)
    }
}

/// A value as a message shows it, shortened.
fn shown(value: &Value) -> String {
    match value {
        Value::Array(_) => "a list".to_owned(),
        Value::Object(_) => "an object".to_owned(),
        other => clip(&other.to_string()),
    }
}

fn clip(text: &str) -> String {
    if text.chars().count() <= SHOWN { text.to_owned() } else { text.chars().take(SHOWN).chain(['…']).collect() }
}

/// The error without serde_json's own place, which would count from the start of this one line.
fn without_place(error: &serde_json::Error) -> String {
    let text = error.to_string();
    text.rfind(" at line ").map_or(text.clone(), |end| format!("{} at column {}", &text[..end], error.column()))
}
