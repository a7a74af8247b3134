//! The page of JSON files, made from the docstrings of the types in gate-model.

use std::collections::{BTreeMap, VecDeque};
use std::fmt::Write as _;

use anyhow::{Context, Result};

use crate::tool::root;

/// Where each file's format begins, with what is said of it.
const ROOTS: [(&str, &str, &str); 2] = [
    (
        "The verdict",
        "Verdict",
        "`.gate/NAME/verdict.json`, and `--json` on stdout, one object a gate. Numbers in a verdict are what was printed, unrounded.",
    ),
    (
        "The journal",
        "JournalLine",
        "`.gate/NAME/run.jsonl`: one object a line, in the order in which requests ended. What `gate judge` judges again.",
    ),
];

const OPENING: &str = "# JSON files

What a program reads: the verdict and the journal. Both carry a `schema`: a file of a later one is refused, and within one schema keys are only
added. Keys that are absent where there is nothing to say are marked *may be absent*. Times are nanoseconds, as whole numbers; points in time
count from when the first measured request was due. Shares are parts of 1. This page is made from the code by `cargo xtask docs`.

```console
$ gate check gates/demo.yaml --json --quiet --set load.rps=30 > verdict.json
$ python3 -c 'import json; v = json.load(open(\"verdict.json\")); print(v[\"status\"], v[\"exit\"], len(v[\"checks\"]))'
passed passed 6
```
";

/// Types that are described elsewhere, or that are a text or a number in JSON.
const KNOWN: [(&str, &str); 12] = [
    ("GateSpec", "the [spec](spec.md), with every default filled in"),
    ("Metric", "a metric's name, such as `ttft.p95`"),
    ("Nanos", "nanoseconds"),
    ("PerSecond", "a number, per second"),
    ("Percentile", "a number"),
    ("ServerMetric", "a metric's name, such as `running`"),
    ("String", "text"),
    ("bool", "`true` or `false`"),
    ("f64", "a number"),
    ("Secret", "text, redacted"),
    ("Value", "any JSON"),
    ("PathBuf", "a path"),
];

#[derive(Default)]
struct Type {
    about: String,
    /// The key that names the variant, where it lies beside the variant's own.
    tag: Option<String>,
    is_enum: bool,
    rows: Vec<Row>,
    /// What a type of one value is, such as `Nanos(i64)`.
    is: Option<String>,
}

/// A field or a variant.
#[derive(Default)]
struct Row {
    name: String,
    of: String,
    about: String,
    may_be_absent: bool,
    inner: Vec<Row>,
}

/// The whole page.
pub(crate) fn page() -> Result<String> {
    let types = read()?;
    let mut page = OPENING.to_owned();
    let mut seen: Vec<String> = ROOTS.iter().map(|(_, root, _)| (*root).to_owned()).collect();
    for (title, root, about) in ROOTS {
        write!(page, "\n## {title}\n\n{about}\n")?;
        let mut open = VecDeque::from([root.to_owned()]);
        while let Some(name) = open.pop_front() {
            let Some(found) = types.get(&name) else { continue };
            if name != root {
                write!(page, "\n### {name}\n\n{}\n", found.about)?;
            }
            describe(&mut page, found, &types)?;
            let rows = found.rows.iter().flat_map(|row| std::iter::once(row).chain(&row.inner));
            for inner in rows.flat_map(|row| words(&row.of)).filter(|word| types.contains_key(*word)) {
                if !seen.iter().any(|name| name == inner) {
                    seen.push(inner.to_owned());
                    open.push_back(inner.to_owned());
                }
            }
        }
    }
    Ok(page)
}

