//! When a run is given up by its own rules.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, SystemTime};

use gate_model::{Arm, EndReason, Nanos, Outcome, Sample};
use http::{HeaderMap, StatusCode, header};

use crate::Stop;
use crate::client::Cuts;

/// After so many refusals of the credentials, one after another.
const UNAUTHORIZED: u32 = 3;
/// A server that says to come back so much later gives no more within a run.
const MUCH_LATER: Duration = Duration::from_secs(60);

/// Gives a run up: nothing more is sent, and what is open ends as it does. Its clones are the same.
#[derive(Clone)]
pub(crate) struct Aborts(Arc<Inner>);

struct Inner {
    reason: OnceLock<EndReason>,
    /// Ends sending.
    halt: Stop,
    cuts: Cuts,
    /// After so many failures to connect one after another; 0: never.
    most: u32,
    strikes: Mutex<[Strikes; 2]>,
}

/// What an arm's last requests have in common.
#[derive(Clone, Copy, Default)]
struct Strikes {
    /// So many found no connection.
    connections: u32,
    /// So many had their credentials refused.
    credentials: u32,
}

impl Aborts {
    /// Gives up after so many failures to connect.
    pub(crate) fn new(most: u32, halt: Stop, cuts: Cuts) -> Self {
        Self(Arc::new(Inner { reason: OnceLock::new(), halt, cuts, most, strikes: Mutex::default() }))
    }

    /// Gives the run up; the first reason stands, and none where it was cut or stopped before.
    pub(crate) fn give_up(&self, reason: EndReason) {
        let Inner { halt, cuts, .. } = &*self.0;
        if cuts.by().is_none() && !halt.is_triggered() && self.0.reason.set(reason).is_ok() {
            halt.trigger();
        }
    }

    /// Why it was given up.
    pub(crate) fn reason(&self) -> Option<&EndReason> {
        self.0.reason.get()
    }

    /// A measured request ended; where the server gives no more for a long time, `quota` says so in words.
    pub(crate) fn ended(&self, sample: &Sample, quota: Option<String>) {
        if let Some(words) = quota {
            return self.give_up(EndReason::Quota(words));
        }
        let strikes = {
            let mut arms = self.0.strikes.lock().unwrap_or_else(PoisonError::into_inner);
            let [target, reference] = &mut *arms;
            let strikes = if sample.arm == Arm::Target { target } else { reference };
            strikes.count(sample);
            *strikes
        };
        let message = || {
            let words = sample.error.clone().unwrap_or_default();
            if sample.arm == Arm::Reference { format!("the reference: {words}") } else { words }
        };
        if self.0.most > 0 && strikes.connections >= self.0.most {
            self.give_up(EndReason::Unreachable { count: strikes.connections, message: message() });
        }
        if strikes.credentials >= UNAUTHORIZED {
            self.give_up(EndReason::Unauthorized(message()));
        }
    }
}

impl Strikes {
    fn count(&mut self, sample: &Sample) {
        match (sample.outcome, sample.status) {
            (Outcome::Connect | Outcome::Tls | Outcome::TimeoutConnect, _) => self.connections += 1,
            (Outcome::Cancelled, None) => {}
            (_, Some(401 | 403)) => *self = Self { connections: 0, credentials: self.credentials + 1 },
            _ => *self = Self::default(),
        }
    }
}

/// Says in words that a server gives no more for a long time, where a refusal means that.
pub(crate) fn quota(status: StatusCode, headers: &HeaderMap, body: &str, now: SystemTime) -> Option<String> {
    if status == StatusCode::PAYMENT_REQUIRED {
        return Some("the server wants to be paid first".to_owned());
    }
    if status != StatusCode::TOO_MANY_REQUESTS {
        return None;
    }
    if let Some(later) = retry_after(headers, now).filter(|later| *later >= MUCH_LATER) {
        return Some(format!("the server says to come back in {}", in_words(later)));
    }
    let headers = headers.iter().filter_map(|(name, value)| Some(format!("{name}: {}", value.to_str().ok()?)));
    let text: String = headers.chain([body.to_owned()]).collect::<Vec<_>>().join("\n").to_ascii_lowercase();
    let speaks_of = |words: &[&str]| words.iter().any(|word| text.contains(word));
    const LONG: [&str; 8] =
        ["insufficient_quota", "per day", "per-day", "per_day", "perday", "per month", "per_month", "permonth"];
    const QUOTA: [&str; 3] = ["quota", "limit", "exceeded"];
    const SHORT: [&str; 6] = ["per minute", "per_minute", "perminute", "per second", "per_second", "persecond"];
    let is_long = speaks_of(&LONG) || speaks_of(&["daily", "monthly"]) && speaks_of(&QUOTA);
    // Some name the page of bills with every refusal.
    let is_unpaid = speaks_of(&["billing", "out of credits"]) && !speaks_of(&SHORT);
    (is_long || is_unpaid).then(|| "a quota for a long time is used up".to_owned())
}

/// A wait in words; one that no clock of ours could count is told as longer than any.
fn in_words(later: Duration) -> String {
    const DAY: u64 = 86_400;
    match later.as_secs() / DAY {
        0 | 1 => Nanos::from(later).to_string(),
        days if days > 36_500 => "more than 100 years".to_owned(),
        days => format!("{days} days"),
    }
}

