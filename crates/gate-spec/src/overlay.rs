//! Overlays: values that flags put over the spec's own, by dotted path.

use gate_model::{Override, REDACTED};

use crate::Overlay;
use crate::credential::has_url_credentials;
use crate::field::{Field, Kind, find};
use crate::problem::{Problem, clip, nearest};
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
        if let Some(problem) = unnamed(root, site, &segments) {
            problems.push(problem);
            continue;
        }
        match value(&overlay.value, target, flag) {
            Ok(node) => put(root, Level::Keys(ROOT, None), &segments, node, site),
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
            Some(("scenarios", rest)) => rest.split_once(".target.").map(|(_, key)| key),
            _ => None,
        };
        let is_scenario = |path: &str| {
            let rest = path.strip_prefix("scenarios").is_some_and(|rest| rest.matches('.').count() < 2);
            rest || (path.starts_with("scenarios.") && path.ends_with(".target"))
        };
        let secret = ["target", "reference"].contains(&overlay.path.as_str())
            || is_scenario(&overlay.path)
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
    let mut segments = segments;
    while let Some((segment, rest)) = segments.split_first() {
        let field = find(fields, segment)?;
        fields = match (&field.kind, rest) {
            (_, []) => return Some(Goal::Field(field)),
            (Kind::Headers, [_]) => return Some(Goal::Header),
            (Kind::Free, _) => return Some(Goal::Free),
            // A whole map by its name.
            (Kind::Named(_), [_]) => return Some(Goal::Free),
            (Kind::Named(fields), _) => fields,
            _ => field.fields()?,
        };
        let skipped = if field.named().is_some() { 1 } else { 0 };
        segments = rest.get(skipped..).unwrap_or(&[]);
    }
    None
}

/// The problem of a path to a scenario that the spec has not: a flag changes what is there.
fn unnamed(root: &Node, site: Site, segments: &[&str]) -> Option<Problem> {
    let [block, name, ..] = segments else { return None };
    find(ROOT, block)?.named()?;
    let Content::Mapping(entries) = &root.content else { return None };
    let block_node = entries.iter().find(|entry| entry.key.text == *block);
    let names: Vec<_> = match block_node.map(|entry| &entry.value.content) {
        Some(Content::Mapping(entries)) => entries.iter().map(|entry| entry.key.text.as_str()).collect(),
        _ => Vec::new(),
    };
    if names.contains(name) {
        return None;
    }
    let problem = Problem::error(site, format!("there is no scenario `{}`", clip(name)));
    let names: Vec<_> = names.into_iter().collect();
    Some(match nearest(name, names.iter().copied()) {
        Some(near) => problem.hint(format!("did you mean `{near}`?")),
        None if names.is_empty() => problem.hint("the spec has no scenarios"),
        None => problem.hint(format!("the scenarios are {}", names.join(", "))),
    })
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
    for field in fields {
        let path = join(path, field.name);
        if let Some(fields) = field.named() {
            collect(fields, &join(&path, "NAME"), paths);
        }
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

/// What the keys of a node are.
#[derive(Clone, Copy)]
enum Level {
    /// These, and the one that a single value stands for.
    Keys(&'static [Field], Option<&'static str>),
    /// One of these.
    Choice(&'static [Field]),
    /// Names of the spec's own, with these below each.
    Names(&'static [Field]),
}

impl Level {
    /// What is below a field.
    fn below(field: Option<&'static Field>) -> Self {
        match field.map(|field| &field.kind) {
            Some(Kind::OneOf { fields, .. }) => Self::Choice(fields),
            Some(Kind::Named(fields)) => Self::Names(fields),
            _ => Self::Keys(field.and_then(Field::fields).unwrap_or(&[]), field.and_then(Field::short)),
        }
    }

    /// What is below one of its keys.
    fn of(self, key: &str) -> Self {
        match self {
            Self::Keys(fields, _) | Self::Choice(fields) => Self::below(find(fields, key)),
            Self::Names(fields) => Self::Keys(fields, None),
        }
    }
}

/// Puts a value into a node.
fn put(node: &mut Node, level: Level, segments: &[&str], value: Node, site: Site) {
    let Some((segment, rest)) = segments.split_first() else {
        *node = value;
        return;
    };
    let is_single = matches!(node.content, Content::Scalar(_));
    match level {
        _ if node.is_null() => *node = Node { site, content: Content::Mapping(Vec::new()) },
        Level::Keys(_, Some(short)) if is_single => {
            // The short form, such as that of a distribution: its one value is the mean.
            let written = node.clone();
            let key = Key { text: short.to_owned(), site: written.site, anchored: false };
            *node = Node { site, content: Content::Mapping(vec![Entry { key, value: written }]) };
        }
        // The word of a choice, which is made anew.
        Level::Choice(_) if is_single => *node = Node { site, content: Content::Mapping(Vec::new()) },
        _ => {}
    }
    let Content::Mapping(entries) = &mut node.content else { return };
    if let Level::Choice(_) = level {
        entries.retain(|entry| entry.key.text == *segment);
    }
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
        put(&mut entry.value, level.of(segment), rest, value, site);
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
