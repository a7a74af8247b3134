//! The machine that sends: how late its timers are, and whether its kernel stamps what it receives. A short load on the
//! built-in engine tells, within a second and without leaving the machine.

use gate_model::{Nanos, Run, Series, Stamping};

use super::{Finding, State};
use crate::console::Console;
use crate::failure::Failure;
use crate::{measure, specs, surroundings};

/// What is sent to the built-in engine.
const LOAD: &str = "version: 1\nname: doctor\ntarget: {sim: {ttft: 5ms, tpot: 1ms}}\nload: {rps: 60, iterations: 30, warmup: 1}\n\
                    prompts: {input_tokens: 20, output_tokens: 8}\nrequire: [errors.rate < 99%]\n";

/// From which lateness on a run's latencies are in doubt.
const LATE: Nanos = Nanos::from_millis(5);

/// The most of its CPU that a client may use.
const HOT: f64 = 0.9;

pub(super) fn findings(console: &Console) -> Vec<Finding> {
    let host = surroundings::host();
    let cpu = host.cpu.map(|cpu| format!(", {cpu}")).unwrap_or_default();
    let machine = Finding::new("machine", State::Works, format!("{}, {} cores{cpu}", host.system, host.cores));
    match measured(console) {
        Ok(run) => [vec![machine], clocks(&run)].concat(),
        Err(failure) => vec![machine, Finding::failed("clock", failure)],
    }
}

fn measured(console: &Console) -> Result<Run, Failure> {
    measure::aside(&specs::resolve_text("doctor", LOAD, &[], console)?.spec, console)
}

fn clocks(run: &Run) -> Vec<Finding> {
    let mut lags: Vec<f64> = run.requests().filter_map(|one| one.value(Series::SendLag)).collect();
    lags.sort_by(f64::total_cmp);
    let worst = lags.get((lags.len() * 95).div_ceil(100).saturating_sub(1)).copied().unwrap_or(0.0);
    let worst = Nanos(worst.round() as i64);
    let timer = if worst > LATE {
        Finding::new(
            "timers",
            State::Doubtful,
            format!("requests are taken up {worst} late (p95): this machine is busy"),
        )
        .remedy("measure from a machine with a core to spare; latencies of a late client are not judged")
    } else {
        Finding::new("timers", State::Works, format!("requests are taken up {worst} late (p95)"))
    };
    let health = run.end.as_ref().map(|end| end.health).unwrap_or_default();
    let clock = match health.clock {
        Stamping::Kernel => {
            Finding::new("clock", State::Works, "the kernel stamps what is received: a busy client costs no accuracy")
        }
        _ => Finding::new("clock", State::Doubtful, "this process stamps what is received: a busy client reads late")
            .remedy("the kernel's stamps need Linux, and TCP or loopback that has them"),
    };
    let cpu = health.cpu_share.filter(|share| *share > HOT).map(|share| {
        Finding::new(
            "cpu",
            State::Doubtful,
            format!("a small load took {:.0} % of the CPU this process may use", share * 100.0),
        )
        .remedy("give the job more CPU")
    });
    [Some(timer), Some(clock), cpu].into_iter().flatten().collect()
}
