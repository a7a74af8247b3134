//! One arm in virtual time: its engine, its client, and the calendar of both.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};

use gate_model::{
    Arm, EngineParams, GateSpec, Nanos, Outcome, Pace, Plan, PlannedRequest, Sample, Scrape, ServerMetric, Timeouts,
};

use super::ending::{Ending, ending, timeouts};
use super::prompt::{Author, blocks};
use super::told::{Counted, Teller, Turn, refused};
use crate::delivery::delivered;
use crate::script::{Script, script_at};
use crate::{Engine, after_warmup, of_arm};

/// Longer than any run: the delay of a request that is never served.
const FOREVER: Nanos = Nanos(i64::MAX / 4);

/// One arm: its engine, and the requests it gets.
pub(super) struct Side<'a> {
    plan: &'a Plan,
    spec: &'a GateSpec,
    arm: Arm,
    /// With faults counted from its first warm-up request on.
    params: EngineParams,
    /// Counted from its first measured request on.
    dies_after: Option<u32>,
    pace: Pace,
    timeouts: Timeouts,
    teller: Teller,
    engine: Engine,
    /// The number of the engine's next request.
    number: u32,
    now: Nanos,
    calendar: BinaryHeap<Reverse<(Nanos, Event)>>,
    /// What was sent and has not ended, by number.
    open: BTreeMap<u32, Open>,
    /// When the clients of those that wait give up, who waited longest first: all are equally patient.
    patience: VecDeque<(Nanos, u32)>,
    /// The client's free places; `None` without a cap.
    places: Option<u32>,
    /// What is due and waits for one of the client's places.
    held_back: VecDeque<(Due, Nanos)>,
    /// The place in the plan of the first arrival that is still to come.
    next: usize,
    arrived: u32,
    dead: bool,
    scrapes: Vec<Scrape>,
    scrape_every: Option<Nanos>,
    next_scrape: Nanos,
}

/// What an engine came to.
pub(super) struct Played {
    pub(super) state: Engine,
    pub(super) scrapes: Vec<Scrape>,
}

/// A request that is to be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Due {
    /// Its place in the plan.
    place: usize,
    /// The index of its conversation's first request.
    first: u32,
    /// The tokens of its history.
    history: u32,
}

/// What stands in the calendar; of those at one time in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    /// A request that is served ends.
    Ended(u32),
    /// A later turn is due.
    Turn(Due),
}

/// What comes next; of those at one time in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Step {
    Ended,
    Grown,
    GivenUp,
    Arrival,
    Turn,
}

/// A request that was sent and has not ended.
struct Open {
    due: Due,
    turn: Turn,
    /// As if it were served at once, until it is.
    script: Script,
    /// How it ends; known when it is served.
    ending: Option<Ending>,
    counted: Counted,
}

/// A warm-up request, before it is known when it began.
pub(super) struct Warmed {
    pub(super) index: u32,
    pub(super) lasts: Nanos,
    request: PlannedRequest,
    script: Script,
    ending: Ending,
    counted: Counted,
    teller: Teller,
}

impl Warmed {
    /// Its sample, begun at this time, which goes on to its end.
    pub(super) fn at(self, start: &mut Nanos) -> Sample {
        let sample = self.teller.sample(&self.request, &self.script, Turn::at(*start), self.ending, self.counted);
        *start = *start + self.lasts;
        sample
    }
}

impl<'a> Side<'a> {
    pub(super) fn new(arm: Arm, params: &EngineParams, plan: &'a Plan, spec: &'a GateSpec) -> Self {
        let warmup = plan.warmup.iter().filter(|request| request.arm == arm).count();
        let target = spec.of_arm(arm).unwrap_or(&spec.target);
        let generates = target.api.generates();
        let delivery = if generates { target.delivery } else { gate_model::Delivery::Whole };
        let pace = spec.load_of(plan.requests.first().map_or(0, |request| request.scenario)).pace;
        let scraped = arm == Arm::Target && (spec.target.metrics.is_some() || params.slots.is_some());
        Self {
            plan,
            spec,
            arm,
            dies_after: params.dies_after,
            pace,
            timeouts: timeouts(spec.timeouts, delivery),
            teller: Teller { delivery, generates, with_times: plan.first.saturating_add(spec.journal.tokens) },
            engine: Engine::new(params),
            params: after_warmup(&of_arm(params, arm), u32::try_from(warmup).unwrap_or(u32::MAX)),
            number: 0,
            now: Nanos::ZERO,
            calendar: BinaryHeap::new(),
            open: BTreeMap::new(),
            patience: VecDeque::new(),
            places: pace.cap().map(|cap| cap.max(1)),
            held_back: VecDeque::new(),
            next: 0,
            arrived: 0,
            dead: params.dies_after == Some(0),
            scrapes: Vec::new(),
            scrape_every: scraped.then(|| scrape_every(plan.duration())),
            next_scrape: Nanos::ZERO,
        }
    }

