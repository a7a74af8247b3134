//! `--trust base`: a change is judged by the checks of the commit it forked off from, and sends secrets nowhere else.
//!
//! Without it the checkout's own specs are used, but for those of strangers in a job that is not theirs.

mod reach;
mod strangers;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Display;
use std::path::Path;

use gate_baseline::Repository;
use gate_model::{BaselineFrom, BaselineSpec, BaselineStore, Finding, GateSpec, SpecChange};
use gate_spec::{AllowedHost, Overlay, Resolved};

use crate::console::Console;
use crate::failure::Failure;
use crate::{files, specs, surroundings};

pub(crate) use strangers::refuse_strangers;

/// The commit that a change forked off from, with the specs it had beside the change's, and of their names.
pub(crate) struct Base<'a> {
    repository: Repository,
    commit: String,
    overlays: &'a [Overlay],
    /// Where secrets may go besides.
    allowed: Vec<AllowedHost>,
    console: &'a Console,
    /// The texts of specs by their paths from the root; why one could not be read.
    texts: BTreeMap<String, Result<String, String>>,
    /// Those that stand beside the change's.
    beside: BTreeSet<String>,
}

/// A spec that is judged as its base commit wants it, with what the report says of that.
pub(crate) struct Trusted {
    pub(crate) spec: GateSpec,
    pub(crate) findings: Vec<Finding>,
}

impl<'a> Base<'a> {
    /// Finds the base, and reads the specs it had.
    ///
    /// # Errors
    /// Where there is no base to be found: nothing is judged by checks nobody vouched for.
    pub(crate) fn find(heads: &[GateSpec], overlays: &'a [Overlay], console: &'a Console) -> Result<Self, Failure> {
        let repository = surroundings::repository().map_err(|error| wrong(&error))?;
        let commit = repository.fork_point(&surroundings::of_job()).map_err(|error| wrong(&error))?;
        let (texts, beside) = (BTreeMap::new(), BTreeSet::new());
        let mut base = Self { repository, commit, overlays, allowed: Vec::new(), console, texts, beside };
        let mut wanted: BTreeSet<String> = BTreeSet::new();
        for head in heads {
            let own = [Some(base.path_of(head)?), base.repository.as_written(Path::new(&head.file))];
            for path in own.into_iter().flatten() {
                let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
                let beside = base.repository.files_at(&base.commit, folder).map_err(|error| wrong(&error))?;
                base.beside.extend(beside.into_iter().filter(|file| is_spec(file)));
                wanted.insert(path);
            }
            // A spec may have been moved to another folder.
            wanted.extend(base.repository.specs_named(&base.commit, &head.name).map_err(|error| wrong(&error))?);
        }
        wanted.extend(base.beside.iter().cloned());
        for path in wanted {
            let text = base.repository.file_at(&base.commit, &path).map_err(|error| error.to_string());
            base.texts.extend(text.transpose().map(|text| (path, text)));
        }
        Ok(base)
    }

    /// The same with hosts that secrets may go to although no spec of the base names them, as `--allow-host` does.
    ///
    /// # Errors
    /// Where one is no host.
    pub(crate) fn allowing(mut self, hosts: &[String]) -> Result<Self, Failure> {
        for host in hosts {
            let parsed = host.parse().map_err(|error| Failure::usage(format!("--allow-host `{host}`: {error}")))?;
            self.allowed.push(parsed);
        }
        Ok(self)
    }

    /// A spec with the checks it had at the base: of the gate of this name there, or of the file that it was in.
    ///
    /// # Errors
    /// Where what the base has cannot be resolved, and where the change would send secrets to a place, or read variables,
    /// that the base does not name.
    pub(crate) fn judged(&self, head: GateSpec) -> Result<Trusted, Failure> {
        let own = [Some(self.path_of(&head)?), self.repository.as_written(Path::new(&head.file))];
        let own = || own.iter().flatten().filter_map(|path| self.texts.get_key_value(path));
        let is_named = |path: &str| self.name_in(path).as_deref() == Some(&*head.name);
        let found = own().find(|(path, _)| is_named(path));
        let found = found.or_else(|| self.texts.iter().find(|(path, _)| is_named(path))).or_else(|| own().next());
        let now = self.resolved(&head)?;
        let Some((path, text)) = found else {
            self.refuse_reach(&head, &now, None)?;
            return Ok(Trusted { spec: head, findings: vec![Finding::NotAtBase { base: self.commit.clone() }] });
        };
        let name = format!("{path} at {}", self.short());
        let repair = "a change that repairs it is judged by its own checks, without --trust base";
        let text = text
            .as_ref()
            .map_err(|why| Failure::usage(format!("--trust base: {name}: failed to {why}")).hint(repair))?;
        let of_base = specs::resolve_text(&name, text, self.overlays, self.console)
            .map_err(|failure| Failure { hint: Some(repair.to_owned()), ..failure })?;
        self.refuse_reach(&head, &now, Some((&name, &of_base)))?;
        let changes = gate_spec::changes(&of_base.spec, &head);
        Ok(Trusted {
            spec: gate_spec::judged_by(&of_base.spec, &head),
            findings: self.finding(changes).into_iter().collect(),
        })
    }

