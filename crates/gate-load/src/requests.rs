//! The bytes of requests, written ahead of the time they are due.

use bytes::Bytes;
use gate_model::{GateSpec, Header, Message, Plan, PlannedRequest, Prompt, Prompts, Role, Secret};
use gate_wire::{Ask, Dialect, dialect};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Uri, header};
use http_body_util::Full;
use tokio::sync::mpsc;
use url::{Position, Url};

use crate::LoadError;

/// How many requests are written ahead.
pub(crate) const AHEAD: usize = 32;

/// A request ready to be sent.
pub(crate) struct Prepared {
    pub(crate) planned: PlannedRequest,
    pub(crate) request: Request<Full<Bytes>>,
}

/// Writes requests for one target.
pub(crate) struct Writer {
    dialect: &'static dyn Dialect,
    base: Url,
    key: Option<Secret>,
    model: Option<String>,
    extra_body: serde_json::Map<String, serde_json::Value>,
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
            headers,
        };
        writer.hello()?;
        Ok(writer)
    }

    /// The target's dialect.
    pub(crate) fn dialect(&self) -> &'static dyn Dialect {
        self.dialect
    }

    /// The request of a prompt.
    pub(crate) fn request(&self, prompt: &Prompt, output_tokens: u32) -> Result<Request<Full<Bytes>>, LoadError> {
        let ask = Ask {
            model: self.model.as_deref(),
            prompt,
            max_output_tokens: output_tokens,
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

/// Writes every request of a plan in the order of sending, a few ahead, until nobody takes them any more.
pub(crate) fn write_all(
    plan: &Plan,
    prompts: &dyn Prompts,
    writer: &Writer,
    out: &mpsc::Sender<Result<Prepared, LoadError>>,
) {
    let warmup = plan.warmup.iter().map(|planned| (planned, prompts.warmup(planned)));
    let measured = plan.requests.iter().map(|planned| (planned, prompts.measured(planned)));
    for (planned, prompt) in warmup.chain(measured) {
        let request = writer.request(&prompt, planned.output_tokens);
        let failed = request.is_err();
        let prepared = request.map(|request| Prepared { planned: *planned, request });
        if out.blocking_send(prepared).is_err() || failed {
            return;
        }
    }
}
