//! A store that is a ref of the git repository. Neither checkout, index nor HEAD is touched.
//!
//! Where there is a remote `origin`, the ref there is the store: reading fetches it, saving pushes it. The ref of the
//! same name in the clone is what was last pushed, and the store itself where there is no remote.

use std::path::Path;
use std::time::Duration;

use crate::BaselineError;
use crate::git::{Blobs, Git, complaint, without_credentials};
use crate::repository::Repository;
use crate::store::{Changes, Found};

/// How often a save is tried while others save too.
const ATTEMPTS: u32 = 10;

/// Where the remote's commit is kept between fetches.
const SEEN: &str = "refs/gate-origin/";

/// Refs that mean something to git or to people: a store there would be checked out, or pushed over someone's work.
const RESERVED: [&str; 8] = [
    "refs/heads",
    "refs/tags",
    "refs/remotes",
    "refs/notes",
    "refs/replace",
    "refs/stash",
    "refs/bisect",
    "refs/gate-origin",
];

/// A ref with a tree of baselines.
#[derive(Debug)]
pub(crate) struct GitStore {
    git: Git,
    name: String,
    has_remote: bool,
    /// The commit that is read; absent of an empty store.
    commit: Option<String>,
    warning: Option<String>,
}

impl GitStore {
    pub(crate) fn open(name: &str, folder: &Path) -> Result<Self, BaselineError> {
        let unusable = |why: &str| BaselineError::Unusable {
            text: format!("git:{name}"),
            what: "a store",
            why: format!("{why}; `git:refs/gate/baselines` is the usual one"),
        };
        if !name.starts_with("refs/") {
            return Err(unusable("a store's ref stands below `refs/`"));
        }
        let is_below = |reserved: &str| name == reserved || name.starts_with(&format!("{reserved}/"));
        if let Some(reserved) = RESERVED.into_iter().find(|reserved| is_below(reserved)) {
            return Err(unusable(&format!("`{reserved}` is git's own")));
        }
        let git = Git::at(Repository::of(folder)?.root());
        if !git.ask(&["check-ref-format", name])?.status.success() {
            return Err(unusable("git takes it for no ref"));
        }
        let has_remote = git.text(&["remote"])?.lines().any(|remote| remote == "origin");
        let mut store = Self { git, name: name.to_owned(), has_remote, commit: None, warning: None };
        store.commit = if store.has_remote {
            match store.fetch() {
                Ok(commit) => commit,
                Err(error @ BaselineError::Remote { .. }) => {
                    store.warning = Some(format!("could not {error}: what this clone has of it was used"));
                    match store.resolve(&store.seen())? {
                        Some(commit) => Some(commit),
                        None => store.resolve(name)?,
                    }
                }
                Err(error) => return Err(error),
            }
        } else {
            store.resolve(name)?
        };
        Ok(store)
    }

    pub(crate) fn warning(&self) -> Option<&str> {
        self.warning.as_deref()
    }

    pub(crate) fn blobs(&self) -> Result<Blobs, BaselineError> {
        self.git.blobs()
    }

    pub(crate) fn gates(&self) -> Result<Vec<String>, BaselineError> {
        let Some(commit) = &self.commit else { return Ok(Vec::new()) };
        let text = self.git.text(&["ls-tree", "-d", "--name-only", "-z", "--full-tree", commit])?;
        Ok(text.split_terminator('\0').map(str::to_owned).collect())
    }

    pub(crate) fn files(&self, name: &str) -> Result<Vec<Found>, BaselineError> {
        match &self.commit {
            Some(commit) => self.tree(commit, &["--", &format!("{name}/")]),
            None => Ok(Vec::new()),
        }
    }

