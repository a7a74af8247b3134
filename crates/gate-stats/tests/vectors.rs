//! Every vector of `fixtures/stats/vectors.json` whose kind is covered, field by field.
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a malformed vector or a missing answer fails the test"
)]

use gate_stats::goodput::{Answer, Attainment, Reading, quality};
use gate_stats::smooth::{Pace, Stream, benefit, smooth_goodput};
use gate_stats::stored::{LogEstimate, RunNoise, stored, tail_noise, tail_ratio};
use gate_stats::tail::{Tail, exceedances};
use gate_stats::{
    DesignEffect, Indicators, Limit, Mark, Quantile, Sorted, Spending, Worse, binomial, multiplicity, paired, quantile,
    sequential, series,
};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::time::Duration;

const VECTORS: &str = include_str!("../../../fixtures/stats/vectors.json");

/// Kinds computed here, with the number of vectors there must be.
const COVERED: [(&str, usize); 14] = [
    ("quantile", 5),
    ("judge_quantile", 7),
    ("judge_quantile_series", 3),
    ("judge_rate", 3),
    ("group_sequential", 2),
    ("judge_adaptive", 3),
    ("judge_adaptive_series", 2),
    ("multiplicity", 1),
    ("goodput", 1),
    ("smooth_goodput", 2),
    ("judge_paired", 4),
    ("judge_ab_tail", 2),
    ("judge_stored", 2),
    ("judge_stored_tail", 1),
];

/// Kinds that no rule of the gate uses, so that nothing computes them, with the number of vectors there are.
const NO_RULE_USES: [(&str, usize); 2] = [("lognormal_bounds", 1), ("judge_ab", 4)];

#[derive(serde::Deserialize)]
struct File {
    format: String,
    vectors: Vec<Vector>,
}

#[derive(serde::Deserialize)]
struct Vector {
    id: String,
    kind: String,
    input: Value,
    params: Value,
    expect: Value,
}

#[test]
fn every_covered_vector_holds() {
    let file: File = serde_json::from_str(VECTORS).unwrap();
    assert_eq!(file.format, "gate-stats-vectors/1");
    let mut run: BTreeMap<String, usize> = BTreeMap::new();
    for vector in &file.vectors {
        let computed = match vector.kind.as_str() {
            "quantile" => quantile_vector(vector),
            "judge_quantile" => judge_quantile(vector),
            "judge_quantile_series" => judge_quantile_series(vector),
            "judge_rate" => judge_rate(vector),
            "group_sequential" => group_sequential(vector),
            "judge_adaptive" => judge_adaptive(vector),
            "judge_adaptive_series" => judge_adaptive_series(vector),
            "multiplicity" => multiplicity_vector(vector),
            "goodput" => goodput_vector(vector),
            "smooth_goodput" => smooth_vector(vector),
            "judge_paired" => judge_paired(vector),
            "judge_ab_tail" => judge_ab_tail(vector),
            "judge_stored" => judge_stored(vector),
            "judge_stored_tail" => judge_stored_tail(vector),
            kind if NO_RULE_USES.iter().any(|(known, _)| *known == kind) => {
                *run.entry(vector.kind.clone()).or_default() += 1;
                continue;
            }
            kind => panic!("{}: nobody knows the kind {kind}", vector.id),
        };
        assert_same(&vector.id, &computed, &vector.expect);
        *run.entry(vector.kind.clone()).or_default() += 1;
    }
    let all: BTreeMap<String, usize> =
        COVERED.iter().chain(&NO_RULE_USES).map(|(kind, count)| ((*kind).to_owned(), *count)).collect();
    assert_eq!(run, all);
}

