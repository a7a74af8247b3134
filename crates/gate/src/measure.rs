//! From a spec to a finished run: the plan, the endpoint, the journal and the load, wired together.

use std::fs::File;
use std::io::BufWriter;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::sync::Arc;

use gate_load::{Load, LoadError, Stop, Trust};
use gate_model::{Cache, Endpoint, GateSpec, Host, Plan, Referee, Run, RunHeader};
use gate_plan::{PromptFile, SpecPrompts};
use gate_sim::Server;
use url::Url;

use crate::console::Console;
use crate::failure::Failure;
use crate::files;
use crate::live::Live;

/// The version of this program, as every file carries it.
pub(crate) const VERSION: &str = env!("CARGO_PKG_VERSION");

/// What a spec needs from files beside it, read before anything is sent.
pub(crate) struct Inputs {
    prompts: Option<PromptFile>,
    trust: Trust,
}

impl Inputs {
    /// Reads them. Paths are relative to the spec's own folder.
    pub(crate) fn read(spec: &GateSpec) -> Result<Self, Failure> {
        let beside = |name: &str| Path::new(&spec.file).parent().unwrap_or(Path::new("")).join(name);
        let of_key = |key: &str, failure: Failure| Failure {
            message: format!("{}: {key}: {}", spec.file, failure.message),
            ..failure
        };
        let prompts = match &spec.prompts.file {
            Some(name) => {
                let path = beside(name);
                let text = files::read(&path, files::MEDIUM).map_err(|failure| of_key("prompts.file", failure))?;
                let wrong = |error| Failure::usage(format!("{}: prompts.file {}: {error}", spec.file, path.display()));
                Some(PromptFile::parse(&text).map_err(wrong)?)
            }
            None => None,
        };
        let ca = match &spec.target.tls.ca {
            Some(name) => {
                let text =
                    files::read(&beside(name), files::SMALL).map_err(|failure| of_key("target.tls.ca", failure))?;
                Some(text.into_bytes())
            }
            None => None,
        };
        let trust = Trust::new(&spec.target.tls, ca);
        if spec.target.tls.ca.is_some() {
            trust.check().map_err(|error| Failure::usage(format!("{}: failed to {error}", spec.file)))?;
        }
        Ok(Self { prompts, trust })
    }

    /// Compiles a spec's plan for these looks.
    pub(crate) fn plan(&self, spec: &GateSpec, looks: &[u32]) -> Result<Plan, Failure> {
        gate_plan::plan(spec, looks, self.prompts.as_ref())
            .map_err(|error| Failure::usage(format!("{}: {error}", spec.file)))
    }

    /// How many of a plan's requests repeat an earlier prompt, where that is not what `cache: warm` means.
    fn repeats(&self, spec: &GateSpec, plan: &Plan) -> u32 {
        let measured = u32::try_from(plan.requests.len()).unwrap_or(u32::MAX);
        let file = self.prompts.as_ref().filter(|_| spec.prompts.cache == Cache::Bust);
        file.map_or(0, |file| file.repeats(measured))
    }
}

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
    let (base, _engine) = endpoint(spec)?;
    let header = RunHeader { repeated_prompts: inputs.repeats(spec, &plan), ..header(spec, &plan, started) };
    let prompts = Arc::new(SpecPrompts::new(spec, &header.run_id, inputs.prompts.as_ref()));
    if let Some(folder) = journal.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        files::make_folder(folder)?;
    }
    let file = File::create(journal).map_err(|error| Failure::unwritable(journal, error))?;
    let redactor = console.secrets.redactor();
    let mut live = Live::new(spec, plan.requests.len(), console);
    let load = Load {
        header,
        base,
        trust: inputs.trust,
        plan: &plan,
        prompts,
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
        error => Failure::internal(format!("failed to {error}")),
    })
}

/// Where requests go; the simulated engine is started where the spec names it, and stops when dropped.
fn endpoint(spec: &GateSpec) -> Result<(Url, Option<Server>), Failure> {
    let parse = |text: &str| {
        Url::parse(text).map_err(|error| Failure::usage(format!("{}: target.url `{text}`: {error}", spec.file)))
    };
    match &spec.target.endpoint {
        Endpoint::Url(url) => Ok((parse(url)?, None)),
        Endpoint::Sim(params) => {
            // The spec counts measured requests; the server cannot tell them from warm-up.
            let params = gate_engine::after_warmup(params, spec.load.warmup);
            let server = Server::start(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)), params)
                .map_err(|error| Failure::internal(error.to_string()))?;
            Ok((parse(&format!("http://{}", server.address()))?, Some(server)))
        }
    }
}

/// What is known before the first byte is sent.
fn header(spec: &GateSpec, plan: &Plan, started: &str) -> RunHeader {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let host = Host {
        system: format!("{}-{}", std::env::consts::OS, std::env::consts::ARCH),
        cores: u32::try_from(cores).unwrap_or(u32::MAX),
    };
    RunHeader { host: Some(host), ..RunHeader::new(spec.clone(), plan, VERSION, &run_id(), started) }
}

/// A new run's name: unique, and sorted by time.
pub(crate) fn run_id() -> String {
    uuid::Uuid::now_v7().simple().to_string()
}

/// The time of day, RFC 3339 in UTC.
pub(crate) fn now() -> String {
    jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}
