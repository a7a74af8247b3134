//! From a spec to a finished run: the plan, the endpoint, the journal and the load, wired together.

use std::fs::File;
use std::io::BufWriter;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use gate_load::{ClientIdentity, Load, LoadError, ProxyEnv, Stop, Trust};
use gate_model::{Cache, CountTokens, Endpoint, GateSpec, Host, Plan, Referee, Run, RunHeader, Secret, UnixUrl};
use gate_plan::{PromptFile, SpecPrompts};
use gate_sim::Server;
use gate_tokens::Tokenizer;
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
    counter: Option<Arc<dyn CountTokens>>,
    proxies: ProxyEnv,
}

impl Inputs {
    /// Reads them. Paths are relative to the spec's own folder.
    pub(crate) fn read(spec: &GateSpec) -> Result<Self, Failure> {
        let tls = &spec.target.tls;
        let prompts = match beside(spec, "prompts.file", spec.prompts.file.as_deref(), files::MEDIUM)? {
            Some(file) => Some(PromptFile::parse(&file.text()?).map_err(|error| file.wrong(error))?),
            None => None,
        };
        let counter = match beside(spec, "prompts.tokenizer", spec.prompts.tokenizer.as_deref(), files::MEDIUM)? {
            Some(file) => {
                let tokenizer = Tokenizer::from_json(&file.bytes).map_err(|error| file.wrong(error))?;
                Some(Arc::new(tokenizer) as Arc<dyn CountTokens>)
            }
            None => None,
        };
        let ca = beside(spec, "target.tls.ca", tls.ca.as_deref(), files::SMALL)?.map(|file| file.bytes);
        let cert = beside(spec, "target.tls.cert", tls.cert.as_deref(), files::SMALL)?;
        let key = beside(spec, "target.tls.key", tls.key.as_deref(), files::SMALL)?;
        let client = match cert.zip(key) {
            Some((cert, key)) => Some(ClientIdentity { cert_pem: cert.bytes, key_pem: Secret::new(key.text()?) }),
            None => None,
        };
        let trust = Trust::new(tls, ca, client);
        if tls.ca.is_some() || tls.cert.is_some() {
            trust.check().map_err(|error| refused(spec, error))?;
        }
        let proxies = ProxyEnv::of(|name| Some(std::env::var_os(name)?.to_string_lossy().into_owned()));
        if let Some((base, socket)) = address(spec)? {
            gate_load::check(spec, &base, socket.as_deref(), &trust, &proxies).map_err(|error| refused(spec, error))?;
        }
        Ok(Self { prompts, trust, counter, proxies })
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

/// A file that a key of a spec names.
struct Beside {
    /// The spec, the key and the file, for messages.
    place: String,
    bytes: Vec<u8>,
}

/// Reads the file that a key names, if it names one.
fn beside(spec: &GateSpec, key: &str, name: Option<&str>, most: u64) -> Result<Option<Beside>, Failure> {
    let Some(name) = name else { return Ok(None) };
    let path = Path::new(&spec.file).parent().unwrap_or(Path::new("")).join(name);
    let bytes = files::read_bytes(&path, most)
        .map_err(|failure| Failure { message: format!("{}: {key}: {}", spec.file, failure.message), ..failure })?;
    Ok(Some(Beside { place: format!("{}: {key} {}", spec.file, path.display()), bytes }))
}

impl Beside {
    fn wrong(&self, error: impl std::fmt::Display) -> Failure {
        Failure::usage(format!("{}: {error}", self.place))
    }

    fn text(&self) -> Result<String, Failure> {
        files::text(self.bytes.clone()).map_err(|error| self.wrong(error))
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
    let Reach { base, socket, engine: _engine } = reach(spec)?;
    console.secrets.add(&inputs.proxies.secrets());
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
        socket,
        trust: inputs.trust,
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

/// Where requests go.
struct Reach {
    base: Url,
    /// Where the target is behind a socket.
    socket: Option<PathBuf>,
    /// The simulated engine, which stops when dropped.
    engine: Option<Server>,
}

/// Finds where requests go; the simulated engine is started where the spec names it.
fn reach(spec: &GateSpec) -> Result<Reach, Failure> {
    let server = match (&spec.target.endpoint, address(spec)?) {
        (_, Some((base, socket))) => return Ok(Reach { base, socket, engine: None }),
        (Endpoint::Sim(params), None) => {
            // The spec counts measured requests; the server cannot tell them from warm-up.
            let params = gate_engine::after_warmup(params, spec.load.warmup);
            Server::start(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)), params)
                .map_err(|error| Failure::internal(error.to_string()))?
        }
        (Endpoint::Url(url), None) => return Err(Failure::internal(format!("`{url}` has no address"))),
    };
    let base = url(spec, &format!("http://{}", server.address()))?;
    Ok(Reach { base, socket: None, engine: Some(server) })
}

/// The URL of the spec's server, and the socket it is behind; `None` of the simulated engine.
fn address(spec: &GateSpec) -> Result<Option<(Url, Option<PathBuf>)>, Failure> {
    let Endpoint::Url(text) = &spec.target.endpoint else { return Ok(None) };
    Ok(Some(match UnixUrl::parse(text) {
        Some(UnixUrl { socket, path }) => (url(spec, &format!("http://localhost{path}"))?, Some(socket.into())),
        None => (url(spec, text)?, None),
    }))
}

fn url(spec: &GateSpec, text: &str) -> Result<Url, Failure> {
    Url::parse(text).map_err(|error| Failure::usage(format!("{}: target.url `{text}`: {error}", spec.file)))
}

/// Nothing was sent: the spec, or the machine's environment, does not allow it.
fn refused(spec: &GateSpec, error: LoadError) -> Failure {
    Failure::usage(format!("{}: failed to {error}", spec.file))
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
