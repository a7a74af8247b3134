//! Which prompts are sent more than once.

use std::collections::{HashMap, HashSet};

use gate_model::{Arm, Cache, GateSpec, Plan};

use crate::files::Files;
use crate::prompt_file::identity;
use crate::rows::Rows;

/// How many requests of one arm of a plan say the same as an earlier one of their scenario, to the nonce.
///
/// That is only where a prompt file repeats itself: built-in prose says something else each time, and under
/// `cache: warm` repeats are meant, so neither counts. The turns of a conversation count with its beginning.
#[must_use]
pub fn repeats(spec: &GateSpec, plan: &Plan, files: &[Files]) -> u32 {
    let scenarios: HashSet<u16> = plan.requests.iter().map(|request| request.scenario).collect();
    let rows = |scenario: u16| {
        let file = files.get(usize::from(scenario))?.prompts.as_ref()?;
        let is_meant = spec.prompts_of(scenario).cache == Cache::Warm;
        (!is_meant).then(|| (scenario, Rows::new(spec, scenario, file)))
    };
    let rows: HashMap<u16, Rows> = scenarios.into_iter().filter_map(rows).collect();
    if rows.is_empty() {
        return 0;
    }
    let mut said = HashSet::new();
    let mut repeated = false;
    let first_arm = plan.requests.first().map_or(Arm::Target, |request| request.arm);
    let mut count = 0;
    for request in plan.requests.iter().filter(|request| request.arm == first_arm) {
        let row = rows.get(&request.scenario).and_then(|rows| rows.measured(request.conversation()));
        if request.turn == 0 {
            repeated = row.is_some_and(|row| !said.insert((request.scenario, identity(row))));
        }
        count += u32::from(repeated);
    }
    count
}
