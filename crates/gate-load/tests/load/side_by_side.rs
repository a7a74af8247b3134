//! Two targets in one run.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{SocketAddr, TcpListener};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use gate_load::{LoadError, Progress, ProxyEnv, Remote, Trust, check};
use gate_model::{
    Api, Arm, Connections, Decision, EndReason, Header, HttpVersion, MaxTokensField, Nanos, Outcome, ReferenceEnd, Run,
    Sample, Stamping,
};
use serde_json::Value;

use crate::bench::{Asked, Bench, Report, secret};
use crate::certificates::*;
use crate::http2;
use crate::pace::{capped, closed, slow};
use crate::protocols::decrypting;
use crate::server::*;
use crate::unix::{listen, place};

/// What a server was asked, in the order of its answers.
type Log = Arc<Mutex<Vec<Seen>>>;

/// A server that notes what it is asked.
fn noting(script: impl Fn(&Seen) -> Vec<Act> + Send + Sync + 'static) -> (SocketAddr, Log) {
    let log = Log::default();
    let noted = Arc::clone(&log);
    let address = serve(move |seen| {
        noted.lock().unwrap().push(seen.clone());
        script(seen)
    });
    (address, log)
}

fn healthy() -> (SocketAddr, Log) {
    noting(well(|_, _| stream(&["a", "b"])))
}

fn url(address: SocketAddr) -> String {
    format!("http://{address}")
}

/// So many pairs of requests to two servers.
fn pairs(target: SocketAddr, reference: SocketAddr, count: u32) -> Bench {
    Bench::new(target, count).beside(&url(reference))
}

fn of(run: &Run, arm: Arm) -> Vec<&Sample> {
    run.samples.iter().filter(|sample| sample.arm == arm).collect()
}

fn outcomes(run: &Run, arm: Arm) -> Vec<Outcome> {
    of(run, arm).iter().map(|sample| sample.outcome).collect()
}

fn bodies(log: &Log, wanted: impl Fn(&Seen) -> bool) -> BTreeMap<String, Value> {
    let log = log.lock().unwrap();
    let body = |seen: &Seen| serde_json::from_str::<Value>(&seen.body).unwrap();
    log.iter().filter(|seen| wanted(seen)).map(|seen| (body(seen)["messages"].to_string(), body(seen))).collect()
}

fn reason(report: &Report) -> EndReason {
    report.run.end.as_ref().unwrap().reason.clone()
}

#[test]
fn both_arms_get_the_same_but_for_the_model() {
    let ((target, asked), (reference, other)) = (healthy(), healthy());
    let mut bench = pairs(target, reference, 20);
    bench.other().model = Some("n".to_owned());
    let report = bench.go();
    assert_ok(&report);
    for wanted in [(|seen| seen.measured().is_some()) as fn(&Seen) -> bool, Seen::is_warmup] {
        let (asked, mut other) = (bodies(&asked, wanted), bodies(&other, wanted));
        for (body, model) in asked.values().map(|body| (body, "m")).chain(other.values().map(|body| (body, "n"))) {
            assert_eq!(body["model"], model);
        }
        other.values_mut().for_each(|body| body["model"] = "m".into());
        assert!(!asked.is_empty());
        assert_eq!(asked, other);
    }
    let run = report.run;
    assert_eq!((run.samples.len(), run.warmup.len(), run.end.as_ref().unwrap().sent), (40, 2, 40));
    for (place, two) in run.samples.chunks(2).enumerate() {
        assert!(two.iter().all(|sample| sample.pair == Some(place as u32)));
        assert_eq!(two[0].intended, two[1].intended);
        assert_eq!(two[0].arm, if place % 2 == 1 { Arm::Reference } else { Arm::Target });
        assert_ne!(two[0].arm, two[1].arm);
    }
    // Both go out back to back, in the plan's order.
    assert!(run.samples.iter().map(|sample| sample.start.unwrap()).is_sorted());
    assert_eq!(Run::from_journal(&report.journal).unwrap(), run);
}

