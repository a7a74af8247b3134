//! Which stored runs a run is compared with, how they were chosen, and why there are none.

use gate_model::{BaselineFrom, BaselineRef, BaselineUse, Difference, NoBaseline};
use jiff::Timestamp;

use super::cause::quoted;
use super::grouped;
use super::key::key_differences;
use crate::layout::{clip, counted, listed};

/// How many characters of a commit's id are shown.
const SHORT: usize = 7;

/// How much of an id, a branch or a note is shown, in characters.
const NAMED: usize = 60;

/// How many differences, and how many baselines, are listed.
const LISTED: usize = 5;

/// How to make a baseline.
const MAKE_ONE: &str = "run `gate check --save-baseline` on the main branch to make one";

/// Why there is no baseline, with what to do about it.
#[must_use]
pub fn no_baseline_sentence(why: &NoBaseline) -> String {
    format!("{}: {}", reason(why, "the file"), remedy(why))
}

/// The same where it is known what was asked for, so that a file has its name.
pub(super) fn no_baseline_of(chosen: Option<&BaselineUse>, why: &NoBaseline) -> String {
    let asked = chosen.iter().flat_map(|chosen| &chosen.passed_over).find_map(|passed| match &passed.from {
        BaselineFrom::File(path) if passed.why == *why => Some(name(path)),
        _ => None,
    });
    format!("{}: {}", reason(why, asked.as_deref().unwrap_or("the file")), remedy(why))
}

fn remedy(why: &NoBaseline) -> &'static str {
    match why {
        NoBaseline::NoneSaved => MAKE_ONE,
        NoBaseline::Differs(_) => {
            "the main branch's `gate check --save-baseline` makes one that agrees, once it has the same"
        }
        NoBaseline::NotInHistory { shallow: true, .. } => {
            "fetch all of it (`git fetch --unshallow`, or `fetch-depth: 0` in the checkout)"
        }
        NoBaseline::NotInHistory { shallow: false, .. } => {
            "run `gate check --save-baseline` on the main branch, or name a `baseline.fallback` such as `last:5`"
        }
        NoBaseline::NoHistory(_) => "run in the repository, or name `baseline.from: last:5`",
        NoBaseline::NoForkPoint(_) => "fetch the main branch with its history, or name `baseline.from: branch:main`",
        NoBaseline::NoSuchId => "`gate baseline list` shows those there are",
        NoBaseline::NotMeasured => "run `gate check --save-baseline` on the main branch to make one that has",
        NoBaseline::NoSuchFile => "check the path in `baseline.from` or `--baseline`",
        NoBaseline::Dirty { .. } => "commit first, then run `gate check --save-baseline`",
        NoBaseline::AllRefused { .. } => "remove or repair the files; the log names each",
        NoBaseline::TooFewOk { .. } => "save one with more requests by `gate check --save-baseline`",
        NoBaseline::Itself => "an earlier run is needed to compare with",
        NoBaseline::NotGiven => "name one with `--baseline FILE`",
    }
}

/// Why there is no baseline; `file` is the one that was asked for.
fn reason(why: &NoBaseline, file: &str) -> String {
    match why {
        NoBaseline::NoneSaved => "none is stored for this gate".to_owned(),
        NoBaseline::Differs(differences) if differences.is_empty() => "none was measured as this run is".to_owned(),
        NoBaseline::Differs(differences) => {
            format!("none was measured as this run is ({})", key_differences(differences))
        }
        NoBaseline::NotInHistory { saved: 1, shallow } => {
            format!("the one that is stored is not in {}", history(*shallow))
        }
        NoBaseline::NotInHistory { saved, shallow } => {
            format!("none of the {} stored ones is in {}", grouped(*saved), history(*shallow))
        }
        NoBaseline::NoHistory(why) => format!("there is no history to choose from ({})", quoted(why)),
        NoBaseline::NoForkPoint(why) => format!("no fork point was found ({})", quoted(why)),
        NoBaseline::NoSuchId => "none has this id".to_owned(),
        NoBaseline::NotMeasured => "the baselines have no value of this metric".to_owned(),
        NoBaseline::NoSuchFile => format!("{file} is not there"),
        NoBaseline::Dirty { saved: 1 } => {
            "the one in this history was saved with changes that were not committed, so it is of no commit".to_owned()
        }
        NoBaseline::Dirty { saved } => format!(
            "the {} in this history were saved with changes that were not committed, so they are of no commit",
            grouped(*saved)
        ),
        NoBaseline::AllRefused { files: 1 } => "the one that is stored cannot be used".to_owned(),
        NoBaseline::AllRefused { files } => format!("none of the {} stored ones can be used", grouped(*files)),
        NoBaseline::TooFewOk { ok, needed } => format!(
            "too few requests of the stored run were ok ({}, and {} are needed)",
            grouped(*ok),
            grouped(*needed)
        ),
        NoBaseline::Itself => "the only one there is is this run itself".to_owned(),
        NoBaseline::NotGiven => "none was given".to_owned(),
    }
}

