//! A file that a forge, or any other server, keeps: a baseline that an earlier job left there.

use std::cell::RefCell;
use std::time::Duration;

use ::http::header::{ACCEPT, AUTHORIZATION};
use ::http::{HeaderName, HeaderValue, Request};
use bytes::Bytes;
use gate_model::{Redactor, Secret};
use tokio::time::Instant;
use url::Url;

use crate::courier::unless;
use crate::gitlab;
use crate::http::{Answer, Client, is_same_origin};
use crate::retry::Retry;
use crate::{Forge, ForgeError, Job, Variables, token_of};

/// The largest file that is fetched, in bytes: 256 MiB.
const LARGEST: usize = 256 << 20;
/// How many redirects are followed.
const REDIRECTS: usize = 5;
/// The header of a GitLab job's own token.
const JOB_TOKEN: HeaderName = HeaderName::from_static("job-token");

/// What became of a fetch that was answered.
#[derive(Clone, PartialEq, Eq)]
pub enum Fetched {
    /// The file.
    File {
        /// The last part of its address, for messages.
        name: String,
        /// All of it.
        bytes: Vec<u8>,
    },
    /// There is none, or none any more.
    Gone {
        /// What the server said, and what that may come from.
        why: String,
    },
}

impl std::fmt::Debug for Fetched {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::File { name, bytes } => write!(out, "File({name:?}, {} bytes)", bytes.len()),
            Self::Gone { why } => write!(out, "Gone({why:?})"),
        }
    }
}

/// A header that shows who asks.
type Credential = (HeaderName, HeaderValue);

/// Fetches a file of at most 256 MiB; `patience` is for all of it. The job's token goes along where the address has the
/// origin of its forge's API, and no further than that: a redirect to another origin, of which 5 are followed, carries
/// none. On GitHub that is `GITHUB_TOKEN` or `GH_TOKEN`, on GitLab `CI_JOB_TOKEN` and, where that may not,
/// `GITLAB_TOKEN`. It blocks, ends within 100 ms once `stopped` says so, and may not be called from within an asynchronous
/// runtime.
///
/// # Errors
/// Where the address cannot be used, the server refuses (404 and 410 are [`Fetched::Gone`]), there is no answer in time,
/// or it is too large.
pub fn fetch(
    url: &str,
    job: Option<&Job>,
    variables: &Variables,
    patience: Duration,
    stopped: impl Fn() -> bool,
) -> Result<Fetched, ForgeError> {
    let unusable = |why: &str| failed("fetch a baseline from a server", why);
    // Neither the reason nor the message shows it: it may hold a password.
    let asked = Url::parse(url).map_err(|error| unusable(&format!("its address is no URL ({error})")))?;
    if !matches!(asked.scheme(), "http" | "https") {
        return Err(unusable("its address is no http:// or https:// URL"));
    }
    if !asked.username().is_empty() || asked.password().is_some() {
        return Err(unusable("its address holds a user or a password, which would end up in logs; take them out"));
    }
    let what = format!("fetch the baseline from {}", shown(&asked));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| failed(&what, &error.to_string()))?;
    let fetched = runtime.block_on(unless(stopped, &what, fetched(&what, &asked, job, variables, patience)));
    // A name that is still being looked up keeps nobody waiting.
    runtime.shutdown_background();
    fetched
}

async fn fetched(
    what: &str,
    asked: &Url,
    job: Option<&Job>,
    variables: &Variables,
    patience: Duration,
) -> Result<Fetched, ForgeError> {
    let until = Instant::now() + patience;
    let job = job.filter(|job| Url::parse(&job.api).is_ok_and(|api| is_same_origin(&api, asked)));
    let secrets = job.map(|job| secrets(job, variables)).unwrap_or_default();
    let retry = Retry::new(until, Redactor::new(secrets.iter().map(|(_, secret)| secret)));
    let client = Client::new().map_err(|why| failed(what, &why))?;
    let mut credentials = secrets.iter().filter_map(|(name, secret)| Some((name.clone(), value(name, secret)?)));
    let mut credential = credentials.next();
    loop {
        let asking = Asking { what, client: &client, retry: &retry, until };
        let refusal = match asking.follow(asked.clone(), credential.as_ref()).await {
            Ok(answer) => {
                return Ok(Fetched::File { name: name(asked), bytes: Vec::from(answer.body) });
            }
            Err(ForgeError::Refused { refusal, .. }) => refusal,
            Err(error) => return Err(error),
        };
        if matches!(refusal.status, 401 | 403 | 404) {
            let next = credentials.next();
            if next.is_some() {
                credential = next;
                continue;
            }
        }
        let said = [refusal.status.to_string(), refusal.message.clone()].join(" ");
        return match refusal.status {
            404 => Ok(Fetched::Gone { why: format!("{} answers {}: {}", host(asked), said.trim(), unseen(job)) }),
            410 => Ok(Fetched::Gone { why: format!("{} answers {}: it has expired", host(asked), said.trim()) }),
            status => {
                let hint = matches!(status, 401 | 403).then(|| unseen(job).to_owned());
                Err(ForgeError::Refused { what: what.to_owned(), refusal, hint })
            }
        };
    }
}

