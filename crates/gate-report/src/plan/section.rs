//! One section of a gate: the scenarios that have the endpoint at one time, and their plan.

use gate_model::{Arm, GateSpec, Nanos, Pace, Pattern, Plan, Quantity, Scenario};
use serde_json::{Value, json};

use super::load::{client, load, requests};
use super::prompts::prompts;
use crate::facts::long_time;
use crate::layout::{counted, listed};
use crate::words::{grouped, percent, span};

/// A section with what it takes to word it.
#[derive(Clone, Copy)]
pub(super) struct Section<'a> {
    pub(super) spec: &'a GateSpec,
    pub(super) plan: &'a Plan,
}

impl<'a> Section<'a> {
    pub(super) fn new(spec: &'a GateSpec, plan: &'a Plan) -> Self {
        Self { spec, plan }
    }

    /// Its scenarios, by index.
    fn scenarios(&self) -> Vec<u16> {
        self.spec.sections().into_iter().nth(usize::from(self.plan.section)).unwrap_or_default()
    }

    /// The scenario whose load it has.
    pub(super) fn first(&self) -> u16 {
        self.scenarios().first().copied().unwrap_or(0)
    }

    fn own(&self, scenario: u16) -> Option<&'a Scenario> {
        self.spec.scenarios.get(usize::from(scenario))
    }

    fn name(&self, scenario: u16) -> &'a str {
        self.own(scenario).map_or(&self.spec.name, |scenario| &scenario.name)
    }

    /// `1. chat`, or `1. chat and batch together`.
    pub(super) fn heading(&self) -> String {
        let names: Vec<String> = self.scenarios().into_iter().map(|scenario| self.name(scenario).to_owned()).collect();
        let together = if names.len() > 1 { " together" } else { "" };
        format!("{}. {}{together}", self.plan.section + 1, listed(&names, "and"))
    }

    /// Its facts with their names; what has nothing to say is empty.
    pub(super) fn facts(&self) -> Vec<(&'static str, String)> {
        let scenarios = self.scenarios();
        let mut facts = vec![("load", load(self)), ("client", client(self.spec.load_of(self.first())))];
        match scenarios.as_slice() {
            [one] => {
                facts.push(("model", self.model(*one)));
                facts.push(("prompts", prompts(self.spec.prompts_of(*one))));
            }
            several => facts.extend(several.iter().map(|scenario| ("scenario", self.share(*scenario)))),
        }
        facts.extend([("requests", requests(self)), ("time", self.time()), ("tokens", self.tokens_text())]);
        facts
    }

    /// The model that a scenario asks for, where that is its own.
    fn model(&self, scenario: u16) -> String {
        self.own(scenario).and_then(|scenario| scenario.model.clone()).unwrap_or_default()
    }

    /// One of several scenarios: its share of the requests, its model, and its prompts.
    fn share(&self, scenario: u16) -> String {
        let own = self.plan.requests.iter().filter(|request| request.scenario == scenario && request.turn == 0).count();
        let all = self.plan.requests.iter().filter(|request| request.turn == 0).count();
        let share = (all > 0).then(|| format!(", {} of the arrivals", percent(own as f64 / all as f64)));
        let model = self.own(scenario).and_then(|scenario| scenario.model.as_ref());
        let model = model.map(|model| format!(", model {model}")).unwrap_or_default();
        let prompts = prompts(self.spec.prompts_of(scenario));
        format!("{}{}{model}; {prompts}", self.name(scenario), share.unwrap_or_default())
    }

    /// When each look's last request is due. In a closed loop that is when earlier ones have ended.
    fn time(&self) -> String {
        let load = self.spec.load_of(self.first());
        if load.pace.rate().is_none() {
            return "as long as the answers take".to_owned();
        }
        let turns = if self.has_turns() { "; later turns take as long as answers and thinking do" } else { "" };
        if load.stages().is_some() || matches!(load.pattern, Pattern::Trace(_)) {
            let scheduled = load.stages().map(|stages| stages.iter().fold(Nanos::ZERO, |sum, stage| sum + stage.lasts));
            return format!("{}, after warm-up{turns}", span(scheduled.unwrap_or_else(|| self.plan.duration())));
        }
        let noun = if self.spec.reference.is_some() { "pair" } else { "request" };
        let due = self.plan.looks.iter().filter_map(|look| {
            let sent = (*look as usize).checked_mul(self.spec.arms() as usize)?;
            let last = self.plan.requests.get(..sent)?.iter().rfind(|request| request.turn == 0)?;
            Some(format!("{} for {}", long_time(last.at), counted(*look as usize, noun)))
        });
        let due = due.collect::<Vec<_>>();
        if due.is_empty() { String::new() } else { format!("{}, after warm-up{turns}", listed(&due, "or")) }
    }

    /// Whether conversations have several turns.
    pub(super) fn has_turns(&self) -> bool {
        self.scenarios().into_iter().any(|scenario| self.spec.prompts_of(scenario).turns.max > 1)
    }

    /// What the whole plan asks for, warm-up included: input and output tokens.
    pub(super) fn tokens(&self) -> (u64, u64) {
        let all = || self.plan.warmup.iter().chain(&self.plan.requests);
        let input = all().map(|request| u64::from(request.input_tokens)).sum();
        (input, all().map(|request| u64::from(request.output_tokens)).sum())
    }

    fn tokens_text(&self) -> String {
        let (input, output) = self.tokens();
        let grouped = |count: u64| Quantity::count(count as f64).to_string();
        let history = if self.has_turns() { " (without what later turns repeat of the conversation)" } else { "" };
        format!("about {} in{history} and at most {} out, if every request is sent", grouped(input), grouped(output))
    }

    /// When its last arrival is due, in seconds; `None` in a closed loop.
    pub(super) fn last_arrival(&self) -> Option<f64> {
        let pace = self.spec.load_of(self.first()).pace;
        matches!(pace, Pace::Open { .. }).then(|| self.plan.duration().as_secs_f64())
    }

    /// How long it takes; `None` in a closed loop.
    pub(super) fn lasts(&self) -> Option<Nanos> {
        let load = self.spec.load_of(self.first());
        load.pace.rate()?;
        let scheduled = load.stages().map(|stages| stages.iter().fold(Nanos::ZERO, |sum, stage| sum + stage.lasts));
        Some(scheduled.unwrap_or_else(|| self.plan.duration()))
    }

    /// How many requests it measures, of both arms.
    pub(super) fn measured(&self) -> u32 {
        u32::try_from(self.plan.requests.len()).unwrap_or(u32::MAX)
    }

    /// The conversations it begins, of each arm.
    pub(super) fn conversations(&self) -> u32 {
        let begun = self.plan.requests.iter().filter(|request| request.turn == 0 && request.arm == Arm::Target);
        u32::try_from(begun.count()).unwrap_or(u32::MAX)
    }

    /// The same for programs.
    pub(super) fn json(&self) -> Value {
        let (input, output) = self.tokens();
        let names: Vec<&str> = self.scenarios().into_iter().map(|scenario| self.name(scenario)).collect();
        json!({
            "scenarios": names,
            "pattern": self.spec.load_of(self.first()).pattern.name(),
            "warmup": self.plan.warmup.len(),
            "requests": self.measured(),
            "conversations": self.conversations(),
            "looks": self.plan.looks,
            "lasts_s": self.lasts().map(Nanos::as_secs_f64),
            "input_tokens": input,
            "output_tokens_at_most": output,
        })
    }

    /// A count of requests, in a sentence.
    pub(super) fn count(&self) -> String {
        let all = self.measured() / self.spec.arms();
        match self.has_turns() {
            true => format!("{} with {} in all", named(self.conversations(), "conversation"), named(all, "request")),
            false => named(all, "request"),
        }
    }
}

/// `1 request`, `5,400 requests`.
fn named(count: u32, noun: &str) -> String {
    format!("{} {noun}{}", grouped(count), if count == 1 { "" } else { "s" })
}