fn history(is_cut: bool) -> &'static str {
    if is_cut { "the history of this clone, which is cut off" } else { "the history that was followed" }
}

/// How baselines were chosen, relative to a run that started at `started`: `5 runs by merge-base, back from the fork
/// point e4f5a6b, in .gate/baselines: a1b2c3d (2 commits back, 3 days old), …`.
pub(crate) fn chosen(chosen: &BaselineUse, started: &str) -> String {
    let mut parts = vec![used(chosen, started)];
    let imported = chosen.used.iter().find_map(|baseline| baseline.imported_from.as_deref());
    parts.extend(imported.map(|format| {
        format!("imported from {} and used as given: nothing says that it was measured as this run is", name(format))
    }));
    let passed_over = chosen.passed_over.iter();
    parts.extend(passed_over.map(|passed| {
        let from = name(&passed.from.to_string());
        let why = reason(&passed.why, "the file");
        format!("{from} gave none: {why}")
    }));
    parts.join("; ")
}

fn used(chosen: &BaselineUse, started: &str) -> String {
    let store = name(&chosen.store);
    if chosen.used.is_empty() {
        return format!("none in {store}");
    }
    let by = chosen.by.as_ref().map(|by| format!(" by {}", name(&by.to_string()))).unwrap_or_default();
    let from = match &chosen.by {
        Some(BaselineFrom::MergeBase) => "the fork point",
        _ => "",
    };
    let fork = chosen.fork.as_deref().map(|fork| format!("{from} {}", short(fork)));
    let fork = fork.map(|fork| format!(", back from {},", fork.trim_start())).unwrap_or_default();
    // Several runs of one commit are said once, with the age of the newest.
    let of_one_commit = |one: &BaselineRef, next: &BaselineRef| one.commit.is_some() && one.commit == next.commit;
    let groups: Vec<&[BaselineRef]> = chosen.used.chunk_by(of_one_commit).collect();
    let each = groups.iter().take(LISTED).filter_map(|runs| {
        let times = if runs.len() > 1 { format!("{} of ", runs.len()) } else { String::new() };
        Some(times + &one(runs.first()?, started))
    });
    let more: usize = groups.iter().skip(LISTED).map(|runs| runs.len()).sum();
    let each: Vec<String> = each.chain((more > 0).then(|| format!("{more} more"))).collect();
    format!("{}{by}{fork} in {store}: {}", counted(chosen.used.len(), "run"), listed(&each, "and"))
}

fn one(baseline: &BaselineRef, started: &str) -> String {
    let what = baseline.commit.as_deref().map_or_else(|| name(&baseline.id), short);
    let behind = baseline.behind.map(|behind| match behind {
        0 => "that commit".to_owned(),
        behind => format!("{} back", counted(behind as usize, "commit")),
    });
    let facts: Vec<String> = [behind, age(&baseline.started, started)].into_iter().flatten().collect();
    if facts.is_empty() { what } else { format!("{what} ({})", facts.join(", ")) }
}

/// `cpu: EPYC 7763 here, Xeon 8370C there`.
pub(crate) fn differences_text(differences: &[Difference]) -> String {
    // A path of the spec has the spec's words.
    let words = |one: &Difference| {
        let is_path = one.what.starts_with("target.");
        Some(key_differences(std::slice::from_ref(one)))
            .filter(|words| is_path && !words.is_empty())
            .unwrap_or_else(|| difference(one))
    };
    let mut each: Vec<String> = differences.iter().take(LISTED).map(words).collect();
    let more = differences.len().saturating_sub(LISTED);
    each.extend((more > 0).then(|| format!("{} more", grouped(u32::try_from(more).unwrap_or(u32::MAX)))));
    each.join("; ")
}

/// `cpu: EPYC 7763 here, Xeon 8370C in the baseline`.
pub(super) fn difference(difference: &Difference) -> String {
    let or_none = |text: &str| if text.trim().is_empty() { "none".to_owned() } else { name(text) };
    let Difference { what, baseline, run } = difference;
    format!("{}: {} here, {} in the baseline", name(what), or_none(run), or_none(baseline))
}

/// A commit's id as people write it.
pub(crate) fn short(commit: &str) -> String {
    commit.trim().replace('`', "'").chars().take(SHORT).collect()
}

/// A name from outside; a backtick in it would make code of the words after it.
pub(super) fn name(text: &str) -> String {
    clip(&text.trim().replace('`', "'"), NAMED)
}

