//! What a model's configuration says of its KV cache.

use serde::Serialize;
use serde_json::{Map, Value};

use crate::CapacityError;

/// The most layers, heads and dimensions that are believed: a configuration may come from anywhere.
const MOST: u64 = 1 << 24;

/// The most layers that are believed.
const MOST_LAYERS: u64 = 10_000;

/// What one layer keeps of each token.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Attention {
    /// A key and a value for each KV head: multi-head (as many as query heads), grouped-query (fewer) or multi-query (one).
    Heads {
        /// KV heads.
        kv_heads: u64,
        /// Values of a key, and of a value.
        head_dim: u64,
    },
    /// Multi-head latent attention: one latent vector for key and value together, and the part of the key that carries the
    /// position, shared by all heads.
    Latent {
        /// `kv_lora_rank`.
        rank: u64,
        /// `qk_rope_head_dim`.
        rope: u64,
    },
}

/// How many tokens a layer keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Layer {
    /// All of the context.
    Full,
    /// The last so many.
    Window(u64),
    /// None: linear attention and state-space layers keep a state of fixed size, which is not counted here.
    State,
}

/// What decides how large a model's KV cache is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Architecture {
    /// What each layer keeps of a token.
    pub attention: Attention,
    /// Every layer, in order.
    pub layers: Vec<Layer>,
    /// Query heads.
    pub heads: u64,
    /// The longest context the model takes; absent where its configuration does not say.
    pub max_context: Option<u64>,
    /// `torch_dtype` or `dtype`, as it is written.
    pub dtype: Option<String>,
}

impl Architecture {
    /// How many layers are of each kind: full, with a window, with a state alone.
    #[must_use]
    pub fn kinds(&self) -> [usize; 3] {
        let count = |is: fn(&Layer) -> bool| self.layers.iter().filter(|layer| is(layer)).count();
        [
            count(|layer| *layer == Layer::Full),
            count(|layer| matches!(layer, Layer::Window(_))),
            count(|layer| *layer == Layer::State),
        ]
    }
}

/// Reads a Hugging Face `config.json`: that of a decoder, or of a model whose `text_config` is one.
///
/// Grouped-query attention is `num_key_value_heads` (absent: as many as heads; `multi_query`: one), `head_dim` is
/// `hidden_size ÷ num_attention_heads` where it is not given, multi-head latent attention is told by `kv_lora_rank`, and
/// windows by `layer_types`, or else by `sliding_window` with `use_sliding_window`, `max_window_layers` and
/// `sliding_window_pattern`, as `transformers` reads them.
///
/// # Errors
/// That it is no JSON object, has no layers or heads, is an encoder-decoder, or names layers of a kind that is not known.
pub fn architecture(config: &str) -> Result<Architecture, CapacityError> {
    let whole: Value = serde_json::from_str(config).map_err(CapacityError::NotJson)?;
    let whole = whole.as_object().ok_or_else(|| wrong("model_type", "it is no JSON object"))?;
    if whole.get("is_encoder_decoder").and_then(Value::as_bool) == Some(true) {
        return Err(CapacityError::NotADecoder("it is an encoder-decoder, whose cache is another".to_owned()));
    }
    let is_decoder = LAYERS.iter().any(|key| whole.contains_key(*key));
    let inner = ["text_config", "llm_config", "language_config"].iter().find_map(|key| whole.get(*key)?.as_object());
    let config = if is_decoder { whole } else { inner.unwrap_or(whole) };
    let heads = needed(config, &HEADS)?;
    let count = needed(config, &LAYERS)?;
    if count > MOST_LAYERS {
        return Err(wrong("num_hidden_layers", format!("it is {count}, more than {MOST_LAYERS}")));
    }
    let types = layer_types(config, count)?;
    Ok(Architecture {
        attention: attention(config, heads)?,
        layers: types,
        heads,
        max_context: optional(config, &CONTEXT)?,
        dtype: dtype(config).or_else(|| dtype(whole)),
    })
}

fn dtype(config: &Map<String, Value>) -> Option<String> {
    ["torch_dtype", "dtype"].iter().find_map(|key| config.get(*key)?.as_str()).map(str::to_owned)
}

const LAYERS: [&str; 3] = ["num_hidden_layers", "n_layer", "n_layers"];
const HEADS: [&str; 3] = ["num_attention_heads", "n_head", "n_heads"];
const HIDDEN: [&str; 3] = ["hidden_size", "n_embd", "d_model"];
const CONTEXT: [&str; 3] = ["max_position_embeddings", "n_positions", "max_seq_len"];