    /// Its warm-up requests, one after another.
    pub(super) fn warmed_up(&mut self) -> Vec<Warmed> {
        let (plan, arm) = (self.plan, self.arm);
        plan.warmup.iter().filter(|request| request.arm == arm).map(|request| self.warm(*request)).collect()
    }

    fn warm(&mut self, request: PlannedRequest) -> Warmed {
        let script = self.script(&request);
        let author = Author::Warmup(request.index);
        let mut counted = Counted { input: request.input_tokens, cached: None };
        let mut delay = Nanos::ZERO;
        if !script.fate.is_at_once() {
            let reading = self.engine.read(&self.blocks(&request, author, counted.input), counted.input);
            (counted.cached, delay) = (reading.cached, reading.takes);
        }
        let script = self.delivered(script.delayed(delay));
        let ending = ending(&script, &self.timeouts, None);
        if ending.outcome == Outcome::Ok {
            let tokens = counted.input.saturating_add(script.tokens());
            self.engine.remember(&self.blocks(&request, author, tokens));
        }
        let teller = Teller { with_times: self.spec.journal.tokens, ..self.teller };
        Warmed { index: request.index, lasts: ending.at, request, script, ending, counted, teller }
    }

    /// Plays its measured requests, and tells each when it has ended.
    pub(super) fn play(mut self, told: &mut impl FnMut(Sample)) -> Played {
        if let Pace::Closed { .. } = self.pace {
            self.ask_for_place();
            self.send_held_back(told);
        }
        while let Some((at, step)) = self.next_step() {
            self.scrape_until(at);
            self.now = self.now.max(at);
            match step {
                Step::Grown => self.engine.grow(self.now),
                Step::Arrival => self.arrival(told),
                Step::GivenUp => self.given_up(told),
                Step::Ended | Step::Turn => self.event(told),
            }
            self.serve();
            self.send_held_back(told);
        }
        Played { state: self.engine, scrapes: self.scrapes }
    }

    fn next_step(&self) -> Option<(Nanos, Step)> {
        let event = self.calendar.peek().map(|Reverse((at, event))| match event {
            Event::Ended(_) => (*at, Step::Ended),
            Event::Turn(_) => (*at, Step::Turn),
        });
        // An engine that nothing will be asked of any more need not grow.
        let growth = self.engine.next_event().filter(|_| !self.open.is_empty()).map(|at| (at, Step::Grown));
        let arrival = self.next_arrival().map(|at| (at, Step::Arrival));
        let given_up = self.patience.front().map(|(at, _)| (*at, Step::GivenUp));
        [event, growth, arrival, given_up].into_iter().flatten().min()
    }

    /// When the plan's next arrival is due; in a closed loop none is.
    fn next_arrival(&self) -> Option<Nanos> {
        if let Pace::Closed { .. } = self.pace {
            return None;
        }
        let next = self.planned(self.next, |request| request.turn == 0)?;
        self.plan.requests.get(next).map(|request| request.at)
    }

    /// The plan's next arrival, which is then no more to come.
    fn take_arrival(&mut self) -> Option<(Due, Nanos)> {
        let place = self.planned(self.next, |request| request.turn == 0)?;
        let request = self.plan.requests.get(place)?;
        self.next = place + 1;
        Some((Due { place, first: request.index, history: 0 }, request.at))
    }

    /// In a closed loop the plan's next arrival, one at a time, waits for one of the client's places.
    fn ask_for_place(&mut self) {
        if let Some(arrival) = self.take_arrival() {
            self.held_back.push_back(arrival);
        }
    }

