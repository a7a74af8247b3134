//! The pictures of a gate's scenarios.

use std::collections::BTreeMap;

use gate_model::{Arm, Metric, Request, Run, Series, Spread, Verdict};
use minijinja::value::Value;
use serde::Serialize;

use super::data::limit_of;
use super::pictures::{self, Lot, Names};
use crate::words::scenario_name;

/// What pictures of distributions are drawn of.
const SPREADS: [Series; 4] = [Series::Ttft, Series::Tpot, Series::E2e, Series::OutputTokens];

/// What a run and what it is compared with are called.
const NAMES: Names = Names { target: "target", baseline: "baseline", reference: "reference" };

/// The pictures of a scenario.
#[derive(Serialize)]
pub(super) struct Scenario {
    number: usize,
    name: Option<String>,
    plots: Vec<(&'static str, &'static str)>,
    spreads: Vec<Value>,
    rasters: Vec<Value>,
    gaps: Option<Value>,
    lengths: Option<Value>,
}

/// The pictures of every scenario.
pub(super) fn scenarios(number: usize, verdict: &Verdict, run: Option<&Run>) -> Vec<Scenario> {
    let mut requests: BTreeMap<u16, Vec<Request<'_>>> = BTreeMap::new();
    for request in run.into_iter().flat_map(Run::requests) {
        requests.entry(request.scenario()).or_default().push(request);
    }
    let count = verdict.run.scenarios.len();
    let each = (0..count).map(|place| {
        let scenario = u16::try_from(place).unwrap_or(u16::MAX);
        let of = requests.get(&scenario).map_or(&[][..], Vec::as_slice);
        Scenario::new(number, place, verdict, of)
    });
    each.collect()
}

impl Scenario {
    fn new(gate: usize, number: usize, verdict: &Verdict, requests: &[Request<'_>]) -> Self {
        let scenario = u16::try_from(number).unwrap_or(u16::MAX);
        let has = |series: Series| requests.iter().any(|one| one.value(series).is_some());
        let plots = [("ttft", Series::Ttft, "Time to first token"), ("tpot", Series::Tpot, "Time per output token")];
        let plots = plots.into_iter().filter(|(_, series, _)| has(*series)).map(|(key, _, name)| (key, name));
        let safe = Value::from_safe_string;
        let spreads = SPREADS.iter().filter_map(|series| spread(verdict, scenario, *series)).map(safe);
        let of_arm = |arm: Arm, title: &'static str| Lot {
            gate,
            requests: requests.iter().copied().filter(|one| one.arm() == arm).collect(),
            title,
        };
        let has_reference = requests.iter().any(|one| one.arm() == Arm::Reference);
        let target = of_arm(Arm::Target, if has_reference { "Target: requests by time" } else { "Requests by time" });
        let lots = [target, of_arm(Arm::Reference, "Reference: requests by time")];
        let rasters = pictures::rasters(&lots).into_iter().map(safe);
        let [Lot { requests: target, .. }, _] = &lots;
        Self {
            number,
            name: scenario_name(verdict, scenario),
            plots: plots.collect(),
            spreads: spreads.collect(),
            rasters: rasters.collect(),
            gaps: pictures::gaps(target).map(safe),
            lengths: pictures::lengths(gate, target).map(safe),
        }
    }
}

/// How a series is distributed, with the limits that checks set it.
fn spread(verdict: &Verdict, scenario: u16, series: Series) -> Option<String> {
    let of: Vec<&Spread> =
        verdict.spreads.iter().filter(|one| one.scenario == scenario && one.series == series).collect();
    let limits = verdict.checks.iter().filter(|check| {
        let is_of = matches!(check.check.metric, Metric::Series(of, _) if of == series);
        check.check.scenario == scenario && is_of
    });
    let limits: Vec<(f64, String)> =
        limits.filter_map(|check| Some((limit_of(check)?.value, check.check.metric.to_string()))).collect();
    pictures::spread(series, &of, &limits, NAMES)
}
