//! Proxies on the way to the target, and what is said where they don't let anything through.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

use gate_load::ProxyEnv;
use gate_model::{EndReason, Http, Nanos, Outcome};

use crate::bench::{Bench, Report};
use crate::certificates::*;
use crate::server::*;

/// `me:p@ss-word` as a header has it.
const CREDENTIALS: &str = "basic bwu6cebzcy13b3jk";
/// The same as a URL has it.
const USERINFO: &str = "me:p%40ss-word@";

/// What a proxy was asked, one head each, in lower case.
pub(crate) type Asked = Arc<Mutex<Vec<String>>>;

/// A proxy that answers each head with `answer`, and after a 200 passes bytes on to `server`, whatever the name.
pub(crate) fn tunnelling(
    server: SocketAddr,
    answer: impl Fn(usize, &str) -> &'static str + Send + Sync + 'static,
) -> (SocketAddr, Asked) {
    let asked = Asked::default();
    let noted = Arc::clone(&asked);
    let address = accept_on(TcpListener::bind("127.0.0.1:0").unwrap(), move |mut client, _| {
        let Some(head) = head_of(client) else { return };
        let status = {
            let mut noted = noted.lock().unwrap();
            noted.push(head.clone());
            answer(noted.len(), &head)
        };
        client.write_all(format!("HTTP/1.1 {status}\r\n\r\n").as_bytes()).unwrap();
        if status.starts_with("200") {
            pass(client, &TcpStream::connect(server).unwrap());
        }
    });
    (address, asked)
}

/// Reads up to an empty line.
fn head_of(mut stream: &TcpStream) -> Option<String> {
    let (mut head, mut byte) = (Vec::new(), [0]);
    while !head.ends_with(b"\r\n\r\n") {
        if stream.read(&mut byte).ok()? == 0 {
            return None;
        }
        head.push(byte[0]);
    }
    Some(String::from_utf8(head).unwrap().to_lowercase())
}

/// Passes bytes on both ways until both sides have closed.
fn pass(client: &TcpStream, server: &TcpStream) {
    let copy = |mut from: &TcpStream, mut to: &TcpStream| {
        let _ = std::io::copy(&mut from, &mut to);
        let _ = to.shutdown(Shutdown::Write);
    };
    thread::scope(|scope| {
        scope.spawn(|| copy(server, client));
        copy(client, server);
    });
}

fn authorised(_: usize, head: &str) -> &'static str {
    match head.lines().any(|line| line == format!("proxy-authorization: {CREDENTIALS}")) {
        true => "200 Connection established",
        false => "407 Proxy Authentication Required\r\nproxy-authenticate: Basic\r\ncontent-length: 0",
    }
}

fn env(name: &'static str, value: &str) -> ProxyEnv {
    let value = value.to_owned();
    ProxyEnv::of(move |asked| (asked == name).then(|| value.clone()))
}

/// A load over TLS on a host that only the proxy knows. What is not waited for ends at once.
pub(crate) fn secure(userinfo: &str, proxy: SocketAddr) -> Bench {
    let mut bench = Bench::at("https://model.example/v1", 2);
    bench.proxies = env("https_proxy", &format!("http://{userinfo}{proxy}"));
    bench.spec.target.ready.within = Nanos::from_secs(3600);
    bench
}

/// A server for that host, and the PEM text of who vouches for it.
fn model() -> (SocketAddr, String) {
    let (identity, authority) = issued(&params(&["model.example"]));
    (crate::tls::serve_as(&identity), authority)
}

/// A port that refuses.
fn closed_port() -> SocketAddr {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap()
}

fn reached(report: &Report) -> (Option<String>, Vec<String>) {
    let reached = report.run.end.clone().unwrap().reached.unwrap();
    (reached.proxy, reached.addresses)
}

#[test]
fn an_https_target_is_reached_through_a_tunnel() {
    let (server, authority) = model();
    let (proxy, asked) = tunnelling(server, authorised);
    let mut bench = secure(USERINFO, proxy);
    bench.trust = given(&authority);
    let report = bench.go();
    assert_ok(&report);
    assert_eq!(reached(&report), (Some(format!("http://{proxy}")), vec![proxy.to_string()]));
    let asked = asked.lock().unwrap();
    assert!(
        asked.iter().all(|head| head.starts_with("connect model.example:443 http/1.1\r\nhost: model.example:443\r\n"))
    );
    let warmup = &report.run.warmup[0];
    assert!(warmup.connect.is_some() && warmup.tls.is_some() && warmup.dns.is_none(), "{warmup:?}");
    assert!(!report.journal.contains("ss-word") && !report.journal.to_lowercase().contains("bwu6ceb"));
}

