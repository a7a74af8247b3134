//! What two verdicts say, side by side.

use gate_model::{Arm, CheckVerdict, Metric, Outcome, OutcomeCount, Pace, Quantity, Series, Spread, Unit, Verdict};
use jiff::Timestamp;

use crate::facts::{self, ways};
use crate::layout::clip;
use crate::sparkline::{Drawn, drawn};
use crate::words::{
    change, check_label, figure, moved_sentence, number, outcome_word, seen_figure, short, suspect_sentence,
    verdict_word,
};

/// How many checks, and how many numbers, are shown.
const SHOWN: usize = 200;

/// The series whose percentiles stand first.
const SERIES: [Series; 4] = [Series::Ttft, Series::Tpot, Series::E2e, Series::OutputTokens];

/// What stands for a number that one of them has not.
const NONE: &str = "–";

/// Both verdicts, in words.
#[derive(serde::Serialize)]
pub(crate) struct Sides {
    pub(crate) headings: [String; 2],
    pub(crate) simulated: bool,
    /// What makes them hard to compare, a sentence each.
    pub(crate) apart: Vec<String>,
    pub(crate) numbers: Vec<Number>,
    /// Checks that ended in another way, and those that ended alike.
    pub(crate) changed: Vec<Pair>,
    pub(crate) alike: Vec<Pair>,
    pub(crate) left_out: usize,
    /// What each verdict said of causes.
    pub(crate) causes: Vec<String>,
    pub(crate) pictures: Option<String>,
}

/// A number before and after.
#[derive(Clone, PartialEq, serde::Serialize)]
pub(crate) struct Number {
    pub(crate) name: String,
    pub(crate) before: String,
    pub(crate) after: String,
    pub(crate) change: String,
}

/// A check before and after.
#[derive(serde::Serialize)]
pub(crate) struct Pair {
    pub(crate) check: String,
    pub(crate) before: String,
    pub(crate) after: String,
}

impl Sides {
    pub(crate) fn new(before: &Verdict, after: &Verdict) -> Self {
        let mut numbers = numbers(before, after);
        let pairs = pairs(before, after);
        let left_out = pairs.len().saturating_sub(SHOWN) + numbers.len().saturating_sub(SHOWN);
        numbers.truncate(SHOWN);
        let word = |check: Option<&CheckVerdict>| check.map(outcome_word);
        // What ended in another way must not be what there is no room for.
        let (changed, alike): (Vec<_>, Vec<_>) =
            pairs.into_iter().partition(|(_, one, other)| word(*one) != word(*other));
        let room = SHOWN.saturating_sub(changed.len());
        Self {
            headings: [heading(before), heading(after)],
            simulated: before.simulated || after.simulated,
            apart: apart(before, after),
            numbers,
            changed: changed.into_iter().take(SHOWN).map(pair).collect(),
            alike: alike.into_iter().take(room).map(pair).collect(),
            left_out,
            causes: [("before", before), ("after", after)].into_iter().flat_map(causes).collect(),
            pictures: pictures(before, after),
        }
    }
}

/// `gate chat: PASSED, commit a1b2c3d, started 2026-11-29T16:37:00Z, run 20261129-163700-7f3a`.
fn heading(verdict: &Verdict) -> String {
    let run = &verdict.run;
    let dirty = |dirty: bool| if dirty { " with changes that were not committed" } else { "" };
    let commit = run.commit.as_ref().map(|commit| format!(", commit {}{}", short(&commit.id), dirty(commit.dirty)));
    let (name, word, commit) = (&verdict.name, verdict_word(verdict), commit.unwrap_or_default());
    format!("gate {name}: {word}{commit}, started {}, run {}", run.started, run.run_id)
}

/// What makes the two hard to compare: other work, another place, or a run that is not to be relied on.
fn apart(before: &Verdict, after: &Verdict) -> Vec<String> {
    let (first, second) = (&before.run, &after.run);
    let model = |verdict: &Verdict| verdict.run.model.clone().unwrap_or_default();
    let definitions = |verdict: &Verdict| verdict.definitions.to_string();
    let engine = |verdict: &Verdict| if verdict.simulated { "simulated" } else { "a server" }.to_owned();
    let imported = |verdict: &Verdict| verdict.run.imported_from.clone().unwrap_or_else(|| "gate".to_owned());
    let facts: [(&str, String, String); 14] = [
        ("gate", before.name.clone(), after.name.clone()),
        ("spec", before.spec_file.clone(), after.spec_file.clone()),
        ("flags", facts::overrides(&before.overrides), facts::overrides(&after.overrides)),
        ("engine", engine(before), engine(after)),
        ("target", first.target.clone(), second.target.clone()),
        ("model", model(before), model(after)),
        ("reference", reference(before), reference(after)),
        ("scenarios", first.scenarios.join(", "), second.scenarios.join(", ")),
        ("load", load(before), load(after)),
        ("requests planned", first.planned.to_string(), second.planned.to_string()),
        ("definitions of metrics", definitions(before), definitions(after)),
        ("percentiles", first.percentiles.clone(), second.percentiles.clone()),
        ("output tokens", tokens(before), tokens(after)),
        ("measured by", imported(before), imported(after)),
    ];
    let or_none = |text: String| if text.is_empty() { "none".to_owned() } else { text };
    let differs = facts.into_iter().filter(|(_, one, other)| one != other);
    let mut sentences: Vec<String> = differs
        .map(|(what, one, other)| {
            format!("{what}: {} before, {} after", clip(&or_none(one), 200), clip(&or_none(other), 200))
        })
        .collect();
    let started = |verdict: &Verdict| verdict.run.started.parse::<Timestamp>().ok();
    if started(before).zip(started(after)).is_some_and(|(before, after)| before > after) {
        sentences.insert(
            0,
            "the run before was started after the other: the two may have been named the wrong way round".to_owned(),
        );
    }
    for (whose, verdict) in [("before", before), ("after", after)] {
        if !verdict.valid {
            sentences.push(format!(
                "the run {whose} is not one to compare with: its load was not sent as planned, its client did not keep up, \
                 or too little was answered"
            ));
        }
    }
    sentences
}

