//! Why a check could not be measured, and why a run ended.

use gate_model::{Cause, EndReason, Nanos, OutcomeCount, Quantity, RAW_LIMIT};

use super::{figure, grouped, number, percent};
use crate::facts::long_time;
use crate::layout::{clip, counted};

const CHECK_TARGET: &str = "check that the server runs and that `target.url` is right";

/// Of an open loop the one, of a closed one the other.
pub(super) const LOWER_LOAD: &str = "lower `load.rps` or `load.concurrency`";

/// What is said first of a run that its own rules ended.
pub(super) const STOPPED: &str = "stopped early:";

/// Budgets that long answers use up.
const OF_ANSWERS: [&str; 2] = ["budget.output_tokens", "budget.cost"];

/// What the load advises after a refusal for too many requests.
const LOWER_RATE: &str = "; lower `load.rps`";

/// What the load says of a target that it waited for in vain.
const WAITED: &str = "not ready within";

/// How much of a server's message is quoted, in characters.
const QUOTED: usize = 300;

/// Why a check could not be measured, with what to do about it.
#[must_use]
pub fn cause_sentence(cause: &Cause) -> String {
    match cause {
        Cause::NotRun(reason) => end_reason(reason),
        Cause::Killed { recorded, planned } => killed(*recorded, *planned),
        Cause::NothingReached { outcomes, message } => nothing_reached(outcomes, message.as_deref()),
        Cause::TooFewOk { ok: 0, .. } => {
            "no request was ok, so there is nothing to judge: see how they failed, and fix that first".to_owned()
        }
        Cause::TooFewOk { ok, needed } => format!(
            "only {} ok, and a verdict by evidence needs {}: see how the others failed, or raise `load.iterations`",
            if *ok == 1 { "1 request was".to_owned() } else { format!("{ok} requests were") },
            grouped(*needed)
        ),
        Cause::NoData => "too few requests that were ok have a value for this metric".to_owned(),
        Cause::SeveralTokensAnEvent { requests, of } => format!(
            "{} of {} carry several tokens an event, so no gap of theirs is of one token: check `icl` or `tpot` instead",
            grouped(*requests),
            counted(*of as usize, "request")
        ),
        Cause::RateLimited { share } => format!(
            "{} of the answers were 429 (too many requests), so latencies say nothing about the server: {LOWER_LOAD}, \
             or raise the quota",
            percent(*share)
        ),
        Cause::ClientLate { share, limit } => format!(
            "{} of the requests were taken up more than {} late, so the machine that sends may be slow, not the \
             server: give it a quieter or larger machine, or lower `load.rps`",
            percent(*share),
            time(*limit)
        ),
        Cause::LoopDelay { p95, limit } => format!(
            "the thread that reads answers woke up to {} late (P95, limit {}), so the machine that sends may be \
             slow, not the server: give it a quieter or larger machine, or more `load.workers`",
            time(*p95),
            time(*limit)
        ),
        Cause::ClientCpu { share } => format!(
            "the client used {} of the CPU it has, so it may be slow, not the server: give it more cores, or \
             {LOWER_LOAD}",
            percent(*share)
        ),
        Cause::RateShort { planned, achieved } => format!(
            "{} requests a second were sent where the plan has {}: the load was not the one asked for; give the \
             client a larger machine, or lower `load.rps`",
            number(*achieved),
            number(*planned)
        ),
        Cause::EstimatedTokens => "the server reports no usage, so its tokens were only estimated from the events of \
                                   the stream: make it send `usage`, name the model's `tokenizer.json` as \
                                   `prompts.tokenizer`, or say `prompts.tokens: accept_estimate`"
            .to_owned(),
        Cause::Buffered { share } => buffered(*share),
        Cause::Interrupted => {
            "the run was interrupted before enough of it was there to judge (its first look): run it \
                               again, and let it come to its end"
                .to_owned()
        }
        Cause::ReferenceTooFewOk { ok, needed } => format!(
            "only {} of the reference's requests {} ok, and a comparison needs {}: raise `load.iterations`, or see how \
             others failed",
            grouped(*ok),
            if *ok == 1 { "was" } else { "were" },
            grouped(*needed)
        ),
        Cause::ShorterAnswers { base, seen } => format!(
            "answers have {} output tokens on average, and {} in what it is compared with: less than half of the work \
             was done, so times say nothing of speed; see whether the answers are cut, refused or of another model",
            number(*seen),
            number(*base)
        ),
        Cause::NoScenario(name) => format!(
            "the scenario `{}` that the bound is a share of is not in the run: name one of `scenarios`",
            super::baseline::name(name)
        ),
        Cause::NotScraped { message: Some(message) } => format!(
            "the server's own metrics could not be read ({}): check that `target.metrics` is the address of its \
             Prometheus metrics",
            quoted(message)
        ),
        Cause::NotScraped { message: None } => "the server's own metrics were read, and this one has no value among \
                                                them: see there what the server calls it, whether it has one, and \
                                                write that name"
            .to_owned(),
        Cause::PatternTooShort { phase, seen, needed } => format!(
            "there is too little {} to tell anything by: {} where {} are needed; make `load.pattern` longer there, or \
             raise its rate",
            super::baseline::name(phase),
            grouped(*seen),
            grouped(*needed)
        ),
        Cause::Uncounted { requests } => format!(
            "the server did not count the tokens of {}, so what {} is not known: make it send `usage`, or bound \
             `budget.requests` instead",
            counted(usize::try_from(*requests).unwrap_or(usize::MAX), "request"),
            if *requests == 1 { "it used up" } else { "they used up" }
        ),
        Cause::NotKept => format!(
            "a run of more than {} requests keeps no times between tokens: check `tpot` or `stall` instead, or send \
             fewer",
            grouped(RAW_LIMIT)
        ),
    }
}

