//! Servers that ask who we are.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use gate_load::{ClientIdentity, Trust};
use gate_model::{EndReason, Outcome, Secret};
use rcgen::date_time_ymd;
use rustls::client::danger::HandshakeSignatureValid;
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::version::{TLS12, TLS13};
use rustls::{
    DigitallySignedStruct, DistinguishedName, RootCertStore, ServerConfig, SignatureScheme, SupportedProtocolVersion,
};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivatePkcs8KeyDer, UnixTime};

use crate::certificates::*;
use crate::server::*;
use crate::tls::bench;

/// What a server that asks for a certificate needs, and what its clients do.
struct Guarded {
    server: Identity,
    /// Who vouches for the server.
    authority: String,
    client: Identity,
    /// Who vouches for the client, to the server.
    clients: String,
}

impl Guarded {
    fn new() -> Self {
        let (server, authority) = issued(&params(&["localhost"]));
        let (client, clients) = issued_by("the clients'", &params(&["gate"]));
        Self { server, authority, client, clients }
    }

    fn config(&self, version: &'static SupportedProtocolVersion, protocols: &[&str]) -> Arc<ServerConfig> {
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_pem_slice(self.clients.as_bytes()).unwrap()).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let verifier =
            WebPkiClientVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&provider)).build().unwrap();
        let key = PrivatePkcs8KeyDer::from(self.server.key.serialize_der());
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_protocol_versions(&[version])
            .unwrap()
            .with_client_cert_verifier(verifier)
            .with_single_cert(vec![self.server.certificate.clone()], key.into())
            .unwrap();
        config.alpn_protocols = protocols.iter().map(|name| name.as_bytes().to_vec()).collect();
        Arc::new(config)
    }

    fn serve(&self, version: &'static SupportedProtocolVersion, protocols: &[&str]) -> SocketAddr {
        let config = self.config(version, protocols);
        serve_tls(move |_| Some(Arc::clone(&config)), well(|_, _| stream(&["a", "b"])))
    }

    fn trust(&self, client: Option<ClientIdentity>) -> Trust {
        Trust { client, ..given(&self.authority) }
    }
}

fn showing(cert_pem: &str, key_pem: &str) -> ClientIdentity {
    ClientIdentity { cert_pem: cert_pem.as_bytes().to_vec(), key_pem: Secret::new(key_pem) }
}

fn shown(identity: &Identity) -> Option<ClientIdentity> {
    Some(showing(&identity.pem, &identity.key.serialize_pem()))
}

#[test]
fn a_client_with_its_certificate_is_let_in() {
    let guarded = Guarded::new();
    for version in [&TLS12, &TLS13] {
        let address = guarded.serve(version, &[]);
        assert_ok(&bench("https", address, guarded.trust(shown(&guarded.client))).go());
    }
    // As editors on Windows write the files.
    let windows = |pem: &str| format!("\u{feff}{}", pem.replace('\n', "\r\n"));
    let client = showing(&windows(&guarded.client.pem), &windows(&guarded.client.key.serialize_pem()));
    let address = guarded.serve(&TLS13, &[]);
    assert_ok(&bench("https", address, Trust { client: Some(client), ..given(&windows(&guarded.authority)) }).go());
    // A server that doesn't ask is not shown it, and doesn't mind.
    let address = crate::tls::serve_as(&guarded.server);
    assert_ok(&bench("https", address, guarded.trust(shown(&guarded.client))).go());
}

#[test]
fn a_client_without_one_is_told_what_to_give() {
    let guarded = Guarded::new();
    // Over TLS 1.3 the client learns it after its own part of the handshake, where HTTP is expected.
    for (version, protocols) in [(&TLS12, &[][..]), (&TLS13, &[]), (&TLS13, &["h2"]), (&TLS12, &["h2"])] {
        let address = guarded.serve(version, protocols);
        let words = refusal(bench("https", address, guarded.trust(None)));
        assert_says(&words, &["asks for a client certificate", "`target.tls.cert` and `target.tls.key`"]);
    }
}

