//! Scenarios that a check on how fast work is done finds too slow, beside what they are compared with.

use gate_model::{
    Against, Aggregate, CheckOutcome, CheckVerdict, Metric, Nanos, Outcome, Percentile, Request, Scalar, Series, Side,
};
use gate_stats::stored::{self, LogEstimate, RunNoise};
use gate_stats::{Quantile, Sorted, Worse, ranks};

use crate::base::{self, Before};
use crate::judge::Decided;
use crate::requests::Requests;
use crate::scored::Setting;
use crate::validity::is_of_work;

/// What is added to a request is worth telling from this share of what the request takes, or of the part of it that the
/// checks are on.
const LEAST_SHARE: f64 = 0.05;
/// How probable a difference may be where there is none, for it to be told.
pub(crate) const CHANCE: f64 = 0.001;

/// A scenario with checks on how fast work is done that are violated or, else, seen over their bounds.
pub(crate) struct Slow<'a> {
    /// The scenario.
    pub(crate) scenario: u16,
    /// What those checks are on.
    pub(crate) metrics: Vec<Metric>,
    /// What it is compared with.
    pub(crate) against: Against,
    /// The run's target.
    pub(crate) here: Crowd<'a>,
    /// The reference, or the stored runs; none where there is nothing to compare with.
    pub(crate) there: Vec<Crowd<'a>>,
    /// How much runs are expected to differ; nothing side by side.
    noise: Option<RunNoise>,
    /// Whether it is known on both sides when requests had their connections.
    has_connections: bool,
}

/// What the requests of a scenario shared one server's time with.
pub(crate) struct Crowd<'a> {
    /// The scenario's requests, in send order.
    pub(crate) requests: Requests<'a>,
    /// Those of each scenario that was sent at the same time, its own among them.
    pub(crate) all: Vec<Requests<'a>>,
    /// What the server's own metrics said.
    pub(crate) setting: Setting<'a>,
}

/// A median there and here.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Growth {
    /// There.
    pub(crate) from: f64,
    /// Here.
    pub(crate) to: f64,
}

/// The scenarios that were judged and found slow: those with a violated check first, each group in the checks' order.
pub(crate) fn slow<'a>(checks: &[CheckVerdict], decided: &Decided<'a>, before: &Before<'a>) -> Vec<Slow<'a>> {
    let is =
        |outcome: CheckOutcome| checks.iter().filter(move |one| is_of_work(one.check.metric) && one.outcome == outcome);
    let over = is(CheckOutcome::Inconclusive { side: Side::Over });
    let mut of_scenarios: Vec<Vec<&CheckVerdict>> = Vec::new();
    for check in is(CheckOutcome::Violated).chain(over) {
        let same =
            of_scenarios.iter_mut().find(|group| group.iter().any(|one| one.check.scenario == check.check.scenario));
        match same {
            // Beside a violated check, one that is merely over has to explain nothing.
            Some(group) if group.iter().any(|one| one.outcome == check.outcome) => group.push(check),
            Some(_) => {}
            None => of_scenarios.push(vec![check]),
        }
    }
    of_scenarios.iter().filter_map(|group| Slow::of(group, decided, before)).collect()
}

