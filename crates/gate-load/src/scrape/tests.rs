use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::sync::mpsc;

use gate_model::{Bound, Check, Endpoint, Header, Importance, Op, Origin, Quantity, Secret, Unit};

use super::*;
use crate::Trust;
use crate::ask::LONGEST;

/// Answers one request with these bytes, and tells what was asked.
fn serve(answer: impl AsRef<[u8]> + Send + 'static) -> (SocketAddr, mpsc::Receiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let (tell, told) = mpsc::channel();
    std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut head = Vec::new();
        let mut byte = [0];
        while !head.ends_with(b"\r\n\r\n") && stream.read(&mut byte).unwrap() == 1 {
            head.push(byte[0]);
        }
        let _ = tell.send(String::from_utf8(head).unwrap().to_ascii_lowercase());
        // A client that has read enough closes.
        let _ = stream.write_all(answer.as_ref());
    });
    (address, told)
}

fn answer(status: &str, body: &str) -> String {
    format!("HTTP/1.1 {status}\r\ncontent-length: {}\r\n\r\n{body}", body.len())
}

const TEXT: &str = "vllm:num_requests_running 3\nmy:own 2\nmy:own{a=\"b\"} 5\nmy:other 1\n";

/// A target with a key and a header of its own, whose metrics are these.
fn spec(metrics: String) -> GateSpec {
    let mut spec = GateSpec::new("g", Endpoint::Url("http://target".to_owned()));
    spec.target.key = Some(Secret::new("sk-secret-key"));
    spec.target.headers = vec![Header { name: "x-tenant".to_owned(), value: Secret::new("tenant-secret") }];
    spec.target.metrics = Some(metrics);
    spec
}

fn remote(base: &str) -> Remote {
    Remote { base: Url::parse(base).unwrap(), socket: None, trust: Trust::default() }
}

fn scraper(spec: &GateSpec, remote: &Remote) -> Scraper {
    let secrets = [Secret::new("sk-secret-key"), Secret::new("tenant-secret")];
    Scraper::new(spec, remote, &ProxyEnv::default(), &Redactor::new(&secrets)).unwrap()
}

fn once(scraper: &Scraper) -> Result<Vec<(ServerMetric, f64)>, String> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(scraper.once()).map(|read| {
        assert_eq!(read.problem, None);
        read.values
    })
}

fn error(status: &str, body: &str) -> String {
    let (address, _) = serve(answer(status, body));
    once(&scraper(&spec(format!("http://{address}/metrics?token=hidden")), &remote("http://target:8000"))).unwrap_err()
}

fn metric(name: &str) -> ServerMetric {
    ServerMetric::new(name).unwrap()
}

#[test]
fn without_metrics_nothing_is_read() {
    let spec = GateSpec::new("g", Endpoint::Url("http://target".to_owned()));
    assert!(Scraper::new(&spec, &remote("http://target"), &ProxyEnv::default(), &Redactor::new(&[])).is_none());
}

fn check(metric: &str) -> Check {
    Check {
        scenario: 0,
        metric: metric.parse().unwrap(),
        op: Op::Less,
        bound: Bound::Absolute(Quantity { value: 9.0, unit: Unit::Count }),
        bound_text: "9".to_owned(),
        importance: Importance::Required,
        origin: Origin::Implied,
        decide: None,
        confidence: Check::CONFIDENCE,
        waive: None,
    }
}

#[test]
fn what_checks_name_is_read_with_the_common_ones() {
    let (address, told) = serve(answer("200 OK", TEXT));
    let mut spec = spec(format!("http://{address}/metrics?x=1"));
    spec.checks = ["ttft.p95", "server.my:own.max", "drift.server.my:other", "server.my:own.mean"].map(check).into();
    let scraper = scraper(&spec, &remote("http://target:8000/v1"));
    assert_eq!(once(&scraper), Ok(vec![(metric("running"), 3.0), (metric("my:own"), 7.0), (metric("my:other"), 1.0)]));
    let asked = told.recv().unwrap();
    assert!(asked.starts_with("get /metrics?x=1 http/1.1\r\n"), "{asked}");
    assert!(asked.contains(&format!("host: {address}\r\n")) && asked.contains("accept: text/plain"), "{asked}");
}

