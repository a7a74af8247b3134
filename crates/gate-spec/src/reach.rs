//! What a gate reaches: where its requests go, and what of the machine goes with them.

use std::collections::BTreeSet;
use std::fmt;
use std::net::Ipv6Addr;
use std::str::FromStr;

use gate_model::{Endpoint, GateSpec, Target, UnixUrl};
use url::Url;

use crate::{Overlay, Resolved};

/// Where requests go: a scheme, a host and a port, or a Unix socket.
///
/// Hosts are as URLs have them after parsing: in lower case, international names in their ASCII form, IPv6 addresses in
/// brackets. Two are equal only if scheme, host and port are: a key that goes over `https` is not meant to go over
/// `http`, nor to whoever listens on another port.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Destination {
    /// Its URL without path and query; the port only where it is not the scheme's own.
    whole: String,
    /// The host and port; a socket has none.
    host: Option<(String, u16)>,
}

impl Destination {
    /// Where requests to a URL go; `None` where it is none.
    fn of(url: &str) -> Option<Self> {
        if let Some(UnixUrl { socket, .. }) = UnixUrl::parse(url) {
            return Some(Self { whole: format!("unix:{socket}"), host: None });
        }
        let url = Url::parse(url).ok()?;
        let host = (url.host_str()?.to_owned(), url.port_or_known_default()?);
        Some(Self { whole: url.origin().ascii_serialization(), host: Some(host) })
    }

    /// The shortest text by which a flag allows it: the host, or the whole URL of a socket.
    #[must_use]
    pub fn name(&self) -> &str {
        self.host.as_ref().map_or(&self.whole, |(host, _)| host)
    }
}

impl fmt::Display for Destination {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.whole)
    }
}

/// Every place that a run of this gate sends anything to: the target, the reference, and where metrics are read.
///
/// Readiness is asked at the same places. The simulated engine is none. An image's address counts, although the model's
/// server fetches it: what stands in it reaches whoever it names. A proxy is the machine's, not the spec's.
#[must_use]
pub fn destinations(spec: &GateSpec) -> BTreeSet<Destination> {
    let of = |url: &str| Destination::of(url).unwrap_or_else(|| Destination { whole: url.to_owned(), host: None });
    let mut found = BTreeSet::new();
    for target in arms(spec) {
        let Endpoint::Url(url) = &target.endpoint else { continue };
        found.insert(of(url));
        found.extend(target.metrics.as_deref().map(of));
    }
    // Beside the simulated engine metrics may be another server's; a mere path is the engine's own.
    let others = arms(spec).filter_map(|target| target.metrics.as_deref());
    found.extend(others.filter(|metrics| !metrics.starts_with('/')).map(of));
    let images = scenarios(spec).flat_map(|scenario| &spec.prompts_of(scenario).images);
    found.extend(
        images.filter(|image| image.starts_with("http://") || image.starts_with("https://")).map(|image| of(image)),
    );
    found
}

/// The places that flags name: whoever wrote the command line has vouched for them.
#[must_use]
pub fn destinations_of_flags(overlays: &[Overlay]) -> BTreeSet<Destination> {
    let urls = ["target.url", "reference.url", "target.metrics"];
    let named = overlays.iter().filter(|overlay| urls.contains(&overlay.path.as_str()));
    named.filter_map(|overlay| Destination::of(overlay.value.trim())).collect()
}

/// Files of which a run sends the content: prompts and images. As the spec names them, relative to its folder.
#[must_use]
pub fn sent_files(spec: &GateSpec) -> BTreeSet<String> {
    let is_file = |image: &&String| !["http://", "https://", "data:"].iter().any(|start| image.starts_with(start));
    let mut found = BTreeSet::new();
    for prompts in scenarios(spec).map(|scenario| spec.prompts_of(scenario)) {
        found.extend(prompts.file.clone());
        found.extend(prompts.images.iter().filter(is_file).cloned());
    }
    found
}

