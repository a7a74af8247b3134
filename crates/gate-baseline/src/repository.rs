//! The git repository around a folder: commits and their history.

use std::path::{Path, PathBuf};

use gate_model::Commit;

use crate::BaselineError;
use crate::git::Git;
use crate::lineage::{LONGEST, Lineage};

/// How many first parents a run keeps of its commit.
const PARENTS: usize = 100;

/// The largest file that is read from a commit.
const LARGEST_FILE: u64 = 16 << 20;

/// What CI says of the checkout, which git cannot know.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Surroundings {
    /// The branch that the change is to be merged into (`GITHUB_BASE_REF`, `CI_MERGE_REQUEST_TARGET_BRANCH_NAME`).
    pub base_branch: Option<String>,
    /// The branch that is checked out (`GITHUB_HEAD_REF` or `GITHUB_REF_NAME`, `CI_COMMIT_REF_NAME`).
    pub branch: Option<String>,
}

/// CI sets some of its variables to nothing where they don't apply.
fn named(branch: &Option<String>) -> Option<&str> {
    branch.as_deref().filter(|name| !name.is_empty())
}

/// A git repository with a checkout.
#[derive(Clone, Debug)]
pub struct Repository {
    git: Git,
    root: PathBuf,
}

impl Repository {
    /// The repository that a folder is in.
    ///
    /// # Errors
    /// Where there is none, or no `git` command, or git refuses to work there.
    pub fn of(folder: &Path) -> Result<Self, BaselineError> {
        let refused = |mut message: String| {
            if message.contains("dubious ownership") {
                message.push_str("; if it is yours: `git config --global --add safe.directory` with its path");
            }
            BaselineError::NoRepository { folder: folder.to_path_buf(), message }
        };
        let root = Git::at(folder).text(&["rev-parse", "--show-toplevel"]).map_err(|error| match error {
            BaselineError::Git { message, .. } => refused(message),
            other => other,
        })?;
        let root = PathBuf::from(root.trim_end_matches(['\n', '\r']));
        Ok(Self { git: Git::at(&root), root })
    }

    /// The folder of the checkout.
    #[must_use]
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Whether the clone's history is cut off.
    ///
    /// # Errors
    /// Where git fails.
    pub fn is_shallow(&self) -> Result<bool, BaselineError> {
        Ok(self.git.text(&["rev-parse", "--is-shallow-repository"])?.trim() == "true")
    }

    /// The commit that is checked out. Its branch is the one CI names, else git's own; a detached head has none.
    ///
    /// # Errors
    /// Where nothing is committed yet, or git fails.
    pub fn commit(&self, surroundings: &Surroundings) -> Result<Commit, BaselineError> {
        let id = self.head()?;
        let mut parents = self.first_parents(&id, PARENTS + 1)?.ids;
        parents.retain(|parent| *parent != id);
        parents.truncate(PARENTS);
        let branch = match named(&surroundings.branch) {
            Some(branch) => Some(branch.to_owned()),
            None => self.git.line(&["symbolic-ref", "--quiet", "--short", "HEAD"])?,
        };
        let changed = self.git.text(&["status", "--porcelain", "-z", "--untracked-files=no"])?;
        Ok(Commit { id, parents, branch, dirty: !changed.is_empty() })
    }

    /// Where the checkout forked off from the branch it is to be merged into: the newest commit they share. Without a
    /// named branch that is the remote's default one, else `main` or `master`; the remote's before the clone's own.
    ///
    /// # Errors
    /// [`BaselineError::NoForkPoint`] where the branch is not there, or nothing is shared as far as the clone knows.
    pub fn fork_point(&self, surroundings: &Surroundings) -> Result<String, BaselineError> {
        let head = self.head()?;
        let (base, why) = match self.base(named(&surroundings.base_branch)) {
            Ok(base) => {
                if let Some(fork) = self.git.line(&["merge-base", &head, &base])? {
                    return Ok(fork);
                }
                (Some(base), "nothing is shared with the base branch".to_owned())
            }
            Err(BaselineError::NoForkPoint(why)) => (None, why),
            Err(error) => return Err(error),
        };
        if let Some(fork) = self.merged_into(&head)? {
            return Ok(fork);
        }
        let hint = match (self.is_shallow()?, base) {
            (true, _) => " (the clone is shallow: check out with `fetch-depth: 0`, or `GIT_DEPTH: 0`)",
            (false, None) => " (fetch it before the gate runs)",
            (false, Some(_)) => "",
        };
        Err(BaselineError::NoForkPoint(why + hint))
    }