fn describe(page: &mut String, of: &Type, types: &BTreeMap<String, Type>) -> Result<()> {
    if let Some(is) = &of.is {
        write!(page, "\nIn JSON: {}.\n", shown(is, types))?;
        return Ok(());
    }
    if let Some(tag) = &of.tag {
        write!(page, "\nThe key `{tag}` says which it is; the others lie beside it.\n")?;
    } else if of.is_enum && of.rows.iter().any(|row| !row.of.is_empty() || !row.inner.is_empty()) {
        write!(
            page,
            "\nOne of these: the name alone as a text, or, where it has a value, an object with the name as its key.\n"
        )?;
    }
    writeln!(page, "\n| {} | is | meaning |\n|---|---|---|", if of.is_enum { "name" } else { "key" })?;
    for row in &of.rows {
        line(page, "", row, types)?;
        for inner in &row.inner {
            line(page, &format!("`{}` › ", row.name), inner, types)?;
        }
    }
    Ok(())
}

fn line(page: &mut String, before: &str, row: &Row, types: &BTreeMap<String, Type>) -> Result<()> {
    let absent = if row.may_be_absent { "; *may be absent*" } else { "" };
    let about = row.about.replace('|', "\\|");
    writeln!(page, "| {before}`{}` | {}{absent} | {about} |", row.name, shown(&row.of, types))?;
    Ok(())
}

/// The names in a type, such as `Vec`, `CheckVerdict`.
fn words(of: &str) -> Vec<&str> {
    of.split(|letter: char| !letter.is_alphanumeric() && letter != '_').filter(|word| !word.is_empty()).collect()
}

/// A Rust type as a reader of JSON sees it.
fn shown(of: &str, types: &BTreeMap<String, Type>) -> String {
    let of = of.trim().trim_start_matches("crate::");
    let inside = |outer: &str| of.strip_prefix(outer).and_then(|rest| rest.strip_suffix('>'));
    if of.is_empty() {
        return "–".to_owned();
    }
    if let Some(inner) = inside("Option<") {
        return format!("{}, or `null`", shown(inner, types));
    }
    for outer in ["Box<", "Arc<", "std::sync::Arc<"] {
        if let Some(inner) = inside(outer) {
            return shown(inner, types);
        }
    }
    if let Some(inner) = inside("Vec<") {
        return format!("a list: {}", shown(inner, types));
    }
    if let Some((_, about)) = KNOWN.iter().find(|(name, _)| *name == of) {
        return (*about).to_owned();
    }
    if types.contains_key(of) {
        return format!("[{of}](#{})", of.to_lowercase());
    }
    match of {
        "u8" | "u16" | "u32" | "u64" | "i64" | "usize" => "a whole number".to_owned(),
        _ if of.starts_with('(') => {
            let parts = of.trim_matches(['(', ')']).split(", ").map(|part| shown(part, types));
            format!("a list of: {}", parts.collect::<Vec<_>>().join("; "))
        }
        _ if of.contains("Map<") => "an object".to_owned(),
        _ if of.contains("str") => "text".to_owned(),
        _ => format!("`{of}`"),
    }
}

/// Every type of gate-model that becomes JSON as it is declared.
fn read() -> Result<BTreeMap<String, Type>> {
    let mut types = BTreeMap::new();
    let folder = root().join("crates/gate-model/src");
    for entry in std::fs::read_dir(&folder).with_context(|| format!("cannot read {}", folder.display()))? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "rs") {
            let text = std::fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
            read_file(&text, &mut types);
        }
    }
    types.retain(|name, _| !KNOWN.iter().any(|(known, _)| known == name));
    Ok(types)
}

/// Reads what rustfmt has laid out: one field a line, four blanks a level.
fn read_file(text: &str, types: &mut BTreeMap<String, Type>) {
    let (mut about, mut marks) = (String::new(), String::new());
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        if let Some(doc) = line.strip_prefix("/// ") {
            join(&mut about, doc);
        } else if line.starts_with("#[") {
            marks += line;
        } else if let Some((name, rest, is_enum)) = declared(line) {
            let is_json = marks.contains("Serialize") && !marks.contains("into = ");
            let mut found = Type { about: plain(&about), is_enum, ..Type::default() };
            found.tag = quoted(&marks, "tag = ");
            if rest.starts_with('(') {
                found.is = Some(rest.trim_matches(['(', ')', ';']).trim_start_matches("pub ").to_owned());
            } else if rest == "{" {
                let style = if is_enum { quoted(&marks, "rename_all = ") } else { None };
                found.rows = body(&mut lines, 4, is_enum, style.is_some());
            }
            if is_json {
                types.insert(name.to_owned(), found);
            }
            about.clear();
            marks.clear();
        } else if !line.starts_with("///") {
            about.clear();
            marks.clear();
        }
    }
}

