//! What goes wrong, in words for people; outside text is cleaned before it is kept.

use std::borrow::Cow;
use std::error::Error;
use std::io;

use gate_model::{Arm, HttpVersion, Redactor};
use http::StatusCode;

/// The most characters of a message.
const LONGEST: usize = 300;

/// One line of outside text: control characters out, secrets out, at most 300 characters.
pub(crate) fn clean(text: &str, redactor: &Redactor) -> String {
    clean_to(LONGEST, text, redactor)
}

/// One line of outside text: control characters out, secrets out, at most so many characters.
///
/// A text that is cut loses its last word too: it may be the beginning of a secret whose end was cut off before.
pub(crate) fn clean_to(longest: usize, text: &str, redactor: &Redactor) -> String {
    let line: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    let line = redactor.redact(line.trim());
    if line.chars().nth(longest).is_none() {
        return line.into_owned();
    }
    let cut: String = line.chars().take(longest.saturating_sub(1)).collect();
    format!("{}…", cut.trim_end_matches(|c: char| c.is_ascii_graphic()))
}

/// Words of ours, in which the keys that are the target's (`target.url`) become those of an arm.
pub(crate) fn key_of(arm: Arm, words: &str) -> Cow<'_, str> {
    match arm {
        Arm::Target => words.into(),
        Arm::Reference => words.replace("`target.", "`reference.").into(),
    }
}

/// How a connection was lost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Loss {
    /// By a reset.
    Reset,
    /// The server closed it before its answer was complete.
    Closed,
    /// What came is not the HTTP that is spoken.
    Garbled(String),
    /// What came is TLS, over plain HTTP.
    Encrypted,
    /// What came is the other version of HTTP than this one, which was spoken without TLS.
    OtherVersion(HttpVersion),
    /// By a TLS error after the handshake, in words.
    Tls(String),
    /// The server ended this request over HTTP/2, in words.
    Ended(String),
}

impl Loss {
    /// What hyper says of an exchange and, where that names no cause, of its connection.
    pub(crate) fn of(error: &hyper::Error, connection: Option<&hyper::Error>) -> Self {
        let errors = || [Some(error), connection].into_iter().flatten();
        if let Some(error) = errors().find_map(cause::<h2::Error>) {
            return Self::of_h2(error);
        }
        if let Some(error) = errors().find_map(cause::<io::Error>) {
            return Self::of_io(error);
        }
        if errors().any(hyper::Error::is_parse) {
            return Self::garbled(error);
        }
        if errors().any(hyper::Error::is_incomplete_message) { Self::Closed } else { Self::Reset }
    }

    fn of_io(error: &io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::UnexpectedEof => Self::Closed,
            io::ErrorKind::InvalidData | io::ErrorKind::InvalidInput => Self::garbled(error),
            _ => Self::Reset,
        }
    }

    fn of_h2(error: &h2::Error) -> Self {
        if let Some(error) = error.get_io() {
            return match error.kind() {
                // What h2 says of a connection that was closed while streams were open.
                io::ErrorKind::BrokenPipe => Self::Closed,
                _ => Self::of_io(error),
            };
        }
        let reason = error.reason().map_or_else(|| error.to_string(), |reason| format!("{reason:?}"));
        match error.is_remote() {
            true if error.is_go_away() => Self::Ended(format!("the server ended the connection (GOAWAY, {reason})")),
            true => Self::Ended(format!("the server reset the stream ({reason})")),
            false => Self::Garbled(format!("not sound HTTP/2 ({error})")),
        }
    }

    fn garbled(error: &dyn Error) -> Self {
        Self::Garbled(format!("not HTTP/1.1 ({error})"))
    }
}

/// What it means that a server speaks another version of HTTP than this one, without TLS.
pub(crate) fn other_version(spoken: HttpVersion) -> &'static str {
    match spoken {
        HttpVersion::Http1 => {
            "the server speaks HTTP/2 without TLS, and was asked in HTTP/1.1, which `load.http: auto` is without TLS: \
             use `load.http: 2`"
        }
        HttpVersion::Http2 => {
            "the server does not speak HTTP/2 without TLS: use `load.http: auto`, or have it accept HTTP/2 with prior \
             knowledge (h2c)"
        }
    }
}

/// Whether the server said, over HTTP/2, that it has not looked at a request: another connection may take it.
pub(crate) fn is_refused(error: &hyper::Error) -> bool {
    cause::<h2::Error>(error).is_some_and(|error| {
        error.is_remote()
            && match error.reason() {
                Some(h2::Reason::REFUSED_STREAM) => error.is_reset(),
                Some(h2::Reason::NO_ERROR) => error.is_go_away(),
                _ => false,
            }
    })
}

/// The cause of this kind.
fn cause<E: Error + 'static>(error: &hyper::Error) -> Option<&E> {
    std::iter::successors(error.source(), |cause| (*cause).source()).find_map(<dyn Error>::downcast_ref)
}

/// An answer with a status that isn't 2xx: the status, what the body says, and where a person should look.
pub(crate) fn status(status: StatusCode, message: Option<String>, location: Option<&str>) -> String {
    let reason = status.canonical_reason().map(|reason| format!(" {reason}")).unwrap_or_default();
    let message = message.map(|message| format!(": {message}")).unwrap_or_default();
    let remedy = match status.as_u16() {
        300..=303 | 305..=399 => match location {
            Some(location) => format!("; redirects are not followed: is `{location}` the right `target.url`?"),
            None => "; redirects are not followed: check `target.url`".to_owned(),
        },
        401 | 403 => "; check `target.key`".to_owned(),
        404 => "; check `target.url` and `target.model`".to_owned(),
        405 => "; check `target.url` and `target.api`".to_owned(),
        407 => "; check the user and password of the proxy that the environment names".to_owned(),
        429 => "; lower `load.rps`, or raise the quota".to_owned(),
        _ => String::new(),
    };
    // The remedy must survive the cut at the longest message, also where others quote this one.
    let room = LONGEST.saturating_sub(remedy.chars().count() + reason.chars().count() + 96);
    let message =
        if message.chars().count() > room { message.chars().take(room).chain(['…']).collect() } else { message };
    format!("the server answered {}{reason}{message}{remedy}", status.as_u16())
}

#[cfg(test)]
mod tests {
    use gate_model::Secret;

    use super::*;

    #[test]
    fn outside_text_is_one_clean_line() {
        let redactor = Redactor::new(&[Secret::new("sk-secret-1")]);
        assert_eq!(clean("  a\u{1b}[31mb\r\nkey sk-secret-1\0", &redactor), "a [31mb  key ***");
        let long = clean(&"é".repeat(400), &redactor);
        assert_eq!(long.chars().count(), LONGEST);
        assert!(long.ends_with('…'));
        assert_eq!(clean(&"é".repeat(LONGEST), &redactor), "é".repeat(LONGEST));
        let half = format!("{} sk-sec{}", "word ".repeat(50), "x".repeat(100));
        assert_eq!(clean(&half, &redactor), format!("{} …", "word ".repeat(50)));
    }

    #[test]
    fn a_status_says_where_to_look() {
        let words = status(StatusCode::UNAUTHORIZED, Some("x".repeat(400)), None);
        assert!(words.starts_with("the server answered 401 Unauthorized: xxx"), "{words}");
        assert!(words.ends_with("; check `target.key`") && words.chars().count() <= LONGEST, "{words}");
        assert_eq!(status(StatusCode::BAD_GATEWAY, None, None), "the server answered 502 Bad Gateway");
        assert!(status(StatusCode::FOUND, None, Some("/login")).contains("is `/login` the right `target.url`?"));
    }
}
