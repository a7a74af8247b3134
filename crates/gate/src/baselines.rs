//! The stored runs around a command: found before the load, looked at again after it, kept.

use std::path::Path;
use std::time::Duration;

use gate_baseline::{Ask, BaselineError, Choice, Shelf};
use gate_forge::{Fetched, ForgeError};
use gate_model::{
    Baseline, BaselineKey, BaselineStore, CheckOutcome, CheckVerdict, DEFINITIONS, ExitCode, GateSpec, Importance,
    Noise, Prior, Run, Status, Verdict,
};
use tempfile::TempDir;

use crate::console::Console;
use crate::failure::Failure;
use crate::{measure, publish, surroundings};

/// The longest that fetching a baseline takes.
const PATIENCE: Duration = Duration::from_secs(120);

/// What the command line gives instead of what a spec's `baseline` chooses.
#[derive(Debug, Default)]
pub(crate) struct Given {
    /// Runs, with the names of their files.
    files: Vec<(String, Baseline)>,
    /// Another store.
    store: Option<BaselineStore>,
    /// The address that the store was fetched from: what it is called, since its folder is gone afterwards.
    address: Option<String>,
    /// Where what was fetched lies as long as it is needed.
    fetched: Vec<TempDir>,
}

impl Given {
    /// Reads what `--baseline` names: files with `read`, a store where it is a folder or a ref, either of them where it is
    /// an address.
    pub(crate) fn of(
        named: &[String],
        read: impl Fn(&Path) -> Result<Baseline, Failure>,
        stopped: impl Fn() -> bool,
        console: &Console,
    ) -> Result<Self, Failure> {
        let mut given = Self::default();
        for name in named {
            if name.starts_with("http://") || name.starts_with("https://") {
                given.fetch(name, &stopped, console)?;
            } else if name.starts_with("git:") || Path::new(name).is_dir() {
                given.take_store(store_of(name))?;
            } else {
                given.files.push((name.clone(), read(Path::new(name))?));
            }
        }
        if given.store.is_some() && !given.files.is_empty() {
            return Err(Failure::usage("--baseline: files or a store, not both"));
        }
        Ok(given)
    }

    fn take_store(&mut self, store: BaselineStore) -> Result<(), Failure> {
        match self.store.replace(store) {
            Some(_) => Err(Failure::usage("--baseline: one store at a time")),
            None => Ok(()),
        }
    }

    /// Fetches a baseline, a journal, or the archive of a store. Where there is none, or none to be had, there is nothing to
    /// compare with, and the spec's `outcomes` say what that costs.
    fn fetch(&mut self, url: &str, stopped: impl Fn() -> bool, console: &Console) -> Result<(), Failure> {
        let variables = surroundings::variables();
        let job = surroundings::job(&variables, console)?;
        let folder = tempfile::tempdir().map_err(|error| Failure::unwritable(&std::env::temp_dir(), error))?;
        // What came of it may be anything: a page to log in, half an archive. It says nothing of the spec.
        let store = match gate_forge::fetch(url, job.as_ref(), &variables, PATIENCE, stopped) {
            Ok(Fetched::File { name, bytes }) if gate_baseline::is_archive(&bytes) => {
                gate_baseline::unpack(&bytes, &name, folder.path()).map_err(|error| wrong(&error))
            }
            Ok(Fetched::File { name, bytes }) => {
                let read = gate_baseline::read_bytes(bytes, &name).map_err(|error| wrong(&error));
                match read.and_then(|baseline| valid(baseline, &name, None)) {
                    Ok(baseline) => {
                        self.files.push((url.to_owned(), baseline));
                        return Ok(());
                    }
                    Err(failure) => Err(failure),
                }
            }
            Ok(Fetched::Gone { why }) => {
                console.people(&format!("no baseline there: {}\n", gate_report::escape::terminal(&why)));
                Ok(BaselineStore::Folder(folder.path().display().to_string()))
            }
            Err(error @ ForgeError::Stopped { .. }) => {
                return Err(Failure { exit: ExitCode::Interrupted, ..publish::refused(&error) });
            }
            Err(error) => Err(publish::refused(&error)),
        };
        let store = store.or_else(|failure| {
            console.warning(&failure);
            // What was unpacked of it is none.
            let empty = folder.path().join("none");
            Ok::<_, Failure>(BaselineStore::Folder(empty.display().to_string()))
        })?;
        self.fetched.push(folder);
        self.address = Some(url.to_owned());
        self.take_store(store)
    }
}

