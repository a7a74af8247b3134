//! The numbers of the requests, as the page's script reads them.

use std::collections::BTreeMap;

use gate_model::{
    Arm, Check, CheckOutcome, CheckVerdict, Importance, Metric, Nanos, Outcome, Pattern, PatternFacts, Quantity,
    Request, Run, Series, Unit, Verdict,
};
use serde::Serialize;

use super::Page;
use crate::ReportError;
use crate::bounded::TEXT;
use crate::escape;
use crate::layout::clip;
use crate::words::{self, check_label, comparison};

/// The version of the data that the script reads.
const VERSION: u32 = 1;

/// How many requests a page has at most; of a longer run it has those that failed, the slowest, and others evenly.
const MOST: usize = 100_000;

/// How many it has of a longer run.
const KEPT: usize = 20_000;

/// Of how many requests the times of single tokens are given.
const WITH_TOKENS: usize = 300;

/// How many different messages are given.
const MESSAGES: usize = 200;

/// Into how many stretches of time a rate that no pattern tells is cut.
const STRETCHES: usize = 60;

/// The data of a page, without `<`, so that no text can end the element it stands in.
pub(super) fn data(pages: &[Page<'_>]) -> Result<String, ReportError> {
    let gates = pages.iter().map(gate).collect();
    let text = serde_json::to_string(&Data { v: VERSION, gates })?;
    Ok(text.replace('<', "\\u003c").replace('\u{2028}', "\\u2028").replace('\u{2029}', "\\u2029"))
}

/// How many requests of a run a page shows, and how many there are.
pub(super) fn shown(run: &Run) -> (usize, usize) {
    let all = run.requests().count();
    (if all > MOST { kept(run).len() } else { all }, all)
}

#[derive(Serialize)]
struct Data {
    v: u32,
    gates: Vec<Gate>,
}

#[derive(Serialize)]
struct Gate {
    name: String,
    scenarios: Vec<String>,
    slo: Vec<Slo>,
    requests: Columns,
    outcomes: Vec<&'static str>,
    messages: Vec<String>,
    tokens: BTreeMap<u32, Vec<Millis>>,
    limits: Vec<Limit>,
    load: Vec<Load>,
    server: Vec<Server>,
    marks: Vec<Mark>,
    total: usize,
    kept: usize,
}

#[derive(Serialize)]
struct Slo {
    ttft: Option<Millis>,
    tpot: Option<Millis>,
}

/// The requests, a list for each thing known of them.
#[derive(Default, Serialize)]
struct Columns {
    index: Vec<u32>,
    scenario: Vec<u16>,
    arm: Vec<u8>,
    turn: Vec<u16>,
    due: Vec<Millis>,
    lag: Vec<Option<Millis>>,
    connect: Vec<Option<Millis>>,
    ttft: Vec<Option<Millis>>,
    tpot: Vec<Option<Millis>>,
    e2e: Vec<Option<Millis>>,
    stall: Vec<Option<Millis>>,
    input: Vec<Option<u64>>,
    cached: Vec<Option<u64>>,
    output: Vec<Option<u64>>,
    outcome: Vec<usize>,
    status: Vec<Option<u16>>,
    message: Vec<i32>,
}

#[derive(Serialize)]
struct Limit {
    scenario: u16,
    plot: &'static str,
    value: Millis,
    label: String,
    required: bool,
    broken: bool,
}

#[derive(Serialize)]
struct Load {
    scenario: u16,
    points: Vec<(Millis, Number)>,
}

#[derive(Serialize)]
struct Server {
    name: String,
    unit: &'static str,
    scenarios: Vec<u16>,
    points: Vec<(Millis, Number)>,
}

#[derive(Serialize)]
struct Mark {
    scenario: u16,
    at: Millis,
    label: String,
}

/// Milliseconds with three decimals at most.
struct Millis(f64);

impl Millis {
    fn of_nanos(nanos: f64) -> Self {
        Self(nanos / 1e6)
    }
}

impl Serialize for Millis {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        Number(self.0).serialize(serializer)
    }
}

