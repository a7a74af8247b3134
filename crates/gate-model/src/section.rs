//! A run put together of parts: shards of one plan, and sections one after another.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{EndReason, Footprint, GateSpec, Health, Nanos, Plan, RAW_LIMIT, Run, RunEnd};

/// A part of a run in which its scenarios had the endpoint to themselves.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Section {
    /// Which, from 0.
    pub number: u16,
    /// Its scenarios.
    pub scenarios: Vec<u16>,
    /// The sizes at which it is judged, in requests of each arm.
    pub looks: Vec<u32>,
    /// At each look, how many requests of each arm each of the section's scenarios has; empty where it has one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub by_scenario: Vec<Vec<u32>>,
    /// How many measured requests were planned, those of both arms.
    pub planned: u32,
    /// How many shards it was sent by.
    pub shards: u32,
    /// How it ended; absent when a process was killed, and when it was never begun.
    pub end: Option<RunEnd>,
    /// How many of [`Run::scrapes`] are its own; they follow those of the sections before.
    #[serde(default)]
    pub scrapes: u32,
    /// How many of its requests repeat an earlier prompt.
    #[serde(default)]
    pub repeated_prompts: u32,
}

impl Section {
    /// What a plan will be judged at, before anything is sent.
    #[must_use]
    pub fn of_plan(spec: &GateSpec, plan: &Plan) -> Self {
        Self {
            number: plan.section,
            scenarios: spec.sections().into_iter().nth(usize::from(plan.section)).unwrap_or_default(),
            looks: plan.looks.clone(),
            by_scenario: plan.by_scenario.clone(),
            planned: plan.whole,
            shards: 1,
            end: None,
            scrapes: 0,
            repeated_prompts: 0,
        }
    }

    /// At each look, how many requests of each arm a scenario has there.
    #[must_use]
    pub fn looks_of(&self, scenario: u16) -> Vec<u32> {
        if self.by_scenario.is_empty() {
            return self.looks.clone();
        }
        let place = self.scenarios.iter().position(|own| *own == scenario);
        let count = |counts: &Vec<u32>| place.and_then(|place| counts.get(place)).copied().unwrap_or(0);
        self.by_scenario.iter().map(count).collect()
    }

    /// The one section of a run that was not put together.
    pub(crate) fn of(run: &Run) -> Self {
        let number = run.header.section;
        Self {
            number,
            scenarios: run.header.spec.sections().into_iter().nth(usize::from(number)).unwrap_or_default(),
            looks: run.header.looks.clone(),
            by_scenario: run.header.by_scenario.clone(),
            planned: run.header.planned,
            shards: 1,
            end: run.end.clone(),
            scrapes: u32::try_from(run.scrapes.len()).unwrap_or(u32::MAX),
            repeated_prompts: run.header.repeated_prompts,
        }
    }
}

/// Why runs are not parts of one.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AssembleError {
    /// No run at all.
    #[error("there is no run")]
    Nothing,
    /// They are of different gates.
    #[error("run {one} and run {other} are of different specs")]
    Specs {
        /// A run's id.
        one: String,
        /// Another's.
        other: String,
    },
    /// They are of different plans.
    #[error("shard {one} and shard {other} are of different plans")]
    Plans {
        /// A shard.
        one: u32,
        /// Another.
        other: u32,
    },
    /// The same part twice.
    #[error("{0} is there twice")]
    Twice(String),
    /// Some shards are not there.
    #[error("of {of} shards, {} missing", missing_words(missing))]
    Missing {
        /// Which are not there.
        missing: Vec<u32>,
        /// Of how many.
        of: u32,
    },
    /// Shards did not send at the same time.
    #[error("shards {one} and {other} did not overlap in time, so their loads did not add up; start them together")]
    Apart {
        /// A shard.
        one: u32,
        /// Another.
        other: u32,
    },
}

fn missing_words(missing: &[u32]) -> String {
    let list: Vec<_> = missing.iter().map(u32::to_string).collect();
    format!("{} {}", list.join(", "), if missing.len() == 1 { "is" } else { "are" })
}

