//! What a change does to its own gate, and the gate that judges it.

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use gate_model::{GateSpec, Importance};
    use gate_spec::{changes, judged_by, resolve};

    fn spec(keys: &str) -> GateSpec {
        let text = format!(
            "version: 1\nname: x\ntarget: {{url: 'http://h'}}\nreference: {{url: 'http://h:1'}}\nslo: {{e2e: 9m}}\n{keys}\n"
        );
        let text = if keys.contains("slo:") { text.replace("slo: {e2e: 9m}\n", "") } else { text };
        resolve("gates/x.yaml", &text, &BTreeMap::new(), &[]).unwrap_or_else(|wrong| panic!("{keys}: {wrong:?}")).spec
    }

    /// The changes from one list of keys to another; `!` marks what loosens the gate.
    fn shown(base: &str, head: &str) -> Vec<String> {
        let none = || "-".to_owned();
        changes(&spec(base), &spec(head))
            .into_iter()
            .map(|change| {
                let mark = if change.loosens { "! " } else { "" };
                let [base, head] = [change.base, change.head].map(|text| text.unwrap_or_else(none));
                format!("{mark}{} {base} → {head}", change.what)
            })
            .collect()
    }

    /// The changes from one required check to another.
    fn check(base: &str, head: &str) -> Vec<String> {
        shown(&format!("require: [{base}]"), &format!("require: [{head}]"))
    }

    #[test]
    fn a_spec_does_not_differ_from_itself() {
        let keys = "require: [ttft.p95 < 800ms, ttft.p50 < baseline + 15% or 20ms]\nprefer: [attainment >= 95%]";
        assert_eq!(shown(keys, keys), [""; 0]);
        assert_eq!(check("ttft.p95 < 1s", "ttft.p95 < 1000ms"), [""; 0], "one bound in two spellings");
        let moved = "prefer: [attainment >= 95%]\nrequire: [ttft.p50 < baseline + 15% or 20ms, ttft.p95 < 800ms]";
        assert_eq!(shown(keys, moved), [""; 0], "the order is no demand");
    }

    #[test]
    fn a_bound_that_allows_more_loosens() {
        for (base, head, loosens) in [
            ("ttft.p95 < 800ms", "ttft.p95 < 1200ms", true),
            ("ttft.p95 < 1200ms", "ttft.p95 < 800ms", false),
            ("attainment >= 95%", "attainment >= 90%", true),
            ("attainment >= 90%", "attainment >= 95%", false),
            ("errors.5xx.count == 0", "errors.5xx.count == 3", true),
            ("errors.5xx.count == 3", "errors.5xx.count == 0", false),
            ("output_tokens.p50 == 3", "output_tokens.p50 == 2", true),
            ("ttft.p50 < baseline + 15%", "ttft.p50 < baseline + 25%", true),
            ("ttft.p50 < baseline + 15%", "ttft.p50 < baseline + 15% or 20ms", true),
            ("ttft.p50 < baseline + 15% or 20ms", "ttft.p50 < baseline + 15%", false),
            ("ttft.p50 < baseline + 15% or 20ms", "ttft.p50 < baseline + 10% or 30ms", true),
            ("ttft.p50 < baseline + 15% or 20ms", "ttft.p50 < baseline + 20% or 10ms", true),
            ("ttft.p50 < baseline + 15% or 20ms", "ttft.p50 < baseline + 10% or 20ms", false),
            ("ttft.p50 < baseline + 20ms", "ttft.p50 < baseline + 15%", true),
            ("ttft.p50 < baseline - 10%", "ttft.p50 < baseline", true),
            ("ttft.p50 < baseline", "ttft.p50 < baseline - 10%", false),
            ("throughput.requests >= baseline - 5%", "throughput.requests >= baseline - 10%", true),
            ("throughput.requests >= baseline - 10%", "throughput.requests >= baseline - 5% or 0.1/s", true),
            ("throughput.requests >= baseline - 10%", "throughput.requests >= baseline + 5%", false),
            ("attainment >= baseline - 2pp", "attainment >= baseline - 5pp", true),
            ("errors.rate <= baseline + 5pp", "errors.rate <= baseline + 2pp", false),
        ] {
            let (from, to) = (base.split(['<', '>', '=']).next().unwrap(), |text: &str| {
                text.rsplit(['<', '>', '=']).next().unwrap().trim().to_owned()
            });
            let op = base.strip_prefix(from).unwrap().split(' ').next().unwrap();
            let mark = if loosens { "! " } else { "" };
            assert_eq!(check(base, head), [format!("{mark}{from}{op} {} → {}", to(base), to(head))]);
        }
    }

    #[test]
    fn checks_that_come_and_go_are_named() {
        assert_eq!(
            check("ttft.p95 < 800ms, tpot.p95 < 50ms", "tpot.p95 < 50ms, e2e.p50 < 9s"),
            ["! ttft.p95 < 800ms → -", "e2e.p50 < - → 9s"]
        );
        let other_kinds = ["ttft.p95 < baseline + 15%", "ttft.p95 < reference + 15%", "ttft.p95 <= 800ms"];
        for head in other_kinds {
            let (_, bound) = head.split_once("< ").or(head.split_once("<= ")).unwrap();
            let op = if head.contains("<=") { "<=" } else { "<" };
            assert_eq!(
                check("ttft.p95 < 800ms", head),
                ["! ttft.p95 < 800ms → -".to_owned(), format!("ttft.p95 {op} - → {bound}")]
            );
        }
        assert_eq!(check("ttft.p95 < 1s", "ttft.p95 < 1s, errors.rate < 10%"), ["! errors.rate < 5% → 10%"], "implied");
    }

    #[test]
    fn of_two_checks_alike_each_has_its_own_partner() {
        let base = "require: [ttft.p95 < 800ms]\nprefer: [ttft.p95 < 600ms]";
        let loosened = shown(base, "require: [ttft.p95 < 900ms]\nprefer: [ttft.p95 < 600ms]");
        assert_eq!(loosened, ["! ttft.p95 < 800ms → 900ms"]);
        let swapped = shown(base, "require: [ttft.p95 < 600ms]\nprefer: [ttft.p95 < 800ms]");
        assert_eq!(swapped, ["ttft.p95 < 800ms → 600ms", "! ttft.p95 < 600ms → 800ms"]);
        let demoted =
            shown("require: [ttft.p95 < 800ms, tpot.p50 < 1s]", "require: [tpot.p50 < 1s]\nprefer: [ttft.p95 < 800ms]");
        assert_eq!(demoted, ["! ttft.p95 < (importance) require → prefer"]);
        let one = shown(base, "require: [ttft.p95 < 600ms]");
        assert_eq!(one, ["ttft.p95 < 800ms → 600ms", "! ttft.p95 < 600ms → -"]);
    }

    #[test]
    fn how_a_check_is_decided_is_a_demand() {
        let long = |rest: &str| format!("{{check: ttft.p95 < 800ms{rest}}}");
        let change = |base: &str, head: &str| check(&long(base), &long(head));
        assert_eq!(change("", ", confidence: 99%"), ["! ttft.p95 < (confidence) 95% → 99%"]);
        assert_eq!(change(", confidence: 99.9%", ""), ["ttft.p95 < (confidence) 99.9% → 95%"]);
        assert_eq!(change("", ", decide: point"), ["ttft.p95 < (decide) evidence → point"]);
        assert_eq!(change(", decide: point", ""), ["! ttft.p95 < (decide) point → evidence"]);
        assert_eq!(change("", ", decide: evidence"), [""; 0], "that is how it is decided anyway");
        let waived = |until: &str, reason: &str| format!(", waive: {{until: {until}, reason: {reason}}}");
        let (short, long) = (waived("2027-01-31", "one"), waived("2027-11-01", "one"));
        assert_eq!(change("", &short), ["! ttft.p95 < (waiver) - → until 2027-01-31: one"]);
        assert_eq!(change(&short, &long), ["! ttft.p95 < (waiver) until 2027-01-31: one → until 2027-11-01: one"]);
        assert_eq!(change(&long, &short), ["ttft.p95 < (waiver) until 2027-11-01: one → until 2027-01-31: one"]);
        assert_eq!(change(&short, ""), ["ttft.p95 < (waiver) until 2027-01-31: one → -"]);
        let other = waived("2027-01-31", "two");
        assert_eq!(change(&short, &other), ["ttft.p95 < (waiver) until 2027-01-31: one → until 2027-01-31: two"]);
    }

    #[test]
    fn objectives_outcomes_and_baselines_are_demands() {
        let with = |keys: &str| format!("require: [ttft.p50 < baseline + 15%]\n{keys}");
        for (base, head, change) in [
            ("slo: {ttft: 800ms}", "slo: {ttft: 1200ms}", "! slo.ttft 800 ms → 1,200 ms"),
            ("slo: {ttft: 800ms}", "slo: {ttft: 700ms}", "slo.ttft 800 ms → 700 ms"),
            ("slo: {ttft: 800ms, e2e: 9s}", "slo: {ttft: 800ms}", "! slo.e2e 9 s → -"),
            ("slo: {ttft: 800ms}", "slo: {ttft: 800ms, tpot: 50ms}", "slo.tpot - → 50 ms"),
            ("outcomes: {inconclusive: fail}", "", "! outcomes.inconclusive fail → pass"),
            ("", "outcomes: {no_baseline: fail}", "outcomes.no_baseline pass → fail"),
            ("", "outcomes: {invalid: pass}", "! outcomes.invalid fail → pass"),
            ("", "prompts: {tokens: accept_estimate}", "! prompts.tokens usage → accept_estimate"),
            ("", "baseline: {from: 'pin:slow'}", "! baseline.from merge-base → pin:slow"),
            ("", "baseline: {runs: 1}", "! baseline.runs 5 → 1"),
            ("", "baseline: {runs: 9}", "baseline.runs 5 → 9"),
            ("", "baseline: {store: empty}", "! baseline.store .gate/baselines → empty"),
            ("", "baseline: {class: new}", "! baseline.class - → new"),
            ("", "baseline: {fallback: ['last:5']}", "baseline.fallback - → last:5"),
            ("baseline: {fallback: ['last:5']}", "", "! baseline.fallback last:5 → -"),
        ] {
            assert_eq!(shown(&with(base), &with(head)), [change]);
        }
        let unused = shown("require: [ttft.p50 < 1s]", "require: [ttft.p50 < 1s]\nbaseline: {runs: 1}");
        assert_eq!(unused, ["baseline.runs 5 → 1"], "no check looks at them");
    }

    #[test]
    fn the_base_judges_what_the_head_measures() {
        let base = spec(
            "require: [ttft.p95 < 800ms]\nslo: {ttft: 800ms}\noutcomes: {inconclusive: fail}\nbaseline: {runs: 3}\nload: {rps: 1}",
        );
        let head = spec(
            "prefer: [ttft.p50 < 9s]\nrequire: [e2e.p95 < 60s]\nslo: {ttft: 5s}\nprompts: {input_tokens: 9, tokens: accept_estimate}\nload: {rps: 7}",
        );
        let judged = judged_by(&base, &head);
        assert_eq!(changes(&base, &judged), [], "nothing of what is demanded is the head's");
        assert_eq!((judged.load, judged.prompts.input_tokens), (head.load.clone(), head.prompts.input_tokens));
        assert_eq!(
            (&judged.target, &judged.reference, judged.timeouts),
            (&head.target, &head.reference, head.timeouts)
        );
        assert!(judged.checks.iter().all(|check| check.importance == Importance::Required));
        assert_eq!(judged_by(&head, &head), head);
    }
}
