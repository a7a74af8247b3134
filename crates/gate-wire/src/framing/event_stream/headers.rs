//! The headers of a frame: which kind of message it is, and of which type.

/// What a frame says of itself; what it doesn't say is empty.
#[derive(Default)]
pub(super) struct FrameHeaders<'a> {
    pub(super) message: MessageType,
    pub(super) event_type: &'a [u8],
    pub(super) exception_type: &'a [u8],
    pub(super) error_code: &'a [u8],
    pub(super) error_message: &'a [u8],
}

/// `:message-type`.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum MessageType {
    #[default]
    Event,
    /// An error that the service's model describes.
    Exception,
    /// Any other.
    Error,
}

impl<'a> FrameHeaders<'a> {
    /// Reads them all; `None` where they don't fill their room exactly.
    pub(super) fn parse(mut rest: &'a [u8]) -> Option<Self> {
        let mut headers = Self::default();
        while let Some((length, after)) = rest.split_first() {
            let (name, after) = after.split_at_checked(usize::from(*length))?;
            let (kind, after) = after.split_first()?;
            let (value, after) = value(*kind, after)?;
            rest = after;
            match name {
                b":message-type" => {
                    headers.message = match value {
                        b"exception" => MessageType::Exception,
                        b"error" => MessageType::Error,
                        _ => MessageType::Event,
                    }
                }
                b":event-type" => headers.event_type = value,
                b":exception-type" => headers.exception_type = value,
                b":error-code" => headers.error_code = value,
                b":error-message" => headers.error_message = value,
                _ => {}
            }
        }
        Some(headers)
    }
}

/// A header's value by its type's number, and what comes after it.
fn value(kind: u8, bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, bytes) = match kind {
        // True and false.
        0 | 1 => (0, bytes),
        // Whole numbers of 8 to 64 bits.
        2 => (1, bytes),
        3 => (2, bytes),
        4 => (4, bytes),
        // A number, and a time.
        5 | 8 => (8, bytes),
        // Bytes, and text.
        6 | 7 => {
            let (length, bytes) = bytes.split_first_chunk::<2>()?;
            (usize::from(u16::from_be_bytes(*length)), bytes)
        }
        // A UUID.
        9 => (16, bytes),
        _ => return None,
    };
    bytes.split_at_checked(length)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_type_of_value_is_passed_over() {
        let mut bytes = Vec::new();
        for (kind, value) in [
            (0, &b""[..]),
            (1, b""),
            (2, b"1"),
            (3, b"12"),
            (4, b"1234"),
            (5, b"12345678"),
            (6, b"\x00\x03abc"),
            (7, b"\x00\x00"),
            (8, b"12345678"),
            (9, b"1234567890123456"),
        ] {
            bytes.extend_from_slice(b"\x01x");
            bytes.push(kind);
            bytes.extend_from_slice(value);
        }
        bytes.extend_from_slice(b"\x0d:message-type\x07\x00\x09exception\x0f:exception-type\x07\x00\x01t");
        let headers = FrameHeaders::parse(&bytes).unwrap();
        assert!(headers.message == MessageType::Exception && headers.exception_type == b"t");
        for length in 1..bytes.len() {
            // A cut is seen wherever it is not between two headers.
            if FrameHeaders::parse(&bytes[..length]).is_some() {
                assert!(FrameHeaders::parse(&bytes[length..]).is_some(), "{length}");
            }
        }
        assert!(FrameHeaders::parse(b"\x01x\x0a").is_none());
    }
}