    /// The newest commit of a branch: the remote's, else the clone's own.
    ///
    /// # Errors
    /// [`BaselineError::NoForkPoint`] where there is no such branch in the clone.
    pub fn branch(&self, name: &str) -> Result<String, BaselineError> {
        for prefix in ["refs/remotes/origin/", "refs/heads/"] {
            if let Some(id) = self.at_ref(&format!("{prefix}{name}"))? {
                return Ok(id);
            }
        }
        Err(BaselineError::NoForkPoint(format!("branch `{name}` is not in this clone")))
    }

    /// The commit and its first parents, as far as the clone has them, and at most 10,000.
    ///
    /// # Errors
    /// Where git fails, or there is no such commit.
    pub fn lineage(&self, commit: &str) -> Result<Lineage, BaselineError> {
        self.first_parents(commit, LONGEST)
    }

    /// The text of a file in a commit, by its path from the root ([`Repository::relative`]); `None` where the commit
    /// has none of that path.
    ///
    /// # Errors
    /// Where it is no plain text file of at most 16 MiB, or git fails.
    pub fn file_at(&self, commit: &str, path: &str) -> Result<Option<String>, BaselineError> {
        let unusable =
            |why: &str| BaselineError::Unusable { text: path.to_owned(), what: "a file", why: why.to_owned() };
        let commit = self.checked(commit)?;
        let listed = self.git.text(&["ls-tree", "-l", "-z", "--full-tree", commit, "--", path])?;
        let Some((facts, found)) = listed.trim_end_matches('\0').split_once('\t') else { return Ok(None) };
        let facts: Vec<&str> = facts.split_ascii_whitespace().collect();
        let [mode, _, blob, size] = facts.as_slice() else { return Err(unusable("git lists it in no known way")) };
        if found != path || !mode.starts_with("100") {
            return Err(unusable("it is no plain file in that commit"));
        }
        if size.parse::<u64>().is_ok_and(|size| size > LARGEST_FILE) {
            return Err(unusable("it is larger than 16 MiB in that commit"));
        }
        let bytes = self.git.blobs()?.read(blob).map_err(|error| unusable(&error.to_string()))?;
        String::from_utf8(bytes).map(Some).map_err(|_| unusable("it is not UTF-8 in that commit"))
    }

    /// The bytes that a commit has for a path of the checkout, links within the commit followed; `None` where it has no
    /// file there, and of a path outside the repository.
    ///
    /// # Errors
    /// Where the file is larger than 16 MiB, the clone lacks the commit, or git fails.
    pub fn bytes_at(&self, commit: &str, path: &Path) -> Result<Option<Vec<u8>>, BaselineError> {
        let unusable = |why: String| BaselineError::Unusable { text: path.display().to_string(), what: "a file", why };
        let commit = self.checked(commit)?;
        if !self.has_commit(commit)? {
            let why = "this clone does not have it".to_owned();
            return Err(BaselineError::Unusable { text: commit.to_owned(), what: "a commit", why });
        }
        let is_plain = |path: &String| !path.split('/').any(|name| name == "..");
        // Git does not go up by a path: that is settled in the checkout.
        let Some(place) = self.as_written(path).filter(is_plain).or_else(|| self.relative(path)) else {
            return Ok(None);
        };
        if place.contains('\n') {
            return Err(unusable("its name has a line end in it".to_owned()));
        }
        let command = self.git.command(&["cat-file", "--batch-check", "--follow-symlinks"]);
        let told = self.git.text_from(command, format!("{commit}:{place}\n").as_bytes())?;
        // Whatever is missing, a folder, or leads out of the commit is told in other words.
        let [blob, "blob", size] = told.split_ascii_whitespace().collect::<Vec<_>>()[..] else { return Ok(None) };
        if size.parse::<u64>().is_ok_and(|size| size > LARGEST_FILE) {
            return Err(unusable("it is larger than 16 MiB in that commit".to_owned()));
        }
        self.git.blobs()?.read(blob).map(Some).map_err(|error| unusable(error.to_string()))
    }

    /// Whether the clone has a commit, by its full id.
    ///
    /// # Errors
    /// Where git cannot be run, or the text is no full id.
    pub fn has_commit(&self, commit: &str) -> Result<bool, BaselineError> {
        let object = format!("{}^{{commit}}", self.checked(commit)?);
        Ok(self.git.ask(&["cat-file", "-e", &object])?.status.success())
    }

