//! Names and addresses.

use std::net::TcpListener;

use gate_model::Nanos;

use crate::bench::{Bench, Report};
use crate::certificates::*;
use crate::server::*;

/// A port of the loopback address of IPv6, where this machine has one.
fn ipv6() -> Option<TcpListener> {
    TcpListener::bind("[::1]:0").map_err(|error| println!("skipped: no IPv6 here: {error}")).ok()
}

fn addresses(report: &Report) -> Vec<String> {
    report.run.end.clone().unwrap().reached.unwrap().addresses
}

#[test]
fn an_ipv6_address_is_a_host() {
    let Some(listener) = ipv6() else { return };
    let script = well(|_, seen: &Seen| {
        assert!(seen.head.contains("host: [::1]:"), "{seen:?}");
        stream(&["a"])
    });
    let address = serve_on(listener, script);
    let report = Bench::at(&format!("http://{address}/v1"), 2).go();
    assert_ok(&report);
    assert_eq!(addresses(&report), [address.to_string()]);
    let mut closed = Bench::at(&format!("http://{}/v1", ipv6().unwrap().local_addr().unwrap()), 1);
    closed.spec.target.ready.within = Nanos::from_millis(400);
    assert_says(&refusal(closed), &["connection refused by [::1]:"]);
}

#[test]
fn an_ipv6_address_has_a_certificate() {
    let Some(listener) = ipv6() else { return };
    let (identity, authority) = issued(&params(&["::1"]));
    let config = identity.config();
    let script: Script = std::sync::Arc::new(well(|_, _| stream(&["a"])));
    let address = accept_on(listener, move |stream, connection| {
        let tls = rustls::ServerConnection::new(std::sync::Arc::clone(&config)).unwrap();
        converse(rustls::StreamOwned::new(tls, stream), connection, &script);
    });
    let mut bench = Bench::at(&format!("https://{address}/v1"), 2);
    bench.trust = given(&authority);
    assert_ok(&bench.go());
}

#[test]
fn a_name_is_looked_up_once_and_all_it_gave_is_reported() {
    let server = serve_measured(|_, _| stream(&["a"]));
    let report = Bench::at(&format!("http://localhost:{}", server.port()), 2).go();
    assert_ok(&report);
    // The one that answers comes first, even where the name means [::1] before it.
    assert_eq!(addresses(&report)[0], server.to_string());
    for sample in report.run.warmup.iter().chain(&report.run.samples) {
        assert_eq!((sample.dns, sample.tls), (None, None), "{sample:?}");
    }
    assert!(report.run.warmup[0].connect.is_some());
}
