//! Reading a run's journal.

use std::collections::{HashMap, HashSet};

use serde::Deserialize;

use crate::{
    AssembleError, EndReason, Health, JournalLine, Nanos, RAW_LIMIT, RUN_SCHEMA, Run, RunHeader, Sample, is_gate_name,
};

/// Why a text is not a journal.
#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    /// No line at all.
    #[error("the journal is empty")]
    Empty,
    /// The first line is not a header.
    #[error("line 1 is not a gate run journal's header: {0}")]
    NoHeader(String),
    /// A later schema.
    #[error("the journal has schema {found}, and this gate reads up to {RUN_SCHEMA}")]
    Schema {
        /// The schema found.
        found: u32,
    },
    /// A line in the middle that cannot be read.
    #[error("line {line}: {message}")]
    Line {
        /// The line, from 1.
        line: usize,
        /// What is wrong.
        message: String,
    },
    /// Lines that contradict each other.
    #[error("line {line}: {message}: the journal was changed, or is of two runs")]
    Contradiction {
        /// The line, from 1.
        line: usize,
        /// What contradicts what.
        message: String,
    },
    /// Its sections are not of one run.
    #[error("{0}")]
    Parts(#[from] AssembleError),
    /// The same request twice.
    #[error("line {line}: request {index} stands in the journal twice")]
    Twice {
        /// The line, from 1.
        line: usize,
        /// The request.
        index: u32,
    },
}

impl RunHeader {
    /// What in it contradicts itself.
    fn check(&self) -> Result<(), String> {
        let arms = self.spec.arms();
        let planned = self.looks.last().copied().unwrap_or(0).saturating_mul(arms);
        if !self.looks.is_sorted_by(|earlier, later| earlier < later)
            || self.looks.first().is_none_or(|look| *look == 0)
        {
            return Err("the looks do not ascend from above 0".to_owned());
        }
        if planned != self.whole {
            return Err(format!("the last look takes {planned} requests, and {} are planned", self.whole));
        }
        if self.shard.is_none() && self.planned != self.whole || self.planned > self.whole {
            return Err(format!("{} requests are planned here, of {} in all", self.planned, self.whole));
        }
        if let Some(shard) = self.shard.filter(|shard| shard.index == 0 || shard.index > shard.of) {
            return Err(format!("shard {} of {} is none", shard.index, shard.of));
        }
        if !self.schedule.is_empty() && u32::try_from(self.schedule.len()) != Ok(self.planned) {
            return Err(format!("{} requests are planned, and {} are due", self.planned, self.schedule.len()));
        }
        if self.schedule.is_empty() && self.shard.is_none() && self.whole <= RAW_LIMIT && !self.spec.has_turns() {
            return Err("it does not say when its requests are due".to_owned());
        }
        if usize::from(self.section) >= self.spec.sections().len() {
            return Err(format!("its spec has no section {}", self.section));
        }
        if !is_gate_name(&self.spec.name) {
            return Err("the gate's name is none".to_owned());
        }
        let scenario = self.spec.sections().get(usize::from(self.section)).and_then(|own| own.first()).copied();
        let load = self.spec.load_of(scenario.unwrap_or(0));
        if load.pace.rate().is_some_and(|rate| !(rate.0.is_finite() && rate.0 > 0.0)) {
            return Err("the rate is not above zero".to_owned());
        }
        if load.pace.cap() == Some(0) {
            return Err("no request may be open at all".to_owned());
        }
        if load.workers == 0 {
            return Err("no worker sends".to_owned());
        }
        // An imported run has the times of its file.
        let is_closed = load.pace.rate().is_none() && self.imported_from.is_none();
        if is_closed && self.schedule.iter().any(|at| *at != Nanos::ZERO) {
            return Err("in a closed loop no request is due at a time of its own".to_owned());
        }
        Ok(())
    }
}

impl Health {
    /// What in it cannot be: shares lie between 0 and 1, and no delay is below zero.
    fn check(&self) -> Result<(), String> {
        let shares = [("coalesced_share", self.coalesced_share), ("cpu_share", self.cpu_share)];
        let shares = shares.into_iter().filter(|(_, share)| share.is_some_and(|share| !(0.0..=1.0).contains(&share)));
        let delays = [("read_delay_p95", self.read_delay_p95), ("loop_delay_p95", self.loop_delay_p95)];
        let delays = delays.into_iter().filter(|(_, delay)| delay.is_some_and(|delay| delay < Nanos::ZERO));
        match shares.map(|(name, _)| name).chain(delays.map(|(name, _)| name)).next() {
            Some(name) => Err(format!("the client's `{name}` cannot be")),
            None => Ok(()),
        }
    }
}