/// Asks for one file.
struct Asking<'a> {
    what: &'a str,
    client: &'a Client,
    retry: &'a Retry,
    until: Instant,
}

impl Asking<'_> {
    /// The answer at the end of the redirects. The credential is for the origin of `url` alone: once that is left, it
    /// stays behind.
    async fn follow(&self, mut url: Url, mut credential: Option<&Credential>) -> Result<Answer, ForgeError> {
        for _ in 0..=REDIRECTS {
            let (answer, next) = self.get(&url, credential).await?;
            let Some(next) = next else { return Ok(answer) };
            if !matches!(next.scheme(), "http" | "https") || (url.scheme() == "https" && next.scheme() == "http") {
                return Err(failed(self.what, &format!("{} redirects to what is no https:// URL", host(&url))));
            }
            credential = credential.filter(|_| is_same_origin(&url, &next));
            url = next;
        }
        Err(failed(self.what, &format!("there are more than {REDIRECTS} redirects")))
    }

    /// One answer, and where it leads to.
    async fn get(&self, url: &Url, credential: Option<&Credential>) -> Result<(Answer, Option<Url>), ForgeError> {
        let next = RefCell::new(None);
        let send = |_| async {
            let mut request = Request::get(url.as_str()).header(ACCEPT, "*/*");
            if let Some((name, value)) = credential {
                request = request.header(name, value);
            }
            let request = request.body(Bytes::new()).map_err(|error| error.to_string())?;
            let left = self.until.saturating_duration_since(Instant::now());
            let mut answer = self.client.send(request, LARGEST, left).await?;
            let location = answer.location(url);
            if location.is_some() {
                // To be led on is what was asked for, as far as trying again goes.
                answer.status = 200;
            }
            next.replace(location);
            Ok(answer)
        };
        let answer = self.retry.repeat(self.what, send).await?;
        Ok((answer, next.into_inner()))
    }
}

/// What a job may show, most limited first.
fn secrets(job: &Job, variables: &Variables) -> Vec<(HeaderName, Secret)> {
    let token = token_of(job, variables).ok();
    match job.forge {
        Forge::GitHub => token.map(|token| (AUTHORIZATION, token)).into_iter().collect(),
        Forge::GitLab => {
            let own = variables.get("CI_JOB_TOKEN").filter(|token| !token.is_empty());
            let own = own.map(|token| (JOB_TOKEN, Secret::new(token.as_str())));
            own.into_iter().chain(token.map(|token| (gitlab::TOKEN, token))).collect()
        }
    }
}

/// What a header says; `None` where the token can be in none.
fn value(name: &HeaderName, secret: &Secret) -> Option<HeaderValue> {
    let scheme = if *name == AUTHORIZATION { "Bearer " } else { "" };
    let mut value = HeaderValue::from_str(&format!("{scheme}{}", secret.expose())).ok()?;
    value.set_sensitive(true);
    Some(value)
}

/// Why a file may not be there for this job.
fn unseen(job: Option<&Job>) -> &'static str {
    match job.map(|job| job.forge) {
        Some(Forge::GitHub) => "it is not there, or the token may not see it, which needs `actions: read`",
        Some(Forge::GitLab) => "it is not there, or the job's token may not see that project",
        None => "it is not there, or not for everyone; a token goes only to the forge that runs the job",
    }
}

fn failed(what: &str, why: &str) -> ForgeError {
    ForgeError::Unreachable { what: what.to_owned(), why: why.to_owned() }
}

/// An address without its query, which may sign it.
fn shown(url: &Url) -> String {
    let mut url = url.clone();
    url.set_query(None);
    url.set_fragment(None);
    url.into()
}

fn host(url: &Url) -> &str {
    url.host_str().unwrap_or("the server")
}

fn name(url: &Url) -> String {
    let last = url.path_segments().and_then(|mut parts| parts.rfind(|part| !part.is_empty()));
    last.unwrap_or(host(url)).to_owned()
}

#[cfg(test)]
mod tests;
