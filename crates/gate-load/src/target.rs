//! Where the target is: its name, its addresses, a new connection to it.

use std::cell::RefCell;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Instant;

use gate_model::{Nanos, Outcome};
use http::Uri;
use rustix::io::Errno;
use rustls::ClientConfig;
use tokio::net::TcpStream;
use tokio::time::timeout_at;
use url::{Host, Url};

use crate::LoadError;
use crate::stamped::{Stamped, Stamps};
use crate::tls::{self, TlsFault, Trust};
use crate::transport::{Transport, plain, secured};

/// The target's host, resolved once; the address that last connected is tried first.
pub(crate) struct Target {
    host: Host,
    port: u16,
    addresses: RefCell<Vec<SocketAddr>>,
    /// Absent over plain HTTP.
    tls: Option<Tls>,
}

/// TLS with one server.
struct Tls {
    /// Names the server.
    uri: Uri,
    config: Arc<ClientConfig>,
}

/// Why there is no connection, in words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ConnectError {
    /// Every address refused: nothing listens there, yet.
    Refused(String),
    /// Not in time: what was waited for.
    Late(&'static str),
    /// There is a connection, but no TLS on it.
    Tls(TlsFault),
    /// This machine has no more of what a connection needs.
    Exhausted(&'static str),
    /// Anything else.
    Failed(String),
}

impl ConnectError {
    /// The outcome of a request that has no connection.
    pub(crate) fn outcome(&self) -> Outcome {
        match self {
            Self::Refused(_) | Self::Failed(_) => Outcome::Connect,
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
            Self::Refused(words) | Self::Failed(words) | Self::Tls(TlsFault::Lost(words) | TlsFault::Failed(words)) => {
                words
            }
        }
    }
}

impl Target {
    /// The target of a URL.
    pub(crate) fn new(base: &Url, trust: &Trust) -> Result<Self, LoadError> {
        let no_host = || LoadError::NoHost { url: base.to_string() };
        let host = base.host().ok_or_else(no_host)?.to_owned();
        let tls = match base.scheme() {
            "http" => None,
            "https" => {
                let uri = format!("https://{host}").parse().map_err(|_| no_host())?;
                Some(Tls { uri, config: tls::config(trust)? })
            }
            scheme => return Err(LoadError::Scheme { scheme: scheme.to_owned() }),
        };
        let port = base.port_or_known_default().ok_or_else(no_host)?;
        Ok(Self { host, port, addresses: RefCell::default(), tls })
    }

    /// Finds the host's addresses.
    pub(crate) async fn resolve(&self) -> Result<(), String> {
        let found = match &self.host {
            Host::Ipv4(address) => vec![SocketAddr::from((*address, self.port))],
            Host::Ipv6(address) => vec![SocketAddr::from((*address, self.port))],
            Host::Domain(name) => match tokio::net::lookup_host((name.as_str(), self.port)).await {
                Ok(found) => found.collect(),
                Err(error) => return Err(format!("cannot resolve host `{name}`: {error}")),
            },
        };
        if found.is_empty() {
            return Err(format!("cannot resolve host `{}`: it has no address", self.host));
        }
        self.addresses.replace(found);
        Ok(())
    }

    /// Connects, and over `https` completes the TLS handshake, until a deadline. What is written and read on the
    /// connection is stamped.
    pub(crate) async fn connect(&self, deadline: Instant, stamps: &Arc<Stamps>) -> Result<Transport, ConnectError> {
        let connected = timeout_at(deadline.into(), self.connect_tcp()).await;
        let stream = connected.map_err(|_| ConnectError::Late("no connection"))??;
        let stream = Stamped::new(stream, Arc::clone(stamps));
        let Some(Tls { uri, config }) = &self.tls else { return Ok(plain(stream)) };
        let secured = timeout_at(deadline.into(), secured(stream, uri.clone(), Arc::clone(config))).await;
        secured
            .map_err(|_| ConnectError::Late("the connection stands, but the TLS handshake was not done"))?
            .map_err(|error| ConnectError::Tls(TlsFault::of(&*error)))
    }

    /// Connects to the first address that answers.
    async fn connect_tcp(&self) -> Result<TcpStream, ConnectError> {
        let addresses = self.addresses.borrow().clone();
        let mut failure = ConnectError::Failed(format!("host `{}` is not resolved", self.host));
        for (tried, address) in addresses.iter().enumerate() {
            let stream = TcpStream::connect(address).await.and_then(|stream| {
                stream.set_nodelay(true)?;
                Ok(stream)
            });
            match stream {
                Ok(stream) => {
                    if tried > 0 {
                        self.addresses.borrow_mut().rotate_left(tried);
                    }
                    return Ok(stream);
                }
                // Of several failures the one that isn't a refusal says more.
                Err(error) if tried == 0 || matches!(failure, ConnectError::Refused(_)) => {
                    failure = self.failure(*address, &error);
                }
                Err(_) => {}
            }
        }
        Err(failure)
    }

    fn failure(&self, address: SocketAddr, error: &io::Error) -> ConnectError {
        if let Some(what) = exhausted(error) {
            return ConnectError::Exhausted(what);
        }
        let place = match &self.host {
            Host::Domain(name) => format!("{name}:{} ({address})", self.port),
            Host::Ipv4(_) | Host::Ipv6(_) => address.to_string(),
        };
        match error.kind() {
            io::ErrorKind::ConnectionRefused => ConnectError::Refused(format!("connection refused by {place}")),
            _ => ConnectError::Failed(format!("cannot connect to {place}: {error}")),
        }
    }
}

/// What this machine has run out of, where that is why there is no connection: no fault of the target.
fn exhausted(error: &io::Error) -> Option<&'static str> {
    match error.kind() {
        io::ErrorKind::AddrNotAvailable => Some("free local ports"),
        io::ErrorKind::OutOfMemory => Some("memory"),
        _ => match Errno::from_io_error(error)? {
            Errno::MFILE | Errno::NFILE => Some("file descriptors (raise `ulimit -n`)"),
            Errno::NOBUFS | Errno::NOMEM => Some("memory for sockets"),
            Errno::ADDRNOTAVAIL => Some("free local ports"),
            _ => None,
        },
    }
}
