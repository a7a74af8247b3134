//! How much memory a KV cache takes, and whether it fits beside the weights.

use std::fmt::{self, Display};
use std::str::FromStr;

use serde::Serialize;

use crate::{Architecture, Attention, CapacityError, Layer};

/// How a number is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Dtype {
    /// 4 bytes.
    Fp32,
    /// 2 bytes.
    Fp16,
    /// 2 bytes.
    Bf16,
    /// 1 byte.
    Fp8,
    /// 1 byte.
    Int8,
    /// Half a byte: of weights; the scales that come with it are not counted.
    Int4,
}

impl Dtype {
    const ALL: [(&'static str, Self); 6] = [
        ("fp32", Self::Fp32),
        ("fp16", Self::Fp16),
        ("bf16", Self::Bf16),
        ("fp8", Self::Fp8),
        ("int8", Self::Int8),
        ("int4", Self::Int4),
    ];

    /// Bits of one number.
    #[must_use]
    pub fn bits(self) -> u64 {
        match self {
            Self::Fp32 => 32,
            Self::Fp16 | Self::Bf16 => 16,
            Self::Fp8 | Self::Int8 => 8,
            Self::Int4 => 4,
        }
    }
}

impl Display for Dtype {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = Self::ALL.iter().find(|(_, dtype)| dtype == self).map_or("", |(name, _)| name);
        formatter.write_str(name)
    }
}

impl FromStr for Dtype {
    type Err = CapacityError;

    /// Reads a name as engines and configurations write it: `fp16`, `float16`, `bfloat16`, `fp8_e4m3`.
    fn from_str(text: &str) -> Result<Self, CapacityError> {
        let text = text.to_ascii_lowercase();
        let short = match text.as_str() {
            "float32" | "float" => "fp32",
            "float16" | "half" => "fp16",
            "bfloat16" => "bf16",
            long if long.starts_with("fp8_") || long.starts_with("float8") => "fp8",
            other => other,
        };
        let known = Self::ALL.iter().find(|(name, _)| *name == short).map(|(_, dtype)| *dtype);
        known.ok_or_else(|| CapacityError::range("the number format", text, "fp32, fp16, bf16, fp8, int8 or int4"))
    }
}

/// The bytes that the KV cache of so many sequences of so many tokens takes on all GPUs together.
///
/// Of a layer with heads: `2 × kv_heads × head_dim × tokens × sequences × bytes`; with multi-head latent attention
/// `(kv_lora_rank + qk_rope_head_dim) × tokens × sequences × bytes`. A layer with a window keeps at most that many tokens.
/// Pages that are not full, and what engines keep beside it, are not counted.
///
/// # Errors
/// [`CapacityError::OutOfRange`] for no tokens or sequences, [`CapacityError::TooLarge`] beyond 64 bits.
pub fn cache_bytes(model: &Architecture, context: u64, sequences: u64, dtype: Dtype) -> Result<u64, CapacityError> {
    for (what, value) in [("a context of", context), ("a batch of", sequences)] {
        if value == 0 {
            return Err(CapacityError::range(what, value, "at least 1"));
        }
    }
    let of_token = match model.attention {
        Attention::Heads { kv_heads, head_dim } => 2 * u128::from(kv_heads) * u128::from(head_dim),
        Attention::Latent { rank, rope } => u128::from(rank) + u128::from(rope),
    };
    let kept = |layer: &Layer| match layer {
        Layer::Full => context,
        Layer::Window(window) => context.min(*window),
        Layer::State => 0,
    };
    let tokens: u128 = model.layers.iter().map(|layer| u128::from(kept(layer))).sum();
    let values = of_token.checked_mul(tokens).and_then(|values| values.checked_mul(u128::from(sequences)));
    let bytes = values.and_then(|values| values.checked_mul(u128::from(dtype.bits()))).map(|bits| bits.div_ceil(8));
    bytes.and_then(|bytes| u64::try_from(bytes).ok()).ok_or(CapacityError::TooLarge("this context and batch"))
}

