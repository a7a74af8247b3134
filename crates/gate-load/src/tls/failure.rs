//! Why a handshake failed, in words, and what to do.

use std::error::Error;
use std::io;
use std::sync::Arc;

use gate_model::Http;
use rustls::{AlertDescription, CertificateError, InvalidMessage, OtherError};
use rustls_pki_types::UnixTime;

use super::identity::Shown;
use super::verifier::SelfSigned;

/// Why there is no TLS, in words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum TlsFault {
    /// The connection was lost in the handshake: a server behind a proxy may not listen yet.
    Lost(String),
    /// Anything else: another try changes nothing.
    Failed(String),
}

/// What failures of TLS with one server mean, by what was asked of it and what it was shown.
#[derive(Clone)]
pub(crate) struct Explain {
    pub(super) http: Http,
    pub(super) shown: Arc<Shown>,
}

impl Explain {
    /// What a failed handshake says.
    pub(crate) fn handshake(&self, error: &(dyn Error + 'static)) -> TlsFault {
        if let Some(words) = self.alert(error) {
            return TlsFault::Failed(words);
        }
        match io_kind(error) {
            Some(io::ErrorKind::UnexpectedEof) => TlsFault::Lost(format!("the server closed {DURING}")),
            Some(io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe) => {
                TlsFault::Lost(format!("the server reset {DURING}"))
            }
            _ => TlsFault::Failed(format!("the TLS handshake failed: {error}")),
        }
    }

    /// What a TLS error means that comes where HTTP was expected; `None` where the cause is another.
    pub(crate) fn alert(&self, error: &(dyn Error + 'static)) -> Option<String> {
        Some(match tls_error(error)? {
            rustls::Error::InvalidCertificate(error) => certificate(error),
            rustls::Error::InvalidMessage(InvalidMessage::InvalidContentType) => {
                "the server does not speak TLS: is `target.url` `http://`, not `https://`?".to_owned()
            }
            rustls::Error::NoApplicationProtocol => no_protocol(self.http),
            rustls::Error::AlertReceived(alert) => self.received(*alert),
            rustls::Error::PeerIncompatible(why) => {
                format!("the server's TLS does not fit ({why:?}): it has to offer TLS 1.2 or 1.3")
            }
            other => format!("the TLS handshake failed: {other}"),
        })
    }

    /// What a server's alert means.
    fn received(&self, alert: AlertDescription) -> String {
        use AlertDescription as Alert;
        match alert {
            Alert::NoApplicationProtocol => no_protocol(self.http),
            Alert::UnrecognisedName => {
                "the server does not know the host name it was asked for: check `target.url`".to_owned()
            }
            Alert::CertificateRequired
            | Alert::NoCertificate
            | Alert::HandshakeFailure
            | Alert::BadCertificate
            | Alert::AccessDenied
                if self.shown.is_asked() && !self.shown.is_someone() =>
            {
                format!(
                    "the server asks for a client certificate ({alert:?}): give it as `target.tls.cert` and \
                     `target.tls.key`"
                )
            }
            Alert::CertificateExpired if self.shown.is_someone() => {
                "the server says that our certificate has expired: renew the one in `target.tls.cert`".to_owned()
            }
            Alert::UnknownCA
            | Alert::BadCertificate
            | Alert::UnsupportedCertificate
            | Alert::CertificateRevoked
            | Alert::CertificateUnknown
            | Alert::AccessDenied
            | Alert::DecryptError
            | Alert::CertificateRequired
                if self.shown.is_someone() =>
            {
                format!(
                    "the server refused our certificate ({alert:?}): does it trust the authority that signed the one \
                     in `target.tls.cert`, and does the file hold those in between?"
                )
            }
            _ => format!("the server refused the TLS handshake ({alert:?}): does it offer TLS 1.2 or 1.3?"),
        }
    }
}

const DURING: &str = "the connection in the TLS handshake: is `target.url` `http://`, not `https://`?";

/// What it means that there is nothing both sides speak.
pub(super) fn no_protocol(asked: Http) -> String {
    match asked {
        Http::Two => {
            "the server does not speak HTTP/2 over TLS: use `load.http: auto`, or have it offer `h2`".to_owned()
        }
        Http::One => {
            "the server does not offer HTTP/1.1 over TLS: use `load.http: auto`, or check `target.url`".to_owned()
        }
        Http::Auto => {
            "the server offers neither HTTP/1.1 nor HTTP/2 over TLS: does `target.url` name the API's port?".to_owned()
        }
    }
}

/// The TLS error in what I/O errors wrap.
fn tls_error<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a rustls::Error> {
    error.downcast_ref().or_else(|| tls_error(error.downcast_ref::<io::Error>()?.get_ref()?))
}

/// The kind of the innermost I/O error.
fn io_kind(error: &(dyn Error + 'static)) -> Option<io::ErrorKind> {
    let error = error.downcast_ref::<io::Error>()?;
    error.get_ref().and_then(|inner| io_kind(inner)).or(Some(error.kind()))
}

fn certificate(error: &CertificateError) -> String {
    let give = "as `target.tls.ca`, or set `target.tls.insecure: true` for a test";
    match error {
        CertificateError::UnknownIssuer => {
            format!("the server's certificate is signed by an unknown authority: give that one's certificate {give}")
        }
        CertificateError::BadSignature => {
            "the server's certificate is not signed by the authority that it names, though one of that name is known: \
             is `target.tls.ca` an older one?"
                .to_owned()
        }
        CertificateError::Other(OtherError(cause)) if cause.is::<SelfSigned>() => {
            format!("the server's certificate is signed by itself: give it {give}")
        }
        CertificateError::ExpiredContext { time, not_after } => {
            format!("the server's certificate expired {} ago: renew it", span(*not_after, *time))
        }
        CertificateError::NotValidYetContext { time, not_before } => {
            let span = span(*time, *not_before);
            format!("the server's certificate is valid only in {span}: is this machine's clock right?")
        }
        CertificateError::NotValidForNameContext { expected, presented } => {
            let expected = expected.to_str();
            let names: Vec<_> = presented.iter().map(|name| name_in(name)).collect();
            if names.is_empty() {
                return format!(
                    "the server's certificate names no host, and `{expected}` was asked for: a common name alone does \
                     not count, give it a subject alternative name"
                );
            }
            let names = names.join(", ");
            format!("the server's certificate is for {names}, and `{expected}` was asked for: check `target.url`")
        }
        other => format!("the server's certificate is not valid: {other}"),
    }
}

/// The bare name in webpki's `DnsName("a.example")` or `IpAddress(127.0.0.1)`.
fn name_in(presented: &str) -> &str {
    let inner = presented.split_once('(').and_then(|(_, rest)| rest.strip_suffix(')'));
    inner.map_or(presented, |inner| inner.trim_matches('"'))
}

/// How long it is from one time to another, in days, or hours under two days.
fn span(from: UnixTime, to: UnixTime) -> String {
    let hours = to.as_secs().saturating_sub(from.as_secs()).div_ceil(3600);
    let (count, unit) = if hours < 48 { (hours, "hour") } else { (hours / 24, "day") };
    format!("{count} {unit}{}", if count == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn at(hours: u64) -> UnixTime {
        UnixTime::since_unix_epoch(Duration::from_secs(hours * 3600))
    }

    #[test]
    fn spans_are_in_hours_or_days() {
        assert_eq!(span(at(5), at(6)), "1 hour");
        assert_eq!(span(at(5), at(52)), "47 hours");
        assert_eq!(span(at(5), at(77)), "3 days");
        assert_eq!(span(at(5), at(4)), "0 hours");
    }

    #[test]
    fn names_lose_their_wrapping() {
        assert_eq!(name_in("DnsName(\"*.a.example\")"), "*.a.example");
        assert_eq!(name_in("IpAddress(127.0.0.1)"), "127.0.0.1");
        assert_eq!(name_in("Unsupported"), "Unsupported");
    }

    fn explain(http: Http) -> Explain {
        Explain { http, shown: Arc::new(Shown::new(None).unwrap()) }
    }

    #[test]
    fn a_cause_is_found_however_deep_it_is_wrapped() {
        let alert = rustls::Error::AlertReceived(AlertDescription::HandshakeFailure);
        let wrapped = io::Error::other(io::Error::new(io::ErrorKind::InvalidData, alert));
        let explain = explain(Http::Auto);
        let TlsFault::Failed(words) = explain.handshake(&wrapped) else { panic!("lost") };
        assert!(words.contains("refused the TLS handshake (HandshakeFailure)"), "{words}");
        let lost = io::Error::other(io::Error::from(io::ErrorKind::UnexpectedEof));
        let fault = explain.handshake(&lost);
        assert!(matches!(fault, TlsFault::Lost(words) if words.contains("closed the connection")));
        assert_eq!(explain.alert(&lost), None);
    }
}