/// How much older one start is than another: `3 days old`; `None` where either is no time, or it is not older.
fn age(earlier: &str, later: &str) -> Option<String> {
    let seconds = |text: &str| text.parse::<Timestamp>().ok().map(Timestamp::as_second);
    let seconds = seconds(later)?.checked_sub(seconds(earlier)?)?;
    let units = [(86_400, "day"), (3_600, "hour"), (60, "minute")];
    let (size, unit) = units.into_iter().find(|(size, _)| seconds >= *size)?;
    Some(format!("{} old", counted(usize::try_from(seconds / size).ok()?, unit)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_age_is_in_the_largest_unit_it_fills() {
        let now = "2026-11-29T16:37:00Z";
        for (earlier, text) in [
            ("2026-11-26T14:02:11Z", Some("3 days old")),
            ("2026-11-28T16:37:00Z", Some("1 day old")),
            ("2026-11-29T09:00:00Z", Some("7 hours old")),
            ("2026-11-29T16:35:59Z", Some("1 minute old")),
            ("2026-11-29T16:36:59Z", None),
            ("2026-12-01T00:00:00Z", None),
            ("yesterday", None),
        ] {
            assert_eq!(age(earlier, now).as_deref(), text, "{earlier}");
        }
    }

    #[test]
    fn runs_of_one_commit_are_said_once() {
        let run = |id: &str, commit: Option<&str>, started: &str| BaselineRef {
            id: id.to_owned(),
            commit: commit.map(str::to_owned),
            started: started.to_owned(),
            behind: commit.map(|_| 1),
            imported_from: None,
        };
        let all = BaselineUse {
            store: ".gate/baselines".to_owned(),
            by: Some(BaselineFrom::Last(4)),
            fork: None,
            used: vec![
                run("a", Some("325509ab"), "2026-11-29T16:35:00Z"),
                run("b", Some("325509ab"), "2026-11-29T16:34:00Z"),
                run("c", None, "2026-11-29T16:33:00Z"),
                run("d", None, "2026-11-29T16:32:00Z"),
            ],
            passed_over: Vec::new(),
            differences: Vec::new(),
        };
        assert_eq!(
            chosen(&all, "2026-11-29T16:37:00Z"),
            "4 runs by last:4 in .gate/baselines: 2 of 325509a (1 commit back, 2 minutes old), c (4 minutes old) and d \
             (5 minutes old)"
        );
    }

    #[test]
    fn every_reason_has_a_remedy() {
        let difference =
            |what: u32| Difference { what: what.to_string(), baseline: String::new(), run: "4".to_owned() };
        for (why, words) in [
            (NoBaseline::NoneSaved, "none is stored for this gate: run `gate check --save-baseline`"),
            (NoBaseline::Differs(Vec::new()), "none was measured as this run is: the main branch's"),
            (
                NoBaseline::Differs((0..7).map(difference).collect()),
                "2: 4 here, none in the baseline; and 4 more): the main",
            ),
            (
                NoBaseline::NotInHistory { saved: 1, shallow: true },
                "the one that is stored is not in the history of this clone, which is cut off: fetch all of it",
            ),
            (
                NoBaseline::NotInHistory { saved: 7, shallow: false },
                "none of the 7 stored ones is in the history that was followed: run",
            ),
            (NoBaseline::NoHistory("no git".to_owned()), "(no git): run in the repository, or name"),
            (NoBaseline::NoForkPoint("no main.".to_owned()), "(no main): fetch the main branch"),
            (NoBaseline::NoSuchId, "none has this id: `gate baseline list`"),
            (NoBaseline::NotMeasured, "no value of this metric: run `gate check --save-baseline`"),
            (NoBaseline::NoSuchFile, "the file is not there: check the path"),
            (NoBaseline::Dirty { saved: 1 }, "of no commit: commit first, then run `gate check --save-baseline`"),
            (NoBaseline::Dirty { saved: 3 }, "the 3 in this history were saved with changes that were not committed"),
            (NoBaseline::AllRefused { files: 1 }, "the one that is stored cannot be used: remove or repair"),
            (NoBaseline::AllRefused { files: 2 }, "none of the 2 stored ones can be used: remove or repair"),
            (NoBaseline::TooFewOk { ok: 3, needed: 20 }, "were ok (3, and 20 are needed): save one with more"),
            (NoBaseline::Itself, "this run itself: an earlier run is needed"),
            (NoBaseline::NotGiven, "none was given: name one with `--baseline FILE`"),
        ] {
            let sentence = no_baseline_sentence(&why);
            assert!(sentence.contains(words), "{sentence}");
        }
    }
}
