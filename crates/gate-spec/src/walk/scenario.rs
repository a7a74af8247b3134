//! Scenarios: maps by names of the spec's own, which take from the gate what they leave out.

use serde_yaml::{Mapping, Value};

use super::{Walk, defaults, join};
use crate::credential::shown_key;
use crate::field::{Field, Leaf};
use crate::problem::Problem;
use crate::table::{LOAD, SHAPE};
use crate::yaml::{Content, Node};

/// The most scenarios of a gate.
const SCENARIOS_LIMIT: usize = 64;
/// The blocks that a scenario takes from the gate, key by key.
const BLOCKS: [&str; 3] = ["load", "prompts", "slo"];

impl Walk<'_> {
    /// A list of the maps in the order written, each with its `name`.
    pub(super) fn named(&mut self, node: &Node, fields: &'static [Field], path: &str) -> Option<Value> {
        let Content::Mapping(entries) = &node.content else {
            let problem = Problem::error(node.site, format!("`{path}` must be a map of names, not {}", node.noun()));
            self.report(path, problem.hint("such as `scenarios: {chat: {weight: 3}, batch: {weight: 1}}`"));
            return None;
        };
        if entries.is_empty() || entries.len() > SCENARIOS_LIMIT {
            let (message, hint) = match entries.len() {
                0 => (format!("`{path}` names none"), "name one, such as `chat: {…}`, or remove the key"),
                _ => (format!("`{path}` has more than {SCENARIOS_LIMIT}"), "keep those that matter, or make two gates"),
            };
            self.report(path, Problem::error(node.site, message).hint(hint));
            return None;
        }
        let mut scenarios = Vec::new();
        for entry in entries {
            let path = join(path, &entry.key.text);
            if let Err(flaw) = Leaf::Name.read(&entry.key.text) {
                let message = format!("the name of a scenario {}, not `{}`", flaw.problem, shown_key(&entry.key.text));
                let hint = "choose one of letters and digits, such as `chat`";
                self.report(&path, Problem::error(entry.key.site, message).hint(hint));
                continue;
            }
            self.spot(&entry.value, &path, Some(entry.key.site));
            if entry.value.is_null() {
                let problem = Problem::error(entry.key.site, format!("`{path}` has no value"));
                self.report(&path, problem.hint("write `{}` where it is as the gate says, or put its keys below it"));
                continue;
            }
            let mut values = self.map(&entry.value, fields, &path, entry.key.site);
            values.insert(Value::from("name"), Value::from(entry.key.text.as_str()));
            scenarios.push(Value::Mapping(values));
        }
        Some(Value::Sequence(scenarios))
    }
}

/// Fills in what scenarios leave out: the gate's values of each block, key by key. A shape of its own replaces all that
/// the gate says of one.
pub(super) fn complete(root: &mut Mapping) {
    let blocks = BLOCKS.map(|name| (name, root.get(name).and_then(Value::as_mapping).cloned().unwrap_or_default()));
    let Some(Value::Sequence(scenarios)) = root.get_mut("scenarios") else { return };
    for scenario in scenarios.iter_mut().filter_map(Value::as_mapping_mut) {
        for (name, of_gate) in &blocks {
            let own = scenario.get(*name).and_then(Value::as_mapping).cloned().unwrap_or_default();
            let mut values = of_gate.clone();
            if *name == "load" && reshapes(|key| own.contains_key(key)) {
                let absent = defaults(LOAD);
                for key in SHAPE {
                    values.remove(key);
                    values.extend(absent.get(key).map(|value| (Value::from(key), value.clone())));
                }
            }
            values.extend(own);
            scenario.insert(Value::from(*name), Value::Mapping(values));
        }
    }
}

/// Whether a load with these keys has a shape of its own: one that only goes on further has not.
pub(crate) fn reshapes(has: impl Fn(&str) -> bool) -> bool {
    SHAPE.into_iter().any(|key| key != "extend" && has(key))
}
