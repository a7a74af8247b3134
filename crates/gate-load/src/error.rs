//! Why there is no run at all.

use std::io;

/// What keeps a load from being a measurement. Everything a server or a network does is an outcome instead.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The journal cannot be written; the run was ended at once.
    #[error("write the run journal: {0}; is the disk full, or the folder read-only?")]
    Journal(#[source] io::Error),
    /// The I/O thread cannot start.
    #[error("start the I/O thread: {0}")]
    Runtime(#[source] io::Error),
    /// The timer of the send schedule failed.
    #[error("keep the send schedule: {0}")]
    Timer(#[source] io::Error),
    /// The kernel's clock was asked for, and doesn't work.
    #[error("use `load.clock: kernel`: {problem}; use `auto` or `user`")]
    Clock {
        /// Why not.
        problem: String,
    },
    /// The target's URL is of a kind that cannot be sent to.
    #[error("send to `{scheme}:` URLs: not supported; use `http://` or `https://`")]
    Scheme {
        /// The URL's scheme.
        scheme: String,
    },
    /// The target's URL names no host.
    #[error("send to `{url}`: it names no host")]
    NoHost {
        /// The URL.
        url: String,
    },
    /// The file of further authorities is not what it should be.
    #[error("read `target.tls.ca`: {problem}; it is a PEM file with one or more certificates")]
    Ca {
        /// What is wrong with it.
        problem: String,
    },
    /// The file of the client's certificate is not what it should be.
    #[error(
        "read `target.tls.cert`: {problem}; it is a PEM file with the client's certificate, then those between it and \
         one the server trusts"
    )]
    ClientCert {
        /// What is wrong with it.
        problem: String,
    },
    /// The file of the client's key is not what it should be.
    #[error("read `target.tls.key`: {problem}; it is a PEM file with the private key of `target.tls.cert`")]
    ClientKey {
        /// What is wrong with it.
        problem: String,
    },
    /// A variable that names a proxy holds something else.
    #[error(
        "use the proxy that `{variable}` names: it is not the URL of a proxy; write `http://user:password@host:port`, \
         with other characters than letters and digits percent-encoded"
    )]
    ProxyUrl {
        /// The variable.
        variable: &'static str,
    },
    /// A proxy of a kind that cannot be used.
    #[error(
        "use the proxy that `{variable}` names: `{scheme}://` proxies are not supported; use an `http://` one, or name \
         the target's host in `no_proxy`"
    )]
    ProxyScheme {
        /// The variable.
        variable: &'static str,
        /// The scheme of its URL.
        scheme: String,
    },
    /// HTTP/2 without TLS through a proxy that passes requests on.
    #[error(
        "speak HTTP/2 without TLS through the proxy that `{variable}` names: not supported; use `load.http: 1`, or name \
         the target's host in `no_proxy`"
    )]
    ProxyHttp2 {
        /// The variable.
        variable: &'static str,
    },
    /// There are no authorities to check a certificate by.
    #[error("read the authorities of `target.tls.roots`: {problem}; use `roots: webpki`, or install the system's")]
    Authorities {
        /// What is wrong.
        problem: String,
    },
    /// TLS cannot be set up at all.
    #[error("set up TLS: {0}")]
    Tls(#[source] rustls::Error),
    /// A header's name or value cannot be sent.
    #[error("send header `{name}`: its name or value holds a character that HTTP does not allow")]
    Header {
        /// The header's name.
        name: String,
    },
    /// The request's path cannot be sent.
    #[error(
        "send to path `{path}`: it is not a path that HTTP allows; it starts with `/`, other characters are percent-encoded"
    )]
    Path {
        /// The path.
        path: String,
    },
    /// A request cannot be signed.
    #[error("sign a request: {0}; check `target.url`")]
    Sign(#[from] gate_wire::SignError),
    /// Something that concerns the reference alone.
    #[error("set up the reference: {}", crate::words::key_of(gate_model::Arm::Reference, &.0.to_string()))]
    OfReference(#[source] Box<LoadError>),
    /// A plan or a spec without a reference meets one that has it.
    #[error("send to the reference: the run has none; name it as `reference` in the spec")]
    NoReference,
    /// A plan has a scenario that its spec doesn't have.
    #[error("send a request of scenario {scenario}: the spec has none of that number; make the plan anew")]
    Scenario {
        /// Its number, from 0.
        scenario: u16,
    },
    /// The instant at which the measured phase should start has passed.
    #[error("start at the time of `--start-at`: it passed {late} ago; give a later one, after the end of warm-up")]
    StartPassed {
        /// How long ago.
        late: gate_model::Nanos,
    },
    /// A thread of the run ended without its result.
    #[error("run the load: a thread of it ended early, which is a fault of gate; please report it")]
    Internal,
}
