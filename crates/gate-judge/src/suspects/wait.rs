//! Whether requests wait for others, or for the reading of their own prompt.
//!
//! Either lets the first token come later. What tells them apart is how many others a request met: those that were in
//! flight when it was due. Who met none waits for no one.

use gate_model::{LikelyCause, Nanos, Phase, Request, ServerAggregate, ServerMetric};
use gate_stats::ranks;

use super::{Growth, Likely};
use crate::base;
use crate::scraped;
use crate::slow::{CHANCE, Crowd, Slow, is_larger, ok};

/// The fewest requests whose median says anything.
const LEAST: usize = 5;
/// How many times as long the last third of a run waits as the first, where its queue did not settle.
const UNSETTLED: f64 = 2.0;
/// The probability up to which it cannot be said that the wait does not depend on how many others were met.
const DEPENDS: f64 = 0.05;

/// The waits of requests by how many others they met, here and there.
pub(super) struct Waiting {
    here: Side,
    there: Side,
    /// Whether those that met the fewest met none.
    met_none: bool,
    /// What waits there may differ by from run to run.
    margin: f64,
    /// How improbable it is by chance that those that met more here waited longer.
    rises: f64,
    /// The first and the last third of the waits here, where they rose from request to request.
    unsettled: Option<Growth>,
}

/// The waits of one side for the first token, in nanoseconds.
struct Side {
    /// Of those that met the fewest others.
    alone: Vec<f64>,
    /// Of the others.
    others: Vec<f64>,
}

impl Waiting {
    /// `None` where too few requests have a first token, or too few on either side met as few others as that they could
    /// be compared.
    pub(super) fn of(slow: &Slow<'_>) -> Option<Self> {
        let waits = |crowd: &Crowd<'_>| -> Vec<(f64, f64)> {
            met(crowd).into_iter().filter_map(|(one, met)| Some((met, slow.wait(one)?))).collect()
        };
        let here = waits(&slow.here);
        let there: Vec<(f64, f64)> = slow.there.iter().flat_map(waits).collect();
        let met_none = [&here, &there].iter().all(|waits| waits.iter().filter(|(met, _)| *met == 0.0).count() >= LEAST);
        let rises = ranks::p_rising(&here).ok()?;
        Some(Self {
            here: Side::of(here, met_none)?,
            there: Side::of(there, met_none)?,
            met_none,
            margin: slow.margin(|one| slow.wait(one)),
            rises,
            unsettled: unsettled(&slow.here.numbers(|one| slow.wait(one))),
        })
    }

    /// Those that met others wait longer, the more the longer, and by more than those that met few do.
    pub(super) fn queue(&self, slow: &Slow<'_>) -> Option<Likely> {
        if self.rises > CHANCE || self.here.others.len() < LEAST {
            return None;
        }
        // Where hardly any met others, all are what there was.
        let before = if self.there.others.len() < LEAST { self.there.all() } else { self.there.others.clone() };
        let allowed: Vec<f64> = before.iter().map(|wait| self.margin * wait).collect();
        let is_longer = is_larger(&self.here.others, &allowed);
        let wait = Growth { from: base::median(before)?, to: base::median(self.here.others.clone())? };
        let alone = self.alone()?;
        let added = (wait.to - alone.to) - self.margin * (wait.from - alone.from);
        let is_own = is_longer && wait.is_marked() && added >= super::LEAST_GROWTH * wait.from;
        let cause = LikelyCause::QueueGrew {
            wait: wait.times(),
            alone: alone.times(),
            waiting: waiting(slow).map(|waiting| waiting.counts()),
            rising: self.unsettled.map(|growth| growth.times()),
        };
        is_own.then_some(Likely { phase: Phase::FirstToken, cause, added })
    }

    /// Also those that met the fewest wait longer, by more than `factor` times as many tokens to read explain.
    ///
    /// Where they met some, that tells of no queue only if no one waited for whom he met.
    pub(super) fn prefill(&self, factor: f64) -> Option<Likely> {
        let is_free = self.met_none || (self.rises > DEPENDS && self.here.others.len() >= LEAST);
        let allowed: Vec<f64> = self.there.alone.iter().map(|wait| self.margin * factor * wait).collect();
        let alone = self.alone()?;
        let beyond = Growth { from: factor * alone.from, to: alone.to };
        let is_own = is_free && is_larger(&self.here.alone, &allowed) && beyond.is_marked();
        let cause = LikelyCause::PrefillSlower { alone: alone.times() };
        is_own.then_some(Likely { phase: Phase::FirstToken, cause, added: beyond.to - beyond.from })
    }

    fn alone(&self) -> Option<Growth> {
        Some(Growth { from: base::median(self.there.alone.clone())?, to: base::median(self.here.alone.clone())? })
    }
}

