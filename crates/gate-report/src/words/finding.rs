//! What a reader should know about the run as a whole.

use gate_model::{Finding, Metric};

use super::cause::{LOWER_LOAD, cause_sentence, end_reason, killed, quoted};
use super::{grouped, number, percent};
use crate::layout::{clip, counted};

/// How much of the name of a replica, a model or a fingerprint is shown, in characters.
const NAMED: usize = 60;

/// A finding, with what to do about it.
#[must_use]
pub fn finding_sentence(finding: &Finding) -> String {
    match finding {
        Finding::EndedEarly(reason) => end_reason(reason),
        Finding::Killed { recorded, planned } => killed(*recorded, *planned),
        Finding::ClientSlow(cause) => cause_sentence(cause),
        Finding::DesignEffect { metric, design_effect } => format!(
            "{} came in bursts (design effect {}), so they say less than as many independent ones, and the server may \
             be close to saturation: {LOWER_LOAD}, or measure more requests",
            requests_beyond(*metric),
            number(*design_effect)
        ),
        Finding::Buffered { share } => format!(
            "{} of the streams arrived in one burst: a proxy on the way buffers them, so tpot says nothing; measure \
             past it, or turn its buffering off",
            percent(*share)
        ),
        Finding::EstimatedTokens { share } => format!(
            "the tokens of {} of the requests are estimated from the events of the stream, since the server reports \
             no usage: name its `prompts.tokenizer` to have them counted",
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
        Finding::Replicas { answered, count } => format!(
            "{} replicas answered ({}): every figure is of all of them together",
            grouped(*count),
            tally(answered)
        ),
        Finding::Models { answered } => format!(
            "several models answered ({}), so every figure is of a mixture: name one exactly in `target.model`",
            tally(answered)
        ),
        Finding::Fingerprints { answered } => format!(
            "the server gave several system fingerprints ({}): it was changed during the run, or its replicas differ, \
             and every figure is of all of them together",
            tally(answered)
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
        Finding::RepeatedPrompts { count } => format!(
            "{} repeated an earlier prompt, so a prefix cache may have answered faster: give `prompts.file` more \
             rows, or say `cache: warm` where that is meant",
            counted(*count as usize, "request")
        ),
    }
}

/// Who answered how many requests. Names come from the server; a backtick would make code of the words after it.
fn tally(answered: &[(String, u32)]) -> String {
    let each = answered.iter().map(|(name, count)| {
        let name = clip(&name.trim().replace('`', "'"), NAMED);
        format!("{name} {}", grouped(*count))
    });
    each.collect::<Vec<_>>().join(", ")
}

fn requests_beyond(metric: Metric) -> String {
    match metric {
        Metric::Attainment | Metric::ErrorShare(_) | Metric::ErrorCount(_) => format!("bad requests of {metric}"),
        Metric::Series(..) | Metric::Scalar(_) => format!("requests beyond the limit of {metric}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_short_and_no_code() {
        let finding = Finding::Models { answered: vec![("a`b".to_owned(), 1_200), ("x".repeat(100), 1)] };
        let sentence = finding_sentence(&finding);
        assert!(sentence.contains(&format!("(a'b 1,200, {}… 1)", "x".repeat(59))), "{sentence}");
        assert_eq!(sentence.matches('`').count(), 2);
        assert!(
            finding_sentence(&Finding::Restarted { requests: 1 }).starts_with("1 stream began again in its middle")
        );
    }
}