/// Reads a baseline's file or a run's journal.
pub(crate) fn read(path: &Path) -> Result<Baseline, Failure> {
    let baseline = gate_baseline::read_file(path).map_err(|error| wrong(&error))?;
    valid(baseline, &path.display().to_string(), Some(path))
}

/// The baseline, if its run is one to compare with; of a file at hand, `gate judge` can say why it is not.
fn valid(baseline: Baseline, name: &str, file: Option<&Path>) -> Result<Baseline, Failure> {
    if gate_judge::judge(&baseline.run, &Prior::default()).valid {
        return Ok(baseline);
    }
    let failure = Failure::usage(format!("{name} is not a valid run, so nothing can be compared with it"));
    Err(match file {
        Some(path) => failure.hint(format!("`gate judge {}` says why", path.display())),
        None => failure,
    })
}

/// A store as a person writes it.
pub(crate) fn store_of(text: &str) -> BaselineStore {
    match text.strip_prefix("git:") {
        Some(name) => BaselineStore::Git(name.to_owned()),
        None => BaselineStore::Folder(text.to_owned()),
    }
}

/// Opens a store, from the folder the command runs in.
pub(crate) fn open(store: &BaselineStore, console: &Console) -> Result<Shelf, Failure> {
    let shelf = Shelf::open(store, Path::new(".")).map_err(|error| wrong(&error))?;
    if let Some(warning) = shelf.warning() {
        console.people(&format!("warning: baselines: {}\n", gate_report::escape::terminal(warning)));
    }
    Ok(shelf)
}

/// Finds what a gate's run is compared with; the run itself is known only once it has ended.
pub(crate) fn choose(spec: &GateSpec, given: &Given, run: Option<&Run>, console: &Console) -> Result<Prior, Failure> {
    let key = match run {
        Some(run) => gate_baseline::with_tokens(key_of(spec, console), run),
        None => key_of(spec, console),
    };
    if !given.files.is_empty() {
        return gate_baseline::as_given(given.files.clone(), &key).map_err(|error| wrong(&error));
    }
    if !spec.needs_baseline() {
        return Ok(Prior::default());
    }
    let shelf = open(given.store.as_ref().unwrap_or(&spec.baseline.store), console)?;
    let repository = surroundings::repository();
    let ask = Ask {
        spec,
        key: &key,
        surroundings: &surroundings::of_job(),
        folder: Path::new("."),
        run_id: run.map(|run| run.header.run_id.as_str()),
    };
    let Choice { mut prior, refused } =
        gate_baseline::choose(&ask, &shelf, repository.as_ref()).map_err(|error| wrong(&error))?;
    if let (Some(address), Some(chosen)) = (&given.address, &mut prior.chosen) {
        chosen.store.clone_from(address);
    }
    for file in refused {
        let words = format!("{}: not used: {file}", shelf.location());
        console.people(&format!("warning: baselines: {}\n", gate_report::escape::terminal(&words)));
    }
    Ok(prior)
}

/// What was chosen before a run, as the run that has ended leaves it.
pub(crate) fn confirm(prior: Prior, run: &Run) -> Prior {
    let mut prior = gate_baseline::confirm(prior, run);
    gate_baseline::note_differences(&mut prior, run);
    prior
}

