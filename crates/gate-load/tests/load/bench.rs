//! Runs a load with a guard against hanging.

use std::io::{self, Write};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

use gate_load::{Load, LoadError, Progress, Stop};
use gate_model::{
    Api, Arm, Arrivals, Cache, DEFINITIONS, Decision, Endpoint, GateSpec, Iterations, Length, Message, Nanos, Outcomes,
    PLAN_SCHEMA, PerSecond, Plan, PlannedRequest, Policy, Prompt, PromptSpec, Prompts, RUN_SCHEMA, Ready, ReadyPath,
    Redactor, Referee, Role, Run, RunHeader, Sample, Secret, Shape, Slo, Target, Timeouts,
};

/// How long a test may take before it counts as hanging.
const GUARD: Duration = Duration::from_secs(60);

/// A load to be run.
pub(crate) struct Bench {
    pub(crate) base: String,
    pub(crate) spec: GateSpec,
    pub(crate) plan: Plan,
    pub(crate) stop: Stop,
    /// What the referee says at each look; it goes on where it has nothing to say.
    pub(crate) decisions: Vec<Decision>,
    /// Called with each progress, in words.
    pub(crate) observe: Box<dyn FnMut(&Progress<'_>) + Send>,
    pub(crate) journal: Box<dyn Write + Send>,
}

/// What a load gave.
#[derive(Debug)]
pub(crate) struct Report {
    pub(crate) run: Run,
    pub(crate) journal: String,
    /// How many samples each look was given.
    pub(crate) looks: Vec<usize>,
}

/// A buffer that several may hold.
#[derive(Clone, Default)]
pub(crate) struct Shared(Arc<Mutex<Vec<u8>>>);

impl Shared {
    pub(crate) fn text(&self) -> String {
        String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
    }
}

impl Write for Shared {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

struct Numbered;

impl Prompts for Numbered {
    fn measured(&self, request: &PlannedRequest) -> Prompt {
        numbered("measured", request.index)
    }

    fn warmup(&self, request: &PlannedRequest) -> Prompt {
        numbered("warmup", request.index)
    }
}

fn numbered(kind: &str, index: u32) -> Prompt {
    Prompt { messages: vec![Message { role: Role::User, text: format!("{kind}-{index}.") }] }
}

struct Scripted {
    decisions: std::vec::IntoIter<Decision>,
    looks: Vec<usize>,
}

impl Referee for Scripted {
    fn look(&mut self, samples: &[Sample]) -> Decision {
        assert!(samples.iter().enumerate().all(|(place, sample)| sample.index as usize == place));
        self.looks.push(samples.len());
        self.decisions.next().unwrap_or(Decision::GoOn)
    }
}

impl Bench {
    /// `count` requests, 5 ms apart, judged once, after one warm-up request; generous deadlines.
    pub(crate) fn new(address: SocketAddr, count: u32) -> Self {
        Self::at(&format!("http://{address}"), count)
    }

    pub(crate) fn at(base: &str, count: u32) -> Self {
        Self {
            base: base.to_owned(),
            spec: spec(base),
            plan: plan(count, 1),
            stop: Stop::new(),
            decisions: Vec::new(),
            observe: Box::new(|_| {}),
            journal: Box::new(io::sink()),
        }
    }

    pub(crate) fn warmup(mut self, count: u32) -> Self {
        self.plan.warmup = (0..count).map(|index| planned(index, Nanos::ZERO)).collect();
        self
    }

    /// Milliseconds from one request to the next.
    pub(crate) fn every(mut self, millis: i64) -> Self {
        for request in &mut self.plan.requests {
            request.at = Nanos::from_millis(millis * i64::from(request.index));
        }
        self
    }

    /// Runs it to its end.
    pub(crate) fn go(self) -> Report {
        let (result, journal, looks) = self.try_go();
        let run = result.unwrap();
        Report { run, journal, looks }
    }

    pub(crate) fn try_go(self) -> (Result<Run, LoadError>, String, Vec<usize>) {
        let (done, finished) = mpsc::channel();
        std::thread::spawn(move || {
            let _ = done.send(Box::new(self.run()));
        });
        *finished.recv_timeout(GUARD).expect("the load hangs, or panicked")
    }

