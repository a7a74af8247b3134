//! The checks of a gate, and the rules about all of them together.

mod pattern;
mod said;
mod traffic;

use std::collections::BTreeMap;

use gate_model::{
    Against, Aggregate, Bound, Check, Connections, Decide, Importance, Iterations, Metric, Origin, Pace, Percentile,
    Scalar, Series, Unit, Waiver,
};

use crate::bound::UNIT;
use crate::check::{
    CheckError, Parsed, decided, has_interval, implied, is_once, needs_output, needs_slo, needs_stream, parse, series,
    turned,
};
use crate::context::Context;
use crate::problem::{Problem, clip, nearest};
use crate::raw::{RawCheck, RawSpec, RawTarget};
use crate::reference::over_tls;

pub(crate) use traffic::Traffic;

/// The fewest requests a check decided by evidence is judged on.
const FEWEST: u32 = 20;
/// The fewest pairs whose tails are compared.
const FEWEST_PAIRS: u32 = 30;

/// A check with the path it was written at.
#[derive(Clone)]
struct Declared {
    path: String,
    parsed: Parsed,
    importance: Importance,
    raw: RawCheck,
}

impl Declared {
    /// What its bound is relative to.
    fn against(&self) -> Option<Against> {
        self.parsed.bound.relative().map(|bound| bound.to)
    }

    fn decided(&self) -> Decide {
        self.raw.decide.unwrap_or_else(|| decided(self.parsed.metric, &self.parsed.bound))
    }

    /// Whether it has the same metric and operator as another.
    fn is_like(&self, other: &Self) -> bool {
        (self.parsed.metric, self.parsed.op) == (other.parsed.metric, other.parsed.op)
    }

    /// Whether it compares with this scenario.
    fn is_of(&self, scenario: Option<&str>) -> bool {
        matches!(&self.parsed.bound, Bound::ShareOf { scenario: of, .. } if Some(of.as_str()) == scenario)
    }
}

/// All checks, traffic by traffic: required, implied, preferred. A scenario has the gate's checks too, but for those it
/// has one of the same metric and operator of itself, and those that compare with itself.
pub(crate) fn checks(context: &mut Context, raw: &RawSpec, traffics: &[Traffic]) -> Vec<Check> {
    let common = both(context, "", [&raw.require, &raw.prefer]);
    let mut declared: Vec<Vec<Declared>> = Vec::new();
    for traffic in traffics {
        let own = traffic.own.map_or_else(Vec::new, |own| both(context, &traffic.scope.own(""), own));
        let name = traffic.scope.name();
        let is_inherited = |check: &&Declared| !own.iter().any(|own| own.is_like(check)) && !check.is_of(name);
        let mut all: Vec<_> = common.iter().filter(is_inherited).cloned().collect();
        all.extend(own);
        declared.push(all);
    }
    let own = traffics.iter().filter_map(|traffic| traffic.own);
    let required = own.map(|[required, _]| required).chain([raw.require.as_slice()]);
    let is_sound = traffics.iter().all(|traffic| context.is_sound(&traffic.scope.own("require")));
    if required.into_iter().all(<[_]>::is_empty) && is_sound && context.is_sound("require") {
        let site = context.key("require");
        context.problems.push(
            Problem::error(site, "a gate needs a required check of its own")
                .hint("add one, such as `require: [ttft.p95 < 800ms]`"),
        );
    }
    let names: Vec<_> = traffics.iter().filter_map(|traffic| traffic.scope.name()).collect();
    let before = std::mem::take(&mut context.problems);
    let mut said = Vec::new();
    for (traffic, declared) in traffics.iter().zip(&declared) {
        examine(context, raw, traffic, declared, &names);
        said.push((traffic.scope.name(), std::mem::take(&mut context.problems)));
    }
    context.problems = before;
    context.problems.extend(said::once(said));
    let is_used = declared.iter().flatten().any(|check| check.against() == Some(Against::Reference));
    let is_sound = is_sound && are_sound(context, &["reference", "require", "prefer", "scenarios"]);
    if raw.reference.is_some() && !is_used && is_sound {
        let problem = Problem::warning(context.key("reference"), "no check compares with `reference`");
        context.problems.push(problem.hint("add one, such as `ttft.p50 < reference + 10%`, or remove it"));
    }
    (0_u16..).zip(declared).flat_map(|(scenario, declared)| assemble(context, scenario, declared)).collect()
}

