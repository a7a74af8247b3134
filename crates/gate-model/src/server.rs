//! Metrics of the server's own, by name.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::{Direction, Nanos, Unit};

/// The name of a server's metric: one of [`ServerMetric::COMMON`], or as the server itself spells it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ServerMetric {
    /// The bytes of the name, then zeros.
    name: [u8; Self::LONGEST],
}

impl ServerMetric {
    /// The most bytes of a name.
    pub const LONGEST: usize = 64;

    /// The names that servers' own are known under: the share of the KV cache in use, requests being served and waiting,
    /// tokens asked of the prefix cache and found in it, preemptions, GPU memory and the process's memory in use, and
    /// open connections.
    pub const COMMON: [&str; 9] = [
        "kv_cache_usage",
        "running",
        "waiting",
        "prefix_cache_queries",
        "prefix_cache_hits",
        "preemptions",
        "gpu_memory",
        "memory",
        "connections",
    ];

    /// A name; `None` where it is empty, longer than [`Self::LONGEST`], or has other than letters, digits, `_` and `:`.
    #[must_use]
    pub fn new(text: &str) -> Option<Self> {
        let allowed = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b':';
        let fits = !text.is_empty() && text.len() <= Self::LONGEST && text.bytes().all(allowed);
        let mut name = [0; Self::LONGEST];
        name.iter_mut().zip(text.bytes()).for_each(|(place, byte)| *place = byte);
        fits.then_some(Self { name })
    }

    /// The name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        let end = self.name.iter().position(|byte| *byte == 0).unwrap_or(Self::LONGEST);
        // Only ASCII goes in.
        self.name.get(..end).and_then(|name| std::str::from_utf8(name).ok()).unwrap_or_default()
    }

    /// The unit of its values: a common one's; of others a plain number.
    #[must_use]
    pub fn unit(self) -> Unit {
        match self.as_str() {
            "kv_cache_usage" => Unit::Share,
            "gpu_memory" | "memory" => Unit::Bytes,
            _ => Unit::Count,
        }
    }

    /// Which way it is better.
    #[must_use]
    pub fn direction(self) -> Direction {
        match self.as_str() {
            "kv_cache_usage" | "waiting" | "preemptions" | "gpu_memory" | "memory" => Direction::Lower,
            "prefix_cache_hits" => Direction::Higher,
            _ => Direction::Neutral,
        }
    }

    /// The definition, in one sentence.
    #[must_use]
    pub fn doc(self) -> &'static str {
        match self.as_str() {
            "kv_cache_usage" => "the share of the KV cache in use, by the server's own metrics",
            "running" => "requests being served, by the server's own metrics",
            "waiting" => "requests waiting in the server's queue, by its own metrics",
            "prefix_cache_queries" => "tokens looked up in the prefix cache, by the server's own metrics",
            "prefix_cache_hits" => "tokens found in the prefix cache, by the server's own metrics",
            "preemptions" => "requests that were taken off to make room for others, by the server's own metrics",
            "gpu_memory" => "GPU memory in use, by the server's own metrics",
            "memory" => "memory of the server's process, by its own metrics",
            "connections" => "connections open at the server, by its own metrics",
            _ => "the server's metric of this name, summed over its labels",
        }
    }
}

impl fmt::Display for ServerMetric {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.as_str())
    }
}

impl fmt::Debug for ServerMetric {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "ServerMetric({self})")
    }
}

impl TryFrom<String> for ServerMetric {
    type Error = String;
    fn try_from(text: String) -> Result<Self, String> {
        Self::new(&text).ok_or_else(|| format!("`{text}` is no name of a server's metric"))
    }
}

impl From<ServerMetric> for String {
    fn from(metric: ServerMetric) -> Self {
        metric.as_str().to_owned()
    }
}

/// What the target's own metrics said at one time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Scrape {
    /// When it was asked, from the epoch of its section; below zero during warm-up.
    pub at: Nanos,
    /// The values: common names where they are known, and the server's own where a check names it.
    pub values: Vec<(ServerMetric, f64)>,
    /// Why there are none, in words, secrets removed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}