/// Whether anything in it is a secret: a key, a header that holds one, a value from the environment in a body, a query's
/// value, AWS credentials, a certificate's private key.
#[must_use]
pub fn carries_secrets(resolved: &Resolved) -> bool {
    !resolved.secrets.is_empty() || arms(&resolved.spec).any(|target| target.key.is_some() || target.tls.key.is_some())
}

fn scenarios(spec: &GateSpec) -> std::ops::Range<u16> {
    0..u16::try_from(spec.scenarios.len().max(1)).unwrap_or(u16::MAX)
}

fn arms(spec: &GateSpec) -> impl Iterator<Item = &Target> {
    std::iter::once(&spec.target).chain(&spec.reference)
}

/// What `--allow-host` names: a host on any port (`h.example`), on one (`h.example:8443`), or a socket
/// (`unix:/run/server.sock`). Whichever the scheme.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AllowedHost {
    /// As in [`Destination`]; a socket's whole URL.
    name: String,
    port: Option<u16>,
}

/// Why a text names no host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AllowedHostError {
    /// It is a URL.
    #[error("it is a URL: write the host alone, or `host:port`")]
    Url,
    /// It is something else.
    #[error("write a host such as `models.example.com`, `127.0.0.1:8000` or `[::1]:8000`")]
    Invalid,
}

impl AllowedHost {
    /// Whether requests may go there.
    #[must_use]
    pub fn covers(&self, destination: &Destination) -> bool {
        match &destination.host {
            Some((host, port)) => *host == self.name && self.port.is_none_or(|allowed| allowed == *port),
            None => self.port.is_none() && destination.whole == self.name,
        }
    }
}

impl FromStr for AllowedHost {
    type Err = AllowedHostError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let text = text.trim();
        if let Some(UnixUrl { socket, path: "" }) = UnixUrl::parse(text).filter(|url| url.socket.starts_with('/')) {
            return Ok(Self { name: format!("unix:{socket}"), port: None });
        }
        if text.contains("://") {
            return Err(AllowedHostError::Url);
        }
        // An IPv6 address in brackets may have a port behind it, one without is all there is.
        let (host, port) = match text.rsplit_once(':') {
            _ if text.parse::<Ipv6Addr>().is_ok() => (format!("[{text}]"), None),
            Some((host, port)) if !text.ends_with(']') => {
                (host.to_owned(), Some(port.parse().map_err(|_| AllowedHostError::Invalid)?))
            }
            _ => (text.to_owned(), None),
        };
        if host.contains(['/', '?', '#', '@', '*']) || (host.contains(':') && !host.starts_with('[')) {
            return Err(AllowedHostError::Invalid);
        }
        // The host of an http URL, so that it is read as that of the spec's is.
        let url = Url::parse(&format!("http://{host}/")).map_err(|_| AllowedHostError::Invalid)?;
        let name = url.host_str().ok_or(AllowedHostError::Invalid)?.to_owned();
        Ok(Self { name, port })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::resolve;

    fn resolved(target: &str, more: &str) -> Resolved {
        let variables = [("KEY", "sk-planted"), ("AWS_BEARER_TOKEN_BEDROCK", "bedrock-key")];
        let environment: BTreeMap<_, _> = variables.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
        let text = format!("version: 1\nname: n\ntarget: {target}\nrequire: [ttft.p50 < 1s]\n{more}\n");
        resolve("n.yaml", &text, &environment, &[]).unwrap_or_else(|problems| panic!("{target}: {problems:?}"))
    }

    #[test]
    fn every_place_is_named_once_and_as_urls_have_it() {
        let reference = "reference: {url: 'https://H.Example:443/v1?key=x'}";
        for (target, more, expected) in [
            ("{url: 'http://127.0.0.1:8000/v1'}", "", vec!["http://127.0.0.1:8000"]),
            ("{url: 'https://H.Example/v1', metrics: /metrics}", reference, vec!["https://h.example"]),
            ("{url: 'http://h', metrics: 'http://M.example:9090/m'}", "", vec!["http://h", "http://m.example:9090"]),
            ("{url: 'http://bücher.example'}", "", vec!["http://xn--bcher-kva.example"]),
            ("{url: 'http://[0:0::1]:80'}", "", vec!["http://[::1]"]),
            ("{url: 'http://0x7f.1/'}", "", vec!["http://127.0.0.1"]),
            ("{url: 'unix:///run/x.sock:/v1', metrics: /m}", "", vec!["unix:/run/x.sock"]),
            ("{sim: {}}", "", vec![]),
            ("{sim: {}}", "reference: {url: 'http://r'}", vec!["http://r"]),
        ] {
            let found: Vec<_> = destinations(&resolved(target, more).spec).iter().map(Destination::to_string).collect();
            assert_eq!(found, expected, "{target} {more}");
        }
    }