    /// Lays the changes over the store's newest state, again where others came first.
    pub(crate) fn apply(&mut self, changes: &Changes, about: &str) -> Result<(), BaselineError> {
        let mut added = Vec::new();
        for (path, bytes) in &changes.add {
            let command = self.git.command(&["hash-object", "-w", "--stdin"]);
            added.push((path.clone(), self.git.text_from(command, bytes)?.trim_end().to_owned()));
        }
        let mut message = String::new();
        for attempt in 1..=ATTEMPTS {
            let before = if self.has_remote { self.fetch()? } else { self.resolve(&self.name)? };
            let unpushed = if self.has_remote { self.unpushed(before.as_deref())? } else { Vec::new() };
            let all: Vec<_> = unpushed.iter().chain(&added).collect();
            let commit = self.commit_over(before.as_deref(), &all, &changes.remove, about)?;
            let published = match &before {
                Some(before) if *before == commit => Published::Done,
                _ if self.has_remote => self.push(&commit)?,
                _ => self.swap(before.as_deref(), &commit)?,
            };
            match published {
                Published::Done => {
                    if self.has_remote {
                        // Copies of what the remote has: where they cannot be set, the next fetch does it.
                        self.git.ask(&["update-ref", &self.seen(), &commit])?;
                        self.git.ask(&["update-ref", &self.name, &commit])?;
                    }
                    self.commit = Some(commit);
                    return Ok(());
                }
                Published::Overtaken(why) => message = why,
            }
            std::thread::sleep(pause(attempt, &commit));
        }
        Err(BaselineError::Overtaken { store: self.name.clone(), attempts: ATTEMPTS, message })
    }

    /// The remote's commit, with everything it needs; `None` where the remote has no such ref.
    fn fetch(&self) -> Result<Option<String>, BaselineError> {
        let refused = |message: String| BaselineError::Remote { does: "read", store: self.name.clone(), message };
        let listed = self.git.ask(&["ls-remote", "--quiet", "origin", &self.name])?;
        if !listed.status.success() {
            return Err(refused(complaint(&listed)));
        }
        // A pattern also finds refs that only end like it.
        let listed = String::from_utf8_lossy(&listed.stdout).into_owned();
        let mut refs = listed.lines().filter_map(|line| line.split_once('\t'));
        let Some((commit, _)) = refs.find(|(_, name)| *name == self.name) else {
            self.git.ask(&["update-ref", "-d", &self.seen()])?;
            return Ok(None);
        };
        if !self.has(commit)? {
            // Into no ref: several fetches at once would wait for its lock.
            let options = ["--quiet", "--no-tags", "--no-prune", "--no-recurse-submodules", "--no-write-fetch-head"];
            let fetched = self.git.ask(&[&["fetch", "--refmap="], &options[..], &["origin", &self.name]].concat())?;
            if !fetched.status.success() {
                return Err(refused(complaint(&fetched)));
            }
            if !self.has(commit)? {
                return Err(refused("it was replaced while it was read: try again".to_owned()));
            }
        }
        self.git.ask(&["update-ref", &self.seen(), commit])?;
        Ok(Some(commit.to_owned()))
    }

    /// Files that this clone's ref got while there was no remote, and the remote never had.
    fn unpushed(&self, remote: Option<&str>) -> Result<Vec<(String, String)>, BaselineError> {
        let Some(local) = self.resolve(&self.name)? else { return Ok(Vec::new()) };
        let shared = match remote {
            Some(remote) => self.git.line(&["merge-base", &local, remote])?,
            None => None,
        };
        let mut known = std::collections::HashSet::new();
        for commit in shared.as_deref().into_iter().chain(remote) {
            known.extend(self.tree(commit, &[])?.into_iter().map(|file| file.path));
        }
        let files = self.tree(&local, &[])?.into_iter().filter(|file| !known.contains(&file.path));
        Ok(files.filter_map(|file| Some((file.path, file.blob?))).collect())
    }

    /// The files of a commit, below a path where one is given.
    fn tree(&self, commit: &str, below: &[&str]) -> Result<Vec<Found>, BaselineError> {
        let text = self.git.text(&[&["ls-tree", "-r", "-l", "-z", "--full-tree", commit], below].concat())?;
        Ok(text.split_terminator('\0').filter_map(found).collect())
    }

