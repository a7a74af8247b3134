//! What people and machines read: a [`Verdict`](gate_model::Verdict), a [`Run`](gate_model::Run), a plan, a
//! [`Calibration`](gate_model::Calibration), a list of baselines or of diagnostics becomes text.
//!
//! Everything here is a pure function. Nothing is judged and nothing is written: the verdict was computed once, and
//! each report only words it for its reader. Every text from outside passes the [`escape`] function of its target.

mod annotations;
mod baselines;
mod bounded;
mod calibration;
mod check_run;
mod command;
mod comment;
mod csv;
mod diagnostics;
mod error;
pub mod escape;
mod explain;
mod facts;
mod gitlab;
mod html;
mod json;
mod junit;
mod layout;
mod live;
mod openmetrics;
mod plan;
mod progress;
mod samples;
mod sparkline;
mod style;
mod terminal;
mod versus;
pub mod words;

pub use annotations::{annotations, diagnostic_annotations, diagnostic_sentence};
pub use baselines::{BaselineRow, baseline_list, baseline_show};
pub use calibration::{calibration_text, calibration_yaml};
pub use check_run::{check_summary, check_title};
pub use comment::{
    About, CommentTemplate, Source, comment, comment_by, comment_marker, comment_state, summary, unjudged_heading,
};
pub use csv::requests_csv;
pub use diagnostics::diagnostics;
pub use error::ReportError;
pub use explain::{explain, explain_check, explain_errors, explain_series, explain_series_on};
pub use gitlab::{gitlab_annotations, load_performance};
pub use html::{Page, html, html_versus};
pub use json::verdict_json;
pub use junit::{junit, junit_unresolved};
pub use live::{LiveBlock, LiveLook, LiveScenario, LiveStage, live_block, live_columns, live_end};
pub use openmetrics::openmetrics;
pub use plan::{PlanTotals, PlanView, kubernetes, plan_json, plan_text};
pub use progress::{Progress, ProgressPart, part_progress_line, progress_line, stage_line};
pub use samples::samples;
pub use style::Style;
pub use terminal::{More, terminal, terminal_with};
pub use versus::{versus_markdown, versus_text};
pub use words::{end_reason, stored_runs};
