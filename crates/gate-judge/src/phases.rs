//! Which part of a request moved most since the baseline or the reference.

use gate_model::{Against, CheckOutcome, CheckVerdict, Metric, Moved, Nanos, Outcome, Phase, Sample, Series, Side};

use crate::arms::Arms;
use crate::base::{self, Kept};
use crate::validity::is_of_work;

/// What a part adds to a request is worth telling from this share of what the request takes, or of the wait for the first
/// token where the check is on that.
const LEAST_SHARE: f64 = 0.05;

/// The part that added most to a request, where a check on how fast work is done is violated or, else, seen over its
/// bound; `None` where no part grew by so much that it matters, and where there is nothing to compare with.
pub(crate) fn moved(checks: &[CheckVerdict], arms: &Arms<'_>, kept: &[Kept<'_>]) -> Option<Moved> {
    let of_work = || checks.iter().filter(|one| is_of_work(one.check.metric));
    let violated = of_work().find(|one| one.outcome == CheckOutcome::Violated);
    let over = || of_work().find(|one| one.outcome == CheckOutcome::Inconclusive { side: Side::Over });
    let check = &violated.or_else(over)?.check;
    let arms = arms.of_scenario(check.scenario);
    let against = check.bound.relative().map_or_else(
        || if arms.reference.is_empty() { Against::Baseline } else { Against::Reference },
        |bound| bound.to,
    );
    let there: Vec<&Sample> = match against {
        Against::Reference => arms.reference,
        Against::Baseline => kept.iter().flat_map(|run| run.of_scenario(check.scenario)).collect(),
    };
    let least = LEAST_SHARE * usual(check.metric, &there)?;
    largest(&arms.target, &there, against, least)
}

/// How long what a check is on usually takes.
fn usual(metric: Metric, there: &[&Sample]) -> Option<f64> {
    let median = |series: Series| base::median(ok(there).filter_map(|sample| sample.value(series)).collect());
    let is_of_first_token = matches!(metric, Metric::Series(Series::Ttft | Series::Ttfa, _));
    let whole = if is_of_first_token { None } else { median(Series::E2e) };
    whole.or_else(|| median(Series::Ttft))
}

/// The part with the largest contribution to what was added, if it added this much.
fn largest(here: &[&Sample], there: &[&Sample], against: Against, least: f64) -> Option<Moved> {
    let connections_are_known = [here, there].iter().all(|samples| samples.iter().any(|one| taken_up(one).is_some()));
    let has_connection = |sample: &Sample| {
        if connections_are_known { taken_up(sample) } else { Some(sample.intended) }
    };
    let connect = |sample: &Sample| Some((has_connection(sample)? - sample.intended).0 as f64);
    let first_token = |sample: &Sample| Some((sample.first_token? - has_connection(sample)?).0 as f64);
    let decode = |sample: &Sample| sample.value(Series::Tpot);
    // Decode is told by the token, and weighs by all of them.
    let tokens = base::mean(ok(here).filter_map(|sample| sample.value(Series::OutputTokens))).unwrap_or(0.0);
    let parts = [
        part(Phase::Connect, 1.0, here, there, connect),
        part(Phase::FirstToken, 1.0, here, there, first_token),
        part(Phase::Decode, (tokens - 1.0).max(0.0), here, there, decode),
    ];
    let grown = parts.into_iter().flatten().filter(|part| part.added > 0.0 && part.added >= least);
    let part = grown.max_by(|one, other| one.added.total_cmp(&other.added))?;
    let time = |nanos: f64| Nanos(nanos.round() as i64);
    Some(Moved { phase: part.phase, against, from: time(part.from), to: time(part.to) })
}

/// A part of a request here and there.
struct Part {
    phase: Phase,
    from: f64,
    to: f64,
    /// What it added to a request.
    added: f64,
}

fn part(
    phase: Phase,
    weight: f64,
    here: &[&Sample],
    there: &[&Sample],
    time: impl Fn(&Sample) -> Option<f64>,
) -> Option<Part> {
    let median = |samples: &[&Sample]| base::median(ok(samples).filter_map(&time).collect());
    let (from, to) = (median(there)?, median(here)?);
    Some(Part { phase, from, to, added: weight * (to - from) })
}

fn ok<'a>(samples: &'a [&Sample]) -> impl Iterator<Item = &'a Sample> {
    samples.iter().copied().filter(|sample| sample.outcome == Outcome::Ok)
}

/// When a request had its connection.
fn taken_up(sample: &Sample) -> Option<Nanos> {
    sample.writing.or(sample.connected)
}
