//! The caller's thread: the journal, the samples in send order, the looks.

use std::collections::BTreeMap;
use std::io::{self, Write};

use gate_model::{CountTokens, Decision, JournalLine, Outcome, Redactor, Referee, RunEnd, RunHeader, Sample};

use crate::{LoadError, Progress, Stop};

/// The journal, line by line.
pub(crate) struct Journal<'a> {
    out: Option<Box<dyn Write + Send + 'a>>,
}

impl<'a> Journal<'a> {
    /// Starts the journal with its header. The header's texts come from the spec, which may hold what the
    /// environment held.
    pub(crate) fn start(
        out: Option<Box<dyn Write + Send + 'a>>,
        header: &RunHeader,
        redactor: &Redactor,
    ) -> Result<Self, LoadError> {
        let mut journal = Self { out };
        if journal.out.is_some() {
            let line = JournalLine::Header(Box::new(header.clone()));
            let mut line = serde_json::to_value(line).map_err(|error| LoadError::Journal(error.into()))?;
            redactor.redact_json(&mut line);
            journal.write(&line)?;
        }
        Ok(journal)
    }

    fn write(&mut self, line: &impl serde::Serialize) -> Result<(), LoadError> {
        let Some(out) = &mut self.out else { return Ok(()) };
        let mut write = || -> io::Result<()> {
            let mut text = serde_json::to_vec(line)?;
            text.push(b'\n');
            out.write_all(&text)?;
            out.flush()
        };
        write().map_err(LoadError::Journal)
    }

    /// Ends the journal.
    pub(crate) fn end(mut self, end: &RunEnd) -> Result<(), LoadError> {
        self.write(&JournalLine::End(Box::new(end.clone())))
    }
}

/// Keeps what ended, and asks the referee.
pub(crate) struct Recorder<'a> {
    pub(crate) journal: Journal<'a>,
    pub(crate) warmup: Vec<Sample>,
    /// The first requests, all ended, in send order.
    samples: Vec<Sample>,
    /// Those that ended before an earlier one did.
    early: BTreeMap<u32, Sample>,
    /// The texts of answers whose tokens the server did not count.
    texts: Vec<(u32, String)>,
    /// Looks to come, in requests of each arm.
    looks: std::iter::Peekable<std::vec::IntoIter<u32>>,
    /// The look at which the referee stopped the run.
    pub(crate) stopped_at: Option<u32>,
    /// How many arms there are.
    arms: u32,
    /// Ends sending.
    halt: Stop,
}

impl<'a> Recorder<'a> {
    pub(crate) fn new(journal: Journal<'a>, looks: Vec<u32>, arms: u32, halt: Stop) -> Self {
        Self {
            journal,
            warmup: Vec::new(),
            samples: Vec::new(),
            early: BTreeMap::new(),
            texts: Vec::new(),
            looks: looks.into_iter().peekable(),
            stopped_at: None,
            arms,
            halt,
        }
    }

    /// A warm-up request ended.
    pub(crate) fn warmed_up(&mut self, sample: Sample, observe: &mut dyn FnMut(Progress<'_>)) -> Result<(), LoadError> {
        let line = JournalLine::Warmup(Box::new(sample));
        self.journal.write(&line)?;
        if let JournalLine::Warmup(sample) = line {
            observe(Progress::Warmup(&sample));
            self.warmup.push(*sample);
        }
        Ok(())
    }

    /// A measured request ended.
    pub(crate) fn ended(
        &mut self,
        sample: Sample,
        text: Option<String>,
        referee: &mut dyn Referee,
        observe: &mut dyn FnMut(Progress<'_>),
    ) -> Result<(), LoadError> {
        self.texts.extend(text.map(|text| (sample.index, text)));
        let line = JournalLine::Sample(Box::new(sample));
        self.journal.write(&line)?;
        if let JournalLine::Sample(sample) = line {
            observe(Progress::Ended(&sample));
            self.early.insert(sample.index, *sample);
        }
        while let Some(next) = u32::try_from(self.samples.len()).ok().and_then(|next| self.early.remove(&next)) {
            self.samples.push(next);
            self.look(referee, observe);
        }
        Ok(())
    }

    /// Asks the referee where a look is due: pairs lie side by side in the send order, so the first requests of both
    /// arms together are the first of each. What an interrupt has cut is not judged.
    fn look(&mut self, referee: &mut dyn Referee, observe: &mut dyn FnMut(Progress<'_>)) {
        let reached = |n: &u32| u64::from(*n) * u64::from(self.arms) == self.samples.len() as u64;
        let is_cut = |sample: &Sample| sample.outcome == Outcome::Cancelled;
        let Some(n) = self.looks.next_if(reached) else { return };
        if self.stopped_at.is_some() || self.samples.iter().any(is_cut) {
            return;
        }
        let decision = referee.look(&self.samples);
        observe(Progress::Look { n, decision });
        if decision == Decision::Stop {
            self.stopped_at = Some(n);
            self.halt.trigger();
        }
    }

    /// Counts the tokens of the answers whose tokens the server did not, now that nothing is measured any more. Gives
    /// the journal, and all samples in send order.
    pub(crate) fn finish(
        mut self,
        counter: Option<&dyn CountTokens>,
    ) -> Result<(Journal<'a>, Vec<Sample>, Vec<Sample>), LoadError> {
        self.samples.extend(std::mem::take(&mut self.early).into_values());
        let Some(counter) = counter else { return Ok((self.journal, self.warmup, self.samples)) };
        for (index, text) in self.texts {
            let Some(output) = counter.count(&text) else { continue };
            self.journal.write(&JournalLine::Counted { index, output })?;
            if let Ok(at) = self.samples.binary_search_by_key(&index, |sample| sample.index)
                && let Some(sample) = self.samples.get_mut(at)
            {
                sample.counted_output = Some(output);
            }
        }
        Ok((self.journal, self.warmup, self.samples))
    }
}
