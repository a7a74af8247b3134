//! Receiving: bytes from a socket, and the instant they came.
//!
//! Linux stamps what the network hands over, so that it doesn't matter when this process gets to read it. A read that
//! joins several segments bears the stamp of the last one. To read less at a time would not tell them apart: the kernel
//! joins segments that lie unread, and keeps only the last one's stamp.

use std::io;
use std::net::TcpStream;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Instant;

use gate_model::{Clock, Histogram, Stamping};
use tokio::io::{AsyncRead, ReadBuf};

use crate::LoadError;
use crate::clock::Clocks;
use crate::socket::Socket;

/// The clock to stamp by, and what keeps it going.
#[derive(Debug)]
pub(crate) struct Chosen {
    pub(crate) clock: Stamping,
    /// The socket it was tried with. The kernel stamps as long as any socket wants it, and takes a while to begin.
    _stamped: Option<TcpStream>,
}

/// Chooses the clock, tried out where it is to be the kernel's. Unix sockets have no stamps of the kernel.
///
/// # Errors
/// [`LoadError::Clock`], where only the kernel's will do.
pub(crate) fn choose(clock: Clock, is_unix: bool) -> Result<Chosen, LoadError> {
    let user = Chosen { clock: Stamping::User, _stamped: None };
    let tried = match clock {
        Clock::User => return Ok(user),
        _ if is_unix => Err("Unix sockets have no receive stamps".to_owned()),
        _ => kernel::try_out(),
    };
    match (tried, clock) {
        (Ok(socket), _) => Ok(Chosen { clock: Stamping::Kernel, _stamped: Some(socket) }),
        (Err(problem), Clock::Kernel) => Err(LoadError::Clock { problem }),
        (Err(problem), _) => {
            tracing::debug!(problem, "no receive stamps of the kernel: this process stamps what it reads");
            Ok(user)
        }
    }
}

/// What the connections of one I/O thread share to receive. The lock is never waited for: only that thread takes it,
/// but a stream under TLS has to be `Send`.
pub(crate) struct Receiver {
    clock: Stamping,
    desk: Mutex<Desk>,
}

/// What is needed for one read at a time.
struct Desk {
    space: kernel::Space,
    clocks: Clocks,
    /// How long bytes lay in the kernel before they were read.
    delays: Histogram,
}

impl Receiver {
    pub(crate) fn new(clock: Stamping) -> Arc<Self> {
        let desk = Desk { space: kernel::Space::new(), clocks: Clocks::read(), delays: Histogram::default() };
        Arc::new(Self { clock, desk: Mutex::new(desk) })
    }

    fn desk(&self) -> MutexGuard<'_, Desk> {
        self.desk.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Has the kernel stamp what a new connection receives, where that is the clock.
    pub(crate) fn prepare(&self, socket: &Socket) {
        if self.clock == Stamping::Kernel
            && let Err(error) = kernel::stamp(socket)
        {
            // It worked before the load began. What comes without a stamp is stamped when it is read.
            tracing::debug!(%error, "a connection without receive stamps");
        }
    }

    /// Reads what has come, and gives the instant it came; where the peer has closed, that is nothing.
    pub(crate) fn poll(
        &self,
        socket: &mut Socket,
        cx: &mut Context<'_>,
        to: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<Instant>> {
        if self.clock != Stamping::Kernel {
            return Pin::new(socket).poll_read(cx, to).map_ok(|()| Instant::now());
        }
        let Desk { space, clocks, delays } = &mut *self.desk();
        let (bytes, stamp) = ready!(kernel::poll(socket, cx, space, to.remaining()))?;
        let now = Instant::now();
        to.put_slice(bytes);
        let at = stamp.map_or(now, |stamp| clocks.instant(stamp, now));
        delays.record(now.duration_since(at).into());
        Poll::Ready(Ok(at))
    }

    /// Forgets how long bytes lay so far.
    pub(crate) fn begin(&self) {
        self.desk().delays = Histogram::default();
    }

    /// How long bytes lay in the kernel before they were read.
    pub(crate) fn delays(&self) -> Histogram {
        self.desk().delays.clone()
    }
}

#[cfg(target_os = "linux")]
mod kernel {
    use std::io::{self, IoSliceMut, Write};
    use std::net::{TcpListener, TcpStream};
    use std::os::fd::{AsFd, AsRawFd};
    use std::task::{Context, Poll, ready};
    use std::time::{Duration, Instant, SystemTime};

    use nix::cmsg_space;
    use nix::sys::socket::{ControlMessageOwned, MsgFlags, recvmsg, setsockopt, sockopt::ReceiveTimestampns};
    use nix::sys::time::TimeSpec;

    use crate::socket::Socket;

    /// The most bytes of one read.
    const LONGEST: usize = 16 << 10;

    /// Room for what one read brings.
    pub(super) struct Space {
        bytes: Box<[u8]>,
        /// For the stamp.
        control: Vec<u8>,
    }

    impl Space {
        pub(super) fn new() -> Self {
            Self { bytes: vec![0; LONGEST].into(), control: cmsg_space!(TimeSpec) }
        }
    }

