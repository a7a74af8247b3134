//! The verdict as text for a terminal or a build log, at most 80 columns wide.

use gate_model::{CheckOutcome, CheckVerdict, Comparison, Importance, Side, Status, Verdict};

use crate::bounded::bounded;
use crate::escape::{self, shell_word};
use crate::facts::facts_text;
use crate::layout::{WIDTH, clip, wrap};
use crate::style::{Style, Tone};
use crate::words::{
    BOUNDS, SIMULATED, base, bounds, check_label, comparison, failures, further_findings, grouped, lead_sentence,
    needs_reason, of_scenario, outcome_word, p_value, reasons, report_only, rule_name, scenario_name, seen_change,
    seen_figure, since_known, suspect_sentence, verdict_word,
};

/// Where a reader finds more than the text has.
#[derive(Clone, Copy, Debug, Default)]
pub struct More<'a> {
    /// The path of the HTML report, or the command that writes one.
    pub report: Option<&'a str>,
    /// The path of the journal or of the verdict, from which `gate explain` says how a check was decided.
    pub run: Option<&'a str>,
}

/// The verdict: a table of every check, the facts of the run, why each check that did not pass did not, what else a
/// reader should know, and at the end, where a person looks first, how it ended and what matters.
#[must_use]
pub fn terminal(verdict: &Verdict, style: Style) -> String {
    terminal_with(verdict, style, More::default())
}

/// The same, and how to see more.
#[must_use]
pub fn terminal_with(verdict: &Verdict, style: Style, more: More<'_>) -> String {
    let one = std::slice::from_ref(verdict);
    bounded(one).iter().map(|verdict| text(verdict, style, more)).collect()
}

fn text(verdict: &Verdict, style: Style, more: More<'_>) -> String {
    let mut text = String::new();
    if verdict.simulated {
        text.push_str(&style.paint(Tone::Doubtful, SIMULATED));
        text.push_str("\n\n");
    }
    let heading = heading(verdict, style);
    text.push_str(&heading);
    text.push_str(&table(verdict, style));
    text.push_str(&facts_text(verdict));
    text.push_str(&reasons_text(verdict));
    text.push_str(&findings(verdict));
    text.push_str(&likely_causes(verdict));
    text.push('\n');
    text.push_str(&heading);
    text.push_str(&wrap("", 0, &escape::terminal(&lead_sentence(verdict))));
    if let Some(report_only) = report_only(verdict) {
        text.push_str(&format!("{}\n", style.paint(Tone::Doubtful, report_only)));
    }
    text.extend(failures(verdict).into_iter().map(|words| wrap("  - ", 4, &escape::terminal(&words))));
    text.extend(since_known(verdict).map(|words| wrap("", 0, &escape::terminal(&words))));
    text.push_str(&more_text(verdict, more));
    text
}

/// `gate chat: VIOLATED`.
fn heading(verdict: &Verdict, style: Style) -> String {
    let tone = match verdict.status {
        Status::Passed => Tone::Good,
        Status::PassedWithWarnings | Status::Inconclusive => Tone::Doubtful,
        Status::Violated | Status::CouldNotMeasure | Status::Interrupted => Tone::Bad,
    };
    let word = verdict_word(verdict);
    let name = clip(&escape::terminal(&verdict.name), WIDTH.saturating_sub("gate : ".len() + word.len()));
    format!("gate {name}: {}\n", style.paint(tone, &word))
}

/// How to see more: the report, and how the check was decided that matters most.
fn more_text(verdict: &Verdict, more: More<'_>) -> String {
    let report = more.report.map(|report| vec![report.to_owned()]);
    let explain = to_explain(verdict).zip(more.run).map(|(check, run)| {
        let [check, run] = [&check.check.to_string(), run].map(shell_word);
        vec![format!("gate explain {check}"), format!("--run {run}")]
    });
    [("report", report), ("explain", explain)].into_iter().filter_map(|(name, words)| typed(name, &words?)).collect()
}

