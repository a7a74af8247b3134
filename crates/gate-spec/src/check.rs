//! The check grammar: `METRIC OP BOUND`.

use std::ops::Range;

use gate_model::{
    Aggregate, Bound, Decide, Direction, ErrorKind, Metric, MetricError, Op, Quantity, QuantityError, Scalar, Series,
    Unit,
};

use crate::problem::clip;

/// A check on its own, not yet in a list.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Parsed {
    pub(crate) metric: Metric,
    pub(crate) op: Op,
    pub(crate) bound: Bound,
    pub(crate) bound_text: String,
    /// Which bytes of the text the metric is.
    pub(crate) metric_at: Range<usize>,
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

/// What is wrong: without a word of the text, in full, and what to write.
type Fault = (&'static str, String, String);

/// The class of a bound whose unit is missing, or is not its metric's.
pub(crate) const UNIT: &str = "the unit of its bound does not fit its metric";
const RELATIVE: &str = "relative bounds are not yet supported";
const NEVER: &str = "it can never pass";

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
                format!("write the metric first: `{bound} {} {name}`", mirrored(op).symbol())
            }
            MetricError::Unknown { .. } => {
                "metrics are such as `ttft.p95`, `tpot.p50`, `e2e.max`, `errors.rate` and `attainment`".to_owned()
            }
            MetricError::NeedsAggregate(series) => format!("write `{series}.p95 {symbol} {bound}`"),
            MetricError::Pooled(series) => format!("write `{series}.p95 {symbol} {bound}`"),
            MetricError::Percentile { .. } => "percentiles are such as `p50`, `p95` or `p99.9`".to_owned(),
            MetricError::NotYet(_) => "remove this check, or use another metric".to_owned(),
        };
        let problem = match &failure {
            // Only these repeat what was written, which may be long.
            MetricError::Unknown { .. } | MetricError::Percentile { .. } | MetricError::NotYet(_) => {
                clip(&failure.to_string())
            }
            MetricError::NeedsAggregate(_) | MetricError::Pooled(_) => failure.to_string(),
        };
        error(metric_at.clone(), ("its metric is unknown or not yet supported", problem, hint))
    })?;
    let read = quantity(metric, op, bound).map_err(|fault| {
        let at = if bound_at.is_empty() { start..start + symbol.len() } else { bound_at.clone() };
        error(at, fault)
    })?;
    equality(op, read).map_err(|fault| error(start..start + symbol.len(), fault))?;
    Ok(Parsed { metric, op, bound: Bound::Absolute(read), bound_text: bound.to_owned(), metric_at })
}

/// The bound, in the metric's unit.
fn quantity(metric: Metric, op: Op, bound: &str) -> Result<Quantity, Fault> {
    let unit = metric.unit();
    let such_as = || format!("such as `{metric} {} {}`", op.symbol(), unit.example());
    if bound.is_empty() {
        return Err(("it has no bound", "this check has no bound".to_owned(), such_as()));
    }
    for (word, what) in [("baseline", "a baseline"), ("reference", "a reference")] {
        if bound.starts_with(word) {
            return Err((
                RELATIVE,
                format!("a bound relative to {what} is not yet supported"),
                format!("write a fixed bound, {}", such_as()),
            ));
        }
    }
    if let Some((share, _)) = bound.split_once(" of ")
        && share.trim().ends_with('%')
    {
        return Err((
            RELATIVE,
            "a bound relative to another scenario is not yet supported".to_owned(),
            format!("write a fixed bound, {}", such_as()),
        ));
    }
    if bound.contains(['<', '>', '=']) {
        return Err((
            "it has more than one operator",
            "a check has one operator, and this has more".to_owned(),
            "write one check per line".to_owned(),
        ));
    }
    let read = bound.parse::<Quantity>().map_err(|failure| match failure {
        QuantityError::NotANumber(_) => (
            "its bound is not a number with a unit",
            format!("the bound `{}` is not a number with a unit", clip(bound)),
            such_as(),
        ),
        QuantityError::UnknownUnit(unit_text) => {
            let hint = match unit {
                Unit::Count => such_as(),
                _ => format!("write it in {}, {}", unit.spellings(), such_as()),
            };
            (UNIT, format!("`{}` is not a unit of `{metric}`", clip(&unit_text)), hint)
        }
        QuantityError::TooLarge => ("its bound is too large", "the bound is too large".to_owned(), such_as()),
    })?;
    let zero = read.unit == Unit::Count && read.value == 0.0;
    if read.unit != unit && !zero {
        return Err(misfit(metric, op, bound, read));
    }
    let read = Quantity { unit, ..read };
    let impossible =
        (op == Op::Less && read.value <= 0.0) || (unit == Unit::Share && op == Op::Greater && read.value >= 1.0);
    if unit == Unit::Share && read.value > 1.0 {
        return Err((NEVER, format!("`{metric}` is a share: it is never above 100%"), such_as()));
    }
    if impossible {
        let hint = if op == Op::Less {
            format!("write `{metric} <= {bound}`")
        } else {
            format!("write `{metric} >= {bound}`")
        };
        return Err((NEVER, format!("`{metric} {} {bound}` can never pass", op.symbol()), hint));
    }
    Ok(read)
}