/// That fewer pairs are ok than a comparison needs: a request that failed takes its partner along.
pub(super) fn too_few_pairs(ok: u32, needed: u32) -> String {
    if ok == 0 {
        return "no request was ok in both arms, so there is nothing to compare: see how they failed, and fix that first"
            .to_owned();
    }
    format!(
        "only {} ok in both arms, and a comparison needs {}: raise `load.iterations`, or see how others failed",
        if ok == 1 { "1 pair was".to_owned() } else { format!("{} pairs were", grouped(ok)) },
        grouped(needed)
    )
}

/// Why a run ended, with what to do where that was too early.
#[must_use]
pub fn end_reason(reason: &EndReason) -> String {
    match reason {
        EndReason::Completed => "every planned request ended".to_owned(),
        EndReason::StoppedAtLook(count) => {
            format!("the run stopped at its look at {}: it was decided", counted(*count as usize, "request"))
        }
        EndReason::Interrupted => "the run was interrupted".to_owned(),
        EndReason::RunTimeout => "the run reached its own time limit: see whether the server hangs, or raise \
                                  `timeouts.run`"
            .to_owned(),
        // What the load saw is a sentence of its own.
        EndReason::NotReady(seen) if seen.contains(WAITED) => {
            with_remedy(quoted(seen), "start the server first, check `target.url`, or raise `target.ready.within`")
        }
        // No waiting changes what was refused for good.
        EndReason::NotReady(seen) | EndReason::Refused(seen) | EndReason::NoCredentials(seen) => {
            with_remedy(quoted(seen), CHECK_TARGET)
        }
        EndReason::ClientExhausted(what) => {
            format!("{}, which says nothing of the target: raise that limit, or {LOWER_LOAD}", quoted(what))
        }
        EndReason::BudgetSpent { key, limit } => {
            // What is asked for bounds only these.
            let longer = if OF_ANSWERS.contains(&key.as_str()) {
                "; where answers are longer than asked for, the server may ignore the length asked for"
            } else {
                ""
            };
            format!(
                "{STOPPED} the next request could have used up more than `{key}` allows, {limit}: raise it, or send fewer \
                 or shorter requests{longer}"
            )
        }
        EndReason::Lost { check } => format!(
            "{STOPPED} `{}` could no longer be kept, whatever was still to come (`abort.lost: false` sends all of it)",
            quoted(check).replace('`', "'")
        ),
        EndReason::Unreachable { count, message } => with_remedy(
            format!(
                "{STOPPED} {} one after another found no connection (`abort.connection_failures`); the last: {}",
                counted(*count as usize, "request"),
                quoted(message)
            ),
            CHECK_TARGET,
        ),
        EndReason::Quota(what) => format!(
            "{STOPPED} the server gives no more for a long time ({}): wait until it does, have the quota raised, or send \
             less",
            // What is said of a single refusal is no way out here.
            quoted(what.split_once(LOWER_RATE).map_or(what, |(seen, _)| seen))
        ),
        EndReason::Unauthorized(what) => with_remedy(
            format!("{STOPPED} the server took no credentials any more ({})", quoted(what)),
            "check that `target.key` is still valid",
        ),
    }
}

/// What most streams arriving in one burst leaves unsaid.
pub(super) fn buffered(share: f64) -> String {
    format!(
        "{} of the streams arrived in one burst: a proxy on the way buffers them, so tpot, itl, icl and stall say \
         nothing; measure past it, or turn its buffering off",
        percent(share)
    )
}

/// A time in a sentence: from a second on in seconds.
fn time(time: Nanos) -> String {
    if time.as_secs_f64() < 1.0 { figure(Quantity::time(time)) } else { long_time(time) }
}

pub(super) fn killed(recorded: u32, planned: u32) -> String {
    format!(
        "the run was killed: {} of {} requests are recorded, and the journal has no end; run it again",
        grouped(recorded),
        grouped(planned)
    )
}

