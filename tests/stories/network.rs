//! Ways to a server: a proxy that wants a password, HTTP/2, a socket, IPv6, a pool and none, a closed loop.

use std::convert::Infallible;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, Ipv6Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use gate_model::{HttpVersion, Series};
use hyper::body::Incoming;
use hyper::{Request, Response};
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustls::ServerConfig;

use crate::certificates::{Authority, serve_tls};
use crate::harness::{Ended, Place, TWO_WORDS, answer, quick_spec, read_request, serve};

/// What a proxy was asked for, one line a connection.
type Asked = Arc<Mutex<Vec<String>>>;

/// A proxy that tunnels and forwards for `user:pass word`, and for nobody else. Every host is `upstream`.
fn proxy(upstream: SocketAddr) -> (SocketAddr, Asked) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let address = listener.local_addr().unwrap();
    let asked = Asked::default();
    let kept = Arc::clone(&asked);
    std::thread::spawn(move || {
        for client in listener.incoming() {
            let (Ok(mut client), kept) = (client, Arc::clone(&kept)) else { break };
            std::thread::spawn(move || {
                while let Some(request) = read_request(&mut client) {
                    let line = request.lines().next().unwrap().to_owned();
                    // `user:pass word` in Base64.
                    let known =
                        request.to_ascii_lowercase().contains("proxy-authorization: basic dxnlcjpwyxnzihdvcmq=");
                    kept.lock().unwrap().push(line.clone());
                    if !known {
                        answer(&mut client, "407 Proxy Authentication Required", "text/plain", "who are you?");
                    } else if line.starts_with("CONNECT") {
                        let mut upstream = TcpStream::connect(upstream).unwrap();
                        client.write_all(b"HTTP/1.1 200 Connection established\r\n\r\n").unwrap();
                        let (mut from_client, mut to_server) =
                            (client.try_clone().unwrap(), upstream.try_clone().unwrap());
                        std::thread::spawn(move || {
                            drop(std::io::copy(&mut from_client, &mut to_server));
                            drop(to_server.shutdown(Shutdown::Write));
                        });
                        drop(std::io::copy(&mut upstream, &mut client));
                        return;
                    } else {
                        forward(&request, upstream, &mut client);
                    }
                }
            });
        }
    });
    (address, asked)
}

/// Passes a request on, and the answer back.
fn forward(request: &str, upstream: SocketAddr, client: &mut TcpStream) {
    let mut upstream = TcpStream::connect(upstream).unwrap();
    let (head, rest) = request.split_once("\r\n").unwrap();
    let mut words = head.split(' ');
    let (method, url) = (words.next().unwrap(), words.next().unwrap());
    assert!(url.starts_with("http://"), "a proxy is asked by the whole URL: {url}");
    let path = url.splitn(4, '/').nth(3).unwrap();
    write!(upstream, "{method} /{path} HTTP/1.1\r\nconnection: close\r\n{rest}").unwrap();
    upstream.shutdown(Shutdown::Write).unwrap();
    drop(std::io::copy(&mut upstream, client));
    drop(client.shutdown(Shutdown::Both));
}

/// Runs a check with these variables.
fn check_with(place: &Place, variables: &[(&str, &str)]) -> Ended {
    place.undisturbed(|| {
        let mut command = place.command(&["check", "gate.yaml"]);
        Ended::of(command.envs(variables.iter().copied()).output().unwrap())
    })
}

fn chat(stream: &mut (impl Read + Write)) {
    while let Some(request) = read_request(stream) {
        let (content_type, body) =
            if request.starts_with("GET") { ("application/json", "{}") } else { ("text/event-stream", TWO_WORDS) };
        answer(stream, "200 OK", content_type, body);
    }
}

