//! A merge request's notes on GitLab.
//!
//! Source: GitLab's API v4, "Notes" and "Pagination".

use std::future::Future;
use std::time::Duration;

use ::http::header::CONTENT_TYPE;
use ::http::{HeaderName, HeaderValue, Method, Request};
use bytes::Bytes;
use gate_model::Secret;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::json;
use url::Url;

use crate::board::{Board, Hanging};
use crate::http::{API_ANSWER, Answer, Client, is_same_origin};
use crate::retry::Retry;
use crate::{ForgeError, Job};

/// The header of a personal, project or group access token.
pub(crate) const TOKEN: HeaderName = HeaderName::from_static("private-token");
/// The page after this one; empty on the last.
const NEXT_PAGE: &str = "x-next-page";
/// How many notes a page has: the most that GitLab gives.
const PER_PAGE: usize = 100;
/// The most bytes of such a page, whose notes may have a million characters each.
const PAGE: usize = 128 << 20;
/// How many pages are read at most: 20,000 notes.
const PAGES: usize = 200;

/// The notes of a merge request, in the name of a token's user.
pub(crate) struct Notes {
    client: Client,
    retry: Retry,
    token: HeaderValue,
    /// The API's root.
    api: Url,
    project: String,
    request: u64,
    /// Whose notes are ours.
    user: User,
    /// The merge request's own page.
    page: Option<Url>,
}

#[derive(Default, PartialEq, Eq, Deserialize)]
struct User {
    id: u64,
    username: String,
}

#[derive(Deserialize)]
struct MergeRequest {
    web_url: Option<String>,
}

#[derive(Deserialize)]
struct Note {
    id: u64,
    body: String,
    author: Option<User>,
    /// Whether GitLab wrote it, about something that happened.
    #[serde(default)]
    system: bool,
}

impl Notes {
    /// Asks who the token's user is, and for the page of the job's merge request. `request` is its number in the job's
    /// repository.
    ///
    /// # Errors
    /// [`ForgeError::NoToken`] where the token is none that can be sent; how GitLab refused to say who its user is.
    pub(crate) async fn open(
        client: Client,
        job: &Job,
        request: u64,
        token: &Secret,
        retry: Retry,
    ) -> Result<Self, ForgeError> {
        let what = "ask GitLab for the user of GITLAB_TOKEN";
        let api = Url::parse(&format!("{}/", job.api)).map_err(|error| retry.unreadable(what, &error.to_string()))?;
        let mut notes = Self {
            token: header(token)?,
            project: job.repository.clone(),
            client,
            retry,
            api,
            request,
            user: User::default(),
            page: None,
        };
        let user = notes.ask(what, Method::GET, notes.at(&["user"]), None).await?;
        notes.user = notes.read(what, &user)?;
        notes.page = notes.find_page().await;
        Ok(notes)
    }

    /// The merge request's page, which its notes are on; without it they are delivered all the same.
    async fn find_page(&self) -> Option<Url> {
        let what = format!("read {}", self.name());
        let url = self.of_request(&[]);
        let answer = self.retry.once(&what, |within| self.send(Method::GET, &url, None, API_ANSWER, within)).await;
        let request: MergeRequest = serde_json::from_slice(&answer.ok()?.body).ok()?;
        let page = Url::parse(&request.web_url?).ok()?;
        matches!(page.scheme(), "http" | "https").then_some(page)
    }

    /// An address below the API's root; what the parts hold is no address, whatever it looks like.
    fn at(&self, parts: &[&str]) -> Url {
        let mut url = self.api.clone();
        if let Ok(mut path) = url.path_segments_mut() {
            path.pop_if_empty().extend(parts);
        }
        url
    }

    fn of_request(&self, parts: &[&str]) -> Url {
        let number = self.request.to_string();
        self.at(&[&["projects", &self.project, "merge_requests", &number], parts].concat())
    }

    fn notes(&self) -> Url {
        self.of_request(&["notes"])
    }

    fn note(&self, id: u64) -> Url {
        self.of_request(&["notes", &id.to_string()])
    }

    /// Asks for what may be asked for twice.
    async fn ask(&self, what: &str, method: Method, url: Url, body: Option<&str>) -> Result<Answer, ForgeError> {
        let most = if method == Method::GET { PAGE } else { API_ANSWER };
        let answer = self.retry.repeat(what, |within| self.send(method.clone(), &url, body, most, within)).await;
        answer.map_err(advised)
    }

    fn send(
        &self,
        method: Method,
        url: &Url,
        body: Option<&str>,
        most: usize,
        within: Duration,
    ) -> impl Future<Output = Result<Answer, String>> + use<> {
        let json = body.map(|body| json!({ "body": body }).to_string()).unwrap_or_default();
        let request = Request::builder().method(method).uri(url.as_str()).header(TOKEN, self.token.clone());
        let request = if json.is_empty() { request } else { request.header(CONTENT_TYPE, "application/json") };
        let request = request.body(Bytes::from(json)).map_err(|error| error.to_string());
        let client = self.client.clone();
        async move { client.send(request?, most, within).await }
    }

