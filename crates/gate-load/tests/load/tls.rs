//! HTTPS: who is believed to be the server, and what is said where nobody is.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;

use gate_load::Trust;
use gate_model::{Nanos, Outcome, Roots};
use rcgen::{BasicConstraints, CertificateParams, IsCa, date_time_ymd};
use rustls::ServerConfig;

use crate::bench::Bench;
use crate::certificates::*;
use crate::server::*;

pub(crate) fn serve_as(identity: &Identity) -> SocketAddr {
    let config = identity.config();
    serve_tls(move |_| Some(Arc::clone(&config)), well(|_, _| stream(&["a", "b"])))
}

/// Two requests to a port, as `localhost`. What is not waited for ends at once; otherwise the guard strikes.
pub(crate) fn bench(scheme: &str, address: SocketAddr, trust: Trust) -> Bench {
    let mut bench = Bench::at(&format!("{scheme}://localhost:{}/v1", address.port()), 2);
    bench.spec.target.ready.within = Nanos::from_secs(3600);
    bench.trust = trust;
    bench
}

#[test]
fn a_private_authority_is_believed_where_it_is_given_and_not_elsewhere() {
    let (identity, authority) = issued(&params(&["localhost"]));
    let address = serve_as(&identity);
    assert_ok(&bench("https", address, given(&authority)).go());
    let words = refusal(bench("https", address, Trust::default()));
    assert_says(&words, &["signed by an unknown authority", "as `target.tls.ca`", "`target.tls.insecure: true`"]);
    let (_, other) = issued_by("another", &params(&["localhost"]));
    assert_says(&refusal(bench("https", address, given(&other))), &["signed by an unknown authority"]);
    let (_, older) = issued(&params(&["localhost"]));
    assert_says(&refusal(bench("https", address, given(&older))), &["is `target.tls.ca` an older one?"]);
    assert_ok(&bench("https", address, insecure()).go());
}

#[test]
fn a_certificate_that_signs_itself_can_be_given() {
    let leaf = params(&["localhost"]);
    let mut authority = params(&["localhost"]);
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    for params in [leaf, authority] {
        let identity = self_signed(&params);
        let address = serve_as(&identity);
        let words = refusal(bench("https", address, Trust::default()));
        assert_says(&words, &["signed by itself: give it as `target.tls.ca`", "`target.tls.insecure: true`"]);
        assert_ok(&bench("https", address, given(&identity.pem)).go());
        assert_ok(&bench("https", address, insecure()).go());
    }
}

#[test]
fn a_certificate_that_is_given_still_has_to_fit() {
    type Shape = fn(&mut CertificateParams);
    let shapes: [(&[&str], Shape, &[&str]); 4] = [
        (&["localhost"], |params| params.not_after = date_time_ymd(2020, 1, 1), &["expired", "days ago: renew it"]),
        (&["localhost"], |params| params.not_before = date_time_ymd(2200, 1, 1), &["valid only in", "clock"]),
        (
            &["a.example", "10.0.0.1"],
            |_| {},
            &["is for a.example, 10.0.0.1, and `localhost` was asked for: check `target.url`"],
        ),
        (&[], |_| {}, &["names no host", "`localhost`", "subject alternative name"]),
    ];
    for (names, shape, says) in shapes {
        let mut leaf = params(names);
        shape(&mut leaf);
        let (identity, authority) = issued(&leaf);
        let address = serve_as(&identity);
        assert_says(&refusal(bench("https", address, given(&authority))), says);
        assert_ok(&bench("https", address, insecure()).go());
        leaf.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let identity = self_signed(&leaf);
        assert_says(&refusal(bench("https", serve_as(&identity), given(&identity.pem))), says);
    }
}

#[test]
fn the_systems_authorities_do_not_include_a_private_one() {
    let (identity, authority) = issued(&params(&["localhost"]));
    let address = serve_as(&identity);
    let system = Trust { roots: Roots::System, ..given(&authority) };
    let (result, _, _) = bench("https", address, system).try_go();
    match result {
        Ok(run) => assert_eq!(run.samples[0].outcome, Outcome::Ok),
        Err(error) => {
            println!("skipped: {error}");
            assert_says(&error.to_string(), &["`target.tls.roots`", "`roots: webpki`"]);
            return;
        }
    }
    let system = Trust { roots: Roots::System, ..Trust::default() };
    assert_says(&refusal(bench("https", address, system)), &["signed by an unknown authority"]);
}

#[test]
fn a_file_that_holds_no_certificate_is_no_run() {
    let begun = "-----BEGIN CERTIFICATE-----\nnot base64\n-----END CERTIFICATE-----\n";
    let empty = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
    for pem in ["", "hello", begun, empty] {
        let (result, journal, _) = bench("https", ([127, 0, 0, 1], 1).into(), given(pem)).try_go();
        assert_says(&result.unwrap_err().to_string(), &["read `target.tls.ca`", "PEM file"]);
        assert!(journal.is_empty());
    }
}

