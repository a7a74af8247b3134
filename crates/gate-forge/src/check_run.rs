//! A check run on the job's head commit.

use ::http::Method;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::github::{Call, GitHub, Permission};
use crate::post::{CheckText, Conclusion};
use crate::{ForgeError, Job};

/// The most characters of a summary that GitHub takes.
const SUMMARY: usize = 65_535;
/// The most characters of a title; GitHub shows far fewer.
const TITLE: usize = 255;

/// A check run that was opened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CheckRun {
    id: u64,
    page: Option<String>,
}

#[derive(Deserialize)]
struct Posted {
    id: u64,
    html_url: Option<String>,
}

/// What tells one check run from another.
#[derive(Clone, Copy)]
pub(crate) struct Checked<'c> {
    /// Its name.
    pub(crate) name: &'c str,
    /// The commit.
    pub(crate) head: &'c str,
}

/// Opens one, in progress.
///
/// # Errors
/// How GitHub refused.
pub(crate) async fn open(
    github: &GitHub,
    job: &Job,
    checked: Checked<'_>,
    text: &CheckText,
) -> Result<CheckRun, ForgeError> {
    let what = format!("open the check run `{}`", checked.name);
    let mut body =
        json!({ "name": checked.name, "head_sha": checked.head, "status": "in_progress", "output": output(text) });
    add_page(&mut body, job);
    create(github, &what, body).await
}

/// Completes the one that was opened, and makes one that is complete where none was. Its page is handed back.
///
/// # Errors
/// How GitHub refused.
pub(crate) async fn complete(
    github: &GitHub,
    job: &Job,
    opened: Option<&CheckRun>,
    checked: Checked<'_>,
    (conclusion, text): (Conclusion, &CheckText),
) -> Result<Option<String>, ForgeError> {
    let what = format!("complete the check run `{}`", checked.name);
    let mut body = json!({ "status": "completed", "conclusion": word(conclusion), "output": output(text) });
    add_page(&mut body, job);
    if let Some(opened) = opened {
        let url = github.in_repository(&["check-runs", &opened.id.to_string()]);
        let call =
            Call { what: &what, method: Method::PATCH, url: &url, body: Some(body.clone()), needs: Permission::Checks };
        match github.ask(call).await {
            Ok(answer) => return Ok(github.read::<Posted>(&what, &answer)?.html_url.or_else(|| opened.page.clone())),
            // Another took it away: a new one says the same.
            Err(ForgeError::Refused { refusal, .. }) if refusal.status == 404 => {}
            Err(error) => return Err(error),
        }
    }
    if let Some(body) = body.as_object_mut() {
        body.insert("name".to_owned(), checked.name.into());
        body.insert("head_sha".to_owned(), checked.head.into());
    }
    Ok(create(github, &what, body).await?.page)
}

async fn create(github: &GitHub, what: &str, body: Value) -> Result<CheckRun, ForgeError> {
    let url = github.in_repository(&["check-runs"]);
    let call = Call { what, method: Method::POST, url: &url, body: Some(body), needs: Permission::Checks };
    let answer = github.create(call).await?;
    let Posted { id, html_url } = github.read(what, &answer)?;
    Ok(CheckRun { id, page: html_url })
}

fn add_page(body: &mut Value, job: &Job) {
    if let (Some(body), Some(page)) = (body.as_object_mut(), &job.page) {
        body.insert("details_url".to_owned(), page.as_str().into());
    }
}

fn output(text: &CheckText) -> Value {
    json!({ "title": cut(&text.title, TITLE), "summary": cut(&text.summary, SUMMARY) })
}

fn word(conclusion: Conclusion) -> &'static str {
    match conclusion {
        Conclusion::Success => "success",
        Conclusion::Failure => "failure",
        Conclusion::Neutral => "neutral",
        Conclusion::Cancelled => "cancelled",
    }
}

/// At most so many characters.
fn cut(text: &str, most: usize) -> String {
    if text.chars().nth(most).is_none() {
        return text.to_owned();
    }
    text.chars().take(most.saturating_sub(1)).chain(['…']).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_summary_is_cut_at_what_github_takes() {
        assert_eq!(cut("äöü", 3), "äöü");
        assert_eq!(cut("äöüß", 3), "äö…");
        assert_eq!(cut(&"ä".repeat(SUMMARY + 1), SUMMARY).chars().count(), SUMMARY);
        assert_eq!(cut(&"ä".repeat(SUMMARY), SUMMARY).chars().count(), SUMMARY);
    }
}
