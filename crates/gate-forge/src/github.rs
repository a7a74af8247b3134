//! GitHub's API, on github.com and GitHub Enterprise Servers, in the name of a token.
//!
//! octocrab makes the requests; they go out by the crate's own client, whose answers are read raw: octocrab's errors say
//! nothing of the status and the headers that tell when to try again.

mod comments;
mod find;
mod hint;
mod transport;

use std::time::Duration;

use ::http::{Method, Request};
use bytes::Bytes;
use gate_model::Secret;
use http_body_util::BodyExt;
use octocrab::Octocrab;
use serde::de::DeserializeOwned;
use serde_json::Value;
use url::Url;

use crate::http::{Answer, Client, is_same_origin};
use crate::retry::Retry;
use crate::{ForgeError, Job};

pub(crate) use comments::Comments;
pub(crate) use find::Found;
use hint::Hints;
pub(crate) use hint::Permission;
use transport::Transport;

/// How often an answer may send a request on to another address.
const REDIRECTS: usize = 3;
/// How many pages of a list are read.
const PAGES: usize = 100;

/// A repository on GitHub, in the name of a token.
#[derive(Clone)]
pub(crate) struct GitHub {
    crab: Octocrab,
    /// The API's root.
    api: Url,
    /// `OWNER/NAME`.
    repository: String,
    retry: Retry,
    hints: Hints,
}

/// What is asked of it.
pub(crate) struct Call<'c> {
    /// In words, such as `list the comments on pull request 7`.
    pub(crate) what: &'c str,
    pub(crate) method: Method,
    pub(crate) url: &'c Url,
    pub(crate) body: Option<Value>,
    /// What a token must be allowed for it.
    pub(crate) needs: Permission,
}

impl GitHub {
    /// Nothing is sent. To be called within a runtime.
    ///
    /// # Errors
    /// [`ForgeError::NoToken`] for a token that cannot be sent, [`ForgeError::Unreachable`] for an API that is no URL.
    pub(crate) fn new(client: Client, job: &Job, token: &Secret, retry: Retry) -> Result<Self, ForgeError> {
        let what = "reach GitHub's API";
        let url = Url::parse(&job.api).ok().filter(|url| url.has_host() && matches!(url.scheme(), "http" | "https"));
        let api = url.ok_or_else(|| retry.unreadable(what, &format!("`{}` is no URL of one", job.api)))?;
        let transport = Transport::new(client, api.clone(), token)?;
        let Ok(crab) =
            octocrab::OctocrabBuilder::new_empty().with_service(transport).with_auth(octocrab::AuthState::None).build();
        let hints = Hints { repository: job.repository.clone(), from_fork: job.from_fork };
        Ok(Self { crab, api, repository: job.repository.clone(), retry, hints })
    }

    /// An address in the repository; what the parts hold is escaped.
    pub(crate) fn in_repository(&self, parts: &[&str]) -> Url {
        let parts: Vec<&str> =
            ["repos"].into_iter().chain(self.repository.split('/')).chain(parts.iter().copied()).collect();
        self.at(&parts)
    }

    fn at(&self, parts: &[&str]) -> Url {
        let mut url = self.api.clone();
        if let Ok(mut path) = url.path_segments_mut() {
            path.pop_if_empty().extend(parts);
        }
        url
    }

    /// Asks for what may be asked twice.
    ///
    /// # Errors
    /// As with [`Retry::repeat`], with a hint.
    pub(crate) async fn ask(&self, call: Call<'_>) -> Result<Answer, ForgeError> {
        let answer = self.retry.repeat(call.what, |within| self.send(&call, within));
        answer.await.map_err(|error| self.hints.advise(error, call.needs))
    }

    /// Asks to create something, which is not repeated where it may have been created.
    ///
    /// # Errors
    /// As with [`Retry::once`], with a hint.
    pub(crate) async fn create(&self, call: Call<'_>) -> Result<Answer, ForgeError> {
        let answer = self.retry.once(call.what, |within| self.send(&call, within));
        answer.await.map_err(|error| self.hints.advise(error, call.needs))
    }

    async fn send(&self, call: &Call<'_>, within: Duration) -> Result<Answer, String> {
        let late = |_| format!("GitHub did not answer within {} s", within.as_secs_f64().ceil());
        tokio::time::timeout(within, self.follow(call)).await.map_err(late)?
    }

    /// Asks, and asks again as it is where a repository moved within the API's origin: GitHub wants that. An answer that
    /// leads elsewhere is handed back: the token is for this origin alone, and without it there is nothing to ask for.
    async fn follow(&self, call: &Call<'_>) -> Result<Answer, String> {
        let mut url = call.url.clone();
        let mut redirects = 0;
        loop {
            let answer = self.exchange(call.method.clone(), &url, call.body.as_ref()).await?;
            match answer.location(&url) {
                Some(to) if redirects < REDIRECTS && is_same_origin(&self.api, &to) => url = to,
                _ => return Ok(answer),
            }
            redirects += 1;
        }
    }

    async fn exchange(&self, method: Method, url: &Url, body: Option<&Value>) -> Result<Answer, String> {
        let builder = Request::builder().method(method).uri(url.as_str());
        let request = self.crab.build_request(builder, body).map_err(|error| transport::words(&error))?;
        let answer = self.crab.execute(request).await.map_err(|error| transport::words(&error))?;
        let (head, body) = answer.into_parts();
        let body: Bytes = body.collect().await.map_err(|error| transport::words(&error))?.to_bytes();
        Ok(Answer { status: head.status.as_u16(), headers: head.headers, body })
    }

    /// All items of a list, every page read: at most [`PAGES`].
    async fn list<T: DeserializeOwned>(&self, what: &str, first: Url, needs: Permission) -> Result<Vec<T>, ForgeError> {
        let mut url = first;
        url.query_pairs_mut().append_pair("per_page", "100");
        let mut items = Vec::new();
        for _ in 0..PAGES {
            let answer = self.ask(Call { what, method: Method::GET, url: &url, body: None, needs }).await?;
            items.extend(self.read::<Vec<T>>(what, &answer)?);
            match answer.next_page(&url) {
                None => return Ok(items),
                Some(next) if is_same_origin(&self.api, &next) => url = next,
                Some(next) => {
                    let to = next.origin().ascii_serialization();
                    let why = format!("the next page is said to be at {to}, where the token is not sent");
                    return Err(self.retry.unreadable(what, &why));
                }
            }
        }
        Err(self.retry.unreadable(what, &format!("there are more than {PAGES} pages of them")))
    }

    /// What an answer holds.
    ///
    /// # Errors
    /// [`ForgeError::Unreachable`] where it is something else.
    pub(crate) fn read<T: DeserializeOwned>(&self, what: &str, answer: &Answer) -> Result<T, ForgeError> {
        let why = |error: serde_json::Error| format!("what GitHub answered is not as its API documents it: {error}");
        serde_json::from_slice(&answer.body).map_err(|error| self.retry.unreadable(what, &why(error)))
    }
}