/// Without serde_json's own place, which counts within the line.
fn in_words(error: &serde_json::Error) -> String {
    let text = error.to_string();
    text.split(" at line 1 column").next().unwrap_or(&text).to_owned()
}

/// Reads a journal line by line: of one section, or of several one after another.
#[derive(Debug, Default)]
pub struct JournalReader {
    /// What has ended.
    runs: Vec<Run>,
    current: Option<Reading>,
    /// Lines read.
    lines: usize,
    /// A line that could not be read: the last one may have been cut in the middle of a write.
    cut: Option<JournalError>,
}

/// A section that is being read.
#[derive(Debug)]
struct Reading {
    run: Run,
    seen: HashSet<u32>,
    counted: HashMap<u32, u64>,
}

impl JournalReader {
    /// Before the first line.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes the next line, without its end.
    ///
    /// # Errors
    /// [`JournalError`], with the line.
    pub fn line(&mut self, text: &str) -> Result<(), JournalError> {
        if let Some(cut) = self.cut.take() {
            return Err(cut);
        }
        self.lines += 1;
        if text.trim().is_empty() {
            return Ok(());
        }
        let Some(reading) = &mut self.current else {
            return self.header(text);
        };
        if reading.run.end.is_some() && text.starts_with("{\"type\":\"header\"") {
            return self.header(text);
        }
        match parse(text) {
            Ok(line) => reading.take(line, self.lines),
            Err(error) => {
                self.cut = Some(JournalError::Line { line: self.lines, message: in_words(&error) });
                Ok(())
            }
        }
    }

    fn header(&mut self, text: &str) -> Result<(), JournalError> {
        #[derive(Deserialize)]
        struct Version {
            schema: u32,
        }
        let no_header = |error: &serde_json::Error| match self.runs.is_empty() && self.current.is_none() {
            true => JournalError::NoHeader(in_words(error)),
            false => JournalError::Line { line: self.lines, message: in_words(error) },
        };
        let version: Version = serde_json::from_str(text).map_err(|error| no_header(&error))?;
        if version.schema > RUN_SCHEMA {
            return Err(JournalError::Schema { found: version.schema });
        }
        let mut header = match serde_json::from_str(text) {
            Ok(JournalLine::Header(header)) => *header,
            Ok(_) => return Err(JournalError::NoHeader("it is another kind of line".to_owned())),
            Err(error) => return Err(no_header(&error)),
        };
        if header.planned == 0 {
            // Written before there were shards.
            header.planned = u32::try_from(header.schedule.len()).unwrap_or(u32::MAX);
            header.whole = header.planned;
        }
        header.check().map_err(|message| JournalError::Contradiction { line: self.lines, message })?;
        let run = Run::new(header, Vec::new(), Vec::new(), None);
        let reading = Reading { run, seen: HashSet::new(), counted: HashMap::new() };
        self.runs.extend(self.current.replace(reading).map(Reading::finish));
        Ok(())
    }

    /// Every section that was read. A last line that was cut in the middle of a write is dropped where the text did not
    /// end with a whole line: the run was killed.
    ///
    /// # Errors
    /// [`JournalError`] where the last line, though whole, is none, and where there is no line at all.
    pub fn finish(mut self, last_line: LastLine) -> Result<Vec<Run>, JournalError> {
        if let (Some(cut), LastLine::Whole) = (self.cut.take(), last_line) {
            return Err(cut);
        }
        self.runs.extend(self.current.take().map(Reading::finish));
        if self.runs.is_empty() { Err(JournalError::Empty) } else { Ok(self.runs) }
    }
}

/// Whether a text ended with the end of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LastLine {
    /// It did.
    Whole,
    /// It did not: the writer may have been killed.
    Open,
}

/// Reads a line; a sample's directly, since a tag costs three times as long.
fn parse(text: &str) -> Result<JournalLine, serde_json::Error> {
    if text.starts_with("{\"type\":\"sample\"") {
        return serde_json::from_str(text).map(|sample| JournalLine::Sample(Box::new(sample)));
    }
    serde_json::from_str(text)
}

