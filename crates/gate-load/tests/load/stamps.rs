//! Points in time: an event bears the stamp of the read that completed it.

use gate_model::{Nanos, Outcome};

use crate::bench::Bench;
use crate::server::*;

#[test]
fn events_of_one_read_share_its_stamp_and_events_of_later_reads_come_later() {
    let address = serve_measured(|_, _| {
        vec![
            stream_head(),
            Pause(30),
            chunk(&(token("a") + &token("b"))),
            Pause(30),
            // A write that completes one event and starts the next.
            chunk(&(token("c") + "data: {\"choices\":[{\"index\":0,")),
            Pause(30),
            chunk("\"delta\":{\"content\":\"d\"},\"finish_reason\":null}]}\n\n"),
            Pause(30),
            chunk(&(finish("stop") + DONE)),
            last_chunk(),
        ]
    });
    for sample in Bench::new(address, 3).go().run.samples {
        assert_eq!(sample.outcome, Outcome::Ok, "{sample:?}");
        let times = sample.token_times.clone();
        let [a, b, c, d] = times[..] else { panic!("{times:?}") };
        assert_eq!(a, b);
        // The server paused 30 ms between the writes; the client may see them later, but not before.
        assert!(c > b && d > c, "{times:?}");
        assert_eq!((sample.first_token, sample.last_token), (Some(a), Some(d)));
        assert!(sample.end.unwrap() > d && sample.headers.unwrap() < a);
        assert_eq!(sample.longest_gap, Some((c - b).max(d - c)));
        assert_eq!((sample.first_answer, sample.first_event), (Some(a), Some(a)));
    }
}

#[test]
fn a_role_does_not_move_the_first_token() {
    let address = serve_measured(|_, _| {
        let mut acts = stream(&["a"]);
        acts.insert(2, Pause(120));
        acts
    });
    let sample = Bench::new(address, 1).go().run.samples.remove(0);
    assert!(sample.first_token.unwrap() - sample.first_event.unwrap() >= Nanos::from_millis(60), "{sample:?}");
}

#[test]
fn sending_follows_the_plan_and_never_runs_ahead() {
    let address = serve_measured(|_, _| stream(&["a"]));
    let run = Bench::new(address, 40).every(7).go().run;
    for sample in &run.samples {
        assert_eq!(sample.intended, Nanos::from_millis(7 * i64::from(sample.index)));
        assert!(sample.start.unwrap() >= sample.intended);
        assert!(sample.sent.unwrap() >= sample.start.unwrap());
    }
    assert!(run.samples.iter().map(|sample| sample.start).is_sorted());
    // Warm-up counts from its own start.
    assert_eq!(run.warmup[0].intended, run.warmup[0].start.unwrap());
}
