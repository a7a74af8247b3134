//! The plan as text and JSON: what will be sent, and what each check can find. Nothing has been sent.

mod facts;
mod kubernetes;
mod load;
mod prompts;
mod section;

use gate_model::{Check, Finding, GateSpec, Plan, Power, Rule};
use serde_json::{Value, json};

use crate::facts::listing;
use crate::layout::wrap;
use crate::style::{Style, Tone};
use crate::words::{SIMULATED, check_label, finding_sentence, power_sentences, stored_finds, waiver};
use crate::{ReportError, escape};
use facts::{endpoint, facts, kept, several};
pub use kubernetes::kubernetes;
pub(crate) use load::shape;
use section::Section;

/// The worst case of all plans: every request sent, warm-up and both arms included, every answer as long as it may be.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct PlanTotals {
    /// Requests.
    pub requests: u64,
    /// Input tokens.
    pub input_tokens: u64,
    /// Output tokens.
    pub output_tokens: u64,
    /// Dollars, by the spec's prices; absent without prices.
    pub cost: Option<f64>,
}

/// What `gate plan` shows.
#[derive(Clone, Copy, Debug)]
pub struct PlanView<'a> {
    /// The resolved spec.
    pub spec: &'a GateSpec,
    /// Its plans, one for each section, in order.
    pub plans: &'a [Plan],
    /// The rule of each check with what it can find, in the order of [`GateSpec::checks`].
    pub checks: &'a [(Rule, Option<Power>)],
    /// The smallest change that each check against [`stored_runs`](crate::stored_runs) finds with 80 % power, as a share
    /// of what they have (`gate_judge::stored_detects`), in the same order; absent where none is known.
    pub stored: &'a [Option<f64>],
    /// The day, as `YYYY-MM-DD` or any time of it in RFC 3339, in UTC: waivers end.
    pub today: &'a str,
    /// What a reader should know before the run.
    pub warnings: &'a [Finding],
    /// What the plans come to at most.
    pub totals: PlanTotals,
}

impl<'a> PlanView<'a> {
    /// The sections: each plan with its scenarios.
    fn sections(&self) -> impl Iterator<Item = Section<'a>> {
        let spec = self.spec;
        self.plans.iter().map(move |plan| Section::new(spec, plan))
    }
}

/// The plan for people, at most 80 columns wide.
#[must_use]
pub fn plan_text(view: &PlanView<'_>, style: Style) -> String {
    let name = escape::terminal(&view.spec.name);
    let heading = format!("{}\n\n", style.paint(Tone::Doubtful, SIMULATED));
    let heading = if view.spec.is_simulated() { heading.as_str() } else { "" };
    let mut text = format!("{heading}gate {name}: plan; nothing is sent\n\n");
    match view.plans {
        [_] => text.push_str(&listing(facts(view).into_iter().chain(one_section(view)).chain(kept(view)))),
        _ => {
            text.push_str(&listing(facts(view)));
            for section in view.sections() {
                let heading = wrap("", 2, &escape::terminal(&section.heading()));
                text.push_str(&format!("\n{}\n", style.paint(Tone::Strong, heading.trim_end())));
                text.push_str(&listing(section.facts()));
            }
            let all = listing(several(view).into_iter().chain(kept(view)));
            text.push_str(&format!("\n{}\n{all}", style.paint(Tone::Strong, "All together")));
        }
    }
    text.push('\n');
    text.push_str(&checks(view, style));
    if !view.warnings.is_empty() {
        text.push_str("\nWorth knowing:\n");
        let warnings = view.warnings.iter().map(finding_sentence);
        text.extend(warnings.map(|warning| wrap("  - ", 4, &escape::terminal(&warning))));
    }
    text
}

/// The facts of the only section.
fn one_section(view: &PlanView<'_>) -> Vec<(&'static str, String)> {
    view.sections().flat_map(|section| section.facts()).collect()
}