/// A number with three decimals at most, as short as it can be written; `null` where it is none.
struct Number(f64);

impl Serialize for Number {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let rounded = (self.0 * 1e3).round() / 1e3;
        if !rounded.is_finite() {
            return serializer.serialize_none();
        }
        // A whole number needs no decimals.
        if rounded.fract() == 0.0 && rounded.abs() < 1e15 {
            return serializer.serialize_i64(rounded as i64);
        }
        serializer.serialize_f64(rounded)
    }
}

fn gate(page: &Page<'_>) -> Gate {
    let verdict = page.verdict;
    let scenarios = &verdict.run.scenarios;
    let mut gate = Gate {
        name: text(&verdict.name),
        scenarios: scenarios.iter().map(|name| text(name)).collect(),
        slo: Vec::new(),
        requests: Columns::default(),
        outcomes: Outcome::ALL.iter().map(|outcome| outcome.name()).collect(),
        messages: Vec::new(),
        tokens: BTreeMap::new(),
        limits: verdict.checks.iter().filter_map(limit).collect(),
        load: Vec::new(),
        server: Vec::new(),
        marks: page.run.map(|run| marks(verdict, run)).unwrap_or_default(),
        total: 0,
        kept: 0,
    };
    let Some(run) = page.run else { return gate };
    let spec = &run.header.spec;
    let count = u16::try_from(scenarios.len()).unwrap_or(u16::MAX);
    let millis = |time: Nanos| Millis::of_nanos(time.0 as f64);
    gate.slo = (0..count)
        .map(|scenario| spec.slo_of(scenario))
        .map(|slo| Slo { ttft: slo.ttft.map(millis), tpot: slo.tpot.map(millis) })
        .collect();
    let requests = if run.requests().count() > MOST { kept(run) } else { run.requests().collect() };
    (gate.total, gate.kept) = (run.requests().count(), requests.len());
    let mut known: BTreeMap<String, i32> = BTreeMap::new();
    for request in &requests {
        gate.requests.push(*request, &mut known, &mut gate.messages);
    }
    for sample in requests.iter().filter_map(|request| request.sample()).take(WITH_TOKENS) {
        if !sample.token_times.is_empty() {
            let since_due = |time: &Nanos| {
                // A tenth of a millisecond is as fine as a picture shows.
                Millis(((time.0 - sample.intended.0) as f64 / 1e5).round() / 10.0)
            };
            gate.tokens.insert(sample.index, sample.token_times.iter().map(since_due).collect());
        }
    }
    gate.load = (0..count).filter_map(|scenario| load(run, scenario)).collect();
    gate.server = server(run);
    gate
}

/// A text from outside, cleaned and of bounded length.
fn text(text: &str) -> String {
    clip(&escape::terminal(text), TEXT)
}

/// The requests of a very long run that a page has: those that failed, the slowest, and others evenly, in send order.
fn kept(run: &Run) -> Vec<Request<'_>> {
    let all: Vec<Request<'_>> = run.requests().collect();
    let mut chosen: Vec<usize> = Vec::new();
    let failed = all.iter().enumerate().filter(|(_, one)| one.outcome() != Outcome::Ok).map(|(place, _)| place);
    chosen.extend(failed.take(KEPT / 4));
    for series in [Series::Ttft, Series::Tpot] {
        let mut slowest: Vec<(f64, usize)> =
            all.iter().enumerate().filter_map(|(place, one)| Some((one.value(series)?, place))).collect();
        slowest.sort_by(|one, other| other.0.total_cmp(&one.0));
        chosen.extend(slowest.into_iter().map(|(_, place)| place).take(KEPT / 8));
    }
    let step = all.len().div_ceil(KEPT / 2).max(1);
    chosen.extend((0..all.len()).step_by(step));
    chosen.sort_unstable();
    chosen.dedup();
    chosen.into_iter().filter_map(|place| all.get(place).copied()).collect()
}

