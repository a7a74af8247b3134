//! The bound of a check: a fixed quantity, or relative to something else that is measured.

use gate_model::{Against, Aggregate, Bound, Direction, Metric, Op, Quantity, QuantityError, Relative, Scalar, Unit};

use crate::problem::{clip, nearest};

/// What is wrong: without a word of the text, in full, and what to write.
pub(crate) type Fault = (&'static str, String, String);

/// The class of a fixed bound whose unit is missing, or is not its metric's.
pub(crate) const UNIT: &str = "the unit of its bound does not fit its metric";
const AMOUNT: &str = "what is added to its `baseline` or `reference` does not fit";
const INCOMPARABLE: &str = "its metric is not compared with another run's";
const NEVER: &str = "it can never pass";
const ALWAYS: &str = "it allows everything";
/// The largest change a relative bound can allow: more than that compares nothing.
const LARGEST_CHANGE: f64 = 10.0;

/// Reads a bound, in the metric's unit, and spells it.
pub(crate) fn read(metric: Metric, op: Op, text: &str) -> Result<(Bound, String), Fault> {
    if text.is_empty() {
        return Err(("it has no bound", "this check has no bound".to_owned(), such_as(metric, op)));
    }
    if text.contains(['<', '>', '=']) {
        return Err((
            "it has more than one operator",
            "a check has one operator, and this has more".to_owned(),
            "write one check per line".to_owned(),
        ));
    }
    if let Some((share, scenario)) = share_of(text) {
        return share_bound(metric, op, share, scenario);
    }
    let (word, rest) = text.split_at(text.find(|symbol: char| !symbol.is_ascii_alphabetic()).unwrap_or(text.len()));
    if let Some(to) = [Against::Baseline, Against::Reference].into_iter().find(|to| to.name() == word) {
        let relative = Comparing { metric, op, to };
        relative.check_metric(text)?;
        return relative.read(rest.trim());
    }
    if let Some(fault) = misnamed(metric, op, word, rest, text) {
        return Err(fault);
    }
    quantity(metric, op, text).map(|read| (Bound::Absolute(read), text.to_owned()))
}

/// Growth is only ever bounded from above.
pub(crate) fn upper(metric: Metric, op: Op, bound: &str) -> Result<(), Fault> {
    match (metric, op) {
        (Metric::Drift(_), Op::Greater | Op::AtLeast | Op::Equal) => Err((
            "growth is bounded from above",
            format!("`{metric}` is bounded from above, and `{}` bounds it from below", op.symbol()),
            format!("write `{metric} < {bound}`"),
        )),
        _ => Ok(()),
    }
}

/// `==` is for counts, 0, and shares of all or nothing.
pub(crate) fn equality(op: Op, bound: &Bound) -> Result<(), Fault> {
    let exact = bound.absolute().is_some_and(|bound| {
        bound.unit == Unit::Count || bound.value == 0.0 || (bound.unit == Unit::Share && bound.value == 1.0)
    });
    if op != Op::Equal || exact {
        return Ok(());
    }
    Err((
        "`==` does not fit its bound",
        "`==` is only for counts, 0, and shares of 0% or 100%".to_owned(),
        "a measurement is never exactly a number: write `<=` or `>=`".to_owned(),
    ))
}

/// A relative bound, as [`read`] spells it, with the sign that lets a metric be worse than its base.
pub(crate) fn allowing(op: Op, text: &str) -> String {
    match text.split_once(['+', '-']) {
        Some((to, amounts)) => format!("{to}{}{amounts}", usual_sign(op)),
        None => text.to_owned(),
    }
}

/// The comparison that is meant: the other way round where the one written passes when the metric is worse.
pub(crate) fn meant(metric: Metric, op: Op) -> Op {
    match (metric.direction(), op) {
        (Direction::Lower, Op::Greater | Op::AtLeast) | (Direction::Higher, Op::Less | Op::AtMost) => mirrored(op),
        _ => op,
    }
}

/// The comparison with its sides exchanged.
pub(crate) fn mirrored(op: Op) -> Op {
    match op {
        Op::Less => Op::Greater,
        Op::AtMost => Op::AtLeast,
        Op::Greater => Op::Less,
        Op::AtLeast => Op::AtMost,
        Op::Equal => Op::Equal,
    }
}

/// The sign of a bound that lets a metric be worse than its base.
fn usual_sign(op: Op) -> char {
    if op.wants_more() { '-' } else { '+' }
}

fn such_as(metric: Metric, op: Op) -> String {
    format!("such as `{metric} {} {}`", op.symbol(), metric.unit().example())
}

/// The number and the scenario of `R% of NAME`.
fn share_of(text: &str) -> Option<(&str, &str)> {
    let (share, rest) = text.split_once('%').filter(|_| text.starts_with(|first: char| first.is_ascii_digit()))?;
    let name = rest.trim_start().strip_prefix("of")?;
    (name.is_empty() || name.starts_with(char::is_whitespace)).then(|| (share.trim(), name.trim()))
}

fn share_bound(metric: Metric, op: Op, share: &str, scenario: &str) -> Result<(Bound, String), Fault> {
    let text = format!("{share}%").parse::<Quantity>().ok().filter(|read| read.value > 0.0);
    let example = format!("such as `{metric} {} 40% of cold`, where `cold` is a scenario", op.symbol());
    let Some(read) = text else {
        let problem = format!("`{}%` is not a share above 0%", clip(share));
        return Err(("its share of a scenario is none", problem, example));
    };
    if scenario.is_empty() {
        return Err(("it names no scenario", "this bound is a share of nothing".to_owned(), example));
    }
    if let Some(to) = [Against::Baseline, Against::Reference].into_iter().find(|to| to.name() == scenario) {
        let problem = format!("`of` goes with a scenario, and `{scenario}` is none");
        return Err((AMOUNT, problem, format!("write the difference: {}", Comparing { metric, op, to }.example())));
    }
    if !is_shared(metric) {
        let problem = format!("`{metric}` is not compared with another scenario's");
        let hint = format!(
            "compare a percentile over requests: such as `ttft.p50 {} {}% of {}`",
            op.symbol(),
            clip(share),
            clip(scenario)
        );
        return Err((INCOMPARABLE, problem, hint));
    }
    let text = format!("{share}% of {scenario}");
    Ok((Bound::ShareOf { share: read.value, scenario: scenario.to_owned() }, text))
}

/// Whether a metric has a meaning as a share of another scenario's: counts, extremes and what is known of one pattern
/// alone have none.
fn is_shared(metric: Metric) -> bool {
    match metric {
        Metric::Series(series, aggregate) => {
            !series.is_pooled() && matches!(aggregate, Aggregate::Percentile(_) | Aggregate::Mean)
        }
        Metric::ErrorShare(_) | Metric::Attainment => true,
        Metric::Scalar(scalar) => !matches!(scalar, Scalar::KneeRate | Scalar::Recovery),
        Metric::ErrorCount(_) | Metric::Spike(_) | Metric::Drift(_) | Metric::Server(..) => false,
    }
}

/// What to say where a bound is relative to nothing there is, or the other way round.
fn misnamed(metric: Metric, op: Op, word: &str, rest: &str, text: &str) -> Option<Fault> {
    let names = [Against::Baseline, Against::Reference].map(Against::name);
    let class = "what its bound is relative to is unknown";
    let example = Comparing { metric, op, to: Against::Baseline }.example();
    if word.is_empty() {
        let named = names.into_iter().find(|name| text.contains(name))?;
        let problem = format!("a bound relative to `{named}` starts with it");
        return Some((class, problem, example.replace(Against::Baseline.name(), named)));
    }
    let begun = |name: &&str| word.len() >= 3 && name.starts_with(&word.to_ascii_lowercase());
    let near = nearest(word, names).or_else(|| names.into_iter().find(begun));
    let is_sum = rest.trim_start().starts_with(['+', '-', '−', '–']);
    let problem = format!("a bound is relative to `baseline` or `reference`, not to `{}`", clip(word));
    let hint = match near {
        Some(near) => format!("did you mean `{near}{}`?", clip(rest)),
        None if is_sum => format!("{example}; `baseline: {{from: …}}` says which runs that is"),
        None => return None,
    };
    Some((class, problem, hint))
}

/// A fixed bound.
fn quantity(metric: Metric, op: Op, bound: &str) -> Result<Quantity, Fault> {
    let unit = metric.unit();
    let such_as = || such_as(metric, op);
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
    if let (Metric::Drift(_), true) = (metric, read.value <= 0.0) {
        // At the wander of a machine that does not grow, no growth at all is falsely red too often.
        let problem = format!("`{metric}` needs a bound above 0%/h: no machine keeps its pace to nothing");
        return Err((NEVER, problem, such_as()));
    }
    let impossible =
        (op == Op::Less && read.value <= 0.0) || (unit == Unit::Share && op == Op::Greater && read.value >= 1.0);
    if unit == Unit::Share && read.value > 1.0 {
        return Err((NEVER, format!("`{metric}` is a share: it is never above 100%"), such_as()));
    }
    if impossible {
        let hint = format!("write `{metric} {} {bound}`", or_equal(op).symbol());
        return Err((NEVER, format!("`{metric} {} {bound}` can never pass", op.symbol()), hint));
    }
    Ok(read)
}

fn or_equal(op: Op) -> Op {
    if op.wants_more() { Op::AtLeast } else { Op::AtMost }
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
        (_, Unit::PerHour, Unit::Share | Unit::Count) => {
            let number = bound.trim_end_matches('%').trim_end();
            let problem = format!("`{metric}` is growth over time, and `{bound}` says not in which");
            (problem, format!("write `{metric} {op} {number}%/h`"))
        }
        (_, Unit::Dollars, Unit::Count) => {
            (format!("the bound `{bound}` needs a unit"), format!("write `{metric} {op} ${bound}`"))
        }
        (Metric::Server(..), Unit::Count, _) => (
            format!("`{metric}` is a number as the server gives it, and `{bound}` has a unit"),
            format!("write the number alone, such as `{metric} {op} 100`"),
        ),
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

/// One allowance of a relative bound, signed.
enum Part {
    /// A share of the base.
    Change(f64),
    /// In the metric's own unit.
    Step(Quantity),
}

/// A check whose bound is relative to something measured.
#[derive(Clone, Copy)]
struct Comparing {
    metric: Metric,
    op: Op,
    to: Against,
}

impl Comparing {
    /// Some metrics have no meaning beside another run's.
    fn check_metric(self, bound: &str) -> Result<(), Fault> {
        let Self { metric, op, .. } = self;
        let (op, bound) = (op.symbol(), clip(bound));
        let is_reference = self.to == Against::Reference;
        let (problem, hint) = match metric {
            Metric::Spike(inner) if !is_reference => {
                return Self { metric: inner.metric(), ..self }.check_metric(&bound);
            }
            Metric::Drift(_) => (
                format!("`{metric}` is growth within one run, so it is not compared with another's"),
                format!("write `{metric} {op} {}`", metric.unit().example()),
            ),
            Metric::Spike(_) | Metric::Scalar(Scalar::KneeRate | Scalar::Recovery) if is_reference => (
                format!("`{metric}` is not compared side by side"),
                format!(
                    "compare it with stored runs: `{}`",
                    Self { to: Against::Baseline, ..self }.example().trim_start_matches("such as ").trim_matches('`')
                ),
            ),
            Metric::Server(..) if is_reference => (
                format!("`{metric}` is the target's own, and nobody asks the reference for its"),
                "compare it with stored runs, by `baseline`, or give it a fixed bound".to_owned(),
            ),
            Metric::Scalar(Scalar::Cost | Scalar::TokensSpent) if is_reference => (
                format!("`{metric}` counts both arms, so they are not compared by it"),
                "compare it with stored runs, by `baseline`, or give it a fixed bound".to_owned(),
            ),
            Metric::ErrorCount(kind) => (
                format!("`{metric}` grows with the run, so it is not compared with another's"),
                format!("compare the share, in points: `errors.{} {op} {} + 2pp`", kind.name(), self.to.name()),
            ),
            Metric::Series(series, aggregate) if series.is_pooled() => {
                let percentile = match aggregate {
                    Aggregate::Percentile(percentile) => percentile.to_string(),
                    _ => "p95".to_owned(),
                };
                (
                    format!("`{}` is pooled over requests: compare `tpot` or `stall`", series.name()),
                    format!("write `tpot.{percentile} {op} {bound}`"),
                )
            }
            Metric::Series(series, Aggregate::PercentileOfAll(percentile)) => (
                format!("`{metric}` counts failures as endless, so it is not compared with another run's"),
                format!(
                    "write `{}.{percentile} {op} {bound}`, with `errors.rate <= {} + 2pp` beside it",
                    series.name(),
                    self.to.name()
                ),
            ),
            Metric::Series(series, Aggregate::Max | Aggregate::Min) => (
                format!("`{metric}` is that of one request, so it is not compared with another run's"),
                format!("compare a percentile: `{}.p95 {op} {bound}`", series.name()),
            ),
            // One request among many moves it by a multiple.
            Metric::Series(series, Aggregate::Stddev) => (
                format!("`{metric}` hangs on a few requests, so it is not compared with another run's"),
                format!("compare a percentile: `{}.p95 {op} {bound}`", series.name()),
            ),
            _ => return Ok(()),
        };
        Err((INCOMPARABLE, problem, hint))
    }

    /// Reads what follows `baseline` or `reference`: nothing, or a sign and one or two amounts.
    fn read(self, rest: &str) -> Result<(Bound, String), Fault> {
        let name = self.to.name();
        let mut relative = Relative { to: self.to, change: None, step: None };
        let mut text = name.to_owned();
        if let Some((sign, amounts)) = self.sign(rest)? {
            let [mut change, mut step] = [None, None];
            for part in amounts.split("or").map(str::trim) {
                let spelt: String = part.split_whitespace().collect();
                let (place, kind) = match self.part(sign, part)? {
                    Part::Change(value) => {
                        relative.change = Some(value);
                        (&mut change, "a share")
                    }
                    Part::Step(value) => {
                        relative.step = Some(value);
                        (&mut step, "an amount")
                    }
                };
                if let Some(first) = place.replace(spelt) {
                    let problem = format!("`or` is between a share and an amount, and `{first}` is {kind} already");
                    return Err((AMOUNT, problem, "keep the larger of the two".to_owned()));
                }
            }
            let parts: Vec<_> = change.into_iter().chain(step).collect();
            text = format!("{name} {sign} {}", parts.join(" or "));
        }
        self.check_reach(relative, &text)?;
        Ok((Bound::Relative(relative), text))
    }

    /// The sign, and what follows it; `None` where there is nothing.
    fn sign(self, rest: &str) -> Result<Option<(char, &str)>, Fault> {
        let name = self.to.name();
        let Some(first) = rest.chars().next() else { return Ok(None) };
        let amounts = rest.get(first.len_utf8()..).unwrap_or("").trim();
        let (problem, hint) = match first {
            '+' | '-' if !amounts.is_empty() => return Ok(Some((first, amounts))),
            '+' | '-' => (format!("`{name} {first}` says not how much"), self.example()),
            '−' | '–' | '—' => {
                (format!("`{first}` is not a sign"), format!("write `{name} - {}`", clip(amounts)))
            }
            first if first.is_ascii_digit() => {
                let sign = usual_sign(self.op);
                (format!("`{}` has no sign", clip(rest)), format!("write `{name} {sign} {}`", clip(rest)))
            }
            _ => (format!("`{}` is not what can follow `{name}`", clip(rest)), self.example()),
        };
        Err((AMOUNT, problem, hint))
    }

    /// One amount, in percent of the base or in the metric's own unit.
    fn part(self, sign: char, text: &str) -> Result<Part, Fault> {
        let (Self { metric, to, .. }, unit) = (self, self.metric.unit());
        let fault = |problem: String, hint: String| Err((AMOUNT, problem, hint));
        let write = |amount: String| format!("write `{} {sign} {amount}`", to.name());
        let factor = if sign == '-' { -1.0 } else { 1.0 };
        if text.is_empty() {
            return fault("`or` says not how much".to_owned(), self.example());
        }
        if text.starts_with(['+', '-']) {
            return fault("both amounts have the one sign in front of them".to_owned(), self.example());
        }
        let points = text.strip_suffix("pp").map(str::trim_end);
        let read = match points.unwrap_or(text).parse::<Quantity>() {
            Ok(read) => read,
            Err(QuantityError::TooLarge) => {
                return Err((AMOUNT, "the bound is too large".to_owned(), self.example()));
            }
            Err(QuantityError::NotANumber(_)) => {
                return fault(format!("`{}` is not an amount with its unit", clip(text)), self.example());
            }
            Err(QuantityError::UnknownUnit(unit)) => {
                return fault(format!("`{}` is not a unit of `{metric}`", clip(&unit)), self.example());
            }
        };
        match (points, read.unit) {
            (Some(number), Unit::Count) if unit == Unit::Share => {
                let points = read.value / 100.0;
                match points < 1.0 {
                    true => Ok(Part::Step(Quantity::share(factor * points))),
                    false => Err((ALWAYS, format!("`{number}pp` are all there is of a share"), self.example())),
                }
            }
            (Some(number), Unit::Count) => {
                fault(format!("`pp` are points of a share, and `{metric}` is none"), write(format!("{number}%")))
            }
            (Some(_), _) => fault(format!("`{}` is not an amount with its unit", clip(text)), self.example()),
            (None, Unit::Share) if unit == Unit::Share => {
                let number = text.trim_end_matches('%').trim_end();
                let problem = format!("`{metric}` is a share, and shares differ in points, not in `%`");
                fault(problem, write(format!("{number}pp")))
            }
            (None, Unit::Share) if read.value > LARGEST_CHANGE => {
                let problem = format!("`{text}` is more than {}%, which compares nothing", LARGEST_CHANGE * 100.0);
                Err((ALWAYS, problem, self.example()))
            }
            (None, Unit::Share) => Ok(Part::Change(factor * read.value)),
            (None, found) if found == unit => Ok(Part::Step(Quantity { value: factor * read.value, unit })),
            (None, Unit::Count) => {
                let suffix = if unit == Unit::Share { "pp" } else { "%" };
                fault(format!("`{text}` needs a unit"), write(format!("{text}{suffix}")))
            }
            (None, _) => {
                let problem =
                    format!("the unit of `{text}` does not fit `{metric}`, which is measured in {}", unit.spellings());
                fault(problem, self.example())
            }
        }
    }

    /// A bound must be one that some value keeps and some value breaks.
    fn check_reach(self, bound: Relative, text: &str) -> Result<(), Fault> {
        let Self { metric, op, to } = self;
        if bound.change.is_some_and(|change| change <= -1.0) {
            return Err(match op.wants_more() {
                true => (ALWAYS, format!("`{metric} {} {text}` allows everything", op.symbol()), self.example()),
                false => (NEVER, format!("`{metric} {} {text}` can never pass", op.symbol()), self.example()),
            });
        }
        let is_even = bound.change.unwrap_or(0.0) == 0.0 && bound.step.is_none_or(|step| step.value == 0.0);
        if metric.unit() == Unit::Share && is_even && matches!(op, Op::Less | Op::Greater) {
            let end = if op == Op::Less { "0%" } else { "100%" };
            let problem =
                format!("`{metric} {} {text}` can never pass where the {} is at {end}", op.symbol(), to.name());
            return Err((NEVER, problem, format!("write `{metric} {} {text}`", or_equal(op).symbol())));
        }
        Ok(())
    }

    fn example(self) -> String {
        let amount = if self.metric.unit() == Unit::Share { "2pp" } else { "15%" };
        let Self { metric, to, .. } = self;
        let op = meant(metric, self.op);
        format!("such as `{metric} {} {} {} {amount}`", op.symbol(), to.name(), usual_sign(op))
    }
}