    /// The first of the arm's requests from a place in the plan on that is such.
    fn planned(&self, from: usize, is_such: impl Fn(&PlannedRequest) -> bool) -> Option<usize> {
        let rest = self.plan.requests.get(from..)?;
        rest.iter().position(|request| request.arm == self.arm && is_such(request)).map(|place| from + place)
    }

    fn arrival(&mut self, told: &mut impl FnMut(Sample)) {
        if let Some((due, at)) = self.take_arrival() {
            self.take_up(due, at, told);
        }
    }

    /// A request is due: it is sent, or waits for one of the client's places.
    fn take_up(&mut self, due: Due, intended: Nanos, told: &mut impl FnMut(Sample)) {
        match self.places {
            None => self.send(due, Turn { intended, cap_wait: None, sent: self.now }, told),
            Some(_) => {
                self.held_back.push_back((due, intended));
                self.send_held_back(told);
            }
        }
    }

    /// Sends what waits for the client's places, in the order of asking. In a closed loop a request is due when it has
    /// its place.
    fn send_held_back(&mut self, told: &mut impl FnMut(Sample)) {
        while let Some(free @ 1..) = self.places
            && let Some((due, intended)) = self.held_back.pop_front()
        {
            self.places = Some(free - 1);
            match self.pace {
                Pace::Open { .. } => {
                    self.send(due, Turn { intended, cap_wait: Some(self.now - intended), sent: self.now }, told);
                }
                Pace::Closed { .. } => {
                    let is_first = self.plan.requests.get(due.place).is_some_and(|request| request.turn == 0);
                    if is_first {
                        self.ask_for_place();
                    }
                    self.send(due, Turn::at(self.now), told);
                }
            }
            self.serve();
        }
    }

    fn send(&mut self, due: Due, turn: Turn, told: &mut impl FnMut(Sample)) {
        let Some(request) = self.plan.requests.get(due.place).copied() else { return };
        if self.dead {
            told(refused(&request, turn));
            return self.give_place_back();
        }
        self.arrived = self.arrived.saturating_add(1);
        let number = self.number;
        let script = self.script(&request);
        let counted = Counted { input: due.history.saturating_add(request.input_tokens), cached: None };
        let mut open = Open { due, turn, script, ending: None, counted };
        if open.script.fate.is_at_once() {
            open.script = delivered(open.script, self.teller.delivery, self.params.buffer_bytes);
            let ending = ending(&open.script, &self.timeouts, None);
            open.ending = Some(ending);
            self.calendar.push(Reverse((turn.sent + ending.at, Event::Ended(number))));
            self.open.insert(number, open);
        } else {
            self.engine.arrive(self.now, u64::from(number));
            self.open.insert(number, open);
            self.serve();
            self.be_patient(number);
        }
        if self.dies_after == Some(self.arrived) {
            self.die(told);
        }
    }

    /// Enters when the client of a request gives up, where it is still not served.
    fn be_patient(&mut self, number: u32) {
        let Some(open) = self.open.get(&number).filter(|open| open.ending.is_none()) else { return };
        let never = self.delivered(open.script.clone().delayed(FOREVER));
        let given_up = open.turn.sent + ending(&never, &self.timeouts, None).at;
        self.patience.push_back((given_up, number));
    }

    /// Serves what has a slot now.
    fn serve(&mut self) {
        while let Some(ticket) = self.engine.start(self.now) {
            let Some((number, mut open)) =
                u32::try_from(ticket).ok().and_then(|number| self.open.remove_entry(&number))
            else {
                continue;
            };
            let Some(request) = self.plan.requests.get(open.due.place) else { continue };
            let blocks = self.blocks(request, Author::Conversation(open.due.first), open.counted.input);
            let reading = self.engine.read(&blocks, open.counted.input);
            open.counted.cached = reading.cached;
            open.script = self.delivered(open.script.delayed(self.now - open.turn.sent + reading.takes));
            let ending = ending(&open.script, &self.timeouts, None);
            open.ending = Some(ending);
            self.calendar.push(Reverse(((open.turn.sent + ending.at).max(self.now), Event::Ended(number))));
            self.open.insert(number, open);
        }
        // Who waited longest was served first.
        while self.patience.front().is_some_and(|(_, number)| !self.waits(*number)) {
            self.patience.pop_front();
        }
    }

    fn waits(&self, number: u32) -> bool {
        self.open.get(&number).is_some_and(|open| open.ending.is_none())
    }