#[test]
fn a_value_that_is_no_number_is_told_where_a_check_needs_it() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let text = "vllm:num_requests_running NaN\nmy:own +Inf\nmy:other NaN\nmy:other 2\ntgi_queue_size 4\nnobodys NaN\n";
    let read = |metrics: &[&str]| {
        let (address, _) = serve(answer("200 OK", text));
        let mut spec = spec(format!("http://{address}/metrics"));
        spec.checks = metrics.iter().map(|metric| check(metric)).collect();
        runtime.block_on(scraper(&spec, &remote("http://target")).once()).unwrap()
    };
    let read_all = read(&["server.running.max", "server.my:own.max", "server.my:other.max", "server.waiting.max"]);
    assert_eq!(read_all.values, [(metric("waiting"), 4.0), (metric("my:other"), 2.0)]);
    let words = "what GET /metrics answered gives no number for `running`, `my:own` (NaN or infinite)";
    assert_eq!(read_all.problem.as_deref(), Some(words));
    let others = read(&["server.waiting.max"]);
    assert_eq!((others.values, others.problem), (vec![(metric("waiting"), 4.0)], None));
}

#[test]
fn credentials_go_to_the_target_alone() {
    let (own, told) = serve(answer("200 OK", TEXT));
    let own = remote(&format!("http://{own}/v1"));
    let metrics = own.base.join("/metrics").unwrap();
    once(&scraper(&spec(metrics.to_string()), &own)).unwrap();
    let asked = told.recv().unwrap();
    assert!(asked.contains("authorization: bearer sk-secret-key\r\n"), "{asked}");
    assert!(asked.contains("x-tenant: tenant-secret\r\n") && asked.starts_with("get /metrics http"), "{asked}");

    let (own, told) = serve(answer("200 OK", TEXT));
    once(&scraper(&spec("/deep/metrics".to_owned()), &remote(&format!("http://{own}/v1")))).unwrap();
    let asked = told.recv().unwrap();
    assert!(asked.contains("sk-secret-key") && asked.starts_with("get /deep/metrics http"), "{asked}");

    // The same host, another port.
    let (other, told) = serve(answer("200 OK", TEXT));
    once(&scraper(&spec(format!("http://{other}/metrics")), &remote("http://127.0.0.1:1/v1"))).unwrap();
    let asked = told.recv().unwrap();
    assert!(!asked.contains("secret"), "{asked}");
}

#[test]
fn a_body_in_chunks_is_whole() {
    let text = "vllm:num_requests_running 1\ntgi_queue_size 4\n";
    // In the middle of a name.
    let chunks: String = [&text[..15], &text[15..]].map(|part| format!("{:x}\r\n{part}\r\n", part.len())).concat();
    let body = format!("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n{chunks}0\r\n\r\n");
    let (address, _) = serve(body);
    let read = once(&scraper(&spec(format!("http://{address}/")), &remote("http://target")));
    assert_eq!(read, Ok(vec![(metric("running"), 1.0), (metric("waiting"), 4.0)]));
}

#[test]
fn failures_are_told_in_words_without_a_secret() {
    for (status, body, words) in [
        ("404 Not Found", "", "GET /metrics answered 404 Not Found; check `target.metrics`"),
        ("401 Unauthorized", "sk-secret-key", "GET /metrics answered 401 Unauthorized; it is asked with"),
        ("302 Found", "", "redirects are not followed: check `target.metrics`"),
        ("500 Internal Server Error", "", "GET /metrics answered 500 Internal Server Error"),
        ("200 OK", "<html>no</html>", "has no metric in Prometheus' text format"),
        ("200 OK", "a 1\nb 2\n", "of the 2 values that GET /metrics answered, gate knows none by name"),
        (
            "200 OK",
            "vllm:num_requests_running NaN\nother 1\nprocess_resident_memory_bytes +Inf\n",
            "what GET /metrics answered gives no number for `running`, `memory` (NaN or infinite)",
        ),
        ("200 OK", "a NaN\n", "has no metric in Prometheus' text format"),
    ] {
        let error = error(status, body);
        assert!(error.contains(words) && !error.contains("hidden") && !error.contains("secret"), "{error}");
    }
}

