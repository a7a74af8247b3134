//! Who we are to a server that asks.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use gate_model::Secret;
use rustls::client::ResolvesClientCert;
use rustls::crypto::ring;
use rustls::sign::CertifiedKey;
use rustls::{InconsistentKeys, SignatureScheme};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};

use crate::LoadError;

/// The client's own certificate and its key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientIdentity {
    /// The content of the PEM file with the certificate, and with the authorities between it and one the server trusts.
    pub cert_pem: Vec<u8>,
    /// That of the one with the private key: PKCS#8, PKCS#1 or SEC1.
    pub key_pem: Secret,
}

/// What a server is shown that asks for a certificate, and whether one has asked.
#[derive(Debug)]
pub(super) struct Shown {
    identity: Option<Arc<CertifiedKey>>,
    asked: AtomicBool,
}

impl Shown {
    /// What is shown of this identity.
    pub(super) fn new(client: Option<&ClientIdentity>) -> Result<Self, LoadError> {
        let identity = client.map(certified).transpose()?.map(Arc::new);
        Ok(Self { identity, asked: AtomicBool::default() })
    }

    /// Whether a server has asked.
    pub(super) fn is_asked(&self) -> bool {
        self.asked.load(Ordering::Relaxed)
    }

    /// Whether there is something to show.
    pub(super) fn is_someone(&self) -> bool {
        self.identity.is_some()
    }
}

impl ResolvesClientCert for Shown {
    fn resolve(&self, _: &[&[u8]], _: &[SignatureScheme]) -> Option<Arc<CertifiedKey>> {
        self.asked.store(true, Ordering::Relaxed);
        self.identity.clone()
    }

    fn has_certs(&self) -> bool {
        self.is_someone()
    }
}

fn certified(client: &ClientIdentity) -> Result<CertifiedKey, LoadError> {
    let cert = |problem: &str| LoadError::ClientCert { problem: problem.to_owned() };
    // The reader's own words quote bytes of the file.
    let chain = CertificateDer::pem_slice_iter(unmarked(&client.cert_pem))
        .collect::<Result<Vec<_>, _>>()
        .map_err(|_| cert("it is no PEM text: a certificate's lines are cut or garbled"))?;
    let Some(first) = chain.first() else { return Err(cert("it holds no certificate")) };
    match webpki::EndEntityCert::try_from(first) {
        // One without extensions is of version 1, which only the server has to read.
        Ok(_) | Err(webpki::Error::UnsupportedCertVersion) => {}
        Err(_) => return Err(cert("its first certificate is none")),
    }
    let key = key(client.key_pem.expose())?;
    let key = ring::default_provider().key_provider.load_private_key(key).map_err(|_| {
        key_error(
            "it is of a kind that is not supported: use ECDSA on P-256 or P-384, Ed25519, or RSA of 2048 bits or more",
        )
    })?;
    let certified = CertifiedKey::new(chain, key);
    match certified.keys_match() {
        Err(rustls::Error::InconsistentKeys(InconsistentKeys::KeyMismatch)) => {
            Err(key_error("it is not the key of the first certificate in `target.tls.cert`"))
        }
        // The key of a version 1 certificate cannot be read here: the server tells whether it fits.
        _ => Ok(certified),
    }
}

/// A text without the mark of its encoding that editors on Windows put first.
pub(super) fn unmarked(pem: &[u8]) -> &[u8] {
    pem.strip_prefix(b"\xef\xbb\xbf").unwrap_or(pem)
}

fn key(pem: &str) -> Result<PrivateKeyDer<'static>, LoadError> {
    if ["-----BEGIN ENCRYPTED PRIVATE KEY-----", "Proc-Type: 4,ENCRYPTED"].iter().any(|mark| pem.contains(mark)) {
        return Err(key_error("its key is encrypted, and gate asks for no passphrase: decrypt it with `openssl pkey`"));
    }
    match PrivateKeyDer::from_pem_slice(unmarked(pem.as_bytes())) {
        Ok(key) => Ok(key),
        Err(rustls_pki_types::pem::Error::NoItemsFound) => Err(key_error("it holds no private key")),
        Err(_) => Err(key_error("it is no PEM text: the key's lines are cut or garbled")),
    }
}

fn key_error(problem: &str) -> LoadError {
    LoadError::ClientKey { problem: problem.to_owned() }
}
