use std::collections::HashSet;

use gate_model::{
    Arm, Cache, Endpoint, GateSpec, Image, Iterations, Latency, Nanos, PlannedRequest, Prompts, Role, Shape,
    SharedPrefix, Target, Turns,
};
use gate_plan::{Extent, Files, SpecPrompts};

use crate::support::{error, plan, spec};

fn chatty(seed: u64) -> GateSpec {
    let mut spec = spec(seed);
    spec.load.iterations = Iterations::Fixed(200);
    spec.prompts.turns = Turns { min: 2, max: 5 };
    let seconds = Nanos::from_secs;
    spec.prompts.think = Latency { mean: seconds(4), stddev: seconds(2), shape: Shape::Normal };
    spec
}

/// The turns of each conversation of an arm.
fn conversations(requests: &[PlannedRequest]) -> Vec<Vec<PlannedRequest>> {
    let mut all: Vec<Vec<PlannedRequest>> = Vec::new();
    for request in requests {
        match request.turn {
            0 => all.push(vec![*request]),
            _ => all.last_mut().unwrap().push(*request),
        }
    }
    all
}

#[test]
fn a_conversation_s_turns_are_neighbours_and_later_ones_follow_the_answer() {
    let spec = chatty(3);
    let plan = plan(&spec);
    assert_eq!((plan.requests.len(), plan.looks.as_slice()), (200, &[200][..]));
    let all = conversations(&plan.requests);
    let counts: Vec<usize> = all.iter().map(Vec::len).collect();
    // The last may be cut where the plan ends.
    for turns in 2..=5 {
        let of = counts[..counts.len() - 1].iter().filter(|count| **count == turns).count();
        assert!((8..=20).contains(&of), "{of} of {turns}: {counts:?}");
    }
    for (number, turns) in (0..).zip(&all) {
        for (turn, request) in (0..).zip(turns) {
            assert_eq!((request.turn, request.conversation()), (turn, number));
            assert_eq!(request.opening(), turns[0].index);
        }
    }
    assert!(all.windows(2).all(|two| two[0][0].at < two[1][0].at));
    let thinks: Vec<f64> =
        plan.requests.iter().filter(|request| request.turn > 0).map(|request| request.at.as_secs_f64()).collect();
    let mean = thinks.iter().sum::<f64>() / thinks.len() as f64;
    // Redrawn below zero, the mean is 4.11.
    assert!((mean - 4.11).abs() < 0.25 && thinks.iter().all(|think| *think >= 0.0), "{mean}");
    // The end of the plan changes nothing before it.
    let mut shorter = spec.clone();
    shorter.load.iterations = Iterations::Fixed(77);
    assert_eq!(crate::support::plan(&shorter).requests, plan.requests[..77]);
}

#[test]
fn side_by_side_the_arms_alternate_within_a_conversation() {
    let alone = plan(&chatty(3));
    let mut spec = chatty(3);
    spec.reference = Some(Target::new(Endpoint::Url("http://127.0.0.1:9000/v1".to_owned())));
    let both = plan(&spec);
    for arm in [Arm::Target, Arm::Reference] {
        let own = both.requests.iter().filter(|request| request.arm == arm);
        let own: Vec<_> =
            own.map(|r| PlannedRequest { index: r.pair.unwrap(), arm: Arm::Target, pair: None, ..*r }).collect();
        assert_eq!(own, alone.requests);
    }
    let firsts: Vec<(u32, Arm)> = both.requests.iter().step_by(2).map(|r| (r.conversation(), r.arm)).collect();
    assert!(firsts.windows(2).all(|two| two[0].0 != two[1].0 || two[0].1 == two[1].1));
    assert!(both.requests.chunks(2).all(|two| two[0].pair == two[1].pair && two[0].arm != two[1].arm));
    assert!(firsts.iter().any(|(_, arm)| *arm == Arm::Reference));
}

#[test]
fn a_later_turn_says_again_what_was_said_and_answered() {
    for cache in [Cache::Bust, Cache::Natural] {
        let mut spec = chatty(4);
        spec.prompts.cache = cache;
        spec.prompts.system = Some("S".to_owned());
        // Also where the run is shorter than the longest plan.
        let plan = gate_plan::plans(&spec, Extent::Base, &[]).unwrap().remove(0);
        let prompts = SpecPrompts::new(&spec, "run", &[]);
        let mut new = HashSet::new();
        for turns in conversations(&plan.requests) {
            let mut said = prompts.measured(&turns[0], &[]).messages;
            let mut answers = Vec::new();
            new.insert(said.last().unwrap().text.clone());
            for request in &turns[1..] {
                let answer = format!("answer {}", request.index);
                answers.push(answer.clone());
                let now = prompts.measured(request, &answers).messages;
                assert_eq!(now[..said.len()], said);
                let [replied, asked] = &now[said.len()..] else { panic!("{now:?}") };
                assert_eq!((replied.role, &replied.text), (Role::Assistant, &answer));
                assert_eq!(asked.role, Role::User);
                // Its own message has its planned length, without a nonce.
                assert!(gate_tokens::estimate(&asked.text).abs_diff(request.input_tokens) <= 1);
                new.insert(asked.text.clone());
                said = now;
            }
        }
        assert_eq!(new.len(), plan.requests.len());
    }
}

