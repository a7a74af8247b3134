//! A run, its spec and what was measured before to a verdict.
//!
//! ```text
//! Prior ──base──▶ what each check is compared with
//! Run ──reach──▶ its sections, and the looks each reached ──course──▶ what every check showed at each ──family──▶ rulings
//!     ──validity──▶ what may be said of them ──judge──▶ Verdict
//! ```
//!
//! Where scenarios run one after another each is a section of the run with looks of its own; the family is one, and its
//! rulings are made once, after the last section.
//!
//! [`judge`] does all of it for a finished run, [`referee`] the middle of it while the load still runs,
//! [`calibrate`] asks many runs of one and the same target how often it errs, and [`power`] says beforehand what can
//! be found. Nothing here reads a file or a clock: equal runs give equal verdicts.
//!
//! | rule | decides | by |
//! |---|---|---|
//! | [`Rule::Quantile`](gate_model::Rule) | `X.pQ`, `X.pQ.all` | exceedances of the limit, exact binomial with a design effect |
//! | [`Rule::Rate`](gate_model::Rule) | `attainment`; `errors.*` with `decide: evidence` | bad requests, the same |
//! | [`Rule::Extreme`](gate_model::Rule) | `X.max <`, `X.min >` | one request beyond the bound |
//! | [`Rule::Mean`](gate_model::Rule) | `X.mean` | Student's t with a design effect |
//! | [`Rule::Cluster`](gate_model::Rule) | `itl.pQ`, `icl.pQ` | the same, on each request's gaps beyond the limit |
//! | [`Rule::Paired`](gate_model::Rule) | `X.p50`, `X.mean` against the reference | signed ranks of the pairs' log ratios |
//! | [`Rule::PairedTail`](gate_model::Rule) | any other `X.pQ` against it | exceedances of its order statistic, beta-binomial |
//! | [`Rule::Stored`](gate_model::Rule) | numbers against stored runs | Student's t with the noise from run to run; amounts per second over as many requests as all runs have |
//! | [`Rule::StoredTail`](gate_model::Rule) | `X.pQ` from P90 on against them | exceedances of the pooled order statistic, less that noise |
//! | [`Rule::Bounds`](gate_model::Rule) | `X.pQ`, `X.mean` against a share of another scenario | the bounds of both |
//! | [`Rule::Knee`](gate_model::Rule) | `knee.rate` | where a ramp's requests stop being good: the rate of `ok` ones from there |
//! | [`Rule::Recovery`](gate_model::Rule) | `recovery` | where requests after a spike stop being slow |
//! | [`Rule::Trend`](gate_model::Rule) | `drift.*` | Mann and Kendall's test on the medians of equal stretches of time |
//! | [`Rule::Counted`](gate_model::Rule) | `errors.*`; shares against others | the count as it is, at the last look |
//! | [`Rule::Point`](gate_model::Rule) | what a run has once; `decide: point` | the number as it is, at the last look |
//!
//! All but the last two share an error probability of 5 % (a check's own where it has a `confidence`) among all required
//! checks of the gate (Holm), over all its looks: by group-sequential boundaries where requests are counted against a
//! fixed bound, else in equal parts, and at the last look alone against stored runs. The preferred checks are a family
//! of their own. A waived check keeps its share, and so does one without a baseline; nothing follows from it.
#![forbid(unsafe_code)]

mod allowance;
mod arms;
mod base;
mod bill;
mod calibrate;
mod course;
mod facts;
mod family;
mod findings;
mod judge;
mod lost;
mod patterns;
mod phases;
mod power;
mod reach;
mod requests;
mod rules;
mod scope;
mod scored;
mod scraped;
mod slow;
mod spreads;
mod suspects;
mod validity;
mod waiver;
mod windowed;

pub use calibrate::{CalibrateError, calibrate};
pub use course::{Adaptive, referee};
pub use facts::value;
pub use findings::plan_notes;
pub use judge::judge;
pub use power::{power, stored_detects};
pub use rules::rule;

/// The one-sided error probability of printed bounds, and of the statement that a check is met.
const BOUNDS_ALPHA: f64 = 0.05;
