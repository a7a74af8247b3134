//! TLS: who may vouch for a server, what it is shown, what is spoken over it, and what a failure means in words.

mod failure;
mod identity;
mod verifier;

use std::sync::Arc;

use gate_model::{Http, HttpVersion, Roots};
use http::Uri;
use rustls::client::{Resumption, WebPkiServerVerifier};
use rustls::crypto::ring;
use rustls::{ClientConfig, RootCertStore};
use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject;
use url::Host;

use crate::LoadError;

pub(crate) use failure::{Explain, TlsFault};
pub use identity::ClientIdentity;
use identity::{Shown, unmarked};

/// Who may vouch for an `https` target, and who we are to it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Trust {
    /// The usual authorities.
    pub roots: Roots,
    /// The content of the PEM file with further ones.
    pub ca_pem: Option<Vec<u8>>,
    /// Whether any certificate is accepted, whoever vouches for it; a load logs a warning.
    pub insecure: bool,
    /// What a server is shown that asks for a certificate.
    pub client: Option<ClientIdentity>,
}

impl Trust {
    /// What a spec says, with the content of the file that its `ca` names, and of the two that its `cert` and `key`
    /// name.
    #[must_use]
    pub fn new(tls: &gate_model::Tls, ca_pem: Option<Vec<u8>>, client: Option<ClientIdentity>) -> Self {
        Self { roots: tls.roots, ca_pem, insecure: tls.insecure, client }
    }

    /// Whether its PEM texts hold what they should, before anything is sent.
    ///
    /// # Errors
    /// [`LoadError::Ca`], [`LoadError::Authorities`], [`LoadError::ClientCert`], [`LoadError::ClientKey`].
    pub fn check(&self) -> Result<(), LoadError> {
        authorities(self.roots, &given(self)?)?;
        Shown::new(self.client.as_ref()).map(drop)
    }
}

/// TLS with one server.
pub(crate) struct Tls {
    /// Names the server.
    uri: Uri,
    config: Arc<ClientConfig>,
    explain: Explain,
}

impl Tls {
    /// TLS 1.2 and 1.3. Every connection makes a full handshake, so that they compare.
    pub(crate) fn new(host: &Host, trust: &Trust, http: Http) -> Result<Self, LoadError> {
        let uri: Uri = format!("https://{host}").parse().map_err(|_| LoadError::NoHost { url: host.to_string() })?;
        let shown = Arc::new(Shown::new(trust.client.as_ref())?);
        let provider = Arc::new(ring::default_provider());
        let given = given(trust)?;
        let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .map_err(LoadError::Tls)?
            .dangerous();
        let mut config = if trust.insecure {
            builder.with_custom_certificate_verifier(Arc::new(verifier::Anyone(provider)))
        } else {
            let roots = Arc::new(authorities(trust.roots, &given)?);
            let usual = WebPkiServerVerifier::builder_with_provider(roots, provider)
                .build()
                .map_err(|error| LoadError::Authorities { problem: error.to_string() })?;
            builder.with_custom_certificate_verifier(Arc::new(verifier::Vouched { usual, given }))
        }
        .with_client_cert_resolver(Arc::clone(&shown) as _);
        let protocols: &[&[u8]] = match http {
            Http::Auto => &[HTTP_2, HTTP_1],
            Http::One => &[HTTP_1],
            Http::Two => &[HTTP_2],
        };
        config.alpn_protocols = protocols.iter().map(|name| name.to_vec()).collect();
        config.resumption = Resumption::disabled();
        Ok(Self { uri, config: Arc::new(config), explain: Explain { http, shown } })
    }

    /// How handshakes are made.
    pub(crate) fn config(&self) -> Arc<ClientConfig> {
        Arc::clone(&self.config)
    }

    /// Names the server.
    pub(crate) fn server(&self) -> Uri {
        self.uri.clone()
    }

    /// What failures mean.
    pub(crate) fn explain(&self) -> &Explain {
        &self.explain
    }

    /// What is spoken, by the protocol that was agreed on. A server that knows of no agreement speaks HTTP/1.1.
    pub(crate) fn agreed(&self, protocol: Option<&[u8]>) -> Result<HttpVersion, TlsFault> {
        match protocol {
            Some(HTTP_2) => Ok(HttpVersion::Http2),
            _ if self.explain.http == Http::Two => Err(TlsFault::Failed(failure::no_protocol(Http::Two))),
            _ => Ok(HttpVersion::Http1),
        }
    }
}

/// HTTP/1.1 in the handshake.
const HTTP_1: &[u8] = b"http/1.1";
/// HTTP/2 in the handshake.
const HTTP_2: &[u8] = b"h2";

/// The certificates of the spec's own PEM file.
fn given(trust: &Trust) -> Result<Vec<CertificateDer<'static>>, LoadError> {
    let Some(pem) = &trust.ca_pem else { return Ok(Vec::new()) };
    let given: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(unmarked(pem)).collect();
    match given {
        Ok(given) if given.is_empty() => Err(LoadError::Ca { problem: "it holds no certificate".to_owned() }),
        Ok(given) => Ok(given),
        // The reader's own words quote bytes of the file, which may hold a key too.
        Err(_) => {
            Err(LoadError::Ca { problem: "it is no PEM text: a certificate's lines are cut or garbled".to_owned() })
        }
    }
}

fn authorities(usual: Roots, given: &[CertificateDer<'static>]) -> Result<RootCertStore, LoadError> {
    let mut roots = RootCertStore::empty();
    match usual {
        Roots::Webpki => roots.extend(webpki_roots::TLS_SERVER_ROOTS.iter().cloned()),
        Roots::System => {
            let found = rustls_native_certs::load_native_certs();
            let (_, ignored) = roots.add_parsable_certificates(found.certs);
            tracing::debug!(ignored, errors = ?found.errors, "read the system's authorities");
            if roots.is_empty() {
                let problem = found.errors.first().map_or_else(|| "there are none".to_owned(), ToString::to_string);
                return Err(LoadError::Authorities { problem });
            }
        }
    }
    for certificate in given {
        let broken = |_| LoadError::Ca { problem: "it holds something that is no certificate".to_owned() };
        roots.add(certificate.clone()).map_err(broken)?;
    }
    Ok(roots)
}
