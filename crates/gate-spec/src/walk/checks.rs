//! Lists of checks: texts, or maps with more to say.

use gate_model::{Direction, Metric};
use serde_yaml::{Mapping, Value};

use super::{Walk, join};
use crate::field::Leaf;
use crate::problem::{Problem, clip, nearest};
use crate::table::CHECK;
use crate::yaml::{Content, Entry, Node, Scalar};

/// The most checks in one list.
const CHECKS_LIMIT: usize = 200;

impl Walk<'_> {
    /// A list of `{check, at, …}`: the text, its index, and what the long form adds.
    pub(super) fn checks(&mut self, node: &Node, path: &str) -> Option<Value> {
        let Content::Sequence(items) = &node.content else {
            let problem = Problem::error(node.site, format!("`{path}` must be a list of checks"));
            self.report(path, problem.hint("one per line: `- ttft.p95 < 800ms`"));
            return None;
        };
        if items.len() > CHECKS_LIMIT {
            let problem = Problem::error(node.site, format!("`{path}` has more than {CHECKS_LIMIT} checks"));
            self.report(path, problem.hint("nobody reads that many: keep those that matter"));
            return None;
        }
        let mut checks = Vec::new();
        for (at, item) in (0_u32..).zip(items) {
            let path = format!("{path}[{at}]");
            self.spot(item, &path, None);
            if let Some(mut check) = self.check(item, &path) {
                check.insert(Value::from("at"), Value::from(at));
                checks.push(Value::Mapping(check));
            }
        }
        Some(Value::Sequence(checks))
    }

    fn check(&mut self, item: &Node, path: &str) -> Option<Mapping> {
        match &item.content {
            Content::Scalar(_) => {
                let text = self.leaf(item, Leaf::Check, path);
                if text.is_none() {
                    self.empty(item, path, path);
                }
                Some(Mapping::from_iter([(Value::from("check"), text?)]))
            }
            Content::Sequence(_) => {
                let problem = Problem::error(item.site, "a check is one text, not a list");
                self.report(path, problem.hint("write `- ttft.p95 < 800ms`, one check per line"));
                None
            }
            Content::Mapping(entries) => {
                if let [Entry { key, value }] = entries.as_slice()
                    && nearest(&key.text, CHECK.iter().map(|field| field.name)).is_none()
                    && let Some(check) = split_check(&key.text, value)
                {
                    let problem = Problem::error(key.site, "the `:` makes this check a map");
                    self.report(path, problem.hint(format!("write it as one text: `- {check}`")));
                    return None;
                }
                let values = self.map(item, CHECK, path, item.site);
                let text = join(path, "check");
                // Whatever is said of the check as a whole is said at its text.
                if let Some(spot) = self.out.spots.get(&text).cloned() {
                    self.out.spots.insert(path.to_owned(), spot);
                }
                if !values.contains_key("check") {
                    self.empty(item, path, &text);
                    return None;
                }
                Some(values)
            }
        }
    }

    /// Reports a check without text, unless something else is wrong with the text.
    fn empty(&mut self, item: &Node, path: &str, text: &str) {
        if !self.out.unsound.contains(text) {
            let problem = Problem::error(item.site, "this check is empty");
            self.report(path, problem.hint("write one, such as `- ttft.p95 < 800ms`, or remove the line"));
        }
    }
}

/// The check that was split by its colon, put together again.
fn split_check(key: &str, value: &Node) -> Option<String> {
    let Content::Scalar(Scalar { text, .. }) = &value.content else { return None };
    let text = text.trim();
    if [key, text].iter().any(|part| part.contains(['<', '>', '='])) {
        return Some(format!("{key} {text}").trim().to_owned());
    }
    let higher = key.parse::<Metric>().is_ok_and(|metric| metric.direction() == Direction::Higher);
    Some(format!("{} {} {text}", clip(key), if higher { ">=" } else { "<" }))
}
