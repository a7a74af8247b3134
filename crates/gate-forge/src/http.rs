//! One exchange with a forge: a request, an answer of a limited size, within a limit of time.
//!
//! Nothing here follows a redirect, repeats a request, or knows a token.

mod route;

use std::error::Error;
use std::time::Duration;

use bytes::Bytes;
use http::header::{LINK, LOCATION, USER_AGENT};
use http::{HeaderMap, HeaderValue, Request};
use http_body_util::{BodyExt, Full, LengthLimitError, Limited};
use hyper_util::client::legacy;
use hyper_util::rt::TokioExecutor;
use url::Url;

use route::{Proxies, Way};

/// The most bytes that are read of an answer of an API.
pub(crate) const API_ANSWER: usize = 4 << 20;
/// How long one exchange may take.
pub(crate) const EXCHANGE: Duration = Duration::from_secs(30);
/// The most bytes of an answer's head.
const HEAD: usize = 64 << 10;

/// Who asks forges, over HTTP/1.1, through the proxies that the environment names. Each request has a connection of its
/// own, so that none is lost on one that the forge is just closing.
#[derive(Clone)]
pub(crate) struct Client {
    inner: legacy::Client<Way, Full<Bytes>>,
    proxies: Proxies,
}

/// An answer, whatever its status.
#[derive(Clone, Debug)]
pub(crate) struct Answer {
    /// The HTTP status.
    pub(crate) status: u16,
    /// Its headers.
    pub(crate) headers: HeaderMap,
    /// All of its body.
    pub(crate) body: Bytes,
}

impl Client {
    /// With the environment's proxies, and the system's authorities (`SSL_CERT_FILE`), else Mozilla's. Nothing is sent.
    ///
    /// # Errors
    /// Why TLS cannot be set up.
    pub(crate) fn new() -> Result<Self, String> {
        Self::through(Proxies::of_environment())
    }

    fn through(proxies: Proxies) -> Result<Self, String> {
        let way = route::way(proxies.clone())?;
        let inner = legacy::Client::builder(TokioExecutor::new())
            .pool_max_idle_per_host(0)
            .retry_canceled_requests(false)
            .http1_max_buf_size(HEAD)
            .build(way);
        Ok(Self { inner, proxies })
    }

    /// Sends a request to its absolute URI and reads the whole answer: at most `most` bytes of body, `within` a time.
    ///
    /// # Errors
    /// In words, why there is no answer: it cannot be reached, takes too long, or says too much.
    pub(crate) async fn send(
        &self,
        mut request: Request<Bytes>,
        most: usize,
        within: Duration,
    ) -> Result<Answer, String> {
        let host = request.uri().authority().map_or_else(|| "the forge".to_owned(), ToString::to_string);
        let headers = request.headers_mut();
        headers.entry(USER_AGENT).or_insert(HeaderValue::from_static(concat!("gate/", env!("CARGO_PKG_VERSION"))));
        self.proxies.authorise(&mut request);
        let exchange = self.exchange(request.map(Full::new), most, &host);
        let late = |_| format!("{host} did not answer within {} s", within.as_secs_f64().ceil());
        tokio::time::timeout(within, exchange).await.map_err(late)?
    }

    async fn exchange(&self, request: Request<Full<Bytes>>, most: usize, host: &str) -> Result<Answer, String> {
        let answer = self.inner.request(request).await.map_err(|error| {
            let doing = if error.is_connect() { "connect to" } else { "get an answer from" };
            format!("could not {doing} {host}: {}", words(&error))
        })?;
        let (head, body) = answer.into_parts();
        let body = Limited::new(body, most).collect().await.map_err(|error| {
            if error.is::<LengthLimitError>() {
                return format!("{host} answered with more than {most} bytes");
            }
            format!("{host} broke off its answer: {}", words(&*error))
        })?;
        Ok(Answer { status: head.status.as_u16(), headers: head.headers, body: body.to_bytes() })
    }
}

impl Answer {
    /// Whether it is a success.
    pub(crate) fn is_success(&self) -> bool {
        (200..300).contains(&self.status)
    }

    /// Where it redirects to, from what was asked.
    pub(crate) fn location(&self, asked: &Url) -> Option<Url> {
        if !matches!(self.status, 301 | 302 | 303 | 307 | 308) {
            return None;
        }
        asked.join(self.headers.get(LOCATION)?.to_str().ok()?).ok()
    }

    /// The next page, by `Link: <…>; rel="next"`, from what was asked.
    pub(crate) fn next_page(&self, asked: &Url) -> Option<Url> {
        let links = self.headers.get_all(LINK).iter().filter_map(|link| link.to_str().ok());
        let next = links.flat_map(|links| links.split(',')).find_map(|link| {
            let (target, parameters) = link.trim().strip_prefix('<')?.split_once('>')?;
            let is_next = |parameter: &str| {
                parameter.trim().strip_prefix("rel=").is_some_and(|rel| rel.trim_matches('"') == "next")
            };
            parameters.split(';').any(is_next).then_some(target)
        });
        asked.join(next?).ok()
    }
}

/// Whether both are of one scheme, host and port: a token for one is for the other.
pub(crate) fn is_same_origin(one: &Url, other: &Url) -> bool {
    one.has_host() && one.origin() == other.origin()
}

