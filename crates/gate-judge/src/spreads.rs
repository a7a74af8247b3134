//! How the main series are distributed: what reports draw.

use gate_model::{Against, Request, Run, Series, Spread, Unit};

use crate::arms::Arms;
use crate::base::Before;
use crate::judge::Decided;
use crate::scored::count;
use crate::slow::ok;

/// What is drawn.
const SERIES: [Series; 4] = [Series::Ttft, Series::Tpot, Series::E2e, Series::OutputTokens];

/// The distributions over each scenario's judged `ok` requests: of the target, of the reference, and of the stored runs
/// together, wherever a series has values.
pub(crate) fn spreads(run: &Run, decided: &Decided<'_>, before: &Before<'_>) -> Vec<Spread> {
    if !decided.is_judged() {
        return Vec::new();
    }
    let scenarios = decided.arms.by_scenario();
    let nothing = Arms::default();
    let mut spreads = Vec::new();
    for (scenario, _) in (0_u16..).zip(&run.header.scenarios) {
        let arms = scenarios.get(&scenario).unwrap_or(&nothing);
        let stored: Vec<Request<'_>> =
            before.kept.iter().flat_map(|kept| kept.of_scenario(scenario).to_vec()).collect();
        let whose: [(Option<Against>, &[Request<'_>]); 3] =
            [(None, &arms.target), (Some(Against::Reference), &arms.reference), (Some(Against::Baseline), &stored)];
        for series in SERIES {
            spreads.extend(whose.iter().filter_map(|(of, requests)| spread(scenario, series, *of, requests)));
        }
    }
    spreads
}

/// How one series is distributed; `None` of nothing.
fn spread(scenario: u16, series: Series, of: Option<Against>, requests: &[Request<'_>]) -> Option<Spread> {
    let mut values: Vec<f64> = ok(requests).filter_map(|one| one.value(series)).filter(|one| one.is_finite()).collect();
    values.sort_unstable_by(f64::total_cmp);
    let n = values.len();
    let last = n.checked_sub(1)?;
    let quantiles = if n <= Spread::MOST {
        values
    } else {
        // The nearest rank of p % is ⌈p n / 100⌉, counted from 1.
        let place = |percent: usize| (percent * n).div_ceil(100).saturating_sub(1).min(last);
        (0..=100).filter_map(|percent| values.get(place(percent)).copied()).collect()
    };
    let rounded = |value: f64| if series.unit() == Unit::Time { value.round() } else { value };
    Some(Spread { scenario, series, of, n: count(n), quantiles: quantiles.into_iter().map(rounded).collect() })
}
