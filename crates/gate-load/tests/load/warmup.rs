//! What warm-up teaches: how the server counts, and which field it wants.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use gate_model::{EndReason, MaxTokensField, Nanos, Outcome};

use crate::bench::{Asked, Bench};
use crate::server::*;

const REFUSAL: &str = "{\"error\":{\"message\":\"Unsupported parameter: 'max_tokens' is not supported with this model. \
                       Use 'max_completion_tokens' instead.\",\"code\":\"unsupported_parameter\"}}";

fn refusal() -> Vec<Act> {
    document("400 Bad Request", "application/json", REFUSAL)
}

fn counting(tokens: u32) -> Vec<Act> {
    let usage =
        format!("data: {{\"choices\":[],\"usage\":{{\"prompt_tokens\":{tokens},\"completion_tokens\":1}}}}\n\n");
    let mut acts = stream(&["a"]);
    acts.insert(acts.len() - 2, chunk(&usage));
    acts
}

#[test]
fn prompts_are_fitted_to_what_warm_up_counted_before_any_is_measured() {
    let address = serve(|seen| match seen.measured() {
        Some(_) => counting(100),
        None if seen.body.contains("warmup-1.") => document("500 Oops", "text/plain", ""),
        None if seen.body.contains("warmup-2.") => stream(&["no usage"]),
        None if seen.is_warmup() => counting(40),
        None => counting(9),
    });
    let bench = Bench::new(address, 3).warmup(4);
    let prompts = Arc::clone(&bench.prompts);
    let run = bench.go().run;
    assert!(run.samples.iter().all(|sample| sample.outcome == Outcome::Ok), "{run:?}");
    let warmup = (0..4).map(Asked::Warmup);
    let fit = [Asked::Fit(vec![(3, 40), (3, 40)])];
    assert_eq!(prompts.asked(), warmup.chain(fit).chain((0..3).map(Asked::Measured)).collect::<Vec<_>>());
}

#[test]
fn without_a_count_nothing_is_fitted() {
    let bench = Bench::new(serve_measured(|_, _| stream(&["a"])), 1);
    let prompts = Arc::clone(&bench.prompts);
    bench.go();
    assert_eq!(prompts.asked(), [Asked::Warmup(0), Asked::Measured(0)]);
}

/// The fields that requests carried, in their order.
type Fields = Arc<Mutex<Vec<MaxTokensField>>>;

/// A server that refuses some fields, and answers GETs with a status.
fn serve_particular(get: &'static str, refused: &'static [MaxTokensField]) -> (SocketAddr, Fields) {
    let fields = Fields::default();
    let log = Arc::clone(&fields);
    let address = serve(move |seen| {
        if seen.line.starts_with("GET") {
            return vec![head(get, &["content-length: 0"])];
        }
        let carried = [OLD, NEW].into_iter().filter(|field| seen.body.contains(&format!("\"{}\"", field.name())));
        let [field] = carried.collect::<Vec<_>>()[..] else { panic!("{}", seen.body) };
        log.lock().unwrap().push(field);
        if refused.contains(&field) { refusal() } else { stream(&["a"]) }
    });
    (address, fields)
}

const OLD: MaxTokensField = MaxTokensField::MaxTokens;
const NEW: MaxTokensField = MaxTokensField::MaxCompletionTokens;

#[test]
fn a_refused_field_is_switched_in_warm_up_and_stays_so() {
    let (address, fields) = serve_particular("200 OK", &[OLD]);
    let report = Bench::new(address, 3).warmup(2).go();
    assert_eq!(*fields.lock().unwrap(), [OLD, NEW, NEW, NEW, NEW, NEW]);
    let outcomes = report.run.warmup.iter().chain(&report.run.samples).map(|sample| sample.outcome);
    assert_eq!(outcomes.collect::<Vec<_>>(), [Outcome::Ok; 5]);
    let end = report.run.end.unwrap();
    assert_eq!((end.reason, end.switched_to), (EndReason::Completed, Some(NEW)));
    assert!(report.journal.lines().last().unwrap().contains("\"switched_to\":\"max_completion_tokens\""));
}

#[test]
fn the_readiness_request_teaches_the_field_too() {
    let (address, fields) = serve_particular("404 Not Found", &[OLD]);
    let report = Bench::new(address, 2).warmup(0).go();
    assert_eq!(*fields.lock().unwrap(), [OLD, NEW, NEW]);
    assert_eq!(report.run.end.unwrap().switched_to, Some(NEW));
}

#[test]
fn nothing_is_sent_again_where_it_cannot_help() {
    // Whatever is sent is refused: once more, and no further.
    let (address, fields) = serve_particular("200 OK", &[OLD, NEW]);
    let report = Bench::new(address, 2).warmup(2).go();
    assert_eq!(*fields.lock().unwrap(), [OLD, NEW, NEW, NEW, NEW]);
    assert!(report.run.samples.iter().all(|sample| sample.outcome == Outcome::Http4xx));
    // The spec names the field already.
    let (address, fields) = serve_particular("200 OK", &[OLD, NEW]);
    let mut bench = Bench::new(address, 1).warmup(1);
    bench.spec.target.max_tokens_field = NEW;
    assert_eq!(bench.go().run.end.unwrap().switched_to, None);
    assert_eq!(*fields.lock().unwrap(), [NEW, NEW]);
}

#[test]
fn a_measured_request_is_never_sent_again() {
    let (address, fields) = serve_particular("200 OK", &[OLD]);
    let report = Bench::new(address, 2).warmup(0).every(100).go();
    assert_eq!(*fields.lock().unwrap(), [OLD, OLD]);
    assert!(report.run.samples.iter().all(|sample| sample.outcome == Outcome::Http4xx));
    assert_eq!(report.run.end.unwrap().switched_to, None);
    assert!(report.run.samples[1].intended >= Nanos::from_millis(100));
}
