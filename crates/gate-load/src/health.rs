//! The client's own health: a client that is slow can only make the server look slower.

use std::cell::RefCell;
use std::io;
use std::rc::Rc;
use std::time::{Duration, Instant};

use gate_model::{Health, Histogram, Nanos, Sample, Stamping};

use crate::alarm::Alarm;
use crate::worker::Shift;

/// How often an I/O thread's lateness is probed.
const EVERY: Duration = Duration::from_millis(20);

/// How late the thread it was made on wakes for a timer of its own.
#[derive(Default)]
pub(crate) struct Probe {
    delays: Rc<RefCell<Histogram>>,
}

impl Probe {
    /// Probes for as long as it is polled.
    pub(crate) fn watch(&self) -> impl Future<Output = io::Result<()>> + 'static {
        let delays = Rc::clone(&self.delays);
        async move {
            let mut alarm = Alarm::new()?;
            loop {
                let due = Instant::now() + EVERY;
                alarm.wait_until(due).await?;
                delays.borrow_mut().record(due.elapsed().into());
            }
        }
    }

    /// What was seen.
    pub(crate) fn delays(&self) -> Histogram {
        self.delays.borrow().clone()
    }
}

/// Watches the process from its making to [`Watch::health`].
pub(crate) struct Watch {
    start: Instant,
    cpu: Option<Nanos>,
}

impl Watch {
    pub(crate) fn new() -> Self {
        Self { start: Instant::now(), cpu: cpu_time() }
    }

    /// What was seen, and what each I/O thread saw: the worst of their delays counts.
    pub(crate) fn health(&self, clock: Stamping, shifts: &[Shift]) -> Health {
        let elapsed = self.start.elapsed().as_secs_f64();
        let used = cpu_time().zip(self.cpu).map(|(now, then)| (now - then).as_secs_f64());
        let available = elapsed * f64::from(cores());
        let worst = |delays: fn(&Shift) -> Option<&Histogram>| shifts.iter().filter_map(delays).filter_map(p95).max();
        Health {
            clock,
            read_delay_p95: worst(|shift| shift.read_delays.as_ref()),
            coalesced_share: None,
            cpu_share: used.filter(|_| available > 0.0).map(|used| (used / available).clamp(0.0, 1.0)),
            loop_delay_p95: worst(|shift| Some(&shift.loop_delays)),
        }
    }
}

fn p95(delays: &Histogram) -> Option<Nanos> {
    delays.at_rank(delays.count().saturating_mul(95).div_ceil(100))
}

/// Content events whose time is an upper bound, among all.
#[derive(Default)]
pub(crate) struct Coalesced {
    content: u64,
    coalesced: u64,
}

impl Coalesced {
    /// Counts a measured request's.
    pub(crate) fn add(&mut self, sample: &Sample) {
        // One whole body shows no event's time.
        if sample.first_token.is_some() {
            self.content += u64::from(sample.content_events);
            self.coalesced += u64::from(sample.coalesced);
        }
    }

    /// Their share; absent where there is no content.
    pub(crate) fn share(&self) -> Option<f64> {
        (self.content > 0).then(|| self.coalesced as f64 / self.content as f64)
    }
}

/// Cores this process may use.
fn cores() -> u32 {
    std::thread::available_parallelism().map_or(1, |cores| u32::try_from(cores.get()).unwrap_or(u32::MAX))
}

/// CPU time of all threads of this process.
#[cfg(unix)]
fn cpu_time() -> Option<Nanos> {
    let used = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Some(Nanos::from_secs(used.tv_sec) + Nanos(used.tv_nsec))
}

/// CPU time of all threads of this process.
#[cfg(not(unix))]
fn cpu_time() -> Option<Nanos> {
    None
}
