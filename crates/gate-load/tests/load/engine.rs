//! Loads against the simulated engine, compared with what it says it did.

use std::collections::BTreeMap;

use gate_engine::Fate;
use gate_model::{EngineParams, Faults, Latency, Nanos, Outcome, TokenSource};
use gate_sim::Server;

use crate::bench::Bench;

fn params(faults: Faults) -> EngineParams {
    EngineParams {
        ttft: Latency::constant(Nanos::from_millis(10)),
        tpot: Latency::constant(Nanos::from_millis(2)),
        faults,
        seed: 7,
        ..EngineParams::default()
    }
}

fn expected(fate: Fate) -> Outcome {
    match fate {
        Fate::Complete | Fate::SlowHeaders => Outcome::Ok,
        Fate::Http401 => Outcome::Http4xx,
        Fate::Http429 => Outcome::Http429,
        Fate::Http500 => Outcome::Http5xx,
        Fate::StreamError => Outcome::StreamError,
        Fate::Stall => Outcome::TimeoutStall,
        Fate::Reset | Fate::Dead => Outcome::Reset,
        Fate::Truncate => Outcome::Truncated,
        Fate::Empty => Outcome::Empty,
        Fate::Html200 => Outcome::Decode,
    }
}

fn counts<T: Ord>(outcomes: impl Iterator<Item = T>) -> BTreeMap<T, u32> {
    outcomes.fold(BTreeMap::new(), |mut counts, outcome| {
        *counts.entry(outcome).or_insert(0) += 1;
        counts
    })
}

#[test]
fn outcomes_are_what_the_engine_did() {
    let faults = Faults {
        http_429: 0.1,
        http_500: 0.1,
        http_401: 0.0,
        stream_error: 0.1,
        stall: 0.1,
        reset: 0.1,
        truncate: 0.1,
        empty: 0.1,
        html_200: 0.1,
        slow_headers: 0.1,
    };
    let server = Server::start(([127, 0, 0, 1], 0).into(), params(faults)).unwrap();
    let mut bench = Bench::new(server.address(), 80).warmup(2);
    bench.spec.timeouts.stall = Nanos::from_secs(2);
    let run = bench.go().run;
    let seen = counts(run.warmup.iter().chain(&run.samples).map(|sample| sample.outcome));
    let truth = server.truth();
    assert_eq!(seen, counts(truth.requests.iter().map(|request| expected(request.fate))));
    assert_eq!(seen.len(), 9, "every fault occurs: {seen:?}");
}

#[test]
fn tokens_are_what_the_engine_sent() {
    let server = Server::start(([127, 0, 0, 1], 0).into(), params(Faults::default())).unwrap();
    let mut bench = Bench::new(server.address(), 20);
    for request in &mut bench.plan.requests {
        // The engine knows a request by how much it asks for.
        request.output_tokens = 20 + request.index;
    }
    let run = bench.go().run;
    let truth = server.truth();
    for sample in &run.samples {
        let request = truth.requests.iter().find(|request| request.max_tokens == sample.planned_output).unwrap();
        assert_eq!(sample.outcome, Outcome::Ok, "{sample:?}");
        assert_eq!(sample.output_tokens(), Some((u64::from(request.output_tokens), TokenSource::Usage)));
        let writes: Vec<_> = request.writes.iter().filter(|write| write.tokens > 0).map(|write| write.at).collect();
        assert_eq!(sample.token_times.len(), writes.len());
        // Nothing is seen before it is written: counted from the arrival, which follows the start.
        for (seen, written) in sample.token_times.iter().zip(&writes) {
            assert!(*seen - sample.start.unwrap() >= *written - request.arrived, "{sample:?}\n{request:?}");
        }
        assert!(sample.sent.is_some() && sample.first_token < sample.last_token, "{sample:?}\n{request:?}");
    }
}
