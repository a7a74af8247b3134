//! The resolved gate spec: every key with its value, defaults filled in, environment read, secrets in custody.

use serde::{Deserialize, Serialize};

use crate::{
    Abort, Arm, BaselineSpec, Budget, Check, Endpoint, JournalSpec, Load, Nanos, Prices, PromptSpec, RunOrder,
    Scenario, Series, Target,
};

/// The service level objective of one request, for `attainment` and `goodput`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Slo {
    /// Time to first token, at most.
    pub ttft: Option<Nanos>,
    /// Time to first answer token, at most.
    pub ttfa: Option<Nanos>,
    /// Time per output token, at most.
    pub tpot: Option<Nanos>,
    /// Time to last token, at most.
    pub e2e: Option<Nanos>,
}

impl Slo {
    /// Whether any bound is given.
    #[must_use]
    pub fn is_given(&self) -> bool {
        *self != Self::default()
    }

    /// Whether an answered request with these values holds every bound (`<=`); TPOT under two tokens holds.
    pub(crate) fn holds(&self, value: impl Fn(Series) -> Option<f64>) -> bool {
        let holds = |series: Series, bound: Option<Nanos>| {
            bound.is_none_or(|bound| match value(series) {
                Some(value) => value <= bound.0 as f64,
                None => series == Series::Tpot,
            })
        };
        holds(Series::Ttft, self.ttft)
            && holds(Series::Ttfa, self.ttfa)
            && holds(Series::Tpot, self.tpot)
            && holds(Series::E2e, self.e2e)
    }
}

/// Deadlines of each request, and of the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Timeouts {
    /// For a new connection.
    pub connect: Nanos,
    /// From the request's start to its first token.
    pub first_token: Nanos,
    /// From one event to the next, after the first token.
    pub stall: Nanos,
    /// From the request's start to its end.
    pub total: Nanos,
    /// For the whole run; by default the schedule + `total` + 60 s.
    pub run: Option<Nanos>,
}

impl Default for Timeouts {
    /// 5 s to connect, 60 s to the first token, 30 s between events, 300 s in all.
    fn default() -> Self {
        Self {
            connect: Nanos::from_secs(5),
            first_token: Nanos::from_secs(60),
            stall: Nanos::from_secs(30),
            total: Nanos::from_secs(300),
            run: None,
        }
    }
}

/// Whether something costs the build.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Policy {
    /// It does not.
    Pass,
    /// It does.
    Fail,
}

/// What outcomes other than violated and met do to the exit code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outcomes {
    /// A required check seen over its limit, but not proven: exit 4 where it fails.
    pub inconclusive: Policy,
    /// A required check without a baseline: exit 4 where it fails.
    pub no_baseline: Policy,
    /// A required check that could not be measured: exit 3 where it fails.
    pub invalid: Policy,
}

impl Default for Outcomes {
    /// Only what could not be measured costs the build.
    fn default() -> Self {
        Self { inconclusive: Policy::Pass, no_baseline: Policy::Pass, invalid: Policy::Fail }
    }
}

/// A value set by a flag over the spec's own.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Override {
    /// The flag, such as `--set`.
    pub flag: String,
    /// The path, such as `load.rps`.
    pub path: String,
    /// The value, or [`crate::REDACTED`] where the path holds a credential.
    pub value: String,
}

/// A whole resolved gate.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct GateSpec {
    /// The spec format's version: 1.
    pub version: u32,
    /// The gate's name.
    pub name: String,
    /// The file as the person named it.
    pub file: String,
    /// The endpoint under test.
    pub target: Target,
    /// What it is compared with side by side.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reference: Option<Target>,
    /// The load.
    pub load: Load,
    /// The prompts.
    pub prompts: PromptSpec,
    /// The service level objective.
    pub slo: Slo,
    /// Deadlines.
    pub timeouts: Timeouts,
    /// What outcomes cost.
    pub outcomes: Outcomes,
    /// Which stored runs it is compared with.
    #[serde(default)]
    pub baseline: BaselineSpec,
    /// Its scenarios; none: all traffic is of one kind, as `load`, `prompts` and `slo` say.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub scenarios: Vec<Scenario>,
    /// Whether they run one after another.
    #[serde(default)]
    pub order: RunOrder,
    /// What a run may use up.
    #[serde(default)]
    pub budget: Budget,
    /// What tokens cost.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prices: Option<Prices>,
    /// When a run is given up.
    #[serde(default)]
    pub abort: Abort,
    /// What the journal keeps.
    #[serde(default)]
    pub journal: JournalSpec,
    /// The checks: required ones in the spec's order, implied ones, preferred ones; scenario by scenario.
    pub checks: Vec<Check>,
    /// What flags changed.
    pub overrides: Vec<Override>,
}

