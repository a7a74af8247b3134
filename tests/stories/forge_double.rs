//! A small double of GitHub and GitLab: comments, notes and check runs, with what a test wants to go wrong.

use std::collections::BTreeMap;
use std::net::{SocketAddr, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard};

use serde_json::{Value, json};

use crate::harness::{Place, answer, serve};

/// Whom the token belongs to.
pub(crate) const US: &str = "github-actions[bot]";

/// A comment or note.
#[derive(Clone)]
pub(crate) struct Posted {
    pub(crate) id: u64,
    pub(crate) author: String,
    pub(crate) body: String,
}

/// What happens to a request instead of what it asks.
#[derive(Clone, Copy)]
pub(crate) struct Fault {
    /// `METHOD /path` begins so.
    pub(crate) of: &'static str,
    pub(crate) status: &'static str,
    /// Whether it is carried out all the same.
    pub(crate) takes_effect: bool,
    pub(crate) times: u32,
}

#[derive(Default)]
pub(crate) struct State {
    pub(crate) posts: Vec<Posted>,
    pub(crate) checks: BTreeMap<u64, Value>,
    pub(crate) faults: Vec<Fault>,
    /// Every request, with its headers and body.
    pub(crate) log: Vec<String>,
    last: u64,
}

impl State {
    pub(crate) fn post(&mut self, author: &str, body: &str) -> u64 {
        self.last += 1;
        self.posts.push(Posted { id: self.last, author: author.to_owned(), body: body.to_owned() });
        self.last
    }

    /// What hangs there of ours.
    pub(crate) fn ours(&self) -> Vec<Posted> {
        self.posts.iter().filter(|post| post.author == US).cloned().collect()
    }
}

/// The double, on loopback.
pub(crate) struct Forge {
    address: SocketAddr,
    state: Arc<Mutex<State>>,
}

