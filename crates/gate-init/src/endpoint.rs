//! What an endpoint is.

use gate_model::Api;
use serde_json::Value;

/// The endpoint, as it was named and as it was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoint {
    /// Its URL; absent of the built-in engine.
    pub url: Option<String>,
    /// The dialect it is spoken to in.
    pub api: Api,
    /// The model that is asked for; absent where none is known.
    pub model: Option<String>,
    /// The variable that has its key.
    pub key: Option<String>,
    /// Which engine it seems to be.
    pub engine: Option<Engine>,
    /// Whether answers come as streams; absent where it was not seen.
    pub streams: Option<bool>,
    /// Whether answers say how many tokens they have.
    pub usage: Option<bool>,
    /// Why nothing is known of it, in words.
    pub unknown: Option<String>,
}

/// An inference engine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Engine {
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: Option<String>,
    /// Where it has its metrics, if it usually has any.
    pub metrics: Option<&'static str>,
}

/// The models that `GET /v1/models` lists, or Ollama's `/api/tags`.
#[must_use]
pub fn models_in(text: &str) -> Vec<String> {
    let Ok(value) = serde_json::from_str::<Value>(text) else { return Vec::new() };
    let list = ["data", "models"].iter().find_map(|key| value.get(*key)?.as_array());
    let name = |one: &Value| ["id", "name", "model"].iter().find_map(|key| one.get(*key)?.as_str()).map(str::to_owned);
    list.into_iter().flatten().filter_map(name).filter(|name| is_name(name)).collect()
}

/// Whether a server's text can be a name: it goes into files that people read and forges render.
fn is_name(text: &str) -> bool {
    let is_plain = |symbol: char| symbol.is_alphanumeric() || " ._:/@+-".contains(symbol);
    (1..=200).contains(&text.chars().count()) && text.chars().all(is_plain)
}

/// Which engine an endpoint seems to be: by who owns its models, by what it calls itself, and by what it says of its
/// version.
#[must_use]
pub fn engine_of(models: &str, server: Option<&str>, version: Option<&str>) -> Option<Engine> {
    let owner = serde_json::from_str::<Value>(models).ok().and_then(|value| {
        let first = value.get("data")?.as_array()?.first()?.clone();
        first.get("owned_by")?.as_str().map(str::to_ascii_lowercase)
    });
    let version = version.and_then(|text| {
        let value: Value = serde_json::from_str(text).ok()?;
        value.get("version")?.as_str().filter(|version| is_name(version)).map(str::to_owned)
    });
    let said = [owner, server.map(str::to_ascii_lowercase)].into_iter().flatten();
    let known = [
        ("gate", "gate's built-in engine", Some("/metrics")),
        ("vllm", "vLLM", Some("/metrics")),
        ("sglang", "SGLang", Some("/metrics")),
        ("llamacpp", "llama.cpp", Some("/metrics")),
        ("llama.cpp", "llama.cpp", Some("/metrics")),
        ("ollama", "Ollama", None),
        ("text-generation-inference", "TGI", Some("/metrics")),
        ("litellm", "LiteLLM", None),
    ];
    let found = said.into_iter().find_map(|said| known.into_iter().find(|(sign, ..)| said.contains(sign)))?;
    Some(Engine { name: found.1.to_owned(), version, metrics: found.2 })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn engines_are_told_by_what_they_say() {
        let models = |owner: &str| format!(r#"{{"object": "list", "data": [{{"id": "m", "owned_by": "{owner}"}}]}}"#);
        let name = |models: &str, server: Option<&str>| engine_of(models, server, None).map(|engine| engine.name);
        assert_eq!(name(&models("vllm"), None).as_deref(), Some("vLLM"));
        assert_eq!(name(&models("llamacpp"), None).as_deref(), Some("llama.cpp"));
        assert_eq!(name(&models("gate"), None).as_deref(), Some("gate's built-in engine"));
        assert_eq!(name(&models("me"), Some("llama.cpp")).as_deref(), Some("llama.cpp"));
        assert_eq!(name("<html>", Some("nginx")), None);
        let engine = engine_of(&models("vllm"), None, Some(r#"{"version": "0.9.1"}"#)).unwrap();
        assert_eq!(engine.version.as_deref(), Some("0.9.1"));
        assert_eq!(models_in(&models("x")), ["m"]);
        assert_eq!(models_in(r#"{"models": [{"name": "llama3:8b"}]}"#), ["llama3:8b"]);
        assert_eq!(models_in("nothing"), [""; 0]);
        // No name of a model.
        for name in ["", "a\\nb", "${HOME}", "[a](http://b)", "<b>", "a|b", "`a`"] {
            assert_eq!(
                models_in(&format!(r#"{{"data": [{{"id": "{name}"}}, {{"id": "meta-llama/Llama-3.1-8B:q4"}}]}}"#)),
                ["meta-llama/Llama-3.1-8B:q4"]
            );
        }
    }
}
