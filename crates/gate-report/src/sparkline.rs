//! Distributions in text, one line each.

use gate_model::{Against, Quantity, Series, Spread, Verdict};

use crate::layout::{WIDTH, clip};
use crate::words::{figure, grouped, scenario_name};

/// The bars, by how much of the tallest bin they are.
const BARS: [char; 5] = ['▁', '▂', '▃', '▅', '▇'];

/// How many bins there are at most, and at least.
const BINS: std::ops::RangeInclusive<usize> = 6..=16;

/// Fewer requests have no shape: a bar each would look like one.
const LEAST: usize = 10;

/// How many scenarios are drawn.
const SCENARIOS: usize = 3;

/// The width of the names in front.
const NAME: usize = 15;

/// What the lines are, for whoever reads them first.
pub(crate) const READING: &str = "Bars: the share of requests in each of equal steps of a logarithmic scale, the same \
                                  steps and height for the lines of one number; a blank: none, or of more than 101 \
                                  requests under 1 %.";

/// A distribution, and whose it is.
pub(crate) struct Drawn<'a> {
    pub(crate) whose: &'a str,
    pub(crate) spread: &'a Spread,
}

/// The distributions of a verdict, each beside those it is compared with; `None` where there are none.
pub(crate) fn pictures(verdict: &Verdict) -> Option<String> {
    let whose = |spread: &Spread| match spread.of {
        None => "now",
        Some(Against::Baseline) => "baseline",
        Some(Against::Reference) => "reference",
    };
    let here: Vec<&Spread> = verdict.spreads.iter().collect();
    drawn(verdict, &here, |scenario, series| {
        let same = verdict.spreads.iter().filter(move |spread| (spread.scenario, spread.series) == (scenario, series));
        same.map(|spread| Drawn { whose: whose(spread), spread }).collect()
    })
}

/// A few lines for each series of the spreads, under their scenarios' names where there are several.
pub(crate) fn drawn<'a>(
    verdict: &Verdict,
    spreads: &[&Spread],
    lines_of: impl Fn(u16, Series) -> Vec<Drawn<'a>>,
) -> Option<String> {
    let mut scenarios: Vec<u16> = spreads.iter().map(|spread| spread.scenario).collect();
    scenarios.sort_unstable();
    scenarios.dedup();
    let mut text = String::new();
    for scenario in scenarios.iter().take(SCENARIOS) {
        if let Some(name) = scenario_name(verdict, *scenario) {
            text.push_str(&format!("{}:\n", clip(&crate::escape::terminal(&name), WIDTH - 1)));
        }
        for series in Series::ALL {
            let of_series = |spread: &&&Spread| (spread.scenario, spread.series) == (*scenario, series);
            if spreads.iter().any(|spread| of_series(&spread)) {
                text.push_str(&named(series.name(), &sparklines(&lines_of(*scenario, series))));
            }
        }
    }
    let more = scenarios.len().saturating_sub(SCENARIOS);
    if more > 0 {
        text.push_str(&format!("{more} more scenarios are not drawn\n"));
    }
    (!text.is_empty()).then_some(text)
}

/// The lines after their name, which stands once.
fn named(name: &str, lines: &[String]) -> String {
    let names = std::iter::once(name).chain(std::iter::repeat(""));
    lines.iter().zip(names).map(|(line, name)| clip(&format!("{name:<NAME$}{line}"), WIDTH) + "\n").collect()
}

