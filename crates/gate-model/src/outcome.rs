//! How a request ended.

use serde::{Deserialize, Serialize};

use crate::ErrorKind;

/// The one outcome of a planned request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// A 2xx status, at least one token, an end or a finish reason, and no error object.
    Ok,
    /// A 4xx status other than 429, or a redirect: the request does not fit the server.
    #[serde(rename = "http_4xx")]
    Http4xx,
    /// Status 429.
    #[serde(rename = "http_429")]
    Http429,
    /// A 5xx status.
    #[serde(rename = "http_5xx")]
    Http5xx,
    /// No connection.
    Connect,
    /// No TLS.
    Tls,
    /// No connection within `timeouts.connect`.
    TimeoutConnect,
    /// No first token within `timeouts.first_token`.
    TimeoutFirstToken,
    /// No further event within `timeouts.stall`.
    TimeoutStall,
    /// Not ended within `timeouts.total`, or within the run's own limit.
    TimeoutTotal,
    /// The connection was reset.
    Reset,
    /// An error object or event inside a 200 stream.
    StreamError,
    /// Closed with neither a terminal event nor a finish reason.
    Truncated,
    /// Ended well, with no token.
    Empty,
    /// Not the dialect's format.
    Decode,
    /// One body instead of a stream.
    NotStreamed,
    /// The run was stopped.
    Cancelled,
}

impl Outcome {
    /// Every outcome.
    pub const ALL: [Self; 17] = [
        Self::Ok,
        Self::Http4xx,
        Self::Http429,
        Self::Http5xx,
        Self::Connect,
        Self::Tls,
        Self::TimeoutConnect,
        Self::TimeoutFirstToken,
        Self::TimeoutStall,
        Self::TimeoutTotal,
        Self::Reset,
        Self::StreamError,
        Self::Truncated,
        Self::Empty,
        Self::Decode,
        Self::NotStreamed,
        Self::Cancelled,
    ];

    /// The name, as in every file.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Http4xx => "http_4xx",
            Self::Http429 => "http_429",
            Self::Http5xx => "http_5xx",
            Self::Connect => "connect",
            Self::Tls => "tls",
            Self::TimeoutConnect => "timeout_connect",
            Self::TimeoutFirstToken => "timeout_first_token",
            Self::TimeoutStall => "timeout_stall",
            Self::TimeoutTotal => "timeout_total",
            Self::Reset => "reset",
            Self::StreamError => "stream_error",
            Self::Truncated => "truncated",
            Self::Empty => "empty",
            Self::Decode => "decode",
            Self::NotStreamed => "not_streamed",
            Self::Cancelled => "cancelled",
        }
    }

    /// Whether the outcome counts in an error kind. `embedded_server_error` says whether a stream error
    /// carried a 5xx, overloaded or server error. `cancelled` is in no kind.
    #[must_use]
    pub fn is(self, kind: ErrorKind, embedded_server_error: bool) -> bool {
        match kind {
            ErrorKind::Any => !matches!(self, Self::Ok | Self::Cancelled),
            ErrorKind::Http4xx => self == Self::Http4xx,
            ErrorKind::Http429 => self == Self::Http429,
            ErrorKind::Http5xx => self == Self::Http5xx || (self == Self::StreamError && embedded_server_error),
            ErrorKind::Connect => matches!(self, Self::Connect | Self::Tls),
            ErrorKind::Timeout => {
                matches!(self, Self::TimeoutConnect | Self::TimeoutFirstToken | Self::TimeoutStall | Self::TimeoutTotal)
            }
            ErrorKind::Reset => self == Self::Reset,
            ErrorKind::Stream => self == Self::StreamError,
            ErrorKind::Truncated => self == Self::Truncated,
            ErrorKind::Empty => self == Self::Empty,
            ErrorKind::Decode => self == Self::Decode,
            ErrorKind::NotStreamed => self == Self::NotStreamed,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_failure_is_in_any_and_in_one_other_kind() {
        for outcome in Outcome::ALL {
            let kinds = ErrorKind::ALL.into_iter().filter(|kind| outcome.is(*kind, false)).count();
            let expected = if matches!(outcome, Outcome::Ok | Outcome::Cancelled) { 0 } else { 2 };
            assert_eq!(kinds, expected, "{}", outcome.name());
            let text = serde_json::to_string(&outcome).unwrap();
            assert_eq!(text, format!("\"{}\"", outcome.name()));
        }
        assert!(Outcome::StreamError.is(ErrorKind::Http5xx, true));
    }
}
