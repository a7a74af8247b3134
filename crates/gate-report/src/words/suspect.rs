//! Likely causes.

use gate_model::{LikelyCause, Quantity, Shift, Suspect, Unit};

use super::compared::change;
use super::{figure, number::split};

/// A likely cause with its evidence, what it is compared with, and what to look at next: `likely cause: each token takes
/// longer, 10 → 14 ms (+40 %) against the baseline: see what else the server's machine does, and which build and settings
/// it runs`.
///
/// It has no stop at its end, and what comes before its first colon is the same of all.
#[must_use]
pub fn suspect_sentence(suspect: &Suspect) -> String {
    let against = suspect.against.map(|against| format!(" against the {}", against.name())).unwrap_or_default();
    let said = match &suspect.cause {
        LikelyCause::ClientBusy { lag, loop_delay, cpu } => client(*lag, *loop_delay, *cpu),
        LikelyCause::LongerOutputs { tokens } => format!(
            "answers are longer: {} tokens on average{against}; the same speed takes longer for them",
            grown(tokens)
        ),
        LikelyCause::LongerPrompts { tokens } => {
            format!("prompts are longer: {} input tokens on average{against}", grown(tokens))
        }
        LikelyCause::CacheLost { cached } => format!(
            "the prefix cache is hit less: {} of input tokens{against}; see whether prompts still begin alike, and \
             whether the cache is on and large enough",
            shift(cached)
        ),
        LikelyCause::DecodeSlower { tpot } => format!(
            "each token takes longer: {}{against}; see which build, settings and hardware the server has now, and what \
             else runs there",
            grown(tpot)
        ),
        LikelyCause::QueueGrew { wait, alone, waiting, rising } => {
            queue(wait, alone, waiting.as_ref(), &against) + &rising.as_ref().map(unsettled).unwrap_or_default()
        }
        LikelyCause::PrefillSlower { alone } => format!(
            "prompts are read more slowly: requests that met the fewest others in flight waited {} for the first \
             token{against}, so it is no queue",
            grown(alone)
        ),
        LikelyCause::SlowerConnect { connect } => format!(
            "connecting takes longer: {}{against}; see name resolution, TLS and what stands before the server",
            grown(connect)
        ),
    };
    format!("likely cause: {said}")
}

fn client(lag: Quantity, loop_delay: Option<Quantity>, cpu: Option<Quantity>) -> String {
    let loop_delay = loop_delay.map(|delay| format!("woke up to {} late to read answers", figure(delay)));
    let cpu = cpu.map(|cpu| format!("used {} of its CPU", figure(cpu)));
    let signs: Vec<String> = [loop_delay, cpu].into_iter().flatten().collect();
    let also = if signs.is_empty() { String::new() } else { format!(", {}", signs.join(" and ")) };
    format!(
        "the machine that sends was busy: it took requests up to {} late (P95){also}; what it measured says little of \
         the server, so give it more CPU or less to send",
        figure(lag)
    )
}

fn queue(wait: &Shift, alone: &Shift, waiting: Option<&Shift>, against: &str) -> String {
    let counted = waiting.map(|waiting| format!("; the server itself counted {} waiting", shift(waiting)));
    format!(
        "the queue grew: requests that met others in flight waited {} for the first token, those that met the fewest \
         {}{against}{}",
        shift(wait),
        shift(alone),
        counted.unwrap_or_default()
    )
}

fn unsettled(rising: &Shift) -> String {
    format!(
        "; the queue had not settled: {} from the first to the last third of this run, so the load may be more than the \
         server can serve",
        shift(rising)
    )
}

/// There and here, with the change in percent: `10 → 14 ms (+40 %)`.
fn grown(numbers: &Shift) -> String {
    let ratio = numbers.to.value / numbers.from.value;
    let by = if ratio.is_finite() { format!(" ({})", change(Unit::Time, ratio - 1.0)) } else { String::new() };
    format!("{}{by}", shift(numbers))
}

/// There and here, a unit that both have said once: `10 → 14 ms`.
fn shift(numbers: &Shift) -> String {
    let (from, to) = (figure(numbers.from), figure(numbers.to));
    let is_zero = numbers.from.value == 0.0;
    let from = match (split(&from), split(&to)) {
        ((digits, unit), (_, same)) if unit == same || is_zero => digits.to_owned(),
        _ => from.clone(),
    };
    format!("{from} → {to}")
}

