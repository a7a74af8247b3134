//! The `baseline` block: which stored runs, and where they are kept.

use gate_model::{BaselineFrom, BaselineSpec, BaselineStore};

use crate::context::Context;
use crate::leaf::Flaw;
use crate::problem::{Problem, nearest};
use crate::raw::RawBaseline;

/// What `from` looks like, as a regular expression.
pub(crate) const FROM: &str =
    r"^\s*(merge-base|branch:[^\s-]\S*|last:0*([1-9]|1[0-9]|20)|pin:[A-Za-z0-9][A-Za-z0-9._-]*|.*/.*|.*\.jsonl?)\s*$";
/// The most runs that are compared with.
pub(crate) const MOST_RUNS: u32 = 20;
const FORMS: &str = "`merge-base`, `branch:NAME`, `last:N`, `pin:ID` or a file";

/// The block; its texts were checked when they were read.
pub(crate) fn baseline(context: &mut Context, raw: RawBaseline) -> BaselineSpec {
    let RawBaseline { from: first, runs, store: kept, class, fallback } = raw;
    let spec = BaselineSpec {
        from: from(&first).unwrap_or_default(),
        runs,
        store: store(&kept).unwrap_or_else(|_| BaselineSpec::default().store),
        class,
        fallback: fallback.iter().filter_map(|text| from(text).ok()).collect(),
    };
    if context.is_sound("baseline.from") && context.is_sound("baseline.fallback") {
        refuse_repeated(context, &spec);
        refuse_unused(context, &spec);
    }
    spec
}

/// What gave nothing once gives nothing again.
fn refuse_repeated(context: &mut Context, spec: &BaselineSpec) {
    let asked: Vec<_> = std::iter::once(&spec.from).chain(&spec.fallback).collect();
    for (at, from) in spec.fallback.iter().enumerate() {
        // Among all that is asked for, the fallbacks come after `from`.
        let before = asked.iter().position(|asked| *asked == from).filter(|before| *before <= at);
        let Some(before) = before else { continue };
        let first = before.checked_sub(1).map_or("from".to_owned(), |before| format!("fallback[{before}]"));
        let path = format!("baseline.fallback[{at}]");
        let message = format!("`{path}` asks for the same as `baseline.{first}`, which comes first");
        context.error(&path, message, "remove it");
    }
}

/// `last:N` says itself how many there are.
fn refuse_unused(context: &mut Context, spec: &BaselineSpec) {
    let mut asked = std::iter::once(&spec.from).chain(&spec.fallback);
    let is_used = asked.any(|from| matches!(from, BaselineFrom::MergeBase | BaselineFrom::Branch(_)));
    let is_given = context.is_written("baseline.runs") && context.is_sound("baseline.runs");
    if let (BaselineFrom::Last(count), true, false) = (&spec.from, is_given, is_used) {
        let runs = spec.runs;
        let message = format!("`baseline.runs` is {runs}, and `baseline.from` is `last:{count}`, which says how many");
        let hint = "remove `runs`, and give the number behind `last:`";
        context.problems.push(Problem::error(context.key("baseline.runs"), message).hint(hint));
    }
}

