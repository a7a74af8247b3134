//! The alarm that wakes the send schedule: tokio's own timer is up to 2 ms late, which is too late.
//!
//! Linux has a `timerfd`; elsewhere a thread of its own sleeps. Neither wakes early.

use std::io;
use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Instant;

use tokio::sync::Notify;

/// An alarm for one task at a time.
pub(crate) enum Alarm {
    /// A timer of the kernel.
    #[cfg(target_os = "linux")]
    Kernel(kernel::Timer),
    /// A sleeping thread.
    #[cfg_attr(all(target_os = "linux", not(test)), expect(dead_code, reason = "Linux has a timer; tests select this"))]
    Thread(Sleeper),
}

impl Alarm {
    /// The best alarm of this system.
    #[cfg(target_os = "linux")]
    pub(crate) fn new() -> io::Result<Self> {
        kernel::Timer::new().map(Self::Kernel)
    }

    /// The best alarm of this system.
    #[cfg(not(target_os = "linux"))]
    pub(crate) fn new() -> io::Result<Self> {
        Sleeper::new().map(Self::Thread)
    }

    /// Waits until an instant; at once where it has passed. Dropping the wait is safe.
    pub(crate) async fn wait_until(&mut self, due: Instant) -> io::Result<()> {
        while Instant::now() < due {
            match self {
                #[cfg(target_os = "linux")]
                Self::Kernel(timer) => timer.wait(due).await?,
                Self::Thread(sleeper) => sleeper.wait(due).await?,
            }
        }
        Ok(())
    }
}

/// A thread that sleeps until it is due, and says so.
pub(crate) struct Sleeper {
    due: mpsc::Sender<Instant>,
    awake: Arc<Notify>,
}

impl Sleeper {
    #[cfg_attr(all(target_os = "linux", not(test)), expect(dead_code, reason = "Linux has a timer; tests select this"))]
    pub(crate) fn new() -> io::Result<Self> {
        let (due, orders) = mpsc::channel();
        let awake = Arc::new(Notify::new());
        let bell = Arc::clone(&awake);
        std::thread::Builder::new().name("gate-alarm".to_owned()).spawn(move || sleep(&orders, &bell))?;
        Ok(Self { due, awake })
    }

    async fn wait(&self, due: Instant) -> io::Result<()> {
        self.due.send(due).map_err(|_| io::Error::other("the alarm's thread ended"))?;
        self.awake.notified().await;
        Ok(())
    }
}

/// A new order replaces the one that is slept on; the thread ends with its [`Sleeper`].
fn sleep(orders: &mpsc::Receiver<Instant>, bell: &Notify) {
    let mut order = orders.recv().ok();
    while let Some(due) = order {
        order = match orders.recv_timeout(due.saturating_duration_since(Instant::now())) {
            Ok(next) => Some(next),
            Err(RecvTimeoutError::Timeout) => {
                bell.notify_one();
                orders.recv().ok()
            }
            Err(RecvTimeoutError::Disconnected) => None,
        };
    }
}

#[cfg(target_os = "linux")]
mod kernel {
    use std::io;
    use std::os::fd::OwnedFd;
    use std::time::Instant;

    use gate_model::Nanos;
    use rustix::time::{
        ClockId, Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, clock_gettime, timerfd_create,
        timerfd_settime,
    };
    use tokio::io::unix::AsyncFd;

    /// A `timerfd` on the monotonic clock, which [`Instant`] reads too.
    pub(crate) struct Timer(AsyncFd<OwnedFd>);

    impl Timer {
        #[expect(deprecated, reason = "its successor is `unsafe`; an `OwnedFd` keeps the promise that one asks for")]
        pub(crate) fn new() -> io::Result<Self> {
            let flags = TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC;
            Ok(Self(AsyncFd::new(timerfd_create(TimerfdClockId::Monotonic, flags)?)?))
        }

        /// Waits until an instant. Setting the timer clears what an earlier, dropped wait left behind.
        pub(crate) async fn wait(&self, due: Instant) -> io::Result<()> {
            // In this order a pause between the two readings wakes early, and the caller waits again.
            let clock = clock_gettime(ClockId::Monotonic);
            let left = Nanos::from(due.saturating_duration_since(Instant::now()));
            let at = Nanos::from_secs(clock.tv_sec) + Nanos(clock.tv_nsec) + left;
            // An all-zero value would disarm the timer.
            let value = Timespec { tv_sec: at.0 / 1_000_000_000, tv_nsec: (at.0 % 1_000_000_000).max(1) };
            let once = Itimerspec { it_interval: Timespec { tv_sec: 0, tv_nsec: 0 }, it_value: value };
            timerfd_settime(self.0.get_ref(), TimerfdTimerFlags::ABSTIME, &once)?;
            loop {
                let mut ready = self.0.readable().await?;
                let mut expirations = [0_u8; 8];
                let read = |fd: &AsyncFd<OwnedFd>| Ok(rustix::io::read(fd.get_ref(), &mut expirations)?);
                if let Ok(read) = ready.try_io(read) {
                    return read.map(|_| ());
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn check(alarm: impl FnOnce() -> io::Result<Alarm>) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let mut alarm = alarm().unwrap();
            for wait in [0, 1, 3, 20] {
                let due = Instant::now() + Duration::from_millis(wait);
                alarm.wait_until(due).await.unwrap();
                assert!(Instant::now() >= due);
            }
            // A wait that is dropped leaves neither a wake-up nor its time behind.
            let due = Instant::now() + Duration::from_millis(5);
            let _ = tokio::time::timeout(Duration::from_millis(1), alarm.wait_until(due)).await;
            std::thread::sleep(Duration::from_millis(10));
            let due = Instant::now() + Duration::from_millis(10);
            alarm.wait_until(due).await.unwrap();
            assert!(Instant::now() >= due);
            let _ = tokio::time::timeout(
                Duration::from_millis(1),
                alarm.wait_until(Instant::now() + Duration::from_secs(3600)),
            )
            .await;
            alarm.wait_until(Instant::now() + Duration::from_millis(1)).await.unwrap();
        });
    }

    #[test]
    fn the_best_alarm_never_wakes_early() {
        check(Alarm::new);
    }

    #[test]
    fn the_portable_alarm_never_wakes_early() {
        check(|| Sleeper::new().map(Alarm::Thread));
    }
}
