//! What may be done about a refusal.

use crate::ForgeError;

/// What a token must be allowed, by its name in a workflow's `permissions:`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Permission {
    /// To comment on a pull request.
    Comment,
    /// To open and complete check runs.
    Checks,
    /// To find the pull request of a commit.
    Read,
}

/// What helps where requests came too fast.
const LIMITED: &str = "GitHub limits how much one token may ask: run the job again later";

/// What is known of the job that hints are for.
#[derive(Clone)]
pub(super) struct Hints {
    pub(super) repository: String,
    pub(super) from_fork: bool,
}

impl Hints {
    /// A refusal with what may be done about it.
    pub(super) fn advise(&self, error: ForgeError, needs: Permission) -> ForgeError {
        let ForgeError::Refused { what, refusal, hint } = error else { return error };
        let hint = hint.or_else(|| self.hint(refusal.status, &refusal.message, needs));
        ForgeError::Refused { what, refusal, hint }
    }

    fn hint(&self, status: u16, message: &str, needs: Permission) -> Option<String> {
        let said = message.to_ascii_lowercase();
        let hint = match status {
            401 => {
                "the token has expired or is wrong: a job's own token ends with the job; check GITHUB_TOKEN".to_owned()
            }
            429 => LIMITED.to_owned(),
            403 if said.contains("rate limit") || said.contains("abuse") => LIMITED.to_owned(),
            403 if said.contains("locked") => "unlock the pull request's conversation".to_owned(),
            403 if said.contains("saml") || said.contains("sso") => {
                "authorise the token for the organisation's single sign-on".to_owned()
            }
            403 if self.from_fork => {
                "the token of a fork's pull request can only read: post from a second workflow with \
                                      `gate publish --from verdict.json`, as docs/ci.md shows"
                    .to_owned()
            }
            403 => format!("give the job `permissions:` with `{}`", needs.wording()),
            404 => format!(
                "`{}` is not there for this token: check GITHUB_REPOSITORY, and give the job `permissions:` with `{}`",
                self.repository,
                needs.wording()
            ),
            300..=399 => "GitHub sends the request on to another address, where the token is not sent: check \
                         GITHUB_API_URL"
                .to_owned(),
            410 if needs == Permission::Comment => "comments are turned off there, or it was deleted".to_owned(),
            _ => return None,
        };
        Some(hint)
    }
}

impl Permission {
    fn wording(self) -> &'static str {
        match self {
            Self::Comment => "pull-requests: write",
            Self::Checks => "checks: write",
            Self::Read => "pull-requests: read",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Refusal;

    fn hint(status: u16, message: &str, needs: Permission, from_fork: bool) -> Option<String> {
        let hints = Hints { repository: "acme/chat".to_owned(), from_fork };
        let refusal = Refusal { status, message: message.to_owned() };
        let error = ForgeError::Refused { what: "x".to_owned(), refusal, hint: None };
        hints.advise(error, needs).hint().map(str::to_owned)
    }

    #[test]
    fn a_refusal_says_what_to_do() {
        let closed = "Resource not accessible by integration";
        let says = [
            (401, "Bad credentials", Permission::Comment, false, "expired"),
            (403, closed, Permission::Comment, false, "`pull-requests: write`"),
            (403, closed, Permission::Checks, false, "`checks: write`"),
            (403, closed, Permission::Comment, true, "docs/ci.md"),
            (403, "issue is locked", Permission::Comment, true, "unlock"),
            (403, "You have exceeded a secondary rate limit", Permission::Comment, true, "later"),
            (429, "slow down", Permission::Checks, false, "later"),
            (404, "Not Found", Permission::Read, false, "`acme/chat`"),
        ];
        for (status, message, needs, from_fork, says) in says {
            let hint = hint(status, message, needs, from_fork).unwrap();
            assert!(hint.contains(says), "{status}: {hint}");
        }
        assert_eq!(hint(422, "Validation Failed", Permission::Comment, false), None);
        assert_eq!(hint(502, "bad gateway", Permission::Comment, true), None);
    }
}
