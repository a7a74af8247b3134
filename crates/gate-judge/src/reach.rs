//! Which looks a section reached.

use std::collections::BTreeMap;

use gate_model::{Cause, EndReason, GateSpec, Outcome, Request, Run, Scrape, Section};

use crate::arms::Arms;
use crate::course::ordered;
use crate::scored::count;
use crate::validity::says_nothing;

/// The looks that a section is judged at, in requests of each arm.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Reach<'a> {
    /// All looks that set the boundaries, ascending.
    pub(crate) looks: Vec<u32>,
    /// The looks it reached, at least one: the place of each among all, and the requests that it scores.
    pub(crate) taken: Vec<(usize, Arms<'a>)>,
    /// The last one, or where a lost check ended it.
    pub(crate) at: u32,
    /// At each look, how many requests of each arm each scenario has.
    counts: Vec<BTreeMap<u16, u32>>,
}

impl<'a> Reach<'a> {
    /// The requests that the last look reached scores.
    pub(crate) fn judged(&self) -> Arms<'a> {
        self.taken.last().map(|(_, arms)| arms.clone()).unwrap_or_default()
    }

    /// At each look, how many requests of each arm a scenario has there.
    pub(crate) fn looks_of(&self, scenario: u16) -> Vec<u32> {
        self.counts.iter().map(|counts| counts.get(&scenario).copied().unwrap_or(0)).collect()
    }

    fn new(looks: Vec<u32>, taken: Vec<(usize, Arms<'a>)>, at: u32, section: &Section) -> Self {
        let planned = |place: u32| section.looks.iter().position(|look| *look == place);
        let of_scenario = |scenario: u16, place: usize, look: u32| {
            if let [_] = section.scenarios.as_slice() {
                return look;
            }
            if let Some(counts) = planned(look) {
                return section.looks_of(scenario).get(counts).copied().unwrap_or(0);
            }
            let arms = taken.iter().find(|(taken, _)| *taken == place).map(|(_, arms)| arms);
            arms.map_or(0, |arms| count(arms.target.iter().filter(|one| one.scenario() == scenario).count()))
        };
        let counts = looks.iter().enumerate().map(|(place, look)| {
            section.scenarios.iter().map(|scenario| (*scenario, of_scenario(*scenario, place, *look))).collect()
        });
        let counts = counts.collect();
        Self { looks, taken, at, counts }
    }
}

/// A section with what of the run is its own.
#[derive(Clone, Debug)]
pub(crate) struct Part<'a> {
    /// The section.
    pub(crate) section: Section,
    /// Its measured requests, those that were cut off left out.
    pub(crate) arms: Arms<'a>,
    /// What the server's own metrics said in it.
    pub(crate) scrapes: &'a [Scrape],
    /// The looks that it reached, or why it reached none.
    pub(crate) reach: Result<Reach<'a>, Cause>,
}

/// The sections of a run, those that were never begun too, each with what is its own.
pub(crate) fn parts(run: &Run) -> Vec<Part<'_>> {
    let spec = &run.header.spec;
    let sections = run.sections();
    let only = sections.len() == 1;
    let mut scrapes = run.scrapes.as_slice();
    let mut parts: Vec<Part<'_>> = Vec::new();
    for section in sections {
        let own = if only { scrapes.len() } else { usize::try_from(section.scrapes).unwrap_or(usize::MAX) };
        let (own, later) = scrapes.split_at(own.min(scrapes.len()));
        scrapes = later;
        let is_own = |request: &Request<'_>| only || section.scenarios.contains(&request.scenario());
        let requests = || run.requests().filter(is_own);
        let arms = Arms::of(spec.arms(), requests());
        let reach = reach(run, &section, &arms, requests);
        parts.push(Part { section, arms, scrapes: own, reach });
    }
    let cause = never_begun(run, parts.last().map(|part| &part.section));
    let begun = parts.len();
    for (number, scenarios) in (0_u16..).zip(spec.sections()).skip(begun) {
        let section = planned(spec, number, scenarios);
        parts.push(Part { section, arms: Arms::default(), scrapes: &[], reach: Err(cause.clone()) });
    }
    parts
}

/// A section of which no journal tells: its plan is not known, but its looks often are.
fn planned(spec: &GateSpec, number: u16, scenarios: Vec<u16>) -> Section {
    let looks = match scenarios.as_slice() {
        [only] => spec.load_of(*only).iterations.looks(),
        _ => Vec::new(),
    };
    Section {
        number,
        scenarios,
        looks,
        by_scenario: Vec::new(),
        planned: 0,
        shards: 1,
        end: None,
        scrapes: 0,
        repeated_prompts: 0,
    }
}

/// Why the sections after the last one were never begun.
fn never_begun(run: &Run, last: Option<&Section>) -> Cause {
    match last.and_then(|section| section.end.as_ref()).map(|end| &end.reason) {
        Some(EndReason::Interrupted) => Cause::Interrupted,
        Some(EndReason::Completed | EndReason::StoppedAtLook(_)) | None => killed(run),
        Some(reason) => Cause::NotRun(reason.clone()),
    }
}

fn killed(run: &Run) -> Cause {
    Cause::Killed { recorded: run.recorded(), planned: run.planned() }
}

