//! Every outcome of metrics.md that plain HTTP can end in.

use gate_model::{EndReason, Nanos, Outcome, Sample};

use crate::bench::Bench;
use crate::server::*;

struct Case {
    name: &'static str,
    acts: Vec<Act>,
    outcome: Outcome,
    /// Part of the message; empty where there is none.
    says: &'static str,
}

fn case(name: &'static str, acts: Vec<Act>, outcome: Outcome, says: &'static str) -> Case {
    Case { name, acts, outcome, says }
}

/// Runs all cases at once, request i against case i.
fn check(cases: Vec<Case>, shape: impl FnOnce(Bench) -> Bench) -> Vec<Sample> {
    let acts: Vec<_> = cases.iter().map(|case| case.acts.clone()).collect();
    let address = serve_measured(move |index, _| acts[index].clone());
    let report = shape(Bench::new(address, cases.len() as u32)).go();
    assert_eq!(report.run.end.as_ref().unwrap().reason, EndReason::Completed);
    assert_eq!(report.run.samples.len(), cases.len());
    for (case, sample) in cases.iter().zip(&report.run.samples) {
        let error = sample.error.as_deref().unwrap_or_default();
        assert_eq!(sample.outcome, case.outcome, "{}: {sample:?}", case.name);
        assert_eq!(case.says.is_empty(), error.is_empty(), "{}: {error}", case.name);
        assert!(error.contains(case.says), "{}: {error}", case.name);
        assert!(error.chars().count() <= 300 && !error.contains(char::is_control), "{}: {error}", case.name);
        let (start, intended) = (sample.start.unwrap(), sample.intended);
        assert!(start >= intended, "{}: sent before it was due", case.name);
        let points = [sample.start, sample.sent, sample.headers, sample.first_event, sample.first_token, sample.end];
        let reached: Vec<_> = points.into_iter().flatten().collect();
        assert!(reached.is_sorted(), "{}: {points:?}", case.name);
    }
    report.run.samples
}

fn error_document(status: &str, message: &str) -> Vec<Act> {
    document(status, "application/json", &format!("{{\"error\":{{\"message\":\"{message}\"}}}}"))
}

#[test]
fn statuses() {
    let redirect = vec![head("307 Temporary Redirect", &["location: http://elsewhere/v1", "content-length: 0"])];
    let endless_error = vec![head("500 Internal Server Error", &[]), Put(vec![b'x'; 200_000]), Hold];
    let samples = check(
        vec![
            case(
                "400",
                error_document("400 Bad Request", "no such field"),
                Outcome::Http4xx,
                "400 Bad Request: no such field",
            ),
            case("401", error_document("401 Unauthorized", "bad key"), Outcome::Http4xx, "check `target.key`"),
            case(
                "404",
                error_document("404 Not Found", "no model"),
                Outcome::Http4xx,
                "no model; check `target.url` and `target.model`",
            ),
            case("307", redirect, Outcome::Http4xx, "is `http://elsewhere/v1` the right `target.url`?"),
            case("429", error_document("429 Too Many Requests", "slow down"), Outcome::Http429, "slow down"),
            case(
                "500",
                error_document("500 Internal Server Error", "boom"),
                Outcome::Http5xx,
                "500 Internal Server Error: boom",
            ),
            case(
                "503 HTML",
                document("503 Service Unavailable", "text/html", "<title>Down</title>"),
                Outcome::Http5xx,
                "503 Service Unavailable: ",
            ),
            case("an error without end", endless_error, Outcome::Http5xx, "500 Internal Server Error: xxx"),
            case(
                "an error cut off",
                vec![head("502 Bad Gateway", &["content-length: 99"]), Close],
                Outcome::Http5xx,
                "502 Bad Gateway",
            ),
            case("a status of its own", document("799 What", "text/plain", ""), Outcome::Decode, "answered 799"),
        ],
        |bench| bench,
    );
    assert_eq!(
        samples.iter().map(|sample| sample.status.unwrap()).collect::<Vec<_>>(),
        [400, 401, 404, 307, 429, 500, 503, 500, 502, 799]
    );
}

