//! The two arms of a run: pairs by order, and one send order over both.

use gate_model::{Arm, BASELINE_SCHEMA, Baseline, BaselineKey, ReferenceEnd, Run, RunEnd, Sample, Status};

use crate::ImportError;

/// Lays another imported file beside a run, as its reference: the i-th row there is the pair of the i-th here. Each
/// file's times count from its own first row.
///
/// The target of the spec that `reference` was imported with becomes the spec's reference.
///
/// # Errors
/// [`ImportError::HasReference`] where one of them holds rows of a reference already, [`ImportError::Unpaired`] where
/// one has more rows than the other.
pub fn with_reference(run: Run, reference: Run) -> Result<Run, ImportError> {
    if [&run, &reference].iter().any(|run| run.samples.iter().any(|sample| sample.arm == Arm::Reference)) {
        return Err(ImportError::HasReference);
    }
    let Run { mut header, mut warmup, mut samples, end } = run;
    check_counts(samples.len(), reference.samples.len())?;
    let of_reference = |sample: Sample| Sample { arm: Arm::Reference, ..sample };
    let mut beside: Vec<_> = reference.samples.into_iter().map(of_reference).collect();
    for arm in [&mut samples, &mut beside] {
        (0_u32..).zip(arm).for_each(|(pair, sample)| sample.pair = Some(pair));
    }
    warmup.extend(reference.warmup.into_iter().map(of_reference));
    samples.append(&mut beside);
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

/// Every request needs one in the other arm.
pub(crate) fn check_counts(target: usize, reference: usize) -> Result<(), ImportError> {
    if target == reference { Ok(()) } else { Err(ImportError::Unpaired { target, reference }) }
}

/// By their times, those of one time as they came, numbered anew.
pub(crate) fn in_send_order(mut samples: Vec<Sample>) -> Vec<Sample> {
    samples.sort_by_key(|sample| sample.intended);
    (0_u32..).zip(&mut samples).for_each(|(index, sample)| sample.index = index);
    samples
}