fn declared(line: &str) -> Option<(&str, &str, bool)> {
    let (rest, is_enum) = match line.strip_prefix("pub struct ") {
        Some(rest) => (rest, false),
        None => (line.strip_prefix("pub enum ")?, true),
    };
    let end = rest.find(|letter: char| !letter.is_alphanumeric())?;
    let (name, rest) = rest.split_at_checked(end)?;
    Some((name, rest.trim(), is_enum))
}

/// The fields or variants up to the closing brace of this level.
fn body<'t>(lines: &mut impl Iterator<Item = &'t str>, indent: usize, is_enum: bool, in_snake: bool) -> Vec<Row> {
    let (mut rows, mut row, mut marks) = (Vec::new(), Row::default(), String::new());
    while let Some(line) = lines.next() {
        let Some(line) = line.get(indent..).filter(|_| !line.trim().is_empty()) else {
            if line.trim() == "}" || line.trim() == "}," {
                break;
            }
            continue;
        };
        if let Some(doc) = line.strip_prefix("/// ") {
            join(&mut row.about, doc);
        } else if line.starts_with("#[") {
            marks += line;
        } else if line.starts_with(|letter: char| letter.is_alphabetic()) {
            let line = line.trim_start_matches("pub ");
            let end = line.find(|letter: char| !letter.is_alphanumeric() && letter != '_').unwrap_or(line.len());
            let (name, rest) = line.split_at_checked(end).unwrap_or((line, ""));
            row.name = match quoted(&marks, "rename = ") {
                Some(renamed) => renamed,
                None if in_snake => snake(name),
                None => name.to_owned(),
            };
            let rest = rest.trim().trim_end_matches(',');
            if rest == "{" {
                row.inner = body(lines, indent + 4, false, false);
            } else if is_enum {
                row.of = rest.trim_start_matches('(').trim_end_matches(')').to_owned();
            } else {
                row.of = rest.trim_start_matches(':').trim().to_owned();
            }
            row.about = plain(&row.about);
            row.may_be_absent = marks.contains("skip_serializing_if");
            if !marks.contains("#[serde(skip)]") {
                rows.push(std::mem::take(&mut row));
            }
            row = Row::default();
            marks.clear();
        }
    }
    rows
}

fn join(text: &mut String, more: &str) {
    if !text.is_empty() {
        text.push(' ');
    }
    text.push_str(more);
}

/// A docstring without the links of rustdoc.
fn plain(text: &str) -> String {
    match text {
        "[`VERDICT_SCHEMA`]." | "[`RUN_SCHEMA`]." => "The version of this format.".to_owned(),
        "[`crate::DEFINITIONS`]." | "[`DEFINITIONS`]." => "The version of what the metrics mean.".to_owned(),
        _ => text.replace("[`crate::", "`").replace("[`", "`").replace("`]", "`").replace('<', "&lt;"),
    }
}

/// The text in quotes behind a word, as in `tag = "is"`.
fn quoted(marks: &str, word: &str) -> Option<String> {
    marks.split(word).nth(1)?.strip_prefix('"')?.split('"').next().map(str::to_owned)
}

fn snake(name: &str) -> String {
    let mut snake = String::new();
    for letter in name.chars() {
        if letter.is_uppercase() && !snake.is_empty() {
            snake.push('_');
        }
        snake.extend(letter.to_lowercase());
    }
    snake
}