/// The required checks below a path, then the preferred ones.
fn both(context: &mut Context, prefix: &str, [require, prefer]: [&[RawCheck]; 2]) -> Vec<Declared> {
    let mut declared = read(context, &format!("{prefix}require"), require, Importance::Required);
    declared.extend(read(context, &format!("{prefix}prefer"), prefer, Importance::Preferred));
    declared
}

/// All that is wrong with the checks of one kind of traffic.
fn examine(context: &mut Context, raw: &RawSpec, traffic: &Traffic, declared: &[Declared], scenarios: &[&str]) {
    refuse_duplicates(context, declared);
    let sized = traffic.is_sized(context);
    for check in declared {
        let metric = check.parsed.metric;
        if needs_slo(metric) && !traffic.slo.is_given() && traffic.scope.is_sound(context, "slo") {
            let message = format!("`{metric}` counts requests that keep every `slo:` bound, and there is none");
            report(context, check, message, "add one, such as `slo: {ttft: 800ms, tpot: 50ms}`");
        }
        refuse_incomparable(context, check, raw.reference.is_some(), (traffic.scope.name(), scenarios));
        refuse_unmeasured(context, check, &raw.target, traffic);
        if sized {
            pattern::refuse_outside(context, check, traffic);
        }
        pattern::refuse_unasked(context, check, raw);
        pattern::warn_misspelt(context, check);
        if let Metric::Series(Series::Connect | Series::Tls, _) = metric
            && traffic.load.connections == Connections::Pooled
        {
            let path = traffic.scope.path(context, "load.connections");
            let message = format!("`{metric}` is measured on new connections only, and `{path}` is `pooled`");
            warn(context, check, message, "add `connections: fresh` to `load`");
        }
        if sized {
            check_size(context, check, traffic);
        }
        refuse_undecidable(context, check);
        if let Some(turned) = turned(&check.parsed) {
            let message = format!("`{}` passes when `{metric}` is worse than the bound", check.raw.check);
            warn(context, check, message, &format!("a check states the condition that passes: `{turned}`"));
        }
    }
    if sized {
        refuse_few(context, declared, traffic);
    }
    warn_unbounded(context, declared);
}

fn are_sound(context: &Context, paths: &[&str]) -> bool {
    paths.iter().all(|path| context.is_sound(path))
}

/// Where the implied check gives way to relative ones, nothing bounds errors before there is a baseline.
fn warn_unbounded(context: &mut Context, declared: &[Declared]) {
    let metric = implied().0;
    let named =
        || declared.iter().filter(|check| check.importance == Importance::Required && check.parsed.metric == metric);
    let is_relative = named().all(|check| check.against().is_some());
    if let (Some(check), true, true) = (named().next(), is_relative, are_sound(context, &["require"])) {
        let message =
            format!("`{metric}` has no fixed bound: where it was high before, or is not known yet, nothing bounds it");
        warn(context, check, message, "add a fixed bound too, such as `errors.rate < 5%`");
    }
}

fn read(context: &mut Context, list: &str, raw: &[RawCheck], importance: Importance) -> Vec<Declared> {
    let mut declared = Vec::new();
    for raw in raw {
        let path = format!("{list}[{}]", raw.at);
        match parse(&raw.check) {
            Ok(parsed) => declared.push(Declared { path, parsed, importance, raw: raw.clone() }),
            Err(CheckError { at, problem, class, hint }) => {
                let problem = match context.variable(&path) {
                    // What came from the environment is not repeated.
                    Some(name) => Problem::error(
                        context.site(&path),
                        format!("with `${{{name}}}` filled in, this is not a check: {class}"),
                    )
                    .hint(match metric_unit(&raw.check).filter(|_| class == UNIT) {
                        Some(unit) => with_unit(name, unit),
                        None => "a check reads METRIC OPERATOR BOUND, such as `ttft.p95 < 800ms`".to_owned(),
                    }),
                    None => Problem::error(context.part(&path, &raw.check, at), problem).hint(hint),
                };
                context.problems.push(problem);
            }
        }
    }
    declared
}

/// The unit of the metric a check starts with.
fn metric_unit(check: &str) -> Option<Unit> {
    check.split(['<', '>', '=']).next()?.trim().parse::<Metric>().ok().map(Metric::unit)
}