#[test]
fn each_arm_has_its_own_warm_up_and_connections() {
    let ((target, asked), (reference, other)) = (healthy(), healthy());
    for workers in [1, 2] {
        asked.lock().unwrap().clear();
        other.lock().unwrap().clear();
        let mut bench = Bench::new(target, 8).every(100).warmup(8).beside(&url(reference));
        bench.spec.load.workers = workers;
        let run = bench.go().run;
        let arms: Vec<_> = run.warmup.iter().map(|sample| (sample.arm, sample.pair)).collect();
        let pairs = (0..8).flat_map(|pair| [(Arm::Target, Some(pair)), (Arm::Reference, Some(pair))]);
        assert_eq!(arms, pairs.collect::<Vec<_>>());
        assert!(run.warmup.windows(2).all(|two| two[0].end <= two[1].start), "one after another: {run:?}");
        for log in [&asked, &other] {
            let log = log.lock().unwrap();
            let opened: BTreeSet<_> = log.iter().filter(|seen| seen.is_warmup()).map(|seen| seen.connection).collect();
            assert_eq!(opened.len(), 8);
            let used = log.iter().filter(|seen| seen.measured().is_some()).map(|seen| seen.connection);
            assert!(used.collect::<BTreeSet<_>>().is_subset(&opened));
        }
        assert!(run.samples.iter().all(|sample| sample.connected.is_none()), "{run:?}");
    }
}

#[test]
fn a_policy_of_fresh_connections_holds_for_both() {
    let ((target, _), (reference, other)) = (healthy(), healthy());
    let mut bench = pairs(target, reference, 6);
    bench.spec.load.connections = Connections::Fresh;
    assert!(bench.go().run.samples.iter().all(|sample| sample.connected.is_some()));
    let connections = other.lock().unwrap().iter().map(|seen| seen.connection).collect::<BTreeSet<_>>();
    assert_eq!(connections.len(), other.lock().unwrap().len());
}

#[test]
fn keys_and_headers_never_cross() {
    let ((target, asked), (reference, other)) = (healthy(), healthy());
    let mut bench = pairs(target, reference, 6);
    let header = |value| vec![Header { name: "x-team".to_owned(), value: secret(value) }];
    (bench.spec.target.key, bench.spec.target.headers) = (Some(secret("key-0123456789")), header("team-0123456789"));
    bench.spec.target.extra_body.insert("user".to_owned(), "one".into());
    (bench.other().key, bench.other().headers) = (Some(secret("sesame-987654")), header("friends-987654"));
    assert_ok(&bench.go());
    for (log, own, foreign) in [(&asked, "0123456789", "987654"), (&other, "987654", "0123456789")] {
        for seen in log.lock().unwrap().iter() {
            assert!(seen.head.contains("authorization: bearer ") && seen.head.contains("x-team: "), "{seen:?}");
            assert_eq!(seen.head.matches(own).count(), 2, "{seen:?}");
            assert!(!seen.head.contains(foreign) && !seen.body.contains(foreign), "{seen:?}");
        }
    }
    let with_user =
        |log: &Log| log.lock().unwrap().iter().filter(|seen| seen.body.contains("\"user\":\"one\"")).count();
    assert_eq!((with_user(&asked), with_user(&other)), (7, 0));
}

#[test]
fn each_arm_has_its_own_dialect_and_way_of_answering() {
    let (target, _) = healthy();
    let answer = || {
        let usage = "\"usage\":{\"input_tokens\":3,\"output_tokens\":1}";
        let content = "\"content\":[{\"type\":\"text\",\"text\":\"a\"}]";
        let body = format!("{{\"type\":\"message\",{content},\"stop_reason\":\"end_turn\",{usage}}}");
        document("200 OK", "application/json", &body)
    };
    let (reference, other) = noting(move |_| answer());
    let mut bench = pairs(target, reference, 4);
    bench.other().api = Api::Anthropic;
    bench.other().delivery = gate_model::Delivery::Whole;
    let report = bench.go();
    assert_ok(&report);
    let log = other.lock().unwrap();
    let posted: Vec<_> = log.iter().filter(|seen| seen.line.starts_with("POST")).collect();
    assert_eq!(posted.len(), 5);
    assert!(posted.iter().all(|seen| seen.line.starts_with("POST /v1/messages ")));
    assert!(of(&report.run, Arm::Target).iter().all(|sample| sample.first_token.is_some() && sample.usage.is_none()));
    assert!(
        of(&report.run, Arm::Reference).iter().all(|sample| {
            sample.first_token.is_none() && sample.usage.is_some_and(|usage| usage.output == Some(1))
        })
    );
}

