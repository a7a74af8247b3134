//! What is true of an engine, for holding a measurement against it.

use gate_model::{Drift, EngineParams, Nanos, PerSecond};
use serde::{Deserialize, Serialize};

use crate::Backlog;

/// What one request takes of an engine, on average.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Work {
    /// Input tokens that are read: those that no cache holds.
    pub read: f64,
    /// Output tokens.
    pub output: f64,
}

/// How many requests of such work an engine of so many slots serves per second when it is never idle: slots ÷ mean
/// service time, which is prefill + TTFT + TPOT × (output tokens − 1). Of the latencies it takes the means as they are
/// given, no drift, no slow start and no faults. `None` without a limit of slots, or where service takes no time.
#[must_use]
pub fn capacity(params: &EngineParams, slots: Option<u32>, work: Work) -> Option<PerSecond> {
    let prefill = params.prefill.filter(|rate| *rate > 0.0).map_or(0.0, |rate| work.read / rate);
    let service =
        prefill + params.ttft.mean.as_secs_f64() + params.tpot.mean.as_secs_f64() * (work.output - 1.0).max(0.0);
    let slots = f64::from(slots?.max(1));
    (service > 0.0).then(|| PerSecond(slots / service))
}

/// What is true of an engine and what it was asked.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct EngineTruth {
    /// The mean work of the requests it answered.
    pub work: Work,
    /// [`capacity`] with the slots it started with, for that work.
    pub capacity: Option<PerSecond>,
    /// The same with all the slots it came to have.
    pub final_capacity: Option<PerSecond>,
    /// What grows in it, per hour.
    pub drift: Drift,
    /// When requests waited, in order of time; see [`crate::Engine::backlogs`].
    pub backlogs: Vec<Backlog>,
}

impl EngineTruth {
    /// How long after the end of a spike its backlog was gone: from then to the first instant at which no request
    /// waited. Zero where none waited when the spike ended; `None` where some still waited at the end of the run.
    ///
    /// It is the queue's own time. Requests that wait for a moment later on, as they did before the spike, do not
    /// count.
    #[must_use]
    pub fn recovery(&self, spike_end: Nanos) -> Option<Nanos> {
        let lasts_past = |backlog: &&Backlog| backlog.from <= spike_end && backlog.to.is_none_or(|to| to > spike_end);
        match self.backlogs.iter().find(lasts_past) {
            None => Some(Nanos::ZERO),
            Some(backlog) => backlog.to.map(|to| to - spike_end),
        }
    }
}

#[cfg(test)]
mod tests {
    use gate_model::Latency;

    use super::*;

    #[test]
    fn capacity_is_slots_by_service_time() {
        let params = EngineParams {
            ttft: Latency::constant(Nanos::from_millis(100)),
            tpot: Latency::constant(Nanos::from_millis(10)),
            prefill: Some(5_000.0),
            ..EngineParams::default()
        };
        // .2 s of reading, .1 s to the first token, .2 s for 20 more.
        let work = Work { read: 1_000.0, output: 21.0 };
        assert_eq!(capacity(&params, Some(4), work), Some(PerSecond(8.0)));
        assert_eq!(capacity(&params, None, work), None);
    }

    #[test]
    fn recovery_is_when_the_backlog_is_gone() {
        let backlog = |from, to: Option<i64>| Backlog { from: Nanos(from), to: to.map(Nanos), most: 1 };
        let backlogs = vec![backlog(5, Some(7)), backlog(20, Some(90)), backlog(95, Some(97)), backlog(99, None)];
        let truth = EngineTruth { backlogs, ..EngineTruth::default() };
        let recovery = |end| truth.recovery(Nanos(end)).map(|time| time.0);
        assert_eq!([4, 6, 10, 60, 90, 200].map(recovery), [Some(0), Some(1), Some(0), Some(30), Some(0), None]);
    }
}