/// Where the unit of a bound goes if the bound is a variable: into the variable, or behind it.
fn with_unit(name: &str, unit: Unit) -> String {
    let example = unit.example();
    let (number, suffix) =
        example.split_at(example.find(|symbol: char| !symbol.is_ascii_digit()).unwrap_or(example.len()));
    match suffix {
        "" => format!("write a number without a unit, such as `${{{name}:-{number}}}`"),
        suffix => {
            format!("write it with its unit: `${{{name}:-{number}{suffix}}}`, or `${{{name}:-{number}}}{suffix}`")
        }
    }
}

fn report(context: &mut Context, check: &Declared, message: String, hint: &str) {
    let site = context.part(&check.path, &check.raw.check, check.parsed.metric_at.clone());
    context.problems.push(Problem::error(site, message).hint(hint));
}

fn warn(context: &mut Context, check: &Declared, message: String, hint: &str) {
    let site = context.part(&check.path, &check.raw.check, 0..check.raw.check.len());
    context.problems.push(Problem::warning(site, message).hint(hint));
}

/// A bound needs what it is relative to.
fn refuse_incomparable(
    context: &mut Context,
    check: &Declared,
    has_reference: bool,
    (own, scenarios): (Option<&str>, &[&str]),
) {
    let Parsed { metric, bound, bound_text, bound_at, .. } = &check.parsed;
    let (message, hint) = match (bound, check.against()) {
        (Bound::ShareOf { scenario, .. }, _) => match missing_scenario(context, scenario, own, scenarios) {
            Some((message, hint)) => {
                let site = context.part(&check.path, &check.raw.check, bound_at.clone());
                context.problems.push(Problem::error(site, message).hint(hint));
                return;
            }
            None => return,
        },
        (_, Some(Against::Reference)) if !has_reference && context.is_sound("reference") => (
            format!("`{bound_text}` is relative to a reference, and there is none"),
            "add one, such as `reference: {url: …}`, or give it by `--reference`",
        ),
        (_, Some(Against::Reference)) if is_once(*metric) && check.raw.decide.is_none() => {
            let message = format!("`{metric}` is measured once in each arm, so nothing is proven against a reference");
            warn(context, check, message, "compare it as it is, by `decide: point`, or with `baseline`");
            return;
        }
        (_, Some(Against::Baseline))
            if matches!(metric, Metric::Series(Series::SendLag, _)) && check.raw.decide.is_none() =>
        {
            let message = format!("`{metric}` is the client's own, so nothing is proven against a baseline");
            warn(context, check, message, "compare it as it is, by `decide: point`, or give it a fixed bound");
            return;
        }
        _ => return,
    };
    let site = context.part(&check.path, &check.raw.check, bound_at.clone());
    context.problems.push(Problem::error(site, message).hint(hint));
}

/// What is wrong with a share of this scenario.
fn missing_scenario(
    context: &Context,
    scenario: &str,
    own: Option<&str>,
    scenarios: &[&str],
) -> Option<(String, String)> {
    let name = clip(scenario);
    if own == Some(scenario) {
        let message = format!("this is a check of `{name}` itself, and compares with it");
        return Some((message, "name another scenario, or write a fixed bound".to_owned()));
    }
    if scenarios.contains(&scenario) || !context.is_sound("scenarios") {
        return None;
    }
    let hint = match nearest(scenario, scenarios.iter().copied()) {
        Some(near) => format!("did you mean `{near}`?"),
        None if scenarios.is_empty() => {
            "add `scenarios: {…}`, or write a fixed bound, or one relative to `baseline` or `reference`".to_owned()
        }
        None => {
            let names: Vec<_> = scenarios.iter().map(|name| format!("`{name}`")).collect();
            format!("the scenarios are {}", names.join(", "))
        }
    };
    Some((format!("there is no scenario `{name}`"), hint))
}