/// Reads which baselines are asked for.
pub(crate) fn from(text: &str) -> Result<BaselineFrom, Flaw> {
    let flaw = Flaw::new(format!("must be {FORMS}"), "such as `merge-base`, `branch:main` or `./baseline.json`");
    if text == "merge-base" {
        return Ok(BaselineFrom::MergeBase);
    }
    let named = |what: &str, example: &str| {
        Flaw::new(format!("must give {what} behind its `:`, without blanks"), format!("such as `{example}`"))
    };
    let is_word = |name: &str| !name.is_empty() && !name.contains(|one: char| one.is_whitespace() || one.is_control());
    let is_file = |name: &str| name.contains('/') || name.ends_with(".json") || name.ends_with(".jsonl");
    match text.split_once(':') {
        Some(("branch", name)) => match is_word(name) && !name.starts_with('-') {
            true if is_ref(name) => Ok(BaselineFrom::Branch(name.to_owned())),
            true => Err(Flaw::new("must name a branch as git allows them", "such as `branch:main`")),
            false => Err(named("the name of a branch", "branch:main")),
        },
        Some(("pin", id)) => match is_word(id) {
            true if is_id(id) => Ok(BaselineFrom::Pin(id.to_owned())),
            true => Err(Flaw::new(
                "must give the id of a baseline, or its beginning: letters and digits, at most 128",
                "such as `pin:01a229bf86ab`; `gate baseline list` shows them",
            )),
            false => Err(named("the id of a baseline", "pin:01a229bf86ab")),
        },
        Some(("last", count)) => match count.parse::<u32>() {
            Ok(number) if (1..=MOST_RUNS).contains(&number) && !count.starts_with('+') => {
                Ok(BaselineFrom::Last(number))
            }
            _ => Err(Flaw::new(format!("must give a number from 1 to {MOST_RUNS} behind its `:`"), "such as `last:5`")),
        },
        Some(("git", _)) => {
            let flaw = Flaw::new("must say which baselines, and a ref is where they are kept", "write it as `store`");
            Err(flaw.fix(format!("write `store: {text}`, and here which of those there, such as `merge-base`")))
        }
        Some(("file", name)) if is_file(name) => Err(flaw.fix(format!("write its name alone: `{name}`"))),
        Some((word, rest)) if let Some(near) = nearest(word, ["branch", "last", "pin"]) => {
            Err(flaw.fix(format!("did you mean `{near}:{rest}`?")))
        }
        _ if text.contains("://") => Err(flaw),
        _ if is_file(text) => Ok(BaselineFrom::File(text.to_owned())),
        Some(_) => Err(flaw),
        None => Err(match nearest(text, ["merge-base", "branch", "last", "pin"]) {
            Some("merge-base") => flaw.fix("did you mean `merge-base`?"),
            Some("branch") => flaw.fix("write it with its name: `branch:main`"),
            Some("last") => flaw.fix("write it with its number: `last:5`"),
            Some("pin") => flaw.fix("write it with its id: `pin:ID`"),
            _ if is_word(text) => {
                flaw.fix(format!("a branch is written `branch:{text}`, a file with its folder: `./{text}`"))
            }
            _ => flaw,
        }),
    }
}

/// Reads where baselines are kept.
pub(crate) fn store(text: &str) -> Result<BaselineStore, Flaw> {
    let Some(name) = text.strip_prefix("git:") else {
        let flaw =
            Flaw::new("must be a folder or `git:REF`", "such as `.gate/baselines`, or `git:refs/gate/baselines`");
        return match text {
            _ if text.is_empty() || text.contains("://") || text.contains(char::is_control) => Err(flaw),
            _ if text.starts_with("refs/") => Err(flaw.fix(format!("write `git:{text}`"))),
            _ => Ok(BaselineStore::Folder(text.to_owned())),
        };
    };
    let example = "such as `git:refs/gate/baselines`";
    if !name.starts_with("refs/") {
        return Err(Flaw::new("must name a ref that starts with `refs/`", example));
    }
    if ["refs/heads/", "refs/tags/", "refs/remotes/"].iter().any(|taken| format!("{name}/").starts_with(taken)) {
        let problem = "must name a ref of its own: branches, tags and those of remotes have other uses";
        return Err(Flaw::new(problem, example));
    }
    if name.split('/').count() > 2 && is_ref(name) {
        Ok(BaselineStore::Git(name.to_owned()))
    } else {
        Err(Flaw::new("must name a ref as git allows them", example))
    }
}

/// Whether a text can name a ref, or a branch: what git-check-ref-format(1) lets through.
fn is_ref(name: &str) -> bool {
    let is_part = |part: &str| !part.is_empty() && !part.starts_with('.') && !part.ends_with(".lock");
    name.split('/').all(is_part)
        && name != "@"
        && !["..", "@{"].iter().any(|found| name.contains(found))
        && !name.ends_with('.')
        && !name.contains(|one: char| one.is_control() || " ~^:?*[\\".contains(one))
}

