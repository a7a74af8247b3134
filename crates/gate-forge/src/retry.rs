//! When a forge is asked once more, and how long that waits.

mod wait;
mod words;

use std::future::Future;
use std::time::{Duration, SystemTime};

use gate_model::Redactor;
use tokio::time::Instant;

use crate::http::{Answer, EXCHANGE};
use crate::{ForgeError, Refusal};
use wait::Wait;

/// How long a delivery is tried, and what must not leave it in an error.
#[derive(Clone, Debug)]
pub(crate) struct Retry {
    until: Instant,
    redactor: Redactor,
}

impl Retry {
    /// Tries go on until then; what a forge says is redacted.
    pub(crate) fn new(until: Instant, redactor: Redactor) -> Self {
        Self { until, redactor }
    }

    /// Asks for what may be asked twice: to read, replace or remove. Limits are waited out, and errors of the server and
    /// the connection are tried again after 1, 2 and 4 s. `send` is told how long it may take.
    ///
    /// # Errors
    /// [`ForgeError::Refused`] for an answer that is no success, without a hint; [`ForgeError::Unreachable`] for none.
    pub(crate) async fn repeat<F>(&self, what: &str, send: impl FnMut(Duration) -> F) -> Result<Answer, ForgeError>
    where
        F: Future<Output = Result<Answer, String>>,
    {
        self.ask(what, Uncertain::AskAgain, send).await
    }

    /// Asks to create something. Limits are waited out, since nothing was created then. After an end that leaves open
    /// whether it was, the error says so: its status is 500 or more, or it is [`ForgeError::Unreachable`].
    ///
    /// # Errors
    /// As with [`Retry::repeat`].
    pub(crate) async fn once<F>(&self, what: &str, send: impl FnMut(Duration) -> F) -> Result<Answer, ForgeError>
    where
        F: Future<Output = Result<Answer, String>>,
    {
        self.ask(what, Uncertain::GiveUp, send).await
    }

    /// That an answer came which cannot be used.
    pub(crate) fn unreadable(&self, what: &str, why: &str) -> ForgeError {
        ForgeError::Unreachable { what: what.to_owned(), why: words::one_line(&self.redactor.redact(why)) }
    }

    async fn ask<F>(
        &self,
        what: &str,
        uncertain: Uncertain,
        mut send: impl FnMut(Duration) -> F,
    ) -> Result<Answer, ForgeError>
    where
        F: Future<Output = Result<Answer, String>>,
    {
        let mut tries = 0;
        loop {
            let left = self.left();
            if left.is_zero() {
                return Err(self.unreadable(what, "no time is left to ask the forge"));
            }
            let answer = send(left.min(EXCHANGE)).await;
            let wait = match &answer {
                Ok(answer) if answer.is_success() => Wait::Final,
                Ok(answer) => Wait::after(answer, tries, SystemTime::now()),
                Err(_) => Wait::after_no_answer(tries),
            };
            let (wait, is_limit) = match wait {
                Wait::Uncertain(_) if uncertain == Uncertain::GiveUp => return self.end(what, answer, None),
                Wait::Final => return self.end(what, answer, None),
                Wait::Uncertain(wait) => (wait, None),
                Wait::Limit(wait) => (wait, Some(wait)),
            };
            if wait >= self.left() {
                return self.end(what, answer, is_limit);
            }
            tracing::debug!(what, seconds = wait.as_secs(), "the forge is asked again");
            tokio::time::sleep(wait).await;
            tries += 1;
        }
    }

    fn left(&self) -> Duration {
        self.until.saturating_duration_since(Instant::now())
    }

    /// What came of it, with how long the forge wants to be left alone.
    fn end(&self, what: &str, answer: Result<Answer, String>, asked: Option<Duration>) -> Result<Answer, ForgeError> {
        let answer = answer.map_err(|why| self.unreadable(what, &why))?;
        if answer.is_success() {
            return Ok(answer);
        }
        let mut message = words::message(&answer, &self.redactor);
        if let Some(asked) = asked {
            let space = if message.is_empty() { "" } else { " " };
            message.push_str(&format!("{space}(the forge wants to be left alone for {} s)", asked.as_secs()));
        }
        let refusal = Refusal { status: answer.status, message };
        Err(ForgeError::Refused { what: what.to_owned(), refusal, hint: None })
    }
}

/// What is done where it is not known whether a request took effect.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Uncertain {
    AskAgain,
    GiveUp,
}

#[cfg(test)]
mod tests;
