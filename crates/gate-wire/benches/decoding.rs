//! Pure decoding: a chat stream of one token an event that lies in memory, fed in reads of 16 KiB on one core.
//!
//! Prints medians of eleven rounds: megabytes and events a second, and megabytes where every event has an id of its
//! own, so that none is like the one before.

use std::io::Write;
use std::time::Instant;

use gate_model::{Api, Delivery};
use gate_wire::{Keep, dialect};

const EVENTS: usize = 200_000;
const READ: usize = 16 << 10;

fn main() -> std::io::Result<()> {
    if !std::env::args().any(|word| word == "--bench") {
        // As `cargo test --benches` calls it: there is nothing to measure.
        return Ok(());
    }
    let alike = stream(|_| 0);
    let seconds = median(alike.as_bytes());
    let (megabytes, events) = (alike.len() as f64 / seconds / 1e6, EVENTS as f64 / seconds);
    let unlike = stream(|number| number);
    let apart = unlike.len() as f64 / median(unlike.as_bytes()) / 1e6;
    writeln!(std::io::stdout(), "{megabytes:.0} MB/s, {events:.0} events/s; {apart:.0} MB/s where no two are alike")
}

/// A stream whose events have these ids.
fn stream(id: impl Fn(usize) -> usize) -> String {
    let mut body = String::new();
    for number in 0..EVENTS {
        body += &format!("data: {{\"id\":\"chatcmpl-{:010}\",\"object\":\"chat.completion.chunk\",", id(number));
        body += "\"created\":1760000000,\"model\":\"llama-3.1-8b-instruct\",\"choices\":[{\"index\":0,";
        body += &format!("\"delta\":{{\"content\":\" word{}\"}},\"logprobs\":null,", number % 10);
        body += "\"finish_reason\":null}]}\n\n";
    }
    body + "data: [DONE]\n\n"
}

/// The median of the seconds it takes.
fn median(body: &[u8]) -> f64 {
    let mut rounds: Vec<f64> = (0..11).map(|_| round(body)).collect();
    rounds.sort_by(f64::total_cmp);
    rounds.get(rounds.len() / 2).copied().unwrap_or(f64::NAN)
}

/// Decodes the whole body, and gives the seconds it took.
fn round(body: &[u8]) -> f64 {
    let dialect = dialect(Api::OpenaiChat, None);
    let mut decoder = dialect.decoder(Delivery::Streamed, Keep::Nothing);
    let mut seen = 0;
    let start = Instant::now();
    for read in body.chunks(READ) {
        decoder.feed(read, &mut |event| seen += usize::from(event.kind.is_content()));
    }
    let seconds = start.elapsed().as_secs_f64();
    assert_eq!(seen, EVENTS, "every event has a token");
    seconds
}
