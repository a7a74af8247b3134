//! HTTPS as a person meets it: a private authority, none, and a certificate that nobody vouches for.

use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use rustls::{ServerConfig, ServerConnection, StreamOwned};

use crate::harness::{Place, answer, quick_spec, read_request};

/// Serves the dialect over TLS; gives its address, the authority's PEM text, and how many requests came.
fn serve() -> (SocketAddr, String, Arc<AtomicUsize>) {
    let mut authority = CertificateParams::new(Vec::<String>::new()).unwrap();
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    authority.distinguished_name.push(rcgen::DnType::CommonName, "a team's own authority");
    let authority_key = KeyPair::generate().unwrap();
    let pem = authority.self_signed(&authority_key).unwrap().pem();
    let key = KeyPair::generate().unwrap();
    let leaf = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
    let certificate = leaf.signed_by(&key, &Issuer::new(authority, authority_key)).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
    let key = rustls::pki_types::PrivatePkcs8KeyDer::from(key.serialize_der());
    let config = config.with_no_client_auth().with_single_cert(vec![certificate.der().clone()], key.into());
    let config = Arc::new(config.unwrap());

    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let address = listener.local_addr().unwrap();
    let requests = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&requests);
    std::thread::spawn(move || {
        for socket in listener.incoming() {
            let (Ok(socket), Ok(tls)) = (socket, ServerConnection::new(Arc::clone(&config))) else { break };
            let count = Arc::clone(&count);
            std::thread::spawn(move || {
                let mut stream = StreamOwned::new(tls, socket);
                while let Some(request) = read_request(&mut stream) {
                    count.fetch_add(1, Ordering::SeqCst);
                    if request.starts_with("GET") {
                        answer(&mut stream, "200 OK", "application/json", "{}");
                        continue;
                    }
                    let token = "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"word\"}}]}\n\n";
                    let end = "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"length\"}],\"usage\":{\"prompt_tokens\":50,\"completion_tokens\":2}}\n\ndata: [DONE]\n\n";
                    answer(&mut stream, "200 OK", "text/event-stream", &format!("{token}{token}{end}"));
                }
            });
        }
    });
    (address, pem, requests)
}

#[test]
fn a_private_authority_works_where_it_is_named_and_fails_in_words_where_not() {
    let (address, pem, requests) = serve();
    let place = Place::new();
    let url = format!("https://localhost:{}", address.port());
    let spec = quick_spec("tls", &url, 20);
    place.write("specs/team-ca.pem", &pem);
    place.write("specs/trusting.yaml", &spec.replace("model: m,", "model: m, tls: {ca: team-ca.pem},"));
    place.write("specs/plain.yaml", &spec);
    place.write("specs/insecure.yaml", &spec.replace("model: m,", "model: m, tls: {insecure: true},"));

    place.gate(&["check", "specs/trusting.yaml"]).expect_code(0);
    assert!(requests.load(Ordering::SeqCst) >= 21);

    let before = requests.load(Ordering::SeqCst);
    place.gate(&["check", "specs/plain.yaml"]).expect_code(3).says("target.tls.ca").says("COULD NOT MEASURE");
    assert_eq!(requests.load(Ordering::SeqCst), before, "nothing was sent to a server nobody vouches for");

    place.gate(&["check", "specs/insecure.yaml"]).expect_code(0).says("insecure");
    assert!(place.read(".gate/tls/comment.md").contains("insecure"), "every report says so");

    // Nothing leaves before every spec is valid.
    let before = requests.load(Ordering::SeqCst);
    place.write("specs/wrong.yaml", "version: 1\n");
    place.gate(&["check", "specs/trusting.yaml", "specs/wrong.yaml"]).expect_code(2);
    place.write(
        "specs/absent.yaml",
        &spec.replace("model: m,", "model: m, tls: {ca: absent.pem},").replace("tls\n", "other\n"),
    );
    place.gate(&["check", "specs/trusting.yaml", "specs/absent.yaml"]).expect_code(2).says("absent.pem");
    place.write("specs/absent.pem", "-----BEGIN CERTIFICATE-----\nnot one\n-----END CERTIFICATE-----\n");
    place.gate(&["check", "specs/trusting.yaml", "specs/absent.yaml"]).expect_code(2).says("target.tls.ca");
    assert_eq!(requests.load(Ordering::SeqCst), before);
}

#[test]
fn a_server_without_tls_behind_https_says_so() {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for socket in listener.incoming() {
            let mut socket = socket.unwrap();
            drop(std::io::Read::read(&mut socket, &mut [0; 4096]));
            answer(&mut socket, "400 Bad Request", "text/plain", "what was that?");
        }
    });
    let place = Place::new();
    place.write("gate.yaml", &quick_spec("plain", &format!("https://127.0.0.1:{}", address.port()), 20));
    place.gate(&["check", "gate.yaml"]).expect_code(3).says("http://");
}