    /// Whether git tracks a file, links followed. One outside the repository is not tracked, nor are git's own.
    ///
    /// # Errors
    /// Where git cannot be run.
    pub fn is_tracked(&self, file: &Path) -> Result<bool, BaselineError> {
        let Some(path) = file.canonicalize().ok().and_then(|file| self.relative(&file)) else { return Ok(false) };
        Ok(self.git.ask(&["ls-files", "--error-unmatch", "--", &path])?.status.success())
    }

    /// The folder that git looks for this repository's hooks in, whether or not it is there: `core.hooksPath`, else the
    /// one that all its worktrees share.
    ///
    /// # Errors
    /// Where git fails.
    pub fn hooks(&self) -> Result<PathBuf, BaselineError> {
        let folder = self.git.text_as_set(&["rev-parse", "--git-path", "hooks"])?;
        Ok(self.root.join(folder.trim_end_matches(['\n', '\r'])))
    }

    /// The folder that git keeps the repository in, with all its worktrees.
    ///
    /// # Errors
    /// Where git fails.
    pub fn common_folder(&self) -> Result<PathBuf, BaselineError> {
        let folder = self.git.text(&["rev-parse", "--git-common-dir"])?;
        Ok(self.root.join(folder.trim_end_matches(['\n', '\r'])))
    }

    /// The files directly in a folder of a commit, by their paths from the root; none where it has no such folder.
    ///
    /// # Errors
    /// Where git fails.
    pub fn files_at(&self, commit: &str, folder: &str) -> Result<Vec<String>, BaselineError> {
        let commit = self.checked(commit)?;
        let within = if folder.is_empty() { String::new() } else { format!("{}/", folder.trim_end_matches('/')) };
        let mut words = vec!["ls-tree", "--name-only", "-z", "--full-tree", commit];
        if !within.is_empty() {
            words.extend(["--", &within]);
        }
        let listed = self.git.text(&words)?;
        Ok(listed.split('\0').filter(|path| !path.is_empty()).map(str::to_owned).collect())
    }

    /// The YAML files of a commit, wherever they are, that hold this name of a gate; at most 100.
    ///
    /// # Errors
    /// Where git fails.
    pub fn specs_named(&self, commit: &str, name: &str) -> Result<Vec<String>, BaselineError> {
        let commit = self.checked(commit)?;
        let words = ["grep", "-l", "-z", "-I", "-F", "--full-name", "-e", name, commit];
        let output = self.git.ask(&words)?;
        // 1 says that nothing was found.
        if !matches!(output.status.code(), Some(0 | 1)) {
            return self.git.text(&words).map(|_| Vec::new());
        }
        let listed = String::from_utf8_lossy(&output.stdout).into_owned();
        let paths = listed.split('\0').filter_map(|found| found.split_once(':')).map(|(_, path)| path.to_owned());
        Ok(paths.filter(|path| path.ends_with(".yaml") || path.ends_with(".yml")).take(100).collect())
    }

    /// The tracked files of the checkout at or below a path, by that path and by where its links lead, that are not as
    /// they are in a commit. A path outside the repository has none.
    ///
    /// # Errors
    /// Where git fails.
    pub fn changed_since(&self, commit: &str, path: &Path) -> Result<Vec<String>, BaselineError> {
        let commit = self.checked(commit)?;
        let followed = path.canonicalize().ok().and_then(|path| self.as_written(&path));
        let mut changed = Vec::new();
        for path in [self.as_written(path), followed].into_iter().flatten() {
            // Git does not look below a submodule: what is in one has changed where it has.
            let path = self.submodule_of(&path)?.unwrap_or(path);
            let words = ["diff", "--name-only", "--no-renames", "--ignore-submodules=none", "-z", commit, "--", &path];
            changed.extend(self.git.text(&words)?.split_terminator('\0').map(str::to_owned));
        }
        changed.dedup();
        Ok(changed)
    }

    /// The submodule of the checkout that a path from the root is in, if it is in one.
    fn submodule_of(&self, path: &str) -> Result<Option<String>, BaselineError> {
        let folders = path.match_indices('/').filter_map(|(end, _)| path.get(..end)).chain([path]);
        for folder in folders {
            let listed = self.git.text(&["ls-files", "--stage", "-z", "--", folder])?;
            if listed.starts_with("160000 ") {
                return Ok(Some(folder.to_owned()));
            }
        }
        Ok(None)
    }