    fn read<T: DeserializeOwned>(&self, what: &str, answer: &Answer) -> Result<T, ForgeError> {
        let why = |error: serde_json::Error| format!("what GitLab answered is not as its API documents it: {error}");
        serde_json::from_slice(&answer.body).map_err(|error| self.retry.unreadable(what, &why(error)))
    }

    fn hanging(&self, note: Note) -> Hanging {
        let page = self.page.clone().map(|mut page| {
            page.set_fragment(Some(&format!("note_{}", note.id)));
            page.into()
        });
        let is_ours = !note.system && note.author.is_some_and(|author| author == self.user);
        Hanging { id: note.id, body: note.body, is_ours, page }
    }

    /// The page after the one that was asked for, at the same place.
    fn next(&self, what: &str, asked: &Url, answer: &Answer) -> Result<Option<Url>, ForgeError> {
        if let Some(number) = answer.headers.get(NEXT_PAGE) {
            let number = number.to_str().unwrap_or_default().trim();
            let next = number.parse::<u32>().ok().map(|number| page_of(self.notes(), number));
            return Ok(next);
        }
        match answer.next_page(asked) {
            // A token goes nowhere else, and half of the notes are none.
            Some(next) if !is_same_origin(&self.api, &next) => {
                Err(self.retry.unreadable(what, "GitLab says that the next page of notes is on another server"))
            }
            next => Ok(next),
        }
    }
}

impl Board for Notes {
    fn name(&self) -> String {
        format!("merge request {}", self.request)
    }

    async fn list(&self) -> Result<Vec<Hanging>, ForgeError> {
        let what = format!("list the notes on {}", self.name());
        let mut found = Vec::new();
        let mut url = page_of(self.notes(), 1);
        for _ in 0..PAGES {
            let answer = self.ask(&what, Method::GET, url.clone(), None).await?;
            let notes: Vec<Note> = self.read(&what, &answer)?;
            found.extend(notes.into_iter().map(|note| self.hanging(note)));
            match self.next(&what, &url, &answer)? {
                Some(next) => url = next,
                None => return Ok(found),
            }
        }
        Err(self.retry.unreadable(&what, &format!("there are more than {} of them", PAGES * PER_PAGE)))
    }

    async fn create(&self, body: &str) -> Result<Hanging, ForgeError> {
        let what = format!("create the note on {}", self.name());
        let url = self.notes();
        let send = |within| self.send(Method::POST, &url, Some(body), API_ANSWER, within);
        let answer = self.retry.once(&what, send).await.map_err(advised)?;
        Ok(self.hanging(self.read(&what, &answer)?))
    }

    async fn update(&self, id: u64, body: &str) -> Result<Hanging, ForgeError> {
        let what = format!("update note {id} on {}", self.name());
        let answer = self.ask(&what, Method::PUT, self.note(id), Some(body)).await?;
        Ok(self.hanging(self.read(&what, &answer)?))
    }

    async fn delete(&self, id: u64) -> Result<(), ForgeError> {
        let what = format!("delete note {id} on {}", self.name());
        match self.ask(&what, Method::DELETE, self.note(id), None).await {
            // Gone is what it should be.
            Err(ForgeError::Refused { refusal, .. }) if refusal.status == 404 => Ok(()),
            answer => answer.map(drop),
        }
    }
}

fn page_of(mut notes: Url, number: u32) -> Url {
    let per_page = PER_PAGE.to_string();
    let sorted = [("order_by", "created_at"), ("sort", "asc"), ("per_page", &per_page)];
    notes.query_pairs_mut().extend_pairs(sorted).append_pair("page", &number.to_string());
    notes
}

/// A token as a header's value, which no log shows.
pub(crate) fn header(token: &Secret) -> Result<HeaderValue, ForgeError> {
    let mut value = HeaderValue::from_str(token.expose()).map_err(|_| ForgeError::NoToken {
        what: "send the token to GitLab".to_owned(),
        why: "it holds symbols that no header can".to_owned(),
        hint: "set the variable to the token alone, in one line".to_owned(),
    })?;
    value.set_sensitive(true);
    Ok(value)
}

/// A refusal with what may be done about it.
fn advised(error: ForgeError) -> ForgeError {
    let ForgeError::Refused { what, refusal, hint } = error else { return error };
    let advice = match refusal.status {
        401 => Some("GITLAB_TOKEN has expired, was revoked, or is of another kind: use a project access token"),
        403 => Some("give GITLAB_TOKEN the scope `api` and at least the role Reporter in the merge request's project"),
        404 => Some("GITLAB_TOKEN may not see that project: make its token there, or in a group above it"),
        _ => None,
    };
    ForgeError::Refused { what, refusal, hint: hint.or_else(|| advice.map(str::to_owned)) }
}

#[cfg(test)]
pub(crate) mod fake;
#[cfg(test)]
mod tests;
