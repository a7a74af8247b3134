//! What a check can find with as many requests as it has.

use gate_model::{BaselineFrom, BaselineSpec, Check, Decide, Power, Rule};

use super::{beyond_word, change, grouped, percent};
use crate::layout::{counted, listed};

/// How a check is decided whose power is not known before the run.
fn without_power(check: &Check, rule: Rule) -> &'static str {
    match rule {
        Rule::Counted => "compared as it is, when the run has ended",
        Rule::Point if check.decide == Some(Decide::Point) => {
            "compared as it is, when the run has ended (`decide: point`)"
        }
        Rule::Point => "a number the run has once, compared as it is",
        Rule::Extreme => "one request beyond the limit violates it",
        Rule::Mean => "judged against the spread of the requests, so what it can find shows only in the run",
        Rule::Cluster => {
            "judged by the gaps beyond the limit in each request, so what it can find shows only in the run"
        }
        Rule::Paired => "compared pair by pair with the reference, so what it can find shows only in the run",
        Rule::PairedTail => "compared with the reference's own tail, so what it can find shows only in the run",
        Rule::Stored => "compared with stored runs, as far as they agree among themselves",
        Rule::StoredTail => {
            "compared with the tail of stored runs, as far as they agree among themselves, so what it can find shows \
             only in the run"
        }
        Rule::Bounds => "compared with another scenario, so what it can find shows only in the run",
        Rule::Knee => {
            "looked for along the ramp; a knee is found that lies between the ramp's ends, with a tenth of the requests on \
             either side of it"
        }
        Rule::Recovery => "looked for after the spike; it shows only where TTFT comes back within the run",
        Rule::Trend => {
            "judged by the trend over the run, so what it can find shows only in the run: 2 hours at 5/s find 2 %/h"
        }
        Rule::Quantile | Rule::Rate => "what it can find is not known",
    }
}

/// How many stored runs a check is compared with where all are there.
#[must_use]
pub fn stored_runs(baseline: &BaselineSpec) -> u32 {
    let runs = match baseline.from {
        BaselineFrom::Last(runs) => runs,
        BaselineFrom::Pin(_) | BaselineFrom::File(_) => 1,
        BaselineFrom::MergeBase | BaselineFrom::Branch(_) => baseline.runs,
    };
    runs.max(1)
}

/// The smallest change that a check against stored runs finds in 4 of 5 runs, where that is known beforehand.
pub(crate) fn stored_finds(check: &Check, detects: Option<f64>, baseline: &BaselineSpec) -> String {
    let Some(detects) = detects else { return "what it can find shows only in the run".to_owned() };
    let found = change(check.metric.unit(), detects);
    let runs = counted(stored_runs(baseline) as usize, "stored run");
    format!("with {runs}, and the usual noise between runs, it finds {found} and more in 4 of 5 runs")
}

/// What the check can find at this size, in sentences.
pub(crate) fn power_sentences(check: &Check, rule: Rule, power: Option<&Power>) -> Vec<String> {
    let Some(power) = power else { return vec![without_power(check, rule).to_owned()] };
    let beyond = beyond_word(check, rule);
    let violating = power
        .violates_at
        .iter()
        .filter_map(|(n, count)| count.map(|count| format!("{} of {}", grouped(count), grouped(*n))));
    let violating = violating.collect::<Vec<_>>();
    let violated = if violating.is_empty() {
        "cannot be violated at this size".to_owned()
    } else {
        format!("violated when {} are {beyond}", listed(&violating, "or"))
    };
    let last = power.violates_at.last().map_or(0, |(n, _)| *n);
    let proven = match power.proves_at_most {
        Some(0) => format!("proven when none of {} is", grouped(last)),
        Some(count) => format!("proven when at most {} of {} are", grouped(count), grouped(last)),
        None => format!("{} requests are too few to prove it", grouped(last)),
    };
    let found = if power.detects_share < 1.0 {
        let (found, allowed) = (percent(power.detects_share), percent(power.allowed_share));
        format!("an 80 % chance to catch it once {found} of requests are {beyond} ({allowed} are allowed)")
    } else {
        "no 80 % chance to catch anything at this size".to_owned()
    };
    vec![format!("{violated}; {proven}"), found]
}
