//! A proxy that holds streams back.

use std::collections::BTreeSet;

use gate_engine::EventKind;
use gate_model::{Api, EngineParams, Fault, Nanos, ScriptedFault};
use gate_sim::TruthRequest;

use crate::client::*;
use crate::speech::{self, length, request};

fn buffering(buffer_bytes: u32) -> EngineParams {
    EngineParams { buffer_bytes, role_chunk: Some(Nanos::ZERO), ..fast() }
}

/// How many writes there were, of whatever many events.
fn bursts(truth: &TruthRequest) -> usize {
    truth.writes.iter().map(|write| write.at).collect::<BTreeSet<_>>().len()
}

#[test]
fn a_large_buffer_makes_one_burst_of_a_stream() {
    for api in Api::ALL {
        let server = start(buffering(u32::MAX));
        let answer = ask(&server, &request(api, 30, true));
        let said = speech::streamed(api, &answer);
        assert_eq!((said.texts.len(), said.usage, said.finish, said.ended), (30, Some((4, 30)), length(api), true));
        assert_eq!(answer.chunks, [answer.body.len()]);
        let truth = only(&server);
        assert_eq!((truth.output_tokens, bursts(&truth)), (30, 1));
        // At the end, when the last token is due: 2 ms and 29 times .2 ms after the arrival.
        assert!(truth.writes[0].at >= truth.arrived + Nanos(2_000_000 + 29 * 200_000));
        assert_eq!(Some(truth.writes[0].at), truth.end);
    }
}

#[test]
fn a_small_buffer_lets_whole_events_go_when_it_is_full() {
    for api in Api::ALL {
        let server = start(buffering(1_000));
        let answer = ask(&server, &request(api, 30, true));
        assert_eq!(speech::streamed(api, &answer).texts.len(), 30);
        let (last, others) = answer.chunks.split_last().unwrap();
        assert!(others.len() > 1 && others.iter().all(|size| (1_000..1_800).contains(size)), "{:?}", answer.chunks);
        assert!(*last > 0);
        let truth = only(&server);
        assert!((others.len()..=others.len() + 1).contains(&bursts(&truth)), "{truth:?}");
    }
}

#[test]
fn what_is_held_goes_at_the_end_of_the_stream_and_is_lost_without_one() {
    let params = |fault| EngineParams { script: vec![ScriptedFault { from: 1, to: 1, fault }], ..buffering(u32::MAX) };
    for api in Api::ALL {
        for (fault, arrives) in [(Fault::Truncate, true), (Fault::StreamError, true), (Fault::Reset, false)] {
            let server = start(params(fault));
            let answer = ask(&server, &request(api, 20, true));
            let said = speech::streamed(api, &answer);
            assert_eq!((said.words() > 0, said.error.is_some()), (arrives, fault == Fault::StreamError), "{fault:?}");
            assert_eq!(only(&server).output_tokens as usize, said.words());
        }
        let server = start(params(Fault::Stall));
        let answer = read_stalled(&server, &request(api, 20, true), 0);
        assert_eq!((answer.status, answer.body.as_str()), (200, ""));
    }
}

#[test]
fn one_body_is_not_held_back() {
    let answer = ask(&start(buffering(u32::MAX)), &request(Api::OpenaiChat, 5, false));
    assert_eq!(speech::whole(Api::OpenaiChat, &answer).words(), 5);
}

#[test]
fn the_engines_guess_at_the_size_of_events_is_near() {
    let answer = ask(&start(buffering(0)), &request(Api::OpenaiChat, 200, true));
    // Without the finish reason, the usage and the end mark.
    let (role, content) = answer.chunks[..201].split_first().unwrap();
    let mean = content.iter().sum::<usize>() as f64 / 200.0;
    for (real, guess) in [(*role as f64, EventKind::Role), (mean, EventKind::Tokens(1))] {
        let guess = f64::from(guess.nominal_bytes());
        assert!((real / guess - 1.0).abs() < 0.1, "{real} bytes, not {guess}");
    }
}