impl<'a> Slow<'a> {
    fn of(checks: &[&CheckVerdict], decided: &Decided<'a>, before: &Before<'a>) -> Option<Self> {
        let first = &checks.first()?.check;
        let scenario = first.scenario;
        let part = decided.part(scenario).filter(|part| part.at.is_ok())?;
        let scenarios = part.arms.by_scenario();
        let arms = scenarios.get(&scenario).cloned().unwrap_or_default();
        let default = if arms.reference.is_empty() { Against::Baseline } else { Against::Reference };
        let against = first.bound.relative().map_or(default, |bound| bound.to);
        let setting = Setting { scrapes: part.scrapes, shards: part.section.shards, ..Setting::default() };
        let here =
            Crowd { requests: arms.target, all: scenarios.values().map(|arms| arms.target.clone()).collect(), setting };
        let there: Vec<Crowd<'a>> = match against {
            // Only the target's metrics are read.
            Against::Reference => vec![Crowd {
                requests: arms.reference,
                all: scenarios.values().map(|arms| arms.reference.clone()).collect(),
                setting: Setting::default(),
            }],
            Against::Baseline => {
                let crowd = |kept: &base::Kept<'a>| Crowd {
                    requests: kept.of_scenario(scenario),
                    all: part.section.scenarios.iter().map(|scenario| kept.of_scenario(*scenario)).collect(),
                    setting: kept.setting(scenario),
                };
                before.kept.iter().map(crowd).collect()
            }
        };
        let there: Vec<Crowd<'a>> = there.into_iter().filter(|crowd| !crowd.requests.is_empty()).collect();
        let has_connection = |crowd: &Crowd<'a>| crowd.requests.iter().any(|one| one.had_connection().is_some());
        let median = Metric::Series(Series::E2e, Aggregate::Percentile(Percentile::P50));
        Some(Self {
            scenario,
            metrics: checks.iter().map(|one| one.check.metric).collect(),
            against,
            has_connections: has_connection(&here) && there.iter().any(has_connection),
            here,
            there,
            noise: (against == Against::Baseline).then(|| base::noise(median, before.prior)),
        })
    }

    /// What has to be added to a request to be worth telling; `None` where it is not known how long one takes.
    pub(crate) fn least(&self) -> Option<f64> {
        let usual = self.metrics.iter().filter_map(|metric| self.usual(*metric)).reduce(f64::min)?;
        Some(LEAST_SHARE * usual)
    }

    /// How long what a check is on usually takes.
    fn usual(&self, metric: Metric) -> Option<f64> {
        let median = |series: Series| base::median(self.base(|one| one.value(series)));
        let whole = || median(Series::E2e);
        let first = || median(Series::Ttft);
        match metric {
            Metric::Series(Series::Ttft | Series::Ttfa, _) => first(),
            Metric::Series(Series::Tpot | Series::Itl | Series::Icl | Series::Stall, _)
            | Metric::Scalar(Scalar::TpotEffective) => base::median(self.base(decoding)).or_else(whole),
            _ => whole().or_else(first),
        }
    }

    /// When a request had its connection; where that is not known on both sides, when it was due.
    fn had_connection(&self, one: Request<'_>) -> Option<Nanos> {
        if self.has_connections { one.had_connection() } else { Some(one.intended()) }
    }

    /// From when it was due to its connection, in nanoseconds.
    pub(crate) fn connecting(&self, one: Request<'_>) -> Option<f64> {
        Some((self.had_connection(one)? - one.intended()).0 as f64)
    }

    /// From its connection to its first token, in nanoseconds.
    pub(crate) fn wait(&self, one: Request<'_>) -> Option<f64> {
        Some((one.first_token()? - self.had_connection(one)?).0 as f64)
    }

    /// A number of each `ok` request there, in one.
    pub(crate) fn base(&self, number: impl Fn(Request<'a>) -> Option<f64>) -> Vec<f64> {
        self.there.iter().flat_map(|crowd| crowd.numbers(&number)).collect()
    }

    /// A time that is longer here than there by more than chance, and the noise from run to run, explain.
    pub(crate) fn grew(&self, time: impl Fn(Request<'a>) -> Option<f64>) -> Option<Growth> {
        let margin = self.margin(&time);
        let (here, there) = (self.here.numbers(&time), self.base(&time));
        let allowed: Vec<f64> = there.iter().map(|value| margin * value).collect();
        let growth = Growth { from: base::median(there)?, to: base::median(here.clone())? };
        (is_larger(&here, &allowed) && growth.to > growth.from).then_some(growth)
    }

    /// The factor by which times differ from run to run: one deviation between runs, as their medians show it, drawn
    /// towards what is known of them. Side by side it is 1.
    pub(crate) fn margin(&self, time: impl Fn(Request<'a>) -> Option<f64>) -> f64 {
        let Some(noise) = self.noise else { return 1.0 };
        let median = |crowd: &Crowd<'a>| {
            let half = Quantile::from_thousandths(Percentile::P50.thousandths()).ok()?;
            LogEstimate::quantile(&Sorted::new(crowd.numbers(&time)).ok()?, half)
        };
        let medians: Vec<LogEstimate> = self.there.iter().filter_map(median).collect();
        let tau = stored::tail_noise(&medians, noise).unwrap_or(noise.tau);
        stored::tail_ratio(0.0, tau, self.there.len(), Worse::Larger).unwrap_or(1.0)
    }
}

impl<'a> Crowd<'a> {
    /// A number of each `ok` request.
    pub(crate) fn numbers(&self, number: impl Fn(Request<'a>) -> Option<f64>) -> Vec<f64> {
        ok(&self.requests).filter_map(number).collect()
    }
}

/// From the first token to the last, in nanoseconds; of one body the whole time.
pub(crate) fn decoding(one: Request<'_>) -> Option<f64> {
    match (one.first_token(), one.last_token()) {
        (Some(first), Some(last)) => Some((last - first).0 as f64),
        _ => one.value(Series::E2e),
    }
}

/// Those that were answered completely.
pub(crate) fn ok<'a>(requests: &[Request<'a>]) -> impl Iterator<Item = Request<'a>> {
    requests.iter().copied().filter(|one| one.outcome() == Outcome::Ok)
}

/// Whether the first, in send order, are larger than the others by more than chance.
pub(crate) fn is_larger(these: &[f64], others: &[f64]) -> bool {
    ranks::p_larger_in_order(these, others).is_ok_and(|p| p <= CHANCE)
}
