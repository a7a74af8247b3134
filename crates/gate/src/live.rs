//! What a person sees while the load runs: a block of lines redrawn on a terminal, a plain line now and then elsewhere.

mod course;

use std::collections::{BTreeMap, VecDeque};
use std::time::{Duration, Instant};

use gate_load::Progress;
use gate_model::{
    Aggregate, Arm, Decision, GateSpec, Histogram, Importance, Metric, Nanos, Op, Outcome, PerSecond, Percentile, Plan,
    Sample, Series,
};
use gate_report::{LiveBlock, LiveScenario, LiveStage, ProgressPart};

use crate::console::Console;
use course::Course;

/// How often the block is redrawn at most.
const REDRAW: Duration = Duration::from_millis(100);
/// How often a line is printed without one.
const PRINT: Duration = Duration::from_secs(5);
/// Over how long the rate is taken.
const RATE: Nanos = Nanos::from_secs(5);

/// The live block of one section. It is gone when this is dropped.
pub(crate) struct Live<'a> {
    console: &'a Console,
    spec: &'a GateSpec,
    course: Course,
    block: LiveBlock,
    /// How many requests warm up.
    warmup: u32,
    seen: BTreeMap<u16, Seen>,
    /// How long answers took, whole.
    took: Histogram,
    /// How many requests were sent by when, in the last seconds.
    sent: VecDeque<(Nanos, u32)>,
    shown: Option<Instant>,
    is_finished: bool,
}

/// What is known of a scenario's requests.
#[derive(Default)]
struct Seen {
    ok: u32,
    errors: u32,
    /// Those that the run itself cut: no error of theirs.
    cancelled: u32,
    /// Of the target's `ok` requests.
    ttft: Histogram,
    tpot: Histogram,
}

impl<'a> Live<'a> {
    pub(crate) fn new(spec: &'a GateSpec, plan: &Plan, console: &'a Console) -> Self {
        let course = Course::new(spec, plan);
        let alone = match course.scenarios() {
            [only] => spec.scenarios.get(usize::from(*only)).map(|scenario| scenario.name.clone()),
            _ => None,
        };
        let sections = u16::try_from(spec.sections().len()).unwrap_or(u16::MAX);
        let block = LiveBlock {
            name: spec.name.clone(),
            scenario: alone,
            section: (plan.section.saturating_add(1), sections),
            ..LiveBlock::default()
        };
        let live = Self {
            console,
            spec,
            course,
            block,
            warmup: u32::try_from(plan.warmup.len()).unwrap_or(u32::MAX),
            seen: BTreeMap::new(),
            took: Histogram::default(),
            sent: VecDeque::new(),
            shown: None,
            is_finished: false,
        };
        if console.is_live() {
            console.draw(&live.block());
        }
        live
    }

    /// Takes up one report of the load.
    pub(crate) fn show(&mut self, progress: &Progress<'_>) {
        match progress {
            Progress::Waiting { elapsed, last } => {
                self.block.stage = LiveStage::Waiting { elapsed: *elapsed, last: (*last).to_owned() };
            }
            Progress::Ready if self.warmup > 0 => self.block.stage = LiveStage::Warmup { done: 0, of: self.warmup },
            Progress::Warmup(_) => {
                let done = if let LiveStage::Warmup { done, .. } = self.block.stage { done } else { 0 };
                self.block.stage = LiveStage::Warmup { done: done.saturating_add(1), of: self.warmup };
            }
            Progress::Started => {
                self.block.stage = LiveStage::Measuring { elapsed: Nanos::ZERO, left: self.course.lasts() };
                // The next report says how the load goes.
                self.shown = None;
                return;
            }
            Progress::Ended(sample) => return self.ended(sample),
            Progress::Tick { elapsed, sent, in_flight } => self.tick(*elapsed, *sent, *in_flight),
            Progress::Look { n, decision } => {
                let word = if *decision == Decision::GoOn { "go on" } else { "stop" };
                tracing::info!("look at {n} requests: {word}");
                self.course.look(*n, *decision);
                return;
            }
            _ => return,
        }
        self.tell();
    }

    fn ended(&mut self, sample: &Sample) {
        let seen = self.seen.entry(sample.scenario).or_default();
        let record = |histogram: &mut Histogram, series| {
            if let Some(value) = sample.value(series) {
                histogram.record(Nanos(value as i64));
            }
        };
        match sample.outcome {
            Outcome::Ok => {
                seen.ok += 1;
                record(&mut self.took, Series::E2e);
                if sample.arm == Arm::Target {
                    record(&mut seen.ttft, Series::Ttft);
                    record(&mut seen.tpot, Series::Tpot);
                }
            }
            Outcome::Cancelled => seen.cancelled += 1,
            failure => {
                seen.errors += 1;
                self.block.last_error = Some(failure.name().to_owned());
            }
        }
    }

