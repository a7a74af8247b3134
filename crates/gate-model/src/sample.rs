//! A sample: what one request did.

use serde::{Deserialize, Serialize};

use crate::{Arm, Histogram, Nanos, Outcome, PlannedRequest, Series, Slo};

/// How many token times are kept of one request, so that a stream without end costs no memory.
pub const MOST_TOKEN_TIMES: usize = 10_000;

/// Token counts as the server reported them, normalised: output includes reasoning, input includes cached.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Usage {
    /// Input tokens.
    pub input: Option<u64>,
    /// Output tokens.
    pub output: Option<u64>,
    /// Input tokens read from a cache.
    pub cached: Option<u64>,
    /// Output tokens spent on reasoning.
    pub reasoning: Option<u64>,
}

/// Where a token count comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TokenSource {
    /// The server's usage.
    Usage,
    /// The spec's tokenizer, from the answer's text.
    Tokenizer,
    /// The number of content events.
    Estimated,
}

/// Everything measured of one request. Points in time are relative to the run's epoch; a point that was not
/// reached is absent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Sample {
    /// Its place in the send order, from 0.
    pub index: u32,
    /// The scenario.
    pub scenario: u16,
    /// The arm.
    pub arm: Arm,
    /// The pair.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pair: Option<u32>,
    /// The turn.
    pub turn: u16,
    /// The input tokens the plan aimed at.
    pub planned_input: u32,
    /// The output tokens the plan asked for at most.
    pub planned_output: u32,

    /// When the plan said to send.
    pub intended: Nanos,
    /// When the schedule took it up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start: Option<Nanos>,
    /// How long it then waited for a slot under a concurrency cap; absent without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cap_wait: Option<Nanos>,
    /// When a new connection stood, TLS included; absent on a reused one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connected: Option<Nanos>,
    /// How long the host's name took to be looked up; absent on a reused connection, and where the address was known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dns: Option<Nanos>,
    /// How long the connection itself took, a proxy's tunnel included; absent on a reused one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connect: Option<Nanos>,
    /// How long the TLS handshake took; absent on a reused connection, and without TLS.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tls: Option<Nanos>,
    /// When the connection took the request up: it stood, or the one that was at rest was taken.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub writing: Option<Nanos>,
    /// When the last byte of the request was handed to the socket.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sent: Option<Nanos>,
    /// When status and headers were received.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub headers: Option<Nanos>,
    /// The first event of any kind.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_event: Option<Nanos>,
    /// The first event with generated content.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_token: Option<Nanos>,
    /// The first event with visible text, a refusal or a tool call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_answer: Option<Nanos>,
    /// The last event with generated content.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_token: Option<Nanos>,
    /// The terminal event, or the end of the body.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end: Option<Nanos>,

    /// How it ended.
    pub outcome: Outcome,
    /// The HTTP status.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// What went wrong, in words, secrets removed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Whether an error inside the stream was the server's own (5xx, overloaded, server error).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub embedded_server_error: bool,
    /// The finish reason as the server gave it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finish_reason: Option<String>,

    /// Token counts by the server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    /// Output tokens as the spec's tokenizer counts them, where the server sent no usage.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub counted_output: Option<u64>,
    /// The replica that answered, by the spec's `replica_header`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replica: Option<String>,
    /// The model that answered, as the server names it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The server's `system_fingerprint`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fingerprint: Option<String>,
    /// How often the stream began again in its middle: another stream spliced in, or the same one repeated.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub restarts: u32,
    /// Content events that came in one read with later ones: their time is an upper bound.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub coalesced: u32,
    /// Events of any kind.
    pub events: u32,
    /// Events with generated content.
    pub content_events: u32,
    /// Bytes of the response body.
    pub body_bytes: u64,
    /// The longest gap between content events.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub longest_gap: Option<Nanos>,
    /// All gaps between content events.
    pub gaps: Histogram,
    /// The content events' times, for the first requests of a run ([`crate::JournalSpec::tokens`]).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub token_times: Vec<Nanos>,
    /// The answer's text, where the spec keeps it; secrets removed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes fields by reference")]
fn is_zero(count: &u32) -> bool {
    *count == 0
}

