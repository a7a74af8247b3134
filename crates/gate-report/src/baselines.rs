//! The stored baselines as text: `gate baseline list` and `gate baseline show`.

use gate_model::{Arm, Baseline, Commit, Host, Metric, Outcome, OutcomeCount, Quantity, Run, Status, Unit};

use crate::escape;
use crate::facts::{listing, ways};
use crate::layout::{clip, counted};
use crate::style::{Style, Tone};
use crate::words::{Setting, change, figure, grouped, settings, short};

/// The widest bar of a trend, in characters.
const BAR: usize = 24;

/// How many characters of a key are shown.
const KEY: usize = 8;

/// The widest id that is shown whole, in characters.
const ID: usize = 36;

/// One line of `gate baseline list`.
#[derive(Clone, Debug, PartialEq)]
pub struct BaselineRow {
    /// Its id.
    pub id: String,
    /// When its run started, RFC 3339 in UTC.
    pub started: String,
    /// The commit it was measured on, where that is known.
    pub commit: Option<String>,
    /// Whether tracked files differed from that commit, so that it is never chosen by it.
    pub dirty: bool,
    /// The hash of its key: only rows with the same are compared.
    pub key: String,
    /// How its gate ended.
    pub status: Status,
    /// Whether `prune` keeps it.
    pub pinned: bool,
    /// Requests it holds of the target.
    pub requests: u32,
    /// The metric that was asked for, with its value in this run; absent where none was asked for, or it has none.
    pub value: Option<(Metric, Quantity)>,
}

/// The baselines by key, newest first; with the trend of a metric where the rows have one.
///
/// A bar begins at zero, so that it is as long as its value is large.
#[must_use]
pub fn baseline_list(rows: &[BaselineRow], style: Style) -> String {
    if rows.is_empty() {
        return "no baselines: run `gate check --save-baseline` on the main branch to make one\n".to_owned();
    }
    let mut rows: Vec<&BaselineRow> = rows.iter().collect();
    rows.sort_by(|left, right| right.started.cmp(&left.started));
    let mut keys: Vec<&str> = Vec::new();
    for row in &rows {
        if !keys.contains(&row.key.as_str()) {
            keys.push(&row.key);
        }
    }
    let tables = keys.iter().map(|key| {
        let rows: Vec<&BaselineRow> = rows.iter().copied().filter(|row| row.key == *key).collect();
        let metric = rows.iter().find_map(|row| row.value).map(|(metric, _)| metric);
        let of = metric.map(|metric| format!(", {metric}")).unwrap_or_default();
        let count = counted(rows.len(), "baseline");
        let head =
            format!("key {}: {count}, newest first{of}", escape::terminal(key).chars().take(KEY).collect::<String>());
        let table = metric.map_or_else(|| plain(&rows, style), |metric| trend(&rows, metric, style));
        format!("{}\n{table}", style.paint(Tone::Strong, &head))
    });
    tables.collect::<Vec<_>>().join("\n")
}

fn plain(rows: &[&BaselineRow], style: Style) -> String {
    let id = |row: &BaselineRow| clip(&escape::terminal(&row.id), ID);
    let width = rows.iter().map(|row| id(row).chars().count()).max().unwrap_or(0).max(2);
    let head = format!("{:<width$}  {:<16}  {:<8}  {:>5}  gate", "id", "started", "commit", "n");
    let mut text = format!("{}\n", style.paint(Tone::Faint, &head));
    for row in rows {
        let line = format!(
            "{:<width$}  {:<16}  {:<8}  {:>5}  {}",
            id(row),
            minute(&row.started),
            commit(row),
            grouped(row.requests),
            ended(row.status)
        );
        text.push_str(&format!("{}{}\n", line.trim_end(), if row.pinned { "*" } else { "" }));
    }
    if rows.iter().any(|row| row.pinned) {
        text.push_str("* pinned: kept by `gate baseline prune`\n");
    }
    text + dirty_note(rows)
}

/// The value of each run with its change since the oldest, and a bar.
fn trend(rows: &[&BaselineRow], metric: Metric, style: Style) -> String {
    let value = |row: &BaselineRow| row.value.map(|(_, value)| value);
    let finite = |quantity: Quantity| Some(quantity.value).filter(|value| value.is_finite());
    let oldest = rows.iter().rev().find_map(|row| value(row).and_then(finite));
    let largest = rows.iter().filter_map(|row| value(row).and_then(finite)).fold(0.0, f64::max);
    let head = format!("{:<16}  {:<8}  {:>10}  {:>9}", "started", "commit", "value", "change");
    let mut text = format!("{}\n", style.paint(Tone::Faint, &head));
    for row in rows {
        let seen = value(row);
        let since = seen.and_then(finite).zip(oldest).and_then(|(value, oldest)| since(metric.unit(), value, oldest));
        let bar = seen.map_or(0.0, |seen| if seen.value.is_finite() { seen.value } else { largest });
        let line = format!(
            "{:<16}  {:<8}  {:>10}  {:>9}  {}",
            minute(&row.started),
            commit(row),
            seen.map_or_else(|| "–".to_owned(), figure),
            since.unwrap_or_default(),
            self::bar(bar, largest)
        );
        text.push_str(&format!("{}\n", line.trim_end()));
    }
    text.push_str("change: since the oldest of these\n");
    text + dirty_note(rows)
}

