//! A spec to its plans.

use gate_model::{Arm, GateSpec, Iterations, Load, Pace, Pattern, Plan, PlannedRequest, RunOrder};

use crate::arrivals::{Arriving, LONGEST, arriving};
use crate::digest::digest;
use crate::draw::{Purpose, Stream};
use crate::error::PlanError;
use crate::files::Files;
use crate::mix::Mix;
use crate::nonce::Phase;
use crate::traffic::{Flow, Traffic};

/// The most requests a section's plan holds of each arm, warm-up and measured each.
pub(crate) const MOST_REQUESTS: u32 = 1_000_000;

/// How far a plan goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    /// With the extension that a required check asks for where it is seen over its limit, and not proven.
    Extended,
    /// Without it.
    Base,
}

/// Compiles a spec into its plans, one for each of [`GateSpec::sections`]: every request, before any is sent.
///
/// `gate check` asks for the extended plans, `gate run` for those without the extension. A request depends on the spec
/// and its own place among its scenario's alone, never on how many follow it, so each shorter plan is a prefix of the
/// longer one, but for where a later section's indexes start.
///
/// `files` are what the spec's files hold, of each scenario in order. Of a `prompts.file` the first rows are measured
/// (in the file's order, or for data sets in one drawn from the seed), and the last ones are for warm-up; the two never
/// overlap. A request then has the input tokens of its row by [`gate_tokens::estimate`], and the row's output tokens
/// where it has any.
///
/// Input tokens are those of the prompt without `prompts.system`, which comes on top; those of a shared prefix are part
/// of them, and come on top of a file's rows. With `cache: warm` and no file, where one text is sent throughout, they
/// are the mean. Where nothing is generated (embeddings), requests have no output tokens.
///
/// In a closed loop every conversation is due at zero: the end of an earlier one sends it, and only their order is
/// planned. A cap on an open loop changes nothing. A schedule of rates has as many requests as are due within it.
///
/// One arrival is one conversation, and its turns are neighbours. With a reference every request is a pair: one of each
/// arm, equal in all but arm and index, numbered as the requests of a plan without a reference are and equal to them in
/// time and lengths. Which of the two comes first is drawn anew for each measured conversation; in warm-up it is the
/// target's.
///
/// Where scenarios run together, each arrival of the gate's load is given one by weight, and every ten arrivals
/// have close to their shares; the plan, and each look, ends where the rarest scenario has its count.
///
/// # Errors
///
/// [`PlanError`] where the spec's numbers or the files allow no plan.
pub fn plans(spec: &GateSpec, extent: Extent, files: &[Files]) -> Result<Vec<Plan>, PlanError> {
    let mut first = 0;
    let sections = (0..).zip(spec.sections());
    let plans = sections.map(|(section, scenarios)| {
        let plan = Section { spec, section, scenarios: &scenarios, first }.plan(extent, files)?;
        first = first.saturating_add(plan.whole);
        Ok(plan)
    });
    plans.collect()
}

/// One section on its way to a plan.
struct Section<'a> {
    spec: &'a GateSpec,
    section: u16,
    scenarios: &'a [u16],
    /// The index of its first request.
    first: u32,
}

/// What ends a plan.
enum Goal {
    /// The last of these sizes, reached by every scenario.
    Looks(Vec<u32>),
    /// The end of the arrivals.
    Arrivals,
}

/// Measured requests of one arm, and where they are judged.
#[derive(Default)]
struct Measured {
    requests: Vec<PlannedRequest>,
    looks: Vec<u32>,
    by_scenario: Vec<Vec<u32>>,
}

