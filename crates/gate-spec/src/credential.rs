//! What must not be shown: which stretches of a spec hold credentials.

use std::collections::BTreeSet;

use gate_model::REDACTED;

use crate::field::{Field, Kind, Leaf, find};
use crate::problem::{clip, nearest};
use crate::table::ROOT;
use crate::yaml::{Content, Node, Scalar, Site, Span};

/// Words that name a credential.
const WORDS: [&str; 17] = [
    "key",
    "apikey",
    "token",
    "secret",
    "password",
    "passwd",
    "pwd",
    "auth",
    "authorization",
    "bearer",
    "credential",
    "credentials",
    "cookie",
    "sig",
    "signature",
    "headers",
    "header",
];

/// Whether a name looks like one of a credential: `key`, `api_key`, `X-Auth-Token`, also a little misspelt.
pub(crate) fn looks_secret(name: &str) -> bool {
    let lower = name.to_lowercase();
    !["first_token", "slow_headers"].contains(&lower.as_str())
        && (lower.split(|symbol: char| !symbol.is_alphanumeric()).any(|word| WORDS.contains(&word))
            || nearest(name, ["key", "headers", "api_key", "token", "password", "secret"]).is_some())
}

/// Whether a URL in this text, or the path and query that it is, carries userinfo or a query value that looks like a
/// credential.
pub(crate) fn has_url_credentials(text: &str) -> bool {
    let is_local = text.starts_with('/') || text.get(..5).is_some_and(|scheme| scheme.eq_ignore_ascii_case("unix:"));
    let (authority, rest) = match text.split_once("://") {
        _ if is_local => ("", text),
        Some((_, rest)) => (rest.split(['/', '?', '#']).next().unwrap_or(""), rest),
        None => return false,
    };
    authority.contains('@') || rest.split_once('?').is_some_and(|(_, query)| has_credentials(query))
}

/// Whether a name in a query looks like one of a credential.
fn has_credentials(query: &str) -> bool {
    query.split('&').any(|pair| looks_secret(pair.split('=').next().unwrap_or("")))
}

/// Whether a text holds a name of a credential with something behind it: `key: …`, `Bearer …`.
fn names_credential(text: &str) -> bool {
    let mut words = text.split([' ', ':', '=']).filter(|word| !word.is_empty()).peekable();
    while let Some(word) = words.next() {
        let word = word.to_lowercase();
        let word = word.rsplit(|symbol: char| !symbol.is_alphanumeric()).next().unwrap_or("");
        if words.peek().is_some() && WORDS.contains(&word) {
            return true;
        }
    }
    false
}

/// A key as messages may show it: one that swallowed its value may hold a credential.
pub(crate) fn shown_key(text: &str) -> String {
    if names_credential(text) { REDACTED.to_owned() } else { clip(text) }
}

/// Whether a text is nothing but one `${NAME}`, whose source may be shown.
fn is_reference(text: &str) -> bool {
    text.strip_prefix("${").and_then(|rest| rest.strip_suffix('}')).is_some_and(|inner| {
        let name = inner.split_once(":?").map_or(inner, |(name, _)| name);
        let name = name.strip_suffix(":-").unwrap_or(name);
        name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
    })
}

/// What is known of a node before looking into it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Secrecy {
    /// It is, or may be, a credential.
    Secret,
    /// Only what is below a name of a credential is one.
    ByName,
}

/// The stretches of all scalars of a node that hold, or may hold, a credential.
pub(crate) fn spans(node: &Node, secrecy: Secrecy) -> Vec<Span> {
    let mut spans = Vec::new();
    collect(node, secrecy, &[], &mut spans);
    spans
}

/// The same of a whole spec, whose known keys say more than their names.
pub(crate) fn spans_in_spec(root: &Node) -> Vec<Span> {
    let mut spans = Vec::new();
    collect(root, Secrecy::ByName, ROOT, &mut spans);
    spans
}

