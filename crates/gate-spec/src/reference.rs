//! The reference: an endpoint like the target, which takes from it what it leaves out.

use gate_model::{Delivery, Secret, Target, UnixUrl};
use url::Url;

use crate::aws;
use crate::context::Context;
use crate::credential::{has_url_credentials, looks_secret};
use crate::problem::Problem;
use crate::raw::{RawCustom, RawTarget};
use crate::target::{Block, target};

/// The reference beside its target; `raw_target` is what the target was read from.
pub(crate) fn reference(
    context: &mut Context,
    mut raw: RawTarget,
    raw_target: &RawTarget,
    has_models: bool,
    secrets: &mut Vec<Secret>,
) -> Target {
    let block = Block { has_models, ..inherit(context, &mut raw, raw_target) };
    target(context, &block, raw, secrets)
}

/// Gives the reference what it leaves out. What belongs to a dialect is the target's where the dialect is, and no
/// credential goes to another host unasked.
fn inherit(context: &mut Context, raw: &mut RawTarget, target: &RawTarget) -> Block {
    let is_trusted = context.is_sound("target.url") && context.is_sound("reference.url") && shares_host(raw, target);
    let is_written = |key: &str| context.is_written(&format!("reference.{key}"));
    let mut inherited = Vec::new();
    let mut takes = |key: &'static str, fits: bool| {
        let takes = fits && !is_written(key);
        // What the target leaves out too is missing here as well.
        let is_there = context.is_written(&format!("target.{key}"));
        inherited.extend((takes && is_there).then_some(key));
        takes
    };
    if takes("api", true) {
        raw.api = target.api;
    }
    let same_api = raw.api == target.api;
    if takes("model", true) {
        raw.model.clone_from(&target.model);
    }
    if takes("custom", same_api && (is_trusted || !target.custom.as_ref().is_some_and(custom_holds_secret))) {
        raw.custom.clone_from(&target.custom);
    }
    if takes("extra_body", same_api && (is_trusted || !holds_secret(&target.extra_body))) {
        raw.extra_body.clone_from(&target.extra_body);
    }
    if takes("max_tokens_field", same_api) {
        raw.max_tokens_field = target.max_tokens_field;
    }
    if takes("stream", raw.api.generates() == target.api.generates()) {
        raw.stream = target.stream;
    }
    if takes("replica_header", true) {
        raw.replica_header.clone_from(&target.replica_header);
    }
    if takes("tls", over_tls(raw)) {
        raw.tls.clone_from(&target.tls);
    }
    if takes("ready", true) {
        raw.ready.clone_from(&target.ready);
    }
    if takes("key", is_trusted) {
        raw.key.clone_from(&target.key);
    }
    if takes("headers", is_trusted) {
        raw.headers.clone_from(&target.headers);
    }
    let is_amazon = raw.url.as_deref().is_some_and(|url| aws::region_of(url).is_some());
    let asks_environment = is_trusted || is_amazon || is_written("api");
    // The engine that is built in needs no credential.
    let is_elsewhere = raw.url.as_deref().is_some_and(|url| url != "sim") && context.is_sound("reference.url");
    if is_elsewhere && !is_trusted {
        warn_withheld(context, target, same_api);
    }
    Block { name: "reference", inherited, has_models: false, asks_environment }
}

/// Says which credentials of the target's the reference, on another host, is not given.
fn warn_withheld(context: &mut Context, target: &RawTarget, same_api: bool) {
    for (key, is_given, none) in [
        ("key", target.key.is_some(), "\"\""),
        ("headers", !target.headers.is_empty(), "{}"),
        ("extra_body", same_api && holds_secret(&target.extra_body), "{}"),
    ] {
        if is_given && !context.is_written(&format!("reference.{key}")) {
            let message = format!("`target.{key}` is not sent to the reference, which is another host");
            let hint = format!("add `{key}: …` to `reference`, or `{key}: {none}` where it needs none");
            context.problems.push(Problem::warning(context.key("reference"), message).hint(hint));
        }
    }
}

/// What would make the two arms incomparable.
pub(crate) fn check_arms(context: &mut Context, target: &Target, reference: &Target) {
    let (path, message) = if target.api.generates() != reference.api.generates() {
        let [one, other] = [target.api.name(), reference.api.name()];
        ("reference.api", format!("`target.api` is `{one}` and `reference.api` is `{other}`: one generates no tokens"))
    } else if target.delivery != reference.delivery {
        let (streamed, whole) = match target.delivery {
            Delivery::Streamed => ("target", "reference"),
            Delivery::Whole => ("reference", "target"),
        };
        ("reference.stream", format!("the answers of the {streamed} are streamed, and those of the {whole} are not"))
    } else {
        return;
    };
    if ["target", "reference"].iter().all(|block| context.is_sound(block)) {
        context.error(path, message, "make the two alike: what is measured of one is not of the other");
    }
}

/// Whether what may be sent to the target may be sent to the reference: both are one host, reached in one way, or one
/// socket.
fn shares_host(reference: &RawTarget, target: &RawTarget) -> bool {
    let (Some(reference), Some(target)) = (reference.url.as_deref(), target.url.as_deref()) else { return false };
    if let (Some(reference), Some(target)) = (UnixUrl::parse(reference), UnixUrl::parse(target)) {
        return reference.socket == target.socket;
    }
    let (Ok(reference), Ok(target)) = (Url::parse(reference), Url::parse(target)) else { return false };
    reference.has_host() && reference.scheme() == target.scheme() && reference.host() == target.host()
}

/// Whether the URL is one of https.
pub(crate) fn over_tls(raw: &RawTarget) -> bool {
    let scheme = raw.url.as_ref().and_then(|url| url.split_once("://"));
    scheme.is_some_and(|(scheme, _)| scheme.eq_ignore_ascii_case("https"))
}

fn custom_holds_secret(custom: &RawCustom) -> bool {
    custom.path.as_deref().is_some_and(has_url_credentials) || custom.body.as_ref().is_some_and(holds_secret)
}

/// Whether a name in a body looks like one of a credential.
fn holds_secret(body: &serde_json::Map<String, serde_json::Value>) -> bool {
    fn inside(value: &serde_json::Value) -> bool {
        match value {
            serde_json::Value::Object(fields) => holds_secret(fields),
            serde_json::Value::Array(items) => items.iter().any(inside),
            _ => false,
        }
    }
    body.iter().any(|(name, value)| (value.is_string() && looks_secret(name)) || inside(value))
}
