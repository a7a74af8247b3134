use serde_json::json;

use super::*;
use crate::Event;
use crate::gitlab::fake::{Asked, Reply, Server};

const PATIENCE: Duration = Duration::from_secs(30);

fn job(forge: Forge, api: String) -> Job {
    Job {
        forge,
        event: Event::Push,
        api,
        repository: "acme/chat".to_owned(),
        head: None,
        base: None,
        trusted: None,
        request: None,
        head_branch: None,
        from_fork: false,
        key: "perf/gate".to_owned(),
        run: None,
        page: None,
    }
}

fn tokens() -> Variables {
    let pairs =
        [("GITHUB_TOKEN", "ghs_hub-s3cret"), ("GITLAB_TOKEN", "glpat-s3cret"), ("CI_JOB_TOKEN", "glcbt-s3cret")];
    pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).into()
}

async fn fetch_as(url: &str, job: Option<Job>) -> Result<Fetched, ForgeError> {
    let url = url.to_owned();
    tokio::task::spawn_blocking(move || fetch(&url, job.as_ref(), &tokens(), PATIENCE, || false)).await.unwrap()
}

fn credentials(asked: &Asked) -> Vec<&str> {
    ["authorization", "job-token", "private-token"].iter().filter_map(|name| asked.header(name)).collect()
}

fn file(name: &str, bytes: &[u8]) -> Fetched {
    Fetched::File { name: name.to_owned(), bytes: bytes.to_vec() }
}

#[tokio::test]
async fn github_s_redirect_to_its_storage_carries_no_token() {
    let storage = Server::start(|_| Reply::new(200, &b"PK\x03\x04\x00\xff"[..])).await;
    let to = format!("{}/blob?signature=s3cret", storage.origin);
    let api = Server::start(move |asked| match asked.path.as_str() {
        "/repos/acme/chat/actions/artifacts/1/zip" => {
            Reply::new(307, "").with("location", "/repositories/5/artifacts/1/zip")
        }
        _ => Reply::new(302, "").with("location", &*to),
    })
    .await;
    let url = format!("{}/repos/acme/chat/actions/artifacts/1/zip", api.origin);
    let got = fetch_as(&url, Some(job(Forge::GitHub, api.origin.clone()))).await;
    assert_eq!(got, Ok(file("zip", b"PK\x03\x04\x00\xff")));
    let asked = api.asked();
    assert_eq!(asked.iter().map(credentials).collect::<Vec<_>>(), [["Bearer ghs_hub-s3cret"]; 2]);
    assert_eq!(storage.asked().iter().map(credentials).collect::<Vec<_>>(), [[""; 0]]);
    assert_eq!(storage.log(), ["GET /blob?signature=s3cret"]);
}

#[tokio::test]
async fn a_token_that_was_left_behind_does_not_come_back() {
    let home = Server::start(|asked| match asked.path.as_str() {
        "/file" => Reply::new(200, "{}"),
        away => Reply::new(302, "").with("location", away.strip_prefix("/to/").unwrap()),
    })
    .await;
    let back = format!("{}/file", home.origin);
    let other = Server::start(move |_| Reply::new(302, "").with("location", &*back)).await;
    let url = format!("{}/to/{}/", home.origin, other.origin);
    let got = fetch_as(&url, Some(job(Forge::GitHub, home.origin.clone()))).await.unwrap();
    assert!(matches!(got, Fetched::File { bytes, .. } if bytes == b"{}"));
    let asked = home.asked();
    assert_eq!(asked.iter().map(|asked| credentials(asked).len()).collect::<Vec<_>>(), [1, 0]);
    assert_eq!(credentials(&other.asked()[0]), [""; 0]);
}

#[tokio::test]
async fn another_server_and_a_local_run_get_no_token() {
    let server = Server::start(|_| Reply::new(200, "{}")).await;
    let url = format!("{}/a/b/base.json?x=y", server.origin);
    for job in [None, Some(job(Forge::GitHub, "https://api.github.com".to_owned()))] {
        assert_eq!(fetch_as(&url, job).await, Ok(file("base.json", b"{}")));
    }
    // Another port is another origin.
    let port: u16 = server.origin.rsplit(':').next().unwrap().parse().unwrap();
    let near = format!("http://127.0.0.1:{}/api/v4", port ^ 1);
    assert_eq!(fetch_as(&url, Some(job(Forge::GitLab, near))).await, Ok(file("base.json", b"{}")));
    assert!(server.asked().iter().all(|asked| credentials(asked).is_empty()));
}

