//! What the target's own metrics say: a Prometheus endpoint, read during a run.
//!
//! It may be on another host than the target. The target's trust, and the proxies that the environment names, count for
//! it too; its key and its headers are sent only where scheme, host and port are the target's own. Every reading has a
//! connection of its own, which is none of the load's.

mod aliases;
mod exposition;

use std::path::Path;
use std::time::Duration;

use bytes::Bytes;
use gate_model::{Arm, Drifting, GateSpec, Http, Metric, Redactor, ServerMetric, UnixUrl};
use http::{HeaderValue, Request, StatusCode, Uri, header};
use url::{Position, Url};

use crate::ask::Question;
use crate::proxy::ProxyEnv;
use crate::requests::Writer;
use crate::target::Target;
use crate::words::clean;
use crate::{LoadError, Remote};

use aliases::{numberless, values};

/// How long a reading may take, connecting included.
const WAIT: Duration = Duration::from_secs(5);
/// What is asked for: the text format that every server has.
const ACCEPT: HeaderValue = HeaderValue::from_static("text/plain;version=0.0.4,text/plain;q=0.5");

/// Reads the metrics of a run's target.
pub(crate) struct Scraper {
    /// Or why there is no way, in words: a reading that fails never fails a run.
    way: Result<Question, String>,
    /// What checks ask for.
    wanted: Vec<ServerMetric>,
    redactor: Redactor,
}

/// What a reading gave.
#[derive(Debug, PartialEq)]
pub(crate) struct Read {
    /// The values.
    pub(crate) values: Vec<(ServerMetric, f64)>,
    /// Why values that checks need are not among them, in words.
    pub(crate) problem: Option<String>,
}

/// Where the metrics are.
struct Place<'a> {
    url: Url,
    socket: Option<&'a Path>,
}

impl Scraper {
    /// A reader of what the spec's `target.metrics` names; `None` where it names nothing. `remote` is where the target
    /// is: metrics that are a path, such as `/metrics`, are asked there.
    pub(crate) fn new(spec: &GateSpec, remote: &Remote, proxies: &ProxyEnv, redactor: &Redactor) -> Option<Self> {
        let metrics = spec.target.metrics.as_deref()?;
        let way = place(metrics, remote).and_then(|place| {
            let to_words = |error: LoadError| words(&error.to_string(), redactor);
            way(&place, spec, remote, proxies).map_err(to_words)
        });
        Some(Self { way, wanted: wanted(spec), redactor: redactor.clone() })
    }

    /// Reads them once, within 5 s: what is known under a common name, then what checks name. Where the target is asked
    /// in HTTP/2, it has to be polled on a local task set, as requests are.
    ///
    /// # Errors
    /// Why there is nothing, in words that hold no secret.
    pub(crate) async fn once(&self) -> Result<Read, String> {
        let way = self.way.as_ref().map_err(Clone::clone)?;
        let answer = way.answer().await.map_err(|error| words(&error, &self.redactor))?;
        if answer.status != StatusCode::OK.as_u16() {
            return Err(words(&refusal(answer.status, way), &self.redactor));
        }
        let text = answer.text;
        let (values, numberless) = (values(&text, &self.wanted), numberless(&text, &self.wanted));
        let path = way.path();
        let without_number = |metrics: &[ServerMetric]| {
            let names: Vec<_> = metrics.iter().map(|metric| format!("`{metric}`")).collect();
            format!("what GET {path} answered gives no number for {} (NaN or infinite)", names.join(", "))
        };
        if values.is_empty() && !numberless.is_empty() {
            return Err(without_number(&numberless));
        }
        if values.is_empty() {
            return Err(match exposition::points(&text).count() {
                0 => {
                    format!("what GET {path} answered has no metric in Prometheus' text format; check `target.metrics`")
                }
                count => format!("of the {count} values that GET {path} answered, gate knows none by name"),
            });
        }
        let needed: Vec<_> = numberless.into_iter().filter(|metric| self.wanted.contains(metric)).collect();
        let problem = (!needed.is_empty()).then(|| without_number(&needed));
        Ok(Read { values, problem })
    }
}

/// One clean line, in which the key to look at is that of the metrics.
fn words(text: &str, redactor: &Redactor) -> String {
    clean(&text.replace("`target.url`", "`target.metrics`"), redactor)
}

/// The server's metrics that checks name.
fn wanted(spec: &GateSpec) -> Vec<ServerMetric> {
    let mut wanted = Vec::new();
    for check in &spec.checks {
        if let Metric::Server(metric, _) | Metric::Drift(Drifting::Server(metric)) = check.metric
            && !wanted.contains(&metric)
        {
            wanted.push(metric);
        }
    }
    wanted
}

