//! A courier against a small GitHub on loopback.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::thread;

use serde_json::{Value, json};

use super::*;
use crate::Event;
use crate::gitlab::fake::{Asked, Reply, Server};

const TOKEN: &str = "ghs_s3cretToken";
const BOT: &str = "github-actions[bot]";
const MARKER: &str = "<!-- gate:comment job=perf/gate -->";
const HEAD: &str = "0123456789abcdef0123456789abcdef01234567";
const COMMENTS: &str = "/repos/acme/chat/issues/7/comments";

/// What happens to the next request whose line starts so.
enum Fault {
    /// It has no effect, and this answer.
    Instead(&'static str, Reply),
    /// It takes effect, and has this answer.
    After(&'static str, Reply),
}

#[derive(Default)]
struct State {
    /// Id, author, text.
    comments: Vec<(u64, &'static str, String)>,
    faults: Vec<Fault>,
    pulls: Vec<Value>,
    checks: Vec<Value>,
    /// The API's path, such as `/api/v3`.
    prefix: &'static str,
    origin: String,
}

impl State {
    fn answer(&mut self, asked: &Asked) -> Reply {
        let path = asked.path.strip_prefix(self.prefix).unwrap_or("/outside").to_owned();
        let line = format!("{} {path}", asked.method);
        let at = self.faults.iter().position(|fault| {
            let (Fault::Instead(start, _) | Fault::After(start, _)) = fault;
            line.starts_with(start)
        });
        match at.map(|at| self.faults.remove(at)) {
            Some(Fault::Instead(_, reply)) => return reply,
            Some(Fault::After(_, reply)) => {
                self.act(asked, &path);
                return reply;
            }
            None => {}
        }
        if asked.header("authorization") != Some(&format!("Bearer {TOKEN}")) {
            return said(401, "Bad credentials");
        }
        self.act(asked, &path)
    }

    fn act(&mut self, asked: &Asked, path: &str) -> Reply {
        let sent: Value = serde_json::from_slice(&asked.body).unwrap_or_default();
        let text = || sent["body"].as_str().unwrap_or_default().to_owned();
        let (path, query) = path.split_once('?').unwrap_or((path, ""));
        let path = path.replace("/repositories/5/", "/repos/acme/chat/");
        let id = |start: &str| path.strip_prefix(start).and_then(|id| id.parse::<u64>().ok());
        match (asked.method.as_str(), path.as_str()) {
            ("GET", "/user") => said(403, "Resource not accessible by integration"),
            ("GET", COMMENTS) => self.page(query),
            ("POST", COMMENTS) => {
                let id = self.comments.iter().map(|there| there.0).max().unwrap_or(1000) + 1;
                self.comments.push((id, BOT, text()));
                json_of(201, &comment_of(self.comments.last().unwrap()))
            }
            ("POST", "/repos/acme/chat/check-runs") => {
                self.checks.push(sent);
                json_of(201, &json!({"id": self.checks.len(), "html_url": "https://github.com/acme/chat/runs/1"}))
            }
            ("PATCH", _) if let Some(id) = id("/repos/acme/chat/check-runs/") => {
                self.checks[usize::try_from(id).unwrap() - 1] = sent;
                json_of(200, &json!({"id": id, "html_url": "https://github.com/acme/chat/runs/1"}))
            }
            ("GET", path) if path.ends_with("/pulls") => json_of(200, &json!(self.pulls)),
            (method, _) if let Some(id) = id("/repos/acme/chat/issues/comments/") => {
                let Some(at) = self.comments.iter().position(|there| there.0 == id) else {
                    return said(404, "Not Found");
                };
                if self.comments[at].1 != BOT {
                    return said(403, "Resource not accessible by integration");
                }
                if method == "DELETE" {
                    self.comments.remove(at);
                    return Reply::new(204, "");
                }
                assert_eq!(method, "PATCH");
                self.comments[at].2 = text();
                json_of(200, &comment_of(&self.comments[at]))
            }
            _ => said(404, "Not Found"),
        }
    }

    fn page(&self, query: &str) -> Reply {
        let value = |name: &str| query.split('&').find_map(|pair| pair.strip_prefix(name)?.parse::<usize>().ok());
        let (per, page) = (value("per_page=").unwrap_or(30).min(100), value("page=").unwrap_or(1));
        let items: Vec<Value> = self.comments.iter().skip((page - 1) * per).take(per).map(comment_of).collect();
        let reply = json_of(200, &json!(items));
        if self.comments.len() <= page * per {
            return reply;
        }
        let next = format!("{}{}{COMMENTS}?per_page={per}&page={}", self.origin, self.prefix, page + 1);
        reply.with("link", format!("<{next}>; rel=\"next\", <{next}>; rel=\"last\""))
    }
}

fn comment_of((id, login, body): &(u64, &'static str, String)) -> Value {
    let kind = if login.ends_with("[bot]") { "Bot" } else { "User" };
    json!({"id": id, "body": body, "html_url": format!("https://github.com/acme/chat/pull/7#issuecomment-{id}"),
        "user": {"login": login, "type": kind}})
}

fn json_of(status: u16, value: &Value) -> Reply {
    Reply::new(status, value.to_string()).with("content-type", "application/json; charset=utf-8")
}

fn said(status: u16, message: &str) -> Reply {
    json_of(status, &json!({"message": message}))
}

/// A running GitHub.
struct Fake {
    state: Arc<Mutex<State>>,
    server: Server,
    api: String,
}

impl Fake {
    fn start(state: State) -> Self {
        let prefix = state.prefix;
        let state = Arc::new(Mutex::new(state));
        let shared = Arc::clone(&state);
        let (started, server) = mpsc::channel();
        thread::spawn(move || {
            Builder::new_current_thread().enable_all().build().unwrap().block_on(async move {
                let server = Server::start(move |asked| shared.lock().unwrap().answer(asked)).await;
                started.send(server).unwrap();
                std::future::pending::<()>().await;
            });
        });
        let server = server.recv().unwrap();
        state.lock().unwrap().origin.clone_from(&server.origin);
        let api = format!("{}{prefix}", server.origin);
        Self { state, server, api }
    }

    fn with(faults: Vec<Fault>) -> Self {
        Self::start(State { faults, ..State::default() })
    }

    fn ours(&self) -> Vec<(u64, String)> {
        let state = self.state.lock().unwrap();
        state.comments.iter().filter(|there| there.1 == BOT).map(|there| (there.0, there.2.clone())).collect()
    }

    fn courier(&self) -> Courier {
        courier(job(&self.api), 60)
    }
}

fn courier(job: Job, patience: u64) -> Courier {
    Courier::new(job, Secret::new(TOKEN), Duration::from_secs(patience), || false).unwrap()
}

fn job(api: &str) -> Job {
    Job {
        forge: Forge::GitHub,
        event: Event::PullRequest,
        api: api.to_owned(),
        repository: "acme/chat".to_owned(),
        head: Some(HEAD.to_owned()),
        base: None,
        trusted: None,
        request: Some(7),
        head_branch: None,
        from_fork: false,
        key: "perf/gate".to_owned(),
        run: Some(1),
        page: Some("https://github.com/acme/chat/actions/runs/1".to_owned()),
    }
}

fn comment(run: u64, text: &str) -> Delivery {
    let state = format!("<!-- gate:state run={run} 0123456789abcdef -->");
    let comment = Comment {
        marker: MARKER.to_owned(),
        body: format!("{MARKER}\n{state}\n\n{text}"),
        state,
        passed: text == "green",
        policy: CommentPolicy::Always,
    };
    Delivery { comment: Some(comment), check: None }
}

fn page(id: u64) -> Delivered {
    Delivered {
        comment: Some(format!("https://github.com/acme/chat/pull/7#issuecomment-{id}")),
        ..Delivered::default()
    }
}

/// The only failure, with its hint.
fn failure(delivered: &Delivered) -> (String, String) {
    assert_eq!((delivered.failed.len(), &delivered.comment), (1, &None), "{delivered:?}");
    let shown = format!("{delivered:?}");
    assert!(!shown.contains("s3cret"), "{shown}");
    (delivered.failed[0].to_string(), delivered.failed[0].hint().unwrap_or_default().to_owned())
}

#[test]
fn a_first_run_creates_a_second_updates_a_third_turns_green() {
    let fake = Fake::with(Vec::new());
    for (run, text) in [(1, "red"), (2, "red"), (3, "green")] {
        assert_eq!(fake.courier().deliver(&comment(run, text)), page(1001));
    }
    assert_eq!(fake.ours(), [(1001, comment(3, "green").comment.unwrap().body)]);
    let asked = fake.server.asked();
    assert!(asked.iter().all(|asked| asked.header("user-agent").unwrap().starts_with("gate/")));
    assert!(asked.iter().all(|asked| asked.header("accept") == Some("application/vnd.github+json")));
    let writes: Vec<&str> = asked.iter().map(|asked| asked.method.as_str()).filter(|method| *method != "GET").collect();
    assert_eq!(writes, ["POST", "PATCH", "PATCH"]);
}

#[test]
fn ours_is_found_on_page_two_behind_130_others_under_the_path_of_an_enterprise_server() {
    let quoted = comment(1, "red").comment.unwrap().body;
    let mut comments: Vec<_> = (1..=130).map(|id| (id, "octocat", format!("nice {id}"))).collect();
    comments.push((131, "mallory", quoted.clone()));
    comments.push((132, BOT, quoted.clone()));
    let fake = Fake::start(State { comments, prefix: "/api/v3", ..State::default() });
    assert_eq!(fake.courier().deliver(&comment(2, "green")), page(132));
    assert_eq!(fake.ours(), [(132, comment(2, "green").comment.unwrap().body)]);
    assert_eq!(fake.state.lock().unwrap().comments[130].2, quoted);
}

#[test]
fn a_user_s_token_updates_only_that_user_s_comment() {
    let quoted = comment(1, "red").comment.unwrap().body;
    let user = json_of(200, &json!({"login": "Octocat", "type": "User"}));
    let comments = vec![(3, BOT, quoted.clone()), (4, "octocat", quoted.clone())];
    let faults = vec![
        Fault::Instead("GET /user", user),
        Fault::Instead("PATCH /repos/acme/chat/issues/comments/4", comment_reply(4)),
    ];
    let fake = Fake::start(State { comments, faults, ..State::default() });
    assert_eq!(fake.courier().deliver(&comment(2, "green")), page(4));
    assert_eq!(fake.ours(), [(3, quoted)]);
}

fn comment_reply(id: u64) -> Reply {
    json_of(200, &comment_of(&(id, "octocat", String::new())))
}

#[test]
fn a_final_refusal_is_one_failure_with_a_hint() {
    let closed = "Resource not accessible by integration";
    for (status, message, says) in [
        (401, "Bad credentials ghs_s3cretToken", "expired"),
        (403, closed, "`pull-requests: write`"),
        (404, "Not Found", "`acme/chat`"),
        (410, "Gone", "turned off"),
        (422, "Validation Failed", ""),
    ] {
        let fake = Fake::with(vec![Fault::Instead("POST", said(status, message))]);
        let (error, hint) = failure(&fake.courier().deliver(&comment(1, "red")));
        let message = message.replace(TOKEN, "***");
        assert_eq!(error, format!("create the comment on pull request 7: {status} {message}"));
        assert!(hint.contains(says) && hint.is_empty() == says.is_empty(), "{hint}");
        let posts = fake.server.log().iter().filter(|line| line.starts_with("POST")).count();
        assert_eq!((posts, fake.ours()), (1, Vec::new()));
    }
    let fake = Fake::with(vec![Fault::Instead("POST", said(403, closed))]);
    let fork = Job { from_fork: true, ..job(&fake.api) };
    let (_, hint) = failure(&courier(fork, 60).deliver(&comment(1, "red")));
    assert!(hint.contains("fork") && hint.contains("docs/ci.md"), "{hint}");
}

#[test]
fn a_limit_is_waited_out_or_told() {
    let limit = |seconds: &str| said(429, "slow down").with("retry-after", seconds);
    let fake = Fake::with(vec![Fault::Instead("POST", limit("1")), Fault::Instead("GET /repos", limit("1"))]);
    assert_eq!(fake.courier().deliver(&comment(1, "red")), page(1001));
    assert_eq!(fake.ours().len(), 1);
    let fake = Fake::with(vec![Fault::Instead("POST", limit("3600"))]);
    let (error, _) = failure(&fake.courier().deliver(&comment(1, "red")));
    assert!(error.ends_with("429 slow down (the forge wants to be left alone for 3600 s)"), "{error}");
    let secondary = said(403, "You have exceeded a secondary rate limit.");
    let fake = Fake::with(vec![Fault::Instead("POST", secondary)]);
    let (error, hint) = failure(&courier(job(&fake.api), 30).deliver(&comment(1, "red")));
    assert!(error.ends_with("(the forge wants to be left alone for 60 s)") && hint.contains("later"), "{error} {hint}");
}

#[test]
fn a_create_with_an_uncertain_end_leaves_one_comment() {
    let bad = || Reply::new(502, "<html>Bad Gateway</html>");
    let lost = || Reply { claims: Some(1000), ..Reply::new(201, "{") };
    for fault in [
        Fault::After("POST", bad()),
        Fault::Instead("POST", bad()),
        Fault::After("POST", lost()),
        Fault::Instead("POST", lost()),
    ] {
        let fake = Fake::with(vec![fault]);
        assert_eq!(fake.courier().deliver(&comment(1, "red")), page(1001));
        assert_eq!(fake.ours(), [(1001, comment(1, "red").comment.unwrap().body)]);
    }
}

#[test]
fn a_token_that_expires_between_look_and_create_is_told() {
    let fake = Fake::with(vec![
        Fault::Instead("POST", Reply::new(502, "")),
        Fault::Instead("POST", said(401, "Bad credentials")),
    ]);
    let (error, hint) = failure(&fake.courier().deliver(&comment(1, "red")));
    assert_eq!(error, "create the comment on pull request 7: 401 Bad credentials");
    assert!(hint.contains("expired"), "{hint}");
}

#[test]
fn two_at_once_come_to_one_comment() {
    let none = || Fault::Instead("GET /repos/acme/chat/issues/7/comments", json_of(200, &json!([])));
    let fake = Fake::with(vec![none(), none()]);
    let couriers = ["red", "green"].map(|text| {
        let api = fake.api.clone();
        thread::spawn(move || courier(job(&api), 60).deliver(&comment(1, text)))
    });
    for courier in couriers {
        let delivered = courier.join().unwrap();
        assert!(delivered.failed.is_empty(), "{delivered:?}");
    }
    let ours = fake.ours();
    assert_eq!(ours.len(), 1, "{ours:?}");
}

#[test]
fn a_token_stays_with_its_origin() {
    let moved = |to: &str| Reply::new(307, "").with("location", to);
    let elsewhere = Fake::with(Vec::new());
    let to = format!("{}{COMMENTS}", elsewhere.api);
    let fake = Fake::with(vec![Fault::Instead("GET /repos", moved(&to))]);
    let (error, hint) = failure(&fake.courier().deliver(&comment(1, "red")));
    assert_eq!(error, "list the comments on pull request 7: 307 temporary redirect");
    assert!(hint.contains("GITHUB_API_URL"), "{hint}");
    let linked = json_of(200, &json!([])).with("link", format!("<{to}>; rel=\"next\""));
    let fake = Fake::with(vec![Fault::Instead("GET /repos", linked)]);
    let (error, _) = failure(&fake.courier().deliver(&comment(1, "red")));
    assert!(error.contains("where the token is not sent"), "{error}");
    assert_eq!(elsewhere.server.log(), Vec::<String>::new());
    // A repository that moved within the origin is followed with the token, and the request as it was.
    let within = "/repositories/5/issues/7/comments";
    let faults = vec![Fault::Instead("GET /repos", moved(within)), Fault::Instead("POST /repos", moved(within))];
    let fake = Fake::with(faults);
    assert_eq!(fake.courier().deliver(&comment(1, "red")), page(1001));
    let around = moved("/user");
    let faults = (0..9).map(|_| Fault::Instead("GET /user", around.clone())).collect();
    let fake = Fake::with(faults);
    let (error, _) = failure(&fake.courier().deliver(&comment(1, "red")));
    assert!(error.contains("307"), "{error}");
}

#[test]
fn a_request_that_the_event_does_not_name_is_found_by_its_head() {
    let pull = |number: u64, state: &str, sha: &str| json!({"number": number, "state": state, "head": {"sha": sha}});
    let pushed =
        |api: &str| Job { event: Event::Push, request: None, head_branch: Some("mallory:fix".to_owned()), ..job(api) };
    let pulls = vec![pull(5, "closed", HEAD), pull(6, "open", &"f".repeat(40)), pull(7, "open", HEAD)];
    let fake = Fake::start(State { pulls, ..State::default() });
    assert_eq!(courier(pushed(&fake.api), 60).deliver(&comment(1, "red")), page(1001));
    assert!(!fake.server.log().iter().any(|line| line.contains("head=")));
    let moved_on = Fake::start(State { pulls: vec![pull(6, "open", &"f".repeat(40))], ..State::default() });
    let delivered = courier(pushed(&moved_on.api), 60).deliver(&comment(1, "red"));
    assert_eq!(delivered.left.as_deref(), Some("its pull request has moved on to another commit"));
    let log = moved_on.server.log();
    assert!(log[1].starts_with("GET /repos/acme/chat/pulls?head=mallory%3Afix&state=open"), "{log:?}");
    let queue = Job { event: Event::MergeGroup, request: None, ..job(&fake.api) };
    let before = fake.server.log().len();
    let delivered = courier(queue, 60).deliver(&comment(1, "red"));
    assert!(delivered.left.unwrap().contains("merge_group") && delivered.failed.is_empty());
    assert_eq!(fake.server.log().len(), before);
}

#[test]
fn a_check_run_is_opened_then_completed_or_made_complete() {
    let fake = Fake::with(Vec::new());
    let text = |title: &str| CheckText { title: title.to_owned(), summary: "s".repeat(70_000) };
    let ended = |conclusion| Delivery { comment: None, check: Some((conclusion, text("red"))) };
    let mut courier = fake.courier();
    courier.open_check("gate / chat", &text("measuring")).unwrap();
    let open = fake.state.lock().unwrap().checks[0].clone();
    assert_eq!(
        (&open["name"], &open["head_sha"], &open["status"]),
        (&"gate / chat".into(), &HEAD.into(), &"in_progress".into())
    );
    assert_eq!(open["details_url"], "https://github.com/acme/chat/actions/runs/1");
    let delivered = courier.deliver(&ended(Conclusion::Failure));
    assert_eq!(delivered.check.as_deref(), Some("https://github.com/acme/chat/runs/1"));
    let done = fake.state.lock().unwrap().checks[0].clone();
    assert_eq!((&done["status"], &done["conclusion"]), (&"completed".into(), &"failure".into()));
    assert_eq!(done["output"]["summary"].as_str().unwrap().chars().count(), 65_535);
    // Where it was refused at first, a complete one is made.
    let closed = said(403, "Resource not accessible by integration");
    let fake = Fake::with(vec![Fault::Instead("POST", closed)]);
    let mut courier = fake.courier();
    let error = courier.open_check("gate", &text("measuring")).unwrap_err();
    assert!(error.hint().unwrap().contains("`checks: write`"));
    assert!(courier.deliver(&ended(Conclusion::Neutral)).failed.is_empty());
    let made = fake.state.lock().unwrap().checks[0].clone();
    assert_eq!((&made["name"], &made["conclusion"]), (&"gate".into(), &"neutral".into()));
}

#[test]
fn one_that_fails_keeps_no_other_from_being_delivered() {
    let closed = || said(403, "Resource not accessible by integration");
    let text = CheckText { title: "red".to_owned(), summary: String::new() };
    let both = Delivery { check: Some((Conclusion::Failure, text)), ..comment(1, "red") };
    let fake = Fake::with(vec![Fault::Instead("POST /repos/acme/chat/check-runs", closed())]);
    let delivered = fake.courier().deliver(&both);
    assert!(delivered.comment.is_some() && delivered.failed.len() == 1, "{delivered:?}");
    let fake = Fake::with(vec![Fault::Instead("POST /repos/acme/chat/issues", closed())]);
    let delivered = fake.courier().deliver(&both);
    assert!(delivered.check.is_some() && delivered.failed.len() == 1, "{delivered:?}");
}

/// A server that says this to everybody, over and over, until it is hung up on.
fn hostile(head: &'static str, forever: &'static [u8]) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let origin = format!("http://{}", listener.local_addr().unwrap());
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            thread::spawn(move || {
                let _ = stream.read(&mut [0; 4096]);
                let mut said = stream.write_all(head.as_bytes());
                while said.is_ok() && !forever.is_empty() {
                    said = stream.write_all(forever);
                }
            });
        }
    });
    origin
}

