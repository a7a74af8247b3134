//! The proxies that the environment names.

use gate_model::Secret;
use http::Uri;
use hyper_util::client::proxy::matcher::Matcher;
use percent_encoding::percent_decode_str;
use url::{Host, Position, Url};

use super::Proxy;
use crate::LoadError;
use crate::peer::Server;

/// A variable that is set.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Variable {
    name: &'static str,
    /// A URL, which may hold credentials.
    value: Secret,
}

/// The proxies that the environment names, for `http` targets, for `https` ones, and for both; and the hosts that are
/// reached without.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProxyEnv {
    http: Option<Variable>,
    https: Option<Variable>,
    all: Option<Variable>,
    no: String,
}

impl ProxyEnv {
    /// The variables that count for curl: `http_proxy`, `https_proxy`, `all_proxy` and `no_proxy`, the last three also
    /// in upper case. `HTTP_PROXY` does not count, since a web server sets it from the request of whoever asks it.
    /// Empty is unset.
    #[must_use]
    pub fn of(variable: impl Fn(&str) -> Option<String>) -> Self {
        let first = |names: &[&'static str]| {
            names.iter().find_map(|name| {
                let value = variable(name)?.trim().to_owned();
                (!value.is_empty()).then(|| Variable { name, value: Secret::new(value) })
            })
        };
        let no = first(&["no_proxy", "NO_PROXY"]);
        Self {
            http: first(&["http_proxy"]),
            https: first(&["https_proxy", "HTTPS_PROXY"]),
            all: first(&["all_proxy", "ALL_PROXY"]),
            no: no.map(|no| hosts(no.value.expose())).unwrap_or_default(),
        }
    }

    /// The credentials in it, in every form in which they may turn up: for a [`gate_model::Redactor`].
    #[must_use]
    pub fn secrets(&self) -> Vec<Secret> {
        let variables = [&self.http, &self.https, &self.all];
        variables.into_iter().flatten().flat_map(|variable| credentials(variable.value.expose())).collect()
    }

    /// The proxy on the way to a target, with the server it is. Nothing on this machine is asked through one.
    pub(crate) fn on_the_way_to(&self, base: &Url) -> Result<Option<(Proxy, Server)>, LoadError> {
        let of_scheme = if base.scheme() == "https" { &self.https } else { &self.http };
        let (Some(Variable { name, value }), Some(host)) = (of_scheme.as_ref().or(self.all.as_ref()), base.host())
        else {
            return Ok(None);
        };
        let not_a_url = || LoadError::ProxyUrl { variable: name };
        let target: Uri =
            format!("http://{}", host.to_string().trim_end_matches('.')).parse().map_err(|_| not_a_url())?;
        let every = |proxy: &str| Matcher::builder().all(proxy);
        if is_local(&host) || every("http://any").no(self.no.as_str()).build().intercept(&target).is_none() {
            return Ok(None);
        }
        let value = value.expose();
        let url = if value.contains("://") { Url::parse(value) } else { Url::parse(&format!("http://{value}")) };
        let url = url.map_err(|_| not_a_url())?;
        // Where a password holds a `/`, the user would be taken for the host.
        // One that holds an `@` would be sent, but not be the one that is meant.
        let authority = value.split_once("://").map_or(value, |(_, rest)| rest).split(['/', '?', '#']).next();
        let is_split = authority.is_some_and(|authority| authority.matches('@').count() > 1);
        if is_split || url[Position::BeforePath..].contains('@') {
            return Err(not_a_url());
        }
        if matches!(url.scheme(), "https" | "socks4" | "socks4a" | "socks5" | "socks5h") {
            return Err(LoadError::ProxyScheme { variable: name, scheme: url.scheme().to_owned() });
        }
        let intercept = every(value).build().intercept(&target).ok_or_else(not_a_url)?;
        let (Some(host), Some(port)) = (url.host(), url.port_or_known_default()) else { return Err(not_a_url()) };
        let (host, auth) = (host.to_owned(), intercept.basic_auth().cloned());
        let proxy = Proxy { url: format!("http://{host}:{port}"), variable: name, auth };
        Ok(Some((proxy, Server::new("the proxy ", host, port))))
    }
}

/// A list of hosts by commas alone, where curl takes blanks too, and minds no dot at a name's end.
fn hosts(list: &str) -> String {
    let hosts = list.split([',', ' ', '\t']).map(|host| host.trim_end_matches('.'));
    hosts.filter(|host| !host.is_empty()).collect::<Vec<_>>().join(",")
}

fn is_local(host: &Host<&str>) -> bool {
    match host {
        Host::Ipv4(address) => address.is_loopback(),
        Host::Ipv6(address) => address.to_canonical().is_loopback(),
        Host::Domain(name) => {
            let name = name.trim_end_matches('.');
            name == "localhost" || name.ends_with(".localhost")
        }
    }
}