fn attention(config: &Map<String, Value>, heads: u64) -> Result<Attention, CapacityError> {
    if let Some(rank) = optional(config, &["kv_lora_rank"])? {
        return Ok(Attention::Latent { rank, rope: needed(config, &["qk_rope_head_dim"])? });
    }
    let is_multi_query = config.get("multi_query").and_then(Value::as_bool) == Some(true);
    let kv_heads = optional(config, &["num_key_value_heads", "num_kv_heads"])?;
    let kv_heads = kv_heads.unwrap_or(if is_multi_query { 1 } else { heads });
    if kv_heads > heads {
        return Err(wrong("num_key_value_heads", format!("it is {kv_heads}, more than the {heads} heads")));
    }
    let head_dim = match optional(config, &["head_dim"])? {
        Some(given) => given,
        None => {
            let hidden = needed(config, &HIDDEN)?;
            if hidden % heads != 0 {
                return Err(wrong(
                    "head_dim",
                    format!("it is not given, and {hidden} is no multiple of {heads} heads"),
                ));
            }
            hidden / heads
        }
    };
    Ok(Attention::Heads { kv_heads, head_dim })
}

fn layer_types(config: &Map<String, Value>, count: u64) -> Result<Vec<Layer>, CapacityError> {
    let window = optional(config, &["sliding_window"])?;
    let count = usize::try_from(count).unwrap_or(usize::MAX);
    if let Some(types) = config.get("layer_types").filter(|types| !types.is_null()) {
        let types = types.as_array().ok_or_else(|| wrong("layer_types", "it is no list"))?;
        if types.len() != count {
            return Err(wrong("layer_types", format!("it names {} layers of {count}", types.len())));
        }
        return types.iter().map(|kind| layer(kind, window)).collect();
    }
    let is_off = config.get("use_sliding_window").and_then(Value::as_bool) == Some(false);
    let Some(window) = window.filter(|_| !is_off) else { return Ok(vec![Layer::Full; count]) };
    let model = config.get("model_type").and_then(Value::as_str).unwrap_or_default();
    // Every so many layers one keeps all.
    let usual = if model.starts_with("gemma3") {
        Some(6)
    } else if model == "gemma2" {
        Some(2)
    } else {
        None
    };
    let pattern = optional(config, &["sliding_window_pattern"])?.or(usual);
    // The first ones keep all.
    let first = optional(config, &["max_window_layers"])?.filter(|_| config.contains_key("use_sliding_window"));
    let is_full = |at: usize| match (pattern, first) {
        (Some(every), _) => (at as u64 + 1).is_multiple_of(every),
        (None, Some(first)) => (at as u64) < first,
        (None, None) => false,
    };
    Ok((0..count).map(|at| if is_full(at) { Layer::Full } else { Layer::Window(window) }).collect())
}

fn layer(kind: &Value, window: Option<u64>) -> Result<Layer, CapacityError> {
    match kind.as_str().unwrap_or_default() {
        "full_attention" | "attention" => Ok(Layer::Full),
        "sliding_attention" | "chunked_attention" => window
            .map(Layer::Window)
            .ok_or_else(|| wrong("sliding_window", "layers have a window, and it is not given")),
        "linear_attention" | "mamba" | "mamba2" | "conv" | "recurrent" => Ok(Layer::State),
        other => Err(wrong("layer_types", format!("no kind of layer is known as `{other}`"))),
    }
}

fn wrong(key: &'static str, why: impl Into<String>) -> CapacityError {
    CapacityError::Config { key, why: why.into() }
}

