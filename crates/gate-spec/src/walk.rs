//! Tree → values: checks every node against the field table, fills in variables and defaults, and reports all
//! that does not fit.

mod checks;
mod choice;
mod home;
mod scenario;
mod script;

pub(crate) use scenario::reshapes;

use std::collections::{BTreeMap, BTreeSet};

use gate_model::Secret;
use serde_yaml::{Mapping, Value};

use crate::credential::{looks_secret, shown_key};
use crate::environment::{FillError, Filled, fill};
use crate::field::{Field, Kind, Leaf, Presence, find};
use crate::leaf::{Flaw, is_header_name};
use crate::problem::{Problem, clip, nearest};
use crate::table::ROOT;
use crate::yaml::{Content, Entry, Key, Node, Scalar, Site, Style, core_value};

/// Where a value was written, and what it was made of.
#[derive(Clone, Debug)]
pub(crate) struct Spot {
    /// Its key.
    pub(crate) key: Option<Site>,
    /// The value.
    pub(crate) site: Site,
    /// The variables in it.
    pub(crate) variables: Vec<String>,
}

/// What a walk found.
#[derive(Default)]
pub(crate) struct Walked {
    /// The values, defaults filled in.
    pub(crate) value: Mapping,
    /// Where each value stands, by its dotted path.
    pub(crate) spots: BTreeMap<String, Spot>,
    /// Paths that were written, but are not what they should be: their values are defaults, or absent.
    pub(crate) unsound: BTreeSet<String>,
    /// Credentials.
    pub(crate) secrets: Vec<Secret>,
    /// Every variable that a value names, with where; the first such place.
    pub(crate) variables: BTreeMap<String, Site>,
    /// All that does not fit.
    pub(crate) problems: Vec<Problem>,
}

/// Checks a tree against the field table.
pub(crate) fn walk(root: &Node, environment: &BTreeMap<String, String>) -> Walked {
    let mut walk = Walk { environment, out: Walked::default() };
    let mut value = walk.map(root, ROOT, "", Site::Whole);
    scenario::complete(&mut value);
    walk.out.value = value;
    walk.out
}

struct Walk<'a> {
    environment: &'a BTreeMap<String, String>,
    out: Walked,
}

