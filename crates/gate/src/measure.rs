//! From a spec to a finished run: the plans, the endpoints, the journal and the load, wired together.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use gate_load::{Load, LoadError, Remote, Stop};
use gate_model::{Arm, EndReason, Endpoint, GateSpec, Nanos, Plan, Redactor, Referee, Run, RunHeader, Section, Spent};
use gate_plan::Extent;
use gate_sim::Server;

use crate::commands::run::SendAll;
use crate::console::Console;
use crate::failure::Failure;
use crate::inputs::{Inputs, Way, refused, url};
use crate::journals::JournalFile;
use crate::live::Live;
use crate::surroundings;

/// The version of this program, as every file carries it.
pub(crate) const VERSION: &str = env!("CARGO_PKG_VERSION");

/// From the last arrival of a section to the next section's first, where all machines begin it at one instant.
const BETWEEN: Nanos = Nanos::from_secs(30);

/// What is sent, and where that is written.
pub(crate) struct Order<'a> {
    pub(crate) spec: &'a GateSpec,
    pub(crate) inputs: &'a Inputs,
    /// One for each section, in order.
    pub(crate) plans: &'a [Plan],
    pub(crate) journal: &'a Path,
    /// RFC 3339 in UTC.
    pub(crate) started: &'a str,
    /// The instant of the first section's epoch, since the UNIX epoch.
    pub(crate) start_at: Option<Nanos>,
    pub(crate) stop: &'a Stop,
    pub(crate) console: &'a Console,
}

/// What was measured, with the files of its journal.
pub(crate) struct Measured {
    /// Each section that was begun; of one shard where the plans are a shard's.
    pub(crate) sections: Vec<Run>,
    pub(crate) journals: Vec<PathBuf>,
}

impl Measured {
    /// The whole run, with the files of its journal.
    pub(crate) fn whole(self) -> Result<(Run, Vec<PathBuf>), Failure> {
        let run = Run::assemble(self.sections)
            .map_err(|error| Failure::internal(format!("failed to join the run: {error}")))?;
        Ok((run, self.journals))
    }
}

/// Sends the whole load of a small spec that a command has of its own, and says nothing of it to anybody: its journal is
/// gone once it is read.
pub(crate) fn aside(spec: &GateSpec, console: &Console) -> Result<Run, Failure> {
    let inputs = Inputs::read(spec)?;
    let plans = inputs.plans(spec, Extent::Base)?;
    let folder = tempfile::tempdir().map_err(|error| Failure::unwritable(&std::env::temp_dir(), error))?;
    let stop = Stop::new();
    let order = Order {
        spec,
        inputs: &inputs,
        plans: &plans,
        journal: &folder.path().join("run.jsonl"),
        started: &now(),
        start_at: None,
        stop: &stop,
        console: &console.silent(),
    };
    Ok(run(&order, |_| Box::new(SendAll))?.whole()?.0)
}

/// Sends the load of every section, one after another, and writes their journal. What ends the run in one section ends
/// all of it.
pub(crate) fn run<'r>(
    order: &Order<'_>,
    mut referee: impl FnMut(&Section) -> Box<dyn Referee + 'r>,
) -> Result<Measured, Failure> {
    let Order { spec, plans, stop, console, .. } = order;
    console.secrets.add(&order.inputs.proxies.secrets());
    let redactor = console.secrets.redactor();
    let mut journal = JournalFile::create(order.journal)?;
    let run_id = run_id();
    let (mut sections, mut spent, mut start_at) = (Vec::new(), Spent::default(), order.start_at);
    for plan in *plans {
        let mut referee = referee(&Section::of_plan(spec, plan));
        let begun = Begun { plan, run_id: &run_id, start_at, spent, redactor: &redactor };
        let measured = section(order, begun, &mut *referee, &mut journal)?;
        let end = measured.end.clone();
        sections.push(measured);
        let Some(end) = end else { break };
        spent = spent.plus(end.spent.unwrap_or_default());
        if !matches!(end.reason, EndReason::Completed | EndReason::StoppedAtLook(_)) || stop.is_triggered() {
            break;
        }
        // Shards begin a section together: when the one before it should have ended on every machine.
        start_at = start_at.map(|at| at + plan.duration() + BETWEEN);
    }
    Ok(Measured { sections, journals: journal.files() })
}

