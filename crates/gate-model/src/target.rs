//! The endpoint under test: where it is, what it speaks, how it is reached.

use serde::{Deserialize, Serialize};

use crate::{Api, Custom, EngineParams, Nanos, Secret};

/// Where requests go.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Endpoint {
    /// A server, by its URL without userinfo (`http://host:8000/v1`), or by its socket's ([`UnixUrl`]).
    Url(String),
    /// The built-in simulated engine.
    Sim(Box<EngineParams>),
}

/// A header of every request.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Header {
    /// The name.
    pub name: String,
    /// The value; never written anywhere, since headers carry credentials.
    pub value: Secret,
}

/// Where the readiness of a target is asked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReadyPath {
    /// `/health`, then `/v1/models`, then one request that is not scored.
    Auto,
    /// This path on the target's host.
    Path(String),
}

/// How long a target is waited for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ready {
    /// At most this long.
    pub within: Nanos,
    /// Where to ask.
    pub path: ReadyPath,
}

impl Default for Ready {
    /// Ten seconds, asked wherever the target answers.
    fn default() -> Self {
        Self { within: Nanos::from_secs(10), path: ReadyPath::Auto }
    }
}

/// How answers come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Delivery {
    /// As a stream of events.
    #[default]
    Streamed,
    /// As one body: only end-to-end time, errors, tokens and throughput are measured.
    Whole,
}

/// The field that says how long an answer may be, where the dialect has two.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MaxTokensField {
    /// `max_tokens`.
    #[default]
    MaxTokens,
    /// `max_completion_tokens`, which newer OpenAI models want.
    MaxCompletionTokens,
}

impl MaxTokensField {
    /// The field's name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::MaxTokens => "max_tokens",
            Self::MaxCompletionTokens => "max_completion_tokens",
        }
    }
}

/// Which authorities may vouch for a server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Roots {
    /// Mozilla's, as compiled in.
    #[default]
    Webpki,
    /// The system's.
    System,
}

/// How a server's certificate is checked.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Tls {
    /// A PEM file of further authorities.
    pub ca: Option<String>,
    /// The usual authorities.
    pub roots: Roots,
    /// Whether any certificate is accepted; every report says so.
    pub insecure: bool,
    /// A PEM file of the client's own certificate, with the authorities between it and one the server trusts.
    pub cert: Option<String>,
    /// A PEM file of the certificate's private key.
    pub key: Option<String>,
}

/// AWS credentials and a region, from the usual variables.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AwsCredentials {
    /// `AWS_ACCESS_KEY_ID`.
    pub access_key_id: Secret,
    /// `AWS_SECRET_ACCESS_KEY`.
    pub secret_access_key: Secret,
    /// `AWS_SESSION_TOKEN`, of temporary credentials.
    pub session_token: Option<Secret>,
    /// The region that requests are signed for.
    pub region: String,
}

/// A server behind a Unix socket: `unix:/run/server.sock`, or `unix:/run/server.sock:/v1` with a path of HTTP's own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnixUrl<'a> {
    /// The socket's path.
    pub socket: &'a str,
    /// The path and query over HTTP; empty where none is given.
    pub path: &'a str,
}

impl<'a> UnixUrl<'a> {
    /// Reads a URL; `None` where it is none of a socket.
    #[must_use]
    pub fn parse(url: &'a str) -> Option<Self> {
        let rest = url.strip_prefix("unix:")?;
        let rest = rest.strip_prefix("//").filter(|rest| rest.starts_with('/')).unwrap_or(rest);
        let (socket, path) = match rest.find(":/") {
            Some(colon) => (rest.get(..colon)?, rest.get(colon + 1..)?),
            None => (rest, ""),
        };
        Some(Self { socket, path })
    }
}

/// The endpoint under test.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Target {
    /// Where.
    pub endpoint: Endpoint,
    /// The dialect.
    pub api: Api,
    /// The model's name in requests.
    pub model: Option<String>,
    /// The API key.
    pub key: Option<Secret>,
    /// Further headers.
    pub headers: Vec<Header>,
    /// Fields merged into every request's body. Values that came from the environment are in custody of
    /// the redactor, and replaced in everything written.
    pub extra_body: serde_json::Map<String, serde_json::Value>,
    /// What signs requests to Bedrock where there is no key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub aws: Option<AwsCredentials>,
    /// The dialect's description, where it is `custom`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub custom: Option<Custom>,
    /// A header of answers that names the replica which gave them, such as `x-served-by`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replica_header: Option<String>,
    /// Where its own metrics are read while it runs, in Prometheus' text format; a URL.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metrics: Option<String>,
    /// How answers come.
    pub delivery: Delivery,
    /// The field that says how long an answer may be.
    pub max_tokens_field: MaxTokensField,
    /// How its certificate is checked, over `https`.
    pub tls: Tls,
    /// Waiting for it.
    pub ready: Ready,
}

impl Target {
    /// A target with nothing but its endpoint: OpenAI chat, no model, no key, nothing added to requests.
    #[must_use]
    pub fn new(endpoint: Endpoint) -> Self {
        Self {
            endpoint,
            api: Api::OpenaiChat,
            model: None,
            key: None,
            headers: Vec::new(),
            extra_body: serde_json::Map::new(),
            aws: None,
            custom: None,
            replica_header: None,
            metrics: None,
            delivery: Delivery::Streamed,
            max_tokens_field: MaxTokensField::MaxTokens,
            tls: Tls::default(),
            ready: Ready::default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_url_of_a_socket_has_two_paths() {
        for (url, socket, path) in [
            ("unix:/run/a.sock", "/run/a.sock", ""),
            ("unix:///run/a.sock", "/run/a.sock", ""),
            ("unix:/run/a.sock:/v1?x=1", "/run/a.sock", "/v1?x=1"),
            ("unix:relative.sock", "relative.sock", ""),
        ] {
            assert_eq!(UnixUrl::parse(url), Some(UnixUrl { socket, path }), "{url}");
        }
        assert_eq!(UnixUrl::parse("http://unix:1"), None);
    }
}
