//! `gate explain CHECK --run RUN`: what a rule computes on a run, step by step.

mod patterns;
mod rules;

use gate_model::{CheckOutcome, CheckVerdict, Evidence, Importance, Look, Rule, Shared, Side, Verdict};

use crate::bounded::bounded;
use crate::escape;
use crate::layout::{counted, wrap};
use crate::words::{
    beside, capitalised, check_label, grouped, is_tested, judged, of_scenario, outcome_sentence, percent, probability,
    rule_sentence, waiver,
};

/// What the rule of a check computes on this run, step by step and with its numbers, at most 80 columns wide.
#[must_use]
pub fn explain_check(verdict: &Verdict, check: usize) -> String {
    bounded(std::slice::from_ref(verdict)).iter().map(|verdict| explained(verdict, check)).collect()
}

fn explained(verdict: &Verdict, check: usize) -> String {
    let Some(check) = verdict.checks.get(check) else {
        return format!("this verdict has {} checks, and none of number {check}\n", verdict.checks.len());
    };
    let label = of_scenario(verdict, check) + &check_label(&check.check);
    let label = wrap("", 2, &escape::terminal(&label));
    let result = wrap("", 0, &escape::terminal(&outcome_sentence(check)));
    let rule = wrap("", 0, &format!("{}.", capitalised(rule_sentence(check.rule, check.check.decide))));
    let mut text = format!("{label}\n{result}\n{rule}");
    for (number, step) in steps(verdict, check).into_iter().enumerate() {
        text.push_str(&format!("\n{}", wrap(&format!("{}. ", number + 1), 3, &escape::terminal(&step.words))));
        text.push_str(&step.table);
    }
    text
}

/// One step: a few sentences, and perhaps a table.
struct Step {
    words: String,
    table: String,
}

impl From<String> for Step {
    fn from(words: String) -> Self {
        Self { words, table: String::new() }
    }
}

fn steps(verdict: &Verdict, check: &CheckVerdict) -> Vec<Step> {
    let Some(evidence) = &check.evidence else {
        return vec![Step::from("Nothing was computed: there was nothing to compute it from.".to_owned())];
    };
    let mut steps: Vec<Step> = rules::steps(check, evidence).into_iter().map(Step::from).collect();
    if is_tested(check.rule) && evidence.p_fail.is_some() {
        steps.push(level(check, evidence).into());
        steps.extend(looks(check));
        if !matches!(judged(&check.outcome), CheckOutcome::Violated) {
            steps.extend(proof(check, evidence).map(Step::from));
        }
    }
    steps.push(conclusion(verdict, check, evidence).into());
    steps
}

/// The check's part of the error probability: a division where it is one.
fn level(check: &CheckVerdict, evidence: &Evidence) -> String {
    let family = match check.check.importance {
        Importance::Required => "required checks that are decided by evidence",
        Importance::Preferred => "preferred checks, once, on all requests",
    };
    let all = percent(evidence.shared.map_or(1.0 - check.check.confidence, |shared| shared.alpha));
    let family = format!(
        "The level. Of healthy runs {all} may be red by chance, shared among the gate's {family} (Holm's method: each \
         one that is violated leaves the others more)"
    );
    let Some(level) = evidence.level else { return format!("{family}.") };
    let own = probability(level, 4);
    let Some(Shared { alpha, checks, looks }) = evidence.shared else {
        return format!("{family}. What is left for this check is the level {own}.");
    };
    let among = |count: u32, noun: &str| match count {
        0 | 1 => String::new(),
        several => format!(" ÷ {}", counted(several as usize, noun)),
    };
    let part = format!("{all}{}", among(checks, "check"));
    let equal = alpha / (f64::from(checks.max(1)) * f64::from(looks.max(1)));
    if checks <= 1 && looks <= 1 && (level - equal).abs() <= 1e-9 * equal {
        return format!("{family}. This check is the only one left, so all of it is its own: {own}.");
    }
    if (level - equal).abs() <= 1e-9 * equal {
        return format!("{family}: {part}{} = {own}.", among(looks, "look"));
    }
    let how = match looks {
        0 | 1 => format!("Requests are whole, so the level is {own}, which the least count has that violates it"),
        _ => format!(
            "All looks share that (group-sequential boundaries, Lan–DeMets with Pocock-type spending), in whole requests: \
             the level at this one is {own}"
        ),
    };
    format!("{family}: {part}. {how}.")
}

