//! What a list of checks is about: one kind of traffic, with its load.

use gate_model::{Load, Metric, Pattern, RunOrder, Slo};

use crate::context::Context;
use crate::load::expected;
use crate::raw::{RawCheck, RawScenario, RawSpec};
use crate::scenario::Scoped;
use crate::scope::Scope;
use crate::table::SHAPE;

/// The traffic that checks are about: a scenario, or all of a gate without scenarios.
pub(crate) struct Traffic<'a> {
    pub(super) scope: &'a Scope,
    pub(super) load: &'a Load,
    pub(super) slo: Slo,
    /// The share of the load's requests that are its own.
    pub(super) share: f64,
    /// The checks of the scenario's own: those that are required, and those that are preferred.
    pub(super) own: Option<[&'a [RawCheck]; 2]>,
}

impl<'a> Traffic<'a> {
    /// All of a gate.
    pub(crate) fn of_gate(scope: &'a Scope, raw: &RawSpec, load: &'a Load) -> Self {
        Self { scope, load, slo: raw.slo, share: 1.0, own: None }
    }

    /// A scenario, where the weights of all add up to this.
    pub(crate) fn of(scoped: &'a Scoped, raw: &'a RawScenario, order: RunOrder, weights: f64) -> Self {
        let Scoped { scope, scenario } = scoped;
        let share = if order == RunOrder::Together { scenario.weight / weights } else { 1.0 };
        Self { scope, load: &scenario.load, slo: scenario.slo, share, own: Some([&raw.require, &raw.prefer]) }
    }

    /// Whether all that says how many requests there are means something.
    pub(super) fn is_sized(&self, context: &Context) -> bool {
        SHAPE.iter().all(|key| self.scope.is_sound(context, &format!("load.{key}")))
    }

    /// How many requests of each arm the metric is taken over, at least or on average; `None` where only a file knows.
    pub(super) fn size(&self, metric: Metric) -> Option<u32> {
        let Load { iterations, pace, .. } = self.load;
        let time = match (metric, self.load.spike(), pace.rate()) {
            (Metric::Spike(_), Some((from, to)), Some(rate)) => {
                let times = match self.load.pattern {
                    Pattern::Spike { times, .. } => times,
                    _ => 1.0,
                };
                rate.0 * times * (to - from).as_secs_f64()
            }
            _ => match iterations.base() {
                Some(base) => return Some(base),
                None => expected(self.load)?,
            },
        };
        Some((time * self.share).round() as u32)
    }

    /// The key that says how many requests there are.
    pub(super) fn sizing(&self, context: &Context) -> String {
        let keys = ["load.pattern", "load.stages", "load.duration", "load.trace"];
        let written = keys.into_iter().map(|key| self.scope.path(context, key)).find(|path| context.is_written(path));
        written.unwrap_or_else(|| self.scope.path(context, "load.iterations"))
    }
}