fn nothing_reached(outcomes: &[OutcomeCount], message: Option<&str>) -> String {
    let ways = outcomes.iter().map(|way| format!("{} {}", grouped(way.count), way.outcome.name()));
    let ways = ways.collect::<Vec<_>>().join(", ");
    let ways = if ways.is_empty() { String::new() } else { format!(" ({ways})") };
    let first = message.map(|message| format!("; the first: {}", quoted(message))).unwrap_or_default();
    with_remedy(format!("not one request was answered{ways}{first}"), CHECK_TARGET)
}

/// What the load's words begin with where they are of the other arm.
const OF_REFERENCE: &str = "the reference:";

/// The sentence with what usually helps, unless it names what to change already: a key of the spec, or the proxy, of
/// which the environment tells. The keys are those of the arm that the sentence is about.
fn with_remedy(sentence: String, remedy: &str) -> String {
    let named = ["`target.", "`reference.", "`load.", "`timeouts.", "certificate", "TLS", "proxy"];
    if named.iter().any(|key| sentence.contains(key)) {
        return sentence;
    }
    let key = if sentence.starts_with(OF_REFERENCE) { "`reference." } else { "`target." };
    format!("{sentence}; {}", remedy.replace("`target.", key))
}

/// A message from outside, of bounded length and without a full stop.
pub(super) fn quoted(message: &str) -> String {
    clip(message.trim().trim_end_matches('.'), QUOTED)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_from_a_second_on_are_in_seconds() {
        let sentence = |p95: i64, limit: i64| {
            let (p95, limit) = (Nanos::from_millis(p95), Nanos::from_millis(limit));
            cause_sentence(&Cause::LoopDelay { p95, limit })
        };
        assert!(sentence(5_027, 20).contains("up to 5.03 s late (P95, limit 20 ms)"), "{}", sentence(5_027, 20));
        assert!(sentence(1_250, 1_000).contains("up to 1.25 s late (P95, limit 1 s)"), "{}", sentence(1_250, 1_000));
    }

    #[test]
    fn only_what_was_waited_for_is_to_be_waited_for_longer() {
        let sentence = |seen: &str| end_reason(&EndReason::NotReady(seen.to_owned()));
        assert!(sentence("not ready within 1 s, last seen: refused").contains("raise `target.ready.within`"));
        assert!(sentence("not HTTP at all").ends_with(CHECK_TARGET));
        let barred = "the proxy at http://p:1 wants credentials (407): write them in `http_proxy`";
        assert_eq!(sentence(barred), barred);
        assert_eq!(end_reason(&EndReason::Refused(barred.to_owned())), barred);
    }

    #[test]
    fn an_arm_has_its_own_remedy_once() {
        let not_ready = |seen: &str| end_reason(&EndReason::NotReady(seen.to_owned()));
        let waited = "the reference: not ready within 1 s, last seen: refused";
        let remedy = "start the server first, check `reference.url`, or raise `reference.ready.within`";
        assert_eq!(not_ready(waited), format!("{waited}; {remedy}"));
        let named = format!("{waited}: start the server first, or raise `reference.ready.within`");
        assert_eq!(not_ready(&named), named);
        let refused = end_reason(&EndReason::Refused("the reference: 404".to_owned()));
        assert!(refused.ends_with("that `reference.url` is right"), "{refused}");
    }

    #[test]
    fn pairs_that_are_too_few_are_counted_as_pairs() {
        assert!(too_few_pairs(20, 30).starts_with("only 20 pairs were ok in both arms, and a comparison needs 30"));
        assert!(too_few_pairs(1, 30).starts_with("only 1 pair was ok"));
        assert!(!too_few_pairs(0, 30).contains("load.iterations"));
    }

    #[test]
    fn a_spent_budget_names_answers_that_are_longer_than_asked() {
        let sentence = |key: &str| end_reason(&EndReason::BudgetSpent { key: key.to_owned(), limit: "9".to_owned() });
        assert!(
            sentence("budget.output_tokens")
                .ends_with("; where answers are longer than asked for, the server may ignore the length asked for")
        );
        assert!(sentence("budget.requests").ends_with("or send fewer or shorter requests"));
    }

    #[test]
    fn a_quota_has_one_remedy() {
        let seen = "the server says to come back in 60 s: the server answered 429 Too Many Requests: slow down; lower \
                    `load.rps`, or raise the quota";
        assert_eq!(
            end_reason(&EndReason::Quota(seen.to_owned())),
            "stopped early: the server gives no more for a long time (the server says to come back in 60 s: the server \
             answered 429 Too Many Requests: slow down): wait until it does, have the quota raised, or send less"
        );
    }

    #[test]
    fn more_requests_are_no_remedy_where_none_was_ok() {
        let sentence = |ok| cause_sentence(&Cause::TooFewOk { ok, needed: 20 });
        assert!(sentence(3).contains("raise `load.iterations`"));
        assert!(!sentence(0).contains("load.iterations"));
    }
}
