//! The bytes of requests; measured ones are written ahead of the time they are due.

use std::sync::{Arc, OnceLock};
use std::time::SystemTime;

use bytes::Bytes;
use gate_model::{
    Arm, AwsCredentials, Delivery, GateSpec, Header, MaxTokensField, Message, OutputLength, Pace, Plan, PlannedRequest,
    Prompt, Prompts, Role, Secret,
};
use gate_wire::{Ask, Dialect, WireRequest, dialect, sign};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Uri, header};
use tokio::sync::{mpsc, oneshot};
use url::{Position, Url};

use crate::LoadError;
use crate::arms::Arms;
use crate::client::{self, Terms};
use crate::proxy::Forward;

/// How many requests are written ahead for each I/O thread.
pub(crate) const AHEAD: usize = 32;

/// A request ready to be sent.
pub(crate) struct Prepared {
    pub(crate) planned: PlannedRequest,
    pub(crate) draft: Draft,
}

/// A request that only lacks what ages: a signature.
pub(crate) struct Draft {
    request: Request<Bytes>,
    unsigned: Option<Box<Unsigned>>,
}

/// What is signed, and as whom.
struct Unsigned {
    wire: WireRequest,
    host: String,
    credentials: AwsCredentials,
}

impl Draft {
    /// The request as it is sent now.
    pub(crate) fn request(&self) -> Result<Request<Bytes>, LoadError> {
        let mut request = self.request.clone();
        if let Some(Unsigned { wire, host, credentials }) = self.unsigned.as_deref() {
            for (name, text) in &sign(wire, host, credentials, SystemTime::now())? {
                request.headers_mut().insert(self::name(name)?, value(name, text)?);
            }
        }
        Ok(request)
    }

    /// The path it is sent to.
    pub(crate) fn path(&self) -> &str {
        self.request.uri().path()
    }
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
    dialect: Arc<dyn Dialect>,
    base: Url,
    key: Option<Secret>,
    /// As requests name it.
    host: String,
    /// Who signs requests.
    signer: Option<AwsCredentials>,
    model: Option<String>,
    extra_body: serde_json::Map<String, serde_json::Value>,
    delivery: Delivery,
    output: OutputLength,
    max_tokens_field: MaxTokensField,
    /// What the server wants instead of the spec's.
    switched_to: OnceLock<MaxTokensField>,
    /// `host` and what a proxy is shown, then the spec's own, which win over the dialect's.
    headers: HeaderMap,
    /// The proxy that is asked for the target.
    forward: Option<Forward>,
}

impl Writer {
    /// A writer for the target of an arm, checked: what it writes for one prompt it writes for any.
    pub(crate) fn new(spec: &GateSpec, arm: Arm, base: &Url, forward: Option<&Forward>) -> Result<Self, LoadError> {
        let target = spec.of_arm(arm).ok_or(LoadError::NoReference)?;
        let host = &base[Position::BeforeHost..Position::AfterPort];
        let mut headers = HeaderMap::new();
        headers.insert(header::HOST, value("host", &Secret::new(host))?);
        headers.insert(header::USER_AGENT, HeaderValue::from_static(concat!("gate/", env!("CARGO_PKG_VERSION"))));
        if let Some(auth) = forward.and_then(|forward| forward.proxy.auth.as_ref()) {
            headers.insert(header::PROXY_AUTHORIZATION, auth.clone());
        }
        for Header { name, value: text } in &target.headers {
            headers.insert(self::name(name)?, value(name, text)?);
        }
        let writer = Self {
            dialect: dialect(target.api, target.custom.as_ref()),
            base: base.clone(),
            key: target.key.clone(),
            host: host.to_owned(),
            signer: target.aws.clone().filter(|_| target.api.is_bedrock() && target.key.is_none()),
            model: target.model.clone(),
            extra_body: target.extra_body.clone(),
            delivery: client::delivery(target),
            output: spec.prompts.output,
            max_tokens_field: target.max_tokens_field,
            switched_to: OnceLock::new(),
            headers,
            forward: forward.cloned(),
        };
        writer.hello()?.request()?;
        Ok(writer)
    }

