//! Certificates of the tests' own making, and what is asserted of loads that show or check them.

use std::sync::Arc;

use gate_load::Trust;
use gate_model::{EndReason, Outcome};
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use rustls::ServerConfig;
use rustls_pki_types::{CertificateDer, PrivatePkcs8KeyDer};

use crate::bench::{Bench, Report};

/// A certificate and its key.
pub(crate) struct Identity {
    pub(crate) certificate: CertificateDer<'static>,
    pub(crate) pem: String,
    pub(crate) key: KeyPair,
}

impl Identity {
    pub(crate) fn server_config(&self) -> ServerConfig {
        let key = PrivatePkcs8KeyDer::from(self.key.serialize_der());
        server().with_no_client_auth().with_single_cert(vec![self.certificate.clone()], key.into()).unwrap()
    }

    pub(crate) fn config(&self) -> Arc<ServerConfig> {
        Arc::new(self.server_config())
    }
}

pub(crate) fn server() -> rustls::ConfigBuilder<ServerConfig, rustls::WantsVerifier> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap()
}

pub(crate) fn params(names: &[&str]) -> CertificateParams {
    CertificateParams::new(names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>()).unwrap()
}

pub(crate) fn self_signed(params: &CertificateParams) -> Identity {
    let key = KeyPair::generate().unwrap();
    let certificate = params.self_signed(&key).unwrap();
    Identity { certificate: certificate.der().clone(), pem: certificate.pem(), key }
}

/// A server's certificate with these parameters, and the PEM text of the authority that signed it.
pub(crate) fn issued(leaf: &CertificateParams) -> (Identity, String) {
    issued_by("the team's own", leaf)
}

pub(crate) fn issued_by(authority_name: &str, leaf: &CertificateParams) -> (Identity, String) {
    let mut authority = params(&[]);
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    authority.distinguished_name.push(rcgen::DnType::CommonName, authority_name);
    let root = self_signed(&authority);
    let key = KeyPair::generate().unwrap();
    let certificate = leaf.signed_by(&key, &Issuer::new(authority, root.key)).unwrap();
    let identity = Identity { certificate: certificate.der().clone(), pem: certificate.pem(), key };
    (identity, root.pem)
}

pub(crate) fn given(pem: &str) -> Trust {
    Trust { ca_pem: Some(pem.as_bytes().to_vec()), ..Trust::default() }
}

pub(crate) fn insecure() -> Trust {
    Trust { insecure: true, ..Trust::default() }
}

pub(crate) fn assert_ok(report: &Report) {
    assert_eq!(report.run.end.as_ref().unwrap().reason, EndReason::Completed);
    for sample in report.run.warmup.iter().chain(&report.run.samples) {
        assert_eq!(sample.outcome, Outcome::Ok, "{sample:?}");
    }
}

/// Why the target was not ready.
pub(crate) fn refusal(bench: Bench) -> String {
    let report = bench.go();
    let EndReason::NotReady(words) = &report.run.end.as_ref().unwrap().reason else { panic!("{report:?}") };
    words.clone()
}

pub(crate) fn assert_says(words: &str, parts: &[&str]) {
    for part in parts {
        assert!(words.contains(part), "`{part}` is missing in: {words}");
    }
}
