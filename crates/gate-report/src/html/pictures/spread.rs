//! How a series is distributed: the share of requests up to each value, beside what it is compared with.

use gate_model::{Against, Quantity, Series, Spread, Unit};

use super::axis::{Axis, MarkPlace};
use super::canvas::{Anchor, Canvas, Place};
use super::scale::{Scale, WIDE};
use crate::words::{capitalised, figure, grouped};

/// How high the curves are.
const PLOT: f64 = 190.0;

/// How many limits have their own line of text; more are drawn without.
const NAMED: usize = 3;

/// A limit further away than this, in lengths of the axis, is told in words.
const FAR: f64 = 1.5;

/// What a run and what it is compared with are called.
#[derive(Clone, Copy)]
pub(crate) struct Names {
    pub(crate) target: &'static str,
    pub(crate) baseline: &'static str,
    pub(crate) reference: &'static str,
}

/// The curves of a series; `None` where nothing is known of it.
pub(crate) fn spread(series: Series, spreads: &[&Spread], limits: &[(f64, String)], names: Names) -> Option<String> {
    let mut curves: Vec<Curve> = spreads.iter().filter_map(|spread| Curve::new(spread, names)).collect();
    curves.sort_by_key(|curve| curve.order);
    let axis = Axis { scale: scale(&curves, limits)?, unit: series.unit() };
    let quantity = |value: f64| Quantity { value, unit: series.unit() };
    let mut canvas = Canvas::default();
    let title = capitalised(&name(series));
    canvas.text("p-title", (0.0, 14.0), Anchor::Start, &title);
    let mut y = 34.0;
    let mut told = Vec::new();
    for curve in &curves {
        let [half, most] =
            [0.5, 0.95].map(|share| curve.at(share).map_or_else(|| "–".to_owned(), |v| figure(quantity(v))));
        let text = format!("{}: median {half}, P95 {most} (n {})", curve.name, grouped(curve.n));
        canvas.shapes(0.0, &format!(r#"<path class="{}" d="M0 {}H30"/>"#, curve.class, y - 4.0));
        canvas.text_beside("p-key", (0.0, y), 37.0, &text);
        told.push(text);
        y += 17.0;
    }
    let on_axis = |value: f64| axis.scale.holds(value);
    let mut beyond = Vec::new();
    let mut marks: Vec<(f64, String)> = Vec::new();
    for (value, metric) in limits.iter().filter(|(value, _)| value.is_finite()) {
        let text = format!("{metric}: limit {}", figure(quantity(*value)));
        if on_axis(*value) { marks.push((*value, text)) } else { beyond.push(text) }
    }
    for text in beyond.iter().take(NAMED) {
        canvas.text("p-note", (0.0, y), Anchor::Start, &format!("{text}, off this picture"));
        y += 16.0;
    }
    let named = marks.len().min(NAMED) as f64;
    let top = y + 8.0 + 15.0 * named;
    let bottom = top + PLOT;
    let down = |share: f64| bottom - PLOT * share;
    for share in [0.25, 0.5, 0.75, 0.95, 1.0] {
        canvas.line("p-grid", (0.0, down(share)), (1.0, down(share)));
    }
    axis.draw(&mut canvas, top, bottom);
    for (place, (value, text)) in marks.iter().enumerate() {
        let line = y + 4.0 + 15.0 * place.min(NAMED) as f64;
        let text = if place < NAMED { text.as_str() } else { "" };
        axis.mark(&mut canvas, "p-limit", *value, text, MarkPlace { text: line, bottom });
    }
    for curve in curves.iter().rev() {
        canvas.path(curve.class, &curve.steps(axis, down), bottom + 1.0);
    }
    for (share, text) in [(0.5, "50 % of requests"), (0.95, "95 %")] {
        canvas.text("p-tick p-over", (0.0, down(share) - 3.0), Anchor::Start, text);
    }
    let unit = if series.unit() == Unit::Count { "tokens" } else { "time" };
    canvas.text("p-tick", (0.5, bottom + 31.0), Anchor::Middle, &format!("{unit}, at most"));
    told.extend(marks.into_iter().map(|(_, text)| text));
    told.extend(beyond);
    Some(canvas.finish(bottom + 38.0, &format!("Distribution of {}. {}.", name(series), told.join("; "))))
}

/// The curve of one spread.
struct Curve {
    order: u8,
    name: &'static str,
    class: &'static str,
    n: u32,
    /// Each finite value, ascending, with the share of requests up to it.
    points: Vec<(f64, f64)>,
}

impl Curve {
    fn new(spread: &Spread, names: Names) -> Option<Self> {
        let (order, name, class) = match spread.of {
            None => (0, names.target, "p-target"),
            Some(Against::Baseline) => (1, names.baseline, "p-baseline"),
            Some(Against::Reference) => (2, names.reference, "p-reference"),
        };
        let count = spread.quantiles.len();
        let is_every = count == spread.n as usize;
        let share = |place: usize| match count {
            _ if is_every => (place + 1) as f64 / count as f64,
            1 => 1.0,
            _ => place as f64 / (count - 1) as f64,
        };
        let points = spread.quantiles.iter().enumerate().map(|(place, value)| (*value, share(place)));
        let mut points: Vec<(f64, f64)> = points.filter(|(value, _)| value.is_finite()).collect();
        points.sort_by(|left, right| left.0.total_cmp(&right.0).then(left.1.total_cmp(&right.1)));
        (!points.is_empty()).then_some(Self { order, name, class, n: spread.n, points })
    }

    /// The value that this share of requests is at most.
    fn at(&self, share: f64) -> Option<f64> {
        // A rank that rounding put just below its share is that rank.
        self.points.iter().find(|(_, up_to)| *up_to >= share - 1e-9).map(|(value, _)| *value)
    }

    fn steps(&self, axis: Axis, down: impl Fn(f64) -> f64) -> Vec<Place> {
        let mut steps = Vec::with_capacity(2 * self.points.len());
        let mut before = 0.0;
        for (value, share) in &self.points {
            let x = axis.at(*value);
            steps.extend([(x, down(before)), (x, down(*share))]);
            before = *share;
        }
        // Past the largest value it stays where it is.
        steps.push((1.0, down(before)));
        steps
    }
}

/// From the smallest value to the largest, with the limits that are not far off.
fn scale(curves: &[Curve], limits: &[(f64, String)]) -> Option<Scale> {
    let (low, high) = ends(curves.iter().flat_map(|curve| curve.points.iter().map(|(value, _)| *value)))?;
    let middle = curves.iter().flat_map(|curve| [curve.at(0.05), curve.at(0.95)]).flatten();
    let (from, to) = ends(middle)?;
    let is_wide = low > 0.0 && (to / from > WIDE || high / to > WIDE / 2.0);
    let make = if is_wide { Scale::log } else { Scale::linear };
    let near = limits.iter().map(|(value, _)| *value).filter(|value| {
        let (length, beyond) = if is_wide {
            ((high / low).ln().max(1.0), (value / high).ln().max((low / value).ln()))
        } else {
            ((high - low).max(high.abs() * 0.5), (value - high).max(low - value))
        };
        beyond.is_finite() && beyond <= length * FAR
    });
    let (low, high) = ends(near.chain([low, high]))?;
    let room = if is_wide { 0.0 } else { (high - low) * 0.02 };
    make(low - room, high + room).or_else(|| Scale::linear(low, high))
}

fn ends(values: impl Iterator<Item = f64>) -> Option<(f64, f64)> {
    values.fold(None, |ends: Option<(f64, f64)>, value| {
        Some(ends.map_or((value, value), |(low, high)| (low.min(value), high.max(value))))
    })
}

/// The series in words.
fn name(series: Series) -> String {
    match series {
        Series::Ttft => "time to first token",
        Series::Ttfa => "time to first answer token",
        Series::Ttfe => "time to first event",
        Series::E2e => "time to last token",
        Series::Tpot => "time per output token",
        Series::TpotE2e => "time per output token, first token included",
        Series::Stall => "longest gap of each request",
        Series::OutputTokens => "output tokens",
        Series::InputTokens => "input tokens",
        other => return format!("{}, {}", other.name(), counted_unit(other)),
    }
    .to_owned()
}

fn counted_unit(series: Series) -> &'static str {
    if series.unit() == Unit::Count { "tokens" } else { "time" }
}
