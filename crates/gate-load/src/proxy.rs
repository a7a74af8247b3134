//! Proxies: which one stands on the way to a target, and how requests get past it.

mod env;
mod tunnel;

use http::{HeaderValue, Uri};

pub use env::ProxyEnv;
pub(crate) use tunnel::tunnel;

/// The proxy on the way to a target.
#[derive(Clone)]
pub(crate) struct Proxy {
    /// `http://host:port`, without credentials.
    pub(crate) url: String,
    /// The variable that names it.
    pub(crate) variable: &'static str,
    /// What it is shown of who asks.
    pub(crate) auth: Option<HeaderValue>,
}

impl Proxy {
    /// Why it forwards nothing, by its status 407.
    pub(crate) fn unauthorised(&self) -> String {
        let Self { url, variable, auth } = self;
        match auth {
            Some(_) => {
                format!("the proxy at {url} wants other credentials (407): check the user and password in `{variable}`")
            }
            None => format!(
                "the proxy at {url} wants credentials (407): write them in `{variable}`, as \
                 `http://user:password@host:port`"
            ),
        }
    }
}

/// How requests reach a target over plain HTTP through a proxy: each names the whole URL.
#[derive(Clone)]
pub(crate) struct Forward {
    pub(crate) proxy: Proxy,
    /// The target's `host:port`.
    pub(crate) authority: String,
}

impl Forward {
    /// What a request asks for, by its path on the target.
    pub(crate) fn uri(&self, path: &str) -> Result<Uri, http::Error> {
        Uri::builder().scheme("http").authority(self.authority.as_str()).path_and_query(path).build()
    }
}