    #[test]
    fn an_allowed_host_covers_what_it_names_and_nothing_else() {
        for (allowed, url, covers) in [
            ("h.example", "https://h.example/v1", true),
            ("H.Example", "http://h.example:8443", true),
            ("h.example", "https://h.example.evil.example", false),
            ("example", "https://h.example", false),
            ("h.example:8443", "https://h.example:8443", true),
            ("h.example:443", "https://h.example", true),
            ("h.example:8443", "https://h.example", false),
            ("::1", "http://[::1]:8000", true),
            ("[::1]", "http://[::1]:8000", true),
            ("[::1]:8000", "http://[::1]:8000", true),
            ("[::1]:8001", "http://[::1]:8000", false),
            ("bücher.example", "http://xn--bcher-kva.example", true),
            ("unix:/run/x.sock", "unix:///run/x.sock:/v1", true),
            ("unix:/run/x.sock", "unix:/run/y.sock", false),
        ] {
            let destination = Destination::of(url).unwrap();
            assert_eq!(allowed.parse::<AllowedHost>().unwrap().covers(&destination), covers, "{allowed} {url}");
        }
        assert_eq!("https://h".parse::<AllowedHost>(), Err(AllowedHostError::Url));
        for text in ["", " ", "h/x", "a@h", "*.example", "h:port", "h:99999", "a b", "h:1:2", "h#x", "unix:x", ":80"] {
            assert_eq!(text.parse::<AllowedHost>(), Err(AllowedHostError::Invalid), "{text}");
        }
    }

    #[test]
    fn secrets_are_noticed_wherever_they_are() {
        for (target, carries) in [
            ("{url: 'http://h'}", false),
            ("{url: 'http://h', headers: {X-Team: inference}}", false),
            ("{url: 'http://h', key: literal}", true),
            ("{url: 'http://h', headers: {X-Team: '${KEY}'}}", true),
            ("{url: 'http://h', extra_body: {user: '${KEY}'}}", true),
            ("{url: 'http://h/v1?sig=abc'}", true),
            ("{url: 'https://h', tls: {cert: c.pem, key: k.pem}}", true),
            ("{url: 'http://h', api: bedrock-converse, model: m}", true),
        ] {
            assert_eq!(carries_secrets(&resolved(target, "")), carries, "{target}");
        }
    }

    #[test]
    fn every_variable_is_told_with_its_place() {
        let spec = resolved(
            "{url: \"http://h/\\x24{KEY}\", model: '${NONE:-m}', headers: {a: '$${B}'}, api: bedrock-converse}",
            "prompts: {system: 'say ${KEY}'}\noutcomes: {no_baseline: '${W:-pass}'}",
        );
        let names: Vec<_> = spec.variables.keys().map(String::as_str).collect();
        assert_eq!(names, ["AWS_BEARER_TOKEN_BEDROCK", "KEY", "NONE", "W"]);
        assert_eq!(spec.variables["KEY"].line, 3);
    }

    #[test]
    fn files_that_are_sent() {
        let spec = resolved(
            "{url: 'http://h'}",
            "prompts: {file: ../x.txt, images: [a.png, 'http://i/b.png'], tokenizer: t.json}",
        );
        assert_eq!(sent_files(&spec.spec).into_iter().collect::<Vec<_>>(), ["../x.txt", "a.png"]);
        let to: Vec<String> = destinations(&spec.spec).iter().map(ToString::to_string).collect();
        assert!(to.len() == 2 && to.iter().any(|one| one.contains('i')), "the picture's server learns of it: {to:?}");
    }
}
