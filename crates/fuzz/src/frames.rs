//! Sound AWS event streams out of any bytes.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;

/// The two lengths of a frame.
const LENGTHS: usize = 8;
/// A checksum.
const CHECKSUM: usize = 4;

/// The bytes as frames by their own lengths, with the checksums that these should have.
pub(crate) fn mended(body: &[u8]) -> Vec<u8> {
    let (mut mended, mut rest) = (Vec::with_capacity(body.len()), body);
    while let Some((lengths, after)) = rest.split_first_chunk::<LENGTHS>() {
        let [a, b, c, d, ..] = *lengths;
        let length = usize::try_from(u32::from_be_bytes([a, b, c, d])).unwrap_or(usize::MAX);
        let content = length.saturating_sub(LENGTHS + 2 * CHECKSUM);
        let Some((content, after)) = after.get(CHECKSUM..).and_then(|after| after.split_at_checked(content)) else {
            break;
        };
        seal(*lengths, content, &mut mended);
        rest = after.get(CHECKSUM..).unwrap_or_default();
    }
    mended.extend_from_slice(rest);
    mended
}

/// A frame with these lengths, right or not, and this content.
fn seal(lengths: [u8; LENGTHS], content: &[u8], into: &mut Vec<u8>) {
    let start = into.len();
    into.extend(lengths);
    into.extend(crc32fast::hash(&lengths).to_be_bytes());
    into.extend_from_slice(content);
    let checksum = crc32fast::hash(into.get(start..).unwrap_or_default());
    into.extend(checksum.to_be_bytes());
}

/// Each line as the payload of a frame: an exception where it begins with an exclamation mark; packed as invoke's
/// chunks are where `packed`.
pub(crate) fn framed(body: &[u8], is_packed: bool) -> Vec<u8> {
    let mut framed = Vec::new();
    for line in body.split(|byte| *byte == b'\n') {
        let (kind, payload) = match line.strip_prefix(b"!") {
            Some(payload) => ("exception", payload.to_vec()),
            None if is_packed => ("event", format!("{{\"bytes\":\"{}\"}}", BASE64_STANDARD.encode(line)).into_bytes()),
            None => ("event", line.to_vec()),
        };
        let headers = [&b"\x0d:message-type\x07\x00"[..], &[kind.len() as u8], kind.as_bytes()].concat();
        let length = LENGTHS + 2 * CHECKSUM + headers.len() + payload.len();
        let word = |length: usize| u32::try_from(length).unwrap_or(u32::MAX).to_be_bytes();
        let mut lengths = [0; LENGTHS];
        lengths.iter_mut().zip([word(length), word(headers.len())].concat()).for_each(|(to, from)| *to = from);
        seal(lengths, &[headers, payload].concat(), &mut framed);
    }
    framed
}
