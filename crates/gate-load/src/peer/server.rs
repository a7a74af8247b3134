//! A server in the network: its name, its addresses, a connection to the first of them that answers.

use std::io;
use std::net::SocketAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::timeout;
use url::Host;

use super::{Opened, exhausted};
use crate::socket::Socket;
use crate::target::ConnectError;

/// How long a first connection waits for one address before it tries the next one too (RFC 8305, section 5).
const PATIENCE: Duration = Duration::from_millis(250);
/// Later ones go where the first one went.
const ENDLESS: Duration = Duration::MAX;

/// A server in the network. Its addresses are looked up by the first connection, and kept once that stands.
pub(crate) struct Server {
    /// What stands before its name in messages: nothing, or what it is.
    title: &'static str,
    host: Host,
    port: u16,
    found: Mutex<Found>,
}

/// Where a server was found.
#[derive(Clone, Default)]
struct Found {
    /// The one that connected last comes first.
    addresses: Vec<SocketAddr>,
    /// Whether they are kept.
    is_pinned: bool,
}

impl Server {
    /// A server that messages call by a title and its name. A title ends in a space.
    pub(crate) fn new(title: &'static str, host: Host, port: u16) -> Self {
        Self { title, host, port, found: Mutex::default() }
    }

    /// Has the next connection look up the name again.
    pub(super) fn look_up_again(&self) {
        self.found().is_pinned = false;
    }

    /// Its addresses, the one in use first.
    pub(super) fn addresses(&self) -> Vec<SocketAddr> {
        self.found().addresses.clone()
    }

    /// Opens a connection.
    pub(super) async fn open(&self) -> Result<Opened, ConnectError> {
        let Found { addresses, is_pinned } = self.found().clone();
        if is_pinned {
            return Ok(Opened { socket: self.connect(addresses, ENDLESS).await?, dns: None });
        }
        let start = Instant::now();
        let (addresses, dns) = match &self.host {
            Host::Ipv4(address) => (vec![SocketAddr::from((*address, self.port))], None),
            Host::Ipv6(address) => (vec![SocketAddr::from((*address, self.port))], None),
            Host::Domain(name) => {
                let looked_up = self.look_up(name).await;
                let addresses = looked_up.or_else(|error| {
                    tracing::debug!(%name, "looked up in vain");
                    if addresses.is_empty() { Err(error) } else { Ok(addresses) }
                })?;
                (addresses, Some(start.elapsed()))
            }
        };
        Ok(Opened { socket: self.connect(addresses, PATIENCE).await?, dns })
    }

    async fn look_up(&self, name: &str) -> Result<Vec<SocketAddr>, ConnectError> {
        let problem = match tokio::net::lookup_host((name, self.port)).await {
            Ok(found) => {
                let addresses: Vec<_> = found.collect();
                if !addresses.is_empty() {
                    return Ok(addresses);
                }
                "it has no address".to_owned()
            }
            Err(error) => error.to_string(),
        };
        Err(ConnectError::Failed(format!("cannot resolve {}host `{name}`: {problem}", self.title)))
    }

    /// Connects to the first address that answers, and keeps all of them, that one first. The next one's turn comes
    /// when one has failed, or has been silent for too long.
    async fn connect(&self, addresses: Vec<SocketAddr>, patience: Duration) -> Result<Socket, ConnectError> {
        let mut untried = addresses.iter().copied();
        let mut attempts = JoinSet::new();
        let mut failure = None;
        loop {
            if let Some(address) = untried.next() {
                attempts.spawn(async move { (address, connect_to(address).await) });
            }
            match timeout(patience, attempts.join_next()).await {
                Ok(Some(Ok((address, Ok(stream))))) => {
                    self.pin(addresses, address);
                    return Ok(Socket::Tcp(stream));
                }
                Ok(Some(Ok((address, Err(error))))) => {
                    // Of several failures the one that isn't a refusal says more.
                    if matches!(failure, None | Some(ConnectError::NotYet(_))) {
                        failure = Some(self.failure(address, &error));
                    }
                }
                Ok(Some(Err(_)) | None) => {
                    let none = || ConnectError::Failed(format!("{}host `{}` has no address", self.title, self.host));
                    return Err(failure.unwrap_or_else(none));
                }
                // Silent for now.
                Err(_) => {}
            }
        }
    }

