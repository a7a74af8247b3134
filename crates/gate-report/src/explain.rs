//! `gate explain METRIC`: what a metric means, how a check on it is decided, and how other tools count.

mod steps;

use gate_model::{
    Against, Aggregate, Arm, Direction, Drifting, ErrorKind, Metric, Outcome, PerRun, Percentile, Rule, Scalar, Series,
    ServerAggregate, Unit, Verdict,
};

use crate::facts::listing;
use crate::layout::{listed, wrap};
use crate::words::{capitalised, figure, grouped, rule_sentence, scenario_name, whole};
pub use steps::explain_check;

/// How other tools count what `tpot` and its kin are (read in their sources, 2026): tool, first token, time per
/// token, tokens.
const PEERS: [(&str, &str); 4] = [
    (
        "GuideLLM",
        "its TPOT includes TTFT (as `tpot_e2e`), its ITL does not; tokens from usage, else chunks; its first token \
         skips role-only chunks and counts reasoning",
    ),
    (
        "GenAI-Perf, AIPerf",
        "ITL is (e2e - ttft) / (tokens - 1), as `tpot`; tokens from a tokenizer (AIPerf: usage too); its first token \
         skips role-only chunks",
    ),
    (
        "vLLM bench serve",
        "TPOT is (e2e - ttft) / (tokens - 1), as `tpot`; its ITL is the raw gaps between chunks, as `icl`; tokens \
         from usage, else a tokenizer; on chat its first token counts the role-only chunk",
    ),
    (
        "LLMPerf",
        "includes TTFT (as `tpot_e2e`) and divides by chunks; tokens always from a Llama tokenizer; its first token \
         skips role-only chunks",
    ),
];

/// From where on a percentile is high, in thousandths of a percent.
const HIGH: u32 = 90_000;

/// What a metric means and how a check on it is decided, at most 80 columns wide. The caller knows the `rule`.
#[must_use]
pub fn explain(metric: Metric, rule: Rule) -> String {
    let over = match (metric, whole(metric)) {
        (Metric::Spike(_), Metric::Series(series, aggregate)) => {
            summary(series, aggregate) + ", of the requests due inside the spike"
        }
        (Metric::Spike(_), _) => "the requests due inside the spike".to_owned(),
        (_, Metric::Series(series, aggregate)) => summary(series, aggregate),
        (Metric::Server(_, aggregate), _) => of_scrapes(aggregate).to_owned(),
        _ => String::new(),
    };
    let facts = [
        ("is", capitalised(&definition(metric))),
        ("over", over),
        ("counts", kinds(whole(metric))),
        ("needs", needs(metric).to_owned()),
        ("unit", unit(metric)),
        ("better", better(metric).to_owned()),
        ("tokens", tokens(metric.needs_tokens() && !is_spent(metric))),
        ("decided", capitalised(rule_sentence(rule, None))),
        ("baseline", against(metric, Against::Baseline)),
        ("reference", against(metric, Against::Reference)),
        ("example", example(&metric.to_string(), metric)),
    ];
    let compared = match whole(metric) {
        Metric::Series(series, _) => is_per_token(series),
        Metric::Scalar(scalar) => scalar == Scalar::TpotEffective,
        _ => false,
    };
    format!("{metric}\n\n{}{}", listing(facts), if compared { per_token() } else { String::new() })
}

/// The same for a series that no summary was named for: what is measured of each request, and what can be checked.
#[must_use]
pub fn explain_series(series: Series) -> String {
    let name = series.name();
    let mut summaries = vec![format!("{name}.p95 (any percentile, such as p50 or p99.9)"), format!("{name}.max")];
    if !series.is_pooled() {
        let further = ["p95.all (failed requests as the slowest)", "mean", "min", "stddev"];
        summaries.extend(further.map(|summary| format!("{name}.{summary}")));
    }
    if series == Series::Tpot {
        summaries.push("tpot.effective (of the whole run)".to_owned());
    }
    let metric = Metric::Series(series, Aggregate::Max);
    let facts = [
        ("is", capitalised(series.doc())),
        ("unit", unit(metric)),
        ("better", better(metric).to_owned()),
        ("tokens", tokens(series.needs_tokens())),
        ("checked as", summaries.join(", ")),
        ("example", example(&format!("{name}.p95"), metric)),
    ];
    format!("{name}\n\n{}{}", listing(facts), if is_per_token(series) { per_token() } else { String::new() })
}