    /// The gates that the base has beside these and the change has not: removing one is the most that a change can
    /// loosen.
    pub(crate) fn removed(&self, heads: &[GateSpec]) -> Vec<SpecChange> {
        let written = heads.iter().filter_map(|head| self.repository.as_written(Path::new(&head.file)));
        let kept: BTreeSet<String> = heads.iter().filter_map(|head| self.path_of(head).ok()).chain(written).collect();
        let gone = self.beside.iter().filter(|path| !kept.contains(*path)).filter_map(|path| {
            let name = self.name_in(path)?;
            (!heads.iter().any(|head| head.name == name)).then(|| SpecChange {
                what: format!("gate {name}"),
                base: Some(path.clone()),
                head: None,
                loosens: true,
            })
        });
        gone.collect()
    }

    /// Makes sure that the change brings no baselines of its own: it would be judged by what it says of itself.
    ///
    /// # Errors
    /// Where it does, with the files.
    pub(crate) fn vouches_for(&self, asked: &BaselineSpec) -> Result<(), Failure> {
        let folder = match &asked.store {
            BaselineStore::Folder(folder) => Some(folder),
            BaselineStore::Git(_) => None,
        };
        let files = std::iter::once(&asked.from).chain(&asked.fallback).filter_map(|from| match from {
            BaselineFrom::File(file) => Some(file),
            _ => None,
        });
        for place in folder.into_iter().chain(files) {
            let changed =
                self.repository.changed_since(&self.commit, Path::new(place)).map_err(|error| wrong(&error))?;
            let Some(first) = changed.first() else { continue };
            let more = if changed.len() > 1 { format!(" and {} more", changed.len() - 1) } else { String::new() };
            let words = format!("--trust base: this change alters the baselines in {place}: {first}{more}");
            return Err(Failure::usage(words)
                .hint("baselines are kept by the main branch's job: take these files out of the change"));
        }
        Ok(())
    }

    /// What a report says of these changes since the base.
    pub(crate) fn finding(&self, changes: Vec<SpecChange>) -> Option<Finding> {
        (!changes.is_empty()).then(|| Finding::SpecChanged { base: self.commit.clone(), changes })
    }

    /// The base commit, for messages.
    fn short(&self) -> &str {
        self.commit.get(..12).unwrap_or(&self.commit)
    }

    /// A head's file by its path from the root, links followed.
    fn path_of(&self, head: &GateSpec) -> Result<String, Failure> {
        self.repository
            .relative(Path::new(&head.file))
            .ok_or_else(|| Failure::usage(format!("--trust base: {} is not in the repository", head.file)))
    }

    /// A head with all that came along with it.
    fn resolved(&self, head: &GateSpec) -> Result<Resolved, Failure> {
        let text = files::read(Path::new(&head.file), files::SMALL)?;
        specs::resolve_text(&head.file, &text, self.overlays, self.console)
    }

    /// The name of the gate in a file of the base, where it can be resolved.
    fn name_in(&self, path: &str) -> Option<String> {
        let text = self.texts.get(path)?.as_ref().ok()?;
        specs::resolvable(path, text, self.overlays).map(|resolved| resolved.spec.name)
    }
}

/// The text that a file has at the commit the change forked off from; `None` where it has none.
pub(crate) fn text_at_base(path: &Path) -> Result<Option<String>, Failure> {
    let repository = surroundings::repository().map_err(|error| wrong(&error))?;
    let commit = repository.fork_point(&surroundings::of_job()).map_err(|error| wrong(&error))?;
    let bytes = repository.bytes_at(&commit, path).map_err(|error| wrong(&error))?;
    bytes.map(files::text).transpose().map_err(|error| Failure::unreadable(path, error))
}

fn wrong(error: &dyn Display) -> Failure {
    Failure::usage(format!("--trust base: failed to {error}"))
        .hint("the job needs a checkout with the commits back to the fork point, such as fetch-depth: 0")
}

/// Whether a file may hold a spec.
fn is_spec(path: &str) -> bool {
    path.ends_with(".yaml") || path.ends_with(".yml")
}
