//! The two arms of a run: which requests are pairs, and one send order over both.

use std::collections::HashSet;
use std::fmt;

use gate_model::{Arm, BASELINE_SCHEMA, Baseline, BaselineKey, ReferenceEnd, Run, RunEnd, Sample, Status};

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
    let Run { mut header, mut warmup, mut samples, end } = run;
    let of_reference = |sample: Sample| Sample { arm: Arm::Reference, ..sample };
    let own = samples.len();
    samples.extend(reference.samples.into_iter().map(of_reference));
    warmup.extend(reference.warmup.into_iter().map(of_reference));
    let singles = (0..).zip(&samples).map(|(at, sample): (usize, _)| {
        let row = at.checked_sub(own).unwrap_or(at) + 1;
        Single { at: Spot::Row { arm: sample.arm, row }, arm: sample.arm, pair: sample.pair }
    });
    let pairs = pairs(&singles.collect::<Vec<_>>())?;
    samples.iter_mut().zip(pairs).for_each(|(sample, pair)| sample.pair = Some(pair));
    let samples = in_send_order(samples);
    header.spec.reference = Some(reference.header.spec.target);
    header.simulated = header.spec.is_simulated();
    header.schedule = samples.iter().map(|sample| sample.intended).collect();
    let end = end.zip(reference.end).map(|(end, beside)| RunEnd {
        sent: end.sent.saturating_add(beside.sent),
        at: end.at.max(beside.at),
        reference: Some(ReferenceEnd { switched_to: beside.switched_to, reached: beside.reached }),
        ..end
    });
    Ok(Run { header, warmup, samples, end })
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

/// By their times, those of one time as they came, numbered anew.
pub(crate) fn in_send_order(mut samples: Vec<Sample>) -> Vec<Sample> {
    samples.sort_by_key(|sample| sample.intended);
    (0_u32..).zip(&mut samples).for_each(|(index, sample)| sample.index = index);
    samples
}
