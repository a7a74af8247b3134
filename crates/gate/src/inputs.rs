//! What a spec needs from files beside it, read before anything is sent.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use gate_load::{ClientIdentity, LoadError, ProxyEnv, Remote, Trust};
use gate_model::{Arm, Cache, CountTokens, Endpoint, GateSpec, Plan, Secret, Target, UnixUrl};
use gate_plan::PromptFile;
use gate_tokens::Tokenizer;
use url::Url;

use crate::failure::Failure;
use crate::files;

/// What the files say, and where requests go.
pub(crate) struct Inputs {
    pub(crate) prompts: Option<PromptFile>,
    pub(crate) counter: Option<Arc<dyn CountTokens>>,
    pub(crate) proxies: ProxyEnv,
    pub(crate) target: Way,
    pub(crate) reference: Option<Way>,
}

/// The way to an arm.
pub(crate) struct Way {
    /// Where it is; absent of the simulated engine, which is started for the run.
    pub(crate) remote: Option<Remote>,
    pub(crate) trust: Trust,
}

impl Inputs {
    /// Reads them. Paths are relative to the spec's own folder.
    pub(crate) fn read(spec: &GateSpec) -> Result<Self, Failure> {
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
        let proxies = ProxyEnv::of(|name| Some(std::env::var_os(name)?.to_string_lossy().into_owned()));
        let target = Way::read(spec, Arm::Target, &spec.target, &proxies)?;
        let reference = spec.reference.as_ref();
        let reference = reference.map(|reference| Way::read(spec, Arm::Reference, reference, &proxies)).transpose()?;
        Ok(Self { prompts, counter, proxies, target, reference })
    }

    /// Compiles a spec's plan for these looks.
    pub(crate) fn plan(&self, spec: &GateSpec, looks: &[u32]) -> Result<Plan, Failure> {
        gate_plan::plan(spec, looks, self.prompts.as_ref())
            .map_err(|error| Failure::usage(format!("{}: {error}", spec.file)))
    }

    /// How many of a plan's prompts repeat an earlier one, where that is not what `cache: warm` means.
    pub(crate) fn repeats(&self, spec: &GateSpec, plan: &Plan) -> u32 {
        let prompts = u32::try_from(plan.requests.len()).unwrap_or(u32::MAX) / spec.arms();
        let file = self.prompts.as_ref().filter(|_| spec.prompts.cache == Cache::Bust);
        file.map_or(0, |file| file.repeats(prompts))
    }
}

impl Way {
    /// Reads what an arm's TLS needs, and finds out whether it can be asked at all.
    fn read(spec: &GateSpec, arm: Arm, target: &Target, proxies: &ProxyEnv) -> Result<Self, Failure> {
        let tls = &target.tls;
        let key_of = |key: &str| format!("{}.tls.{key}", block(arm));
        let ca = beside(spec, &key_of("ca"), tls.ca.as_deref(), files::SMALL)?.map(|file| file.bytes);
        let cert = beside(spec, &key_of("cert"), tls.cert.as_deref(), files::SMALL)?;
        let key = beside(spec, &key_of("key"), tls.key.as_deref(), files::SMALL)?;
        let client = match cert.zip(key) {
            Some((cert, key)) => Some(ClientIdentity { cert_pem: cert.bytes, key_pem: Secret::new(key.text()?) }),
            None => None,
        };
        let trust = Trust::new(tls, ca, client);
        if tls.ca.is_some() || tls.cert.is_some() {
            let of_arm = |error| match arm {
                Arm::Target => error,
                Arm::Reference => LoadError::OfReference(Box::new(error)),
            };
            trust.check().map_err(|error| refused(spec, of_arm(error)))?;
        }
        let address = address(spec, arm, target)?;
        let remote = address.map(|(base, socket)| Remote { base, socket, trust: trust.clone() });
        if let Some(remote) = &remote {
            gate_load::check(spec, arm, remote, proxies).map_err(|error| refused(spec, error))?;
        }
        Ok(Self { remote, trust })
    }
}

/// The spec's block of an arm.
fn block(arm: Arm) -> &'static str {
    match arm {
        Arm::Target => "target",
        Arm::Reference => "reference",
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

/// The URL of an arm's server, and the socket it is behind; `None` of the simulated engine.
fn address(spec: &GateSpec, arm: Arm, target: &Target) -> Result<Option<(Url, Option<PathBuf>)>, Failure> {
    let Endpoint::Url(text) = &target.endpoint else { return Ok(None) };
    Ok(Some(match UnixUrl::parse(text) {
        Some(UnixUrl { socket, path }) => (url(spec, arm, &format!("http://localhost{path}"))?, Some(socket.into())),
        None => (url(spec, arm, text)?, None),
    }))
}

pub(crate) fn url(spec: &GateSpec, arm: Arm, text: &str) -> Result<Url, Failure> {
    Url::parse(text).map_err(|error| Failure::usage(format!("{}: {}.url `{text}`: {error}", spec.file, block(arm))))
}

/// Nothing was sent: the spec, or the machine's environment, does not allow it.
pub(crate) fn refused(spec: &GateSpec, error: LoadError) -> Failure {
    Failure::usage(format!("{}: failed to {error}", spec.file))
}
