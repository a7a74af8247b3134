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

    /// The changes from one list of keys to another.
    fn shown(base: &str, head: &str) -> Vec<String> {
        lines(&spec(base), &spec(head))
    }

    /// The changes from one spec to another; `!` marks what loosens the gate.
    fn lines(base: &GateSpec, head: &GateSpec) -> Vec<String> {
        let none = || "-".to_owned();
        changes(base, head)
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
        assert_eq!(demoted, ["! ttft.p95 < 800ms (importance) require → prefer"]);
        let one = shown(base, "require: [ttft.p95 < 600ms]");
        assert_eq!(one, ["ttft.p95 < 800ms → 600ms", "! ttft.p95 < 600ms → -"]);
    }

    #[test]
    fn how_a_check_is_decided_is_a_demand() {
        let long = |rest: &str| format!("{{check: ttft.p95 < 800ms{rest}}}");
        let change = |base: &str, head: &str| check(&long(base), &long(head));
        assert_eq!(change("", ", confidence: 99%"), ["! ttft.p95 < 800ms (confidence) 95% → 99%"]);
        assert_eq!(change(", confidence: 99.9%", ""), ["ttft.p95 < 800ms (confidence) 99.9% → 95%"]);
        assert_eq!(change("", ", decide: point"), ["ttft.p95 < 800ms (decide) evidence → point"]);
        assert_eq!(change(", decide: point", ""), ["! ttft.p95 < 800ms (decide) point → evidence"]);
        assert_eq!(change("", ", decide: evidence"), [""; 0], "that is how it is decided anyway");
        let waived = |until: &str, reason: &str| format!(", waive: {{until: {until}, reason: {reason}}}");
        let (short, long) = (waived("2027-01-31", "one"), waived("2027-11-01", "one"));
        assert_eq!(change("", &short), ["! ttft.p95 < 800ms (waiver) - → until 2027-01-31: one"]);
        assert_eq!(
            change(&short, &long),
            ["! ttft.p95 < 800ms (waiver) until 2027-01-31: one → until 2027-11-01: one"]
        );
        assert_eq!(change(&long, &short), ["ttft.p95 < 800ms (waiver) until 2027-11-01: one → until 2027-01-31: one"]);
        assert_eq!(change(&short, ""), ["ttft.p95 < 800ms (waiver) until 2027-01-31: one → -"]);
        let other = waived("2027-01-31", "two");
        assert_eq!(change(&short, &other), ["ttft.p95 < 800ms (waiver) until 2027-01-31: one → until 2027-01-31: two"]);
    }

    #[test]
    fn objectives_outcomes_and_baselines_are_demands() {
        let with = |keys: &str| format!("require: [ttft.p50 < baseline + 15%]\n{keys}");
        for (base, head, change) in [
            ("slo: {ttft: 800ms}", "slo: {ttft: 1200ms}", "! slo.ttft 800ms → 1200ms"),
            ("slo: {ttft: 800ms}", "slo: {ttft: 700ms}", "slo.ttft 800ms → 700ms"),
            ("slo: {ttft: 800ms, e2e: 9s}", "slo: {ttft: 800ms}", "! slo.e2e 9s → -"),
            ("slo: {ttft: 800ms}", "slo: {ttft: 800ms, tpot: 50ms}", "slo.tpot - → 50ms"),
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

    /// A spec with its own target, and the changes from one to another.
    fn measured(base: &str, head: &str) -> Vec<String> {
        let read = |keys: &str| {
            let target = if keys.contains("target:") { "" } else { "target: {url: 'http://h'}\n" };
            let text = format!("version: 1\nname: x\nrequire: [e2e.p50 < reference + 10%]\n{target}{keys}\n");
            let text = if keys.contains("reference:") { text } else { text.replace("reference + 10%", "1s") };
            resolve("gates/x.yaml", &text, &BTreeMap::new(), &[])
                .unwrap_or_else(|wrong| panic!("{keys}: {wrong:?}"))
                .spec
        };
        lines(&read(base), &read(head))
    }

    #[test]
    fn what_is_measured_is_named_and_less_of_it_loosens() {
        for (base, head, change) in [
            ("load: {rps: 2}", "load: {rps: 0.5}", "! load.rps 2 → 0.5"),
            ("load: {rps: 2}", "load: {rps: 3}", "load.rps 2 → 3"),
            ("load: {rps: 2}", "load: {rps: 2, concurrency: 8}", "load.concurrency - → 8"),
            ("load: {concurrency: 8}", "load: {concurrency: 4}", "! load.concurrency 8 → 4"),
            ("", "load: {iterations: 20..40}", "! load.iterations 30..50 → 20..40"),
            ("", "load: {iterations: 30..60}", "load.iterations 30..50 → 30..60"),
            ("", "load: {iterations: 50}", "! load.iterations 30..50 → 50"),
            ("load: {iterations: 50}", "", "load.iterations 50 → 30..50"),
            ("", "load: {extend: 60}", "! load.extend 100 → 60"),
            ("", "load: {extend: none}", "! load.extend 100 → none"),
            ("load: {extend: none}", "", "load.extend none → 100"),
            ("", "load: {warmup: 9}", "load.warmup 5 → 9"),
            ("", "load: {arrivals: constant}", "load.arrivals poisson → constant"),
            ("", "load: {connections: fresh}", "load.connections pooled → fresh"),
            ("", "load: {http: 2}", "load.http auto → 2"),
            ("", "load: {clock: user}", "load.clock auto → user"),
            ("", "load: {workers: 2}", "load.workers 1 → 2"),
            ("", "load: {seed: 7}", "load.seed 0 → 7"),
            (
                "",
                "prompts: {output_tokens: 2}",
                "! prompts.output_tokens {mean: 150, stddev: 20, min: 10, max: 500} → 2",
            ),
            ("prompts: {input_tokens: 9}", "prompts: {input_tokens: 10}", "prompts.input_tokens 9 → 10"),
            (
                "prompts: {input_tokens: 9}",
                "prompts: {input_tokens: {mean: 9, stddev: 1.5, max: 20, shape: uniform}}",
                "prompts.input_tokens 9 → {mean: 9, stddev: 1.5, min: 1, max: 20, shape: uniform}",
            ),
            ("", "load: {arrivals: gamma(0.5)}", "load.arrivals poisson → gamma(0.5)"),
            ("load: {duration: 30m}", "load: {duration: 20m}", "! load.duration 30m → 20m"),
            ("load: {duration: 20m}", "load: {pattern: {steady: 30m}}", "load.duration 20m → 30m"),
            (
                "load: {pattern: {ramp: {to: 8}}}",
                "load: {pattern: {ramp: {to: 4}}}",
                "! load.pattern {ramp: {from: 0, to: 8, over: 15m}} → {ramp: {from: 0, to: 4, over: 15m}}",
            ),
            (
                "load: {stages: [{rps: 1, for: 1m}]}",
                "load: {stages: [{rps: 1..3, for: 1m}]}",
                "load.stages [{rps: 1, for: 1m}] → [{rps: 1..3, for: 1m}]",
            ),
            ("load: {trace: a.csv}", "load: {trace: b.csv}", "load.trace a.csv → b.csv"),
            ("load: {pattern: soak}", "load: {pattern: {soak: 2h}}", "! load.pattern {soak: 4h} → {soak: 2h}"),
            ("", "prompts: {turns: 2..4}", "prompts.turns 1 → 2..4"),
            (
                "prompts: {turns: 2}",
                "prompts: {turns: 2, think: {mean: 3s, stddev: 1s}}",
                "prompts.think - → {mean: 3s, stddev: 1s}",
            ),
            ("", "prompts: {shared_prefix: 300}", "! prompts.shared_prefix - → {tokens: 300, groups: 1}"),
            ("prompts: {shared_prefix: 300}", "", "prompts.shared_prefix {tokens: 300, groups: 1} → -"),
            ("", "prompts: {cache: natural}", "! prompts.cache bust → natural"),
            ("prompts: {cache: warm}", "prompts: {cache: natural}", "prompts.cache warm → natural"),
            ("prompts: {file: a}", "prompts: {file: a, format: sharegpt}", "prompts.format rows → sharegpt"),
            ("prompts: {images: [a.png]}", "prompts: {images: [b.png]}", "prompts.images 1 of them → changed"),
            (
                "prompts: {input_tokens: {empirical: a}}",
                "prompts: {input_tokens: {empirical: b}}",
                "prompts.input_tokens {empirical: a} → {empirical: b}",
            ),
            ("", "budget: {requests: 500}", "! budget.requests - → 500"),
            ("budget: {requests: 500}", "budget: {requests: 900}", "budget.requests 500 → 900"),
            ("", "abort: {lost: false}", "abort.lost true → false"),
            ("", "abort: {connection_failures: 9}", "abort.connection_failures 5 → 9"),
            ("", "journal: {tokens: 5}", "journal.tokens 1000 → 5"),
            ("", "journal: {keep_text: true}", "journal.keep_text false → true"),
            ("", "target: {url: 'http://h', metrics: /metrics}", "target.metrics - → http://h/metrics"),
            ("target: {sim: {slots: 4}}", "target: {sim: {slots: 8}}", "target.sim.slots 4 → 8"),
            ("target: {sim: {}}", "target: {sim: {drift: {tpot: 2%/h}}}", "target.sim.drift.tpot 0%/h → 2%/h"),
            ("", "prompts: {cache: warm}", "! prompts.cache bust → warm"),
            ("prompts: {output: exact}", "", "! prompts.output exact → at_most"),
            ("", "prompts: {system: top secret}", "prompts.system - → given"),
            ("prompts: {system: one}", "prompts: {system: two}", "prompts.system given → changed"),
            ("prompts: {system: one}", "", "prompts.system given → -"),
            ("", "prompts: {file: p.jsonl}", "prompts.file - → p.jsonl"),
            ("", "prompts: {tokenizer: t.json}", "prompts.tokenizer - → t.json"),
            ("", "timeouts: {total: 1h}", "timeouts.total 5m → 1h"),
            ("", "timeouts: {first_token: 1500ms}", "timeouts.first_token 1m → 1500ms"),
            ("", "timeouts: {run: 90s}", "timeouts.run - → 90s"),
            ("", "target: {url: 'http://h', model: small}", "target.model - → small"),
            ("", "target: {url: 'http://h', api: tgi}", "target.api openai-chat → tgi"),
            ("", "target: {url: 'http://h', stream: false}", "target.stream true → false"),
            ("", "target: {url: 'https://h:8443/v1'}", "target.url http://h → https://h:8443"),
            ("", "target: {url: 'http://h/v1?api_key=hunter2'}", "target.url http://h → changed"),
            ("", "target: {url: 'unix:/run/s.sock:/v1'}", "target.url http://h → unix:/run/s.sock"),
            ("", "target: {url: 'http://h', extra_body: {top: 1}}", "target.extra_body - → given"),
            ("", "target: {url: sim}", "! target.url http://h → sim"),
            ("target: {url: sim}", "", "target.url sim → http://h"),
        ] {
            assert_eq!(measured(base, head), [change], "{base} → {head}");
        }
        assert_eq!(
            measured("load: {rps: 2}", "load: {concurrency: 4}"),
            ["! load.rps 2 → -", "load.concurrency - → 4"]
        );
        let long = format!("prompts: {{file: {}.jsonl}}", "a/".repeat(100));
        assert_eq!(measured("", &long), [format!("prompts.file - → {}a…", "a/".repeat(29))]);
        assert!(measured(&long, &long.replace(".jsonl", ".json"))[0].ends_with("… → changed"));
        let secret = "target: {url: 'http://h', key: hunter2, headers: {x-team: hunter2}}";
        assert_eq!(measured("", secret), [""; 0], "credentials are not compared");
    }

    /// A gate of scenarios as its keys and checks say.
    fn mixed(keys: &str) -> GateSpec {
        let text = format!("version: 1\nname: x\ntarget: {{url: 'http://h'}}\n{keys}\n");
        resolve("gates/x.yaml", &text, &BTreeMap::new(), &[]).unwrap_or_else(|wrong| panic!("{keys}: {wrong:?}")).spec
    }

    const MIXED: &str = "slo: {ttft: 1s}\nrequire: [ttft.p50 < 1s]\nscenarios:\n  chat: {require: [e2e.p50 < 9s]}\n  batch: {slo: {e2e: 60s}, prompts: {input_tokens: 900}}\n";

    #[test]
    fn what_becomes_of_scenarios_is_named_and_one_that_is_gone_loosens() {
        let base = mixed(MIXED);
        for (from, to, changes) in [
            ("e2e.p50 < 9s", "e2e.p50 < 10s", vec!["! chat: e2e.p50 < 9s → 10s"]),
            ("[ttft.p50 < 1s]", "[ttft.p50 < 2s]", vec!["! chat: ttft.p50 < 1s → 2s", "! batch: ttft.p50 < 1s → 2s"]),
            ("{e2e: 60s}", "{e2e: 90s}", vec!["! scenarios.batch.slo.e2e 1m → 90s"]),
            ("input_tokens: 900", "input_tokens: 800", vec!["! scenarios.batch.prompts.input_tokens 900 → 800"]),
            (
                "  chat:",
                "  talk: {}\n  chat:",
                vec!["talk: ttft.p50 < - → 1s", "talk: errors.rate < - → 5%", "scenarios.talk - → given"],
            ),
            (
                "\nscenarios",
                "\nload: {rps: 1}\nscenarios",
                vec!["! scenarios.chat.load.rps 2 → 1", "! scenarios.batch.load.rps 2 → 1"],
            ),
            ("\nscenarios", "\nrun: together\nscenarios", vec!["run in_turn → together"]),
        ] {
            assert_eq!(lines(&base, &mixed(&MIXED.replace(from, to))), changes, "{to}");
        }
        let alone = MIXED.lines().filter(|line| !line.contains("batch")).collect::<Vec<_>>().join("\n");
        let gone = lines(&base, &mixed(&alone));
        assert_eq!(
            gone,
            ["! batch: ttft.p50 < 1s → -", "! batch: errors.rate < 5% → -", "! scenarios.batch given → -"]
        );
        let turned = MIXED.lines().collect::<Vec<_>>();
        let turned = [turned[0], turned[1], turned[2], turned[4], turned[3]].join("\n");
        assert_eq!(lines(&base, &mixed(&turned)), [""; 0], "their order is none of their own");
    }

    #[test]
    fn a_change_is_judged_by_its_bases_scenarios() {
        let base = mixed(MIXED);
        let shown = |spec: &GateSpec| -> Vec<String> {
            let names = spec.scenario_names();
            spec.checks.iter().map(|check| format!("{}: {check}", names[usize::from(check.scenario)])).collect()
        };
        let of = |name: &str, checks: &[&str]| -> Vec<String> {
            checks.iter().map(|check| format!("{name}: {check}")).collect()
        };
        let chat = of("chat", &["ttft.p50 < 1s", "e2e.p50 < 9s", "errors.rate < 5%"]);
        let batch = of("batch", &["ttft.p50 < 1s", "errors.rate < 5%"]);
        // A scenario that is gone comes back, and one that is new keeps what it demands of itself.
        let head = mixed(
            "require: [ttft.p50 < 5s]\nscenarios:\n  new: {require: [tpot.p50 < 9ms]}\n  chat: {slo: {ttft: 9s}, load: {rps: 3}}\n",
        );
        let judged = judged_by(&base, &head);
        let new = of("new", &["ttft.p50 < 5s", "tpot.p50 < 9ms", "errors.rate < 5%"]);
        assert_eq!(shown(&judged), [new, chat.clone(), batch.clone()].concat());
        assert_eq!(judged.scenarios[1].slo, base.scenarios[0].slo);
        assert_eq!(judged.scenarios[1].load.pace.rate().unwrap().0, 3.0, "the load is the head's to say");
        assert_eq!(judged.scenarios[2], base.scenarios[1]);
        // So do all of them where the head has none.
        let judged = judged_by(&base, &mixed("require: [ttft.p50 < 5s]"));
        assert_eq!(shown(&judged), [chat, batch].concat());
        // What a gate without scenarios demands holds for each that the change makes of it.
        let plain = mixed("require: [ttft.p50 < 1s]\nslo: {ttft: 700ms}");
        let judged = judged_by(&plain, &mixed(MIXED));
        let each = ["ttft.p50 < 1s", "errors.rate < 5%"];
        assert_eq!(shown(&judged), [of("chat", &each), of("batch", &each)].concat());
        assert!(judged.scenarios.iter().all(|one| one.slo == plain.slo));
    }

    #[test]
    fn lower_prices_loosen_where_a_check_is_on_the_cost() {
        let keys =
            |check: &str, price: &str| mixed(&format!("prices: {{input: {price}, output: 10}}\nrequire: [{check}]"));
        let [cost, other] = ["cost < $3", "ttft.p50 < 1s"].map(|check| [keys(check, "$2.5"), keys(check, "$1")]);
        assert_eq!(lines(&cost[0], &cost[1]), ["! prices.input $2.5 → $1"]);
        assert_eq!(lines(&cost[1], &cost[0]), ["prices.input $1 → $2.5"]);
        assert_eq!(lines(&other[0], &other[1]), ["prices.input $2.5 → $1"]);
        assert_eq!(judged_by(&cost[0], &cost[1]).prices, cost[0].prices);
    }

    #[test]
    fn what_no_stored_run_was_measured_with_loosens_where_one_is_compared_with() {
        let read = |name: &str, check: &str, keys: &str| {
            let target = if keys.contains("target:") { "" } else { "target: {url: 'http://h'}\n" };
            let text = format!("version: 1\nname: {name}\n{target}require: [e2e.p50 < {check}]\n{keys}\n");
            resolve("gates/x.yaml", &text, &BTreeMap::new(), &[]).unwrap().spec
        };
        for (keys, change) in [
            ("load: {rps: 3}", "! load.rps 2 → 3"),
            ("load: {warmup: 4}", "! load.warmup 5 → 4"),
            ("load: {seed: 7}", "load.seed 0 → 7"),
            (
                "prompts: {input_tokens: {mean: 600}}",
                "! prompts.input_tokens {mean: 550, stddev: 150, min: 50, max: 2000} → 600",
            ),
            ("prompts: {system: new}", "! prompts.system - → given"),
            ("timeouts: {total: 1h}", "timeouts.total 5m → 1h"),
            ("target: {url: 'http://h', model: large}", "! target.model - → large"),
            ("target: {url: 'http://i'}", "target.url http://h → http://i"),
        ] {
            let [before, now] = ["", keys].map(|keys| read("x", "baseline + 15%", keys));
            assert_eq!(lines(&before, &now), [change]);
            let fixed = ["", keys].map(|keys| read("x", "1s", keys));
            let calm = change.trim_start_matches("! ");
            assert_eq!(lines(&fixed[0], &fixed[1]), [calm], "no stored run is asked for");
        }
        let renamed = lines(&read("x", "baseline + 15%", ""), &read("y", "baseline + 15%", ""));
        assert_eq!(renamed, ["! name x → y"], "there are none of this name");
        assert_eq!(lines(&read("x", "1s", ""), &read("y", "1s", "")), ["name x → y"]);
    }

    #[test]
    fn the_simulated_engine_is_told_key_by_key() {
        let engine = |keys: &str| format!("target: {{sim: {{{keys}}}}}");
        for (base, head, change) in [
            ("ttft: 100ms", "ttft: 1ms", "ttft 100ms → 1ms"),
            (
                "",
                "tpot: {mean: 5ms, stddev: 1ms, shape: uniform}",
                "tpot {mean: 10ms, stddev: 1ms} → {mean: 5ms, stddev: 1ms, shape: uniform}",
            ),
            ("", "tokens_per_chunk: 4", "tokens_per_chunk 1 → 4"),
            ("", "role_chunk: none", "role_chunk 0ms → none"),
            ("", "faults: {http_500: 0.5%}", "faults.http_500 0% → 0.5%"),
            ("", "script: {26: http_500, 30..40: stall}", "script - → {26: http_500, 30..40: stall}"),
            ("", "slow_headers: 1200ms", "slow_headers 1s → 1200ms"),
            ("", "warming_up: {requests: 20, slowdown: 2.5}", "warming_up - → {requests: 20, slowdown: 2.5}"),
            ("", "buffer: 16KiB", "buffer 0 → 16KiB"),
            ("", "dies_after: 26", "dies_after none → 26"),
            ("", "ready_after: 1ms", "ready_after 0ms → 1ms"),
            ("", "seed: 3", "seed 0 → 3"),
        ] {
            assert_eq!(measured(&engine(base), &engine(head)), [format!("target.sim.{change}")]);
        }
    }

    #[test]
    fn another_reference_may_be_slower() {
        let with = |reference: &str| format!("reference: {{url: {reference}}}");
        assert_eq!(measured(&with("http://r"), &with("http://s")), ["! reference.url http://r → http://s"]);
        assert_eq!(measured(&with("http://r"), &with("sim")), ["! reference.url http://r → sim"]);
        let gone = measured(&with("http://r"), "");
        assert!(gone.contains(&"! reference.url http://r → -".to_owned()), "{gone:?}");
        let model = |model: &str| format!("{}\ntarget: {{url: 'http://h', model: {model}}}", with("http://r"));
        assert_eq!(measured(&model("one"), &model("two")), ["target.model one → two"], "both arms have the same model");
        let own = |model: &str| {
            format!(
                "reference: {{url: http://r, model: {model}}}\ntarget: {{url: 'http://h', model: {model}, extra_body: {{a: {model}}}}}"
            )
        };
        assert_eq!(measured(&own("one"), &own("two")), ["target.model one → two", "target.extra_body given → changed"]);
        let slower =
            "reference: {url: http://r, model: large}\ntarget: {url: 'http://h', model: one, extra_body: {a: one}}";
        assert_eq!(measured(&own("one"), slower), ["! reference.model one → large"]);
        let unused = |url: &str| {
            let text = format!(
                "version: 1\nname: x\ntarget: {{url: 'http://h'}}\nreference: {{url: {url}}}\nrequire: [e2e.p50 < 1s]"
            );
            resolve("gates/x.yaml", &text, &BTreeMap::new(), &[]).unwrap().spec
        };
        let calm = lines(&unused("http://r"), &unused("http://s"));
        assert_eq!(calm, ["reference.url http://r → http://s"], "no check looks at it");
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
        let left = lines(&base, &judged);
        let lengths = "! prompts.input_tokens {mean: 550, stddev: 150, min: 50, max: 2000} → 9";
        assert_eq!(left, ["load.rps 1 → 7", lengths], "nothing of what is demanded is the head's");
        assert_eq!((judged.load, judged.prompts.input_tokens), (head.load.clone(), head.prompts.input_tokens));
        assert_eq!(
            (&judged.target, &judged.reference, judged.timeouts),
            (&head.target, &head.reference, head.timeouts)
        );
        assert!(judged.checks.iter().all(|check| check.importance == Importance::Required));
        assert_eq!(judged_by(&head, &head), head);
    }

    #[test]
    fn the_base_s_checks_stand_in_the_head_s_file() {
        let read = |file: &str, checks: &str| {
            let text = format!("version: 1\nname: x\ntarget: {{url: 'http://h'}}\n{checks}");
            resolve(file, &text, &BTreeMap::new(), &[]).unwrap().spec
        };
        let base = read(
            "gates/old.yaml at 0123456789ab",
            "require:\n  - ttft.p95 < 800ms\n  - tpot.p50 < 50ms\n  - e2e.p50 < 9s\nprefer:\n  - ttft.p50 < 1s\n",
        );
        let head = read(
            "gates/x.yaml",
            "slo: {e2e: 9s}\nprefer:\n  - ttft.p50 < 1s\nrequire:\n  - attainment >= 95%\n  - tpot.p50 < 70ms\n  - ttft.p95 < 800ms\n",
        );
        let judged = judged_by(&base, &head);
        assert_eq!(judged.file, "gates/x.yaml");
        let places = judged.checks.iter().map(|check| {
            let place = check.place().map_or("implied".to_owned(), ToString::to_string);
            format!("{check} at {place}")
        });
        assert_eq!(
            places.collect::<Vec<_>>(),
            [
                "ttft.p95 < 800ms at gates/x.yaml:10:5",
                "tpot.p50 < 50ms at gates/x.yaml:9:5",
                // It was removed, so it is where the checks begin.
                "e2e.p50 < 9s at gates/x.yaml:8:5",
                "errors.rate < 5% at implied",
                "ttft.p50 < 1s at gates/x.yaml:6:5",
            ]
        );
        let named = read("gates/x.yaml", "require: [ttft.p95 < 800ms, errors.rate < 10%]\n");
        let judged = judged_by(&base, &named);
        let errors = judged.checks.iter().find(|check| check.metric.to_string() == "errors.rate").unwrap();
        assert_eq!((errors.bound_text.as_str(), errors.place().unwrap().column), ("5%", 29), "where it was loosened");
    }
}