/// What each metric of `errors` counts, a line each, and how it is written as a share and as a count.
#[must_use]
pub fn explain_errors() -> String {
    let kinds = ErrorKind::ALL.map(|kind| {
        let metric = Metric::ErrorShare(kind);
        wrap(&format!("{:<21}", metric.to_string()), 21, &kinds(metric))
    });
    let facts = [
        ("is", "Requests that ended in such a way ÷ all measured requests".to_owned()),
        ("as a count", format!("{}, and so on: requests, not a share", Metric::ErrorCount(ErrorKind::Http5xx))),
        ("decided", capitalised(rule_sentence(Rule::Counted, None))),
        ("baseline", against(Metric::ErrorShare(ErrorKind::Any), Against::Baseline)),
        ("reference", against(Metric::ErrorShare(ErrorKind::Any), Against::Reference)),
        ("example", example("errors.rate", Metric::ErrorShare(ErrorKind::Any))),
    ];
    format!("errors\n\n{}\n{}", listing(facts), kinds.concat())
}

fn is_per_token(series: Series) -> bool {
    matches!(series, Series::Tpot | Series::TpotE2e | Series::Itl | Series::Icl)
}

/// What the number is taken over.
fn summary(series: Series, aggregate: Aggregate) -> String {
    let all = if series.is_pooled() { "the gaps of all ok requests" } else { "the ok requests" };
    match aggregate {
        Aggregate::Percentile(percentile) => format!("{all}, the {percentile} by nearest rank: a value that happened"),
        Aggregate::PercentileOfAll(percentile) => {
            format!("all measured requests, the {percentile} by nearest rank, where a failed one counts as the slowest")
        }
        Aggregate::Max => format!("{all}, the largest"),
        Aggregate::Min => format!("{all}, the smallest"),
        Aggregate::Mean => format!("{all}, the mean"),
        Aggregate::Stddev => format!("{all}, the sample standard deviation"),
    }
}

/// Whether only the server's own count of tokens will do.
fn is_spent(metric: Metric) -> bool {
    matches!(metric, Metric::Scalar(Scalar::Cost | Scalar::TokensSpent))
}

/// What a metric is; of a part of the run, what it is of the whole.
fn definition(metric: Metric) -> String {
    match metric {
        Metric::Spike(inner) => format!("{}, of the requests due inside the spike", inner.metric().doc()),
        Metric::Drift(Drifting::Series(series)) => {
            format!("the {}; of {}: {}", metric.doc(), series.name(), series.doc())
        }
        Metric::Drift(Drifting::Server(server)) => format!("the {}; of {server}: {}", metric.doc(), server.doc()),
        other => other.doc().to_owned(),
    }
}

/// What a spec has to have for the metric to have a value.
fn needs(metric: Metric) -> &'static str {
    match metric {
        Metric::Scalar(Scalar::KneeRate) => {
            "`load.pattern: {ramp: {from: 0, to: RPS, over: 15m}}` of 2 minutes and 300 requests at least, up to 1.5 \
             times the capacity, and `slo: {…}`, which says what is good"
        }
        Metric::Scalar(Scalar::Recovery) => {
            "`load.pattern: {spike: {times: 5, hold: 2m, before: 2m, after: 5m}}`, with 60 requests before the spike and \
             long enough after it for TTFT to come back"
        }
        Metric::Spike(_) => "`load.pattern: {spike: {times: 5, hold: 2m, before: 2m, after: 5m}}`",
        Metric::Drift(Drifting::Series(_)) => {
            "`load.pattern: {soak: 4h}`; a bound over 0, since the machine itself wanders: 2 hours at 5/s find 2 %/h"
        }
        Metric::Drift(Drifting::Server(_)) => {
            "`load.pattern: {soak: 4h}`, and `target.metrics: URL`, the server's Prometheus metrics"
        }
        Metric::Server(..) => "`target.metrics: URL`, the server's Prometheus metrics, which are read during the run",
        Metric::Scalar(Scalar::Cost) => {
            "`prices: {input, cached_input, output}` in dollars per million tokens, and a server that counts its tokens"
        }
        Metric::Scalar(Scalar::TokensSpent) => "a server that counts its tokens (`usage`)",
        _ => "",
    }
}

/// What a server's metric is taken over.
fn of_scrapes(aggregate: ServerAggregate) -> &'static str {
    match aggregate {
        ServerAggregate::Max => "all times it was read while the load was measured, the largest",
        ServerAggregate::Mean => "all times it was read while the load was measured, the mean",
        ServerAggregate::Last => "the last time it was read while the load was measured",
        ServerAggregate::Delta => "the last time it was read less the first: what a counter has counted",
    }
}

