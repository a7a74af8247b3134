//! octocrab's way out: the crate's own client, and the token for the API's origin alone.

use std::error::Error;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use ::http::header::{ACCEPT, AUTHORIZATION};
use ::http::{HeaderValue, Request, Response};
use bytes::Bytes;
use gate_model::Secret;
use http_body_util::{BodyExt, Full};
use octocrab::OctoBody;
use tower_service::Service;
use url::Url;

use crate::ForgeError;
use crate::http::{Client, EXCHANGE, is_same_origin};

/// The most bytes that are read of an answer: a page of 100 comments of 65,536 characters each.
const ANSWER: usize = 32 << 20;
/// What GitHub answers with.
const JSON: HeaderValue = HeaderValue::from_static("application/vnd.github+json");

type Failure = Box<dyn Error + Send + Sync>;

/// Sends what octocrab made.
#[derive(Clone)]
pub(super) struct Transport {
    client: Client,
    api: Url,
    authorisation: HeaderValue,
}

impl Transport {
    pub(super) fn new(client: Client, api: Url, token: &Secret) -> Result<Self, ForgeError> {
        let refused = |_| ForgeError::NoToken {
            what: "send the token to GitHub".to_owned(),
            why: "it is empty or holds symbols that no header can".to_owned(),
            hint: "set GITHUB_TOKEN to the token alone, in one line".to_owned(),
        };
        let mut authorisation = HeaderValue::from_str(&format!("Bearer {}", token.expose())).map_err(refused)?;
        authorisation.set_sensitive(true);
        Ok(Self { client, api, authorisation })
    }
}

impl Service<Request<OctoBody>> for Transport {
    type Response = Response<Full<Bytes>>;
    type Error = Failure;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Failure>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Failure>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<OctoBody>) -> Self::Future {
        let Self { client, api, authorisation } = self.clone();
        Box::pin(async move {
            let (mut head, body) = request.into_parts();
            let to = Url::parse(&head.uri.to_string())?;
            head.headers.remove(AUTHORIZATION);
            if is_same_origin(&api, &to) {
                head.headers.insert(AUTHORIZATION, authorisation);
            }
            head.headers.insert(ACCEPT, JSON);
            let body = body.collect().await?.to_bytes();
            let answer = client.send(Request::from_parts(head, body), ANSWER, EXCHANGE).await?;
            let mut response = Response::builder().status(answer.status).body(Full::new(answer.body))?;
            *response.headers_mut() = answer.headers;
            Ok(response)
        })
    }
}

/// octocrab's own words for an error are `GitHub` or `Service`; what happened is in its source.
pub(super) fn words(error: &octocrab::Error) -> String {
    let mut innermost: &(dyn Error + 'static) = error;
    while let Some(source) = innermost.source() {
        innermost = source;
    }
    innermost.to_string()
}
