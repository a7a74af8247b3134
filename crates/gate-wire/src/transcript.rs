//! What a stream generated, and how it was told.

use serde_json::{Map, Value};

use crate::piece::{Kept, Log, Merge, Note, Raw};
use crate::shape::{Found, Kinds};

/// The most text that is kept, in bytes: 8 MiB.
const MOST_TEXT: usize = 8 << 20;

/// What a choice costs of that by itself, so that there can't be more than a thousand.
const CHOICE: usize = 8 << 10;

/// How much a decoder keeps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Keep {
    /// Nothing that was generated: only that there was something.
    #[default]
    Nothing,
    /// The text.
    Text,
}

/// What a stream generated. Events are counted from 0, as [`StreamState::events`](crate::StreamState::events) does.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Transcript {
    /// What each choice said, in the order of their indices.
    pub choices: Vec<ChoiceText>,
    /// Events with visible text.
    pub text_events: u64,
    /// Events with reasoning.
    pub reasoning_events: u64,
    /// Events with a tool call's name or arguments.
    pub tool_events: u64,
    /// Events with a refusal.
    pub refusal_events: u64,
    /// The first event with anything generated.
    pub first_token_event: Option<u64>,
    /// The first event with text or a refusal.
    pub first_text_event: Option<u64>,
    /// The first event with opaque data, such as a signature.
    pub first_opaque_event: Option<u64>,
    /// The last report of usage, as it was sent; Anthropic's reports are merged.
    pub usage_reported: Option<Value>,
    /// What ended the stream, such as `[DONE]` or `message_stop`.
    pub terminator: Option<String>,
    /// Comment lines of server-sent events.
    pub comment_lines: u64,
    /// Events that are not JSON.
    pub unparseable_events: u64,
    /// Whether the end of the body gave an event that had not ended.
    pub pending_at_eof: bool,
    /// Whether there was more than is kept: 8 MiB of text.
    pub cut: bool,
    /// How much is kept.
    kept: usize,
}

/// What one choice said.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ChoiceText {
    /// Its index.
    pub index: u64,
    /// Visible text and refusals.
    pub text: String,
    /// Reasoning.
    pub reasoning: String,
    /// The names and arguments of tool calls, one after another.
    pub tools: String,
    /// Its finish reason.
    pub finish_reason: Option<String>,
}

impl Transcript {
    /// Everything generated, choice by choice: reasoning, text, tool calls.
    #[must_use]
    pub fn generated(&self) -> String {
        let parts = self.choices.iter().flat_map(|choice| [&choice.reasoning, &choice.text, &choice.tools]);
        parts.map(String::as_str).collect()
    }

    /// The choice with an index; `None` where it is one more than can be kept.
    fn choice(&mut self, index: u64) -> Option<&mut ChoiceText> {
        let at = match self.choices.binary_search_by_key(&index, |choice| choice.index) {
            Ok(at) => at,
            Err(_) if self.kept + CHOICE > MOST_TEXT => {
                self.cut = true;
                return None;
            }
            Err(at) => {
                self.kept += CHOICE;
                self.choices.insert(at, ChoiceText { index, ..ChoiceText::default() });
                at
            }
        };
        self.choices.get_mut(at)
    }

    /// As much of a piece as there is room for.
    fn room(&mut self, Kept(mut piece): Kept) -> String {
        let room = piece.floor_char_boundary(MOST_TEXT.saturating_sub(self.kept));
        self.cut |= room < piece.len();
        piece.truncate(room);
        self.kept += piece.len();
        piece
    }
}

impl Log<Kept> for Transcript {
    fn say(&mut self, event: u64, choice: u64, found: Found<Kept>) {
        if found.opaque {
            self.first_opaque_event.get_or_insert(event);
        }
        if found.kinds() == Kinds::default() {
            return;
        }
        let [text, refusal, tools, reasoning] =
            [found.text, found.refusal, found.tool, found.reasoning].map(|piece| self.room(piece));
        if let Some(choice) = self.choice(choice) {
            choice.text.push_str(&text);
            choice.text.push_str(&refusal);
            choice.tools.push_str(&tools);
            choice.reasoning.push_str(&reasoning);
        }
    }

