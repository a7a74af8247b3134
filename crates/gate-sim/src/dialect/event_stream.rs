//! The framing of AWS's event streams (`application/vnd.amazon.eventstream`): lengths, headers and a payload, all big
//! endian, with a CRC-32 of the first eight bytes and one of the whole.

/// The type of a header's value that is a text.
const TEXT: u8 = 7;

/// A message with an event of JSON.
pub(super) fn event(out: &mut Vec<u8>, kind: &str, payload: &[u8]) {
    message(out, [(":event-type", kind), (":content-type", "application/json"), (":message-type", "event")], payload);
}

/// A message with an exception.
pub(super) fn exception(out: &mut Vec<u8>, kind: &str, payload: &[u8]) {
    let kind = (":exception-type", kind);
    message(out, [kind, (":content-type", "application/json"), (":message-type", "exception")], payload);
}

fn message(out: &mut Vec<u8>, headers: [(&str, &str); 3], payload: &[u8]) {
    let mut encoded = Vec::new();
    for (name, value) in headers {
        // All of them are constants of a few bytes.
        encoded.push(name.len() as u8);
        encoded.extend(name.as_bytes());
        encoded.push(TEXT);
        encoded.extend((value.len() as u16).to_be_bytes());
        encoded.extend(value.as_bytes());
    }
    let length = |bytes: usize| u32::try_from(bytes).unwrap_or(u32::MAX).to_be_bytes();
    let lengths = [length(encoded.len() + payload.len() + 16), length(encoded.len())].concat();
    let mut whole = crc32fast::Hasher::new();
    let prelude = crc32fast::hash(&lengths).to_be_bytes();
    for part in [lengths.as_slice(), &prelude, &encoded, payload] {
        whole.update(part);
        out.extend(part);
    }
    out.extend(whole.finalize().to_be_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_what_the_specification_says() {
        let mut out = Vec::new();
        event(&mut out, "chunk", b"{}");
        // By hand: names of 11, 13 and 13 bytes, values of 5, 16 and 5, four bytes around each.
        let headers = 11 + 13 + 13 + 5 + 16 + 5 + 3 * 4;
        assert_eq!(out.len(), 12 + headers + 2 + 4);
        assert_eq!(out[..8], [0, 0, 0, out.len() as u8, 0, 0, 0, headers as u8]);
        assert_eq!(out[12..24], *b"\x0b:event-type");
        assert_eq!(out[24..32], *b"\x07\x00\x05chunk");
        // Checked with zlib.
        assert_eq!(crc32fast::hash(b"123456789"), 0xcbf4_3926);
        assert_eq!(out[8..12], crc32fast::hash(&out[..8]).to_be_bytes());
        let (body, crc) = out.split_at(out.len() - 4);
        assert_eq!(crc, crc32fast::hash(body).to_be_bytes());
    }
}
