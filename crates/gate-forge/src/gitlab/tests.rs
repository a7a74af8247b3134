use std::sync::{Arc, Mutex};

use gate_model::Redactor;
use serde_json::Value;
use tokio::time::Instant;

use super::fake::{Asked, Reply, Server};
use super::*;
use crate::{Event, Forge};

const SECRET: &str = "glpat-s3cret-token";
const US: u64 = 9;
const NOTES: &str = "/api/v4/projects/5/merge_requests/7/notes";

/// GitLab with one merge request: its notes, and answers to give first, each by what the asked line starts with.
#[derive(Default)]
struct GitLab {
    notes: Vec<(u64, u64, String)>,
    faults: Vec<(&'static str, Reply)>,
    /// Whether pages are told by `Link` alone, to this origin.
    link: Option<String>,
}

impl GitLab {
    fn answer(&mut self, asked: &Asked) -> Reply {
        let line = format!("{} {}", asked.method, asked.path);
        if let Some(at) = self.faults.iter().position(|(start, _)| line.starts_with(start)) {
            return self.faults.remove(at).1;
        }
        if asked.header("private-token") != Some(SECRET) {
            return Reply::new(401, r#"{"message":"401 Unauthorized"}"#);
        }
        let json = |status, value: Value| Reply::new(status, value.to_string());
        let body = || serde_json::from_slice::<Value>(&asked.body).unwrap()["body"].as_str().unwrap().to_owned();
        let (path, query) = asked.path.split_once('?').unwrap_or((&asked.path, ""));
        let id: Option<u64> = path.strip_prefix(NOTES).and_then(|rest| rest.strip_prefix('/')?.parse().ok());
        match (asked.method.as_str(), path, id) {
            ("GET", "/api/v4/user", _) => json(200, json!({"id": US, "username": "project_5_bot"})),
            ("GET", "/api/v4/projects/5/merge_requests/7", _) => {
                json(200, json!({"iid": 7, "web_url": "https://gitlab.example/acme/chat/-/merge_requests/7"}))
            }
            ("GET", NOTES, _) => self.page(query),
            ("POST", NOTES, _) => {
                let id = self.notes.last().map_or(1, |(id, ..)| id + 1);
                self.notes.push((id, US, body()));
                json(201, note(self.notes.last().unwrap()))
            }
            ("PUT", _, Some(id)) if let Some(of) = self.notes.iter_mut().find(|note| note.0 == id) => {
                of.2 = body();
                json(200, note(of))
            }
            ("DELETE", _, Some(id)) if self.notes.iter().any(|note| note.0 == id) => {
                self.notes.retain(|note| note.0 != id);
                Reply::new(204, "")
            }
            _ => Reply::new(404, r#"{"message":"404 Not Found"}"#),
        }
    }

    fn page(&self, query: &str) -> Reply {
        let query: Vec<(String, String)> = url::form_urlencoded::parse(query.as_bytes()).into_owned().collect();
        let of = |name: &str| query.iter().find(|(named, _)| named == name).map(|(_, value)| value.as_str()).unwrap();
        assert_eq!((of("sort"), of("order_by"), of("per_page")), ("asc", "created_at", "100"));
        let number: usize = of("page").parse().unwrap();
        let notes: Vec<Value> = self.notes.iter().skip((number - 1) * 100).take(100).map(note).collect();
        let is_last = number * 100 >= self.notes.len();
        let reply = Reply::new(200, Value::from(notes).to_string());
        let next = number + 1;
        match &self.link {
            Some(_) if is_last => reply,
            Some(origin) => {
                let query = "order_by=created_at&sort=asc&per_page=100&page=";
                reply.with("link", format!("<{origin}{NOTES}?{query}{next}>; rel=\"next\""))
            }
            None => reply.with("x-next-page", if is_last { String::new() } else { next.to_string() }),
        }
    }
}

fn note((id, author, body): &(u64, u64, String)) -> Value {
    json!({"id": id, "body": body, "author": {"id": author, "username": if *author == US { "project_5_bot" } else { "u" }}, "system": body.starts_with("system")})
}

fn job(origin: &str) -> Job {
    Job {
        forge: Forge::GitLab,
        event: Event::MergeRequest,
        api: format!("{origin}/api/v4"),
        repository: "5".to_owned(),
        head: None,
        base: None,
        trusted: None,
        request: Some(7),
        head_branch: None,
        from_fork: false,
        key: "gate".to_owned(),
        run: None,
        page: None,
    }
}

async fn open(server: &Server, repository: &str, token: &str) -> Result<Notes, ForgeError> {
    let token = Secret::new(token);
    let retry = Retry::new(Instant::now() + Duration::from_secs(60), Redactor::new([&token]));
    let job = Job { repository: repository.to_owned(), ..job(&server.origin) };
    Notes::open(Client::new().unwrap(), &job, 7, &token, retry).await
}

async fn start(gitlab: GitLab) -> (Server, Arc<Mutex<GitLab>>) {
    let state = Arc::new(Mutex::new(gitlab));
    let gitlab = Arc::clone(&state);
    (Server::start(move |asked| gitlab.lock().unwrap().answer(asked)).await, state)
}

fn foreign(number: u64) -> Vec<(u64, u64, String)> {
    (1..=number).map(|id| (id, 1, format!("foreign {id}"))).collect()
}

#[tokio::test]
async fn a_note_is_created_found_behind_130_others_updated_and_deleted() {
    let (server, state) = start(GitLab { notes: foreign(130), ..GitLab::default() }).await;
    state.lock().unwrap().notes.push((131, US, "system note".to_owned()));
    let notes = open(&server, "5", SECRET).await.unwrap();
    assert_eq!(notes.name(), "merge request 7");
    let text = "<!-- gate:comment job=gate -->\n\n\"é\" 😀";
    let page = Some("https://gitlab.example/acme/chat/-/merge_requests/7#note_132".to_owned());
    let created = Hanging { id: 132, body: text.to_owned(), is_ours: true, page };
    assert_eq!(notes.create(text).await.unwrap(), created);
    let listed = notes.list().await.unwrap();
    assert_eq!(listed.iter().map(|note| note.id).collect::<Vec<_>>(), (1..=132).collect::<Vec<_>>());
    assert_eq!(listed.iter().filter(|note| note.is_ours).collect::<Vec<_>>(), [&created]);
    let updated = Hanging { body: "green".to_owned(), ..created };
    assert_eq!(notes.update(132, "green").await.unwrap(), updated);
    assert_eq!(state.lock().unwrap().notes.last().unwrap().2, "green");
    notes.delete(132).await.unwrap();
    notes.delete(132).await.expect("what is gone was deleted");
    assert_eq!(state.lock().unwrap().notes.len(), 131);
    assert!(server.asked().iter().all(|asked| !asked.path.contains(SECRET)));
}

#[tokio::test]
async fn pages_by_link_are_followed_to_the_same_server_only() {
    let (server, state) = start(GitLab { notes: foreign(101), ..GitLab::default() }).await;
    state.lock().unwrap().link = Some(server.origin.clone());
    let notes = open(&server, "5", SECRET).await.unwrap();
    assert_eq!(notes.list().await.unwrap().len(), 101);

    let (other, _) = start(GitLab::default()).await;
    state.lock().unwrap().link = Some(other.origin.clone());
    let refused = notes.list().await.unwrap_err().to_string();
    assert!(refused.starts_with("list the notes on merge request 7: ") && refused.contains("another server"));
    assert_eq!(other.log(), [""; 0]);
}

#[tokio::test]
async fn a_project_s_path_is_one_part_of_the_address() {
    let (server, _) = start(GitLab::default()).await;
    let notes = open(&server, "acme/../chat", SECRET).await.unwrap();
    assert_eq!(notes.page, None);
    let refused = notes.list().await.unwrap_err();
    assert!(matches!(&refused, ForgeError::Refused { refusal, .. } if refusal.status == 404), "{refused}");
    assert!(refused.hint().unwrap().contains("GITLAB_TOKEN"));
    let paths: Vec<_> = server.asked().iter().map(|asked| asked.path.split('?').next().unwrap().to_owned()).collect();
    let request = "/api/v4/projects/acme%2F..%2Fchat/merge_requests/7";
    assert_eq!(paths, ["/api/v4/user", request, &format!("{request}/notes")]);
}

#[tokio::test]
async fn refusals_are_told_with_advice_and_without_the_token() {
    let (server, state) = start(GitLab::default()).await;
    let refused = open(&server, "5", "glpat-of-yesterday").await.err().unwrap();
    assert_eq!(refused.to_string(), "ask GitLab for the user of GITLAB_TOKEN: 401 401 Unauthorized");
    assert!(refused.hint().unwrap().contains("expired"));
    let refused = open(&server, "5", "two\nlines").await.err().unwrap();
    assert!(matches!(&refused, ForgeError::NoToken { .. }) && !refused.to_string().contains("two"));

    let notes = open(&server, "5", SECRET).await.unwrap();
    let echo = Reply::new(403, format!(r#"{{"message":"403 Forbidden for {SECRET}"}}"#));
    state.lock().unwrap().faults.push(("POST", echo));
    let refused = notes.create("text").await.unwrap_err();
    assert!(!format!("{refused} {refused:?}").contains(SECRET), "{refused}");
    assert!(refused.hint().unwrap().contains("Reporter"));
    state.lock().unwrap().faults.push(("GET /api/v4/projects/5/merge_requests/7/notes", Reply::new(200, "[{}]")));
    assert!(matches!(notes.list().await, Err(ForgeError::Unreachable { .. })));
}

#[tokio::test]
async fn a_create_is_repeated_after_a_limit_and_not_after_a_bad_gateway() {
    let (server, state) = start(GitLab::default()).await;
    let notes = open(&server, "5", SECRET).await.unwrap();
    let limit = Reply::new(429, "Retry later").with("retry-after", "0");
    state.lock().unwrap().faults.push(("POST", limit));
    assert_eq!(notes.create("text").await.unwrap().id, 1);
    state.lock().unwrap().faults.push(("POST", Reply::new(502, "")));
    let refused = notes.create("text").await.unwrap_err();
    assert!(matches!(refused, ForgeError::Refused { refusal, .. } if refusal.status == 502));
    assert_eq!(server.log().iter().filter(|line| line.starts_with("POST")).count(), 3);
    assert_eq!(state.lock().unwrap().notes.len(), 1);
    state.lock().unwrap().faults.push(("PUT", Reply::new(502, "")));
    assert_eq!(notes.update(1, "again").await.unwrap().body, "again");
}
