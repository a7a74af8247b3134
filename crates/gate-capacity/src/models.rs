//! Models by name: those whose configuration is published, in `data/models.json`.

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::{Architecture, CapacityError, architecture};

const TEXT: &str = include_str!("../data/models.json");

/// When the file was last compared with the configurations that the models' authors publish.
pub const MODELS_DATE: &str = "2026-12-01";

/// A model whose configuration is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedModel {
    /// Its name here.
    pub name: String,
    /// Whose `config.json` it is from.
    pub source: String,
    /// Its parameters, to three digits, those of all experts.
    pub parameters: u64,
    /// What decides its cache.
    pub architecture: Architecture,
}

#[derive(Deserialize)]
struct File<'a> {
    #[serde(borrow)]
    models: Vec<Entry<'a>>,
}

#[derive(Deserialize)]
struct Entry<'a> {
    name: String,
    source: String,
    parameters: u64,
    #[serde(borrow)]
    config: &'a RawValue,
}

/// The names that are known.
///
/// # Errors
/// [`CapacityError::NotJson`], which the file that is compiled in never brings about.
pub fn model_names() -> Result<Vec<String>, CapacityError> {
    Ok(entries()?.into_iter().map(|entry| entry.name).collect())
}

/// A model by its name: `llama-3.1-70b`, also as `meta-llama/Llama-3.1-70B-Instruct`.
///
/// # Errors
/// [`CapacityError::UnknownModel`] with the name that is most like it.
pub fn model(name: &str) -> Result<NamedModel, CapacityError> {
    let entries = entries()?;
    let wanted = plain(name);
    let found = entries.iter().find(|entry| plain(&entry.name) == wanted || plain(&entry.source) == wanted);
    let Some(entry) = found else {
        let shared =
            |entry: &Entry<'_>| plain(&entry.name).chars().zip(wanted.chars()).take_while(|(a, b)| a == b).count();
        let nearest = entries.iter().max_by_key(|entry| shared(entry)).filter(|entry| shared(entry) >= 3);
        let nearest = nearest.map(|entry| entry.name.clone());
        return Err(CapacityError::UnknownModel { name: name.to_owned(), nearest });
    };
    Ok(NamedModel {
        name: entry.name.clone(),
        source: entry.source.clone(),
        parameters: entry.parameters,
        architecture: architecture(entry.config.get())?,
    })
}

fn entries() -> Result<Vec<Entry<'static>>, CapacityError> {
    serde_json::from_str(TEXT).map(|file: File<'static>| file.models).map_err(CapacityError::NotJson)
}

