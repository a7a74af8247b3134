//! The bytes of requests; measured ones are written ahead of the time they are due.

use std::sync::OnceLock;

use bytes::Bytes;
use gate_model::{
    Delivery, GateSpec, Header, MaxTokensField, Message, OutputLength, Plan, PlannedRequest, Prompt, Prompts, Role,
    Secret,
};
use gate_wire::{Ask, Dialect, dialect};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Uri, header};
use http_body_util::Full;
use tokio::sync::{mpsc, oneshot};
use url::{Position, Url};

use crate::LoadError;

/// How many requests are written ahead.
pub(crate) const AHEAD: usize = 32;

/// A request ready to be sent.
pub(crate) struct Prepared {
    pub(crate) planned: PlannedRequest,
    pub(crate) request: Request<Full<Bytes>>,
}

/// What came of a wish for another field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Switch {
    /// Requests from now on have it.
    Done,
    /// It is the one they have, or had before.
    Nothing,
}

/// Writes requests for one target.
pub(crate) struct Writer {
    dialect: &'static dyn Dialect,
    base: Url,
    key: Option<Secret>,
    model: Option<String>,
    extra_body: serde_json::Map<String, serde_json::Value>,
    delivery: Delivery,
    output: OutputLength,
    max_tokens_field: MaxTokensField,
    /// What the server wants instead of the spec's.
    switched_to: OnceLock<MaxTokensField>,
    /// `host`, then the spec's own, which win over the dialect's.
    headers: HeaderMap,
}

impl Writer {
    /// A writer for a spec's target, checked: what it writes for one prompt it writes for any.
    pub(crate) fn new(spec: &GateSpec, base: &Url) -> Result<Self, LoadError> {
        let target = &spec.target;
        let host = &base[Position::BeforeHost..Position::AfterPort];
        let mut headers = HeaderMap::new();
        headers.insert(header::HOST, value("host", &Secret::new(host))?);
        headers.insert(header::USER_AGENT, HeaderValue::from_static(concat!("gate/", env!("CARGO_PKG_VERSION"))));
        for Header { name, value: text } in &target.headers {
            headers.insert(self::name(name)?, value(name, text)?);
        }
        let writer = Self {
            dialect: dialect(target.api),
            base: base.clone(),
            key: target.key.clone(),
            model: target.model.clone(),
            extra_body: target.extra_body.clone(),
            delivery: target.delivery,
            output: spec.prompts.output,
            max_tokens_field: target.max_tokens_field,
            switched_to: OnceLock::new(),
            headers,
        };
        writer.hello()?;
        Ok(writer)
    }

    /// The target's dialect.
    pub(crate) fn dialect(&self) -> &'static dyn Dialect {
        self.dialect
    }

    /// Uses this field for the length of answers from now on, where that is a change; says whether it is. The first
    /// change stands.
    pub(crate) fn switch_to(&self, field: MaxTokensField) -> Switch {
        if field != self.max_tokens_field && self.switched_to.set(field).is_ok() {
            tracing::info!(field = field.name(), "the server wants another field for the length of answers");
            return Switch::Done;
        }
        Switch::Nothing
    }

    /// The field that the server wanted instead of the spec's.
    pub(crate) fn switched_to(&self) -> Option<MaxTokensField> {
        self.switched_to.get().copied()
    }

    /// The request of a prompt.
    pub(crate) fn request(&self, prompt: &Prompt, output_tokens: u32) -> Result<Request<Full<Bytes>>, LoadError> {
        let ask = Ask {
            model: self.model.as_deref(),
            prompt,
            max_output_tokens: output_tokens,
            max_tokens_field: self.switched_to().unwrap_or(self.max_tokens_field),
            output: self.output,
            delivery: self.delivery,
            extra_body: &self.extra_body,
        };
        let wire = self.dialect.request(&self.base, self.key.as_ref(), &ask);
        let mut request = Request::new(Full::new(Bytes::from(wire.body)));
        *request.method_mut() = Method::POST;
        *request.uri_mut() = uri(&wire.path)?;
        let headers = request.headers_mut();
        for (name, text) in &wire.headers {
            headers.insert(self::name(name)?, value(name, text)?);
        }
        for (name, value) in &self.headers {
            headers.insert(name.clone(), value.clone());
        }
        Ok(request)
    }

    /// A planned request with its prompt.
    pub(crate) fn prepare(&self, planned: &PlannedRequest, prompt: &Prompt) -> Result<Prepared, LoadError> {
        Ok(Prepared { planned: *planned, request: self.request(prompt, planned.output_tokens)? })
    }

    /// The least request there is, for asking whether the target answers.
    pub(crate) fn hello(&self) -> Result<Request<Full<Bytes>>, LoadError> {
        let message = Message { role: Role::User, text: "Hello".to_owned() };
        self.request(&Prompt { messages: vec![message] }, 1)
    }

    /// A GET of a path on the target's host, with the credentials of a request.
    pub(crate) fn get(&self, path: &str) -> Result<Request<Full<Bytes>>, LoadError> {
        let mut request = self.hello()?;
        *request.method_mut() = Method::GET;
        *request.uri_mut() = uri(path)?;
        *request.body_mut() = Full::default();
        request.headers_mut().remove(header::CONTENT_TYPE);
        request.headers_mut().remove(header::ACCEPT);
        Ok(request)
    }

    /// The path of the target's list of models.
    pub(crate) fn models_path(&self) -> String {
        self.dialect.models_path(&self.base)
    }
}

/// A path on the target's host, with its query.
fn uri(path: &str) -> Result<Uri, LoadError> {
    let refused = || LoadError::Path { path: path.to_owned() };
    if !path.starts_with('/') {
        return Err(refused());
    }
    path.parse().map_err(|_| refused())
}

fn name(text: &str) -> Result<HeaderName, LoadError> {
    text.parse().map_err(|_| LoadError::Header { name: text.to_owned() })
}

fn value(name: &str, text: &Secret) -> Result<HeaderValue, LoadError> {
    let mut value = HeaderValue::from_str(text.expose()).map_err(|_| LoadError::Header { name: name.to_owned() })?;
    value.set_sensitive(true);
    Ok(value)
}

/// What warm-up tells: for each of its requests that ended well, the input tokens planned and counted.
pub(crate) type Counted = Vec<(u32, u64)>;

/// Writes the measured requests of a plan in the order of sending, a few ahead, until nobody takes them any more. It
/// starts when warm-up has ended: prompts are fitted to what the server counted.
pub(crate) fn write_measured(
    plan: &Plan,
    prompts: &dyn Prompts,
    writer: &Writer,
    warmed_up: oneshot::Receiver<Counted>,
    out: &mpsc::Sender<Result<Prepared, LoadError>>,
) {
    // Without a word the run ended before.
    let Ok(counted) = warmed_up.blocking_recv() else { return };
    if !counted.is_empty() {
        prompts.fit(&counted);
    }
    for planned in &plan.requests {
        let prepared = writer.prepare(planned, &prompts.measured(planned));
        let failed = prepared.is_err();
        if out.blocking_send(prepared).is_err() || failed {
            return;
        }
    }
}