impl Reading {
    fn take(&mut self, line: JournalLine, number: usize) -> Result<(), JournalError> {
        let Self { run, seen, counted } = self;
        let contradiction = |message: String| JournalError::Contradiction { line: number, message };
        if run.end.is_some() {
            return Err(contradiction("a line after the run's end".to_owned()));
        }
        match line {
            JournalLine::Header(_) => return Err(contradiction("a second header".to_owned())),
            JournalLine::Warmup(sample) => {
                sample.check().map_err(contradiction)?;
                run.warmup.push(*sample);
            }
            JournalLine::Sample(sample) => {
                if !seen.insert(sample.index) {
                    return Err(JournalError::Twice { line: number, index: sample.index });
                }
                if !run.header.was_due(&sample) {
                    return Err(contradiction(format!("request {} was not due when it says", sample.index)));
                }
                sample.check().map_err(contradiction)?;
                run.keep(*sample);
            }
            JournalLine::Counted { index, output } => {
                if !seen.contains(&index) {
                    return Err(contradiction(format!("tokens of request {index}, which is not recorded")));
                }
                if counted.insert(index, output).is_some() {
                    return Err(contradiction(format!("the tokens of request {index} are counted twice")));
                }
            }
            JournalLine::Scrape(scrape) => run.scrapes.push(scrape),
            JournalLine::End(end) => {
                let (sent, recorded) = (end.sent, run.recorded());
                if sent != recorded {
                    return Err(contradiction(format!("{sent} requests were sent, and {recorded} are recorded")));
                }
                let is_fixed = !run.header.schedule.is_empty();
                if end.reason == EndReason::Completed && is_fixed && recorded != run.header.planned {
                    return Err(contradiction("it says completed, and not every request is there".to_owned()));
                }
                end.health.check().map_err(contradiction)?;
                run.end = Some(*end);
            }
        }
        Ok(())
    }

    fn finish(self) -> Run {
        let Self { mut run, mut counted, .. } = self;
        for brief in &mut run.briefs {
            counted.get(&brief.index).into_iter().for_each(|output| brief.count_output(*output));
        }
        for sample in &mut run.samples {
            sample.counted_output = counted.remove(&sample.index).or(sample.counted_output);
        }
        run.samples.sort_by_key(|sample| sample.index);
        run.briefs.sort_unstable_by_key(|brief| brief.index);
        run
    }
}

impl RunHeader {
    /// Whether the plan has a request that is due when this one was.
    fn was_due(&self, sample: &Sample) -> bool {
        let Some(place) = sample.index.checked_sub(self.first).filter(|place| *place < self.whole) else {
            return false;
        };
        if self.schedule.is_empty() {
            return true;
        }
        // In a closed loop a request is due when an earlier one has ended.
        let is_open = self.spec.load_of(sample.scenario).pace.rate().is_some();
        let planned = usize::try_from(place).ok().and_then(|place| self.schedule.get(place));
        planned.is_some() && (!is_open || planned == Some(&sample.intended))
    }
}

