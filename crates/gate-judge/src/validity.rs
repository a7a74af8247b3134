//! Whether a run can be judged: its requests, the rate it was sent at, and the client's own health.

use gate_model::{
    Against, Cause, Check, CheckOutcome, Drifting, EndReason, ErrorKind, GateSpec, Health, Metric, Nanos, Op, Outcome,
    OutcomeCount, Quantity, Request, Rule, Sample, Scalar, Series, ServerMetric, Side, Stamping, TokenPolicy,
    TokenSource, Unit,
};

use crate::base::{self, Base};
use crate::bill::is_of_bill;
use crate::rules::{is_evidence, over_all, rule};
use crate::scope::Scope;
use crate::scored::{Scored, count};
use crate::scraped::mostly_failed;

/// The fewest `ok` requests, or pairs of them, that a verdict by evidence rests on.
pub(crate) const LEAST_OK: u32 = 20;
/// The fewest pairs of them that a tail is found alike in.
pub(crate) const LEAST_OK_OF_TAIL: u32 = 30;
/// Output tokens, as a share of the base's, under which answers are of other work.
const SHORTER: f64 = 0.5;
/// The share of 429 answers from which latency says nothing.
const RATE_LIMITED: f64 = 0.10;
/// Lateness that never counts: timers and schedulers need it.
const LEAST_LATENESS: Nanos = Nanos::from_millis(5);
/// Lateness that counts, as a share of the tightest bound it could falsify.
const LATENESS_SHARE: f64 = 0.05;
/// The share of requests that may be late.
const LATE_REQUESTS: f64 = 0.05;
/// The share of content events whose stamp may be an upper bound: a P95 leaves as many beyond it, so with more of them
/// it may be one of theirs.
pub(crate) const COALESCED: f64 = 0.05;
/// The fewest content events in which a burst can be told from a stream.
const BURST_EVENTS: u32 = 5;
/// A burst takes less than this share of the request's time …
const BURST_SHARE: f64 = 0.05;
/// … and less than this for each event after its first, in nanoseconds: no model generates so fast.
const BURST_GAP: f64 = 1e6;
/// The CPU share from which the client itself is the bottleneck.
const CPU_BUSY: f64 = 0.90;

/// Whether a check can be measured at a look, by its requests and by those it is compared with, or why it cannot.
pub(crate) fn measurable(check: &Check, scope: &Scope<'_>, tokens: TokenPolicy) -> Result<(), Cause> {
    if let Some(cause) = unmeasurable(check, &scope.scored, tokens) {
        return Err(cause);
    }
    let to = check.bound.relative().map(|bound| bound.to);
    if to == Some(Against::Reference) {
        match unmeasurable(check, &scope.reference, tokens) {
            Some(Cause::NoData | Cause::NothingReached { .. }) => {
                return Err(Cause::ReferenceTooFewOk { ok: 0, needed: LEAST_OK });
            }
            Some(cause) => return Err(cause),
            None => {}
        }
    }
    shorter(check, scope).map_or(Ok(()), Err)
}

/// Whether answers are so much shorter than where they are compared with that they are of other work.
fn shorter(check: &Check, scope: &Scope<'_>) -> Option<Cause> {
    if !is_of_work(check.metric) {
        return None;
    }
    let mean = |scored: &Scored<'_>| base::mean(scored.values(Series::OutputTokens).into_iter());
    let base = match (check.bound.relative()?.to, scope.base) {
        (Against::Reference, _) => mean(&scope.reference),
        (Against::Baseline, Base::Runs(runs)) => runs.output,
        (Against::Baseline, _) => None,
    }?;
    let seen = mean(&scope.scored)?;
    (seen < SHORTER * base).then_some(Cause::ShorterAnswers { base, seen })
}

/// Whether a metric says how fast work is done, and so depends on how much is asked for.
pub(crate) fn is_of_work(metric: Metric) -> bool {
    metric.is_latency()
        || matches!(
            metric,
            Metric::Scalar(Scalar::ThroughputRequests | Scalar::ThroughputOutputTokens | Scalar::ThroughputTotalTokens)
        )
}

