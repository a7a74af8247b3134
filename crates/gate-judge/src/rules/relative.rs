//! Numbers and counts compared with what the same metric is elsewhere, by the rules that compare with a fixed bound
//! too: shares by counting, what has no test as it is.

use gate_model::{Against, Bound, Cause, Check, Decide, Metric, Rule, With};

use super::{Reading, Says, counted, point, rate, rule};
use crate::allowance::Allowance;
use crate::base::{self, Base, Values};
use crate::scope::Scope;
use crate::scored::Measured;

/// Reads a relative check under [`Rule::Counted`], [`Rule::Rate`] or [`Rule::Point`].
pub(crate) fn read(check: &Check, scope: &Scope<'_>) -> Result<Reading, Cause> {
    let Elsewhere { with, value, n, here } = elsewhere(check, scope)?;
    let (rule, scored) = (rule(check), &scope.scored);
    let is_count = rule == Rule::Counted && matches!(check.metric, Metric::ErrorCount(_));
    // A count is compared with what so many requests would have had there.
    let base = if is_count { value * f64::from(scored.n()) } else { value };
    let allowance = Allowance::of(check, base).ok_or(Cause::NoData)?;
    let allowance = match rule {
        Rule::Counted if is_count => allowance.among(1),
        Rule::Counted | Rule::Rate => allowance.among(scored.n()),
        _ => allowance,
    };
    let limit = allowance.limit;
    let reading = match (rule, here) {
        (Rule::Counted, _) => counted::read(check, scored, limit),
        (Rule::Rate, _) => rate::read(check, scored, limit),
        (_, Some(seen)) => Some(Reading::of(check, seen, check.op.holds(seen.value, limit))),
        _ => point::read(check, scored, limit),
    };
    let reading = reading.ok_or(Cause::NoData)?;
    let is_plain = rule != Rule::Point || check.decide == Some(Decide::Point);
    let in_run = matches!(check.bound, Bound::ShareOf { .. });
    Ok(Reading {
        keeps: allowance.keeps(reading.seen.value),
        comparison: Some(allowance.comparison(with, reading.seen.value, n)),
        says: if is_plain || in_run { Says::All } else { Says::Nothing },
        ..reading
    })
}

/// A metric where it is compared with.
struct Elsewhere {
    with: With,
    /// Its value; of counts, the share.
    value: f64,
    /// The requests it rests on.
    n: u32,
    /// What it is compared with here, where that is not all of the run.
    here: Option<Measured>,
}

fn elsewhere(check: &Check, scope: &Scope<'_>) -> Result<Elsewhere, Cause> {
    let counts = matches!(rule(check), Rule::Counted | Rule::Rate);
    let here = match &check.bound {
        Bound::Absolute(_) => None,
        Bound::ShareOf { scenario, .. } => {
            let there = scope.other()?;
            let seen = point::seen(check, there);
            seen.map(|seen| Elsewhere {
                with: With::Scenario(scenario.clone()),
                value: seen.value,
                n: seen.n,
                here: None,
            })
        }
        Bound::Relative(bound) if bound.to == Against::Reference => {
            let there = scope.answered()?;
            if counts {
                let share = base::share(check.metric, there);
                share.map(|(counted, n)| (f64::from(counted) / f64::from(n), n))
            } else {
                point::seen(check, there).map(|seen| (seen.value, seen.n))
            }
            .map(|(value, n)| Elsewhere { with: With::Reference, value, n, here: None })
        }
        Bound::Relative(_) => {
            let Base::Runs(stored) = scope.base else { return Err(Cause::NoData) };
            let (value, here) = match &stored.values {
                Values::Share(share) => (Some(*share), None),
                values => {
                    let (seen, _, numbers) = values.numbers(check, &scope.scored).ok_or(Cause::NoData)?;
                    (base::median(numbers.iter().map(|number| number.value).collect()), Some(seen))
                }
            };
            let n = here.map_or(stored.n, |seen| stored.requests(seen.n));
            value.map(|value| Elsewhere { with: With::Baseline { runs: stored.runs }, value, n, here })
        }
    };
    here.ok_or(Cause::NoData)
}
