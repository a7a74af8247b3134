//! The course a section is on: how many requests its looks need, and when those are due.

use std::collections::BTreeMap;

use gate_model::{Decision, GateSpec, Histogram, Nanos, Pace, Plan, RAW_LIMIT, Section};
use gate_report::LiveLook;

/// Where a section is judged, and how far it has come.
pub(super) struct Course {
    section: Section,
    arms: u32,
    /// Looks that the run takes unless a limit is seen exceeded; none where it is judged only after its end.
    base: usize,
    /// How many looks said that it goes on.
    taken: usize,
    /// The look that ended it.
    decided: Option<u32>,
    /// Planned requests of each scenario.
    planned: BTreeMap<u16, u32>,
    /// When the last of the requests before each look is due; empty of a closed loop.
    due: Vec<Nanos>,
}

impl Course {
    pub(super) fn new(spec: &GateSpec, plan: &Plan) -> Self {
        let section = Section::of_plan(spec, plan);
        // As the load does: of a part of a plan, or of more than is kept, nothing is judged before its end.
        let is_judged = plan.shard.is_none() && plan.whole <= RAW_LIMIT;
        let enough = |look: usize| {
            section.scenarios.iter().all(|scenario| {
                let base = spec.load_of(*scenario).iterations.base().unwrap_or(u32::MAX);
                section.looks_of(*scenario).get(look).is_some_and(|count| *count >= base)
            })
        };
        let all = section.looks.len();
        let base = if is_judged { (0..all).find(|look| enough(*look)).map_or(all, |look| look + 1) } else { 0 };
        let mut planned = BTreeMap::new();
        for request in &plan.requests {
            *planned.entry(request.scenario).or_insert(0) += 1;
        }
        let arms = spec.arms();
        let is_open = section.scenarios.iter().any(|own| matches!(spec.load_of(*own).pace, Pace::Open { .. }));
        let until = |count: usize| {
            let first = plan.requests.iter().take(count).filter(|request| request.turn == 0);
            first.map(|request| request.at).max().unwrap_or(Nanos::ZERO)
        };
        let counts = section.looks.iter().take(if is_judged { all } else { 0 });
        let counts = counts.map(|look| look.saturating_mul(arms) as usize).chain([usize::MAX]);
        let due = if is_open { counts.map(until).collect() } else { Vec::new() };
        Self { section, arms, base, taken: 0, decided: None, planned, due }
    }

    pub(super) fn scenarios(&self) -> &[u16] {
        &self.section.scenarios
    }

    /// The referee judged the first `n` requests of each arm.
    pub(super) fn look(&mut self, n: u32, decision: Decision) {
        match decision {
            Decision::GoOn => self.taken = self.section.looks.iter().filter(|look| **look <= n).count(),
            Decision::Stop => self.decided = Some(n),
        }
    }

    /// The look it is on the way to, from 0: the last that it takes unless a limit is seen exceeded, and beyond that the
    /// next. `None` where it is judged only after its end.
    fn aim(&self) -> Option<usize> {
        let all = self.section.looks.len();
        (self.base > 0).then(|| (self.base - 1).max(self.taken).min(all.saturating_sub(1)))
    }

    /// How many requests of a scenario it is on the way to, those of both arms, and at how many it is judged before.
    pub(super) fn requests(&self, scenario: u16) -> (u32, Vec<u32>) {
        let planned = self.planned.get(&scenario).copied().unwrap_or(0);
        let mut looks = self.section.looks_of(scenario);
        let Some(aim) = self.aim() else { return (planned, Vec::new()) };
        looks.truncate(aim + 1);
        let mut looks: Vec<u32> = looks.into_iter().map(|look| look.saturating_mul(self.arms)).collect();
        (looks.pop().unwrap_or(planned).min(planned), looks)
    }

    /// What is known of the next look; `over` names a metric that is over its limit.
    pub(super) fn next(&self, over: impl FnOnce() -> Option<String>) -> Option<LiveLook> {
        if let Some(at) = self.decided {
            return Some(LiveLook::Decided { at });
        }
        let at = *self.section.looks.get(self.taken)?;
        match self.base {
            0 => None,
            base if self.taken < base => Some(LiveLook::Next { number: self.taken + 1, of: base, at }),
            _ => Some(LiveLook::GoesOn { to: at, over: over() }),
        }
    }

    /// How long the schedule is, up to where it is on the way to; `None` of a closed loop.
    pub(super) fn lasts(&self) -> Option<Nanos> {
        match self.aim() {
            Some(aim) => self.due.get(aim).copied(),
            None => self.due.last().copied(),
        }
    }

    /// How long it will go on: what is left of the schedule and the time that an answer takes, or in a closed loop by how
    /// many requests ended. `None` where that is not known.
    pub(super) fn left(&self, elapsed: Nanos, done: u32, took: &Histogram) -> Option<Nanos> {
        if self.decided.is_some() {
            return None;
        }
        if let Some(lasts) = self.lasts() {
            let tail = took.at_rank(took.count().saturating_mul(19).div_ceil(20)).unwrap_or(Nanos::ZERO);
            return Some(lasts + tail - elapsed).filter(|left| *left > Nanos::ZERO);
        }
        let planned: u32 = self.scenarios().iter().map(|scenario| self.requests(*scenario).0).sum();
        let share = f64::from(done) / f64::from(planned.max(1));
        let is_known = done >= 5 && done < planned;
        is_known.then(|| Nanos::from_secs_f64(elapsed.as_secs_f64() * (1.0 - share) / share))
    }
}