/// Same fields, same values; reals to a relative 1e-7 or an absolute 1e-9.
fn assert_same(place: &str, computed: &Value, expected: &Value) {
    match (computed, expected) {
        (Value::Object(ours), Value::Object(theirs)) => {
            let names = |map: &Map<String, Value>| {
                let mut names: Vec<String> = map.keys().cloned().collect();
                names.sort();
                names
            };
            assert_eq!(names(ours), names(theirs), "{place}");
            for (name, value) in ours {
                assert_same(&format!("{place}.{name}"), value, &theirs[name]);
            }
        }
        (Value::Array(ours), Value::Array(theirs)) => {
            assert_eq!(ours.len(), theirs.len(), "{place}");
            for (i, (one, other)) in ours.iter().zip(theirs).enumerate() {
                assert_same(&format!("{place}[{i}]"), one, other);
            }
        }
        (Value::Number(ours), Value::Number(theirs)) => {
            let (a, b) = (ours.as_f64().unwrap(), theirs.as_f64().unwrap());
            assert!((a - b).abs() <= (1e-7 * b.abs()).max(1e-9), "{place}: computed {a}, expected {b}");
        }
        _ => assert_eq!(computed, expected, "{place}"),
    }
}

fn real(of: &Value, name: &str) -> f64 {
    of[name].as_f64().unwrap_or_else(|| panic!("no number {name} in {of}"))
}

fn reals(of: &Value) -> Vec<f64> {
    of.as_array().unwrap().iter().map(|x| x.as_f64().unwrap()).collect()
}

fn whole(of: &Value) -> u32 {
    u32::try_from(of.as_u64().unwrap()).unwrap()
}

fn quantile_of(vector: &Vector) -> Quantile {
    Quantile::from_thousandths((real(&vector.params, "q") * 100_000.0).round() as u32).unwrap()
}

fn limit_of(vector: &Vector) -> Limit {
    let limit = real(&vector.params, "limit");
    match vector.params.get("op").and_then(Value::as_str) {
        None | Some("<") => Limit::Below(limit),
        Some("<=") => Limit::AtMost(limit),
        Some(op) => panic!("operator {op}"),
    }
}

fn spending_of(vector: &Vector) -> Spending {
    match vector.params["spending"].as_str() {
        Some("pocock") => Spending::Pocock,
        Some("obf") => Spending::OBrienFleming,
        other => panic!("spending {other:?}"),
    }
}

fn looks_of(vector: &Vector) -> Vec<u32> {
    vector.params["looks"].as_array().unwrap().iter().map(whole).collect()
}

/// The marks of a series; null is a failed request.
fn marks_of(vector: &Vector) -> Vec<Mark> {
    let limit = limit_of(vector);
    let series = vector.input["series"].as_array().unwrap();
    series.iter().map(|x| x.as_f64().map_or(Mark::Exceeded, |x| limit.mark(x))).collect()
}

fn verdict(p_fail: f64, p_pass: f64, params: &Value) -> &'static str {
    if p_fail <= real(params, "alpha_fail") {
        "fail"
    } else if p_pass <= real(params, "alpha_pass") {
        "pass"
    } else {
        "inconclusive"
    }
}

fn quantile_vector(vector: &Vector) -> Value {
    let (q, alpha) = (quantile_of(vector), real(&vector.params, "alpha"));
    let sample = Sorted::new(reals(&vector.input["samples"])).unwrap();
    let hd = quantile::harrell_davis(&sample, q).unwrap();
    let lower = quantile::lower_rank(sample.len(), q, alpha).unwrap();
    let upper = quantile::upper_rank(sample.len(), q, alpha).unwrap();
    json!({
        "nearest_rank": quantile::nearest_rank(&sample, q),
        "r7": quantile::type7(&sample, q),
        "harrell_davis": hd.value,
        "hd_se": hd.standard_error,
        "order_lower": lower.and_then(|rank| sample.at_rank(rank)),
        "order_upper": upper.and_then(|rank| sample.at_rank(rank)),
        "rank_lower": lower.unwrap_or(0),
        "rank_upper": upper.unwrap_or(sample.len() + 1),
    })
}