impl Run {
    /// Puts a run together of all shards of each of its sections. Sections that were never begun may be missing at the
    /// end; after one that was ended early a section that not every shard began is left out.
    ///
    /// # Errors
    /// [`AssembleError`] where the parts are not of one plan, do not make it whole, or were not sent at the same time.
    pub fn assemble(parts: Vec<Self>) -> Result<Self, AssembleError> {
        let mut sections: BTreeMap<u16, Vec<Self>> = BTreeMap::new();
        let mut first: Option<(String, GateSpec)> = None;
        for part in parts {
            let (id, spec) = first.get_or_insert_with(|| (part.header.run_id.clone(), part.header.spec.clone()));
            if *spec != part.header.spec {
                return Err(AssembleError::Specs { one: id.clone(), other: part.header.run_id });
            }
            sections.entry(part.header.section).or_default().push(part);
        }
        let mut joined: Option<Self> = None;
        for (_, shards) in sections {
            let section = match (join_shards(shards), &joined) {
                (Ok(section), _) => section,
                // What ended the section before on one machine kept it from this one.
                (Err(AssembleError::Missing { .. }), Some(before)) if !before.has_ended_well() => break,
                (Err(error), _) => return Err(error),
            };
            joined = Some(match joined {
                None => section,
                Some(before) => before.followed_by(section),
            });
        }
        joined.ok_or(AssembleError::Nothing)
    }

    /// Whether all that was planned so far was sent, or a look decided it.
    fn has_ended_well(&self) -> bool {
        let reason = self.end.as_ref().map(|end| &end.reason);
        matches!(reason, Some(EndReason::Completed | EndReason::StoppedAtLook(_)))
    }

    /// The same run with a later section.
    fn followed_by(mut self, later: Self) -> Self {
        let mut sections = self.sections();
        sections.extend(later.sections());
        self.sections = sections;
        self.header.repeated_prompts = self.header.repeated_prompts.saturating_add(later.header.repeated_prompts);
        let is_long = self.is_long() || later.is_long();
        if is_long && !self.is_long() {
            self.briefs = self.samples.iter().map(crate::Brief::from).collect();
        }
        match later.is_long() {
            true => self.briefs.extend(later.briefs),
            false if is_long => self.briefs.extend(later.samples.iter().map(crate::Brief::from)),
            false => {}
        }
        self.warmup.extend(later.warmup);
        self.samples.extend(later.samples);
        self.scrapes.extend(later.scrapes);
        self.end = self.end.zip(later.end).map(|(one, other)| one.and(other));
        self
    }
}

/// Joins the shards of one section.
fn join_shards(mut shards: Vec<Run>) -> Result<Run, AssembleError> {
    let place = |run: &Run| run.header.shard.map_or(1, |shard| shard.index);
    shards.sort_by_key(place);
    let of = shards.first().and_then(|run| run.header.shard).map_or(1, |shard| shard.of);
    let mut expected = 1..=of;
    let mut missing = Vec::new();
    for pair in shards.windows(2) {
        let [one, other] = pair else { continue };
        if place(one) == place(other) {
            let what = match one.header.shard {
                Some(shard) => format!("shard {}/{}", shard.index, shard.of),
                None => format!("section {}", one.header.section + 1),
            };
            return Err(AssembleError::Twice(what));
        }
        let same = one.header.digest == other.header.digest
            && one.header.whole == other.header.whole
            && one.header.shard.map(|shard| shard.of) == other.header.shard.map(|shard| shard.of);
        if !same {
            return Err(AssembleError::Plans { one: place(one), other: place(other) });
        }
    }
    for run in &shards {
        missing.extend(expected.by_ref().take_while(|expected| *expected != place(run)));
    }
    missing.extend(expected);
    if !missing.is_empty() {
        return Err(AssembleError::Missing { missing, of });
    }
    overlap(&shards)?;
    let count = u32::try_from(shards.len()).unwrap_or(u32::MAX);
    let mut shards = shards.into_iter();
    let mut joined = shards.next().ok_or(AssembleError::Nothing)?;
    if count == 1 && joined.header.shard.is_none() {
        return Ok(joined);
    }
    joined.header.shard = None;
    for shard in shards {
        joined.header.planned = joined.header.planned.saturating_add(shard.header.planned);
        joined.header.repeated_prompts = joined.header.repeated_prompts.saturating_add(shard.header.repeated_prompts);
        joined.warmup.extend(shard.warmup);
        joined.samples.extend(shard.samples);
        joined.briefs.extend(shard.briefs);
        joined.scrapes.extend(shard.scrapes);
        joined.end = joined.end.zip(shard.end).map(|(one, other)| one.and(other));
    }
    joined.samples.sort_by_key(|sample| sample.index);
    joined.briefs.sort_unstable_by_key(|brief| brief.index);
    joined.scrapes.sort_by_key(|scrape| scrape.at);
    joined.sections = vec![Section { shards: count, ..Section::of(&joined) }];
    debug_assert!(joined.header.whole > RAW_LIMIT || joined.briefs.is_empty());
    Ok(joined)
}