impl Measured {
    /// Notes that the plan is judged here.
    fn look(&mut self, flows: &[Flow<'_>]) {
        self.looks.push(u32::try_from(self.requests.len()).unwrap_or(u32::MAX));
        if flows.len() > 1 {
            self.by_scenario.push(flows.iter().map(|flow| flow.requests).collect());
        }
    }
}

impl Section<'_> {
    fn plan(&self, extent: Extent, files: &[Files]) -> Result<Plan, PlanError> {
        let (spec, none) = (self.spec, Files::default());
        let files_of = |scenario: u16| files.get(usize::from(scenario)).unwrap_or(&none);
        let lead = self.scenarios.first().copied().unwrap_or(0);
        let load = spec.load_of(lead);
        at_most("load.warmup", load.warmup).map_err(|error| self.blame_load(lead, error))?;
        let goal = goal(load, extent).map_err(|error| self.blame_load(lead, error))?;

        let traffic = |scenario: u16| {
            Traffic::new(spec, scenario, files_of(scenario)).map_err(|error| self.blame(scenario, error))
        };
        let traffic: Vec<Traffic> = self.scenarios.iter().copied().map(traffic).collect::<Result<_, _>>()?;
        let trace = files_of(lead).trace.as_ref();
        if let (Pattern::Trace(file), None) = (&load.pattern, trace) {
            let error = PlanError::FileNotRead { key: "load.trace", file: file.clone() };
            return Err(self.blame_load(lead, error));
        }
        let trace = trace.filter(|_| matches!(load.pattern, Pattern::Trace(_)));

        let warmup = self.warmup(&traffic)?;
        let measured = arriving(load, lead, trace).and_then(|arriving| self.measured(arriving, goal, &traffic));
        let Measured { requests, looks, by_scenario } = measured.map_err(|error| self.blame_load(lead, error))?;
        let (warmup, requests) = match &spec.reference {
            None => (warmup, requests),
            Some(_) => {
                let mut order = Stream::new(load.seed, Purpose::Order, lead).part(0);
                let drawn = || if order.below(2) == 0 { Arm::Target } else { Arm::Reference };
                (paired(warmup, 0, || Arm::Target), paired(requests, self.first, drawn))
            }
        };
        let plan =
            Plan { warmup, section: self.section, first: self.first, by_scenario, ..Plan::new(spec, looks, requests) };
        Ok(Plan { seed: load.seed, digest: Some(digest(&plan)), ..plan })
    }

    /// An error of a scenario of several, with its name.
    fn blame(&self, scenario: u16, error: PlanError) -> PlanError {
        match self.spec.scenarios.get(usize::from(scenario)) {
            Some(scenario) => PlanError::InScenario { scenario: scenario.name.clone(), error: Box::new(error) },
            None => error,
        }
    }

    /// An error of the section's load, which is a scenario's own where they run in turn.
    fn blame_load(&self, lead: u16, error: PlanError) -> PlanError {
        match self.spec.order {
            RunOrder::InTurn => self.blame(lead, error),
            RunOrder::Together => error,
        }
    }

    /// An error of a scenario's requests among those of the section's load.
    fn blame_among(&self, scenario: u16, error: PlanError) -> PlanError {
        match self.spec.order {
            RunOrder::InTurn => error,
            RunOrder::Together => self.blame(scenario, error),
        }
    }

    /// Warm-up requests of one arm: every scenario's, one scenario after another.
    fn warmup(&self, traffic: &[Traffic]) -> Result<Vec<PlannedRequest>, PlanError> {
        let mut requests = Vec::new();
        for (&scenario, traffic) in self.scenarios.iter().zip(traffic) {
            let mut flow = traffic.flow(Phase::Warmup);
            for _ in 0..traffic.warmup() {
                let index = u32::try_from(requests.len()).unwrap_or(u32::MAX);
                let conversation = flow.begin();
                let lengths = flow.lengths(&conversation, 0, None);
                let (input_tokens, output_tokens) = lengths.map_err(|error| self.blame(scenario, error))?;
                requests.push(PlannedRequest {
                    index,
                    scenario,
                    group: conversation.group,
                    ahead: index.saturating_sub(conversation.number),
                    input_tokens,
                    output_tokens,
                    ..PlannedRequest::default()
                });
            }
        }
        Ok(requests)
    }