/// Why a check cannot be measured at a look, by the requests of one arm alone.
fn unmeasurable(check: &Check, scored: &Scored<'_>, tokens: TokenPolicy) -> Option<Cause> {
    if is_of_bill(check.metric) {
        return scored.setting().bill.and_then(|bill| bill.uncounted());
    }
    if let Metric::Server(metric, _) | Metric::Drift(Drifting::Server(metric)) = check.metric {
        return unscraped(scored, metric);
    }
    if scored.n() == 0 {
        return Some(Cause::NoData);
    }
    if scored.all().all(says_nothing) {
        let outcomes = outcomes(scored.all());
        return Some(Cause::NothingReached { outcomes, message: first_error(scored) });
    }
    if check.metric.is_latency()
        && let Some(share) = rate_limited(scored)
    {
        return Some(Cause::RateLimited { share });
    }
    if is_between_tokens(check.metric)
        && let Some(share) = buffered(scored)
    {
        return Some(Cause::Buffered { share });
    }
    if let Metric::Series(series, _) = check.metric
        && series.is_pooled()
        && scored.all().all(|one| one.sample().is_none())
    {
        return Some(Cause::NotKept);
    }
    if let Metric::Series(Series::Itl, _) = check.metric
        && let Some(cause) = several_tokens_an_event(scored)
    {
        return Some(cause);
    }
    let unaccepted = tokens == TokenPolicy::Usage && check.metric.needs_tokens();
    (unaccepted && is_estimated(check.metric, scored)).then_some(Cause::EstimatedTokens)
}

/// Why a metric of the server's has no value, or one of too little of the load.
fn unscraped(scored: &Scored<'_>, metric: ServerMetric) -> Option<Cause> {
    let scrapes = scored.setting().scrapes;
    if let Some(message) = mostly_failed(scrapes) {
        return Some(Cause::NotScraped { message: Some(message) });
    }
    if scored.scraped(metric).next().is_some() {
        return None;
    }
    let was_read = scrapes.iter().any(|scrape| scrape.error.is_none());
    let message = scrapes.iter().find_map(|scrape| scrape.error.clone()).filter(|_| !was_read);
    Some(Cause::NotScraped { message })
}

fn first_error(scored: &Scored<'_>) -> Option<String> {
    scored.all().find_map(|one| one.sample()?.error.clone())
}

/// Requests with gaps that are of no single token, by the server's own count or a tokenizer's.
pub(crate) fn several_tokens_an_event(scored: &Scored<'_>) -> Option<Cause> {
    let counted = |sample: &&Sample| {
        matches!(sample.token_source(Series::Itl), Some(TokenSource::Usage | TokenSource::Tokenizer))
    };
    let (mut requests, mut of) = (0, 0);
    for sample in scored.ok().filter_map(Request::sample).filter(counted).filter(|sample| sample.gaps.count() > 0) {
        of += 1;
        requests += usize::from(sample.gap_values(Series::Itl).is_empty());
    }
    (requests > 0).then(|| Cause::SeveralTokensAnEvent { requests: count(requests), of: count(of) })
}

/// Whether a metric is of the times between the tokens of a stream.
pub(crate) fn is_between_tokens(metric: Metric) -> bool {
    matches!(
        metric,
        Metric::Series(Series::Tpot | Series::Itl | Series::Icl | Series::Stall, _)
            | Metric::Scalar(Scalar::TpotEffective)
    )
}

/// The share of streams that came in one burst, where most of those did that have enough events to tell.
pub(crate) fn buffered(scored: &Scored<'_>) -> Option<f64> {
    let bursts: Vec<bool> = scored.ok().filter_map(is_burst).collect();
    let share = bursts.iter().filter(|burst| **burst).count() as f64 / bursts.len().max(1) as f64;
    (share > 0.5).then_some(share)
}

/// Whether a stream's content came in one burst; `None` where it has too few events to tell.
///
/// All of it within 5 % of the time from the request to its last token, and under 1 ms from one event to the
/// next: a buffering proxy holds the stream back until it is complete, and then passes it on at network speed. Of a
/// request that is kept in short the events are not known, and its tokens stand for them.
fn is_burst(request: Request<'_>) -> Option<bool> {
    let (first, last) = (request.first_token()?, request.last_token()?);
    let events = match request {
        Request::Sample(sample) => sample.content_events,
        Request::Brief(_) => u32::try_from(request.output_tokens()?.0).unwrap_or(u32::MAX),
    };
    let gaps = events.checked_sub(1).filter(|_| events >= BURST_EVENTS)?;
    let (spread, whole) = ((last - first).0 as f64, (last - request.intended()).0 as f64);
    Some(spread < BURST_SHARE * whole && spread < BURST_GAP * f64::from(gaps))
}

/// The share of 429 answers, where there are too many of them to judge latency.
pub(crate) fn rate_limited(scored: &Scored<'_>) -> Option<f64> {
    scored.share(ErrorKind::Http429).filter(|share| *share > RATE_LIMITED)
}