/// The bytes that a model's weights take.
///
/// # Errors
/// [`CapacityError::TooLarge`] beyond 64 bits.
pub fn weight_bytes(parameters: u64, dtype: Dtype) -> Result<u64, CapacityError> {
    let bits = u128::from(parameters) * u128::from(dtype.bits());
    u64::try_from(bits.div_ceil(8)).map_err(|_| CapacityError::TooLarge("this number of parameters"))
}

/// The memory that weights and cache are to fit in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Memory {
    /// Bytes of one GPU.
    pub per_gpu: u64,
    /// GPUs that share the model (tensor parallel).
    pub gpus: u64,
}

/// How full memory is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Room {
    /// Up to 85 %: activations and the engine itself have their place.
    Fits,
    /// Over 85 %: a longer prompt or a larger batch may not fit.
    Tight,
    /// Over 95 %: activations, CUDA graphs and fragmentation will not fit beside it.
    TooTight,
    /// More than there is.
    DoesNotFit,
}

/// What is used of the memory there is.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Fit {
    /// Bytes of weights, on all GPUs.
    pub weights: u64,
    /// Bytes of cache, on all GPUs: more than [`cache_bytes`] where there are more GPUs than KV heads, each of which then
    /// keeps a whole one.
    pub cache: u64,
    /// Bytes of memory, on all GPUs.
    pub memory: u64,
    /// Weights and cache over memory, as a share.
    pub used: f64,
    /// What that means.
    pub room: Room,
}

/// Whether weights and a cache fit. Weights are split over all GPUs, and so is a cache by its heads: where GPUs are more
/// than KV heads, heads are kept several times, and a latent vector on every GPU.
///
/// # Errors
/// [`CapacityError::OutOfRange`] for no memory or GPU, [`CapacityError::TooLarge`] beyond 64 bits.
pub fn fit(model: &Architecture, cache: u64, weights: u64, memory: Memory) -> Result<Fit, CapacityError> {
    if memory.per_gpu == 0 || memory.gpus == 0 {
        return Err(CapacityError::range("GPU memory of", memory.per_gpu.min(memory.gpus), "at least 1"));
    }
    let too_large = || CapacityError::TooLarge("this memory");
    let all = memory.per_gpu.checked_mul(memory.gpus).ok_or_else(too_large)?;
    let cache = kept_in_all(model, cache, memory.gpus).ok_or_else(too_large)?;
    let used = (weights as f64 + cache as f64) / all as f64;
    let room = match used {
        used if used > 1.0 => Room::DoesNotFit,
        used if used > 0.95 => Room::TooTight,
        used if used > 0.85 => Room::Tight,
        _ => Room::Fits,
    };
    Ok(Fit { weights, cache, memory: all, used, room })
}

/// Bytes of a cache on all GPUs, with what is kept more than once.
fn kept_in_all(model: &Architecture, cache: u64, gpus: u64) -> Option<u64> {
    let copies = match model.attention {
        Attention::Heads { kv_heads, .. } => gpus.div_ceil(kv_heads.max(1)),
        Attention::Latent { .. } => gpus,
    };
    cache.checked_mul(copies)
}

/// The most sequences of this context that stay within 85 % of memory beside the weights; 0 where not one does.
///
/// # Errors
/// As [`cache_bytes`] and [`fit`].
pub fn most_sequences(
    model: &Architecture,
    context: u64,
    dtype: Dtype,
    weights: u64,
    memory: Memory,
) -> Result<u64, CapacityError> {
    let one = fit(model, cache_bytes(model, context, 1, dtype)?, weights, memory)?;
    let room = (u128::from(one.memory) * 85 / 100).saturating_sub(u128::from(weights));
    Ok(u64::try_from(room / u128::from(one.cache.max(1))).unwrap_or(u64::MAX))
}
