//! Waiting for an instant, to some tens of microseconds where the kernel can.

use std::time::Instant;

/// A timer of one stream. tokio's own is up to 2 ms late, so on Linux it is a `timerfd`; elsewhere, and where the
/// process has no descriptor left for it, tokio's.
pub(crate) struct Timer {
    #[cfg(target_os = "linux")]
    kernel: Option<kernel::Timer>,
}

impl Timer {
    pub(crate) fn new() -> Self {
        Self {
            #[cfg(target_os = "linux")]
            kernel: kernel::Timer::new().ok(),
        }
    }

    /// Returns at `due`, or at once where that has passed.
    pub(crate) async fn wait_until(&self, due: Instant) {
        #[cfg(target_os = "linux")]
        if let Some(timer) = &self.kernel
            && timer.wait_until(due).await.is_ok()
        {
            return;
        }
        let left = due.saturating_duration_since(Instant::now());
        if !left.is_zero() {
            tokio::time::sleep(left).await;
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

        pub(super) async fn wait_until(&self, due: Instant) -> io::Result<()> {
            let left = due.saturating_duration_since(Instant::now());
            // Zero would disarm it.
            if left.is_zero() {
                return Ok(());
            }
            let once = Itimerspec {
                it_interval: Timespec { tv_sec: 0, tv_nsec: 0 },
                it_value: Timespec {
                    tv_sec: i64::try_from(left.as_secs()).unwrap_or(i64::MAX),
                    tv_nsec: i64::from(left.subsec_nanos()),
                },
            };
            timerfd_settime(self.0.get_ref(), TimerfdTimerFlags::empty(), &once)?;
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