impl Sample {
    /// The sample of a request that nothing has come of yet: due when it was planned, `cancelled` until it ends
    /// otherwise, and every other point and count absent or zero.
    #[must_use]
    pub fn unsent(planned: &PlannedRequest) -> Self {
        Self {
            index: planned.index,
            scenario: planned.scenario,
            arm: planned.arm,
            pair: planned.pair,
            turn: planned.turn,
            planned_input: planned.input_tokens,
            planned_output: planned.output_tokens,
            intended: planned.at,
            start: None,
            cap_wait: None,
            connected: None,
            dns: None,
            connect: None,
            tls: None,
            writing: None,
            sent: None,
            headers: None,
            first_event: None,
            first_token: None,
            first_answer: None,
            last_token: None,
            end: None,
            outcome: Outcome::Cancelled,
            status: None,
            error: None,
            embedded_server_error: false,
            finish_reason: None,
            usage: None,
            counted_output: None,
            replica: None,
            model: None,
            fingerprint: None,
            restarts: 0,
            coalesced: 0,
            events: 0,
            content_events: 0,
            body_bytes: 0,
            longest_gap: None,
            gaps: Histogram::default(),
            token_times: Vec::new(),
            text: None,
        }
    }

    /// When it went out: it was taken up, and had its slot where there is a concurrency cap.
    #[must_use]
    pub fn went_out(&self) -> Option<Nanos> {
        Some(self.start? + self.cap_wait.unwrap_or(Nanos::ZERO))
    }

    /// What in it contradicts itself: its points in time must be in order, no duration is below zero, and a part of
    /// its events is no more than all of them.
    pub(crate) fn check(&self) -> Result<(), String> {
        let index = self.index;
        let durations = [
            ("cap_wait", self.cap_wait),
            ("dns", self.dns),
            ("connect", self.connect),
            ("tls", self.tls),
            ("longest_gap", self.longest_gap),
        ];
        if let Some((name, _)) = durations.into_iter().find(|(_, time)| time.is_some_and(|time| time < Nanos::ZERO)) {
            return Err(format!("`{name}` of request {index} is below zero"));
        }
        let points =
            [Some(self.intended), self.start, self.went_out(), self.first_event, self.first_token, self.last_token];
        let reached: Vec<Nanos> = points.into_iter().flatten().collect();
        let answer = self.first_answer.is_none_or(|answer| self.first_token.is_some_and(|token| token <= answer));
        if !(reached.is_sorted() && answer) {
            return Err(format!("the times of request {index} are out of order"));
        }
        if self.coalesced > self.content_events {
            let (coalesced, content) = (self.coalesced, self.content_events);
            return Err(format!("request {index} has {coalesced} coalesced events of {content}"));
        }
        Ok(())
    }

    /// Counts a content event: the first and the last token, the gap since the one before and, for the first
    /// `with_times` requests, its time. The count of events of any kind is the caller's.
    pub fn record_token(&mut self, at: Nanos, with_times: u32) {
        self.content_events = self.content_events.saturating_add(1);
        self.first_token.get_or_insert(at);
        if let Some(last) = self.last_token.replace(at) {
            let gap = at - last;
            self.gaps.record(gap);
            self.longest_gap = self.longest_gap.max(Some(gap));
        }
        if self.index < with_times && self.token_times.len() < MOST_TOKEN_TIMES {
            self.token_times.push(at);
        }
    }

    /// The output tokens and where the count comes from; `None` where there were none.
    #[must_use]
    pub fn output_tokens(&self) -> Option<(u64, TokenSource)> {
        match self.usage.and_then(|usage| usage.output) {
            Some(tokens) => Some((tokens, TokenSource::Usage)),
            None if self.counted_output.is_some() => self.counted_output.map(|tokens| (tokens, TokenSource::Tokenizer)),
            None if self.content_events > 0 => Some((u64::from(self.content_events), TokenSource::Estimated)),
            None => None,
        }
    }

    /// Where the token counts that a series needs come from; `None` where the series has no value here.
    #[must_use]
    pub fn token_source(&self, series: Series) -> Option<TokenSource> {
        match series {
            Series::InputTokens | Series::CachedTokens | Series::ReasoningTokens => {
                self.value(series).map(|_| TokenSource::Usage)
            }
            _ => self.output_tokens().map(|(_, source)| source),
        }
    }

