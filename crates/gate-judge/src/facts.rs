//! Facts and figures of a run, shown whether or not a check names them.

pub(crate) mod parts;
pub(crate) mod traffic;

use gate_model::{
    Aggregate, Arm, Delivery, Endpoint, ErrorKind, Figure, GateSpec, Metric, Nanos, OutcomeCount, Pace, Percentile,
    Quantity, ReferenceFacts, Request, Run, RunFacts, Scalar, Series, Target, TokenSource,
};

use crate::arms::Arms;
use crate::bill::{Bill, is_of_bill};
use crate::judge::Decided;
use crate::reach;
use crate::scored::{Scored, Setting, nearest_rank};
use crate::validity::{buffered, is_between_tokens, outcomes, several_tokens_an_event};

/// The 99th percentile, in thousandths of a percent.
const P99: u32 = 99_000;

/// What a request goes through before its answer begins; shown where requests did, so that a reader sees which part
/// of a TTFT has grown.
const PHASES: [Series; 6] =
    [Series::CapWait, Series::Dns, Series::Connect, Series::Tls, Series::Write, Series::Headers];

/// The facts of a run, judged or not.
///
/// Of several sections, `looks` holds the one sum of their last looks, and `decided_at` the sum of those that decided;
/// each scenario's own are in `parts`.
pub(crate) fn of_run(run: &Run, decided: &Decided<'_>) -> RunFacts {
    let header = &run.header;
    let spec = &header.spec;
    let end = run.end.as_ref();
    let health = end.map(|end| end.health).unwrap_or_default();
    let scored = Scored::new(decided.arms.target.clone(), &spec.slo);
    let both = Scored::new(decided.arms.both(), &spec.slo);
    let pace = pace(run);
    let is_open = pace.is_none_or(|pace| pace.rate().is_some());
    let lasted = decided.parts.iter().filter_map(|part| match &part.section.end {
        Some(end) => Some(end.at),
        None => parts::last_end(&part.arms),
    });
    let rates = match decided.parts.as_slice() {
        [_] => both.rates().filter(|_| spec.load_of(0).pace.rate().is_some()),
        _ => None,
    };
    let bill = decided.bill;
    let is_billed = spec.prices.is_some() || spec.checks.iter().any(|check| is_of_bill(check.metric));
    RunFacts {
        run_id: header.run_id.clone(),
        started: header.started.clone(),
        target: name(&spec.target),
        model: spec.target.model.clone(),
        scenarios: header.scenarios.clone(),
        looks: looks(run, decided),
        decided_at: decided_at(decided),
        planned: run.planned(),
        sent: end.map_or_else(|| run.recorded(), |end| end.sent),
        judged: if decided.is_judged() { decided.arms.len() } else { 0 },
        outcomes: ended(run, decided, Arm::Target),
        duration: lasted.fold(Nanos::ZERO, |sum, lasted| sum + lasted),
        pace,
        token_sources: if spec.target.api.generates() { token_sources(&scored) } else { Vec::new() },
        rates: rates.map(|rates| (rates.planned, rates.achieved)),
        cold_ttft: cold_ttft(run, Arm::Target),
        send_lag: send_lag(&both).filter(|_| is_open && (pace.is_some() || spec.load_of(0).pace.rate().is_some())),
        health,
        reached: end.and_then(|end| end.reached.clone()),
        percentiles: header.percentiles.clone(),
        imported_from: header.imported_from.clone(),
        commit: header.commit.clone(),
        reference: spec.reference.as_ref().map(|reference| ReferenceFacts {
            target: name(reference),
            model: reference.model.clone(),
            outcomes: ended(run, decided, Arm::Reference),
            cold_ttft: cold_ttft(run, Arm::Reference),
            reached: end.and_then(|end| end.reference.as_ref()?.reached.clone()),
        }),
        parts: parts::of_scenarios(run, decided),
        turns: traffic::by_turn(spec, decided),
        contexts: traffic::by_context(spec, decided),
        prompts: traffic::prompts(run, decided),
        server: parts::of_server(run, decided),
        spent: end.and_then(|end| end.spent).or_else(|| is_billed.then_some(bill.spent)),
        cost: bill.cost(),
        footprint: end.and_then(|end| end.footprint),
        shards: decided.parts.iter().map(|part| part.section.shards).max().unwrap_or(1),
    }
}