/// What a section begins with.
struct Begun<'a> {
    plan: &'a Plan,
    run_id: &'a str,
    start_at: Option<Nanos>,
    /// By earlier sections.
    spent: Spent,
    redactor: &'a Redactor,
}

/// Sends the load of one section.
fn section(
    order: &Order<'_>,
    begun: Begun<'_>,
    referee: &mut dyn Referee,
    journal: &mut JournalFile,
) -> Result<Run, Failure> {
    let Order { spec, inputs, stop, console, .. } = order;
    let Begun { plan, run_id, start_at, spent, redactor } = begun;
    let reach = |arm, way: &Way| Reach::of(spec, plan, arm, way);
    let target = reach(Arm::Target, &inputs.target)?;
    let reference = inputs.reference.as_ref().map(|way| reach(Arm::Reference, way)).transpose()?;
    let (reference, _engine) = reference.map(|reach| (reach.remote, reach.engine)).unzip();
    let scenario = Section::of_plan(spec, plan).scenarios.first().copied().unwrap_or(0);
    let header = RunHeader::new((*spec).clone(), plan, VERSION, run_id, order.started);
    let header = RunHeader {
        host: Some(surroundings::host()),
        commit: surroundings::commit(),
        repeated_prompts: inputs.repeats(spec, plan),
        ..header
    };
    let mut live = Live::new(spec, plan, console);
    let load = Load {
        header,
        target: target.remote,
        reference,
        proxies: inputs.proxies.clone(),
        plan,
        prompts: Arc::new(inputs.prompts(spec, run_id)),
        counter: inputs.counter(scenario),
        referee,
        redactor,
        journal: Some(Box::new(journal)),
        stop: (*stop).clone(),
        spent,
        start_at,
    };
    let run = gate_load::run(load, &mut |progress| live.show(&progress));
    live.finish();
    run.map_err(|error| match error {
        LoadError::Journal(_) => Failure::unmeasured(format!("{}: failed to {error}", order.journal.display()))
            .hint("make room where the journal is written, or choose another place"),
        LoadError::Runtime(_) | LoadError::Timer(_) | LoadError::Internal => {
            Failure::internal(format!("failed to {error}"))
        }
        error => refused(spec, error),
    })
}

/// Where an arm's requests go.
struct Reach {
    remote: Remote,
    /// The simulated engine, which stops when dropped.
    engine: Option<Server>,
}

impl Reach {
    /// Where an arm is; the simulated engine is started where the spec names it.
    fn of(spec: &GateSpec, plan: &Plan, arm: Arm, way: &Way) -> Result<Self, Failure> {
        let endpoint = spec.of_arm(arm).map(|target| &target.endpoint);
        let server = match (endpoint, &way.remote) {
            (_, Some(remote)) => return Ok(Self { remote: remote.clone(), engine: None }),
            (Some(Endpoint::Sim(params)), None) => {
                // The spec counts measured requests; the server cannot tell them from warm-up.
                let warmup = plan.warmup.iter().filter(|request| request.arm == arm).count();
                let warmup = u32::try_from(warmup).unwrap_or(u32::MAX);
                let params = gate_engine::after_warmup(&gate_engine::of_arm(params, arm), warmup);
                Server::start(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)), params)
                    .map_err(|error| Failure::internal(error.to_string()))?
            }
            (other, None) => return Err(Failure::internal(format!("{other:?} has no address"))),
        };
        let base = url(spec, arm, &format!("http://{}", server.address()))?;
        Ok(Self { remote: Remote { base, socket: None, trust: way.trust.clone() }, engine: Some(server) })
    }
}

/// A new run's name: unique, and sorted by time.
pub(crate) fn run_id() -> String {
    uuid::Uuid::now_v7().simple().to_string()
}

/// The time of day, RFC 3339 in UTC.
pub(crate) fn now() -> String {
    jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}