impl Walk<'_> {
    fn map(&mut self, node: &Node, fields: &'static [Field], path: &str, key: Site) -> Mapping {
        let entries = match &node.content {
            Content::Mapping(entries) => entries.as_slice(),
            _ => {
                self.wrong_shape(node, path, "a map of keys", fields);
                &[]
            }
        };
        let mut values = Mapping::new();
        for Entry { key, value } in entries {
            match find(fields, &key.text) {
                Some(field) => {
                    let path = join(path, field.name);
                    match self.field(value, field, &path, key.site) {
                        Some(value) => drop(values.insert(Value::from(field.name), value)),
                        None => default(field, &mut values),
                    }
                }
                None => self.unknown(key, fields, path),
            }
        }
        for field in fields.iter().filter(|field| !entries.iter().any(|entry| entry.key.text == field.name)) {
            // A misspelt key has been reported under the name that is meant.
            let reported = self.out.unsound.contains(&join(path, field.name));
            if field.is_required() && matches!(node.content, Content::Mapping(_)) && !reported {
                self.missing(field, path, key);
            }
            default(field, &mut values);
        }
        values
    }

    /// The value of a key, or `None` where it is unset or not what it should be.
    fn field(&mut self, node: &Node, field: &'static Field, path: &str, key: Site) -> Option<Value> {
        self.spot(node, path, Some(key));
        if node.is_null() && !matches!(node.site, Site::Flag(_)) {
            let hint = match field.kind {
                Kind::Map(fields)
                    if matches!(field.presence, Presence::Optional)
                        && !fields.iter().any(|field| field.is_required() || field.name == "url") =>
                {
                    format!("write `{}: {{}}` for its defaults, or remove the key", field.name)
                }
                Kind::Checks => "list checks below it, such as `- ttft.p95 < 800ms`, or remove the key".to_owned(),
                Kind::Leaf(Leaf::Text | Leaf::File | Leaf::Check | Leaf::Credential) => {
                    "give it a text, or remove the key".to_owned()
                }
                Kind::Map(_) | Kind::Part(_) | Kind::Named(_) => {
                    "put its keys below it, indented, or remove the key".to_owned()
                }
                _ => "give it a value, or remove the key".to_owned(),
            };
            self.report(path, Problem::error(key, format!("`{path}` has no value")).hint(hint));
            return None;
        }
        match field.kind {
            Kind::Leaf(leaf) => self.leaf(node, leaf, path),
            Kind::Map(fields) => Some(Value::Mapping(self.map(node, fields, path, key))),
            Kind::Part(fields) => Some(Value::Mapping(self.part(node, fields, path))),
            Kind::OneOf { fields, bare } => self.one_of(node, (fields, bare), path, key),
            Kind::Maps(fields) => self.maps(node, fields, path),
            Kind::Named(fields) => self.named(node, fields, path),
            Kind::Short { key: short, leaf, fields, .. } => match &node.content {
                Content::Scalar(_) => {
                    let mean = self.leaf(node, leaf, path)?;
                    let mut values = Mapping::new();
                    values.insert(Value::from(short), mean);
                    fields.iter().filter(|field| field.name != short).for_each(|field| default(field, &mut values));
                    Some(Value::Mapping(values))
                }
                _ => Some(Value::Mapping(self.map(node, fields, path, key))),
            },
            Kind::Headers => self.headers(node, path),
            Kind::Free => match &node.content {
                Content::Mapping(_) => self.free(node, path),
                _ => {
                    let problem = Problem::error(node.site, format!("`{path}` must be a map, not {}", node.noun()));
                    self.report(path, problem.hint("put its fields below it, such as `name: value`"));
                    None
                }
            },
            Kind::List(leaf) => self.list(node, leaf, path),
            Kind::Checks => self.checks(node, path),
            Kind::Script => self.script(node, path),
        }
    }

    fn leaf(&mut self, node: &Node, leaf: Leaf, path: &str) -> Option<Value> {
        let Content::Scalar(scalar) = &node.content else {
            self.wrong_shape(node, path, "a single value", &[]);
            return None;
        };
        let is_text = matches!(leaf, Leaf::Text | Leaf::File);
        if let Some(name) = template(&scalar.text).filter(|_| !is_text || is_template(&scalar.text)) {
            let name = if matches!(leaf, Leaf::Credential) { "NAME" } else { &name };
            let problem = Problem::error(node.site, format!("`{path}` holds a `{{{{ }}}}`, which nothing fills in"));
            self.report(path, problem.hint(format!("gate fills in `${{{name}}}`, not `{{{{ }}}}`")));
            return None;
        }
        // A credential often comes with the line end of the file it was read from.
        let clean: fn(&str) -> &str = if matches!(leaf, Leaf::Credential) { str::trim } else { |value| value };
        let filled = self.fill(node, scalar, path, clean)?;
        // A file that is left open by a variable or a flag is none; one that is named by nothing is a slip.
        let is_open = !filled.variables.is_empty() || matches!(node.site, Site::Flag(_)) || !matches!(leaf, Leaf::File);
        if leaf.empty_is_unset() && filled.text.trim().is_empty() && is_open {
            return None;
        }
        if let Leaf::Credential = leaf {
            self.keep_secret(&filled, path);
        }
        match leaf.read(&filled.text) {
            Ok(value) => Some(value),
            Err(flaw) => {
                let is_secret = match leaf {
                    Leaf::Credential => true,
                    // Its query may hold a credential.
                    Leaf::Route => filled.text.contains('?'),
                    Leaf::Metrics | Leaf::Image => filled.text.contains(['?', '@']),
                    _ => false,
                };
                let problem = flawed(node.site, path, &filled, flaw, is_secret);
                self.report(path, problem);
                None
            }
        }
    }

    /// A scalar's text with its variables filled in.
    fn fill(&mut self, node: &Node, scalar: &Scalar, path: &str, clean: fn(&str) -> &str) -> Option<Filled> {
        if let Site::Flag(_) = node.site {
            return Some(Filled { text: scalar.text.clone(), ..Filled::default() });
        }
        match fill(&scalar.text, self.environment, clean) {
            Ok(filled) => {
                for name in &filled.variables {
                    self.out.variables.entry(name.clone()).or_insert(node.site);
                }
                if let Some(spot) = self.out.spots.get_mut(path) {
                    spot.variables.clone_from(&filled.variables);
                }
                Some(filled)
            }
            Err(error) => {
                let hint = match &error {
                    FillError::Missing { name, .. } => {
                        format!("set it (`export {name}=…`), or give a default: `${{{name}:-…}}`")
                    }
                    FillError::Unclosed if scalar.style == Style::Plain => {
                        "close it; ` #` starts a comment unless the whole value is in quotes".to_owned()
                    }
                    FillError::Unclosed => "close it, or write `$${` for a literal `${`".to_owned(),
                    FillError::Malformed => {
                        "the forms are `${NAME}`, `${NAME:-default}` and `${NAME:?message}`; `$${` is a literal `${`"
                            .to_owned()
                    }
                    FillError::Nested => "variables are filled in once: use a single `${NAME:-default}`".to_owned(),
                };
                let problem = Problem::error(node.site, format!("`{path}` {error}")).hint(hint);
                let missing = match error {
                    FillError::Missing { name, .. } => Some(name),
                    _ => None,
                };
                self.report(path, Problem { missing, ..problem });
                None
            }
        }
    }

    fn headers(&mut self, node: &Node, path: &str) -> Option<Value> {
        let Content::Mapping(entries) = &node.content else {
            let problem = Problem::error(node.site, format!("`{path}` must be a map of names and values"));
            self.report(path, problem.hint("such as `headers: {X-Team: inference}`"));
            return None;
        };
        let (mut values, mut seen) = (Mapping::new(), BTreeSet::new());
        for Entry { key, value } in entries {
            let path = join(path, &key.text);
            self.spot(value, &path, Some(key.site));
            let lower = key.text.to_ascii_lowercase();
            let refused = if !is_header_name(&key.text) {
                Some((
                    "this is not the name of a header".to_owned(),
                    "write it as `Name: value`, a name of letters, digits and `-`",
                ))
            } else if ["content-length", "transfer-encoding", "connection", "host"].contains(&lower.as_str()) {
                Some((format!("the header `{lower}` belongs to the connection and cannot be set"), "remove it"))
            } else if !seen.insert(lower.clone()) {
                let message = format!("duplicate header `{}`: names are compared without case", clip(&key.text));
                Some((message, "keep one of the two"))
            } else {
                None
            };
            if let Some((message, hint)) = refused {
                self.report(&path, Problem::error(key.site, message).hint(hint));
            } else if let Some(value) = self.leaf(value, Leaf::Credential, &path) {
                values.insert(Value::from(key.text.as_str()), value);
            }
        }
        Some(Value::Mapping(values))
    }

    fn list(&mut self, node: &Node, leaf: Leaf, path: &str) -> Option<Value> {
        let Content::Sequence(items) = &node.content else {
            let problem = Problem::error(node.site, format!("`{path}` must be a list, not {}", node.noun()));
            self.report(path, problem.hint(format!("put it in brackets: `{}: […]`", last(path))));
            return None;
        };
        let items = (0_usize..).zip(items).filter_map(|(at, item)| {
            let path = format!("{path}[{at}]");
            self.spot(item, &path, None);
            self.leaf(item, leaf, &path)
        });
        Some(Value::Sequence(items.collect()))
    }

    /// Any value, plain scalars by YAML's core schema.
    fn free(&mut self, node: &Node, path: &str) -> Option<Value> {
        self.spot(node, path, None);
        match &node.content {
            Content::Scalar(scalar) => {
                let filled = self.fill(node, scalar, path, |value| value)?;
                self.out.secrets.extend(filled.values.iter().map(Secret::new));
                Some(match scalar.style {
                    Style::Plain => core_value(&filled.text),
                    Style::Quoted | Style::Block => Value::from(filled.text),
                })
            }
            Content::Sequence(items) => {
                let items = (0_usize..).zip(items).filter_map(|(at, item)| self.free(item, &format!("{path}[{at}]")));
                Some(Value::Sequence(items.collect()))
            }
            Content::Mapping(entries) => {
                let mut values = Mapping::new();
                for Entry { key, value } in entries {
                    if let Some(value) = self.free(value, &join(path, &key.text)) {
                        if let (Some(text), true) = (value.as_str(), looks_secret(&key.text)) {
                            self.out.secrets.push(Secret::new(text));
                        }
                        values.insert(Value::from(key.text.as_str()), value);
                    }
                }
                Some(Value::Mapping(values))
            }
        }
    }

    /// Takes a credential into custody. A header that is neither named like one nor filled from the
    /// environment is no credential: keeping `x-team: inference` would blank out a common word everywhere.
    fn keep_secret(&mut self, filled: &Filled, path: &str) {
        let header = path.split_once(".headers.").map(|(_, name)| name);
        if filled.values.is_empty() && header.is_some_and(|name| !looks_secret(name)) {
            return;
        }
        let text = filled.text.trim();
        self.out.secrets.push(Secret::new(text));
        self.out.secrets.extend(filled.values.iter().map(Secret::new));
        // `Bearer …` and the like: the credential may come back without its scheme.
        if let Some((_, credential)) = text.split_once(' ') {
            self.out.secrets.push(Secret::new(credential.trim()));
        }
        // So may one cookie of several.
        if header.is_some_and(|name| name.eq_ignore_ascii_case("cookie")) {
            let cookies = text.split(';').filter_map(|cookie| cookie.split_once('='));
            self.out.secrets.extend(cookies.map(|(_, value)| Secret::new(value.trim())));
        }
    }

    fn spot(&mut self, node: &Node, path: &str, key: Option<Site>) {
        let key = key.or_else(|| self.out.spots.get(path).and_then(|spot| spot.key));
        self.out.spots.insert(path.to_owned(), Spot { key, site: node.site, variables: Vec::new() });
    }

    fn report(&mut self, path: &str, problem: Problem) {
        self.out.unsound.insert(path.to_owned());
        self.out.problems.push(problem);
    }

    fn wrong_shape(&mut self, node: &Node, path: &str, wanted: &str, fields: &'static [Field]) {
        let example = fields.first().map(|field| field.name);
        let (subject, hint) = match (path, example) {
            ("", _) => ("a gate spec".to_owned(), "start with `version: 1`, one `key: value` per line".to_owned()),
            (_, Some(key)) if let Some(text) = meant(node, fields) => {
                (format!("`{path}`"), format!("write `{}: {{{key}: {text}}}`", last(path)))
            }
            (_, Some(key)) => (format!("`{path}`"), format!("put its keys below it, such as `{key}: …`")),
            (_, None) => (
                format!("`{path}`"),
                format!("write it as `{}: …`; a text that starts with `{{` or `[` needs quotes", last(path)),
            ),
        };
        self.report(
            path,
            Problem::error(node.site, format!("{subject} must be {wanted}, not {}", node.noun())).hint(hint),
        );
    }

    fn missing(&mut self, field: &Field, path: &str, site: Site) {
        let path = join(path, field.name);
        let hint = match field.name {
            "version" => "add `version: 1` at the top".to_owned(),
            "target" => "add `target: {url: \"${GATE_TARGET:?the endpoint under test}\"}`".to_owned(),
            "name" => "add a name such as `name: chat`: the outputs go to `.gate/NAME/`".to_owned(),
            "until" => "a waiver ends: add the last day it works, such as `until: 2027-01-31`".to_owned(),
            "reason" => "say why: add `reason: \"issue 412\"`".to_owned(),
            name => format!("add `{name}: …`"),
        };
        self.report(&path, Problem::error(site, format!("`{path}` is missing")).hint(hint));
    }

    fn unknown(&mut self, key: &Key, fields: &'static [Field], path: &str) {
        let name = shown_key(&key.text);
        let place = if path.is_empty() { String::new() } else { format!(" in `{path}`") };
        let problem = Problem::error(key.site, format!("unknown key `{name}`{place}"));
        let known = || fields.iter().map(|field| field.name);
        // A misspelt key counts as written, so that its absence is not reported as well.
        let mut meant = name.as_str();
        let hint = if name.contains("${") || name.contains("{{") {
            "variables are filled in in values, never in keys".to_owned()
        } else if let Some(near) = nearest(&name, known()) {
            meant = near;
            format!("did you mean `{near}`?")
        } else if name == "requests" && find(fields, "iterations").is_some() {
            meant = "iterations";
            "here they are called `iterations`".to_owned()
        } else if let Some(home) = home::of(&name, path) {
            format!("`{name}` belongs in `{home}`")
        } else if path.is_empty() && key.anchored {
            "there is no place for shared blocks: write the anchor on the first value that uses it".to_owned()
        } else {
            let names: Vec<_> = known().map(|name| format!("`{name}`")).collect();
            format!("the keys here are {}", names.join(", "))
        };
        self.report(&join(path, meant), problem.hint(hint));
    }
}

