//! The `baseline` block: which stored runs, and where they are kept.

use gate_model::{BaselineFrom, BaselineSpec, BaselineStore};

use crate::leaf::Flaw;
use crate::problem::nearest;
use crate::raw::RawBaseline;

/// What `from` looks like, as a regular expression.
pub(crate) const FROM: &str = r"^(merge-base|branch:.+|last:[0-9]+|pin:.+|.*/.*|.*\.jsonl?)$";
const FORMS: &str = "`merge-base`, `branch:NAME`, `last:N`, `pin:ID` or a file";

/// The block; its texts were checked when they were read.
pub(crate) fn baseline(raw: RawBaseline) -> BaselineSpec {
    let RawBaseline { from: first, runs, store: kept, class, fallback } = raw;
    let fallback = fallback.iter().filter_map(|text| from(text).ok()).collect();
    BaselineSpec {
        from: from(&first).unwrap_or_default(),
        runs,
        store: store(&kept).unwrap_or_else(|_| BaselineSpec::default().store),
        class,
        fallback,
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
    match text.split_once(':') {
        Some(("branch", name)) => match is_word(name) && !name.starts_with('-') {
            true => Ok(BaselineFrom::Branch(name.to_owned())),
            false => Err(named("the name of a branch", "branch:main")),
        },
        Some(("pin", id)) => match is_word(id) {
            true => Ok(BaselineFrom::Pin(id.to_owned())),
            false => Err(named("the id of a baseline", "pin:20261129-101500-1a2b")),
        },
        Some(("last", count)) => match count.parse::<u32>() {
            Ok(count) if count > 0 => Ok(BaselineFrom::Last(count)),
            _ => Err(Flaw::new("must give a number from 1 on behind its `:`", "such as `last:5`")),
        },
        _ if text.contains("://") => Err(flaw),
        _ if text.contains('/') || text.ends_with(".json") || text.ends_with(".jsonl") => {
            Ok(BaselineFrom::File(text.to_owned()))
        }
        Some((word, rest)) => Err(match nearest(word, ["branch", "last", "pin"]) {
            Some(near) => flaw.fix(format!("did you mean `{near}:{rest}`?")),
            None => flaw,
        }),
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
    // What git-check-ref-format(1) refuses.
    let is_part = |part: &str| !part.is_empty() && !part.starts_with('.') && !part.ends_with(".lock");
    let is_ref = name.split('/').count() > 2
        && name.split('/').all(is_part)
        && !["..", "@{"].iter().any(|found| name.contains(found))
        && !name.ends_with('.')
        && !name.contains(|one: char| one.is_control() || " ~^:?*[\\".contains(one));
    if is_ref {
        Ok(BaselineStore::Git(name.to_owned()))
    } else {
        Err(Flaw::new("must name a ref as git allows them", example))
    }
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
            ("last:0", "must give a number from 1 on behind its `:`; such as `last:5`"),
            ("last:99999999999", "must give a number from 1 on behind its `:`; such as `last:5`"),
            ("branch:", "must give the name of a branch behind its `:`, without blanks; such as `branch:main`"),
            ("branch:--x", "must give the name of a branch behind its `:`, without blanks; such as `branch:main`"),
            (
                "pin:a b",
                "must give the id of a baseline behind its `:`, without blanks; such as `pin:20261129-101500-1a2b`",
            ),
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
