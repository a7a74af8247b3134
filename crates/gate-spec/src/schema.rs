//! The JSON Schema, made from the field table.

use gate_model::{Direction, Metric, Series};
use serde_json::{Map, Value, json};

use crate::baseline;
use crate::field::{Field, Kind, Leaf, Least, Presence};
use crate::leaf;
use crate::table::{CHECK, FAULT, ROOT};

/// Where a text may stand in for a value: it holds a variable.
const VARIABLE: &str = r"\$\{";
/// Numbers in quotes, which read as they do without them. Their limits are not in the schema.
const NUMBER: &str = r"^\s*[0-9.]+\s*$";
const WHOLE: &str = r"^\s*[0-9]+\s*$";
const NOUGHT: &str = r"^\s*[0.]+\s*$";
const TIME: &str = r"^\s*[0-9.]+\s*(ns|us|µs|μs|ms|s|m|h|d)\s*$";
const QUANTITY: &str = r"\$?\s*[0-9.]+\s*[A-Za-zµμ%/]*";
const PERCENT: &str = r"^\s*[0-9.]+\s*%\s*$";

/// The JSON Schema of a gate spec: every key that is supported, with its description and default.
///
/// It is of draft 7, which editors know best, and for them: what it allows may still be refused by rules between
/// keys, but a spec that reads is allowed by it.
#[must_use]
pub fn json_schema() -> Value {
    let mut schema = Map::new();
    schema.insert("$schema".to_owned(), json!("http://json-schema.org/draft-07/schema#"));
    schema.insert("$id".to_owned(), json!("urn:gate:spec:1"));
    schema.insert("title".to_owned(), json!("gate spec"));
    schema.insert("description".to_owned(), json!("A performance gate for an LLM inference endpoint."));
    schema.extend(object(ROOT));
    schema.insert("definitions".to_owned(), json!({"check": check(), "long_check": object(CHECK)}));
    Value::Object(schema)
}

/// A check as text. Its examples are what editors propose: every common metric that can be checked, with a bound in its unit.
fn check() -> Value {
    let example = |name: String| {
        // Nothing is looked up during the load, so no check of it reads.
        let metric = name.parse().ok().filter(|metric| !matches!(metric, Metric::Series(Series::Dns, _)))?;
        let op = if metric.direction() == Direction::Higher { ">=" } else { "<" };
        Some(format!("{name} {op} {}", metric.unit().example()))
    };
    let relative = ["ttft.p50 < baseline + 15% or 20ms", "ttft.p50 < reference + 10%", "attainment >= baseline - 2pp"];
    let fixed = Metric::common_names().into_iter().filter_map(example);
    let examples: Vec<_> = fixed.chain(relative.map(str::to_owned)).collect();
    let relative = format!(r"(baseline|reference)(\s*[+-]\s*{QUANTITY}(\s*or\s*{QUANTITY})?)?");
    let share = r"[0-9.]+\s*%\s*of\s+[A-Za-z0-9][A-Za-z0-9._-]*";
    json!({
        "description": "METRIC OPERATOR BOUND: the condition that passes, such as `ttft.p95 < 800ms`.",
        "type": "string",
        "pattern": format!(r"^\s*[A-Za-z0-9_.:]+\s*(<|<=|>|>=|==)\s*({QUANTITY}|{relative}|{share})\s*$|{VARIABLE}"),
        "examples": examples,
    })
}

fn object(fields: &[Field]) -> Map<String, Value> {
    let properties: Map<_, _> = fields.iter().map(|field| (field.name.to_owned(), property(field))).collect();
    let required = fields.iter().filter(|field| matches!(field.presence, Presence::Required));
    let required: Vec<_> = required.map(|field| field.name).collect();
    let mut schema = Map::new();
    schema.insert("type".to_owned(), json!("object"));
    schema.insert("properties".to_owned(), Value::Object(properties));
    schema.insert("additionalProperties".to_owned(), json!(false));
    if !required.is_empty() {
        schema.insert("required".to_owned(), json!(required));
    }
    schema
}

/// The keys of a map in which nothing stands in for what is left out.
fn part(fields: &[Field]) -> Map<String, Value> {
    let mut schema = object(fields);
    schema.remove("required");
    let properties = schema.get_mut("properties").and_then(Value::as_object_mut);
    for property in properties.into_iter().flat_map(Map::values_mut).filter_map(Value::as_object_mut) {
        property.remove("default");
    }
    schema
}

/// A map with exactly one of these keys.
fn choice(fields: &[Field]) -> Map<String, Value> {
    let mut schema = object(fields);
    schema.insert("minProperties".to_owned(), json!(1));
    schema.insert("maxProperties".to_owned(), json!(1));
    schema
}

