//! What the template is given: the verdicts, and their words.

use gate_model::{CheckOutcome, CheckVerdict, ExitCode, Finding, Importance, Side, Status, Suspect, Verdict};
use minijinja::value::{Serde, Value};
use serde::Serialize;

use super::about::{About, Source};
use super::order::{badness, by_urgency, rank, urgency};
use super::reading::{legend, numbers, sample};
use super::room::Room;
use crate::command::{again, again_needs};
use crate::escape;
use crate::facts::{facts, listing, tables};
use crate::layout::{counted, listed};
use crate::sparkline::{READING, pictures};
use crate::words::{
    SIMULATED, base, bounds, capitalised, change_cell, check_label, comparison, decided, failures, finding_sentence,
    further_findings, grouped, is_doubtful, is_tested, lead_sentence, leads_with_waiver, marks, moved_sentence,
    needs_reason, of_scenario, outcome_word, power_sentences, reasons, report_only, rule_sentence, scenario_name,
    seen_figure, since, status_word, suspect_sentence, verdict_word, waiver,
};

/// How many checks the first line names beside its own.
const NAMED: usize = 3;

/// How many checks with one reason are named.
const PLACED: usize = 10;

/// The sentence of a job without any gate.
const NOTHING: &str = "Nothing was judged.";

/// How many sentences of advice there are at most.
const ADVICE: usize = 10;

/// How many likely causes are told.
const SUSPECTS: usize = 10;

/// How many characters of a commit's id tell it from any other.
const COMMIT: usize = 12;

/// All that the template may print; `templates/comment.md.j2` documents it.
#[derive(Clone, Serialize)]
pub(super) struct Context {
    simulated: Option<String>,
    icon: &'static str,
    title: String,
    lead: String,
    report_only: Option<&'static str>,
    also: Vec<String>,
    gates: Vec<Gate>,
    gates_left_out: usize,
    elsewhere: bool,
    advice: Vec<String>,
    commit: Option<String>,
    page: Option<Value>,
    artifact: Option<Value>,
}

#[derive(Clone, Serialize)]
struct Gate {
    verdict: Value,
    icon: &'static str,
    name: String,
    status: String,
    lead: String,
    numbers: Option<String>,
    doubtful: bool,
    since: Option<String>,
    simulated: bool,
    report_only: Option<&'static str>,
    failures: Vec<String>,
    loud: Vec<String>,
    compared: bool,
    several: bool,
    rows: Vec<Row>,
    rows_left_out: usize,
    legend: Vec<String>,
    reasons: Vec<Reason>,
    moved: Option<String>,
    suspects: Vec<String>,
    pictures: Option<String>,
    pictures_reading: &'static str,
    findings: Vec<String>,
    facts: Option<String>,
    tables: Vec<(&'static str, String)>,
    comparisons: Vec<(String, String)>,
    rules: Vec<String>,
    power: Vec<(String, String)>,
    command: Option<String>,
    command_needs: Vec<String>,
    sample: Option<String>,
    details_left_out: usize,
    #[serde(skip)]
    badness: u8,
}

#[derive(Clone, Serialize)]
struct Row {
    scenario: Option<String>,
    metric: String,
    required: String,
    marks: Vec<String>,
    seen: String,
    bounds: String,
    base: String,
    change: String,
    n: String,
    icon: &'static str,
    outcome: &'static str,
    passed: bool,
    #[serde(skip)]
    urgency: u8,
}

#[derive(Clone, Serialize)]
struct Reason {
    checks: Vec<PlacedCheck>,
    more: usize,
    sentence: String,
}

#[derive(Clone, Serialize)]
struct PlacedCheck {
    check: String,
    place: Option<String>,
}

impl Context {
    /// The words for all there is.
    pub(super) fn new(verdicts: &[Verdict], about: &About<'_>) -> Self {
        let worst = verdicts.iter().min_by_key(|verdict| badness(verdict));
        let simulated: Vec<String> =
            verdicts.iter().filter(|gate| gate.simulated).map(|gate| gate.name.clone()).collect();
        let simulated = match simulated.len() {
            0 => None,
            all if all == verdicts.len() => Some(SIMULATED.to_owned()),
            _ => Some(format!("SIMULATED ENGINE: the numbers of {} are not of a server", listed(&simulated, "and"))),
        };
        Self {
            simulated,
            icon: worst.map_or_else(|| about.unjudged.map_or("⚪", unjudged_icon), gate_icon),
            title: about.unjudged.filter(|_| worst.is_none()).map_or_else(|| title(verdicts, worst), unjudged),
            lead: worst.map_or_else(|| NOTHING.to_owned(), |worst| lead(verdicts, worst)),
            report_only: worst.and_then(report_only),
            also: also(verdicts, worst),
            gates: verdicts.iter().map(Gate::new).collect(),
            gates_left_out: 0,
            elsewhere: about.source == Source::Elsewhere,
            advice: about.advice.iter().take(ADVICE).cloned().collect(),
            commit: about.commit.map(|commit| commit.chars().take(COMMIT).collect()),
            page: about.page.and_then(|page| escape::markdown_link("job", page)).map(Value::from_safe_string),
            artifact: about
                .artifact
                .and_then(|page| escape::markdown_link("the job's artifacts", page))
                .map(Value::from_safe_string),
        }
    }

