//! AWS's Signature Version 4, which requests to Bedrock carry where there is no key.

use std::time::SystemTime;

use aws_credential_types::Credentials;
use aws_sigv4::http_request::{
    SignableBody, SignableRequest, SigningError, SigningParams, SigningSettings, sign as sign_http,
};
use aws_sigv4::sign::v4;
use gate_model::{AwsCredentials, Secret};

use crate::WireRequest;

/// The name that Bedrock's runtime is signed for, whatever its host.
const SERVICE: &str = "bedrock";

/// Why a request could not be signed.
#[derive(Debug, thiserror::Error)]
pub enum SignError {
    /// The host and the path make no URL.
    #[error("cannot sign a request for `{host}{path}`: {source}")]
    Url {
        /// The host, with its port where it has one.
        host: String,
        /// Path and query.
        path: String,
        /// What is wrong with them.
        source: SigningError,
    },
    /// The request cannot be brought into the form that is signed.
    #[error("cannot sign the request: {0}")]
    Request(#[from] SigningError),
    /// Something that signing needs is missing.
    #[error("cannot sign the request: {0}")]
    Incomplete(#[from] v4::signing_params::BuildError),
}

/// The headers that sign a request, to be added to it unchanged: `authorization`, `x-amz-date` and, for temporary
/// credentials, `x-amz-security-token`.
///
/// `host` is the value of the `host` header as it is sent. A signature holds for some minutes around `at`. Of the
/// request's own headers only `content-type` is signed, since proxies may rewrite the others.
///
/// # Errors
///
/// A host that is none.
pub fn sign(
    request: &WireRequest,
    host: &str,
    credentials: &AwsCredentials,
    at: SystemTime,
) -> Result<Vec<(&'static str, Secret)>, SignError> {
    let token = credentials.session_token.as_ref().map(|token| token.expose().to_owned());
    let (id, key) = (credentials.access_key_id.expose(), credentials.secret_access_key.expose());
    let identity = Credentials::new(id, key, token, None, "gate").into();
    let params: SigningParams<'_> = v4::SigningParams::builder()
        .identity(&identity)
        .region(&credentials.region)
        .name(SERVICE)
        .time(at)
        .settings(SigningSettings::default())
        .build()?
        .into();
    let signed = request.headers.iter().filter(|(name, _)| *name == "content-type");
    let headers = signed.map(|(name, value)| (*name, value.expose())).chain([("host", host)]);
    let url = format!("https://{host}{}", request.path);
    let signable = SignableRequest::new("POST", &url, headers, SignableBody::Bytes(&request.body))
        .map_err(|source| SignError::Url { host: host.to_owned(), path: request.path.clone(), source })?;
    let (headers, _) = sign_http(signable, &params)?.into_parts().0.into_parts();
    Ok(headers.iter().map(|header| (header.name(), Secret::new(header.value()))).collect())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn request(path: &str, body: &str) -> WireRequest {
        let headers = vec![
            ("content-type", Secret::new("application/json")),
            ("accept", Secret::new("application/vnd.amazon.eventstream")),
        ];
        WireRequest { path: path.to_owned(), headers, body: body.as_bytes().to_vec() }
    }

    fn credentials(token: Option<&str>) -> AwsCredentials {
        AwsCredentials {
            access_key_id: Secret::new("AKIDEXAMPLE"),
            secret_access_key: Secret::new("wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"),
            session_token: token.map(Secret::new),
            region: "us-east-1".to_owned(),
        }
    }

    fn at(seconds: u64) -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_secs(seconds)
    }
    /// As botocore 1.44.8 signs them.
    #[test]
    fn a_request_is_signed_as_botocore_signs_it() {
        let body = "{\"messages\":[{\"role\":\"user\",\"content\":[{\"text\":\"hé\"}]}]}";
        let path = "/model/anthropic.claude-3-haiku-20240307-v1%3A0/converse-stream";
        let host = "bedrock-runtime.us-east-1.amazonaws.com";
        let profile = "/model/arn%3Aaws%3Abedrock%3Aus-east-1%3A123456789012%3Ainference-profile%2Fus.x/invoke?b=2&a=1";
        let credential = "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20261129/us-east-1/bedrock/aws4_request";
        for (host, path, token, names, signature) in [
            (
                host,
                path,
                None,
                "content-type;host;x-amz-date",
                "9f81d50c8b17a072efdd079dbf1ef4b219a60fbf6e5399d93b2282fdbb6bf492",
            ),
            (
                "proxy.example:8443",
                profile,
                Some("TOKEN/+=="),
                "content-type;host;x-amz-date;x-amz-security-token",
                "23293389f29f5ddad2908d96c6c98a1ba3769cbe68b9c24dc76d0e327500ef4c",
            ),
        ] {
            let signed = sign(&request(path, body), host, &credentials(token), at(1_795_981_500)).unwrap();
            let authorization = format!("{credential}, SignedHeaders={names}, Signature={signature}");
            let mut seen: Vec<_> = signed.iter().map(|(name, value)| (*name, value.expose())).collect();
            seen.sort_unstable();
            let mut expected = vec![("authorization", authorization.as_str()), ("x-amz-date", "20261129T194500Z")];
            expected.extend(token.map(|token| ("x-amz-security-token", token)));
            assert_eq!(seen, expected);
        }
    }

    #[test]
    fn the_signature_covers_path_body_and_time() {
        let sign = |path: &str, body: &str, seconds| {
            let signed = sign(&request(path, body), "h", &credentials(None), at(seconds)).unwrap();
            signed.into_iter().find(|(name, _)| *name == "authorization").unwrap().1.expose().to_owned()
        };
        let signature = sign("/a", "{}", 1);
        assert_eq!(sign("/a", "{}", 1), signature);
        for other in [sign("/b", "{}", 1), sign("/a", "{ }", 1), sign("/a", "{}", 2)] {
            assert_ne!(other, signature);
        }
    }

    #[test]
    fn a_host_that_is_none_is_named() {
        let error = sign(&request("/a", ""), "not a host", &credentials(None), at(0)).unwrap_err();
        assert!(error.to_string().starts_with("cannot sign a request for `not a host/a`: "), "{error}");
    }
}