/// Every check with what it can find, by scenario where there are several.
fn checks(view: &PlanView<'_>, style: Style) -> String {
    let mut text = String::new();
    let mut scenario = None;
    let stored = view.stored.iter().copied().chain(std::iter::repeat(None));
    for ((check, (rule, power)), detects) in view.spec.checks.iter().zip(view.checks).zip(stored) {
        if view.spec.scenarios.len() > 1 && scenario != Some(check.scenario) {
            scenario = Some(check.scenario);
            let name = view.spec.scenarios.get(usize::from(check.scenario)).map_or("", |scenario| &scenario.name);
            text.push_str(&wrap("", 0, &format!("{}:", escape::terminal(name))));
        }
        let label = wrap("", 2, &escape::terminal(&check_label(check)));
        text.push_str(&format!("{}\n", style.paint(Tone::Strong, label.trim_end())));
        let sentences = power_sentences(check, *rule, power.as_ref()).into_iter();
        let finds = (*rule == Rule::Stored).then(|| stored_finds(check, detects, &view.spec.baseline));
        for sentence in waived(view, check).into_iter().chain(sentences).chain(finds) {
            text.push_str(&wrap("  ", 2, &escape::terminal(&sentence)));
        }
    }
    text
}

/// Whether a check is waived, or no longer.
fn waived(view: &PlanView<'_>, check: &Check) -> Option<String> {
    let waive = check.waive.as_ref()?;
    Some(match view.today.get(..waive.until.len()) {
        Some(today) if today > waive.until.as_str() => format!("waiver ended {}: it counts", waive.until),
        _ => format!("WAIVED{}", waiver(check)),
    })
}

/// The plan for programs, with a newline at its end: the whole plan, the checks with what each can find, and the
/// warnings, each as data and in words. Of a gate of one section `plan` is its plan; of several, `plans` is a list.
///
/// # Errors
/// [`ReportError::Json`], which no plan of `gate` brings about.
pub fn plan_json(view: &PlanView<'_>) -> Result<String, ReportError> {
    let checks =
        view.spec.checks.iter().zip(view.checks).map(
            |(check, (rule, power))| json!({"text": check.to_string(), "check": check, "rule": rule, "power": power}),
        );
    let warnings = view.warnings.iter().map(|warning| json!({"text": finding_sentence(warning), "finding": warning}));
    // What a run may use up is warm-up and all; these are the plans' own numbers.
    let input: u64 = view.sections().map(|section| section.tokens().0).sum();
    let output: u64 = view.sections().map(|section| section.tokens().1).sum();
    let sections: Vec<Value> = view.sections().map(|section| section.json()).collect();
    let PlanTotals { requests, input_tokens, output_tokens, cost } = view.totals;
    // In a closed loop that is when earlier requests have ended.
    let last_arrival = view.sections().map(|section| section.last_arrival()).try_fold(0.0, |sum, one| Some(sum + one?));
    let mut value = json!({
        "name": view.spec.name,
        "spec_file": view.spec.file,
        "target": endpoint(&view.spec.target),
        "reference": view.spec.reference.as_ref().map(endpoint),
        "model": view.spec.target.model,
        "api": view.spec.target.api.name(),
        "simulated": view.spec.is_simulated(),
        "load": view.spec.load,
        "last_arrival_s": last_arrival,
        "input_tokens": input,
        "output_tokens_at_most": output,
        "checks": checks.collect::<Vec<Value>>(),
        "warnings": warnings.collect::<Vec<Value>>(),
        "overrides": view.spec.overrides,
        "totals": {
            "requests": requests,
            "input_tokens": input_tokens,
            "output_tokens": output_tokens,
            "cost": cost,
        },
        "sections": sections,
    });
    if let Some(fields) = value.as_object_mut() {
        if view.spec.budget.is_given() {
            fields.insert("budget".to_owned(), json!(view.spec.budget));
        }
        match view.plans {
            [plan] => fields.insert("plan".to_owned(), json!(plan)),
            plans => fields.insert("plans".to_owned(), json!(plans)),
        };
    }
    Ok(serde_json::to_string_pretty(&value)? + "\n")
}
