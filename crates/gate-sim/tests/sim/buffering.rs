//! A proxy that holds streams back.

use gate_engine::EventKind;
use gate_model::{EngineParams, Fault, Nanos, ScriptedFault};

use crate::client::*;
use crate::speech::{self, Tongue, length, request};

fn buffering(buffer_bytes: u32) -> EngineParams {
    EngineParams { buffer_bytes, role_chunk: Some(Nanos::ZERO), ..fast() }
}

#[test]
fn a_large_buffer_makes_one_burst_of_a_stream() {
    for api in Tongue::STREAMED {
        let server = start(buffering(u32::MAX));
        let answer = ask(&server, &request(api, 30, true));
        let said = speech::streamed(api, &answer);
        assert_eq!((said.texts.len(), said.usage, said.finish, said.ended), (30, api.usage(30), length(api), true));
        assert_eq!(answer.chunks, [answer.bytes.len()]);
        let truth = only(&server);
        assert_eq!((truth.output_tokens, truth.writes.len()), (30, 1));
        let role = u32::from(api.opens());
        assert_eq!((truth.writes[0].tokens, truth.writes[0].events), (30, 30 + role));
        // At the end, when the last token is due: 2 ms and 29 times .2 ms after the arrival.
        assert!(truth.writes[0].at >= truth.arrived + Nanos(2_000_000 + 29 * 200_000));
        assert_eq!(Some(truth.writes[0].at), truth.end);
    }
}

#[test]
fn a_small_buffer_lets_whole_events_go_when_it_is_full() {
    for api in Tongue::STREAMED {
        let server = start(buffering(1_000));
        let answer = ask(&server, &request(api, 30, true));
        assert_eq!(speech::streamed(api, &answer).texts.len(), 30);
        let (last, others) = answer.chunks.split_last().unwrap();
        assert!(others.len() > 1 && others.iter().all(|size| (1_000..3_000).contains(size)), "{:?}", answer.chunks);
        assert!(*last > 0);
        let truth = only(&server);
        assert!((others.len()..=others.len() + 1).contains(&truth.writes.len()), "{truth:?}");
    }
}

#[test]
fn what_is_held_goes_at_the_end_of_the_stream_and_is_lost_without_one() {
    let params = |fault| EngineParams { script: vec![ScriptedFault { from: 1, to: 1, fault }], ..buffering(u32::MAX) };
    for api in Tongue::STREAMED {
        for (fault, arrives) in [(Fault::Truncate, true), (Fault::StreamError, true), (Fault::Reset, false)] {
            let server = start(params(fault));
            let answer = ask(&server, &request(api, 20, true));
            let said = speech::streamed(api, &answer);
            assert_eq!((said.words() > 0, said.error.is_some()), (arrives, fault == Fault::StreamError), "{fault:?}");
            assert_eq!(only(&server).output_tokens as usize, said.words());
        }
        let server = start(params(Fault::Stall));
        let answer = read_stalled(&server, &request(api, 20, true), 0);
        assert_eq!((answer.status, answer.bytes.len()), (200, 0));
    }
}

#[test]
fn one_body_is_not_held_back() {
    let answer = ask(&start(buffering(u32::MAX)), &request(Tongue::OpenaiChat, 5, false));
    assert_eq!(speech::whole(Tongue::OpenaiChat, &answer).words(), 5);
}

#[test]
fn the_engines_guess_at_the_size_of_events_is_near() {
    let answer = ask(&start(buffering(0)), &request(Tongue::OpenaiChat, 200, true));
    // Without the finish reason, the usage and the end mark.
    let (role, content) = answer.chunks[..201].split_first().unwrap();
    let mean = content.iter().sum::<usize>() as f64 / 200.0;
    for (real, guess) in [(*role as f64, EventKind::Role), (mean, EventKind::Tokens(1))] {
        let guess = f64::from(guess.nominal_bytes());
        assert!((real / guess - 1.0).abs() < 0.1, "{real} bytes, not {guess}");
    }
}