    fn tick(&mut self, elapsed: Nanos, sent: u32, in_flight: u32) {
        (self.block.sent, self.block.in_flight) = (sent, in_flight);
        self.sent.push_back((elapsed, sent));
        while self.sent.get(1).is_some_and(|(at, _)| elapsed - *at >= RATE) {
            self.sent.pop_front();
        }
        let since = self.sent.front().filter(|(at, _)| elapsed > *at);
        self.block.rate = since
            .map(|(at, before)| PerSecond(f64::from(sent.saturating_sub(*before)) / (elapsed - *at).as_secs_f64()));
        let left = self.course.left(elapsed, self.sum(Seen::done), &self.took);
        self.block.stage = LiveStage::Measuring { elapsed, left };
    }

    fn sum(&self, count: impl Fn(&Seen) -> u32) -> u32 {
        self.seen.values().map(count).sum()
    }

    /// The block as it stands.
    fn block(&self) -> LiveBlock {
        let nothing = Seen::default();
        let scenario = |own: &u16| {
            let seen = self.seen.get(own).unwrap_or(&nothing);
            let (planned, looks) = self.course.requests(*own);
            let name = self.spec.scenarios.get(usize::from(*own)).map(|scenario| scenario.name.clone());
            LiveScenario {
                name: name.filter(|_| self.course.scenarios().len() > 1),
                done: seen.done(),
                planned,
                looks,
                errors: seen.errors,
                ttft: both(&seen.ttft),
                tpot: both(&seen.tpot),
            }
        };
        LiveBlock {
            look: self.course.next(|| self.over()),
            scenarios: self.course.scenarios().iter().map(scenario).collect(),
            ..self.block.clone()
        }
    }

    /// The first required latency that now stands over a fixed limit: what the run goes on for, as far as it shows here.
    fn over(&self) -> Option<String> {
        let is_over = |check: &&gate_model::Check| {
            let Metric::Series(series, Aggregate::Percentile(percentile)) = check.metric else { return false };
            let Some(seen) = self.seen.get(&check.scenario) else { return false };
            let histogram = match series {
                Series::Ttft => &seen.ttft,
                Series::Tpot => &seen.tpot,
                _ => return false,
            };
            let is_limit = matches!(check.op, Op::Less | Op::AtMost) && check.importance == Importance::Required;
            let limit = check.bound.absolute().filter(|_| is_limit);
            at(histogram, percentile).zip(limit).is_some_and(|(seen, limit)| seen.0 as f64 > limit.value)
        };
        self.spec.checks.iter().find(is_over).map(|check| check.metric.to_string())
    }

    /// Shows how it stands, unless that was shown just now.
    fn tell(&mut self) {
        let is_live = self.console.is_live();
        let every = if is_live { REDRAW } else { PRINT };
        if self.shown.is_some_and(|shown| shown.elapsed() < every) {
            return;
        }
        self.shown = Some(Instant::now());
        if is_live {
            self.console.draw(&self.block());
        } else {
            self.console.people(&format!("{}\n", self.line()));
        }
    }

    /// The same in one line.
    fn line(&self) -> String {
        let part = ProgressPart {
            label: self.block.scenario.as_deref(),
            section: Some(self.block.section),
            lasts: self.course.lasts(),
        };
        let elapsed = match &self.block.stage {
            LiveStage::Measuring { elapsed, .. } => *elapsed,
            stage => return gate_report::stage_line(&self.block.name, &part, stage),
        };
        let planned = self.course.scenarios().iter().map(|scenario| self.course.requests(*scenario).0).sum();
        let mut ttft = Histogram::default();
        self.seen.values().for_each(|seen| ttft.merge(&seen.ttft));
        let progress = gate_report::Progress {
            name: &self.block.name,
            elapsed,
            sent: self.block.sent,
            planned: self.block.sent.max(planned),
            in_flight: self.block.in_flight,
            ok: self.sum(|seen| seen.ok),
            errors: self.sum(|seen| seen.errors),
            ttft_p50: at(&ttft, Percentile::P50),
        };
        gate_report::part_progress_line(&progress, &part)
    }

    /// Removes the block. Of several sections each leaves a line.
    pub(crate) fn finish(&mut self) {
        if std::mem::replace(&mut self.is_finished, true) || !self.console.is_live() {
            return;
        }
        self.console.undraw();
        if self.block.section.1 > 1 && matches!(self.block.stage, LiveStage::Measuring { .. }) {
            self.console.people(&format!("{}\n", gate_report::live_end(&self.block())));
        }
    }
}

impl Drop for Live<'_> {
    /// A panic takes the block with it too.
    fn drop(&mut self) {
        self.finish();
    }
}

impl Seen {
    fn done(&self) -> u32 {
        self.ok.saturating_add(self.errors).saturating_add(self.cancelled)
    }
}

/// A percentile by nearest rank.
fn at(histogram: &Histogram, percentile: Percentile) -> Option<Nanos> {
    let rank = histogram.count().saturating_mul(u64::from(percentile.thousandths())).div_ceil(100_000);
    histogram.at_rank(rank)
}

fn both(histogram: &Histogram) -> Option<(Nanos, Nanos)> {
    at(histogram, Percentile::P50).zip(at(histogram, Percentile::P95))
}