/// A name without whose it is and what it was tuned for.
fn plain(name: &str) -> String {
    let name = name.rsplit('/').next().unwrap_or_default().to_ascii_lowercase();
    let name = name.strip_prefix("meta-").unwrap_or(&name);
    ["-instruct", "-chat", "-it"].iter().find_map(|end| name.strip_suffix(end)).unwrap_or(name).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Attention, Dtype, Layer, Memory, Room, cache_bytes, fit, most_sequences, weight_bytes};

    const GIB: u64 = 1 << 30;

    fn cache(name: &str, context: u64, batch: u64) -> u64 {
        cache_bytes(&model(name).unwrap().architecture, context, batch, Dtype::Fp16).unwrap()
    }

    #[test]
    fn llama_70b_at_8k_takes_two_and_a_half_gibibytes() {
        // 2 × 80 layers × 8 KV heads × 128 × 8,192 tokens × 2 bytes. With its 64 query heads it would be eight times as much,
        // and a table that circulates has four times as much.
        assert_eq!(2_u64 * 80 * 8 * 128 * 8_192 * 2, 2_684_354_560);
        assert_eq!(cache("llama-3.1-70b", 8_192, 1), 2_684_354_560);
        assert_eq!(cache("llama-3.1-70b", 8_192, 1), 5 * GIB / 2);
        for (context, batch, gib) in [(8_192, 16, 40), (32_768, 1, 10), (131_072, 1, 40), (131_072, 8, 320)] {
            assert_eq!(cache("llama-3.1-70b", context, batch), gib * GIB, "{context} × {batch}");
        }
        let fp8 = cache_bytes(&model("llama-3.1-70b").unwrap().architecture, 8_192, 1, Dtype::Fp8).unwrap();
        assert_eq!(fp8, 5 * GIB / 4);
    }

    #[test]
    fn every_model_is_as_its_authors_say() {
        // Bytes of one token in FP16, worked out from layers, KV heads and head size by hand.
        for (name, of_a_token) in [
            ("llama-3.1-8b", 2 * 32 * 8 * 128 * 2),
            ("llama-3.1-70b", 2 * 80 * 8 * 128 * 2),
            ("llama-3.1-405b", 2 * 126 * 8 * 128 * 2),
            ("llama-3.3-70b", 2 * 80 * 8 * 128 * 2),
            ("qwen2.5-7b", 2 * 28 * 4 * 128 * 2),
            ("qwen2.5-72b", 2 * 80 * 8 * 128 * 2),
            ("qwen3-8b", 2 * 36 * 8 * 128 * 2),
            ("qwen3-32b", 2 * 64 * 8 * 128 * 2),
            ("mistral-7b-v0.1", 2 * 32 * 8 * 128 * 2),
            ("mixtral-8x7b", 2 * 32 * 8 * 128 * 2),
            ("gemma-3-27b", 2 * 62 * 16 * 128 * 2),
            // One latent of 512 and 64 of the position, once, not for key and value.
            ("deepseek-v3", 61 * (512 + 64) * 2),
            ("gpt-oss-20b", 2 * 24 * 8 * 64 * 2),
            ("gpt-oss-120b", 2 * 36 * 8 * 64 * 2),
        ] {
            assert_eq!(cache(name, 1, 1), of_a_token, "{name}");
        }
        assert_eq!(model_names().unwrap().len(), 14);
    }

    #[test]
    fn windows_stop_growing() {
        // Mistral keeps 4,096 tokens in every layer.
        assert_eq!(cache("mistral-7b-v0.1", 32_768, 1), cache("mistral-7b-v0.1", 4_096, 1));
        assert_eq!(cache("mistral-7b-v0.1", 4_096, 1), GIB / 2);
        // Gemma 3: 10 of 62 layers keep all, the others 1,024 tokens.
        let gemma = model("gemma-3-27b").unwrap().architecture;
        assert_eq!(gemma.kinds(), [10, 52, 0]);
        let layer = 2 * 16 * 128 * 2;
        assert_eq!(cache("gemma-3-27b", 131_072, 1), layer * (10 * 131_072 + 52 * 1_024));
        // gpt-oss: every other layer keeps 128 tokens.
        assert_eq!(cache("gpt-oss-20b", 8_192, 1), 2 * 8 * 64 * 2 * 12 * (8_192 + 128));
        let first = model("gpt-oss-20b").unwrap().architecture.layers[0];
        assert_eq!(first, Layer::Window(128));
    }

    #[test]
    fn weights_and_cache_share_memory() {
        let named = model("llama-3.1-70b").unwrap();
        let weights = weight_bytes(named.parameters, Dtype::Fp16).unwrap();
        assert_eq!(weights, 141_200_000_000);
        let two = Memory { per_gpu: 80 * GIB, gpus: 2 };
        let used = |batch: u64, memory: Memory| {
            fit(&named.architecture, cache("llama-3.1-70b", 8_192, batch), weights, memory).unwrap()
        };
        // 141.2 GB and 2.5 GiB of 160 GiB.
        let one = used(1, two);
        let expected = (141_200_000_000.0 + 2_684_354_560.0) / (160.0 * GIB as f64);
        assert!((one.used - expected).abs() < 1e-12 && one.room == Room::Fits, "{one:?}");
        let rooms = [2, 5, 9, 12].map(|batch| used(batch, two).room);
        // 85.3 %, 90 %, 96.2 % and 100.9 %.
        assert_eq!(rooms, [Room::Tight, Room::Tight, Room::TooTight, Room::DoesNotFit]);
        let four = Memory { per_gpu: 80 * GIB, gpus: 4 };
        let most = most_sequences(&named.architecture, 8_192, Dtype::Fp16, weights, four).unwrap();
        assert_eq!(most, (320 * GIB * 85 / 100 - weights) / 2_684_354_560);
        assert!(used(most, four).room == Room::Fits && used(most + 1, four).room == Room::Tight);
        // Sixteen GPUs keep each of the eight heads twice.
        let sixteen = Memory { per_gpu: 80 * GIB, gpus: 16 };
        assert_eq!(used(1, sixteen).cache, 2 * 2_684_354_560);
        let deepseek = model("deepseek-v3").unwrap().architecture;
        assert!(matches!(deepseek.attention, Attention::Latent { .. }));
        let eight = Memory { per_gpu: 80 * GIB, gpus: 8 };
        assert_eq!(fit(&deepseek, 100, 0, eight).unwrap().cache, 800, "a latent is on every GPU");
    }

    #[test]
    fn names_are_taken_as_people_write_them() {
        for name in ["llama-3.1-70b", "meta-llama/Llama-3.1-70B-Instruct", "Meta-Llama-3.1-70B", "LLAMA-3.1-70B"] {
            assert_eq!(model(name).unwrap().name, "llama-3.1-70b", "{name}");
        }
        let error = model("llama-3.1-71b").unwrap_err().to_string();
        assert_eq!(error, "find a model named `llama-3.1-71b` (is it `llama-3.1-70b`?)");
        assert_eq!(model("unheard").unwrap_err().to_string(), "find a model named `unheard`");
    }

    #[test]
    fn what_is_too_large_says_so() {
        let llama = model("llama-3.1-405b").unwrap().architecture;
        for (context, batch) in [(u64::MAX, 1), (1 << 40, 1 << 40), (u64::MAX, u64::MAX)] {
            assert!(cache_bytes(&llama, context, batch, Dtype::Fp32).is_err());
        }
        let error = cache_bytes(&llama, 0, 1, Dtype::Fp16).unwrap_err().to_string();
        assert_eq!(error, "use a context of 0: it has to be at least 1");
    }

    #[test]
    fn the_file_has_the_date_that_is_said() {
        assert!(TEXT.contains(&format!("\"date\": \"{MODELS_DATE}\"")));
    }
}
