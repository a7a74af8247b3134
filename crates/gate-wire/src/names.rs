//! Dialects by name, for saved streams.

use std::sync::Arc;

use gate_model::Api;

use crate::anthropic::Anthropic;
use crate::bedrock::BedrockInvoke;
use crate::cohere::Cohere;
use crate::llamacpp::Llamacpp;
use crate::ollama::Ollama;
use crate::replicate::Replicate;
use crate::sglang::Sglang;
use crate::tgi::Tgi;
use crate::triton::Triton;
use crate::{Dialect, dialect};

/// Makes a dialect.
type Make = fn() -> Arc<dyn Dialect>;

/// Names of routes that are not names of an API.
const ROUTES: &[(&str, Make)] = &[
    ("anthropic-messages", || Arc::new(Anthropic)),
    ("cohere-v2", || Arc::new(Cohere)),
    ("ollama-chat", || Arc::new(Ollama)),
    ("ollama-generate", || Arc::new(Ollama)),
    ("bedrock-invoke-anthropic", || Arc::new(BedrockInvoke)),
    ("llamacpp-completion", || Arc::new(Llamacpp)),
    ("replicate", || Arc::new(Replicate)),
    ("sglang-generate", || Arc::new(Sglang)),
    ("tgi-generate", || Arc::new(Tgi)),
    ("triton-generate", || Arc::new(Triton)),
];

/// The APIs whose streams can be decoded without a spec that describes them.
fn apis() -> impl Iterator<Item = Api> {
    Api::ALL.into_iter().filter(|api| *api != Api::Custom)
}

/// The dialect of this name: an API's as in a spec, or a route's, such as `ollama-generate`.
#[must_use]
pub fn by_name(name: &str) -> Option<Arc<dyn Dialect>> {
    let api = apis().find(|api| api.name() == name).map(|api| dialect(api, None));
    api.or_else(|| ROUTES.iter().find(|(route, _)| *route == name).map(|(_, make)| make()))
}

/// The names that [`by_name`] knows.
#[must_use]
pub fn decode_names() -> Vec<&'static str> {
    apis().map(Api::name).chain(ROUTES.iter().map(|(name, _)| *name)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_known_and_stands_once() {
        let mut names = decode_names();
        assert!(names.iter().all(|name| by_name(name).is_some()));
        assert!(by_name("custom").is_none() && by_name("openai").is_none());
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count);
    }
}
