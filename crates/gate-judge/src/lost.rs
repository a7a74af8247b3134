//! Whether a required check can no longer be kept, whatever is still to come.
//!
//! A check that is named here is violated when what was sent is judged: it would be even if all the rest of its scenario's
//! planned requests were fine, and neighbouring requests hung together as closely as can be.

use gate_model::{
    Aggregate, Arm, Check, ErrorKind, GateSpec, Importance, Metric, Op, Outcome, Request, Rule, Sample, Section,
    Series, Slo,
};
use gate_stats::series::{MAX_LAG, p_fail};
use gate_stats::{DesignEffect, Limit, Mark};

use crate::family::Family;
use crate::rules::quantile::{as_limit, worst};
use crate::rules::{allowed_share, least_count, limit, rate, rule};
use crate::scored::of_all;
use crate::validity::{is_between_tokens, says_nothing};
use crate::waiver;

/// From this share of 429 answers on none but `errors.*` is given up: with twice as many, latency cannot be judged.
const RATE_LIMITED: f64 = 0.05;

/// The required checks of a section, each with the count from which it is lost.
#[derive(Clone, Debug)]
pub(crate) struct Lost {
    watches: Vec<Watch>,
    arms: u32,
    /// How many requests of both arms come before any check is given up: a section of several looks may be judged at
    /// its first.
    not_before: u32,
    /// The half of a pair that came first: only whole pairs are judged.
    half: Option<(u32, Option<Noted>)>,
    noted: u32,
    /// Of the target's.
    requests: u32,
    limited: u32,
    /// Whether any request said anything of the server.
    reached: bool,
}

/// A check, and how many requests were beyond its bound.
#[derive(Clone, Debug)]
struct Watch {
    text: String,
    scenario: u16,
    kind: Kind,
    k: u32,
    lost_at: u32,
}

/// What a request is to a check.
#[derive(Clone, Copy, Debug)]
enum Kind {
    /// Beyond its bound where it failed in this way; counted as it is.
    Failed(ErrorKind),
    /// The same by evidence.
    Share { metric: Metric, slo: Slo, wants_many: bool },
    /// Beyond its bound by its value; failed ones too, where they count.
    Value { series: Series, bound: Limit, of_failed: Option<f64> },
}

/// What is noted of a request.
#[derive(Clone, Debug)]
struct Noted {
    beyond: Vec<usize>,
    limited: bool,
    reached: bool,
}

impl Lost {
    /// Before the first request of a section in a run that started then. `required` are its checks by evidence.
    pub(crate) fn new(spec: &GateSpec, section: &Section, started: &str, required: &Family) -> Self {
        let own = spec.checks.iter().enumerate().filter(|(_, check)| section.scenarios.contains(&check.scenario));
        let counts =
            own.filter(|(_, check)| check.importance == Importance::Required && !waiver::is_waived(check, started));
        let watched = counts.filter(|_| spec.abort.lost).filter_map(|(place, check)| {
            let n = section.looks_of(check.scenario).last().copied().filter(|n| *n > 0)?;
            Watch::of(check, spec.slo_of(check.scenario), n, required.last_level(place))
        });
        let not_before = match section.looks.as_slice() {
            [first, _, ..] => first.saturating_mul(spec.arms()),
            _ => 0,
        };
        Self {
            watches: watched.collect(),
            arms: spec.arms(),
            not_before,
            half: None,
            noted: 0,
            requests: 0,
            limited: 0,
            reached: false,
        }
    }

    /// Takes note of a request, in send order, and names the first check that is lost by now.
    pub(crate) fn take(&mut self, sample: &Sample) -> Option<String> {
        if self.watches.is_empty() || sample.outcome == Outcome::Cancelled {
            return None;
        }
        self.noted = self.noted.saturating_add(1);
        let noted = (sample.arm == Arm::Target).then(|| self.note(sample));
        let whole = match (self.arms, sample.pair) {
            (2.., Some(pair)) => match self.half.take() {
                Some((earlier, other)) if earlier == pair => noted.or(other),
                _ => {
                    self.half = Some((pair, noted));
                    None
                }
            },
            _ => noted,
        };
        let noted = whole?;
        self.requests = self.requests.saturating_add(1);
        self.limited = self.limited.saturating_add(u32::from(noted.limited));
        self.reached |= noted.reached;
        for place in noted.beyond {
            if let Some(watch) = self.watches.get_mut(place) {
                watch.k = watch.k.saturating_add(1);
            }
        }
        self.lost()
    }

