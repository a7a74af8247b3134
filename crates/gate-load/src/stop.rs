//! Stopping a run from outside.

use std::sync::Arc;

use tokio::sync::watch;

/// A switch that ends a run; its clones are the same switch. It can be triggered from any thread, and never goes back.
#[derive(Clone, Debug)]
pub struct Stop(Arc<watch::Sender<bool>>);

impl Default for Stop {
    fn default() -> Self {
        Self::new()
    }
}

impl Stop {
    /// A switch that is not triggered.
    #[must_use]
    pub fn new() -> Self {
        Self(Arc::new(watch::Sender::new(false)))
    }

    /// Ends the run: nothing more is sent, and open streams end at once as `cancelled`.
    pub fn trigger(&self) {
        self.0.send_replace(true);
    }

    /// Whether it was triggered.
    #[must_use]
    pub fn is_triggered(&self) -> bool {
        *self.0.borrow()
    }

    /// Waits until it is triggered.
    pub(crate) async fn triggered(&self) {
        // The sender lives as long as `self`, so the wait cannot fail.
        let _ = self.0.subscribe().wait_for(|triggered| *triggered).await;
    }
}
