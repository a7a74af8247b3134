//! The plan as text and JSON: what will be sent, and what each check can find. Nothing has been sent.

mod facts;

use gate_model::{Finding, GateSpec, Plan, Power, Rule};
use serde_json::{Value, json};

use crate::facts::listing;
use crate::layout::wrap;
use crate::style::{Style, Tone};
use crate::words::{SIMULATED, check_label, finding_sentence, power_sentences, stored_finds, waiver};
use crate::{ReportError, escape};
use facts::{Tokens, endpoint, facts, tokens};

/// What `gate plan` shows.
#[derive(Clone, Copy, Debug)]
pub struct PlanView<'a> {
    /// The resolved spec.
    pub spec: &'a GateSpec,
    /// Its plan.
    pub plan: &'a Plan,
    /// The rule of each check with what it can find, in the order of [`GateSpec::checks`].
    pub checks: &'a [(Rule, Option<Power>)],
    /// The smallest change that each check against [`stored_runs`](crate::stored_runs) finds with 80 % power, as a share
    /// of what they have (`gate_judge::stored_detects`), in the same order; absent where none is known.
    pub stored: &'a [Option<f64>],
    /// The day, as `YYYY-MM-DD` or any time of it in RFC 3339, in UTC: waivers end.
    pub today: &'a str,
    /// What a reader should know before the run.
    pub warnings: &'a [Finding],
}

/// The plan for people, at most 80 columns wide.
#[must_use]
pub fn plan_text(view: &PlanView<'_>, style: Style) -> String {
    let name = escape::terminal(&view.spec.name);
    let heading = format!("{}\n\n", style.paint(Tone::Doubtful, SIMULATED));
    let heading = if view.spec.is_simulated() { heading.as_str() } else { "" };
    let mut text = format!("{heading}gate {name}: plan; nothing is sent\n\n");
    text.push_str(&listing(facts(view)));
    text.push('\n');
    let stored = view.stored.iter().copied().chain(std::iter::repeat(None));
    for ((check, (rule, power)), detects) in view.spec.checks.iter().zip(view.checks).zip(stored) {
        let label = wrap("", 2, &escape::terminal(&check_label(check)));
        text.push_str(&format!("{}\n", style.paint(Tone::Strong, label.trim_end())));
        let waived = check.waive.as_ref().map(|waive| match view.today.get(..waive.until.len()) {
            Some(today) if today > waive.until.as_str() => format!("waiver ended {}: it counts", waive.until),
            _ => format!("WAIVED{}", waiver(check)),
        });
        let sentences = power_sentences(check, *rule, power.as_ref()).into_iter();
        let finds = (*rule == Rule::Stored).then(|| stored_finds(check, detects, &view.spec.baseline));
        let sentences = sentences.chain(finds);
        for sentence in waived.into_iter().chain(sentences) {
            text.push_str(&wrap("  ", 2, &escape::terminal(&sentence)));
        }
    }
    if !view.warnings.is_empty() {
        text.push_str("\nWorth knowing:\n");
        let warnings = view.warnings.iter().map(finding_sentence);
        text.extend(warnings.map(|warning| wrap("  - ", 4, &escape::terminal(&warning))));
    }
    text
}

/// The plan for programs, with a newline at its end: the whole plan, the checks with what each can find, and the
/// warnings, each as data and in words.
///
/// # Errors
/// [`ReportError::Json`], which no plan of `gate` brings about.
pub fn plan_json(view: &PlanView<'_>) -> Result<String, ReportError> {
    let checks =
        view.spec.checks.iter().zip(view.checks).map(
            |(check, (rule, power))| json!({"text": check.to_string(), "check": check, "rule": rule, "power": power}),
        );
    let warnings = view.warnings.iter().map(|warning| json!({"text": finding_sentence(warning), "finding": warning}));
    let Tokens { input, output } = tokens(view.plan);
    let value = json!({
        "name": view.spec.name,
        "spec_file": view.spec.file,
        "target": endpoint(&view.spec.target),
        "reference": view.spec.reference.as_ref().map(endpoint),
        "model": view.spec.target.model,
        "api": view.spec.target.api.name(),
        "simulated": view.spec.is_simulated(),
        "load": view.spec.load,
        // In a closed loop that is when earlier requests have ended.
        "last_arrival_s": view.spec.load.pace.rate().map(|_| view.plan.duration().as_secs_f64()),
        "input_tokens": input,
        "output_tokens_at_most": output,
        "checks": checks.collect::<Vec<Value>>(),
        "warnings": warnings.collect::<Vec<Value>>(),
        "overrides": view.spec.overrides,
        "plan": view.plan,
    });
    Ok(serde_json::to_string_pretty(&value)? + "\n")
}
