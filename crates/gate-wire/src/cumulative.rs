//! Text that may be all there is so far, or only what is new: some servers send one or the other by a flag of theirs.

/// Tells which of the two a stream's texts are, and what each adds.
///
/// Texts are taken as the whole so far while each begins with the one before it. Two that are equal could be either;
/// while nothing else has told, the server's count of tokens decides.
#[derive(Clone, Default)]
pub(crate) struct Cumulative {
    mode: Mode,
    previous: String,
    counted: Option<u64>,
}

#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Mode {
    /// Every text so far is equal to the first, or empty.
    #[default]
    Undecided,
    /// Each began with the one before it, and one was longer.
    Whole,
    /// One did not: they are what is new.
    New,
}

impl Cumulative {
    /// What a text adds; `counted` is how many tokens the server says there are so far.
    pub(crate) fn added<'a>(&mut self, text: &'a str, counted: Option<u64>) -> &'a str {
        let repeats = counted.is_some() && counted == self.counted;
        self.counted = counted.or(self.counted);
        if self.mode == Mode::New || text.is_empty() {
            return text;
        }
        // Half a character at the end becomes another one when its other half comes.
        let settled = text.trim_end_matches('\u{fffd}');
        let Some(tail) = settled.strip_prefix(self.previous.as_str()) else {
            *self = Self { mode: Mode::New, ..Self::default() };
            return text;
        };
        if tail.is_empty() {
            return if self.mode == Mode::Undecided && !repeats { settled } else { tail };
        }
        if !self.previous.is_empty() {
            self.mode = Mode::Whole;
        }
        self.previous.push_str(tail);
        tail
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn added(texts: &[(&str, Option<u64>)]) -> Vec<String> {
        let mut cumulative = Cumulative::default();
        texts.iter().map(|(text, counted)| cumulative.added(text, *counted).to_owned()).collect()
    }

    #[test]
    fn a_whole_text_adds_its_tail() {
        let texts = [("", Some(0)), (" P", Some(1)), (" Paris", Some(2)), (" Paris", Some(3)), (" Paris.", Some(3))];
        assert_eq!(added(&texts), ["", " P", "aris", "", "."]);
    }

    #[test]
    fn a_new_text_adds_itself() {
        assert_eq!(
            added(&[(" Paris", None), (".", None), (" The", None), (" The", None)]),
            [" Paris", ".", " The", " The"]
        );
        assert_eq!(added(&[("a", None), ("ab", None), ("c", None), ("cd", None)]), ["a", "b", "c", "cd"]);
    }

    #[test]
    fn a_repeated_text_is_new_where_a_token_was_counted() {
        assert_eq!(added(&[("ha", Some(1)), ("ha", Some(2))]), ["ha", "ha"]);
        assert_eq!(added(&[("ha", Some(1)), ("ha", Some(1))]), ["ha", ""]);
        assert_eq!(added(&[("ha", None), ("ha", None)]), ["ha", "ha"]);
    }

    #[test]
    fn half_a_character_is_replaced_by_the_whole_one() {
        let texts = [("a", None), ("ab", None), ("ab\u{fffd}", None), ("ab\u{e9}", None), ("ab\u{e9}!", None)];
        assert_eq!(added(&texts), ["a", "b", "", "\u{e9}", "!"]);
        assert_eq!(added(&[("a", None), ("b", None), ("\u{fffd}", None)]), ["a", "b", "\u{fffd}"]);
    }
}