impl Columns {
    fn push(&mut self, one: Request<'_>, known: &mut BTreeMap<String, i32>, messages: &mut Vec<String>) {
        let time = |series: Series| one.value(series).map(Millis::of_nanos);
        let count = |series: Series| one.value(series).filter(|value| *value >= 0.0).map(|value| value as u64);
        let sample = one.sample();
        self.index.push(one.index());
        self.scenario.push(one.scenario());
        self.arm.push(u8::from(one.arm() == Arm::Reference));
        self.turn.push(one.turn());
        self.due.push(Millis::of_nanos(one.intended().0 as f64));
        self.lag.push(time(Series::SendLag));
        self.connect.push(one.had_connection().map(|at| Millis::of_nanos((at - one.intended()).0 as f64)));
        self.ttft.push(time(Series::Ttft));
        self.tpot.push(time(Series::Tpot));
        self.e2e.push(time(Series::E2e));
        self.stall.push(time(Series::Stall));
        let planned = sample.map(|sample| u64::from(sample.planned_input));
        self.input.push(count(Series::InputTokens).or(planned));
        self.cached.push(count(Series::CachedTokens));
        self.output.push(one.output_tokens().map(|(tokens, _)| tokens));
        let place = Outcome::ALL.iter().position(|outcome| *outcome == one.outcome());
        self.outcome.push(place.unwrap_or_default());
        self.status.push(sample.and_then(|sample| sample.status));
        let message = sample.and_then(|sample| sample.error.as_deref()).map(text);
        self.message.push(message.map_or(-1, |message| numbered(message, known, messages)));
    }
}

/// The place of a message among those that are given; -1 of one that there is no room for.
fn numbered(message: String, known: &mut BTreeMap<String, i32>, messages: &mut Vec<String>) -> i32 {
    if let Some(place) = known.get(&message) {
        return *place;
    }
    if messages.len() >= MESSAGES {
        return -1;
    }
    let place = i32::try_from(messages.len()).unwrap_or(-1);
    messages.push(message.clone());
    known.insert(message, place);
    place
}

/// The line that a check on a latency draws.
fn limit(verdict: &CheckVerdict) -> Option<Limit> {
    let Check { metric: Metric::Series(series, _), .. } = &verdict.check else { return None };
    let plot = match series {
        Series::Ttft => "ttft",
        Series::Tpot => "tpot",
        Series::E2e => "e2e",
        _ => return None,
    };
    let value = limit_of(verdict)?;
    Some(Limit {
        scenario: verdict.check.scenario,
        plot,
        value: Millis::of_nanos(value.value),
        label: text(&check_label(&verdict.check)),
        required: verdict.check.importance == Importance::Required,
        broken: *words::judged(&verdict.outcome) == CheckOutcome::Violated,
    })
}

/// What a check is held against: its own limit, or what its bound comes to on what it is compared with.
pub(super) fn limit_of(verdict: &CheckVerdict) -> Option<Quantity> {
    verdict.check.bound.absolute().or_else(|| comparison(verdict)?.limit)
}

/// Where patterns turn: as they were planned, and as they were found.
fn marks(verdict: &Verdict, run: &Run) -> Vec<Mark> {
    let mut marks = Vec::new();
    for part in &verdict.run.parts {
        let spike = run.header.spec.load_of(part.scenario).spike();
        let mut mark = |at: Nanos, label: String| {
            marks.push(Mark { scenario: part.scenario, at: Millis::of_nanos(at.0 as f64), label });
        };
        if let Some((from, to)) = spike {
            mark(from, "the spike begins".to_owned());
            mark(to, "and ends".to_owned());
        }
        for found in &part.found {
            let value = found.value.map(words::figure).unwrap_or_default();
            match (found.facts, found.value, spike) {
                (PatternFacts::Knee { at: Some(at), .. }, ..) => mark(at, format!("knee: {value}")),
                (PatternFacts::Recovery { settled: true, .. }, Some(after), Some((_, to))) if after.value > 0.0 => {
                    mark(to + Nanos(after.value as i64), format!("recovered, {value} after"));
                }
                (PatternFacts::Drift { .. }, Some(_), _) => mark(part.duration, format!("{}: {value}", found.metric)),
                _ => {}
            }
        }
    }
    marks
}

