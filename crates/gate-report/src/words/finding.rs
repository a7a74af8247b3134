//! What a reader should know about the run as a whole.

use gate_model::{Finding, Metric, Quantity, SpecChange, Unit, Verdict, With};

use super::baseline::{difference, name, short};
use super::cause::{LOWER_LOAD, buffered, cause_sentence, end_reason, killed, quoted};
use super::compared::noise_hides;
use super::pattern::{drifting, signed};
use super::{change, comparison, figure, grouped, number, percent, whole};
use crate::layout::{counted, listed};

/// A finding, with what to do about it.
#[must_use]
pub fn finding_sentence(finding: &Finding) -> String {
    match finding {
        Finding::EndedEarly(reason) => end_reason(reason),
        Finding::Killed { recorded, planned } => killed(*recorded, *planned),
        Finding::ClientSlow(cause) => cause_sentence(cause),
        Finding::DesignEffect { metric, design_effect, capped } => format!(
            "{} came in bursts (design effect {}), so they say less than as many independent ones{}, or measure more \
             requests",
            requests_beyond(*metric),
            number(*design_effect),
            if *capped {
                "; requests wait for slots: lower `load.rps`, raise `load.concurrency`".to_owned()
            } else {
                format!(", and the server may be close to saturation: {LOWER_LOAD}")
            }
        ),
        Finding::CapWait { p50, held_at: Some(rate) } => format!(
            "requests waited {} (p50) for a slot: `load.concurrency` holds the rate at {}/s, and the wait counts in \
             ttft; raise the cap, or lower `load.rps`",
            figure(Quantity::time(*p50)),
            number(*rate)
        ),
        Finding::CapWait { p50, held_at: None } => format!(
            "requests waited {} (p50) for a slot under `load.concurrency`, and the wait counts in ttft",
            figure(Quantity::time(*p50))
        ),
        Finding::Buffered { share } => buffered(*share),
        Finding::EstimatedTokens { share } => format!(
            "the tokens of {} of the requests are estimated from the events of the stream, since the server reports \
             no usage: name the model's `tokenizer.json` as `prompts.tokenizer` to have them counted",
            percent(*share)
        ),
        Finding::ShortOutputs { planned, seen } if seen > planned => format!(
            "answers have {} output tokens on average where at most {} were asked for: the counts of the server, or of \
             `prompts.tokenizer`, cannot be right, and every figure in tokens looks better than it is",
            number(*seen),
            number(*planned)
        ),
        Finding::ShortOutputs { planned, seen } => format!(
            "outputs have {} tokens on average where {} were asked for, so e2e and throughput are of shorter answers than \
             planned",
            number(*seen),
            number(*planned)
        ),
        Finding::RateLimited { share } => {
            format!("{} of the answers were 429 (too many requests): {LOWER_LOAD}, or raise the quota", percent(*share))
        }
        Finding::Failure { outcome, count, message } if *count == 1 => {
            format!("1 request ended {}: {}", outcome.name(), quoted(message))
        }
        Finding::Failure { outcome, count, message } => {
            format!("{} requests ended {}; the first: {}", grouped(*count), outcome.name(), quoted(message))
        }
        Finding::CannotProve { check, n, needed } => format!(
            "`{check}` can be violated, but not proven to hold: that needs {} requests with none beyond the limit, and \
             there are {} at most",
            grouped(*needed),
            grouped(*n)
        ),
        Finding::OnlyEndToEnd => "every latency check is end to end, where shorter answers can hide a slower server: \
                                  add one on ttft or tpot"
            .to_owned(),
        Finding::MaxTokensFieldSwitched { to } => format!(
            "the server wanted `{to}` instead of the spec's field for the length of answers, and got it: set \
             `target.max_tokens_field: {to}`",
            to = to.name()
        ),
        Finding::InsecureTls => "the server's certificate was NOT CHECKED (`target.tls.insecure`): anyone on the way \
                                 could have answered in its place, and read the key; use `target.tls.ca` instead"
            .to_owned(),
        Finding::WaiverEnded { check, until } => {
            format!("the waiver of `{check}` ended with {until}: the check counts again")
        }
        Finding::Replicas { answered, count: 1 } => {
            let answered = answered.iter().map(|(who, requests)| {
                format!("answered by {} ({})", name(who), counted(*requests as usize, "request"))
            });
            answered.collect()
        }
        Finding::Replicas { answered, count } => format!(
            "{} replicas answered ({}): every figure is of all of them together",
            grouped(*count),
            tally(answered, *count)
        ),
        Finding::NoReplicaHeader { header } => format!(
            "no answer had the header `{}` that `target.replica_header` names, so nobody knows which replica answered",
            name(header)
        ),
        Finding::Models { answered, count } => format!(
            "several models answered ({}), so every figure is of a mixture: name one exactly in `target.model`",
            tally(answered, *count)
        ),
        Finding::Fingerprints { answered, count } => format!(
            "the server gave several system fingerprints ({}): it was changed during the run, or its replicas differ, \
             and every figure is of all of them together",
            tally(answered, *count)
        ),
        Finding::Restarted { requests: 1 } => {
            "1 stream began again in its middle: something on the way sent it twice, or spliced another one in"
                .to_owned()
        }
        Finding::Restarted { requests } => format!(
            "{} streams began again in their middle: something on the way sent them twice, or spliced others in",
            grouped(*requests)
        ),
        Finding::Coalesced { share } => format!(
            "{} of the content events came in one read with later ones, so their times are upper bounds, and icl, itl \
             and stall may be of several gaps at once: something sends tokens together, or the machine that reads is \
             slow",
            percent(*share)
        ),
        Finding::NoKernelClock => "the kernel gives no receive times here (`load.clock: auto`), so answers are \
                                   stamped when they are read, which is late where this machine is busy"
            .to_owned(),
        Finding::ClosedLoop => "a closed loop asks a slow server less, so attainment and goodput flatter it: set \
                                `load.rps` to judge them"
            .to_owned(),
        Finding::NoisyBaseline { check, noise, tolerance } => noisy(check, *noise, *tolerance, None),
        Finding::ShapesDiffer { metric, ratio } => format!(
            "{metric} is spread differently in the two arms (one's spread is {} of the other's), so its tail is \
             compared only roughly: look at the median beside it",
            percent(*ratio)
        ),
        Finding::SharedServer { address } => format!(
            "both arms are one server ({}), so each slows the other down: give the reference one of its own",
            name(address)
        ),
        Finding::ReferenceFailure { outcome, count, message } if *count == 1 => {
            format!("1 request of the reference ended {}: {}", outcome.name(), quoted(message))
        }
        Finding::ReferenceFailure { outcome, count, message } => format!(
            "{} requests of the reference ended {}; the first: {}",
            grouped(*count),
            outcome.name(),
            quoted(message)
        ),
        Finding::Creep { metric, from, to, runs, tolerance } => format!(
            "{metric} has crept from {} to {}{} over the last {} baselines (medians of the oldest and the newest third), and \
             one change may move it by {}: each passed, all together would not; `gate baseline list --metric {metric}` shows the trend",
            figure(*from),
            figure(*to),
            crept(metric.unit(), from.value, to.value),
            grouped(*runs),
            change(metric.unit(), *tolerance).trim_start_matches(['+', '−'])
        ),
        Finding::Improved { check, change: by } => format!(
            "`{}` improved by {}: more likely another kind of answer than a faster server; see whether answers are cut, \
             cached or refused",
            name(check),
            change(Unit::Time, by.abs()).trim_start_matches('+')
        ),
        Finding::LengthsMoved { metric, base, seen } => format!(
            "{metric} is {} here and {} in what it is compared with, so the two did not do the same work",
            number(*seen),
            number(*base)
        ),
        Finding::ModelMoved(moved) => format!("another model, or another build of it, answers ({})", difference(moved)),
        Finding::SpecChanged { base, changes } => spec_changed(base, changes),
        Finding::NotAtBase { base } => not_at_base(base, "neither this spec's file nor a gate of its name"),
        Finding::UniformPrompts { scenario } => format!(
            "every prompt of `{}` has one length, or nothing in common with another, and real traffic has neither: the \
             server is asked for more even work than it will get, so ttft and tpot look better or worse than they will \
             be; give `prompts.input_tokens` a spread, or send real prompts (`prompts.file`, `prompts.shared_prefix`, \
             `cache: natural`)",
            name(scenario)
        ),
        Finding::Drifts { scenario, metric, per_hour } => format!(
            "{} of `{}` grows by {} and no check asks for it: see what the server keeps, and add `{metric} < 1%/h`",
            drifting(*metric),
            name(scenario),
            signed(*per_hour)
        ),
        Finding::WarmupAnomaly { scenario, requests, first, rest } => format!(
            "the first {} measured requests of `{}` had a median ttft of {}, and the rest one of {}: the server was not \
             warm yet; raise `load.warmup`",
            grouped(*requests),
            name(scenario),
            figure(Quantity::time(*first)),
            figure(Quantity::time(*rest))
        ),
        Finding::Reopened { connections, per_hour } => format!(
            "{} opened during the run ({} an hour): the server, or something on the way, closes those that are kept",
            if *connections == 1 {
                "1 connection was".to_owned()
            } else {
                format!("{} connections were", grouped(*connections))
            },
            number(*per_hour)
        ),
        Finding::ClientGrows { descriptors, memory } => {
            let descriptors = descriptors.map(|descriptors| format!("{} descriptors", number(descriptors)));
            let memory = memory.map(|memory| figure(Quantity { value: memory, unit: Unit::Bytes }) + " of memory");
            let grown: Vec<String> = [descriptors, memory].into_iter().flatten().collect();
            format!(
                "gate itself grew by {} an hour, so in the end the client may be slow, not the server: please report it",
                listed(&grown, "and")
            )
        }
        Finding::ScrapesFailed { failed, of, message } => format!(
            "the server's own metrics could not be read {} of {} times; the first: {}",
            grouped(*failed),
            grouped(*of),
            quoted(message)
        ),
        Finding::UncountedCost { requests } => format!(
            "the server did not count the tokens of {}, so `cost` and `tokens.spent` are of the others only",
            counted(usize::try_from(*requests).unwrap_or(usize::MAX), "request")
        ),
        Finding::ConversationsCut { conversations } => format!(
            "{} ended early, since a turn failed: the later turns were not sent",
            counted(*conversations as usize, "conversation")
        ),
        Finding::RepeatedPrompts { count } => format!(
            "{} repeated an earlier prompt, so a prefix cache may have answered faster: give `prompts.file` more \
             rows, or say `cache: warm` where that is meant",
            counted(*count as usize, "request")
        ),
    }
}

