//! The check grammar: `METRIC OP BOUND`.

use std::ops::Range;

use gate_model::{
    Against, Aggregate, Bound, Decide, Drifting, ErrorKind, Metric, MetricError, Op, PerRun, Quantity, Scalar, Series,
    ServerMetric,
};

use crate::bound::{self, Fault};
use crate::problem::{clip, nearest};

/// A check on its own, not yet in a list.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Parsed {
    pub(crate) metric: Metric,
    pub(crate) op: Op,
    pub(crate) bound: Bound,
    pub(crate) bound_text: String,
    /// Which bytes of the text the metric is.
    pub(crate) metric_at: Range<usize>,
    /// Which bytes of the text the bound is.
    pub(crate) bound_at: Range<usize>,
}

/// Why a text is not a check.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{problem}")]
pub(crate) struct CheckError {
    /// Which bytes of the text are wrong.
    pub(crate) at: Range<usize>,
    /// What is wrong.
    pub(crate) problem: String,
    /// The same without a word of the text, for texts with values from the environment.
    pub(crate) class: &'static str,
    /// What to write.
    pub(crate) hint: String,
}

/// Symbols people write for operators, with what they mean here.
const NEAR_OPERATORS: [(&str, &str); 7] =
    [("≤", "<="), ("≥", ">="), ("=<", "<="), ("=>", ">="), ("!=", "=="), ("≠", "=="), ("=", "==")];
const OPERATORS: [(&str, Op); 5] =
    [("<=", Op::AtMost), (">=", Op::AtLeast), ("==", Op::Equal), ("<", Op::Less), (">", Op::Greater)];

/// Reads a check.
pub(crate) fn parse(text: &str) -> Result<Parsed, CheckError> {
    let error = |at: Range<usize>, (class, problem, hint): Fault| CheckError { at, problem, class, hint };
    let Some(start) = text.find(['<', '>', '=', '!', '≤', '≥', '≠']) else {
        let metric = text.trim();
        let metric = if metric.parse::<Metric>().is_ok() { metric } else { "ttft.p95" };
        return Err(error(
            trimmed(text, 0..text.len()),
            (
                "it has no operator",
                format!("`{}` is not a check", clip(text.trim())),
                format!("a check reads METRIC OPERATOR BOUND, such as `{metric} < {}`", example(metric)),
            ),
        ));
    };
    let tail = text.get(start..).unwrap_or("");
    let Some((symbol, op)) = OPERATORS.iter().find(|(symbol, _)| tail.starts_with(symbol)).copied() else {
        let near = NEAR_OPERATORS.iter().find(|(symbol, _)| tail.starts_with(symbol));
        let (symbol, meant) = near.copied().unwrap_or(("!", "=="));
        return Err(error(
            start..start + symbol.len(),
            (
                "its operator is unknown",
                format!("`{symbol}` is not an operator"),
                match meant {
                    "==" => "the operators are `<`, `<=`, `>` and `>=`, and `==` for an exact count".to_owned(),
                    meant => format!("write `{meant}`"),
                },
            ),
        ));
    };
    let metric_at = trimmed(text, 0..start);
    let bound_at = trimmed(text, start + symbol.len()..text.len());
    let (name, bound) = (text.get(metric_at.clone()).unwrap_or(""), text.get(bound_at.clone()).unwrap_or(""));
    if name.is_empty() {
        return Err(error(
            start..start + symbol.len(),
            (
                "it has no metric",
                "this check has no metric".to_owned(),
                format!(
                    "write the metric first: `ttft.p95 {symbol} {}`",
                    if bound.is_empty() { "800ms" } else { bound }
                ),
            ),
        ));
    }
    let metric = name.parse::<Metric>().map_err(|failure| {
        let hint = match &failure {
            MetricError::Unknown { nearest, .. } if let Some(near) = first_of(name).or_else(|| nearest.clone()) => {
                format!("did you mean `{near}`?")
            }
            MetricError::Unknown { .. } if bound.parse::<Metric>().is_ok() => {
                format!("write the metric first: `{bound} {} {name}`", bound::mirrored(op).symbol())
            }
            MetricError::Unknown { .. } => {
                "metrics are such as `ttft.p95`, `tpot.p50`, `e2e.max`, `errors.rate` and `attainment`".to_owned()
            }
            MetricError::NeedsAggregate(series) => format!("write `{series}.p95 {symbol} {bound}`"),
            MetricError::Pooled(series) => format!("write `{series}.p95 {symbol} {bound}`"),
            MetricError::Percentile { .. } => "percentiles are such as `p50`, `p95` or `p99.9`".to_owned(),
            MetricError::NeedsServerAggregate(name) => match name.strip_prefix("server.").and_then(near_server) {
                Some(near) => format!("did you mean `server.{near}.max {symbol} {}`?", clip(bound)),
                None => format!("write `{}.max {symbol} {}`", clip(name), clip(bound)),
            },
            MetricError::NoServerMetric(_) => {
                "such as `server.kv_cache_usage.max`, or the server's own name: `server.vllm:num_requests_waiting.max`"
                    .to_owned()
            }
            MetricError::NoDrift(_) => format!("such as `drift.tpot {symbol} 1%/h`"),
            MetricError::NotInSpikes(name) => format!("check `{}` itself, or `spike.ttft.p95`", clip(name)),
        };
        let problem = match &failure {
            // Only these repeat what was written, which may be long.
            MetricError::Unknown { .. } | MetricError::Percentile { .. } | MetricError::NotInSpikes(_) => {
                clip(&failure.to_string())
            }
            MetricError::NoServerMetric(name) => MetricError::NoServerMetric(clip(name)).to_string(),
            MetricError::NoDrift(name) => MetricError::NoDrift(clip(name)).to_string(),
            MetricError::NeedsServerAggregate(name) => MetricError::NeedsServerAggregate(clip(name)).to_string(),
            MetricError::NeedsAggregate(_) | MetricError::Pooled(_) => failure.to_string(),
        };
        error(metric_at.clone(), ("its metric is unknown", problem, hint))
    })?;
    let op_at = start..start + symbol.len();
    let (bound, bound_text) = bound::read(metric, op, bound).map_err(|(class, problem, hint)| {
        let at = if bound_at.is_empty() { op_at.clone() } else { bound_at.clone() };
        let hint = match meant_server(metric) {
            Some(meant) => format!("did you mean `{meant}`? a name of the server's own has plain numbers: {hint}"),
            None => hint,
        };
        error(at, (class, problem, hint))
    })?;
    bound::upper(metric, op, &bound_text).map_err(|fault| error(op_at.clone(), fault))?;
    bound::equality(op, &bound).map_err(|fault| error(op_at, fault))?;
    Ok(Parsed { metric, op, bound, bound_text, metric_at, bound_at })
}