    /// Switches a socket's stamps on.
    pub(super) fn stamp(socket: &impl AsFd) -> io::Result<()> {
        Ok(setsockopt(socket, ReceiveTimestampns, &true)?)
    }

    /// Reads as many bytes as there are and may be, with the wall time at which the last of them came.
    fn receive(socket: &impl AsFd, space: &mut Space, room: usize) -> io::Result<(usize, Option<SystemTime>)> {
        let Space { bytes, control } = space;
        let mut parts = [IoSliceMut::new(bytes.get_mut(..room).unwrap_or_default())];
        let fd = socket.as_fd().as_raw_fd();
        let message = recvmsg::<()>(fd, &mut parts, Some(control), MsgFlags::empty())?;
        let stamp = message.cmsgs()?.find_map(|control| match control {
            ControlMessageOwned::ScmTimestampns(stamp) => Some(stamp),
            _ => None,
        });
        let since_1970 = |stamp: TimeSpec| {
            let seconds = u64::try_from(stamp.tv_sec()).ok()?;
            Some(Duration::new(seconds, u32::try_from(stamp.tv_nsec()).ok()?))
        };
        let stamp = stamp.and_then(since_1970).and_then(|since| SystemTime::UNIX_EPOCH.checked_add(since));
        Ok((message.bytes, stamp))
    }

    /// Reads at most `room` bytes as soon as there are any.
    pub(super) fn poll<'a>(
        socket: &Socket,
        cx: &mut Context<'_>,
        space: &'a mut Space,
        room: usize,
    ) -> Poll<io::Result<(&'a [u8], Option<SystemTime>)>> {
        let room = room.min(LONGEST);
        loop {
            ready!(socket.poll_read_ready(cx))?;
            let mut received = None;
            let tried = socket.try_read(|| {
                let (count, stamp) = receive(socket, space, room)?;
                received = Some((count, stamp));
                // A read that leaves room has taken all there was: the socket need not be asked again before more came.
                if count > 0 && count < room { Err(io::ErrorKind::WouldBlock.into()) } else { Ok(()) }
            });
            match (received, tried) {
                (Some((count, stamp)), _) => {
                    return Poll::Ready(Ok((space.bytes.get(..count).unwrap_or_default(), stamp)));
                }
                (None, Err(error)) if error.kind() != io::ErrorKind::WouldBlock => return Poll::Ready(Err(error)),
                (None, _) => {}
            }
        }
    }

    /// Whether this system stamps what it receives: sends itself a byte until one comes with a stamp. The kernel starts
    /// to stamp a little after it was first asked to.
    pub(super) fn try_out() -> Result<TcpStream, String> {
        const AT_MOST: Duration = Duration::from_secs(1);
        let words = |error: io::Error| format!("a trial of its receive stamps failed: {error}");
        let trial = || -> io::Result<Option<TcpStream>> {
            let listener = TcpListener::bind("127.0.0.1:0")?;
            let receiving = TcpStream::connect(listener.local_addr()?)?;
            let (mut sending, _) = listener.accept()?;
            stamp(&receiving)?;
            let mut space = Space::new();
            let start = Instant::now();
            while start.elapsed() < AT_MOST {
                sending.write_all(&[0])?;
                receiving.peek(&mut [0])?;
                if receive(&receiving, &mut space, 1)?.1.is_some() {
                    return Ok(Some(receiving));
                }
                std::thread::sleep(Duration::from_millis(1));
            }
            Ok(None)
        };
        match trial() {
            Ok(Some(stamped)) => Ok(stamped),
            Ok(None) => Err("this kernel gives no receive stamps for TCP".to_owned()),
            Err(error) => Err(words(error)),
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod kernel {
    use std::io;
    use std::net::TcpStream;
    use std::task::{Context, Poll};
    use std::time::SystemTime;

    use crate::socket::Socket;

    pub(super) struct Space;

    impl Space {
        pub(super) fn new() -> Self {
            Self
        }
    }

    pub(super) fn try_out() -> Result<TcpStream, String> {
        Err(format!("only Linux has receive stamps, and this is {}", std::env::consts::OS))
    }

    /// Not called: the clock is never this one.
    pub(super) fn stamp(_: &Socket) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Not called: the clock is never this one.
    pub(super) fn poll<'a>(
        _: &Socket,
        _: &mut Context<'_>,
        _: &'a mut Space,
        _: usize,
    ) -> Poll<io::Result<(&'a [u8], Option<SystemTime>)>> {
        Poll::Ready(Err(io::ErrorKind::Unsupported.into()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_that_does_not_work_is_no_clock() {
        assert_eq!(choose(Clock::User, false).unwrap().clock, Stamping::User);
        assert_eq!(choose(Clock::Auto, true).unwrap().clock, Stamping::User);
        let error = choose(Clock::Kernel, true).unwrap_err().to_string();
        assert!(error.contains("Unix sockets have no receive stamps") && error.contains("load.clock"), "{error}");
    }

    #[test]
    fn linux_stamps_what_it_receives() {
        let chosen = choose(Clock::Kernel, false);
        match cfg!(target_os = "linux") {
            true => assert_eq!(chosen.unwrap().clock, Stamping::Kernel),
            false => assert!(chosen.unwrap_err().to_string().contains("only Linux")),
        }
    }
}