/// Whether a metric has a value in stored runs, or in the reference, that it can be compared with.
fn is_compared(metric: Metric, to: Against) -> bool {
    match (metric, to) {
        // Its own bound is a change over time already.
        (Metric::Drift(_), _) => false,
        // Two arms share one load, so what one pattern brings to light is of neither alone.
        (
            Metric::Server(..)
            | Metric::Spike(_)
            | Metric::Scalar(Scalar::Cost | Scalar::TokensSpent | Scalar::KneeRate | Scalar::Recovery),
            Against::Reference,
        ) => false,
        _ => true,
    }
}

/// How a check that compares the metric with stored runs, or with the reference, is decided.
fn against(metric: Metric, to: Against) -> String {
    if !is_compared(metric, to) {
        return String::new();
    }
    let rule = compared_by(metric, to);
    let bound = match (metric.unit(), metric.direction(), rule) {
        (Unit::Share, Direction::Higher, _) => ">= TO - 2pp",
        (Unit::Share, ..) => "<= TO + 1pp",
        (Unit::Count, Direction::Lower, Rule::Counted) => "<= TO",
        (_, Direction::Lower, Rule::PairedTail | Rule::StoredTail) => "< TO + 25%",
        (_, Direction::Lower, _) => "< TO + 15%",
        (_, Direction::Neutral, _) if matches!(metric, Metric::Server(..)) => "< TO + 15%",
        (_, Direction::Higher | Direction::Neutral, _) => ">= TO - 10%",
    };
    let how = match (rule, metric) {
        (Rule::Point, _) => "the number is shown beside theirs, and only `decide: point` decides by it",
        (Rule::Counted, Metric::ErrorCount(_) | Metric::Spike(PerRun::ErrorCount(_))) => {
            "compared with how many as many requests have there"
        }
        (Rule::Counted, _) => "the two shares are compared as they are; `decide: evidence` tests them",
        (rule, _) => rule_sentence(rule, None),
    };
    format!("`{metric} {}`: {how}", bound.replace("TO", to.name()))
}

/// The rule of a relative check, unless `decide` says otherwise.
fn compared_by(metric: Metric, to: Against) -> Rule {
    match (whole(metric), to) {
        (Metric::ErrorShare(_) | Metric::ErrorCount(_) | Metric::Attainment, _) => Rule::Counted,
        (Metric::Series(series, _), _) if series.is_pooled() => Rule::Point,
        (Metric::Series(_, Aggregate::PercentileOfAll(_)), _) => Rule::Point,
        (Metric::Series(Series::SendLag, _), Against::Reference) => Rule::Point,
        (Metric::Series(_, Aggregate::Percentile(Percentile::P50) | Aggregate::Mean), Against::Reference) => {
            Rule::Paired
        }
        (Metric::Series(_, Aggregate::Percentile(_)), Against::Reference) => Rule::PairedTail,
        (_, Against::Reference) => Rule::Point,
        (Metric::Series(series, Aggregate::Percentile(percentile)), Against::Baseline)
            if percentile.thousandths() >= HIGH && series != Series::SendLag =>
        {
            Rule::StoredTail
        }
        (_, Against::Baseline) => Rule::Stored,
    }
}

/// The outcomes that an error metric counts.
fn kinds(metric: Metric) -> String {
    let (Metric::ErrorShare(kind) | Metric::ErrorCount(kind)) = metric else { return String::new() };
    let counted = Outcome::ALL.into_iter().filter(|outcome| outcome.is(kind, false));
    let mut names: Vec<String> = counted.map(|outcome| outcome.name().to_owned()).collect();
    if kind == ErrorKind::Http5xx {
        names.push("stream_error with an error of the server's own".to_owned());
    }
    listed(&names, "and")
}

fn unit(metric: Metric) -> String {
    let what = match metric.unit() {
        Unit::Time => "time",
        Unit::Share => "a share, 0 to 100 %",
        Unit::PerSecond => "requests per second",
        Unit::TokensPerSecond => "tokens per second",
        Unit::Count => "a count",
        Unit::PerHour => "growth per hour, as a share of the value",
        Unit::Dollars => "US dollars",
        Unit::Bytes => "bytes",
    };
    format!("{what}, written with {}", metric.unit().spellings())
}

fn better(metric: Metric) -> &'static str {
    match metric.direction() {
        Direction::Lower => "lower",
        Direction::Higher => "higher",
        Direction::Neutral => "neither",
    }
}

fn tokens(needed: bool) -> String {
    let words = "from the server's usage, else from the spec's `prompts.tokenizer`; with neither they are estimated, \
                 and a check on them cannot be measured unless the spec says `prompts.tokens: accept_estimate`";
    if needed { words.to_owned() } else { String::new() }
}