#[test]
fn well_ended_streams() {
    let by_close =
        vec![head("200 OK", &["content-type: text/event-stream"]), Put((token("a") + &finish("length")).into()), Close];
    let done_but_open = vec![stream_head(), chunk(&token("a")), chunk(DONE), Hold];
    let whole: Vec<u8> =
        stream(&["a", "b"]).into_iter().flat_map(|act| if let Put(bytes) = act { bytes } else { vec![] }).collect();
    let bytewise = whole.iter().map(|byte| Put(vec![*byte])).collect();
    let finished_then_cut = vec![stream_head(), chunk(&(token("a") + &finish("stop"))), Close];
    let samples = check(
        vec![
            case("plain", stream(&["a", "b", "c"]), Outcome::Ok, ""),
            case("in one write", vec![Put(whole)], Outcome::Ok, ""),
            case("byte by byte", bytewise, Outcome::Ok, ""),
            case("ended by closing, with a finish reason", by_close, Outcome::Ok, ""),
            case("ended by its end, left open", done_but_open, Outcome::Ok, ""),
            case("finished, then cut", finished_then_cut, Outcome::Ok, ""),
            case(
                "no token",
                vec![stream_head(), chunk(&role()), chunk(&finish("stop")), chunk(DONE), last_chunk()],
                Outcome::Empty,
                "without a token",
            ),
        ],
        |bench| bench,
    );
    let plain = &samples[0];
    assert_eq!((plain.events, plain.content_events, plain.finish_reason.as_deref()), (6, 3, Some("stop")));
    assert_eq!((plain.gaps.count(), plain.token_times.len()), (2, 3));
    assert!(plain.sent.is_some() && plain.headers.is_some() && plain.end.is_some() && plain.body_bytes > 0);
    assert_eq!(samples[3].finish_reason.as_deref(), Some("length"));
}

#[test]
fn broken_streams() {
    let event_stream = "content-type: text/event-stream";
    let server_error = "data: {\"error\":{\"message\":\"overloaded\",\"type\":\"server_error\",\"code\":500}}\n\n";
    let gzip = vec![
        head("200 OK", &[event_stream, "content-encoding: gzip", "content-length: 4"]),
        Put(vec![0x1f, 0x8b, 8, 0]),
    ];
    let whole = "{\"object\":\"chat.completion\",\"choices\":[{\"index\":0,\"message\":{\"role\":\"assistant\",\"content\":\"hi\"},\"finish_reason\":\"stop\"}]}";
    let long_header = format!("x-long: {}", "x".repeat(100_000));
    let samples = check(
        vec![
            case("reset without an answer", vec![Reset], Outcome::Reset, "before it answered"),
            case(
                "reset in mid-stream",
                vec![stream_head(), chunk(&token("a")), Pause(300), Reset],
                Outcome::Reset,
                "lost in the middle of the answer",
            ),
            case("closed without an answer", vec![Close], Outcome::Truncated, "without an answer"),
            case(
                "closed in the head",
                vec![Put(b"HTTP/1.1 200 OK\r\ncontent".to_vec()), Close],
                Outcome::Truncated,
                "without an answer",
            ),
            case(
                "closed in mid-stream",
                vec![stream_head(), chunk(&token("a")), Close],
                Outcome::Truncated,
                "nor a finish reason",
            ),
            case(
                "closed in an event",
                vec![stream_head(), chunk(&token("a")), chunk("data: {\"cho"), Close],
                Outcome::Truncated,
                "nor a finish reason",
            ),
            case(
                "half closed in mid-stream",
                vec![stream_head(), chunk(&token("a")), HalfClose],
                Outcome::Truncated,
                "nor a finish reason",
            ),
            case(
                "ended in mid-stream",
                vec![stream_head(), chunk(&token("a")), last_chunk()],
                Outcome::Truncated,
                "nor a finish reason",
            ),
            case(
                "shorter than it said",
                vec![head("200 OK", &[event_stream, "content-length: 500"]), Put(token("a").into()), Close],
                Outcome::Truncated,
                "nor a finish reason",
            ),
            case("headers only", vec![stream_head(), last_chunk()], Outcome::Truncated, "event"),
            case(
                "an error in the stream",
                vec![stream_head(), chunk(&token("a")), chunk(server_error), Hold],
                Outcome::StreamError,
                "overloaded",
            ),
            case("no HTTP", vec![Put(b"SSH-2.0-OpenSSH_9.6\r\n\r\n".to_vec()), Close], Outcome::Decode, "not HTTP/1.1"),
            case(
                "a head without end",
                vec![head("200 OK", &[&long_header, &long_header]), Close],
                Outcome::Decode,
                "not HTTP/1.1",
            ),
            case(
                "a broken chunk",
                vec![stream_head(), chunk(&token("a")), Put(b"zz\r\nxx\r\n".to_vec()), Hold],
                Outcome::Decode,
                "framing is broken",
            ),
            case(
                "an event that is no JSON",
                vec![stream_head(), chunk(&token("a")), chunk("data: {oops\n\n"), Hold],
                Outcome::Decode,
                "not JSON",
            ),
            case(
                "HTML",
                document("200 OK", "text/html", "<!doctype html><title>Welcome</title>"),
                Outcome::Decode,
                "HTML",
            ),
            case("gzip", gzip, Outcome::Decode, "gzip"),
            case(
                "one body",
                document("200 OK", "application/json", whole),
                Outcome::NotStreamed,
                "instead of a stream",
            ),
        ],
        |bench| bench,
    );
    assert!(samples[10].embedded_server_error);
    assert!(samples[0].sent.is_some() && samples[0].status.is_none());
}