/// The check with its comparison the other way round, if it passes when the metric is worse.
pub(crate) fn turned(check: &Parsed) -> Option<String> {
    let op = bound::meant(check.metric, check.op);
    let bound = || match check.bound {
        Bound::Relative(_) => bound::allowing(op, &check.bound_text),
        _ => check.bound_text.clone(),
    };
    (op != check.op).then(|| format!("{} {} {}", check.metric, op.symbol(), bound()))
}

/// How checks of this metric against this bound are decided where the spec does not say: a point is a counted share, or
/// a number the run has once, of which only stored runs tell how much it varies.
pub(crate) fn decided(metric: Metric, bound: &Bound) -> Decide {
    let to = bound.relative().map(|relative| relative.to);
    match metric {
        Metric::Spike(inner) => decided(inner.metric(), bound),
        Metric::ErrorShare(_) | Metric::ErrorCount(_) => Decide::Point,
        Metric::Attainment if to.is_some() => Decide::Point,
        Metric::Scalar(_) | Metric::Server(..) if to == Some(Against::Baseline) => Decide::Evidence,
        metric if is_once(metric) => Decide::Point,
        Metric::Series(..) | Metric::Attainment | Metric::Scalar(_) | Metric::Drift(_) | Metric::Server(..) => {
            Decide::Evidence
        }
    }
}

/// Whether a run has the metric once, so that its requests say nothing of how sure it is.
pub(crate) fn is_once(metric: Metric) -> bool {
    match metric {
        Metric::Spike(inner) => is_once(inner.metric()),
        Metric::Series(series, aggregate) => series == Series::SendLag || aggregate == Aggregate::Stddev,
        Metric::Scalar(_) => !has_interval(metric),
        Metric::Server(..) => true,
        Metric::ErrorShare(_) | Metric::ErrorCount(_) | Metric::Attainment | Metric::Drift(_) => false,
    }
}

