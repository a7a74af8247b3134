//! What the page's template is given: the verdict in words and small pictures.

use std::collections::{BTreeMap, BTreeSet};

use gate_model::{Arm, CheckOutcome, CheckVerdict, Importance, Metric, Outcome, Run, Side, Status, Verdict};
use minijinja::value::Value;
use serde::Serialize;

use super::data::shown;
use super::scenario::{Scenario, scenarios};
use super::{Page, pictures};
use crate::bounded::TEXT;
use crate::command::{again, again_needs};
use crate::comment::by_urgency;
use crate::facts::{facts, tables};
use crate::layout::clip;
use crate::words::{
    SIMULATED, base, bounds, capitalised, change_cell, comparison, decided, failures, figure, finding_sentence,
    further_findings, grouped, is_tested, lead_sentence, marks, p_value, percent, power_sentences, reasons,
    report_only, rule_sentence, scenario_name, seen_figure, since_known, suspect_sentence, verdict_word, was_tested,
};
use crate::{ReportError, words};

/// How much of the resolved spec is shown, in bytes.
const SPEC: usize = 60_000;

/// All that the template may print of a page.
#[derive(Serialize)]
pub(super) struct View {
    title: String,
    gates: Vec<Gate>,
}

/// One gate.
#[derive(Serialize)]
pub(super) struct Gate {
    number: usize,
    name: String,
    status: String,
    tone: &'static str,
    lead: String,
    since: Option<String>,
    simulated: Option<&'static str>,
    report_only: Option<&'static str>,
    overrides: Vec<String>,
    several: bool,
    compared: bool,
    checks: Vec<Check>,
    suspects: Vec<String>,
    failures: Vec<String>,
    reasons: Vec<Reason>,
    findings: Vec<String>,
    found: Vec<String>,
    scenarios: Vec<Scenario>,
    has_run: bool,
    shown: Vec<String>,
    errors: Vec<Failure>,
    client: Vec<(&'static str, String, &'static str)>,
    figures: Vec<Figure>,
    has_reference: bool,
    facts: Vec<(&'static str, String)>,
    tables: Vec<(&'static str, String)>,
    comparisons: Vec<(String, String)>,
    rules: Vec<String>,
    power: Vec<(String, String)>,
    again: Option<String>,
    needs: Vec<String>,
    spec: Option<String>,
    environment: Vec<(&'static str, String)>,
    definitions: Vec<(String, String)>,
    journals: Vec<(String, String)>,
}

/// A row of the table of checks.
#[derive(Serialize)]
struct Check {
    scenario: Option<String>,
    outcome: &'static str,
    tone: &'static str,
    mark: &'static str,
    metric: String,
    required: String,
    marks: Vec<String>,
    seen: String,
    bounds: String,
    base: String,
    change: String,
    n: String,
    sure: String,
    picture: Option<Value>,
}

/// Why checks did not pass.
#[derive(Serialize)]
struct Reason {
    checks: Vec<String>,
    sentence: String,
}

/// How requests failed in one way.
#[derive(Serialize)]
struct Failure {
    arm: &'static str,
    outcome: &'static str,
    count: String,
    share: String,
    first: String,
}

/// A number of the run.
#[derive(Serialize)]
struct Figure {
    scenario: Option<String>,
    metric: String,
    target: String,
    reference: String,
    n: String,
}

impl View {
    /// The words for all there is, the worst gate first.
    pub(super) fn new(pages: &[Page<'_>]) -> Result<Self, ReportError> {
        let names: Vec<&str> = pages.iter().map(|page| page.verdict.name.as_str()).collect();
        let title = match pages {
            [one] => format!("gate {}: {}", one.verdict.name, verdict_word(one.verdict)),
            _ => format!("gates {}", names.join(", ")),
        };
        let gates = pages.iter().enumerate().map(|(number, page)| Gate::new(number, page));
        Ok(Self { title, gates: gates.collect::<Result<_, _>>()? })
    }
}

impl Gate {
    pub(super) fn new(number: usize, page: &Page<'_>) -> Result<Self, ReportError> {
        let Page { verdict, run } = *page;
        Ok(Self {
            number,
            name: verdict.name.clone(),
            status: verdict_word(verdict),
            tone: tone(verdict.status),
            lead: lead_sentence(verdict),
            since: since_known(verdict),
            simulated: verdict.simulated.then_some(SIMULATED),
            report_only: report_only(verdict),
            overrides: verdict
                .overrides
                .iter()
                .map(|one| format!("{} {} = {}", one.flag, one.path, one.value))
                .collect(),
            several: verdict.run.scenarios.len() > 1,
            compared: verdict.checks.iter().any(|check| comparison(check).is_some()),
            checks: by_urgency(verdict).into_iter().map(|check| Check::new(verdict, check)).collect(),
            suspects: verdict.suspects.iter().map(|one| capitalised(&suspect_sentence(one))).collect(),
            failures: failures(verdict),
            reasons: reasons(verdict)
                .into_iter()
                .map(|(sentence, checks)| Reason::new(verdict, sentence, &checks))
                .collect(),
            findings: further_findings(verdict)
                .into_iter()
                .map(|(finding, _)| capitalised(&finding_sentence(finding)))
                .collect(),
            found: found(verdict),
            scenarios: scenarios(number, verdict, run),
            has_run: run.is_some(),
            shown: run.map(|run| not_alike(verdict, run)).unwrap_or_default(),
            errors: run.map(errors).unwrap_or_default(),
            client: client(verdict),
            figures: figures(verdict),
            has_reference: verdict.run.reference.is_some(),
            facts: facts(verdict).into_iter().filter(|(_, fact)| !fact.is_empty()).collect(),
            tables: tables(verdict),
            comparisons: verdict
                .checks
                .iter()
                .filter_map(|check| Some((check.check.to_string(), decided(check, comparison(check)?))))
                .collect(),
            rules: rules(verdict),
            power: verdict.checks.iter().filter_map(power).collect(),
            again: again(verdict),
            needs: again_needs(verdict),
            spec: run.map(spec).transpose()?,
            environment: environment(verdict, run),
            definitions: definitions(verdict),
            journals: verdict.journals.iter().map(|one| (one.path.clone(), one.sha256.clone())).collect(),
        })
    }
}

fn tone(status: Status) -> &'static str {
    match status {
        Status::Passed => "good",
        Status::PassedWithWarnings | Status::Inconclusive => "doubt",
        Status::Violated => "bad",
        Status::CouldNotMeasure | Status::Interrupted => "none",
    }
}

impl Check {
    fn new(gate: &Verdict, verdict: &CheckVerdict) -> Self {
        let check = &verdict.check;
        let evidence = verdict.evidence.as_ref();
        let comparison = comparison(verdict);
        let (tone, mark) = match verdict.outcome {
            CheckOutcome::Met => ("good", "✓"),
            CheckOutcome::Inconclusive { side: Side::Within } => ("good", "≈"),
            CheckOutcome::Violated if check.importance == Importance::Required => ("bad", "✗"),
            CheckOutcome::Violated | CheckOutcome::Inconclusive { .. } | CheckOutcome::Waived { .. } => ("doubt", "!"),
            CheckOutcome::CouldNotMeasure { .. } | CheckOutcome::NoBaseline { .. } => ("none", "–"),
        };
        Self {
            scenario: scenario_name(gate, check.scenario),
            outcome: words::outcome_word(verdict),
            tone,
            mark,
            metric: check.metric.to_string(),
            required: format!("{} {}", check.op.symbol(), check.bound_text),
            marks: marks(check).collect(),
            seen: seen_figure(verdict).unwrap_or_else(|| "–".to_owned()),
            bounds: evidence.map(bounds).unwrap_or_default(),
            base: comparison.map(|comparison| base(verdict, comparison)).unwrap_or_default(),
            change: comparison.map(|comparison| change_cell(verdict, comparison)).unwrap_or_default(),
            n: evidence.map_or_else(String::new, |evidence| grouped(evidence.n)),
            sure: sure(verdict),
            picture: pictures::check(verdict).map(Value::from_safe_string),
        }
    }
}

/// How sure a check's outcome is: the probability that decided it, and its level.
fn sure(verdict: &CheckVerdict) -> String {
    let Some(evidence) = verdict.evidence.as_ref().filter(|_| was_tested(verdict)) else {
        return "compared as it is".to_owned();
    };
    let fail = evidence.p_fail.map(|p| (p, evidence.level));
    match (words::judged(&verdict.outcome), fail, evidence.p_pass) {
        (CheckOutcome::Met, _, Some(p)) => p_value(p),
        (_, Some((p, Some(level))), _) => {
            format!("{}, violated at {} or less", p_value(p), words::probability(level, 4))
        }
        (_, Some((p, None)), _) => p_value(p),
        _ => String::new(),
    }
}

impl Reason {
    fn new(gate: &Verdict, sentence: String, checks: &[&CheckVerdict]) -> Self {
        let named = checks.iter().map(|verdict| {
            let place = verdict.check.place().map(|place| format!(" ({}:{})", place.file, place.line));
            words::of_scenario(gate, verdict) + &words::check_label(&verdict.check) + &place.unwrap_or_default()
        });
        Self { checks: named.collect(), sentence }
    }
}

/// What patterns brought to light.
fn found(verdict: &Verdict) -> Vec<String> {
    let parts = verdict.run.parts.iter();
    let found = parts.flat_map(|part| part.found.iter().map(move |found| (part, found)));
    found
        .map(|(part, found)| {
            let name = scenario_name(verdict, part.scenario).map(|name| format!("{name}: ")).unwrap_or_default();
            capitalised(&format!("{name}{}", words::pattern_sentence(found)))
        })
        .collect()
}

/// One way that requests of an arm failed.
#[derive(Default)]
struct Way<'a> {
    count: u32,
    first: Option<&'a str>,
}

/// How requests failed, most frequent first, with the first message of each way.
fn errors(run: &Run) -> Vec<Failure> {
    let mut ways: BTreeMap<(Arm, &'static str), Way<'_>> = BTreeMap::new();
    let mut sent: BTreeMap<Arm, u32> = BTreeMap::new();
    for request in run.requests() {
        *sent.entry(request.arm()).or_default() += 1;
        if request.outcome() != Outcome::Ok {
            let way = ways.entry((request.arm(), request.outcome().name())).or_default();
            way.count += 1;
            way.first = way.first.or_else(|| request.sample().and_then(|sample| sample.error.as_deref()));
        }
    }
    let has_reference = sent.len() > 1;
    let mut ways: Vec<_> = ways.into_iter().collect();
    ways.sort_by_key(|(_, way)| std::cmp::Reverse(way.count));
    let failures = ways.into_iter().map(|((arm, outcome), Way { count, first })| Failure {
        arm: match (has_reference, arm) {
            (false, _) => "",
            (true, Arm::Target) => "target",
            (true, Arm::Reference) => "reference",
        },
        outcome,
        count: grouped(count),
        share: percent(f64::from(count) / f64::from(sent.get(&arm).copied().unwrap_or(1).max(1))),
        first: clip(first.unwrap_or_default(), TEXT),
    });
    failures.collect()
}

/// The client's own health, each number with what it tells.
fn client(verdict: &Verdict) -> Vec<(&'static str, String, &'static str)> {
    if verdict.run.imported_from.is_some() {
        return Vec::new();
    }
    let health = verdict.run.health;
    let time = |time| figure(gate_model::Quantity::time(time));
    let mut rows = Vec::new();
    if let Some((p50, p99)) = verdict.run.send_lag {
        let words = format!("p50 {}, p99 {}", time(p50), time(p99));
        rows.push(("late to send", words, "how long after its planned time a request was taken up"));
    }
    if let Some(delay) = health.read_delay_p95 {
        let what = "how long received bytes lay in the kernel before they were read; stamps are the kernel's, so it costs no accuracy";
        rows.push(("user − kernel", format!("p95 {}", time(delay)), what));
    }
    if let Some(share) = health.coalesced_share {
        let what = "content events that came in one read with later ones: their time is an upper bound";
        rows.push(("coalesced reads", percent(share), what));
    }
    if let Some(delay) = health.loop_delay_p95 {
        rows.push((
            "late to wake",
            format!("p95 {}", time(delay)),
            "how late the thread that reads answers woke for a timer of its own",
        ));
    }
    if let Some(share) = health.cpu_share {
        rows.push(("CPU", percent(share), "of the CPU that the client may use"));
    }
    if health.is_recorded() {
        rows.push(("clock", health.clock.name().to_owned(), "which clock stamped what was received"));
    }
    rows
}

/// Every figure of the run, those of both arms in one row.
fn figures(verdict: &Verdict) -> Vec<Figure> {
    let mut places: Vec<(u16, Metric)> = Vec::new();
    for one in &verdict.figures {
        if one.value.is_some() && !places.contains(&(one.scenario, one.metric)) {
            places.push((one.scenario, one.metric));
        }
    }
    let of = |arm: Arm, (scenario, metric): (u16, Metric)| {
        verdict.figures.iter().find(|one| one.arm == arm && one.scenario == scenario && one.metric == metric)
    };
    let cell = |one: Option<&gate_model::Figure>| one.and_then(|one| one.value).map_or_else(String::new, figure);
    let rows = places.into_iter().map(|place| {
        let target = of(Arm::Target, place);
        Figure {
            scenario: scenario_name(verdict, place.0),
            metric: place.1.to_string(),
            target: cell(target),
            reference: cell(of(Arm::Reference, place)),
            n: target.map_or_else(String::new, |one| grouped(one.n)),
        }
    });
    rows.collect()
}

/// In what the requests of the page are others than those that were judged.
fn not_alike(verdict: &Verdict, run: &Run) -> Vec<String> {
    let mut sentences = Vec::new();
    let arms = if verdict.run.reference.is_some() { 2 } else { 1 };
    let left_out = verdict.run.sent.saturating_sub(verdict.run.judged.saturating_mul(arms));
    if verdict.run.decided_at.is_some() && left_out > 0 {
        sentences.push(format!(
            "{} requests were sent and {} judged: others were still on their way when it was decided. The plots, the \
             request rows and the table have all that were sent; checks, distributions and figures those that were judged.",
            grouped(verdict.run.sent),
            grouped(verdict.run.sent - left_out)
        ));
    }
    let (kept, all) = shown(run);
    if kept < all {
        let count = |count: usize| grouped(u32::try_from(count).unwrap_or(u32::MAX));
        sentences.push(format!(
            "{} of {} requests are in this page: the first that failed, the slowest, and others evenly. \
             `gate report VERDICT --csv FILE` has all of them.",
            count(kept),
            count(all)
        ));
    }
    sentences
}

/// How each rule that tested something decides, once each.
fn rules(verdict: &Verdict) -> Vec<String> {
    let tested = verdict.checks.iter().filter(|check| is_tested(check.rule));
    let mut rules: Vec<&'static str> = Vec::new();
    for sentence in tested.map(|check| rule_sentence(check.rule, check.check.decide)) {
        if !rules.contains(&sentence) {
            rules.push(sentence);
        }
    }
    rules.into_iter().map(capitalised).collect()
}

fn power(verdict: &CheckVerdict) -> Option<(String, String)> {
    verdict.power.as_ref()?;
    let sentences = power_sentences(&verdict.check, verdict.rule, verdict.power.as_ref());
    Some((verdict.check.to_string(), sentences.join("; ")))
}

/// The spec as it was resolved, secrets out.
fn spec(run: &Run) -> Result<String, ReportError> {
    let text = serde_yaml::to_string(&run.header.spec)?;
    if text.len() <= SPEC {
        return Ok(text);
    }
    let mut kept = String::new();
    for line in text.lines().take_while(|line| line.len() < SPEC) {
        if kept.len() + line.len() > SPEC {
            break;
        }
        kept.push_str(line);
        kept.push('\n');
    }
    Ok(kept + "# the rest is left out: the journal's first line has all of it\n")
}

/// Where and with what the run was made.
fn environment(verdict: &Verdict, run: Option<&Run>) -> Vec<(&'static str, String)> {
    let facts = &verdict.run;
    let mut rows = vec![
        ("gate", format!("{}, definitions {}", verdict.gate, verdict.definitions)),
        ("started", facts.started.clone()),
        ("target", facts.target.clone()),
    ];
    rows.extend(facts.model.iter().map(|model| ("model", model.clone())));
    rows.extend(facts.reached.iter().map(|reached| ("address", reached.addresses.join(", "))));
    rows.extend(facts.reached.iter().filter_map(|reached| Some(("server", reached.server.clone()?))));
    if let Some(commit) = &facts.commit {
        let branch = commit.branch.as_ref().map(|branch| format!(" on {branch}")).unwrap_or_default();
        let dirty = if commit.dirty { ", with changes that were not committed" } else { "" };
        rows.push(("commit", format!("{}{branch}{dirty}", commit.id)));
    }
    if let Some(host) = run.and_then(|run| run.header.host.as_ref()) {
        rows.push(("system", host.system.clone()));
        rows.push(("cores", host.cores.to_string()));
        rows.extend(host.cpu.iter().map(|cpu| ("CPU", cpu.clone())));
        rows.extend(host.kernel.iter().map(|kernel| ("kernel", kernel.clone())));
        rows.extend(host.runner.iter().map(|runner| ("runner", runner.clone())));
        rows.extend(host.region.iter().map(|region| ("region", region.clone())));
    }
    rows.push(("percentiles", facts.percentiles.clone()));
    rows.push(("run", facts.run_id.clone()));
    rows
}

/// What every metric of the page means.
fn definitions(verdict: &Verdict) -> Vec<(String, String)> {
    let checks = verdict.checks.iter().map(|check| check.check.metric);
    let metrics = checks.chain(verdict.figures.iter().filter(|one| one.value.is_some()).map(|one| one.metric));
    let mut known: BTreeSet<&'static str> = BTreeSet::new();
    let mut definitions = Vec::new();
    for metric in metrics {
        if known.insert(metric.doc()) {
            definitions.push((metric.to_string(), metric.doc().to_owned()));
        }
    }
    definitions
}
