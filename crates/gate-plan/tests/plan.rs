//! Plans and prompts as their users see them.

#[cfg(test)]
mod support {
    use gate_model::{Endpoint, GateSpec, Iterations, Plan, PlannedRequest, Prompt, Prompts};
    use gate_plan::{Extent, PlanError, SpecPrompts};

    pub(crate) fn spec(seed: u64) -> GateSpec {
        let mut spec = GateSpec::new("chat", Endpoint::Url("http://127.0.0.1:8000/v1".to_owned()));
        spec.load.seed = seed;
        spec
    }

    pub(crate) fn plan(spec: &GateSpec) -> Plan {
        gate_plan::plans(spec, Extent::Extended, &[]).unwrap().remove(0)
    }

    /// The plan judged at these sizes.
    pub(crate) fn at(spec: &GateSpec, looks: &[u32]) -> Result<Plan, PlanError> {
        let mut spec = spec.clone();
        spec.load.iterations = match *looks {
            [first, last] => Iterations::Range { first, last, extend: None },
            [first, last, extend] => Iterations::Range { first, last, extend: Some(extend) },
            _ => Iterations::Fixed(looks[0]),
        };
        gate_plan::plans(&spec, Extent::Extended, &[]).map(|mut plans| plans.remove(0))
    }

    pub(crate) fn request(index: u32, input_tokens: u32) -> PlannedRequest {
        PlannedRequest { index, input_tokens, output_tokens: 150, ..PlannedRequest::default() }
    }

    pub(crate) fn text(prompt: &Prompt) -> &str {
        assert_eq!(prompt.messages.len(), 1);
        &prompt.messages[0].text
    }

    /// The text of every request, measured ones first.
    pub(crate) fn texts(prompts: &SpecPrompts, plan: &Plan) -> Vec<String> {
        let measured = plan.requests.iter().map(|request| prompts.measured(request, &[]));
        let warmup = plan.warmup.iter().map(|request| prompts.warmup(request));
        measured.chain(warmup).map(|prompt| text(&prompt).to_owned()).collect()
    }

    pub(crate) fn without_nonce(prompt: &Prompt) -> &str {
        text(prompt).split_once('\n').unwrap().1
    }

