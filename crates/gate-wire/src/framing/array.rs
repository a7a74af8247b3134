//! Framing of a stream that is one JSON array, whose elements come one by one; or of server-sent events, told by the
//! first byte.

use super::{Closed, Frame, Framing, Sse};
use crate::{MAX_EVENT, Undecodable};

/// Cuts a body into frames.
pub(crate) enum SseOrArray {
    /// So many bytes so far, blanks or a byte order mark.
    Blank(u64),
    /// Server-sent events, or no stream.
    Sse(Sse),
    /// An array.
    Array(Array),
}

impl Default for SseOrArray {
    fn default() -> Self {
        Self::Blank(0)
    }
}

impl Framing for SseOrArray {
    fn feed(&mut self, bytes: &[u8], sink: &mut impl FnMut(u64, Frame<'_>)) {
        let blanks = match self {
            Self::Sse(sse) => return sse.feed(bytes, sink),
            Self::Array(array) => return array.feed(bytes, sink),
            Self::Blank(blanks) => *blanks,
        };
        let is_blank = |byte: &u8| byte.is_ascii_whitespace() || b"\xef\xbb\xbf".contains(byte);
        let Some(first) = bytes.iter().position(|byte| !is_blank(byte)) else {
            *self = Self::Blank(blanks + bytes.len() as u64);
            return;
        };
        let offset = blanks + first as u64;
        let rest = bytes.get(first..).unwrap_or_default();
        *self = match rest.strip_prefix(b"[") {
            Some(_) => Self::Array(Array { offset, ..Array::default() }),
            None => Self::Sse(Sse::at(offset)),
        };
        self.feed(rest, sink);
    }

    fn finish(&mut self, sink: &mut impl FnMut(u64, Frame<'_>)) {
        match self {
            Self::Blank(_) => {}
            Self::Sse(sse) => sse.finish(sink),
            Self::Array(array) => array.finish(sink),
        }
    }

    fn offset(&self) -> u64 {
        match self {
            Self::Blank(blanks) => *blanks,
            Self::Sse(sse) => sse.offset(),
            Self::Array(array) => array.offset,
        }
    }
}

/// Cuts an array into its elements, which are objects.
#[derive(Default)]
pub(crate) struct Array {
    /// Bytes so far.
    offset: u64,
    /// Brackets and braces that are open.
    depth: u32,
    place: Place,
    /// The element that has not closed.
    element: Vec<u8>,
}

/// Where in the JSON the next byte is.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Place {
    #[default]
    Outside,
    String,
    /// In a string, after a backslash.
    Escape,
    /// After the array, or given up.
    Past,
}

impl Array {
    fn feed(&mut self, bytes: &[u8], sink: &mut impl FnMut(u64, Frame<'_>)) {
        let start = self.offset;
        self.offset += bytes.len() as u64;
        // Where in these bytes the open element goes on.
        let mut from = 0;
        for (at, byte) in bytes.iter().enumerate() {
            let was_open = self.depth > 1;
            match (self.place, byte) {
                (Place::Past, _) => return,
                (Place::Escape, _) => self.place = Place::String,
                (Place::String, b'\\') => self.place = Place::Escape,
                (Place::String, b'"') => self.place = Place::Outside,
                (Place::String, _) => {}
                (Place::Outside, b'"') if was_open => self.place = Place::String,
                (Place::Outside, b'[' | b'{') => self.depth = self.depth.saturating_add(1),
                (Place::Outside, b']' | b'}') => self.depth = self.depth.saturating_sub(1),
                (Place::Outside, byte) if was_open || *byte == b',' || byte.is_ascii_whitespace() => {}
                (Place::Outside, _) => {
                    return self.fail(Undecodable::Foreign { message: None }, start + at as u64, sink);
                }
            }
            match (was_open, self.depth > 1) {
                (false, true) => from = at,
                (true, false) => {
                    let end = start + at as u64 + 1;
                    let part = bytes.get(from..=at).unwrap_or_default();
                    if self.element.len() + part.len() > MAX_EVENT {
                        return self.fail(Undecodable::TooLong, end, sink);
                    }
                    if self.element.is_empty() {
                        sink(end, Frame::Event { name: b"", data: part, closed: Closed::Blank });
                    } else {
                        self.element.extend_from_slice(part);
                        sink(end, Frame::Event { name: b"", data: &self.element, closed: Closed::Blank });
                        self.element.clear();
                    }
                    from = 0;
                }
                _ if self.depth == 0 => self.place = Place::Past,
                _ => {}
            }
        }
        if self.depth > 1 {
            let part = bytes.get(from..).unwrap_or_default();
            if self.element.len() + part.len() > MAX_EVENT {
                return self.fail(Undecodable::TooLong, self.offset, sink);
            }
            self.element.extend_from_slice(part);
        }
    }

    fn finish(&mut self, sink: &mut impl FnMut(u64, Frame<'_>)) {
        if !self.element.is_empty() {
            sink(self.offset, Frame::Event { name: b"", data: &self.element, closed: Closed::Body });
        }
    }

    fn fail(&mut self, failure: Undecodable, end: u64, sink: &mut impl FnMut(u64, Frame<'_>)) {
        sink(end, Frame::Failed(failure));
        *self = Self { place: Place::Past, offset: self.offset, ..Self::default() };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The frames of a body, as text, whole and byte by byte.
    fn frames(body: &[u8]) -> Vec<String> {
        let cut = |parts: &[&[u8]]| {
            let (mut framing, mut seen) = (SseOrArray::default(), Vec::new());
            let mut sink = |end: u64, frame: Frame<'_>| {
                seen.push(match frame {
                    Frame::Event { data, closed, .. } => {
                        let mark = if closed == Closed::Body { " (pending)" } else { "" };
                        format!("{end} {}{mark}", String::from_utf8_lossy(data))
                    }
                    Frame::Document { text, .. } => format!("{end} document {}", String::from_utf8_lossy(text)),
                    Frame::Failed(failure) => format!("{end} {failure:?}"),
                    Frame::Exception { .. } | Frame::Comment | Frame::Error(_) => "other".to_owned(),
                });
            };
            parts.iter().for_each(|part| framing.feed(part, &mut sink));
            framing.finish(&mut sink);
            assert_eq!(framing.offset(), body.len() as u64);
            seen
        };
        let whole = cut(&[body]);
        assert_eq!(cut(&body.chunks(1).collect::<Vec<_>>()), whole);
        whole
    }

    #[test]
    fn elements_come_as_they_close() {
        assert_eq!(frames(b"\xef\xbb\xbf [{\"a\":[1,\"]}\\\"\"]}\n,\n{}]\n"), ["21 {\"a\":[1,\"]}\\\"\"]}", "26 {}"]);
        assert!(frames(b"[]").is_empty() && frames(b" \n").is_empty() && frames(b"[").is_empty());
        assert_eq!(frames(b"[{\"a\":1},{\"b"), ["8 {\"a\":1}", "12 {\"b (pending)"]);
        assert_eq!(frames(b"[{}] {}"), ["3 {}"]);
        let foreign = Undecodable::Foreign { message: None };
        assert_eq!(frames(b"[1,{}]"), [format!("1 {foreign:?}")]);
    }

    #[test]
    fn anything_else_is_events() {
        assert_eq!(frames(b"\r\n data: {}\r\n\r\n"), ["14 {}"]);
        assert_eq!(frames(b"{\"error\":1}"), ["11 document {\"error\":1}\n"]);
    }

    #[test]
    fn memory_is_bounded() {
        let mut array = SseOrArray::default();
        let mut seen = Vec::new();
        let block = vec![b' '; 1 << 20];
        array.feed(b"[{", &mut |_, _| ());
        for _ in 0..64 {
            array.feed(&block, &mut |_, frame| seen.push(matches!(frame, Frame::Failed(Undecodable::TooLong))));
        }
        assert_eq!(seen, [true]);
    }
}