/// How far a value has crept, where that is a number.
fn crept(unit: Unit, from: f64, to: f64) -> String {
    let by = if unit == Unit::Share { Some(to - from) } else { (from > 0.0).then(|| to / from - 1.0) };
    by.map(|by| format!(" ({})", change(unit, by))).unwrap_or_default()
}

/// The same of a verdict, which knows the spec's file, the gate's name, and what a check was compared with.
pub(crate) fn found(verdict: &Verdict, finding: &Finding) -> String {
    match finding {
        Finding::NoisyBaseline { check, noise, tolerance } => {
            let known = verdict.checks.iter().find(|known| known.check.to_string() == *check);
            let with = known.and_then(comparison).map(|comparison| &comparison.with);
            noisy(check, *noise, *tolerance, with)
        }
        Finding::NotAtBase { base } => not_at_base(
            base,
            &format!("neither `{}` nor a gate named `{}`", name(&verdict.spec_file), name(&verdict.name)),
        ),
        other => finding_sentence(other),
    }
}

fn noisy(check: &str, noise: f64, tolerance: f64, with: Option<&With>) -> String {
    format!("`{}`: {}", name(check), noise_hides(Some(noise), Some(tolerance), with))
}

fn not_at_base(base: &str, neither: &str) -> String {
    format!("{neither} exists at the base commit {}, so this gate's own checks judge the run", short(base))
}