/// How far a value is from the oldest: a share of it, of shares their difference.
fn since(unit: Unit, value: f64, oldest: f64) -> Option<String> {
    let by = if unit == Unit::Share { Some(value - oldest) } else { (oldest > 0.0).then(|| value / oldest - 1.0) };
    by.map(|by| change(unit, by))
}

/// A bar as long as a value, in eighths of a character.
fn bar(value: f64, largest: f64) -> String {
    const PARTS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];
    if !(value > 0.0 && largest > 0.0) {
        return String::new();
    }
    let eighths = ((value / largest).min(1.0) * (BAR * 8) as f64).round() as usize;
    let part = PARTS.get(eighths % 8).copied().unwrap_or_default();
    format!("{}{part}", "█".repeat(eighths / 8))
}

/// A time to the minute, as people read it: `2026-11-29 16:37`.
fn minute(started: &str) -> String {
    escape::terminal(started).replace('T', " ").chars().take(16).collect()
}

/// The commit; a `+` behind it stands for changes that were not committed.
fn commit(row: &BaselineRow) -> String {
    let dirty = if row.dirty { "+" } else { "" };
    row.commit.as_deref().map_or_else(|| "–".to_owned(), |commit| escape::terminal(&short(commit)) + dirty)
}

fn dirty_note(rows: &[&BaselineRow]) -> &'static str {
    let any = rows.iter().any(|row| row.dirty && row.commit.is_some());
    if any { "+ saved with changes that were not committed: never chosen by its commit\n" } else { "" }
}

/// How its gate ended, in one word.
fn ended(status: Status) -> &'static str {
    match status {
        Status::Passed => "passed",
        Status::PassedWithWarnings => "warned",
        Status::Violated => "violated",
        Status::CouldNotMeasure => "unmeasured",
        Status::Inconclusive => "unproven",
        Status::Interrupted => "interrupted",
    }
}

/// One baseline with all that it notes, and the parts of its key.
#[must_use]
pub fn baseline_show(row: &BaselineRow, baseline: &Baseline) -> String {
    let run = &baseline.run;
    let header = &run.header;
    let pinned = if row.pinned { ", pinned" } else { "" };
    let value = row.value.map(|(metric, value)| format!("{metric} {}", figure(value)));
    let server = run.end.as_ref().and_then(|end| end.reached.as_ref()).and_then(|reached| reached.server.clone());
    let facts = [
        ("id", format!("{}{pinned}", baseline.id())),
        ("gate", format!("{}, {}, gate {}", header.spec.name, ended(baseline.status), header.gate)),
        ("started", header.started.clone()),
        ("saved", baseline.saved.clone()),
        ("commit", header.commit.as_ref().map(commit_text).unwrap_or_default()),
        ("requests", requests(run)),
        ("value", value.unwrap_or_default()),
        ("server", server.unwrap_or_default()),
        ("machine", header.host.as_ref().map(machine).unwrap_or_default()),
        ("imported", header.imported_from.as_ref().map(|format| format!("from {format}")).unwrap_or_default()),
        ("key", baseline.key.hash.clone()),
    ];
    let parts = baseline.key.parts.iter().flat_map(|(path, part)| settings(path, part));
    let parts = parts.map(|(path, setting)| format!("  {}\n", pair(&path, &setting)));
    format!("{}\nwhat must agree with it:\n{}", listing(facts), parts.collect::<String>())
}

/// A path of the spec with its value, on one line.
fn pair(path: &str, setting: &Setting) -> String {
    let (Setting::Shown(value) | Setting::Text(value)) = setting;
    clip(&format!("{} {}", escape::terminal(path), escape::terminal(value)), crate::layout::WIDTH - 2)
}

fn commit_text(commit: &Commit) -> String {
    let branch = commit.branch.as_ref().map(|branch| format!(" on {branch}")).unwrap_or_default();
    let dirty = if commit.dirty { ", with changes that were not committed: never chosen by its commit" } else { "" };
    let parents = format!(", {} known before it", counted(commit.parents.len(), "commit"));
    format!("{}{branch}{dirty}{parents}", commit.id)
}

fn requests(run: &Run) -> String {
    let mut outcomes: Vec<OutcomeCount> = Vec::new();
    for sample in run.samples.iter().filter(|sample| sample.arm == Arm::Target) {
        match outcomes.iter_mut().find(|way| way.outcome == sample.outcome) {
            Some(way) => way.count = way.count.saturating_add(1),
            None => outcomes.push(OutcomeCount { outcome: sample.outcome, count: 1 }),
        }
    }
    outcomes.sort_by_key(|way| (way.outcome != Outcome::Ok, u32::MAX - way.count));
    let all: u32 = outcomes.iter().map(|way| way.count).fold(0, u32::saturating_add);
    format!("{}: {}", grouped(all), ways(&outcomes))
}

fn machine(host: &Host) -> String {
    let cores = counted(host.cores as usize, "core");
    let parts = [Some(host.system.clone()), host.kernel.clone(), host.cpu.clone(), Some(cores)];
    let named = [("runner", &host.runner), ("region", &host.region)];
    let named = named.into_iter().filter_map(|(name, value)| value.as_ref().map(|value| format!("{name} {value}")));
    parts.into_iter().flatten().chain(named).collect::<Vec<_>>().join(", ")
}
