//! What a person sees while the load runs: one line redrawn on a terminal, a plain line now and then elsewhere.

use std::time::{Duration, Instant};

use gate_load::Progress;
use gate_model::{Decision, GateSpec, Histogram, Nanos, Outcome, Plan, Section, Series};

use crate::console::Console;

/// How often the line is redrawn on a terminal.
const REDRAW: Duration = Duration::from_millis(200);
/// How often a line is printed without one.
const PRINT: Duration = Duration::from_secs(5);

/// The live line of one gate.
pub(crate) struct Live<'a> {
    console: &'a Console,
    /// The gate's, and of one scenario of several the scenario's.
    name: String,
    planned: usize,
    sent: u32,
    ok: u32,
    errors: u32,
    in_flight: u32,
    /// TTFTs of `ok` requests.
    ttft: Histogram,
    shown: Option<Instant>,
    is_drawn: bool,
}

impl<'a> Live<'a> {
    pub(crate) fn new(spec: &'a GateSpec, plan: &Plan, console: &'a Console) -> Self {
        let section = Section::of_plan(spec, plan);
        let scenario = section.scenarios.first().copied().unwrap_or(0);
        let base = spec.load_of(scenario).iterations.base().filter(|_| section.scenarios.len() == 1);
        let base = base.map_or(usize::MAX, |base| base.saturating_mul(spec.arms()) as usize);
        let name = match (spec.scenarios.get(usize::from(scenario)), section.scenarios.len()) {
            (Some(one), 1) => format!("{} / {}", spec.name, one.name),
            _ => spec.name.clone(),
        };
        Self {
            console,
            name,
            planned: plan.requests.len().min(base),
            sent: 0,
            ok: 0,
            errors: 0,
            in_flight: 0,
            ttft: Histogram::default(),
            shown: None,
            is_drawn: false,
        }
    }

    /// Takes up one report of the load.
    pub(crate) fn show(&mut self, progress: &Progress<'_>) {
        match progress {
            Progress::Waiting { elapsed, last } => {
                let last = gate_report::escape::terminal(last);
                let seconds = elapsed.as_secs_f64();
                self.note(&format!("{}: waiting for the target ({seconds:.0} s): {last}", self.name), PRINT);
            }
            Progress::Warmup(_) => self.note(&format!("{}: warming up", self.name), PRINT),
            Progress::Started => self.shown = None,
            Progress::Ended(sample) => {
                if sample.outcome == Outcome::Ok {
                    self.ok += 1;
                    if let Some(ttft) = sample.value(Series::Ttft) {
                        self.ttft.record(Nanos(ttft as i64));
                    }
                } else {
                    self.errors += 1;
                }
            }
            Progress::Tick { elapsed, sent, in_flight } => {
                (self.sent, self.in_flight) = (*sent, *in_flight);
                self.planned = self.planned.max(*sent as usize);
                let line = gate_report::progress_line(&gate_report::Progress {
                    name: &self.name,
                    elapsed: *elapsed,
                    sent: self.sent,
                    planned: u32::try_from(self.planned).unwrap_or(u32::MAX),
                    in_flight: self.in_flight,
                    ok: self.ok,
                    errors: self.errors,
                    ttft_p50: self.ttft.at_rank(self.ttft.count().div_ceil(2)),
                });
                self.note(&line, PRINT);
            }
            Progress::Look { n, decision: Decision::GoOn } => {
                tracing::info!("look at {n} requests: go on");
            }
            Progress::Look { n, decision: Decision::Stop } => {
                tracing::info!("look at {n} requests: stop");
            }
            _ => {}
        }
    }

    /// Clears the live line.
    pub(crate) fn finish(&mut self) {
        if self.is_drawn {
            self.console.people("\r\x1b[2K");
            self.is_drawn = false;
        }
    }

    fn note(&mut self, line: &str, every: Duration) {
        let live = self.console.is_live();
        let every = if live { REDRAW } else { every };
        if self.shown.is_some_and(|shown| shown.elapsed() < every) {
            return;
        }
        self.shown = Some(Instant::now());
        if live {
            self.console.people(&format!("\r\x1b[2K{line}"));
            self.is_drawn = true;
        } else {
            self.console.people(&format!("{line}\n"));
        }
    }
}