/// Whether a text can be a run's id, or its beginning: it names a file of a store.
fn is_id(text: &str) -> bool {
    text.len() <= 128
        && text.starts_with(|first: char| first.is_ascii_alphanumeric())
        && text.chars().all(|symbol| symbol.is_ascii_alphanumeric() || "._-".contains(symbol))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown<T: std::fmt::Debug>(read: Result<T, Flaw>) -> String {
        match read {
            Ok(value) => format!("{value:?}"),
            Err(flaw) => format!("{}; {}", flaw.problem, flaw.fix.unwrap_or(flaw.hint)),
        }
    }

    #[test]
    fn what_is_asked_for_reads() {
        let wrong = |hint: &str| format!("must be {FORMS}; {hint}");
        let example = wrong("such as `merge-base`, `branch:main` or `./baseline.json`");
        let impossible = "must give the id of a baseline, or its beginning: letters and digits, at most 128; such as `pin:01a229bf86ab`; `gate baseline list` shows them".to_owned();
        for (text, result) in [
            ("merge-base", "MergeBase"),
            ("branch:release/1.2", "Branch(\"release/1.2\")"),
            ("last:3", "Last(3)"),
            ("pin:2026-1", "Pin(\"2026-1\")"),
            ("./main.txt", "File(\"./main.txt\")"),
            ("main.jsonl", "File(\"main.jsonl\")"),
            ("https://h/b.json", example.as_str()),
            ("", &example),
            ("a b", &example),
            ("file:x", &example),
            ("mergebase", &wrong("did you mean `merge-base`?")),
            ("merge_base", &wrong("did you mean `merge-base`?")),
            ("brnach:main", &wrong("did you mean `branch:main`?")),
            ("last", &wrong("write it with its number: `last:5`")),
            ("main", &wrong("a branch is written `branch:main`, a file with its folder: `./main`")),
            ("last:20", "Last(20)"),
            ("last:0", "must give a number from 1 to 20 behind its `:`; such as `last:5`"),
            ("last:21", "must give a number from 1 to 20 behind its `:`; such as `last:5`"),
            ("last:+5", "must give a number from 1 to 20 behind its `:`; such as `last:5`"),
            ("last:99999999999", "must give a number from 1 to 20 behind its `:`; such as `last:5`"),
            ("branch:", "must give the name of a branch behind its `:`, without blanks; such as `branch:main`"),
            ("branch:--x", "must give the name of a branch behind its `:`, without blanks; such as `branch:main`"),
            ("branch:../x", "must name a branch as git allows them; such as `branch:main`"),
            ("branch:a..b", "must name a branch as git allows them; such as `branch:main`"),
            ("branch:/x", "must name a branch as git allows them; such as `branch:main`"),
            ("brnach:feature/x", &wrong("did you mean `branch:feature/x`?")),
            ("file:./x.json", &wrong("write its name alone: `./x.json`")),
            ("../main.json", "File(\"../main.json\")"),
            ("C:/runs/main.json", "File(\"C:/runs/main.json\")"),
            (
                "git:refs/gate/x",
                "must say which baselines, and a ref is where they are kept; write `store: git:refs/gate/x`, and here which of those there, such as `merge-base`",
            ),
            ("pin:a b", "must give the id of a baseline behind its `:`, without blanks; such as `pin:01a229bf86ab`"),
            ("pin:../../x", &impossible),
            ("pin:-x", &impossible),
            (&format!("pin:{}", "a".repeat(129)), &impossible),
        ] {
            assert_eq!(shown(from(text)), result, "{text}");
            if let Ok(from) = from(text) {
                assert_eq!(from.to_string(), text);
            }
        }
    }

    #[test]
    fn a_store_reads() {
        let such = "such as `git:refs/gate/baselines`";
        let own = format!("must name a ref of its own: branches, tags and those of remotes have other uses; {such}");
        let odd = format!("must name a ref as git allows them; {such}");
        for (text, result) in [
            (".gate/baselines", "Folder(\".gate/baselines\")"),
            ("/var/lib/gate", "Folder(\"/var/lib/gate\")"),
            ("git:refs/gate/baselines", "Git(\"refs/gate/baselines\")"),
            ("git:refs/headstrong/x", "Git(\"refs/headstrong/x\")"),
            ("git:main", &format!("must name a ref that starts with `refs/`; {such}")),
            ("git:refs/heads/main", &own),
            ("git:refs/tags", &own),
            ("git:refs/remotes/origin/x", &own),
            ("git:refs/", &odd),
            ("git:refs/gate", &odd),
            ("git:refs/a/b..c", &odd),
            ("git:refs/a/b.lock", &odd),
            ("git:refs/a b/c", &odd),
            ("refs/gate/baselines", "must be a folder or `git:REF`; write `git:refs/gate/baselines`"),
            ("s3://bucket/x", "must be a folder or `git:REF`; such as `.gate/baselines`, or `git:refs/gate/baselines`"),
        ] {
            assert_eq!(shown(store(text)), result, "{text}");
        }
    }
}