#[test]
fn each_arm_has_its_own_version_of_http_and_trust() {
    let (target, _) = healthy();
    let (identity, authority) = issued(&params(&["localhost"]));
    let mut config = identity.server_config();
    config.alpn_protocols = vec![b"h2".to_vec()];
    let reference = decrypting(Arc::new(config), http2::measured(100, |_, _| http2::whole(&["a"])));
    let mut bench = Bench::new(target, 4).beside(&format!("https://localhost:{}", reference.port()));
    bench.reference.as_mut().unwrap().trust = given(&authority);
    let report = bench.go();
    assert_ok(&report);
    let end = report.run.end.unwrap();
    assert_eq!(end.reached.unwrap().http, HttpVersion::Http1);
    assert_eq!(end.reference.unwrap().reached.unwrap().http, HttpVersion::Http2);
    assert_eq!(report.run.warmup.iter().map(|sample| sample.tls.is_some()).collect::<Vec<_>>(), [false, true]);
}

#[test]
fn one_clock_stamps_both_arms_where_one_is_behind_a_socket() {
    let (target, _) = healthy();
    let (_folder, path) = place();
    listen(&path, healthy().0);
    let mut bench = Bench::new(target, 3).beside("http://localhost/v1");
    bench.reference.as_mut().unwrap().socket = Some(path.clone());
    let report = bench.go();
    assert_ok(&report);
    let end = report.run.end.unwrap();
    assert_eq!(end.health.clock, Stamping::User);
    assert_eq!(end.reached.unwrap().addresses, [target.to_string()]);
    assert_eq!(end.reference.unwrap().reached.unwrap().addresses, [path.display().to_string()]);
}

#[test]
fn what_a_server_calls_itself_is_kept_of_each_arm() {
    let named = |name: &'static str| {
        serve(move |seen| match seen.body.is_empty() {
            true => vec![head("200 OK", &[&format!("server: {name}"), "content-length: 0"])],
            false => stream(&["a"]),
        })
    };
    let mut bench = pairs(named("vllm/0.9 (sesame-987654)"), named("gateway"), 1);
    bench.other().key = Some(secret("sesame-987654"));
    let end = bench.go().run.end.unwrap();
    assert_eq!(end.reached.unwrap().server.as_deref(), Some("vllm/0.9 (***)"));
    assert_eq!(end.reference.unwrap().reached.unwrap().server.as_deref(), Some("gateway"));
    let long: &'static str = "x".repeat(500).leak();
    let end = Bench::new(named(long), 1).go().run.end.unwrap();
    assert!(end.reached.unwrap().server.unwrap().chars().count() <= 200);
    assert_eq!(end.reference, None);
    assert_eq!(Bench::new(healthy().0, 1).go().run.end.unwrap().reached.unwrap().server, None);
}

#[test]
fn a_reference_that_is_not_there_ends_the_run_and_is_named() {
    let (target, asked) = healthy();
    let nobody = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let said = Arc::new(Mutex::new(BTreeSet::new()));
    let words = Arc::clone(&said);
    let mut bench = pairs(target, nobody, 2);
    bench.other().ready.within = Nanos::from_millis(600);
    bench.observe = Box::new(move |progress| {
        if let Progress::Waiting { last, .. } = progress {
            words.lock().unwrap().insert((*last).to_owned());
        }
    });
    let report = bench.go();
    let EndReason::NotReady(words) = reason(&report) else { panic!("{report:?}") };
    assert_says(&words, &["the reference: not ready within 600 ms", "raise `reference.ready.within`"]);
    assert!(said.lock().unwrap().iter().all(|words| words.starts_with("the reference: ")), "{said:?}");
    assert_eq!(asked.lock().unwrap().iter().filter(|seen| !seen.body.is_empty()).count(), 0);
    let end = report.run.end.unwrap();
    assert!(end.reached.is_some());
    assert_eq!(end.reference, Some(ReferenceEnd::default()));
    // The other way round, it is the target's, in the words of a run without a reference.
    let mut bench = pairs(nobody, target, 2);
    bench.spec.target.ready.within = Nanos::from_millis(600);
    let EndReason::NotReady(words) = reason(&bench.go()) else { panic!() };
    assert!(words.starts_with("not ready within 600 ms") && words.contains("`target.ready.within`"), "{words}");
}

