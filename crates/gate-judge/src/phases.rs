//! Which part of a request moved most since the baseline or the reference.

use gate_model::{Against, CheckOutcome, CheckVerdict, Metric, Moved, Nanos, Outcome, Phase, Request, Series, Side};

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
    let there: Vec<Request<'_>> = match against {
        Against::Reference => arms.reference.to_vec(),
        Against::Baseline => kept.iter().flat_map(|run| run.of_scenario(check.scenario).to_vec()).collect(),
    };
    let least = LEAST_SHARE * usual(check.metric, &there)?;
    largest(&arms.target, &there, against, least)
}

/// How long what a check is on usually takes.
fn usual(metric: Metric, there: &[Request<'_>]) -> Option<f64> {
    let median = |series: Series| base::median(ok(there).filter_map(|one| one.value(series)).collect());
    let is_of_first_token = matches!(metric, Metric::Series(Series::Ttft | Series::Ttfa, _));
    let whole = if is_of_first_token { None } else { median(Series::E2e) };
    whole.or_else(|| median(Series::Ttft))
}

/// The part with the largest contribution to what was added, if it added this much.
fn largest(here: &[Request<'_>], there: &[Request<'_>], against: Against, least: f64) -> Option<Moved> {
    let connections_are_known =
        [here, there].iter().all(|requests| requests.iter().any(|one| one.had_connection().is_some()));
    let has_connection = |one: Request<'_>| {
        if connections_are_known { one.had_connection() } else { Some(one.intended()) }
    };
    let connect = |one: Request<'_>| Some((has_connection(one)? - one.intended()).0 as f64);
    let first_token = |one: Request<'_>| Some((one.first_token()? - has_connection(one)?).0 as f64);
    let decode = |one: Request<'_>| one.value(Series::Tpot);
    // Decode is told by the token, and weighs by all of them.
    let tokens = base::mean(ok(here).filter_map(|one| one.value(Series::OutputTokens))).unwrap_or(0.0);
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
    here: &[Request<'_>],
    there: &[Request<'_>],
    time: impl Fn(Request<'_>) -> Option<f64>,
) -> Option<Part> {
    let median = |requests: &[Request<'_>]| base::median(ok(requests).filter_map(&time).collect());
    let (from, to) = (median(there)?, median(here)?);
    Some(Part { phase, from, to, added: weight * (to - from) })
}

fn ok<'a>(requests: &'a [Request<'a>]) -> impl Iterator<Item = Request<'a>> {
    requests.iter().copied().filter(|one| one.outcome() == Outcome::Ok)
}
