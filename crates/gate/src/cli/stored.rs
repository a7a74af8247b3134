//! What may be said of the stored runs.

use std::path::PathBuf;

use clap::{Args, Subcommand};

#[derive(Debug, Args)]
pub(crate) struct Baseline {
    #[command(subcommand)]
    pub(crate) action: BaselineAction,
}

#[derive(Debug, Subcommand)]
pub(crate) enum BaselineAction {
    /// List them, newest first; with --metric also how it moved.
    List {
        #[command(flatten)]
        shelves: Shelves,
        /// Draw the trend of this metric, such as `ttft.p50`.
        #[arg(long, value_name = "METRIC")]
        metric: Option<String>,
    },
    /// Show one.
    Show {
        /// Its id, or the beginning of it.
        #[arg(value_name = "ID")]
        id: String,
        #[command(flatten)]
        shelves: Shelves,
        /// Print it as JSON.
        #[arg(long)]
        json: bool,
    },
    /// Keep the run of a verdict, whether or not its checks passed.
    Save {
        /// A `verdict.json` whose journal is still there.
        #[arg(value_name = "VERDICT")]
        verdict: PathBuf,
        /// Where to keep it, instead of the spec's `baseline.store`.
        #[arg(long, value_name = "STORE")]
        store: Option<String>,
    },
    /// Protect one from `prune`, to be named by `baseline.from: pin:ID`.
    Pin {
        /// Its id, or the beginning of it.
        #[arg(value_name = "ID")]
        id: String,
        #[command(flatten)]
        shelves: Shelves,
        /// Protect it no more.
        #[arg(long)]
        remove: bool,
    },
    /// Remove old ones.
    Prune {
        #[command(flatten)]
        shelves: Shelves,
        /// Keep so many of each key, and those that are pinned.
        #[arg(long, value_name = "N")]
        keep: u32,
    },
}

/// Where baselines are looked for.
#[derive(Debug, Args)]
pub(crate) struct Shelves {
    /// The store: a folder, or `git:REF`. Without it, those of the specs in `gates/`, or `.gate/baselines`.
    #[arg(long, value_name = "STORE")]
    pub(crate) store: Option<String>,
    /// Only those of this gate.
    #[arg(long, value_name = "NAME")]
    pub(crate) gate: Option<String>,
}
