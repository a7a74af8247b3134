//! One plain line about a running load.

use gate_model::{Nanos, Quantity};

use crate::escape;
use crate::live::LiveStage;
use crate::words::span;

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

/// Which part of a gate runs, and how long its schedule is.
#[derive(Clone, Copy, Debug, Default)]
pub struct ProgressPart<'a> {
    /// The scenarios of the section; absent where the gate has one kind of traffic.
    pub label: Option<&'a str>,
    /// Which section runs, from 1, and of how many; absent where there is one.
    pub section: Option<(u16, u16)>,
    /// How long the schedule is; absent of a closed loop.
    pub lasts: Option<Nanos>,
}

/// From how long a schedule on the line says how much of it is over.
const LONG: Nanos = Nanos::from_secs(120);

/// The line of a part of a gate: `nightly, ramp (1 of 3) 300 s, 33 % of 15 min: 24 of 50 sent, …`. How much of the
/// schedule is over is said of those of two minutes and more.
#[must_use]
pub fn part_progress_line(progress: &Progress<'_>, part: &ProgressPart<'_>) -> String {
    let name = named(progress.name, part);
    let line = progress_line(&Progress { name: &name, ..*progress });
    let Some(lasts) = part.lasts.filter(|lasts| *lasts >= LONG) else { return line };
    let share = (progress.elapsed.0.clamp(0, lasts.0) as f64 / lasts.0 as f64 * 100.0).floor();
    match line.strip_prefix(&escape::terminal(&name)).and_then(|rest| rest.split_once(" s: ")) {
        Some((elapsed, rest)) => {
            format!("{}{elapsed} s, {share:.0} % of {}: {rest}", escape::terminal(&name), span(lasts))
        }
        None => line,
    }
}

/// `nightly, ramp (1 of 3)`.
fn named(name: &str, part: &ProgressPart<'_>) -> String {
    let label = part.label.map(|label| format!(", {label}")).unwrap_or_default();
    let section = part.section.filter(|(_, of)| *of > 1).map(|(number, of)| format!(" ({number} of {of})"));
    format!("{name}{label}{}", section.unwrap_or_default())
}

/// The line of a part of a gate that does not measure yet: `chat: waiting for the target (5 s): GET /health answered 503`.
#[must_use]
pub fn stage_line(name: &str, part: &ProgressPart<'_>, stage: &LiveStage) -> String {
    let words = match stage {
        LiveStage::Starting => "starting".to_owned(),
        LiveStage::Waiting { elapsed, last } => {
            format!("waiting for the target ({:.0} s): {last}", elapsed.as_secs_f64())
        }
        LiveStage::Warmup { .. } => "warming up".to_owned(),
        LiveStage::Measuring { .. } => "measuring".to_owned(),
    };
    escape::terminal(&format!("{}: {words}", named(name, part)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_says_which_it_is_and_how_much_of_it_is_over() {
        let progress = Progress {
            name: "nightly",
            elapsed: Nanos::from_secs(300),
            sent: 24,
            planned: 50,
            in_flight: 2,
            ok: 22,
            errors: 0,
            ttft_p50: None,
        };
        let line = |label, section, lasts| part_progress_line(&progress, &ProgressPart { label, section, lasts });
        let rest = "24 of 50 sent, 2 in flight, 22 ok, 0 errors";
        let long = Some(Nanos::from_secs(900));
        assert_eq!(line(None, None, None), format!("nightly 300 s: {rest}"));
        assert_eq!(line(None, Some((1, 1)), Some(Nanos::from_secs(60))), format!("nightly 300 s: {rest}"));
        assert_eq!(line(None, None, long), format!("nightly 300 s, 33 % of 15 min: {rest}"));
        assert_eq!(
            line(Some("ramp"), Some((1, 3)), long),
            format!("nightly, ramp (1 of 3) 300 s, 33 % of 15 min: {rest}")
        );
        assert_eq!(
            line(Some("chat and batch"), None, Some(Nanos::from_secs(240))),
            format!("nightly, chat and batch 300 s, 100 % of 4 min: {rest}")
        );
        let label = Some("a s: b\u{1b}[31m");
        let hostile = part_progress_line(&progress, &ProgressPart { label, section: None, lasts: long });
        assert_eq!(hostile, format!("nightly, a s: b 300 s, 33 % of 15 min: {rest}"));
    }

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
