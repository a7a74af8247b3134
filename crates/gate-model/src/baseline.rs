//! Baselines: runs kept to compare later ones with, how they are asked for, and which were used.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::{Finding, Run, Status};

/// The version of the baseline's file format.
pub const BASELINE_SCHEMA: u32 = 1;

/// Which of the stored baselines are asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BaselineFrom {
    /// The newest at or before the point where the change forked off, in first-parent order.
    #[default]
    MergeBase,
    /// The newest in a branch's first-parent history.
    Branch(String),
    /// The newest so many, whatever they were measured on.
    Last(u32),
    /// The one of this id.
    Pin(String),
    /// A file: a baseline, or a run's journal.
    File(String),
}

impl fmt::Display for BaselineFrom {
    /// As it is written in a spec, such as `merge-base` or `branch:main`.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::MergeBase => out.write_str("merge-base"),
            Self::Branch(name) => write!(out, "branch:{name}"),
            Self::Last(count) => write!(out, "last:{count}"),
            Self::Pin(id) => write!(out, "pin:{id}"),
            Self::File(path) => out.write_str(path),
        }
    }
}

/// Where baselines are kept.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BaselineStore {
    /// A folder.
    Folder(String),
    /// A ref of the git repository, such as `refs/gate/baselines`.
    Git(String),
}

impl fmt::Display for BaselineStore {
    /// As it is written in a spec: a folder's path, or `git:REF`.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Folder(path) => out.write_str(path),
            Self::Git(name) => write!(out, "git:{name}"),
        }
    }
}

/// The spec's `baseline` block.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct BaselineSpec {
    /// Which are asked for first.
    pub from: BaselineFrom,
    /// How many at most.
    pub runs: u32,
    /// Where they are kept.
    pub store: BaselineStore,
    /// A label for the runner and its hardware, which must agree.
    pub class: Option<String>,
    /// What is asked for, in this order, where there are none.
    pub fallback: Vec<BaselineFrom>,
}

impl Default for BaselineSpec {
    /// The newest five at or before the fork point, kept in `.gate/baselines`.
    fn default() -> Self {
        Self {
            from: BaselineFrom::MergeBase,
            runs: 5,
            store: BaselineStore::Folder(".gate/baselines".to_owned()),
            class: None,
            fallback: Vec::new(),
        }
    }
}

/// The commit that a run measured.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Commit {
    /// Its full id.
    pub id: String,
    /// Its first parents, nearest first, as far as the clone has them and at most 100.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parents: Vec<String>,
    /// The branch, where it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
    /// Whether tracked files differed from it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub dirty: bool,
}

/// What must agree between a run and its baselines: the load without its seed, the prompts, the dialect, the model, the
/// definitions, the token source, and the spec's `baseline.class`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BaselineKey {
    /// SHA-256 of the parts but for `tokens`, which only a run that has ended knows; in hexadecimal.
    pub hash: String,
    /// Each part by its path in the spec (`load.pace`, `prompts.cache`, `target.model`), as canonical JSON. `tokens` is
    /// the source of the output tokens.
    pub parts: BTreeMap<String, String>,
}

/// A run kept to compare later ones with.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Baseline {
    /// [`BASELINE_SCHEMA`].
    pub schema: u32,
    /// What must agree with it.
    pub key: BaselineKey,
    /// When it was saved, RFC 3339 in UTC.
    pub saved: String,
    /// How its gate ended. Only valid runs are kept.
    pub status: Status,
    /// The run: its header with commit and host, and its samples without the times of single tokens. Secrets are out.
    pub run: Run,
}

impl Baseline {
    /// Its id: the run's.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.run.header.run_id
    }
}

/// The run-to-run noise that `gate calibrate` found, kept beside the baselines of the same key.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Noise {
    /// Of how many runs.
    pub runs: u32,
    /// When, RFC 3339 in UTC.
    pub found: String,
    /// The standard deviation of a metric's logarithm from run to run, sampling error out, by metric (`ttft.p50`). From
    /// fewer than ten runs it is at least what is assumed without any: back to back they do not show what differs from
    /// day to day.
    pub tau: BTreeMap<String, f64>,
}

/// Something that is not the same in two places.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Difference {
    /// What.
    pub what: String,
    /// What the baseline has; empty where it has none.
    pub baseline: String,
    /// What the run has; empty where it has none.
    pub run: String,
}

/// Why there is no baseline.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NoBaseline {
    /// None was ever saved for this gate.
    NoneSaved,
    /// There are some, and none was measured as this run is: what the newest differs in.
    Differs(Vec<Difference>),
    /// There are some, and none at or before the fork point, or in the branch.
    NotInHistory {
        /// How many there are of the same key.
        saved: u32,
        /// Whether the clone's history is cut off, so that older ones cannot be placed.
        shallow: bool,
    },
    /// The folder is in no git repository, or git does not work here: why, in words.
    NoHistory(String),
    /// No branch to fork off from was found, or no common ancestor: why, in words.
    NoForkPoint(String),
    /// No baseline has this id.
    NoSuchId,
    /// The baselines have no value of this metric.
    NotMeasured,
    /// The file that was asked for is not there.
    NoSuchFile,
    /// There are some at or before the fork point, and all are of working trees that differed from their commit.
    Dirty {
        /// How many.
        saved: u32,
    },
    /// There are some, and none can be used: files are damaged, or are none.
    AllRefused {
        /// How many.
        files: u32,
    },
    /// It has fewer answered requests than anything can be compared with.
    TooFewOk {
        /// How many there are.
        ok: u32,
        /// How many are needed.
        needed: u32,
    },
    /// It is the run itself.
    Itself,
    /// Nobody looked: the run was judged without any.
    NotGiven,
}

/// A baseline that was used.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BaselineRef {
    /// Its id.
    pub id: String,
    /// The commit it was measured on.
    pub commit: Option<String>,
    /// When it started, RFC 3339 in UTC.
    pub started: String,
    /// How many first-parent commits before the one that was asked for; absent where that is no order of commits.
    pub behind: Option<u32>,
    /// The other tool's format it was imported from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub imported_from: Option<String>,
}

/// How baselines were chosen.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BaselineUse {
    /// Where they are kept; the files as given where the command line names them.
    pub store: String,
    /// What chose them; absent where nothing did.
    pub by: Option<BaselineFrom>,
    /// The commit that history was followed from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fork: Option<String>,
    /// Those chosen, newest first.
    pub used: Vec<BaselineRef>,
    /// What was asked for before, and why it gave none.
    pub passed_over: Vec<PassedOver>,
    /// What is noted of the environment and differs from the newest: it disables nothing.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub differences: Vec<Difference>,
}

/// A way to choose baselines that gave none.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PassedOver {
    /// What was asked for.
    pub from: BaselineFrom,
    /// Why there is none.
    pub why: NoBaseline,
}

/// What a run is compared with, beside its own reference arm.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Prior {
    /// The baselines, newest first.
    pub baselines: Vec<Baseline>,
    /// The newest of the same key, at most 20, newest first, whether or not they were chosen: for slow creep.
    pub history: Vec<Baseline>,
    /// What `gate calibrate` found.
    pub noise: Option<Noise>,
    /// How they were chosen; absent where nobody looked.
    pub chosen: Option<BaselineUse>,
    /// What was found before the run and belongs into its verdict: how the spec's checks were changed.
    pub notes: Vec<Finding>,
}
