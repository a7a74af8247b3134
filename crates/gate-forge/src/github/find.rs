//! The pull request that a job's event does not name.

use serde::Deserialize;

use super::{GitHub, Permission};
use crate::{Event, ForgeError, Job};

/// What was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Found {
    /// The pull request's number.
    Request(u64),
    /// None, and why.
    None(String),
}

#[derive(Deserialize)]
struct Pull {
    number: u64,
    state: Option<String>,
    head: Head,
}

#[derive(Deserialize)]
struct Head {
    sha: String,
}

impl GitHub {
    /// The open pull request whose head is the job's commit: one that the event names, else one of the commit's, else
    /// one of the fork's branch.
    ///
    /// # Errors
    /// How GitHub refused to list them.
    pub(crate) async fn request_of(&self, job: &Job) -> Result<Found, ForgeError> {
        if let Some(number) = job.request {
            return Ok(Found::Request(number));
        }
        if let Some(event) = without_request(&job.event) {
            return Ok(Found::None(format!("there is no pull request to comment on under `{event}`")));
        }
        let Some(head) = &job.head else {
            return Ok(Found::None("the event names neither a pull request nor a commit to find one by".to_owned()));
        };
        let what = format!("find the pull request of {}", head.get(..12).unwrap_or(head));
        let of_commit = self.in_repository(&["commits", head, "pulls"]);
        let mut pulls: Vec<Pull> = self.list(&what, of_commit, Permission::Read).await?;
        if open_at(&pulls, head).is_none()
            && let Some(branch) = &job.head_branch
        {
            let mut of_branch = self.in_repository(&["pulls"]);
            of_branch.query_pairs_mut().append_pair("head", branch).append_pair("state", "open");
            pulls.extend(self.list::<Pull>(&what, of_branch, Permission::Read).await?);
        }
        Ok(match open_at(&pulls, head) {
            Some(number) => Found::Request(number),
            None if pulls.iter().any(Pull::is_open) => {
                Found::None("its pull request has moved on to another commit".to_owned())
            }
            None => Found::None("no open pull request has this commit as its head".to_owned()),
        })
    }
}

impl Pull {
    fn is_open(&self) -> bool {
        self.state.as_deref() == Some("open")
    }
}

fn open_at(pulls: &[Pull], head: &str) -> Option<u64> {
    let open = pulls.iter().filter(|pull| pull.is_open() && pull.head.sha.eq_ignore_ascii_case(head));
    open.map(|pull| pull.number).min()
}

/// The name of an event that is about no pull request.
fn without_request(event: &Event) -> Option<&'static str> {
    match event {
        Event::MergeGroup => Some("merge_group"),
        Event::Schedule => Some("schedule"),
        Event::WorkflowDispatch => Some("workflow_dispatch"),
        _ => None,
    }
}