/// Whether all shards sent at one time, as far as their clocks tell.
fn overlap(shards: &[Run]) -> Result<(), AssembleError> {
    let times = shards.iter().filter_map(|run| {
        // What was ended before it sent anything has no time of its own.
        let end = run.end.as_ref().filter(|end| end.sent > 0)?;
        let epoch = end.epoch_unix?;
        Some((run.header.shard.map_or(1, |shard| shard.index), epoch, epoch + end.at))
    });
    let times: Vec<(u32, Nanos, Nanos)> = times.collect();
    let latest = times.iter().max_by_key(|(_, from, _)| *from);
    let earliest = times.iter().min_by_key(|(_, _, to)| *to);
    match latest.zip(earliest) {
        Some(((one, from, _), (other, _, to))) if from > to => {
            Err(AssembleError::Apart { one: *one.min(other), other: *one.max(other) })
        }
        _ => Ok(()),
    }
}

impl RunEnd {
    /// What two parts come to together: sums of what was sent and spent, and the worse of everything else.
    fn and(self, other: Self) -> Self {
        let reason = if matches!(self.reason, EndReason::Completed | EndReason::StoppedAtLook(_)) {
            other.reason
        } else {
            self.reason
        };
        Self {
            reason,
            sent: self.sent.saturating_add(other.sent),
            at: self.at.max(other.at),
            epoch_unix: self.epoch_unix.or(other.epoch_unix),
            health: self.health.worse(other.health),
            switched_to: self.switched_to.or(other.switched_to),
            reached: self.reached.or(other.reached),
            reference: self.reference.or(other.reference),
            spent: match (self.spent, other.spent) {
                (Some(one), Some(other)) => Some(one.plus(other)),
                (one, other) => one.or(other),
            },
            footprint: match (self.footprint, other.footprint) {
                (Some(one), Some(other)) => Some(one.plus(other)),
                (one, other) => one.or(other),
            },
        }
    }
}

impl Health {
    /// The worse of two in each respect.
    fn worse(self, other: Self) -> Self {
        let share = |one: Option<f64>, other: Option<f64>| one.into_iter().chain(other).reduce(f64::max);
        Self {
            clock: if self.clock == other.clock { self.clock } else { crate::Stamping::User },
            read_delay_p95: self.read_delay_p95.max(other.read_delay_p95),
            coalesced_share: share(self.coalesced_share, other.coalesced_share),
            cpu_share: share(self.cpu_share, other.cpu_share),
            loop_delay_p95: self.loop_delay_p95.max(other.loop_delay_p95),
        }
    }
}

