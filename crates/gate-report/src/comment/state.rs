//! What the comment says, as a digest: it tells whether there is news.

use gate_model::Verdict;
use sha2::{Digest, Sha256};

use crate::openmetrics::outcome;
use crate::words::verdict_word;

/// How many bytes of the digest are shown, two digits each.
const BYTES: usize = 8;

/// The hidden text that stands for what a comment says: `<!-- gate:state run=N DIGEST -->`, without `run=N` where the
/// number of the run is not known.
///
/// DIGEST is 16 hexadecimal digits. They are equal where the gates, how each ended, their checks and what became of each
/// are equal; the numbers seen do not count, which are never twice the same.
#[must_use]
pub fn comment_state(verdicts: &[Verdict], run: Option<u64>) -> String {
    let run = run.map(|run| format!("run={run} ")).unwrap_or_default();
    format!("<!-- gate:state {run}{} -->", digest(verdicts))
}

fn digest(verdicts: &[Verdict]) -> String {
    let mut sha = Sha256::new();
    // Each text with its length before it, so that no two lists of texts are one.
    let mut write = |text: &str| {
        sha.update((text.len() as u64).to_le_bytes());
        sha.update(text.as_bytes());
    };
    for verdict in verdicts {
        write(&verdict.name);
        write(&verdict_word(verdict));
        write(&verdict.checks.len().to_string());
        for check in &verdict.checks {
            write(&check.check.scenario.to_string());
            write(&check.check.to_string());
            write(outcome(&check.outcome));
        }
    }
    sha.finalize().iter().take(BYTES).map(|byte| format!("{byte:02x}")).collect()
}
