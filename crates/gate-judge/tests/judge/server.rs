//! Metrics of the server's own, by what was scraped.

use gate_model::{Cause, CheckOutcome, CheckVerdict, Iterations, Nanos, Run, Scrape, ServerFacts, ServerMetric};

use crate::support::{gate, judge, run_of};

/// What a server said so many seconds after the epoch: a value, nothing of the metric, or no answer at all.
#[derive(Clone, Copy)]
enum Said {
    Value(f64),
    Nothing,
    Failed,
}

use Said::{Failed, Nothing, Value};

/// The verdict on a check of a metric of this name, and the facts of it.
fn said(text: &str, name: &str, scrapes: &[(i64, Said)]) -> (CheckVerdict, Option<ServerFacts>) {
    let mut spec = gate(&[text], &[]);
    spec.load.iterations = Iterations::Fixed(50);
    let metric = ServerMetric::new(name).unwrap();
    let other = ServerMetric::new("running").unwrap();
    let scrape = |(at, said): &(i64, Said)| Scrape {
        at: Nanos::from_secs(*at),
        values: match said {
            Value(value) => vec![(other, 1.0), (metric, *value)],
            Nothing => vec![(other, 1.0)],
            Failed => Vec::new(),
        },
        error: matches!(said, Failed).then(|| "no answer within 5 s".to_owned()),
    };
    let scrapes = scrapes.iter().map(scrape).collect();
    let mut verdict = judge(&Run { scrapes, ..run_of(&spec, &[100.0; 50]) });
    let facts = verdict.run.server.iter().find(|facts| facts.metric == metric).cloned();
    (verdict.checks.remove(0), facts)
}

/// How much a metric grew over the load, as the check and the facts say.
fn delta(name: &str, scrapes: &[(i64, Said)]) -> f64 {
    let (check, facts) = said(&format!("server.{name}.delta < 100"), name, scrapes);
    let seen = check.seen.unwrap().value;
    assert_eq!(facts.unwrap().delta, seen);
    assert_eq!(check.outcome == CheckOutcome::Met, seen < 100.0);
    seen
}

#[test]
fn a_counter_that_starts_again_counts_from_nothing() {
    let restarted = [(-1, Value(900.0)), (0, Value(1_000.0)), (1, Value(5.0)), (2, Value(25.0))];
    assert_eq!(delta("preemptions", &restarted), 125.0);
    assert_eq!(delta("vllm:preempted_total", &restarted), 125.0);
    // A gauge goes down as well as up.
    assert_eq!(delta("memory", &restarted), -875.0);
}

#[test]
fn a_counter_that_comes_later_counted_from_nothing() {
    let later = [(-1, Nothing), (0, Nothing), (1, Value(300.0)), (2, Value(500.0))];
    assert_eq!(delta("preemptions", &later), 500.0);
    assert_eq!(delta("memory", &later), 200.0);
    // What could not be read says nothing of what was not there.
    assert_eq!(delta("preemptions", &[(0, Failed), (1, Value(300.0)), (2, Value(500.0))]), 200.0);
}

#[test]
fn a_change_begins_before_the_load_and_the_rest_within_it() {
    let scrapes = [(-9, Value(10.0)), (-1, Value(50.0)), (1, Value(70.0)), (2, Value(90.0))];
    assert_eq!(delta("preemptions", &scrapes), 40.0);
    let facts = said("server.preemptions.mean < 100", "preemptions", &scrapes).1.unwrap();
    assert_eq!((facts.max, facts.mean, facts.last, facts.scrapes), (90.0, 80.0, 90.0, 2));
    let check = said("server.preemptions.delta < 100", "preemptions", &scrapes).0;
    assert_eq!(check.evidence.unwrap().n, 2);
    assert_eq!(delta("preemptions", &[(-9, Value(10.0)), (-1, Failed), (1, Value(70.0))]), 60.0);
}

#[test]
fn a_server_that_seldom_answers_is_not_measured() {
    let outcome = |scrapes: &[(i64, Said)]| said("server.preemptions.max < 100", "preemptions", scrapes).0.outcome;
    let message = Some("no answer within 5 s".to_owned());
    let missing = CheckOutcome::CouldNotMeasure { cause: Cause::NotScraped { message } };
    assert_eq!(outcome(&[(-1, Value(1.0)), (0, Value(1.0)), (1, Failed), (2, Failed)]), missing);
    assert_eq!(outcome(&[(-1, Failed), (0, Value(1.0)), (1, Failed)]), CheckOutcome::Met);
}

#[test]
fn the_clocks_of_shards_start_no_counter_again() {
    let mut spec = gate(&["server.preemptions.delta < 1000"], &[]);
    spec.load.iterations = Iterations::Fixed(50);
    let metric = ServerMetric::new("preemptions").unwrap();
    let of = |shards: u32, values: &[f64]| {
        let scrape =
            |(at, value): (i64, &f64)| Scrape { at: Nanos::from_secs(at), values: vec![(metric, *value)], error: None };
        let scrapes: Vec<Scrape> = (-1..).zip(values).map(scrape).collect();
        let mut run = Run { scrapes, ..run_of(&spec, &[100.0; 50]) };
        run.sections = vec![gate_model::Section { shards, ..run.sections().remove(0) }];
        let verdict = judge(&run);
        assert_eq!(verdict.run.server[0].delta, verdict.checks[0].seen.unwrap().value);
        verdict.run.server[0].delta
    };
    let late = [100.0, 120.0, 115.0, 140.0, 135.0];
    assert_eq!((of(2, &late), of(1, &late)), (40.0, 295.0));
    let restarted = [100.0, 120.0, 5.0, 25.0];
    assert_eq!((of(2, &restarted), of(1, &restarted)), (45.0, 45.0));
}
