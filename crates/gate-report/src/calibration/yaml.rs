//! A `require:` and a `prefer:` block with the limits and tolerances that the runs propose.

use gate_model::{
    Against, Aggregate, Bound, Calibration, Check, CheckCalibration, Decide, Importance, Metric, Op, Origin, Quantity,
    Unit,
};

use crate::escape;
use crate::layout::counted;
use crate::words::percent;

/// The checks of the spec with the proposed limits and tolerances, as a block of YAML to paste into it: a check for
/// which nothing can be proposed stands as it is, and comments say what was there and what runs show.
#[must_use]
pub fn calibration_yaml(calibration: &Calibration) -> String {
    let runs = counted(calibration.runs as usize, "run");
    let found = escape::terminal(&calibration.noise.found);
    let name = escape::terminal(&calibration.name);
    let mut text = format!("# Proposed by `gate calibrate` from {runs} of {name}, {found}.\n");
    for (key, importance) in [("require", Importance::Required), ("prefer", Importance::Preferred)] {
        let of_kind = |check: &&CheckCalibration| check.check.importance == importance;
        let checks: Vec<&CheckCalibration> = calibration.checks.iter().filter(of_kind).collect();
        if checks.iter().any(|check| check.check.origin != Origin::Implied) {
            text.push_str(&format!("{key}:\n"));
        }
        text.extend(checks.into_iter().map(|check| lines(check, calibration)));
    }
    text
}

/// What is proposed for a check in place of what it is, and beside it.
pub(super) fn proposals(check: &CheckCalibration) -> Vec<String> {
    [proposed(check).filter(|_| check.check.origin != Origin::Implied), against_baseline(check)]
        .into_iter()
        .flatten()
        .collect()
}

/// A check's own line, and one against stored runs for who wants it.
fn lines(check: &CheckCalibration, calibration: &Calibration) -> String {
    let own = proposed(check);
    let was = check.check.to_string();
    if check.check.origin == Origin::Implied {
        return format!("  # - {}  # implied in every gate\n", escape::terminal(&was));
    }
    let note = match &own {
        Some(own) if *own != was => format!("was {}", check.check.bound_text),
        Some(_) => "as it was".to_owned(),
        None => "as it was: nothing can be proposed".to_owned(),
    };
    let noise = check.noise.map(|noise| format!(", runs differ by {}", percent(noise))).unwrap_or_default();
    let entry = entry(&check.check, own.as_deref().unwrap_or(&was));
    let mut text = format!("  - {entry}  # {}{noise}\n", escape::terminal(&note));
    let known = |other: &CheckCalibration| {
        let to_baseline = other.check.bound.relative().is_some_and(|bound| bound.to == Against::Baseline);
        to_baseline && other.check.metric == check.check.metric
    };
    let further = against_baseline(check).filter(|_| !calibration.checks.iter().any(known));
    text.extend(further.map(|further| format!("  # - {further}  # against stored runs\n")));
    text
}

/// The check as an entry of the list: its text alone, or the long form that keeps what else it says.
fn entry(check: &Check, text: &str) -> String {
    let mut parts = vec![format!("check: {}", quoted(text))];
    if (check.confidence - Check::CONFIDENCE).abs() > f64::EPSILON {
        parts.push(format!("confidence: {}", percent(check.confidence).replace(' ', "")));
    }
    parts.extend(check.decide.map(|decide| match decide {
        Decide::Evidence => "decide: evidence".to_owned(),
        Decide::Point => "decide: point".to_owned(),
    }));
    parts.extend(
        check
            .waive
            .as_ref()
            .map(|waiver| format!("waive: {{until: {}, reason: {}}}", quoted(&waiver.until), quoted(&waiver.reason))),
    );
    match parts.as_slice() {
        [_] if is_plain(text) => text.to_owned(),
        [_] => quoted(text),
        _ => format!("{{{}}}", parts.join(", ")),
    }
}

/// Whether YAML reads the text as it stands.
fn is_plain(text: &str) -> bool {
    text.trim() == text && text.chars().all(|symbol| symbol.is_ascii_alphanumeric() || " ._<>=%+-/".contains(symbol))
}

