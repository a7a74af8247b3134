//! A run journal's times, and how far they are from the engine's truth.

use std::path::Path;

use anyhow::{Context, Result, bail};
use serde_json::Value;

/// The measured, `ok` samples of a journal.
pub(crate) struct Timed {
    samples: Vec<Value>,
    warmup: usize,
}

/// Differences from the truth, in milliseconds, sorted.
pub(crate) struct Errors {
    pub(crate) ttft: Vec<f64>,
    pub(crate) gaps: Vec<f64>,
}

impl Timed {
    pub(crate) fn read(journal: &Path) -> Result<Self> {
        let text = std::fs::read_to_string(journal).with_context(|| format!("no journal {}", journal.display()))?;
        let lines: Vec<Value> = text.lines().map(serde_json::from_str).collect::<Result<_, _>>()?;
        let of_type = |kind: &str| lines.iter().filter(|line| line["type"] == kind).cloned().collect::<Vec<_>>();
        let mut samples = of_type("sample");
        if samples.iter().any(|sample| sample["outcome"] != "ok") {
            bail!("not every request of the benchmark was ok");
        }
        samples.sort_by_key(|sample| sample["index"].as_u64());
        Ok(Self { samples, warmup: of_type("warmup").len() })
    }

    /// One point less another of every sample, in milliseconds, sorted.
    pub(crate) fn millis(&self, later: &str, earlier: &str) -> Vec<f64> {
        sorted(self.samples.iter().filter_map(|one| Some((one[later].as_f64()? - one[earlier].as_f64()?) / 1e6)))
    }

    /// TPOT of every sample, in milliseconds, sorted.
    pub(crate) fn per_token_millis(&self) -> Vec<f64> {
        sorted(self.samples.iter().filter_map(|one| {
            let tokens = one.pointer("/usage/output")?.as_f64().filter(|tokens| *tokens > 1.0)?;
            Some((one["last_token"].as_f64()? - one["first_token"].as_f64()?) / (tokens - 1.0) / 1e6)
        }))
    }

    /// When the last request ended, in seconds from the epoch.
    pub(crate) fn last_end_seconds(&self) -> f64 {
        self.samples.iter().filter_map(|one| one["end"].as_f64()).fold(0.0, f64::max) / 1e9
    }

    /// How far the times are from what the engine did. Requests arrive in the order they are sent.
    pub(crate) fn against(&self, truth: &Value) -> Result<Errors> {
        let requests = truth["requests"].as_array().context("the truth has no requests")?;
        let measured = requests.get(self.warmup..).unwrap_or_default();
        if measured.len() != self.samples.len() {
            bail!("{} requests were sent, and the engine saw {}", self.samples.len(), measured.len());
        }
        let (mut ttft, mut gaps) = (Vec::new(), Vec::new());
        for (sample, request) in self.samples.iter().zip(measured) {
            let writes = request["writes"].as_array().context("no writes")?.iter();
            let written: Vec<f64> =
                writes.filter(|write| write["tokens"] != 0).filter_map(|write| write["at"].as_f64()).collect();
            let seen: Vec<f64> =
                sample["token_times"].as_array().context("no token times")?.iter().filter_map(Value::as_f64).collect();
            let served = written.first().zip(request["arrived"].as_f64()).map(|(first, arrived)| first - arrived);
            let waited = sample["first_token"].as_f64().zip(sample["sent"].as_f64()).map(|(first, sent)| first - sent);
            ttft.extend(waited.zip(served).map(|(waited, served)| (waited - served).abs() / 1e6));
            let gap = |times: &[f64]| {
                times.iter().zip(times.iter().skip(1)).map(|(earlier, later)| later - earlier).collect::<Vec<_>>()
            };
            gaps.extend(gap(&seen).iter().zip(gap(&written)).map(|(seen, written)| (seen - written).abs() / 1e6));
        }
        Ok(Errors { ttft: sorted(ttft.into_iter()), gaps: sorted(gaps.into_iter()) })
    }
}

fn sorted(values: impl Iterator<Item = f64>) -> Vec<f64> {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values
}