impl Run {
    /// Reads a whole journal, and puts its sections together.
    ///
    /// # Errors
    /// [`JournalError`], with the line.
    pub fn from_journal(text: &str) -> Result<Self, JournalError> {
        let mut reader = JournalReader::new();
        text.lines().try_for_each(|line| reader.line(line))?;
        let last_line = if text.ends_with('\n') { LastLine::Whole } else { LastLine::Open };
        Ok(Self::assemble(reader.finish(last_line)?)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Endpoint, GateSpec, Outcome, Pace, PerSecond, Plan, PlannedRequest, RunEnd, Sample};

    fn planned() -> PlannedRequest {
        PlannedRequest { at: Nanos::from_millis(500), ..PlannedRequest::default() }
    }

    /// An answer that waited 10 ms for its slot and came 100 ms after it was due.
    fn sample() -> Sample {
        let at = |millis: i64| Some(planned().at + Nanos::from_millis(millis));
        let mut sample = Sample { start: at(0), cap_wait: Some(Nanos::from_millis(10)), ..Sample::unsent(&planned()) };
        (sample.first_event, sample.first_token, sample.last_token) = (at(100), at(100), at(100));
        (sample.outcome, sample.content_events, sample.coalesced) = (Outcome::Ok, 2, 1);
        sample
    }

    fn header() -> RunHeader {
        let mut spec = GateSpec::new("chat", Endpoint::Sim(Box::default()));
        spec.load.pace = Pace::Open { rate: PerSecond(2.0), cap: Some(1) };
        RunHeader::new(spec.clone(), &Plan::new(&spec, vec![1], vec![planned()]), "0.1.0", "r", "2026-01-01T00:00:00Z")
    }

    fn end(health: Health) -> JournalLine {
        let (reason, at) = (EndReason::Completed, Nanos::from_secs(1));
        JournalLine::End(Box::new(RunEnd { health, ..RunEnd::new(reason, 1, at) }))
    }

    fn read(lines: &[JournalLine]) -> Result<Run, String> {
        let text: String = lines.iter().map(|line| serde_json::to_string(line).unwrap() + "\n").collect();
        Run::from_journal(&text).map_err(|error| error.to_string())
    }

    fn refused(lines: &[JournalLine], line: usize, words: &str) {
        let error = read(lines).unwrap_err();
        assert!(error.starts_with(&format!("line {line}: ")) && error.contains(words), "{error}");
    }

    #[test]
    fn what_a_sample_cannot_have_is_refused() {
        let with = |change: fn(&mut Sample)| {
            let mut sample = sample();
            change(&mut sample);
            [JournalLine::Header(Box::new(header())), JournalLine::Sample(Box::new(sample)), end(Health::default())]
        };
        assert_eq!(read(&with(|_| ())).unwrap().samples, [sample()]);
        let at_the_token = with(|sample| sample.cap_wait = Some(Nanos::from_millis(100)));
        assert!(read(&at_the_token).is_ok());
        refused(&with(|sample| sample.cap_wait = Some(Nanos(100_000_001))), 2, "out of order");
        refused(&with(|sample| sample.cap_wait = Some(Nanos(-1))), 2, "`cap_wait` of request 0 is below zero");
        refused(&with(|sample| sample.dns = Some(Nanos(-1))), 2, "`dns`");
        refused(&with(|sample| sample.connect = Some(Nanos(-1))), 2, "`connect`");
        refused(&with(|sample| sample.tls = Some(Nanos(-1))), 2, "`tls`");
        refused(&with(|sample| sample.longest_gap = Some(Nanos(-1))), 2, "`longest_gap`");
        refused(&with(|sample| sample.coalesced = 3), 2, "3 coalesced events of 2");
    }

    #[test]
    fn what_a_header_cannot_have_is_refused() {
        let with = |change: fn(&mut RunHeader)| {
            let mut header = header();
            change(&mut header);
            [JournalLine::Header(Box::new(header))]
        };
        let open = |header: &mut RunHeader, rate, cap| {
            header.spec.load.pace = Pace::Open { rate: PerSecond(rate), cap };
        };
        assert!(read(&with(|_| ())).is_ok());
        for rate in [0.0, -2.0] {
            let mut header = header();
            open(&mut header, rate, None);
            refused(&[JournalLine::Header(Box::new(header))], 1, "rate");
        }
        let mut header = header();
        open(&mut header, 2.0, Some(0));
        refused(&[JournalLine::Header(Box::new(header))], 1, "no request may be open");
        refused(&with(|header| header.spec.load.workers = 0), 1, "no worker");
        let closed = |header: &mut RunHeader| header.spec.load.pace = Pace::Closed { concurrency: 2 };
        refused(&with(closed), 1, "closed loop");
        let due_at_once = |header: &mut RunHeader| {
            header.spec.load.pace = Pace::Closed { concurrency: 2 };
            header.schedule = vec![Nanos::ZERO];
        };
        assert!(read(&with(due_at_once)).is_ok());
        let of_a_file = |header: &mut RunHeader| {
            header.spec.load.pace = Pace::Closed { concurrency: 2 };
            header.imported_from = Some("samples".to_owned());
        };
        assert!(read(&with(of_a_file)).is_ok());
    }

    #[test]
    fn what_a_client_cannot_be_is_refused() {
        let with = |health: Health| {
            [JournalLine::Header(Box::new(header())), JournalLine::Sample(Box::new(sample())), end(health)]
        };
        let whole = Health { cpu_share: Some(1.0), coalesced_share: Some(0.0), ..Health::default() };
        assert!(read(&with(whole)).is_ok());
        let none = Health::default();
        refused(&with(Health { cpu_share: Some(1.01), ..none }), 3, "`cpu_share`");
        refused(&with(Health { coalesced_share: Some(-0.01), ..none }), 3, "`coalesced_share`");
        refused(&with(Health { read_delay_p95: Some(Nanos(-1)), ..none }), 3, "`read_delay_p95`");
        refused(&with(Health { loop_delay_p95: Some(Nanos(-1)), ..none }), 3, "`loop_delay_p95`");
    }

    #[test]
    fn tokens_are_counted_once() {
        let counted = || JournalLine::Counted { index: 0, output: 7 };
        let lines =
            [JournalLine::Header(Box::new(header())), JournalLine::Sample(Box::new(sample())), counted(), counted()];
        assert_eq!(read(&lines[..3]).unwrap().samples[0].counted_output, Some(7));
        refused(&lines, 4, "counted twice");
    }
}