/// The fields of a plain binomial verdict, the bounds under a name of their own.
fn binomial_verdict(k: u64, n: u64, p0: f64, params: &Value, bounds: &str) -> Value {
    let (alpha_fail, alpha_pass) = (real(params, "alpha_fail"), real(params, "alpha_pass"));
    let p_fail = binomial::upper_tail(k, n, p0).unwrap();
    let p_pass = binomial::lower_tail(k, n, p0).unwrap();
    let k_pass = binomial::pass_count(n, p0, alpha_pass).unwrap();
    let mut fields = json!({
        "verdict": verdict(p_fail, p_pass, params),
        "p_fail": p_fail,
        "p_pass": p_pass,
        "n": n,
        "k": k,
        "k_fail": binomial::fail_count(n, p0, alpha_fail).unwrap(),
        "k_pass": k_pass.map_or(-1, u64::cast_signed),
    });
    fields[format!("{bounds}_lower")] = json!(binomial::share_lower(k, n, alpha_fail).unwrap());
    fields[format!("{bounds}_upper")] = json!(binomial::share_upper(k, n, alpha_pass).unwrap());
    fields
}

fn judge_quantile(vector: &Vector) -> Value {
    let limit = limit_of(vector);
    let samples = reals(&vector.input["samples"]);
    let failed = vector.input.get("n_failed").map_or(0, |n| n.as_u64().unwrap());
    let over: Indicators = samples.iter().map(|x| limit.mark(*x)).collect();
    let p0 = quantile_of(vector).complement();
    binomial_verdict(over.k() + failed, over.n() + failed, p0, &vector.params, "exceed")
}

fn judge_rate(vector: &Vector) -> Value {
    let [k, n] = ["k", "n"].map(|name| vector.input[name].as_u64().unwrap());
    binomial_verdict(k, n, real(&vector.params, "limit"), &vector.params, "rate")
}

fn judge_quantile_series(vector: &Vector) -> Value {
    assert_eq!(whole(&vector.params["max_lag"]) as usize, series::MAX_LAG);
    let seen: Indicators = marks_of(vector).into_iter().collect();
    let (k, n, effect) = (seen.k(), seen.n(), seen.design_effect());
    let p0 = quantile_of(vector).complement();
    let p_fail = series::p_fail(k, n, effect, p0).unwrap();
    let p_pass = series::p_pass(k, n, effect, p0).unwrap();
    json!({
        "verdict": verdict(p_fail, p_pass, &vector.params),
        "p_fail": p_fail,
        "p_pass": p_pass,
        "n": n,
        "k": k,
        "deff": effect.value(),
        "n_eff": effect.effective(n),
    })
}

fn group_sequential(vector: &Vector) -> Value {
    let looks = looks_of(vector);
    let (p0, alpha) = (real(&vector.params, "p0"), real(&vector.params, "alpha"));
    let counts = sequential::boundaries(&looks, p0, alpha, spending_of(vector)).unwrap();
    let pairs: Vec<[u32; 2]> = looks.into_iter().zip(counts).map(|(n, c)| [n, c]).collect();
    json!({ "boundaries": pairs })
}

/// Extend-if-over on the vector's boundaries; `seen` is what each look reached found.
fn adaptive(vector: &Vector, p0: f64, seen: &[(u64, DesignEffect)]) -> Value {
    let looks = looks_of(vector);
    let alpha = real(&vector.params, "alpha");
    let levels = sequential::nested_levels(&looks, p0, alpha, 1, spending_of(vector)).unwrap();
    for (i, (&n, &(k, effect))) in looks.iter().zip(seen).enumerate() {
        let total = u64::from(n);
        let said = |verdict, side| json!({ "verdict": verdict, "n_used": n, "side": side });
        let p_fail = series::p_fail(k, total, effect, p0).unwrap();
        if p_fail <= levels.at(1, i).unwrap().level {
            return said("fail", "over");
        }
        if k <= binomial::allowed_count(total, p0).unwrap() {
            let proven = series::p_pass(k, total, effect, p0).unwrap() <= real(&vector.params, "alpha_pass");
            return said(if proven { "pass" } else { "inconclusive" }, "within");
        }
        if i + 1 == looks.len() {
            return said("inconclusive", "over");
        }
    }
    panic!("{}: the data ends before the procedure does", vector.id)
}