/// A metric that this target and load never have a value of.
fn refuse_unmeasured(context: &mut Context, check: &Declared, target: &RawTarget, traffic: &Traffic) {
    let (metric, api, pace) = (check.parsed.metric, target.api, traffic.load.pace);
    let (message, hint) = match (series(metric), pace) {
        _ if needs_output(metric) && !api.generates() => (
            format!("`{metric}` is about generated tokens, and `{}` generates none", api.name()),
            "check `e2e`, errors, `input_tokens` or `throughput.requests`",
        ),
        _ if needs_stream(metric) && !target.stream => (
            format!("`{metric}` is measured on a stream, and `target.stream` is false"),
            "check `e2e`, errors, tokens or throughput, or remove `stream: false`",
        ),
        (Some(Series::CapWait), Pace::Open { cap: None, .. })
            if traffic.scope.is_sound(context, "load.concurrency") =>
        {
            (
                format!("`{metric}` is the wait for a slot under a cap, and the load has none"),
                "add `concurrency` to `load`, beside `rps`, or remove this check",
            )
        }
        (Some(Series::CapWait), Pace::Closed { .. }) => (
            format!("`{metric}` is the wait for a slot under a cap, and in a closed loop nothing waits for one"),
            "add `rps` to `load` for an open loop with a cap, or remove this check",
        ),
        (Some(Series::Dns), _) => {
            (format!("`{metric}` has no values: a name is looked up once, before the load"), "remove this check")
        }
        _ if metric == Metric::Scalar(Scalar::AchievedRate) && matches!(pace, Pace::Closed { .. }) => (
            format!("`{metric}` is measured against a planned rate, and a closed loop has none"),
            "check `throughput.requests`, or add `rps` to `load` for an open loop",
        ),
        (Some(Series::Tls), _) if !over_tls(target) && context.is_sound("target.url") => (
            format!("`{metric}` is measured over https, and the target has no https URL"),
            "check `connect`, or write an https URL",
        ),
        _ => return,
    };
    report(context, check, message, hint);
}

fn refuse_duplicates(context: &mut Context, declared: &[Declared]) {
    let mut seen: BTreeMap<String, &str> = BTreeMap::new();
    for check in declared {
        let Parsed { metric, op, bound, .. } = &check.parsed;
        // `1s` and `1000ms` are one bound.
        let same = format!("{metric} {} {bound:?}", op.symbol());
        if let Some(first) = seen.get(&same) {
            let line = context.place(first).line;
            let message = format!("duplicate check `{}`: it is already on line {line}", check.raw.check);
            let site = context.part(&check.path, &check.raw.check, 0..check.raw.check.len());
            context.problems.push(Problem::error(site, message).hint("keep one of the two"));
        } else {
            seen.insert(same, &check.path);
        }
    }
}

/// The percentile of a check, over requests.
fn percentile(metric: Metric) -> Option<Percentile> {
    match metric {
        Metric::Series(series, Aggregate::Percentile(percentile) | Aggregate::PercentileOfAll(percentile))
            if !series.is_pooled() =>
        {
            Some(percentile)
        }
        Metric::Spike(inner) => percentile(inner.metric()),
        _ => None,
    }
}

/// What the long form asks for has to have a meaning for the metric.
fn refuse_undecidable(context: &mut Context, check: &Declared) {
    let (metric, asked) = (check.parsed.metric, check.raw.decide);
    let by_itself = decided(metric, &check.parsed.bound);
    let counted = if let Metric::Spike(inner) = metric { inner.metric() } else { metric };
    let is_counted = matches!(counted, Metric::ErrorShare(_) | Metric::Attainment);
    if asked == Some(Decide::Evidence) && by_itself == Decide::Point && !is_counted {
        let message = format!("`{metric}` is compared as it is: there is no rule by evidence for it");
        let hint = match metric {
            Metric::ErrorCount(kind) => format!("remove `decide`, or check the share: `errors.{} < 5%`", kind.name()),
            _ => "remove `decide`".to_owned(),
        };
        context.error(&format!("{}.decide", check.path), message, &hint);
    } else if check.raw.confidence.is_some() && check.decided() == Decide::Point {
        let message = format!("`confidence` has no meaning here: `{metric}` is compared as it is, not by evidence");
        let hint = match asked {
            Some(_) => "remove `confidence`, or `decide: point`",
            None if is_counted => "remove it, or add `decide: evidence`",
            None => "remove it",
        };
        context.error(&format!("{}.confidence", check.path), message, hint);
    }
}

