//! Whether the sending side was busy.

use gate_model::{
    Cause, CheckOutcome, CheckVerdict, LikelyCause, Nanos, Percentile, Phase, Quantity, Run, Series, Side, Suspect,
};

use crate::judge::{Decided, Judged};
use crate::scored::{Scored, nearest_rank};
use crate::validity::is_of_work;

/// The sections in which a slow client took a check's measurement away, or stands beside work that was done too slowly;
/// each is named by the scenario of its first such check.
pub(super) fn busy(run: &Run, decided: &Decided<'_>, checks: &[CheckVerdict]) -> Vec<Suspect> {
    let in_part = |part: &Judged<'_>| {
        let own = || checks.iter().filter(|one| part.section.scenarios.contains(&one.check.scenario));
        let first = own().find(|one| is_taken_away(&one.outcome) || is_falsified(one, part))?;
        suspect(run, part, first.check.scenario)
    };
    decided.parts.iter().filter(|part| part.at.is_ok()).filter_map(in_part).collect()
}

/// Whether a check could not be measured for the client's slowness.
fn is_taken_away(outcome: &CheckOutcome) -> bool {
    matches!(
        outcome,
        CheckOutcome::CouldNotMeasure {
            cause: Cause::ClientLate { .. }
                | Cause::LoopDelay { .. }
                | Cause::ClientCpu { .. }
                | Cause::RateShort { .. }
        }
    )
}

/// Whether work looks slower than it was.
fn is_falsified(verdict: &CheckVerdict, part: &Judged<'_>) -> bool {
    let is_bad = matches!(verdict.outcome, CheckOutcome::Violated | CheckOutcome::Inconclusive { side: Side::Over });
    is_bad && is_of_work(verdict.check.metric) && !part.faults.slow.is_empty()
}

fn suspect(run: &Run, part: &Judged<'_>, scenario: u16) -> Option<Suspect> {
    let both = Scored::new(part.arms.both(), &run.header.spec.slo);
    let lag = nearest_rank(both.values(Series::SendLag), Percentile::P95)?;
    let lag = Nanos(lag.round() as i64);
    // Who takes requests up in time, and reads late, lengthens what comes after.
    let is_read_late = part.faults.short.is_none() && part.faults.own_steps.is_none() && lag <= part.lateness.ttft;
    let cause = LikelyCause::ClientBusy {
        lag: Quantity::time(lag),
        loop_delay: part.health.loop_delay_p95.map(Quantity::time),
        cpu: part.health.cpu_share.filter(|share| share.is_finite()).map(Quantity::share),
    };
    let phase = if is_read_late { Phase::FirstToken } else { Phase::Connect };
    Some(Suspect { scenario, phase, against: None, cause })
}