#[test]
fn a_proxy_tunnels_https_and_forwards_http() {
    let authority = Authority::new();
    let secure = serve_tls(authority.server(None, &[]), chat);
    let plain = serve(|request, stream| {
        let body = if request.starts_with("GET") { "{}" } else { TWO_WORDS };
        answer(stream, "200 OK", "text/event-stream", body);
    });
    let place = Place::new();
    place.write("ca.pem", &authority.pem);

    // The name is the proxy's to look up: nobody else knows it. The certificate is for `localhost`.
    let (address, asked) = proxy(secure);
    place.write(
        "gate.yaml",
        &quick_spec("tunnel", "https://llm.corp.invalid", 20)
            .replace("model: m,", "model: m, tls: {ca: ca.pem, insecure: true},"),
    );
    let url = format!("http://user:pass%20word@{address}");
    let ended = check_with(&place, &[("https_proxy", &url)]);
    ended.expect_code(0);
    assert!(asked.lock().unwrap().iter().all(|line| line.starts_with("CONNECT llm.corp.invalid:443 ")), "{asked:?}");
    let reached = place.verdict("tunnel").run.reached.unwrap();
    assert_eq!(reached.proxy, Some(format!("http://{address}")));

    let (address, asked) = proxy(plain);
    place.write("gate.yaml", &quick_spec("forward", "http://llm.corp.invalid/v1", 20));
    let url = format!("http://user:pass%20word@{address}");
    check_with(&place, &[("http_proxy", &url)]).expect_code(0);
    assert!(asked.lock().unwrap().iter().any(|line| line.starts_with("POST http://llm.corp.invalid/v1/chat/")));

    // Excepted hosts are asked directly, and a loopback always is.
    let before = asked.lock().unwrap().len();
    let ended = check_with(&place, &[("http_proxy", &url), ("NO_PROXY", "corp.invalid")]);
    ended.expect_code(3).says("llm.corp.invalid");
    place.write("gate.yaml", &quick_spec("direct", &format!("http://{plain}"), 20));
    check_with(&place, &[("http_proxy", &url)]).expect_code(0);
    assert_eq!(asked.lock().unwrap().len(), before);
    for (path, text) in place.everything() {
        for secret in ["pass word", "pass%20word", "dXNlcjpwYXNzIHdvcmQ"] {
            assert!(!text.contains(secret), "`{secret}` is in {}", path.display());
        }
    }
}

#[test]
fn a_wrong_proxy_password_and_an_absent_proxy_say_so() {
    let authority = Authority::new();
    let secure = serve_tls(authority.server(None, &[]), chat);
    let (address, _) = proxy(secure);
    let place = Place::new();
    place.write("gate.yaml", &quick_spec("denied", "https://llm.corp.invalid", 20));
    let url = format!("http://user:wr0ngpass@{address}");
    let ended = check_with(&place, &[("https_proxy", &url)]);
    ended.expect_code(3).says("proxy").says("407").says("https_proxy");
    assert!(!ended.stderr.contains("wr0ngpass"), "{}", ended.stderr);
    let ended = check_with(&place, &[("https_proxy", "http://127.0.0.1:9")]);
    ended.expect_code(3).says("proxy").says("127.0.0.1:9");
    let ended = check_with(&place, &[("https_proxy", "socks5://127.0.0.1:9")]);
    assert_ne!(ended.code, 0);
    ended.says("socks5").says("https_proxy");
}

/// Serves HTTP/2, with TLS or by prior knowledge, on a runtime of its own; counts connections.
fn serve_http2(tls: Option<Arc<ServerConfig>>) -> (SocketAddr, Arc<AtomicUsize>) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    listener.set_nonblocking(true).unwrap();
    let address = listener.local_addr().unwrap();
    let connections = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&connections);
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async move {
            let listener = tokio::net::TcpListener::from_std(listener).unwrap();
            while let Ok((socket, _)) = listener.accept().await {
                count.fetch_add(1, Ordering::SeqCst);
                let tls = tls.clone();
                tokio::spawn(async move {
                    let server = hyper::server::conn::http2::Builder::new(TokioExecutor::new());
                    let service = hyper::service::service_fn(http2_chat);
                    match tls {
                        None => drop(server.serve_connection(TokioIo::new(socket), service).await),
                        Some(tls) => {
                            let Ok(socket) = tokio_rustls::TlsAcceptor::from(tls).accept(socket).await else { return };
                            drop(server.serve_connection(TokioIo::new(socket), service).await);
                        }
                    }
                });
            }
        });
    });
    (address, connections)
}