fn property(field: &Field) -> Value {
    let mut schema = Map::new();
    schema.insert("description".to_owned(), json!(field.doc));
    let kind = match &field.kind {
        Kind::Leaf(leaf) => value(*leaf),
        Kind::Map(fields) => Value::Object(object(fields)),
        Kind::Part(fields) => Value::Object(part(fields)),
        Kind::OneOf { fields, bare } => {
            let words: Vec<_> = bare.iter().map(|(name, _)| *name).collect();
            json!({"anyOf": [{"enum": words}, {"type": "string", "pattern": VARIABLE}, choice(fields)]})
        }
        Kind::Maps(fields) => json!({"type": "array", "items": object(fields)}),
        Kind::Named(fields) => json!({
            "type": "object",
            "patternProperties": {(leaf::NAME): object(fields)},
            "additionalProperties": false
        }),
        Kind::Short { leaf, fields, absent, .. } => {
            let forms = json!({"anyOf": [value(*leaf), object(fields)]});
            if !absent.is_empty() {
                let absent: Map<_, _> = absent.iter().map(|(name, text)| ((*name).to_owned(), literal(text))).collect();
                schema.insert("default".to_owned(), Value::Object(absent));
            }
            forms
        }
        Kind::Headers => json!({"type": "object", "additionalProperties": {"type": ["string", "number", "boolean"]}}),
        Kind::Free => json!({"type": "object"}),
        Kind::List(leaf) => json!({"type": "array", "items": value(*leaf)}),
        Kind::Checks => json!({
            "type": "array",
            "items": {"anyOf": [{"$ref": "#/definitions/check"}, {"$ref": "#/definitions/long_check"}]}
        }),
        Kind::Script => json!({
            "type": "object",
            "patternProperties": {r"^[0-9]+(\.\.[0-9]+)?$": value(FAULT)},
            "additionalProperties": false
        }),
    };
    if let Value::Object(kind) = kind {
        schema.extend(kind);
    }
    if let Presence::Default(text) = field.presence {
        schema.insert("default".to_owned(), literal(text));
    }
    Value::Object(schema)
}

/// A default as it would be written.
fn literal(text: &str) -> Value {
    if text == "{}" {
        return json!({});
    }
    // A number or a flag reads as JSON; everything else is a text.
    serde_json::from_str(text).unwrap_or_else(|_| json!(text))
}

