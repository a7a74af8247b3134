//! What a template has written, up to more than any forge takes.

use std::io::{self, Write};

/// More than a comment or a summary may have.
const MOST: usize = 4 << 20;

/// Text that is written, and ends where it is too long for anybody.
pub(super) struct Page {
    bytes: Vec<u8>,
    most: usize,
    is_full: bool,
}

impl Page {
    /// An empty one that takes so many bytes.
    pub(super) fn of(most: usize) -> Self {
        Self { bytes: Vec::new(), most: most.min(MOST), is_full: false }
    }

    /// Whether more was written than it takes.
    pub(super) fn is_full(&self) -> bool {
        self.is_full
    }

    /// What was written; a letter that was cut in two is left out.
    pub(super) fn into_text(self) -> String {
        String::from_utf8_lossy(&self.bytes).trim_end_matches('\u{fffd}').to_owned()
    }
}

impl Write for Page {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let room = self.most.saturating_sub(self.bytes.len());
        if bytes.len() > room {
            self.is_full = true;
            self.bytes.extend(bytes.iter().take(room));
            return Err(io::Error::other("the text is longer than any forge takes"));
        }
        self.bytes.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