/// The text that a value stands for in a map of these keys, if it can be their first one and is all they need.
fn meant<'a>(node: &'a Node, fields: &'static [Field]) -> Option<&'a str> {
    let Content::Scalar(Scalar { text, .. }) = &node.content else { return None };
    let field = fields.first().filter(|_| !fields.iter().any(Field::is_required))?;
    // What takes any text says nothing about what was meant, and may be a credential.
    let leaf = match field.kind {
        Kind::Leaf(Leaf::Text | Leaf::File | Leaf::Url | Leaf::Credential) => return None,
        Kind::Leaf(leaf) => leaf,
        _ => return None,
    };
    leaf.read(text).is_ok().then_some(text)
}

/// Whether a text is nothing but a template of another tool.
fn is_template(text: &str) -> bool {
    text.trim().starts_with("{{") && text.trim().ends_with("}}")
}

/// The environment variable to use instead of a `{{ … }}` in a text.
fn template(text: &str) -> Option<String> {
    let (_, rest) = text.split_once("{{")?;
    let (inner, _) = rest.split_once("}}")?;
    let name =
        inner.split('|').next().unwrap_or("").trim().rsplit('.').next().unwrap_or("").to_uppercase().replace('-', "_");
    let is_name = name.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_')
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    Some(if is_name { name } else { "NAME".to_owned() })
}

