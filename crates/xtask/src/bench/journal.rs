//! A run journal's times, and how far they are from the engine's truth.

use std::path::Path;

use anyhow::{Context, Result, bail};
use serde::Deserialize;

use super::process::Truth;

/// One line of a journal, as far as it is needed here.
#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Line {
    Warmup {},
    Sample(Sample),
    End(End),
    #[serde(other)]
    Other,
}

/// One measured request; times in nanoseconds from the epoch.
#[derive(Deserialize)]
#[serde(default)]
#[derive(Default)]
pub(crate) struct Sample {
    index: u32,
    outcome: String,
    intended: f64,
    start: Option<f64>,
    sent: Option<f64>,
    first_token: Option<f64>,
    last_token: Option<f64>,
    end: Option<f64>,
    usage: Option<Usage>,
    token_times: Vec<f64>,
}

#[derive(Deserialize)]
struct Usage {
    output: Option<f64>,
}

#[derive(Deserialize)]
struct End {
    epoch_unix: Option<i64>,
    health: Health,
}

/// What the client said of itself.
#[derive(Clone, Deserialize)]
pub(crate) struct Health {
    pub(crate) clock: String,
    pub(crate) loop_delay_p95: Option<f64>,
    pub(crate) coalesced_share: Option<f64>,
}

/// The measured, `ok` samples of a journal.
pub(crate) struct Timed {
    samples: Vec<Sample>,
    warmup: usize,
    epoch_unix: Option<i64>,
    pub(crate) health: Health,
}

/// Differences from the truth, in milliseconds, sorted.
pub(crate) struct Errors {
    pub(crate) ttft: Vec<f64>,
    pub(crate) gaps: Vec<f64>,
    /// A token's stamp less the time just before the server wrote it, by the machine's one clock.
    pub(crate) arrival: Vec<f64>,
    /// How late the server itself was with its tokens.
    pub(crate) server: Vec<f64>,
}

impl Timed {
    pub(crate) fn read(journal: &Path) -> Result<Self> {
        let text = std::fs::read_to_string(journal).with_context(|| format!("no journal {}", journal.display()))?;
        let (mut samples, mut warmup, mut end) = (Vec::new(), 0, None);
        for line in text.lines() {
            match serde_json::from_str(line)? {
                Line::Warmup {} => warmup += 1,
                Line::Sample(sample) => samples.push(sample),
                Line::End(last) => end = Some(last),
                Line::Other => {}
            }
        }
        let End { epoch_unix, health } = end.context("the journal has no end")?;
        if let Some(sample) = samples.iter().find(|sample| sample.outcome != "ok") {
            bail!("not every request of the benchmark was ok: {}", sample.outcome);
        }
        samples.sort_by_key(|sample| sample.index);
        Ok(Self { samples, warmup, epoch_unix, health })
    }

    /// `start − intended` of every sample, in milliseconds, sorted.
    pub(crate) fn lateness(&self) -> Vec<f64> {
        sorted(self.samples.iter().filter_map(|one| Some((one.start? - one.intended) / 1e6)))
    }

    /// TTFT of every sample, in milliseconds, sorted.
    pub(crate) fn ttft(&self) -> Vec<f64> {
        sorted(self.samples.iter().filter_map(|one| Some((one.first_token? - one.intended) / 1e6)))
    }

    /// TPOT of every sample, in milliseconds, sorted.
    pub(crate) fn per_token_millis(&self) -> Vec<f64> {
        sorted(self.samples.iter().filter_map(|one| {
            let tokens = one.usage.as_ref()?.output.filter(|tokens| *tokens > 1.0)?;
            Some((one.last_token? - one.first_token?) / (tokens - 1.0) / 1e6)
        }))
    }

    /// Output tokens of all samples.
    pub(crate) fn tokens(&self) -> f64 {
        self.samples.iter().filter_map(|one| one.usage.as_ref()?.output).sum()
    }

    /// From the first request's start to the last one's end, in seconds.
    pub(crate) fn seconds(&self) -> f64 {
        let first = self.samples.iter().filter_map(|one| one.start).fold(f64::INFINITY, f64::min);
        self.last_end_seconds() - first / 1e9
    }

    /// When the last request ended, in seconds from the epoch.
    pub(crate) fn last_end_seconds(&self) -> f64 {
        self.samples.iter().filter_map(|one| one.end).fold(0.0, f64::max) / 1e9
    }

    /// The epoch, in seconds since the UNIX epoch.
    pub(crate) fn epoch_unix_seconds(&self) -> Result<f64> {
        Ok(self.epoch_unix.context("the journal does not say when its epoch was")? as f64 / 1e9)
    }

    /// How far the times are from what the engine did. Requests arrive in the order they are sent, and an event carries
    /// one token.
    pub(crate) fn against(&self, truth: &Truth) -> Result<Errors> {
        let requests = truth.requests.get(self.warmup..).unwrap_or_default();
        if requests.len() != self.samples.len() {
            bail!("{} requests were sent, and the engine saw {}", self.samples.len(), requests.len());
        }
        // Both in the engine's time, without the large common part that a float has no room for.
        let shift = self.epoch_unix.map_or(f64::NAN, |epoch| (epoch - truth.started_unix) as f64);
        let (mut ttft, mut gaps, mut arrival, mut server) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        for (sample, request) in self.samples.iter().zip(requests) {
            let writes = request.writes.iter().filter(|one| one.tokens != 0);
            let written: Vec<f64> = writes.clone().flat_map(|one| std::iter::repeat_n(one.at, one.tokens)).collect();
            server.extend(writes.map(|one| (one.at - one.due) / 1e6));
            let seen = &sample.token_times;
            let served = written.first().map(|first| first - request.arrived);
            let waited = sample.first_token.zip(sample.sent).map(|(first, sent)| first - sent);
            ttft.extend(waited.zip(served).map(|(waited, served)| (waited - served).abs() / 1e6));
            gaps.extend(steps(seen).zip(steps(&written)).map(|(seen, written)| (seen - written).abs() / 1e6));
            arrival.extend(seen.iter().zip(&written).map(|(seen, written)| (seen + shift - written) / 1e6));
        }
        let [ttft, gaps, arrival, server] =
            [ttft, gaps, arrival, server].map(|values: Vec<f64>| sorted(values.into_iter()));
        Ok(Errors { ttft, gaps, arrival, server })
    }
}

/// From each time to the next.
fn steps(times: &[f64]) -> impl Iterator<Item = f64> {
    times.iter().zip(times.iter().skip(1)).map(|(earlier, later)| later - earlier)
}

fn sorted(values: impl Iterator<Item = f64>) -> Vec<f64> {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values
}