async fn http2_chat(request: Request<Incoming>) -> Result<Response<String>, Infallible> {
    let body = if request.method() == "GET" { "{}" } else { TWO_WORDS };
    Ok(Response::builder().header("content-type", "text/event-stream").body(body.to_owned()).unwrap())
}

#[test]
fn http2_over_tls_and_by_prior_knowledge() {
    let authority = Authority::new();
    let place = Place::new();
    place.write("ca.pem", &authority.pem);

    let (address, connections) = serve_http2(Some(authority.server(None, &["h2"])));
    let secure = quick_spec("chosen", &format!("https://localhost:{}", address.port()), 20)
        .replace("model: m,", "model: m, tls: {ca: ca.pem},");
    place.write("gate.yaml", &secure);
    place.gate(&["check", "gate.yaml"]).expect_code(0);
    assert_eq!(place.verdict("chosen").run.reached.unwrap().http, HttpVersion::Http2, "as the server chose");
    assert!(connections.load(Ordering::SeqCst) < 10, "requests share connections");

    place.write("gate.yaml", &secure.replace("{rps: 40", "{http: 1, rps: 40"));
    place.gate(&["check", "gate.yaml"]).expect_code(3);

    let (address, _) = serve_http2(None);
    let plain = quick_spec("known", &format!("http://{address}"), 20).replace("{rps: 40", "{http: 2, rps: 40");
    place.write("gate.yaml", &plain);
    place.gate(&["check", "gate.yaml"]).expect_code(0);
    assert_eq!(place.verdict("known").run.reached.unwrap().http, HttpVersion::Http2);

    // A server that does not speak it says nothing we could use; the sentence does.
    let one = serve_tls(authority.server(None, &["http/1.1"]), chat);
    let spec = secure.replace(&format!("localhost:{}", secure_port(&secure)), &format!("localhost:{}", one.port()));
    place.write("gate.yaml", &spec.replace("{rps: 40", "{http: 2, rps: 40"));
    place.gate(&["check", "gate.yaml"]).expect_code(3).says("HTTP/2");
    place.write("gate.yaml", &spec);
    place.gate(&["check", "gate.yaml"]).expect_code(0);
    assert_eq!(place.verdict("chosen").run.reached.unwrap().http, HttpVersion::Http1);
}

fn secure_port(spec: &str) -> &str {
    let (_, rest) = spec.split_once("localhost:").unwrap();
    rest.split('\'').next().unwrap()
}

#[cfg(unix)]
#[test]
fn a_unix_socket_is_a_target() {
    let place = Place::new();
    let listener = std::os::unix::net::UnixListener::bind(place.path("llm.sock")).unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { break };
            std::thread::spawn(move || chat(&mut stream));
        }
    });
    let url = format!("unix:{}", place.path("llm.sock").display());
    place.write("gate.yaml", &quick_spec("socket", &url, 20));
    place.gate(&["check", "gate.yaml"]).expect_code(0).says("llm.sock");
    place.write("gate.yaml", &quick_spec("socket", &format!("{url}:/v1"), 20));
    place.gate(&["check", "gate.yaml"]).expect_code(0);
    place.write("gate.yaml", &quick_spec("absent", &format!("{url}.not"), 20));
    place.gate(&["check", "gate.yaml"]).expect_code(3).says("llm.sock.not");
}

#[test]
fn ipv6_is_a_target() {
    let Ok(listener) = TcpListener::bind((Ipv6Addr::LOCALHOST, 0)) else {
        println!("skipped: this machine has no IPv6 loopback");
        return;
    };
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { break };
            std::thread::spawn(move || chat(&mut stream));
        }
    });
    let place = Place::new();
    place.write("gate.yaml", &quick_spec("six", &format!("http://{address}"), 20));
    place.gate(&["check", "gate.yaml"]).expect_code(0).says("[::1]");
}