    fn run(self) -> (Result<Run, LoadError>, String, Vec<usize>) {
        let Self { base, spec, plan, stop, decisions, mut observe, mut journal } = self;
        let text = Shared::default();
        let mut copy = text.clone();
        let mut both = Tee(&mut *journal, &mut copy);
        let redactor = Redactor::new(spec.target.key.iter().chain(spec.target.headers.iter().map(|h| &h.value)));
        let mut referee = Scripted { decisions: decisions.into_iter(), looks: Vec::new() };
        let load = Load {
            header: header(&spec, &plan),
            base: base.parse().unwrap(),
            plan: &plan,
            prompts: Arc::new(Numbered),
            referee: &mut referee,
            redactor: &redactor,
            journal: Some(Box::new(&mut both)),
            stop,
        };
        let result = gate_load::run(load, &mut |progress| observe(&progress));
        (result, text.text(), referee.looks)
    }
}

struct Tee<'a>(&'a mut (dyn Write + Send), &'a mut Shared);

impl Write for Tee<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write_all(bytes)?;
        self.1.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

fn planned(index: u32, at: Nanos) -> PlannedRequest {
    PlannedRequest { index, scenario: 0, arm: Arm::Target, pair: None, turn: 0, at, input_tokens: 3, output_tokens: 8 }
}

fn plan(count: u32, warmup: u32) -> Plan {
    Plan {
        schema: PLAN_SCHEMA,
        seed: 0,
        scenarios: vec!["test".to_owned()],
        looks: vec![count],
        warmup: (0..warmup).map(|index| planned(index, Nanos::ZERO)).collect(),
        requests: (0..count).map(|index| planned(index, Nanos::from_millis(5 * i64::from(index)))).collect(),
    }
}

fn header(spec: &GateSpec, plan: &Plan) -> RunHeader {
    RunHeader {
        schema: RUN_SCHEMA,
        definitions: DEFINITIONS,
        gate: "0.0.0".to_owned(),
        run_id: "test".to_owned(),
        started: "2026-01-01T00:00:00Z".to_owned(),
        spec: spec.clone(),
        scenarios: plan.scenarios.clone(),
        looks: plan.looks.clone(),
        schedule: plan.requests.iter().map(|request| request.at).collect(),
        simulated: false,
        percentiles: "nearest rank".to_owned(),
        clock: "user".to_owned(),
        host: None,
        imported_from: None,
    }
}

fn spec(base: &str) -> GateSpec {
    let length = Length { mean: 8.0, stddev: 0.0, min: 1, max: 8, shape: Shape::Normal };
    GateSpec {
        version: 1,
        name: "test".to_owned(),
        file: "test.yaml".to_owned(),
        target: Target {
            endpoint: Endpoint::Url(base.to_owned()),
            api: Api::OpenaiChat,
            model: Some("m".to_owned()),
            key: None,
            headers: Vec::new(),
            extra_body: serde_json::Map::new(),
            ready: Ready { within: Nanos::from_secs(20), path: ReadyPath::Auto },
        },
        load: gate_model::Load {
            rate: PerSecond(200.0),
            iterations: Iterations::Fixed(1),
            warmup: 1,
            arrivals: Arrivals::Constant,
            seed: 0,
        },
        prompts: PromptSpec { input_tokens: length, output_tokens: length, cache: Cache::Bust },
        slo: Slo::default(),
        timeouts: Timeouts {
            connect: Nanos::from_secs(20),
            first_token: Nanos::from_secs(20),
            stall: Nanos::from_secs(20),
            total: Nanos::from_secs(40),
            run: None,
        },
        outcomes: Outcomes { inconclusive: Policy::Pass, no_baseline: Policy::Pass, invalid: Policy::Fail },
        checks: Vec::new(),
        overrides: Vec::new(),
    }
}

pub(crate) fn secret(text: &str) -> Secret {
    Secret::new(text)
}
