//! The one who delivers.

use std::future::Future;
use std::time::Duration;

use gate_model::{Redactor, Secret};
use tokio::runtime::{Builder, Runtime};
use tokio::time::Instant;

use crate::board::Board;
use crate::check_run::{self, CheckRun, Checked};
use crate::github::{Comments, Found, GitHub};
use crate::gitlab::Notes;
use crate::http::Client;
use crate::post::{CheckText, Comment, CommentPolicy, Conclusion, Delivery};
use crate::retry::Retry;
use crate::upsert::{Posted, upsert};
use crate::{Forge, ForgeError, Job};

/// What a check run is called that was not opened.
const CHECK: &str = "gate";
/// How often is asked whether to stop.
const GLANCE: Duration = Duration::from_millis(50);
/// The part of the patience that opening a check run may take: there is nothing to say yet.
const OPENING: u32 = 4;

/// Delivers a job's comment and check run, within a limit of time. Every call blocks.
pub struct Courier {
    job: Job,
    token: Secret,
    client: Client,
    /// What is left of it.
    patience: Duration,
    stopped: Box<dyn Fn() -> bool + Send>,
    /// `None` only while it is dropped.
    runtime: Option<Runtime>,
    /// The check run's name, and which one was opened.
    check: String,
    opened: Option<CheckRun>,
}

/// What became of a delivery.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Delivered {
    /// The comment's page, where it was created or updated.
    pub comment: Option<String>,
    /// The check run's page, where it was completed.
    pub check: Option<String>,
    /// Why a comment was left alone although nothing failed, in a line that fits "no comment: …".
    pub left: Option<String>,
    /// What was not delivered, and why.
    pub failed: Vec<ForgeError>,
}

impl Courier {
    /// Takes a job and its token ([`crate::token_of`]). Nothing is sent. All deliveries together take `patience` at most;
    /// they end within 100 ms once `stopped` says so.
    ///
    /// # Errors
    /// [`ForgeError::NoToken`] where it is empty; [`ForgeError::Unreachable`] where this machine cannot send at all.
    pub fn new(
        job: Job,
        token: Secret,
        patience: Duration,
        stopped: impl Fn() -> bool + Send + 'static,
    ) -> Result<Self, ForgeError> {
        let token = Secret::new(token.expose().trim());
        if token.expose().is_empty() {
            return Err(ForgeError::NoToken {
                what: "deliver to the forge".to_owned(),
                why: "the token is empty".to_owned(),
                hint: "give the job's step GITHUB_TOKEN, or GITLAB_TOKEN on GitLab".to_owned(),
            });
        }
        let failed = |why: String| ForgeError::Unreachable { what: "deliver to the forge".to_owned(), why };
        let client = Client::new().map_err(failed)?;
        let runtime = Builder::new_current_thread().enable_all().build().map_err(|error| failed(error.to_string()))?;
        let (stopped, runtime) = (Box::new(stopped), Some(runtime));
        Ok(Self { job, token, client, patience, stopped, runtime, check: CHECK.to_owned(), opened: None })
    }

    /// Gives the check run its name, which is `gate` otherwise: the same at every run, so that it can be required.
    pub fn name_check(&mut self, name: &str) {
        name.clone_into(&mut self.check);
    }

    /// Opens a check run on the job's head commit, in progress. On GitLab nothing happens: the pipeline's own job says it.
    /// [`Courier::deliver`] completes it, or makes one of that name where this failed.
    ///
    /// # Errors
    /// How GitHub refused; a token without `checks: write` is refused with 403.
    pub fn open_check(&mut self, name: &str, text: &CheckText) -> Result<(), ForgeError> {
        self.name_check(name);
        let (Forge::GitHub, Some(head)) = (self.job.forge, self.job.head.clone()) else { return Ok(()) };
        let checked = Checked { name, head: &head };
        let patience = self.patience / OPENING;
        let opened = self.block_on(patience, async |courier, retry| {
            let what = format!("open the check run `{name}`");
            let open = async {
                let github = courier.github(retry)?;
                check_run::open(&github, &courier.job, checked, text).await
            };
            courier.unless_stopped(&what, open).await
        })?;
        self.opened = Some(opened);
        Ok(())
    }

    /// Reads the comments of the pull or merge request, to see that the token is taken; changes nothing. How many there
    /// are, or why there is no request.
    ///
    /// # Errors
    /// How the forge refused. Whether the token may write is only known when it does.
    pub fn look(&mut self) -> Result<Result<usize, String>, ForgeError> {
        self.block_on(self.patience, async |courier, retry| {
            let look = async {
                match (courier.job.forge, courier.job.request) {
                    (Forge::GitHub, _) => {
                        let github = courier.github(retry)?;
                        match github.request_of(&courier.job).await? {
                            Found::Request(number) => Ok(Ok(Comments::new(github, number).list().await?.len())),
                            Found::None(why) => Ok(Err(why)),
                        }
                    }
                    (Forge::GitLab, Some(number)) => {
                        let notes =
                            Notes::open(courier.client.clone(), &courier.job, number, &courier.token, retry).await?;
                        Ok(Ok(notes.list().await?.len()))
                    }
                    (Forge::GitLab, None) => Ok(Err("this pipeline has no merge request".to_owned())),
                }
            };
            courier.unless_stopped("read the comments", look).await
        })
    }

