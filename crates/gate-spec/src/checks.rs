//! The checks of a gate, and the rules about all of them together.

use std::collections::BTreeMap;

use gate_model::{Aggregate, Bound, Check, Importance, Iterations, Metric, Origin, Percentile, Scalar, Slo};

use crate::check::{CheckError, Parsed, implied, is_counted_or_point, parse, turned};
use crate::context::Context;
use crate::problem::Problem;
use crate::raw::RawCheck;

/// The fewest requests a check decided by evidence is judged on.
const FEWEST: u32 = 20;

/// A check with the path it was written at.
struct Declared {
    path: String,
    text: String,
    parsed: Parsed,
    importance: Importance,
}

/// All checks: required, implied, preferred.
pub(crate) fn checks(
    context: &mut Context,
    require: &[RawCheck],
    prefer: &[RawCheck],
    iterations: Iterations,
    slo: Slo,
) -> Vec<Check> {
    let mut declared = read(context, "require", require, Importance::Required);
    let required = declared.len();
    declared.extend(read(context, "prefer", prefer, Importance::Preferred));

    if required == 0 && context.is_sound("require") && require.is_empty() {
        let site = context.key("require");
        context.problems.push(
            Problem::error(site, "a gate needs a required check of its own")
                .hint("add one, such as `require: [ttft.p95 < 800ms]`"),
        );
    }
    refuse_duplicates(context, &declared);
    let sized = context.is_sound("load.iterations");
    for check in &declared {
        let metric = check.parsed.metric;
        if matches!(metric, Metric::Attainment | Metric::Scalar(Scalar::Goodput))
            && !slo.is_given()
            && context.is_sound("slo")
        {
            let message = format!("`{metric}` counts requests that keep every `slo:` bound, and there is none");
            report(context, check, message, "add one, such as `slo: {ttft: 800ms, tpot: 50ms}`");
        }
        if sized {
            check_size(context, check, iterations);
        }
        if let Some(turned) = turned(&check.parsed) {
            let message = format!("`{}` passes when `{metric}` is worse than the bound", check.text);
            warn(context, check, message, &format!("a check states the condition that passes: `{turned}`"));
        }
    }
    refuse_few(context, &declared, iterations, sized);
    assemble(context, declared)
}

fn read(context: &mut Context, list: &str, raw: &[RawCheck], importance: Importance) -> Vec<Declared> {
    let mut declared = Vec::new();
    for RawCheck { check, at } in raw {
        let path = format!("{list}[{at}]");
        match parse(check) {
            Ok(parsed) => declared.push(Declared { path, text: check.clone(), parsed, importance }),
            Err(CheckError { at, problem, class, hint }) => {
                let problem = match context.variable(&path) {
                    // What came from the environment is not repeated.
                    Some(name) => Problem::error(
                        context.site(&path),
                        format!("with `${{{name}}}` filled in, this is not a check: {class}"),
                    )
                    .hint("a check reads METRIC OPERATOR BOUND, such as `ttft.p95 < 800ms`"),
                    None => Problem::error(context.part(&path, check, at), problem).hint(hint),
                };
                context.problems.push(problem);
            }
        }
    }
    declared
}

fn report(context: &mut Context, check: &Declared, message: String, hint: &str) {
    let site = context.part(&check.path, &check.text, check.parsed.metric_at.clone());
    context.problems.push(Problem::error(site, message).hint(hint));
}

fn warn(context: &mut Context, check: &Declared, message: String, hint: &str) {
    let site = context.part(&check.path, &check.text, 0..check.text.len());
    context.problems.push(Problem::warning(site, message).hint(hint));
}

fn refuse_duplicates(context: &mut Context, declared: &[Declared]) {
    let mut seen: BTreeMap<String, &str> = BTreeMap::new();
    for check in declared {
        let Parsed { metric, op, bound: Bound::Absolute(bound), .. } = &check.parsed;
        let same = format!("{metric} {} {}", op.symbol(), bound.value);
        if let Some(first) = seen.get(&same) {
            let line = context.place(first).line;
            let message = format!("duplicate check `{}`: it is already on line {line}", check.text);
            let site = context.part(&check.path, &check.text, 0..check.text.len());
            context.problems.push(Problem::error(site, message).hint("keep one of the two"));
        } else {
            seen.insert(same, &check.path);
        }
    }
}

/// The percentile of a check.
fn percentile(parsed: &Parsed) -> Option<Percentile> {
    match parsed.metric {
        Metric::Series(_, Aggregate::Percentile(percentile) | Aggregate::PercentileOfAll(percentile)) => {
            Some(percentile)
        }
        _ => None,
    }
}

/// A percentile needs requests beyond it.
fn check_size(context: &mut Context, check: &Declared, iterations: Iterations) {
    let Some(percentile) = percentile(&check.parsed) else { return };
    let metric = check.parsed.metric;
    let (needed, base) = (percentile.least_sample(), iterations.base());
    if needed > base {
        let message = format!("`{metric}` needs at least {needed} iterations, and `load.iterations` ends at {base}");
        let more = if needed <= 1_000 { format!("30..{}", needed.max(50)) } else { needed.to_string() };
        let hint = format!("raise it, such as `iterations: {more}`, or check a percentile nearer to p50");
        report(context, check, message, &hint);
    }
}

fn refuse_few(context: &mut Context, declared: &[Declared], iterations: Iterations, sized: bool) {
    let first = iterations.looks().first().copied().unwrap_or(0);
    let by_evidence = declared.iter().find(|check| !is_counted_or_point(check.parsed.metric));
    if let (Some(check), true) = (by_evidence, sized && first < FEWEST) {
        let message = format!("{first} iterations are too few to judge `{}` by evidence", check.text);
        context.error("load.iterations", message, &format!("start at {FEWEST} or more, such as `iterations: 30..50`"));
    }
}

fn assemble(context: &Context, declared: Vec<Declared>) -> Vec<Check> {
    // A preferred check breaks no build, so it is no substitute for the implied one.
    let required = declared.iter().filter(|check| check.importance == Importance::Required);
    let named = required.clone().any(|check| check.parsed.metric == implied().0);
    let (mut checks, mut preferred) = (Vec::new(), Vec::new());
    for Declared { path, parsed: Parsed { metric, op, bound, bound_text, .. }, importance, .. } in declared {
        let origin = Origin::Declared(context.place(&path));
        let check = Check { scenario: 0, metric, op, bound, bound_text, importance, origin };
        match importance {
            Importance::Required => checks.push(check),
            Importance::Preferred => preferred.push(check),
        }
    }
    if !named {
        let (metric, op, bound, bound_text) = implied();
        let (bound_text, importance, origin) = (bound_text.to_owned(), Importance::Required, Origin::Implied);
        checks.push(Check { scenario: 0, metric, op, bound, bound_text, importance, origin });
    }
    checks.append(&mut preferred);
    checks
}