/// What a person types, after its name: in one line, or where that is too long in one for each part. `None` where a part
/// does not fit a line, or has symbols that are not shown: changed it would be another command.
fn typed(name: &str, parts: &[String]) -> Option<String> {
    if parts.iter().any(|part| escape::terminal(part) != *part) {
        return None;
    }
    let start = format!("{name:<14}");
    let line = format!("{start}{}", parts.join(" "));
    if line.chars().count() <= WIDTH {
        return Some(line + "\n");
    }
    let lines = format!("{start}{}\n", parts.join(&format!(" \\\n{:16}", "")));
    lines.lines().all(|line| line.chars().count() <= WIDTH).then_some(lines)
}

/// The check that the build hangs on, or else the first that did not pass.
fn to_explain(verdict: &Verdict) -> Option<&CheckVerdict> {
    let is_judged = |check: &&CheckVerdict| needs_reason(check) && check.evidence.is_some();
    let is_cause = |check: &&CheckVerdict| {
        check.outcome == CheckOutcome::Violated && check.check.importance == Importance::Required
    };
    let checks = || verdict.checks.iter().filter(is_judged);
    checks().find(is_cause).or_else(|| checks().next())
}

/// One line of the table.
struct Row {
    label: String,
    seen: String,
    bounds: String,
    n: String,
    outcome: &'static str,
    tone: Tone,
    /// What it was compared with, on a line of its own.
    compared: Option<String>,
}

fn row(verdict: &CheckVerdict) -> Row {
    let evidence = verdict.evidence.as_ref();
    let tone = match verdict.outcome {
        CheckOutcome::Met => Tone::Good,
        CheckOutcome::Inconclusive { side: Side::Within } => Tone::Faint,
        CheckOutcome::Inconclusive { side: Side::Over | Side::Blind }
        | CheckOutcome::NoBaseline { .. }
        | CheckOutcome::Waived { .. } => Tone::Doubtful,
        CheckOutcome::Violated | CheckOutcome::CouldNotMeasure { .. } => match verdict.check.importance {
            Importance::Required => Tone::Bad,
            Importance::Preferred => Tone::Doubtful,
        },
    };
    Row {
        label: escape::terminal(&check_label(&verdict.check)).trim_end().to_owned(),
        seen: seen_figure(verdict).unwrap_or_else(|| "–".to_owned()),
        bounds: evidence.map(bounds).unwrap_or_default(),
        n: evidence.map_or_else(String::new, |evidence| grouped(evidence.n)),
        outcome: outcome_word(verdict),
        tone,
        compared: comparison(verdict).map(|comparison| compared(verdict, comparison)),
    }
}

/// `against 10 ms (5 runs), +41 % (at least +33 %), p = 0.0003 (STORED)`.
fn compared(verdict: &CheckVerdict, comparison: &Comparison) -> String {
    let p_fail = verdict.evidence.as_ref().and_then(|evidence| evidence.p_fail);
    let rule = rule_name(verdict.rule).map(|rule| format!(" ({rule})")).unwrap_or_default();
    let p = p_fail.map(|p_fail| format!("{}{rule}", p_value(p_fail)));
    let parts = [base(verdict, comparison), seen_change(verdict, comparison), p.unwrap_or_default()];
    let parts: Vec<String> = parts.into_iter().filter(|part| !part.is_empty()).collect();
    wrap("  against ", 10, &escape::terminal(&parts.join(", ")))
}