/// The problem with a value; a value from the environment, or a credential, is not repeated.
fn flawed(site: Site, path: &str, filled: &Filled, flaw: Flaw, secret: bool) -> Problem {
    let Flaw { problem, hint, fix } = flaw;
    let written: String = filled.text.trim().chars().take(40).collect();
    let (message, hint) = match filled.variables.first() {
        _ if secret => (format!("`{path}` {problem}"), hint),
        Some(name) if written.is_empty() => {
            (format!("`{path}` {problem}, but is empty; its value comes from `${{{name}}}`"), hint)
        }
        Some(name) => (format!("`{path}` {problem}; its value comes from `${{{name}}}`"), hint),
        None if written.is_empty() => (format!("`{path}` {problem}, but is empty"), hint),
        None if problem.starts_with("must be") => (format!("`{path}` {problem}, not `{written}`"), fix.unwrap_or(hint)),
        None => (format!("`{path}` {problem}: `{written}`"), fix.unwrap_or(hint)),
    };
    Problem::error(site, message).hint(hint)
}

/// Puts a key's default where it is not set.
fn default(field: &Field, values: &mut Mapping) {
    let value = match (field.presence, &field.kind) {
        (Presence::Default(text), Kind::Leaf(leaf)) => leaf.read(text).ok(),
        (Presence::Default(_) | Presence::Required, Kind::Map(fields)) => Some(Value::Mapping(defaults(fields))),
        (_, Kind::Short { fields, absent, .. }) => {
            let read = |(name, text): &(&'static str, &'static str)| match find(fields, name).map(|field| &field.kind) {
                Some(Kind::Leaf(leaf)) => Some((Value::from(*name), leaf.read(text).ok()?)),
                _ => None,
            };
            Some(Value::Mapping(absent.iter().filter_map(read).collect()))
        }
        _ => None,
    };
    if let Some(value) = value {
        values.insert(Value::from(field.name), value);
    }
}

/// A map with nothing but defaults.
pub(crate) fn defaults(fields: &'static [Field]) -> Mapping {
    let mut values = Mapping::new();
    fields.iter().for_each(|field| default(field, &mut values));
    values
}

/// The path of a key below a path.
pub(crate) fn join(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") }
}

fn last(path: &str) -> &str {
    path.rsplit('.').next().unwrap_or(path)
}