/// Where the metrics are that a text names.
fn place<'a>(metrics: &'a str, remote: &'a Remote) -> Result<Place<'a>, String> {
    const NO_URL: &str = "`target.metrics` is not a URL; it is one such as `http://host:8000/metrics`";
    let to_words = |_| NO_URL.to_owned();
    let place = match UnixUrl::parse(metrics) {
        Some(UnixUrl { socket, path }) => {
            let path = if path.is_empty() { "/metrics" } else { path };
            let url = Url::parse("http://localhost").and_then(|base| base.join(path)).map_err(to_words)?;
            Place { url, socket: Some(Path::new(socket)) }
        }
        None if metrics.starts_with('/') => {
            Place { url: remote.base.join(metrics).map_err(to_words)?, socket: remote.socket.as_deref() }
        }
        None => Place { url: Url::parse(metrics).map_err(to_words)?, socket: None },
    };
    if !place.url.username().is_empty() || place.url.password().is_some() {
        return Err(
            "`target.metrics` names a user, and a URL is no place for credentials; metrics at the target's own \
                    host and port are asked with its `key` and `headers`"
                .to_owned(),
        );
    }
    Ok(place)
}

impl Place<'_> {
    /// Whether who listens here is who listens to the load.
    fn is_of(&self, remote: &Remote) -> bool {
        self.socket == remote.socket.as_deref()
            && self.url.scheme() == remote.base.scheme()
            && self.url.host() == remote.base.host()
            && self.url.port_or_known_default() == remote.base.port_or_known_default()
    }
}

/// The way to a place, with the target's credentials where it is the target's own.
fn way(place: &Place<'_>, spec: &GateSpec, remote: &Remote, proxies: &ProxyEnv) -> Result<Question, LoadError> {
    let is_own = place.is_of(remote);
    let http = if is_own && spec.load.http == Http::Two { Http::Two } else { Http::One };
    let target = Target::new(&place.url, place.socket, &remote.trust, proxies, http)?;
    let path = &place.url[Position::BeforePath..Position::AfterQuery];
    let mut request = if is_own {
        Writer::new(spec, Arm::Target, &remote.base, target.forward())?.get(path)?.request()?
    } else {
        stranger(&place.url, path, &target)?
    };
    request.headers_mut().insert(header::ACCEPT, ACCEPT);
    Ok(Question::new(target, request, http, WAIT))
}

/// A request that says nothing of the target.
fn stranger(url: &Url, path: &str, target: &Target) -> Result<Request<Bytes>, LoadError> {
    let refused = || LoadError::Path { path: url.path().to_owned() };
    let host = &url[Position::BeforeHost..Position::AfterPort];
    let host = HeaderValue::from_str(host).map_err(|_| LoadError::Header { name: "host".to_owned() })?;
    let mut request = Request::new(Bytes::new());
    *request.uri_mut() = match target.forward() {
        Some(forward) => forward.uri(path).map_err(|_| refused())?,
        None => path.parse::<Uri>().map_err(|_| refused())?,
    };
    let headers = request.headers_mut();
    headers.insert(header::HOST, host);
    headers.insert(header::USER_AGENT, HeaderValue::from_static(concat!("gate/", env!("CARGO_PKG_VERSION"))));
    headers.insert(header::ACCEPT_ENCODING, HeaderValue::from_static("identity"));
    if let Some(auth) = target.forward().and_then(|forward| forward.proxy.auth.as_ref()) {
        headers.insert(header::PROXY_AUTHORIZATION, auth.clone());
    }
    Ok(request)
}

/// What another status than 200 means.
fn refusal(status: u16, way: &Question) -> String {
    let known = StatusCode::from_u16(status).ok();
    if known == Some(StatusCode::PROXY_AUTHENTICATION_REQUIRED)
        && let Some(forward) = way.forward()
    {
        return forward.proxy.unauthorised();
    }
    let reason =
        known.and_then(|status| status.canonical_reason()).map(|reason| format!(" {reason}")).unwrap_or_default();
    let remedy = match status {
        300..=399 => "; redirects are not followed: check `target.metrics`",
        401 | 403 => "; it is asked with the target's `key` and `headers` only at the target's own host and port",
        404 => "; check `target.metrics`, and whether the server was started with metrics on",
        _ => "",
    };
    format!("GET {} answered {status}{reason}{remedy}", way.path())
}

#[cfg(test)]
mod tests;
