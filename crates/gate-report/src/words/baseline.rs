//! Which stored runs a run is compared with, how they were chosen, and why there are none.

use gate_model::{BaselineFrom, BaselineRef, BaselineUse, Difference, NoBaseline};
use jiff::Timestamp;

use super::cause::quoted;
use super::grouped;
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
    let remedy = match why {
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
        NoBaseline::NotGiven => "name one with `--baseline FILE`",
    };
    format!("{}: {remedy}", reason(why))
}

/// Why there is no baseline.
fn reason(why: &NoBaseline) -> String {
    match why {
        NoBaseline::NoneSaved => "none was ever saved for this gate".to_owned(),
        NoBaseline::Differs(differences) if differences.is_empty() => "none was measured as this run is".to_owned(),
        NoBaseline::Differs(differences) => {
            format!("none was measured as this run is ({})", differences_text(differences))
        }
        NoBaseline::NotInHistory { saved, shallow } => format!(
            "of {} none is in the history {}",
            counted(*saved as usize, "saved one"),
            if *shallow { "of this clone, which is cut off" } else { "that was followed" }
        ),
        NoBaseline::NoHistory(why) => format!("there is no history to choose from ({})", quoted(why)),
        NoBaseline::NoForkPoint(why) => format!("no fork point was found ({})", quoted(why)),
        NoBaseline::NoSuchId => "none has this id".to_owned(),
        NoBaseline::NotMeasured => "the baselines have no value of this metric".to_owned(),
        NoBaseline::NotGiven => "none was given".to_owned(),
    }
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
    parts.extend(
        passed_over.map(|passed| format!("{} gave none: {}", name(&passed.from.to_string()), reason(&passed.why))),
    );
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
    let each = chosen.used.iter().take(LISTED).map(|baseline| one(baseline, started));
    let more = chosen.used.len().saturating_sub(LISTED);
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
    let mut each: Vec<String> = differences.iter().take(LISTED).map(difference).collect();
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
    fn every_reason_has_a_remedy() {
        let difference =
            |what: u32| Difference { what: what.to_string(), baseline: String::new(), run: "4".to_owned() };
        for (why, words) in [
            (NoBaseline::NoneSaved, "none was ever saved for this gate: run `gate check --save-baseline`"),
            (NoBaseline::Differs(Vec::new()), "none was measured as this run is: the main branch's"),
            (
                NoBaseline::Differs((0..7).map(difference).collect()),
                "4: 4 here, none in the baseline; 2 more): the main",
            ),
            (NoBaseline::NotInHistory { saved: 1, shallow: true }, "cut off: fetch all of it"),
            (
                NoBaseline::NotInHistory { saved: 7, shallow: false },
                "of 7 saved ones none is in the history that was followed: run",
            ),
            (NoBaseline::NoHistory("no git".to_owned()), "(no git): run in the repository, or name"),
            (NoBaseline::NoForkPoint("no main.".to_owned()), "(no main): fetch the main branch"),
            (NoBaseline::NoSuchId, "none has this id: `gate baseline list`"),
            (NoBaseline::NotMeasured, "no value of this metric: run `gate check --save-baseline`"),
            (NoBaseline::NotGiven, "none was given: name one with `--baseline FILE`"),
        ] {
            let sentence = no_baseline_sentence(&why);
            assert!(sentence.contains(words), "{sentence}");
        }
    }
}
