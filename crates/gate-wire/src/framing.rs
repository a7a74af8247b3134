//! Framing: the bytes of a body to the events in it.

mod array;
mod event_stream;
mod ndjson;
mod sse;

pub(crate) use array::SseOrArray;
pub(crate) use event_stream::EventStream;
pub(crate) use ndjson::Ndjson;
pub(crate) use sse::Sse;

use crate::Undecodable;

/// How much is kept of a body that is not a stream.
const HEAD: usize = 2048;

/// Cuts a body into frames.
pub(crate) trait Framing: Default + Send {
    /// Takes the next bytes; `sink` gets each frame with the offset just past the byte that completed it.
    fn feed(&mut self, bytes: &[u8], sink: &mut impl FnMut(u64, Frame<'_>));

    /// Says that the body ended.
    fn finish(&mut self, sink: &mut impl FnMut(u64, Frame<'_>));

    /// How many bytes there were so far.
    fn offset(&self) -> u64;
}

/// What the framing finds.
pub(crate) enum Frame<'a> {
    /// An event in which at least one `data` field was seen, or a line of JSON.
    Event {
        /// The last `event` field's value; empty without one.
        name: &'a [u8],
        /// The data fields' values, joined by LF, or the line.
        data: &'a [u8],
        /// How it ended.
        closed: Closed,
    },
    /// An event that is an error by its frame.
    Exception {
        /// Its type.
        kind: &'a str,
        /// What it says.
        data: &'a [u8],
    },
    /// A comment line.
    Comment,
    /// The value of an `error` field.
    Error(&'a [u8]),
    /// Text outside any field that begins like JSON, or any that is not lines of JSON.
    Document {
        /// Its lines, joined by LF.
        text: &'a [u8],
        /// Where it stands.
        place: Place,
    },
    /// The body cannot be a stream, or cannot be decoded further.
    Failed(Undecodable),
}

/// How an event ended.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Closed {
    /// By its blank line, or the end of its line.
    Blank,
    /// By the end of the body, which may have cut it.
    Body,
}

/// Where a document stands.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    /// It is all there is.
    Alone,
    /// Before, in or after a stream.
    InStream,
}

/// The encoding that a body's first bytes give away.
pub(crate) fn compressed(line: &[u8]) -> Option<&'static str> {
    [(&b"\x1f\x8b"[..], "gzip"), (b"\x28\xb5\x2f\xfd", "zstd"), (b"\x78\x9c", "deflate"), (b"\x78\x01", "deflate")]
        .into_iter()
        .find_map(|(magic, encoding)| line.starts_with(magic).then_some(encoding))
}
