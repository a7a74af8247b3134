//! The journal, line by line.

use std::io::{self, Write};

use gate_model::{JournalLine, Redactor, RunEnd, RunHeader};

use crate::LoadError;

/// So many bytes are handed over at once at most.
const ROOM: usize = 64 << 10;

/// The journal of a run. What was written is handed over at the next [`Journal::flush`], at the latest.
pub(crate) struct Journal<'a> {
    out: Option<Box<dyn Write + Send + 'a>>,
    /// Whole lines that were not handed over yet.
    lines: Vec<u8>,
    /// How many bytes were written.
    bytes: u64,
}

impl<'a> Journal<'a> {
    /// Starts the journal with its header, and hands it over. The header's texts come from the spec, which may hold
    /// what the environment held.
    pub(crate) fn start(
        out: Option<Box<dyn Write + Send + 'a>>,
        header: &RunHeader,
        redactor: &Redactor,
    ) -> Result<Self, LoadError> {
        let mut journal = Self { out, lines: Vec::new(), bytes: 0 };
        if journal.out.is_some() {
            let line = JournalLine::Header(Box::new(header.clone()));
            let mut line = serde_json::to_value(line).map_err(|error| LoadError::Journal(error.into()))?;
            redactor.redact_json(&mut line);
            journal.write(&line)?;
            journal.flush()?;
        }
        Ok(journal)
    }

    /// Writes a line.
    pub(crate) fn write(&mut self, line: &impl serde::Serialize) -> Result<(), LoadError> {
        if self.out.is_none() {
            return Ok(());
        }
        let before = self.lines.len();
        serde_json::to_writer(&mut self.lines, line).map_err(|error| LoadError::Journal(error.into()))?;
        self.lines.push(b'\n');
        self.bytes += (self.lines.len() - before) as u64;
        if self.lines.len() >= ROOM { self.flush() } else { Ok(()) }
    }

    /// Hands over what was written, so that it outlives this process.
    pub(crate) fn flush(&mut self) -> Result<(), LoadError> {
        let Some(out) = self.out.as_mut().filter(|_| !self.lines.is_empty()) else { return Ok(()) };
        let handed_over: io::Result<()> = out.write_all(&self.lines).and_then(|()| out.flush());
        self.lines.clear();
        handed_over.map_err(LoadError::Journal)
    }

    /// How many bytes were written.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Ends the journal.
    pub(crate) fn end(mut self, end: &RunEnd) -> Result<(), LoadError> {
        self.write(&JournalLine::End(Box::new(end.clone())))?;
        self.flush()
    }
}