fn judge_adaptive(vector: &Vector) -> Value {
    let counts = reals(&vector.input["cumulative_k"]);
    let seen: Vec<_> = counts.into_iter().map(|k| (k as u64, DesignEffect::NONE)).collect();
    adaptive(vector, real(&vector.params, "p0"), &seen)
}

fn judge_adaptive_series(vector: &Vector) -> Value {
    let marks = marks_of(vector);
    let reached = looks_of(vector).into_iter().map(|n| n as usize).filter(|n| *n <= marks.len());
    let seen: Vec<_> = reached
        .map(|n| {
            let first: Indicators = marks.iter().copied().take(n).collect();
            (first.k(), first.design_effect())
        })
        .collect();
    adaptive(vector, quantile_of(vector).complement(), &seen)
}

fn multiplicity_vector(vector: &Vector) -> Value {
    let p = reals(&vector.input["p"]);
    json!({
        "holm": multiplicity::holm(&p).unwrap(),
        "simes": multiplicity::simes(&p).unwrap(),
        "bonferroni": multiplicity::bonferroni(&p).unwrap(),
    })
}

fn goodput_vector(vector: &Vector) -> Value {
    let slo = &vector.params["slo"];
    let requests = vector.input["requests"].as_array().unwrap();
    let attained: Attainment = requests
        .iter()
        .map(|request| {
            let status = whole(&request["status"]);
            let answer = if (200..300).contains(&status) { Answer::Complete } else { Answer::Failed };
            let value = |name: &str, missing| request[name].as_f64().map_or(missing, Reading::Value);
            let tpot = match whole(&request["output_tokens"]) {
                0 | 1 => Reading::Undefined,
                _ => value("tpot_ms", Reading::Missing),
            };
            let ttft = value("ttft_ms", Reading::Missing);
            quality(answer, [(ttft, real(slo, "ttft_ms")), (tpot, real(slo, "tpot_ms"))])
        })
        .collect();
    let window = Duration::from_secs_f64(real(&vector.params, "duration_s"));
    json!({
        "good": attained.good,
        "total": attained.total,
        "attainment": attained.share().unwrap(),
        "goodput_rps": attained.per_second(window).unwrap(),
    })
}

fn smooth_vector(vector: &Vector) -> Value {
    let pace = Pace {
        per_token: Duration::from_secs_f64(real(&vector.params, "v")),
        first: vector.params.get("d0").map(|d| Duration::from_secs_f64(d.as_f64().unwrap())),
        idle_cost: vector.params.get("alpha").map(|a| a.as_f64().unwrap()),
    };
    let requests = vector.input["requests"].as_array().unwrap();
    let benefits: Vec<_> = requests
        .iter()
        .map(|request| {
            let times: Vec<Duration> =
                reals(&request["token_times_s"]).into_iter().map(Duration::from_secs_f64).collect();
            let stream = if times.is_empty() {
                Stream::Nothing(Duration::from_secs_f64(real(request, "t_end_s")))
            } else {
                Stream::Tokens(&times)
            };
            benefit(stream, pace).unwrap()
        })
        .collect();
    let window = Duration::from_secs_f64(real(&vector.params, "duration_s"));
    json!({
        "idle_s": benefits.iter().map(|b| b.idle.as_secs_f64()).collect::<Vec<_>>(),
        "benefits": benefits.iter().map(|b| b.tokens).collect::<Vec<_>>(),
        "smooth_goodput_tps": smooth_goodput(&benefits, window).unwrap(),
    })
}

/// The two arms of a vector, in send order.
fn arms_of(vector: &Vector) -> [Vec<f64>; 2] {
    ["candidate", "reference"].map(|arm| reals(&vector.input[arm]))
}

fn runs_of(vector: &Vector) -> Vec<Vec<f64>> {
    vector.input["runs"].as_array().unwrap().iter().map(reals).collect()
}

