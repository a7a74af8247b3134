//! Serialisation of `f64` that keeps infinities, which JSON has no number for.

use serde::{Deserialize, Deserializer, Serializer, de::Error};

#[derive(Deserialize)]
#[serde(untagged)]
enum Repr {
    Number(f64),
    Word(String),
}

/// Writes a finite number as a number, and `inf`, `-inf`, `nan` as words.
pub(crate) fn serialize<S: Serializer>(value: &f64, to: S) -> Result<S::Ok, S::Error> {
    if value.is_finite() {
        to.serialize_f64(*value)
    } else if value.is_nan() {
        to.serialize_str("nan")
    } else if *value > 0.0 {
        to.serialize_str("inf")
    } else {
        to.serialize_str("-inf")
    }
}

/// Reads what [`serialize`] wrote.
pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<f64, D::Error> {
    match Repr::deserialize(from)? {
        Repr::Number(value) => Ok(value),
        Repr::Word(word) => match word.as_str() {
            "inf" => Ok(f64::INFINITY),
            "-inf" => Ok(f64::NEG_INFINITY),
            "nan" => Ok(f64::NAN),
            _ => Err(D::Error::custom("expected a number, `inf`, `-inf` or `nan`")),
        },
    }
}