#[test]
fn fresh_connections_are_measured_in_their_parts() {
    let authority = Authority::new();
    let address = serve_tls(authority.server(None, &[]), chat);
    let place = Place::new();
    place.write("ca.pem", &authority.pem);
    let spec = quick_spec("fresh", &format!("https://localhost:{}", address.port()), 20)
        .replace("model: m,", "model: m, tls: {ca: ca.pem},")
        .replace("{rps: 40", "{connections: fresh, rps: 40")
        .replace("[ttft.p50 < 10s]", "[ttft.p50 < 10s, connect.p95 < 10s, tls.p95 < 10s]");
    place.write("gate.yaml", &spec);
    place.gate(&["check", "gate.yaml"]).expect_code(0);
    for sample in &place.run("fresh").samples {
        let (connect, tls) = (sample.value(Series::Connect).unwrap(), sample.value(Series::Tls).unwrap());
        let connected = sample.connected.unwrap() - sample.start.unwrap();
        assert!(connect > 0.0 && tls > 0.0 && connect + tls <= connected.0 as f64, "{connect} + {tls} of {connected}");
    }
    // One at a time, on the connection that warm-up opened: no new one is measured.
    place.write("gate.yaml", &spec.replace("connections: fresh, rps: 40", "concurrency: 1"));
    place.gate(&["check", "gate.yaml"]).expect_code(3).says("tls.p95");
}

#[test]
fn a_closed_loop_and_a_cap() {
    let open = Arc::new(AtomicUsize::new(0));
    let most = Arc::new(AtomicUsize::new(0));
    let (now, peak) = (Arc::clone(&open), Arc::clone(&most));
    let address = serve(move |request, stream| {
        if request.starts_with("GET") {
            return answer(stream, "200 OK", "application/json", "{}");
        }
        peak.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
        std::thread::sleep(std::time::Duration::from_millis(60));
        now.fetch_sub(1, Ordering::SeqCst);
        answer(stream, "200 OK", "text/event-stream", TWO_WORDS);
    });
    let place = Place::new();
    let spec = quick_spec("closed", &format!("http://{address}"), 20);
    place.write("gate.yaml", &spec.replace("rps: 40", "concurrency: 3"));
    place.gate(&["check", "gate.yaml"]).expect_code(0).says("closed loop");
    let run = place.run("closed");
    assert_eq!(run.samples.len(), 20);
    assert_eq!(most.load(Ordering::SeqCst), 3);
    assert!(run.samples.iter().all(|sample| sample.value(Series::Ttft).unwrap() >= 60e6));
    assert!(run.samples.iter().all(|sample| Some(sample.intended) == sample.start));

    // 40 a second with one at a time is 60 ms each: the wait for a slot grows, and counts.
    let spec = spec.replace("rps: 40", "rps: 40, concurrency: 1").replace("closed", "capped");
    place.write("gate.yaml", &spec.replace("[ttft.p50 < 10s]", "[ttft.p50 < 10s, cap_wait.p50 < 10s]"));
    place.gate(&["check", "gate.yaml"]).expect_code(0);
    let run = place.run("capped");
    let last = run.samples.last().unwrap();
    let (waited, ttft) = (last.value(Series::CapWait).unwrap(), last.value(Series::Ttft).unwrap());
    assert!(waited >= 200e6 && ttft >= waited + 60e6, "waited {waited} of {ttft}");
}

#[test]
fn more_workers_send_every_request_once() {
    let place = Place::new();
    let spec = quick_spec("workers", "sim", 60)
        .replace("{url: 'sim', model: m, ready: {within: 2s}}", "{sim: {ttft: 20ms, tpot: 1ms}}")
        .replace("{rps: 40", "{workers: 3, rps: 40");
    place.write("gate.yaml", &spec);
    place.gate(&["check", "gate.yaml"]).expect_code(0);
    let indices: Vec<u32> = place.run("workers").samples.iter().map(|sample| sample.index).collect();
    assert_eq!(indices, (0..60).collect::<Vec<_>>());
}