fn needed(config: &Map<String, Value>, keys: &[&'static str]) -> Result<u64, CapacityError> {
    optional(config, keys)?.ok_or_else(|| wrong(keys.first().copied().unwrap_or_default(), "it is not there"))
}

/// A number from 1, by any of its names.
fn optional(config: &Map<String, Value>, keys: &[&'static str]) -> Result<Option<u64>, CapacityError> {
    let Some((key, value)) =
        keys.iter().find_map(|key| Some((*key, config.get(*key).filter(|value| !value.is_null())?)))
    else {
        return Ok(None);
    };
    match value.as_u64() {
        Some(number @ 1..=MOST) => Ok(Some(number)),
        _ => Err(wrong(key, format!("it is {value}, and has to be a number from 1 to {MOST}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(config: &str) -> Architecture {
        architecture(config).unwrap()
    }

    fn heads(kv_heads: u64, head_dim: u64) -> Attention {
        Attention::Heads { kv_heads, head_dim }
    }

    #[test]
    fn every_way_to_share_keys_is_read() {
        let config =
            |more: &str| format!(r#"{{"num_hidden_layers": 2, "num_attention_heads": 8, "hidden_size": 512{more}}}"#);
        for (more, attention) in [
            ("", heads(8, 64)),
            (r#", "num_key_value_heads": 2"#, heads(2, 64)),
            (r#", "num_key_value_heads": null"#, heads(8, 64)),
            (r#", "num_key_value_heads": 2, "head_dim": 128"#, heads(2, 128)),
            (r#", "multi_query": true"#, heads(1, 64)),
            (r#", "kv_lora_rank": 512, "qk_rope_head_dim": 64"#, Attention::Latent { rank: 512, rope: 64 }),
        ] {
            assert_eq!(read(&config(more)).attention, attention, "{more}");
        }
        let old = read(r#"{"n_layer": 12, "n_head": 12, "n_embd": 768, "n_positions": 1024}"#);
        assert_eq!((old.attention, old.layers.len(), old.max_context), (heads(12, 64), 12, Some(1024)));
        let inner = read(&format!(r#"{{"model_type": "x", "dtype": "bfloat16", "text_config": {}}}"#, config("")));
        assert_eq!((inner.attention, inner.dtype.as_deref()), (heads(8, 64), Some("bfloat16")));
    }

    #[test]
    fn windows_are_read_as_they_are_meant() {
        let kinds = |more: &str| {
            let config = format!(r#"{{"num_hidden_layers": 12, "num_attention_heads": 4, "hidden_size": 64{more}}}"#);
            read(&config).kinds()
        };
        for (more, expected) in [
            ("", [12, 0, 0]),
            (r#", "sliding_window": 4096"#, [0, 12, 0]),
            (r#", "sliding_window": null"#, [12, 0, 0]),
            (r#", "sliding_window": 4096, "use_sliding_window": false, "max_window_layers": 4"#, [12, 0, 0]),
            (r#", "sliding_window": 4096, "use_sliding_window": true, "max_window_layers": 4"#, [4, 8, 0]),
            (r#", "sliding_window": 512, "model_type": "gemma3_text""#, [2, 10, 0]),
            (r#", "sliding_window": 512, "sliding_window_pattern": 3"#, [4, 8, 0]),
            (r#", "sliding_window": 4096, "model_type": "gemma2""#, [6, 6, 0]),
        ] {
            assert_eq!(kinds(more), expected, "{more}");
        }
        let named = |kinds: &str| {
            architecture(&format!(
                r#"{{"num_hidden_layers": 3, "num_attention_heads": 4, "hidden_size": 64, "sliding_window": 128,
                    "layer_types": {kinds}}}"#
            ))
        };
        let layers = named(r#"["sliding_attention", "full_attention", "linear_attention"]"#).unwrap().layers;
        assert_eq!(layers, [Layer::Window(128), Layer::Full, Layer::State]);
        let error = named(r#"["full_attention"]"#).unwrap_err().to_string();
        assert_eq!(error, "read `layer_types` of the configuration: it names 1 layers of 3");
        let error = named(r#"["full_attention", "other", "other"]"#).unwrap_err().to_string();
        assert_eq!(error, "read `layer_types` of the configuration: no kind of layer is known as `other`");
    }

    #[test]
    fn what_is_no_decoder_says_why() {
        for (config, words) in [
            ("{", "read the configuration as JSON"),
            ("[]", "it is no JSON object"),
            ("{}", "read `num_attention_heads` of the configuration: it is not there"),
            (r#"{"num_attention_heads": 0, "num_hidden_layers": 2}"#, "it is 0, and has to be a number from 1"),
            (r#"{"num_attention_heads": 1e99, "num_hidden_layers": 2}"#, "has to be a number from 1"),
            (
                r#"{"num_attention_heads": 3, "num_hidden_layers": 2, "hidden_size": 64}"#,
                "64 is no multiple of 3 heads",
            ),
            (
                r#"{"num_attention_heads": 3, "num_key_value_heads": 4, "num_hidden_layers": 2}"#,
                "more than the 3 heads",
            ),
            (r#"{"is_encoder_decoder": true}"#, "it is an encoder-decoder"),
            (r#"{"num_attention_heads": 8, "num_hidden_layers": 16000000}"#, "it is 16000000, more than 10000"),
        ] {
            let error = architecture(config).unwrap_err().to_string();
            assert!(error.contains(words), "{config}: {error}");
        }
    }
}
