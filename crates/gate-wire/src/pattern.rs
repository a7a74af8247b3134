//! Events that say what the one before them said, but for another piece of text.
//!
//! Most events of a stream are equal, byte for byte, outside one string: the piece of text. Where a string of JSON
//! has no quote, backslash or control character in it, whatever else is in it, the JSON around it reads the same. So
//! such an event needs no parsing where nothing of the text is kept: it carries what the one before it carried, and
//! says nothing new. The first repetition is parsed nevertheless, since what is said twice may mean more than once.

use crate::EventKind;

/// The longest event that is remembered, in bytes.
const LONGEST: usize = 4 << 10;

/// Where a piece of text lies in memory: its address, and its length.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Span {
    address: usize,
    length: usize,
}

impl Span {
    pub(crate) fn of(text: &[u8]) -> Self {
        Self { address: text.as_ptr().addr(), length: text.len() }
    }

    pub(crate) fn is_empty(self) -> bool {
        self.length == 0
    }

    /// The bytes before and after it, where it lies in `data` and is a string there.
    fn around(self, data: &[u8]) -> Option<(&[u8], &[u8])> {
        let start = self.address.checked_sub(data.as_ptr().addr())?;
        let (before, rest) = data.split_at_checked(start)?;
        let (_, after) = rest.split_at_checked(self.length)?;
        (before.ends_with(b"\"") && after.starts_with(b"\"")).then_some((before, after))
    }
}

/// The last event, and what it carried.
#[derive(Default)]
pub(crate) struct Pattern {
    name: Vec<u8>,
    before: Vec<u8>,
    after: Vec<u8>,
    /// What it carried; absent where it can't be compared with.
    kind: Option<EventKind>,
    /// Whether it has come again.
    has_repeated: bool,
}

impl Pattern {
    /// What an event carries that differs from the last one only in its piece of text, if it was not the first to.
    pub(crate) fn repeated(&self, name: &[u8], data: &[u8]) -> Option<EventKind> {
        self.kind.filter(|_| self.has_repeated && self.matches(name, data))
    }

    fn matches(&self, name: &[u8], data: &[u8]) -> bool {
        let text = data.strip_prefix(self.before.as_slice()).and_then(|rest| rest.strip_suffix(self.after.as_slice()));
        let is_plain = |text: &[u8]| text.iter().all(|byte| *byte >= b' ' && *byte != b'"' && *byte != b'\\');
        text.is_some_and(|text| !text.is_empty() && is_plain(text)) && self.name == name
    }

    /// Remembers an event with content, which has a piece of text at `span`.
    pub(crate) fn remember(&mut self, name: &[u8], data: &[u8], span: Span, kind: EventKind) {
        let around = span.around(data).filter(|_| data.len() <= LONGEST && kind.is_content());
        let Some((before, after)) = around else { return self.forget() };
        self.has_repeated = self.kind == Some(kind) && self.matches(name, data);
        self.kind = Some(kind);
        if !self.has_repeated {
            name.clone_into(&mut self.name);
            before.clone_into(&mut self.before);
            after.clone_into(&mut self.after);
        }
    }

    /// The last event was one that can't be compared with.
    pub(crate) fn forget(&mut self) {
        self.kind = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KIND: EventKind = EventKind::Text;

    fn event(text: &[u8]) -> Vec<u8> {
        [b"{\"a\":\"", text, b"\",\"b\":1}"].concat()
    }

    /// A pattern that has seen these texts, one after another.
    fn after(texts: &[&[u8]]) -> Pattern {
        let mut pattern = Pattern::default();
        for text in texts {
            let data = event(text);
            pattern.remember(b"", &data, Span::of(&data[6..6 + text.len()]), KIND);
        }
        pattern
    }

    #[test]
    fn only_another_plain_text_is_a_repetition() {
        let pattern = after(&[b"x", b"yy"]);
        for text in [&b"z"[..], b" longer", "é\u{2028}".as_bytes(), b"\xff", b"\x7f}"] {
            assert_eq!(pattern.repeated(b"", &event(text)), Some(KIND), "{text:?}");
        }
        for text in [&b""[..], b"\\n", b"\n", b"\x1f", b"\",\"b\":2,\"c\":\"", b"\"", b"\\"] {
            assert_eq!(pattern.repeated(b"", &event(text)), None, "{text:?}");
        }
        for data in [&b""[..], b"{\"a\":\"", b"\",\"b\":1}", b"{\"a\":\"z\",\"b\":2}", b" {\"a\":\"z\",\"b\":1}"] {
            assert_eq!(pattern.repeated(b"", data), None, "{data:?}");
        }
        assert_eq!(pattern.repeated(b"name", &event(b"z")), None);
    }

    #[test]
    fn the_first_repetition_is_parsed() {
        assert_eq!(after(&[b"x"]).repeated(b"", &event(b"y")), None);
        let mut pattern = after(&[b"x", b"y", b"z"]);
        assert_eq!(pattern.repeated(b"", &event(b"y")), Some(KIND));
        let other = b"{\"a\":\"x\"}";
        pattern.remember(b"", other, Span::of(&other[6..7]), KIND);
        assert_eq!((pattern.repeated(b"", &event(b"y")), pattern.repeated(b"", other)), (None, None));
    }

    #[test]
    fn what_lies_elsewhere_or_is_long_is_no_pattern() {
        let elsewhere = event(b"x");
        for (span, data) in
            [(Span::of(&elsewhere[6..7]), event(b"x")), (Span::of(b"x"), event(b"x")), (Span::default(), event(b"x"))]
        {
            let mut pattern = after(&[b"x", b"x"]);
            pattern.remember(b"", &data, span, KIND);
            assert_eq!(pattern.repeated(b"", &data), None);
        }
        let long = vec![b'x'; LONGEST];
        assert_eq!(after(&[&long, &long]).repeated(b"", &event(&long)), None);
        let mut pattern = after(&[b"x", b"x"]);
        pattern.forget();
        assert_eq!(pattern.repeated(b"", &event(b"x")), None);
    }
}
