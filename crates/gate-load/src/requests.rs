//! The bytes of requests; measured ones are written ahead of the time they are due.

use std::sync::{Arc, OnceLock};
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use gate_model::{
    Arm, AwsCredentials, Delivery, GateSpec, Header, Load, MaxTokensField, Message, OutputLength, Pace, Plan,
    PlannedRequest, Prompt, Prompts, Role, Secret,
};
use gate_wire::{Ask, Dialect, WireRequest, dialect, sign};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Uri, header};
use tokio::sync::{mpsc, oneshot};
use url::{Position, Url};

use crate::LoadError;
use crate::arms::Arms;
use crate::client::{self, Terms};
use crate::proxy::Forward;
use crate::turns::{Conversation, begun};

/// A request ready to be sent.
pub(crate) struct Prepared {
    pub(crate) planned: PlannedRequest,
    pub(crate) draft: Draft,
    /// How many tokens the turns before it came to.
    pub(crate) context: u64,
    /// What a later turn will follow on; absent where none does.
    pub(crate) conversation: Option<Box<Conversation>>,
}

/// How many requests are written ahead for each of so many I/O threads: those of 50 ms, so that a prompts thread that
/// has to wait for its turn delays none.
pub(crate) fn ahead(load: &Load) -> usize {
    const MOST: f64 = 1_024.0;
    let at_once = match load.pace {
        Pace::Open { rate, .. } => {
            let stages = load.stages().unwrap_or_default();
            let highest = stages.iter().flat_map(|stage| [stage.from.0, stage.to.0]).fold(rate.0, f64::max);
            highest / 20.0
        }
        Pace::Closed { concurrency } => f64::from(concurrency),
    };
    (at_once / f64::from(load.workers.max(1))).clamp(LEAST as f64, MOST) as usize
}

/// At least so many.
const LEAST: usize = 32;
/// Between two looks at how much room there is.
const BREATH: Duration = Duration::from_millis(5);

