//! Waking streams when something is due: one queue, and one timer, for all of them.

use std::cmp::Ordering;
use std::collections::BinaryHeap;
use std::convert::Infallible;
use std::future::poll_fn;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Poll, Waker};
use std::time::{Duration, Instant};

/// The least time between two rings. Under the load of many streams what is due within it is served together, for a
/// fraction of a ring each.
const LEAST: Duration = Duration::from_micros(200);

/// Wakes whoever waits. On Linux its timer is a `timerfd`, some tens of microseconds late; tokio's own, which is up to
/// 2 ms late, serves elsewhere, and where the process has no descriptor left.
pub(crate) struct Alarm {
    queue: Mutex<Queue>,
    timer: Timer,
}

#[derive(Default)]
struct Queue {
    waiting: BinaryHeap<Waiting>,
    /// What the timer is set to.
    armed: Option<Instant>,
}

/// The earliest is the greatest.
struct Waiting {
    due: Instant,
    waker: Waker,
}

impl Ord for Waiting {
    fn cmp(&self, other: &Self) -> Ordering {
        other.due.cmp(&self.due)
    }
}

impl PartialOrd for Waiting {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Waiting {
    fn eq(&self, other: &Self) -> bool {
        self.due == other.due
    }
}

impl Eq for Waiting {}

impl Alarm {
    /// Within a runtime.
    pub(crate) fn new() -> Self {
        Self { queue: Mutex::default(), timer: Timer::new() }
    }

    /// Returns at `due`, or at once where that has passed.
    pub(crate) async fn wait_until(&self, due: Instant) {
        // One that is always late leaves time for the others.
        tokio::task::coop::consume_budget().await;
        let mut queued = false;
        poll_fn(|context| {
            let now = Instant::now();
            if now >= due {
                return Poll::Ready(());
            }
            if !queued {
                queued = true;
                self.enter(Waiting { due, waker: context.waker().clone() }, now);
            }
            Poll::Pending
        })
        .await;
    }

    fn enter(&self, waiting: Waiting, now: Instant) {
        let mut queue = self.lock();
        let due = waiting.due.max(now + LEAST);
        queue.waiting.push(waiting);
        if queue.armed.is_none_or(|armed| due < armed) {
            queue.armed = Some(due);
            self.timer.set(due);
        }
    }

    /// Wakes whoever is due, for ever.
    pub(crate) async fn ring(&self) -> Infallible {
        loop {
            let next = self.wake();
            self.timer.rings(next).await;
        }
    }

    /// Wakes all that are due, and sets the timer to the next one, if any.
    fn wake(&self) -> Option<Instant> {
        let mut queue = self.lock();
        let now = Instant::now();
        while let Some(waiting) = queue.waiting.peek()
            && waiting.due <= now
        {
            if let Some(waiting) = queue.waiting.pop() {
                waiting.waker.wake();
            }
        }
        queue.armed = queue.waiting.peek().map(|waiting| waiting.due.max(now + LEAST));
        if let Some(due) = queue.armed {
            self.timer.set(due);
        }
        queue.armed
    }

    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

struct Timer {
    #[cfg(target_os = "linux")]
    kernel: Option<kernel::Timer>,
    /// Told when tokio's timer is set to an earlier time.
    earlier: tokio::sync::Notify,
}

impl Timer {
    fn new() -> Self {
        Self {
            #[cfg(target_os = "linux")]
            kernel: kernel::Timer::new().ok(),
            earlier: tokio::sync::Notify::new(),
        }
    }

    fn set(&self, due: Instant) {
        #[cfg(target_os = "linux")]
        if let Some(timer) = &self.kernel
            && timer.set(due).is_ok()
        {
            return;
        }
        self.earlier.notify_one();
    }

    /// Returns when it rings, or has been set anew; `next` is what it was set to.
    async fn rings(&self, next: Option<Instant>) {
        #[cfg(target_os = "linux")]
        if let Some(timer) = &self.kernel
            && timer.rings().await.is_ok()
        {
            return;
        }
        let sleep = async {
            match next {
                Some(due) => tokio::time::sleep(due.saturating_duration_since(Instant::now())).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = sleep => {}
            () = self.earlier.notified() => {}
        }
    }
}

#[cfg(target_os = "linux")]
mod kernel {
    use std::io;
    use std::os::fd::OwnedFd;
    use std::time::Instant;

    use rustix::time::{
        Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create, timerfd_settime,
    };
    use tokio::io::unix::AsyncFd;

    pub(super) struct Timer(AsyncFd<OwnedFd>);

    impl Timer {
        #[expect(deprecated, reason = "its successor is unsafe; an `OwnedFd` keeps the promise that one asks for")]
        pub(super) fn new() -> io::Result<Self> {
            let flags = TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC;
            Ok(Self(AsyncFd::new(timerfd_create(TimerfdClockId::Monotonic, flags)?)?))
        }

        pub(super) fn set(&self, due: Instant) -> io::Result<()> {
            let left = due.saturating_duration_since(Instant::now());
            let once = Itimerspec {
                it_interval: Timespec { tv_sec: 0, tv_nsec: 0 },
                it_value: Timespec {
                    tv_sec: i64::try_from(left.as_secs()).unwrap_or(i64::MAX),
                    // Zero would disarm it.
                    tv_nsec: i64::from(left.subsec_nanos().max(1)),
                },
            };
            timerfd_settime(self.0.get_ref(), TimerfdTimerFlags::empty(), &once)?;
            Ok(())
        }

        pub(super) async fn rings(&self) -> io::Result<()> {
            loop {
                let mut ready = self.0.readable().await?;
                let mut expirations = [0; 8];
                let read = ready.try_io(|timer| Ok(rustix::io::read(timer.get_ref(), &mut expirations)?));
                if let Ok(read) = read {
                    return read.map(drop);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    fn portable() -> Alarm {
        let timer = Timer {
            #[cfg(target_os = "linux")]
            kernel: None,
            earlier: tokio::sync::Notify::new(),
        };
        Alarm { queue: Mutex::default(), timer }
    }

    /// Waits of so many milliseconds, in the order in which they end.
    async fn ended(alarm: Alarm, waits: &[u64]) -> Vec<u64> {
        let alarm = Arc::new(alarm);
        let ringing = alarm.clone();
        tokio::spawn(async move { ringing.ring().await });
        let (sender, mut receiver) = tokio::sync::mpsc::unbounded_channel();
        let start = Instant::now();
        for wait in waits.iter().copied() {
            let (alarm, sender) = (alarm.clone(), sender.clone());
            tokio::spawn(async move {
                let due = start + Duration::from_millis(wait);
                alarm.wait_until(due).await;
                assert!(Instant::now() >= due);
                sender.send(wait).unwrap();
            });
        }
        drop(sender);
        let mut ended = Vec::new();
        while let Some(wait) = receiver.recv().await {
            ended.push(wait);
        }
        ended
    }

    #[test]
    fn whoever_waits_is_woken_when_it_is_due_and_not_before() {
        for make in [Alarm::new, portable] {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            // Far enough apart that a busy machine keeps their order; the earliest is entered late.
            let ended = runtime.block_on(async { ended(make(), &[400, 200, 0, 600]).await });
            assert_eq!(ended, [0, 200, 400, 600]);
        }
    }
}
