//! The JSON Schema, made from the field table.

use serde_json::{Map, Value, json};

use crate::field::{Field, Kind, Leaf, Least, Presence};
use crate::leaf;
use crate::table::{CHECK, ROOT};

/// Where a text may stand in for a value: it holds a variable.
const VARIABLE: &str = r"\$\{";
const TIME: &str = r"^\s*[0-9.]+\s*(ns|us|µs|ms|s|m|h|d)\s*$";

/// The JSON Schema of a gate spec: every key that is supported, with its description and default.
#[must_use]
pub fn json_schema() -> Value {
    let mut schema = object(ROOT);
    schema.insert("$schema".to_owned(), json!("https://json-schema.org/draft/2020-12/schema"));
    schema.insert("title".to_owned(), json!("gate spec"));
    schema.insert("description".to_owned(), json!("A performance gate for an LLM inference endpoint."));
    Value::Object(schema)
}

fn object(fields: &[Field]) -> Map<String, Value> {
    let known = || fields.iter().filter(|field| !field.is_later());
    let properties: Map<_, _> = known().map(|field| (field.name.to_owned(), property(field))).collect();
    let required = known().filter(|field| matches!(field.presence, Presence::Required));
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

fn property(field: &Field) -> Value {
    let mut schema = Map::new();
    schema.insert("description".to_owned(), json!(field.doc));
    let kind = match &field.kind {
        Kind::Leaf(leaf) => value(*leaf),
        Kind::Map(fields) => Value::Object(object(fields)),
        Kind::Short { leaf, fields, absent, .. } => {
            let absent: Map<_, _> = absent.iter().map(|(name, text)| ((*name).to_owned(), literal(text))).collect();
            json!({"anyOf": [value(*leaf), object(fields)], "default": absent})
        }
        Kind::Headers => json!({"type": "object", "additionalProperties": {"type": ["string", "number", "boolean"]}}),
        Kind::Free => json!({"type": "object"}),
        Kind::Checks => json!({"type": "array", "items": {"anyOf": [{"type": "string"}, object(CHECK)]}}),
        Kind::Later => json!({}),
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
    text.parse::<u64>().map_or_else(|_| json!(text), |number| json!(number))
}

/// One value. `pattern` binds texts only, so that a number field takes numbers, or texts with a variable.
fn value(leaf: Leaf) -> Value {
    let or_variable = |pattern: &str| format!("{pattern}|{VARIABLE}");
    match leaf {
        Leaf::Version => json!({"const": 1}),
        Leaf::Name => json!({"type": "string", "pattern": or_variable(leaf::NAME)}),
        Leaf::Text | Leaf::Credential => json!({"type": ["string", "number", "boolean"]}),
        Leaf::Url => json!({"type": "string"}),
        Leaf::Path => json!({"type": "string", "pattern": or_variable("^auto$|^/")}),
        Leaf::Time { least: Least::Zero, .. } => {
            json!({"type": ["string", "integer"], "maximum": 0, "minimum": 0, "pattern": or_variable(TIME)})
        }
        Leaf::Time { least: Least::AboveZero, .. } => json!({"type": "string", "pattern": or_variable(TIME)}),
        Leaf::TimeOrNone => {
            let pattern = or_variable(&format!("{TIME}|^none$"));
            json!({"type": ["string", "integer"], "maximum": 0, "minimum": 0, "pattern": pattern})
        }
        Leaf::Share => {
            let pattern = or_variable(r"^\s*[0-9.]+\s*%\s*$");
            json!({"type": ["string", "integer"], "maximum": 0, "minimum": 0, "pattern": pattern})
        }
        Leaf::Rate => json!({
            "type": ["number", "string"], "exclusiveMinimum": 0, "maximum": 100_000, "pattern": VARIABLE
        }),
        Leaf::Number { least: Least::Zero } => {
            json!({"type": ["number", "string"], "minimum": 0, "pattern": VARIABLE})
        }
        Leaf::Number { least: Least::AboveZero } => {
            json!({"type": ["number", "string"], "exclusiveMinimum": 0, "pattern": VARIABLE})
        }
        Leaf::Count { least, most } => {
            json!({"type": ["integer", "string"], "minimum": least, "maximum": most, "pattern": VARIABLE})
        }
        Leaf::CountOrNone { most } => {
            json!({"type": ["integer", "string"], "minimum": 1, "maximum": most, "pattern": or_variable("^none$")})
        }
        Leaf::Warmup => json!({"type": ["integer", "string"], "minimum": 0, "maximum": 1000, "pattern": VARIABLE}),
        Leaf::Seed => json!({"type": ["integer", "string"], "minimum": 0, "pattern": VARIABLE}),
        Leaf::Iterations => {
            let pattern = or_variable(r"^\s*[0-9]+\s*(\.\.\s*[0-9]+\s*)?$");
            json!({"type": ["integer", "string"], "minimum": 1, "pattern": pattern})
        }
        Leaf::Word(words, _) => {
            json!({"anyOf": [{"enum": words}, {"type": "string", "pattern": VARIABLE}]})
        }
    }
}