/// The planned rate of a scenario over time; nothing of a closed loop, or of another tool's load.
fn load(run: &Run, scenario: u16) -> Option<Load> {
    if run.header.imported_from.is_some() {
        return None;
    }
    let load = run.header.spec.load_of(scenario);
    let rate = load.pace.rate()?;
    let points = match (load.stages(), &load.pattern) {
        (Some(stages), _) => {
            let (mut at, mut points) = (0.0, Vec::new());
            for stage in stages {
                points.push((Millis::of_nanos(at), Number(stage.from.0)));
                at += stage.lasts.0 as f64;
                points.push((Millis::of_nanos(at), Number(stage.to.0)));
            }
            points
        }
        (None, Pattern::Trace(_)) => by_due(run, scenario),
        (None, _) => {
            let last = run.requests().filter(|one| one.scenario() == scenario).map(|one| one.intended().0).max()?;
            vec![(Millis(0.0), Number(rate.0)), (Millis::of_nanos(last as f64), Number(rate.0))]
        }
    };
    (!points.is_empty()).then_some(Load { scenario, points })
}

/// The rate of equal stretches of time.
fn by_due(run: &Run, scenario: u16) -> Vec<(Millis, Number)> {
    let due = run.requests().filter(|one| one.scenario() == scenario && one.arm() == Arm::Target);
    let due: Vec<f64> = due.map(|one| one.intended().0 as f64).collect();
    let last = due.iter().copied().fold(0.0, f64::max);
    // A stretch with few requests says little of a rate.
    let stretches = (due.len() / 10).clamp(1, STRETCHES);
    if last <= 0.0 {
        return Vec::new();
    }
    let lasts = last / stretches as f64;
    let mut counts = vec![0_u32; stretches];
    for at in due {
        let place = ((at / lasts) as usize).min(stretches - 1);
        if let Some(count) = counts.get_mut(place) {
            *count += 1;
        }
    }
    let rate = |count: u32| Number(f64::from(count) / (lasts / 1e9));
    let steps = counts.into_iter().enumerate();
    steps
        .flat_map(|(place, count)| {
            let from = place as f64 * lasts;
            [(Millis::of_nanos(from), rate(count)), (Millis::of_nanos(from + lasts), rate(count))]
        })
        .collect()
}

/// What the server's own metrics said, section by section.
fn server(run: &Run) -> Vec<Server> {
    let one: Vec<(Vec<u16>, u32)> = match run.sections.as_slice() {
        [] => vec![(run.header.spec.sections().into_iter().flatten().collect(), u32::MAX)],
        sections => sections.iter().map(|section| (section.scenarios.clone(), section.scrapes)).collect(),
    };
    let mut rest = run.scrapes.iter();
    let mut metrics = Vec::new();
    for (scenarios, count) in one {
        let mut values: BTreeMap<gate_model::ServerMetric, Vec<(Millis, Number)>> = BTreeMap::new();
        for scrape in rest.by_ref().take(count as usize) {
            for (metric, value) in &scrape.values {
                values.entry(*metric).or_default().push((Millis::of_nanos(scrape.at.0 as f64), Number(*value)));
            }
        }
        metrics.extend(values.into_iter().map(|(metric, points)| Server {
            name: metric.to_string(),
            unit: unit(metric.unit()),
            scenarios: scenarios.clone(),
            points,
        }));
    }
    metrics
}

fn unit(unit: Unit) -> &'static str {
    match unit {
        Unit::Share => "share",
        Unit::Bytes => "bytes",
        _ => "",
    }
}
