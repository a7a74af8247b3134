//! Reading what a store holds: nothing is used that is not what it should be.

use std::fmt;

use gate_model::{
    Arm, BASELINE_SCHEMA, Baseline, BaselineKey, Commit, EndReason, JournalLine, JournalReader, LastLine, Noise,
    Outcome, REDACTED, Run, RunHeader, Sample, Section, Shard, Status,
};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::key::{TOKENS, hash};
use crate::layout::{check_id, folder_of};

/// The largest file that is read: 256 MiB.
pub(crate) const LARGEST: u64 = 256 << 20;

/// A file that is not used, and why.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Refused {
    /// The file, as its store names it.
    pub file: String,
    /// What is wrong with it, in words.
    pub why: String,
}

impl Refused {
    pub(crate) fn new(file: impl Into<String>, why: impl Into<String>) -> Self {
        Self { file: file.into(), why: why.into() }
    }
}

impl fmt::Display for Refused {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "`{}`: {}", self.file, self.why)
    }
}

/// A stored baseline without its samples.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Entry {
    /// Its id: the run's.
    pub id: String,
    /// The hash of its key.
    pub hash: String,
    /// Where its output tokens are counted, as in the key; absent where there are none.
    pub tokens: Option<String>,
    /// When the run started, RFC 3339 in UTC.
    pub started: String,
    /// When it was saved, RFC 3339 in UTC.
    pub saved: String,
    /// How its gate ended.
    pub status: Status,
    /// The commit it measured.
    pub commit: Option<Commit>,
    /// How many requests of the target it holds.
    pub requests: u32,
    /// How many of them were ok.
    pub ok: u32,
    /// The other tool's format it was imported from.
    pub imported_from: Option<String>,
    /// Whether `prune` leaves it alone.
    pub pinned: bool,
    /// The time in `started`.
    #[serde(skip)]
    pub(crate) time: Timestamp,
}

impl Entry {
    /// The folder of its key.
    pub(crate) fn folder(&self) -> String {
        folder_of(&self.hash)
    }
}

/// Where a file says it belongs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place<'a> {
    pub(crate) name: &'a str,
    pub(crate) folder: &'a str,
    pub(crate) id: &'a str,
}

#[derive(Deserialize)]
struct Version {
    schema: u32,
}

/// Reads what a listing shows. It is held to the same as a baseline that is used, so that both know the same ones.
pub(crate) fn entry(bytes: &[u8], place: Place<'_>) -> Result<Entry, String> {
    let Baseline { key, saved, status, run, .. } = whole(bytes, Some(place))?;
    let time = time_of(&run.header.started)?;
    let requests = run.samples.iter().filter(|sample| sample.arm == Arm::Target).count();
    let (ok, header) = (answered(&run), run.header);
    Ok(Entry {
        id: header.run_id,
        tokens: key.parts.get(TOKENS).cloned(),
        hash: key.hash,
        started: header.started,
        saved,
        status,
        commit: header.commit,
        requests: u32::try_from(requests).unwrap_or(u32::MAX),
        ok,
        imported_from: header.imported_from,
        pinned: false,
        time,
    })
}

/// How many requests of the target were ok.
pub(crate) fn answered(run: &Run) -> u32 {
    let is_ok = |sample: &&Sample| sample.arm == Arm::Target && sample.outcome == Outcome::Ok;
    u32::try_from(run.samples.iter().filter(is_ok).count()).unwrap_or(u32::MAX)
}

/// Reads a baseline, its run under the rules of a journal. A file that somebody names has no place.
pub(crate) fn whole(bytes: &[u8], place: Option<Place<'_>>) -> Result<Baseline, String> {
    check_schema(bytes)?;
    let Baseline { schema, key, saved, status, run } = parsed(bytes)?;
    check(&key, &run.header.run_id, &run.header.spec.name, place)?;
    time_of(&run.header.started)?;
    let run = checked(run)?;
    Ok(Baseline { schema, key, saved, status, run })
}