/// An error's innermost cause, which says more than what wraps it.
fn words(error: &(dyn Error + 'static)) -> String {
    let mut innermost = error;
    while let Some(source) = innermost.source() {
        innermost = source;
    }
    innermost.to_string()
}

#[cfg(test)]
mod tests {
    use hyper_util::client::proxy::matcher::Matcher;

    use super::*;
    use crate::gitlab::fake::{Reply, Server};

    fn url(text: &str) -> Url {
        Url::parse(text).unwrap()
    }

    fn answer(status: u16, headers: &[(http::HeaderName, &str)]) -> Answer {
        let headers = headers.iter().map(|(name, value)| (name.clone(), value.parse().unwrap())).collect();
        Answer { status, headers, body: Bytes::new() }
    }

    #[test]
    fn the_next_page_is_the_one_the_forge_links() {
        let asked = url("https://forge.example/api/v3/repos/o/r/issues/7/comments?per_page=100");
        let link = "<https://forge.example/api/v3/x?page=1>; rel=\"prev\", <https://forge.example/api/v3/x?page=3>; \
                    rel=\"next\", <https://forge.example/api/v3/x?page=9>; rel=\"last\"";
        let next = answer(200, &[(LINK, link)]).next_page(&asked).unwrap();
        assert_eq!(next.as_str(), "https://forge.example/api/v3/x?page=3");
        let relative = answer(200, &[(LINK, "</api/v3/x?page=2>; title=a; rel=next")]).next_page(&asked).unwrap();
        assert_eq!(relative.as_str(), "https://forge.example/api/v3/x?page=2");
        for none in ["", "<https://forge.example>; rel=\"last\"", "next", "<>", "<http://[>; rel=next", ">;<rel=next"] {
            assert_eq!(answer(200, &[(LINK, none)]).next_page(&asked), None, "{none}");
        }
    }

    #[test]
    fn a_redirect_leads_somewhere_only_with_a_status_that_says_so() {
        let asked = url("https://forge.example/repos/o/r");
        let to = [(LOCATION, "/repositories/5")];
        assert_eq!(answer(307, &to).location(&asked).unwrap().as_str(), "https://forge.example/repositories/5");
        assert_eq!(answer(201, &to).location(&asked), None);
        assert_eq!(answer(302, &[]).location(&asked), None);
    }

    #[test]
    fn an_origin_is_scheme_host_and_port() {
        let ours = url("https://forge.example/api/v3");
        assert!(is_same_origin(&ours, &url("https://FORGE.example:443/x?y")));
        for other in [
            "http://forge.example/",
            "https://forge.example:8443/",
            "https://forge.example.evil.example/",
            "https://forge.example@evil.example/",
        ] {
            assert!(!is_same_origin(&ours, &url(other)), "{other}");
        }
        assert!(!is_same_origin(&url("data:x"), &url("data:x")));
    }

    const SOON: Duration = Duration::from_secs(60);

    fn get(uri: &str) -> Request<Bytes> {
        Request::builder().uri(uri).header("authorization", "Bearer s3cret").body(Bytes::new()).unwrap()
    }

    #[tokio::test]
    async fn plain_requests_are_forwarded_by_a_proxy_which_is_shown_who_asks() {
        let proxy = Server::start(|_| Reply::new(200, "forwarded")).await;
        let named = proxy.origin.replace("http://", "http://me:pass@");
        let client = Client::through(Proxies::of(Matcher::builder().all(named).no("inside.example").build())).unwrap();
        let answer = client.send(get("http://forge.example/api/v3/user?a=b"), API_ANSWER, SOON).await.unwrap();
        assert_eq!(answer.body, "forwarded");
        assert_eq!(proxy.log(), ["GET http://forge.example/api/v3/user?a=b"]);
        let asked = &proxy.asked()[0];
        assert_eq!(asked.header("proxy-authorization"), Some("Basic bWU6cGFzcw=="));
        assert_eq!(asked.header("host"), Some("forge.example"));
        // This machine is reached without.
        let here = Server::start(|_| Reply::new(200, "here")).await;
        let answer = client.send(get(&format!("{}/user", here.origin)), API_ANSWER, SOON).await.unwrap();
        assert_eq!((answer.body.as_ref(), here.log()), (&b"here"[..], vec!["GET /user".to_owned()]));
        assert_eq!(here.asked()[0].header("proxy-authorization"), None);
        assert_eq!(proxy.log().len(), 1);
    }

    #[tokio::test]
    async fn a_proxy_is_asked_for_a_tunnel_to_https_and_shown_no_token() {
        let proxy = Server::start(|_| Reply::new(403, "")).await;
        let named = proxy.origin.replace("http://", "http://me:pass@");
        let client = Client::through(Proxies::of(Matcher::builder().https(named).build())).unwrap();
        let error = client.send(get("https://forge.example/user"), API_ANSWER, SOON).await.unwrap_err();
        assert!(error.starts_with("could not connect to forge.example: "), "{error}");
        assert_eq!(proxy.log(), ["CONNECT forge.example:443"]);
        let asked = &proxy.asked()[0];
        assert_eq!((asked.header("authorization"), asked.header("proxy-authorization").is_some()), (None, true));
        let socks = Client::through(Proxies::of(Matcher::builder().all("socks5://127.0.0.1:9").build())).unwrap();
        let error = socks.send(get("https://forge.example/user"), API_ANSWER, SOON).await.unwrap_err();
        assert!(error.contains("socks5 proxies are not supported"), "{error}");
    }

    #[tokio::test]
    async fn an_answer_has_a_limited_size() {
        let server = Server::start(|_| Reply::new(200, vec![b'x'; 1000])).await;
        let client = Client::new().unwrap();
        assert_eq!(client.send(get(&server.origin), 1000, SOON).await.unwrap().body.len(), 1000);
        let error = client.send(get(&server.origin), 999, SOON).await.unwrap_err();
        assert!(error.ends_with("answered with more than 999 bytes"), "{error}");
    }
}
