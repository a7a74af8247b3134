//! What a spec needs from files beside it, read before anything is sent.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use gate_load::{ClientIdentity, LoadError, ProxyEnv, Remote, Trust};
use gate_model::{
    Arm, CountTokens, Endpoint, GateSpec, Image, Plan, PromptSpec, RunOrder, Secret, Shard, Target, UnixUrl,
};
use gate_plan::{Extent, Files, LengthFile, PromptFile, SpecPrompts, Totals, Trace};
use gate_tokens::Tokenizer;
use url::Url;

use crate::failure::Failure;
use crate::files;

/// What the files say, and where requests go.
pub(crate) struct Inputs {
    /// Of each scenario, in order.
    pub(crate) files: Vec<Files>,
    counters: Vec<Option<Arc<dyn CountTokens>>>,
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
        let mut files = Vec::new();
        let mut counters: Vec<Option<Arc<dyn CountTokens>>> = Vec::new();
        for place in 0..u16::try_from(spec.scenarios.len().max(1)).unwrap_or(u16::MAX) {
            // What all scenarios share is read once.
            let same = (0..place).find(|earlier| {
                spec.prompts_of(*earlier) == spec.prompts_of(place)
                    && spec.load_of(*earlier).pattern == spec.load_of(place).pattern
            });
            let same = same.and_then(|earlier| {
                let earlier = usize::from(earlier);
                Some((files.get(earlier).cloned()?, counters.get(earlier).cloned()?))
            });
            let (own, counter) = match same {
                Some(same) => same,
                None => (of_scenario(spec, place)?, counter(spec, spec.prompts_of(place))?),
            };
            files.push(own);
            counters.push(counter);
        }
        let proxies = ProxyEnv::of(|name| Some(std::env::var_os(name)?.to_string_lossy().into_owned()));
        let target = Way::read(spec, Arm::Target, &spec.target, &proxies)?;
        let reference = spec.reference.as_ref();
        let reference = reference.map(|reference| Way::read(spec, Arm::Reference, reference, &proxies)).transpose()?;
        Ok(Self { files, counters, proxies, target, reference })
    }

    /// Compiles a spec's plans, one for each section.
    pub(crate) fn plans(&self, spec: &GateSpec, extent: Extent) -> Result<Vec<Plan>, Failure> {
        gate_plan::plans(spec, extent, &self.files).map_err(|error| Failure::usage(format!("{}: {error}", spec.file)))
    }

    /// The same, where they could not use up more than the spec's budget allows.
    pub(crate) fn affordable_plans(&self, spec: &GateSpec, extent: Extent) -> Result<Vec<Plan>, Failure> {
        let plans = self.plans(spec, extent)?;
        within_budget(spec, &gate_plan::totals(&plans, spec))?;
        Ok(plans)
    }

    /// What requests say, cut by a scenario's tokenizer where it has one.
    pub(crate) fn prompts(&self, spec: &GateSpec, run_id: &str) -> SpecPrompts {
        let prompts = SpecPrompts::new(spec, run_id, &self.files);
        let counted =
            (0_u16..).zip(&self.counters).filter_map(|(scenario, counter)| Some((scenario, counter.clone()?)));
        counted.fold(prompts, |prompts, (scenario, counter)| prompts.count_by(scenario, counter))
    }

    /// What counts the answers' tokens of a scenario.
    pub(crate) fn counter(&self, scenario: u16) -> Option<Arc<dyn CountTokens>> {
        self.counters.get(usize::from(scenario)).cloned().flatten()
    }

    /// How many of a plan's prompts repeat an earlier one, where that is not what `cache: warm` means.
    pub(crate) fn repeats(&self, spec: &GateSpec, plan: &Plan) -> u32 {
        gate_plan::repeats(spec, plan, &self.files)
    }
}

/// The files that a spec names: of its prompts, lengths, arrivals and certificates.
pub(crate) fn files_of(spec: &GateSpec) -> Vec<PathBuf> {
    let mut names: Vec<&str> = Vec::new();
    for place in 0..u16::try_from(spec.scenarios.len().max(1)).unwrap_or(u16::MAX) {
        let prompts = spec.prompts_of(place);
        let PromptSpec { file, input_empirical, output_empirical, tokenizer, images, .. } = prompts;
        names.extend([file, input_empirical, output_empirical, tokenizer].into_iter().flatten().map(String::as_str));
        names.extend(images.iter().map(String::as_str));
        if let gate_model::Pattern::Trace(name) = &spec.load_of(place).pattern {
            names.push(name);
        }
    }
    for target in std::iter::once(&spec.target).chain(&spec.reference) {
        names.extend([&target.tls.ca, &target.tls.cert, &target.tls.key].into_iter().flatten().map(String::as_str));
    }
    names.into_iter().map(|name| path_beside(spec, name)).collect()
}