    /// A commit of the tree before, with files added and removed; the same one where that changes nothing.
    fn commit_over(
        &self,
        before: Option<&str>,
        added: &[&(String, String)],
        removed: &[String],
        about: &str,
    ) -> Result<String, BaselineError> {
        let folder =
            tempfile::tempdir().map_err(|source| BaselineError::Write { path: std::env::temp_dir(), source })?;
        let index = folder.path().join("index");
        let command = |arguments: &[&str]| {
            let mut command = self.git.command(arguments);
            command.env("GIT_INDEX_FILE", &index);
            command
        };
        if let Some(before) = before {
            self.git.text_from(command(&["read-tree", before]), b"")?;
        }
        let none = "0".repeat(before.map_or(0, str::len));
        let removed = removed.iter().map(|path| format!("0 {none}\t{path}\0"));
        let added = added.iter().map(|(path, blob)| format!("100644 {blob}\t{path}\0"));
        let entries: String = removed.chain(added).collect();
        self.git.text_from(command(&["update-index", "-z", "--index-info"]), entries.as_bytes())?;
        let tree = self.git.text_from(command(&["write-tree"]), b"")?;
        let tree = tree.trim_end();
        let mut arguments = Vec::new();
        for (setting, fixed) in [("user.name", "user.name=gate"), ("user.email", "user.email=gate@localhost")] {
            if self.git.line(&["config", "--get", setting])?.is_none() {
                arguments.extend(["-c", fixed]);
            }
        }
        arguments.extend(["commit-tree", tree, "-m", about]);
        if let Some(before) = before {
            if self.git.text(&["rev-parse", "--verify", &format!("{before}^{{tree}}")])?.trim_end() == tree {
                return Ok(before.to_owned());
            }
            arguments.extend(["-p", before]);
        }
        Ok(self.git.text(&arguments)?.trim_end().to_owned())
    }

    fn push(&self, commit: &str) -> Result<Published, BaselineError> {
        let options = ["push", "--porcelain", "--no-verify", "--no-follow-tags", "--recurse-submodules=no", "origin"];
        let output = self.git.ask(&[&options[..], &[&format!("{commit}:{}", self.name)]].concat())?;
        if output.status.success() {
            return Ok(Published::Done);
        }
        let answer = String::from_utf8_lossy(&output.stdout).into_owned();
        let refusal = answer.lines().find_map(|line| line.strip_prefix("!\t")?.split_once('\t'));
        let message = match refusal {
            Some((_, why)) => without_credentials(why),
            None => complaint(&output),
        };
        // What git says where another push was first, or is under way.
        let overtaken =
            ["fetch first", "non-fast-forward", "lock", "failed to update ref", "already exists", "old value"];
        match refusal.is_some() && overtaken.iter().any(|words| message.contains(words)) {
            true => Ok(Published::Overtaken(message)),
            false => Err(BaselineError::Remote { does: "push", store: self.name.clone(), message }),
        }
    }

    /// Sets the clone's own ref, where it is still what it was.
    fn swap(&self, before: Option<&str>, commit: &str) -> Result<Published, BaselineError> {
        let output = self.git.ask(&["update-ref", &self.name, commit, before.unwrap_or_default()])?;
        let message = complaint(&output);
        match output.status.success() {
            true => Ok(Published::Done),
            false if message.contains("lock ref") => Ok(Published::Overtaken(message)),
            false => Err(BaselineError::Git { command: "update-ref".to_owned(), message }),
        }
    }

    fn seen(&self) -> String {
        format!("{SEEN}{}", self.name.trim_start_matches("refs/"))
    }

    fn resolve(&self, name: &str) -> Result<Option<String>, BaselineError> {
        self.git.line(&["rev-parse", "--verify", "--quiet", &format!("{name}^{{commit}}")])
    }

    fn has(&self, commit: &str) -> Result<bool, BaselineError> {
        Ok(self.git.ask(&["cat-file", "-e", &format!("{commit}^{{commit}}")])?.status.success())
    }
}

/// What became of a commit that should become the store's state.
enum Published {
    Done,
    /// Another one was first: why, as git says it.
    Overtaken(String),
}

/// One line of `ls-tree -l`: mode, kind, object, size, a tab, and the path.
fn found(line: &str) -> Option<Found> {
    let (facts, path) = line.split_once('\t')?;
    let mut facts = facts.split_ascii_whitespace();
    let (mode, _, blob, size) = (facts.next()?, facts.next()?, facts.next()?, facts.next()?);
    if !mode.starts_with("100") {
        return Some(Found::odd(path.to_owned(), "it is no plain file"));
    }
    Some(Found { path: path.to_owned(), size: size.parse().ok()?, blob: Some(blob.to_owned()), odd: None })
}

/// Longer each time, and not as long for two commits: those who save at once fall out of step.
fn pause(attempt: u32, commit: &str) -> Duration {
    let own = commit.get(..2).and_then(|digits| u64::from_str_radix(digits, 16).ok()).unwrap_or(0);
    Duration::from_millis(u64::from(attempt) * (20 + own / 2))
}
