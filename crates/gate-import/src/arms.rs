//! The two arms of a run: which requests are pairs, and one send order over both.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::fmt;

use gate_model::{
    Arm, BASELINE_SCHEMA, Baseline, BaselineKey, GateSpec, ReferenceEnd, Run, RunEnd, RunHeader, Sample, Section,
    Status,
};

use crate::ImportError;

/// Where a request stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spot {
    /// On a line of the file, from 1.
    Line(usize),
    /// In the file of one arm, among its requests, from 1.
    Row {
        /// The arm.
        arm: Arm,
        /// Which of its rows.
        row: usize,
    },
}

impl fmt::Display for Spot {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Line(line) => write!(out, "line {line}"),
            Self::Row { arm: Arm::Target, row } => write!(out, "row {row} of the target's file"),
            Self::Row { arm: Arm::Reference, row } => write!(out, "row {row} of the reference's file"),
        }
    }
}

/// A request that is to have a pair.
pub(crate) struct Single {
    pub(crate) at: Spot,
    pub(crate) arm: Arm,
    /// The pair it names.
    pub(crate) pair: Option<u32>,
}

/// Lays another run beside one, as its reference. A request's pair is the one of the other run with the same `pair`
/// where all have one, and the one at the same place where none has. Each run's times count from its own start.
///
/// The target of the spec that `reference` was imported with becomes the spec's reference.
///
/// # Errors
/// [`ImportError::HasReference`] where one of them has both arms already; [`ImportError::Unpaired`],
/// [`ImportError::NoPair`], [`ImportError::PairTwice`] and [`ImportError::PairAlone`] where they do not pair.
pub fn with_reference(run: Run, reference: Run) -> Result<Run, ImportError> {
    if [&run, &reference].iter().any(|run| run.samples.iter().any(|sample| sample.arm == Arm::Reference)) {
        return Err(ImportError::HasReference);
    }
    let beside_target = reference.header.spec.target.clone();
    let mut beside = parts_of(reference);
    let mut numbers = PairNumbers::of(&run.header.spec);
    let (mut parts, mut first) = (Vec::new(), 0_u32);
    for run in parts_of(run) {
        let (target, number) = (run.samples.len(), run.header.section);
        let place = beside.iter().position(|other| other.header.section == number);
        let Some(place) = place else { return Err(ImportError::Unpaired { target, reference: 0 }) };
        let mut laid = laid_beside(run, beside.swap_remove(place), first, &mut numbers)?;
        laid.header.spec.reference = Some(beside_target.clone());
        laid.header.simulated = laid.header.spec.is_simulated();
        first = first.saturating_add(laid.header.planned);
        parts.push(laid);
    }
    Ok(Run::assemble(parts)?)
}

/// The sections of an imported run as runs of their own: all that was planned is there.
fn parts_of(run: Run) -> Vec<Run> {
    if run.sections.is_empty() {
        return vec![run];
    }
    let part = |section: &Section| {
        let of_section = |samples: &[Sample]| -> Vec<Sample> {
            samples.iter().filter(|sample| section.scenarios.contains(&sample.scenario)).cloned().collect()
        };
        let header = RunHeader {
            section: section.number,
            looks: section.looks.clone(),
            by_scenario: section.by_scenario.clone(),
            ..run.header.clone()
        };
        Run::new(header, of_section(&run.warmup), of_section(&run.samples), section.end.clone())
    };
    run.sections.iter().map(part).collect()
}