#[test]
fn odd_sizes_and_ends() {
    let event_stream = "content-type: text/event-stream";
    let huge = token(&"x".repeat(1 << 20));
    let tiny: String = (0..10_000).map(|_| token("a")).collect();
    let by_length = |body: &[u8]| {
        vec![head("200 OK", &[event_stream, &format!("content-length: {}", body.len())]), Put(body.to_vec())]
    };
    let packed = [&[0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3][..], &[0x55; 40]].concat();
    let samples = check(
        vec![
            case("an event of 1 MiB", by_length((huge + &finish("stop") + DONE).as_bytes()), Outcome::Ok, ""),
            case("10,000 tiny events", by_length((tiny + &finish("stop") + DONE).as_bytes()), Outcome::Ok, ""),
            case("gzip that no header names", by_length(&packed), Outcome::Decode, "gzip"),
            case(
                "chunks without a terminator",
                vec![stream_head(), chunk(&token("a")), Close],
                Outcome::Truncated,
                "n",
            ),
            case(
                "the end, then chunks without a terminator",
                vec![stream_head(), chunk(&token("a")), chunk(&(finish("stop") + DONE)), HalfClose],
                Outcome::Ok,
                "",
            ),
            case(
                "a reset after the end",
                {
                    let mut acts = stream(&["a"]);
                    acts.pop();
                    acts.extend([Pause(200), Reset]);
                    acts
                },
                Outcome::Ok,
                "",
            ),
            case("an event of 9 MiB", by_length(token(&"x".repeat(9 << 20)).as_bytes()), Outcome::Decode, "MiB"),
            case("plain", stream(&["a"]), Outcome::Ok, ""),
        ],
        |bench| bench,
    );
    assert_eq!((samples[0].content_events, samples[1].content_events), (1, 10_000));
    assert!(samples[1].coalesced > 5_000, "{}", samples[1].coalesced);
    assert_eq!(samples[1].token_times.len(), 10_000);
}

#[test]
fn deadlines() {
    let trickle = |acts: Vec<Act>| (0..600).flat_map(move |_| acts.clone().into_iter().chain([Pause(50)]));
    let tokens = [stream_head()].into_iter().chain(trickle(vec![chunk(&token("a"))])).collect();
    let pings = [stream_head(), chunk(&token("a"))].into_iter().chain(trickle(vec![chunk(": ping\n\n")])).collect();
    let roles = [stream_head()].into_iter().chain(trickle(vec![chunk(&role())])).collect();
    let samples = check(
        vec![
            case("no answer", vec![Hold], Outcome::TimeoutFirstToken, "no token within 800 ms"),
            case("headers only", vec![stream_head(), Hold], Outcome::TimeoutFirstToken, "no token"),
            case("a role only", vec![stream_head(), chunk(&role()), Hold], Outcome::TimeoutFirstToken, "no token"),
            case("roles without end", roles, Outcome::TimeoutFirstToken, "no token"),
            case(
                "one token",
                vec![stream_head(), chunk(&token("a")), Hold],
                Outcome::TimeoutStall,
                "no event for 600 ms",
            ),
            case("one token, then pings", pings, Outcome::TimeoutStall, "no event"),
            case("tokens without end", tokens, Outcome::TimeoutTotal, "not complete within 2"),
        ],
        |mut bench| {
            bench.spec.timeouts.first_token = Nanos::from_millis(800);
            bench.spec.timeouts.stall = Nanos::from_millis(600);
            bench.spec.timeouts.total = Nanos::from_secs(2);
            bench
        },
    );
    assert_eq!((samples[2].events, samples[2].content_events, samples[2].first_token), (1, 0, None));
    assert!(samples[0].headers.is_none() && samples[1].headers.is_some());
    assert_eq!(samples[4].content_events, 1);
    assert!(samples[6].content_events > 1 && samples[6].end.is_none());
}

#[test]
fn a_time_limit_holds_where_bytes_never_pause() {
    let Put(pings) = chunk(&": ping\n\n".repeat(1_000)) else { panic!("not written") };
    let cases = [
        (vec![stream_head(), Flood(pings.clone())], Outcome::TimeoutFirstToken),
        (vec![stream_head(), chunk(&token("a")), Flood(pings)], Outcome::TimeoutStall),
    ];
    for (acts, outcome) in cases {
        let mut bench = Bench::new(serve_measured(move |_, _| acts.clone()), 1);
        bench.spec.timeouts.first_token = Nanos::from_millis(300);
        bench.spec.timeouts.stall = Nanos::from_millis(300);
        let sample = bench.go().run.samples.remove(0);
        assert_eq!(sample.outcome, outcome, "{sample:?}");
    }
}
