//! SIGINT and SIGTERM.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use gate_load::Stop;

use crate::failure::Failure;

/// Makes both signals do this, as often as they come.
pub(crate) fn on_signals(action: impl FnMut() + Send + 'static) -> Result<(), Failure> {
    ctrlc::set_handler(action).map_err(|error| Failure::internal(format!("cannot listen for interrupts: {error}")))
}

/// The interrupts of a command that measures and then tells: the first one ends the load, and what was measured is still
/// told; one more ends that too.
#[derive(Clone)]
pub(crate) struct Interrupts {
    /// Ends the load.
    pub(crate) stop: Stop,
    seen: Arc<AtomicUsize>,
    borne: Arc<AtomicUsize>,
    /// When patience ends.
    until: Arc<Mutex<Option<Instant>>>,
}

impl Interrupts {
    /// Listens from now on.
    pub(crate) fn listen() -> Result<Self, Failure> {
        let interrupts = Self { stop: Stop::new(), seen: Arc::default(), borne: Arc::default(), until: Arc::default() };
        let on_signal = interrupts.clone();
        on_signals(move || {
            on_signal.seen.fetch_add(1, Ordering::SeqCst);
            on_signal.stop.trigger();
        })?;
        Ok(interrupts)
    }

    /// Goes on in spite of those that came so far, for so long at most.
    pub(crate) fn bear(&self, most: Option<Duration>) {
        self.borne.store(self.seen.load(Ordering::SeqCst), Ordering::SeqCst);
        *self.until.lock().unwrap_or_else(PoisonError::into_inner) = most.map(|most| Instant::now() + most);
    }

    /// Whether there was one that is not borne, or it was borne long enough.
    pub(crate) fn is_over(&self) -> bool {
        let until = *self.until.lock().unwrap_or_else(PoisonError::into_inner);
        self.seen.load(Ordering::SeqCst) > self.borne.load(Ordering::SeqCst)
            || until.is_some_and(|until| Instant::now() >= until)
    }
}