/// Paths in a spec are relative to its own folder.
fn path_beside(spec: &GateSpec, name: &str) -> PathBuf {
    Path::new(&spec.file).parent().unwrap_or(Path::new("")).join(name)
}

/// Whether a plan's worst case is within the budget.
pub(crate) fn within_budget(spec: &GateSpec, totals: &Totals) -> Result<(), Failure> {
    gate_plan::over_budget(spec, totals).map_err(|error| Failure::usage(format!("{}: {error}", spec.file)))
}

/// One machine's part of every plan.
pub(crate) fn shards(plans: &[Plan], shard: Option<Shard>) -> Vec<Plan> {
    match shard {
        None => plans.to_vec(),
        Some(shard) => plans.iter().map(|plan| gate_plan::shard(plan, shard)).collect(),
    }
}

/// The path of a scenario's key, for messages.
fn key_of(spec: &GateSpec, scenario: u16, key: &str) -> String {
    match spec.scenarios.get(usize::from(scenario)) {
        Some(one) if spec.order == RunOrder::InTurn || key.starts_with("prompts") => {
            format!("scenarios.{}.{key}", one.name)
        }
        _ => key.to_owned(),
    }
}

/// What a scenario's requests are made of.
fn of_scenario(spec: &GateSpec, scenario: u16) -> Result<Files, Failure> {
    let prompts = spec.prompts_of(scenario);
    let read = |key: &str, name: Option<&str>| beside(spec, &key_of(spec, scenario, key), name, files::MEDIUM);
    let mut own = Files::default();
    if let Some(file) = read("prompts.file", prompts.file.as_deref())? {
        let text = file.text()?;
        own.prompts = Some(PromptFile::parse(&text, prompts.format).map_err(|error| file.wrong(error))?);
    }
    if let Some(file) = read("prompts.input_tokens.empirical", prompts.input_empirical.as_deref())? {
        own.input_lengths = Some(LengthFile::parse(&file.text()?).map_err(|error| file.wrong(error))?);
    }
    if let Some(file) = read("prompts.output_tokens.empirical", prompts.output_empirical.as_deref())? {
        own.output_lengths = Some(LengthFile::parse(&file.text()?).map_err(|error| file.wrong(error))?);
    }
    if let gate_model::Pattern::Trace(name) = &spec.load_of(scenario).pattern
        && let Some(file) = read("load.trace", Some(name))?
    {
        own.trace = Some(Trace::parse(&file.text()?).map_err(|error| file.wrong(error))?);
    }
    for name in &prompts.images {
        own.images.push(image(spec, &key_of(spec, scenario, "prompts.images"), name)?);
    }
    Ok(own)
}

/// An image that a key names: a URL that the server fetches, or a file beside the spec.
fn image(spec: &GateSpec, key: &str, name: &str) -> Result<Image, Failure> {
    if name.starts_with("http://") || name.starts_with("https://") || name.starts_with("data:") {
        return Ok(Image::Url(name.to_owned()));
    }
    let media_type = match Path::new(name).extension().and_then(|extension| extension.to_str()) {
        Some("png") => "image/png",
        Some("jpg" | "jpeg") => "image/jpeg",
        Some("webp") => "image/webp",
        Some("gif") => "image/gif",
        _ => {
            return Err(Failure::usage(format!("{}: {key}: {name} is no image that models take", spec.file))
                .hint("name a .png, .jpg, .webp or .gif file beside the spec, or a URL"));
        }
    };
    let file = beside(spec, key, Some(name), files::MEDIUM)?
        .ok_or_else(|| Failure::internal(format!("{key}: {name} was not read")))?;
    let base64 = BASE64_STANDARD.encode(&file.bytes).into();
    Ok(Image::Inline { media_type: media_type.to_owned(), base64 })
}

/// The tokenizer that a scenario names.
fn counter(spec: &GateSpec, prompts: &PromptSpec) -> Result<Option<Arc<dyn CountTokens>>, Failure> {
    let Some(file) = beside(spec, "prompts.tokenizer", prompts.tokenizer.as_deref(), files::MEDIUM)? else {
        return Ok(None);
    };
    let tokenizer = Tokenizer::from_json(&file.bytes).map_err(|error| file.wrong(error))?;
    Ok(Some(Arc::new(tokenizer)))
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
    let path = path_beside(spec, name);
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
