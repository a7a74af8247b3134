//! A team's own authority, and servers that speak TLS with its certificates.

use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;

use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig, ServerConnection, StreamOwned};

/// An authority that issues certificates.
pub(crate) struct Authority {
    /// Its own certificate, as PEM text.
    pub(crate) pem: String,
    certificate: CertificateDer<'static>,
    issuer: Issuer<'static, KeyPair>,
}

/// A certificate with its key, as PEM texts.
pub(crate) struct Identity {
    pub(crate) certificate: String,
    pub(crate) key: String,
}

impl Authority {
    pub(crate) fn new() -> Self {
        let mut params = CertificateParams::new(Vec::<String>::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(rcgen::DnType::CommonName, "a team's own authority");
        let key = KeyPair::generate().unwrap();
        let certificate = params.self_signed(&key).unwrap();
        Self { pem: certificate.pem(), certificate: certificate.der().clone(), issuer: Issuer::new(params, key) }
    }

    /// A certificate for a client.
    pub(crate) fn identity(&self, name: &str) -> Identity {
        let key = KeyPair::generate().unwrap();
        let params = CertificateParams::new(vec![name.to_owned()]).unwrap();
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        Identity { certificate: certificate.pem(), key: key.serialize_pem() }
    }

    /// TLS as `localhost`; with `clients`, only for those whom that authority vouches for.
    pub(crate) fn server(&self, clients: Option<&Self>, alpn: &[&str]) -> Arc<ServerConfig> {
        let key = KeyPair::generate().unwrap();
        let params = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
        let certificate = params.signed_by(&key, &self.issuer).unwrap().der().clone();
        let key = PrivatePkcs8KeyDer::from(key.serialize_der());
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ServerConfig::builder_with_provider(Arc::clone(&provider));
        let config = config.with_safe_default_protocol_versions().unwrap();
        let config = match clients {
            None => config.with_no_client_auth(),
            Some(authority) => {
                let mut roots = RootCertStore::empty();
                roots.add(authority.certificate.clone()).unwrap();
                let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider);
                config.with_client_cert_verifier(verifier.build().unwrap())
            }
        };
        let mut config = config.with_single_cert(vec![certificate], key.into()).unwrap();
        config.alpn_protocols = alpn.iter().map(|protocol| protocol.as_bytes().to_vec()).collect();
        Arc::new(config)
    }
}

/// Serves each connection over TLS in a thread of its own, until the test ends.
pub(crate) fn serve_tls(
    config: Arc<ServerConfig>,
    serve: impl Fn(&mut StreamOwned<ServerConnection, TcpStream>) + Send + Sync + 'static,
) -> SocketAddr {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let address = listener.local_addr().unwrap();
    let serve = Arc::new(serve);
    std::thread::spawn(move || {
        for socket in listener.incoming() {
            let (Ok(socket), Ok(tls)) = (socket, ServerConnection::new(Arc::clone(&config))) else { break };
            let serve = Arc::clone(&serve);
            std::thread::spawn(move || serve(&mut StreamOwned::new(tls, socket)));
        }
    });
    address
}