/// One value. `pattern` binds texts only: a number field takes numbers, and texts that are one or have a variable. What
/// YAML reads as a number or a flag is a text to a field that takes any.
fn value(leaf: Leaf) -> Value {
    let or_variable = |pattern: &str| format!("{pattern}|{VARIABLE}");
    let any = || json!(["string", "number", "boolean"]);
    match leaf {
        Leaf::Version => json!({"enum": [1, "1"]}),
        Leaf::Name => json!({"type": any(), "pattern": or_variable(leaf::NAME)}),
        Leaf::Text | Leaf::Credential => json!({"type": any()}),
        Leaf::Check => json!({"allOf": [{"$ref": "#/definitions/check"}]}),
        Leaf::Reason => json!({"type": any(), "minLength": 1}),
        Leaf::Date => {
            json!({"type": "string", "pattern": or_variable("^[0-9]{4}-[0-9]{2}-[0-9]{2}$")})
        }
        Leaf::Flag => json!({"type": ["boolean", "string"], "pattern": or_variable(r"^\s*(true|false)\s*$")}),
        Leaf::Url => json!({"type": "string"}),
        Leaf::Path => json!({"type": "string", "pattern": or_variable("^auto$|^/")}),
        Leaf::File => json!({"type": any(), "minLength": 1}),
        Leaf::Route => json!({"type": "string", "pattern": or_variable("^/")}),
        Leaf::Pointer => json!({"type": "string", "pattern": or_variable("^/([^~]|~[01])*$")}),
        Leaf::HeaderName => json!({"type": "string", "pattern": or_variable(r"^[A-Za-z0-9!#$%&'*+.^_`|~-]+$")}),
        Leaf::Time { least: Least::Zero, .. } => {
            let pattern = or_variable(&format!("{TIME}|{NOUGHT}"));
            json!({"type": ["string", "integer"], "maximum": 0, "minimum": 0, "pattern": pattern})
        }
        Leaf::Time { .. } => json!({"type": "string", "pattern": or_variable(TIME)}),
        Leaf::TimeOrNone => {
            let pattern = or_variable(&format!("{TIME}|{NOUGHT}|^none$"));
            json!({"type": ["string", "integer"], "maximum": 0, "minimum": 0, "pattern": pattern})
        }
        Leaf::Share => {
            let pattern = or_variable(&format!("{PERCENT}|{NOUGHT}"));
            json!({"type": ["string", "integer"], "maximum": 0, "minimum": 0, "pattern": pattern})
        }
        Leaf::Confidence => json!({"type": "string", "pattern": or_variable(PERCENT)}),
        Leaf::Bytes => {
            let pattern = or_variable(&format!(r"^\s*[0-9]+\s*(B|KiB|MiB)\s*$|{NOUGHT}"));
            json!({"type": ["string", "integer"], "maximum": 0, "minimum": 0, "pattern": pattern})
        }
        Leaf::Rate { least: Least::Zero } => json!({
            "type": ["number", "string"], "minimum": 0, "maximum": 100_000, "pattern": or_variable(NUMBER)
        }),
        Leaf::Rate { .. } => json!({
            "type": ["number", "string"], "exclusiveMinimum": 0, "maximum": 100_000, "pattern": or_variable(NUMBER)
        }),
        Leaf::Rates => {
            let pattern = or_variable(r"^\s*[0-9.]+?\s*(\.\.\s*[0-9.]+\s*)?$");
            json!({"type": ["number", "string"], "minimum": 0, "maximum": 100_000, "pattern": pattern})
        }
        Leaf::TokenRate => {
            let pattern = or_variable(r"^\s*[0-9.]+\s*(tok/s\s*)?$");
            json!({"type": ["number", "string"], "exclusiveMinimum": 0, "pattern": pattern})
        }
        Leaf::PerHour => {
            let pattern = or_variable(&format!(r"^\s*[0-9.]+\s*%/h\s*$|{NOUGHT}"));
            json!({"type": ["string", "integer"], "maximum": 0, "minimum": 0, "pattern": pattern})
        }
        Leaf::Dollars { least } => {
            let bound = if least == Least::Zero { "minimum" } else { "exclusiveMinimum" };
            let pattern = or_variable(r"^\s*\$?\s*[0-9.]+\s*$");
            json!({"type": ["number", "string"], bound: 0, "pattern": pattern})
        }
        Leaf::Amount => {
            json!({"type": ["integer", "string"], "minimum": 1, "maximum": 1_000_000_000_000_u64, "pattern": or_variable(WHOLE)})
        }
        Leaf::Tokens { most } => {
            let pattern = or_variable(r"^\s*[0-9]+\s*(tokens?\s*)?$");
            json!({"type": ["integer", "string"], "minimum": 1, "maximum": most, "pattern": pattern})
        }
        Leaf::Turns => {
            let pattern = or_variable(r"^\s*[0-9]+\s*(\.\.\s*[0-9]+\s*)?$");
            json!({"type": ["integer", "string"], "minimum": 1, "maximum": 100, "pattern": pattern})
        }
        Leaf::Arrivals => {
            let pattern = or_variable(r"^\s*(poisson|constant|gamma\s*\(\s*[0-9.]+\s*\))\s*$");
            json!({"type": "string", "pattern": pattern})
        }
        Leaf::Metrics => json!({"type": "string", "pattern": or_variable("^(/|https?://|unix:)")}),
        Leaf::Image => json!({"type": any(), "minLength": 1}),
        Leaf::Number { least: Least::One } => {
            json!({"type": ["number", "string"], "minimum": 1, "pattern": or_variable(NUMBER)})
        }
        Leaf::Number { least: Least::Zero } => {
            json!({"type": ["number", "string"], "minimum": 0, "pattern": or_variable(NUMBER)})
        }
        Leaf::Number { least: Least::AboveZero } => {
            json!({"type": ["number", "string"], "exclusiveMinimum": 0, "pattern": or_variable(NUMBER)})
        }
        Leaf::Count { least, most } => {
            json!({"type": ["integer", "string"], "minimum": least, "maximum": most, "pattern": or_variable(WHOLE)})
        }
        Leaf::CountOrNone { most } => {
            let pattern = or_variable(&format!("{WHOLE}|^none$"));
            json!({"type": ["integer", "string"], "minimum": 1, "maximum": most, "pattern": pattern})
        }
        Leaf::Warmup => {
            json!({"type": ["integer", "string"], "minimum": 0, "maximum": 1000, "pattern": or_variable(WHOLE)})
        }
        Leaf::Seed => json!({"type": ["integer", "string"], "minimum": 0, "pattern": or_variable(WHOLE)}),
        Leaf::From => json!({"type": "string", "pattern": or_variable(baseline::FROM)}),
        Leaf::Store => json!({"type": any(), "minLength": 1}),
        Leaf::Iterations => {
            let pattern = or_variable(r"^\s*[0-9]+\s*(\.\.\s*[0-9]+\s*)?$");
            json!({"type": ["integer", "string"], "minimum": 1, "pattern": pattern})
        }
        Leaf::Word(words) => {
            // A word such as `1` is a number where it is written without quotes.
            let numbers = words.iter().map(|word| literal(word)).filter(Value::is_number);
            let words: Vec<_> = words.iter().map(|word| json!(word)).chain(numbers).collect();
            json!({"anyOf": [{"enum": words}, {"type": "string", "pattern": VARIABLE}]})
        }
    }
}
