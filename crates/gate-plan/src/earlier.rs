//! How long the turns before a request's own were planned.

use gate_model::{Arm, GateSpec};

use crate::compile::{Extent, plans};
use crate::files::Files;

/// The planned lengths of every turn of conversations of more than one, by scenario and conversation.
///
/// A conversation of a shorter plan is the same in the longest, so that one holds for all.
pub(crate) struct Earlier {
    scenarios: Vec<Lengths>,
}

#[derive(Default)]
struct Lengths {
    /// Where each conversation starts in `turns`.
    starts: Vec<u32>,
    turns: Vec<(u32, u32)>,
}

impl Earlier {
    /// Those of a spec; none where no conversation goes on, and where there is no plan.
    pub(crate) fn new(spec: &GateSpec, files: &[Files]) -> Self {
        let mut scenarios: Vec<Lengths> = spec.scenario_names().iter().map(|_| Lengths::default()).collect();
        let plans =
            if spec.has_turns() { plans(spec, Extent::Extended, files).unwrap_or_default() } else { Vec::new() };
        let requests = plans.iter().flat_map(|plan| &plan.requests);
        for request in requests.filter(|request| request.arm == Arm::Target) {
            let Some(own) = scenarios.get_mut(usize::from(request.scenario)) else { continue };
            if request.turn == 0 {
                own.starts.push(u32::try_from(own.turns.len()).unwrap_or(u32::MAX));
            }
            own.turns.push((request.input_tokens, request.output_tokens));
        }
        Self { scenarios }
    }

    /// Input and output tokens of a turn.
    pub(crate) fn lengths(&self, scenario: u16, conversation: u32, turn: u16) -> Option<(u32, u32)> {
        let own = self.scenarios.get(usize::from(scenario))?;
        let start = own.starts.get(conversation as usize)?;
        own.turns.get(*start as usize + usize::from(turn)).copied()
    }
}