/// A URL's userinfo, its password alone, and both decoded. A user's name is no secret beside a password.
fn credentials(url: &str) -> Vec<Secret> {
    let (_, rest) = url.split_once("://").unwrap_or(("", url));
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    // A password with a stray `/` makes a URL that is refused, and is a secret all the same.
    let userinfo = authority.rsplit_once('@').or_else(|| rest.rsplit_once('@')).map(|(userinfo, _)| userinfo);
    let texts = userinfo.into_iter().flat_map(|userinfo| {
        let password = userinfo.split_once(':').map_or(userinfo, |(_, password)| password);
        [userinfo, password]
    });
    let decoded = |text: &str| percent_decode_str(text).decode_utf8_lossy().into_owned();
    texts.flat_map(|text| [Secret::new(text), Secret::new(decoded(text))]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn env(variables: &[(&str, &str)]) -> ProxyEnv {
        ProxyEnv::of(|asked| variables.iter().find(|(name, _)| *name == asked).map(|(_, value)| (*value).to_owned()))
    }

    /// The proxy's URL and the variable that named it.
    fn proxy(variables: &[(&str, &str)], target: &str) -> Option<(String, &'static str)> {
        let found = env(variables).on_the_way_to(&Url::parse(target).unwrap()).unwrap();
        found.map(|(proxy, _)| (proxy.url, proxy.variable))
    }

    fn error(variables: &[(&str, &str)], target: &str) -> String {
        let found = env(variables).on_the_way_to(&Url::parse(target).unwrap());
        found.err().map(|error| error.to_string()).unwrap()
    }

    #[test]
    fn the_variable_is_that_of_the_scheme_else_the_one_for_all() {
        let set = [("http_proxy", "http://a:1"), ("HTTPS_PROXY", "b"), ("ALL_PROXY", "http://[::2]:3/")];
        assert_eq!(proxy(&set, "http://x.example/v1"), Some(("http://a:1".to_owned(), "http_proxy")));
        assert_eq!(proxy(&set, "https://x.example/v1"), Some(("http://b:80".to_owned(), "HTTPS_PROXY")));
        assert_eq!(proxy(&set[2..], "https://x.example"), Some(("http://[::2]:3".to_owned(), "ALL_PROXY")));
        let both = [("HTTPS_PROXY", "http://upper"), ("https_proxy", "http://lower")];
        assert_eq!(proxy(&both, "https://x.example"), Some(("http://lower:80".to_owned(), "https_proxy")));
        assert_eq!(proxy(&[("https_proxy", " "), ("HTTP_PROXY", "http://a")], "http://x.example"), None);
    }

    #[test]
    fn some_hosts_are_reached_without() {
        let set = [("all_proxy", "http://p"), ("no_proxy", "inside.example, .corp,10.0.0.0/8,fd00::/8")];
        for outside in ["http://example", "http://notinside.example", "https://11.0.0.1", "https://[2001:db8::1]"] {
            assert!(proxy(&set, outside).is_some(), "{outside}");
        }
        for inside in ["http://INSIDE.example:8000", "https://a.inside.example", "http://a.corp", "http://10.1.2.3"] {
            assert_eq!(proxy(&set, inside), None, "{inside}");
        }
        for local in
            ["http://localhost:1", "https://a.localhost", "http://127.0.0.9", "http://[::1]", "http://[fd00::1]"]
        {
            assert_eq!(proxy(&set, local), None, "{local}");
        }
        let dotted = [("all_proxy", "http://p"), ("no_proxy", "one.example two.example.\t,three.example")];
        for inside in ["http://one.example", "http://two.example", "http://a.three.example.", "https://two.example."] {
            assert_eq!(proxy(&dotted, inside), None, "{inside}");
        }
        assert_eq!(proxy(&dotted, "http://localhost."), None);
        assert_eq!(proxy(&[("all_proxy", "http://p"), ("NO_PROXY", "*")], "http://x.example"), None);
    }

    #[test]
    fn what_cannot_be_used_is_named_without_its_value() {
        for (value, says) in [
            ("socks5h://me:hunter22@p:1", "`socks5h://` proxies are not supported"),
            ("https://me:hunter22@p:1", "`https://` proxies are not supported"),
            ("ftp://me:hunter22@p", "not the URL of a proxy"),
            ("http://me:hunter22/x@p", "not the URL of a proxy"),
            ("http://me:22/hunter22@p", "not the URL of a proxy"),
            ("me:22#hunter22@p", "not the URL of a proxy"),
            ("http://me:hunter22@x@p", "not the URL of a proxy"),
            ("http://me:hunter22 x@p", "not the URL of a proxy"),
        ] {
            let words = error(&[("https_proxy", value)], "https://x.example");
            assert!(words.contains(says) && words.contains("`https_proxy`") && !words.contains("hunter22"), "{words}");
            // It only matters where it would be used.
            assert_eq!(proxy(&[("https_proxy", value)], "http://x.example"), None);
            assert_eq!(proxy(&[("https_proxy", value), ("no_proxy", "x.example")], "https://x.example"), None);
        }
    }

    #[test]
    fn credentials_are_secrets_and_reach_the_proxy_decoded() {
        let env = env(&[("all_proxy", "http://me:p%40ss%2Fword@p:1")]);
        let secrets = env.secrets();
        for secret in ["me:p%40ss%2Fword", "p%40ss%2Fword", "me:p@ss/word", "p@ss/word"] {
            assert!(secrets.contains(&Secret::new(secret)), "{secret}");
        }
        let (proxy, _) = env.on_the_way_to(&Url::parse("http://x.example").unwrap()).unwrap().unwrap();
        assert_eq!(proxy.auth.unwrap(), "Basic bWU6cEBzcy93b3Jk");
        assert_eq!(proxy.url, "http://p:1");
        assert!(!format!("{env:?}").contains("word"));
        assert!(super::credentials("http://p:1/").is_empty());
        assert_eq!(super::credentials("http://token@p")[0], Secret::new("token"));
    }
}