#[test]
fn both_arms_are_waited_for_at_the_same_time() {
    let starting = || {
        let asked = AtomicU32::new(0);
        serve(move |seen| match seen.body.is_empty() {
            true if asked.fetch_add(1, Ordering::SeqCst) < 4 => {
                vec![head("503 Service Unavailable", &["content-length: 0"])]
            }
            true => vec![head("200 OK", &["content-length: 0"])],
            false => stream(&["a"]),
        })
    };
    let waits = Arc::new(Mutex::new(Vec::new()));
    let noted = Arc::clone(&waits);
    let mut bench = pairs(starting(), starting(), 1);
    bench.observe = Box::new(move |progress| {
        if let Progress::Waiting { last, .. } = progress {
            noted.lock().unwrap().push(last.starts_with("the reference: "));
        }
    });
    assert_ok(&bench.go());
    let waits = waits.lock().unwrap();
    assert_eq!(waits.iter().filter(|is_reference| **is_reference).count(), 4);
    assert_eq!(waits.len(), 8);
    assert!(!waits.is_sorted(), "one after the other: {waits:?}");
}

#[test]
fn a_reference_that_refuses_all_of_warm_up_ends_the_run_and_is_named() {
    let (target, asked) = healthy();
    let reference = serve(|seen| match seen.body.is_empty() {
        true => document("200 OK", "text/plain", ""),
        false => document("401 Unauthorized", "text/plain", "who are you"),
    });
    let report = Bench::new(target, 2).warmup(3).beside(&url(reference)).go();
    let EndReason::NoCredentials(words) = reason(&report) else { panic!("{report:?}") };
    let all = "the reference: all 3 warm-up requests failed, the first with: the server answered 401";
    assert_says(&words, &[all, "check `reference.key`"]);
    assert_eq!((report.run.warmup.len(), report.run.samples.len()), (6, 0));
    assert!(report.run.warmup[1].error.as_ref().unwrap().contains("`reference.key`"), "{report:?}");
    assert_eq!(asked.lock().unwrap().iter().filter(|seen| seen.measured().is_some()).count(), 0);
    // One that is refused now and then is measured.
    let now_and_then = serve(|seen| match seen.body.contains("warmup-1.") {
        true => document("429 Too Many Requests", "text/plain", "slow down"),
        false => stream(&["a"]),
    });
    let report = Bench::new(target, 2).warmup(3).beside(&url(now_and_then)).go();
    assert_eq!((reason(&report), report.run.samples.len()), (EndReason::Completed, 4));
}

#[test]
fn a_reference_that_dies_costs_the_target_nothing() {
    let (target, _) = healthy();
    let dying = serve_measured(|index, _| if index < 4 { stream(&["a"]) } else { vec![Reset] });
    let report = pairs(target, dying, 12).go();
    assert_eq!(reason(&report), EndReason::Completed);
    assert_eq!(outcomes(&report.run, Arm::Target), [Outcome::Ok; 12]);
    let expected = [vec![Outcome::Ok; 4], vec![Outcome::Reset; 8]].concat();
    assert_eq!(outcomes(&report.run, Arm::Reference), expected);
    assert_eq!(Run::from_journal(&report.journal).unwrap(), report.run);
}

/// Lets those who wait go on when so many have come by.
#[derive(Default)]
struct Gate(Mutex<u32>, Condvar);

impl Gate {
    fn pass(&self) {
        *self.0.lock().unwrap() += 1;
        self.1.notify_all();
    }

    fn wait(&self, many: u32) {
        let passed = self.0.lock().unwrap();
        let waited = self.1.wait_timeout_while(passed, Duration::from_secs(30), |passed| *passed < many).unwrap();
        assert!(!waited.1.timed_out(), "held back");
    }
}

#[test]
fn in_a_closed_loop_a_slow_reference_does_not_hold_the_target_back() {
    // More than are written ahead.
    const COUNT: u32 = 100;
    let gate = Arc::new(Gate::default());
    let (passing, waiting) = (Arc::clone(&gate), gate);
    let target = serve_measured(move |_, _| {
        passing.pass();
        stream(&["a"])
    });
    let reference = serve_measured(move |_, _| {
        waiting.wait(COUNT);
        stream(&["a"])
    });
    let mut bench = closed(pairs(target, reference, COUNT), 2);
    bench.spec.load.workers = 2;
    let report = bench.go();
    assert_ok(&report);
    let run = report.run;
    assert_eq!(run.samples.iter().map(|sample| sample.index).collect::<Vec<_>>(), (0..2 * COUNT).collect::<Vec<_>>());
    assert_eq!((run.end.as_ref().unwrap().sent, of(&run, Arm::Reference).len()), (2 * COUNT, COUNT as usize));
}