#[cfg(test)]
mod tests {
    use gate_model::{Against, Phase};

    use super::*;

    fn said(against: Option<Against>, cause: LikelyCause) -> String {
        let sentence = suspect_sentence(&Suspect { scenario: 0, phase: Phase::FirstToken, against, cause });
        sentence.strip_prefix("likely cause: ").unwrap().to_owned()
    }

    fn shift(from: &str, to: &str) -> Shift {
        Shift { from: from.parse().unwrap(), to: to.parse().unwrap() }
    }

    #[test]
    fn every_cause_has_its_numbers() {
        let baseline = |cause| said(Some(Against::Baseline), cause);
        let cases = [
            (
                LikelyCause::LongerOutputs { tokens: shift("60", "111") },
                "answers are longer: 60 → 111 (+85 %) tokens on average against the baseline; the same speed takes \
                 longer for them",
            ),
            (
                LikelyCause::LongerPrompts { tokens: shift("1000", "2500") },
                "prompts are longer: 1,000 → 2,500 (+150 %) input tokens on average against the baseline",
            ),
            (
                LikelyCause::CacheLost { cached: shift("84%", "3%") },
                "the prefix cache is hit less: 84 → 3 % of input tokens against the baseline; see whether prompts still \
                 begin alike, and whether the cache is on and large enough",
            ),
            (
                LikelyCause::DecodeSlower { tpot: shift("10ms", "14ms") },
                "each token takes longer: 10 → 14 ms (+40 %) against the baseline; see which build, settings and hardware \
                 the server has now, and what else runs there",
            ),
            (
                LikelyCause::PrefillSlower { alone: shift("900us", "1.2ms") },
                "prompts are read more slowly: requests that met the fewest others in flight waited 900 µs → 1.2 ms \
                 (+33.3 %) for the first token against the baseline, so it is no queue",
            ),
            (
                LikelyCause::SlowerConnect { connect: shift("0ms", "60ms") },
                "connecting takes longer: 0 → 60 ms against the baseline; see name resolution, TLS and what stands before \
                 the server",
            ),
        ];
        for (cause, expected) in cases {
            assert_eq!(baseline(cause), expected);
        }
    }

    #[test]
    fn a_queue_is_told_with_what_the_server_counted() {
        let queue = |waiting, rising| LikelyCause::QueueGrew {
            wait: shift("310ms", "820ms"),
            alone: shift("120ms", "122ms"),
            waiting,
            rising,
        };
        assert_eq!(
            said(Some(Against::Baseline), queue(Some(shift("0.4", "6.1")), None)),
            "the queue grew: requests that met others in flight waited 310 → 820 ms for the first token, those that met \
             the fewest 120 → 122 ms against the baseline; the server itself counted 0.4 → 6.1 waiting"
        );
        let silent = said(Some(Against::Reference), queue(None, None));
        assert!(silent.ends_with("those that met the fewest 120 → 122 ms against the reference"), "{silent}");
        let rising = said(None, queue(None, Some(shift("120ms", "1.4s"))));
        let words = "the queue had not settled: 120 → 1,400 ms from the first to the last third of this run, so the load \
                     may be more than the server can serve";
        assert!(rising.ends_with(&format!("; {words}")), "{rising}");
    }

    #[test]
    fn a_busy_client_is_told_by_what_is_known_of_it() {
        let busy = |loop_delay: Option<&str>, cpu: Option<&str>| {
            let known = |text: &str| text.parse().unwrap();
            let lag = known("120ms");
            said(None, LikelyCause::ClientBusy { lag, loop_delay: loop_delay.map(known), cpu: cpu.map(known) })
        };
        assert_eq!(
            busy(None, None),
            "the machine that sends was busy: it took requests up to 120 ms late (P95); what it measured says little of \
             the server, so give it more CPU or less to send"
        );
        let known = busy(Some("50ms"), Some("95%"));
        assert!(known.contains("(P95), woke up to 50 ms late to read answers and used 95 % of its CPU; "), "{known}");
    }
}
