//! HTTPS as a person meets it: a private authority, none, a certificate that nobody vouches for, and a server that
//! wants one of the client's.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use rustls::ServerConfig;

use crate::certificates::{Authority, serve_tls};
use crate::harness::{Place, answer, quick_spec, read_request};

/// Answers in the dialect, and counts.
fn chat(stream: &mut (impl Read + Write), requests: &AtomicUsize) {
    while let Some(request) = read_request(stream) {
        requests.fetch_add(1, Ordering::SeqCst);
        if request.starts_with("GET") {
            answer(stream, "200 OK", "application/json", "{}");
            continue;
        }
        answer(stream, "200 OK", "text/event-stream", crate::harness::TWO_WORDS);
    }
}

/// Serves the dialect over TLS; gives its address, and how many requests came.
fn serve(config: Arc<ServerConfig>) -> (SocketAddr, Arc<AtomicUsize>) {
    let requests = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&requests);
    (serve_tls(config, move |stream| chat(stream, &count)), requests)
}

#[test]
fn a_private_authority_works_where_it_is_named_and_fails_in_words_where_not() {
    let authority = Authority::new();
    let (address, requests) = serve(authority.server(None, &[]));
    let place = Place::new();
    let url = format!("https://localhost:{}", address.port());
    let spec = quick_spec("tls", &url, 20);
    place.write("specs/team-ca.pem", &authority.pem);
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

#[test]
fn a_server_that_wants_a_certificate_gets_one_or_says_so() {
    let authority = Authority::new();
    let (address, requests) = serve(authority.server(Some(&authority), &[]));
    let (ours, strange) = (authority.identity("ci"), Authority::new().identity("ci"));
    let place = Place::new();
    place.write("ca.pem", &authority.pem);
    place.write("cert.pem", &ours.certificate);
    place.write("key.pem", &ours.key);
    place.write("strange.pem", &strange.certificate);
    place.write("strange-key.pem", &strange.key);
    let url = format!("https://localhost:{}", address.port());
    let with = |tls: &str| quick_spec("mutual", &url, 20).replace("model: m,", &format!("model: m, tls: {{{tls}}},"));

    place.write("gate.yaml", &with("ca: ca.pem, cert: cert.pem, key: key.pem"));
    place.gate(&["check", "gate.yaml"]).expect_code(0);
    assert!(requests.load(Ordering::SeqCst) >= 21);

    let before = requests.load(Ordering::SeqCst);
    place.write("gate.yaml", &with("ca: ca.pem"));
    place.gate(&["check", "gate.yaml"]).expect_code(3).says("target.tls.cert");
    place.write("gate.yaml", &with("ca: ca.pem, cert: strange.pem, key: strange-key.pem"));
    place.gate(&["check", "gate.yaml"]).expect_code(3).says("target.tls.cert");
    place.write("gate.yaml", &with("ca: ca.pem, cert: cert.pem, key: strange-key.pem"));
    place.gate(&["check", "gate.yaml"]).expect_code(2).says("target.tls.key");
    place.write("gate.yaml", &with("ca: ca.pem, cert: cert.pem"));
    place.gate(&["check", "gate.yaml"]).expect_code(2).says("key");
    assert_eq!(requests.load(Ordering::SeqCst), before, "no request without a handshake");

    for text in place.everything().iter().filter(|(path, _)| !path.ends_with("key.pem")) {
        let secret = ours.key.lines().nth(1).unwrap();
        assert!(!text.1.contains(secret), "a private key's text is in {}", text.0.display());
    }
}
