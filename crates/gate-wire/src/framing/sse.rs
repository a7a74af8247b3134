//! Framing of server-sent events, on bytes.
//!
//! As WHATWG has it, with what real servers need beyond it: an event pending at the end of the body is given; so are
//! the value of an `error:` field, and JSON that stands outside any field, over several lines or in one.

use memchr::{memchr, memchr2};

use super::{Closed, Frame, Framing, HEAD, Place, compressed};
use crate::{MAX_EVENT, Undecodable, message};

#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Mode {
    /// Nothing but blank lines so far.
    #[default]
    Unknown,
    /// Lines of a stream, or of a document.
    Lines,
    /// An HTML page, of which only the head is kept.
    Page,
    /// Given up.
    Failed,
}

/// Cuts a body into frames.
#[derive(Default)]
pub(crate) struct Sse {
    mode: Mode,
    /// Bytes before the current read.
    offset: u64,
    /// Whether the first line, which may have a byte order mark, is past.
    past_first_line: bool,
    /// Whether the last byte was a CR, whose LF is still to come if it is one of a pair.
    after_cr: bool,
    /// The beginning of a line that has not ended.
    line: Vec<u8>,
    /// The value of the `event` field of the pending event.
    name: Vec<u8>,
    /// The data of the pending event; absent until its first `data` field.
    data: Vec<u8>,
    has_data: bool,
    /// Lines outside any field, from the first that begins like JSON.
    document: Vec<u8>,
    /// Whether any field or comment was seen.
    has_fields: bool,
    /// The beginning of what is no stream.
    head: Vec<u8>,
    /// Bytes searched for the end of a line, to test that none is searched again.
    #[cfg(test)]
    searched: usize,
}