/// Whether the metric comes from the whole course of a run with an interval of its own: capacity, recovery and growth.
pub(crate) fn has_interval(metric: Metric) -> bool {
    matches!(metric, Metric::Drift(_) | Metric::Scalar(Scalar::KneeRate | Scalar::Recovery))
}

/// The series that a metric is of.
pub(crate) fn series(metric: Metric) -> Option<Series> {
    match metric {
        Metric::Series(series, _) | Metric::Drift(Drifting::Series(series)) => Some(series),
        Metric::Spike(inner) => series(inner.metric()),
        _ => None,
    }
}

/// Whether the metric has values only where answers are streamed.
pub(crate) fn needs_stream(metric: Metric) -> bool {
    match series(metric) {
        Some(series) => matches!(
            series,
            Series::Ttft | Series::Ttfa | Series::Ttfe | Series::Tpot | Series::Itl | Series::Icl | Series::Stall
        ),
        None => matches!(
            metric,
            Metric::Scalar(Scalar::TpotEffective | Scalar::Recovery)
                | Metric::Spike(PerRun::Scalar(Scalar::TpotEffective))
        ),
    }
}

/// Whether the metric has values only where tokens are generated.
pub(crate) fn needs_output(metric: Metric) -> bool {
    match (series(metric), metric) {
        (Some(Series::TpotE2e | Series::OutputTokens | Series::ReasoningTokens), _)
        | (
            None,
            Metric::Scalar(Scalar::ThroughputOutputTokens)
            | Metric::Spike(PerRun::Scalar(Scalar::ThroughputOutputTokens)),
        ) => true,
        _ => needs_stream(metric),
    }
}

/// Whether the metric counts the requests that keep every bound of the service level objective.
pub(crate) fn needs_slo(metric: Metric) -> bool {
    match metric {
        Metric::Spike(inner) => needs_slo(inner.metric()),
        metric => matches!(metric, Metric::Attainment | Metric::Scalar(Scalar::Goodput | Scalar::KneeRate)),
    }
}

/// The check every gate has unless its metric is named.
pub(crate) fn implied() -> (Metric, Op, Bound, &'static str) {
    (Metric::ErrorShare(ErrorKind::Any), Op::Less, Bound::Absolute(Quantity::share(0.05)), "5%")
}

/// The common name of a server's metric that a name is nearly, but is not; what only a server calls so has a colon.
pub(crate) fn near_server(name: &str) -> Option<&'static str> {
    let is_own = name.contains(':') || ServerMetric::COMMON.contains(&name);
    if is_own { None } else { nearest(name, ServerMetric::COMMON) }
}

/// The metric with the common name that its own is nearly.
fn meant_server(metric: Metric) -> Option<String> {
    let Metric::Server(name, aggregate) = metric else { return None };
    Some(format!("server.{}.{}", near_server(name.as_str())?, aggregate.name()))
}

/// The first metric of a family that is named without a member, such as `errors`.
fn first_of(family: &str) -> Option<String> {
    let is_member = |metric: &String| metric.strip_prefix(family).is_some_and(|member| member.starts_with('.'));
    Metric::common_names().into_iter().find(is_member)
}

fn example(metric: &str) -> &'static str {
    metric.parse::<Metric>().map_or("800ms", |metric| metric.unit().example())
}

