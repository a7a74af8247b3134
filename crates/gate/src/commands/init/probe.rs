//! What an endpoint is, found out by asking it: what it lists, what it calls itself, and one short answer.

use std::time::Duration;

use gate_init::Endpoint;
use gate_load::Answer;
use gate_model::{GateSpec, Outcome, Sample};

use super::resolved;
use crate::cli::Init;
use crate::console::Console;
use crate::failure::Failure;
use crate::inputs::Inputs;
use crate::measure;

/// How long a question may take.
const WAIT: Duration = Duration::from_secs(3);

/// Asks an endpoint what it is, within a few seconds. One that does not answer is told as it was named, with why.
pub(super) fn endpoint(url: &str, arguments: &Init, console: &Console) -> Result<Endpoint, Failure> {
    console.people(&format!("asking {}\n", gate_report::escape::terminal(url)));
    let mut found = Endpoint {
        url: Some(url.to_owned()),
        api: arguments.api,
        model: arguments.model.clone(),
        key: arguments.key_env.clone(),
        engine: None,
        streams: None,
        usage: None,
        unknown: None,
    };
    let key = arguments.key_env.as_deref().filter(|key| std::env::var_os(key).is_some());
    let spec = resolved(&question(url, arguments, found.model.as_deref(), key), console)?;
    let inputs = Inputs::read(&spec)?;
    let models = models(url).iter().find_map(|path| ask(&spec, &inputs, path, console).transpose());
    let models = match models {
        Some(Ok(answer)) => Some(answer),
        Some(Err(why)) => {
            found.unknown = Some(why);
            return Ok(found);
        }
        None => None,
    };
    let version = ["/version", "/api/version"].iter().find_map(|path| ask(&spec, &inputs, path, console).ok()?);
    if let Some(answer) = &models {
        let server = answer.server.as_deref();
        found.engine = gate_init::engine_of(&answer.text, server, version.as_ref().map(|answer| &*answer.text));
        found.model = found.model.or_else(|| gate_init::models_in(&answer.text).into_iter().next());
    }
    match answer(&question(url, arguments, found.model.as_deref(), key), console)? {
        Some(sample) if sample.outcome == Outcome::Ok => {
            found.streams = Some(true);
            found.usage = Some(sample.usage.is_some_and(|usage| usage.output.is_some()));
        }
        Some(sample) if sample.outcome == Outcome::NotStreamed => found.streams = Some(false),
        Some(sample) => {
            // What a server says is for the terminal, not for files that are kept.
            if let Some(said) = &sample.error {
                console.people(&format!("it said: {}\n", gate_report::escape::terminal(said)));
            }
            let remedy = match sample.status {
                Some(401 | 403) => "; name the variable that has its key with --key-env",
                Some(404) => "; check the URL, --model and --api",
                _ => "",
            };
            let status = sample.status.map(|status| format!(" (HTTP {status})")).unwrap_or_default();
            found.unknown = Some(format!("a first request ended as {}{status}{remedy}", sample.outcome.name()));
        }
        None => found.unknown = Some("a first request had no end".to_owned()),
    }
    tell(&found, console);
    Ok(found)
}

fn tell(found: &Endpoint, console: &Console) {
    let engine = found.engine.as_ref().map(|engine| {
        format!("{}{}", engine.name, engine.version.as_ref().map(|version| format!(" {version}")).unwrap_or_default())
    });
    let parts = [
        engine,
        found.model.as_ref().map(|model| format!("model {model}")),
        found.streams.map(|streams| if streams { "streams" } else { "answers whole" }.to_owned()),
        found.usage.map(|usage| if usage { "says its tokens" } else { "does not say its tokens" }.to_owned()),
    ];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    if !parts.is_empty() {
        console.people(&format!("found: {}\n", gate_report::escape::terminal(&parts.join(", "))));
    }
}

/// A spec of one short request, by which the endpoint is asked.
fn question(url: &str, arguments: &Init, model: Option<&str>, key: Option<&str>) -> String {
    let model = model.map(|model| format!(", model: {}", gate_init::literal(model))).unwrap_or_default();
    let key = key.map(|key| format!(", key: '${{{key}}}'")).unwrap_or_default();
    format!(
        "version: 1\nname: endpoint\ntarget: {{url: {}, api: {}{model}{key}}}\nload: {{rps: 1, iterations: 1, warmup: 0}}\n\
         prompts: {{input_tokens: 20, output_tokens: 16}}\n\
         timeouts: {{connect: 3s, first_token: 20s, stall: 10s, total: 30s}}\nrequire: [errors.rate < 99%]\n",
        gate_init::literal(url),
        arguments.api.name(),
    )
}

/// Where models are listed: beside the endpoint's own path, or where servers have it.
fn models(url: &str) -> Vec<String> {
    let path = url.split_once("://").and_then(|(_, rest)| rest.split_once('/')).map_or("", |(_, path)| path);
    let path = path.split(['?', '#']).next().unwrap_or_default().trim_end_matches('/');
    let own = if path.is_empty() { None } else { Some(format!("/{path}/models")) };
    own.into_iter().chain(["/v1/models".to_owned(), "/api/tags".to_owned()]).collect()
}

/// What a path answers; `None` where it is not there, and an error where nothing answers at all.
fn ask(spec: &GateSpec, inputs: &Inputs, path: &str, console: &Console) -> Result<Option<Answer>, String> {
    let Some(remote) = &inputs.target.remote else { return Ok(None) };
    let answer = gate_load::get(spec, remote, &inputs.proxies, path, WAIT, &console.secrets.redactor());
    let answer = answer.map_err(|error| error.to_string())??;
    Ok(Some(answer).filter(|answer| answer.status == 200))
}

/// How the first request ended.
fn answer(text: &str, console: &Console) -> Result<Option<Sample>, Failure> {
    Ok(measure::aside(&resolved(text, console)?, console)?.samples.into_iter().next())
}