    /// Delivers what there is, each on its own: one that fails keeps no other from being delivered.
    pub fn deliver(&mut self, delivery: &Delivery) -> Delivered {
        let delivered = self.block_on(self.patience, async |courier, retry| {
            let comment = async {
                let wanted = delivery.comment.as_ref().filter(|comment| comment.policy != CommentPolicy::Never)?;
                let post = courier.comment(wanted, retry.clone());
                Some(courier.unless_stopped("post the comment", post).await)
            };
            let check = async {
                let (conclusion, text) = delivery.check.as_ref()?;
                let complete = courier.complete(*conclusion, text, retry.clone());
                Some(courier.unless_stopped("complete the check run", complete).await)
            };
            let (comment, check) = tokio::join!(comment, check);
            let mut delivered = Delivered::default();
            match comment {
                Some(Ok(Posted::Hangs(page))) => delivered.comment = page,
                Some(Ok(Posted::Left(why))) => delivered.left = Some(why),
                Some(Err(error)) => delivered.failed.push(error),
                None => {}
            }
            match check {
                Some(Ok(page)) => delivered.check = page,
                Some(Err(error)) => delivered.failed.push(error),
                None => {}
            }
            Ok(delivered)
        });
        delivered.unwrap_or_else(|error| Delivered { failed: vec![error], ..Delivered::default() })
    }

    async fn comment(&self, comment: &Comment, retry: Retry) -> Result<Posted, ForgeError> {
        match self.job.forge {
            Forge::GitHub => {
                let github = self.github(retry)?;
                match github.request_of(&self.job).await? {
                    Found::Request(number) => upsert(&Comments::new(github, number), comment).await,
                    Found::None(why) => Ok(Posted::Left(why)),
                }
            }
            Forge::GitLab => match self.job.request {
                Some(number) => {
                    let notes = Notes::open(self.client.clone(), &self.job, number, &self.token, retry).await?;
                    upsert(&notes, comment).await
                }
                None => Ok(Posted::Left("there is no merge request to comment on in this pipeline".to_owned())),
            },
        }
    }

    async fn complete(
        &self,
        conclusion: Conclusion,
        text: &CheckText,
        retry: Retry,
    ) -> Result<Option<String>, ForgeError> {
        let (Forge::GitHub, Some(head)) = (self.job.forge, &self.job.head) else { return Ok(None) };
        let github = self.github(retry)?;
        let checked = Checked { name: &self.check, head };
        check_run::complete(&github, &self.job, self.opened.as_ref(), checked, (conclusion, text)).await
    }

    fn github(&self, retry: Retry) -> Result<GitHub, ForgeError> {
        GitHub::new(self.client.clone(), &self.job, &self.token, retry)
    }

    /// Runs to its end, and takes the time off the patience.
    fn block_on<T>(
        &mut self,
        patience: Duration,
        deliver: impl AsyncFnOnce(&Self, Retry) -> Result<T, ForgeError>,
    ) -> Result<T, ForgeError> {
        let started = Instant::now();
        let retry = Retry::new(started + patience, Redactor::new([&self.token]));
        let Some(runtime) = &self.runtime else {
            return Err(retry.unreadable("deliver to the forge", "the courier is gone"));
        };
        let delivered = runtime.block_on(deliver(self, retry));
        self.patience = self.patience.saturating_sub(started.elapsed());
        delivered
    }

    /// Ends early where the command was told to stop.
    async fn unless_stopped<T>(
        &self,
        what: &str,
        work: impl Future<Output = Result<T, ForgeError>>,
    ) -> Result<T, ForgeError> {
        unless(&self.stopped, what, work).await
    }
}

/// Does the work unless the command is told to stop meanwhile.
pub(crate) async fn unless<T>(
    stopped: impl Fn() -> bool,
    what: &str,
    work: impl Future<Output = Result<T, ForgeError>>,
) -> Result<T, ForgeError> {
    let stopped = async {
        while !stopped() {
            tokio::time::sleep(GLANCE).await;
        }
    };
    tokio::select! {
        biased;
        () = stopped => Err(ForgeError::Stopped { what: what.to_owned() }),
        done = work => done,
    }
}

impl Drop for Courier {
    /// A name that is still being looked up keeps nobody waiting.
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

#[cfg(test)]
mod tests;