fn noise_of(vector: &Vector) -> RunNoise {
    RunNoise { tau: real(&vector.params, "tau0"), freedom: real(&vector.params, "nu0") }
}

fn log_estimate(samples: &[f64], q: Quantile) -> LogEstimate {
    LogEstimate::quantile(&Sorted::new(samples.to_vec()).unwrap(), q).unwrap()
}

/// The candidate's Harrell–Davis estimate as a factor on the base's.
fn ratio_of(candidate: &[f64], base: &[f64], q: Quantile) -> f64 {
    (log_estimate(candidate, q).value - log_estimate(base, q).value).exp()
}

fn judge_paired(vector: &Vector) -> Value {
    assert_eq!(whole(&vector.params["max_lag"]) as usize, series::MAX_LAG);
    let [candidate, reference] = arms_of(vector);
    let pairs: Vec<(f64, f64)> = candidate.into_iter().zip(reference).collect();
    let ranks = paired::signed_rank(&pairs, real(&vector.params, "tol"), Worse::Larger).unwrap();
    json!({
        "verdict": verdict(ranks.p_fail, ranks.p_pass, &vector.params),
        "p_fail": ranks.p_fail,
        "p_pass": ranks.p_pass,
        "n": ranks.n,
        "w": ranks.statistic,
        "deff": ranks.design_effect.value(),
        "ratio": paired::location(&pairs, 0.05).unwrap().value,
    })
}

/// The fields of a tail verdict.
fn tail_verdict(tail: Tail, ratio: f64, params: &Value) -> Value {
    json!({
        "verdict": verdict(tail.p_fail, tail.p_pass, params),
        "p_fail": tail.p_fail,
        "p_pass": tail.p_pass,
        "k": tail.k,
        "n": tail.n,
        "cut": tail.cut,
        "deff": tail.design_effect.value(),
        "ratio": ratio,
    })
}

fn judge_ab_tail(vector: &Vector) -> Value {
    let [candidate, reference] = arms_of(vector);
    let q = quantile_of(vector);
    let base = Sorted::new(reference.clone()).unwrap();
    let tail = exceedances(&candidate, &base, q, 1.0 + real(&vector.params, "tol"), Worse::Larger).unwrap();
    tail_verdict(tail, ratio_of(&candidate, &reference, q), &vector.params)
}

fn judge_stored(vector: &Vector) -> Value {
    let q = quantile_of(vector);
    let candidate = log_estimate(&reals(&vector.input["candidate"]), q);
    let runs: Vec<LogEstimate> = runs_of(vector).iter().map(|run| log_estimate(run, q)).collect();
    let found = stored(candidate, &runs, real(&vector.params, "tol"), noise_of(vector), Worse::Larger).unwrap();
    json!({
        "verdict": verdict(found.p_fail, found.p_pass, &vector.params),
        "p_fail": found.p_fail,
        "p_pass": found.p_pass,
        "ratio": found.ratio,
        "t": found.t,
        "df": found.freedom,
        "s": found.deviation,
        "v_within": found.within,
    })
}

fn judge_stored_tail(vector: &Vector) -> Value {
    assert_eq!(real(&vector.params, "kappa"), 1.0);
    let q = quantile_of(vector);
    let candidate = reals(&vector.input["candidate"]);
    let runs = runs_of(vector);
    let median = Quantile::from_thousandths(50_000).unwrap();
    let medians: Vec<LogEstimate> = runs.iter().map(|run| log_estimate(run, median)).collect();
    let tau = tail_noise(&medians, noise_of(vector)).unwrap();
    let pooled = runs.concat();
    let ratio = tail_ratio(real(&vector.params, "tol"), tau, runs.len(), Worse::Larger).unwrap();
    let tail = exceedances(&candidate, &Sorted::new(pooled.clone()).unwrap(), q, ratio, Worse::Larger).unwrap();
    let mut fields = tail_verdict(tail, ratio_of(&candidate, &pooled, q), &vector.params);
    fields["tau"] = json!(tau);
    fields
}