#[test]
fn slots_are_those_of_one_arm() {
    for shape in [closed, capped] {
        let ((target, crowd), (reference, other)) = (slow(40), slow(40));
        let run = shape(pairs(target, reference, 12), 3).go().run;
        assert!(run.samples.iter().all(|sample| sample.outcome == Outcome::Ok), "{run:?}");
        assert_eq!((crowd.most(), other.most()), (3, 3));
    }
    // Under a cap that the reference fills, the target still has its own.
    let (quick, (slowly, _)) = (serve_measured(|_, _| stream(&["a"])), slow(300));
    let run = capped(Bench::new(quick, 5).every(50).beside(&url(slowly)), 1).go().run;
    let waits = |arm| of(&run, arm).iter().map(|sample| sample.cap_wait.unwrap()).max().unwrap();
    assert!(waits(Arm::Reference) > Nanos::from_millis(800), "{run:?}");
    assert!(waits(Arm::Target) < waits(Arm::Reference), "{run:?}");
}

#[test]
fn looks_count_pairs_and_stop_after_whole_ones() {
    let ((target, _), (reference, _)) = (healthy(), healthy());
    for workers in [1, 3] {
        // All but the last due at once: the look comes while pairs go out.
        let mut bench = Bench::new(target, 200).every(0);
        bench.plan.requests[199].at = Nanos::from_secs(3_600);
        let mut bench = bench.beside(&url(reference));
        bench.spec.load.workers = workers;
        bench.plan.looks = vec![3, 6, 200];
        bench.decisions = vec![Decision::GoOn, Decision::Stop];
        let looks = Arc::new(Mutex::new(Vec::new()));
        let noted = Arc::clone(&looks);
        bench.observe = Box::new(move |progress| {
            if let Progress::Look { n, .. } = progress {
                noted.lock().unwrap().push(*n);
            }
        });
        let report = bench.go();
        assert_eq!(reason(&report), EndReason::StoppedAtLook(6));
        assert_eq!((report.looks, looks.lock().unwrap().clone()), (vec![6, 12], vec![3, 6]));
        let samples = &report.run.samples;
        assert!((12..400).contains(&samples.len()), "{}", samples.len());
        for two in samples.chunks(2) {
            assert_eq!((two[0].pair, two[0].index + 1), (two[1].pair, two[1].index));
            assert!(two.iter().all(|sample| sample.outcome == Outcome::Ok));
        }
        assert_eq!(report.run.end.as_ref().unwrap().sent as usize, samples.len());
        assert_eq!(Run::from_journal(&report.journal).unwrap(), report.run);
    }
}

#[test]
fn a_look_waits_for_the_slower_arm() {
    let (quick, slowly) = (serve_measured(|_, _| stream(&["a"])), slow(300).0);
    let mut bench = pairs(quick, slowly, 4);
    bench.plan.looks = vec![2, 4];
    let ended = Arc::new(Mutex::new(Vec::new()));
    let noted = Arc::clone(&ended);
    bench.observe = Box::new(move |progress| match progress {
        Progress::Ended(sample) => noted.lock().unwrap().push(Some((sample.pair.unwrap(), sample.arm))),
        Progress::Look { .. } => noted.lock().unwrap().push(None),
        _ => {}
    });
    let report = bench.go();
    assert_eq!(report.looks, [4, 8]);
    let ended = ended.lock().unwrap();
    let look = ended.iter().position(Option::is_none).unwrap();
    let before: BTreeSet<_> = ended[..look].iter().flatten().copied().collect();
    let first_two = [0, 1].into_iter().flat_map(|pair| [(pair, Arm::Target), (pair, Arm::Reference)]);
    assert!(first_two.collect::<BTreeSet<_>>().is_subset(&before), "{ended:?}");
}

