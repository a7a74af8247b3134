//! What `gate calibrate` found: as text, and as a block to paste into the spec.

mod yaml;

use gate_model::{Calibration, CheckCalibration, FalseAlarms, Quantity};

use crate::escape;
use crate::layout::{JOINT, counted, wrap};
use crate::style::{Style, Tone};
use crate::words::{check_label, figure, percent};
pub use yaml::calibration_yaml;
use yaml::proposals;

/// Runs without a false alarm that show, with 95 %, that fewer than one run in twenty has one: .95⁵⁹ < .05.
const RUNS_FOR_ONE_IN_TWENTY: u32 = 59;

/// What the runs say of the gate: how often it would be red for nothing, what each check finds, and how much runs
/// differ; at most 80 columns wide.
#[must_use]
pub fn calibration_text(calibration: &Calibration, style: Style) -> String {
    let name = escape::terminal(&calibration.name);
    let runs = counted(calibration.runs as usize, "run");
    let mut text = format!("gate {name}: calibrated by {runs} against an unchanged target\n\n");
    if calibration.left_out > 0 {
        let left_out = counted(calibration.left_out as usize, "further run");
        let sentence = format!("Left out: {left_out}, which could not be measured; `gate judge` says why.");
        text.push_str(&wrap("", 0, &sentence));
    }
    text.extend(alarms(&calibration.false_alarms).into_iter().map(|sentence| wrap("", 0, &sentence)));
    for check in &calibration.checks {
        let label = wrap("", 2, &escape::terminal(&check_label(&check.check)));
        text.push_str(&format!("\n{}\n", style.paint(Tone::Strong, label.trim_end())));
        text.extend(of_check(check).into_iter().map(|sentence| wrap("  ", 2, &escape::terminal(&sentence))));
    }
    text + &noise(calibration)
}

/// How often the gate is red for nothing.
fn alarms(alarms: &FalseAlarms) -> Vec<String> {
    let FalseAlarms { red, warned, of, lower, upper } = *alarms;
    let rate = match (red, of) {
        (_, 0) => return vec!["No run could be judged, so nothing is known of false alarms.".to_owned()],
        (0, _) => format!("the true rate is at most {}, at 95 %", percent(upper)),
        (red, of) if red == of => format!("the true rate is at least {}, at 95 %", percent(lower)),
        _ => format!("the true rate lies between {} and {}, at 95 % each side", percent(lower), percent(upper)),
    };
    let mut sentences =
        vec![format!("False alarms: {red} of {} red, and nothing had changed; {rate}.", counted(of as usize, "run"))];
    if warned > 0 {
        sentences.push(format!(
            "{} that something was seen beyond its limit and not proven.",
            if warned == 1 { "1 further run warned".to_owned() } else { format!("{warned} further runs warned") }
        ));
    }
    if red == 0 && of < RUNS_FOR_ONE_IN_TWENTY {
        sentences
            .push(format!("{RUNS_FOR_ONE_IN_TWENTY} runs without a red one would show that fewer than 1 in 20 is."));
    }
    sentences
}

fn of_check(check: &CheckCalibration) -> Vec<String> {
    let found = match check.detects {
        Some(detects) => format!("finds what is {} worse, and more, in 4 of 5 runs", percent(detects.abs())),
        None => "what it finds in 4 of 5 runs cannot be told".to_owned(),
    };
    let noise =
        check.noise.map(|noise| format!("runs differ by {} among themselves, the usual 5 % mixed in", percent(noise)));
    let proposed = proposals(check);
    let proposed = (!proposed.is_empty()).then(|| format!("proposed: {}", proposed.join(", and ")));
    [Some(seen(check)), noise, Some(found), proposed].into_iter().flatten().collect()
}

/// `seen 341–368 ms in 10 runs; never red, beyond its bound and not proven in 1`.
fn seen(check: &CheckCalibration) -> String {
    let red = if check.red == 0 { "never red".to_owned() } else { format!("red in {}", check.red) };
    let over = (check.over > 0).then(|| format!(", beyond its bound and not proven in {}", check.over));
    let judged = format!("{red}{}", over.unwrap_or_default());
    match range(&check.seen) {
        Some(range) => format!("seen {range} in {}; {judged}", counted(check.seen.len(), "run")),
        None => format!("no run has a value; {judged}"),
    }
}

/// The smallest and the largest: `341–368 ms`.
fn range(seen: &[Quantity]) -> Option<String> {
    let smallest = seen.iter().copied().min_by(|left, right| left.value.total_cmp(&right.value))?;
    let largest = seen.iter().copied().max_by(|left, right| left.value.total_cmp(&right.value))?;
    let (smallest, largest) = (figure(smallest), figure(largest));
    Some(match (smallest.split_once(' '), largest.split_once(' ')) {
        _ if smallest == largest => largest,
        (Some((number, unit)), Some((_, same))) if unit == same => format!("{number}–{largest}"),
        _ => format!("{smallest}–{largest}"),
    })
}

/// How much runs differ, metric by metric.
fn noise(calibration: &Calibration) -> String {
    let tau = &calibration.noise.tau;
    if tau.is_empty() {
        return String::new();
    }
    let each = tau.iter().map(|(metric, tau)| format!("{}{JOINT}{}", escape::terminal(metric), percent(*tau)));
    let each = each.collect::<Vec<_>>().join(", ");
    let heading = "How much runs are taken to differ from now on, beyond what so many requests differ anyway (kept beside \
                   the baselines): what these runs show, with the usual 5 % mixed in at the weight of four runs, and \
                   from fewer than 10 runs never less than that. Runs one after the other do not show what differs from \
                   day to day.";
    format!("\n{}{}", wrap("", 0, heading), wrap("  ", 2, &each))
}
