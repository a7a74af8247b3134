//! Likely causes of what is slow: what else changed, by more than chance, and makes requests slow in that way.
//!
//! What holds the server for longer makes others wait, so that a queue may have grown for longer prompts, answers or
//! tokens: it comes after them, and they come in the order of what they add to a request. Where the client was busy its
//! measurements tell nothing of the server, and no other cause is looked for.

mod client;
mod tokens;
mod wait;

use gate_model::{
    CheckVerdict, Drifting, LikelyCause, Metric, Nanos, Phase, Quantity, Request, Run, Scalar, Series, Shift, Suspect,
};

use crate::base;
use crate::judge::Decided;
use crate::slow::{Growth, Slow};

/// The share from which a number's growth explains anything.
const LEAST_GROWTH: f64 = 0.10;

/// The likely causes of all that is slow.
pub(crate) fn suspects(run: &Run, decided: &Decided<'_>, checks: &[CheckVerdict], slow: &[Slow<'_>]) -> Vec<Suspect> {
    let mut suspects = client::busy(run, decided, checks);
    let is_falsified = |scenario: u16| {
        let part = decided.part(scenario);
        part.is_some_and(|part| suspects.iter().any(|one| part.section.scenarios.contains(&one.scenario)))
    };
    let sound: Vec<&Slow<'_>> = slow.iter().filter(|slow| !is_falsified(slow.scenario)).collect();
    for slow in sound {
        let likely = likely(slow).into_iter();
        suspects.extend(likely.map(|Likely { phase, cause, .. }| Suspect {
            scenario: slow.scenario,
            phase,
            against: Some(slow.against),
            cause,
        }));
    }
    suspects
}

/// A likely cause.
struct Likely {
    phase: Phase,
    cause: LikelyCause,
    /// What it adds to a request, in nanoseconds.
    added: f64,
}

/// What a request's times depend on.
#[derive(Clone, Copy, PartialEq)]
enum Part {
    /// Connecting.
    Connecting,
    /// What comes before the first token.
    Wait,
    /// The time of each token.
    Pace,
    /// How many tokens there are.
    Length,
}

/// What a metric depends on.
fn depends_on(metric: Metric) -> &'static [Part] {
    use Part::{Connecting, Length, Pace, Wait};
    match metric {
        Metric::Spike(inner) => depends_on(inner.metric()),
        Metric::Series(series, _) | Metric::Drift(Drifting::Series(series)) => match series {
            Series::Ttft | Series::Ttfa | Series::Ttfe => &[Connecting, Wait],
            Series::Headers => &[Wait],
            Series::Tpot | Series::Itl | Series::Icl | Series::Stall => &[Pace],
            Series::Dns | Series::Connect | Series::Tls | Series::Write => &[Connecting],
            _ => &[Connecting, Wait, Pace, Length],
        },
        Metric::Scalar(Scalar::TpotEffective) => &[Pace],
        _ => &[Connecting, Wait, Pace, Length],
    }
}

/// The likely causes in one scenario, the one that explains most first.
fn likely(slow: &Slow<'_>) -> Vec<Likely> {
    let Some(least) = slow.least() else { return Vec::new() };
    let explains = |part: Part| slow.metrics.iter().any(|metric| depends_on(*metric).contains(&part));
    let reading = tokens::Reading::of(slow);
    let waiting = wait::Waiting::of(slow).filter(|_| explains(Part::Wait));
    let queue = waiting.as_ref().and_then(|waiting| waiting.queue(slow));
    let queue = queue.filter(|queue| queue.added >= least);
    let prefill = waiting.as_ref().and_then(|waiting| waiting.prefill(reading.factor));
    let [prompts, cache] = reading.causes(slow).map(|cause| cause.filter(|_| explains(Part::Wait)));
    // Who waits in a queue waits for the others' answers.
    let holds = |part: Part| explains(part) || queue.is_some();
    let outputs = tokens::outputs(slow).filter(|_| holds(Part::Length));
    let decode = decode(slow).filter(|_| holds(Part::Pace));
    let connect = connect(slow).filter(|_| explains(Part::Connecting));
    let roots = [outputs, prompts, cache, decode, prefill, connect].into_iter().flatten();
    let mut likely: Vec<Likely> = roots.filter(|one| one.added >= least).collect();
    let is_alone = likely.iter().all(|one| one.phase == Phase::Connect);
    if is_alone {
        likely.extend(queue);
        likely.sort_by(|one, other| other.added.total_cmp(&one.added));
    } else {
        likely.sort_by(|one, other| other.added.total_cmp(&one.added));
        likely.extend(queue);
    }
    likely
}

/// Each token takes longer.
fn decode(slow: &Slow<'_>) -> Option<Likely> {
    let grown = slow.grew(|one| one.value(Series::Tpot)).filter(Growth::is_marked)?;
    let tokens = base::mean(slow.here.numbers(|one| one.value(Series::OutputTokens)).into_iter())?;
    let cause = LikelyCause::DecodeSlower { tpot: grown.times() };
    Some(Likely { phase: Phase::Decode, cause, added: (tokens - 1.0).max(0.0) * (grown.to - grown.from) })
}

/// Connecting itself takes longer, the client's lateness and the wait for a place under a cap left aside.
fn connect(slow: &Slow<'_>) -> Option<Likely> {
    let connect = |one: Request<'_>| Some((one.had_connection()? - one.went_out()?).0 as f64);
    let grown = slow.grew(connect).filter(Growth::is_marked)?;
    let cause = LikelyCause::SlowerConnect { connect: grown.times() };
    Some(Likely { phase: Phase::Connect, cause, added: grown.to - grown.from })
}

impl Growth {
    /// Whether it grew by so much that it explains anything.
    fn is_marked(&self) -> bool {
        self.to >= (1.0 + LEAST_GROWTH) * self.from
    }

    /// As times.
    fn times(&self) -> Shift {
        let time = |nanos: f64| Quantity::time(Nanos(nanos.round() as i64));
        Shift { from: time(self.from), to: time(self.to) }
    }

    /// As counts.
    fn counts(&self) -> Shift {
        Shift { from: Quantity::count(self.from), to: Quantity::count(self.to) }
    }

    /// As shares.
    fn shares(&self) -> Shift {
        Shift { from: Quantity::share(self.from), to: Quantity::share(self.to) }
    }
}