/// Every look with its numbers, where there was more than one.
fn looks(check: &CheckVerdict) -> Option<Step> {
    if check.looks.is_empty() {
        return None;
    }
    let cell = |value: Option<f64>| value.map_or_else(|| "–".to_owned(), |value| probability(value, 4));
    let n = if check.rule == Rule::Paired { "pairs" } else { "requests" };
    let mut table = format!("   {:>6}  {n:>8}  {:>6}  {:>12}  {:>12}\n", "look", "beyond", "p", "level");
    for Look { at, n, k, p_fail, level } in &check.looks {
        let broken = p_fail.zip(*level).is_some_and(|(p_fail, level)| p_fail <= level);
        let line = format!(
            "   {:>6}  {:>8}  {:>6}  {:>12}  {:>12}  {}",
            grouped(*at),
            grouped(*n),
            grouped(*k),
            cell(*p_fail),
            cell(*level),
            if broken { "violated" } else { "" }
        );
        table.push_str(line.trim_end());
        table.push('\n');
    }
    let words = "The looks. The check is violated if p is at or below the level at any of them:".to_owned();
    Some(Step { words, table })
}

/// Whether it is proven to hold.
fn proof(check: &CheckVerdict, evidence: &Evidence) -> Option<String> {
    let p_pass = evidence.p_pass?;
    let as_good = if counts(check.rule) { "as few or fewer" } else { "a result as good or better" };
    let comparison = evidence.comparison.as_ref().filter(|_| check.rule == Rule::Paired);
    let z = comparison.and_then(|comparison| rules::normal(comparison, 1.0)).map(|z| format!(" ({z})"));
    let proven =
        if matches!(judged(&check.outcome), CheckOutcome::Met) { "which proves it" } else { "which does not prove it" };
    Some(format!(
        "The proof that it holds. If the bound were just broken, {as_good} would be seen with probability {}{}; 0.05 \
         or less is asked for, {proven}.",
        probability(p_pass, 4),
        z.unwrap_or_default()
    ))
}

/// Whether a rule counts requests beyond a value.
fn counts(rule: Rule) -> bool {
    matches!(rule, Rule::Quantile | Rule::Rate | Rule::PairedTail | Rule::StoredTail)
}

/// How the outcome follows.
fn conclusion(verdict: &Verdict, check: &CheckVerdict, evidence: &Evidence) -> String {
    let tested = evidence.p_fail.zip(evidence.level).filter(|_| is_tested(check.rule));
    let because = match (judged(&check.outcome), tested) {
        (CheckOutcome::Violated, Some((p_fail, level))) if p_fail <= level => {
            let (p, than) = beside(p_fail, level);
            format!("p ({p}) is {than}, so it is violated")
        }
        (CheckOutcome::Violated, Some(_)) => "an earlier look had already seen enough, so it is violated".to_owned(),
        (CheckOutcome::Violated, None) => "the number breaks the bound, so it is violated".to_owned(),
        (CheckOutcome::Met, Some(_)) => "it is proven to hold".to_owned(),
        (CheckOutcome::Met, None) => "the number keeps the bound: it holds".to_owned(),
        (CheckOutcome::Inconclusive { side }, _) => inconclusive(check, *side, tested.is_some()),
        (CheckOutcome::CouldNotMeasure { .. }, _) => {
            "what was computed is not to be relied on in this run, for the reason above".to_owned()
        }
        (CheckOutcome::NoBaseline { .. }, _) => "there is nothing to compare it with".to_owned(),
        // `judged` leaves no waiver.
        (CheckOutcome::Waived { .. }, _) => "it is waived".to_owned(),
    };
    let undecided = matches!(judged(&check.outcome), CheckOutcome::Inconclusive { .. });
    let needed = evidence.needed.filter(|_| counts(check.rule) && undecided);
    let needed =
        needed.map(|needed| format!(" {} of {} beyond would break it for sure.", grouped(needed), grouped(evidence.n)));
    let waived = matches!(check.outcome, CheckOutcome::Waived { .. });
    let waived = waived.then(|| format!(" It is waived{}, so nothing follows from that.", waiver(&check.check)));
    let preferred = check.check.importance == Importance::Preferred;
    let preferred = preferred.then(|| " The check is preferred: it never breaks the build.".to_owned());
    // Where scenarios run one after another, each is decided at a look of its own.
    let part = verdict.run.parts.iter().find(|part| part.scenario == check.check.scenario);
    let decided_at = part.map_or(verdict.run.decided_at, |part| part.decided_at);
    let at = decided_at.map(|at| format!(", at {} requests", grouped(at))).unwrap_or_default();
    let more: String = [needed, waived, preferred].into_iter().flatten().collect();
    format!("The outcome{at}: {because}.{more}")
}

fn inconclusive(check: &CheckVerdict, side: Side, tested: bool) -> String {
    let seen = match side {
        Side::Within => "the number seen keeps the bound: it holds, not proven",
        Side::Over if check.check.op.wants_more() => "the number seen breaks the bound: under, not proven",
        Side::Over => "the number seen breaks the bound: over, not proven",
        Side::Blind => {
            return "the number seen keeps the bound, but runs differ so much among themselves that a change of the \
                    tolerance could not be seen: nothing is claimed"
                .to_owned();
        }
    };
    let neither = if tested { "neither is proven, and" } else { "nothing is tested, and" };
    let once =
        if check.rule == Rule::Point { "; only `decide: point` decides by a number that a run has once" } else { "" };
    format!("{neither} {seen}{once}")
}