/// A percentile of requests needs requests beyond it; of gaps there are many a request.
fn check_size(context: &mut Context, check: &Declared, traffic: &Traffic) {
    let metric = check.parsed.metric;
    let Some((percentile, size)) = percentile(metric).zip(traffic.size(metric)) else { return };
    let by_pairs = check.against() == Some(Against::Reference) && check.decided() == Decide::Evidence;
    let (needed, what) = match percentile.least_sample() {
        needed if needed > size => (needed, None),
        _ if by_pairs && percentile != Percentile::P50 && size < FEWEST_PAIRS => (
            FEWEST_PAIRS,
            Some(format!("`{metric}` against a reference is judged on {FEWEST_PAIRS} pairs or more (EXC)")),
        ),
        _ => return,
    };
    let by = traffic.sizing(context);
    let (message, hint) = if let Iterations::For(_) = traffic.load.iterations {
        let what = what.unwrap_or_else(|| format!("`{metric}` needs at least {needed} requests"));
        let hint = "raise the rate or the time, or check a percentile nearer to p50".to_owned();
        (format!("{what}, and `{by}` comes to about {size}"), hint)
    } else {
        let what = what.unwrap_or_else(|| format!("`{metric}` needs at least {needed} iterations"));
        let more = if needed <= 1_000 { format!("30..{}", needed.max(50)) } else { needed.to_string() };
        let hint = format!("raise it, such as `iterations: {more}`, or check a percentile nearer to p50");
        (format!("{what}, and `{by}` ends at {size}"), hint)
    };
    report(context, check, message, &hint);
}

fn refuse_few(context: &mut Context, declared: &[Declared], traffic: &Traffic) {
    // What a run has once is compared with other runs, whatever their size, and what has an interval of its own is
    // judged by that.
    let by_evidence = |check: &&Declared| {
        let metric = check.parsed.metric;
        check.decided() == Decide::Evidence && !is_once(metric) && !has_interval(metric)
    };
    let first = |metric: Metric| match traffic.load.iterations.looks().first() {
        Some(first) => Some(*first),
        None => traffic.size(metric),
    };
    let few = declared.iter().filter(by_evidence).find_map(|check| {
        let first = first(check.parsed.metric).filter(|first| *first < FEWEST)?;
        Some((check, first))
    });
    let Some((check, first)) = few else { return };
    let by = traffic.sizing(context);
    if let Iterations::For(_) = traffic.load.iterations {
        let message = format!("about {first} requests are too few to judge `{}` by evidence", check.raw.check);
        let hint = format!(
            "raise the rate or the time until there are {FEWEST} or more, or compare the number as it is, by `decide: point`"
        );
        context.error(&by, message, &hint);
        return;
    }
    let message = format!("{first} iterations are too few to judge `{}` by evidence", check.raw.check);
    let hint = format!(
        "start at {FEWEST} or more, such as `iterations: 30..50`, or compare the number as it is, by `decide: point`"
    );
    context.error(&by, message, &hint);
}

fn assemble(context: &Context, scenario: u16, declared: Vec<Declared>) -> Vec<Check> {
    // A preferred check breaks no build, so it is no substitute for the implied one.
    let required = declared.iter().filter(|check| check.importance == Importance::Required);
    let named = required.clone().any(|check| check.parsed.metric == implied().0);
    let (mut checks, mut preferred) = (Vec::new(), Vec::new());
    for Declared { path, parsed: Parsed { metric, op, bound, bound_text, .. }, importance, raw } in declared {
        let origin = Origin::Declared(context.place(&path));
        let waive = raw.waive.and_then(|waiver| Some(Waiver { until: waiver.until?, reason: waiver.reason? }));
        let check = Check {
            scenario,
            metric,
            op,
            bound,
            bound_text,
            importance,
            origin,
            decide: raw.decide,
            confidence: raw.confidence.unwrap_or(Check::CONFIDENCE),
            waive,
        };
        match importance {
            Importance::Required => checks.push(check),
            Importance::Preferred => preferred.push(check),
        }
    }
    if !named {
        let (metric, op, bound, bound_text) = implied();
        checks.push(Check {
            scenario,
            metric,
            op,
            bound,
            bound_text: bound_text.to_owned(),
            importance: Importance::Required,
            origin: Origin::Implied,
            decide: None,
            confidence: Check::CONFIDENCE,
            waive: None,
        });
    }
    checks.append(&mut preferred);
    checks
}