    /// One series' measurement of this request, in the base unit of [`Series::unit`]; `None` where undefined.
    /// Latencies start at the planned send time (an open loop), so a late client cannot hide queueing.
    #[must_use]
    pub fn value(&self, series: Series) -> Option<f64> {
        let since_due = |point: Option<Nanos>| point.map(|point| (point - self.intended).0 as f64);
        let count = |tokens: Option<u64>| tokens.map(|tokens| tokens as f64);
        let time = |time: Option<Nanos>| time.map(|time| time.0 as f64);
        let between = |from: Option<Nanos>, to: Option<Nanos>| from.zip(to).map(|(from, to)| (to - from).0 as f64);
        let output = self.output_tokens().map(|(tokens, _)| tokens as f64);
        match series {
            Series::Ttft => since_due(self.first_token),
            Series::Ttfa => since_due(self.first_answer),
            Series::Ttfe => since_due(self.first_event),
            Series::E2e => since_due(self.last_token),
            Series::Tpot => {
                let (first, last, tokens) = (self.first_token?, self.last_token?, output?);
                (tokens >= 2.0).then(|| (last - first).0 as f64 / (tokens - 1.0))
            }
            Series::TpotE2e => {
                let tokens = output.filter(|tokens| *tokens >= 1.0)?;
                since_due(self.last_token).map(|e2e| e2e / tokens)
            }
            // Pooled series have many values a request: see [`Sample::gap_values`].
            Series::Itl | Series::Icl => None,
            Series::Stall => self.longest_gap.map(|gap| gap.0 as f64),
            Series::OutputTokens => output,
            Series::InputTokens => count(self.usage.and_then(|usage| usage.input)),
            Series::CachedTokens => count(self.usage.and_then(|usage| usage.cached)),
            Series::ReasoningTokens => count(self.usage.and_then(|usage| usage.reasoning)),
            Series::SendLag => since_due(self.start),
            Series::CapWait => time(self.cap_wait),
            Series::Dns => time(self.dns),
            Series::Connect => time(self.connect),
            Series::Tls => time(self.tls),
            Series::Write => between(self.writing, self.sent),
            Series::Headers => between(self.sent, self.headers),
        }
    }

    /// Every value of a pooled series in this request, in nanoseconds; empty where undefined. Where not
    /// every token's time is kept ([`crate::JournalSpec::tokens`], [`MOST_TOKEN_TIMES`]) they come from the gap histogram, to its
    /// 3.2 %.
    ///
    /// ITL is defined where every content event carried one token: the events are then as many as the tokens.
    #[must_use]
    pub fn gap_values(&self, series: Series) -> Vec<f64> {
        let counted = self.output_tokens().filter(|(_, source)| *source != TokenSource::Estimated);
        let one_token_each = counted.is_some_and(|(tokens, _)| tokens == u64::from(self.content_events));
        if series != Series::Icl && !(series == Series::Itl && one_token_each) {
            return Vec::new();
        }
        if self.token_times.len() == usize::try_from(self.content_events).unwrap_or(usize::MAX) {
            let pairs = self.token_times.iter().zip(self.token_times.iter().skip(1));
            return pairs.map(|(earlier, later)| (*later - *earlier).0 as f64).collect();
        }
        let gaps = self.gaps.iter();
        let values =
            gaps.flat_map(|(gap, count)| std::iter::repeat_n(gap.0 as f64, usize::try_from(count).unwrap_or(0)));
        // A stream of a million tokens is none that a gate sends; a count that says more was made up.
        values.take(1_000_000).collect()
    }

    /// Whether the request is `ok` and holds every bound of `slo` (`<=`); TPOT under two tokens holds.
    #[must_use]
    pub fn is_good(&self, slo: &Slo) -> bool {
        self.outcome == Outcome::Ok && slo.holds(|series| self.value(series))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_without_end_keeps_a_bounded_number_of_times_and_all_its_gaps() {
        let mut sample = Sample::unsent(&PlannedRequest::default());
        let count = MOST_TOKEN_TIMES as i64 + 500;
        (0..count).for_each(|token| sample.record_token(Nanos(token * 1_000), 1));
        assert_eq!(sample.token_times.len(), MOST_TOKEN_TIMES);
        assert_eq!((i64::from(sample.content_events), sample.gaps.count() as i64), (count, count - 1));
        assert_eq!(sample.last_token, Some(Nanos((count - 1) * 1_000)));
        assert_eq!(sample.gap_values(Series::Icl).len() as i64, count - 1, "none is left out of a verdict");
    }
}