/// The looks a section reached, or why it reached none.
///
/// It is judged on all it has, at the last of them: where the procedure says stop, it is the load that stops.
/// Boundaries come from the planned looks. A section that ended between two of them has one more, where it ended:
/// error spending by the share of requests allows a look that was not planned, as long as what was seen so far
/// did not choose it. One that ended before its first look is judged once, on what there is.
///
/// Where the server gave no more (a quota, credentials), how many requests there are was chosen by it, and the refusals
/// say nothing of how it performs: nothing is judged.
///
/// Where a check was lost, what was seen did choose where it ended. What there is then is judged by the boundaries of the
/// last look, which it would have broken whatever had come after.
fn reach<'a, I: Iterator<Item = Request<'a>>>(
    run: &'a Run,
    section: &Section,
    arms: &Arms<'a>,
    requests: impl Fn() -> I,
) -> Result<Reach<'a>, Cause> {
    let spec = &run.header.spec;
    let mut looks = ordered(&section.looks);
    let Some(end) = &section.end else { return Err(killed(run)) };
    let mut places = Places::of(spec, section, arms);
    let mut arms = arms.clone();
    match &end.reason {
        EndReason::NotReady(_)
        | EndReason::Refused(_)
        | EndReason::NoCredentials(_)
        | EndReason::ClientExhausted(_)
        | EndReason::Quota(_)
        | EndReason::Unauthorized(_) => {
            return Err(Cause::NotRun(end.reason.clone()));
        }
        EndReason::Interrupted => {
            // A look is complete only if every request of it ended by itself.
            let cut = requests().filter(|request| request.outcome() == Outcome::Cancelled);
            if let Some(first_cut) = cut.map(Request::index).min() {
                arms = Arms::of(spec.arms(), requests().filter(|request| request.index() < first_cut));
            }
        }
        EndReason::StoppedAtLook(at) => {
            arms = places.take(&arms, *at);
            looks = with(looks, if places.has_holes { *at } else { arms.len() });
            places.planned = Some(*at);
        }
        EndReason::Lost { .. } if !arms.target.is_empty() => {
            let available = places.available(&arms);
            let last = looks.len().saturating_sub(1);
            if looks.is_empty() {
                looks = vec![available];
            }
            let passed = looks.iter().take(last).enumerate().filter(|(_, look)| **look < available);
            let mut taken: Vec<_> = passed.map(|(place, look)| (place, places.take(&arms, *look))).collect();
            taken.push((last, arms));
            return Ok(Reach::new(looks, taken, available, section));
        }
        reason if reason.is_abort() && arms.target.iter().all(|request| says_nothing(*request)) => {
            return Err(Cause::NotRun(reason.clone()));
        }
        _ => {
            let available = places.available(&arms);
            if looks.first().is_none_or(|first| available < *first) {
                looks = vec![available];
            } else if looks.last().is_some_and(|last| available < *last) {
                looks = with(looks, available);
            }
        }
    }
    let available = places.available(&arms);
    let reached: Vec<u32> = looks.iter().copied().filter(|look| *look <= available).collect();
    if let Some(at) = reached.last().copied().filter(|_| available > 0) {
        let taken = reached.into_iter().enumerate().map(|(place, look)| (place, places.take(&arms, look))).collect();
        return Ok(Reach::new(looks, taken, at, section));
    }
    Err(if end.reason == EndReason::Interrupted { Cause::Interrupted } else { Cause::NoData })
}

/// How looks find their requests.
#[derive(Clone, Copy, Debug)]
struct Places {
    /// Whether conversations that ended early leave holes in the send order: looks then go by places in the plan.
    has_holes: bool,
    /// The first place.
    first: u32,
    arms: u32,
    /// How many requests of each arm the plan has up to where the load stopped, where that is known.
    planned: Option<u32>,
}

impl Places {
    fn of(spec: &GateSpec, section: &Section, arms: &Arms<'_>) -> Self {
        let has_holes = section.scenarios.iter().any(|scenario| spec.prompts_of(*scenario).turns.max > 1);
        let first = Self::indexes(arms).min().unwrap_or(0);
        Self { has_holes, first, arms: spec.arms(), planned: None }
    }

    fn indexes(arms: &Arms<'_>) -> impl Iterator<Item = u32> {
        arms.target.iter().chain(arms.reference.iter()).map(|request| request.index())
    }

    /// How many planned requests of each arm were sent, or left out.
    fn available(&self, arms: &Arms<'_>) -> u32 {
        let last = Self::indexes(arms).max().filter(|_| self.has_holes);
        let passed = last.map(|last| (last + 1).saturating_sub(self.first).div_ceil(self.arms));
        passed.map_or_else(|| arms.len(), |passed| self.planned.unwrap_or(passed))
    }

    /// The requests that a look scores.
    fn take<'a>(&self, arms: &Arms<'a>, look: u32) -> Arms<'a> {
        if !self.has_holes {
            return arms.first(look);
        }
        let until = self.first.saturating_add(look.saturating_mul(self.arms));
        arms.first(count(arms.target.iter().filter(|request| request.index() < until).count()))
    }
}

/// The looks with one more.
fn with(mut looks: Vec<u32>, more: u32) -> Vec<u32> {
    looks.push(more);
    ordered(&looks)
}
