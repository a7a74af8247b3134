//! The caller's thread: the journal, the samples in send order, the looks.

use std::collections::{BTreeMap, HashSet};
use std::io::Write;

use gate_model::{
    CountTokens, Decision, EndReason, JournalLine, Outcome, Plan, RAW_LIMIT, Redactor, Referee, Run, RunHeader, Sample,
    Scrape,
};

use crate::abort::Aborts;
use crate::health::Coalesced;
use crate::journal::Journal;
use crate::{LoadError, Progress, Stop, turns};

/// Keeps what ended, and asks the referee.
pub(crate) struct Recorder<'a> {
    pub(crate) journal: Journal<'a>,
    plan: &'a Plan,
    /// The first requests, all ended, in send order.
    run: Run,
    /// How many of the plan's requests have ended, or will never be sent.
    passed: usize,
    /// Those that ended before an earlier one did.
    early: BTreeMap<u32, Sample>,
    /// Turns that will never be sent, since one before them failed.
    skipped: HashSet<u32>,
    /// The texts of answers whose tokens the server did not count.
    texts: Vec<(u32, String)>,
    /// Looks to come, in requests of each arm.
    looks: std::iter::Peekable<std::vec::IntoIter<u32>>,
    /// The look at which the referee stopped the run.
    pub(crate) stopped_at: Option<u32>,
    /// Whether an interrupt has cut anything.
    is_cut: bool,
    coalesced: Coalesced,
    /// Ends sending.
    halt: Stop,
    aborts: Aborts,
}

impl<'a> Recorder<'a> {
    /// Starts the journal with the header.
    pub(crate) fn new(
        journal: Option<Box<dyn Write + Send + 'a>>,
        redactor: &Redactor,
        header: RunHeader,
        plan: &'a Plan,
        halt: Stop,
        aborts: Aborts,
    ) -> Result<Self, LoadError> {
        let journal = Journal::start(journal, &header, redactor)?;
        // Of a part of a plan, or of a run whose samples are not all kept, nothing can be judged before its end.
        let is_judged = plan.shard.is_none() && header.whole <= RAW_LIMIT;
        let looks = if is_judged { plan.looks.clone() } else { Vec::new() };
        Ok(Self {
            journal,
            plan,
            run: Run::new(header, Vec::new(), Vec::new(), None),
            passed: 0,
            early: BTreeMap::new(),
            skipped: HashSet::new(),
            texts: Vec::new(),
            looks: looks.into_iter().peekable(),
            stopped_at: None,
            is_cut: false,
            coalesced: Coalesced::default(),
            halt,
            aborts,
        })
    }

    /// A warm-up request ended.
    pub(crate) fn warmed_up(&mut self, sample: Sample, observe: &mut dyn FnMut(Progress<'_>)) -> Result<(), LoadError> {
        let line = JournalLine::Warmup(Box::new(sample));
        self.journal.write(&line)?;
        if let JournalLine::Warmup(sample) = line {
            observe(Progress::Warmup(&sample));
            self.run.warmup.push(*sample);
        }
        Ok(())
    }

    /// The target's own metrics were read.
    pub(crate) fn scraped(&mut self, scrape: Scrape) -> Result<(), LoadError> {
        let line = JournalLine::Scrape(scrape);
        self.journal.write(&line)?;
        if let JournalLine::Scrape(scrape) = line {
            self.run.scrapes.push(scrape);
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
            self.coalesced.add(&sample);
            self.skip_after(&sample);
            self.early.insert(sample.index, *sample);
        }
        while let Some(next) = self.plan.requests.get(self.passed) {
            if !self.skipped.remove(&next.index) {
                let Some(sample) = self.early.remove(&next.index) else { break };
                self.keep(sample, referee);
            }
            self.passed += 1;
            self.look(referee, observe);
        }
        Ok(())
    }

    /// A turn that failed ends its conversation.
    fn skip_after(&mut self, sample: &Sample) {
        if sample.outcome == Outcome::Ok {
            return;
        }
        let next = turns::place(self.plan, sample.index).and_then(|place| self.plan.requests.get(place));
        let later = next.into_iter().flat_map(|request| turns::later(self.plan, request));
        self.skipped.extend(later.map(|request| request.index));
    }

    /// Keeps the next request in send order. Where it loses a check for good, the run is given up.
    fn keep(&mut self, sample: Sample, referee: &mut dyn Referee) {
        self.is_cut |= sample.outcome == Outcome::Cancelled;
        let lost = referee.lost(&sample);
        if let Some(check) = lost.filter(|_| self.run.header.spec.abort.lost && self.stopped_at.is_none()) {
            self.aborts.give_up(EndReason::Lost { check });
        }
        self.run.keep(sample);
    }

    /// Asks the referee where a look is due: pairs lie side by side in the send order, so the first requests of both
    /// arms together are the first of each. What an interrupt has cut, or was given up, is not judged here.
    fn look(&mut self, referee: &mut dyn Referee, observe: &mut dyn FnMut(Progress<'_>)) {
        let arms = u64::from(self.run.header.spec.arms());
        let passed = self.passed as u64;
        let reached = |n: &u32| u64::from(*n) * arms == passed;
        let Some(n) = self.looks.next_if(reached) else { return };
        if self.stopped_at.is_some() || self.is_cut || self.aborts.reason().is_some() {
            return;
        }
        let decision = referee.look(&self.run.samples);
        observe(Progress::Look { n, decision });
        if decision == Decision::Stop {
            self.stopped_at = Some(n);
            self.halt.trigger();
        }
    }

    /// The share of content events whose time is an upper bound.
    pub(crate) fn coalesced_share(&self) -> Option<f64> {
        self.coalesced.share()
    }

    /// Counts the tokens of the answers whose tokens the server did not, now that nothing is measured any more. Gives
    /// the journal, and the run with all samples in send order.
    pub(crate) fn finish(mut self, counter: Option<&dyn CountTokens>) -> Result<(Journal<'a>, Run), LoadError> {
        for sample in std::mem::take(&mut self.early).into_values() {
            self.run.keep(sample);
        }
        let Some(counter) = counter else { return Ok((self.journal, self.run)) };
        for (index, text) in self.texts {
            let Some(output) = counter.count(&text) else { continue };
            self.journal.write(&JournalLine::Counted { index, output })?;
            if let Ok(at) = self.run.briefs.binary_search_by_key(&index, |brief| brief.index)
                && let Some(brief) = self.run.briefs.get_mut(at)
            {
                brief.count_output(output);
            }
            if let Ok(at) = self.run.samples.binary_search_by_key(&index, |sample| sample.index)
                && let Some(sample) = self.run.samples.get_mut(at)
            {
                sample.counted_output = Some(output);
            }
        }
        Ok((self.journal, self.run))
    }
}