    /// The names of all that is given, for a template that asks for another one.
    pub(super) fn names(&self) -> Vec<String> {
        let mut names = Vec::new();
        collect(&serde_json::to_value(self).unwrap_or_default(), &mut names);
        names.sort();
        names.dedup();
        names
    }

    /// The words there is room for.
    pub(super) fn cut(&self, room: Room) -> Self {
        let (gates, gates_left_out) = kept(&self.gates, room.gates, |gate| gate.badness);
        let gates = gates.into_iter().map(|gate| gate.cut(room)).collect();
        Self { gates, gates_left_out, ..self.clone() }
    }
}

/// The names of all fields in the value.
fn collect(value: &serde_json::Value, names: &mut Vec<String>) {
    match value {
        serde_json::Value::Object(fields) => {
            for (name, value) in fields {
                names.push(name.clone());
                collect(value, names);
            }
        }
        serde_json::Value::Array(items) => items.iter().for_each(|item| collect(item, names)),
        _ => {}
    }
}

impl Gate {
    fn new(verdict: &Verdict) -> Self {
        Self {
            verdict: Value::from(Serde(verdict)),
            icon: gate_icon(verdict),
            name: verdict.name.clone(),
            status: verdict_word(verdict),
            lead: lead_sentence(verdict),
            numbers: numbers(verdict),
            doubtful: is_doubtful(verdict),
            since: since(verdict),
            simulated: verdict.simulated,
            report_only: report_only(verdict),
            failures: failures(verdict),
            loud: warnings(verdict),
            compared: verdict.checks.iter().any(|check| comparison(check).is_some()),
            several: verdict.run.scenarios.len() > 1,
            rows: by_urgency(verdict).into_iter().map(|check| Row::new(verdict, check)).collect(),
            rows_left_out: 0,
            legend: legend(verdict),
            moved: verdict.moved.as_ref().map(|moved| capitalised(&moved_sentence(moved)) + "."),
            suspects: suspects(verdict),
            pictures: pictures(verdict),
            pictures_reading: READING,
            reasons: reasons(verdict).into_iter().map(|reason| Reason::new(verdict, reason)).collect(),
            findings: further_findings(verdict)
                .into_iter()
                .filter_map(|(finding, words)| (!is_loud(finding)).then_some(words))
                .collect(),
            facts: Some(listing(facts(verdict))),
            tables: tables(verdict),
            comparisons: verdict.checks.iter().filter_map(compared).collect(),
            rules: rules(verdict),
            power: verdict.checks.iter().filter_map(power).collect(),
            command: again(verdict),
            command_needs: again_needs(verdict),
            sample: sample(verdict),
            details_left_out: 0,
            badness: badness(verdict),
        }
    }

