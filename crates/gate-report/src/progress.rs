//! One plain line about a running load.

use gate_model::{Nanos, Quantity};

use crate::escape;

/// Where a running load stands.
#[derive(Clone, Copy, Debug)]
pub struct Progress<'a> {
    /// The gate's name.
    pub name: &'a str,
    /// Since the first measured request was due.
    pub elapsed: Nanos,
    /// Measured requests sent.
    pub sent: u32,
    /// Measured requests planned.
    pub planned: u32,
    /// Requests that have not ended.
    pub in_flight: u32,
    /// Requests that ended `ok`.
    pub ok: u32,
    /// Requests that failed.
    pub errors: u32,
    /// The running median of TTFT; absent before the first `ok`.
    pub ttft_p50: Option<Nanos>,
}

/// The line, without its end: `chat 12 s: 24 of 50 sent, 2 in flight, 22 ok, 0 errors, ttft p50 310 ms`.
#[must_use]
pub fn progress_line(progress: &Progress<'_>) -> String {
    let Progress { name, elapsed, sent, planned, in_flight, ok, errors, ttft_p50 } = *progress;
    let name = escape::terminal(name);
    let seconds = elapsed.0.max(0) / 1_000_000_000;
    let errors = crate::layout::counted(errors as usize, "error");
    let ttft = ttft_p50.map(|p50| format!(", ttft p50 {}", Quantity::time(p50))).unwrap_or_default();
    format!("{name} {seconds} s: {sent} of {planned} sent, {in_flight} in flight, {ok} ok, {errors}{ttft}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_says_where_the_load_stands() {
        let mut progress = Progress {
            name: "chat",
            elapsed: Nanos::from_millis(12_400),
            sent: 24,
            planned: 50,
            in_flight: 2,
            ok: 21,
            errors: 1,
            ttft_p50: Some(Nanos::from_millis(310)),
        };
        assert_eq!(progress_line(&progress), "chat 12 s: 24 of 50 sent, 2 in flight, 21 ok, 1 error, ttft p50 310 ms");
        progress.ttft_p50 = None;
        progress.elapsed = Nanos(-5);
        assert_eq!(progress_line(&progress), "chat 0 s: 24 of 50 sent, 2 in flight, 21 ok, 1 error");
    }
}