/// One section with another run's beside it, its requests numbered from `first` on.
fn laid_beside(run: Run, reference: Run, first: u32, numbers: &mut PairNumbers) -> Result<Run, ImportError> {
    let Run { mut header, mut warmup, mut samples, end, .. } = run;
    let of_reference = |sample: Sample| Sample { arm: Arm::Reference, ..sample };
    let own = samples.len();
    samples.extend(reference.samples.into_iter().map(of_reference));
    warmup.extend(reference.warmup.into_iter().map(of_reference));
    let scenarios: BTreeSet<u16> = samples.iter().map(|sample| sample.scenario).collect();
    for scenario in scenarios {
        let of_scenario = (0..).zip(&samples).filter(|(_, sample)| sample.scenario == scenario);
        let singles = of_scenario.map(|(at, sample): (usize, _)| {
            let row = at.checked_sub(own).unwrap_or(at) + 1;
            Single { at: Spot::Row { arm: sample.arm, row }, arm: sample.arm, pair: sample.pair }
        });
        let pairs = numbers.of_scenario(pairs(&singles.collect::<Vec<_>>())?);
        let of_scenario = samples.iter_mut().filter(|sample| sample.scenario == scenario);
        of_scenario.zip(pairs).for_each(|(sample, pair)| sample.pair = Some(pair));
    }
    let samples = in_send_order(samples, first);
    // When a later turn was due depends on the answer before it.
    let is_known = samples.iter().all(|sample| sample.turn == 0);
    header.schedule = if is_known { samples.iter().map(|sample| sample.intended).collect() } else { Vec::new() };
    let end = end.zip(reference.end).map(|(end, beside)| RunEnd {
        sent: end.sent.saturating_add(beside.sent),
        at: end.at.max(beside.at),
        reference: Some(ReferenceEnd { switched_to: beside.switched_to, reached: beside.reached }),
        ..end
    });
    header.planned = u32::try_from(samples.len()).unwrap_or(u32::MAX);
    header.whole = header.planned;
    header.first = first;
    Ok(Run::new(header, warmup, samples, end))
}

/// An imported run as a baseline. It has no key, so it is compared with as it is.
#[must_use]
pub fn as_baseline(run: Run) -> Baseline {
    Baseline {
        schema: BASELINE_SCHEMA,
        key: BaselineKey::default(),
        saved: run.header.started.clone(),
        status: Status::Passed,
        run,
    }
}

/// The pair of every request: the one it names where all do, and its place in its arm where none does.
pub(crate) fn pairs(singles: &[Single]) -> Result<Vec<u32>, ImportError> {
    let of_arm = |arm: Arm| singles.iter().filter(|single| single.arm == arm).count();
    let (target, reference) = (of_arm(Arm::Target), of_arm(Arm::Reference));
    if target != reference {
        return Err(ImportError::Unpaired { target, reference });
    }
    if singles.iter().all(|single| single.pair.is_none()) {
        let (mut targets, mut references) = (0..=u32::MAX, 0..=u32::MAX);
        let next = |single: &Single| match single.arm {
            Arm::Target => targets.next(),
            Arm::Reference => references.next(),
        };
        return singles.iter().map(next).collect::<Option<_>>().ok_or(ImportError::TooMany);
    }
    let mut seen = HashSet::new();
    for &Single { at, arm, pair } in singles {
        let pair = pair.ok_or(ImportError::NoPair { at })?;
        if !seen.insert((arm, pair)) {
            return Err(ImportError::PairTwice { at, pair });
        }
    }
    let named = singles.iter().filter_map(|single| Some((single, single.pair?)));
    let checked = named.map(|(&Single { at, arm, .. }, pair)| {
        let other = if arm == Arm::Target { Arm::Reference } else { Arm::Target };
        if seen.contains(&(other, pair)) { Ok(pair) } else { Err(ImportError::PairAlone { at, pair }) }
    });
    checked.collect()
}

/// Numbers for the pairs of a run, each of one scenario.
pub(crate) struct PairNumbers {
    /// The next; absent of a spec with one scenario, whose pairs are as they are.
    next: Option<u32>,
}

impl PairNumbers {
    pub(crate) fn of(spec: &GateSpec) -> Self {
        Self { next: (spec.scenarios.len() > 1).then_some(0) }
    }

    /// The pairs of a scenario, numbered after those of the scenarios before it.
    pub(crate) fn of_scenario(&mut self, pairs: Vec<u32>) -> Vec<u32> {
        let Some(next) = &mut self.next else { return pairs };
        let mut known = HashMap::new();
        let mut numbered = |pair: u32| {
            *known.entry(pair).or_insert_with(|| {
                let number = *next;
                *next = next.saturating_add(1);
                number
            })
        };
        pairs.into_iter().map(&mut numbered).collect()
    }
}

/// By their times, those of one time as they came, numbered anew from `first` on.
pub(crate) fn in_send_order(mut samples: Vec<Sample>, first: u32) -> Vec<Sample> {
    samples.sort_by_key(|sample| sample.intended);
    (first..).zip(&mut samples).for_each(|(index, sample)| sample.index = index);
    samples
}
