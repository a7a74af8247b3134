//! What a reader should know about the run as a whole.

use gate_model::{Finding, Metric};

use super::cause::{cause_sentence, end_reason, killed, quoted};
use super::{grouped, number, percent};
use crate::layout::counted;

/// A finding, with what to do about it.
#[must_use]
pub fn finding_sentence(finding: &Finding) -> String {
    match finding {
        Finding::EndedEarly(reason) => end_reason(reason),
        Finding::Killed { recorded, planned } => killed(*recorded, *planned),
        Finding::ClientSlow(cause) => cause_sentence(cause),
        Finding::DesignEffect { metric, design_effect } => format!(
            "{} came in bursts (design effect {}), so they say less than as many independent ones, and the server may \
             be close to saturation: lower `load.rps`, or measure more requests",
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
             no usage",
            percent(*share)
        ),
        Finding::ShortOutputs { planned, seen } if seen > planned => format!(
            "the server reports {} output tokens on average where at most {} were asked for: its counts cannot be right, \
             and every figure in tokens looks better than it is",
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
            format!(
                "{} of the answers were 429 (too many requests): lower `load.rps`, or raise the quota",
                percent(*share)
            )
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
        Finding::RepeatedPrompts { count } => format!(
            "{} repeated an earlier prompt, so a prefix cache may have answered faster: give `prompts.file` more \
             rows, or say `cache: warm` where that is meant",
            counted(*count as usize, "request")
        ),
    }
}

fn requests_beyond(metric: Metric) -> String {
    match metric {
        Metric::Attainment | Metric::ErrorShare(_) | Metric::ErrorCount(_) => format!("bad requests of {metric}"),
        Metric::Series(..) | Metric::Scalar(_) => format!("requests beyond the limit of {metric}"),
    }
}
