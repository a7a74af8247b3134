//! Nothing that a server can send makes a decoder panic, and how the bytes are cut never matters.

#[cfg(test)]
mod properties {
    use std::sync::Arc;

    use gate_model::{Api, Custom, CustomFraming, Delivery, MaxTokensField};
    use gate_wire::{BodyEnd, Dialect, Event, Keep, StreamState, Transcript, by_name, conclude, decode_names, dialect};
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
        b"data: {\"id\":\"a\",\"model\":\"m\",\"choices\":[{\"delta\":{\"role\":\"assistant\",\"content\":\"\"}}]}",
        b"data: {\"id\":\"b\",\"choices\":[{\"index\":1,\"delta\":{\"content\":\"b\"}},{\"delta\":{\"refusal\":\"a\"}}],\"usage\":{\"x\":1e999}}",
        b"data: {\"type\":\"response.created\",\"response\":{\"model\":7}}",
        b"data: {\"type\":\"response.output_text.delta\",\"delta\":\"a\"}",
        b"data: {\"type\":\"response.completed\",\"response\":{\"status\":\"completed\",\"usage\":{\"output_tokens\":2}}}",
        b"data: {\"candidates\":[{\"content\":{\"parts\":[{\"text\":\"a\"}]},\"finishReason\":\"STOP\"}]}",
        b"{\"candidates\":[{\"content\":{\"parts\":[{\"text\":\"]\",\"thought\":true}]}}]}",
        b"data: {\"type\":\"content-delta\",\"delta\":{\"message\":{\"content\":{\"text\":\"a\"}}}}",
        b"data: {\"type\":\"message-end\",\"delta\":{\"finish_reason\":\"COMPLETE\"}}",
        b"{\"data\":[{\"embedding\":[1]}]}",
        b",",
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

    /// A dialect by its name, or one that a spec describes.
    fn named(name: &str) -> Arc<dyn Dialect> {
        let framing = if name == "custom of lines" { CustomFraming::Ndjson } else { CustomFraming::Sse };
        by_name(name).unwrap_or_else(|| {
            let pointer = |pointer: &str| Some(pointer.to_owned());
            let custom = Custom {
                path: "/generate".to_owned(),
                body: serde_json::Map::new(),
                text: "/response".to_owned(),
                input_tokens: pointer("/usage/prompt_tokens"),
                output_tokens: pointer("/eval_count"),
                end: pointer("/done"),
                framing,
            };
            dialect(Api::Custom, Some(&custom))
        })
    }

    type Kind = (&'static str, Delivery);

    fn any_kind() -> impl Strategy<Value = Kind> {
        let mut names = decode_names();
        names.extend(["custom", "custom of lines"]);
        (prop::sample::select(names), prop::sample::select(&[Delivery::Streamed, Delivery::Whole][..]))
    }

    fn decode(
        (name, delivery): Kind,
        keep: Keep,
        body: &[u8],
        cuts: &[usize],
    ) -> (Vec<Event>, StreamState, Option<Transcript>) {
        let mut decoder = named(name).decoder(delivery, keep);
        let (mut events, mut at) = (Vec::new(), 0);
        for cut in cuts.iter().copied().chain([body.len()]) {
            let cut = cut.clamp(at, body.len());
            decoder.feed(&body[at..cut], &mut |event| events.push(event));
            at = cut;
        }
        decoder.finish(&mut |event| events.push(event));
        (events, decoder.state().clone(), decoder.transcript().cloned())
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
            kind in any_kind(),
            body in any_body(),
            mut cuts in prop::collection::vec(0_usize..400, 0..12),
        ) {
            cuts.sort_unstable();
            let whole = decode(kind, Keep::Text, &body, &[]);
            prop_assert_eq!(&decode(kind, Keep::Text, &body, &cuts), &whole);
            let each = (0..body.len()).collect::<Vec<_>>();
            let nothing = decode(kind, Keep::Nothing, &body, &each);
            prop_assert_eq!((&nothing.0, &nothing.1), (&whole.0, &whole.1));
            prop_assert_eq!(decode(kind, Keep::Nothing, &body, &cuts), nothing);
            prop_assert!(whole.0.iter().all(|event| event.end <= body.len() as u64));
            prop_assert!(whole.0.windows(2).all(|pair| pair[0].end <= pair[1].end));
            for end in [BodyEnd::Clean, BodyEnd::Reset] {
                let (outcome, message) = conclude(&whole.1, None, end);
                prop_assert_eq!(message.is_none(), outcome == gate_model::Outcome::Ok);
            }
        }

        #[test]
        fn a_message_is_one_short_line((name, _) in any_kind(), body in any_body()) {
            let field = named(name).wants_field(400, &body);
            prop_assert!(field.is_none() || field == Some(MaxTokensField::MaxCompletionTokens));
            if let Some(message) = named(name).error_message(&body) {
                prop_assert!(!message.is_empty() && message.chars().count() <= 300);
                prop_assert!(!message.chars().any(char::is_control));
            }
        }
    }
}
