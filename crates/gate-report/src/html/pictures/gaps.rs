//! The gaps between tokens of all requests together.

use std::collections::BTreeMap;

use gate_model::{Nanos, Quantity, Request, Series, Unit};

use super::axis::{Axis, MarkPlace};
use super::canvas::{Anchor, Canvas};
use super::scale::Scale;
use crate::layout::counted;
use crate::words::figure;

const PLOT: f64 = 170.0;

/// Where the bars begin, from the top: below the title, and the texts of two marks.
const TOP: f64 = 74.0;

/// How many bars there are.
const BARS: usize = 60;

/// Shorter gaps are no longer than a clock's own doubt, and share the first bar.
const LEAST: f64 = 1e3;

/// The histogram of the gaps; `None` where there are none, or their times were not kept.
pub(crate) fn gaps(requests: &[Request<'_>]) -> Option<String> {
    let mut counts: BTreeMap<Nanos, u64> = BTreeMap::new();
    for sample in requests.iter().filter_map(|request| request.sample()) {
        let mut add = |gap: Nanos, count: u64| {
            let held = counts.entry(gap).or_default();
            *held = held.saturating_add(count);
        };
        if sample.gaps.count() > 0 {
            sample.gaps.iter().for_each(|(gap, count)| add(gap, count));
        } else {
            sample.gap_values(Series::Icl).iter().for_each(|gap| add(Nanos(*gap as i64), 1));
        }
    }
    let total = counts.values().fold(0_u64, |sum, count| sum.saturating_add(*count));
    let value = |gap: Nanos| (gap.0 as f64).max(LEAST);
    let (low, high) = (value(*counts.first_key_value()?.0), value(*counts.last_key_value()?.0));
    let axis = Axis { scale: Scale::log(low * 0.95, high * 1.08)?, unit: Unit::Time };
    let mut bars = [0_u64; BARS];
    for (gap, count) in &counts {
        let place = (axis.scale.at(value(*gap)) * BARS as f64) as usize;
        if let Some(bar) = bars.get_mut(place.min(BARS - 1)) {
            *bar = bar.saturating_add(*count);
        }
    }
    let most = bars.into_iter().max().filter(|most| *most > 0)?;
    // One gap is still seen beside a million.
    let up = |count: u64| (1.0 + count as f64).ln() / (1.0 + most as f64).ln() * PLOT;
    let bottom = TOP + PLOT;
    let mut canvas = Canvas::default();
    canvas.text("p-title", (0.0, 14.0), Anchor::Start, "Gaps between tokens");
    let reading = format!("{}; each line across is ten times as many", counted(total as usize, "gap"));
    canvas.text("p-note", (0.0, 32.0), Anchor::Start, &reading);
    let levels = (0..18).map(|decade| 10_u64.pow(decade)).take_while(|level| *level <= most);
    let levels: Vec<u64> = levels.collect();
    for level in &levels {
        canvas.line("p-grid", (0.0, bottom - up(*level)), (1.0, bottom - up(*level)));
    }
    axis.draw(&mut canvas, TOP, bottom);
    let (left, width) = bar_places(axis);
    for (place, count) in bars.iter().enumerate().filter(|(_, count)| **count > 0) {
        let (x, height) = (left + width * place as f64, up(*count).max(1.5));
        canvas.rect("p-bar", (x, bottom - height), (width * 0.9, height));
    }
    for level in &levels {
        let text = figure(Quantity::count(*level as f64));
        canvas.text("p-tick p-over", (0.0, bottom - up(*level) - 3.0), Anchor::Start, &text);
    }
    let mut told = vec![counted(total as usize, "gap")];
    for (place, percent) in [50_u8, 99].into_iter().enumerate() {
        let rank = (total as f64 * f64::from(percent) / 100.0).ceil() as u64;
        let mut seen = 0_u64;
        let found = counts.iter().find(|(_, count)| {
            seen = seen.saturating_add(**count);
            seen >= rank.max(1)
        });
        let Some((gap, _)) = found else { continue };
        let text = format!("P{percent} {}", figure(Quantity::time(*gap)));
        let place = MarkPlace { text: 52.0 + 15.0 * place as f64, bottom };
        axis.mark(&mut canvas, "p-mark", value(*gap), &text, place);
        told.push(text);
    }
    canvas.text("p-tick", (0.5, bottom + 31.0), Anchor::Middle, "time between two tokens");
    Some(canvas.finish(bottom + 38.0, &format!("Gaps between tokens: {}.", told.join(", "))))
}

/// Where the first bar begins, and how wide one is.
fn bar_places(axis: Axis) -> (f64, f64) {
    let (low, high) = axis.scale.ends();
    let (left, right) = (axis.at(low), axis.at(high));
    (left, (right - left) / BARS as f64)
}
