//! Facts and figures of a run, shown whether or not a check names them.

use gate_model::{
    Aggregate, Delivery, Endpoint, ErrorKind, Figure, GateSpec, Metric, Nanos, Percentile, Run, RunFacts, Sample,
    Scalar, Series, TokenSource,
};

use crate::judge::Decided;
use crate::scored::{Scored, count, measured, nearest_rank};
use crate::validity::{buffered, is_between_tokens, outcomes, several_tokens_an_event};

/// The 99th percentile, in thousandths of a percent.
const P99: u32 = 99_000;

/// What a request goes through before its answer begins; shown where requests did, so that a reader sees which part
/// of a TTFT has grown.
const PHASES: [Series; 6] =
    [Series::CapWait, Series::Dns, Series::Connect, Series::Tls, Series::Write, Series::Headers];

/// The facts of a run, judged or not.
pub(crate) fn of_run(run: &Run, decided: Option<&Decided<'_>>) -> RunFacts {
    let header = &run.header;
    let samples = shown(run, decided);
    let health = run.end.as_ref().map(|end| end.health).unwrap_or_default();
    let scored = Scored::of_run(&samples, &header.spec.slo, Some(health));
    let is_open = header.spec.load.pace.rate().is_some();
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
        pace: header.imported_from.is_none().then_some(header.spec.load.pace),
        token_sources: if header.spec.target.api.generates() { token_sources(&scored) } else { Vec::new() },
        rates: scored.rates().filter(|_| is_open).map(|rates| (rates.planned, rates.achieved)),
        cold_ttft: run.warmup.first().filter(|_| is_streamed(&header.spec)).and_then(cold_ttft),
        send_lag: send_lag(&scored).filter(|_| is_open),
        health,
        reached: run.end.as_ref().and_then(|end| end.reached.clone()),
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
        figures.extend(metrics(&scored, spec).into_iter().map(|metric| {
            let measured = scored.measure(metric);
            Figure { scenario, metric, value: scored.quantity(metric), n: measured.map_or(0, |measured| measured.n) }
        }));
    }
    figures
}

/// Whether answers are streams of tokens; embeddings are none.
pub(crate) fn is_streamed(spec: &GateSpec) -> bool {
    spec.target.delivery == Delivery::Streamed && spec.target.api.generates()
}

/// Which figures a scenario has.
fn metrics(scored: &Scored<'_>, spec: &GateSpec) -> Vec<Metric> {
    let mut metrics = Vec::new();
    if is_streamed(spec) {
        metrics.extend(streamed(scored));
    }
    metrics.extend(both(Series::E2e));
    metrics.push(Metric::ErrorShare(ErrorKind::Any));
    if scored.good().is_some() {
        metrics.extend([Metric::Attainment, Metric::Scalar(Scalar::Goodput)]);
    }
    let generates = spec.target.api.generates();
    metrics.push(Metric::Scalar(Scalar::ThroughputRequests));
    metrics.extend(generates.then_some(Metric::Scalar(Scalar::ThroughputOutputTokens)));
    metrics.push(percentile(Series::InputTokens, Percentile::P50));
    metrics.extend(generates.then(|| percentile(Series::OutputTokens, Percentile::P50)));
    let phases = PHASES.into_iter().flat_map(both);
    metrics.extend(phases.filter(|metric| scored.measure(*metric).is_some()));
    metrics
}

/// The figures that need a stream. Time per token comes in both conventions; gaps where they are known.
/// Of streams that came in one burst neither says anything.
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
    if buffered(scored).is_some() {
        metrics.retain(|metric| !is_between_tokens(*metric));
    }
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

/// Where the output tokens of the `ok` requests come from, most frequent first.
fn token_sources(scored: &Scored<'_>) -> Vec<(TokenSource, u32)> {
    let mut sources: Vec<(TokenSource, u32)> = Vec::new();
    for (_, source) in scored.ok().filter_map(Sample::output_tokens) {
        match sources.iter_mut().find(|(known, _)| *known == source) {
            Some((_, requests)) => *requests += 1,
            None => sources.push((source, 1)),
        }
    }
    sources.sort_by_key(|(_, requests)| std::cmp::Reverse(*requests));
    sources
}

/// The median and the 99th percentile of the client's lateness.
fn send_lag(scored: &Scored<'_>) -> Option<(Nanos, Nanos)> {
    let at = |percentile| {
        let lag = nearest_rank(scored.values(Series::SendLag), percentile)?;
        Some(Nanos::from_secs_f64(lag / 1e9))
    };
    Some((at(Percentile::P50)?, at(Percentile::from_thousandths(P99).ok()?)?))
}