/// How many changes of a spec are listed.
const CHANGES: usize = 10;

/// What a change makes of its own gate, what it loosens first.
fn spec_changed(base: &str, changes: &[SpecChange]) -> String {
    let said = |loosens: bool| {
        let mut said: Vec<String> =
            changes.iter().filter(|change| change.loosens == loosens).map(spec_change).collect();
        let more = said.len().saturating_sub(CHANGES);
        said.truncate(CHANGES);
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        said.join(", ") + &more
    };
    let (loosened, others) = (said(true), said(false));
    let judged = format!("the run is judged by the checks at {}", short(base));
    match (loosened.is_empty(), others.is_empty()) {
        (false, true) => format!("this change loosens its own gate: {loosened}; {judged}"),
        (false, false) => format!("this change loosens its own gate: {loosened}; also changed: {others}; {judged}"),
        (true, _) => format!("this change alters its own gate: {others}; {judged}"),
    }
}

/// One of them: `load.rps` 40 → 20. Of a check it may be a part that changed, and a whole gate may be gone.
fn spec_change(change: &SpecChange) -> String {
    let SpecChange { what, base, head, .. } = change;
    let told = [base, head].map(|text| text.as_deref().map(name));
    let part = what.strip_suffix(')').and_then(|what| what.rsplit_once(" ("));
    match (part, told) {
        (Some((check, "waiver")), [None, Some(head)]) => format!("`{}` is waived {}", name(check), in_brackets(&head)),
        (Some((check, "waiver")), [Some(_), None]) => format!("`{}` is no longer waived", name(check)),
        (Some((check, "waiver")), [Some(base), Some(head)]) => {
            format!("the waiver of `{}` {} → {}", name(check), in_brackets(&base), in_brackets(&head))
        }
        (Some((check, part)), [Some(base), Some(head)]) => {
            format!("{} of `{}` {base} → {head}", name(part), name(check))
        }
        (_, [Some(base), None]) if what.starts_with(GATE) => {
            format!("the gate `{}` ({base}) is removed", name(what.trim_start_matches(GATE)))
        }
        // The two texts hold what is not to be read, and are not told.
        (_, [Some(base), Some(head)]) if (base.as_str(), head.as_str()) == ("given", "changed") => {
            format!("`{}` is another", name(what))
        }
        (_, [Some(base), Some(head)]) => format!("`{}` {base} → {head}", name(what)),
        (_, [None, Some(head)]) => format!("`{}` {head} (new)", name(what)),
        (_, [Some(base), None]) => format!("`{}` {base} (removed)", name(what)),
        (_, [None, None]) => format!("`{}`", name(what)),
    }
}