fn reference(verdict: &Verdict) -> String {
    verdict.run.reference.as_ref().map(|reference| reference.target.clone()).unwrap_or_default()
}

/// Who counted output tokens.
fn tokens(verdict: &Verdict) -> String {
    let sources: Vec<String> =
        verdict.run.token_sources.iter().map(|(source, _)| format!("{source:?}").to_lowercase()).collect();
    sources.join(", ")
}

/// What decided when requests were sent.
fn load(verdict: &Verdict) -> String {
    let patterns: Vec<&str> = verdict.run.parts.iter().map(|part| part.pattern.as_str()).collect();
    let pace = match verdict.run.pace {
        Some(Pace::Closed { concurrency }) => format!("{concurrency} at a time"),
        Some(Pace::Open { cap: Some(cap), .. }) => format!("{}, at most {cap} at a time", planned(verdict)),
        Some(Pace::Open { cap: None, .. }) | None => planned(verdict),
    };
    let patterns = if patterns.is_empty() { String::new() } else { format!(" ({})", patterns.join(", ")) };
    format!("{pace}{patterns}")
}

fn planned(verdict: &Verdict) -> String {
    verdict.run.rates.map(|(planned, _)| format!("{}/s", number(planned))).unwrap_or_default()
}

/// The numbers of both, by scenario: scenarios are the same where their names are.
fn numbers(before: &Verdict, after: &Verdict) -> Vec<Number> {
    let mut names: Vec<&String> = before.run.scenarios.iter().collect();
    names.extend(after.run.scenarios.iter().filter(|name| !before.run.scenarios.contains(name)));
    let several = names.len() > 1;
    let mut numbers: Vec<Number> = Vec::new();
    for name in names {
        let (first, second) = (of_scenario(before, name), of_scenario(after, name));
        let mut labels: Vec<&String> = first.iter().map(|(label, _)| label).collect();
        labels.extend(
            second.iter().map(|(label, _)| label).filter(|label| !first.iter().any(|(known, _)| known == *label)),
        );
        for label in labels {
            let value = |values: &[(String, Quantity)]| {
                values.iter().find(|(known, _)| known == label).map(|(_, value)| *value)
            };
            let of = if several { format!("{name}: ") } else { String::new() };
            numbers.push(beside(format!("{of}{label}"), value(&first), value(&second)));
        }
    }
    let whole = |verdict: &Verdict| failed(&verdict.run.outcomes);
    if let (one, other @ Some(_)) | (one @ Some(_), other) = (whole(before), whole(after)) {
        numbers.insert(0, beside("requests failed".to_owned(), one, other));
    }
    numbers
}

/// A number beside the other.
fn beside(name: String, before: Option<Quantity>, after: Option<Quantity>) -> Number {
    let text = |value: Option<Quantity>| value.map_or_else(|| NONE.to_owned(), figure);
    let change = before.zip(after).and_then(|(before, after)| changed(before, after));
    Number { name, before: text(before), after: text(after), change: change.unwrap_or_default() }
}

/// The change as a share of what was before; of shares in points.
fn changed(before: Quantity, after: Quantity) -> Option<String> {
    if before.unit != after.unit || !before.value.is_finite() || !after.value.is_finite() {
        return None;
    }
    match before.unit {
        Unit::Share => Some(change(Unit::Share, after.value - before.value)),
        unit if before.value > 0.0 => Some(change(unit, after.value / before.value - 1.0)),
        _ => None,
    }
}

