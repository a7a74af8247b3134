//! Which scenario an arrival belongs to, where several run together.

use gate_model::GateSpec;

use crate::draw::{Purpose, Stream};
use crate::error::PlanError;
use crate::levels::levels;

/// Scenarios by weight, drawn from levels that are spread evenly, so that counts stay close to the weights.
pub(crate) struct Mix {
    /// The share of all up to and with each scenario.
    upto: Vec<f64>,
    levels: Option<Box<dyn Iterator<Item = f64>>>,
}

impl Mix {
    pub(crate) fn new(spec: &GateSpec, scenarios: &[u16]) -> Result<Self, PlanError> {
        let (Some(&lead), true) = (scenarios.first(), scenarios.len() > 1) else {
            return Ok(Self { upto: Vec::new(), levels: None });
        };
        let mut upto = Vec::with_capacity(scenarios.len());
        let mut sum = 0.0;
        for scenario in scenarios.iter().filter_map(|scenario| spec.scenarios.get(usize::from(*scenario))) {
            if !(scenario.weight.is_finite() && scenario.weight > 0.0) {
                return Err(PlanError::Weight { scenario: scenario.name.clone(), weight: scenario.weight });
            }
            sum += scenario.weight;
            upto.push(sum);
        }
        for share in &mut upto {
            *share /= sum;
        }
        let stream = Stream::new(spec.load_of(lead).seed, Purpose::Scenarios, lead);
        Ok(Self { upto, levels: Some(Box::new(levels(stream))) })
    }

    /// The place of the next arrival's scenario among the section's.
    pub(crate) fn next_place(&mut self) -> usize {
        let Some(level) = self.levels.as_mut().and_then(Iterator::next) else { return 0 };
        self.upto.partition_point(|share| *share <= level).min(self.upto.len().saturating_sub(1))
    }
}