/// Keeps a run that was just judged, if it is one to compare with and no required check is violated. Its verdict is in
/// this folder.
pub(crate) fn save_checked(run: &Run, verdict: &Verdict, folder: &Path, console: &Console) -> Result<(), Failure> {
    let is_violated = |one: &CheckVerdict| {
        let outcome = match &one.outcome {
            // Waived for now, it must not become what later runs are held against.
            CheckOutcome::Waived { otherwise } => otherwise,
            outcome => outcome,
        };
        one.check.importance == Importance::Required && *outcome == CheckOutcome::Violated
    };
    let why = match verdict.status {
        _ if !verdict.valid => "it is not valid (its report says why)",
        _ if verdict.checks.iter().any(is_violated) => "a required check is violated",
        Status::CouldNotMeasure => "a required check could not be measured",
        _ => {
            let saved = save(run, verdict, &run.header.spec.baseline.store, console);
            return saved.map_err(|failure| {
                let words = format!("{}: the run is judged, and not kept: {}", verdict.name, failure.message);
                Failure::unmeasured(words).hint(format!(
                    "repair it (pushing a ref needs leave to write, such as `contents: write`), then: gate baseline \
                     save {}",
                    folder.join("verdict.json").display()
                ))
            });
        }
    };
    console.people(&format!("{}: this run is not kept as a baseline: {why}\n", verdict.name));
    Ok(())
}

/// Keeps a run in a store.
pub(crate) fn save(run: &Run, verdict: &Verdict, store: &BaselineStore, console: &Console) -> Result<(), Failure> {
    let run = console.secrets.redacted(run.clone());
    let baseline = gate_baseline::baseline(&run, verdict, &measure::now()).map_err(|error| wrong(&error))?;
    let mut shelf = open(store, console)?;
    shelf.save(&baseline).map_err(|error| wrong(&error))?;
    console.people(&format!("{}: kept as baseline {} in {}\n", verdict.name, baseline.id(), shelf.location()));
    let why = match &baseline.run.header.commit {
        None => "it was measured outside a git repository",
        Some(commit) if commit.dirty => "files differed from their commit when it was measured",
        Some(_) => return Ok(()),
    };
    console.people(&format!(
        "warning: {why}, so only `last:N`, `pin:ID` and a file choose it, not `merge-base` or `branch:NAME`\n"
    ));
    Ok(())
}

/// Keeps the noise that calibration found, beside the baselines of the same key.
pub(crate) fn save_noise(spec: &GateSpec, noise: &Noise, console: &Console) -> Result<(), Failure> {
    let mut shelf = open(&spec.baseline.store, console)?;
    shelf.save_noise(&spec.name, &key_of(spec, console), noise).map_err(|error| wrong(&error))?;
    console.people(&format!("{}: this noise is kept in {}, for checks on baselines\n", spec.name, shelf.location()));
    Ok(())
}

/// The key of a spec without its secrets, as the journal's header has it: a run has one key, whoever reckons it.
fn key_of(spec: &GateSpec, console: &Console) -> BaselineKey {
    gate_baseline::key(&console.secrets.redacted(spec.clone()), DEFINITIONS)
}

/// The folders and refs where baselines may be kept, with the gates that keep them there: what the command line names,
/// else what the specs in `gates/` say, else the usual folder.
pub(crate) fn stores(named: Option<&str>, console: &Console) -> Vec<BaselineStore> {
    if let Some(named) = named {
        return vec![store_of(named)];
    }
    let mut stores: Vec<BaselineStore> = Vec::new();
    for spec in crate::specs::in_gates(console) {
        match spec {
            Ok(spec) if stores.contains(&spec.baseline.store) => {}
            Ok(spec) => stores.push(spec.baseline.store),
            Err((file, _)) => console.people(&format!(
                "warning: {} cannot be resolved here, so where it keeps its baselines is not known; --store names it\n",
                file.display()
            )),
        }
    }
    if stores.is_empty() {
        stores.push(gate_model::BaselineSpec::default().store);
    }
    stores
}

/// A failure around baselines: the spec, the command line or the place they are kept is wrong.
pub(crate) fn wrong(error: &BaselineError) -> Failure {
    Failure::usage(format!("baselines: failed to {error}"))
}