/// Where many requests are written ahead and there is room for no more, waits until half of them are taken: to be woken
/// for each would cost the thread that sends them more than to take it. `breathe` waits between two looks.
fn gather<T>(out: &mpsc::Sender<T>, mut breathe: impl FnMut()) {
    let most = out.max_capacity();
    if most > LEAST && out.capacity() == 0 {
        while out.capacity() < most / 2 && !out.is_closed() {
            breathe();
        }
    }
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

/// How the requests of a scenario differ from others'.
struct Voice {
    model: Option<String>,
    extra_body: serde_json::Map<String, serde_json::Value>,
    output: OutputLength,
}

impl Voice {
    fn new(spec: &GateSpec, scenario: u16, arm: Arm) -> Self {
        let mut extra_body = spec.of_arm(arm).map(|target| target.extra_body.clone()).unwrap_or_default();
        if let Some(own) = spec.scenarios.get(usize::from(scenario)) {
            merge(&mut extra_body, &own.extra_body);
        }
        let model = spec.model_of(scenario, arm).map(str::to_owned);
        Self { model, extra_body, output: spec.prompts_of(scenario).output }
    }
}

/// Lays fields over others, objects deeply.
fn merge(under: &mut serde_json::Map<String, serde_json::Value>, over: &serde_json::Map<String, serde_json::Value>) {
    use serde_json::Value;
    for (key, value) in over {
        match (under.get_mut(key), value) {
            (Some(Value::Object(under)), Value::Object(over)) => merge(under, over),
            _ => {
                under.insert(key.clone(), value.clone());
            }
        }
    }
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
    /// One for each of the spec's scenarios.
    voices: Vec<Voice>,
    delivery: Delivery,
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
            voices: (0..).take(spec.scenarios.len().max(1)).map(|scenario| Voice::new(spec, scenario, arm)).collect(),
            delivery: client::delivery(target),
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
    fn draft(&self, scenario: u16, prompt: &Prompt, output_tokens: u32) -> Result<Draft, LoadError> {
        let voice = self.voices.get(usize::from(scenario)).ok_or(LoadError::Scenario { scenario })?;
        let ask = Ask {
            model: voice.model.as_deref(),
            prompt,
            max_output_tokens: output_tokens,
            max_tokens_field: self.switched_to().unwrap_or(self.max_tokens_field),
            output: voice.output,
            delivery: self.delivery,
            extra_body: &voice.extra_body,
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
        let draft = self.draft(planned.scenario, prompt, planned.output_tokens)?;
        Ok(Prepared { planned: *planned, draft, context: 0, conversation: None })
    }

    /// The least request there is, for asking whether the target answers.
    pub(crate) fn hello(&self) -> Result<Draft, LoadError> {
        let message = Message::new(Role::User, "Hello".to_owned());
        self.draft(0, &Prompt { messages: vec![message] }, 1)
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

/// Which of the I/O threads takes a warm-up request: they are dealt in turn, both of a pair to the same thread.
pub(crate) fn dealt<'a, T>(planned: &PlannedRequest, to: &'a [T]) -> Result<&'a T, LoadError> {
    turn_of(planned.pair.unwrap_or(planned.index) as usize, to)
}

/// Whose turn it is, of some that take turns.
fn turn_of<T>(number: usize, of: &[T]) -> Result<&T, LoadError> {
    number.checked_rem(of.len()).and_then(|place| of.get(place)).ok_or(LoadError::Internal)
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

/// Writes the measured requests of one queue in the order of sending, a few ahead, and deals them to the I/O threads in
/// turn, both of a pair to the same, until nobody takes them any more. It starts when warm-up has ended and prompts are
/// fitted. Of a conversation it writes the first turn: the others follow from answers.
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
    let (mut number, mut pair) = (0, None);
    let is_own = |planned: &&PlannedRequest| planned.turn == 0 && queue.contains(&planned.arm);
    for (place, planned) in plan.requests.iter().filter(is_own).enumerate() {
        if place > 0 && (planned.pair.is_none() || planned.pair != pair) {
            number += 1;
        }
        pair = planned.pair;
        let Ok(out) = turn_of(number, out) else { return };
        let terms = arms.get(planned.arm);
        let prepared = terms.and_then(|terms| terms.writer.prepare(planned, &prompts.measured(planned, &[])));
        let prepared = prepared.map(|prepared| Prepared { conversation: begun(plan, planned), ..prepared });
        let failed = prepared.is_err();
        gather(out, || std::thread::sleep(BREATH));
        if out.blocking_send(prepared).is_err() || failed {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use gate_model::{Pattern, PerSecond};

    use super::*;

    #[test]
    fn more_is_written_ahead_where_more_is_sent() {
        let open = |rate| Load { pace: Pace::Open { rate: PerSecond(rate), cap: None }, ..Load::default() };
        assert_eq!([2.0, 5_000.0, 10_000.0, 1e9].map(|rate| ahead(&open(rate))), [32, 250, 500, 1_024]);
        assert_eq!(ahead(&Load { workers: 2, ..open(10_000.0) }), 250);
        let (hold, before) = (gate_model::Nanos::from_secs(1), gate_model::Nanos::from_secs(1));
        let spike = Pattern::Spike { times: 10.0, hold, before, after: before };
        assert_eq!(ahead(&Load { pattern: spike, ..open(1_000.0) }), 500);
        let closed = |concurrency| Load { pace: Pace::Closed { concurrency }, ..Load::default() };
        assert_eq!([1, 100, 5_000].map(|concurrency| ahead(&closed(concurrency))), [32, 100, 1_024]);
    }

    #[test]
    fn what_is_written_far_ahead_is_written_in_batches() {
        // With each breath one more is taken.
        let breaths = |out: &mpsc::Sender<usize>, taken: &mut mpsc::Receiver<usize>| {
            let mut breaths = 0;
            gather(out, || {
                assert_eq!(taken.try_recv(), Ok(breaths));
                breaths += 1;
            });
            breaths
        };
        let (out, mut taken) = mpsc::channel(LEAST * 2);
        (0..LEAST * 2 - 1).for_each(|number| out.try_send(number).unwrap());
        assert_eq!(breaths(&out, &mut taken), 0, "there is room for one");
        out.try_send(LEAST * 2 - 1).unwrap();
        assert_eq!(breaths(&out, &mut taken), LEAST, "until there is room for half");

        let (out, mut taken) = mpsc::channel(LEAST);
        (0..LEAST).for_each(|number| out.try_send(number).unwrap());
        assert_eq!(breaths(&out, &mut taken), 0, "few are written ahead");

        let (out, taken) = mpsc::channel(LEAST * 2);
        (0..LEAST * 2).for_each(|number| out.try_send(number).unwrap());
        let mut taken = Some(taken);
        gather(&out, || assert!(taken.take().is_some(), "nobody takes any more"));
        assert!(taken.is_none());
    }

    #[test]
    fn fields_of_a_scenario_win_deeply() {
        let fields = |value: serde_json::Value| value.as_object().cloned().unwrap();
        let mut under = fields(serde_json::json!({"a": 1, "b": {"c": 2, "d": [3]}, "e": {"f": 4}}));
        merge(&mut under, &fields(serde_json::json!({"b": {"d": 5}, "e": 6, "g": {"h": 7}})));
        let merged = serde_json::json!({"a": 1, "b": {"c": 2, "d": 5}, "e": 6, "g": {"h": 7}});
        assert_eq!(under, fields(merged));
    }
}
