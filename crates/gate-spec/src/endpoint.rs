//! The URL of an endpoint.

use gate_model::{Secret, UnixUrl};
use url::Url;

/// Why a text is not the URL of an endpoint. Nothing here repeats the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum UrlError {
    #[error("is empty")]
    Empty,
    #[error("has no scheme")]
    NoScheme,
    #[error("is a unix: URL without the path of a socket")]
    NoSocket,
    #[error("names its socket by a relative path")]
    RelativeSocket,
    #[error("has its `unix:` in capitals")]
    Capitals,
    #[error("has a scheme other than http, https or unix")]
    OtherScheme,
    #[error("has no host")]
    NoHost,
    #[error("holds a user name or password, which is not yet supported")]
    Userinfo,
    #[error("holds a fragment (`#…`), which is never sent")]
    Fragment,
    #[error("is not a valid URL")]
    Invalid,
}

impl UrlError {
    /// What to do.
    pub(crate) fn hint(self) -> &'static str {
        match self {
            Self::Userinfo => "put credentials in `target.key` or `target.headers`",
            Self::NoSocket => {
                "write the socket's path, such as `unix:/run/server.sock`, or `unix:/run/server.sock:/v1`"
            }
            Self::RelativeSocket => "write the absolute path, such as `unix:/run/server.sock`",
            Self::Capitals => "write `unix:` in lower case",
            Self::Fragment => "remove the `#` and what follows it",
            Self::Empty | Self::NoScheme | Self::OtherScheme | Self::NoHost | Self::Invalid => {
                "write it with its scheme, `http://` or `https://`: such as `http://127.0.0.1:8000/v1`; a socket's is \
                 `unix:/run/server.sock`"
            }
        }
    }
}

/// Checks the URL, and finds the credentials in its query.
pub(crate) fn parse(text: &str) -> Result<Vec<Secret>, UrlError> {
    if text.is_empty() {
        return Err(UrlError::Empty);
    }
    if let Some(UnixUrl { socket, path }) = UnixUrl::parse(text) {
        return match socket {
            "" => Err(UrlError::NoSocket),
            _ if !socket.starts_with('/') => Err(UrlError::RelativeSocket),
            _ if socket.contains(char::is_control) => Err(UrlError::Invalid),
            // What holds for a path and query behind a host holds for those behind a socket.
            _ => parse(&format!("http://localhost{path}")),
        };
    }
    if text.get(..5).is_some_and(|scheme| scheme.eq_ignore_ascii_case("unix:")) {
        return Err(UrlError::Capitals);
    }
    // Without `://`, `localhost:8000` would be a URL of the scheme `localhost`.
    if !text.contains("://") {
        return Err(UrlError::NoScheme);
    }
    if text.contains(|symbol: char| symbol.is_whitespace() || symbol.is_control()) {
        return Err(UrlError::Invalid);
    }
    let url = Url::parse(text).map_err(|error| match error {
        url::ParseError::EmptyHost => UrlError::NoHost,
        _ => UrlError::Invalid,
    })?;
    if !["http", "https"].contains(&url.scheme()) {
        return Err(UrlError::OtherScheme);
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(UrlError::Userinfo);
    }
    if url.fragment().is_some() {
        return Err(UrlError::Fragment);
    }
    Ok(query_secrets(url.query().unwrap_or("")))
}

/// The credentials in a query: whatever its names are, their values may be some; all but the well-known harmless ones
/// are kept.
pub(crate) fn query_secrets(query: &str) -> Vec<Secret> {
    let is_kept = |name: &str| !["api-version", "alt", "version"].contains(&name);
    let values = url::form_urlencoded::parse(query.as_bytes()).filter(|(name, _)| is_kept(name));
    let as_written = query.split('&').filter_map(|pair| pair.split_once('=')).filter(|(name, _)| is_kept(name));
    let secrets = values.map(|(_, value)| Secret::new(value)).chain(as_written.map(|(_, value)| Secret::new(value)));
    secrets.filter(|secret| !secret.expose().is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_are_checked() {
        for (text, result) in [
            ("http://127.0.0.1:8000", Ok(vec![])),
            ("http://[::1]:8000/v1", Ok(vec![])),
            ("http://h/v1?api-version=1", Ok(vec![])),
            ("http://h/v1?api_key=abc&x=12", Ok(vec!["abc", "12", "abc", "12"])),
            ("http://h/v1?sig=a%20b", Ok(vec!["a b", "a%20b"])),
            ("", Err(UrlError::Empty)),
            ("localhost:8000", Err(UrlError::NoScheme)),
            ("127.0.0.1", Err(UrlError::NoScheme)),
            ("https://h/v1?token=abc", Ok(vec!["abc", "abc"])),
            ("https:h", Err(UrlError::NoScheme)),
            ("https://", Err(UrlError::NoHost)),
            ("unix:/run/x.sock", Ok(vec![])),
            ("unix:/run/x y.sock:/v1?api_key=abc", Ok(vec!["abc", "abc"])),
            ("unix:live.sock", Err(UrlError::RelativeSocket)),
            ("unix:run/x.sock:/v1", Err(UrlError::RelativeSocket)),
            ("UNIX:/run/x.sock", Err(UrlError::Capitals)),
            ("unix:", Err(UrlError::NoSocket)),
            ("unix::/v1", Err(UrlError::NoSocket)),
            ("unix:/run/x\0.sock", Err(UrlError::Invalid)),
            ("unix:/run/x.sock:/v 1", Err(UrlError::Invalid)),
            ("unix:/run/x.sock:/v1#x", Err(UrlError::Fragment)),
            ("ftp://h", Err(UrlError::OtherScheme)),
            ("http://", Err(UrlError::NoHost)),
            ("http://h:99999", Err(UrlError::Invalid)),
            ("http://a b/", Err(UrlError::Invalid)),
            ("http://user:word@h/", Err(UrlError::Userinfo)),
            ("http://h/#x", Err(UrlError::Fragment)),
        ] {
            let secrets = result.map(|texts| texts.into_iter().map(Secret::new).collect::<Vec<_>>());
            assert_eq!(parse(text), secrets, "{text}");
        }
    }
}