    /// The client of the request that waited longest gives up.
    fn given_up(&mut self, told: &mut impl FnMut(Sample)) {
        let Some((_, number)) = self.patience.pop_front() else { return };
        if let Some(open) = self.open.remove(&number) {
            self.end(number, open, None, told);
        }
    }

    fn event(&mut self, told: &mut impl FnMut(Sample)) {
        match self.calendar.pop() {
            Some(Reverse((_, Event::Ended(number)))) => {
                if let Some(open) = self.open.remove(&number) {
                    self.end(number, open, None, told);
                }
            }
            Some(Reverse((at, Event::Turn(due)))) => self.take_up(due, at, told),
            None => {}
        }
    }

    /// A request ends; by the engine's death where that is given, from its start.
    fn end(&mut self, number: u32, open: Open, death: Option<Nanos>, told: &mut impl FnMut(Sample)) {
        let Open { due, turn, script, ending: own, counted } = open;
        let Some(request) = self.plan.requests.get(due.place) else { return };
        let takes_slot = !script.fate.is_at_once();
        let script = if own.is_none() { self.delivered(script.delayed(FOREVER)) } else { script };
        let ending = match (own, death) {
            (Some(own), None) => own,
            _ => ending(&script, &self.timeouts, death),
        };
        told(self.teller.sample(request, &script, turn, ending, counted));
        let is_answered = ending.outcome == Outcome::Ok;
        let tokens = counted.input.saturating_add(if self.teller.generates { script.tokens() } else { 0 });
        if takes_slot {
            self.engine.leave(self.now, u64::from(number));
            if is_answered {
                self.engine.remember(&self.blocks(request, Author::Conversation(due.first), tokens));
            }
        }
        self.give_place_back();
        let turn = self.planned(due.place + 1, |_| true).filter(|_| is_answered);
        let turn = turn.and_then(|place| Some((place, self.plan.requests.get(place).filter(|next| next.turn > 0)?)));
        if let Some((place, next)) = turn {
            let due = Due { place, first: due.first, history: tokens };
            self.calendar.push(Reverse((self.now + next.at, Event::Turn(due))));
        }
    }

    /// The client has a place for another.
    fn give_place_back(&mut self) {
        self.places = self.places.map(|free| free.saturating_add(1));
    }

    /// The engine dies: whatever is open ends now.
    fn die(&mut self, told: &mut impl FnMut(Sample)) {
        self.dead = true;
        for (number, open) in std::mem::take(&mut self.open) {
            let death = self.now - open.turn.sent;
            self.end(number, open, Some(death), told);
        }
    }

    /// The engine's script of its next request, as if it were served at once.
    fn script(&mut self, request: &PlannedRequest) -> Script {
        let output_tokens = if self.teller.generates { request.output_tokens } else { 1 };
        let number = self.number;
        self.number = number.saturating_add(1);
        script_at(&self.params, number, output_tokens, self.now)
    }

    fn delivered(&self, script: Script) -> Script {
        delivered(script, self.teller.delivery, self.params.buffer_bytes)
    }

    fn blocks(&self, request: &PlannedRequest, author: Author, tokens: u32) -> Vec<u64> {
        let prompts = self.spec.prompts_of(request.scenario);
        self.engine.block_tokens().map_or_else(Vec::new, |size| blocks(request, author, prompts, tokens, size))
    }

    /// What the engine reports of itself at each time of asking before this one.
    fn scrape_until(&mut self, at: Nanos) {
        let Some(every) = self.scrape_every else { return };
        while self.next_scrape < at && !self.dead {
            let values = self.engine.gauges(self.next_scrape).into_iter();
            let values = values.filter_map(|(name, value)| Some((ServerMetric::new(name)?, value))).collect();
            self.scrapes.push(Scrape { at: self.next_scrape, values, error: None });
            self.next_scrape = self.next_scrape + every;
        }
    }
}

/// How often the engine is asked for its metrics, under a schedule of this length.
fn scrape_every(schedule: Nanos) -> Nanos {
    const HOUR: i64 = 3_600;
    match schedule.0 / 1_000_000_000 {
        seconds if seconds > 6 * HOUR => Nanos::from_secs(60),
        seconds if seconds >= HOUR => Nanos::from_secs(10),
        _ => Nanos::from_secs(1),
    }
}