impl Footprint {
    /// Of two parts together: what was opened and written adds up; descriptors and memory are those of the one that
    /// grew more.
    fn plus(self, other: Self) -> Self {
        let grown = |pair: Option<(u32, u32)>| pair.map(|(from, to)| to.saturating_sub(from));
        let swollen = |pair: Option<(u64, u64)>| pair.map(|(from, to)| to.saturating_sub(from));
        Self {
            connections: self.connections.saturating_add(other.connections),
            descriptors: if grown(self.descriptors) >= grown(other.descriptors) {
                self.descriptors
            } else {
                other.descriptors
            },
            memory: if swollen(self.memory) >= swollen(other.memory) { self.memory } else { other.memory },
            journal_bytes: self.journal_bytes.saturating_add(other.journal_bytes),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Endpoint, PlannedRequest, RunHeader, Sample, Shard};

    /// Shard `index` of `of` of a run of six requests, started so many seconds after the first.
    fn shard(index: u32, of: u32, started: i64) -> Run {
        let spec = GateSpec::new("chat", Endpoint::Sim(Box::default()));
        let request =
            |index: u32| PlannedRequest { index, at: Nanos::from_secs(i64::from(index)), ..PlannedRequest::default() };
        let all: Vec<_> = (0..6).map(request).collect();
        let whole = Plan { digest: Some("d".to_owned()), ..Plan::new(&spec, vec![6], all.clone()) };
        let own: Vec<_> = all.into_iter().filter(|request| request.index % of == index - 1).collect();
        let plan = Plan { shard: Some(Shard { index, of }), requests: own.clone(), ..whole };
        let header = RunHeader::new(spec, &plan, "0.1.0", &format!("r{index}"), "2026-01-01T00:00:00Z");
        let samples: Vec<_> = own.iter().map(Sample::unsent).collect();
        let end = RunEnd::new(EndReason::Completed, header.planned, Nanos::from_secs(6));
        let end = RunEnd { epoch_unix: Some(Nanos::from_secs(1_000 + started)), ..end };
        Run::new(header, Vec::new(), samples, Some(end))
    }

    #[test]
    fn shards_make_the_whole_again() {
        let run = Run::assemble(vec![shard(2, 2, 1), shard(1, 2, 0)]).unwrap();
        let indexes: Vec<u32> = run.requests().map(crate::Request::index).collect();
        assert_eq!(indexes, [0, 1, 2, 3, 4, 5]);
        assert_eq!((run.planned(), run.recorded(), run.end.as_ref().map(|end| end.sent)), (6, 6, Some(6)));
        assert_eq!(run.sections().iter().map(|section| section.shards).collect::<Vec<_>>(), [2]);
    }

    #[test]
    fn a_machine_that_was_stopped_between_two_sections_leaves_the_first() {
        let later = |run: Run| {
            let header = RunHeader { section: 1, first: 6, ..run.header };
            Run { header, ..run }
        };
        let stopped = |run: Run| {
            let end = run.end.map(|end| RunEnd { reason: EndReason::Interrupted, ..end });
            Run { end, ..run }
        };
        let parts = |one: Run| vec![one, shard(2, 2, 0), later(shard(2, 2, 9))];
        let run = Run::assemble(parts(stopped(shard(1, 2, 0)))).unwrap();
        assert_eq!((run.recorded(), run.sections().len()), (6, 1));
        assert_eq!(run.end.map(|end| end.reason), Some(EndReason::Interrupted));
        // Where nothing was ended, a journal is missing.
        let missing = Run::assemble(parts(shard(1, 2, 0))).unwrap_err();
        assert_eq!(missing, AssembleError::Missing { missing: vec![1], of: 2 });

        // Both were stopped while they waited to begin.
        let unsent = |run: Run| {
            let end = RunEnd { sent: 0, at: Nanos::ZERO, ..run.end.unwrap() };
            stopped(Run { samples: Vec::new(), end: Some(end), ..run })
        };
        let run = Run::assemble(vec![unsent(shard(1, 2, 0)), unsent(shard(2, 2, 1))]).unwrap();
        assert_eq!(run.recorded(), 0);
    }

    #[test]
    fn what_does_not_make_a_whole_is_refused() {
        let missing = Run::assemble(vec![shard(2, 4, 0), shard(3, 4, 0)]).unwrap_err();
        assert_eq!(missing, AssembleError::Missing { missing: vec![1, 4], of: 4 });
        assert_eq!(missing.to_string(), "of 4 shards, 1, 4 are missing");
        let twice = Run::assemble(vec![shard(1, 2, 0), shard(1, 2, 0)]).unwrap_err();
        assert_eq!(twice, AssembleError::Twice("shard 1/2".to_owned()));
        let plans = Run::assemble(vec![shard(1, 2, 0), shard(2, 3, 0)]).unwrap_err();
        assert_eq!(plans, AssembleError::Plans { one: 1, other: 2 });
        let apart = Run::assemble(vec![shard(1, 2, 0), shard(2, 2, 7)]).unwrap_err();
        assert_eq!(apart, AssembleError::Apart { one: 1, other: 2 });
        assert_eq!(Run::assemble(Vec::new()), Err(AssembleError::Nothing));
    }
}
