//! Which HTTP is spoken over TLS, and what is said where there is none that both sides speak.

use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::thread;

use gate_model::{Http, HttpVersion};
use rustls::ServerConfig;
use tokio::io::copy_bidirectional;
use tokio::net::TcpStream;
use tokio::runtime::Builder;
use tokio_rustls::TlsAcceptor;

use crate::certificates::*;
use crate::http2;
use crate::proxies::{secure, tunnelling};
use crate::server::*;
use crate::tls::bench;

/// A server that offers these protocols; none where it knows of no agreement.
fn offering(protocols: &[&str], http: Http) -> crate::bench::Bench {
    let (identity, authority) = issued(&params(&["localhost"]));
    let mut config = identity.server_config();
    config.alpn_protocols = protocols.iter().map(|name| name.as_bytes().to_vec()).collect();
    let config = Arc::new(config);
    let address = serve_tls(move |_| Some(Arc::clone(&config)), well(|_, _| stream(&["a"])));
    let mut bench = bench("https", address, given(&authority));
    bench.spec.load.http = http;
    bench
}

/// Takes TLS off what comes, and passes the rest on to a server without it.
pub(crate) fn decrypting(config: Arc<ServerConfig>, server: SocketAddr) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let serve = async move |client: std::net::TcpStream| {
        client.set_nonblocking(true)?;
        let mut client = TlsAcceptor::from(config).accept(TcpStream::from_std(client)?).await?;
        copy_bidirectional(&mut client, &mut TcpStream::connect(server).await?).await
    };
    thread::spawn(move || {
        for client in listener.incoming() {
            let (client, serve) = (client.unwrap(), serve.clone());
            thread::spawn(move || {
                let runtime = Builder::new_current_thread().enable_all().build().unwrap();
                let _ = runtime.block_on(serve(client));
            });
        }
    });
    address
}

#[test]
fn http_2_is_spoken_where_both_sides_prefer_it_also_through_a_tunnel() {
    let (identity, authority) = issued(&params(&["localhost", "model.example"]));
    let mut config = identity.server_config();
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    let server = decrypting(Arc::new(config), http2::measured(100, |_, _| http2::whole(&["a", "b"])));
    let (proxy, asked) = tunnelling(server, |_, _| "200 OK");
    for http in [Http::Auto, Http::Two] {
        let mut direct = bench("https", server, given(&authority));
        let mut through = secure("", proxy);
        through.trust = given(&authority);
        for bench in [&mut direct, &mut through] {
            bench.spec.load.http = http;
        }
        for bench in [direct, through] {
            let report = bench.go();
            assert_ok(&report);
            assert_eq!(report.run.end.unwrap().reached.unwrap().http, HttpVersion::Http2);
        }
    }
    assert!(!asked.lock().unwrap().is_empty());
}

#[test]
fn http_1_is_spoken_where_it_is_asked_for_or_nothing_else_is_offered() {
    for (protocols, http) in [
        (&["http/1.1"][..], Http::Auto),
        (&[], Http::Auto),
        (&["h2", "http/1.1"], Http::One),
        (&["http/1.1"], Http::One),
        (&[], Http::One),
    ] {
        let report = offering(protocols, http).go();
        assert_ok(&report);
        let reached = report.run.end.unwrap().reached.unwrap();
        assert_eq!(reached.http, HttpVersion::Http1, "{protocols:?} {http:?}");
    }
}

#[test]
fn a_server_that_speaks_nothing_that_is_asked_for_is_said_so() {
    for (protocols, http, says) in [
        (&["h2"][..], Http::One, "does not offer HTTP/1.1 over TLS: use `load.http: auto`"),
        (&["http/1.1"], Http::Two, "does not speak HTTP/2 over TLS: use `load.http: auto`"),
        (&[], Http::Two, "does not speak HTTP/2 over TLS: use `load.http: auto`"),
        (&["spdy/3.1"], Http::Auto, "offers neither HTTP/1.1 nor HTTP/2 over TLS"),
    ] {
        assert_says(&refusal(offering(protocols, http)), &[says]);
    }
}