fn collect(node: &Node, secrecy: Secrecy, fields: &'static [Field], spans: &mut Vec<Span>) {
    match &node.content {
        Content::Scalar(Scalar { text, .. }) => {
            if let Site::Text(span) = node.site
                && (secrecy == Secrecy::Secret || has_url_credentials(text) || names_credential(text))
                && !is_reference(text)
                && !text.is_empty()
            {
                spans.push(span);
            }
        }
        Content::Sequence(items) => items.iter().for_each(|item| collect(item, secrecy, &[], spans)),
        Content::Mapping(entries) => {
            for entry in entries {
                spans.extend(key_span(&entry.key.text, entry.key.site, secrecy));
                let field = find(fields, &entry.key.text);
                let is_secret = match field.map(|field| &field.kind) {
                    None | Some(Kind::Leaf(Leaf::Text | Leaf::File)) => looks_secret(&entry.key.text),
                    Some(kind) => matches!(kind, Kind::Leaf(Leaf::Credential) | Kind::Headers),
                };
                let secrecy = if is_secret { Secrecy::Secret } else { secrecy };
                match field.and_then(Field::named) {
                    Some(fields) => collect_named(&entry.value, secrecy, fields, spans),
                    None => collect(&entry.value, secrecy, field.and_then(Field::fields).unwrap_or(&[]), spans),
                }
            }
        }
    }
}

/// The same of maps by names of the spec's own, which say nothing of what is below them.
fn collect_named(node: &Node, secrecy: Secrecy, fields: &'static [Field], spans: &mut Vec<Span>) {
    let Content::Mapping(entries) = &node.content else { return collect(node, secrecy, fields, spans) };
    for entry in entries {
        spans.extend(key_span(&entry.key.text, entry.key.site, secrecy));
        collect(&entry.value, secrecy, fields, spans);
    }
}

/// The stretch of a key that swallowed its value.
pub(crate) fn key_span(text: &str, site: Site, secrecy: Secrecy) -> Option<Span> {
    let swallowed = names_credential(text) || (secrecy == Secrecy::Secret && text.contains([' ', ':']));
    match site {
        Site::Text(span) if swallowed => Some(span),
        _ => None,
    }
}

/// The longest line that is searched for words of credentials, in bytes; longer ones are hidden whole.
const SEARCHED: usize = 2_000;

/// The same for the lines shown of a text that is not YAML: from the colon after a word of credentials, or from
/// any colon below `headers:`, to the line's end.
pub(crate) fn spans_by_words(lines: &[&str], shown: &BTreeSet<u32>) -> Vec<Span> {
    let mut spans = Vec::new();
    let mut headers: Option<usize> = None;
    for (number, line) in (1_u32..).zip(lines) {
        let indent = line.chars().take_while(|symbol| symbol.is_whitespace()).count();
        if headers.is_some_and(|outer| indent <= outer && !line.trim().is_empty()) {
            headers = None;
        }
        let from = if shown.contains(&number) { first_secret(line, headers.is_some()) } else { None };
        if let Some(from) = from {
            let column = |bytes: &str| u32::try_from(bytes.chars().count() + 1).unwrap_or(u32::MAX);
            let (column, end_column) = (column(line.get(..from).unwrap_or("")), column(line));
            spans.push(Span { line: number, column, end_line: number, end_column });
        }
        if headers.is_none() && line.trim_start().starts_with("headers") {
            headers = Some(indent);
        }
    }
    spans
}

/// Where in a line the first thing starts that may be a credential, in bytes.
fn first_secret(line: &str, below_headers: bool) -> Option<usize> {
    if line.len() > SEARCHED {
        return Some(0);
    }
    let is_secret = |colon: &usize| {
        let before = line.get(..*colon).unwrap_or("");
        let mut words = before.rsplit(|symbol: char| !(symbol.is_alphanumeric() || "_-".contains(symbol)));
        below_headers || words.find(|word| !word.is_empty()).is_some_and(looks_secret)
    };
    let colon = line.match_indices(':').map(|(at, _)| at).find(is_secret);
    let value = colon.map(|colon| colon + 1).map(|value| {
        let rest = line.get(value..).unwrap_or("");
        value + (rest.len() - rest.trim_start_matches(' ').len())
    });
    let url = line.find("://").map(|scheme| scheme + 3).filter(|_| has_url_credentials(line));
    let query = line.match_indices(['?', '&']).map(|(at, _)| at + 1).find(|at| {
        let rest = line.get(*at..).unwrap_or("");
        let (name, rest) = rest.split_at(rest.find(['=', '&', '?', ' ']).unwrap_or(rest.len()));
        rest.starts_with('=') && looks_secret(name)
    });
    let word = line.match_indices(' ').map(|(at, _)| at).find(|at| names_credential(line.get(..at + 2).unwrap_or("")));
    let word = word.map(|blank| blank + 1);
    value.into_iter().chain(url).chain(query).chain(word).min()
}