#[test]
fn a_field_is_switched_for_the_arm_that_wants_it() {
    let refusal = "{\"error\":{\"message\":\"Unsupported parameter: 'max_tokens' is not supported with this model. Use \
                   'max_completion_tokens' instead.\",\"code\":\"unsupported_parameter\"}}";
    let (target, asked) = healthy();
    let (reference, other) = noting(move |seen| match seen.body.contains("\"max_tokens\"") {
        true => document("400 Bad Request", "application/json", refusal),
        false if seen.body.is_empty() => document("200 OK", "text/plain", ""),
        false => stream(&["a"]),
    });
    let report = pairs(target, reference, 3).go();
    assert_ok(&report);
    let end = report.run.end.unwrap();
    let wanted = MaxTokensField::MaxCompletionTokens;
    assert_eq!((end.switched_to, end.reference.unwrap().switched_to), (None, Some(wanted)));
    let with = |log: &Log, field: &str| log.lock().unwrap().iter().filter(|seen| seen.body.contains(field)).count();
    assert_eq!((with(&asked, "\"max_tokens\""), with(&asked, wanted.name())), (4, 0));
    assert_eq!((with(&other, "\"max_tokens\""), with(&other, wanted.name())), (1, 4));
}

#[test]
fn prompts_are_fitted_to_what_the_target_counts() {
    let counting = |tokens: u32| {
        let usage = format!("\"usage\":{{\"prompt_tokens\":{tokens},\"completion_tokens\":1}}");
        serve(move |_| {
            let mut acts = stream(&["a"]);
            acts.insert(acts.len() - 2, chunk(&format!("data: {{\"choices\":[],{usage}}}\n\n")));
            acts
        })
    };
    let bench = Bench::new(counting(40), 2).warmup(2).beside(&url(counting(80)));
    let prompts = Arc::clone(&bench.prompts);
    bench.go();
    let fits = prompts.asked().into_iter().filter(|asked| matches!(asked, Asked::Fit(_)));
    assert_eq!(fits.collect::<Vec<_>>(), [Asked::Fit(vec![(3, 40), (3, 40)])]);
}

#[test]
fn an_interrupt_ends_both_arms() {
    let open = || serve_measured(|_, _| vec![stream_head(), chunk(&token("a")), Hold]);
    let mut bench = pairs(open(), open(), 4);
    bench.plan.requests[6].at = Nanos::from_secs(3_600);
    bench.plan.requests[7].at = Nanos::from_secs(3_600);
    let stop = bench.stop.clone();
    bench.observe = Box::new(move |progress| {
        if let Progress::Tick { sent: 6, in_flight: 6, .. } = progress {
            stop.trigger();
        }
    });
    let report = bench.go();
    assert_eq!(reason(&report), EndReason::Interrupted);
    for arm in [Arm::Target, Arm::Reference] {
        assert_eq!(outcomes(&report.run, arm), [Outcome::Cancelled; 3]);
    }
}

#[test]
fn what_is_wrong_with_the_reference_is_said_of_it() {
    let (target, _) = healthy();
    let bench = Bench::new(target, 1).beside("https://localhost:1");
    let spec = bench.spec;
    let remote = |base: &str, trust| Remote { base: base.parse().unwrap(), socket: None, trust };
    let none = ProxyEnv::default();
    let of_reference = |remote: &Remote| check(&spec, Arm::Reference, remote, &none).unwrap_err().to_string();
    let words = of_reference(&remote("ftp://host", Trust::default()));
    assert_says(&words, &["set up the reference: send to `ftp:` URLs: not supported"]);
    let words = of_reference(&remote("https://localhost:1", given("no certificate")));
    assert_says(&words, &["set up the reference: read `reference.tls.ca`"]);
    check(&spec, Arm::Reference, &remote("https://localhost:1", Trust::default()), &none).unwrap();
    let words = check(&spec, Arm::Target, &remote("ftp://host", Trust::default()), &none).unwrap_err().to_string();
    assert!(words.starts_with("send to `ftp:` URLs"), "{words}");
    // A plan of pairs, and nobody to send their second to.
    let mut bench = pairs(target, target, 1);
    bench.reference = None;
    let (result, ..) = bench.try_go();
    assert!(matches!(result, Err(LoadError::NoReference)), "{result:?}");
}

#[test]
fn one_server_can_be_both_arms() {
    let (both, asked) = healthy();
    assert_ok(&pairs(both, both, 5).go());
    assert_eq!(asked.lock().unwrap().iter().filter(|seen| seen.measured().is_some()).count(), 10);
}