/// A range without the blanks at its ends.
fn trimmed(text: &str, range: Range<usize>) -> Range<usize> {
    let part = text.get(range.clone()).unwrap_or("");
    let start = range.start + (part.len() - part.trim_start().len());
    start..start + part.trim().len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str) -> String {
        match parse(text) {
            Ok(check) => {
                let bound = match check.bound {
                    Bound::Absolute(bound) => format!("{} {:?}", bound.value, bound.unit),
                    _ => check.bound_text,
                };
                format!("{} {} {bound}", check.metric, check.op.symbol())
            }
            Err(CheckError { at, problem, hint, .. }) => format!("[{}] {problem}; {hint}", &text[at]),
        }
    }

    #[test]
    fn checks_read() {
        for (text, result) in [
            ("ttft.p95 < 800ms", "ttft.p95 < 800000000 Time"),
            ("ttft.p95<800ms", "ttft.p95 < 800000000 Time"),
            ("  ttft.p99.9  <=  1.5 s ", "ttft.p99.9 <= 1500000000 Time"),
            ("ttft.p95.all < 1s", "ttft.p95.all < 1000000000 Time"),
            ("errors.rate == 0", "errors.rate == 0 Share"),
            ("errors.5xx.count == 3", "errors.5xx.count == 3 Count"),
            ("attainment == 100%", "attainment == 1 Share"),
            ("throughput.output_tokens >= 100tok/s", "throughput.output_tokens >= 100 TokensPerSecond"),
            ("goodput >= 1.5/s", "goodput >= 1.5 PerSecond"),
            ("output_tokens.p50 >= 100", "output_tokens.p50 >= 100 Count"),
            ("e2e.max < 1m", "e2e.max < 60000000000 Time"),
            ("e2e.mean < 1m", "e2e.mean < 60000000000 Time"),
            ("itl.p99 < 50ms", "itl.p99 < 50000000 Time"),
            ("icl.max < 1s", "icl.max < 1000000000 Time"),
            ("tpot.effective < 50ms", "tpot.effective < 50000000 Time"),
            ("knee.rate >= 4/s", "knee.rate >= 4 PerSecond"),
            ("recovery <= 30s", "recovery <= 30000000000 Time"),
            ("spike.errors.rate < 5%", "spike.errors.rate < 0.05 Share"),
            ("drift.server.gpu_memory < 2%/h", "drift.server.gpu_memory < 0.02 PerHour"),
            ("server.kv_cache_usage.max < 85%", "server.kv_cache_usage.max < 0.85 Share"),
            ("server.memory.last < 2 GiB", "server.memory.last < 2147483648 Bytes"),
            ("server.vllm:num_requests_waiting.mean < 3", "server.vllm:num_requests_waiting.mean < 3 Count"),
            ("server.kv_cache_usage.max < baseline + 5pp", "server.kv_cache_usage.max < baseline + 5pp"),
            ("cost < $0.40", "cost < 0.4 Dollars"),
            ("tokens.spent <= 200000", "tokens.spent <= 200000 Count"),
            ("knee.rate >= baseline - 10%", "knee.rate >= baseline - 10%"),
            ("ttft.p50<baseline+15%", "ttft.p50 < baseline + 15%"),
            ("ttft.p50 < baseline  +  15 %  or  1.5 s", "ttft.p50 < baseline + 15% or 1.5s"),
            ("ttft.p50 < baseline + 20ms or 15%", "ttft.p50 < baseline + 15% or 20ms"),
            ("ttft.p95 <= baseline - 10%", "ttft.p95 <= baseline - 10%"),
            ("ttft.p50 < baseline", "ttft.p50 < baseline"),
            ("tpot.mean <= reference", "tpot.mean <= reference"),
            ("throughput.requests >= baseline + 5%", "throughput.requests >= baseline + 5%"),
            ("throughput.requests >= reference - 0.5/s", "throughput.requests >= reference - 0.5/s"),
            ("attainment >= baseline -2 pp", "attainment >= baseline - 2pp"),
            ("errors.rate <= baseline", "errors.rate <= baseline"),
            ("output_tokens.p50 >= baseline - 10", "output_tokens.p50 >= baseline - 10"),
            ("ttft.p50 < 40%of cold", "ttft.p50 < 40% of cold"),
        ] {
            assert_eq!(shown(text), result, "{text}");
        }
    }

    #[test]
    fn mistakes_are_named() {
        for (text, result) in [
            ("tfft.p95 < 800ms", "[tfft.p95] unknown metric `tfft.p95`; did you mean `ttft.p95`?"),
            ("errors < 5%", "[errors] unknown metric `errors`; did you mean `errors.rate`?"),
            ("throughput > 2/s", "[throughput] unknown metric `throughput`; did you mean `throughput.requests`?"),
            (
                "ttft < 800ms",
                "[ttft] `ttft` is measured per request: say which summary, such as `ttft.p95`; write `ttft.p95 < 800ms`",
            ),
            ("ttft.p95 < 800", "[800] the bound `800` needs a unit; write `ttft.p95 < 800ms`"),
            (
                "ttft.p95 < 5%",
                "[5%] the unit of `5%` does not fit `ttft.p95`, which is measured in us, ms, s, m, h or d; such as `ttft.p95 < 800ms`",
            ),
            (
                "ttft.p95 < 5KB",
                "[5KB] `KB` is not a unit of `ttft.p95`; write it in us, ms, s, m, h or d, such as `ttft.p95 < 800ms`",
            ),
            (
                "ttft.p95 < 5KiB",
                "[5KiB] the unit of `5KiB` does not fit `ttft.p95`, which is measured in us, ms, s, m, h or d; such as `ttft.p95 < 800ms`",
            ),
            (
                "goodput >= 95%",
                "[95%] `goodput` is a rate in requests per second, not a share; the share is called attainment: `attainment >= 95%`",
            ),
            (
                "errors.rate < 5",
                "[5] `errors.rate` is a share, and `5` is a count; write `errors.rate < 5%`, or count them: `errors.rate.count < 5`",
            ),
            (
                "errors.rate.count < 5%",
                "[5%] `errors.rate.count` is a count, and `5%` is a share; the share is called `errors.rate`: `errors.rate < 5%`",
            ),
            (
                "ttft.p95 == 800ms",
                "[==] `==` is only for counts, 0, and shares of 0% or 100%; a measurement is never exactly a number: write `<=` or `>=`",
            ),
            (
                "ttft.p95 = 800ms",
                "[=] `=` is not an operator; the operators are `<`, `<=`, `>` and `>=`, and `==` for an exact count",
            ),
            ("ttft.p95 ≤ 800ms", "[≤] `≤` is not an operator; write `<=`"),
            ("ttft.p95 => 800ms", "[=>] `=>` is not an operator; write `>=`"),
            (
                "ttft.p95 != 800ms",
                "[!=] `!=` is not an operator; the operators are `<`, `<=`, `>` and `>=`, and `==` for an exact count",
            ),
            ("800ms > ttft.p95", "[800ms] unknown metric `800ms`; write the metric first: `ttft.p95 < 800ms`"),
            (
                "ttft.p95",
                "[ttft.p95] `ttft.p95` is not a check; a check reads METRIC OPERATOR BOUND, such as `ttft.p95 < 800ms`",
            ),
            (">= 95%", "[>=] this check has no metric; write the metric first: `ttft.p95 >= 95%`"),
            ("ttft.p95 <", "[<] this check has no bound; such as `ttft.p95 < 800ms`"),
            (
                "ttft.p95 < 1s and tpot.p95 < 2s",
                "[1s and tpot.p95 < 2s] a check has one operator, and this has more; write one check per line",
            ),
            (
                "itl.mean < 50ms",
                "[itl.mean] `itl` is pooled over requests: it has percentiles and a maximum, such as `itl.p95`; write `itl.p95 < 50ms`",
            ),
            (
                "drift.ttft < 1%",
                "[1%] `drift.ttft` is growth over time, and `1%` says not in which; write `drift.ttft < 1%/h`",
            ),
            (
                "drift.ttft < 0%/h",
                "[0%/h] `drift.ttft` needs a bound above 0%/h: no machine keeps its pace to nothing; such as `drift.ttft < 1%/h`",
            ),
            (
                "drift.ttft > 1%/h",
                "[>] `drift.ttft` is bounded from above, and `>` bounds it from below; write `drift.ttft < 1%/h`",
            ),
            (
                "drift.itl < 1%/h",
                "[drift.itl] `itl` has no drift: `drift.ttft`, `drift.tpot` and the other series measured once a request do, and `drift.server.NAME`; such as `drift.tpot < 1%/h`",
            ),
            (
                "drift.tpot < baseline + 5%",
                "[baseline + 5%] `drift.tpot` is growth within one run, so it is not compared with another's; write `drift.tpot < 1%/h`",
            ),
            (
                "knee.rate >= reference - 5%",
                "[reference - 5%] `knee.rate` is not compared side by side; compare it with stored runs: `knee.rate >= baseline - 15%`",
            ),
            (
                "spike.ttft.p95 < reference + 5%",
                "[reference + 5%] `spike.ttft.p95` is not compared side by side; compare it with stored runs: `spike.ttft.p95 < baseline + 15%`",
            ),
            (
                "server.running.max < reference + 5%",
                "[reference + 5%] `server.running.max` is the target's own, and nobody asks the reference for its; compare it with stored runs, by `baseline`, or give it a fixed bound",
            ),
            (
                "server.running < 5",
                "[server.running] `server.running` is read many times in a run: say which summary, `server.running.max`, `.mean`, `.last` or `.delta`; write `server.running.max < 5`",
            ),
            (
                "server.kv_cache_usag.max < 85%",
                "[85%] `server.kv_cache_usag.max` is a number as the server gives it, and `85%` has a unit; did you mean `server.kv_cache_usage.max`? a name of the server's own has plain numbers: write the number alone, such as `server.kv_cache_usag.max < 100`",
            ),
            (
                "server.gpu_memroy < 2GiB",
                "[server.gpu_memroy] `server.gpu_memroy` is read many times in a run: say which summary, `server.gpu_memroy.max`, `.mean`, `.last` or `.delta`; did you mean `server.gpu_memory.max < 2GiB`?",
            ),
            (
                "server.vllm:x.max < 85%",
                "[85%] `server.vllm:x.max` is a number as the server gives it, and `85%` has a unit; write the number alone, such as `server.vllm:x.max < 100`",
            ),
            ("cost < 0.40", "[0.40] the bound `0.40` needs a unit; write `cost < $0.40`"),
            (
                "spike.client.cpu < 50%",
                "[spike.client.cpu] `client.cpu` is of the whole run: it has no value inside the spikes; check `client.cpu` itself, or `spike.ttft.p95`",
            ),
            (
                "recovery < 40% of cold",
                "[40% of cold] `recovery` is not compared with another scenario's; compare a percentile over requests: such as `ttft.p50 < 40% of cold`",
            ),
            ("errors.rate < 0", "[0] `errors.rate < 0` can never pass; write `errors.rate <= 0`"),
            ("attainment > 100%", "[100%] `attainment > 100%` can never pass; write `attainment >= 100%`"),
            (
                "errors.rate < 120%",
                "[120%] `errors.rate` is a share: it is never above 100%; such as `errors.rate < 5%`",
            ),
            (
                "ttft.p100 < 1s",
                "[ttft.p100] `ttft.p100`: a percentile lies strictly between 0 and 100; percentiles are such as `p50`, `p95` or `p99.9`",
            ),
            ("", "[] `` is not a check; a check reads METRIC OPERATOR BOUND, such as `ttft.p95 < 800ms`"),
        ] {
            assert_eq!(shown(text), result, "{text}");
        }
    }

    #[test]
    fn relative_bounds_are_signed_shares_and_amounts() {
        let read = |text: &str| parse(text).unwrap().bound.relative().unwrap();
        let time = |millis: f64| Some(Quantity { value: millis * 1e6, unit: gate_model::Unit::Time });
        let bound = read("ttft.p50 < reference - 15% or 20ms");
        assert_eq!((bound.to, bound.change, bound.step), (Against::Reference, Some(-0.15), time(-20.0)));
        let bound = read("attainment >= baseline - 2pp");
        assert_eq!((bound.to, bound.change, bound.step), (Against::Baseline, None, Some(Quantity::share(-0.02))));
        let bound = read("ttft.p50 < baseline");
        assert_eq!((bound.change, bound.step), (None, None));
        let share = Bound::ShareOf { share: 0.4, scenario: "cold".to_owned() };
        assert_eq!(parse("ttft.p50 < 40% of cold").unwrap().bound, share);
    }

    #[test]
    fn mistakes_in_relative_bounds_are_named() {
        let huge = "9".repeat(400);
        for (text, result) in [
            (
                "ttft.p50 < baseline +",
                "[baseline +] `baseline +` says not how much; such as `ttft.p50 < baseline + 15%`",
            ),
            (
                "throughput.requests >= baseline -",
                "[baseline -] `baseline -` says not how much; such as `throughput.requests >= baseline - 15%`",
            ),
            ("ttft.p50 < baseline 15%", "[baseline 15%] `15%` has no sign; write `baseline + 15%`"),
            ("ttft.p50 < baseline + 15", "[baseline + 15] `15` needs a unit; write `baseline + 15%`"),
            ("errors.rate < baseline + 2", "[baseline + 2] `2` needs a unit; write `baseline + 2pp`"),
            (
                "ttft.p50 < main + 10%",
                "[main + 10%] a bound is relative to `baseline` or `reference`, not to `main`; such as `ttft.p50 < baseline + 15%`; `baseline: {from: …}` says which runs that is",
            ),
            (
                "ttft.p50 < basline + 10%",
                "[basline + 10%] a bound is relative to `baseline` or `reference`, not to `basline`; did you mean `baseline + 10%`?",
            ),
            (
                "ttft.p50 < ref+10%",
                "[ref+10%] a bound is relative to `baseline` or `reference`, not to `ref`; did you mean `reference+10%`?",
            ),
            (
                "ttft.p50 < Baseline",
                "[Baseline] a bound is relative to `baseline` or `reference`, not to `Baseline`; did you mean `baseline`?",
            ),
            ("ttft.p50 < baseline − 5%", "[baseline − 5%] `−` is not a sign; write `baseline - 5%`"),
            (
                "ttft.p50 < baseline * 1.15",
                "[baseline * 1.15] `* 1.15` is not what can follow `baseline`; such as `ttft.p50 < baseline + 15%`",
            ),
            (
                "ttft.p50 < 1.15 * baseline",
                "[1.15 * baseline] a bound relative to `baseline` starts with it; such as `ttft.p50 < baseline + 15%`",
            ),
            (
                "ttft.p50 < 115% of baseline",
                "[115% of baseline] `of` goes with a scenario, and `baseline` is none; write the difference: such as `ttft.p50 < baseline + 15%`",
            ),
            (
                "ttft.p50 < 40% of",
                "[40% of] this bound is a share of nothing; such as `ttft.p50 < 40% of cold`, where `cold` is a scenario",
            ),
            (
                "ttft.p50 < 0% of cold",
                "[0% of cold] `0%` is not a share above 0%; such as `ttft.p50 < 40% of cold`, where `cold` is a scenario",
            ),
            (
                "ttft.p50 < baseline + 2pp",
                "[baseline + 2pp] `pp` are points of a share, and `ttft.p50` is none; write `baseline + 2%`",
            ),
            (
                "attainment >= baseline - 2%",
                "[baseline - 2%] `attainment` is a share, and shares differ in points, not in `%`; write `baseline - 2pp`",
            ),
            (
                "ttft.p50 < baseline + 3/s",
                "[baseline + 3/s] the unit of `3/s` does not fit `ttft.p50`, which is measured in us, ms, s, m, h or d; such as `ttft.p50 < baseline + 15%`",
            ),
            (
                "ttft.p50 < baseline + 15 percent",
                "[baseline + 15 percent] `percent` is not a unit of `ttft.p50`; such as `ttft.p50 < baseline + 15%`",
            ),
            (
                "ttft.p50 < baseline + much",
                "[baseline + much] `much` is not an amount with its unit; such as `ttft.p50 < baseline + 15%`",
            ),
            (
                "ttft.p50 < baseline + 15% or",
                "[baseline + 15% or] `or` says not how much; such as `ttft.p50 < baseline + 15%`",
            ),
            (
                "ttft.p50 < baseline + 15% or + 20ms",
                "[baseline + 15% or + 20ms] both amounts have the one sign in front of them; such as `ttft.p50 < baseline + 15%`",
            ),
            (
                "ttft.p50 < baseline + 15% or 20%",
                "[baseline + 15% or 20%] `or` is between a share and an amount, and `15%` is a share already; keep the larger of the two",
            ),
            (
                "ttft.p50 < baseline + 15ms or 20ms or 5%",
                "[baseline + 15ms or 20ms or 5%] `or` is between a share and an amount, and `15ms` is an amount already; keep the larger of the two",
            ),
            (
                "ttft.p50 < baseline - 100%",
                "[baseline - 100%] `ttft.p50 < baseline - 100%` can never pass; such as `ttft.p50 < baseline + 15%`",
            ),
            (
                "ttft.p50 > baseline - 100%",
                "[baseline - 100%] `ttft.p50 > baseline - 100%` allows everything; such as `ttft.p50 < baseline + 15%`",
            ),
            (
                "goodput >= baseline - 120%",
                "[baseline - 120%] `goodput >= baseline - 120%` allows everything; such as `goodput >= baseline - 15%`",
            ),
            (
                "errors.rate < baseline",
                "[baseline] `errors.rate < baseline` can never pass where the baseline is at 0%; write `errors.rate <= baseline`",
            ),
            (
                "attainment > reference - 0pp",
                "[reference - 0pp] `attainment > reference - 0pp` can never pass where the reference is at 100%; write `attainment >= reference - 0pp`",
            ),
            (
                "errors.rate < baseline + 100pp",
                "[baseline + 100pp] `100pp` are all there is of a share; such as `errors.rate < baseline + 2pp`",
            ),
            (
                "ttft.p50 < baseline + 1001%",
                "[baseline + 1001%] `1001%` is more than 1000%, which compares nothing; such as `ttft.p50 < baseline + 15%`",
            ),
            (
                "ttft.p50 < baseline + 99999999999999999d",
                "[baseline + 99999999999999999d] the bound is too large; such as `ttft.p50 < baseline + 15%`",
            ),
            (
                "errors.rate == baseline",
                "[==] `==` is only for counts, 0, and shares of 0% or 100%; a measurement is never exactly a number: write `<=` or `>=`",
            ),
            (
                "errors.5xx.count <= baseline + 3",
                "[baseline + 3] `errors.5xx.count` grows with the run, so it is not compared with another's; compare the share, in points: `errors.5xx <= baseline + 2pp`",
            ),
            (
                "itl.p99 < baseline + 10%",
                "[baseline + 10%] `itl` is pooled over requests: compare `tpot` or `stall`; write `tpot.p99 < baseline + 10%`",
            ),
            (
                "icl.max < reference + 10%",
                "[reference + 10%] `icl` is pooled over requests: compare `tpot` or `stall`; write `tpot.p95 < reference + 10%`",
            ),
            (
                "ttft.p95.all < baseline + 10%",
                "[baseline + 10%] `ttft.p95.all` counts failures as endless, so it is not compared with another run's; write `ttft.p95 < baseline + 10%`, with `errors.rate <= baseline + 2pp` beside it",
            ),
            (
                "tpot.stddev < reference + 10%",
                "[reference + 10%] `tpot.stddev` hangs on a few requests, so it is not compared with another run's; compare a percentile: `tpot.p95 < reference + 10%`",
            ),
            (
                "stall.max < baseline + 10%",
                "[baseline + 10%] `stall.max` is that of one request, so it is not compared with another run's; compare a percentile: `stall.p95 < baseline + 10%`",
            ),
        ] {
            assert_eq!(shown(text), result, "{text}");
        }
        assert!(
            shown(&format!("ttft.p50 < baseline + {huge}%"))
                .ends_with("the bound is too large; such as `ttft.p50 < baseline + 15%`")
        );
    }

    #[test]
    fn a_check_that_passes_when_worse_is_turned() {
        let turn = |text: &str| turned(&parse(text).unwrap());
        assert_eq!(turn("ttft.p95 > 800ms").as_deref(), Some("ttft.p95 < 800ms"));
        assert_eq!(turn("attainment < 95%").as_deref(), Some("attainment > 95%"));
        assert_eq!(turn("ttft.p95 > baseline+15%").as_deref(), Some("ttft.p95 < baseline + 15%"));
        assert_eq!(turn("ttft.p50 > baseline - 15% or 20ms").as_deref(), Some("ttft.p50 < baseline + 15% or 20ms"));
        assert_eq!(
            turn("throughput.requests <= baseline + 10%").as_deref(),
            Some("throughput.requests >= baseline - 10%")
        );
        assert_eq!(
            turn("throughput.requests < reference - 10%").as_deref(),
            Some("throughput.requests > reference - 10%")
        );
        assert_eq!(turn("attainment <= baseline").as_deref(), Some("attainment >= baseline"));
        assert_eq!(turn("ttft.p95 < 800ms"), None);
        assert_eq!(turn("output_tokens.p50 > 10"), None);
    }
}
