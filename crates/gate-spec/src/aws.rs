//! What authorises requests to Bedrock: the usual variables of AWS.

use gate_model::{AwsCredentials, Endpoint, Secret, Target};
use url::Url;

use crate::context::Context;
use crate::field::Leaf;
use crate::problem::Problem;
use crate::target::Block;

/// Gives a target that speaks a dialect of Bedrock its key or credentials from the environment, where it has neither a
/// key nor an `Authorization` header.
pub(crate) fn authorise(context: &mut Context, block: &Block, target: &mut Target, secrets: &mut Vec<Secret>) {
    let Endpoint::Url(url) = &target.endpoint else { return };
    let has_header = target.headers.iter().any(|header| header.name.eq_ignore_ascii_case("authorization"));
    let is_given = target.key.is_some() || has_header;
    let is_sound = ["url", "key", "headers"].iter().all(|key| context.is_sound(&block.path(key)));
    if !target.api.is_bedrock() || is_given || !is_sound {
        return;
    }
    let path = block.path("api");
    let api = target.api.name();
    if !block.asks_environment {
        let name = block.name;
        let message = format!("`{api}` needs a key at the {name}: credentials of AWS go to no other host unasked");
        let hint = format!("add `key: …` to `{name}`, or `api: {api}` to sign its requests too");
        context.problems.push(Problem::error(context.key(name), message).hint(hint));
        return;
    }
    let mut read = Read { context, path: &path, secrets };
    if let Some(key) = read.secret("AWS_BEARER_TOKEN_BEDROCK") {
        target.key = Some(key);
        return;
    }
    let id = read.secret("AWS_ACCESS_KEY_ID");
    let secret = read.secret("AWS_SECRET_ACCESS_KEY");
    let session_token = read.secret("AWS_SESSION_TOKEN");
    // The host takes no signature for any other region.
    let region = region_of(url).or_else(|| read.text("AWS_REGION")).or_else(|| read.text("AWS_DEFAULT_REGION"));

    let missing = [
        ("AWS_ACCESS_KEY_ID", id.is_none()),
        ("AWS_SECRET_ACCESS_KEY", secret.is_none()),
        ("AWS_REGION", region.is_none()),
    ];
    let missing: Vec<_> = missing.iter().filter(|(_, missing)| *missing).map(|(name, _)| format!("`{name}`")).collect();
    if let (Some(access_key_id), Some(secret_access_key), Some(region)) = (id, secret, region.clone()) {
        target.aws = Some(AwsCredentials { access_key_id, secret_access_key, session_token, region });
        return;
    }
    let (are, them) = if missing.len() == 1 { ("is", "it") } else { ("are", "them") };
    let list = match missing.split_last() {
        Some((last, rest)) if !rest.is_empty() => format!("{} and {last}", rest.join(", ")),
        _ => missing.concat(),
    };
    let message = format!("`{api}` needs a key, or AWS credentials and their region: {list} {are} not set");
    let hint = format!("set {them}, or `AWS_BEARER_TOKEN_BEDROCK`, or add a `key`");
    context.error(&path, message, &hint);
}

/// Reads variables of the environment.
struct Read<'a, 'c> {
    context: &'a mut Context<'c>,
    path: &'a str,
    secrets: &'a mut Vec<Secret>,
}

impl Read<'_, '_> {
    /// A variable's value without blanks around it; an empty one is not set.
    fn text(&mut self, name: &str) -> Option<String> {
        let value = self.context.environment.get(name)?.trim();
        if let Err(flaw) = Leaf::Credential.read(value) {
            let message = format!("the environment variable `{name}` {}", flaw.problem);
            let problem = Problem::error(self.context.site(self.path), message);
            self.context.problems.push(problem.hint("set it again, as one line"));
        }
        Some(value.to_owned()).filter(|value| !value.is_empty())
    }

    /// The same, in custody of the redactor.
    fn secret(&mut self, name: &str) -> Option<Secret> {
        let secret = Secret::new(self.text(name)?);
        let site = self.context.site(self.path);
        self.context.asked.insert(name.to_owned(), site);
        self.secrets.push(secret.clone());
        Some(secret)
    }
}

/// The region in the name of one of Amazon's hosts: what follows `bedrock-runtime`.
pub(crate) fn region_of(url: &str) -> Option<String> {
    let url = Url::parse(url).ok()?;
    let host = url.host_str()?;
    let is_amazon = [".amazonaws.com", ".amazonaws.com.cn", ".api.aws"].iter().any(|domain| host.ends_with(domain));
    let mut labels = host.split('.').skip_while(|label| !label.starts_with("bedrock-runtime"));
    labels.nth(1).filter(|_| is_amazon).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_of_amazon_names_its_region() {
        for (url, region) in [
            ("https://bedrock-runtime.eu-west-1.amazonaws.com", Some("eu-west-1")),
            ("https://bedrock-runtime-fips.us-gov-west-1.amazonaws.com/", Some("us-gov-west-1")),
            ("https://vpce-1-2.bedrock-runtime.us-east-1.vpce.amazonaws.com", Some("us-east-1")),
            ("https://bedrock-runtime.us-east-1.api.aws", Some("us-east-1")),
            ("https://bedrock-runtime.example.com", None),
            ("http://127.0.0.1:8000", None),
            ("unix:/run/x.sock", None),
        ] {
            assert_eq!(region_of(url).as_deref(), region, "{url}");
        }
    }
}