/// The text between double quotes, as JSON and YAML write it alike.
fn quoted(text: &str) -> String {
    serde_json::Value::from(escape::terminal(text)).to_string()
}

/// The check with the proposed limit or tolerance; `None` where there is none.
fn proposed(check: &CheckCalibration) -> Option<String> {
    let Check { metric, op, bound, .. } = &check.check;
    let bound = match bound {
        Bound::Absolute(_) => spelled(*metric, *op, check.limit?)?,
        Bound::Relative(relative) if relative.to == Against::Baseline && relative.change.is_some() => {
            let step = check.check.bound_text.split_once(" or ").map(|(_, step)| format!(" or {step}"));
            format!("{}{}", tolerance(*op, check.tolerance?)?, step.unwrap_or_default())
        }
        Bound::Relative(_) | Bound::ShareOf { .. } => return None,
    };
    Some(format!("{metric} {} {bound}", op.symbol()))
}

/// A check of the same metric against stored runs, for a check with a fixed limit.
fn against_baseline(check: &CheckCalibration) -> Option<String> {
    let Check { metric, op, bound, .. } = &check.check;
    let share = metric.unit() == Unit::Share;
    let all = matches!(metric, Metric::Series(_, Aggregate::PercentileOfAll(_)));
    bound.absolute().filter(|_| !share && !all && *op != Op::Equal)?;
    Some(format!("{metric} {} {}", op.symbol(), tolerance(*op, check.tolerance?)?))
}

/// `baseline + 15%`, in whole percent and no narrower than proposed.
fn tolerance(op: Op, tolerance: f64) -> Option<String> {
    let percent = (tolerance.abs() * 100.0 - 1e-9).ceil().max(1.0);
    let sign = if op.wants_more() { '-' } else { '+' };
    (percent.is_finite() && !(op.wants_more() && percent >= 100.0)).then(|| format!("baseline {sign} {percent}%"))
}

/// The limit as a spec has it, with three digits and no tighter than proposed.
fn spelled(metric: Metric, op: Op, limit: Quantity) -> Option<String> {
    let (scaled, unit) = match limit.unit {
        Unit::Time if limit.value < 1e6 => (limit.value / 1e3, "us"),
        Unit::Time if limit.value < 1e9 => (limit.value / 1e6, "ms"),
        Unit::Time => (limit.value / 1e9, "s"),
        Unit::Share => (limit.value * 100.0, "%"),
        Unit::PerSecond => (limit.value, "/s"),
        Unit::TokensPerSecond => (limit.value, "tok/s"),
        Unit::Count => (limit.value, ""),
        Unit::PerHour => (limit.value * 100.0, "%/h"),
        Unit::Dollars => (limit.value, "$"),
        Unit::Bytes if limit.value < 1_048_576.0 => (limit.value / 1024.0, "KiB"),
        Unit::Bytes if limit.value < 1_073_741_824.0 => (limit.value / 1_048_576.0, "MiB"),
        Unit::Bytes => (limit.value / 1_073_741_824.0, "GiB"),
    };
    let whole = matches!(metric, Metric::ErrorCount(_));
    if op == Op::Equal || !(scaled.is_finite() && scaled >= 0.0) {
        return None;
    }
    let decimals = if whole || scaled == 0.0 { 0 } else { (2.0 - scaled.log10().floor()).clamp(0.0, 9.0) as usize };
    let step = 10_f64.powi(-i32::try_from(decimals).unwrap_or(0));
    let steps = scaled / step;
    // What differs only in its last bits is no reason for another digit.
    let nearest = steps.round();
    let steps = match op {
        _ if (steps - nearest).abs() < 1e-6 => nearest,
        Op::Greater | Op::AtLeast => steps.floor(),
        Op::Less | Op::AtMost | Op::Equal => steps.ceil(),
    };
    let text = format!("{:.decimals$}", steps * step);
    let text = if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { &text };
    // The sign of dollars stands before them.
    Some(if unit == "$" { format!("${text}") } else { format!("{text}{unit}") })
}