    pub(crate) fn hex_digest(bytes: &[u8]) -> String {
        use sha2::{Digest, Sha256};
        Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

#[cfg(test)]
mod plans {
    use gate_model::{Api, Arrivals, Cache, GateSpec, Iterations, Nanos, Pace, PerSecond, PlannedRequest, Shape};
    use gate_plan::{Extent, PlanError, Totals};
    use serde_json::json;

    use crate::support::{at, hex_digest, plan, spec};

    fn totals(plan: &gate_model::Plan) -> Totals {
        gate_plan::totals(std::slice::from_ref(plan), &spec(0))
    }

    fn open(rate: f64) -> Pace {
        Pace::Open { rate: PerSecond(rate), cap: None }
    }

    #[test]
    fn a_seed_gives_these_bytes_for_ever() {
        let request = |r: &PlannedRequest| {
            json!({
                "index": r.index, "scenario": r.scenario, "arm": r.arm, "pair": r.pair, "turn": r.turn, "at": r.at,
                "input_tokens": r.input_tokens, "output_tokens": r.output_tokens,
            })
        };
        let digest = |seed| {
            let plan = plan(&spec(seed));
            let requests = |requests: &[PlannedRequest]| requests.iter().map(request).collect::<Vec<_>>();
            let plan = json!({
                "schema": plan.schema, "seed": plan.seed, "scenarios": plan.scenarios, "looks": plan.looks,
                "warmup": requests(&plan.warmup), "requests": requests(&plan.requests),
            });
            hex_digest(&serde_json::to_vec(&plan).unwrap())
        };
        assert_eq!(digest(0), "1989b94fd3a2c1b80af3312425fb3035c3ed59e4eb6c2e1a2123547c067837e8");
        assert_ne!(digest(1), digest(0));
        let plan = plan(&spec(0));
        assert_eq!((plan.whole, plan.first, plan.section, plan.shard), (100, 0, 0, None));
        assert_eq!(plan.digest.as_deref(), Some("ba78503a5dd498fd2e62260fec1c6c65cd141de37d21d57c8a1be0a99467afe5"));
    }

    #[test]
    fn a_longer_plan_begins_as_the_shorter_one() {
        let spec = spec(7);
        let long = at(&spec, &[30, 50, 100]).unwrap();
        for looks in [&[30, 50][..], &[7], &[99]] {
            let short = at(&spec, looks).unwrap();
            assert_eq!(short.looks, looks);
            assert_eq!(short.warmup, long.warmup);
            assert_eq!(short.requests, long.requests[..short.requests.len()]);
            assert_eq!(short.requests.len(), *looks.last().unwrap() as usize);
        }
    }

    #[test]
    fn poisson_gaps_are_exponential() {
        let mut spec = spec(3);
        spec.load.iterations = Iterations::Fixed(20_001);
        let plan = plan(&spec);
        assert_eq!(plan.requests[0].at, Nanos::ZERO);
        let gaps: Vec<f64> =
            plan.requests.windows(2).map(|pair| (pair[1].at - pair[0].at).as_secs_f64() * 2.0).collect();
        let share_above = |limit: f64| gaps.iter().filter(|gap| **gap > limit).count() as f64 / gaps.len() as f64;
        // Five standard errors of a share of 20,000.
        for limit in [0.1, 0.5, 1.0, 2.0, 4.0_f64] {
            let expected = (-limit).exp();
            let error = (expected * (1.0 - expected) / gaps.len() as f64).sqrt();
            assert!((share_above(limit) - expected).abs() < 5.0 * error, "{limit}: {}", share_above(limit));
        }
    }

    #[test]
    fn constant_arrivals_do_not_drift() {
        let mut spec = spec(3);
        spec.load.arrivals = Arrivals::Constant;
        spec.load.pace = open(3.0);
        spec.load.iterations = Iterations::Fixed(1000);
        let plan = plan(&spec);
        assert_eq!(plan.requests[1].at, Nanos(333_333_333));
        assert_eq!(plan.requests[999].at, Nanos::from_secs(333));
    }

    #[test]
    fn a_closed_loop_plans_the_order_and_a_cap_changes_nothing() {
        let open = plan(&spec(5));
        let mut closed = spec(5);
        closed.load.pace = Pace::Closed { concurrency: 8 };
        let closed = plan(&closed);
        assert!(open.duration() > Nanos::ZERO);
        assert_eq!((closed.duration(), &closed.looks, totals(&closed)), (Nanos::ZERO, &open.looks, totals(&open)));
        let undated = |requests: &[PlannedRequest]| -> Vec<_> {
            requests.iter().map(|request| PlannedRequest { at: Nanos::ZERO, ..*request }).collect()
        };
        assert_eq!(closed.requests, undated(&open.requests), "the same requests in the same order");

        let mut capped = spec(5);
        capped.load.pace = Pace::Open { rate: PerSecond(2.0), cap: Some(3) };
        assert_eq!(plan(&capped), open);
    }

    #[test]
    fn embeddings_ask_for_no_output() {
        for cache in [Cache::Bust, Cache::Warm] {
            let (mut spec, mut embeddings) = (spec(5), spec(5));
            spec.prompts.cache = cache;
            embeddings.prompts.cache = cache;
            embeddings.target.api = Api::OpenaiEmbeddings;
            let (generated, embedded) = (plan(&spec), plan(&embeddings));
            assert_eq!(totals(&embedded), Totals { output_tokens: 0, ..totals(&generated) });
            let inputs = |requests: &[PlannedRequest]| -> Vec<_> {
                requests.iter().map(|request| (request.at, request.input_tokens)).collect()
            };
            assert_eq!(inputs(&embedded.requests), inputs(&generated.requests));
        }
    }

    /// The mean of the truncated distribution, by a fine sum over its definition.
    fn redrawn_mean(spec: &GateSpec) -> f64 {
        let length = spec.prompts.input_tokens;
        let (mean, stddev) = (length.mean, length.stddev);
        let variance = (stddev / mean).powi(2).ln_1p();
        let density = |x: f64| match length.shape {
            Shape::Normal => (-0.5 * ((x - mean) / stddev).powi(2)).exp(),
            Shape::Lognormal => (-0.5 * (x.ln() - mean.ln() + variance / 2.0).powi(2) / variance).exp() / x,
            Shape::Uniform => f64::from(u8::from((x - mean).abs() <= stddev * 3.0_f64.sqrt())),
        };
        let (mut mass, mut moment) = (0.0, 0.0);
        for step in 0..(length.max - length.min + 1) * 20 {
            let x = f64::from(length.min) - 0.5 + (f64::from(step) + 0.5) / 20.0;
            mass += density(x);
            moment += x * density(x);
        }
        moment / mass
    }

    #[test]
    fn lengths_follow_the_truncated_distribution_closely_at_every_look() {
        for shape in [Shape::Normal, Shape::Lognormal, Shape::Uniform] {
            // The second is cut hard on both sides: clipping would pile draws up at the edges.
            for (mean, stddev, min, max) in [(550.0, 150.0, 50, 2000), (550.0, 300.0, 500, 900)] {
                for seed in 0..20 {
                    let mut spec = spec(seed);
                    let length = &mut spec.prompts.input_tokens;
                    (length.mean, length.stddev, length.min, length.max, length.shape) =
                        (mean, stddev, min, max, shape);
                    let expected = redrawn_mean(&spec);
                    let plan = plan(&spec);
                    for look in [30, 50, 100] {
                        let lengths: Vec<u32> = plan.requests[..look].iter().map(|r| r.input_tokens).collect();
                        let seen = lengths.iter().sum::<u32>() as f64 / look as f64;
                        // Free draws would have a standard error of 27 at 30 requests.
                        assert!((seen - expected).abs() < 0.05 * expected, "{shape:?} {look}: {seen}, {expected}");
                        assert!(lengths.iter().all(|tokens| (min..=max).contains(tokens)));
                        assert!(lengths.iter().filter(|tokens| **tokens == min || **tokens == max).count() <= 3);
                    }
                }
            }
        }
    }

    #[test]
    fn every_block_has_one_length_of_every_tenth() {
        let mut spec = spec(11);
        let length = &mut spec.prompts.input_tokens;
        (length.mean, length.stddev, length.shape) = (1000.0, 500.0, Shape::Uniform);
        (length.min, length.max) = (501, 1500);
        for block in plan(&spec).requests.chunks(10) {
            let mut tenths: Vec<u32> = block.iter().map(|request| (request.input_tokens - 501) / 100).collect();
            assert!(!tenths.is_sorted());
            tenths.sort_unstable();
            assert_eq!(tenths, (0..10).collect::<Vec<_>>());
        }
    }

    #[test]
    fn input_and_output_lengths_are_independent() {
        let mut spec = spec(5);
        spec.load.iterations = Iterations::Fixed(10_000);
        let plan = plan(&spec);
        let ranks = |tokens: fn(&gate_model::PlannedRequest) -> u32, mean: f64, stddev: f64| {
            plan.requests.iter().map(|r| (f64::from(tokens(r)) - mean) / stddev).collect::<Vec<f64>>()
        };
        let inputs = ranks(|r| r.input_tokens, 550.0, 150.0);
        let outputs = ranks(|r| r.output_tokens, 150.0, 20.0);
        let correlation = inputs.iter().zip(&outputs).map(|(a, b)| a * b).sum::<f64>() / inputs.len() as f64;
        assert!(correlation.abs() < 0.05, "{correlation}");
    }

    #[test]
    fn a_length_without_spread_is_constant() {
        let mut spec = spec(0);
        spec.prompts.output_tokens.stddev = 0.0;
        assert!(plan(&spec).requests.iter().all(|request| request.output_tokens == 150));
    }

    #[test]
    fn totals_are_the_worst_case() {
        let mut spec = spec(0);
        for length in [&mut spec.prompts.input_tokens, &mut spec.prompts.output_tokens] {
            (length.mean, length.stddev) = (100.0, 0.0);
        }
        let expected = Totals { requests: 105, input_tokens: 10_500, output_tokens: 10_500, cost: None };
        assert_eq!(totals(&plan(&spec)), expected);
    }

    #[test]
    fn what_has_no_plan_says_why() {
        let fails = |change: fn(&mut GateSpec)| {
            let mut spec = spec(0);
            change(&mut spec);
            gate_plan::plans(&spec, Extent::Extended, &[]).unwrap_err().to_string()
        };
        let messages = [
            fails(|spec| spec.prompts.input_tokens.min = 1400),
            fails(|spec| (spec.prompts.output_tokens.stddev, spec.prompts.output_tokens.max) = (0.0, 100)),
            fails(|spec| spec.prompts.output_tokens.min = 501),
            fails(|spec| spec.prompts.output_tokens.mean = f64::NAN),
            fails(|spec| {
                let length = &mut spec.prompts.input_tokens;
                (length.mean, length.stddev, length.max) = (2e7, 0.0, u32::MAX);
            }),
            fails(|spec| spec.load.pace = open(0.0)),
            fails(|spec| spec.load.pace = open(0.0001)),
            fails(|spec| spec.load.iterations = Iterations::Fixed(1_000_001)),
            fails(|spec| spec.load.warmup = 1_000_001),
        ];
        let expected = [
            "`prompts.input_tokens`: fewer than one draw in a million of mean 550 and stddev 150 falls in 1400..2000: \
             widen `min` and `max`",
            "`prompts.output_tokens`: fewer than one draw in a million of mean 150 and stddev 0 falls in 10..100: \
             widen `min` and `max`",
            "`prompts.output_tokens`: min 501 and max 500: `min` must be at least 1 and at most `max`",
            "`prompts.output_tokens`: mean NaN and stddev 20: `mean` must be above 0 and `stddev` at least 0",
            "`prompts.input_tokens`: request 0 would have 20000000 tokens, and 10000000 is the most: lower `max`",
            "`load.rps` is 0: it must be above 0",
            "request 15 would be due after 1,585 min, and a plan lasts 24 h at most: raise `load.rps` or lower \
             `load.iterations`",
            "`load.iterations` is 1000001, more than the 1000000 requests a plan holds: lower it",
            "`load.warmup` is 1000001, more than the 1000000 requests a plan holds: lower it",
        ];
        assert_eq!(messages, expected);
        for looks in [&[0][..], &[0, 30], &[50, 30]] {
            let error = at(&spec(0), looks).unwrap_err();
            assert_eq!(error, PlanError::Looks { looks: looks.to_vec() });
        }
    }

    #[test]
    fn distributions_at_the_edge_stay_in_range() {
        for shape in [Shape::Normal, Shape::Lognormal, Shape::Uniform] {
            for (mean, stddev, min, max) in
                [(1.0, 1e6, 1, 3), (1e-300, 1e300, 1, u32::MAX), (1e300, 1.0, 1, u32::MAX), (4e9, 1e9, 1, u32::MAX)]
            {
                let mut spec = spec(0);
                let length = &mut spec.prompts.input_tokens;
                (length.mean, length.stddev, length.min, length.max, length.shape) = (mean, stddev, min, max, shape);
                if let Ok(plan) = at(&spec, &[20]) {
                    assert!(plan.requests.iter().all(|request| (min..=max).contains(&request.input_tokens)));
                    assert!(totals(&plan).input_tokens > 0);
                }
            }
        }
    }
}

#[cfg(test)]
mod prompts {
    use std::collections::HashSet;

    use gate_model::{Api, Arm, Cache, Plan, PlannedRequest, Prompt, Prompts, Role};
    use gate_plan::SpecPrompts;

    use crate::support::{hex_digest, plan, request, spec, text, texts, without_nonce};

    #[test]
    fn a_prompt_has_about_its_planned_tokens() {
        for seed in [0, 1, 2] {
            let prompts = SpecPrompts::new(&spec(seed), "run", &[]);
            for (index, planned) in (1..400).chain((400..2100).step_by(7)).chain([5000, 20_000]).enumerate() {
                let request = request(index as u32, planned);
                for prompt in [prompts.measured(&request, &[]), prompts.warmup(&request)] {
                    let tokens = gate_tokens::estimate(text(&prompt));
                    // Between the shortest message and one with a passage, only so many lengths exist.
                    let off = tokens.abs_diff(planned.max(13));
                    assert!(off <= if planned < 25 { 4 } else { 1 }, "{tokens} for {planned}: {}", text(&prompt));
                }
            }
        }
    }

    #[test]
    fn equal_seed_and_index_give_equal_text_apart_from_the_nonce() {
        let spec = spec(9);
        let (one, other) = (SpecPrompts::new(&spec, "one", &[]), SpecPrompts::new(&spec, "other", &[]));
        for request in &plan(&spec).requests {
            let (left, right) = (one.measured(request, &[]), other.measured(request, &[]));
            assert_eq!(without_nonce(&left), without_nonce(&right));
            assert_ne!(text(&left), text(&right));
            assert_eq!(left, SpecPrompts::new(&spec, "one", &[]).measured(request, &[]));
            assert_eq!(left.messages[0].role, Role::User);
        }
    }

    #[test]
    fn no_two_requests_share_a_text_or_the_words_they_start_with() {
        let spec = spec(4);
        let prompts = SpecPrompts::new(&spec, "run", &[]);
        let all = texts(&prompts, &plan(&spec));
        let passages: HashSet<&str> = all.iter().map(|text| text.split_once('\n').unwrap().1).collect();
        assert_eq!(passages.len(), all.len());
        let heads: HashSet<Vec<&str>> = all.iter().map(|text| text.split(' ').take(2).collect()).collect();
        assert_eq!(heads.len(), all.len());

        // Too short for passages of their own: the nonce alone tells them apart.
        let tiny: HashSet<String> =
            (0..5000).map(|index| text(&prompts.measured(&request(index, 5), &[])).to_owned()).collect();
        assert_eq!(tiny.len(), 5000);
    }

    #[test]
    fn both_arms_of_a_pair_get_the_same_text() {
        let prompts = SpecPrompts::new(&spec(4), "run", &[]);
        let (mut target, mut reference) = (request(8, 300), request(9, 300));
        (target.pair, reference.pair, reference.arm) = (Some(4), Some(4), Arm::Reference);
        assert_eq!(prompts.measured(&target, &[]), prompts.measured(&reference, &[]));
    }

    #[test]
    fn the_wish_names_the_planned_output() {
        let prompts = SpecPrompts::new(&spec(4), "run", &[]);
        let prompt = prompts.measured(&request(0, 100), &[]);
        assert!(text(&prompt).ends_with("\nContinue this text in about 150 words."), "{}", text(&prompt));
    }

    #[test]
    fn embeddings_are_asked_without_a_wish() {
        let mut spec = spec(4);
        spec.target.api = Api::OpenaiEmbeddings;
        for (cache, requests) in [(Cache::Bust, 105), (Cache::Warm, 1)] {
            spec.prompts.cache = cache;
            let plan = plan(&spec);
            let prompts = SpecPrompts::new(&spec, "run", &[]);
            let all = texts(&prompts, &plan);
            for (text, request) in all.iter().zip(plan.requests.iter().chain(&plan.warmup)) {
                assert!(!text.contains("Continue this text") && !text.contains("Write 0"), "{text}");
                assert!(gate_tokens::estimate(text).abs_diff(request.input_tokens) <= 1, "{text}");
            }
            assert_eq!(all.iter().collect::<HashSet<_>>().len(), requests);
            // Even the shortest has a passage.
            let shortest = prompts.measured(&PlannedRequest { output_tokens: 0, ..request(3, 1) }, &[]);
            assert!(!text(&shortest).trim().is_empty());
        }
    }

    #[test]
    fn warm_up_and_measured_prose_share_no_sentence() {
        let lines = |text: &'static str| text.lines().collect::<HashSet<&str>>();
        let measured = lines(include_str!("../src/pride_and_prejudice.txt"));
        let warmup = lines(include_str!("../src/persuasion.txt"));
        assert!(measured.len() > 1000 && warmup.len() > 200);
        assert!(measured.is_disjoint(&warmup));

        let spec = spec(2);
        let prompts = SpecPrompts::new(&spec, "run", &[]);
        for index in 0..50 {
            let request = request(index, 800);
            assert!(warmup.iter().all(|sentence| !text(&prompts.measured(&request, &[])).contains(sentence)));
            assert!(measured.iter().all(|sentence| !text(&prompts.warmup(&request)).contains(sentence)));
        }
    }

    #[test]
    fn a_seed_gives_these_texts_for_ever() {
        let spec = spec(0);
        let all = texts(&SpecPrompts::new(&spec, "run", &[]), &plan(&spec));
        assert_eq!(
            hex_digest(all.join("\n\n").as_bytes()),
            "560ae9b6a2dd0ca6f77c47d529071fc6ec7a8adeeeef5352ed366e5b566652ed"
        );
    }

    #[test]
    fn a_warm_cache_is_measured_with_one_text_of_the_mean_length() {
        let mut spec = spec(3);
        spec.prompts.cache = Cache::Warm;
        let plan = plan(&spec);
        let prompts = SpecPrompts::new(&spec, "run", &[]);
        prompts.fit(&[(550, 700)]);
        let all = texts(&prompts, &plan);
        assert_eq!(all.len(), 105);
        assert!(all.iter().all(|text| text == &all[0]));
        assert!(gate_tokens::estimate(&all[0]).abs_diff(550) <= 1);
        assert!(all[0].ends_with("\nContinue this text in about 150 words."), "{}", all[0]);
        assert_eq!(all, texts(&SpecPrompts::new(&spec, "another run", &[]), &plan));
        assert!(plan.warmup.iter().chain(&plan.requests).all(|request| request.input_tokens == 550));

        // Everything else is as planned without it.
        let mut fresh = spec.clone();
        fresh.prompts.cache = Cache::Bust;
        let fresh = crate::support::plan(&fresh);
        let outputs = |plan: &Plan| plan.requests.iter().map(|r| (r.at, r.output_tokens)).collect::<Vec<_>>();
        assert_eq!(outputs(&plan), outputs(&fresh));

        spec.load.seed = 4;
        assert_ne!(all[0], texts(&SpecPrompts::new(&spec, "run", &[]), &plan)[0]);
        spec.prompts.input_tokens.max = 400;
        assert!(crate::support::plan(&spec).requests.iter().all(|request| request.input_tokens == 400));
    }

    #[test]
    fn a_system_prompt_goes_first_and_on_top() {
        let mut spec = spec(4);
        let request = request(2, 300);
        for cache in [Cache::Bust, Cache::Warm] {
            (spec.prompts.cache, spec.prompts.system) = (cache, None);
            let without = SpecPrompts::new(&spec, "run", &[]);
            spec.prompts.system = Some("You are terse.".to_owned());
            let with = SpecPrompts::new(&spec, "run", &[]);
            for (with, without) in [
                (with.measured(&request, &[]), without.measured(&request, &[])),
                (with.warmup(&request), without.warmup(&request)),
            ] {
                let system = &with.messages[0];
                assert_eq!((system.role, system.text.as_str()), (Role::System, "You are terse."));
                assert_eq!(with.messages[1..], without.messages);
            }
        }
    }

    /// A server's count, by a tokenizer with a small vocabulary and a template of 35 tokens: up to six letters of a
    /// word are a token, and so is each mark.
    fn counted(prompt: &Prompt) -> u64 {
        let text = text(prompt);
        let words =
            text.split(|c: char| !c.is_alphabetic()).map(|word| word.chars().count().div_ceil(6)).sum::<usize>();
        let marks = text.chars().filter(|c| !c.is_alphabetic() && *c != ' ').count();
        (words + marks + 35) as u64
    }

    #[test]
    fn measured_prompts_come_to_what_the_server_counts() {
        for seed in 0..10 {
            let spec = spec(seed);
            let plan = plan(&spec);
            let prompts = SpecPrompts::new(&spec, "run", &[]);
            // The mean of counted ÷ planned, less 1.
            let bias = || {
                let ratio = |r| counted(&prompts.measured(r, &[])) as f64 / f64::from(r.input_tokens);
                plan.requests.iter().map(ratio).sum::<f64>() / plan.requests.len() as f64 - 1.0
            };
            let before = bias();
            assert!(before > 0.15, "{seed}: {before}");
            let warmup: Vec<(u32, u64)> =
                plan.warmup.iter().map(|r| (r.input_tokens, counted(&prompts.warmup(r)))).collect();
            prompts.fit(&warmup);
            let after = bias();
            assert!(after.abs() < 0.04, "{seed}: {before} became {after}");

            // Equal counts, equal texts; and the first fit is the one that counts.
            let again = SpecPrompts::new(&spec, "run", &[]);
            again.fit(&warmup);
            again.fit(&[(550, 1100)]);
            assert_eq!(texts(&again, &plan), texts(&prompts, &plan));
            assert_eq!(again.warmup(&plan.warmup[0]), SpecPrompts::new(&spec, "run", &[]).warmup(&plan.warmup[0]));
        }
    }

    #[test]
    fn without_a_count_prompts_stay_as_they_are() {
        let spec = spec(1);
        let prompts = SpecPrompts::new(&spec, "run", &[]);
        prompts.fit(&[]);
        prompts.fit(&[(550, 0)]);
        assert_eq!(texts(&prompts, &plan(&spec)), texts(&SpecPrompts::new(&spec, "run", &[]), &plan(&spec)));
    }

    #[test]
    fn what_a_system_prompt_adds_is_not_taken_from_the_user() {
        let mut spec = spec(1);
        spec.prompts.system = Some("Be kind. ".repeat(100));
        let prompts = SpecPrompts::new(&spec, "run", &[]);
        prompts.fit(&[(400, 800), (600, 1020)]);
        let user = |tokens| prompts.measured(&request(0, tokens), &[]).messages[1].text.clone();
        for planned in [220, 550, 1100] {
            assert!(gate_tokens::estimate(&user(planned)).abs_diff(planned * 10 / 11) <= 1);
        }
    }
}
