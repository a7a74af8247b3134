//! From a spec to a finished run: the plan, the endpoints, the journal and the load, wired together.

use std::fs::{File, TryLockError};
use std::io::BufWriter;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::sync::Arc;

use gate_load::{Load, LoadError, Remote, Stop};
use gate_model::{Arm, Endpoint, GateSpec, Plan, Referee, Run, RunHeader};
use gate_plan::SpecPrompts;
use gate_sim::Server;

use crate::console::Console;
use crate::failure::Failure;
use crate::files;
use crate::inputs::{Inputs, Way, refused, url};
use crate::live::Live;
use crate::surroundings;

/// The version of this program, as every file carries it.
pub(crate) const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Sends a spec's load and writes its journal.
pub(crate) fn run(
    spec: &GateSpec,
    looks: &[u32],
    referee: &mut dyn Referee,
    journal: &Path,
    started: &str,
    stop: &Stop,
    console: &Console,
) -> Result<Run, Failure> {
    let inputs = Inputs::read(spec)?;
    let plan = inputs.plan(spec, looks)?;
    let repeats = inputs.repeats(spec, &plan);
    console.secrets.add(&inputs.proxies.secrets());
    let target = Reach::of(spec, Arm::Target, inputs.target)?;
    let reference = inputs.reference.map(|way| Reach::of(spec, Arm::Reference, way)).transpose()?;
    let (reference, _engine) = reference.map(|reach| (reach.remote, reach.engine)).unzip();
    let header = RunHeader { repeated_prompts: repeats, ..header(spec, &plan, started) };
    let prompts = Arc::new(SpecPrompts::new(spec, &header.run_id, inputs.prompts.as_ref()));
    if let Some(folder) = journal.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        files::make_folder(folder)?;
    }
    let file = own(journal)?;
    let redactor = console.secrets.redactor();
    let mut live = Live::new(spec, plan.requests.len(), console);
    let load = Load {
        header,
        target: target.remote,
        reference,
        proxies: inputs.proxies,
        plan: &plan,
        prompts,
        counter: inputs.counter,
        referee,
        redactor: &redactor,
        journal: Some(Box::new(BufWriter::new(file))),
        stop: stop.clone(),
    };
    let run = gate_load::run(load, &mut |progress| live.show(&progress));
    live.finish();
    run.map_err(|error| match error {
        LoadError::Journal(_) => Failure::unmeasured(format!("{}: failed to {error}", journal.display()))
            .hint("make room where the journal is written, or choose another place"),
        LoadError::Runtime(_) | LoadError::Timer(_) | LoadError::Internal => {
            Failure::internal(format!("failed to {error}"))
        }
        error => refused(spec, error),
    })
}

/// Opens a journal for this run alone: two runs that wrote into one would leave neither.
fn own(journal: &Path) -> Result<File, Failure> {
    let unwritable = |error: std::io::Error| Failure::unwritable(journal, error);
    // What is there is lost only once it is known to be nobody's.
    let file = File::options().write(true).create(true).truncate(false).open(journal).map_err(unwritable)?;
    match file.try_lock() {
        Err(TryLockError::WouldBlock) => {
            return Err(Failure::usage(format!("{}: another gate is writing this journal", journal.display()))
                .hint("wait until it has ended, or give each its own folder with --out"));
        }
        // Some file systems know no locks.
        Ok(()) | Err(TryLockError::Error(_)) => {}
    }
    if file.metadata().is_ok_and(|facts| facts.is_file()) {
        file.set_len(0).map_err(unwritable)?;
    }
    Ok(file)
}

/// Where an arm's requests go.
struct Reach {
    remote: Remote,
    /// The simulated engine, which stops when dropped.
    engine: Option<Server>,
}

impl Reach {
    /// Where an arm is; the simulated engine is started where the spec names it.
    fn of(spec: &GateSpec, arm: Arm, way: Way) -> Result<Self, Failure> {
        let endpoint = spec.of_arm(arm).map(|target| &target.endpoint);
        let server = match (endpoint, way.remote) {
            (_, Some(remote)) => return Ok(Self { remote, engine: None }),
            (Some(Endpoint::Sim(params)), None) => {
                // The spec counts measured requests; the server cannot tell them from warm-up.
                let params = gate_engine::after_warmup(&gate_engine::of_arm(params, arm), spec.load.warmup);
                Server::start(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)), params)
                    .map_err(|error| Failure::internal(error.to_string()))?
            }
            (other, None) => return Err(Failure::internal(format!("{other:?} has no address"))),
        };
        let base = url(spec, arm, &format!("http://{}", server.address()))?;
        Ok(Self { remote: Remote { base, socket: None, trust: way.trust }, engine: Some(server) })
    }
}

/// What is known before the first byte is sent.
fn header(spec: &GateSpec, plan: &Plan, started: &str) -> RunHeader {
    let header = RunHeader::new(spec.clone(), plan, VERSION, &run_id(), started);
    RunHeader { host: Some(surroundings::host()), commit: surroundings::commit(), ..header }
}

/// A new run's name: unique, and sorted by time.
pub(crate) fn run_id() -> String {
    uuid::Uuid::now_v7().simple().to_string()
}

/// The time of day, RFC 3339 in UTC.
pub(crate) fn now() -> String {
    jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}
