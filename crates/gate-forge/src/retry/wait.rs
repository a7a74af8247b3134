//! How long an answer asks to wait.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use http::HeaderMap;
use http::header::RETRY_AFTER;
use jiff::fmt::rfc2822::DateTimeParser;

use crate::http::Answer;

/// What GitHub advises after a secondary limit that names no time.
const SECONDARY: Duration = Duration::from_secs(60);
/// How often an error of the server or the connection is tried again.
const TRIES: u32 = 3;

/// What may be done after an answer that is no success.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wait {
    /// Nothing: another try ends the same.
    Final,
    /// Nothing was done; try again after this time.
    Limit(Duration),
    /// It is not known whether anything was done; what may be repeated is tried again after this time.
    Uncertain(Duration),
}

impl Wait {
    /// After an answer, of which there were `tries` such before.
    ///
    /// Source: GitHub's REST documentation, "Rate limits", "Exceeding the rate limit"; GitLab answers 429 with
    /// `Retry-After`.
    pub(super) fn after(answer: &Answer, tries: u32, now: SystemTime) -> Self {
        let asked = asked(&answer.headers, now);
        match answer.status {
            429 => Self::Limit(asked.unwrap_or_else(|| grown(SECONDARY, tries))),
            403 => match asked {
                Some(asked) => Self::Limit(asked),
                None if is_secondary(&answer.body) => Self::Limit(grown(SECONDARY, tries)),
                None => Self::Final,
            },
            408 | 500.. if tries < TRIES => {
                Self::Uncertain(asked.unwrap_or_else(|| grown(Duration::from_secs(1), tries)))
            }
            _ => Self::Final,
        }
    }

    /// After none.
    pub(super) fn after_no_answer(tries: u32) -> Self {
        if tries < TRIES { Self::Uncertain(grown(Duration::from_secs(1), tries)) } else { Self::Final }
    }
}

/// The time that the headers ask for: at least a second.
fn asked(headers: &HeaderMap, now: SystemTime) -> Option<Duration> {
    let text = |name: &str| headers.get(name)?.to_str().ok().map(str::trim);
    let since_epoch = now.duration_since(UNIX_EPOCH).unwrap_or_default();
    let until = |seconds: u64| Duration::from_secs(seconds).saturating_sub(since_epoch);
    let retry_after = text(RETRY_AFTER.as_str()).and_then(|after| match after.parse() {
        Ok(seconds) => Some(Duration::from_secs(seconds)),
        Err(_) => {
            let date = DateTimeParser::new().parse_timestamp(after).ok()?;
            Some(until(u64::try_from(date.as_second()).ok()?))
        }
    });
    // GitHub's names for it, and GitLab's.
    let reset = |remaining: &str, reset: &str| {
        if text(remaining)? != "0" {
            return None;
        }
        text(reset)?.parse().ok().map(until)
    };
    let reset = || {
        reset("x-ratelimit-remaining", "x-ratelimit-reset").or_else(|| reset("ratelimit-remaining", "ratelimit-reset"))
    };
    retry_after.or_else(reset).map(|wait| wait.max(Duration::from_secs(1)))
}

/// Twice as long after each try.
fn grown(first: Duration, tries: u32) -> Duration {
    first.saturating_mul(1 << tries.min(16))
}

/// Whether GitHub says that requests came too fast, where it gives no time.
fn is_secondary(body: &[u8]) -> bool {
    let text = String::from_utf8_lossy(body).to_ascii_lowercase();
    text.contains("secondary rate limit") || text.contains("abuse detection")
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;

    fn after(status: u16, headers: &[(&'static str, &str)], body: &str, tries: u32) -> Wait {
        let name = http::HeaderName::from_static;
        let headers = headers.iter().map(|(header, value)| (name(header), value.parse().unwrap())).collect();
        let answer = Answer { status, headers, body: Bytes::copy_from_slice(body.as_bytes()) };
        Wait::after(&answer, tries, UNIX_EPOCH + Duration::from_secs(1_700_000_000))
    }

    fn seconds(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn a_limit_is_waited_out_as_long_as_the_forge_says() {
        assert_eq!(after(429, &[("retry-after", "17")], "", 0), Wait::Limit(seconds(17)));
        assert_eq!(after(403, &[("retry-after", "17")], "", 5), Wait::Limit(seconds(17)));
        assert_eq!(after(429, &[("retry-after", "0")], "", 0), Wait::Limit(seconds(1)));
        let date = [("retry-after", "Tue, 14 Nov 2023 22:15:00 GMT")];
        assert_eq!(after(429, &date, "", 0), Wait::Limit(seconds(100)));
        let reset = [("x-ratelimit-remaining", "0"), ("x-ratelimit-reset", "1700000030")];
        assert_eq!(after(403, &reset, "", 0), Wait::Limit(seconds(30)));
        let of_gitlab = [("ratelimit-remaining", "0"), ("ratelimit-reset", "1700000030")];
        assert_eq!(after(429, &of_gitlab, "", 0), Wait::Limit(seconds(30)));
        let past = [("x-ratelimit-remaining", "0"), ("x-ratelimit-reset", "1600000000")];
        assert_eq!(after(429, &past, "", 0), Wait::Limit(seconds(1)));
    }

    #[test]
    fn a_secondary_limit_without_a_time_waits_a_minute_then_two() {
        let words = r#"{"message":"You have exceeded a secondary rate limit. Please wait"}"#;
        assert_eq!(after(403, &[], words, 0), Wait::Limit(seconds(60)));
        assert_eq!(after(403, &[], words, 1), Wait::Limit(seconds(120)));
        assert_eq!(after(429, &[("retry-after", "soon")], "", 2), Wait::Limit(seconds(240)));
    }

    #[test]
    fn a_permission_is_no_limit() {
        let left = [("x-ratelimit-remaining", "990"), ("x-ratelimit-reset", "1700000030")];
        assert_eq!(after(403, &left, "Resource not accessible by integration", 0), Wait::Final);
        for status in [301, 400, 401, 404, 410, 422] {
            assert_eq!(after(status, &[], "", 0), Wait::Final, "{status}");
        }
    }

    #[test]
    fn an_error_of_the_server_leaves_open_what_it_did() {
        for (tries, wait) in [(0, 1), (1, 2), (2, 4)] {
            assert_eq!(after(502, &[], "", tries), Wait::Uncertain(seconds(wait)));
            assert_eq!(Wait::after_no_answer(tries), Wait::Uncertain(seconds(wait)));
        }
        assert_eq!(after(502, &[], "", 3), Wait::Final);
        assert_eq!(Wait::after_no_answer(3), Wait::Final);
        assert_eq!(after(503, &[("retry-after", "9")], "", 0), Wait::Uncertain(seconds(9)));
    }
}
