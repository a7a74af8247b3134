//! The verdicts as a JUnit file, for the CI systems' own test views.

mod complete;
mod unresolved;

use std::collections::HashSet;

use gate_model::{CheckOutcome, CheckVerdict, Importance, Nanos, Policy, Rule, Side, Verdict};
use junit_report::{Duration, OffsetDateTime, ReportBuilder, TestCase, TestCaseBuilder, TestSuite};

use crate::ReportError;
use crate::bounded::bounded;
use crate::escape::{self, xml_text};
use crate::facts::facts_text;
use crate::layout::counted;
use crate::words::{
    BOUNDS, SIMULATED, allowance, base, beyond_word, bounds, change_cell, check_label, comparison, found, grouped,
    likelihood, moved_sentence, number, outcome_sentence, report_only, runs_differ, seen_figure, why_sentence,
};
use complete::{Completion, complete};
pub use unresolved::junit_unresolved;

/// The verdicts as JUnit XML: one suite per scenario, one testcase per check, declared and implied alike.
///
/// Met and within pass; violated is a `failure`, could not measure an `error`, over is `skipped` with its reason,
/// or a `failure` where that costs the build, both of type `inconclusive`; so is what runs that differ too much leave
/// open, and no baseline, which is skipped as `no_baseline`. A preferred check that did not pass is
/// `skipped`, and so is a waived one, with the waiver. A suite's time is that of its scenario's section, and each testcase has an equal share of it, so that readers that add the
/// testcases up get that time.
///
/// # Errors
/// [`ReportError`], where the XML cannot be built.
pub fn junit(verdicts: &[Verdict]) -> Result<String, ReportError> {
    let verdicts = bounded(verdicts);
    let mut names = HashSet::new();
    let mut report = ReportBuilder::new();
    let mut completions = Vec::new();
    for verdict in verdicts.iter() {
        let scenarios = scenarios(verdict);
        let last = scenarios.len().saturating_sub(1);
        for (scenario, name) in scenarios {
            let classname = classname(verdict, &name);
            // A scenario that has no name is no reason to lose its checks.
            let belongs = |check: &&CheckVerdict| usize::from(check.check.scenario).min(last) == scenario;
            let checks = verdict.checks.iter().filter(belongs);
            let checks: Vec<&CheckVerdict> = checks.collect();
            let times = shares(duration(verdict, scenario), checks.len());
            let cases = checks.iter().zip(times).map(|(check, time)| {
                let name = unique(&mut names, &classname, &one_line(&check_label(&check.check)));
                testcase(verdict, check, name, &classname, time)
            });
            let suite = suite(verdict, &classname, cases.collect());
            completions.push(Completion::of(verdict, &checks, suite.skipped()));
            report.add_testsuite(suite);
        }
    }
    let mut built = Vec::new();
    report.build().write_xml(&mut built)?;
    complete(&String::from_utf8(built)?, &completions)
}

/// The scenarios with their index; a verdict without any has one, named as the gate.
fn scenarios(verdict: &Verdict) -> Vec<(usize, String)> {
    if verdict.run.scenarios.is_empty() {
        return vec![(0, verdict.name.clone())];
    }
    verdict.run.scenarios.iter().cloned().enumerate().collect()
}

/// How long a scenario was sent: where scenarios run one after another, each has its own time.
fn duration(verdict: &Verdict, scenario: usize) -> Nanos {
    let mut parts = verdict.run.parts.iter();
    let part = parts.find(|part| usize::from(part.scenario) == scenario && verdict.run.parts.len() > 1);
    part.map_or(verdict.run.duration, |part| part.duration)
}

/// `gate.chat`, or `gate.chat.long` for the scenario `long`: CI systems split it at its last dot.
fn classname(verdict: &Verdict, scenario: &str) -> String {
    let name = &verdict.name;
    one_line(&if scenario == name { format!("gate.{name}") } else { format!("gate.{name}.{scenario}") })
}

/// The name, made unique within its class by a number where it stands there twice: readers keep only the first.
fn unique(names: &mut HashSet<(String, String)>, classname: &str, name: &str) -> String {
    let numbered = (2..).map(|number| format!("{name} #{number}"));
    let mut candidates = std::iter::once(name.to_owned()).chain(numbered);
    candidates.find(|name| names.insert((classname.to_owned(), name.clone()))).unwrap_or_default()
}

/// The duration in whole milliseconds, cut into equal parts; the first takes what is left.
fn shares(duration: Nanos, parts: usize) -> Vec<Duration> {
    let millis = (duration.0.max(0) + 500_000) / 1_000_000;
    let count = i64::try_from(parts).unwrap_or(i64::MAX).max(1);
    let first = millis / count + millis % count;
    (0..parts).map(|part| Duration::milliseconds(if part == 0 { first } else { millis / count })).collect()
}

/// A suite, built field by field: the builder would ask the clock, and its timestamp is the run's anyway.
fn suite(verdict: &Verdict, classname: &str, testcases: Vec<TestCase>) -> TestSuite {
    let heading = if verdict.simulated { format!("{SIMULATED}\n\n") } else { String::new() };
    let findings = verdict.findings.iter().map(|finding| format!("{}\n", escape::terminal(&found(verdict, finding))));
    let report_only = report_only(verdict).map(|sentence| format!("{sentence}\n")).unwrap_or_default();
    let moved = verdict.moved.as_ref().map(|moved| format!("{}\n", moved_sentence(moved))).unwrap_or_default();
    let output = format!("{heading}{report_only}{moved}{}{}", findings.collect::<String>(), facts_text(verdict));
    TestSuite {
        name: if verdict.simulated { format!("SIMULATED ENGINE: {classname}") } else { classname.to_owned() },
        package: String::new(),
        timestamp: OffsetDateTime::UNIX_EPOCH,
        hostname: String::new(),
        testcases,
        system_out: Some(xml_text(&output)),
        system_err: None,
    }
}

