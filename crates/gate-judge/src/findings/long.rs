//! What a reader should know of a long run, of conversations, and of what the server's own metrics and the bill leave out.

use gate_model::{Arm, Connections, EndReason, Finding, Footprint, Nanos, Outcome, Request, Run};

use crate::bill::is_of_bill;
use crate::judge::{Decided, Judged};
use crate::patterns;
use crate::scored::{Scored, count};

/// From this time on a run is long enough for connections and memory to tell something.
const LONG: Nanos = Nanos::from_secs(600);
/// Descriptors that a client may need more at the end than at the start, beside those of open requests.
const FEW_DESCRIPTORS: u32 = 16;
/// Memory that a client may need more, in bytes: a long run keeps a hundred of every request.
const LITTLE_MEMORY: u64 = 128 << 20;

/// Everything worth saying.
pub(crate) fn of_run(run: &Run, decided: &Decided<'_>) -> Vec<Finding> {
    let mut findings = Vec::new();
    if let Some((footprint, hours)) = long(run, decided) {
        let open = decided.parts.iter().map(|part| most_open(part)).max().unwrap_or(0);
        findings.extend(reopened(run, footprint, open, hours));
        findings.extend(client_grows(footprint, open, hours));
    }
    findings.extend(of_patterns(run, decided));
    findings.extend(scrapes_failed(run));
    findings.extend(uncounted(run, decided));
    findings.extend(conversations_cut(run, decided));
    findings
}

/// What the shape of each scenario's load brought to light, and whether its warm-up was too short.
fn of_patterns(run: &Run, decided: &Decided<'_>) -> Vec<Finding> {
    let spec = &run.header.spec;
    let names = spec.scenario_names();
    let judged = decided.arms.by_scenario().into_iter().filter(|_| decided.is_judged());
    let of_scenario = judged.flat_map(|(scenario, arms)| {
        let name = names.get(usize::from(scenario)).cloned().unwrap_or_default();
        let scored = Scored::new(arms.target, spec.slo_of(scenario)).within(decided.setting(spec, scenario));
        patterns::findings(&scored, scenario, &name, &spec.checks)
    });
    of_scenario.collect()
}

/// What the run took of the client's machine, and for how many hours, where it was long.
fn long(run: &Run, decided: &Decided<'_>) -> Option<(Footprint, f64)> {
    let end = run.end.as_ref()?;
    let lasted = decided.parts.iter().filter_map(|part| part.section.end.as_ref()).map(|end| end.at);
    let lasted = lasted.fold(Nanos::ZERO, |sum, at| sum + at);
    (lasted >= LONG).then_some((end.footprint?, lasted.as_secs_f64() / 3_600.0))
}

/// How many requests of a section were open at one time, at most.
fn most_open(part: &Judged<'_>) -> u32 {
    let both = part.arms.both();
    let times = |point: fn(Request<'_>) -> Option<Nanos>| -> Vec<Nanos> {
        let mut times: Vec<Nanos> = both.iter().filter_map(|one| one.start().and(one.end()).and(point(*one))).collect();
        times.sort_unstable();
        times
    };
    let (starts, ends) = (times(|one| one.start()), times(|one| one.end()));
    let mut ends = ends.into_iter().peekable();
    let (mut open, mut most) = (0_u32, 0_u32);
    for start in starts {
        while ends.next_if(|end| *end <= start).is_some() {
            open = open.saturating_sub(1);
        }
        open += 1;
        most = most.max(open);
    }
    most
}

/// Whether more connections were opened than were ever needed at one time, where those at rest are kept.
fn reopened(run: &Run, footprint: Footprint, open: u32, hours: f64) -> Option<Finding> {
    let spec = &run.header.spec;
    let is_pooled =
        spec.sections().into_iter().flatten().all(|one| spec.load_of(one).connections == Connections::Pooled);
    let connections = footprint.connections.saturating_sub(open);
    (is_pooled && connections > 0).then(|| Finding::Reopened { connections, per_hour: f64::from(connections) / hours })
}

/// Whether the client itself leaks.
fn client_grows(footprint: Footprint, open: u32, hours: f64) -> Option<Finding> {
    let descriptors = footprint.descriptors.and_then(|(from, to)| {
        let grown = to.saturating_sub(from);
        (grown > open.saturating_add(FEW_DESCRIPTORS)).then(|| f64::from(grown) / hours)
    });
    let memory = footprint.memory.and_then(|(from, to)| {
        let grown = to.saturating_sub(from);
        (grown > LITTLE_MEMORY && grown > from / 2).then(|| grown as f64 / hours)
    });
    (descriptors.is_some() || memory.is_some()).then_some(Finding::ClientGrows { descriptors, memory })
}

fn scrapes_failed(run: &Run) -> Option<Finding> {
    let failed = count(run.scrapes.iter().filter(|scrape| scrape.error.is_some()).count());
    let message = run.scrapes.iter().find_map(|scrape| scrape.error.clone())?;
    Some(Finding::ScrapesFailed { failed, of: count(run.scrapes.len()), message })
}

/// Whether cost was asked for, and the server did not count all of it.
fn uncounted(run: &Run, decided: &Decided<'_>) -> Option<Finding> {
    let spec = &run.header.spec;
    let is_asked = spec.prices.is_some() || spec.checks.iter().any(|check| is_of_bill(check.metric));
    let requests = decided.bill.spent.uncounted;
    (is_asked && requests > 0).then_some(Finding::UncountedCost { requests })
}

/// Conversations whose next turn was never sent since this one failed: the plan's places after it are empty.
fn conversations_cut(run: &Run, decided: &Decided<'_>) -> Option<Finding> {
    let spec = &run.header.spec;
    let arms = spec.arms();
    let mut conversations = 0_u32;
    for part in &decided.parts {
        let has_turns = part.section.scenarios.iter().any(|scenario| spec.prompts_of(*scenario).turns.max > 1);
        if !has_turns {
            continue;
        }
        let own = |one: &Request<'_>| part.section.scenarios.contains(&one.scenario());
        let Some(first) = run.requests().filter(own).map(Request::index).min() else { continue };
        let is_whole = part.section.end.as_ref().is_some_and(|end| end.reason == EndReason::Completed);
        let planned = first.saturating_add(part.section.planned);
        for arm in [Arm::Target, Arm::Reference] {
            let mut before: Option<Request<'_>> = None;
            for request in run.requests().filter(own).filter(|one| one.arm() == arm) {
                conversations += before.map_or(0, |before| u32::from(is_cut(before, request.index(), first, arms)));
                before = Some(request);
            }
            let last = before.filter(|_| is_whole);
            conversations += last.map_or(0, |last| u32::from(is_cut(last, planned, first, arms)));
        }
    }
    (conversations > 0).then_some(Finding::ConversationsCut { conversations })
}

/// Whether a request failed and the plan's place after it, of its arm, is empty.
fn is_cut(request: Request<'_>, next: u32, first: u32, arms: u32) -> bool {
    let place = |index: u32| index.saturating_sub(first) / arms;
    let failed = !matches!(request.outcome(), Outcome::Ok | Outcome::Cancelled);
    failed && place(next) > place(request.index()).saturating_add(1)
}
