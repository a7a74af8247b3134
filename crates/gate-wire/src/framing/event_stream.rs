//! Framing of AWS event streams (`application/vnd.amazon.eventstream`), on bytes.
//!
//! A frame is its length and its headers' length (32 bits, big endian), the CRC-32 of these two, headers, payload,
//! and the CRC-32 of all of it. A length is believed only after its checksum: a damaged one would have the reader
//! wait for bytes that never come.

mod headers;

use super::{Closed, Frame, Framing, Place, compressed};
use crate::{MAX_EVENT, Undecodable, message};
use headers::{FrameHeaders, MessageType};

/// The two lengths and their checksum.
const PRELUDE: usize = 12;
/// The checksum at a frame's end.
const CHECKSUM: usize = 4;

#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Mode {
    /// Fewer bytes than a prelude so far.
    #[default]
    Unknown,
    /// Frames.
    Frames,
    /// Something else: an error as JSON, an HTML page, text.
    Document,
    /// Given up.
    Failed,
}

/// Cuts a body into frames.
#[derive(Default)]
pub(crate) struct EventStream {
    mode: Mode,
    /// Bytes before the current read.
    offset: u64,
    /// Frames so far, a damaged one included.
    frames: u64,
    /// The beginning of a frame that has not ended, or of what is no stream.
    pending: Vec<u8>,
    /// The pending frame's length; absent until its prelude is there.
    length: Option<usize>,
}