/// What to say where the bound's unit is not the metric's.
fn misfit(metric: Metric, op: Op, bound: &str, read: Quantity) -> Fault {
    let (unit, op) = (metric.unit(), op.symbol());
    let such_as = format!("such as `{metric} {op} {}`", unit.example());
    let (problem, hint) = match (metric, unit, read.unit) {
        (Metric::Scalar(Scalar::Goodput), _, Unit::Share) => (
            "`goodput` is a rate in requests per second, not a share".to_owned(),
            format!("the share is called attainment: `attainment {op} {bound}`"),
        ),
        (_, Unit::Time, Unit::Count) => {
            (format!("the bound `{bound}` needs a unit"), format!("write `{metric} {op} {bound}ms`"))
        }
        (Metric::ErrorShare(kind), _, Unit::Count) => (
            format!("`{metric}` is a share, and `{bound}` is a count"),
            format!("write `{metric} {op} {bound}%`, or count them: `errors.{}.count {op} {bound}`", kind.name()),
        ),
        (_, Unit::Share | Unit::PerSecond | Unit::TokensPerSecond, Unit::Count) => {
            let suffix = match unit {
                Unit::Share => "%",
                Unit::PerSecond => "/s",
                _ => "tok/s",
            };
            (format!("the bound `{bound}` needs a unit"), format!("write `{metric} {op} {bound}{suffix}`"))
        }
        (Metric::ErrorCount(kind), _, Unit::Share) => (
            format!("`{metric}` is a count, and `{bound}` is a share"),
            format!("the share is called `errors.{}`: `errors.{} {op} {bound}`", kind.name(), kind.name()),
        ),
        _ => (
            format!("the unit of `{bound}` does not fit `{metric}`, which is measured in {}", unit.spellings()),
            such_as,
        ),
    };
    (UNIT, problem, hint)
}

/// `==` is for counts, 0, and shares of all or nothing.
fn equality(op: Op, bound: Quantity) -> Result<(), Fault> {
    let exact = bound.unit == Unit::Count || bound.value == 0.0 || (bound.unit == Unit::Share && bound.value == 1.0);
    if op != Op::Equal || exact {
        return Ok(());
    }
    Err((
        "`==` does not fit its bound",
        "`==` is only for counts, 0, and shares of 0% or 100%".to_owned(),
        "a measurement is never exactly a number: write `<=` or `>=`".to_owned(),
    ))
}

fn mirrored(op: Op) -> Op {
    match op {
        Op::Less => Op::Greater,
        Op::AtMost => Op::AtLeast,
        Op::Greater => Op::Less,
        Op::AtLeast => Op::AtMost,
        Op::Equal => Op::Equal,
    }
}

/// The check with its comparison the other way round, if it passes when the metric is worse.
pub(crate) fn turned(check: &Parsed) -> Option<String> {
    let backwards = matches!(
        (check.metric.direction(), check.op),
        (Direction::Lower, Op::Greater | Op::AtLeast) | (Direction::Higher, Op::Less | Op::AtMost)
    );
    backwards.then(|| format!("{} {} {}", check.metric, mirrored(check.op).symbol(), check.bound_text))
}

/// How checks of this metric are decided where the spec does not say: a point is counted errors, or a number the run
/// has once.
pub(crate) fn decided(metric: Metric) -> Decide {
    match metric {
        Metric::ErrorShare(_)
        | Metric::ErrorCount(_)
        | Metric::Scalar(_)
        | Metric::Series(Series::SendLag, _)
        | Metric::Series(_, Aggregate::Stddev) => Decide::Point,
        Metric::Series(..) | Metric::Attainment => Decide::Evidence,
    }
}

/// Whether the metric has values only where answers are streamed.
pub(crate) fn needs_stream(metric: Metric) -> bool {
    match metric {
        Metric::Series(series, _) => matches!(
            series,
            Series::Ttft | Series::Ttfa | Series::Ttfe | Series::Tpot | Series::Itl | Series::Icl | Series::Stall
        ),
        metric => metric == Metric::Scalar(Scalar::TpotEffective),
    }
}

/// Whether the metric has values only where tokens are generated.
pub(crate) fn needs_output(metric: Metric) -> bool {
    match metric {
        Metric::Series(Series::TpotE2e | Series::OutputTokens | Series::ReasoningTokens, _)
        | Metric::Scalar(Scalar::ThroughputOutputTokens) => true,
        metric => needs_stream(metric),
    }
}

/// The check every gate has unless its metric is named.
pub(crate) fn implied() -> (Metric, Op, Bound, &'static str) {
    (Metric::ErrorShare(ErrorKind::Any), Op::Less, Bound::Absolute(Quantity::share(0.05)), "5%")
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
                let Bound::Absolute(bound) = check.bound;
                format!("{} {} {} {:?}", check.metric, check.op.symbol(), bound.value, bound.unit)
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
                "ttft.p95 < 5KiB",
                "[5KiB] `KiB` is not a unit of `ttft.p95`; write it in us, ms, s, m, h or d, such as `ttft.p95 < 800ms`",
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
                "ttft.p50 < baseline + 15%",
                "[baseline + 15%] a bound relative to a baseline is not yet supported; write a fixed bound, such as `ttft.p50 < 800ms`",
            ),
            (
                "ttft.p50 < 40% of cold",
                "[40% of cold] a bound relative to another scenario is not yet supported; write a fixed bound, such as `ttft.p50 < 800ms`",
            ),
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
                "[drift.ttft] `drift.ttft` is not yet supported; remove this check, or use another metric",
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
    fn a_check_that_passes_when_worse_is_turned() {
        let turn = |text: &str| turned(&parse(text).unwrap());
        assert_eq!(turn("ttft.p95 > 800ms").as_deref(), Some("ttft.p95 < 800ms"));
        assert_eq!(turn("attainment < 95%").as_deref(), Some("attainment > 95%"));
        assert_eq!(turn("ttft.p95 < 800ms"), None);
        assert_eq!(turn("output_tokens.p50 > 10"), None);
    }
}
