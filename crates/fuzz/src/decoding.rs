//! Decodes a body in several splits, and compares.

use gate_model::Delivery;
use gate_wire::{BodyEnd, Dialect, Event, Keep, StreamState, Transcript, conclude};

/// The longest body that is also fed byte by byte.
const BYTE_BY_BYTE: usize = 2 << 10;

/// Everything that a decoder said.
#[derive(Debug, PartialEq)]
struct Seen {
    events: Vec<Event>,
    state: StreamState,
    text: Option<Transcript>,
}

/// Decodes a body in several splits, and asserts that what a decoder says is the same and makes sense.
pub(crate) fn check(dialect: &dyn Dialect, delivery: Delivery, body: &[u8]) {
    let decode = |keep, parts: &mut dyn Iterator<Item = &[u8]>| {
        let (mut decoder, mut events) = (dialect.decoder(delivery, keep), Vec::new());
        for part in parts {
            decoder.feed(part, &mut |event| events.push(event));
        }
        decoder.finish(&mut |event| events.push(event));
        Seen { events, state: decoder.state().clone(), text: decoder.transcript().cloned() }
    };
    let whole = decode(Keep::Text, &mut std::iter::once(body));
    assert_eq!(decode(Keep::Text, &mut parts(body)), whole, "in parts it differs");
    if body.len() <= BYTE_BY_BYTE {
        assert_eq!(decode(Keep::Text, &mut body.chunks(1)), whole, "byte by byte it differs");
    }
    let without_text = decode(Keep::Nothing, &mut parts(body));
    assert_eq!(without_text.text, None);
    assert_eq!((&without_text.events, &without_text.state), (&whole.events, &whole.state), "without text it differs");
    makes_sense(&whole, body);
}

/// The body in parts whose lengths its own bytes choose.
fn parts(body: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut state =
        body.iter().fold(body.len() as u64 | 1, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3));
    // Of zero nothing else ever comes.
    state = state.max(1);
    let mut rest = body;
    std::iter::from_fn(move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        let length = usize::try_from(state % 61).unwrap_or_default().min(rest.len());
        let (part, after) = rest.split_at_checked(length)?;
        let is_done = rest.is_empty();
        rest = after;
        (!is_done).then_some(part)
    })
}

fn makes_sense(seen: &Seen, body: &[u8]) {
    let Seen { events, state, text } = seen;
    let content = events.iter().filter(|event| event.kind.is_content()).count() as u64;
    assert_eq!(content, state.content_events, "events with content");
    assert!(events.is_sorted_by_key(|event| event.end), "an event ends before an earlier one");
    assert!(events.iter().all(|event| event.end <= body.len() as u64), "an event ends after the body");
    assert!(state.content_events <= state.events, "more events with content than events");
    let kept = text.iter().flat_map(|text| &text.choices);
    let length: usize = kept.map(|choice| choice.text.len() + choice.reasoning.len() + choice.tools.len()).sum();
    // One invalid byte becomes a replacement character of three.
    assert!(length <= 3 * body.len(), "more text than there were bytes");
    for end in [BodyEnd::Clean, BodyEnd::Reset] {
        let (outcome, message) = conclude(state, None, end);
        assert_eq!(message.is_none(), outcome == gate_model::Outcome::Ok, "a sentence exactly where it is not ok");
    }
}