    fn pin(&self, mut addresses: Vec<SocketAddr>, used: SocketAddr) {
        let place = addresses.iter().position(|address| *address == used);
        addresses.rotate_left(place.unwrap_or(0));
        *self.found() = Found { addresses, is_pinned: true };
    }

    fn found(&self) -> MutexGuard<'_, Found> {
        self.found.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn failure(&self, address: SocketAddr, error: &io::Error) -> ConnectError {
        if let Some(what) = exhausted(error) {
            return ConnectError::Exhausted(what);
        }
        let place = match &self.host {
            Host::Domain(name) => format!("{}{name}:{} ({address})", self.title, self.port),
            Host::Ipv4(_) | Host::Ipv6(_) => format!("{}{address}", self.title),
        };
        match error.kind() {
            io::ErrorKind::ConnectionRefused => ConnectError::NotYet(format!("connection refused by {place}")),
            _ => ConnectError::Failed(format!("cannot connect to {place}: {error}")),
        }
    }
}

async fn connect_to(address: SocketAddr) -> io::Result<TcpStream> {
    let stream = TcpStream::connect(address).await?;
    stream.set_nodelay(true)?;
    Ok(stream)
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    fn server(host: &str) -> Server {
        Server::new("", Host::parse(host).unwrap(), 80)
    }

    fn listening() -> (TcpListener, SocketAddr) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        (listener, address)
    }

    fn block_on<T>(work: impl Future<Output = T>) -> T {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async { timeout(Duration::from_secs(60), work).await.expect("no end") })
    }

    #[test]
    fn the_first_address_that_answers_is_used_and_remembered() {
        let (closed, (_listener, open), (_other, second)) = (listening().1, listening(), listening());
        let server = server("model.example");
        block_on(server.connect(vec![closed, open, second], PATIENCE)).unwrap();
        assert_eq!(server.addresses(), [open, second, closed]);
        assert!(server.found().is_pinned);
        // What is pinned is not looked up: this name has no address.
        assert!(block_on(server.open()).unwrap().dns.is_none());
    }

    #[test]
    fn the_failure_that_says_most_is_told() {
        let (refused, second) = (listening().1, listening().1);
        let server = server("model.example");
        let Err(ConnectError::NotYet(words)) = block_on(server.connect(vec![refused, second], PATIENCE)) else {
            panic!("not refused")
        };
        assert_eq!(words, format!("connection refused by model.example:80 ({second})"));
        let unroutable = SocketAddr::from(([255, 255, 255, 255], 80));
        let failure = block_on(server.connect(vec![refused, unroutable], PATIENCE)).unwrap_err();
        assert!(matches!(failure, ConnectError::Failed(words) if words.contains("255.255.255.255")));
    }

    /// A queue that is full makes Linux drop what asks for a connection.
    #[test]
    #[cfg(target_os = "linux")]
    fn an_address_that_is_silent_does_not_keep_the_next_one_waiting() {
        let (listener, silent) = listening();
        rustix::net::listen(&listener, 0).unwrap();
        let mut queue = Vec::new();
        while let Ok(stream) = std::net::TcpStream::connect_timeout(&silent, Duration::from_millis(200)) {
            queue.push(stream);
        }
        let (_listener, open) = listening();
        let server = server("model.example");
        block_on(server.connect(vec![silent, open], PATIENCE)).unwrap();
        assert_eq!(server.addresses(), [open, silent]);
    }

    #[test]
    fn addresses_found_before_serve_where_a_name_is_looked_up_in_vain() {
        let (_listener, open) = listening();
        let server = server("no-such-host.invalid");
        let Err(ConnectError::Failed(words)) = block_on(server.open()) else { panic!("there is such a host") };
        assert!(words.starts_with("cannot resolve host `no-such-host.invalid`: "), "{words}");
        server.pin(vec![open], open);
        server.look_up_again();
        assert!(block_on(server.open()).unwrap().dns.is_some());
        assert!(server.found().is_pinned);
    }
}
