//! The verdict as text for a terminal or a build log, at most 80 columns wide.

use gate_model::{CheckOutcome, CheckVerdict, Importance, Side, Status, Verdict};

use crate::escape;
use crate::facts::facts;
use crate::layout::{WIDTH, clip, counted, wrap};
use crate::style::{Style, Tone};
use crate::words::{
    SIMULATED, bounds, check_label, figure, finding_sentence, grouped, headline, outcome_sentence, outcome_word,
    status_word,
};

/// The verdict: how it ended and what matters, a table of every check, why each check that did not pass did not,
/// what else a reader should know, and the facts of the run.
#[must_use]
pub fn terminal(verdict: &Verdict, style: Style) -> String {
    let mut text = String::new();
    if verdict.simulated {
        text.push_str(&style.paint(Tone::Doubtful, SIMULATED));
        text.push_str("\n\n");
    }
    let tone = match verdict.status {
        Status::Passed => Tone::Good,
        Status::PassedWithWarnings | Status::Inconclusive => Tone::Doubtful,
        Status::Violated | Status::CouldNotMeasure | Status::Interrupted => Tone::Bad,
    };
    let name = escape::terminal(&verdict.name);
    text.push_str(&format!("gate {name}: {}\n", style.paint(tone, status_word(verdict.status))));
    text.push_str(&wrap("", 0, &escape::terminal(&what_matters(verdict))));
    text.push_str(&table(verdict, style));
    text.push_str(&reasons_text(verdict));
    text.push_str(&findings(verdict));
    text.push_str(&facts(verdict));
    text
}

/// The one sentence a person reads first.
fn what_matters(verdict: &Verdict) -> String {
    let required = |wanted: fn(&CheckOutcome) -> bool| {
        let checks = verdict.checks.iter().filter(move |check| check.check.importance == Importance::Required);
        checks.filter(move |check| wanted(&check.outcome)).collect::<Vec<_>>()
    };
    let unmeasured = || required(|outcome| matches!(outcome, CheckOutcome::CouldNotMeasure { .. }));
    let over = || required(|outcome| matches!(outcome, CheckOutcome::Inconclusive { side: Side::Over }));
    let first_of = |checks: &[&CheckVerdict]| match checks {
        [] => None,
        [only] => Some(headline(only)),
        [first, rest @ ..] => Some(format!("{} (and {})", headline(first), counted(rest.len(), "more check"))),
    };
    let sentence = match verdict.status {
        Status::Violated => first_of(&required(|outcome| matches!(outcome, CheckOutcome::Violated))),
        Status::CouldNotMeasure => unmeasured().first().map(|check| headline(check)),
        Status::Inconclusive => {
            first_of(&over()).map(|seen| format!("{seen}; not proven, and this gate counts that against the build"))
        }
        Status::Interrupted => Some(format!(
            "Stopped after {} of at most {}",
            grouped(verdict.run.sent),
            counted(verdict.run.planned as usize, "request")
        )),
        Status::PassedWithWarnings => first_of(&over())
            .map(|seen| {
                format!(
                    "{seen}; not proven, so the build passes (`outcomes: {{inconclusive: fail}}` decides it against)"
                )
            })
            .or_else(|| first_of(&unmeasured()))
            .or_else(|| preferred_sentence(verdict)),
        Status::Passed => None,
    };
    let mut sentence = sentence.unwrap_or_else(|| how_many_hold(verdict));
    if !sentence.ends_with('.') {
        sentence.push('.');
    }
    sentence
}

/// What a preferred check saw, where nothing required is in doubt.
fn preferred_sentence(verdict: &Verdict) -> Option<String> {
    let first = verdict.checks.iter().find(|check| needs_reason(check))?;
    Some(format!("{}; the check is only preferred, so the build passes", headline(first)))
}