impl Framing for EventStream {
    fn feed(&mut self, bytes: &[u8], sink: &mut impl FnMut(u64, Frame<'_>)) {
        let mut rest = bytes;
        while !rest.is_empty() && self.mode != Mode::Failed {
            let missing = match self.mode {
                Mode::Document => rest.len(),
                _ => self.length.unwrap_or(PRELUDE).saturating_sub(self.pending.len()),
            };
            let (part, after) = rest.split_at_checked(missing).unwrap_or((rest, &[]));
            rest = after;
            let end = self.offset + (bytes.len() - rest.len()) as u64;
            if self.pending.len() + part.len() > MAX_EVENT {
                self.fail(Undecodable::TooLong, end, sink);
                break;
            }
            self.pending.extend_from_slice(part);
            if part.len() < missing || self.mode == Mode::Document {
                continue;
            }
            match self.length {
                None => self.take_prelude(end, sink),
                Some(_) => self.take_frame(end, sink),
            }
        }
        self.offset += bytes.len() as u64;
    }

    fn finish(&mut self, sink: &mut impl FnMut(u64, Frame<'_>)) {
        let end = self.offset;
        let text = std::mem::take(&mut self.pending);
        // A frame that the body's end has cut makes the stream truncated, not wrong.
        let is_text = self.mode == Mode::Document || (self.mode == Mode::Unknown && !text.is_empty());
        if !is_text || text.first() == Some(&0) {
            return;
        }
        let trimmed = text.trim_ascii_start();
        if let Some(encoding) = compressed(&text) {
            self.fail(Undecodable::Compressed { encoding }, end, sink);
        } else if trimmed.first() == Some(&b'<') {
            self.fail(Undecodable::Html { message: message::of_body(trimmed) }, end, sink);
        } else {
            sink(end, Frame::Document { text: trimmed, place: Place::Alone });
        }
    }

    fn offset(&self) -> u64 {
        self.offset
    }
}

impl EventStream {
    fn take_prelude(&mut self, end: u64, sink: &mut impl FnMut(u64, Frame<'_>)) {
        let sound = prelude(&self.pending);
        // No frame that is short enough begins with another byte than zero, and no text with zero.
        if self.mode == Mode::Unknown && sound.is_none() && self.pending.first() != Some(&0) {
            self.mode = Mode::Document;
            return;
        }
        self.mode = Mode::Frames;
        self.frames += 1;
        let Some((length, headers)) = sound else {
            return self.damaged("its prelude's checksum is wrong", end, sink);
        };
        if length > MAX_EVENT {
            return self.fail(Undecodable::TooLong, end, sink);
        }
        if length < PRELUDE + CHECKSUM || headers > length - PRELUDE - CHECKSUM {
            return self.damaged("its lengths contradict each other", end, sink);
        }
        self.length = Some(length);
        if length == self.pending.len() {
            self.take_frame(end, sink);
        }
    }

    fn take_frame(&mut self, end: u64, sink: &mut impl FnMut(u64, Frame<'_>)) {
        let mut frame = std::mem::take(&mut self.pending);
        self.length = None;
        match opened(&frame) {
            Ok((headers, payload)) => hand_over(&headers, payload, end, sink),
            Err(reason) => return self.damaged(reason, end, sink),
        }
        frame.clear();
        self.pending = frame;
    }

    fn damaged(&mut self, reason: &str, end: u64, sink: &mut impl FnMut(u64, Frame<'_>)) {
        self.fail(Undecodable::Damaged { frame: self.frames, message: reason.to_owned() }, end, sink);
    }

    fn fail(&mut self, failure: Undecodable, end: u64, sink: &mut impl FnMut(u64, Frame<'_>)) {
        sink(end, Frame::Failed(failure));
        *self = Self { mode: Mode::Failed, offset: self.offset, ..Self::default() };
    }
}

/// The frame's length and its headers', where their checksum holds.
fn prelude(bytes: &[u8]) -> Option<(usize, usize)> {
    let (lengths, rest) = bytes.split_at_checked(PRELUDE - CHECKSUM)?;
    if crc32fast::hash(lengths) != u32::from_be_bytes(*rest.first_chunk()?) {
        return None;
    }
    let (length, headers) = lengths.split_at_checked(4)?;
    let number = |bytes: &[u8]| usize::try_from(u32::from_be_bytes(*bytes.first_chunk()?)).ok();
    Some((number(length)?, number(headers)?))
}

/// A frame's headers and payload, or what is wrong with it.
fn opened(frame: &[u8]) -> Result<(FrameHeaders<'_>, &[u8]), &'static str> {
    const CUT: &str = "its lengths contradict each other";
    let (_, headers_length) = prelude(frame).ok_or(CUT)?;
    let (checked, checksum) = frame.split_last_chunk::<CHECKSUM>().ok_or(CUT)?;
    if crc32fast::hash(checked) != u32::from_be_bytes(*checksum) {
        return Err("its checksum is wrong");
    }
    let (headers, payload) =
        checked.get(PRELUDE..).and_then(|rest| rest.split_at_checked(headers_length)).ok_or(CUT)?;
    Ok((FrameHeaders::parse(headers).ok_or("its headers are broken")?, payload))
}

/// Gives a frame as the event, or the exception, that it is.
fn hand_over(headers: &FrameHeaders<'_>, payload: &[u8], end: u64, sink: &mut impl FnMut(u64, Frame<'_>)) {
    let (kind, data) = match headers.message {
        MessageType::Event => {
            return sink(end, Frame::Event { name: headers.event_type, data: payload, closed: Closed::Blank });
        }
        MessageType::Exception => (headers.exception_type, payload),
        MessageType::Error => (headers.error_code, headers.error_message),
    };
    sink(end, Frame::Exception { kind: &String::from_utf8_lossy(kind), data });
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header(name: &str, value: &str) -> Vec<u8> {
        let length = u16::try_from(value.len()).unwrap().to_be_bytes();
        [&[name.len() as u8], name.as_bytes(), b"\x07", &length, value.as_bytes()].concat()
    }

    fn frame(headers: &[(&str, &str)], payload: &[u8]) -> Vec<u8> {
        let headers: Vec<u8> = headers.iter().flat_map(|(name, value)| header(name, value)).collect();
        let length = PRELUDE + headers.len() + payload.len() + CHECKSUM;
        let mut frame = [(length as u32).to_be_bytes(), (headers.len() as u32).to_be_bytes()].concat();
        frame.extend(crc32fast::hash(&frame).to_be_bytes());
        frame.extend([&headers[..], payload].concat());
        frame.extend(crc32fast::hash(&frame).to_be_bytes());
        frame
    }

    fn event(kind: &str, payload: &str) -> Vec<u8> {
        frame(&[(":event-type", kind), (":message-type", "event")], payload.as_bytes())
    }

    /// The frames of a body, as text.
    fn frames<'a>(parts: impl IntoIterator<Item = &'a [u8]>) -> Vec<String> {
        let (mut stream, mut seen) = (EventStream::default(), Vec::new());
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let mut sink = |end: u64, frame: Frame<'_>| {
            seen.push(match frame {
                Frame::Event { name, data, .. } => format!("{end} {} {}", text(name), text(data)),
                Frame::Document { text: document, .. } => format!("{end} document {}", text(document)),
                Frame::Failed(failure) => format!("{failure:?}"),
                Frame::Exception { kind, data } => format!("{end} exception {kind} {}", text(data)),
                Frame::Error(_) | Frame::Comment => "none of these".to_owned(),
            });
        };
        for part in parts {
            stream.feed(part, &mut sink);
        }
        stream.finish(&mut sink);
        seen
    }

    fn damaged(frame: u64, message: &str) -> String {
        format!("{:?}", Undecodable::Damaged { frame, message: message.to_owned() })
    }

    #[test]
    fn each_frame_is_an_event_in_any_split() {
        let body = [event("a", "{\"x\":1}"), event("b", ""), frame(&[], b"{}")].concat();
        let seen = ["61 a {\"x\":1}", "115 b ", "133  {}"];
        assert_eq!(frames([&body[..]]), seen);
        for size in 1..=body.len() {
            assert_eq!(frames(body.chunks(size)), seen, "in parts of {size}");
        }
        assert!(frames([]).is_empty());
    }

    #[test]
    fn exceptions_and_errors_have_their_type() {
        let headers = [(":message-type", "exception"), (":exception-type", "throttlingException")];
        let exception = frame(&headers, b"{\"message\":\"m\"}");
        assert_eq!(frames([&exception[..]]), ["95 exception throttlingException {\"message\":\"m\"}"]);
        let headers = [(":message-type", "error"), (":error-code", "Internal"), (":error-message", "m")];
        assert_eq!(frames([&frame(&headers, b"")[..]]), ["80 exception Internal m"]);
    }

    #[test]
    fn a_damaged_field_is_seen_and_ends_the_stream() {
        let (good, other) = (event("a", "{}"), event("b", "{}"));
        let length = good.len();
        for at in 0..length {
            let mut bad = other.clone();
            bad[at] ^= 0x10;
            let body = [&good[..], &bad, &good].concat();
            let seen = frames([&body[..]]);
            let reason = if at < PRELUDE { "its prelude's checksum is wrong" } else { "its checksum is wrong" };
            assert_eq!(seen, [format!("{length} a {{}}"), damaged(2, reason)], "byte {at}");
            assert_eq!(frames(body.chunks(1)), seen, "byte {at}");
        }
        // As the first frame too: a body whose first byte is zero is no text.
        let mut bad = good.clone();
        bad[1] ^= 1;
        assert_eq!(frames([&bad[..]]), [damaged(1, "its prelude's checksum is wrong")]);
    }

    #[test]
    fn lengths_that_cannot_be_are_seen() {
        let prelude = |length: u32, headers: u32| {
            let mut bytes = [length.to_be_bytes(), headers.to_be_bytes()].concat();
            bytes.extend(crc32fast::hash(&bytes).to_be_bytes());
            [bytes, vec![0; 100]].concat()
        };
        let contradiction = [damaged(1, "its lengths contradict each other")];
        for (length, headers) in [(0, 0), (15, 0), (16, 1), (40, 25), (40, u32::MAX)] {
            assert_eq!(frames([&prelude(length, headers)[..]]), contradiction, "{length} {headers}");
        }
        let too_long = [format!("{:?}", Undecodable::TooLong)];
        for length in [(8 << 20) + 1, 1 << 24, u32::MAX] {
            assert_eq!(frames([&prelude(length, 0)[..]]), too_long, "{length}");
            assert_eq!(frames(prelude(length, 0).chunks(1)), too_long, "{length}");
        }
        let longest = event("a", &"x".repeat(MAX_EVENT - event("a", "").len()));
        assert_eq!(longest.len(), MAX_EVENT);
        assert!(frames(longest.chunks(1 << 20))[0].starts_with("8388608 a xxx"));
        assert_eq!(frames([&frame(&[], &[]).repeat(3)[..]]), ["16  ", "32  ", "48  "], "a frame may be empty");
    }

    #[test]
    fn broken_headers_are_seen() {
        let broken = |headers: &[u8]| {
            let mut bytes = [(16 + headers.len() as u32).to_be_bytes(), (headers.len() as u32).to_be_bytes()].concat();
            bytes.extend(crc32fast::hash(&bytes).to_be_bytes());
            bytes.extend(headers);
            bytes.extend(crc32fast::hash(&bytes).to_be_bytes());
            frames([&bytes[..]])
        };
        for headers in [&b"\x05ab"[..], b"\x01a\x07\x00\x09ab", b"\x01a\x63", b"\x01a"] {
            assert_eq!(broken(headers), [damaged(1, "its headers are broken")], "{headers:?}");
        }
    }

    #[test]
    fn what_the_bodys_end_has_cut_is_no_event() {
        let (good, cut) = (event("a", "{}"), event("b", "{}"));
        for length in 0..cut.len() {
            let body = [&good[..], &cut[..length]].concat();
            assert_eq!(frames([&body[..]]), [format!("{} a {{}}", good.len())], "{length}");
            assert!(frames([&cut[..length]]).is_empty(), "{length}");
        }
    }

    #[test]
    fn a_body_that_is_no_event_stream_is_told_by_its_bytes() {
        for (body, seen) in [
            ("{\"message\":\"no\"}", "16 document {\"message\":\"no\"}".to_owned()),
            ("{}", "2 document {}".to_owned()),
            ("\n{\"message\":\"no\"}", "17 document {\"message\":\"no\"}".to_owned()),
            (
                "<html><title>Bad Gateway</title></html>",
                format!("{:?}", Undecodable::Html { message: Some("Bad Gateway".to_owned()) }),
            ),
            ("\x1f\u{8b}", "3 document \x1f\u{8b}".to_owned()),
        ] {
            assert_eq!(frames([body.as_bytes()]), [seen.as_str()], "{body}");
            assert_eq!(frames(body.as_bytes().chunks(1)), [seen.as_str()], "{body}");
        }
        let gzip = b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03\x00\x00\x00";
        assert_eq!(frames([&gzip[..]]), [format!("{:?}", Undecodable::Compressed { encoding: "gzip" })]);
        let block = vec![b'x'; 1 << 20];
        assert_eq!(frames([&block[..]; 64]), [format!("{:?}", Undecodable::TooLong)]);
    }
}
