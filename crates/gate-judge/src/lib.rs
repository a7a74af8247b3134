//! A run and its spec to a verdict.
//!
//! ```text
//! Run ──reach──▶ the looks it reached ──course──▶ what every check showed at each ──family──▶ rulings
//!     ──validity──▶ what may be said of them ──judge──▶ Verdict
//! ```
//!
//! [`judge`] does all of it for a finished run, [`referee`] the middle of it while the load still runs, and
//! [`power`] says beforehand what can be found. Nothing here reads a file or a clock: equal runs give equal
//! verdicts.
//!
//! | rule | decides | by |
//! |---|---|---|
//! | [`Rule::Quantile`](gate_model::Rule) | `X.pQ`, `X.pQ.all` | exceedances of the limit, exact binomial with a design effect |
//! | [`Rule::Rate`](gate_model::Rule) | `attainment`; `errors.*` with `decide: evidence` | bad requests, the same |
//! | [`Rule::Extreme`](gate_model::Rule) | `X.max <`, `X.min >` | one request beyond the bound |
//! | [`Rule::Mean`](gate_model::Rule) | `X.mean` | Student's t with a design effect |
//! | [`Rule::Cluster`](gate_model::Rule) | `itl.pQ`, `icl.pQ` | the same, on each request's gaps beyond the limit |
//! | [`Rule::Counted`](gate_model::Rule) | `errors.*` | the count as it is, at the last look |
//! | [`Rule::Point`](gate_model::Rule) | what a run has once; `decide: point` | the number as it is, at the last look |
//!
//! The first five share an error probability of 5 % (a check's own where it has a `confidence`) among all required
//! checks of the gate (Holm), over all its looks (group-sequential boundaries, for means equal parts); the preferred
//! checks are a family of their own. A waived check keeps its share, and nothing follows from it.
#![forbid(unsafe_code)]

mod course;
mod facts;
mod family;
mod findings;
mod judge;
mod power;
mod reach;
mod rules;
mod scored;
mod validity;
mod waiver;

pub use course::{Adaptive, referee};
pub use findings::plan_notes;
pub use judge::judge;
pub use power::power;
pub use rules::rule;

/// The one-sided error probability of printed bounds, and of the statement that a check is met.
const BOUNDS_ALPHA: f64 = 0.05;