#[test]
fn a_certificate_that_the_server_does_not_accept_is_named() {
    let guarded = Guarded::new();
    let (stranger, _) = issued_by("nobody's", &params(&["gate"]));
    for (version, protocols) in [(&TLS12, &[][..]), (&TLS13, &[]), (&TLS13, &["h2"])] {
        let address = guarded.serve(version, protocols);
        let words = refusal(bench("https", address, guarded.trust(shown(&stranger))));
        assert_says(&words, &["refused our certificate", "`target.tls.cert`", "authority"]);
    }
}

#[test]
fn a_certificate_that_has_expired_is_said_to() {
    let mut leaf = params(&["gate"]);
    leaf.not_after = date_time_ymd(2020, 1, 1);
    let (client, clients) = issued_by("the clients'", &leaf);
    let guarded = Guarded { client, clients, ..Guarded::new() };
    for version in [&TLS12, &TLS13] {
        let words = refusal(bench("https", guarded.serve(version, &[]), guarded.trust(shown(&guarded.client))));
        assert_says(&words, &["our certificate has expired: renew the one in `target.tls.cert`"]);
    }
}

#[test]
fn a_server_that_asks_later_gives_requests_that_outcome() {
    let guarded = Guarded::new();
    let (lax, strict) = (guarded.server.config(), guarded.config(&TLS13, &[]));
    let config = move |connection| Some(Arc::clone(if connection < 2 { &lax } else { &strict }));
    let script = well(|_, _| stream(&["a"]));
    let address = serve_tls(config, move |seen| [script(seen), vec![Close]].concat());
    let report = bench("https", address, guarded.trust(None)).every(300).go();
    assert_eq!(report.run.warmup[0].outcome, Outcome::Ok);
    let last = report.run.samples.last().unwrap();
    assert_eq!(last.outcome, Outcome::Tls, "{last:?}");
    assert_says(last.error.as_ref().unwrap(), &["asks for a client certificate"]);
    assert_eq!(report.run.end.unwrap().reason, EndReason::Completed);
}

#[test]
fn files_that_hold_something_else_are_no_run() {
    let Guarded { client, server, .. } = Guarded::new();
    let (cert, key) = (client.pem.as_str(), client.key.serialize_pem());
    let begun = |label: &str| format!("-----BEGIN {label}-----\nnot base64\n-----END {label}-----\n");
    let encrypted = "-----BEGIN ENCRYPTED PRIVATE KEY-----\nAAAA\n-----END ENCRYPTED PRIVATE KEY-----\n";
    let older = "-----BEGIN EC PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,00\n\nAAAA\n-----END EC PRIVATE KEY-----\n";
    for (cert, key, says) in [
        ("", key.as_str(), "read `target.tls.cert`: it holds no certificate"),
        (key.as_str(), key.as_str(), "read `target.tls.cert`: it holds no certificate"),
        (&begun("CERTIFICATE"), &key, "read `target.tls.cert`: it is no PEM text"),
        ("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n", &key, "its first certificate is none"),
        (cert, cert, "read `target.tls.key`: it holds no private key"),
        (cert, &begun("PRIVATE KEY"), "read `target.tls.key`: it is no PEM text"),
        (cert, encrypted, "read `target.tls.key`: its key is encrypted"),
        (cert, older, "read `target.tls.key`: its key is encrypted"),
        (cert, "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n", "`target.tls.key`: it is of a kind"),
        (cert, &server.key.serialize_pem(), "is not the key of the first certificate in `target.tls.cert`"),
    ] {
        let trust = Trust { client: Some(showing(cert, key)), ..Trust::default() };
        assert_says(&trust.check().unwrap_err().to_string(), &[says]);
        let (result, journal, _) = bench("https", ([127, 0, 0, 1], 1).into(), trust).try_go();
        assert_says(&result.unwrap_err().to_string(), &[says]);
        assert!(journal.is_empty());
    }
}

