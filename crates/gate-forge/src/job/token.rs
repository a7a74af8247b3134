//! The token that a job delivers with.

use gate_model::Secret;

use super::{Forge, Job, Variables, read};
use crate::ForgeError;

/// The token that a job may post with: on GitHub `GITHUB_TOKEN` or `GH_TOKEN`, on GitLab `GITLAB_TOKEN`. In a fork's pull
/// request GitHub gives one that can only read; that is told by its answer, not here.
///
/// # Errors
/// [`ForgeError::NoToken`] where there is none. GitLab's `CI_JOB_TOKEN` is none: it may read notes, not write them.
pub fn token_of(job: &Job, variables: &Variables) -> Result<Secret, ForgeError> {
    let names: &[&str] = match job.forge {
        Forge::GitHub => &["GITHUB_TOKEN", "GH_TOKEN"],
        Forge::GitLab => &["GITLAB_TOKEN"],
    };
    let token = names.iter().find_map(|name| read::text(variables, name));
    token.map(Secret::new).ok_or_else(|| no_token(job, read::text(variables, "CI_JOB_TOKEN").is_some()))
}

fn no_token(job: &Job, has_job_token: bool) -> ForgeError {
    let (what, why, hint) = match job.forge {
        Forge::GitHub => (
            "post on GitHub",
            "neither GITHUB_TOKEN nor GH_TOKEN is set",
            "give the step `env: GITHUB_TOKEN: ${{ github.token }}`, and the job `permissions:` with \
             `pull-requests: write` and `checks: write`",
        ),
        Forge::GitLab => (
            "post a note on GitLab",
            match has_job_token {
                true => "GITLAB_TOKEN is not set, and the job's own CI_JOB_TOKEN may read notes but not write them",
                false => "GITLAB_TOKEN is not set",
            },
            "make a project access token with the scope `api` and the role Reporter, and give it to the job as the \
             masked variable GITLAB_TOKEN",
        ),
    };
    ForgeError::NoToken { what: what.to_owned(), why: why.to_owned(), hint: hint.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn token(ci: &[(&str, &str)], tokens: &[(&str, &str)]) -> Result<Secret, ForgeError> {
        let pairs = ci.iter().chain(tokens);
        let variables = pairs.map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        token_of(&Job::of(&variables, None).unwrap().unwrap(), &variables)
    }

    const GITHUB: &[(&str, &str)] = &[
        ("GITHUB_ACTIONS", "true"),
        ("GITHUB_EVENT_NAME", "push"),
        ("GITHUB_REPOSITORY", "acme/chat"),
        ("GITHUB_WORKFLOW", "perf"),
        ("GITHUB_JOB", "gate"),
    ];
    const GITLAB: &[(&str, &str)] = &[
        ("GITLAB_CI", "true"),
        ("CI_API_V4_URL", "https://gitlab.example/api/v4"),
        ("CI_PROJECT_ID", "5"),
        ("CI_JOB_NAME", "gate"),
    ];

    #[test]
    fn each_forge_has_its_own_token() {
        let both = [("GITHUB_TOKEN", "ghs_one"), ("GH_TOKEN", "ghs_two"), ("GITLAB_TOKEN", "glpat-three")];
        assert_eq!(token(GITHUB, &both).unwrap().expose(), "ghs_one");
        assert_eq!(token(GITHUB, &[("GITHUB_TOKEN", ""), ("GH_TOKEN", "ghs_two")]).unwrap().expose(), "ghs_two");
        assert_eq!(token(GITLAB, &both).unwrap().expose(), "glpat-three");
    }

    #[test]
    fn a_job_token_of_gitlab_is_none_and_the_reason_says_what_to_do() {
        let refused = token(GITLAB, &[("CI_JOB_TOKEN", "glcbt-s3cret"), ("GITHUB_TOKEN", "ghs_s3cret")]).unwrap_err();
        let told = format!("{refused} {}", refused.hint().unwrap());
        assert!(matches!(refused, ForgeError::NoToken { .. }));
        assert!(["CI_JOB_TOKEN", "GITLAB_TOKEN", "`api`", "Reporter"].iter().all(|word| told.contains(word)), "{told}");
        assert!(!told.contains("s3cret"));
        assert!(!token(GITLAB, &[]).unwrap_err().to_string().contains("CI_JOB_TOKEN"));
        assert!(token(GITHUB, &[("GITLAB_TOKEN", "x")]).unwrap_err().to_string().contains("GITHUB_TOKEN"));
    }
}