#[test]
fn a_tunnel_that_is_refused_is_said_to_be_the_proxys() {
    let (server, _) = model();
    let (wants, _) = tunnelling(server, authorised);
    let other = "the proxy at http://PROXY wants other credentials (407): check the user and password in `https_proxy`";
    let none = "the proxy at http://PROXY wants credentials (407): write them in `https_proxy`";
    let forbidden =
        "the proxy at http://PROXY lets nobody through to `model.example:443` (403 Forbidden): have it allowed";
    let method = "the proxy at http://PROXY opens no tunnel to `model.example:443` (405 Method Not Allowed); check `https_proxy`";
    let says = |words: &str, proxy: SocketAddr, says: &str| {
        assert_says(words, &[&says.replace("PROXY", &proxy.to_string())]);
        assert!(!words.contains("wrong-word"), "{words}");
    };
    says(&refusal(secure("me:wrong-word@", wants)), wants, other);
    says(&refusal(secure("", wants)), wants, none);
    for (status, sentence) in [("403 Forbidden", forbidden), ("405 Method Not Allowed", method)] {
        let (proxy, _) = tunnelling(server, move |_, _| status);
        says(&refusal(secure("me:wrong-word@", proxy)), proxy, sentence);
    }
}

#[test]
fn a_proxy_that_cannot_be_reached_is_said_to_be_one() {
    let closed = closed_port();
    let words = refusal(secure("", closed));
    assert_says(&words, &[&format!("connection refused by the proxy {closed}; check `https_proxy`")]);
    let mut bench = secure("", closed);
    bench.proxies = env("ALL_PROXY", "http://me:wrong-word@no-such-proxy.invalid:3128");
    let words = refusal(bench);
    assert_says(&words, &["cannot resolve the proxy host `no-such-proxy.invalid`", "check `ALL_PROXY`"]);
}

#[test]
fn a_proxy_that_does_not_answer_as_one_is_said_so() {
    let closing = accept_on(TcpListener::bind("127.0.0.1:0").unwrap(), |client, _| drop(head_of(client)));
    let babbling = accept_on(TcpListener::bind("127.0.0.1:0").unwrap(), |mut client, _| {
        let _ = head_of(client);
        let _ = client.write_all(b"220 mail.example ESMTP\r\n");
    });
    for (proxy, sentence) in [(closing, "closed the connection without an answer"), (babbling, "is no HTTP proxy")] {
        let words = refusal(secure("", proxy));
        assert_says(&words, &[&format!("http://{proxy}"), sentence, "check `https_proxy`"]);
    }
    let silent = accept_on(TcpListener::bind("127.0.0.1:0").unwrap(), |mut client, _| {
        let _ = client.read_to_end(&mut Vec::new());
    });
    let mut bench = secure("", silent);
    bench.spec.timeouts.connect = Nanos::from_millis(300);
    assert_says(&refusal(bench), &[&format!("no answer from the proxy at http://{silent} within 300 ms")]);
}

#[test]
fn a_target_that_the_proxy_does_not_reach_yet_is_waited_for() {
    let (server, authority) = model();
    let answer = |count, _: &str| if count < 3 { "503 Service Unavailable" } else { "200 OK" };
    let (proxy, asked) = tunnelling(server, answer);
    let mut bench = secure("", proxy);
    bench.trust = given(&authority);
    assert_ok(&bench.go());
    assert!(asked.lock().unwrap().len() > 3);
    let (proxy, _) = tunnelling(server, |_, _| "502 Bad Gateway");
    let mut bench = secure("", proxy);
    bench.spec.target.ready.within = Nanos::from_millis(400);
    assert_says(&refusal(bench), &[&format!("the proxy at http://{proxy} does not reach `model.example:443` (502")]);
}

#[test]
fn a_tunnel_that_is_refused_later_gives_requests_that_outcome() {
    let (identity, authority) = issued(&params(&["model.example"]));
    let config = identity.config();
    let script = well(|_, _| stream(&["a"]));
    let server = serve_tls(move |_| Some(Arc::clone(&config)), move |seen| [script(seen), vec![Close]].concat());
    let (proxy, _) = tunnelling(server, |count, _| if count < 3 { "200 OK" } else { "403 Forbidden" });
    let mut bench = secure("", proxy).every(300);
    bench.trust = given(&authority);
    let report = bench.go();
    assert_eq!(report.run.warmup[0].outcome, Outcome::Ok);
    let last = report.run.samples.last().unwrap();
    assert_eq!((last.outcome, last.connected), (Outcome::Connect, None), "{last:?}");
    assert_says(last.error.as_ref().unwrap(), &["the proxy at", "(403 Forbidden)"]);
}

