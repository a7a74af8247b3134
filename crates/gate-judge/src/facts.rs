//! Facts and figures of a run, shown whether or not a check names them.

use gate_model::{
    Aggregate, Delivery, Endpoint, ErrorKind, Figure, Metric, Nanos, Percentile, Run, RunFacts, Sample, Scalar, Series,
};

use crate::judge::Decided;
use crate::scored::{Scored, count, measured, nearest_rank};
use crate::validity::{outcomes, several_tokens_an_event};

/// The 99th percentile, in thousandths of a percent.
const P99: u32 = 99_000;

/// The facts of a run, judged or not.
pub(crate) fn of_run(run: &Run, decided: Option<&Decided<'_>>) -> RunFacts {
    let header = &run.header;
    let samples = shown(run, decided);
    let streams = header.spec.target.delivery == Delivery::Streamed;
    let health = run.end.as_ref().map(|end| end.health).unwrap_or_default();
    let scored = Scored::of_run(&samples, &header.spec.slo, Some(health));
    let last_end = run.samples.iter().filter_map(|sample| sample.end).max();
    RunFacts {
        run_id: header.run_id.clone(),
        started: header.started.clone(),
        target: match &header.spec.target.endpoint {
            Endpoint::Url(url) => url.clone(),
            Endpoint::Sim(_) => "sim".to_owned(),
        },
        model: header.spec.target.model.clone(),
        scenarios: header.scenarios.clone(),
        looks: header.looks.clone(),
        decided_at: decided.map(|decided| decided.at),
        planned: run.planned(),
        sent: run.end.as_ref().map_or_else(|| count(run.samples.len()), |end| end.sent),
        judged: decided.map_or(0, |decided| count(decided.samples.len())),
        outcomes: match decided {
            Some(decided) => outcomes(decided.samples.iter().copied()),
            None => outcomes(run.samples.iter()),
        },
        duration: run.end.as_ref().map(|end| end.at).or(last_end).unwrap_or(Nanos::ZERO),
        rates: scored.rates().map(|rates| (rates.planned, rates.achieved)),
        cold_ttft: run.warmup.first().filter(|_| streams).and_then(cold_ttft),
        send_lag: send_lag(&scored),
        health,
        clock: header.clock.clone(),
        percentiles: header.percentiles.clone(),
        imported_from: header.imported_from.clone(),
    }
}

/// The figures of each scenario.
pub(crate) fn figures(run: &Run, decided: Option<&Decided<'_>>) -> Vec<Figure> {
    let samples = shown(run, decided);
    let spec = &run.header.spec;
    let slo = &spec.slo;
    let mut figures = Vec::new();
    for (scenario, _) in (0_u16..).zip(&run.header.scenarios) {
        let scored = Scored::of_scenario(scenario, &samples, slo, decided.map(|decided| decided.health));
        figures.extend(metrics(&scored, spec.target.delivery).into_iter().map(|metric| {
            let measured = scored.measure(metric);
            Figure { scenario, metric, value: scored.quantity(metric), n: measured.map_or(0, |measured| measured.n) }
        }));
    }
    figures
}

/// Which figures a scenario has.
fn metrics(scored: &Scored<'_>, delivery: Delivery) -> Vec<Metric> {
    let mut metrics = Vec::new();
    if delivery == Delivery::Streamed {
        metrics.extend(streamed(scored));
    }
    metrics.extend(both(Series::E2e));
    metrics.push(Metric::ErrorShare(ErrorKind::Any));
    if scored.good().is_some() {
        metrics.extend([Metric::Attainment, Metric::Scalar(Scalar::Goodput)]);
    }
    metrics.extend([
        Metric::Scalar(Scalar::ThroughputRequests),
        Metric::Scalar(Scalar::ThroughputOutputTokens),
        percentile(Series::InputTokens, Percentile::P50),
        percentile(Series::OutputTokens, Percentile::P50),
    ]);
    metrics
}

/// The figures that need a stream. Time per token comes in both conventions; gaps where they are known.
fn streamed(scored: &Scored<'_>) -> Vec<Metric> {
    let answers_later = scored.ok().any(|sample| sample.first_answer != sample.first_token);
    let mut metrics = both(Series::Ttft).to_vec();
    if answers_later {
        metrics.extend(both(Series::Ttfa));
    }
    metrics.extend(both(Series::Tpot));
    metrics.extend([percentile(Series::TpotE2e, Percentile::P50), Metric::Scalar(Scalar::TpotEffective)]);
    let [itl_p50, itl_p95] = both(Series::Itl);
    let mut gaps = vec![percentile(Series::Icl, Percentile::P95)];
    if several_tokens_an_event(scored).is_none() {
        gaps.extend([itl_p50, itl_p95]);
    }
    metrics.extend(gaps.into_iter().filter(|metric| scored.measure(*metric).is_some()));
    metrics
}

fn percentile(series: Series, percentile: Percentile) -> Metric {
    Metric::Series(series, Aggregate::Percentile(percentile))
}

/// The median and the 95th percentile.
fn both(series: Series) -> [Metric; 2] {
    [percentile(series, Percentile::P50), percentile(series, Percentile::P95)]
}

/// The requests that facts are about: the judged ones, or all that ended where nothing was judged.
fn shown<'a>(run: &'a Run, decided: Option<&Decided<'a>>) -> Vec<&'a Sample> {
    decided.map_or_else(|| measured(&run.samples), |decided| decided.samples.clone())
}

/// The TTFT of a warm-up request. They go one after another, so it counts from the request's start.
fn cold_ttft(sample: &Sample) -> Option<Nanos> {
    Some(sample.first_token? - sample.start?)
}

/// The median and the 99th percentile of the client's lateness.
fn send_lag(scored: &Scored<'_>) -> Option<(Nanos, Nanos)> {
    let at = |percentile| {
        let lag = nearest_rank(scored.values(Series::SendLag), percentile)?;
        Some(Nanos::from_secs_f64(lag / 1e9))
    };
    Some((at(Percentile::P50)?, at(Percentile::from_thousandths(P99).ok()?)?))
}