/// Every check, one line each; a label too long for its column has a line of its own.
fn table(verdict: &Verdict, style: Style) -> String {
    let rows: Vec<Row> = verdict.checks.iter().map(row).collect();
    if rows.is_empty() {
        return String::new();
    }
    let widest = |cell: fn(&Row) -> &str, least: usize| {
        rows.iter().map(|row| cell(row).chars().count()).max().unwrap_or(0).max(least)
    };
    let seen = widest(|row| &row.seen, "seen".len());
    let bounds = if rows.iter().any(|row| !row.bounds.is_empty()) {
        widest(|row| &row.bounds, BOUNDS.chars().count())
    } else {
        0
    };
    let n = widest(|row| &row.n, "n".len());
    let outcome = widest(|row| row.outcome, "outcome".len());
    // Two blanks between columns.
    let numbers = |bounds: usize| seen + n + outcome + 6 + if bounds > 0 { bounds + 2 } else { 0 };
    let least_label = 20;
    let bounds = if numbers(bounds) + least_label > WIDTH { 0 } else { bounds };
    let label = widest(|row| &row.label, "check".len()).min(WIDTH.saturating_sub(numbers(bounds)));
    let line = |row: &Row, outcome: &str| {
        let bounds = if bounds > 0 { format!("  {:<bounds$}", row.bounds) } else { String::new() };
        let start = if row.label.chars().count() > label {
            format!("{}\n{:label$}", clip(&row.label, WIDTH), "")
        } else {
            format!("{:<label$}", row.label)
        };
        format!("{start}  {:>seen$}{bounds}  {:>n$}  {outcome}\n", row.seen, row.n)
    };
    let head = Row {
        label: "check".to_owned(),
        seen: "seen".to_owned(),
        bounds: BOUNDS.to_owned(),
        n: "n".to_owned(),
        outcome: "outcome",
        tone: Tone::Faint,
        compared: None,
    };
    let mut text = format!("\n{}\n", style.paint(head.tone, line(&head, head.outcome).trim_end()));
    let several = verdict.run.scenarios.len() > 1;
    let mut scenario = None;
    for (row, check) in rows.iter().zip(&verdict.checks) {
        if several && scenario != Some(check.check.scenario) {
            scenario = Some(check.check.scenario);
            let name = verdict.run.scenarios.get(usize::from(check.check.scenario)).map_or("", String::as_str);
            text.push_str(&format!("{}:\n", clip(&escape::terminal(name), WIDTH - 1)));
        }
        text.push_str(&line(row, &style.paint(row.tone, row.outcome)));
        text.push_str(row.compared.as_deref().unwrap_or_default());
    }
    text
}

/// Why each check that did not pass did not.
fn reasons_text(verdict: &Verdict) -> String {
    let mut text = String::new();
    for (sentence, checks) in reasons(verdict) {
        text.push('\n');
        for check in checks {
            let place = check.check.place().map(|place| format!("{}:{}: ", place.file, place.line));
            let label = check_label(&check.check);
            let line = format!("{}{}{label}", place.unwrap_or_default(), of_scenario(verdict, check));
            text.push_str(&wrap("", 2, &escape::terminal(&line)));
        }
        text.push_str(&wrap("  ", 2, &escape::terminal(&sentence)));
    }
    text
}

/// What else a reader should know, one item each; what a reason already said is left out.
fn findings(verdict: &Verdict) -> String {
    let items = further_findings(verdict).into_iter().map(|(_, words)| wrap("  - ", 4, &escape::terminal(&words)));
    let items: String = items.collect();
    if items.is_empty() { items } else { format!("\nWorth knowing:\n{items}") }
}

/// What is likely to have made requests slower, with what shows it.
fn likely_causes(verdict: &Verdict) -> String {
    let items = verdict.suspects.iter().map(|suspect| {
        let of = scenario_name(verdict, suspect.scenario).map(|name| format!("{name}: ")).unwrap_or_default();
        let sentence = suspect_sentence(suspect);
        // The heading says already that it is a likely cause.
        let cause = sentence.split_once(": ").map_or(sentence.as_str(), |(_, cause)| cause);
        wrap("  - ", 4, &escape::terminal(&format!("{of}{cause}")))
    });
    let items: String = items.collect();
    if items.is_empty() { items } else { format!("\nLikely cause:\n{items}") }
}
