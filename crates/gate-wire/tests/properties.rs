//! Nothing that a server can send makes a decoder panic, and how the bytes are cut never matters.

#[cfg(test)]
mod properties {
    use gate_model::{Api, Delivery, MaxTokensField};
    use gate_wire::{BodyEnd, Event, StreamState, conclude, dialect};
    use proptest::prelude::*;

    /// Pieces out of which streams, and things close to streams, are made.
    const PIECES: &[&[u8]] = &[
        b"data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}",
        b"data: {\"choices\":[{\"delta\":{\"reasoning\":\"\\ud83d\"},\"finish_reason\":\"stop\"}]}",
        b"data:{\"usage\":{\"prompt_tokens\":3,\"completion_tokens\":1e0}}",
        b"data: {\"choices\":[{\"text\":\"a\",\"finish_reason\":\"length\"}]}",
        b"data: {\"error\":{\"code\":500}}",
        b"data: {\"type\":\"message_start\",\"message\":{\"usage\":{\"input_tokens\":5}}}",
        b"data: {\"type\":\"content_block_delta\",\"delta\":{\"text\":\"a\"}}",
        b"data: {\"type\":\"content_block_start\",\"content_block\":{\"type\":\"tool_use\",\"name\":\"f\"}}",
        b"data: {\"type\":\"message_stop\"}",
        b"{\"type\":\"message\",\"content\":[{\"type\":\"thinking\",\"thinking\":\"a\"}],\"usage\":{}}",
        b"{\"message\":{\"content\":\"a\"},\"done\":false}\n",
        b"{\"message\":{\"content\":\"\"},\"done\":true,\"done_reason\":\"stop\",\"eval_count\":2}\n",
        b"{\"response\":\"a\",\"done\":true}",
        b"data: [DONE]",
        b"data",
        b"data: ",
        b"event: error",
        b"error: {\"message\":\"m\"}",
        b"{\"error\":\"e\"}",
        b"{\"choices\":[{\"message\":{}}]}",
        b": ping",
        b"id: 7",
        b"\n",
        b"\n\n",
        b"\r",
        b"\r\n",
        b"\r\n\r\n",
        b" ",
        b"{",
        b"}",
        b"[",
        b"\"",
        b":",
        b"<html>",
        b"\xef\xbb\xbf",
        b"\xff",
        b"\xe4\xb8",
        b"\x1f\x8b",
        b"\0",
    ];

    fn decode((api, delivery): (Api, Delivery), body: &[u8], cuts: &[usize]) -> (Vec<Event>, StreamState) {
        let mut decoder = dialect(api).decoder(delivery);
        let (mut events, mut at) = (Vec::new(), 0);
        for cut in cuts.iter().copied().chain([body.len()]) {
            let cut = cut.clamp(at, body.len());
            decoder.feed(&body[at..cut], &mut |event| events.push(event));
            at = cut;
        }
        decoder.finish(&mut |event| events.push(event));
        (events, decoder.state().clone())
    }

    fn any_decoder() -> impl Strategy<Value = (Api, Delivery)> {
        let delivery = prop::sample::select(&[Delivery::Streamed, Delivery::Whole][..]);
        (prop::sample::select(&Api::ALL[..]), delivery)
    }

    fn stream() -> impl Strategy<Value = Vec<u8>> {
        prop::collection::vec(prop::sample::select(PIECES), 0..40).prop_map(|pieces| pieces.concat())
    }

    fn any_body() -> impl Strategy<Value = Vec<u8>> {
        prop_oneof![stream(), prop::collection::vec(any::<u8>(), 0..400)]
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 8000, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn any_split_gives_the_same(
            kind in any_decoder(),
            body in any_body(),
            mut cuts in prop::collection::vec(0_usize..400, 0..12),
        ) {
            cuts.sort_unstable();
            let whole = decode(kind, &body, &[]);
            prop_assert_eq!(&decode(kind, &body, &cuts), &whole);
            prop_assert_eq!(&decode(kind, &body, &(0..body.len()).collect::<Vec<_>>()), &whole);
            prop_assert!(whole.0.iter().all(|event| event.end <= body.len() as u64));
            prop_assert!(whole.0.windows(2).all(|pair| pair[0].end <= pair[1].end));
            for end in [BodyEnd::Clean, BodyEnd::Reset] {
                let (outcome, message) = conclude(&whole.1, None, end);
                prop_assert_eq!(message.is_none(), outcome == gate_model::Outcome::Ok);
            }
        }

        #[test]
        fn a_message_is_one_short_line((api, _) in any_decoder(), body in any_body()) {
            let field = dialect(api).wants_field(400, &body);
            prop_assert!(field.is_none() || field == Some(MaxTokensField::MaxCompletionTokens));
            if let Some(message) = dialect(api).error_message(&body) {
                prop_assert!(!message.is_empty() && message.chars().count() <= 300);
                prop_assert!(!message.chars().any(char::is_control));
            }
        }
    }
}
