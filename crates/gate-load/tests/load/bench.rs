//! Runs a load with a guard against hanging.

use std::io::{self, Write};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

use gate_load::{Load, LoadError, Progress, ProxyEnv, Remote, Stop, Trust};
use gate_model::{
    Arm, CountTokens, Decision, Endpoint, GateSpec, Message, Nanos, Plan, PlannedRequest, Prompt, Prompts, Redactor,
    Referee, Role, Run, RunHeader, Sample, Secret, Spent, Target, Timeouts,
};

/// How long a test may take before it counts as hanging.
const GUARD: Duration = Duration::from_secs(60);

/// What is lost for good with a sample.
pub(crate) type Lost = Box<dyn FnMut(&Sample) -> Option<String> + Send>;

/// A load to be run.
pub(crate) struct Bench {
    pub(crate) base: String,
    pub(crate) socket: Option<PathBuf>,
    pub(crate) trust: Trust,
    pub(crate) reference: Option<Remote>,
    pub(crate) proxies: ProxyEnv,
    pub(crate) spec: GateSpec,
    pub(crate) plan: Plan,
    pub(crate) prompts: Arc<Numbered>,
    pub(crate) counter: Option<Arc<dyn CountTokens>>,
    pub(crate) stop: Stop,
    /// What the referee says at each look; it goes on where it has nothing to say.
    pub(crate) decisions: Vec<Decision>,
    /// What it says of each sample.
    pub(crate) lost: Lost,
    pub(crate) spent: Spent,
    pub(crate) start_at: Option<Nanos>,
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

/// Prompts that say their number, and remember what they were asked.
#[derive(Default)]
pub(crate) struct Numbered(Mutex<Vec<Asked>>);

/// What prompts were asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Asked {
    Measured(u32),
    Warmup(u32),
    Fit(Vec<(u32, u64)>),
}

impl Numbered {
    pub(crate) fn asked(&self) -> Vec<Asked> {
        self.0.lock().unwrap().clone()
    }

    fn note(&self, asked: Asked) {
        self.0.lock().unwrap().push(asked);
    }
}

impl Prompts for Numbered {
    fn measured(&self, request: &PlannedRequest, answers: &[String]) -> Prompt {
        self.note(Asked::Measured(request.index));
        numbered("measured", request, answers)
    }

    fn warmup(&self, request: &PlannedRequest) -> Prompt {
        self.note(Asked::Warmup(request.index));
        numbered("warmup", request, &[])
    }

    fn fit(&self, counted: &[(u32, u64)]) {
        self.note(Asked::Fit(counted.to_vec()));
    }
}

/// Both requests of a pair say the same. A later turn says so after what was said and answered before.
fn numbered(kind: &str, request: &PlannedRequest, answers: &[String]) -> Prompt {
    let number = request.pair.unwrap_or(request.index);
    assert_eq!(answers.len(), usize::from(request.turn));
    let mut messages = Vec::new();
    for (turn, answer) in answers.iter().enumerate() {
        messages.push(Message::new(Role::User, format!("turn {turn}")));
        messages.push(Message::new(Role::Assistant, answer));
    }
    messages.push(Message::new(Role::User, format!("{kind}-{number}.")));
    Prompt { messages }
}

struct Scripted {
    decisions: std::vec::IntoIter<Decision>,
    looks: Vec<usize>,
    lost: Lost,
}

impl Referee for Scripted {
    fn look(&mut self, samples: &[Sample]) -> Decision {
        assert!(samples.is_sorted_by(|one, other| one.index < other.index));
        self.looks.push(samples.len());
        self.decisions.next().unwrap_or(Decision::GoOn)
    }

    fn lost(&mut self, sample: &Sample) -> Option<String> {
        (self.lost)(sample)
    }
}

impl Bench {
    /// `count` requests, 5 ms apart, judged once, after one warm-up request; generous deadlines.
    pub(crate) fn new(address: SocketAddr, count: u32) -> Self {
        Self::at(&format!("http://{address}"), count)
    }