/// A check that a gate might have.
fn example(name: &str, metric: Metric) -> String {
    let metric = whole(metric);
    let per_token = matches!(metric, Metric::Series(series, _) if is_per_token(series))
        || metric == Metric::Scalar(Scalar::TpotEffective);
    let bound = match (metric.unit(), metric.direction()) {
        (Unit::Time, _) if per_token => "< 50ms",
        (Unit::Time, _) if matches!(metric, Metric::Series(Series::SendLag, _)) => "< 5ms",
        (Unit::Time, _) if is_before_the_answer(metric) => "< 50ms",
        (Unit::Time, _) if metric == Metric::Scalar(Scalar::Recovery) => "< 60s",
        (Unit::Time, _) => "< 800ms",
        (Unit::Share, Direction::Higher) => ">= 95%",
        (Unit::Share, _) if metric == Metric::Scalar(Scalar::ClientCpu) => "< 80%",
        (Unit::Share, _) if matches!(metric, Metric::Server(..)) => "< 85%",
        (Unit::Share, _) => "< 5%",
        (Unit::PerHour, _) => "< 1%/h",
        (Unit::Dollars, _) => "< $0.40",
        (Unit::Bytes, _) => "< 60GiB",
        (Unit::PerSecond, _) if metric == Metric::Scalar(Scalar::KneeRate) => ">= 8/s",
        (Unit::PerSecond, _) => ">= 1.5/s",
        (Unit::TokensPerSecond, _) => ">= 100tok/s",
        (Unit::Count, _) if metric == Metric::Scalar(Scalar::TokensSpent) => "<= 200000",
        (Unit::Count, Direction::Lower) => "== 0",
        (Unit::Count, Direction::Neutral) if matches!(metric, Metric::Server(..)) => "< 60",
        (Unit::Count, _) => ">= 100",
    };
    format!("`{name} {bound}`")
}

/// Whether the metric is of a step that no answer takes part in.
fn is_before_the_answer(metric: Metric) -> bool {
    let Metric::Series(series, _) = metric else { return false };
    matches!(series, Series::CapWait | Series::Dns | Series::Connect | Series::Tls | Series::Write)
}

/// The same with what a run had of it, and of time per token by each convention, with who counts so.
#[must_use]
pub fn explain_series_on(series: Series, verdict: &Verdict) -> String {
    let text = explain_series(series);
    let is_told = |metric: Metric| match metric {
        Metric::Series(other, _) => other == series || (is_per_token(series) && is_per_token(other)),
        Metric::Scalar(Scalar::TpotEffective) => is_per_token(series),
        _ => false,
    };
    let told = verdict.figures.iter().filter(|one| one.arm == Arm::Target && is_told(one.metric));
    let lines = told.filter_map(|one| {
        let of = scenario_name(verdict, one.scenario).map(|name| format!("{name}: ")).unwrap_or_default();
        let who = counted_by(one.metric).map(|who| format!(", {who}")).unwrap_or_default();
        Some(wrap("- ", 2, &format!("{of}{}: {}{who}", one.metric, figure(one.value?))))
    });
    let lines: String = lines.collect();
    match lines.is_empty() {
        true => text + "\nThis run has no number of it.\n",
        false => format!("{text}\nIn this run ({} requests judged):\n\n{lines}", grouped(verdict.run.judged)),
    }
}

/// Who else's number of one server a number is.
fn counted_by(metric: Metric) -> Option<&'static str> {
    match metric {
        Metric::Series(Series::Tpot, _) => Some("as vLLM's TPOT and the ITL of GenAI-Perf and AIPerf count"),
        Metric::Series(Series::TpotE2e, _) => Some("as GuideLLM's TPOT and LLMPerf count"),
        Metric::Series(Series::Icl, _) => Some("as vLLM's ITL counts"),
        _ => None,
    }
}

/// The two conventions of time per token on one answer, and who uses which.
fn per_token() -> String {
    let mut text = "\nTwo conventions share the name TPOT. An answer of 101 tokens, the first after\n500 ms and the \
                    last after 1,100 ms, has\n\n"
        .to_owned();
    let conventions = [
        ("tpot", "(1,100 ms − 500 ms) ÷ (101 − 1) = 6 ms, without TTFT"),
        ("tpot_e2e", "1,100 ms ÷ 101 = 10.9 ms, with TTFT"),
        ("tpot.effective", "(1,100 ms − 500 ms) ÷ 101 = 5.94 ms, as sums over a whole run"),
    ];
    text.extend(conventions.map(|(name, words)| wrap(&format!("- {name}: "), 2, words)));
    text.push_str("\nHow other tools count (read in their sources, 2026):\n\n");
    text.extend(PEERS.map(|(tool, words)| wrap(&format!("- {tool}: "), 2, words)));
    text
}
