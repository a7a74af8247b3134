//! Where the target is, and what stands on the way: a new connection to it, phase by phase.

use std::path::Path;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use gate_model::{Http, HttpVersion, Nanos, Outcome, Reached};
use tokio::time::timeout_at;
use url::{Position, Url};

use crate::LoadError;
use crate::peer::{Opened, Peer, Server};
use crate::proxy::{Forward, Proxy, ProxyEnv, tunnel};
use crate::socket::Socket;
use crate::stamped::{Stamped, Stamps};
use crate::tls::{Tls, TlsFault, Trust};
use crate::transport::{Connected, TlsSlot, plain, secured};

/// The way to the target.
pub(crate) struct Target {
    peer: Peer,
    via: Via,
    /// Absent over plain HTTP.
    tls: Option<Tls>,
    /// Without TLS.
    http: HttpVersion,
    /// The version of HTTP of the first answer, and what the server calls itself there.
    first: OnceLock<(HttpVersion, Option<String>)>,
}

/// What stands between this machine and the target.
enum Via {
    /// Nothing.
    Direct,
    /// A proxy that passes requests on.
    Forward(Forward),
    /// A proxy that passes bytes on, to this `host:port`.
    Tunnel(Proxy, String),
}

/// How long the parts of connecting took.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Phases {
    /// Looking up the name; absent where the address was known.
    pub(crate) dns: Option<Duration>,
    /// Connecting, a proxy's tunnel included.
    pub(crate) connect: Duration,
    /// The TLS handshake; absent over plain HTTP.
    pub(crate) tls: Option<Duration>,
}

/// Why there is no connection, in words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ConnectError {
    /// Nothing listens there, yet.
    NotYet(String),
    /// Not in time: what was waited for.
    Late(String),
    /// There is a connection, but no TLS on it.
    Tls(TlsFault),
    /// This machine has no more of what a connection needs.
    Exhausted(&'static str),
    /// A proxy does not let this through; the words say what to do.
    Barred(String),
    /// Anything else.
    Failed(String),
}

impl ConnectError {
    /// The outcome of a request that has no connection.
    pub(crate) fn outcome(&self) -> Outcome {
        match self {
            Self::NotYet(_) | Self::Barred(_) | Self::Failed(_) => Outcome::Connect,
            Self::Late(_) => Outcome::TimeoutConnect,
            Self::Tls(_) => Outcome::Tls,
            Self::Exhausted(_) => Outcome::Cancelled,
        }
    }

    /// In words, where so long was waited at most.
    pub(crate) fn words(self, limit: Nanos) -> String {
        match self {
            Self::Late(what) => format!("{what} within {limit}"),
            Self::Exhausted(what) => format!("this machine has no more {what}"),
            Self::NotYet(words)
            | Self::Barred(words)
            | Self::Failed(words)
            | Self::Tls(TlsFault::Lost(words) | TlsFault::Failed(words)) => words,
        }
    }
}

impl Target {
    /// The target of a URL, or of a socket, where the URL only says what is asked there.
    pub(crate) fn new(
        base: &Url,
        socket: Option<&Path>,
        trust: &Trust,
        proxies: &ProxyEnv,
        http: Http,
    ) -> Result<Self, LoadError> {
        let no_host = || LoadError::NoHost { url: base.to_string() };
        let host = base.host().ok_or_else(no_host)?.to_owned();
        let port = base.port_or_known_default().ok_or_else(no_host)?;
        let tls = match base.scheme() {
            "http" => None,
            "https" => Some(Tls::new(&host, trust, http)?),
            scheme => return Err(LoadError::Scheme { scheme: scheme.to_owned() }),
        };
        let (peer, via) = match (socket, proxies.on_the_way_to(base)?) {
            #[cfg(unix)]
            (Some(path), _) => (Peer::Unix(path.to_owned()), Via::Direct),
            #[cfg(not(unix))]
            (Some(_), _) => return Err(LoadError::Scheme { scheme: "unix".to_owned() }),
            (None, None) => (Peer::Server(Server::new("", host, port)), Via::Direct),
            (None, Some((proxy, server))) => {
                let via = match tls {
                    Some(_) => Via::Tunnel(proxy, format!("{host}:{port}")),
                    None if http == Http::Two => return Err(LoadError::ProxyHttp2 { variable: proxy.variable }),
                    None => {
                        let authority = base[Position::BeforeHost..Position::AfterPort].to_owned();
                        Via::Forward(Forward { proxy, authority })
                    }
                };
                (Peer::Server(server), via)
            }
        };
        let http = if http == Http::Two { HttpVersion::Http2 } else { HttpVersion::Http1 };
        Ok(Self { peer, via, tls, http, first: OnceLock::new() })
    }

