//! TLS: who may vouch for a server, and what a failure means in words.

mod failure;
mod verifier;

use std::sync::Arc;

use gate_model::{Roots, Tls};
use rustls::client::{Resumption, WebPkiServerVerifier};
use rustls::crypto::ring;
use rustls::{ClientConfig, RootCertStore};
use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject;

use crate::LoadError;

pub(crate) use failure::{TlsFault, alert};

/// Who may vouch for an `https` target.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Trust {
    /// The usual authorities.
    pub roots: Roots,
    /// The content of the PEM file with further ones.
    pub ca_pem: Option<Vec<u8>>,
    /// Whether any certificate is accepted, whoever vouches for it; a warning is logged.
    pub insecure: bool,
}

impl Trust {
    /// What a spec says, with the content of the file that its `ca` names.
    #[must_use]
    pub fn new(tls: &Tls, ca_pem: Option<Vec<u8>>) -> Self {
        Self { roots: tls.roots, ca_pem, insecure: tls.insecure }
    }
}

impl Trust {
    /// Whether its PEM text holds what it should, before anything is sent.
    ///
    /// # Errors
    /// [`LoadError::Ca`], [`LoadError::Authorities`].
    pub fn check(&self) -> Result<(), LoadError> {
        authorities(self.roots, &given(self)?).map(drop)
    }
}

/// TLS 1.2 and 1.3 with HTTP/1.1 on top. Every connection makes a full handshake, so that they compare.
pub(crate) fn config(trust: &Trust) -> Result<Arc<ClientConfig>, LoadError> {
    let provider = Arc::new(ring::default_provider());
    let given = given(trust)?;
    let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .map_err(LoadError::Tls)?
        .dangerous();
    let mut config = if trust.insecure {
        tracing::warn!("`target.tls.insecure`: any certificate is accepted, so anyone in between can read and answer");
        builder.with_custom_certificate_verifier(Arc::new(verifier::Anyone(provider)))
    } else {
        let roots = Arc::new(authorities(trust.roots, &given)?);
        let usual = WebPkiServerVerifier::builder_with_provider(roots, provider)
            .build()
            .map_err(|error| LoadError::Authorities { problem: error.to_string() })?;
        builder.with_custom_certificate_verifier(Arc::new(verifier::Vouched { usual, given }))
    }
    .with_no_client_auth();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    config.resumption = Resumption::disabled();
    Ok(Arc::new(config))
}

/// The certificates of the spec's own PEM file.
fn given(trust: &Trust) -> Result<Vec<CertificateDer<'static>>, LoadError> {
    let Some(pem) = &trust.ca_pem else { return Ok(Vec::new()) };
    let given: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
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
