//! Faults by script: request numbers, or ranges of them, with what happens to them.

use serde_yaml::Value;

use super::{Walk, join};
use crate::credential::shown_key;
use crate::leaf::range;
use crate::problem::Problem;
use crate::table::FAULT;
use crate::yaml::{Content, Entry, Key, Node};

/// The last request a script can name.
const LAST: u32 = 1_000_000;
/// The most lines of a script.
const LINES_LIMIT: usize = 200;

impl Walk<'_> {
    /// A list of `{from, to, fault}` in the order written, as [`ScriptedFault`] reads it.
    pub(super) fn script(&mut self, node: &Node, path: &str) -> Option<Value> {
        let Content::Mapping(entries) = &node.content else {
            let problem = Problem::error(node.site, format!("`{path}` must be a map of request numbers and faults"));
            self.report(path, problem.hint("such as `script: {26: http_500, 30..40: stall}`"));
            return None;
        };
        if entries.len() > LINES_LIMIT {
            let problem = Problem::error(node.site, format!("`{path}` has more than {LINES_LIMIT} lines"));
            self.report(path, problem.hint("a range such as `30..40` names many requests at once"));
            return None;
        }
        let mut script = Vec::new();
        let mut seen: Vec<(u32, u32, &Key)> = Vec::new();
        for Entry { key, value } in entries {
            let path = join(path, &key.text);
            self.spot(value, &path, Some(key.site));
            let fault = self.leaf(value, FAULT, &path);
            let Some((from, to)) = self.requests(key, &path) else { continue };
            if let Some((.., earlier)) = seen.iter().find(|(first, last, _)| *first <= from && to <= *last) {
                let (text, earlier) = (shown_key(&key.text), shown_key(&earlier.text));
                let problem = format!("`{text}` never happens: `{earlier}` above it comes first");
                self.report(&path, Problem::error(key.site, problem).hint("put it above, or remove it"));
            }
            seen.push((from, to, key));
            let numbers = [("from", Value::from(from)), ("to", Value::from(to))];
            let fields = numbers.into_iter().chain(fault.map(|fault| ("fault", fault)));
            script.push(Value::Mapping(fields.map(|(name, value)| (Value::from(name), value)).collect()));
        }
        let sound = !self.out.unsound.iter().any(|unsound| unsound.starts_with(path));
        sound.then_some(Value::Sequence(script))
    }

    /// The first and the last request that a key of a script names.
    fn requests(&mut self, key: &Key, path: &str) -> Option<(u32, u32)> {
        let text = shown_key(&key.text);
        let (problem, hint) = match range(&key.text).map(|(first, last)| (first.unwrap_or(last), last)) {
            Some((first, last)) if 1 <= first && first <= last && last <= LAST => return Some((first, last)),
            Some((first, last)) if first > last => {
                (format!("`{text}` ends below its start"), format!("write `{last}..{first}`"))
            }
            _ => (
                format!("`{text}` is not a request number from 1 to {LAST}, nor a range of them"),
                "measured requests count from 1: such as `26: http_500`, or `30..40: stall`".to_owned(),
            ),
        };
        self.report(path, Problem::error(key.site, problem).hint(hint));
        None
    }
}
