//! A whole run in virtual time.

use gate_model::{
    Arm, EndReason, EngineParams, Health, Nanos, Outcome, Plan, ReferenceEnd, Run, RunEnd, RunHeader, Sample, Spent,
    Stamping,
};

use crate::{EngineTruth, Work, capacity};

mod ending;
mod prompt;
mod side;
mod told;

use side::Side;

/// A whole run in virtual time: every request of the plan, with exact times and a client in perfect health.
///
/// - Each arm has an engine of its own, with its own slots and its own randomness ([`crate::of_arm`]); nothing that
///   happens to one is felt by the other. Without parameters for the reference only the target's requests are played.
/// - An engine's requests are numbered in the order of their arrival, warm-up requests first, and play
///   [`crate::script_at`] of that number, later by what they wait for a slot and by the reading of their prompt
///   ([`crate::Engine`]). Warm-up requests follow one another at once, those of both arms in the plan's order, and end
///   at the epoch; the measured ones start as the scenario's pace says, on open connections: when they are due,
///   where there is a cap not before one of the client's places is free, and in a closed loop when one is. Faults by
///   script count the measured ones, so no warm-up request has one.
/// - A later turn is due its think time after the end of the answer before it. A turn that fails ends its conversation:
///   later ones are not in the run. In a closed loop a later turn asks for a place when it is due, and its latency
///   counts from when it has one, as that of all requests does.
/// - A prompt's content is known by its place in the plan: the shared prefix of its group, then its conversation, the
///   answers included, which nothing else begins with; with a warm cache all prompts of a scenario and group begin
///   alike.
/// - Answers come as the arm's `delivery` in `header.spec` says. Streams are held back by a proxy of `buffer_bytes`,
///   counted by [`crate::EventKind::nominal_bytes`]; of one body only the end is known, as `last_token`. Embeddings are
///   one body, due when a first token would be.
/// - The deadlines of `header.spec.timeouts` for the first token, for stalls and for the whole request apply, from when
///   the request is sent; of one body only the last. A request has its slot, or its place in the queue, until its last
///   token, or until its client gives up.
/// - The engine dies when `dies_after` measured requests have arrived: what is open at that instant (that last
///   request included) is [`Outcome::Reset`], what comes later is [`Outcome::Connect`]. With 0 it was never there.
/// - Usage is the input length by the plan, history included, what of it the prefix cache held where there is one, and
///   the tokens sent, for answers that end well. There are no bytes, so `body_bytes` is 0, and `ready_after` is over
///   before the run begins. The whole plan is played: looks, budgets and aborts are the reader's business.
/// - Where the target has `metrics`, or the engine `slots`, the target's engine is scraped every second from the epoch on;
///   of a schedule of an hour or more every ten seconds, of more than six hours every minute.
///
/// A run of more than [`gate_model::RAW_LIMIT`] requests is kept in short ([`Run::keep`]); beyond that only what is open
/// is held.
#[must_use]
pub fn simulate(target: &EngineParams, reference: Option<&EngineParams>, plan: &Plan, header: RunHeader) -> Run {
    simulate_with_truth(target, reference, plan, header).0
}

/// [`simulate`], and what is true of the target's engine in this run, its times from the epoch.
#[must_use]
pub fn simulate_with_truth(
    target: &EngineParams,
    reference: Option<&EngineParams>,
    plan: &Plan,
    header: RunHeader,
) -> (Run, EngineTruth) {
    let spec = header.spec.clone();
    let mut target_side = Side::new(Arm::Target, target, plan, &spec);
    let mut reference_side = reference.map(|params| Side::new(Arm::Reference, params, plan, &spec));

    let mut run = Run::new(header, Vec::new(), Vec::new(), None);
    match plan.requests.len() {
        long if run.header.whole > gate_model::RAW_LIMIT => run.briefs.reserve_exact(long),
        short => run.samples.reserve_exact(short),
    }
    let mut tally = Tally::default();
    let mut warmed = target_side.warmed_up();
    warmed.extend(reference_side.iter_mut().flat_map(Side::warmed_up));
    warmed.sort_by_key(|warmed| warmed.index);
    let mut start = warmed.iter().fold(Nanos::ZERO, |start, warmed| start - warmed.lasts);
    for sample in warmed.into_iter().map(|warmed| warmed.at(&mut start)) {
        tally.count(&sample);
        run.warmup.push(sample);
    }

    let mut answers = Answers::default();
    let engine = target_side.play(&mut |sample| {
        answers.count(&sample);
        tally.count(&sample);
        run.keep(sample);
    });
    if let Some(side) = reference_side {
        side.play(&mut |sample| {
            tally.count(&sample);
            run.keep(sample);
        });
    }
    run.scrapes = engine.scrapes;
    // In the order in which they ended, so far.
    run.samples.sort_unstable_by_key(|sample| sample.index);
    run.briefs.sort_unstable_by_key(|brief| brief.index);
    run.end = Some(RunEnd {
        reference: reference.map(|_| ReferenceEnd::default()),
        health: Health {
            clock: Stamping::Virtual,
            cpu_share: Some(0.0),
            loop_delay_p95: Some(Nanos::ZERO),
            ..Health::default()
        },
        spent: (tally.spent.requests > 0).then_some(tally.spent),
        ..RunEnd::new(EndReason::Completed, run.recorded(), tally.end)
    });
    let work = answers.work();
    let truth = EngineTruth {
        work,
        capacity: capacity(target, target.slots, work),
        final_capacity: capacity(target, engine.state.slots(), work),
        drift: target.drift,
        backlogs: engine.state.backlogs(),
    };
    (run, truth)
}

/// What all requests come to.
#[derive(Default)]
struct Tally {
    spent: Spent,
    /// When the last of them ended; 0 where none did after the epoch.
    end: Nanos,
}

impl Tally {
    fn count(&mut self, sample: &Sample) {
        let usage = sample.usage;
        self.end = self.end.max(sample.end.unwrap_or_default());
        self.spent = self.spent.plus(Spent {
            // One that found no connection was not sent.
            requests: u64::from(sample.sent.is_some()),
            input: usage.and_then(|usage| usage.input).unwrap_or(0),
            cached: usage.and_then(|usage| usage.cached).unwrap_or(0),
            output: usage.and_then(|usage| usage.output).unwrap_or(0),
            uncounted: u64::from(usage.is_none() && sample.content_events > 0),
        });
    }
}

/// The mean of the requests that were answered.
#[derive(Default)]
struct Answers {
    count: u64,
    read: u64,
    output: u64,
}

impl Answers {
    fn count(&mut self, sample: &Sample) {
        if let (Outcome::Ok, Some(usage)) = (sample.outcome, sample.usage) {
            self.count += 1;
            self.read += usage.input.unwrap_or(0).saturating_sub(usage.cached.unwrap_or(0));
            self.output += usage.output.unwrap_or(1);
        }
    }

    fn work(&self) -> Work {
        let mean = |sum: u64| if self.count == 0 { 0.0 } else { sum as f64 / self.count as f64 };
        Work { read: mean(self.read), output: mean(self.output) }
    }
}

#[cfg(test)]
mod tests;