/// A scenario's numbers by their names: percentiles first, then what else the verdict shows of the target.
fn of_scenario(verdict: &Verdict, name: &str) -> Vec<(String, Quantity)> {
    let Some(place) = verdict.run.scenarios.iter().position(|known| known == name) else { return Vec::new() };
    let is_its = |scenario: u16| usize::from(scenario) == place;
    let mut values: Vec<(String, Quantity)> = Vec::new();
    for series in SERIES {
        let spread =
            verdict.spreads.iter().find(|one| is_its(one.scenario) && one.series == series && one.of.is_none());
        let Some(spread) = spread else { continue };
        for percent in [50, 95] {
            let value = percentile(spread, percent).map(|value| Quantity { value, unit: series.unit() });
            values.extend(value.map(|value| (format!("{}.p{percent}", series.name()), value)));
        }
    }
    for shown in verdict.figures.iter().filter(|figure| is_its(figure.scenario) && figure.arm == Arm::Target) {
        let label = shown.metric.to_string();
        if is_of_requests(shown.metric) && !values.iter().any(|(known, _)| *known == label) {
            values.extend(shown.value.map(|value| (label, value)));
        }
    }
    let part = verdict.run.parts.iter().find(|part| is_its(part.scenario));
    values.extend(part.and_then(|part| failed(&part.outcomes)).map(|share| ("requests failed".to_owned(), share)));
    values
}

/// Whether a metric says how requests went, and not how they came to the server.
fn is_of_requests(metric: Metric) -> bool {
    let Metric::Series(series, _) = metric else { return true };
    !matches!(series, Series::CapWait | Series::Dns | Series::Connect | Series::Tls | Series::Write | Series::Headers)
}

/// A percentile by nearest rank: of up to 101 requests every value is there, of more the percentiles.
fn percentile(spread: &Spread, percent: usize) -> Option<f64> {
    let count = spread.quantiles.len();
    let place = if spread.n > 101 { percent } else { (percent * count).div_ceil(100).saturating_sub(1) };
    spread.quantiles.get(place).copied()
}

/// The share of requests that failed.
fn failed(outcomes: &[OutcomeCount]) -> Option<Quantity> {
    let all: f64 = outcomes.iter().map(|way| f64::from(way.count)).sum();
    let ok: f64 = outcomes.iter().filter(|way| way.outcome == Outcome::Ok).map(|way| f64::from(way.count)).sum();
    (all > 0.0).then(|| Quantity { value: 1.0 - ok / all, unit: Unit::Share })
}

type Both<'a> = (String, Option<&'a CheckVerdict>, Option<&'a CheckVerdict>);

/// The checks of both by their names and scenarios.
fn pairs<'a>(before: &'a Verdict, after: &'a Verdict) -> Vec<Both<'a>> {
    let several = before.run.scenarios.len() > 1 || after.run.scenarios.len() > 1;
    let label = |verdict: &Verdict, check: &CheckVerdict| {
        let name = verdict.run.scenarios.get(usize::from(check.check.scenario)).filter(|_| several);
        name.map(|name| format!("{name}: ")).unwrap_or_default() + &check_label(&check.check)
    };
    let mut pairs: Vec<Both<'a>> =
        before.checks.iter().map(|check| (label(before, check), Some(check), None)).collect();
    for check in &after.checks {
        let name = label(after, check);
        match pairs.iter_mut().find(|(known, _, other)| *known == name && other.is_none()) {
            Some((.., other)) => *other = Some(check),
            None => pairs.push((name, None, Some(check))),
        }
    }
    pairs
}

fn pair((check, before, after): Both<'_>) -> Pair {
    let words = |check: Option<&CheckVerdict>| {
        let Some(check) = check else { return "not checked".to_owned() };
        let seen = seen_figure(check).map(|seen| format!(" ({seen})")).unwrap_or_default();
        format!("{}{seen}", outcome_word(check))
    };
    Pair { check, before: words(before), after: words(after) }
}

/// What a verdict said of causes, and how its requests failed.
fn causes((whose, verdict): (&'static str, &Verdict)) -> Vec<String> {
    let moved = verdict.moved.as_ref().map(moved_sentence);
    let failures = failed(&verdict.run.outcomes).filter(|share| share.value > 0.0);
    let failures = failures.map(|_| format!("requests ended {}", ways(&verdict.run.outcomes)));
    let suspects = verdict.suspects.iter().take(5).map(suspect_sentence);
    moved.into_iter().chain(suspects).chain(failures).map(|words| format!("{whose}: {words}")).collect()
}

/// The distributions of both on the same bins.
fn pictures(before: &Verdict, after: &Verdict) -> Option<String> {
    let own = |spread: &&Spread| spread.of.is_none();
    let place = |name: Option<&String>| {
        let place = before.run.scenarios.iter().position(|known| Some(known) == name)?;
        u16::try_from(place).ok()
    };
    let spreads: Vec<&Spread> = after.spreads.iter().filter(own).collect();
    drawn(after, &spreads, |scenario, series| {
        let then = place(after.run.scenarios.get(usize::from(scenario)));
        let earlier =
            before.spreads.iter().filter(own).filter(|one| Some(one.scenario) == then && one.series == series);
        let later = after.spreads.iter().filter(own).filter(|one| one.scenario == scenario && one.series == series);
        let earlier = earlier.map(|spread| Drawn { whose: "before", spread });
        earlier.take(1).chain(later.take(1).map(|spread| Drawn { whose: "after", spread })).collect()
    })
}
