//! How a script reaches the client: as one body, or as a stream that a proxy may hold back.

use gate_model::Delivery;

use crate::Fate;
use crate::script::{EventKind, Script, ScriptEvent};

impl EventKind {
    /// About how many bytes of body the event takes: as the simulated server writes it in OpenAI's chat dialect,
    /// usage asked for. Other dialects are shorter by up to a half.
    #[must_use]
    pub fn nominal_bytes(self) -> u32 {
        /// An event around its text, as `data: {"choices":…}`.
        const ENVELOPE: u32 = 230;
        /// `"role":"assistant",`.
        const ROLE: u32 = 19;
        /// A word and its blank.
        const TOKEN: u32 = 6;
        match self {
            Self::Role => ENVELOPE + ROLE,
            Self::Tokens(tokens) => ENVELOPE.saturating_add(TOKEN.saturating_mul(tokens)),
        }
    }
}

/// The script as a client sees it.
pub(crate) fn delivered(script: Script, delivery: Delivery, buffer_bytes: u32) -> Script {
    match delivery {
        Delivery::Streamed => buffered(script, buffer_bytes),
        Delivery::Whole => whole(script),
    }
}

/// The script as one body: all tokens, and status and headers with them, come at the end. Of an answer that does not
/// end well no token is seen.
fn whole(script: Script) -> Script {
    let ends_well = matches!(script.fate, Fate::Complete | Fate::SlowHeaders);
    let body = ends_well.then(|| ScriptEvent { at: script.end, kind: EventKind::Tokens(script.tokens()) });
    Script { headers: script.end, events: body.into_iter().collect(), ..script }
}

/// The script of a stream behind a proxy that lets events go, whole and all at once, when `buffer_bytes` of
/// them have gathered or the stream ends; 0: there is no proxy. By [`EventKind::nominal_bytes`]; status and headers
/// are not held back. What is held when the stream is reset, or falls silent, never comes.
fn buffered(script: Script, buffer_bytes: u32) -> Script {
    if buffer_bytes == 0 {
        return script;
    }
    let mut events = Vec::with_capacity(script.events.len());
    let (mut held, mut bytes) = (Vec::new(), 0_u32);
    for ScriptEvent { at, kind } in script.events {
        held.push(kind);
        bytes = bytes.saturating_add(kind.nominal_bytes());
        if bytes >= buffer_bytes {
            events.extend(held.drain(..).map(|kind| ScriptEvent { at, kind }));
            bytes = 0;
        }
    }
    if !matches!(script.fate, Fate::Stall | Fate::Reset) {
        events.extend(held.into_iter().map(|kind| ScriptEvent { at: script.end, kind }));
    }
    Script { events, ..script }
}

#[cfg(test)]
mod tests {
    use gate_model::Nanos;

    use super::*;

    /// A role at once, then so many events of one token, one a millisecond.
    fn script(fate: Fate, tokens: i64) -> Script {
        let role = ScriptEvent { at: Nanos::ZERO, kind: EventKind::Role };
        let token = |position| ScriptEvent { at: Nanos::from_millis(position), kind: EventKind::Tokens(1) };
        let events = [role].into_iter().chain((1..=tokens).map(token)).collect();
        Script { fate, headers: Nanos::ZERO, events, end: Nanos::from_millis(tokens) }
    }

    fn times(fate: Fate, buffer_bytes: u32) -> Vec<i64> {
        buffered(script(fate, 7), buffer_bytes).events.iter().map(|event| event.at.0 / 1_000_000).collect()
    }

    #[test]
    fn events_come_together_when_enough_have_gathered() {
        let whole = script(Fate::Complete, 7);
        for none in [0, 1] {
            assert_eq!(buffered(whole.clone(), none), whole);
        }
        let three = EventKind::Role.nominal_bytes() + 2 * EventKind::Tokens(1).nominal_bytes();
        assert_eq!(times(Fate::Complete, three - 15), [2, 2, 2, 5, 5, 5, 7, 7]);
        assert_eq!(times(Fate::Truncate, three - 15), [2, 2, 2, 5, 5, 5, 7, 7]);
        assert_eq!(times(Fate::Complete, u32::MAX), [7; 8]);
        assert_eq!(buffered(whole.clone(), 500).tokens(), whole.tokens());
    }

    #[test]
    fn one_body_comes_at_the_end() {
        for (fate, tokens) in [(Fate::Complete, 7), (Fate::SlowHeaders, 7), (Fate::Truncate, 0), (Fate::Stall, 0)] {
            let whole = delivered(script(fate, 7), Delivery::Whole, 1_000);
            let end = Nanos::from_millis(7);
            assert_eq!((whole.headers, whole.end, whole.tokens()), (end, end, tokens), "{fate:?}");
            assert!(whole.events.iter().all(|event| event.at == end) && whole.events.len() <= 1);
        }
    }

    #[test]
    fn what_is_held_is_lost_where_the_stream_does_not_end() {
        for fate in [Fate::Stall, Fate::Reset] {
            assert_eq!(times(fate, 1_000), [4; 5]);
            assert_eq!(times(fate, u32::MAX), [0; 0]);
        }
    }
}
