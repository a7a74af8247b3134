//! A store that is a ref of the git repository. Neither checkout, index nor HEAD is touched.
//!
//! Where there is a remote (`origin`, or the only one), the ref there is the store: reading fetches it, saving pushes it. The ref of the
//! same name in the clone is what was last pushed, and the store itself where there is no remote. What was kept in it
//! then is read beside what the remote has, and pushed with the next save.

use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::process::Output;
use std::time::Duration;

use crate::BaselineError;
use crate::git::{Blobs, Git, LONGEST_ANSWER, complaint, remote_words, without_credentials};
use crate::layout::{is_ours, no_store};
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
    /// The remote that is read and pushed to.
    remote: Option<String>,
    /// The commit that is read; absent of an empty store.
    commit: Option<String>,
    /// Files that the remote never had, which are read before its own.
    ours: Vec<Found>,
    warning: Option<String>,
}

impl GitStore {
    pub(crate) fn open(name: &str, folder: &Path) -> Result<Self, BaselineError> {
        let unusable = |why: &str| refused(name, why);
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
        let remotes = git.text(&["remote"])?;
        let remotes: Vec<&str> = remotes.lines().collect();
        let remote = match remotes.as_slice() {
            [only] => Some((*only).to_owned()),
            several => several.iter().find(|remote| **remote == "origin").map(|remote| (*remote).to_owned()),
        };
        let warning = (remote.is_none() && !remotes.is_empty()).then(|| {
            let remotes = remotes.join("`, `");
            format!("none of the remotes `{remotes}` is `origin`: nothing is read from them or pushed to them")
        });
        let name = name.to_owned();
        let mut store = Self { git, name, remote, commit: None, ours: Vec::new(), warning };
        let local = store.local()?;
        if store.remote.is_none() {
            store.commit = local;
            return Ok(store);
        }
        store.commit = match store.fetch() {
            Ok(commit) => commit,
            Err(error @ BaselineError::Remote { .. }) => {
                store.warning = Some(format!("could not {error}: what this clone has of it was used"));
                store.at(&store.seen())?
            }
            Err(error) => return Err(error),
        };
        store.ours = store.unpushed(local.as_deref(), store.commit.as_deref())?;
        Ok(store)
    }

    pub(crate) fn warning(&self) -> Option<&str> {
        self.warning.as_deref()
    }

    pub(crate) fn blobs(&self) -> Result<Blobs, BaselineError> {
        self.git.blobs()
    }

    pub(crate) fn gates(&self) -> Result<Vec<String>, BaselineError> {
        let mut gates: Vec<String> =
            self.ours.iter().filter_map(|file| Some(file.path.split_once('/')?.0.to_owned())).collect();
        if let Some(commit) = &self.commit {
            let text = self.git.text(&["ls-tree", "-d", "--name-only", "-z", "--full-tree", commit])?;
            gates.extend(text.split_terminator('\0').map(str::to_owned));
        }
        gates.sort();
        gates.dedup();
        Ok(gates)
    }