/// How long a server says to wait: a number too large to count is the longest there is.
fn retry_after(headers: &HeaderMap, now: SystemTime) -> Option<Duration> {
    let text = headers.get(header::RETRY_AFTER)?.to_str().ok()?.trim();
    match text.parse::<f64>() {
        Ok(seconds) if seconds >= 0.0 => Some(Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX)),
        Ok(_) => None,
        Err(_) => http_date(text)?.duration_since(now).ok(),
    }
}

/// The instant of a date as HTTP writes it: `Wed, 21 Oct 2026 07:28:00 GMT`. A year after 9999 counts as 9999.
fn http_date(text: &str) -> Option<SystemTime> {
    const MONTHS: [&str; 12] = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let (_, rest) = text.split_once(", ")?;
    let mut words = rest.split_ascii_whitespace();
    let day: u64 = words.next()?.parse().ok().filter(|day| (1..=31).contains(day))?;
    let name = words.next()?;
    let month = MONTHS.iter().position(|month| *month == name)? as u64 + 1;
    let year = words.next().filter(|year| year.bytes().all(|digit| digit.is_ascii_digit()) && !year.is_empty())?;
    let year: u64 = year.parse().unwrap_or(u64::MAX).min(9_999);
    if year < 1970 {
        return None;
    }
    let mut clock = words.next()?.split(':').map(|part| part.parse::<u64>().ok());
    let mut part = || clock.next().flatten();
    let (hours, minutes, seconds) = (part()?, part()?, part()?);
    // A leap second is one.
    if hours > 23 || minutes > 59 || seconds > 60 {
        return None;
    }
    // Days from the civil calendar, the year beginning in March: http://howardhinnant.github.io/date_algorithms.html
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let days = 365 * year + year / 4 - year / 100 + year / 400 + (153 * month + 2) / 5 + day - 1;
    let since_1970 = days.checked_sub(719_468)? * 86_400 + hours * 3_600 + minutes * 60 + seconds;
    SystemTime::UNIX_EPOCH.checked_add(Duration::from_secs(since_1970))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(retry_after: &str, body: &str) -> Option<String> {
        let mut headers = HeaderMap::new();
        headers.insert(header::RETRY_AFTER, retry_after.parse().unwrap());
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(1_792_567_680);
        quota(StatusCode::TOO_MANY_REQUESTS, &headers, body, now)
    }

    #[test]
    fn a_quota_is_told_from_a_limit_that_passes() {
        assert_eq!(said("59", "slow down"), None);
        assert_eq!(said("60", ""), Some("the server says to come back in 60 s".to_owned()));
        // One hour after `now`, and one before.
        assert!(said("Wed, 21 Oct 2026 08:28:00 GMT", "").is_some_and(|words| words.contains("60 min")));
        assert_eq!(said("Wed, 21 Oct 2026 06:28:00 GMT", ""), None);
        let in_words = |wait: &str| Some(format!("the server says to come back in {wait}"));
        assert_eq!(said("172800", ""), in_words("2 days"));
        let nines = "9".repeat(400);
        for text in ["99999999999999999999999", "1e300", &nines, "Fri, 31 Dec 99999999999999999999 23:59:59 GMT"] {
            assert_eq!(said(text, ""), in_words("more than 100 years"), "{text}");
        }
        for text in ["-99999999999999999999999", "-1", "NaN", "99999999999999999999999 s"] {
            assert_eq!(said(text, ""), None, "{text}");
        }
        for body in [
            r#"{"error":{"code":"insufficient_quota"}}"#,
            "Rate limit reached for requests per day (RPD)",
            "GenerateRequestsPerDayPerProjectPerModel",
            "You have reached your monthly limit",
            "Daily quota exceeded",
            "Please check your plan and billing details",
        ] {
            assert!(said("1", body).is_some(), "{body}");
        }
        for body in ["limit reached: requests per minute", "billing page; GenerateRequestsPerMinute", "", "Tuesday"] {
            assert_eq!(said("1", body), None, "{body}");
        }
        assert_eq!(quota(StatusCode::FORBIDDEN, &HeaderMap::new(), "insufficient_quota", SystemTime::now()), None);
    }

    #[test]
    fn a_date_of_http_is_an_instant() {
        let at = |seconds| Some(SystemTime::UNIX_EPOCH + Duration::from_secs(seconds));
        assert_eq!(http_date("Sun, 06 Nov 1994 08:49:37 GMT"), at(784_111_777));
        assert_eq!(http_date("Thu, 01 Jan 1970 00:00:00 GMT"), at(0));
        assert_eq!(http_date("Thu, 29 Feb 2024 23:59:59 GMT"), at(1_709_251_199));
        let (last, after) = ("Fri, 31 Dec 9999 23:59:59 GMT", "Fri, 31 Dec 18446744073709551616 23:59:59 GMT");
        assert_eq!(http_date(last), at(253_402_300_799));
        assert_eq!(http_date(after), http_date(last));
        for text in [
            "",
            "tomorrow",
            "Thu, 01 Foo 2026 00:00:00 GMT",
            "Thu, 00 Jan 1970 00:00:00 GMT",
            "Thu, 1 Jan",
            "Fri, 31 Dec 1900 23:59:59 GMT",
            "Fri, 18446744073709551615 Dec 2026 23:59:59 GMT",
            "Fri, 31 Dec 2026 18446744073709551615:59:59 GMT",
            "Fri, 31 Dec 2026 23:60:59 GMT",
        ] {
            assert_eq!(http_date(text), None, "{text}");
        }
    }
}