#[tokio::test]
async fn gitlab_is_shown_the_job_s_token_and_then_the_project_s() {
    let server = Server::start(|asked| match asked.header("private-token") {
        Some("glpat-s3cret") => Reply::new(200, "{}"),
        _ => Reply::new(404, json!({"message": "404 Project Not Found"}).to_string()),
    })
    .await;
    let path = "/api/v4/projects/5/jobs/artifacts/main/download?job=gate";
    let job = job(Forge::GitLab, format!("{}/api/v4", server.origin));
    let got = fetch_as(&format!("{}{path}", server.origin), Some(job)).await;
    assert_eq!(got, Ok(file("download", b"{}")));
    let asked = server.asked();
    assert_eq!(asked.iter().map(credentials).collect::<Vec<_>>(), [["glcbt-s3cret"], ["glpat-s3cret"]]);
    assert_eq!(asked[0].path, path);
}

#[tokio::test]
async fn what_is_gone_says_why_and_what_is_refused_fails() {
    let server = Server::start(|asked| {
        let status = asked.path[1..4].parse().unwrap();
        Reply::new(status, json!({"message": "words ghs_hub-s3cret"}).to_string())
    })
    .await;
    let on = |path: &str| {
        let (url, job) = (format!("{}/{path}", server.origin), job(Forge::GitHub, server.origin.clone()));
        async move { fetch_as(&url, Some(job)).await }
    };
    let Ok(Fetched::Gone { why }) = on("404/x").await else { panic!("it is not gone") };
    assert!(why.contains("404 words ***") && why.contains("`actions: read`"), "{why}");
    let Ok(Fetched::Gone { why }) = on("410/x").await else { panic!("it is not gone") };
    assert!(why.contains("410") && why.contains("expired"), "{why}");
    let refused = on("401/x?signature=s3cret").await.unwrap_err();
    let told = format!("{refused} {refused:?}");
    assert!(told.contains("/401/x: 401 words ***") && !told.contains("s3cret"), "{told}");
    assert!(refused.hint().is_some());
    assert_eq!(server.asked().len(), 3);
}

#[tokio::test]
async fn redirects_end_and_answers_are_whole() {
    let server = Server::start(|asked| match asked.path.as_str() {
        "/short" => Reply { claims: Some(10), ..Reply::new(200, "{}") },
        "/file" => Reply::new(302, "").with("location", "file:///etc/passwd"),
        "/slow" => Reply::new(503, "").with("retry-after", "3600"),
        path => Reply::new(302, "").with("location", format!("{path}x")),
    })
    .await;
    let refused = fetch_as(&format!("{}/loop", server.origin), None).await.unwrap_err().to_string();
    assert!(refused.ends_with("/loop: there are more than 5 redirects"), "{refused}");
    assert_eq!(server.asked().len(), 6);
    let refused = fetch_as(&format!("{}/file", server.origin), None).await.unwrap_err().to_string();
    assert!(refused.contains("no https:// URL"), "{refused}");
    assert!(fetch_as(&format!("{}/slow", server.origin), None).await.is_err());
    let short = format!("{}/short", server.origin);
    let soon = move || fetch(&short, None, &tokens(), Duration::from_millis(900), || false);
    let refused = tokio::task::spawn_blocking(soon).await.unwrap().unwrap_err().to_string();
    assert!(refused.contains("broke off"), "{refused}");
}

#[test]
fn addresses_that_cannot_be_used_are_refused_without_being_shown() {
    for url in ["https://user:s3cret@host/x", "https://s3cret@host/x", "ftp://host/s3cret", "s3cret", "https://"] {
        let refused = fetch(url, None, &tokens(), PATIENCE, || false).unwrap_err();
        assert!(!format!("{refused:?}").contains("s3cret"), "{refused:?}");
    }
}
