//! What the template of two runs side by side is given.

use gate_model::{Against, Arm, Request, Run, Series, Spread, Verdict};
use minijinja::value::Value;
use serde::Serialize;

use super::Page;
use super::pictures::{self, Lot, Names};
use crate::ReportError;
use crate::versus::{Sides, UNJUDGED};
use crate::words::SIMULATED;

/// All that the template may print.
#[derive(Serialize)]
pub(super) struct Versus {
    title: String,
    simulated: &'static str,
    unjudged: &'static str,
    sides: Sides,
    scenarios: Vec<Scenario>,
    tables: Vec<Side>,
    /// Whose requests are not there.
    bare: Vec<&'static str>,
}

/// The pictures of a scenario that either has.
#[derive(Serialize)]
struct Scenario {
    name: Option<String>,
    spreads: Vec<Value>,
    rasters: Vec<Value>,
    sides: Vec<Side>,
}

/// One of the two.
#[derive(Serialize)]
struct Side {
    whose: &'static str,
    gate: usize,
    scenario: usize,
    plots: Vec<(&'static str, &'static str)>,
}

/// The words for the two.
const WHOSE: [&str; 2] = ["before", "after"];

/// The same for their distributions.
const NAMES: Names = Names { target: "after", baseline: "before", reference: "reference" };

impl Versus {
    /// The words for two runs, the earlier one first.
    pub(super) fn new(pages: &[Page<'_>]) -> Result<Self, ReportError> {
        let [before, after] = pages else {
            return Err(ReportError::Template(minijinja::Error::from(minijinja::ErrorKind::InvalidOperation)));
        };
        let mut names: Vec<&str> = Vec::new();
        for name in pages.iter().flat_map(|page| &page.verdict.run.scenarios) {
            if !names.contains(&name.as_str()) {
                names.push(name);
            }
        }
        let several = pages.iter().any(|page| page.verdict.run.scenarios.len() > 1);
        // A gate of one kind of traffic is compared as it is, whatever it is called.
        let scenarios = if several {
            names.iter().map(|name| Scenario::new(pages, Some(name))).collect()
        } else {
            vec![Scenario::new(pages, None)]
        };
        let tables = pages.iter().enumerate().filter(|(_, page)| page.run.is_some());
        Ok(Self {
            title: format!("{} and {} compared", before.verdict.name, after.verdict.name),
            simulated: SIMULATED,
            unjudged: UNJUDGED,
            sides: Sides::new(before.verdict, after.verdict),
            bare: pages
                .iter()
                .enumerate()
                .filter(|(_, page)| page.run.is_none())
                .map(|(gate, _)| whose(gate))
                .collect(),
            scenarios,
            tables: tables.map(|(gate, _)| Side { whose: whose(gate), gate, scenario: 0, plots: Vec::new() }).collect(),
        })
    }
}

fn whose(gate: usize) -> &'static str {
    WHOSE.get(gate).copied().unwrap_or_default()
}

impl Scenario {
    fn new(pages: &[Page<'_>], name: Option<&str>) -> Self {
        let place = |verdict: &Verdict| match name {
            Some(name) => verdict.run.scenarios.iter().position(|known| known == name),
            None => Some(0),
        };
        let (mut lots, mut sides, mut spreads) = (Vec::new(), Vec::new(), Vec::new());
        for (gate, page) in pages.iter().enumerate() {
            let Some(scenario) = place(page.verdict) else { continue };
            let number = u16::try_from(scenario).unwrap_or(u16::MAX);
            let of_target = page.verdict.spreads.iter().filter(|one| one.scenario == number && one.of.is_none());
            spreads.extend(of_target.map(|one| Spread { of: (gate == 0).then_some(Against::Baseline), ..one.clone() }));
            let requests = requests(page.run, number);
            let has = |series: Series| requests.iter().any(|one| one.value(series).is_some());
            let plots =
                [("ttft", Series::Ttft, "time to first token"), ("tpot", Series::Tpot, "time per output token")];
            let plots = plots.into_iter().filter(|(_, series, _)| has(*series)).map(|(key, _, title)| (key, title));
            sides.push(Side { whose: whose(gate), gate, scenario, plots: plots.collect() });
            lots.push(Lot { gate, requests, title: whose(gate) });
        }
        let drawn = [Series::Ttft, Series::Tpot, Series::E2e, Series::OutputTokens].into_iter().filter_map(|series| {
            let of: Vec<&Spread> = spreads.iter().filter(|one| one.series == series).collect();
            pictures::spread(series, &of, &[], NAMES)
        });
        let safe = Value::from_safe_string;
        Self {
            name: name.map(str::to_owned),
            spreads: drawn.map(safe).collect(),
            rasters: pictures::rasters(&lots).into_iter().map(safe).collect(),
            sides,
        }
    }
}

/// The target's requests of a scenario.
fn requests(run: Option<&Run>, scenario: u16) -> Vec<Request<'_>> {
    let all = run.into_iter().flat_map(Run::requests);
    all.filter(|one| one.scenario() == scenario && one.arm() == Arm::Target).collect()
}
