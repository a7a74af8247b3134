//! When each measured request has its turn, as the pace of the load says.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use gate_model::{Nanos, Pace, PlannedRequest};

/// When one request has its turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Turn {
    /// When it is due, and taken up.
    pub(super) intended: Nanos,
    /// How long it then waits for a slot; absent without a cap.
    pub(super) cap_wait: Option<Nanos>,
    /// When it is sent.
    pub(super) sent: Nanos,
}

impl Turn {
    /// Taken up and sent at this time.
    pub(super) fn at(time: Nanos) -> Self {
        Self { intended: time, cap_wait: None, sent: time }
    }
}

/// When the engine dies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Death {
    /// How many measured requests arrive before it, or with it.
    pub(super) arrived: usize,
    /// The arrival of the last of them.
    pub(super) at: Nanos,
}

/// The turn of every request, and the engine's death after so many; `length` is how long the request at a position
/// takes, were the engine to live. What waits for a slot is served in order. Once dead, the engine refuses at once: no
/// slot is taken any more.
pub(super) fn turns(
    pace: Pace,
    requests: &[PlannedRequest],
    dies_after: Option<u32>,
    length: impl Fn(u32, &PlannedRequest) -> Nanos,
) -> (Vec<Turn>, Option<Death>) {
    let mut death = dies_after.map(|count| Death { arrived: count as usize, at: Nanos(i64::MAX) });
    let mut turns = Vec::with_capacity(requests.len());
    // When each slot is free.
    let slots = pace.cap().map(|cap| (cap.max(1) as usize).min(requests.len()));
    let mut slots: Option<BinaryHeap<_>> = slots.map(|count| vec![Reverse(Nanos::ZERO); count].into());
    for (position, request) in (0_u32..).zip(requests) {
        let dead = death.filter(|death| position as usize >= death.arrived);
        let free = slots.as_mut().and_then(BinaryHeap::pop).map(|Reverse(free)| free);
        let free = free.map(|free| dead.map_or(free, |death| free.min(death.at)));
        let turn = match (pace, free) {
            (Pace::Closed { .. }, Some(free)) => Turn::at(free),
            (Pace::Open { .. }, Some(free)) => {
                let sent = request.at.max(free);
                Turn { intended: request.at, cap_wait: Some(sent - request.at), sent }
            }
            (_, None) => Turn::at(request.at),
        };
        if let Some(slots) = &mut slots {
            let taken = if dead.is_some() { Nanos::ZERO } else { length(position, request) };
            slots.push(Reverse(turn.sent + taken));
        }
        if let Some(death) = &mut death
            && death.arrived == position as usize + 1
        {
            death.at = turn.sent;
        }
        turns.push(turn);
    }
    (turns, death)
}

#[cfg(test)]
mod tests {
    use gate_model::PerSecond;

    use super::*;

    /// The requests due at these times, each of which takes 10; when they are due, wait and are sent.
    fn played(pace: Pace, at: &[i64], dies_after: Option<u32>) -> Vec<(i64, Option<i64>, i64)> {
        let requests: Vec<_> =
            at.iter().map(|at| PlannedRequest { at: Nanos(*at), ..PlannedRequest::default() }).collect();
        let (turns, _) = turns(pace, &requests, dies_after, |_, _| Nanos(10));
        turns.iter().map(|turn| (turn.intended.0, turn.cap_wait.map(|wait| wait.0), turn.sent.0)).collect()
    }

    fn open(cap: Option<u32>) -> Pace {
        Pace::Open { rate: PerSecond(1.0), cap }
    }

    #[test]
    fn an_open_loop_sends_when_requests_are_due_and_a_cap_makes_them_wait() {
        let at = [0, 1, 2, 40, 41];
        assert_eq!(played(open(None), &at, None), at.map(|at| (at, None, at)));
        let capped = [(0, 0, 0), (1, 0, 1), (2, 8, 10), (40, 0, 40), (41, 0, 41)];
        assert_eq!(played(open(Some(2)), &at, None), capped.map(|(at, wait, sent)| (at, Some(wait), sent)));
        assert_eq!(played(open(Some(u32::MAX)), &at, None), at.map(|at| (at, Some(0), at)));
    }

    #[test]
    fn a_closed_loop_sends_when_a_request_has_ended() {
        let sent = [0, 0, 10, 10, 20].map(|at| (at, None, at));
        assert_eq!(played(Pace::Closed { concurrency: 2 }, &[0; 5], None), sent);
        assert_eq!(played(Pace::Closed { concurrency: 0 }, &[0; 2], None), [(0, None, 0), (10, None, 10)]);
    }

    #[test]
    fn a_dead_engine_takes_no_slot() {
        let sent = [0, 0, 10, 10, 10].map(|at| (at, None, at));
        assert_eq!(played(Pace::Closed { concurrency: 2 }, &[0; 5], Some(3)), sent);
        let capped = [(0, 0, 0), (1, 9, 10), (2, 8, 10), (15, 0, 15)];
        let capped = capped.map(|(at, wait, sent)| (at, Some(wait), sent));
        assert_eq!(played(open(Some(1)), &[0, 1, 2, 15], Some(2)), capped);
        assert_eq!(played(open(Some(1)), &[0, 1], Some(0)), [(0, Some(0), 0), (1, Some(0), 1)]);
    }
}
