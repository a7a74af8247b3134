//! Waking many waits of one thread by one alarm.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::io;
use std::time::Instant;

use tokio::sync::{Notify, oneshot};

use crate::alarm::Alarm;

/// The waits of a thread.
#[derive(Default)]
pub(crate) struct Wakeups {
    /// By their instant, and the order in which they came.
    waits: RefCell<BTreeMap<(Instant, u64), oneshot::Sender<()>>>,
    count: Cell<u64>,
    /// Rung when an earlier wait has come.
    bell: Notify,
}

impl Wakeups {
    /// Waits until an instant, as long as [`Wakeups::ring`] is polled; at once where it has passed.
    pub(crate) async fn until(&self, due: Instant) {
        if due <= Instant::now() {
            return;
        }
        let (wake, woken) = oneshot::channel();
        self.count.set(self.count.get() + 1);
        let key = (due, self.count.get());
        let is_first = {
            let mut waits = self.waits.borrow_mut();
            waits.insert(key, wake);
            waits.first_key_value().is_some_and(|(first, _)| *first == key)
        };
        if is_first {
            self.bell.notify_one();
        }
        let _ = woken.await;
    }

    /// Wakes what is due, again and again.
    pub(crate) async fn ring(&self, mut alarm: Alarm) -> io::Result<()> {
        loop {
            let first = self.waits.borrow().first_key_value().map(|((due, _), _)| *due);
            let Some(first) = first else {
                self.bell.notified().await;
                continue;
            };
            tokio::select! {
                () = self.bell.notified() => continue,
                rung = alarm.wait_until(first) => rung?,
            }
            let now = Instant::now();
            let later = self.waits.borrow_mut().split_off(&(now, u64::MAX));
            let due = self.waits.replace(later);
            for wake in due.into_values() {
                // Who was waiting may have gone.
                let _ = wake.send(());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::rc::Rc;
    use std::time::Duration;

    use super::*;

    #[test]
    fn waits_end_in_order_and_never_early() {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build_local(tokio::runtime::LocalOptions::default())
            .unwrap();
        runtime.block_on(async {
            let wakeups = Rc::new(Wakeups::default());
            let ringing = Rc::clone(&wakeups);
            let ring = tokio::task::spawn_local(async move { ringing.ring(Alarm::new().unwrap()).await });
            let order = Rc::new(RefCell::new(Vec::new()));
            let start = Instant::now();
            let mut tasks = tokio::task::JoinSet::new();
            for millis in [30_u64, 10, 20, 10, 0] {
                let (wakeups, order) = (Rc::clone(&wakeups), Rc::clone(&order));
                tasks.spawn_local(async move {
                    let due = start + Duration::from_millis(millis);
                    wakeups.until(due).await;
                    assert!(Instant::now() >= due);
                    order.borrow_mut().push(millis);
                });
            }
            // A wait that is dropped holds nobody up.
            let _ =
                tokio::time::timeout(Duration::from_millis(1), wakeups.until(start + Duration::from_millis(15))).await;
            while let Some(ended) = tasks.join_next().await {
                ended.unwrap();
            }
            assert_eq!(*order.borrow(), [0, 10, 10, 20, 30]);
            ring.abort();
        });
    }
}