    /// The target's dialect.
    pub(crate) fn dialect(&self) -> &Arc<dyn Dialect> {
        &self.dialect
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
    fn draft(&self, prompt: &Prompt, output_tokens: u32) -> Result<Draft, LoadError> {
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
        let mut request = Request::new(Bytes::new());
        *request.method_mut() = Method::POST;
        *request.uri_mut() = self.uri(&wire.path)?;
        let headers = request.headers_mut();
        for (name, text) in &wire.headers {
            headers.insert(self::name(name)?, value(name, text)?);
        }
        for (name, value) in &self.headers {
            headers.insert(name.clone(), value.clone());
        }
        let Some(credentials) = &self.signer else {
            *request.body_mut() = wire.body.into();
            return Ok(Draft { request, unsigned: None });
        };
        *request.body_mut() = wire.body.clone().into();
        let unsigned = Unsigned { wire, host: self.host.clone(), credentials: credentials.clone() };
        Ok(Draft { request, unsigned: Some(Box::new(unsigned)) })
    }

    /// A planned request with its prompt.
    pub(crate) fn prepare(&self, planned: &PlannedRequest, prompt: &Prompt) -> Result<Prepared, LoadError> {
        Ok(Prepared { planned: *planned, draft: self.draft(prompt, planned.output_tokens)? })
    }

    /// The least request there is, for asking whether the target answers.
    pub(crate) fn hello(&self) -> Result<Draft, LoadError> {
        let message = Message { role: Role::User, text: "Hello".to_owned() };
        self.draft(&Prompt { messages: vec![message] }, 1)
    }

    /// A GET of a path on the target's host, with the credentials of a request, but never signed.
    pub(crate) fn get(&self, path: &str) -> Result<Draft, LoadError> {
        let Draft { mut request, .. } = self.hello()?;
        *request.method_mut() = Method::GET;
        *request.uri_mut() = self.uri(path)?;
        *request.body_mut() = Bytes::new();
        request.headers_mut().remove(header::CONTENT_TYPE);
        request.headers_mut().remove(header::ACCEPT);
        Ok(Draft { request, unsigned: None })
    }

    /// The path of the target's list of models.
    pub(crate) fn models_path(&self) -> String {
        self.dialect.models_path(&self.base)
    }

    /// A path on the target's host, with its query, as the server or the proxy is asked for it.
    fn uri(&self, path: &str) -> Result<Uri, LoadError> {
        let refused = || LoadError::Path { path: path.to_owned() };
        if !path.starts_with('/') {
            return Err(refused());
        }
        match &self.forward {
            Some(forward) => forward.uri(path).map_err(|_| refused()),
            None => path.parse().map_err(|_| refused()),
        }
    }
}

fn name(text: &str) -> Result<HeaderName, LoadError> {
    text.parse().map_err(|_| LoadError::Header { name: text.to_owned() })
}

fn value(name: &str, text: &Secret) -> Result<HeaderValue, LoadError> {
    let mut value = HeaderValue::from_str(text.expose()).map_err(|_| LoadError::Header { name: name.to_owned() })?;
    value.set_sensitive(true);
    Ok(value)
}

/// Which of the I/O threads takes a request: they are dealt in turn, both of a pair to the same thread.
pub(crate) fn dealt<'a, T>(planned: &PlannedRequest, to: &'a [T]) -> Result<&'a T, LoadError> {
    let number = planned.pair.unwrap_or(planned.index) as usize;
    number.checked_rem(to.len()).and_then(|place| to.get(place)).ok_or(LoadError::Internal)
}

/// The queues of a run, two at most: the arms whose requests are sent one after another, in the plan's order.
///
/// In an open loop all are in one: no request waits for what comes before it, and a pair goes out back to back. In a
/// closed loop each arm has its own, so that none waits for a slot of the other's.
pub(crate) fn queues<T>(pace: Pace, arms: &Arms<T>) -> Vec<Vec<Arm>> {
    let arms = arms.iter().map(|(arm, _)| arm);
    match pace {
        Pace::Open { .. } => vec![arms.collect()],
        Pace::Closed { .. } => arms.map(|arm| vec![arm]).collect(),
    }
}

/// Writes the measured requests of one queue in the order of sending, a few ahead, and deals them to the I/O threads,
/// until nobody takes them any more. It starts when warm-up has ended and prompts are fitted.
pub(crate) fn write_measured(
    plan: &Plan,
    queue: &[Arm],
    prompts: &dyn Prompts,
    arms: &Arms<Arc<Terms>>,
    warmed_up: oneshot::Receiver<()>,
    out: &[mpsc::Sender<Result<Prepared, LoadError>>],
) {
    // Without a word the run ended before.
    let Ok(()) = warmed_up.blocking_recv() else { return };
    for planned in plan.requests.iter().filter(|planned| queue.contains(&planned.arm)) {
        let Ok(out) = dealt(planned, out) else { return };
        let terms = arms.get(planned.arm);
        let prepared = terms.and_then(|terms| terms.writer.prepare(planned, &prompts.measured(planned)));
        let failed = prepared.is_err();
        if out.blocking_send(prepared).is_err() || failed {
            return;
        }
    }
}
