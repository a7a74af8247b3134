//! Overlays: values that flags put over the spec's own, by dotted path.

use gate_model::{Override, REDACTED};

use crate::Overlay;
use crate::credential::has_url_credentials;
use crate::field::{Field, Kind, find};
use crate::problem::{Problem, nearest};
use crate::table::ROOT;
use crate::walk::join;
use crate::yaml::{Content, Entry, Key, Node, Site, read};

/// Puts every overlay into the tree, in order; the last one of a path stands.
pub(crate) fn apply(root: &mut Node, overlays: &[Overlay]) -> Vec<Problem> {
    let mut problems = Vec::new();
    for (flag, overlay) in overlays.iter().enumerate() {
        let site = Site::Flag(flag);
        let segments: Vec<&str> = overlay.path.split('.').collect();
        let Some(target) = locate(&segments) else {
            problems.push(unknown(site, &overlay.path));
            continue;
        };
        match value(&overlay.value, target, flag) {
            Ok(node) => put(root, (ROOT, None), &segments, node, site),
            Err(mut found) => problems.append(&mut found),
        }
        if let [block @ ("target" | "reference"), "url"] = segments.as_slice()
            && overlay.value.trim() != "sim"
        {
            drop_sim(root, block);
        }
    }
    problems
}

/// What was overlaid, for reports: without what must not be shown.
pub(crate) fn overrides(overlays: &[Overlay]) -> Vec<Override> {
    let shown = |overlay: &Overlay| {
        let below = ["key", "headers", "extra_body", "custom.body"];
        let key = match overlay.path.split_once('.') {
            Some(("target" | "reference", key)) => Some(key),
            _ => None,
        };
        let secret = ["target", "reference"].contains(&overlay.path.as_str())
            || key == Some("custom")
            || key.is_some_and(|key| {
                let is_below =
                    |path: &&str| key.strip_prefix(path).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'));
                below.iter().any(is_below)
            })
            || has_url_credentials(&overlay.value);
        if secret { REDACTED.to_owned() } else { overlay.value.clone() }
    };
    overlays
        .iter()
        .map(|overlay| Override { flag: overlay.flag.clone(), path: overlay.path.clone(), value: shown(overlay) })
        .collect()
}

/// What a path leads to.
enum Goal {
    /// A field of the table.
    Field(&'static Field),
    /// A header.
    Header,
    /// Something inside a free map.
    Free,
}

fn locate(segments: &[&str]) -> Option<Goal> {
    let mut fields = ROOT;
    for (depth, segment) in segments.iter().enumerate() {
        let field = find(fields, segment)?;
        let rest = segments.get(depth + 1..).unwrap_or(&[]);
        if rest.is_empty() {
            return Some(Goal::Field(field));
        }
        fields = match field.kind {
            Kind::Headers if rest.len() == 1 => return Some(Goal::Header),
            Kind::Free => return Some(Goal::Free),
            _ => field.fields()?,
        };
    }
    None
}

fn unknown(site: Site, path: &str) -> Problem {
    let mut paths = Vec::new();
    collect(ROOT, "", &mut paths);
    let problem = Problem::error(site, "no key of a gate spec has this path");
    match nearest(path, paths.iter().map(String::as_str)) {
        Some(near) => problem.hint(format!("did you mean `{near}`?")),
        None => problem.hint("a path is a key with the keys above it, such as `load.rps` or `target.sim.ttft`"),
    }
}

fn collect(fields: &'static [Field], path: &str, paths: &mut Vec<String>) {
    for field in fields.iter().filter(|field| !field.is_later()) {
        let path = join(path, field.name);
        collect(field.fields().unwrap_or(&[]), &path, paths);
        paths.push(path);
    }
}

/// The value as typed: the text as it is where a single value is asked for, else as YAML.
fn value(text: &str, goal: Goal, flag: usize) -> Result<Node, Vec<Problem>> {
    let text = text.trim();
    let single = match goal {
        Goal::Header => true,
        Goal::Free => false,
        Goal::Field(field) => match field.kind {
            Kind::Leaf(_) => true,
            Kind::Short { .. } => !text.starts_with('{'),
            _ => false,
        },
    };
    if single && !text.starts_with(['"', '\'']) {
        return Ok(Node::plain(text, Site::Flag(flag)));
    }
    let parsed = read(text, Some(flag));
    match parsed.root {
        Some(node) if parsed.problems.is_empty() => Ok(node),
        None if parsed.problems.is_empty() => Ok(Node::plain("", Site::Flag(flag))),
        _ => Err(parsed.problems),
    }
}

/// Puts a value into a node, which has these keys below it and the short form of this one.
fn put(
    node: &mut Node,
    (fields, short): (&'static [Field], Option<&'static str>),
    segments: &[&str],
    value: Node,
    site: Site,
) {
    let Some((segment, rest)) = segments.split_first() else {
        *node = value;
        return;
    };
    if node.is_null() {
        *node = Node { site, content: Content::Mapping(Vec::new()) };
    } else if let (Content::Scalar(_), Some(short)) = (&node.content, short) {
        // The short form, such as that of a distribution: its one value is the mean.
        let written = node.clone();
        let key = Key { text: short.to_owned(), site: written.site, anchored: false };
        *node = Node { site, content: Content::Mapping(vec![Entry { key, value: written }]) };
    }
    let Content::Mapping(entries) = &mut node.content else { return };
    let key = Key { text: (*segment).to_owned(), site, anchored: false };
    let entry = match entries.iter().position(|entry| entry.key.text == *segment) {
        Some(at) => entries.get_mut(at),
        None => {
            entries.push(Entry { key: key.clone(), value: Node::plain("", site) });
            entries.last_mut()
        }
    };
    if let Some(entry) = entry {
        if rest.is_empty() {
            entry.key = key;
        }
        let field = find(fields, segment);
        let below = (field.and_then(Field::fields).unwrap_or(&[]), field.and_then(Field::short));
        put(&mut entry.value, below, rest, value, site);
    }
}

/// A URL from a flag replaces a simulated engine.
fn drop_sim(root: &mut Node, block: &str) {
    let Content::Mapping(entries) = &mut root.content else { return };
    let target = entries.iter_mut().find(|entry| entry.key.text == block);
    if let Some(Entry { value: Node { content: Content::Mapping(entries), .. }, .. }) = target {
        entries.retain(|entry| entry.key.text != "sim");
    }
}
