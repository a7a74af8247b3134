//! The client's own health: a client that is slow can only make the server look slower.

use std::cell::RefCell;
use std::io;
use std::rc::Rc;
use std::time::{Duration, Instant};

use gate_model::{Health, Histogram, Nanos};

use crate::alarm::Alarm;

/// How often the I/O thread's lateness is probed.
const EVERY: Duration = Duration::from_millis(20);

/// Watches the I/O thread and the process from its making to [`Watch::health`].
pub(crate) struct Watch {
    start: Instant,
    cpu: Option<Nanos>,
    delays: Rc<RefCell<Histogram>>,
}

impl Watch {
    pub(crate) fn new() -> Self {
        Self { start: Instant::now(), cpu: cpu_time(), delays: Rc::default() }
    }

    /// Probes the thread's lateness for as long as it is polled.
    pub(crate) fn probe(&self) -> impl Future<Output = io::Result<()>> + 'static {
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
    pub(crate) fn health(&self) -> Health {
        let elapsed = self.start.elapsed().as_secs_f64();
        let used = cpu_time().zip(self.cpu).map(|(now, then)| (now - then).as_secs_f64());
        let available = elapsed * f64::from(cores());
        let cpu_share = used.filter(|_| available > 0.0).map(|used| (used / available).clamp(0.0, 1.0));
        let delays = self.delays.borrow();
        let rank = delays.count().saturating_mul(95).div_ceil(100);
        Health { cpu_share, loop_delay_p95: delays.at_rank(rank) }
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
