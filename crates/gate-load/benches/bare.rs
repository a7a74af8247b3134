//! The least client there is: one thread, epoll, and a read into a buffer nobody looks at. What a token costs it is
//! what the kernel costs; `cargo xtask bench scale` compares.
//!
//! `bare ADDRESS RATE STREAMS TOKENS` asks for so many streams, at so many a second, of so many tokens each, and prints
//! the CPU time of this process per token in microseconds.

#[cfg(target_os = "linux")]
fn main() -> std::io::Result<()> {
    linux::main()
}

#[cfg(not(target_os = "linux"))]
fn main() {}

#[cfg(target_os = "linux")]
mod linux {
    use std::io::{Error, ErrorKind, Read, Result, Write};
    use std::net::TcpStream;
    use std::time::{Duration, Instant};

    use rustix::event::epoll;
    use rustix::time::{ClockId, Timespec, clock_gettime};

    pub(super) fn main() -> Result<()> {
        let words: Vec<String> = std::env::args().skip(1).filter(|word| word != "--bench").collect();
        let [address, rate, streams, tokens] = words.as_slice() else {
            // As `cargo test --benches` calls it: there is nothing to measure.
            return Ok(());
        };
        let number = |text: &str| text.parse::<u32>().map_err(|error| Error::new(ErrorKind::InvalidInput, error));
        let (rate, streams, tokens) = (number(rate)?, number(streams)?, number(tokens)?);
        let cpu = clock_gettime(ClockId::ProcessCPUTime);
        let bytes = run(address, rate, streams, tokens)?;
        let used = micros(clock_gettime(ClockId::ProcessCPUTime)) - micros(cpu);
        let per_token = used / (f64::from(streams) * f64::from(tokens));
        writeln!(std::io::stdout(), "{per_token:.3} us a token, {bytes} bytes")
    }

    fn micros(time: Timespec) -> f64 {
        time.tv_sec as f64 * 1e6 + time.tv_nsec as f64 / 1e3
    }

    fn run(address: &str, rate: u32, streams: u32, tokens: u32) -> Result<u64> {
        let poll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let every = Duration::from_secs(1) / rate;
        let start = Instant::now();
        let mut open: Vec<Option<TcpStream>> = Vec::new();
        let (mut left, mut bytes) = (streams, 0);
        let mut buffer = vec![0; 64 << 10];
        let mut events = Vec::with_capacity(256);
        while left > 0 {
            let sent = u32::try_from(open.len()).unwrap_or(u32::MAX);
            let due = start + every * sent;
            if sent < streams && due <= Instant::now() {
                let stream = ask(address, tokens)?;
                let data = epoll::EventData::new_u64(u64::from(sent));
                epoll::add(&poll, &stream, data, epoll::EventFlags::IN)?;
                open.push(Some(stream));
                continue;
            }
            let wait = if sent < streams { due.saturating_duration_since(Instant::now()) } else { every * 1000 };
            let wait = Timespec { tv_sec: wait.as_secs() as i64, tv_nsec: i64::from(wait.subsec_nanos()) };
            epoll::wait(&poll, rustix::buffer::spare_capacity(&mut events), Some(&wait))?;
            for event in events.drain(..) {
                let Some(slot) = usize::try_from(event.data.u64()).ok().and_then(|place| open.get_mut(place)) else {
                    continue;
                };
                let Some(stream) = slot else { continue };
                match stream.read(&mut buffer) {
                    Ok(0) => {
                        epoll::delete(&poll, &*stream)?;
                        *slot = None;
                        left -= 1;
                    }
                    Ok(count) => bytes += count as u64,
                    Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                    Err(error) => return Err(error),
                }
            }
        }
        Ok(bytes)
    }

    /// A stream that has been asked for, and ends with its connection.
    fn ask(address: &str, tokens: u32) -> Result<TcpStream> {
        let body = format!(
            "{{\"model\":\"m\",\"stream\":true,\"max_tokens\":{tokens},\
             \"messages\":[{{\"role\":\"user\",\"content\":\"Hello\"}}]}}"
        );
        let mut stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        write!(
            stream,
            "POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\
             content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        )?;
        stream.set_nonblocking(true)?;
        Ok(stream)
    }
}