fn testcase(verdict: &Verdict, check: &CheckVerdict, name: String, classname: &str, time: Duration) -> TestCase {
    let sentence = one_line(&outcome_sentence(check));
    let body = || xml_text(&body(check));
    let preferred = check.check.importance == Importance::Preferred;
    let mut case = match &check.outcome {
        CheckOutcome::Met => TestCaseBuilder::success(&name, time),
        CheckOutcome::Inconclusive { side: Side::Within } => {
            let mut case = TestCaseBuilder::success(&name, time);
            case.set_system_out(&sentence);
            case
        }
        CheckOutcome::Waived { .. } => TestCaseBuilder::skipped_with_cause(&name, "waived", &sentence),
        _ if preferred => TestCaseBuilder::skipped_with_cause(&name, "preferred", &sentence),
        CheckOutcome::Violated => {
            let mut case = TestCaseBuilder::failure(&name, time, "violated", &sentence);
            case.set_trace(&body());
            case
        }
        CheckOutcome::Inconclusive { side: Side::Over | Side::Blind }
            if verdict.policy.inconclusive == Policy::Fail =>
        {
            let mut case = TestCaseBuilder::failure(&name, time, "inconclusive", &sentence);
            case.set_trace(&body());
            case
        }
        CheckOutcome::Inconclusive { side: Side::Over | Side::Blind } => {
            TestCaseBuilder::skipped_with_cause(&name, "inconclusive", &sentence)
        }
        CheckOutcome::NoBaseline { .. } if verdict.policy.no_baseline == Policy::Fail => {
            let mut case = TestCaseBuilder::failure(&name, time, "inconclusive", &sentence);
            case.set_trace(&body());
            case
        }
        CheckOutcome::NoBaseline { .. } => TestCaseBuilder::skipped_with_cause(&name, "no_baseline", &sentence),
        CheckOutcome::CouldNotMeasure { .. } => {
            let mut case = TestCaseBuilder::error(&name, time, "could_not_measure", &sentence);
            case.set_trace(&body());
            case
        }
    };
    let file = check.check.place().map_or(&verdict.spec_file, |place| &place.file);
    let mut case = case.set_classname(classname).set_filepath(&one_line(file)).build();
    // The builder gives a skipped case no time.
    case.time = time;
    case
}

/// All numbers of a check, a line each. Some readers show nothing else of a failure.
fn body(check: &CheckVerdict) -> String {
    let mut lines = vec![outcome_sentence(check), String::new()];
    lines.push(format!("required:  {}", check.check));
    if let Some(seen) = seen_figure(check) {
        let bounds = check.evidence.as_ref().map(bounds).filter(|bounds| !bounds.is_empty());
        let bounds = bounds.map(|bounds| format!(" ({BOUNDS}: {bounds})")).unwrap_or_default();
        lines.push(format!("seen:      {seen}{bounds}"));
    }
    if let Some(comparison) = comparison(check) {
        lines.push(format!("base:      {}", base(check, comparison)));
        lines.push(format!("change:    {}", change_cell(check, comparison)));
        lines.push(format!("bound:     {}", allowance(check, comparison)));
        if let Some(noise) = comparison.noise {
            lines.push(format!("noise:     {}", runs_differ(noise, Some(&comparison.with))));
        }
        if comparison.dropped > 0 {
            lines.push(format!("left out:  {}", counted(comparison.dropped as usize, "pair")));
        }
    }
    if let Some(evidence) = check.evidence.as_ref().filter(|_| check.rule != Rule::Point) {
        let noun = if check.rule == Rule::Paired { "pair" } else { "request" };
        lines.push(format!("n:         {}", counted(evidence.n as usize, noun)));
        let beyond = beyond_word(&check.check, check.rule);
        match check.rule {
            // Gaps allow no count of requests.
            Rule::Cluster => lines.push(format!("k:         {} with too many gaps {beyond}", grouped(evidence.k))),
            Rule::Quantile | Rule::Rate | Rule::Counted | Rule::Extreme | Rule::PairedTail | Rule::StoredTail => {
                lines.push(format!("k:         {} {beyond}", grouped(evidence.k)));
                lines.push(format!("allowed:   {}", number(evidence.allowed)));
            }
            // The others count no requests beyond a limit.
            Rule::Point | Rule::Mean | Rule::Paired | Rule::Stored | Rule::Bounds => {}
            Rule::Knee | Rule::Recovery | Rule::Trend => {}
        }
        if matches!(check.rule, Rule::Quantile | Rule::Rate | Rule::PairedTail | Rule::StoredTail) {
            let needed = evidence.needed.map_or_else(|| "no count is enough at this size".to_owned(), grouped);
            lines.push(format!("needed:    {needed}"));
        }
    }
    if let Some(facts) = check.evidence.as_ref().and_then(|evidence| evidence.pattern) {
        let value = matches!(check.rule, Rule::Knee | Rule::Recovery).then(|| likelihood(&facts));
        lines.extend(value.map(|value| format!("change:    twice the gain in log-likelihood is {value}")));
    }
    if !matches!(check.outcome, CheckOutcome::CouldNotMeasure { .. }) {
        lines.push(format!("why:       {}", why_sentence(check)));
    }
    if let Some(place) = check.check.place() {
        lines.push(format!("spec:      {}:{}", place.file, place.line));
    }
    lines.iter().map(|line| escape::terminal(line)).collect::<Vec<_>>().join("\n")
}

/// Text for an attribute: one line, and fit for XML.
fn one_line(text: &str) -> String {
    xml_text(&escape::terminal(text))
}