    fn note(&self, sample: &Sample) -> Noted {
        let beyond =
            self.watches.iter().enumerate().filter(|(_, watch)| {
                watch.scenario == sample.scenario && watch.kind.is_beyond(Request::Sample(sample))
            });
        Noted {
            beyond: beyond.map(|(place, _)| place).collect(),
            limited: sample.outcome == Outcome::Http429,
            reached: !says_nothing(Request::Sample(sample)),
        }
    }

    fn lost(&self) -> Option<String> {
        if !self.reached || self.noted < self.not_before {
            return None;
        }
        let is_limited = f64::from(self.limited) > RATE_LIMITED * f64::from(self.requests);
        let is_lost = |watch: &&Watch| {
            let can_be_judged = !is_limited || matches!(watch.kind, Kind::Failed(_));
            watch.k >= watch.lost_at && can_be_judged
        };
        self.watches.iter().find(is_lost).map(|watch| watch.text.clone())
    }
}

impl Watch {
    /// A check of a scenario that has `n` requests at its last look, where its level is this; `None` where it cannot be
    /// told before the end.
    fn of(check: &Check, slo: &Slo, n: u32, level: Option<f64>) -> Option<Self> {
        let bound = limit(check)?;
        let is_upper = matches!(check.op, Op::Less | Op::AtMost) || (check.op == Op::Equal && bound == 0.0);
        let (kind, lost_at) = match (rule(check), check.metric) {
            (Rule::Counted, Metric::ErrorShare(kind)) if is_upper => {
                let breaks = |k: u32| !check.op.holds(f64::from(k) / f64::from(n), bound);
                (Kind::Failed(kind), least_count(n, breaks)?)
            }
            (Rule::Counted, Metric::ErrorCount(kind)) if is_upper => {
                (Kind::Failed(kind), least_count(n, |k| !check.op.holds(f64::from(k), bound))?)
            }
            (Rule::Rate, metric) => {
                let wants_many = rate::wants_many(check.op, bound);
                (Kind::Share { metric, slo: *slo, wants_many }, proves(check, n, level?)?)
            }
            (Rule::Quantile | Rule::Extreme, Metric::Series(series, aggregate)) => {
                // What counts of tokens come to, and whether a proxy held streams back, is only known at the end.
                let is_plain = !series.needs_tokens() && !series.is_pooled() && !is_between_tokens(check.metric);
                let of_failed = matches!(aggregate, Aggregate::PercentileOfAll(_)).then(|| worst(check.op));
                let kind = Kind::Value { series, bound: as_limit(check.op, bound), of_failed };
                (kind, is_plain.then(|| proves(check, n, level?)).flatten()?)
            }
            _ => return None,
        };
        Some(Self { text: check.to_string(), scenario: check.scenario, kind, k: 0, lost_at })
    }
}

impl Kind {
    fn is_beyond(self, request: Request<'_>) -> bool {
        match self {
            Self::Failed(kind) => request.outcome().is(kind, request.embedded_server_error()),
            Self::Share { metric, slo, wants_many } => {
                let counts = match metric {
                    Metric::ErrorShare(kind) => request.outcome().is(kind, request.embedded_server_error()),
                    _ => request.is_good(&slo),
                };
                counts != wants_many
            }
            Self::Value { series, bound, of_failed } => match (request.outcome(), of_failed) {
                (Outcome::Ok, _) | (_, Some(_)) => {
                    let value = of_all(request, series, of_failed.unwrap_or(f64::NAN));
                    let is_failed = request.outcome() != Outcome::Ok;
                    value.is_some_and(|value| is_failed || bound.mark(value) == Mark::Exceeded)
                }
                _ => false,
            },
        }
    }
}

/// The least count among `n` requests that violates at a level, however they hang together: neighbours over all lags that
/// the design effect looks at make it 1 + 2 · 5 at most.
fn proves(check: &Check, n: u32, level: f64) -> Option<u32> {
    let p0 = allowed_share(check)?;
    let most = (1.0 + 2.0 * MAX_LAG as f64).min(f64::from(n) / 4.0).max(1.0);
    let effect = DesignEffect::new(most).ok()?;
    least_count(n, |k| p_fail(u64::from(k), u64::from(n), effect, p0).is_ok_and(|p_fail| p_fail <= level))
}
