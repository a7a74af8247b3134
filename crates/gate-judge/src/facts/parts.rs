//! Facts of each scenario, and of the server's own metrics.

use std::collections::BTreeSet;

use gate_model::{Nanos, Pattern, Request, Run, ScenarioFacts, ServerAggregate, ServerFacts, ServerMetric};

use crate::arms::Arms;
use crate::judge::{Decided, Judged};
use crate::patterns;
use crate::scored::{Scored, count};
use crate::scraped::{self, in_load, is_gauge, summed_up, value};
use crate::validity::outcomes;

/// Facts of each scenario, where there are several or the load of one has a pattern.
pub(crate) fn of_scenarios(run: &Run, decided: &Decided<'_>) -> Vec<ScenarioFacts> {
    let spec = &run.header.spec;
    let scenarios: Vec<u16> = spec.sections().into_iter().flatten().collect();
    let has_pattern = scenarios.iter().any(|scenario| spec.load_of(*scenario).pattern != Pattern::Steady);
    if scenarios.len() < 2 && !has_pattern {
        return Vec::new();
    }
    let facts = scenarios.into_iter().filter_map(|scenario| {
        let part = decided.part(scenario)?;
        let arms = part.arms.of_scenario(scenario);
        let looks = part.section.looks_of(scenario);
        let is_alone = part.section.scenarios.len() == 1;
        let planned = if is_alone {
            part.section.planned
        } else {
            looks.last().copied().unwrap_or(0).saturating_mul(spec.arms())
        };
        let is_judged = part.at.is_ok();
        let scored = Scored::new(arms.target.clone(), spec.slo_of(scenario)).within(decided.setting(spec, scenario));
        let decided_at = part.at.as_ref().ok().map(|at| if is_alone { *at } else { arms.len() });
        Some(ScenarioFacts {
            scenario,
            pattern: spec.load_of(scenario).pattern.name().to_owned(),
            looks,
            decided_at,
            planned,
            judged: if is_judged { arms.len() } else { 0 },
            outcomes: outcomes(arms.target.iter().copied()),
            duration: last_end(&arms).unwrap_or(Nanos::ZERO),
            reason: part.section.end.as_ref().map(|end| end.reason.clone()),
            found: if is_judged { patterns::found(&scored) } else { Vec::new() },
        })
    });
    facts.collect()
}

/// When the last of a section's requests ended, from its epoch.
pub(super) fn last_end(arms: &Arms<'_>) -> Option<Nanos> {
    arms.target.iter().chain(arms.reference.iter()).copied().filter_map(Request::end).max()
}

/// Each metric of the server's own over the run, by name, warm-up left out. Of several sections a counter's change is
/// what it grew by in all of them: what warm-up adds between two is none of the load's.
pub(crate) fn of_server(run: &Run, decided: &Decided<'_>) -> Vec<ServerFacts> {
    let told = in_load(&run.scrapes).flat_map(|scrape| scrape.values.iter().map(|(metric, _)| *metric));
    let told: BTreeSet<ServerMetric> = told.collect();
    let delta = |part: &Judged<'_>, metric| scraped::delta(part.scrapes, part.section.shards, metric);
    let facts = told.into_iter().filter_map(|metric| {
        let of = |aggregate| summed_up(&run.scrapes, 1, metric, aggregate);
        let grown = || decided.parts.iter().filter_map(|part| delta(part, metric)).reduce(|sum, one| sum + one);
        Some(ServerFacts {
            metric,
            max: of(ServerAggregate::Max)?,
            mean: of(ServerAggregate::Mean)?,
            last: of(ServerAggregate::Last)?,
            delta: if is_gauge(&metric) { changed(decided, metric)? } else { grown()? },
            scrapes: count(in_load(&run.scrapes).filter_map(|scrape| value(scrape, metric)).count()),
        })
    });
    facts.collect()
}

/// What a gauge was in the end, less what it was before the load.
fn changed(decided: &Decided<'_>, metric: ServerMetric) -> Option<f64> {
    let of = |part: &&Judged<'_>| {
        let last = summed_up(part.scrapes, part.section.shards, metric, ServerAggregate::Last)?;
        Some((last - scraped::delta(part.scrapes, part.section.shards, metric)?, last))
    };
    let mut sections = decided.parts.iter().filter_map(|part| of(&part));
    let (first, last) = sections.next()?;
    Some(sections.next_back().map_or(last, |(_, last)| last) - first)
}