#[test]
fn a_shared_prefix_comes_first_and_is_part_of_the_length() {
    let mut spec = spec(8);
    spec.prompts.shared_prefix = Some(SharedPrefix { tokens: 200, groups: 3 });
    spec.prompts.input_tokens.min = 250;
    spec.prompts.system = Some("S".to_owned());
    let plan = plan(&spec);
    let prompts = SpecPrompts::new(&spec, "run", &[]);
    let other = SpecPrompts::new(&spec, "another", &[]);
    let mut prefixes = vec![HashSet::new(); 3];
    for request in plan.requests.iter().chain(&plan.warmup) {
        let is_warmup = plan.warmup.iter().any(|warmup| std::ptr::eq(warmup, request));
        let say = |prompts: &SpecPrompts| {
            let prompt = if is_warmup { prompts.warmup(request) } else { prompts.measured(request, &[]) };
            assert_eq!(prompt.messages[0].text, "S");
            prompt.messages[1].text.clone()
        };
        let (one, two) = (say(&prompts), say(&other));
        assert!(gate_tokens::estimate(&one).abs_diff(request.input_tokens) <= 1);
        // Runs differ only in the nonce, which comes after the prefix.
        let same = one.chars().zip(two.chars()).take_while(|(a, b)| a == b).count();
        let prefix: String = one.chars().take(same).collect();
        let prefix = prefix[..=prefix.rfind('\n').unwrap()].to_owned();
        assert!(gate_tokens::estimate(&prefix).abs_diff(200) <= 1, "{}", gate_tokens::estimate(&prefix));
        prefixes[usize::from(request.group)].insert(prefix);
    }
    assert!(prefixes.iter().all(|of_group| of_group.len() == 1), "{prefixes:?}");
    assert_eq!(prefixes.iter().flatten().collect::<HashSet<_>>().len(), 3);
    let of_group = |group| plan.requests.iter().filter(|request| request.group == group).count();
    assert!((0..3).all(|group| (27..=40).contains(&of_group(group))));

    spec.prompts.input_tokens.min = 210;
    assert_eq!(
        error(&spec, &Files::default()),
        "`prompts.shared_prefix` has 200 tokens, and a prompt may have 210 in all: raise the least of \
         `prompts.input_tokens` (its `min`) to 216 or more, or shorten the prefix"
    );
}

#[test]
fn natural_prompts_are_sent_without_a_nonce_and_each_once() {
    for tokens in [550, 60, 12] {
        let mut spec = spec(2);
        spec.prompts.cache = Cache::Natural;
        spec.load.iterations = Iterations::Fixed(2_000);
        (spec.prompts.input_tokens.mean, spec.prompts.input_tokens.stddev) = (f64::from(tokens), 0.0);
        spec.prompts.input_tokens.min = tokens;
        let plan = plan(&spec);
        let say = |run: &str| {
            let prompts = SpecPrompts::new(&spec, run, &[]);
            plan.requests.iter().map(|r| prompts.measured(r, &[]).messages[0].text.clone()).collect::<Vec<_>>()
        };
        let all = say("run");
        assert_eq!(all, say("another"));
        assert_eq!(all.iter().collect::<HashSet<_>>().len(), 2_000, "{tokens} tokens");
        let beginnings: HashSet<&str> = all.iter().map(|text| text.get(..20).unwrap()).collect();
        assert!(beginnings.iter().all(|begin| !begin.contains("Question")) || tokens < 20, "the number is at the end");
    }
}

#[test]
fn images_go_with_the_first_turn_and_stay_in_the_history() {
    let spec = chatty(1);
    let image = Image::Url("https://example.com/cat.png".to_owned());
    let files = [Files { images: vec![image.clone()], ..Files::default() }];
    let prompts = SpecPrompts::new(&spec, "run", &files);
    for request in &plan(&spec).requests[..20] {
        let answers = vec!["yes".to_owned(); request.turn.into()];
        let messages = prompts.measured(request, &answers).messages;
        assert_eq!(messages[0].images, std::slice::from_ref(&image));
        assert!(messages[1..].iter().all(|message| message.images.is_empty()));
    }
    assert_eq!(prompts.warmup(&plan(&spec).warmup[0]).messages[0].images, [image]);
}

#[test]
fn turns_out_of_order_are_refused() {
    let mut spec = spec(0);
    spec.prompts.turns = Turns { min: 3, max: 2 };
    let words = "`prompts.turns` is 3..2: it must begin at 1 or more, end at 1000 at most, and not before it begins";
    assert_eq!(error(&spec, &Files::default()), words);
}
