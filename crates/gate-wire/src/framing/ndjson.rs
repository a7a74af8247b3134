//! Framing of JSON lines, on bytes.

use memchr::memchr;

use super::{Closed, Frame, Framing, HEAD, Place, compressed};
use crate::{MAX_EVENT, Undecodable, message};

#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Mode {
    /// Nothing but blank lines so far.
    #[default]
    Unknown,
    /// Lines of JSON.
    Lines,
    /// Anything else that is not HTML: a JSON document over several lines, or plain text.
    Document,
    /// An HTML page, of which only the head is kept.
    Page,
    /// Given up.
    Failed,
}

/// Cuts a body into lines of JSON; blank ones are no events.
#[derive(Default)]
pub(crate) struct Ndjson {
    mode: Mode,
    /// Bytes before the current read.
    offset: u64,
    /// The beginning of a line that has not ended.
    line: Vec<u8>,
    /// What is kept of a body that is not lines of JSON.
    text: Vec<u8>,
}

impl Framing for Ndjson {
    fn feed(&mut self, bytes: &[u8], sink: &mut impl FnMut(u64, Frame<'_>)) {
        let mut rest = bytes;
        let offset = self.offset;
        self.offset += bytes.len() as u64;
        while self.mode != Mode::Failed {
            let Some((line, after)) = memchr(b'\n', rest).and_then(|length| rest.split_at_checked(length + 1)) else {
                return self.keep(rest, sink);
            };
            rest = after;
            let end = offset + (bytes.len() - rest.len()) as u64;
            if self.line.is_empty() {
                self.take_line(line, Closed::Blank, end, sink);
                continue;
            }
            self.keep(line, sink);
            let mut whole = std::mem::take(&mut self.line);
            self.take_line(&whole, Closed::Blank, end, sink);
            whole.clear();
            self.line = whole;
        }
    }

    fn finish(&mut self, sink: &mut impl FnMut(u64, Frame<'_>)) {
        let end = self.offset;
        let line = std::mem::take(&mut self.line);
        self.take_line(&line, Closed::Body, end, sink);
        match self.mode {
            Mode::Document => sink(end, Frame::Document { text: &self.text, place: Place::Alone }),
            Mode::Page => sink(end, Frame::Failed(Undecodable::Html { message: message::of_body(&self.text) })),
            Mode::Unknown | Mode::Lines | Mode::Failed => {}
        }
    }

    fn offset(&self) -> u64 {
        self.offset
    }
}

impl Ndjson {
    /// Keeps the beginning of a line, or a further part of it.
    fn keep(&mut self, part: &[u8], sink: &mut impl FnMut(u64, Frame<'_>)) {
        if self.line.len() + part.len() > MAX_EVENT {
            self.fail(Undecodable::TooLong, sink);
        } else {
            self.line.extend_from_slice(part);
        }
    }

    fn take_line(&mut self, line: &[u8], closed: Closed, end: u64, sink: &mut impl FnMut(u64, Frame<'_>)) {
        if line.len() > MAX_EVENT {
            return self.fail(Undecodable::TooLong, sink);
        }
        let data = line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line).trim_ascii();
        if self.mode == Mode::Unknown {
            if let Some(encoding) = compressed(data) {
                return self.fail(Undecodable::Compressed { encoding }, sink);
            }
            self.mode = match (data.first(), data.last()) {
                (None, _) => Mode::Unknown,
                (Some(b'<'), _) => Mode::Page,
                (Some(b'{'), Some(b'}')) => Mode::Lines,
                // The end of the body may have cut it.
                (Some(b'{'), _) if closed == Closed::Body => Mode::Lines,
                _ => Mode::Document,
            };
        }
        match self.mode {
            Mode::Lines if data.is_empty() => {}
            Mode::Lines => sink(end, Frame::Event { name: b"", data, closed }),
            Mode::Document if self.text.len() + line.len() > MAX_EVENT => self.fail(Undecodable::TooLong, sink),
            Mode::Document => self.text.extend_from_slice(line),
            Mode::Page => self.text.extend(line.iter().take(HEAD.saturating_sub(self.text.len()))),
            Mode::Unknown | Mode::Failed => {}
        }
    }

    fn fail(&mut self, failure: Undecodable, sink: &mut impl FnMut(u64, Frame<'_>)) {
        sink(self.offset, Frame::Failed(failure));
        *self = Self { mode: Mode::Failed, offset: self.offset, ..Self::default() };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The frames of a body, as text.
    fn frames(parts: &[&[u8]]) -> Vec<String> {
        let (mut lines, mut seen) = (Ndjson::default(), Vec::new());
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let mut sink = |end: u64, frame: Frame<'_>| {
            seen.push(match frame {
                Frame::Event { data, closed: Closed::Blank, .. } => format!("{end} {}", text(data)),
                Frame::Event { data, closed: Closed::Body, .. } => format!("{end} {} (pending)", text(data)),
                Frame::Error(_) | Frame::Exception { .. } | Frame::Comment => "error".to_owned(),
                Frame::Document { text: document, .. } => format!("{end} document {}", text(document)),
                Frame::Failed(failure) => format!("{failure:?}"),
            });
        };
        for part in parts {
            lines.feed(part, &mut sink);
        }
        lines.finish(&mut sink);
        seen
    }

    #[test]
    fn each_line_is_an_event() {
        let body = b"\xef\xbb\xbf{\"a\":1}\r\n\n \r\n{\"b\":\"\xe2\x80\xa8\"}\nrest";
        let seen = ["12 {\"a\":1}", "28 {\"b\":\"\u{2028}\"}", "32 rest (pending)"];
        assert_eq!(frames(&[body]), seen);
        assert_eq!(frames(&body.chunks(1).collect::<Vec<_>>()), seen);
        assert_eq!(frames(&[b"{\"cut"]), ["5 {\"cut (pending)"]);
        assert!(frames(&[]).is_empty() && frames(&[b"\n \n"]).is_empty());
    }

    #[test]
    fn a_body_that_is_not_lines_is_told_by_its_bytes() {
        assert_eq!(frames(&[b"{\n \"e\": 1\n}"]), ["11 document {\n \"e\": 1\n}"]);
        assert_eq!(frames(&[b"data: {}\n\n"]), ["10 document data: {}\n\n"]);
        let page = Undecodable::Html { message: Some("Bad Gateway".to_owned()) };
        assert_eq!(frames(&[b"<html>\n<title>Bad Gateway</title>"]), [format!("{page:?}")]);
        assert_eq!(frames(&[b"\x1f\x8b\x08\n{}\n"]), [format!("{:?}", Undecodable::Compressed { encoding: "gzip" })]);
    }

    #[test]
    fn memory_is_bounded() {
        let too_long = [format!("{:?}", Undecodable::TooLong)];
        let block = vec![b'x'; 1 << 20];
        assert_eq!(frames(&[&block[..]; 64]), too_long);
        let line = [&block[..], b"\n"].concat();
        assert_eq!(frames(&[&line[..]; 64]), too_long);
        let mut longest = vec![b' '; MAX_EVENT];
        longest[..2].copy_from_slice(b"{}");
        assert_eq!(frames(&[&longest]).len(), 1);
        longest.push(b'\n');
        assert_eq!(frames(&[&longest]), too_long);
    }
}