/// Whether a request failed before the server's performance had any part in it: no connection, no
/// permission, no such path or model, no quota. Of one that is kept in short any 4xx is taken for such.
pub(crate) fn says_nothing(request: Request<'_>) -> bool {
    match request.outcome() {
        Outcome::Connect | Outcome::Tls | Outcome::TimeoutConnect | Outcome::Http429 => true,
        Outcome::Http4xx => request.sample().is_none_or(|sample| matches!(sample.status, Some(401 | 403 | 404))),
        _ => false,
    }
}

/// Whether the counts a token metric rests on are, even for one request, estimated from events.
fn is_estimated(metric: Metric, scored: &Scored<'_>) -> bool {
    let series = if let Metric::Series(series, _) = metric { series } else { Series::OutputTokens };
    scored.ok().any(|request| request.token_source(series) == Some(TokenSource::Estimated))
}

/// How requests ended, most frequent first.
pub(crate) fn outcomes<'a>(requests: impl IntoIterator<Item = Request<'a>>) -> Vec<OutcomeCount> {
    let mut counts: Vec<OutcomeCount> =
        Outcome::ALL.into_iter().map(|outcome| OutcomeCount { outcome, count: 0 }).collect();
    for request in requests {
        if let Some(counted) = counts.iter_mut().find(|counted| counted.outcome == request.outcome()) {
            counted.count = counted.count.saturating_add(1);
        }
    }
    counts.retain(|counted| counted.count > 0);
    counts.sort_by_key(|counted| std::cmp::Reverse(counted.count));
    counts
}

/// What was wrong with the sending side of a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct ClientFaults {
    /// The rate was short: the load that was asked for never was.
    pub(crate) short: Option<Cause>,
    /// The client was slow: what it measured is no better than the truth, and may be worse.
    pub(crate) slow: Vec<Cause>,
    /// Its loop was late, but the kernel stamped what came: only its own steps look slower than they were.
    pub(crate) own_steps: Option<Cause>,
}

impl ClientFaults {
    /// Looks for them in the judged requests of a section, of both arms. Where its own rules ended it, what was sent is
    /// judged, and no rate is short.
    pub(crate) fn find(scored: &Scored<'_>, health: Health, lateness: Lateness, reason: Option<&EndReason>) -> Self {
        // A closed loop has no planned rate to be short of.
        let is_whole = !reason.is_some_and(EndReason::is_abort);
        let planned = scored.rates().filter(|_| is_whole && !scored.is_closed_loop());
        let short =
            planned.filter(|rates| rates.is_short(rates.taken_up) && rates.behind_secs > LEAST_LATENESS.as_secs_f64());
        let short = short.map(|rates| Cause::RateShort { planned: rates.planned, achieved: rates.taken_up });

        let limit = lateness.ttft;
        let lags = scored.values(Series::SendLag);
        let late = lags.iter().filter(|lag| **lag > limit.0 as f64).count() as f64 / lags.len().max(1) as f64;
        let late = (late > LATE_REQUESTS).then_some(Cause::ClientLate { share: late, limit });

        let limit = lateness.any;
        let delay = health.loop_delay_p95.filter(|p95| *p95 > limit);
        let delay = delay.map(|p95| Cause::LoopDelay { p95, limit });
        let (delay, own_steps) = if stamps_are_exact(health) { (None, delay) } else { (delay, None) };

        let busy = health.cpu_share.filter(|share| *share > CPU_BUSY).map(|share| Cause::ClientCpu { share });
        Self { short, slow: [late, delay, busy].into_iter().flatten().collect(), own_steps }
    }

    /// What is left of an outcome.
    ///
    /// At a short rate nothing was measured, except what the client says of itself, and failures that broke
    /// their bound under less load than planned. A slow client takes away only what its slowness may have
    /// caused.
    pub(crate) fn apply(&self, check: &Check, outcome: CheckOutcome) -> CheckOutcome {
        let of_client = matches!(
            check.metric,
            Metric::Series(Series::SendLag, _) | Metric::Scalar(Scalar::AchievedRate | Scalar::ClientCpu)
        );
        if of_client || matches!(outcome, CheckOutcome::CouldNotMeasure { .. }) {
            return outcome;
        }
        let is_bad = matches!(outcome, CheckOutcome::Violated | CheckOutcome::Inconclusive { side: Side::Over });
        let is_failures = matches!(check.metric, Metric::ErrorShare(_) | Metric::ErrorCount(_));
        let own_steps = self.own_steps.as_ref().filter(|_| is_own_step(check.metric));
        let cause = match (&self.short, self.slow.first().or(own_steps)) {
            (Some(short), _) if !(is_failures && is_bad) => Some(short),
            (_, Some(slow)) if check.metric.is_latency() && is_bad => Some(slow),
            _ => None,
        };
        cause.map_or(outcome, |cause| CheckOutcome::CouldNotMeasure { cause: cause.clone() })
    }
}