#[test]
fn an_http_target_is_asked_of_the_proxy_itself() {
    let (server, asked) = forwarding();
    let mut bench = Bench::at("http://model.example:8000/v1", 2);
    bench.proxies = env("http_proxy", &format!("http://{USERINFO}{server}"));
    let report = bench.go();
    assert_ok(&report);
    assert_eq!(reached(&report), (Some(format!("http://{server}")), vec![server.to_string()]));
    for seen in asked.lock().unwrap().iter() {
        assert!(seen.line.contains(" http://model.example:8000/"), "{seen:?}");
        assert!(seen.head.contains("host: model.example:8000\r\n"), "{seen:?}");
    }
    assert!(!report.journal.contains("ss-word") && !report.journal.to_lowercase().contains("bwu6ceb"));
}

/// A proxy that answers for the targets itself, to who has the credentials.
fn forwarding() -> (SocketAddr, Arc<Mutex<Vec<Seen>>>) {
    let asked = Arc::new(Mutex::new(Vec::new()));
    let noted = Arc::clone(&asked);
    let script = well(|_, _| stream(&["a", "b"]));
    let address = serve(move |seen| {
        noted.lock().unwrap().push(seen.clone());
        match seen.head.contains(&format!("proxy-authorization: {CREDENTIALS}\r\n")) {
            true => script(seen),
            false => vec![head("407 Proxy Authentication Required", &["content-length: 0"])],
        }
    });
    (address, asked)
}

#[test]
fn a_forwarding_proxy_that_wants_other_credentials_is_said_to() {
    let (proxy, _) = forwarding();
    for (userinfo, sentence) in [("me:wrong-word@", "wants other credentials (407)"), ("", "wants credentials (407)")] {
        let mut bench = Bench::at("http://model.example/v1", 2);
        bench.proxies = env("http_proxy", &format!("http://{userinfo}{proxy}"));
        bench.spec.target.ready.within = Nanos::from_secs(3600);
        let words = refusal(bench);
        assert_says(&words, &[&format!("the proxy at http://{proxy}"), sentence, "`http_proxy`"]);
        assert!(!words.contains("wrong-word"), "{words}");
    }
}

#[test]
fn a_forwarding_proxy_that_changes_its_mind_is_named_as_well() {
    let refusal = || vec![head("407 Proxy Authentication Required", &["content-length: 0"])];
    let proxy = serve_measured(move |_, _| refusal());
    let mut bench = Bench::at("http://model.example/v1", 1);
    bench.proxies = env("http_proxy", &format!("http://{USERINFO}{proxy}"));
    let sample = &bench.go().run.samples[0];
    assert_eq!(sample.outcome, Outcome::Http4xx, "{sample:?}");
    assert_says(sample.error.as_ref().unwrap(), &["407", "check the user and password of the proxy"]);
}

#[test]
fn this_machine_is_asked_directly() {
    let server = serve_measured(|_, _| stream(&["a"]));
    for host in ["localhost", "127.0.0.1"] {
        let mut bench = Bench::at(&format!("http://{host}:{}", server.port()), 1);
        bench.proxies = env("all_proxy", &format!("http://{}", closed_port()));
        let report = bench.go();
        assert_eq!(report.run.end.as_ref().unwrap().reason, EndReason::Completed);
        assert_eq!(reached(&report).0, None);
    }
}

#[test]
fn a_proxy_of_another_kind_is_no_run() {
    for (target, variable, value, says) in [
        ("https://model.example", "https_proxy", "https://me:wrong-word@p:1", "`https://` proxies are not supported"),
        ("http://model.example", "http_proxy", "socks5://me:wrong-word@p:1", "`socks5://` proxies are not supported"),
        ("http://model.example", "all_proxy", "http://me:wrong-word /@p:1", "it is not the URL of a proxy"),
    ] {
        let mut bench = Bench::at(target, 1);
        bench.proxies = env(variable, value);
        let (result, journal, _) = bench.try_go();
        let words = result.unwrap_err().to_string();
        assert_says(&words, &[says, &format!("`{variable}`")]);
        assert!(!words.contains("wrong-word") && journal.is_empty(), "{words}");
    }
    let mut bench = Bench::at("http://model.example", 1);
    bench.proxies = env("http_proxy", "http://p:1");
    bench.spec.load.http = Http::Two;
    let words = bench.try_go().0.unwrap_err().to_string();
    assert_says(&words, &["speak HTTP/2 without TLS through the proxy that `http_proxy` names: not supported"]);
}

#[test]
fn a_tunnel_that_closes_at_once_names_the_proxy() {
    let proxy = accept_on(std::net::TcpListener::bind("127.0.0.1:0").unwrap(), |mut stream, _| {
        let _ = std::io::Read::read(&mut stream, &mut [0; 4096]);
        let _ = std::io::Write::write_all(&mut stream, b"HTTP/1.1 200 OK\r\n\r\n");
    });
    let mut bench = secure("", proxy);
    bench.spec.target.ready.within = Nanos::from_millis(400);
    assert_says(&refusal(bench), &[&format!("through the proxy at http://{proxy}: the server")]);
}