    pub(crate) fn files(&self, name: &str) -> Result<Vec<Found>, BaselineError> {
        let folder = format!("{name}/");
        let mut files: Vec<Found> = self.ours.iter().filter(|file| file.path.starts_with(&folder)).cloned().collect();
        if let Some(commit) = &self.commit {
            let ours: HashSet<&str> = self.ours.iter().map(|file| file.path.as_str()).collect();
            let theirs = self.tree(commit, &["--", &folder])?;
            files.extend(theirs.into_iter().filter(|file| !ours.contains(file.path.as_str())));
        }
        files.sort_by(|left, right| left.path.cmp(&right.path));
        Ok(files)
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
            let local = self.local()?;
            let (before, unpushed) = match self.remote.is_some() {
                true => {
                    let before = self.fetch()?;
                    let unpushed = self.unpushed(local.as_deref(), before.as_deref())?;
                    (before, unpushed)
                }
                false => (local, Vec::new()),
            };
            let removed = self.removed(changes, before.as_deref(), &unpushed)?;
            let unpushed = unpushed.into_iter().filter(|file| !removed.contains(&file.path));
            let unpushed = unpushed.filter_map(|file| Some((file.path, file.blob?)));
            let all: Vec<(String, String)> = unpushed.chain(added.iter().cloned()).collect();
            let commit = self.commit_over(before.as_deref(), &all, &removed, about)?;
            let published = match &before {
                Some(before) if *before == commit => Published::Done,
                _ if self.remote.is_some() => self.push(&commit)?,
                _ => self.swap(before.as_deref(), &commit)?,
            };
            match published {
                Published::Done => {
                    if self.remote.is_some() {
                        // Copies of what the remote has: where they cannot be set, the next fetch does it.
                        self.git.ask(&["update-ref", &self.seen(), &commit])?;
                        self.git.ask(&["update-ref", &self.name, &commit])?;
                    }
                    self.commit = Some(commit);
                    self.ours = Vec::new();
                    return Ok(());
                }
                Published::Overtaken(why) => message = why,
            }
            std::thread::sleep(pause(attempt, &commit));
        }
        Err(BaselineError::Overtaken { store: self.name.clone(), attempts: ATTEMPTS, message })
    }

    /// The paths that go: those that nobody keeps, whoever was first.
    fn removed(
        &self,
        changes: &Changes,
        before: Option<&str>,
        unpushed: &[Found],
    ) -> Result<Vec<String>, BaselineError> {
        if changes.remove.is_empty() {
            return Ok(Vec::new());
        }
        let mut there: HashSet<String> = unpushed.iter().map(|file| file.path.clone()).collect();
        if let Some(before) = before {
            there.extend(self.tree(before, &[])?.into_iter().map(|file| file.path));
        }
        let goes = |unless: &Option<String>| unless.as_ref().is_none_or(|unless| !there.contains(unless));
        Ok(changes.remove.iter().filter(|it| goes(&it.unless)).map(|it| it.path.clone()).collect())
    }

    fn remote_name(&self) -> &str {
        self.remote.as_deref().unwrap_or("origin")
    }

    /// The remote's commit, with everything it needs; `None` where the remote has no such ref.
    fn fetch(&self) -> Result<Option<String>, BaselineError> {
        let below = format!("{}/*", self.name);
        let above: Vec<&str> = self.above().collect();
        let listed = self.network(
            "read",
            &[&["ls-remote", "--quiet", self.remote_name(), &self.name, &below], &above[..]].concat(),
        )?;
        if !listed.status.success() {
            return Err(self.remote("read", complaint(&listed)));
        }
        // A pattern also finds refs that only end like it.
        let listed = String::from_utf8_lossy(&listed.stdout).into_owned();
        let refs = || listed.lines().filter_map(|line| line.split_once('\t'));
        self.check_room(refs().map(|(_, name)| name))?;
        let Some((commit, _)) = refs().find(|(_, name)| *name == self.name) else {
            self.git.ask(&["update-ref", "-d", &self.seen()])?;
            return Ok(None);
        };
        if self.kind(commit)?.is_none() {
            // Into no ref: several fetches at once would wait for its lock.
            let options = ["--quiet", "--no-tags", "--no-prune", "--no-recurse-submodules", "--no-write-fetch-head"];
            let arguments = [&["fetch", "--refmap="], &options[..], &[self.remote_name(), &self.name]].concat();
            let fetched = self.network("read", &arguments)?;
            if !fetched.status.success() {
                return Err(self.remote("read", complaint(&fetched)));
            }
            if self.kind(commit)?.is_none() {
                return Err(self.remote("read", "it was replaced while it was read: try again".to_owned()));
            }
        }
        self.check(commit, &format!(" at `{}`", self.remote_name()))?;
        self.git.ask(&["update-ref", &self.seen(), commit])?;
        Ok(Some(commit.to_owned()))
    }

    /// The commit of this clone's ref, where that is a store's.
    fn local(&self) -> Result<Option<String>, BaselineError> {
        let below = self.git.text(&["for-each-ref", "--format=%(refname)", &self.name])?;
        let mut taken: Vec<&str> = below.lines().collect();
        for name in self.above() {
            if self.at(name)?.is_some() {
                taken.push(name);
            }
        }
        self.check_room(taken.into_iter())?;
        let local = self.at(&self.name)?;
        local.iter().try_for_each(|commit| self.check(commit, " in this clone"))?;
        Ok(local)
    }

    /// Files that this clone's ref got while there was no remote, and the remote never had.
    fn unpushed(&self, local: Option<&str>, remote: Option<&str>) -> Result<Vec<Found>, BaselineError> {
        let Some(local) = local.filter(|local| Some(*local) != remote) else { return Ok(Vec::new()) };
        let shared = match remote {
            Some(remote) => self.git.line(&["merge-base", local, remote])?,
            None => None,
        };
        let mut known: HashMap<String, Option<String>> = HashMap::new();
        if let Some(shared) = &shared {
            known.extend(self.tree(shared, &[])?.into_iter().map(|file| (file.path, file.blob)));
        }
        let files = self.tree(local, &[])?;
        Ok(files.into_iter().filter(|file| file.blob.is_some() && known.get(&file.path) != Some(&file.blob)).collect())
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
        added: &[(String, String)],
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
        // Over no commit there is nothing to remove.
        let none = before.map(|before| "0".repeat(before.len()));
        let removed = removed.iter().filter_map(|path| Some(format!("0 {}\t{path}\0", none.as_ref()?)));
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
        let options =
            ["push", "--porcelain", "--no-verify", "--no-follow-tags", "--recurse-submodules=no", self.remote_name()];
        let output = self.network("push", &[&options[..], &[&format!("{commit}:{}", self.name)]].concat())?;
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
            false => {
                let words = remote_words(&output).map(|words| format!(": {words}")).unwrap_or_default();
                Err(self.remote("push", message + &words))
            }
        }
    }

    /// What a command that asks the remote ends with. A remote that hangs is one that does not answer.
    fn network(&self, does: &'static str, arguments: &[&str]) -> Result<Output, BaselineError> {
        let output = self.git.ask_within(arguments, LONGEST_ANSWER)?;
        output.ok_or_else(|| self.remote(does, format!("no answer within {} s", LONGEST_ANSWER.as_secs())))
    }

    fn remote(&self, does: &'static str, message: String) -> BaselineError {
        BaselineError::Remote { does, store: self.name.clone(), message }
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

    /// The object at a ref of this clone.
    fn at(&self, name: &str) -> Result<Option<String>, BaselineError> {
        self.git.line(&["show-ref", "--verify", "--hash", "--", name])
    }

    /// What an object is, where the clone has it.
    fn kind(&self, id: &str) -> Result<Option<String>, BaselineError> {
        self.git.line(&["cat-file", "-t", id])
    }

    /// What stands at the ref must be a commit that holds ours, or nothing: anything else is somebody's work.
    fn check(&self, id: &str, place: &str) -> Result<(), BaselineError> {
        let kind = self.kind(id)?.unwrap_or_default();
        if kind != "commit" {
            return Err(refused(&self.name, &format!("a {kind} stands there{place}, and no baselines")));
        }
        let files = self.tree(id, &[])?;
        match files.is_empty() || files.iter().any(|file| is_ours(&file.path)) {
            true => Ok(()),
            false => {
                Err(refused(&self.name, &format!("a commit of other things stands there{place}, and no baselines")))
            }
        }
    }

    /// The names that a ref of this name leaves no room for: git keeps refs like files in folders.
    fn above(&self) -> impl Iterator<Item = &str> {
        self.name.match_indices('/').skip(1).filter_map(|(end, _)| self.name.get(..end))
    }

    fn check_room<'a>(&self, mut names: impl Iterator<Item = &'a str>) -> Result<(), BaselineError> {
        let below = format!("{}/", self.name);
        match names.find(|name| name.starts_with(&below) || self.above().any(|above| above == *name)) {
            Some(name) => Err(refused(&self.name, &format!("there is a ref `{name}`, and git cannot have both"))),
            None => Ok(()),
        }
    }
}

fn refused(name: &str, why: &str) -> BaselineError {
    no_store(&format!("git:{name}"), &format!("{why}; `git:refs/gate/baselines` is the usual one"))
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
