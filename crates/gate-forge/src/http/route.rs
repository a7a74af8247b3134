//! The way to a forge: straight, or through the proxy that the environment names, with TLS where the forge speaks it.

use std::error::Error;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use http::header::PROXY_AUTHORIZATION;
use http::{Request, Uri};
use hyper::rt::{Read, ReadBufCursor, Write};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::connect::proxy::Tunnel;
use hyper_util::client::legacy::connect::{Connected, Connection, HttpConnector};
use hyper_util::client::proxy::matcher::{Intercept, Matcher};
use hyper_util::rt::TokioIo;
use rustls::crypto::ring;
use rustls::{ClientConfig, RootCertStore};
use tokio::net::TcpStream;
use tower_service::Service;
use url::{Host, Url};

/// How a connection to a forge is made.
pub(super) type Way = HttpsConnector<Route>;

type Failure = Box<dyn Error + Send + Sync>;

/// The proxies that the environment names; never one on the way to this machine.
#[derive(Clone)]
pub(super) struct Proxies(Arc<Matcher>);

impl Proxies {
    /// Those of `HTTP_PROXY`, `HTTPS_PROXY`, `ALL_PROXY` and `NO_PROXY`, in upper or lower case.
    pub(super) fn of_environment() -> Self {
        Self::of(Matcher::from_env())
    }

    pub(super) fn of(matcher: Matcher) -> Self {
        Self(Arc::new(matcher))
    }

    /// Shows a request that a proxy forwards who asks; a tunnel is opened with that instead.
    pub(super) fn authorise<B>(&self, request: &mut Request<B>) {
        if request.uri().scheme_str() != Some("http") {
            return;
        }
        let proxy = self.on_the_way_to(request.uri());
        if let Some(auth) = proxy.as_ref().and_then(Intercept::basic_auth) {
            let mut auth = auth.clone();
            auth.set_sensitive(true);
            request.headers_mut().insert(PROXY_AUTHORIZATION, auth);
        }
    }

    fn on_the_way_to(&self, target: &Uri) -> Option<Intercept> {
        if is_local(target) { None } else { self.0.intercept(target) }
    }
}

/// Whether a URI's host is this machine.
fn is_local(target: &Uri) -> bool {
    let url = Url::parse(&target.to_string()).ok();
    match url.as_ref().and_then(Url::host) {
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.to_canonical().is_loopback(),
        Some(Host::Domain(name)) => {
            let name = name.trim_end_matches('.');
            name == "localhost" || name.ends_with(".localhost")
        }
        None => false,
    }
}

/// TLS by the system's authorities, which `SSL_CERT_FILE` replaces, else by Mozilla's; plain for `http`.
pub(super) fn way(proxies: Proxies) -> Result<Way, String> {
    let mut roots = RootCertStore::empty();
    let found = rustls_native_certs::load_native_certs();
    let (_, ignored) = roots.add_parsable_certificates(found.certs);
    tracing::debug!(ignored, errors = ?found.errors, "read the system's authorities");
    if roots.is_empty() {
        roots.extend(webpki_roots::TLS_SERVER_ROOTS.iter().cloned());
    }
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| format!("TLS cannot be set up: {error}"))?
        .with_root_certificates(roots)
        .with_no_client_auth();
    let mut tcp = HttpConnector::new();
    tcp.enforce_http(false);
    tcp.set_nodelay(true);
    let route = Route { tcp, proxies };
    Ok(HttpsConnectorBuilder::new().with_tls_config(config).https_or_http().enable_http1().wrap_connector(route))
}

/// The bytes' way, below TLS.
#[derive(Clone)]
pub(super) struct Route {
    tcp: HttpConnector,
    proxies: Proxies,
}

impl Service<Uri> for Route {
    type Response = Socket;
    type Error = Failure;
    type Future = Pin<Box<dyn Future<Output = Result<Socket, Failure>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Failure>> {
        self.tcp.poll_ready(cx).map_err(Into::into)
    }

    fn call(&mut self, target: Uri) -> Self::Future {
        let mut tcp = self.tcp.clone();
        let Some(proxy) = self.proxies.on_the_way_to(&target) else {
            return Box::pin(async move { Ok(Socket { io: tcp.call(target).await?, is_forwarded: false }) });
        };
        if proxy.uri().scheme_str() != Some("http") {
            let scheme = proxy.uri().scheme_str().unwrap_or("such");
            let words = format!("{scheme} proxies are not supported: name an `http://` one, or the host in `NO_PROXY`");
            return Box::pin(async move { Err(words.into()) });
        }
        let to = proxy.uri().clone();
        if target.scheme_str() == Some("http") {
            return Box::pin(async move { Ok(Socket { io: tcp.call(to).await?, is_forwarded: true }) });
        }
        let mut tunnel = Tunnel::new(to, tcp);
        if let Some(auth) = proxy.basic_auth() {
            tunnel = tunnel.with_auth(auth.clone());
        }
        Box::pin(async move { Ok(Socket { io: tunnel.call(target).await?, is_forwarded: false }) })
    }
}

/// A connection, to the forge or to a proxy that forwards requests, each of which then names the whole URI.
pub(super) struct Socket {
    io: TokioIo<TcpStream>,
    is_forwarded: bool,
}

impl Connection for Socket {
    fn connected(&self) -> Connected {
        self.io.connected().proxy(self.is_forwarded)
    }
}

impl Read for Socket {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        into: ReadBufCursor<'_>,
    ) -> Poll<Result<(), std::io::Error>> {
        Pin::new(&mut self.io).poll_read(cx, into)
    }
}

impl Write for Socket {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<Result<usize, std::io::Error>> {
        Pin::new(&mut self.io).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<(), std::io::Error>> {
        Pin::new(&mut self.io).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<(), std::io::Error>> {
        Pin::new(&mut self.io).poll_shutdown(cx)
    }
}
