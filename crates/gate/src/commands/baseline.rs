//! `gate baseline`: the stored runs, listed, shown, kept, pinned and pruned.

use std::path::Path;

use gate_baseline::{Entry, Shelf};
use gate_model::{Baseline, ExitCode, Metric, Quantity};
use gate_report::BaselineRow;

use crate::baselines::{self, wrong};
use crate::cli::{self, BaselineAction, Shelves};
use crate::commands::explain;
use crate::console::Console;
use crate::failure::Failure;
use crate::{journals, verdicts};

pub(crate) fn baseline(arguments: &cli::Baseline, console: &Console) -> Result<ExitCode, Failure> {
    match &arguments.action {
        BaselineAction::List { shelves, metric } => list(shelves, metric.as_deref(), console)?,
        BaselineAction::Show { id, shelves, json } => {
            let (shelf, name, entry) = find(id, shelves, console)?;
            let baseline = load(&shelf, &name, &entry)?;
            let text =
                if *json { as_json(&baseline)? } else { gate_report::baseline_show(&row(entry, None), &baseline) };
            console.data(&console.secrets.redact(&text))?;
        }
        BaselineAction::Save { verdict, store } => save(verdict, store.as_deref(), console)?,
        BaselineAction::Pin { id, shelves, remove: true } => {
            let (mut shelf, name, entry) = find(id, shelves, console)?;
            shelf.unpin(&name, &entry.id).map_err(|error| wrong(&error))?;
            console.people(&format!("{name}: {} is no longer pinned\n", entry.id));
        }
        BaselineAction::Pin { id, shelves, remove: false } => {
            let (mut shelf, name, entry) = find(id, shelves, console)?;
            shelf.pin(&name, &entry.id).map_err(|error| wrong(&error))?;
            console.people(&format!("{name}: {0} is pinned; compare with it by `from: pin:{0}`\n", entry.id));
        }
        BaselineAction::Prune { shelves, keep } => prune(shelves, *keep, console)?,
    }
    Ok(ExitCode::Passed)
}

/// Each store with the gates that keep something in it.
fn open(shelves: &Shelves, console: &Console) -> Result<Vec<(Shelf, Vec<String>)>, Failure> {
    let stores = baselines::stores(shelves.store.as_deref(), console);
    let opened = stores.iter().map(|store| {
        let shelf = baselines::open(store, console)?;
        let mut gates = shelf.gates().map_err(|error| wrong(&error))?;
        gates.retain(|name| shelves.gate.as_ref().is_none_or(|wanted| wanted == name));
        Ok((shelf, gates))
    });
    opened.collect()
}

/// What a store holds of a gate; files that are none are named.
fn entries(shelf: &Shelf, name: &str, console: &Console) -> Result<Vec<Entry>, Failure> {
    let listing = shelf.list(name).map_err(|error| wrong(&error))?;
    for file in &listing.refused {
        console.people(&format!("warning: not used: {}\n", gate_report::escape::terminal(&file.to_string())));
    }
    Ok(listing.entries)
}

fn list(shelves: &Shelves, metric: Option<&str>, console: &Console) -> Result<(), Failure> {
    let metric: Option<Metric> = metric.map(|name| name.parse().map_err(|error| explain::wrong(&error))).transpose()?;
    let mut is_empty = true;
    for (shelf, gates) in open(shelves, console)? {
        for name in gates {
            let mut rows = Vec::new();
            for entry in entries(&shelf, &name, console)? {
                let value = match metric {
                    Some(metric) => value(&load(&shelf, &name, &entry)?, metric),
                    None => None,
                };
                rows.push(row(entry, value));
            }
            if rows.is_empty() {
                continue;
            }
            is_empty = false;
            console.data(&format!("{name}, kept in {}\n", gate_report::escape::terminal(&shelf.location())))?;
            console.data(&console.secrets.redact(&gate_report::baseline_list(&rows, console.style)))?;
        }
    }
    if is_empty {
        let stores = baselines::stores(shelves.store.as_deref(), console);
        let places: Vec<String> = stores.iter().map(ToString::to_string).collect();
        let of = shelves.gate.as_ref().map(|name| format!(" of gate {name}")).unwrap_or_default();
        let place = gate_report::escape::terminal(&format!("looked in {}{of}: ", places.join(", ")));
        console.people(&format!("{place}{}", gate_report::baseline_list(&[], console.style)));
    }
    Ok(())
}

fn load(shelf: &Shelf, name: &str, entry: &Entry) -> Result<Baseline, Failure> {
    shelf.load(name, &entry.id).map_err(|error| wrong(&error))
}

/// A metric with its value in a baseline, where it has one.
fn value(baseline: &Baseline, metric: Metric) -> Option<(Metric, Quantity)> {
    Some((metric, gate_judge::value(&baseline.run, metric)?))
}

fn row(entry: Entry, value: Option<(Metric, Quantity)>) -> BaselineRow {
    BaselineRow {
        id: entry.id,
        started: entry.started,
        dirty: entry.commit.as_ref().is_some_and(|commit| commit.dirty),
        commit: entry.commit.map(|commit| commit.id),
        key: entry.hash,
        status: entry.status,
        pinned: entry.pinned,
        requests: entry.requests,
        value,
    }
}

/// The one baseline whose id begins so.
fn find(id: &str, shelves: &Shelves, console: &Console) -> Result<(Shelf, String, Entry), Failure> {
    if id.is_empty() {
        return Err(Failure::usage("an id is needed").hint("`gate baseline list` shows them"));
    }
    let mut found = Vec::new();
    for (shelf, gates) in open(shelves, console)? {
        for name in gates {
            let entries = entries(&shelf, &name, console)?;
            found.extend(
                entries.into_iter().filter(|entry| entry.id.starts_with(id)).map(|entry| (name.clone(), entry)),
            );
        }
        match found.len() {
            0 => {}
            1 => {
                if let Some((name, entry)) = found.pop() {
                    return Ok((shelf, name, entry));
                }
            }
            more => {
                let ids: Vec<&str> = found.iter().take(5).map(|(_, entry)| entry.id.as_str()).collect();
                return Err(Failure::usage(format!("{more} baselines have an id that begins with `{id}`"))
                    .hint(format!("say more of it: {}{}", ids.join(", "), if more > 5 { ", …" } else { "" })));
            }
        }
    }
    Err(Failure::usage(format!("no baseline has an id that begins with `{id}`"))
        .hint("`gate baseline list` shows them; --store names another place"))
}

fn save(path: &Path, store: Option<&str>, console: &Console) -> Result<(), Failure> {
    let verdict = verdicts::read(path)?;
    let run = journals::of_verdict(path, &verdict)?;
    let store = store.map_or_else(|| run.header.spec.baseline.store.clone(), baselines::store_of);
    baselines::save(&run, &verdict, &store, console)
}

fn prune(shelves: &Shelves, keep: u32, console: &Console) -> Result<(), Failure> {
    let keep = usize::try_from(keep).unwrap_or(usize::MAX);
    for (mut shelf, gates) in open(shelves, console)? {
        for name in gates {
            let removed = shelf.prune(&name, keep).map_err(|error| wrong(&error))?;
            console.people(&format!("{name}: {} removed from {}\n", removed.len(), shelf.location()));
        }
    }
    Ok(())
}

fn as_json(baseline: &Baseline) -> Result<String, Failure> {
    let text = serde_json::to_string_pretty(baseline)
        .map_err(|error| Failure::internal(format!("cannot write the baseline: {error}")))?;
    Ok(text + "\n")
}
