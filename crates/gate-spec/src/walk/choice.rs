//! Maps of which one key is chosen, and lists of maps.

use serde_yaml::{Mapping, Value};

use super::{Walk, join, last};
use crate::field::{Field, Kind, Leaf, find};
use crate::leaf::alternatives;
use crate::problem::{Problem, nearest};
use crate::yaml::{Content, Node, Scalar, Site};

/// The most maps in a list.
const MAPS_LIMIT: usize = 200;

impl Walk<'_> {
    /// A map with one key, or the word of one that has a default.
    pub(super) fn one_of(
        &mut self,
        node: &Node,
        (fields, bare): (&'static [Field], &'static [(&'static str, &'static str)]),
        path: &str,
        key: Site,
    ) -> Option<Value> {
        let names = alternatives(&fields.iter().map(|field| field.name).collect::<Vec<_>>());
        match &node.content {
            Content::Scalar(scalar) => self.bare(node, scalar, (fields, bare), path),
            Content::Mapping(entries) => {
                let known = entries.iter().filter(|entry| find(fields, &entry.key.text).is_some()).count();
                // A misspelt key is reported as such.
                if known > 1 || entries.is_empty() {
                    let message = match known {
                        0 => format!("`{path}` says nothing"),
                        _ => format!("`{path}` has more than one of {names}"),
                    };
                    let hint = format!("choose one, such as `{}: {{{}}}`", last(path), example(fields, bare));
                    self.report(path, Problem::error(key, message).hint(hint));
                    return None;
                }
                Some(Value::Mapping(self.map(node, fields, path, key)))
            }
            Content::Sequence(_) => {
                self.wrong_shape(node, path, "a map of keys", fields);
                None
            }
        }
    }

    fn bare(
        &mut self,
        node: &Node,
        scalar: &Scalar,
        (fields, bare): (&'static [Field], &'static [(&'static str, &'static str)]),
        path: &str,
    ) -> Option<Value> {
        let filled = self.fill(node, scalar, path, str::trim)?;
        let text = filled.text.trim();
        let written =
            bare.iter().find(|(name, _)| *name == text).and_then(|(name, text)| Some((find(fields, name)?, text)));
        if let Some((field, text)) = written {
            let mut values = Mapping::new();
            match field.kind {
                Kind::Leaf(leaf) => {
                    values.insert(Value::from(field.name), leaf.read(text).ok()?);
                }
                _ => {
                    let inner = Value::Mapping(super::defaults(field.fields().unwrap_or(&[])));
                    values.insert(Value::from(field.name), inner);
                }
            }
            return Some(Value::Mapping(values));
        }
        let names = alternatives(&fields.iter().map(|field| field.name).collect::<Vec<_>>());
        let needs =
            find(fields, text).and_then(|field| Some((field, field.fields()?.iter().find(|key| key.is_required())?)));
        let (message, hint) = match needs {
            Some((field, needed)) => (
                format!("`{path}` is `{}` without its `{}`", field.name, needed.name),
                format!("write `{}: {{{}: {{{}: 8}}}}`", last(path), field.name, needed.name),
            ),
            None => {
                let near = nearest(text, fields.iter().map(|field| field.name));
                let hint = match near {
                    Some(near) if filled.variables.is_empty() => format!("did you mean `{near}`?"),
                    _ => format!("such as `{}: {{{}}}`", last(path), example(fields, bare)),
                };
                (format!("`{path}` must be {names}"), hint)
            }
        };
        self.report(path, Problem::error(node.site, message).hint(hint));
        None
    }

    /// A list of maps, each with its defaults.
    pub(super) fn maps(&mut self, node: &Node, fields: &'static [Field], path: &str) -> Option<Value> {
        let example: Vec<_> = fields.iter().map(|field| format!("{}: …", field.name)).collect();
        let example = format!("such as `{}: [{{{}}}]`", last(path), example.join(", "));
        let Content::Sequence(items) = &node.content else {
            let problem = Problem::error(node.site, format!("`{path}` must be a list of maps, not {}", node.noun()));
            self.report(path, problem.hint(example));
            return None;
        };
        if items.is_empty() || items.len() > MAPS_LIMIT {
            let message = match items.len() {
                0 => format!("`{path}` is empty"),
                _ => format!("`{path}` has more than {MAPS_LIMIT} entries"),
            };
            self.report(path, Problem::error(node.site, message).hint(example));
            return None;
        }
        let before = self.out.unsound.len();
        let mut values = Vec::new();
        for (at, item) in (0_usize..).zip(items) {
            let path = format!("{path}[{at}]");
            self.spot(item, &path, None);
            values.push(Value::Mapping(self.map(item, fields, &path, item.site)));
        }
        // What is missing in one makes the list none.
        (self.out.unsound.len() == before).then_some(Value::Sequence(values))
    }

    /// A map in which only what is written has a value.
    pub(super) fn part(&mut self, node: &Node, fields: &'static [Field], path: &str) -> Mapping {
        let Content::Mapping(entries) = &node.content else {
            self.wrong_shape(node, path, "a map of keys", fields);
            return Mapping::new();
        };
        let mut values = Mapping::new();
        for entry in entries {
            match find(fields, &entry.key.text) {
                Some(field) => {
                    if let Some(value) = self.field(&entry.value, field, &join(path, field.name), entry.key.site) {
                        values.insert(Value::from(field.name), value);
                    }
                }
                None => self.unknown(&entry.key, fields, path),
            }
        }
        values
    }
}

/// What to write of a choice, as an example.
fn example(fields: &'static [Field], bare: &'static [(&'static str, &'static str)]) -> String {
    let timed = |name: &str| matches!(find(fields, name).map(|field| &field.kind), Some(Kind::Leaf(Leaf::Time { .. })));
    let found = bare.iter().find(|(name, _)| timed(name));
    found.map_or_else(String::new, |(name, text)| format!("{name}: {text}"))
}