/// A line for each distribution, on the same bins and with the same height: `▁▃▇▅▂▁  210 … 940 ms  now (50)`.
///
/// The bins are equal steps of the logarithm from the least value of all to the greatest; where one is not above zero,
/// of the value itself. Few values are not drawn, and the line says so.
pub(crate) fn sparklines(drawn: &[Drawn<'_>]) -> Vec<String> {
    let values: Vec<Vec<f64>> = drawn.iter().map(|one| finite(&one.spread.quantiles)).collect();
    let enough = |values: &&Vec<f64>| values.len() >= LEAST;
    let Some(scale) = Scale::of(values.iter().filter(enough)) else {
        return drawn.iter().zip(&values).map(|(one, values)| line("too few to draw", one, values)).collect();
    };
    let shares: Vec<Vec<f64>> = values.iter().map(|values| scale.shares(values)).collect();
    let drawable = shares.iter().zip(&values).filter(|(_, values)| enough(values));
    let tallest = drawable.flat_map(|(shares, _)| shares).copied().fold(0.0, f64::max);
    let bars = |shares: &[f64]| shares.iter().map(|share| bar(*share, tallest)).collect::<String>();
    let lines = drawn.iter().zip(&values).zip(&shares).map(|((one, values), shares)| {
        let picture = if enough(&values) { bars(shares) } else { "too few to draw".to_owned() };
        (picture, one, values)
    });
    let lines: Vec<_> = lines.collect();
    let widest = lines.iter().map(|(picture, ..)| picture.chars().count()).max().unwrap_or(0);
    lines.into_iter().map(|(picture, one, values)| line(&format!("{picture:<widest$}"), one, values)).collect()
}

/// The picture with its range, and whose it is.
fn line(picture: &str, one: &Drawn<'_>, values: &[f64]) -> String {
    let unit = one.spread.series.unit();
    let text = |value: f64| figure(Quantity { value, unit });
    let (least, most) = (least(values), most(values));
    let range = match (text(least), text(most)) {
        _ if values.is_empty() => "no value".to_owned(),
        (from, to) if from == to => to,
        (from, to) => match (from.split_once(' '), to.split_once(' ')) {
            (Some((digits, unit)), Some((_, same))) if unit == same => format!("{digits} … {to}"),
            _ => format!("{from} … {to}"),
        },
    };
    format!("{picture}  {range:<20}  {} ({})", one.whose, grouped(one.spread.n))
}

fn finite(values: &[f64]) -> Vec<f64> {
    values.iter().copied().filter(|value| value.is_finite()).collect()
}

fn least(values: &[f64]) -> f64 {
    values.iter().copied().fold(f64::INFINITY, f64::min)
}

fn most(values: &[f64]) -> f64 {
    values.iter().copied().fold(f64::NEG_INFINITY, f64::max)
}

/// Nothing for nothing; of anything at least the lowest bar.
fn bar(share: f64, tallest: f64) -> char {
    let highest = BARS.len() as f64;
    let height = (share / tallest * highest).ceil().clamp(1.0, highest) as usize;
    if share > 0.0 { BARS.get(height - 1).copied().unwrap_or(' ') } else { ' ' }
}

/// The bins that several distributions share.
struct Scale {
    from: f64,
    to: f64,
    bins: usize,
    is_logarithmic: bool,
}

impl Scale {
    /// From the least value to the greatest; the fewer values, the fewer bins. `None` of nothing.
    fn of<'a>(values: impl Iterator<Item = &'a Vec<f64>>) -> Option<Self> {
        let values: Vec<&Vec<f64>> = values.collect();
        let fewest = values.iter().map(|values| values.len()).min()?;
        let from = values.iter().map(|values| least(values)).fold(f64::INFINITY, f64::min);
        let to = values.iter().map(|values| most(values)).fold(f64::NEG_INFINITY, f64::max);
        let bins = if from < to { (fewest / 3).clamp(*BINS.start(), *BINS.end()) } else { 1 };
        Some(Self { from, to, bins, is_logarithmic: from > 0.0 })
    }

    /// The share of the values in each bin.
    fn shares(&self, values: &[f64]) -> Vec<f64> {
        let mut counts = vec![0_usize; self.bins];
        for value in values {
            if let Some(count) = counts.get_mut(self.bin(*value)) {
                *count += 1;
            }
        }
        let all = values.len().max(1) as f64;
        counts.into_iter().map(|count| count as f64 / all).collect()
    }

    fn bin(&self, value: f64) -> usize {
        let part = if self.is_logarithmic {
            (value / self.from).ln() / (self.to / self.from).ln()
        } else {
            (value - self.from) / (self.to - self.from)
        };
        ((part * self.bins as f64) as usize).min(self.bins - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spread(values: impl IntoIterator<Item = f64>) -> Spread {
        let quantiles: Vec<f64> = values.into_iter().map(|value| value * 1e6).collect();
        Spread { scenario: 0, series: Series::Ttft, of: None, n: quantiles.len() as u32, quantiles }
    }

    fn lines(spreads: &[Spread]) -> Vec<String> {
        sparklines(&spreads.iter().map(|spread| Drawn { whose: "now", spread }).collect::<Vec<_>>())
    }

    #[test]
    fn bars_are_shares_on_shared_bins() {
        // A decade in six steps: ten values in the first, five in the last.
        let first = spread([100.0; 10].into_iter().chain([1_000.0; 5]));
        assert_eq!(lines(std::slice::from_ref(&first)), ["▇    ▃  100 … 1,000 ms        now (15)"]);
        // The same beside one that goes on for another decade: both are on the wider scale.
        let second = spread([10_000.0; 12]);
        assert_eq!(
            lines(&[first, second]),
            ["▅  ▂    100 … 1,000 ms        now (15)", "     ▇  10 s                  now (12)"]
        );
    }

    #[test]
    fn twice_as_many_requests_of_one_shape_look_the_same() {
        let shape = |times: usize| spread((1..=10).flat_map(|value| vec![f64::from(value); times]));
        let drawn = lines(&[shape(2), shape(5)]);
        let bars = |line: &str| line.split("  1 … 10 ms").next().unwrap().to_owned();
        assert_eq!(bars(&drawn[0]), bars(&drawn[1]));
    }

    #[test]
    fn few_values_are_not_drawn() {
        assert_eq!(lines(&[spread([210.0, 340.0, 940.0])]), ["too few to draw  210 … 940 ms          now (3)"]);
        let both = lines(&[spread([210.0, 940.0]), spread((1..=30).map(|value| f64::from(value) * 10.0))]);
        assert!(both[0].starts_with("too few to draw  210 … 940 ms"), "{both:?}");
        assert!(!both[1].contains("too few") && both[1].contains("10 … 300 ms"), "{both:?}");
    }

    #[test]
    fn odd_values_are_drawn_as_they_are() {
        assert_eq!(lines(&[spread([5.0; 20])]), ["▇  5 ms                  now (20)"]);
        let zero = lines(&[spread((0..20).map(f64::from))]);
        assert!(zero[0].contains("0 … 19 ms"), "{zero:?}");
        let wild = spread([f64::NAN, f64::INFINITY, -1e300, 1e300].into_iter().cycle().take(40));
        assert_eq!(lines(&[wild]).len(), 1);
        assert_eq!(lines(&[spread([])]), ["too few to draw  no value              now (0)"]);
        assert!(lines(&[]).is_empty());
    }
}