/// What decided when requests were sent, where all scenarios have it in common.
fn pace(run: &Run) -> Option<Pace> {
    let spec = &run.header.spec;
    let mut paces = spec.sections().into_iter().flatten().map(|scenario| spec.load_of(scenario).pace);
    let first = paces.next().filter(|_| run.header.imported_from.is_none())?;
    paces.all(|pace| pace == first).then_some(first)
}

fn looks(run: &Run, decided: &Decided<'_>) -> Vec<u32> {
    match decided.parts.as_slice() {
        [_] => run.header.looks.clone(),
        parts => {
            // Of a section that was never begun nothing was planned.
            let begun = parts.iter().filter(|part| part.section.planned > 0);
            let last = begun.filter_map(|part| part.section.looks.last().copied());
            vec![last.fold(0, u32::saturating_add)]
        }
    }
}

fn decided_at(decided: &Decided<'_>) -> Option<u32> {
    decided.parts.iter().filter_map(|part| part.at.as_ref().ok().copied()).reduce(u32::saturating_add)
}

/// A metric's value over the judged requests of a run's target in its first scenario, as a verdict prints it; `None`
/// where the run cannot be judged, or has none.
#[must_use]
pub fn value(run: &Run, metric: Metric) -> Option<Quantity> {
    let spec = &run.header.spec;
    let part = reach::parts(run).into_iter().find(|part| part.section.scenarios.contains(&0))?;
    let arms = part.reach.ok()?.judged().of_scenario(0);
    let setting = Setting {
        load: Some(spec.load_of(0)),
        health: part.section.end.as_ref().map(|end| end.health),
        scrapes: part.scrapes,
        shards: part.section.shards,
        bill: Some(Bill::of(run)),
    };
    Scored::new(arms.target, spec.slo_of(0)).within(setting).quantity(metric)
}

/// An endpoint as reports name it.
fn name(target: &Target) -> String {
    match &target.endpoint {
        Endpoint::Url(url) => url.clone(),
        Endpoint::Sim(_) => "sim".to_owned(),
    }
}

/// How an arm's judged requests ended, or all of them where nothing was judged.
fn ended(run: &Run, decided: &Decided<'_>, arm: Arm) -> Vec<OutcomeCount> {
    if decided.is_judged() {
        return outcomes(decided.arms.of_arm(arm).iter().copied());
    }
    outcomes(run.requests().filter(|request| request.arm() == arm))
}

/// The figures of each scenario and, side by side, of each arm.
pub(crate) fn figures(run: &Run, decided: &Decided<'_>) -> Vec<Figure> {
    let spec = &run.header.spec;
    let arms = [Some(Arm::Target), spec.reference.as_ref().map(|_| Arm::Reference)];
    let scenarios = decided.arms.by_scenario();
    let nothing = Arms::default();
    let mut figures = Vec::new();
    for (scenario, _) in (0_u16..).zip(&run.header.scenarios) {
        let of_scenario = scenarios.get(&scenario).unwrap_or(&nothing);
        for arm in arms.into_iter().flatten() {
            let setting = decided.setting(spec, scenario);
            let health = setting.health.filter(|_| decided.is_judged());
            let scored = Scored::new(of_scenario.of_arm(arm).clone(), spec.slo_of(scenario));
            let scored = scored.within(Setting { health, ..setting });
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
    let answers_later = scored.ok().any(|request| request.first_answer() != request.first_token());
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

/// The TTFT of an arm's first warm-up request. They go one after another, so it counts from the request's start.
fn cold_ttft(run: &Run, arm: Arm) -> Option<Nanos> {
    let first = run.warmup.iter().find(|sample| sample.arm == arm).filter(|_| is_streamed(&run.header.spec))?;
    Some(first.first_token? - first.start?)
}

/// Where the output tokens of the `ok` requests come from, most frequent first.
fn token_sources(scored: &Scored<'_>) -> Vec<(TokenSource, u32)> {
    let mut sources: Vec<(TokenSource, u32)> = Vec::new();
    for (_, source) in scored.ok().filter_map(Request::output_tokens) {
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