impl Framing for Sse {
    fn feed(&mut self, bytes: &[u8], sink: &mut impl FnMut(u64, Frame<'_>)) {
        let mut rest = bytes;
        if self.after_cr && !rest.is_empty() {
            self.after_cr = false;
            rest = rest.strip_prefix(b"\n").unwrap_or(rest);
        }
        let offset = self.offset;
        let past = |rest: &[u8]| offset + (bytes.len() - rest.len()) as u64;
        while self.mode != Mode::Failed {
            let Some((line, after)) = self.cut_line(rest) else {
                self.keep(rest, past(&[]), sink);
                break;
            };
            // The terminator's first byte completes the line, whether or not an LF follows a CR: so an event ends
            // at the same offset in any split.
            let end = past(rest) + line.len() as u64 + 1;
            rest = after;
            if !self.line.is_empty() {
                self.keep(line, end, sink);
                let whole = std::mem::take(&mut self.line);
                self.take_line(&whole, end, sink);
                self.line = whole;
                self.line.clear();
                continue;
            }
            // An event that lies whole in this read is decoded where it lies.
            if let (Some(data), Some(b'\n' | b'\r')) = (self.only_data(line), rest.first()) {
                let end = past(rest) + 1;
                sink(end, Frame::Event { name: &self.name, data, closed: Closed::Blank });
                self.name.clear();
                if let Some((_, after)) = self.cut_line(rest) {
                    rest = after;
                }
                continue;
            }
            self.take_line(line, end, sink);
        }
        self.offset += bytes.len() as u64;
    }

    fn finish(&mut self, sink: &mut impl FnMut(u64, Frame<'_>)) {
        let end = self.offset;
        if !self.line.is_empty() {
            let line = std::mem::take(&mut self.line);
            self.take_line(&line, end, sink);
        }
        match self.mode {
            Mode::Failed => {}
            Mode::Page => self.fail(Undecodable::Html { message: message::of_body(&self.head) }, end, sink),
            Mode::Unknown | Mode::Lines => {
                self.dispatch(Closed::Body, end, sink);
                let place = if self.has_fields { Place::InStream } else { Place::Alone };
                self.end_document(place, end, sink);
                if !self.has_fields && !self.head.is_empty() {
                    self.fail(Undecodable::Foreign { message: message::of_body(&self.head) }, end, sink);
                }
            }
        }
    }

    fn offset(&self) -> u64 {
        self.offset
    }
}

impl Sse {
    /// Begins at an offset in the body, after what has nothing to say.
    pub(crate) fn at(offset: u64) -> Self {
        Self { offset, past_first_line: offset > 0, ..Self::default() }
    }

    /// The first line of `rest` without its terminator, and what comes after it.
    fn cut_line<'a>(&mut self, rest: &'a [u8]) -> Option<(&'a [u8], &'a [u8])> {
        #[cfg(test)]
        {
            self.searched += memchr2(b'\n', b'\r', rest).map_or(rest.len(), |length| length + 1);
        }
        let (line, rest) = rest.split_at_checked(memchr2(b'\n', b'\r', rest)?)?;
        let (terminator, rest) = rest.split_first()?;
        if *terminator == b'\n' {
            return Some((line, rest));
        }
        self.after_cr = rest.is_empty();
        Some((line, rest.strip_prefix(b"\n").unwrap_or(rest)))
    }

    /// The value of a `data` field that is the first of its event, where nothing else is pending.
    fn only_data<'a>(&self, line: &'a [u8]) -> Option<&'a [u8]> {
        let ready = self.mode == Mode::Lines && self.has_fields && !self.has_data && self.document.is_empty();
        let value = line.strip_prefix(b"data:").filter(|_| ready && line.len() <= MAX_EVENT)?;
        Some(value.strip_prefix(b" ").unwrap_or(value))
    }

    /// Keeps the beginning of a line, or a further part of it.
    fn keep(&mut self, part: &[u8], end: u64, sink: &mut impl FnMut(u64, Frame<'_>)) {
        if self.line.len() + part.len() > MAX_EVENT {
            self.fail(Undecodable::TooLong, end, sink);
        } else {
            self.line.extend_from_slice(part);
        }
    }

    fn take_line(&mut self, line: &[u8], end: u64, sink: &mut impl FnMut(u64, Frame<'_>)) {
        if line.len() > MAX_EVENT {
            return self.fail(Undecodable::TooLong, end, sink);
        }
        let line = match std::mem::replace(&mut self.past_first_line, true) {
            true => line,
            false => line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line),
        };
        if self.mode == Mode::Unknown
            && let Some(first) = line.trim_ascii_start().first()
        {
            self.mode = if *first == b'<' { Mode::Page } else { Mode::Lines };
            if let Some(encoding) = compressed(line) {
                return self.fail(Undecodable::Compressed { encoding }, end, sink);
            }
        }
        match self.mode {
            Mode::Page => self.keep_head(line),
            Mode::Unknown | Mode::Lines => self.take_field(line, end, sink),
            Mode::Failed => {}
        }
    }

    fn take_field(&mut self, line: &[u8], end: u64, sink: &mut impl FnMut(u64, Frame<'_>)) {
        if line.is_empty() {
            return self.dispatch(Closed::Blank, end, sink);
        }
        let (name, value) = match memchr(b':', line).and_then(|colon| line.split_at_checked(colon)) {
            Some((name, value)) => (name, value.strip_prefix(b": ").or(value.strip_prefix(b":")).unwrap_or(value)),
            None => (line, &[][..]),
        };
        if !matches!(name, b"" | b"data" | b"event" | b"id" | b"retry" | b"error") {
            return self.take_stray(line, end, sink);
        }
        self.end_document(Place::InStream, end, sink);
        self.has_fields = true;
        match name {
            b"data" if self.data.len() + value.len() >= MAX_EVENT => self.fail(Undecodable::TooLong, end, sink),
            b"data" => {
                if std::mem::replace(&mut self.has_data, true) {
                    self.data.push(b'\n');
                }
                self.data.extend_from_slice(value);
            }
            b"event" => value.clone_into(&mut self.name),
            b"error" => sink(end, Frame::Error(value)),
            b"" => sink(end, Frame::Comment),
            _ => {}
        }
    }

    /// Takes a line outside any known field: part of a document, or noise.
    fn take_stray(&mut self, line: &[u8], end: u64, sink: &mut impl FnMut(u64, Frame<'_>)) {
        self.keep_head(line);
        if self.document.is_empty() && !matches!(line.trim_ascii_start().first(), Some(b'{' | b'[')) {
            return;
        }
        if self.document.len() + line.len() >= MAX_EVENT {
            return self.fail(Undecodable::TooLong, end, sink);
        }
        self.document.extend_from_slice(line);
        self.document.push(b'\n');
    }

    fn dispatch(&mut self, closed: Closed, end: u64, sink: &mut impl FnMut(u64, Frame<'_>)) {
        if std::mem::take(&mut self.has_data) {
            sink(end, Frame::Event { name: &self.name, data: &self.data, closed });
            self.data.clear();
        }
        self.name.clear();
    }

    fn end_document(&mut self, place: Place, end: u64, sink: &mut impl FnMut(u64, Frame<'_>)) {
        if !self.document.is_empty() {
            sink(end, Frame::Document { text: &self.document, place });
            self.document.clear();
            self.head.clear();
        }
    }

    fn keep_head(&mut self, line: &[u8]) {
        let room = HEAD.saturating_sub(self.head.len());
        self.head.extend(line.iter().take(room));
        self.head.push(b'\n');
        self.head.truncate(HEAD);
    }

    fn fail(&mut self, failure: Undecodable, end: u64, sink: &mut impl FnMut(u64, Frame<'_>)) {
        sink(end, Frame::Failed(failure));
        *self = Self { mode: Mode::Failed, offset: self.offset, ..Self::default() };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The frames of a body, as text.
    fn frames(sse: &mut Sse, parts: &[&[u8]]) -> Vec<String> {
        let mut seen = Vec::new();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let mut sink = |end: u64, frame: Frame<'_>| {
            seen.push(match frame {
                Frame::Event { name, data, closed } => {
                    let mark = if closed == Closed::Body { " (pending)" } else { "" };
                    format!("{end} {}|{}{mark}", text(name), text(data))
                }
                Frame::Error(value) => format!("{end} error {}", text(value)),
                Frame::Comment => return,
                Frame::Exception { .. } => unreachable!(),
                Frame::Document { text: document, .. } => format!("{end} document {}", text(document)),
                Frame::Failed(failure) => format!("{end} {failure:?}"),
            });
        };
        for part in parts {
            sse.feed(part, &mut sink);
        }
        sse.finish(&mut sink);
        seen
    }

    fn of(body: &[u8]) -> Vec<String> {
        frames(&mut Sse::default(), &[body])
    }

    #[test]
    fn lines_end_at_lf_crlf_and_cr() {
        assert_eq!(of(b"data: a\n\ndata: b\n\n"), ["9 |a", "18 |b"]);
        assert_eq!(of(b"data: a\r\rdata: b\r\r"), ["9 |a", "18 |b"]);
        // The CR of the blank line completes the event; its LF is no further line.
        assert_eq!(of(b"data: a\r\n\r\ndata: b\r\n\r\n"), ["10 |a", "21 |b"]);
        let split: [&[u8]; 6] = [b"data: a\r", b"\n", b"\r", b"\ndata: b\r\n\r", b"", b"\n"];
        assert_eq!(frames(&mut Sse::default(), &split), ["10 |a", "21 |b"]);
        assert_eq!(of("data: a\u{2028}b\u{85}c\n\n".as_bytes()), ["16 |a\u{2028}b\u{85}c"]);
    }

    #[test]
    fn fields_are_read_as_the_standard_says() {
        assert_eq!(of(b"\xef\xbb\xbfevent: e\ndata:a\ndata:  b\ndata\n\n"), ["34 e|a\n b\n"]);
        assert_eq!(of(b": ping\nid: 1\nretry: 5\nunknown: x\n\nevent: e\n\ndata: a\n\n"), ["53 |a"]);
        assert_eq!(of(b"data: a\ndata: b"), ["15 |a\nb (pending)"]);
        assert_eq!(of(b"data:\n\n"), ["7 |"]);
    }

    #[test]
    fn json_outside_a_field_is_a_document() {
        assert_eq!(of(b"{\n \"a\": 1\n}"), ["11 document {\n \"a\": 1\n}\n"]);
        assert_eq!(of(b"data: a\n\n{\"e\":1}\n\ndata: b\n\n"), ["9 |a", "26 document {\"e\":1}\n", "27 |b"]);
        assert_eq!(of(b"error: {}\n\n"), ["10 error {}"]);
    }

    #[test]
    fn a_body_that_is_no_stream_is_told_by_its_bytes() {
        let page = |message: &str| Undecodable::Html { message: Some(message.to_owned()) };
        let foreign = |message: &str| Undecodable::Foreign { message: Some(message.to_owned()) };
        let gzip = Undecodable::Compressed { encoding: "gzip" };
        assert_eq!(of(b"\n <html><title>Bad\nGateway</title>\ndata: a\n\n"), [format!("44 {:?}", page("Bad Gateway"))]);
        assert_eq!(of(b"\x1f\x8b\x08\n\ndata: a\n\n"), [format!("4 {gzip:?}")]);
        assert_eq!(of(b"Internal Server Error"), [format!("21 {:?}", foreign("Internal Server Error"))]);
        assert!(of(b"").is_empty() && of(b"\n\n \n: ping\n").is_empty());
    }

    #[test]
    fn memory_is_bounded() {
        let block = vec![b'x'; 1 << 20];
        let too_long = |end: usize| vec![format!("{end} {:?}", Undecodable::TooLong)];
        let mut sse = Sse::default();
        assert_eq!(frames(&mut sse, &[&block[..]; 64]), too_long(MAX_EVENT + (1 << 20)));
        assert_eq!(sse.line.capacity(), 0);

        let lines = [b"data: ", &block[..], b"\n"].concat();
        let seen = frames(&mut Sse::default(), &[&lines[..]; 64]);
        assert_eq!(seen, too_long(8 * lines.len()));

        let mut longest = vec![b'x'; MAX_EVENT];
        longest[..5].copy_from_slice(b"data:");
        assert_eq!(of(&[&longest[..], b"\n\n"].concat()).len(), 1);
        assert_eq!(of(&[&longest[..], b"x\n\n"].concat()), too_long(MAX_EVENT + 2));
    }

    #[test]
    fn no_byte_is_searched_twice() {
        let event = [b"data: ", &[b'x'; 1000][..], b"\r\n\r\n"].concat();
        let body = event.repeat(100);
        for size in [1, 7, 1009, body.len()] {
            let mut sse = Sse::default();
            let parts: Vec<_> = body.chunks(size).collect();
            assert_eq!(frames(&mut sse, &parts).len(), 100);
            assert!(sse.searched <= body.len(), "{} of {} in reads of {size}", sse.searched, body.len());
        }
    }
}
