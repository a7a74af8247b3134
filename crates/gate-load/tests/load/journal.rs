//! The journal: complete, readable when cut, and without secrets.

use std::io::{self, Write};

use gate_load::LoadError;
use gate_model::{EndReason, Header, JournalLine, Outcome, Run};

use crate::bench::{Bench, secret};
use crate::server::*;

#[test]
fn the_journal_is_the_run() {
    let address = serve_measured(|index, _| if index == 1 { vec![Reset] } else { stream(&["a", "b"]) });
    let report = Bench::new(address, 5).warmup(2).go();
    let read = Run::from_journal(&report.journal).unwrap();
    assert_eq!(read, report.run);
    assert_eq!((read.warmup.len(), read.samples.len(), read.planned()), (2, 5, 5));
    let end = read.end.unwrap();
    assert_eq!((end.reason, end.sent), (EndReason::Completed, 5));
    assert!(end.at >= read.samples[4].start.unwrap());
    assert!(end.health.cpu_share.is_some_and(|share| (0.0..=1.0).contains(&share)));
    let kinds: Vec<_> = report.journal.lines().map(|line| line.get(..12).unwrap_or_default()).collect();
    assert_eq!(kinds.first(), Some(&"{\"type\":\"hea"));
    assert_eq!(kinds.last(), Some(&"{\"type\":\"end"));
}

#[test]
fn a_journal_cut_anywhere_is_readable() {
    let address = serve_measured(|_, _| stream(&["a", "b"]));
    let text = Bench::new(address, 3).go().journal;
    let header = text.lines().next().unwrap().len() + 1;
    for end in header..text.len() - 1 {
        if !text.is_char_boundary(end) {
            continue;
        }
        let run = Run::from_journal(&text[..end]).unwrap();
        assert!(run.end.is_none());
        assert!(run.samples.len() <= 3);
    }
}

#[test]
fn the_header_is_written_before_the_first_byte_is_sent() {
    let mut bench = Bench::new(serve(|_| panic!("nothing may be sent")), 1);
    bench.journal = Box::new(Failing { lines: 0 });
    let (result, _, _) = bench.try_go();
    assert!(matches!(result, Err(LoadError::Journal(_))), "{result:?}");
}

#[test]
fn a_journal_that_fails_ends_the_run() {
    // Nothing but the failure can end this run in time.
    let address = serve_measured(|index, _| if index == 0 { stream(&["a"]) } else { vec![Hold] });
    let mut bench = Bench::new(address, 3);
    bench.spec.timeouts.first_token = gate_model::Nanos::from_secs(3600);
    bench.spec.timeouts.total = gate_model::Nanos::from_secs(3600);
    bench.journal = Box::new(Failing { lines: 2 });
    let (result, _, _) = bench.try_go();
    let error = result.unwrap_err();
    assert!(matches!(error, LoadError::Journal(_)), "{error}");
    assert!(error.to_string().contains("is the disk full"));
}

/// Fails after this many lines.
struct Failing {
    lines: u32,
}

impl Write for Failing {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let lines = bytes.iter().filter(|byte| **byte == b'\n').count() as u32;
        self.lines = self.lines.checked_sub(lines).ok_or_else(|| io::Error::other("no space left"))?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn secrets_that_the_server_echoes_are_not_in_the_journal() {
    const KEY: &str = "sk-plant-\"x\"-0123456789";
    let echo = |seen: &Seen| {
        let head = seen.head.lines().find(|line| line.starts_with("authorization")).unwrap();
        assert!(head.contains("sk-plant"));
        serde_json::Value::from(KEY).to_string()
    };
    let address = serve_measured(move |index, seen| {
        let key = echo(seen);
        let bare = key.trim_matches('"').to_owned();
        match index {
            0 => document("401 Unauthorized", "application/json", &format!("{{\"error\":{{\"message\":{key}}}}}")),
            1 => document("500 Oops", "text/plain", &format!("{}{KEY}", "x".repeat(290))),
            2 => vec![stream_head(), chunk(&format!("data: {{\"error\":{{\"message\":{key}}}}}\n\n")), Close],
            3 => vec![stream_head(), chunk(&token("a")), chunk(&finish(&bare)), last_chunk()],
            4 => vec![head("302 Found", &[&format!("location: /login?key={KEY}"), "content-length: 0"])],
            5 => {
                // The dialect's own cut falls into the secret.
                let message = format!("{} {bare}", "word ".repeat(56));
                vec![stream_head(), chunk(&format!("data: {{\"error\":{{\"message\":\"{message}\"}}}}\n\n")), Close]
            }
            _ => document("200 OK", &format!("text/html; key={KEY}"), &format!("<title>{KEY}</title>")),
        }
    });
    let mut bench = Bench::new(address, 7);
    bench.spec.target.key = Some(secret(KEY));
    bench.spec.target.headers = vec![Header { name: "x-other".to_owned(), value: secret("other-plant-42") }];
    bench.spec.target.extra_body.insert("user".to_owned(), serde_json::json!("other-plant-42"));
    let report = bench.go();
    assert_eq!(report.run.samples.iter().filter(|sample| sample.outcome == Outcome::Ok).count(), 1);
    for line in report.journal.lines() {
        let parsed: JournalLine = serde_json::from_str(line).unwrap();
        assert!(!line.contains("sk-plant") && !line.contains("other-plant"), "{parsed:?}");
    }
    assert!(report.journal.contains("***"));
}