    /// Measured requests of one arm, and their looks.
    fn measured(&self, arriving: Arriving<'_>, goal: Goal, traffic: &[Traffic]) -> Result<Measured, PlanError> {
        let mut flows: Vec<Flow<'_>> = traffic.iter().map(|traffic| traffic.flow(Phase::Measured)).collect();
        let mut measured = Measured::default();
        let (looks, by_arrivals) = match &goal {
            Goal::Looks(looks) => (looks.as_slice(), false),
            Goal::Arrivals => (&[][..], true),
        };
        let mut looks = looks.iter().copied().peekable();
        let mut mix = Mix::new(self.spec, self.scenarios)?;
        let before = self.first / self.spec.arms();
        let mut rows = 0;

        'arrivals: for arrival in arriving {
            if !by_arrivals && looks.peek().is_none() {
                break;
            }
            rows += 1;
            let place = mix.next_place();
            let (Some(flow), Some(&scenario)) = (flows.get_mut(place), self.scenarios.get(place)) else { break };
            let conversation = flow.begin();
            let place_of = |requests: &Vec<PlannedRequest>| u32::try_from(requests.len()).unwrap_or(u32::MAX);
            let opening = before.saturating_add(place_of(&measured.requests));
            for turn in 0..u16::try_from(conversation.turns).unwrap_or(u16::MAX) {
                let Some(flow) = flows.get_mut(place) else { break };
                let index = before.saturating_add(place_of(&measured.requests));
                let at = if turn == 0 { arrival.at } else { flow.think() };
                if turn == 0 && at > LONGEST {
                    return Err(match arrival.row {
                        Some(row) => PlanError::TraceTooLong { line: row.line, at },
                        None => PlanError::TooLong { index: place_of(&measured.requests), at },
                    });
                }
                let lengths = flow.lengths(&conversation, turn, arrival.row);
                let (input_tokens, output_tokens) = lengths.map_err(|error| self.blame_among(scenario, error))?;
                measured.requests.push(PlannedRequest {
                    index,
                    scenario,
                    turn,
                    group: conversation.group,
                    ahead: opening.saturating_sub(conversation.number),
                    at,
                    input_tokens,
                    output_tokens,
                    ..PlannedRequest::default()
                });
                if place_of(&measured.requests) > MOST_REQUESTS {
                    return Err(PlanError::TooManyDue { limit: MOST_REQUESTS });
                }
                let rarest = flows.iter().map(|flow| flow.requests).min().unwrap_or(0);
                if looks.next_if(|look| rarest >= *look).is_some() {
                    measured.look(&flows);
                    if looks.peek().is_none() {
                        break 'arrivals;
                    }
                }
            }
        }
        if let Some(asked) = looks.last() {
            return Err(PlanError::TraceTooShort { rows, asked });
        }
        if by_arrivals {
            measured.look(&flows);
        }
        if measured.requests.is_empty() {
            return Err(PlanError::NothingDue);
        }
        for ((&scenario, traffic), flow) in self.scenarios.iter().zip(traffic).zip(&flows) {
            let enough = traffic.check_rows(flow.conversations);
            enough.map_err(|error| self.blame_among(scenario, error))?;
        }
        Ok(measured)
    }
}

/// What ends a load's plan.
fn goal(load: &Load, extent: Extent) -> Result<Goal, PlanError> {
    if load.stages().is_some() {
        return Ok(Goal::Arrivals);
    }
    let iterations = match extent {
        Extent::Extended => load.iterations,
        Extent::Base => load.iterations.without_extension(),
    };
    let looks = match (&load.pattern, iterations, load.pace) {
        (Pattern::Trace(_), Iterations::For(_), _) => return Ok(Goal::Arrivals),
        (_, Iterations::For(_), Pace::Closed { .. }) => return Err(PlanError::ClosedFor),
        (Pattern::Steady, iterations, _) => iterations.looks(),
        // Over a long time, or a trace, there is nothing to gain by an early end.
        (_, iterations, _) => iterations.base().into_iter().collect(),
    };
    let ascending = looks.is_sorted_by(|earlier, later| earlier < later);
    match (looks.first(), looks.last()) {
        (Some(&first), Some(&last)) if first > 0 && ascending => {
            at_most("load.iterations", last)?;
            Ok(Goal::Looks(looks))
        }
        _ => Err(PlanError::Looks { looks }),
    }
}

fn at_most(key: &'static str, count: u32) -> Result<(), PlanError> {
    if count > MOST_REQUESTS {
        return Err(PlanError::TooMany { key, count, limit: MOST_REQUESTS });
    }
    Ok(())
}

/// A request of each arm for every one of these, with indexes from `index` on; `first` gives the arm that comes first
/// in each conversation.
fn paired(requests: Vec<PlannedRequest>, index: u32, mut first: impl FnMut() -> Arm) -> Vec<PlannedRequest> {
    let mut both = Vec::with_capacity(2 * requests.len());
    let mut arms = [Arm::Target, Arm::Reference];
    for request in requests {
        if request.turn == 0 {
            arms = match first() {
                Arm::Target => [Arm::Target, Arm::Reference],
                Arm::Reference => [Arm::Reference, Arm::Target],
            };
        }
        both.extend(arms.map(|arm| PlannedRequest { arm, pair: Some(request.index), ..request }));
    }
    for (index, request) in (index..).zip(&mut both) {
        request.index = index;
    }
    both
}
