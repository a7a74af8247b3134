//! What can go wrong around stored runs.

use std::io;
use std::path::PathBuf;

use crate::Refused;

/// Why baselines could not be found, read, chosen or saved. No message holds a secret: credentials in URLs are out.
#[derive(Debug, thiserror::Error)]
pub enum BaselineError {
    /// There is no `git` command.
    #[error("find git: {0}; install it, or keep baselines in a folder and choose them with `last:N`")]
    NoGit(io::Error),
    /// The folder is in no git repository, or git refuses to work there.
    #[error("find a git repository at `{}`: {message}", folder.display())]
    NoRepository {
        /// The folder.
        folder: PathBuf,
        /// What git says.
        message: String,
    },
    /// Nothing was ever committed.
    #[error("find the commit: nothing is committed yet in `{}`", .0.display())]
    NoCommit(PathBuf),
    /// A git command failed.
    #[error("run `git {command}`: {message}")]
    Git {
        /// The subcommand.
        command: String,
        /// What git says.
        message: String,
    },
    /// No point where a change forked off, or no such branch: why, in words.
    #[error("find where the change forked off: {0}")]
    NoForkPoint(String),
    /// The same run is given twice.
    #[error("compare with `{one}` and `{other}`: both are run {id}, which counts once")]
    SameRun {
        /// The run's id.
        id: String,
        /// The file that was named first.
        one: String,
        /// The other file.
        other: String,
    },
    /// More files are given than a run is compared with.
    #[error("compare with {given} files: at most {most} are used")]
    TooMany {
        /// How many are given.
        given: usize,
        /// How many are used at most.
        most: usize,
    },
    /// A name or id that cannot be used, and why.
    #[error("use `{text}` as {what}: {why}")]
    Unusable {
        /// The text.
        text: String,
        /// What it should be.
        what: &'static str,
        /// What is wrong with it.
        why: String,
    },
    /// The run is none to compare later ones with.
    #[error("save run {0} as a baseline: it is not valid, so nothing can be compared with it; its verdict says why")]
    Invalid(String),
    /// The run is one shard's.
    #[error(
        "save run {id} as a baseline: it is shard {shard} of {of}; judge the journals of all shards together, and save \
         what they come to"
    )]
    OneShard {
        /// The run's id.
        id: String,
        /// Which shard.
        shard: u32,
        /// Of how many.
        of: u32,
    },
    /// The run has more requests than are kept whole.
    #[error(
        "save run {id} as a baseline: it has {requests} requests, and runs of more than {most} are not kept, since they \
         hold their requests in short; measure fewer to keep one"
    )]
    TooLong {
        /// The run's id.
        id: String,
        /// How many requests it has.
        requests: u32,
        /// How many a baseline has at most.
        most: u32,
    },
    /// The verdict is about another run.
    #[error("save run {run} as a baseline: the verdict is about run {verdict}")]
    OtherRun {
        /// The run.
        run: String,
        /// The verdict's run.
        verdict: String,
    },
    /// No baseline has this id.
    #[error("find baseline {id} of gate `{name}`: there is none; `gate baseline list` shows those there are")]
    NoSuchId {
        /// The gate.
        name: String,
        /// The id.
        id: String,
    },
    /// A file that cannot be used.
    #[error("use {0}")]
    Refused(Refused),
    /// A file or folder that cannot be read.
    #[error("read `{}`: {source}", path.display())]
    Read {
        /// The path.
        path: PathBuf,
        /// What went wrong.
        source: io::Error,
    },
    /// A file or folder that cannot be written.
    #[error("write `{}`: {source}", path.display())]
    Write {
        /// The path.
        path: PathBuf,
        /// What went wrong.
        source: io::Error,
    },
    /// The remote repository does not answer, or refuses.
    #[error("{does} `{store}` of the remote: {message}")]
    Remote {
        /// What was tried: `read` or `push`.
        does: &'static str,
        /// The ref.
        store: String,
        /// What git says.
        message: String,
    },
    /// Others saved at the same time, again and again.
    #[error("save to `{store}`: others came first {attempts} times ({message}); try again")]
    Overtaken {
        /// The ref.
        store: String,
        /// How often it was tried.
        attempts: u32,
        /// What git says.
        message: String,
    },
}