impl Side {
    /// Those that met the fewest are those that met none or, where these are too few on either side, a quarter of all and
    /// those that met as few.
    fn of(waits: Vec<(f64, f64)>, met_none: bool) -> Option<Self> {
        let mut met: Vec<f64> = waits.iter().map(|(met, _)| *met).collect();
        met.sort_by(f64::total_cmp);
        let quarter = (met.len() / 4).max(LEAST);
        let fewest = if met_none { 0.0 } else { *met.get(quarter - 1)? };
        let (alone, others): (Vec<_>, Vec<_>) = waits.into_iter().partition(|(met, _)| *met <= fewest);
        let wait = |side: Vec<(f64, f64)>| side.into_iter().map(|(_, wait)| wait).collect();
        Some(Self { alone: wait(alone), others: wait(others) })
    }

    fn all(&self) -> Vec<f64> {
        [self.alone.as_slice(), &self.others].concat()
    }
}

/// The medians of the first and the last third of waits in send order, where later ones are longer by more than chance
/// and by so much that the queue cannot have settled.
fn unsettled(waits: &[f64]) -> Option<Growth> {
    let third = waits.len() / 3;
    let in_time: Vec<(f64, f64)> = waits.iter().enumerate().map(|(at, wait)| (at as f64, *wait)).collect();
    let (first, last) = (waits.get(..third)?, waits.get(waits.len() - third..)?);
    let growth = Growth { from: base::median(first.to_vec())?, to: base::median(last.to_vec())? };
    let rises = ranks::p_rising(&in_time).is_ok_and(|p| p <= CHANCE);
    (rises && growth.to >= UNSETTLED * growth.from).then_some(growth)
}

/// The `ok` requests of a scenario in send order, each with how many others were in flight when it was due.
fn met<'a>(crowd: &Crowd<'a>) -> Vec<(Request<'a>, f64)> {
    let all = || crowd.all.iter().flat_map(|requests| requests.iter().copied());
    let went_out = |one: Request<'_>| one.went_out().unwrap_or_else(|| one.intended());
    let mut begun: Vec<Nanos> = all().map(went_out).collect();
    let mut ended: Vec<Nanos> = all().filter_map(|one| one.end().or_else(|| one.last_token())).collect();
    begun.sort_unstable();
    ended.sort_unstable();
    let by = |times: &[Nanos], due: Nanos| times.partition_point(|time| *time <= due);
    let met = |one: Request<'a>| {
        let due = one.intended();
        let itself = usize::from(went_out(one) <= due);
        (one, by(&begun, due).saturating_sub(by(&ended, due) + itself) as f64)
    };
    ok(&crowd.requests).map(met).collect()
}

/// The means of the server's own count of waiting requests; `None` where it was not read on both sides.
fn waiting(slow: &Slow<'_>) -> Option<Growth> {
    let metric = ServerMetric::new("waiting")?;
    let mean = |crowd: &Crowd<'_>| {
        scraped::summed_up(crowd.setting.scrapes, crowd.setting.shards, metric, ServerAggregate::Mean)
    };
    let there = slow.there.iter().map(mean).collect::<Option<Vec<f64>>>()?;
    Some(Growth { from: base::mean(there.into_iter())?, to: mean(&slow.here)? })
}