    fn cut(&self, room: Room) -> Self {
        let (passed, other): (Vec<_>, Vec<_>) = self.rows.iter().enumerate().partition(|(_, row)| row.passed);
        let mut rows: Vec<(usize, &Row)> = passed.into_iter().take(room.passed).collect();
        rows.extend(kept(&other, room.rows, |(_, row)| row.urgency).0.into_iter().copied());
        rows.sort_by_key(|(place, _)| *place);
        let rows_left_out = self.rows.len() - rows.len();
        let lengths = [self.findings.len(), self.reasons.len(), self.comparisons.len(), self.power.len()];
        let mut cut = Self {
            rows: rows.into_iter().map(|(_, row)| row.clone()).collect(),
            rows_left_out,
            details_left_out: lengths.iter().map(|length| length.saturating_sub(room.details)).sum(),
            facts: self.facts.clone().filter(|_| room.details > 0),
            command: self.command.clone().filter(|_| room.details > 0),
            pictures: self.pictures.clone().filter(|_| room.details > 0),
            tables: self.tables.iter().filter(|_| room.details > 0).cloned().collect(),
            ..self.clone()
        };
        cut.failures.truncate(room.rows);
        cut.loud.truncate(room.rows);
        cut.reasons.truncate(room.details);
        cut.suspects.truncate(room.details);
        cut.command_needs.truncate(room.details);
        cut.findings.truncate(room.details);
        cut.comparisons.truncate(room.details);
        cut.rules.truncate(room.details);
        cut.power.truncate(room.details);
        cut
    }
}

impl Row {
    fn new(gate: &Verdict, verdict: &CheckVerdict) -> Self {
        let check = &verdict.check;
        let evidence = verdict.evidence.as_ref();
        let comparison = comparison(verdict);
        let change = comparison.map(|comparison| change_cell(verdict, comparison));
        Self {
            scenario: scenario_name(gate, check.scenario),
            metric: check.metric.to_string(),
            required: format!("{} {}", check.op.symbol(), check.bound_text),
            marks: marks(check).collect(),
            seen: seen_figure(verdict).map_or_else(|| "–".to_owned(), |seen| unbroken(&seen)),
            bounds: unbroken(&evidence.map(bounds).unwrap_or_default()),
            base: comparison.map(|comparison| unbroken(&base(verdict, comparison))).unwrap_or_default(),
            change: unbroken(&change.unwrap_or_default()),
            n: evidence.map_or_else(String::new, |evidence| grouped(evidence.n)),
            icon: outcome_icon(verdict),
            outcome: outcome_word(verdict),
            passed: !needs_reason(verdict),
            urgency: urgency(verdict),
        }
    }
}

/// Numbers that stay on the line of their units, in a narrow column too; what is beside them in brackets may go to the
/// next.
fn unbroken(text: &str) -> String {
    text.replace(' ', "\u{a0}").replace("\u{a0}(", " (")
}

impl Reason {
    /// One cause of very many checks names the first of them.
    fn new(gate: &Verdict, (sentence, checks): (String, Vec<&CheckVerdict>)) -> Self {
        let placed = checks.iter().take(PLACED).map(|verdict| PlacedCheck {
            check: of_scenario(gate, verdict) + &check_label(&verdict.check),
            place: verdict.check.place().map(|place| format!("{}:{}", place.file, place.line)),
        });
        Self { checks: placed.collect(), more: checks.len().saturating_sub(PLACED), sentence }
    }
}

/// The first line as plain words: how the job ended, and the sentence after it.
pub(crate) fn first_words(verdicts: &[Verdict]) -> String {
    let worst = verdicts.iter().min_by_key(|verdict| badness(verdict));
    let simulated = if verdicts.iter().any(|gate| gate.simulated) { "SIMULATED ENGINE: " } else { "" };
    let lead = worst.map_or_else(|| NOTHING.to_owned(), |worst| lead(verdicts, worst));
    format!("{simulated}{} – {lead}", title(verdicts, worst))
}

/// How the job ended: one gate by its name, several by how many ended in each way.
fn title(verdicts: &[Verdict], worst: Option<&Verdict>) -> String {
    let Some(worst) = worst else { return "No gate".to_owned() };
    if let [only] = verdicts {
        return format!("gate {}: {}", only.name, verdict_word(only));
    }
    let mut ways: Vec<(Status, usize)> = Vec::new();
    for verdict in verdicts {
        match ways.iter_mut().find(|(status, _)| *status == verdict.status) {
            Some((_, count)) => *count += 1,
            None => ways.push((verdict.status, 1)),
        }
    }
    ways.sort_by_key(|(status, _)| rank(*status));
    let word = status_word(worst.status);
    let ways = ways.iter().map(|(status, count)| format!("{count} {}", status_word(*status).to_lowercase()));
    format!("{}: {word} ({})", counted(verdicts.len(), "gate"), ways.collect::<Vec<_>>().join(", "))
}

/// The sentence of the worst gate, with its name where there are several.
fn lead(verdicts: &[Verdict], worst: &Verdict) -> String {
    let sentence = lead_sentence(worst);
    if verdicts.len() > 1 { format!("{}: {sentence}", worst.name) } else { sentence }
}

/// What the first line says beside its own sentence: which checks are seen beyond their limits and not proven, and
/// which are waived.
fn also(verdicts: &[Verdict], worst: Option<&Verdict>) -> Vec<String> {
    let of_gate = |verdict: &Verdict| if verdicts.len() > 1 { format!(" in {}", verdict.name) } else { String::new() };
    let (mut beyond, mut blind) = (Vec::new(), Vec::new());
    for verdict in verdicts {
        let side = |check: &CheckVerdict| match check.outcome {
            CheckOutcome::Inconclusive { side: Side::Blind } => Some(Side::Blind),
            CheckOutcome::Inconclusive { side: Side::Over } => Some(Side::Over),
            _ => None,
        };
        let required = verdict.checks.iter().filter(|check| check.check.importance == Importance::Required);
        let doubtful = required.filter_map(|check| Some((check, side(check)?)));
        // The worst gate's sentence names its first one already, if it is about these.
        let is_lead = worst.is_some_and(|worst| std::ptr::eq(worst, verdict))
            && matches!(verdict.status, Status::PassedWithWarnings | Status::Inconclusive);
        for (check, side) in doubtful.skip(usize::from(is_lead)) {
            let named = format!("`{}`{}", check.check, of_gate(verdict));
            if side == Side::Blind { blind.push(named) } else { beyond.push(named) }
        }
    }
    let some = |mut names: Vec<String>, words: &str| {
        let rest = names.len().saturating_sub(NAMED);
        names.truncate(NAMED);
        names.extend((rest > 0).then(|| format!("{rest} more")));
        (!names.is_empty()).then(|| format!("{words}: {}.", listed(&names, "and")))
    };
    let beyond = some(beyond, "Also seen beyond the limit and not proven");
    let blind = some(blind, "Runs differ too much to judge");
    let waivers = verdicts.iter().flat_map(|verdict| {
        // The worst gate's sentence may be its first waiver already.
        let is_lead = worst.is_some_and(|worst| std::ptr::eq(worst, verdict)) && leads_with_waiver(verdict);
        let waived = verdict.checks.iter().filter(|check| matches!(check.outcome, CheckOutcome::Waived { .. }));
        let waived = waived.skip(usize::from(is_lead));
        waived.map(move |check| format!("WAIVED{}: `{}`{}.", waiver(&check.check), check.check, of_gate(verdict)))
    });
    let mut waivers: Vec<String> = waivers.collect();
    let rest = waivers.len().saturating_sub(NAMED);
    waivers.truncate(NAMED);
    waivers.extend((rest > 0).then(|| format!("{rest} more WAIVED.")));
    beyond.into_iter().chain(blind).chain(waivers).collect()
}

/// What must not be folded away: a waiver that ended, a certificate that was not checked, and a change that loosens its
/// own gate. Every waiver stands in the first line.
fn warnings(verdict: &Verdict) -> Vec<String> {
    verdict.findings.iter().filter(|finding| is_loud(finding)).map(finding_sentence).collect()
}

fn is_loud(finding: &Finding) -> bool {
    match finding {
        Finding::InsecureTls | Finding::WaiverEnded { .. } => true,
        Finding::SpecChanged { changes, .. } => changes.iter().any(|change| change.loosens),
        _ => false,
    }
}

/// A check with how its comparison was decided, where it has one.
fn compared(verdict: &CheckVerdict) -> Option<(String, String)> {
    Some((verdict.check.to_string(), decided(verdict, comparison(verdict)?)))
}

/// How each rule that compared something decides, once each.
fn rules(verdict: &Verdict) -> Vec<String> {
    let mut rules: Vec<&'static str> = Vec::new();
    let compares = |check: &&CheckVerdict| comparison(check).is_some();
    for check in verdict.checks.iter().filter(compares).filter(|check| is_tested(check.rule)) {
        let sentence = rule_sentence(check.rule, check.check.decide);
        if !rules.contains(&sentence) {
            rules.push(sentence);
        }
    }
    rules.into_iter().map(capitalised).collect()
}

/// Likely causes of what is violated or over, each with its evidence.
fn suspects(verdict: &Verdict) -> Vec<String> {
    let sentence = |suspect: &Suspect| {
        let of = scenario_name(verdict, suspect.scenario).map(|name| format!("{name}: ")).unwrap_or_default();
        format!("{of}{}.", capitalised(&suspect_sentence(suspect)))
    };
    verdict.suspects.iter().take(SUSPECTS).map(sentence).collect()
}

/// A check with what it can find, where its rule has a power.
fn power(verdict: &CheckVerdict) -> Option<(String, String)> {
    verdict.power.as_ref()?;
    let sentences = power_sentences(&verdict.check, verdict.rule, verdict.power.as_ref());
    Some((verdict.check.to_string(), sentences.join("; ")))
}

/// The items there is room for, by rank and then in their own order, so that the worst comes first; and how many are left
/// out.
fn kept<T>(items: &[T], room: usize, rank: impl Fn(&T) -> u8) -> (Vec<&T>, usize) {
    let mut ranked: Vec<&T> = items.iter().collect();
    ranked.sort_by_key(|item| rank(item));
    ranked.truncate(room);
    (ranked, items.len().saturating_sub(room))
}

/// How a job is headed that judged nothing.
pub(super) fn unjudged(exit: ExitCode) -> String {
    let word = match exit {
        ExitCode::Usage => "WRONG SPEC OR COMMAND LINE",
        ExitCode::Internal => "INTERNAL ERROR",
        ExitCode::Interrupted => "INTERRUPTED",
        _ => "COULD NOT MEASURE",
    };
    format!("gate: {word}")
}

pub(super) fn unjudged_icon(exit: ExitCode) -> &'static str {
    match exit {
        ExitCode::Usage | ExitCode::Internal => "🔴",
        _ => "⚪",
    }
}

fn gate_icon(verdict: &Verdict) -> &'static str {
    match verdict.status {
        Status::Passed => "🟢",
        Status::PassedWithWarnings | Status::Inconclusive => "🟡",
        Status::Violated => "🔴",
        Status::CouldNotMeasure | Status::Interrupted => "⚪",
    }
}

fn outcome_icon(verdict: &CheckVerdict) -> &'static str {
    match verdict.outcome {
        CheckOutcome::Met | CheckOutcome::Inconclusive { side: Side::Within } => "🟢",
        CheckOutcome::CouldNotMeasure { .. } | CheckOutcome::NoBaseline { .. } => "⚪",
        CheckOutcome::Violated if verdict.check.importance == Importance::Required => "🔴",
        CheckOutcome::Violated
        | CheckOutcome::Inconclusive { side: Side::Over | Side::Blind }
        | CheckOutcome::Waived { .. } => "🟡",
    }
}
