//! Facts and figures of a run, shown whether or not a check names them.

use gate_model::{
    Aggregate, Arm, Delivery, Endpoint, ErrorKind, Figure, GateSpec, Metric, Nanos, OutcomeCount, Percentile, Quantity,
    ReferenceFacts, Run, RunFacts, Sample, Scalar, Series, Target, TokenSource,
};

use crate::arms::Arms;
use crate::judge::Decided;
use crate::reach::reach;
use crate::scored::{Scored, count, nearest_rank};
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
    let arms = shown(run, decided);
    let end = run.end.as_ref();
    let health = end.map(|end| end.health).unwrap_or_default();
    let of = |samples| Scored::new(samples, &header.spec.slo, Some(health));
    let (scored, both) = (of(arms.target.clone()), of(arms.both()));
    let is_open = header.spec.load.pace.rate().is_some();
    let last_end = run.samples.iter().filter_map(|sample| sample.end).max();
    RunFacts {
        run_id: header.run_id.clone(),
        started: header.started.clone(),
        target: name(&header.spec.target),
        model: header.spec.target.model.clone(),
        scenarios: header.scenarios.clone(),
        looks: header.looks.clone(),
        decided_at: decided.map(|decided| decided.at),
        planned: run.planned(),
        sent: end.map_or_else(|| count(run.samples.len()), |end| end.sent),
        judged: decided.map_or(0, |decided| decided.arms.len()),
        outcomes: ended(run, decided, Arm::Target),
        duration: end.map(|end| end.at).or(last_end).unwrap_or(Nanos::ZERO),
        pace: header.imported_from.is_none().then_some(header.spec.load.pace),
        token_sources: if header.spec.target.api.generates() { token_sources(&scored) } else { Vec::new() },
        rates: both.rates().filter(|_| is_open).map(|rates| (rates.planned, rates.achieved)),
        cold_ttft: cold_ttft(run, Arm::Target),
        send_lag: send_lag(&both).filter(|_| is_open),
        health,
        reached: end.and_then(|end| end.reached.clone()),
        percentiles: header.percentiles.clone(),
        imported_from: header.imported_from.clone(),
        commit: header.commit.clone(),
        reference: header.spec.reference.as_ref().map(|reference| ReferenceFacts {
            target: name(reference),
            model: reference.model.clone(),
            outcomes: ended(run, decided, Arm::Reference),
            cold_ttft: cold_ttft(run, Arm::Reference),
            reached: end.and_then(|end| end.reference.as_ref()?.reached.clone()),
        }),
    }
}

/// A metric's value over the judged requests of a run's target in its first scenario, as a verdict prints it; `None`
/// where the run cannot be judged, or has none.
#[must_use]
pub fn value(run: &Run, metric: Metric) -> Option<Quantity> {
    let reach = reach(run).ok()?;
    let health = run.end.as_ref().map(|end| end.health);
    let samples = reach.judged().target.into_iter().filter(|sample| sample.scenario == 0).collect();
    Scored::new(samples, &run.header.spec.slo, health).quantity(metric)
}

/// An endpoint as reports name it.
fn name(target: &Target) -> String {
    match &target.endpoint {
        Endpoint::Url(url) => url.clone(),
        Endpoint::Sim(_) => "sim".to_owned(),
    }
}

/// How an arm's judged requests ended, or all of them where nothing was judged.
fn ended(run: &Run, decided: Option<&Decided<'_>>, arm: Arm) -> Vec<OutcomeCount> {
    match decided {
        Some(decided) => outcomes(decided.arms.of_arm(arm).iter().copied()),
        None => outcomes(run.samples.iter().filter(|sample| sample.arm == arm)),
    }
}

/// The figures of each scenario and, side by side, of each arm.
pub(crate) fn figures(run: &Run, decided: Option<&Decided<'_>>) -> Vec<Figure> {
    let all = shown(run, decided);
    let spec = &run.header.spec;
    let arms = [Some(Arm::Target), spec.reference.as_ref().map(|_| Arm::Reference)];
    let mut figures = Vec::new();
    for (scenario, _) in (0_u16..).zip(&run.header.scenarios) {
        let of_scenario = all.of_scenario(scenario);
        for arm in arms.into_iter().flatten() {
            let health = decided.map(|decided| decided.health);
            let scored = Scored::new(of_scenario.of_arm(arm).to_vec(), &spec.slo, health);
            figures.extend(metrics(&scored, spec).into_iter().map(|metric| {
                let measured = scored.measure(metric);
                let value = measured.map(|measured| Quantity { value: measured.value, unit: metric.unit() });
                Figure { scenario, arm, metric, value, n: measured.map_or(0, |measured| measured.n) }
            }));
        }
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
pub(crate) fn shown<'a>(run: &'a Run, decided: Option<&Decided<'a>>) -> Arms<'a> {
    decided.map_or_else(|| Arms::of(run.header.spec.arms(), &run.samples), |decided| decided.arms.clone())
}

/// The TTFT of an arm's first warm-up request. They go one after another, so it counts from the request's start.
fn cold_ttft(run: &Run, arm: Arm) -> Option<Nanos> {
    let first = run.warmup.iter().find(|sample| sample.arm == arm).filter(|_| is_streamed(&run.header.spec))?;
    Some(first.first_token? - first.start?)
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
