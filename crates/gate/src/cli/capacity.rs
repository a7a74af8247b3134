//! What may be asked about capacity.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use gate_capacity::{Dtype, HEADROOM};

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct Capacity {
    #[command(subcommand)]
    pub(crate) question: Option<Question>,
    #[command(flatten)]
    pub(crate) measured: Measured,
    /// Print it as JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

/// A run that answers what flags do not.
#[derive(Debug, Args)]
pub(crate) struct Measured {
    /// Take what flags do not say from the journal of a run.
    #[arg(long, value_name = "RUN")]
    pub(crate) from: Option<PathBuf>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Question {
    /// How much memory a model's KV cache takes, and whether it fits beside the weights.
    Kv(Kv),
    /// How many instances a peak needs, at 65 % of what saturates one.
    Instances(Instances),
    /// What a load needs of a provider's rate limits, and which of them binds.
    Tokens(Tokens),
    /// From how many tokens a day fixed capacity is cheaper than paying by the token.
    Host(Host),
}

/// Which model.
#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
pub(crate) struct Which {
    /// A model that is known by name, such as `llama-3.1-70b`.
    #[arg(long, value_name = "NAME")]
    pub(crate) model: Option<String>,
    /// A model's Hugging Face `config.json`.
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct Kv {
    #[command(flatten)]
    pub(crate) which: Which,
    /// Tokens of a sequence, input and output; several by commas.
    #[arg(long, value_name = "TOKENS", value_delimiter = ',', default_value = "8192", value_parser = whole)]
    pub(crate) context: Vec<u64>,
    /// Sequences at once; several by commas.
    #[arg(long, value_name = "SEQUENCES", value_delimiter = ',', default_value = "1", value_parser = whole)]
    pub(crate) batch: Vec<u64>,
    /// How the cache is stored: fp16, bf16, fp8, int8 or fp32.
    #[arg(long, value_name = "TYPE", default_value = "fp16", value_parser = dtype)]
    pub(crate) dtype: Dtype,
    /// How the weights are stored, int4 too; without it as the cache.
    #[arg(long, value_name = "TYPE", value_parser = dtype)]
    pub(crate) weights_dtype: Option<Dtype>,
    /// The model's parameters, such as `70.6B`; those of a named model are known.
    #[arg(long, value_name = "NUMBER", value_parser = amount)]
    pub(crate) parameters: Option<f64>,
    /// The memory of one GPU, such as `80GiB` or `80GB`.
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub(crate) gpu_memory: Option<u64>,
    /// GPUs that share the model (tensor parallel).
    #[arg(long, value_name = "N", default_value = "1", requires = "gpu_memory", value_parser = whole)]
    pub(crate) gpus: u64,
    /// Print it as JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Instances {
    /// Output tokens a second at the peak.
    #[arg(long, value_name = "TPS", value_parser = amount)]
    pub(crate) peak: f64,
    /// Output tokens a second that saturate one instance; without it from the knee of a ramp (--from).
    #[arg(long, value_name = "TPS", value_parser = amount, required_unless_present = "from")]
    pub(crate) saturation: Option<f64>,
    /// The share of its saturation that an instance is planned to be used to.
    #[arg(long, value_name = "SHARE", default_value_t = HEADROOM, value_parser = share)]
    pub(crate) headroom: f64,
    #[command(flatten)]
    pub(crate) measured: Measured,
    /// Print it as JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

/// A mean load.
#[derive(Debug, Args)]
pub(crate) struct Load {
    /// Requests a second, as a mean.
    #[arg(long, value_name = "RATE", value_parser = amount, required_unless_present = "from")]
    pub(crate) rps: Option<f64>,
    /// Mean input tokens of a request, cached ones among them.
    #[arg(long, value_name = "TOKENS", value_parser = amount, required_unless_present = "from")]
    pub(crate) input_tokens: Option<f64>,
    /// Mean output tokens of a request.
    #[arg(long, value_name = "TOKENS", value_parser = amount, required_unless_present = "from")]
    pub(crate) output_tokens: Option<f64>,
    /// The share of input tokens that come from the provider's cache, such as `60%`; without it none.
    #[arg(long, value_name = "SHARE", value_parser = share)]
    pub(crate) cached: Option<f64>,
    #[command(flatten)]
    pub(crate) measured: Measured,
}

#[derive(Debug, Args)]
pub(crate) struct Tokens {
    #[command(flatten)]
    pub(crate) load: Load,
    /// Compare with the tiers of this YAML file instead of the built-in ones.
    #[arg(long, value_name = "FILE")]
    pub(crate) tiers: Option<PathBuf>,
    /// Only those of this provider.
    #[arg(long, value_name = "NAME")]
    pub(crate) provider: Option<String>,
    /// Print it as JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Host {
    #[command(flatten)]
    pub(crate) load: Load,
    /// Dollars per million input tokens.
    #[arg(long, value_name = "DOLLARS", value_parser = dollars)]
    pub(crate) input_price: f64,
    /// Dollars per million input tokens from the cache; without it as much as the others.
    #[arg(long, value_name = "DOLLARS", value_parser = dollars)]
    pub(crate) cached_price: Option<f64>,
    /// Dollars per million output tokens.
    #[arg(long, value_name = "DOLLARS", value_parser = dollars)]
    pub(crate) output_price: f64,
    /// Dollars an hour for one unit of provisioned or reserved throughput.
    #[arg(long, value_name = "DOLLARS", value_parser = dollars)]
    pub(crate) provisioned_price: Option<f64>,
    /// How many units.
    #[arg(long, value_name = "N", default_value = "1", requires = "provisioned_price", value_parser = whole)]
    pub(crate) provisioned_units: u64,
    /// Output tokens a second that one unit serves.
    #[arg(long, value_name = "TPS", requires = "provisioned_price", value_parser = amount)]
    pub(crate) provisioned_tps: Option<f64>,
    /// For how many months the units are committed to.
    #[arg(long, value_name = "MONTHS", requires = "provisioned_price", value_parser = amount)]
    pub(crate) commitment: Option<f64>,
    /// Dollars an hour for one GPU of one's own.
    #[arg(long, value_name = "DOLLARS", value_parser = dollars)]
    pub(crate) gpu_price: Option<f64>,
    /// GPUs of one instance.
    #[arg(long, value_name = "N", default_value = "1", requires = "gpu_price", value_parser = whole)]
    pub(crate) gpus: u64,
    /// How many instances.
    #[arg(long, value_name = "N", default_value = "1", requires = "gpu_price", value_parser = whole)]
    pub(crate) instances: u64,
    /// Output tokens a second that one instance serves.
    #[arg(long, value_name = "TPS", requires = "gpu_price", value_parser = amount)]
    pub(crate) instance_tps: Option<f64>,
    /// Print it as JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

fn dtype(text: &str) -> Result<Dtype, String> {
    text.parse().map_err(|_| "it is one of fp16, bf16, fp8, int8, int4, fp32".to_owned())
}

/// A whole number from 1.
fn whole(text: &str) -> Result<u64, String> {
    let digits = text.replace(['_', ' '], "");
    match digits.parse() {
        Ok(0) | Err(_) => Err("it is a whole number from 1, such as `8192`".to_owned()),
        Ok(number) => Ok(number),
    }
}

/// A number above 0, also with `k`, `M`, `B` or `T` for thousand to million million.
pub(crate) fn amount(text: &str) -> Result<f64, String> {
    let (digits, factor) = match text.char_indices().last() {
        Some((at, 'k' | 'K')) => (&text[..at], 1e3),
        Some((at, 'm' | 'M')) => (&text[..at], 1e6),
        Some((at, 'b' | 'B' | 'g' | 'G')) => (&text[..at], 1e9),
        Some((at, 't' | 'T')) => (&text[..at], 1e12),
        _ => (text, 1.0),
    };
    let number = plain(digits).map(|number| number * factor).filter(|number| *number > 0.0);
    number.ok_or_else(|| "it is a number above 0, such as `50`, `1.5k` or `70.6B`".to_owned())
}

/// A share, as `60%` or `0.6`.
pub(crate) fn share(text: &str) -> Result<f64, String> {
    let share = match text.strip_suffix('%') {
        Some(percent) => plain(percent.trim_end()).map(|number| number / 100.0),
        None => plain(text),
    };
    let share = share.filter(|share| (0.0..=1.0).contains(share));
    share.ok_or_else(|| "it is a share from 0 to 100 %, such as `60%` or `0.6`".to_owned())
}

/// A price from 0, also with a dollar sign.
pub(crate) fn dollars(text: &str) -> Result<f64, String> {
    plain(text.strip_prefix('$').unwrap_or(text))
        .ok_or_else(|| "it is a price in dollars, such as `3` or `$0.30`".to_owned())
}

/// Bytes with their unit: `80GiB`, `80GB`.
fn size(text: &str) -> Result<u64, String> {
    let units = [("KiB", 1_u64 << 10), ("MiB", 1 << 20), ("GiB", 1 << 30), ("TiB", 1 << 40)];
    let decimal = [("kB", 1_000), ("MB", 1_000_000), ("GB", 1_000_000_000), ("TB", 1_000_000_000_000)];
    let bytes = units.into_iter().chain(decimal).find_map(|(unit, factor)| {
        let number = plain(text.strip_suffix(unit)?.trim_end())?;
        Some(number * factor as f64).filter(|bytes| (1.0..2_f64.powi(53)).contains(bytes))
    });
    bytes
        .map(|bytes| bytes.round() as u64)
        .ok_or_else(|| "it is a size with its unit, such as `80GiB` or `80GB`".to_owned())
}

/// Digits and at most one point: no sign, no exponent, no name of a number.
fn plain(text: &str) -> Option<f64> {
    let is_plain = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    text.parse().ok().filter(|number: &f64| is_plain && number.is_finite())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_as_people_write_them() {
        assert_eq!(
            ["50", "1.5k", "70.6B", "2M", "1T"].map(|text| amount(text).unwrap()),
            [50.0, 1_500.0, 70.6e9, 2e6, 1e12]
        );
        assert_eq!(["60%", "0.6", "0", "100 %"].map(|text| share(text).unwrap()), [0.6, 0.6, 0.0, 1.0]);
        assert_eq!(["3", "$0.30"].map(|text| dollars(text).unwrap()), [3.0, 0.3]);
        assert_eq!(["80GiB", "80 GB", "512MiB"].map(|text| size(text).unwrap()), [80 << 30, 80_000_000_000, 512 << 20]);
        assert_eq!(["8192", "8_192"].map(|text| whole(text).unwrap()), [8_192, 8_192]);
        for text in ["", "k", "-1", "0", "1e9", "nan", "inf", "1.2.3", "十", "é"] {
            assert!(amount(text).is_err() && whole(text).is_err() && size(text).is_err(), "{text}");
        }
        assert!(share("101%").is_err() && share("60").is_err() && dollars("-1").is_err() && size("80").is_err());
    }
}
