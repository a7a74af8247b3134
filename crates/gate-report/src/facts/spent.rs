//! What a run used up: tokens, money, and the client's own machine.

use gate_model::{Footprint, Metric, Nanos, Quantity, RAW_LIMIT, Scalar, Spent, Unit, Verdict};

use super::long_time;
use crate::layout::counted;
use crate::words::{figure, grouped, number};

/// From how long a run on its footprint is told.
const LONG: Nanos = Nanos::from_secs(600);

/// Tokens and money in one line: `$0.31 of $0.40; 120 requests, 66,000 tokens in (12,000 cached) and 18,000 out`.
pub(super) fn spent(verdict: &Verdict) -> String {
    let Some(spent) = &verdict.run.spent else { return String::new() };
    let Spent { requests, input, cached, output, uncounted } = *spent;
    let count = |count: u64| Quantity::count(count as f64).to_string();
    let cached = match cached {
        0 => String::new(),
        more if more > input => format!(" ({} from a cache, says the server: more than were sent)", count(more)),
        cached => format!(" ({} from a cache)", count(cached)),
    };
    let cost = verdict.run.cost.map(|cost| {
        let dollars = figure(Quantity { value: cost, unit: Unit::Dollars });
        let limit = allowed(verdict).map(|limit| format!(" of {limit}")).unwrap_or_default();
        format!("cost {dollars}{limit}; ")
    });
    let uncounted = match uncounted {
        0 => String::new(),
        1 => "; the tokens of 1 are not counted".to_owned(),
        several => format!("; the tokens of {} are not counted", count(several)),
    };
    let arms = if verdict.run.reference.is_some() { ", warm-up and both arms included" } else { ", warm-up included" };
    format!(
        "{}{}{arms}; {} tokens in{cached} and {} out{uncounted}",
        cost.unwrap_or_default(),
        if requests == 1 { "1 request".to_owned() } else { format!("{} requests", count(requests)) },
        count(input),
        count(output)
    )
}

/// What a check lets the run cost.
fn allowed(verdict: &Verdict) -> Option<String> {
    let mut costs = verdict.checks.iter().filter(|check| check.check.metric == Metric::Scalar(Scalar::Cost));
    costs.find_map(|check| check.check.bound.absolute()).map(figure)
}

/// What a long run took of the client's machine.
pub(super) fn footprint(verdict: &Verdict) -> String {
    let Some(footprint) = &verdict.run.footprint else { return String::new() };
    if verdict.run.duration < LONG && verdict.run.judged <= RAW_LIMIT {
        return String::new();
    }
    let Footprint { connections, descriptors, memory, journal_bytes } = *footprint;
    let bytes = |bytes: u64| figure(Quantity { value: bytes as f64, unit: Unit::Bytes });
    let an_hour = |bytes: u64| {
        let hours = verdict.run.duration.as_secs_f64() / 3_600.0;
        let rate = (hours > 0.0).then(|| figure(Quantity { value: bytes as f64 / hours, unit: Unit::Bytes }));
        rate.map(|rate| format!(" ({rate} an hour)")).unwrap_or_default()
    };
    let parts = [
        Some(format!("{} opened in {}", counted(connections as usize, "connection"), long_time(verdict.run.duration))),
        descriptors.map(|(from, to)| format!("descriptors {} → {}", grouped(from), grouped(to))),
        memory.map(|(from, to)| format!("memory {} → {}", bytes(from), bytes(to))),
        (journal_bytes > 0).then(|| format!("journal {}{}", bytes(journal_bytes), an_hour(journal_bytes))),
    ];
    parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

/// How many processes sent it.
pub(super) fn shards(verdict: &Verdict) -> String {
    match verdict.run.shards {
        0 | 1 => String::new(),
        several => format!("{}, merged", number(f64::from(several))),
    }
}
