//! The steps of the rules that look for what a pattern of load brings to light.

use gate_model::{CheckVerdict, Evidence, PatternFacts, Quantity, Unit};

use crate::words::{bounds, figure, grouped, p_value, percent, rate, reckoned, span};

/// The least gain in log-likelihood, twice, for which a knee is believed.
const KNEE_BELIEVED: f64 = 20.0;

/// The same of a recovery.
const RECOVERY_BELIEVED: f64 = 12.0;

/// What was looked for, what was found, and what is claimed of it.
pub(super) fn steps(check: &CheckVerdict, evidence: &Evidence) -> Vec<String> {
    match &evidence.pattern {
        Some(PatternFacts::Knee { at, onset, bad_after, to, likelihood }) => {
            let mut steps = vec![
                "The series. Each request of the ramp is 0 where it is good and 1 where it is not, in send order."
                    .to_owned(),
                step(*likelihood, KNEE_BELIEVED, "a tenth of the requests", ", over their design effect,"),
            ];
            steps.push(match at {
                Some(at) => {
                    let bad = bad_after.map(|bad| format!(" After it {} of the requests are not good.", percent(bad)));
                    let onset = onset.map(|onset| {
                        format!(" {} were sent then, which is shown only: it misses the capacity often.", rate(onset))
                    });
                    format!(
                        "The knee. The change is {} after the start.{}{}",
                        span(*at),
                        bad.unwrap_or_default(),
                        onset.unwrap_or_default()
                    )
                }
                None => format!(
                    "The knee. There is none: the ramp went to {}, so the capacity is at least that, as far as it shows.",
                    rate(*to)
                ),
            });
            if at.is_some() {
                steps.push(blocks(check, evidence));
                steps.extend(evidence.p_fail.map(|p| {
                    format!(
                        "The probability. If the server could do just what the bound says, a rate as far beyond it, or \
                         farther, would be seen with {} (Student's t).",
                        p_value(p)
                    )
                }));
            }
            steps
        }
        Some(PatternFacts::Recovery { slow, slow_after, settled, likelihood }) => {
            let slow_after = slow_after.map(|share| format!(" After it {} of the requests are slow.", percent(share)));
            let end = if *settled {
                "The recovery. It is the time from the end of the spike to the first request after the change."
            } else {
                "The recovery. There is none: too many of the last requests are slow still."
            };
            vec![
                format!(
                    "The series. A request is slow where it failed or its TTFT is over {}, the P95 (nearest rank) of the \
                     requests before the spike. Each one after the spike is 1 where it is slow, else 0, in send order.",
                    figure(Quantity::time(*slow))
                ),
                step(*likelihood, RECOVERY_BELIEVED, "5 requests", ""),
                format!("{end}{}", slow_after.unwrap_or_default()),
                limits(evidence),
                evidence.p_fail.map(|p| recovered(*settled, &p_value(p))).unwrap_or_default(),
            ]
        }
        Some(PatternFacts::Drift { per_hour, bins, z }) => {
            let limit = check.check.bound.absolute().map(figure).unwrap_or_else(|| check.check.bound_text.clone());
            vec![
                format!(
                    "The series. The run is cut into {} stretches of equal time; of each the median is taken, and its \
                     logarithm.",
                    grouped(*bins)
                ),
                format!(
                    "The estimate. The middle one of the slopes between every two stretches is {} (Theil and Sen).",
                    figure(Quantity { value: *per_hour, unit: Unit::PerHour })
                ),
                format!(
                    "The test. Of every two stretches it is counted whether the later one is larger (Mann and Kendall), \
                     with a variance that allows for stretches that are like their neighbours (Hamed and Rao). Against \
                     no growth at all that gives z = {}.",
                    reckoned(*z)
                ),
                trend(&limit, evidence),
            ]
        }
        None => Vec::new(),
    }
    .into_iter()
    .filter(|step| !step.is_empty())
    .collect()
}

/// How sure it is that anything changed.
fn step(likelihood: f64, believed: f64, least: &str, over: &str) -> String {
    let verdict = if likelihood >= believed { "so it is believed" } else { "so it is put down to chance" };
    format!(
        "The change. The series is cut in two where the two parts differ most, with {least} or more on either side. \
         Twice the gain in log-likelihood over one part{over} is LR = {}; {} or more is asked for, {verdict}.",
        reckoned(likelihood),
        reckoned(believed)
    )
}

/// The rate past a knee, and its bounds.
fn blocks(check: &CheckVerdict, evidence: &Evidence) -> String {
    let seen = check.seen.map(figure).unwrap_or_else(|| "unknown".to_owned());
    let bounds = Some(bounds(evidence)).filter(|bounds| !bounds.is_empty());
    let bounds = bounds.map(|bounds| {
        format!(
            " It is cut into 8 stretches of equal time; the mean of their rates ± t × s ÷ √8 (Student's t with 7 degrees \
             of freedom) gives {bounds}."
        )
    });
    format!(
        "The rate. From the change to the end of the ramp requests were ok at {seen}: that is what the server can do.{}",
        bounds.unwrap_or_default()
    )
}

/// The bounds of a recovery.
fn limits(evidence: &Evidence) -> String {
    let bounds = bounds(evidence);
    if bounds.is_empty() {
        return bounds;
    }
    format!("The bounds. Changes at other times are nearly as likely (within 4 of the best log-likelihood): {bounds}.")
}

/// How sure it is that the bound on a recovery is broken.
fn recovered(settled: bool, p: &str) -> String {
    if settled {
        format!(
            "The probability. That the change is likelier where it was found than at the best time that keeps the bound \
             comes to {p} (likelihood ratio)."
        )
    } else {
        format!(
            "The probability. So many slow requests after the time that the bound allows would be seen with {p}, if a \
             fifth of them may be slow (binomial)."
        )
    }
}

/// The trend against the limit.
fn trend(limit: &str, evidence: &Evidence) -> String {
    let p = evidence.p_fail.map(|p| format!(" as much more than {limit} would be seen with {}", p_value(p)));
    p.map(|p| {
        format!(
            "The probability. The same test on what is left when growth by {limit} is taken out of the logarithms: if \
             it grew by just that,{p} (normal distribution)."
        )
    })
    .unwrap_or_default()
}