/// What a removed gate is called.
const GATE: &str = "gate ";

/// A waiver with its reason in brackets: `until 2027-01-31 (issue 412)`.
fn in_brackets(waiver: &str) -> String {
    waiver.split_once(": ").map_or_else(|| waiver.to_owned(), |(until, reason)| format!("{until} ({reason})"))
}

/// Who answered how many requests, and how many more there are.
fn tally(answered: &[(String, u32)], count: u32) -> String {
    let each = answered.iter().map(|(who, requests)| format!("{} {}", name(who), grouped(*requests)));
    let each = each.collect::<Vec<_>>().join(", ");
    match (count as usize).saturating_sub(answered.len()) {
        0 => each,
        more => format!("{each} and {more} more"),
    }
}

fn requests_beyond(metric: Metric) -> String {
    match whole(metric) {
        Metric::Attainment | Metric::ErrorShare(_) | Metric::ErrorCount(_) => format!("bad requests of {metric}"),
        _ => format!("requests beyond the limit of {metric}"),
    }
}

#[cfg(test)]
mod tests {
    use gate_model::Nanos;

    use super::*;

    #[test]
    fn names_are_short_and_no_code() {
        let finding = Finding::Models { answered: vec![("a`b".to_owned(), 1_200), ("x".repeat(100), 1)], count: 2 };
        let sentence = finding_sentence(&finding);
        assert!(sentence.contains(&format!("(a'b 1,200, {}… 1)", "x".repeat(59))), "{sentence}");
        assert_eq!(sentence.matches('`').count(), 2);
        assert!(
            finding_sentence(&Finding::Restarted { requests: 1 }).starts_with("1 stream began again in its middle")
        );
    }