    fn count(&mut self, event: u64, kinds: Kinds) {
        if kinds == Kinds::default() {
            return;
        }
        self.first_token_event.get_or_insert(event);
        if kinds.text || kinds.refusal {
            self.first_text_event.get_or_insert(event);
        }
        for (count, is_there) in [
            (&mut self.text_events, kinds.text),
            (&mut self.reasoning_events, kinds.reasoning),
            (&mut self.tool_events, kinds.tool),
            (&mut self.refusal_events, kinds.refusal),
        ] {
            *count += u64::from(is_there);
        }
    }

    fn finish(&mut self, choice: u64, reason: &str) {
        let reason = self.room(Kept(reason.to_owned()));
        if let Some(choice) = self.choice(choice) {
            choice.finish_reason = Some(reason);
        }
    }

    fn usage(&mut self, reported: Raw, merge: Merge) {
        match (reported.value(), &mut self.usage_reported, merge) {
            (Some(Value::Object(later)), Some(Value::Object(merged)), Merge::Fields) => {
                let told = later.into_iter().filter(|(_, value)| *value != Value::Null);
                merged.extend(told);
            }
            (Some(later), reported, _) => *reported = Some(later),
            (None, ..) => {}
        }
    }

    fn usage_fields<const N: usize>(&mut self, fields: [(&str, Raw); N]) {
        let told = fields.into_iter().filter_map(|(name, raw)| Some((name.to_owned(), raw.value()?)));
        let fields: Map<String, Value> = told.collect();
        if !fields.is_empty() {
            self.usage_reported = Some(Value::Object(fields));
        }
    }

    fn end(&mut self, terminator: &str) {
        self.terminator.get_or_insert_with(|| terminator.to_owned());
    }

    fn note(&mut self, note: Note) {
        match note {
            Note::Comment => self.comment_lines += 1,
            Note::Unparseable => self.unparseable_events += 1,
            Note::Pending => self.pending_at_eof = true,
        }
    }

    fn transcript(&self) -> Option<&Transcript> {
        Some(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: &str) -> Found<Kept> {
        Found { text: Kept(text.to_owned()), ..Found::default() }
    }

    #[test]
    fn each_choice_is_kept_by_itself() {
        let mut transcript = Transcript::default();
        transcript.say(0, 2, text("c"));
        transcript.say(1, 0, text("a"));
        transcript.say(2, 2, Found { refusal: Kept("d".to_owned()), ..text("") });
        transcript.say(3, 0, Found { reasoning: Kept("r".to_owned()), ..Found::default() });
        transcript.say(4, 0, Found { opaque: true, ..Found::default() });
        let seen: Vec<_> = transcript.choices.iter().map(|choice| (choice.index, choice.text.as_str())).collect();
        assert_eq!(seen, [(0, "a"), (2, "cd")]);
        assert_eq!((transcript.generated().as_str(), transcript.first_opaque_event), ("racd", Some(4)));
    }

    #[test]
    fn what_is_kept_is_bounded_and_says_so() {
        let mut transcript = Transcript::default();
        let block = "é".repeat(1 << 19);
        for event in 0..64 {
            transcript.say(event, 0, text(&block));
        }
        let kept = transcript.choices[0].text.len();
        assert!(transcript.cut && kept <= MOST_TEXT && kept + CHOICE + 2 > MOST_TEXT - block.len());

        let mut transcript = Transcript::default();
        (0..100_000).rev().for_each(|index| transcript.say(0, index, text("a")));
        assert!(transcript.cut && transcript.choices.len() <= MOST_TEXT / CHOICE);
    }

    #[test]
    fn reports_of_usage_are_merged_where_they_add_to_one_another() {
        let raw = |text: &str| serde_json::from_str::<Raw>(text).unwrap();
        let mut transcript = Transcript::default();
        transcript.usage(raw(r#"{"a":1,"b":2}"#), Merge::Fields);
        transcript.usage(raw(r#"{"a":3,"b":null}"#), Merge::Fields);
        assert_eq!(transcript.usage_reported, Some(serde_json::json!({"a": 3, "b": 2})));
        transcript.usage(raw("null"), Merge::Whole);
        transcript.usage(raw("1e999"), Merge::Whole);
        transcript.usage(raw(r#"{"c":4}"#), Merge::Whole);
        assert_eq!(transcript.usage_reported, Some(serde_json::json!({"c": 4})));
        transcript.usage_fields([("x", raw("1")), ("y", raw("null"))]);
        assert_eq!(transcript.usage_reported, Some(serde_json::json!({"x": 1})));
    }
}