fn how_many_hold(verdict: &Verdict) -> String {
    let proven = verdict.checks.iter().filter(|check| outcome_word(check) == "proven").count();
    let unproven = verdict.checks.iter().filter(|check| outcome_word(check) == "holds, not proven").count();
    let holding = verdict.checks.iter().filter(|check| !needs_reason(check)).count();
    let all = match (holding, verdict.checks.len()) {
        (1, 1) => "The check holds".to_owned(),
        (holding, count) if holding == count => format!("All {count} checks hold"),
        (holding, count) => format!("{holding} of {count} checks hold"),
    };
    let is = |count: usize, one: &str, several: &str| format!("{count} {}", if count == 1 { one } else { several });
    let proven = (proven > 0).then(|| is(proven, "is proven", "are proven"));
    let unproven =
        (unproven > 0).then(|| is(unproven, "needs more requests to be proven", "need more requests to be proven"));
    let how = [proven, unproven].into_iter().flatten().collect::<Vec<_>>();
    let how = if how.is_empty() { String::new() } else { format!("; {}", how.join(", ")) };
    format!("{all} on {}{how}", counted(verdict.run.judged as usize, "request"))
}

/// Whether the check did not pass.
fn needs_reason(verdict: &CheckVerdict) -> bool {
    !matches!(verdict.outcome, CheckOutcome::Met | CheckOutcome::Inconclusive { side: Side::Within })
}

/// One line of the table.
struct Row {
    label: String,
    seen: String,
    bounds: String,
    n: String,
    outcome: &'static str,
    tone: Tone,
}

fn row(verdict: &CheckVerdict) -> Row {
    let evidence = verdict.evidence.as_ref();
    let tone = match verdict.outcome {
        CheckOutcome::Met => Tone::Good,
        CheckOutcome::Inconclusive { side: Side::Within } => Tone::Faint,
        CheckOutcome::Inconclusive { side: Side::Over } => Tone::Doubtful,
        CheckOutcome::Violated | CheckOutcome::CouldNotMeasure { .. } => match verdict.check.importance {
            Importance::Required => Tone::Bad,
            Importance::Preferred => Tone::Doubtful,
        },
    };
    Row {
        label: escape::terminal(&check_label(&verdict.check)),
        seen: verdict.seen.map_or_else(|| "–".to_owned(), figure),
        bounds: evidence.map(bounds).unwrap_or_default(),
        n: evidence.map_or_else(String::new, |evidence| grouped(evidence.n)),
        outcome: outcome_word(verdict),
        tone,
    }
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
    let bounds =
        if rows.iter().any(|row| !row.bounds.is_empty()) { widest(|row| &row.bounds, "95 % bounds".len()) } else { 0 };
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
        bounds: "95 % bounds".to_owned(),
        n: "n".to_owned(),
        outcome: "outcome",
        tone: Tone::Faint,
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
    }
    text
}

/// Why each check that did not pass did not. One cause of several checks is said once.
fn reasons(verdict: &Verdict) -> Vec<(String, Vec<&CheckVerdict>)> {
    let mut said: Vec<(String, Vec<&CheckVerdict>)> = Vec::new();
    for check in verdict.checks.iter().filter(|check| needs_reason(check)) {
        let sentence = outcome_sentence(check);
        match said.iter_mut().find(|(same, _)| *same == sentence) {
            Some((_, checks)) => checks.push(check),
            None => said.push((sentence, vec![check])),
        }
    }
    said
}

fn reasons_text(verdict: &Verdict) -> String {
    let mut text = String::new();
    for (sentence, checks) in reasons(verdict) {
        text.push('\n');
        for check in checks {
            let place = check.check.place().map(|place| format!("{}:{}: ", place.file, place.line));
            let line = format!("{}{}", place.unwrap_or_default(), check_label(&check.check));
            text.push_str(&wrap("", 2, &escape::terminal(&line)));
        }
        text.push_str(&wrap("  ", 2, &escape::terminal(&sentence)));
    }
    text
}

/// What else a reader should know, one item each; what a reason already said is left out.
fn findings(verdict: &Verdict) -> String {
    let reasons = reasons(verdict);
    let items = verdict.findings.iter().map(finding_sentence);
    let new = items.filter(|item| !reasons.iter().any(|(reason, _)| reason.contains(item.as_str())));
    let items: String = new.map(|item| wrap("  - ", 4, &escape::terminal(&item))).collect();
    if items.is_empty() { items } else { format!("\nWorth knowing:\n{items}") }
}
