//! One check: its limit, what was seen, and how sure that is, on one line.

use std::fmt::Write as _;

use gate_model::{CheckOutcome, CheckVerdict, Op, Quantity, Side};

use super::canvas::{escaped, numbers};
use super::scale::{Scale, WIDE};
use crate::words::{base_figure, comparison, figure, judged, limit_figure, seen_figure};

const WIDTH: f64 = 160.0;
const HEIGHT: f64 = 28.0;
/// Where the line is, from the top.
const MIDDLE: f64 = 14.0;
/// How far from the edges values are drawn.
const INSET: f64 = 12.0;

/// What is drawn of a check, all in one unit.
struct Marks {
    seen: f64,
    limit: Option<f64>,
    lower: Option<f64>,
    upper: Option<f64>,
    base: Option<f64>,
}

/// The picture of a check; `None` where nothing was seen, or there is nothing to see it against.
pub(crate) fn check(verdict: &CheckVerdict) -> Option<String> {
    let marks = marks(verdict)?;
    let scale = scale(&marks)?;
    let x = |value: f64| INSET + (WIDTH - 2.0 * INSET) * scale.at(value);
    let mut body = String::new();
    if let Some(limit) = marks.limit {
        let allowed = match verdict.check.op {
            Op::Less | Op::AtMost => Some((1.0, x(limit))),
            Op::Greater | Op::AtLeast => Some((x(limit), WIDTH - 1.0)),
            Op::Equal => None,
        };
        if let Some([from, width]) = allowed.and_then(|(from, to)| numbers([from, to - from])) {
            let _ = write!(body, r#"<rect class="p-allowed" x="{from}" y="5" width="{width}" height="18" rx="2"/>"#);
        }
    }
    line(&mut body, "p-axis", (1.0, MIDDLE), (WIDTH - 1.0, MIDDLE));
    if marks.lower.is_some() || marks.upper.is_some() {
        let ends = (marks.lower.map_or(1.0, x), marks.upper.map_or(WIDTH - 1.0, x));
        line(&mut body, "p-whisker", (ends.0, MIDDLE), (ends.1, MIDDLE));
        for end in [marks.lower, marks.upper].into_iter().flatten() {
            line(&mut body, "p-whisker", (x(end), MIDDLE - 4.0), (x(end), MIDDLE + 4.0));
        }
    }
    if let Some(limit) = marks.limit {
        line(&mut body, "p-limit", (x(limit), 2.0), (x(limit), HEIGHT - 2.0));
    }
    if let Some([x, y]) = marks.base.and_then(|base| numbers([x(base), MIDDLE])) {
        let _ = write!(body, r#"<path class="p-base" d="M{x} {y}m0 -5l5 5l-5 5l-5 -5z"/>"#);
    }
    if let Some([x, y]) = numbers([if marks.seen.is_finite() { x(marks.seen) } else { WIDTH - 6.0 }, MIDDLE]) {
        let _ = match judged(&verdict.outcome) {
            _ if marks.seen.is_infinite() => write!(body, r#"<path class="p-broken" d="M{x} {y}m-4 -5l5 5l-5 5"/>"#),
            CheckOutcome::Violated => write!(body, r#"<path class="p-broken" d="M{x} {y}m-4 -4l8 8m0 -8l-8 8"/>"#),
            CheckOutcome::Met => write!(body, r#"<circle class="p-kept" cx="{x}" cy="{y}" r="4"/>"#),
            CheckOutcome::Inconclusive { side: Side::Within } => {
                write!(body, r#"<circle class="p-kept p-unsure" cx="{x}" cy="{y}" r="4"/>"#)
            }
            _ => write!(body, r#"<circle class="p-unsure" cx="{x}" cy="{y}" r="4"/>"#),
        };
    }
    let label = escaped(&label(verdict)?, 300);
    let size = format!(r#"width="{WIDTH}" height="{HEIGHT}" viewBox="0 0 {WIDTH} {HEIGHT}""#);
    Some(format!(r#"<svg class="p-check" role="img" aria-label="{label}" {size}>{body}</svg>"#))
}

fn marks(verdict: &CheckVerdict) -> Option<Marks> {
    let seen = verdict.seen.filter(|seen| !seen.value.is_nan() && seen.value != f64::NEG_INFINITY)?;
    let alike = |other: Option<Quantity>| {
        let same = other.filter(|other| other.unit == seen.unit && other.value.is_finite());
        same.map(|other| other.value)
    };
    let compared = comparison(verdict);
    let limit = compared.and_then(|compared| compared.limit).or_else(|| verdict.check.bound.absolute());
    let evidence = verdict.evidence.as_ref();
    let marks = Marks {
        seen: seen.value,
        limit: alike(limit),
        lower: alike(evidence.and_then(|evidence| evidence.lower)),
        upper: alike(evidence.and_then(|evidence| evidence.upper)),
        base: alike(compared.and_then(|compared| compared.base)),
    };
    let is_beside = marks.limit.is_some() || marks.base.is_some();
    is_beside.then_some(marks)
}

fn scale(marks: &Marks) -> Option<Scale> {
    let all = [Some(marks.seen), marks.limit, marks.lower, marks.upper, marks.base];
    let all = all.into_iter().flatten().filter(|value| value.is_finite());
    let (low, high) = all.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), one| (low.min(one), high.max(one)));
    if low > 0.0 && high / low > WIDE { Scale::log(low, high) } else { Scale::linear(low, high) }
}

fn line(body: &mut String, class: &str, from: (f64, f64), to: (f64, f64)) {
    if let Some([x1, y1, x2, y2]) = numbers([from.0, from.1, to.0, to.1]) {
        let _ = write!(body, r#"<line class="{class}" x1="{x1}" y1="{y1}" x2="{x2}" y2="{y2}"/>"#);
    }
}

/// What the picture shows, in words: `seen 1,040 ms, between 980 ms and 1,200 ms, limit 800 ms`.
fn label(verdict: &CheckVerdict) -> Option<String> {
    let evidence = verdict.evidence.as_ref();
    let bounds = evidence.map(|evidence| (evidence.lower.map(figure), evidence.upper.map(figure)));
    let bounds = match bounds {
        Some((Some(lower), Some(upper))) => Some(format!("between {lower} and {upper}")),
        Some((Some(lower), None)) => Some(format!("at least {lower}")),
        Some((None, Some(upper))) => Some(format!("at most {upper}")),
        _ => None,
    };
    let parts = [
        Some(format!("seen {}", seen_figure(verdict)?)),
        bounds,
        limit_figure(verdict).map(|limit| format!("limit {limit}")),
        base_figure(verdict).map(|base| format!("compared with {base}")),
    ];
    Some(parts.into_iter().flatten().collect::<Vec<_>>().join(", "))
}
