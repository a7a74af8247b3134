//! Conversations: what a later turn follows on.

use std::sync::Arc;

use gate_model::{Plan, PlannedRequest, Prompts};
use tokio::sync::{mpsc, oneshot};

use crate::LoadError;
use crate::arms::Arms;
use crate::client::Terms;
use crate::requests::Prepared;

/// The conversation of a request that another turn follows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Conversation {
    /// What was answered so far, oldest first.
    pub(crate) answers: Vec<String>,
    /// How many tokens it came to so far.
    pub(crate) context: u64,
}

/// Asks for the turn after a request that was answered.
pub(crate) struct NextTurn {
    /// The request.
    pub(crate) after: PlannedRequest,
    /// With its answer.
    pub(crate) conversation: Conversation,
    pub(crate) reply: oneshot::Sender<Result<Prepared, LoadError>>,
}

/// How many turns may be asked for before who asks has to wait.
pub(crate) const ASKED: usize = 1_024;

/// The place of a request in a plan.
pub(crate) fn place(plan: &Plan, index: u32) -> Option<usize> {
    plan.requests.binary_search_by_key(&index, |request| request.index).ok()
}

/// The turns that follow a request, in order.
pub(crate) fn later<'a>(
    plan: &'a Plan,
    request: &PlannedRequest,
) -> impl Iterator<Item = &'a PlannedRequest> + use<'a> {
    let (arm, turn) = (request.arm, request.turn);
    let rest = place(plan, request.index).and_then(|place| plan.requests.get(place + 1..)).unwrap_or_default();
    let own = rest.iter().filter(move |other| other.arm == arm);
    own.zip(turn.saturating_add(1)..).take_while(|(other, turn)| other.turn == *turn).map(|(other, _)| other)
}

/// The conversation that a request begins, where another turn follows it.
pub(crate) fn begun(plan: &Plan, request: &PlannedRequest) -> Option<Box<Conversation>> {
    later(plan, request).next().map(|_| Box::default())
}

/// Writes the turns that are asked for, until nobody asks any more.
pub(crate) fn write_turns(
    plan: &Plan,
    prompts: &dyn Prompts,
    arms: &Arms<Arc<Terms>>,
    mut asked: mpsc::Receiver<NextTurn>,
) {
    while let Some(NextTurn { after, conversation, reply }) = asked.blocking_recv() {
        // Who asked may have ended.
        let _ = reply.send(write(plan, prompts, arms, &after, conversation));
    }
}

fn write(
    plan: &Plan,
    prompts: &dyn Prompts,
    arms: &Arms<Arc<Terms>>,
    after: &PlannedRequest,
    conversation: Conversation,
) -> Result<Prepared, LoadError> {
    let mut later = later(plan, after);
    let planned = later.next().ok_or(LoadError::Internal)?;
    let prompt = prompts.measured(planned, &conversation.answers);
    let mut prepared = arms.get(planned.arm)?.writer.prepare(planned, &prompt)?;
    prepared.context = conversation.context;
    prepared.conversation = later.next().map(|_| Box::new(conversation));
    Ok(prepared)
}

#[cfg(test)]
mod tests {
    use gate_model::{Arm, Endpoint, GateSpec};

    use super::*;

    #[test]
    fn the_turns_of_a_conversation_are_those_of_its_arm() {
        let spec = GateSpec::new("chat", Endpoint::Sim(Box::default()));
        let turns = [
            (10, Arm::Target, 0),
            (11, Arm::Reference, 0),
            (12, Arm::Target, 1),
            (13, Arm::Reference, 1),
            (14, Arm::Target, 2),
            (15, Arm::Reference, 2),
            (20, Arm::Reference, 0),
            (21, Arm::Target, 0),
        ];
        let requests = turns.map(|(index, arm, turn)| PlannedRequest { index, arm, turn, ..PlannedRequest::default() });
        let plan = Plan::new(&spec, vec![4], requests.to_vec());
        let after = |place: usize| later(&plan, &requests[place]).map(|one| one.index).collect::<Vec<_>>();
        assert_eq!(after(0), [12, 14]);
        assert_eq!(after(1), [13, 15]);
        assert_eq!(after(2), [14]);
        for last in 4..8 {
            assert_eq!(after(last), [0; 0]);
        }
        assert!(begun(&plan, &requests[1]).is_some() && begun(&plan, &requests[7]).is_none());
    }
}