impl Forge {
    pub(crate) fn start() -> Self {
        let state: Arc<Mutex<State>> = Arc::default();
        let shared = Arc::clone(&state);
        let address = serve(move |request, stream| respond(&mut shared.lock().unwrap(), request, stream));
        Self { address, state }
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    /// The variables of a GitHub job that this event started.
    pub(crate) fn github(&self, place: &Place, name: &str, event: &Value) -> Vec<(&'static str, String)> {
        place.write("event.json", &event.to_string());
        let path = |name: &str| place.path(name).display().to_string();
        vec![
            ("GITHUB_ACTIONS", "true".into()),
            ("GITHUB_API_URL", format!("http://{}", self.address)),
            ("GITHUB_SERVER_URL", "https://github.com".into()),
            ("GITHUB_REPOSITORY", "o/r".into()),
            ("GITHUB_EVENT_NAME", name.into()),
            ("GITHUB_EVENT_PATH", path("event.json")),
            ("GITHUB_SHA", "b".repeat(40)),
            ("GITHUB_WORKFLOW", "ci".into()),
            ("GITHUB_JOB", "perf".into()),
            ("GITHUB_RUN_ID", "900".into()),
            ("GITHUB_RUN_NUMBER", "12".into()),
            ("GITHUB_STEP_SUMMARY", path("step-summary.md")),
            ("GITHUB_OUTPUT", path("step-output")),
            ("GITHUB_TOKEN", TOKEN.into()),
        ]
    }

    /// The variables of a GitLab job of merge request 7.
    pub(crate) fn gitlab(&self) -> Vec<(&'static str, String)> {
        vec![
            ("GITLAB_CI", "true".into()),
            ("CI_API_V4_URL", format!("http://{}/api/v4", self.address)),
            ("CI_PROJECT_ID", "5".into()),
            ("CI_PIPELINE_SOURCE", "merge_request_event".into()),
            ("CI_MERGE_REQUEST_IID", "7".into()),
            ("CI_MERGE_REQUEST_PROJECT_ID", "5".into()),
            ("CI_MERGE_REQUEST_SOURCE_PROJECT_ID", "5".into()),
            ("CI_COMMIT_SHA", "a".repeat(40)),
            ("CI_JOB_NAME", "perf".into()),
            ("CI_PIPELINE_ID", "900".into()),
            ("CI_JOB_URL", "https://gitlab.example/job/1".into()),
            ("CI_JOB_TOKEN", JOB_TOKEN.into()),
        ]
    }
}

pub(crate) const TOKEN: &str = "ghs_planted_forge_token";
pub(crate) const JOB_TOKEN: &str = "glcbt-planted-job-token";

/// A pull request's event: of a branch, or of a fork.
pub(crate) fn pull_request(head_repository: &str) -> Value {
    json!({
        "number": 7,
        "pull_request": {
            "number": 7,
            "head": {"sha": "a".repeat(40), "ref": "change", "repo": {"full_name": head_repository}},
            "base": {"sha": "b".repeat(40), "ref": "main", "repo": {"full_name": "o/r"}},
        },
        "repository": {"full_name": "o/r"},
    })
}

fn respond(state: &mut State, request: &str, stream: &mut TcpStream) {
    state.log.push(request.to_owned());
    let (head, body) = request.split_once("\r\n\r\n").unwrap();
    let line = head.lines().next().unwrap();
    let mut words = line.split(' ');
    let (method, target) = (words.next().unwrap(), words.next().unwrap());
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let body: Value = serde_json::from_str(body).unwrap_or(Value::Null);
    let asked = format!("{method} {path}");
    let fault = state.faults.iter_mut().find(|fault| fault.times > 0 && asked.starts_with(fault.of));
    let fault = fault.map(|fault| {
        fault.times -= 1;
        *fault
    });
    let (mut status, mut said) = match fault {
        Some(fault) if !fault.takes_effect => (fault.status, json!({"message": "a fault that was asked for"})),
        _ => carry_out(state, method, path, query, &body),
    };
    if let Some(fault) = fault {
        (status, said) = (fault.status, json!({"message": "a fault that was asked for"}));
    }
    let content = if status.starts_with("204") { String::new() } else { said.to_string() };
    let next = more(state, method, path, query).map_or_else(String::new, |page| {
        let host = head.lines().find_map(|line| line.strip_prefix("host: ")).unwrap();
        format!("link: <http://{host}{path}?per_page={}&page={page}>; rel=\"next\"\r\n", size(query))
    });
    answer(stream, &format!("{status}\r\n{next}x-fake: forge"), "application/json", &content);
}

/// The page after the one that was asked for, where there is more.
fn more(state: &State, method: &str, path: &str, query: &str) -> Option<usize> {
    let is_list = method == "GET" && (path.ends_with("/comments") || path.ends_with("/notes"));
    (is_list && state.posts.len() > page(query) * size(query)).then(|| page(query) + 1)
}

fn of_query(query: &str, name: &str) -> Option<usize> {
    let value = query.split('&').find_map(|pair| pair.strip_prefix(name)?.strip_prefix('='));
    value.and_then(|value| value.parse().ok())
}

fn size(query: &str) -> usize {
    of_query(query, "per_page").unwrap_or(30).min(100)
}

fn page(query: &str) -> usize {
    of_query(query, "page").unwrap_or(1)
}

fn carry_out(state: &mut State, method: &str, path: &str, query: &str, body: &Value) -> (&'static str, Value) {
    let text = || body["body"].as_str().unwrap_or_default().to_owned();
    let number = |path: &str| path.rsplit('/').next().unwrap().parse::<u64>().unwrap_or(0);
    let gone = ("404 Not Found", json!({"message": "Not Found"}));
    let is_list = path.ends_with("/issues/7/comments") || path.ends_with("/merge_requests/7/notes");
    let is_post = path.contains("/issues/comments/") || path.contains("/merge_requests/7/notes/");
    match method {
        "GET" if path.ends_with("/user") && path.starts_with("/api/v4") => ("200 OK", json!({"id": 9, "username": US})),
        "GET" if path == "/user" => ("403 Forbidden", json!({"message": "Resource not accessible by integration"})),
        "GET" if is_list => {
            let before = (page(query) - 1) * size(query);
            let there: Vec<Value> = state.posts.iter().skip(before).take(size(query)).map(shown).collect();
            ("200 OK", Value::from(there))
        }
        "POST" if is_list => {
            let id = state.post(US, &text());
            let post = state.posts.iter().find(|post| post.id == id).unwrap();
            ("201 Created", shown(post))
        }
        "PATCH" | "PUT" if is_post => match state.posts.iter_mut().find(|post| post.id == number(path)) {
            Some(post) => {
                post.body = text();
                ("200 OK", shown(post))
            }
            None => gone,
        },
        "DELETE" if is_post => {
            state.posts.retain(|post| post.id != number(path));
            ("204 No Content", Value::Null)
        }
        "POST" if path.ends_with("/check-runs") => {
            state.last += 1;
            let id = state.last;
            state.checks.insert(id, body.clone());
            ("201 Created", json!({"id": id, "html_url": "https://github.com/o/r/runs/1"}))
        }
        "PATCH" if path.contains("/check-runs/") => match state.checks.get_mut(&number(path)) {
            Some(check) => {
                for (name, value) in body.as_object().unwrap() {
                    check[name] = value.clone();
                }
                ("200 OK", json!({"id": number(path), "html_url": "https://github.com/o/r/runs/1"}))
            }
            None => gone,
        },
        "GET" if path.contains("/pulls") => ("200 OK", json!([])),
        _ => gone,
    }
}

fn shown(post: &Posted) -> Value {
    let id = if post.author == US { 9 } else { 3 };
    json!({
        "id": post.id,
        "body": post.body,
        "html_url": format!("https://github.com/o/r/pull/7#issuecomment-{}", post.id),
        "user": {"login": post.author, "id": id, "type": if post.author.ends_with("[bot]") { "Bot" } else { "User" }},
        "author": {"id": id, "username": post.author},
        "system": false,
    })
}