    pub(crate) fn at(base: &str, count: u32) -> Self {
        let spec = spec(base);
        let requests = (0..count).map(|index| planned(index, Nanos::from_millis(5 * i64::from(index))));
        let plan = Plan::new(&spec, vec![count], requests.collect());
        Self {
            base: base.to_owned(),
            socket: None,
            trust: Trust::default(),
            reference: None,
            proxies: ProxyEnv::default(),
            spec,
            plan: Plan { warmup: vec![planned(0, Nanos::ZERO)], ..plan },
            prompts: Arc::default(),
            counter: None,
            stop: Stop::new(),
            decisions: Vec::new(),
            lost: Box::new(|_| None),
            spent: Spent::default(),
            start_at: None,
            observe: Box::new(|_| {}),
            journal: Box::new(io::sink()),
        }
    }

    pub(crate) fn warmup(mut self, count: u32) -> Self {
        self.plan.warmup = (0..count).map(|index| planned(index, Nanos::ZERO)).collect();
        self
    }

    /// The same requests, each paired with one to a reference at this URL. The reference's comes first in every pair
    /// of an odd number.
    pub(crate) fn beside(mut self, base: &str) -> Self {
        self.spec.reference = Some(Target { endpoint: Endpoint::Url(base.to_owned()), ..self.spec.target.clone() });
        self.reference = Some(Remote { base: base.parse().unwrap(), socket: None, trust: Trust::default() });
        self.plan.requests = paired(&self.plan.requests, |pair| pair % 2 == 1);
        self.plan.whole *= 2;
        self.plan.warmup = paired(&self.plan.warmup, |_| false);
        self
    }

    /// The reference's part of the spec.
    pub(crate) fn other(&mut self) -> &mut Target {
        self.spec.reference.as_mut().unwrap()
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
        let Self {
            base,
            socket,
            trust,
            reference,
            proxies,
            spec,
            plan,
            prompts,
            counter,
            stop,
            decisions,
            lost,
            spent,
            start_at,
            mut observe,
            mut journal,
        } = self;
        let text = Shared::default();
        let mut copy = text.clone();
        let mut both = Tee(&mut *journal, &mut copy);
        let targets = [Some(&spec.target), spec.reference.as_ref()].into_iter().flatten();
        let mut redactor = Redactor::new(targets.flat_map(secrets));
        redactor.add(&proxies.secrets());
        let mut referee = Scripted { decisions: decisions.into_iter(), looks: Vec::new(), lost };
        let load = Load {
            header: RunHeader::new(spec, &plan, "0.0.0", "test", "2026-01-01T00:00:00Z"),
            target: Remote { base: base.parse().unwrap(), socket, trust },
            reference,
            proxies,
            plan: &plan,
            prompts,
            counter,
            referee: &mut referee,
            redactor: &redactor,
            spent,
            start_at,
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
    PlannedRequest { index, at, input_tokens: 3, output_tokens: 8, ..PlannedRequest::default() }
}

fn paired(requests: &[PlannedRequest], reference_first: fn(u32) -> bool) -> Vec<PlannedRequest> {
    let pair = |request: &PlannedRequest| {
        let mut arms = [Arm::Target, Arm::Reference];
        if reference_first(request.index) {
            arms.reverse();
        }
        arms.map(|arm| PlannedRequest { arm, pair: Some(request.index), ..*request })
    };
    let requests = requests.iter().flat_map(pair);
    (0..).zip(requests).map(|(index, request)| PlannedRequest { index, ..request }).collect()
}

fn secrets(target: &Target) -> impl Iterator<Item = &Secret> {
    target.key.iter().chain(target.headers.iter().map(|header| &header.value))
}

fn spec(base: &str) -> GateSpec {
    let mut spec = GateSpec::new("test", Endpoint::Url(base.to_owned()));
    spec.target.model = Some("m".to_owned());
    spec.target.ready.within = Nanos::from_secs(20);
    spec.timeouts = Timeouts {
        connect: Nanos::from_secs(20),
        first_token: Nanos::from_secs(20),
        stall: Nanos::from_secs(20),
        total: Nanos::from_secs(40),
        run: None,
    };
    spec
}

pub(crate) fn secret(text: &str) -> Secret {
    Secret::new(text)
}