#[test]
fn a_server_without_tls_is_told_from_one_with_it() {
    // Answers whatever comes, as many plain servers do.
    let plain = accept_on(TcpListener::bind("127.0.0.1:0").unwrap(), |mut stream, _| {
        let _ = stream.read(&mut [0; 4096]);
        let _ = stream.write_all(b"HTTP/1.1 400 Bad Request\r\nconnection: close\r\n\r\n");
    });
    let words = refusal(bench("https", plain, Trust::default()));
    assert_says(&words, &["does not speak TLS: is `target.url` `http://`, not `https://`?"]);
    let (identity, _) = issued(&params(&["localhost"]));
    let words = refusal(bench("http", serve_as(&identity), Trust::default()));
    assert_says(&words, &["speaks TLS, not plain HTTP: write `https://` in `target.url`"]);
}

#[test]
fn a_server_that_closes_in_the_handshake_is_waited_for() {
    let (identity, authority) = issued(&params(&["localhost"]));
    let config = identity.config();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let script: Script = Arc::new(well(|_, _| stream(&["a"])));
    let address = accept_on(listener, move |stream, connection| {
        if connection > 1 {
            let tls = rustls::ServerConnection::new(Arc::clone(&config)).unwrap();
            converse(rustls::StreamOwned::new(tls, stream), connection, &script);
        }
    });
    assert_ok(&bench("https", address, given(&authority)).go());
    let closing = accept_on(TcpListener::bind("127.0.0.1:0").unwrap(), |mut stream, _| {
        let _ = stream.read(&mut [0; 4096]);
    });
    let mut bench = bench("https", closing, Trust::default());
    bench.spec.target.ready.within = Nanos::from_millis(400);
    assert_says(&refusal(bench), &["the connection in the TLS handshake", "`target.ready.within`"]);
}

/// A server that is well until warm-up is done, each request on a connection of its own, and then `later`.
fn serve_until(later: impl Fn() -> Option<Arc<ServerConfig>> + Send + Sync + 'static) -> (SocketAddr, Trust) {
    let (identity, authority) = issued(&params(&["localhost"]));
    let config = identity.config();
    let config = move |connection| if connection < 2 { Some(Arc::clone(&config)) } else { later() };
    let script = well(|_, _| stream(&["a"]));
    (serve_tls(config, move |seen| [script(seen), vec![Close]].concat()), given(&authority))
}

#[test]
fn a_request_without_tls_has_that_outcome() {
    let mut leaf = params(&["localhost"]);
    leaf.not_after = date_time_ymd(2020, 1, 1);
    let (expired, _) = issued(&leaf);
    let config = expired.config();
    let (address, trust) = serve_until(move || Some(Arc::clone(&config)));
    let report = bench("https", address, trust).every(300).go();
    assert_eq!(report.run.warmup[0].outcome, Outcome::Ok);
    let last = report.run.samples.last().unwrap();
    assert_eq!((last.outcome, last.connected, last.sent), (Outcome::Tls, None, None), "{last:?}");
    assert_says(last.error.as_ref().unwrap(), &["expired"]);
}

#[test]
fn a_handshake_that_stalls_is_no_connection_in_time() {
    let (address, trust) = serve_until(|| None);
    let mut bench = bench("https", address, trust).every(300);
    bench.spec.timeouts.connect = Nanos::from_secs(3);
    let report = bench.go();
    let last = report.run.samples.last().unwrap();
    assert_eq!((last.outcome, last.connected), (Outcome::TimeoutConnect, None), "{last:?}");
    assert_says(last.error.as_ref().unwrap(), &["the TLS handshake was not done within 3"]);
}

#[test]
fn stamps_lie_beneath_tls() {
    let (identity, authority) = issued(&params(&["localhost"]));
    let config = identity.config();
    let script = |_: usize, _: &Seen| {
        vec![
            stream_head(),
            Pause(30),
            chunk(&(token("a") + &token("b"))),
            Pause(30),
            chunk(&(token("c") + "data: {\"choices\":[{\"index\":0,")),
            Pause(30),
            chunk("\"delta\":{\"content\":\"d\"},\"finish_reason\":null}]}\n\n"),
            Pause(30),
            chunk(&(finish("stop") + DONE)),
            last_chunk(),
        ]
    };
    let address = serve_tls(move |_| Some(Arc::clone(&config)), well(script));
    // On a busy machine one read may join what was written apart: then the load is repeated.
    let tries = (0..10).map(|_| bench("https", address, given(&authority)).go());
    let told_apart = tries.inspect(assert_ok).any(|report| {
        let (warmup, samples) = (&report.run.warmup[0], &report.run.samples);
        assert!(warmup.connected > warmup.start && warmup.connected < warmup.sent, "{warmup:?}");
        samples.iter().all(|sample| {
            let [a, b, c, d] = sample.token_times[..] else { panic!("{sample:?}") };
            assert!(a == b && c >= b && d >= c, "{sample:?}");
            let (sent, headers, end) = (sample.sent.unwrap(), sample.headers.unwrap(), sample.end.unwrap());
            sent < headers && headers < a && b < c && c < d && d < end
        })
    });
    assert!(told_apart, "what came apart bears one stamp");
}