    #[test]
    fn a_list_that_was_cut_says_so() {
        let answered = |names: u32| (0..names).map(|name| (format!("p{name}"), 2)).collect::<Vec<_>>();
        let replicas = |names, count| finding_sentence(&Finding::Replicas { answered: answered(names), count });
        assert_eq!(replicas(1, 1), "answered by p0 (2 requests)");
        assert!(replicas(2, 2).starts_with("2 replicas answered (p0 2, p1 2): "), "{}", replicas(2, 2));
        assert!(replicas(10, 20).contains("p9 2 and 10 more): "), "{}", replicas(10, 20));
    }

    #[test]
    fn changes_of_a_spec_are_short_and_loosening_ones_come_first() {
        let text = |text: &str| (!text.is_empty()).then(|| text.to_owned());
        let change = |what: &str, base: &str, head: &str, loosens| SpecChange {
            what: what.to_owned(),
            base: text(base),
            head: text(head),
            loosens,
        };
        for (what, base, head, words) in [
            ("ttft.p95 <", "800ms", "1200ms", "`ttft.p95 <` 800ms → 1200ms"),
            (
                "ttft.p95 < 800ms (waiver)",
                "",
                "until 2027-01-31: pls",
                "`ttft.p95 < 800ms` is waived until 2027-01-31 (pls)",
            ),
            ("ttft.p95 < 800ms (waiver)", "until 2027-01-31: pls", "", "`ttft.p95 < 800ms` is no longer waived"),
            (
                "ttft.p95 < 800ms (waiver)",
                "until 2027-01-31: a",
                "until 2027-02-28: b",
                "the waiver of `ttft.p95 < 800ms` until 2027-01-31 (a) → until 2027-02-28 (b)",
            ),
            ("ttft.p95 < 800ms (confidence)", "95%", "99%", "confidence of `ttft.p95 < 800ms` 95% → 99%"),
            ("load.rps", "40", "", "`load.rps` 40 (removed)"),
            ("gate chat", "gates/chat.yaml", "", "the gate `chat` (gates/chat.yaml) is removed"),
            ("prompts.system", "given", "changed", "`prompts.system` is another"),
            ("prompts.system", "", "given", "`prompts.system` given (new)"),
        ] {
            assert_eq!(spec_change(&change(what, base, head, true)), words);
        }
        let many = (0..25).map(|rate| change(&format!("load.{rate}"), "1", "2", rate == 24));
        let sentence = spec_changed("a1b2c3d4e5", &many.collect::<Vec<_>>());
        assert!(
            sentence.starts_with("this change loosens its own gate: `load.24` 1 → 2; also changed: `load.0` 1 → 2, ")
        );
        assert!(
            sentence.ends_with("`load.9` 1 → 2 and 14 more; the run is judged by the checks at a1b2c3d"),
            "{sentence}"
        );
    }

    #[test]
    fn a_cap_that_is_the_wait_is_not_to_be_lowered() {
        let metric = Metric::Attainment;
        let sentence = |capped| finding_sentence(&Finding::DesignEffect { metric, design_effect: 3.0, capped });
        assert!(
            sentence(false).ends_with(
                "may be close to saturation: lower `load.rps` or `load.concurrency`, or measure more requests"
            )
        );
        assert!(sentence(true).contains("raise `load.concurrency`") && !sentence(true).contains("saturation"));
        let waited = |held_at| finding_sentence(&Finding::CapWait { p50: Nanos::from_millis(1_025), held_at });
        assert!(waited(Some(5.96)).starts_with("requests waited 1,025 ms (p50) for a slot: `load.concurrency` holds"));
        assert!(waited(Some(5.96)).contains("the rate at 5.96/s"));
        assert!(waited(None).contains("for a slot under `load.concurrency`"));
    }
}