/// Whether what was received has its true time, however late the client read it: the kernel stamped it, but for what
/// came in one read with later bytes and has their stamp.
fn stamps_are_exact(health: Health) -> bool {
    health.clock == Stamping::Kernel && health.coalesced_share.is_none_or(|share| share <= COALESCED)
}

/// Whether a metric is of a step that ends with the client, whose end no kernel stamps.
fn is_own_step(metric: Metric) -> bool {
    matches!(metric, Metric::Series(Series::Dns | Series::Connect | Series::Tls | Series::Write, _))
}

/// Takes back what evidence cannot say with so few `ok` requests, or pairs of them; a violation on what there is
/// stands. `n` are the requests or pairs that have the metric, where it has a value.
pub(crate) fn needs_enough_ok(check: &Check, ok: u32, n: Option<u32>, outcome: CheckOutcome) -> CheckOutcome {
    let cause = if is_for_want_of_requests(&outcome) { too_few(check, ok, n) } else { None };
    cause.map_or(outcome, |cause| CheckOutcome::CouldNotMeasure { cause })
}

/// Whether an outcome says less than more requests may.
pub(crate) fn is_for_want_of_requests(outcome: &CheckOutcome) -> bool {
    matches!(
        outcome,
        CheckOutcome::Met
            | CheckOutcome::Inconclusive { .. }
            | CheckOutcome::NoBaseline { .. }
            | CheckOutcome::CouldNotMeasure { cause: Cause::NoData | Cause::ReferenceTooFewOk { .. } }
    )
}

/// Why evidence can say nothing but that a check is violated; `None` where there is enough of it, or none is asked for.
pub(crate) fn too_few(check: &Check, ok: u32, n: Option<u32>) -> Option<Cause> {
    let rule = rule(check);
    if !is_evidence(rule) {
        return None;
    }
    // An estimate from few values can look certain for want of spread, so only those count that have a value; counts
    // of exceedances are as uncertain as they are few.
    let ok = match (rule, n) {
        (Rule::Mean | Rule::Cluster | Rule::Stored, Some(n)) => ok.min(n),
        _ => ok,
    };
    if ok < LEAST_OK {
        return Some(Cause::TooFewOk { ok, needed: LEAST_OK });
    }
    let needed = match rule {
        Rule::Paired => LEAST_OK,
        Rule::PairedTail => LEAST_OK_OF_TAIL,
        _ => return None,
    };
    n.filter(|pairs| *pairs < needed).map(|ok| Cause::ReferenceTooFewOk { ok, needed })
}

/// How late a client may be: a share of the tightest bound on a latency, and never under 5 ms.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Lateness {
    /// By the bounds on TTFT.
    pub(crate) ttft: Nanos,
    /// By those on any latency.
    any: Nanos,
}

impl Lateness {
    /// By the bounds on these scenarios. What a relative one comes to is known only of a run: `limit` gives it by the
    /// check's place.
    pub(crate) fn of(spec: &GateSpec, scenarios: &[u16], limit: impl Fn(usize) -> Option<Quantity>) -> Self {
        let own = spec.checks.iter().enumerate().filter(|(_, check)| scenarios.contains(&check.scenario));
        let checks = own.filter_map(|(place, check)| {
            let Metric::Series(series, _) = over_all(check).metric else { return None };
            let bound = check.bound.absolute().or_else(|| limit(place))?;
            let is_upper = matches!(check.op, Op::Less | Op::AtMost) && bound.unit == Unit::Time;
            (is_upper && check.metric.is_latency()).then_some((series, bound.value))
        });
        let slo = scenarios.iter().flat_map(|scenario| {
            let slo = spec.slo_of(*scenario);
            [(Series::Ttft, slo.ttft), (Series::Ttfa, slo.ttfa), (Series::Tpot, slo.tpot), (Series::E2e, slo.e2e)]
        });
        let slo = slo.filter_map(|(series, bound)| Some((series, bound?.0 as f64)));
        let bounds: Vec<(Series, f64)> = checks.chain(slo).collect();
        let of = |counts: fn(Series) -> bool| {
            let bounds = bounds.iter().filter(|(series, _)| counts(*series)).map(|(_, bound)| *bound);
            let share =
                bounds.reduce(f64::min).map_or(Nanos::ZERO, |bound| Nanos::from_secs_f64(LATENESS_SHARE * bound / 1e9));
            share.max(LEAST_LATENESS)
        };
        Self { ttft: of(|series| series == Series::Ttft), any: of(|_| true) }
    }
}
