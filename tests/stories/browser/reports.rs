//! The reports that are looked at, as the binary writes them.

use std::fmt::Write as _;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::json;

use crate::harness::{Place, TWO_WORDS, answer, quick_spec, serve};

/// The requests of the large report.
pub(super) const MANY: usize = 100_000;

/// The reports, as the binary writes them.
pub(super) struct Reports {
    place: Place,
}

impl Reports {
    pub(super) fn make() -> Self {
        let place = Place::new();
        let spec = |name: &str, engine: &str, limit: &str| {
            quick_spec(name, "http://127.0.0.1:9", 50)
                .replace("url: 'http://127.0.0.1:9', model: m, ready: {within: 2s}", &format!("sim: {{{engine}}}"))
                .replace("ttft.p50 < 10s", limit)
        };
        let faults = "faults: {http_500: 10%}";
        let engine = |mean: &str| format!("ttft: {{mean: {mean}, stddev: 8ms}}, tpot: 3ms, seed: 5, {faults}");
        place.write("passed.yaml", &spec("passed", &engine("40ms"), "ttft.p50 < 10s, errors.rate < 90%"));
        place.write("violated.yaml", &spec("violated", &engine("90ms"), "ttft.p50 < 10ms, errors.rate < 90%"));
        place.gate(&["check", "passed.yaml"]).expect_code(0);
        place.gate(&["check", "violated.yaml"]).expect_code(1);
        let address = hostile();
        let limit = "ttft.p50 < 10s, errors.rate < 90%";
        let hostile = quick_spec("hostile", &format!("http://{address}"), 50).replace("ttft.p50 < 10s", limit);
        place.write("hostile.yaml", &hostile);
        place.gate(&["check", "hostile.yaml"]).expect_code(0);
        place.write("many.jsonl", &many());
        place.write("many.yaml", &quick_spec("many", "http://127.0.0.1:9", 100_000).replace("rps: 40", "rps: 100"));
        let words = ["judge", "many.jsonl", "--from", "samples", "--spec", "many.yaml", "--html", "many.html"];
        place.gate_once(&words).expect_code(0);
        Self { place }
    }

    pub(super) fn small(&self, name: &str) -> PathBuf {
        self.place.path(&format!(".gate/{name}/report.html"))
    }

    pub(super) fn large(&self) -> PathBuf {
        self.place.path("many.html")
    }
}

/// What a hostile server says of a request: markup, a script's end, quotes and commas.
pub(super) const HOSTILE: &str = r#"</script><img src=x onerror="console.error('ran')">, 'quoted'"#;

/// A server that refuses every fourth request with hostile words.
fn hostile() -> SocketAddr {
    let count = AtomicUsize::new(0);
    serve(move |_, stream| match count.fetch_add(1, Ordering::Relaxed) % 4 {
        3 => {
            let body = json!({"error": {"message": HOSTILE}}).to_string();
            answer(stream, "500 Internal Server Error", "application/json", &body);
        }
        _ => answer(stream, "200 OK", "text/event-stream", TWO_WORDS),
    })
}

/// Requests of another tool, a hundred a second; every thousandth failed.
fn many() -> String {
    let mut text = String::new();
    for number in 0..MANY {
        let send = number as f64 / 100.0;
        let ttft = 200.0 + (number * 7_919 % 1_009) as f64 / 4.0;
        let line = match number % 1_000 {
            17 => format!(
                r#"{{"send_s":{send},"status":503,"ttft_ms":null,"tpot_ms":null,"e2e_ms":null,"output_tokens":null}}"#
            ),
            _ => format!(
                r#"{{"send_s":{send},"status":200,"ttft_ms":{ttft},"tpot_ms":20,"e2e_ms":{},"output_tokens":21}}"#,
                ttft + 400.0
            ),
        };
        writeln!(text, "{line}").unwrap();
    }
    text
}
