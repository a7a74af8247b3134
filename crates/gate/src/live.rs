//! What a person sees while the load runs: one line redrawn on a terminal, a plain line now and then elsewhere.

use std::time::{Duration, Instant};

use gate_load::Progress;
use gate_model::{Decision, GateSpec, Nanos, Outcome, Series};

use crate::console::Console;

/// How often the line is redrawn on a terminal.
const REDRAW: Duration = Duration::from_millis(200);
/// How often a line is printed without one.
const PRINT: Duration = Duration::from_secs(5);

/// The live line of one gate.
pub(crate) struct Live<'a> {
    console: &'a Console,
    name: &'a str,
    planned: usize,
    sent: u32,
    ok: u32,
    errors: u32,
    in_flight: u32,
    /// TTFTs of `ok` requests, kept sorted.
    ttft: Vec<Nanos>,
    shown: Option<Instant>,
    is_drawn: bool,
}

impl<'a> Live<'a> {
    pub(crate) fn new(spec: &'a GateSpec, planned: usize, console: &'a Console) -> Self {
        let base = (spec.load.iterations.base() * spec.arms()) as usize;
        Self {
            console,
            name: &spec.name,
            planned: planned.min(base),
            sent: 0,
            ok: 0,
            errors: 0,
            in_flight: 0,
            ttft: Vec::new(),
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
                        let ttft = Nanos(ttft as i64);
                        let at = self.ttft.partition_point(|earlier| *earlier < ttft);
                        self.ttft.insert(at, ttft);
                    }
                } else {
                    self.errors += 1;
                }
            }
            Progress::Tick { elapsed, sent, in_flight } => {
                (self.sent, self.in_flight) = (*sent, *in_flight);
                self.planned = self.planned.max(*sent as usize);
                let line = gate_report::progress_line(&gate_report::Progress {
                    name: self.name,
                    elapsed: *elapsed,
                    sent: self.sent,
                    planned: u32::try_from(self.planned).unwrap_or(u32::MAX),
                    in_flight: self.in_flight,
                    ok: self.ok,
                    errors: self.errors,
                    ttft_p50: self.ttft.get(self.ttft.len().saturating_sub(1) / 2).copied(),
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
