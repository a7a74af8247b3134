//! A pull request's comments.

use std::sync::OnceLock;

use ::http::Method;
use serde::Deserialize;
use serde_json::json;

use super::{Call, GitHub, Permission};
use crate::ForgeError;
use crate::board::{Board, Hanging};

/// What every comment of ours begins with: of the others the text is not kept.
const OURS: &str = "<!-- gate:";

/// The comments on a pull request.
pub(crate) struct Comments {
    github: GitHub,
    request: u64,
    me: OnceLock<Me>,
}

/// In whose name the token posts.
#[derive(Clone, Debug)]
enum Me {
    /// A user, or an app that may know its own name.
    Known(String),
    /// An app's installation, such as a job's own token, which may not ask for its name.
    SomeBot,
}

#[derive(Deserialize)]
struct User {
    login: String,
    #[serde(rename = "type", default)]
    kind: Option<String>,
}

#[derive(Deserialize)]
struct Posted {
    id: u64,
    body: Option<String>,
    html_url: Option<String>,
    user: Option<User>,
}

impl Comments {
    pub(crate) fn new(github: GitHub, request: u64) -> Self {
        Self { github, request, me: OnceLock::new() }
    }

    async fn me(&self) -> Result<Me, ForgeError> {
        if let Some(me) = self.me.get() {
            return Ok(me.clone());
        }
        let what = "ask GitHub in whose name the token posts";
        let url = self.github.at(&["user"]);
        let call = Call { what, method: Method::GET, url: &url, body: None, needs: Permission::Comment };
        let me = match self.github.ask(call).await {
            Ok(answer) => Me::Known(self.github.read::<User>(what, &answer)?.login),
            Err(ForgeError::Refused { refusal, .. }) if matches!(refusal.status, 403 | 404) => Me::SomeBot,
            Err(error) => return Err(error),
        };
        Ok(self.me.get_or_init(|| me).clone())
    }

    fn hanging(posted: Posted, me: &Me) -> Hanging {
        let is_ours = posted.user.is_some_and(|user| match me {
            Me::Known(login) => user.login.eq_ignore_ascii_case(login),
            Me::SomeBot => user.kind.as_deref() == Some("Bot"),
        });
        let body = posted.body.filter(|body| body.starts_with(OURS)).unwrap_or_default();
        Hanging { id: posted.id, body, is_ours, page: posted.html_url.filter(|page| is_page(page)) }
    }

    /// What a comment that was written became.
    fn written(&self, what: &str, answer: &crate::http::Answer) -> Result<Hanging, ForgeError> {
        let Posted { id, body, html_url, .. } = self.github.read(what, answer)?;
        let page = html_url.filter(|page| is_page(page));
        Ok(Hanging { id, body: body.unwrap_or_default(), is_ours: true, page })
    }
}

fn is_page(page: &str) -> bool {
    url::Url::parse(page).is_ok_and(|url| matches!(url.scheme(), "http" | "https"))
}

impl Board for Comments {
    fn name(&self) -> String {
        format!("pull request {}", self.request)
    }

    async fn list(&self) -> Result<Vec<Hanging>, ForgeError> {
        let me = self.me().await?;
        let what = format!("list the comments on {}", self.name());
        let url = self.github.in_repository(&["issues", &self.request.to_string(), "comments"]);
        let posted = self.github.list::<Posted>(&what, url, Permission::Comment).await?;
        Ok(posted.into_iter().map(|posted| Self::hanging(posted, &me)).collect())
    }

    async fn create(&self, body: &str) -> Result<Hanging, ForgeError> {
        let what = format!("create the comment on {}", self.name());
        let url = self.github.in_repository(&["issues", &self.request.to_string(), "comments"]);
        let body = Some(json!({ "body": body }));
        let call = Call { what: &what, method: Method::POST, url: &url, body, needs: Permission::Comment };
        self.written(&what, &self.github.create(call).await?)
    }

    async fn update(&self, id: u64, body: &str) -> Result<Hanging, ForgeError> {
        let what = format!("update the comment {id} on {}", self.name());
        let url = self.github.in_repository(&["issues", "comments", &id.to_string()]);
        let body = Some(json!({ "body": body }));
        let call = Call { what: &what, method: Method::PATCH, url: &url, body, needs: Permission::Comment };
        self.written(&what, &self.github.ask(call).await?)
    }

    async fn delete(&self, id: u64) -> Result<(), ForgeError> {
        let what = format!("take down the comment {id} on {}", self.name());
        let url = self.github.in_repository(&["issues", "comments", &id.to_string()]);
        let call = Call { what: &what, method: Method::DELETE, url: &url, body: None, needs: Permission::Comment };
        match self.github.ask(call).await {
            // Gone is what it should be.
            Err(ForgeError::Refused { refusal, .. }) if matches!(refusal.status, 404 | 410) => Ok(()),
            answer => answer.map(drop),
        }
    }
}
