//! Scenario by scenario: what was sent, how it ended, what its pattern showed, and what its prompts had in common.

use gate_model::{EndReason, Finding, Nanos, PromptFacts, ScenarioFacts, Verdict};

use super::{long_time, ways};
use crate::layout::listed;
use crate::words::{end_reason, grouped, pattern_sentence, percent, scenario_name};

/// A line for each scenario, and one for each thing that its pattern showed.
pub(super) fn scenarios(verdict: &Verdict) -> Vec<(&'static str, String)> {
    let parts = &verdict.run.parts;
    let name = if parts.len() > 1 { "scenario" } else { "pattern" };
    let lines = parts.iter().flat_map(|part| {
        let found = part.found.iter().map(|found| ("found", of(verdict, part.scenario) + &pattern_sentence(found)));
        std::iter::once((name, scenario(verdict, part))).chain(found).collect::<Vec<_>>()
    });
    lines.collect()
}

/// `batch: `, where there are several.
fn of(verdict: &Verdict, scenario: u16) -> String {
    scenario_name(verdict, scenario).map(|name| format!("{name}: ")).unwrap_or_default()
}

/// `batch, a ramp: 1,200 judged: all ok; looks at 30 and 50, decided at 50; 900 s`.
fn scenario(verdict: &Verdict, part: &ScenarioFacts) -> String {
    let ScenarioFacts { pattern, looks, decided_at, planned, judged, outcomes, duration, .. } = part;
    let name = scenario_name(verdict, part.scenario).map(|name| format!("{name}, ")).unwrap_or_default();
    let judged = match judged {
        0 if *planned == 0 => "none judged".to_owned(),
        0 => format!("none of {} judged", counted_of(*planned, looks)),
        judged => format!("{} of {} judged: {}", grouped(*judged), counted_of(*planned, looks), ways(outcomes)),
    };
    let looks = (looks.len() > 1).then(|| {
        let looks = listed(&looks.iter().map(|look| grouped(*look)).collect::<Vec<_>>(), "and");
        let decided = decided_at.map(|look| format!(", decided at {}", grouped(look))).unwrap_or_default();
        format!("looks at {looks}{decided}")
    });
    let took = (duration.0 > 0).then(|| long_time(*duration));
    let rest = [looks, took, ended(verdict, part)].into_iter().flatten().map(|fact| format!("; {fact}"));
    format!("{name}{pattern}: {judged}{}", rest.collect::<String>())
}

/// How many were planned; where one look of several may end it sooner, `at most` so many.
fn counted_of(planned: u32, looks: &[u32]) -> String {
    let most = if looks.len() > 1 { "at most " } else { "" };
    format!("{most}{}", grouped(planned))
}

/// How a part ended, where that was early.
fn ended(verdict: &Verdict, part: &ScenarioFacts) -> Option<String> {
    match &part.reason {
        Some(EndReason::Completed | EndReason::StoppedAtLook(_)) => None,
        // What is said of the whole run is not said again.
        Some(reason) if verdict.findings.contains(&Finding::EndedEarly(reason.clone())) => {
            Some("ended early".to_owned())
        }
        Some(reason) => Some(format!("ended early: {}", end_reason(reason))),
        None if part.judged == 0 && part.duration == Nanos::ZERO => Some("never begun".to_owned()),
        None => Some("its process was killed".to_owned()),
    }
}

/// What prompts had in common, and what the server read from a cache.
pub(super) fn prompts(verdict: &Verdict) -> Vec<(&'static str, String)> {
    let each = verdict.run.prompts.iter().map(|facts| {
        let PromptFacts { scenario, requests, unique, overlap, cached } = *facts;
        let unique = match unique {
            all if all == requests => format!("{} prompts, no two alike", grouped(requests)),
            unique => format!("{} different prompts among {} requests", grouped(unique), grouped(requests)),
        };
        let cached = cached.map(|cached| format!(", {} read from a cache", cached_share(cached))).unwrap_or_default();
        let shared = if overlap > 0.0 { percent(overlap) } else { "none".to_owned() };
        format!("{}{unique}; {shared} of their tokens shared with others{cached}", of(verdict, scenario))
    });
    named_once("prompts", each)
}

/// Lines of one kind, of which the first has the name.
pub(super) fn named_once(name: &'static str, lines: impl Iterator<Item = String>) -> Vec<(&'static str, String)> {
    std::iter::once(name).chain(std::iter::repeat("")).zip(lines).collect()
}

/// The share of prompts that was read from a cache: never more than all, whatever the server counts.
fn cached_share(cached: f64) -> String {
    match cached > 1.0 {
        true => format!("{} (the server counts more than was sent)", percent(1.0)),
        false => percent(cached),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_than_all_is_cached() {
        assert_eq!(cached_share(0.55), "55 %");
        assert_eq!(cached_share(1.0), "100 %");
        assert_eq!(cached_share(2_669.04), "100 % (the server counts more than was sent)");
    }

    #[test]
    fn only_a_run_with_several_looks_has_a_most() {
        assert_eq!(counted_of(1_800, &[30, 50]), "at most 1,800");
        assert_eq!(counted_of(1_800, &[1_800]), "1,800");
    }
}