    /// A file's path from the root as it is written, links not followed; `None` where it lies outside.
    #[must_use]
    pub fn as_written(&self, path: &Path) -> Option<String> {
        let whole = std::path::absolute(path).ok()?;
        let roots = [Some(self.root.clone()), self.root.canonicalize().ok()];
        let below = roots.iter().flatten().find_map(|root| whole.strip_prefix(root).ok())?;
        let names: Option<Vec<&str>> = below.components().map(|name| name.as_os_str().to_str()).collect();
        Some(names?.join("/"))
    }

    /// A file's path from the root, as git writes it; `None` where it lies outside. The file itself may be a link.
    #[must_use]
    pub fn relative(&self, path: &Path) -> Option<String> {
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let whole = folder.canonicalize().ok()?.join(path.file_name()?);
        let below = whole.strip_prefix(self.root.canonicalize().ok()?).ok()?;
        let names: Option<Vec<&str>> = below.components().map(|name| name.as_os_str().to_str()).collect();
        Some(names?.join("/"))
    }

    fn head(&self) -> Result<String, BaselineError> {
        let head = self.git.line(&["rev-parse", "--verify", "--quiet", "HEAD^{commit}"])?;
        head.ok_or_else(|| BaselineError::NoCommit(self.root.clone()))
    }

    /// A commit's full id, safe as an argument.
    fn checked<'a>(&self, commit: &'a str) -> Result<&'a str, BaselineError> {
        let is_id = commit.len() >= 40 && commit.bytes().all(|digit| digit.is_ascii_hexdigit());
        is_id.then_some(commit).ok_or_else(|| BaselineError::Unusable {
            text: commit.chars().take(80).collect(),
            what: "a commit",
            why: "it is no full id".to_owned(),
        })
    }

    /// The newest commit of the branch that a change is to be merged into.
    fn base(&self, named: Option<&str>) -> Result<String, BaselineError> {
        if let Some(name) = named {
            return self.branch(name);
        }
        if let Some(name) = self.git.line(&["symbolic-ref", "--quiet", "refs/remotes/origin/HEAD"])?
            && let Some(id) = self.at_ref(&name)?
        {
            return Ok(id);
        }
        for name in ["main", "master"] {
            match self.branch(name) {
                Err(BaselineError::NoForkPoint(_)) => {}
                found => return found,
            }
        }
        Err(BaselineError::NoForkPoint("neither `origin/HEAD`, `main` nor `master` is in this clone".to_owned()))
    }

    /// The commit at a ref, taken literally: nothing in its name is read as an expression or an option.
    fn at_ref(&self, name: &str) -> Result<Option<String>, BaselineError> {
        let Some(id) = self.git.line(&["show-ref", "--verify", "--hash", "--", name])? else { return Ok(None) };
        self.git.line(&["rev-parse", "--verify", "--quiet", &format!("{id}^{{commit}}")])
    }

    /// GitHub checks out a merge of the change into its base, alone by default: its first parent is the base, even
    /// where the clone does not have that commit. Of no other merge is that known.
    fn merged_into(&self, head: &str) -> Result<Option<String>, BaselineError> {
        let names =
            self.git.text(&["for-each-ref", "--points-at", head, "--format=%(refname)", "refs/remotes/pull/"])?;
        if !names.lines().any(|name| name.ends_with("/merge")) {
            return Ok(None);
        }
        Ok(match self.parents(head)?.as_slice() {
            [base, _, ..] => Some(base.clone()),
            _ => None,
        })
    }

    /// A commit's parents as it names them, whether or not the clone has them.
    fn parents(&self, commit: &str) -> Result<Vec<String>, BaselineError> {
        let text = self.git.text(&["cat-file", "commit", commit])?;
        let head = text.lines().take_while(|line| !line.is_empty());
        Ok(head.filter_map(|line| line.strip_prefix("parent ")).map(str::to_owned).collect())
    }

    fn first_parents(&self, commit: &str, most: usize) -> Result<Lineage, BaselineError> {
        let commit = self.checked(commit)?;
        let known = self.git.ask(&["cat-file", "-e", commit])?.status.success();
        if !known {
            // The base of a merge that was checked out alone: its id is all there is.
            return Ok(Lineage { ids: vec![commit.to_owned()], is_cut: true });
        }
        let text = self.git.text(&["rev-list", "--first-parent", &format!("--max-count={most}"), commit, "--"])?;
        let mut ids: Vec<String> = text.lines().map(str::to_owned).collect();
        let beyond = match ids.last() {
            Some(last) if ids.len() < most => self.parents(last)?.into_iter().next(),
            _ => None,
        };
        // A clone that is cut off still names the parent of its oldest commit.
        let is_cut = beyond.is_some();
        ids.extend(beyond);
        Ok(Lineage { ids, is_cut })
    }
}