#[test]
fn an_answer_that_is_cut_or_too_long_is_none() {
    let cut = |answer: String| {
        let (address, _) = serve(answer);
        once(&scraper(&spec(format!("http://{address}/metrics")), &remote("http://target"))).unwrap_err()
    };
    let error = cut("HTTP/1.1 200 OK\r\ncontent-length: 900\r\n\r\nvllm:num_requests_running 3\n".to_owned());
    assert!(error.contains("closed the connection before its answer"), "{error}");
    let error = cut("not HTTP at all\r\n\r\n".to_owned());
    assert!(error.contains("not HTTP/1.1"), "{error}");
    let error = cut(answer("200 OK", &"a 1\n".repeat(LONGEST / 4 + 1)));
    assert_eq!(error, "what GET /metrics answers is longer than 4 MiB");
    let (address, _) = serve(answer("200 OK", &format!("tgi_queue_size 1\n{}", "#".repeat(LONGEST - 17))));
    let whole = once(&scraper(&spec(format!("http://{address}/metrics")), &remote("http://target")));
    assert_eq!(whole, Ok(vec![(metric("waiting"), 1.0)]));
}

#[test]
fn nobody_is_waited_for_without_end() {
    // It accepts, and never answers.
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let mut scraper = scraper(&spec(format!("http://{address}/metrics")), &remote("http://target"));
    scraper.way.as_mut().unwrap().wait = Duration::from_millis(20);
    assert_eq!(once(&scraper), Err("no whole answer to GET /metrics within 20 ms".to_owned()));
    drop(listener);
    let error = once(&scraper).unwrap_err();
    assert!(error.contains("refused"), "{error}");
}

#[test]
fn a_place_that_is_none_is_told_at_each_reading() {
    for (metrics, words) in [
        ("http://user:hidden@127.0.0.1:9/metrics", "`target.metrics` names a user"),
        ("not a url", "`target.metrics` is not a URL"),
        ("ftp://127.0.0.1/metrics", "`ftp:` URLs"),
    ] {
        let error = once(&scraper(&spec(metrics.to_owned()), &remote("http://target"))).unwrap_err();
        assert!(error.contains(words) && !error.contains("hidden"), "{error}");
    }
}

#[cfg(unix)]
#[test]
fn a_socket_may_have_them() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s");
    let listener = std::os::unix::net::UnixListener::bind(&path).unwrap();
    let asked = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut head = [0; 1_024];
        let length = stream.read(&mut head).unwrap();
        stream.write_all(answer("200 OK", TEXT).as_bytes()).unwrap();
        String::from_utf8(head[..length].to_vec()).unwrap()
    });
    let remote = Remote { socket: Some(path.clone()), ..remote("http://localhost/v1") };
    let read = once(&scraper(&spec(format!("unix:{}", path.display())), &remote));
    assert_eq!(read, Ok(vec![(metric("running"), 3.0)]));
    let asked = asked.join().unwrap();
    assert!(asked.starts_with("GET /metrics HTTP/1.1\r\n") && asked.contains("sk-secret-key"), "{asked}");
}

#[test]
fn another_machine_may_be_asked_through_a_proxy() {
    let (proxy, told) = serve(answer("200 OK", TEXT));
    let variable = |name: &str| (name == "http_proxy").then(|| format!("http://{proxy}"));
    let spec = spec("http://metrics.example:9090/metrics".to_owned());
    let scraper = Scraper::new(&spec, &remote("http://target"), &ProxyEnv::of(variable), &Redactor::new(&[])).unwrap();
    assert_eq!(once(&scraper), Ok(vec![(metric("running"), 3.0)]));
    let asked = told.recv().unwrap();
    assert!(asked.starts_with("get http://metrics.example:9090/metrics http/1.1\r\n"), "{asked}");
    assert!(asked.contains("host: metrics.example:9090\r\n") && !asked.contains("secret"), "{asked}");
}

#[test]
fn it_may_be_made_on_one_thread_and_used_on_another() {
    fn is_shared<T: Send + Sync>(_: &T) {}
    is_shared(&scraper(&spec("/metrics".to_owned()), &remote("http://target")));
}
