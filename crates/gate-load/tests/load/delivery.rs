//! Answers that come as one body.

use gate_model::{Api, Delivery, Nanos, Outcome, TokenSource};

use crate::bench::Bench;
use crate::server::*;

const ANSWER: &str = "{\"object\":\"chat.completion\",\"choices\":[{\"index\":0,\"message\":{\"role\":\"assistant\",\
                      \"content\":\"hi\"},\"finish_reason\":\"stop\"}],\"usage\":{\"prompt_tokens\":3,\
                      \"completion_tokens\":7}}";

fn whole(mut bench: Bench) -> Bench {
    bench.spec.target.delivery = Delivery::Whole;
    bench
}

fn answer() -> Vec<Act> {
    document("200 OK", "application/json", ANSWER)
}

/// Answers well to everything but measured requests.
fn serve_whole(script: impl Fn(usize) -> Vec<Act> + Send + Sync + 'static) -> std::net::SocketAddr {
    serve(move |seen| {
        assert!(seen.body.is_empty() || !seen.body.contains("\"stream\":true"), "{}", seen.body);
        seen.measured().map_or_else(answer, &script)
    })
}

#[test]
fn one_body_has_an_end_and_no_first_token() {
    let (start, rest) = ANSWER.split_at(40);
    let pieces = vec![
        head("200 OK", &["content-type: application/json", &format!("content-length: {}", ANSWER.len())]),
        Pause(40),
        Put(start.into()),
        Pause(40),
        Put(rest.into()),
    ];
    let by_close = vec![head("200 OK", &["content-type: application/json"]), Put(ANSWER.into()), Close];
    let address = serve_whole(move |index| [pieces.clone(), by_close.clone()][index].clone());
    let run = whole(Bench::new(address, 2)).go().run;
    for sample in run.warmup.iter().chain(&run.samples) {
        assert_eq!(sample.outcome, Outcome::Ok, "{sample:?}");
        assert_eq!((sample.first_event, sample.first_token, sample.first_answer), (None, None, None));
        assert_eq!(sample.last_token, sample.end);
        assert_eq!((sample.content_events, sample.gaps.count(), sample.token_times.len()), (1, 0, 0));
        assert_eq!(sample.output_tokens(), Some((7, TokenSource::Usage)));
        assert_eq!((sample.usage.unwrap().input, sample.finish_reason.as_deref()), (Some(3), Some("stop")));
        assert!(sample.last_token > sample.headers.min(sample.sent) && sample.body_bytes == ANSWER.len() as u64);
    }
    let slow = &run.samples[0];
    assert!(slow.last_token.unwrap() - slow.headers.unwrap() >= Nanos::from_millis(40), "{slow:?}");
}

#[test]
fn what_is_not_one_whole_answer_has_its_outcome() {
    let length = format!("content-length: {}", ANSWER.len());
    let cut = vec![head("200 OK", &[&length]), Put(ANSWER[..50].into()), Close];
    let error = "{\"error\":{\"message\":\"overloaded\",\"type\":\"server_error\",\"code\":500}}";
    let cases = [
        (answer(), Outcome::Ok),
        (cut, Outcome::Truncated),
        (stream(&["a"]), Outcome::Decode),
        (document("200 OK", "text/html", "<title>Welcome</title>"), Outcome::Decode),
        (document("200 OK", "application/json", error), Outcome::StreamError),
        (document("500 Internal Server Error", "application/json", error), Outcome::Http5xx),
        (vec![head("200 OK", &[&length]), Put(ANSWER[..50].into()), Reset], Outcome::Reset),
    ];
    let acts: Vec<_> = cases.iter().map(|(acts, _)| acts.clone()).collect();
    let address = serve_whole(move |index| acts[index].clone());
    let run = whole(Bench::new(address, cases.len() as u32)).go().run;
    for (sample, (_, outcome)) in run.samples.iter().zip(cases) {
        assert_eq!(sample.outcome, outcome, "{sample:?}");
        assert_eq!((sample.first_token, sample.error.is_some()), (None, outcome != Outcome::Ok), "{sample:?}");
    }
}

#[test]
fn only_the_whole_has_a_time_limit() {
    let slow = [vec![Pause(700)], answer()].concat();
    let address = serve_whole(move |index| if index == 0 { slow.clone() } else { vec![Hold] });
    let mut bench = whole(Bench::new(address, 2));
    bench.spec.timeouts.first_token = Nanos::from_millis(100);
    bench.spec.timeouts.stall = Nanos::from_millis(100);
    bench.spec.timeouts.total = Nanos::from_secs(3);
    let run = bench.go().run;
    let outcomes: Vec<_> = run.samples.iter().map(|sample| sample.outcome).collect();
    assert_eq!(outcomes, [Outcome::Ok, Outcome::TimeoutTotal], "{run:?}");
}

#[test]
fn embeddings_come_whole_and_generate_nothing() {
    let body = "{\"object\":\"list\",\"model\":\"e\",\"data\":[{\"object\":\"embedding\",\"index\":0,\"embedding\":[0.1,0.2]}],\
                \"usage\":{\"prompt_tokens\":3,\"total_tokens\":3}}";
    let address = serve(move |seen| {
        assert!(!seen.body.contains("\"stream\""), "{}", seen.body);
        document("200 OK", "application/json", body)
    });
    let mut bench = Bench::new(address, 2);
    bench.spec.target.api = Api::OpenaiEmbeddings;
    for sample in bench.go().run.samples {
        assert_eq!((sample.outcome, sample.first_token), (Outcome::Ok, None), "{sample:?}");
        assert_eq!((sample.usage.unwrap().input, sample.last_token), (Some(3), sample.end), "{sample:?}");
        assert!(sample.end.is_some() && sample.content_events == 1, "{sample:?}");
    }
}