    /// How requests name the target to a proxy that passes them on.
    pub(crate) fn forward(&self) -> Option<&Forward> {
        match &self.via {
            Via::Forward(forward) => Some(forward),
            Via::Direct | Via::Tunnel(..) => None,
        }
    }

    /// Where a person looks who is told that it cannot be reached.
    pub(crate) fn named_by(&self) -> &'static str {
        self.proxy().map_or("target.url", |proxy| proxy.variable)
    }

    /// It has answered, in this version of HTTP, and calls itself so.
    pub(crate) fn answered(&self, http: HttpVersion, server: Option<String>) {
        self.first.get_or_init(|| (http, server));
    }

    /// How it was reached; `None` where it never answered.
    pub(crate) fn reached(&self) -> Option<Reached> {
        let (http, server) = self.first.get()?.clone();
        let proxy = self.proxy().map(|proxy| proxy.url.clone());
        Some(Reached { addresses: self.peer.addresses(), proxy, http, server })
    }

    /// Whether it is behind a Unix socket.
    pub(crate) fn is_unix(&self) -> bool {
        match &self.peer {
            Peer::Server(_) => false,
            #[cfg(unix)]
            Peer::Unix(_) => true,
        }
    }

    /// Has the next connection look up the name again.
    pub(crate) fn look_up_again(&self) {
        self.peer.look_up_again();
    }

    /// Connects, through a proxy's tunnel where there is one, and over `https` completes the TLS handshake, until a
    /// deadline. What is written and read on the connection is stamped.
    pub(crate) async fn connect(&self, deadline: Instant, stamps: &Arc<Stamps>) -> Result<Connected, ConnectError> {
        let start = Instant::now();
        let (socket, dns) = self.open(deadline).await?;
        let connect = start.elapsed().saturating_sub(dns.unwrap_or_default());
        let stream = Stamped::new(socket, Arc::clone(stamps));
        let plainly = Phases { dns, connect, tls: None };
        Ok(match &self.tls {
            None => {
                Connected { transport: plain(stream), phases: plainly, http: self.http, tls_fault: TlsSlot::default() }
            }
            Some(tls) => {
                let start = Instant::now();
                let late = || "the connection stands, but the TLS handshake was not done".to_owned();
                let lost = |fault| match (fault, self.proxy()) {
                    // Either may have ended it.
                    (TlsFault::Lost(words), Some(Proxy { url, .. })) => {
                        ConnectError::Tls(TlsFault::Lost(format!("through the proxy at {url}: {words}")))
                    }
                    (fault, _) => ConnectError::Tls(fault),
                };
                let secured = before(deadline, secured(stream, tls), late).await?.map_err(lost)?;
                let phases = Phases { tls: Some(start.elapsed()), ..plainly };
                Connected { transport: secured.transport, phases, http: secured.http, tls_fault: secured.fault }
            }
        })
    }

    /// Opens a socket to the target, and says how long its name was looked up.
    async fn open(&self, deadline: Instant) -> Result<(Socket, Option<Duration>), ConnectError> {
        let late = || match self.proxy() {
            Some(proxy) => format!("no connection to the proxy at {}", proxy.url),
            None => "no connection".to_owned(),
        };
        let opened = before(deadline, self.peer.open(), late).await?;
        let Opened { socket, dns } = opened.map_err(|error| match (error, &self.via) {
            // A proxy is not what a job starts, and waits for.
            (ConnectError::NotYet(words), Via::Forward(_) | Via::Tunnel(..)) => ConnectError::Failed(words),
            (error, _) => error,
        })?;
        let Via::Tunnel(proxy, authority) = &self.via else { return Ok((socket, dns)) };
        let late = || format!("no answer from the proxy at {}", proxy.url);
        Ok((before(deadline, tunnel(socket, proxy, authority), late).await??, dns))
    }

    fn proxy(&self) -> Option<&Proxy> {
        match &self.via {
            Via::Direct => None,
            Via::Forward(Forward { proxy, .. }) | Via::Tunnel(proxy, _) => Some(proxy),
        }
    }
}

/// What `work` gives, where it is done before a deadline.
async fn before<T>(
    deadline: Instant,
    work: impl Future<Output = T>,
    late: impl FnOnce() -> String,
) -> Result<T, ConnectError> {
    timeout_at(deadline.into(), work).await.map_err(|_| ConnectError::Late(late()))
}