#[test]
fn keys_of_older_formats_are_read_and_none_is_shown() {
    let client = Guarded::new().client;
    let (pkcs8, der) = (client.key.serialize_pem(), client.key.serialize_der());
    // A P-256 key in PKCS#8 holds it in SEC1's form.
    let start = der.windows(4).position(|bytes| bytes == [0x04, 0x6d, 0x30, 0x6b]).unwrap() + 2;
    let inner = base64::Engine::encode(&base64::prelude::BASE64_STANDARD, &der[start..]);
    let sec1 = format!("-----BEGIN EC PRIVATE KEY-----\n{inner}\n-----END EC PRIVATE KEY-----\n");
    // Both in one file, in any order.
    let both = [pkcs8.as_str(), &client.pem].concat();
    for (cert, key) in [(&client.pem, &pkcs8), (&client.pem, &sec1), (&both, &both)] {
        let identity = showing(cert, key);
        assert!(!format!("{identity:?}").contains("PRIVATE"));
        Trust { client: Some(identity), ..Trust::default() }.check().unwrap();
    }
}

/// A certificate without extensions, as `openssl x509 -req` makes them.
const VERSION_1: &str = "-----BEGIN CERTIFICATE-----\n\
    MIIBGTCBvwIUXPlijowAbvRUH2AAuheK2/T++hAwCgYIKoZIzj0EAwIwDTELMAkG\n\
    A1UEAwwCY2EwIBcNMjYxMTI5MjEyMzAyWhgPMjEyNjExMDUyMTIzMDJaMA8xDTAL\n\
    BgNVBAMMBGdhdGUwWTATBgcqhkjOPQIBBggqhkjOPQMBBwNCAATZIN2LQ9zGNvHo\n\
    I5TRct+izRNUfFWYfndNqiZjRiayoxK5IgrAAVHwhPCRHmH5irSJfu/PcYK1xm5l\n\
    8ySVBmGtMAoGCCqGSM49BAMCA0kAMEYCIQDm2DudhizdkfL+62bKtCTS0ekJvTvA\n\
    LTC9P5x15SjOnAIhAK77IwUYPX4LHrBVc4Ojb2/82uXpJeuS5Rc7cu+Y3Ito\n\
    -----END CERTIFICATE-----\n";

/// Asks for a certificate, and takes any.
#[derive(Debug)]
struct Anyone(Mutex<Vec<CertificateDer<'static>>>);

impl ClientCertVerifier for Anyone {
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &[]
    }

    fn verify_client_cert(
        &self,
        certificate: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: UnixTime,
    ) -> Result<ClientCertVerified, rustls::Error> {
        self.0.lock().unwrap().push(certificate.clone().into_owned());
        Ok(ClientCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn verify_tls13_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        vec![SignatureScheme::ECDSA_NISTP256_SHA256]
    }
}

#[test]
fn a_certificate_of_version_1_is_shown() {
    let (server, authority) = issued(&params(&["localhost"]));
    let anyone = Arc::new(Anyone(Mutex::default()));
    let server_key = PrivatePkcs8KeyDer::from(server.key.serialize_der());
    let config = crate::certificates::server()
        .with_client_cert_verifier(Arc::clone(&anyone) as _)
        .with_single_cert(vec![server.certificate.clone()], server_key.into())
        .unwrap();
    let config = Arc::new(config);
    let address = serve_tls(move |_| Some(Arc::clone(&config)), well(|_, _| stream(&["a"])));
    let trust = Trust { client: Some(showing(VERSION_1, &server.key.serialize_pem())), ..given(&authority) };
    assert_ok(&bench("https", address, trust).go());
    let shown = anyone.0.lock().unwrap();
    let certificate = CertificateDer::from_pem_slice(VERSION_1.as_bytes()).unwrap();
    assert!(!shown.is_empty() && shown.iter().all(|shown| *shown == certificate));
}