#[test]
fn a_hostile_answer_is_a_failure_and_no_more() {
    static ZEROS: [u8; 65_536] = [b'0'; 65_536];
    for (head, forever) in [
        ("HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nnot: JSON", &[][..]),
        ("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}", &[]),
        ("HTTP/1.1 200 OK\r\ncontent-length: 14\r\n\r\n{\"login\":[{}]}", &[]),
        ("HTTP/1.1 200 OK\r\ncontent-length: 104857600\r\n\r\n", &ZEROS),
        ("HTTP/1.1 200 OK\r\n", b"x-more: and more\r\n"),
        ("HTTP/1.1 200 OK\r\nx-long: ", &ZEROS),
        ("SSH-2.0-OpenSSH\r\n\r\n", &[]),
        ("", &[]),
        ("HTTP/1.1 999 \r\ncontent-length: 0\r\n\r\n", &[]),
    ] {
        let job = job(&hostile(head, forever));
        let delivered = courier(job, 1).deliver(&comment(1, "red"));
        let (error, _) = failure(&delivered);
        assert!(error.chars().count() < 500, "{error}");
    }
}

#[test]
fn whoever_says_stop_is_not_kept_waiting() {
    // It takes connections and never answers.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let job = job(&format!("http://{}", silent.local_addr().unwrap()));
    let stopped = Arc::new(AtomicBool::new(false));
    let asked = Arc::clone(&stopped);
    let hour = Duration::from_secs(3600);
    let mut courier = Courier::new(job, Secret::new(TOKEN), hour, move || asked.load(Ordering::Relaxed)).unwrap();
    let stop = thread::spawn(move || {
        silent.accept().unwrap();
        stopped.store(true, Ordering::Relaxed);
        silent
    });
    let delivered = courier.deliver(&comment(1, "red"));
    assert_eq!(delivered.failed, [ForgeError::Stopped { what: "post the comment".to_owned() }]);
    drop(stop.join().unwrap());
}

#[test]
fn a_token_that_cannot_be_sent_is_none() {
    let refused = |token: &str| Courier::new(job("http://127.0.0.1:9"), Secret::new(token), Duration::ZERO, || false);
    assert!(matches!(refused(" \n"), Err(ForgeError::NoToken { .. })));
    let mut odd = refused("ghs_s3cret\u{7}Token").unwrap();
    let (error, hint) = failure(&odd.deliver(&comment(1, "red")));
    assert!(error.contains("no header can") && hint.contains("GITHUB_TOKEN"), "{error}");
}