/// Whether a text can name a gate: 1 to 64 letters, digits, `.`, `_` and `-`, from a letter or digit on, since outputs
/// are kept in a folder of that name. `baselines` is reserved.
#[must_use]
pub fn is_gate_name(text: &str) -> bool {
    let allowed = |symbol: char| symbol.is_ascii_alphanumeric() || "._-".contains(symbol);
    text.len() <= 64
        && text.starts_with(|first: char| first.is_ascii_alphanumeric())
        && text.chars().all(allowed)
        && text != "baselines"
}

impl GateSpec {
    /// A gate as a spec would give it that names only itself and its endpoint: every other key has its default, and
    /// its file is `gates/NAME.yaml`. It has no check yet, not even an implied one.
    #[must_use]
    pub fn new(name: &str, endpoint: Endpoint) -> Self {
        Self {
            version: 1,
            name: name.to_owned(),
            file: format!("gates/{name}.yaml"),
            target: Target::new(endpoint),
            reference: None,
            load: Load::default(),
            prompts: PromptSpec::default(),
            slo: Slo::default(),
            timeouts: Timeouts::default(),
            outcomes: Outcomes::default(),
            baseline: BaselineSpec::default(),
            scenarios: Vec::new(),
            order: RunOrder::default(),
            budget: Budget::default(),
            prices: None,
            abort: Abort::default(),
            journal: JournalSpec::default(),
            checks: Vec::new(),
            overrides: Vec::new(),
        }
    }

    /// Whether the target or the reference is the simulated engine.
    #[must_use]
    pub fn is_simulated(&self) -> bool {
        let mut targets = std::iter::once(&self.target).chain(&self.reference);
        targets.any(|target| matches!(target.endpoint, Endpoint::Sim(_)))
    }

    /// How many arms a run has: 2 side by side, else 1.
    #[must_use]
    pub fn arms(&self) -> u32 {
        if self.reference.is_some() { 2 } else { 1 }
    }

    /// The endpoint of an arm.
    #[must_use]
    pub fn of_arm(&self, arm: Arm) -> Option<&Target> {
        match arm {
            Arm::Target => Some(&self.target),
            Arm::Reference => self.reference.as_ref(),
        }
    }

    /// The scenarios' names; a gate without scenarios has one, named as the gate.
    #[must_use]
    pub fn scenario_names(&self) -> Vec<String> {
        if self.scenarios.is_empty() {
            return vec![self.name.clone()];
        }
        self.scenarios.iter().map(|scenario| scenario.name.clone()).collect()
    }

    /// A scenario that has anything of its own.
    fn scenario(&self, scenario: u16) -> Option<&Scenario> {
        self.scenarios.get(usize::from(scenario))
    }

    /// The load of a scenario.
    #[must_use]
    pub fn load_of(&self, scenario: u16) -> &Load {
        self.scenario(scenario).map_or(&self.load, |scenario| &scenario.load)
    }

    /// The prompts of a scenario.
    #[must_use]
    pub fn prompts_of(&self, scenario: u16) -> &PromptSpec {
        self.scenario(scenario).map_or(&self.prompts, |scenario| &scenario.prompts)
    }

    /// The service level objective of a scenario.
    #[must_use]
    pub fn slo_of(&self, scenario: u16) -> &Slo {
        self.scenario(scenario).map_or(&self.slo, |scenario| &scenario.slo)
    }

    /// The model that a scenario asks an arm for.
    #[must_use]
    pub fn model_of(&self, scenario: u16, arm: Arm) -> Option<&str> {
        let own = self.scenario(scenario).and_then(|scenario| scenario.model.as_deref());
        own.or_else(|| self.of_arm(arm)?.model.as_deref())
    }

    /// Whether any conversation may have more than one turn.
    #[must_use]
    pub fn has_turns(&self) -> bool {
        let own = self.scenarios.iter().map(|scenario| &scenario.prompts);
        own.chain([&self.prompts]).any(|prompts| prompts.turns.max > 1)
    }

    /// The sections of a run: the scenarios that share the endpoint at one time, section after section.
    #[must_use]
    pub fn sections(&self) -> Vec<Vec<u16>> {
        let all = 0..u16::try_from(self.scenarios.len().max(1)).unwrap_or(u16::MAX);
        match self.order {
            RunOrder::InTurn => all.map(|scenario| vec![scenario]).collect(),
            RunOrder::Together => vec![all.collect()],
        }
    }

    /// Whether a check compares with stored runs.
    #[must_use]
    pub fn needs_baseline(&self) -> bool {
        self.checks.iter().any(|check| check.bound.relative().is_some_and(|bound| bound.to == crate::Against::Baseline))
    }

    /// The run's time limit, given when its last arrival is due.
    #[must_use]
    pub fn run_limit(&self, last_arrival: Nanos) -> Nanos {
        self.timeouts.run.unwrap_or(last_arrival + self.timeouts.total + Nanos::from_secs(60))
    }
}