/// Whether a text starts as a run's journal does.
pub(crate) fn is_journal(bytes: &[u8]) -> bool {
    #[derive(Deserialize)]
    struct Line {
        r#type: String,
    }
    let first = bytes.split(|byte| *byte == b'\n').next().unwrap_or_default();
    serde_json::from_slice::<Line>(first).is_ok_and(|line| line.r#type == "header")
}

/// Reads what calibration found.
pub(crate) fn noise(bytes: &[u8]) -> Result<Noise, String> {
    let noise: Noise = parsed(bytes)?;
    match noise.tau.iter().find(|(_, tau)| !(tau.is_finite() && **tau >= 0.0)) {
        Some((metric, tau)) => Err(format!("the noise of `{metric}` cannot be {tau}")),
        None => Ok(noise),
    }
}

fn parsed<'de, T: Deserialize<'de>>(bytes: &'de [u8]) -> Result<T, String> {
    serde_json::from_slice(bytes).map_err(|error| {
        let text = error.to_string();
        format!("it is corrupt, or was not made by gate: {}", text.chars().take(200).collect::<String>())
    })
}

fn check_schema(bytes: &[u8]) -> Result<(), String> {
    let Version { schema } = parsed(bytes)?;
    if schema > BASELINE_SCHEMA {
        return Err(format!("it has schema {schema}, and this gate reads up to {BASELINE_SCHEMA}: use a newer gate"));
    }
    Ok(())
}

/// What in it contradicts itself or its place.
fn check(key: &BaselineKey, id: &str, name: &str, place: Option<Place<'_>>) -> Result<(), String> {
    check_id(id).map_err(|_| "its run's id is none".to_owned())?;
    // What was secret in the parts is in the hash alone.
    let is_redacted = key.parts.values().any(|part| part.contains(REDACTED));
    if hash(&key.parts) != key.hash && !is_redacted {
        return Err("its key was changed: the hash is of other parts".to_owned());
    }
    if let Some(place) = place {
        if name != place.name {
            return Err(format!("it is of gate `{name}`, in the folder of `{}`", place.name));
        }
        if id != place.id {
            return Err(format!("it is of run {id}, under another name"));
        }
        if !key.hash.starts_with(place.folder) {
            return Err(format!("it has key {}, in the folder of {}", key.hash, place.folder));
        }
    }
    Ok(())
}

/// The time at which a run started.
fn time_of(started: &str) -> Result<Timestamp, String> {
    started
        .parse()
        .map_err(|_| format!("it started at `{}`, which is no time", started.chars().take(40).collect::<String>()))
}

/// The run, where a journal of it would be read: the same rules hold, in one place.
fn checked(run: Run) -> Result<Run, String> {
    if run.sections.is_empty() {
        return of_journal(run);
    }
    let mut first = run.header.first;
    let mut sent = 0_u32;
    let mut scrapes = 0_usize;
    let mut left = (run.samples.len(), run.warmup.len());
    for section in &run.sections {
        let part = of_journal(part(&run, section, first)?)?;
        left = (left.0.saturating_sub(part.samples.len()), left.1.saturating_sub(part.warmup.len()));
        if is_fixed(&run, section) && part.recorded() != section.planned {
            return Err(format!("its run cannot be: section {} says completed, and misses requests", section.number));
        }
        first = first.saturating_add(section.planned);
        scrapes = scrapes.saturating_add(section.scrapes as usize);
        sent = sent.saturating_add(part.recorded());
    }
    let is_ascending = run.sections.is_sorted_by(|one, other| one.number < other.number);
    if left != (0, 0) || scrapes != run.scrapes.len() || !is_ascending {
        return Err("its run cannot be: what it holds is not what its sections have".to_owned());
    }
    if run.end.as_ref().is_some_and(|end| end.sent != sent) {
        return Err("its run cannot be: more or fewer requests were sent than its sections have".to_owned());
    }
    let mut run = run;
    run.samples.sort_by_key(|sample| sample.index);
    Ok(run)
}

/// Whether a section that was completed has sent all that was planned: a conversation may end before its last turn.
fn is_fixed(run: &Run, section: &Section) -> bool {
    let has_turns = |scenario: &u16| run.header.spec.prompts_of(*scenario).turns.max > 1;
    let is_completed = section.end.as_ref().is_some_and(|end| end.reason == EndReason::Completed);
    is_completed && !section.scenarios.iter().any(has_turns)
}

/// A section of a run as a run of its own, whose requests begin at this index. Only of the first section is known when
/// requests were due; that of the others is as that of a shard, which does not say.
fn part(run: &Run, section: &Section, first: u32) -> Result<Run, String> {
    let number = usize::from(section.number);
    if run.header.spec.sections().get(number) != Some(&section.scenarios) {
        return Err(format!("its run cannot be: its spec has no section {number} of these scenarios"));
    }
    let is_first = section.number == run.header.section && !run.header.schedule.is_empty();
    let header = RunHeader {
        section: section.number,
        first,
        looks: section.looks.clone(),
        by_scenario: section.by_scenario.clone(),
        planned: section.planned,
        whole: section.planned,
        schedule: if is_first { run.header.schedule.clone() } else { Vec::new() },
        shard: (!is_first).then_some(Shard { index: 1, of: 1 }),
        ..run.header.clone()
    };
    let of_section = |samples: &[Sample]| -> Vec<Sample> {
        samples.iter().filter(|sample| section.scenarios.contains(&sample.scenario)).cloned().collect()
    };
    Ok(Run::new(header, of_section(&run.warmup), of_section(&run.samples), section.end.clone()))
}

/// A run of one section, read from its journal.
fn of_journal(run: Run) -> Result<Run, String> {
    let mut text = String::new();
    let Run { header, warmup, samples, scrapes, end, .. } = run;
    let mut push = |line: &JournalLine| {
        serde_json::to_string(line).map(|line| text.extend([line.as_str(), "\n"])).map_err(|error| error.to_string())
    };
    push(&JournalLine::Header(Box::new(header)))?;
    warmup.into_iter().try_for_each(|sample| push(&JournalLine::Warmup(Box::new(sample))))?;
    samples.into_iter().try_for_each(|sample| push(&JournalLine::Sample(Box::new(sample))))?;
    scrapes.into_iter().try_for_each(|scrape| push(&JournalLine::Scrape(scrape)))?;
    end.into_iter().try_for_each(|end| push(&JournalLine::End(Box::new(end))))?;
    let mut reader = JournalReader::new();
    let read = text.lines().try_for_each(|line| reader.line(line)).and_then(|()| reader.finish(LastLine::Whole));
    let run = read.map_err(|error| format!("its run cannot be: {error}"))?.into_iter().next();
    run.ok_or_else(|| "it has no run".to_owned())
}
