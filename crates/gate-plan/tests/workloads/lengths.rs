use std::collections::HashSet;
use std::sync::Arc;

use gate_model::{CountTokens, GateSpec, Iterations, Length, Plan, PlannedRequest, Prompts, Shape};
use gate_plan::{Files, LengthFile, SpecPrompts};
use gate_tokens::Tokenizer;

use crate::support::{plan, plan_of, spec};

/// Mean and standard deviation of a distribution redrawn until it is within its bounds, by a fine sum.
fn moments(length: &Length) -> (f64, f64) {
    let (mean, stddev) = (length.mean, length.stddev);
    let variance = (stddev / mean).powi(2).ln_1p();
    let density = |x: f64| match length.shape {
        Shape::Normal => (-0.5 * ((x - mean) / stddev).powi(2)).exp(),
        Shape::Lognormal => (-0.5 * (x.ln() - mean.ln() + variance / 2.0).powi(2) / variance).exp() / x,
        Shape::Uniform => f64::from(u8::from((x - mean).abs() <= stddev * 3.0_f64.sqrt())),
    };
    let (mut mass, mut first, mut second) = (0.0, 0.0, 0.0);
    for step in 0..(length.max - length.min + 1) * 20 {
        let x = f64::from(length.min) - 0.5 + (f64::from(step) + 0.5) / 20.0;
        let weight = density(x);
        (mass, first, second) = (mass + weight, first + x * weight, second + x * x * weight);
    }
    let mean = first / mass;
    (mean, (second / mass - mean * mean).sqrt())
}

fn seen(lengths: &[f64]) -> (f64, f64) {
    let n = lengths.len() as f64;
    let mean = lengths.iter().sum::<f64>() / n;
    (mean, (lengths.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / n).sqrt())
}

/// Holds 2,000 lengths, and the first 50 of them, against the distribution that was asked for.
fn assert_as_planned(lengths: &[f64], length: &Length, what: &str) {
    let (mean, stddev) = moments(length);
    let (of_all, spread) = seen(lengths);
    let (of_few, _) = seen(&lengths[..50]);
    assert_eq!(lengths.len(), 2_000);
    assert!((of_all / mean - 1.0).abs() < 0.01, "{what}: mean {of_all} of {mean}");
    assert!((spread / stddev - 1.0).abs() < 0.03, "{what}: stddev {spread} of {stddev}");
    assert!((of_few / mean - 1.0).abs() < 0.03, "{what}: mean of 50 {of_few} of {mean}");
}

fn of_2000(seed: u64) -> GateSpec {
    let mut spec = spec(seed);
    spec.load.iterations = Iterations::Fixed(2_000);
    spec
}

#[test]
fn planned_lengths_have_the_truncated_distribution_s_moments() {
    for seed in 0..20 {
        for shape in [Shape::Normal, Shape::Lognormal, Shape::Uniform] {
            for (mean, stddev, min, max) in [(550.0, 150.0, 50, 2000), (550.0, 300.0, 300, 900)] {
                let mut spec = of_2000(seed);
                spec.prompts.input_tokens = Length { mean, stddev, min, max, shape };
                let plan = plan(&spec);
                let lengths = |tokens: fn(&PlannedRequest) -> u32| -> Vec<f64> {
                    plan.requests.iter().map(|request| f64::from(tokens(request))).collect()
                };
                let what = format!("{shape:?} {stddev}, seed {seed}");
                assert_as_planned(&lengths(|request| request.input_tokens), &spec.prompts.input_tokens, &what);
                assert_as_planned(&lengths(|request| request.output_tokens), &spec.prompts.output_tokens, &what);
            }
        }
    }
}

/// The lengths of what is said, and that nothing is said twice.
fn said(prompts: &SpecPrompts, plan: &Plan, count: impl Fn(&str) -> u64) -> Vec<f64> {
    let mut texts = HashSet::new();
    let length = |request: &PlannedRequest| {
        let text = prompts.measured(request, &[]).messages[0].text.clone();
        let tokens = count(&text);
        assert!(texts.insert(text.split_once('\n').unwrap().1.to_owned()), "said twice: {text}");
        tokens as f64
    };
    plan.requests.iter().map(length).collect()
}

#[test]
fn what_is_sent_has_the_planned_distribution_by_the_estimate() {
    let spec = of_2000(1);
    let prompts = SpecPrompts::new(&spec, "run", &[]);
    let lengths = said(&prompts, &plan(&spec), |text| gate_tokens::estimate(text).into());
    assert_as_planned(&lengths, &spec.prompts.input_tokens, "estimate");
}

#[test]
fn what_is_sent_has_the_planned_distribution_by_the_tokenizer_s_own_count() {
    let tiny = include_bytes!("../../../../fixtures/tokenizers/tiny.json");
    let tokenizer = Arc::new(Tokenizer::from_json(tiny).unwrap());
    let spec = of_2000(2);
    let prompts = SpecPrompts::new(&spec, "run", &[]).count_by(0, tokenizer.clone());
    let lengths = said(&prompts, &plan(&spec), |text| tokenizer.count(text).unwrap());
    assert_as_planned(&lengths, &spec.prompts.input_tokens, "tokenizer");
}

#[test]
fn lengths_seen_before_are_each_used_as_often() {
    let text: String = (1..=40).map(|length| format!("{}\n", length * 25)).collect();
    let files = Files {
        input_lengths: Some(LengthFile::parse(&text).unwrap()),
        output_lengths: Some(LengthFile::parse("7\n\n 7 \n9\n").unwrap()),
        ..Files::default()
    };
    let mut spec = spec(5);
    spec.load.iterations = Iterations::Fixed(120);
    let plan = plan_of(&spec, &files);
    let inputs: Vec<u32> = plan.requests.iter().map(|request| request.input_tokens).collect();
    for cycle in inputs.chunks(40) {
        let mut sorted = cycle.to_vec();
        sorted.sort_unstable();
        assert_eq!(sorted, (1..=40).map(|length| length * 25).collect::<Vec<_>>());
        for block in cycle.chunks(10) {
            let tenths: HashSet<u32> = block.iter().map(|length| (length / 25 - 1) / 4).collect();
            assert_eq!(tenths.len(), 10, "{block:?}");
        }
    }
    assert_ne!(inputs[..40], inputs[40..80]);
    let outputs: Vec<u32> = plan.requests.iter().map(|request| request.output_tokens).collect();
    assert!(outputs.chunks(3).all(|cycle| cycle.iter().sum::<u32>() == 23));

    let mut shorter = spec.clone();
    shorter.load.iterations = Iterations::Fixed(33);
    assert_eq!(plan_of(&shorter, &files).requests, plan.requests[..33]);
    let found = LengthFile::parse("7\n\nmany\n").unwrap_err().to_string();
    assert_eq!(found, "line 3 is `many`, and must be a whole number of tokens, from 1 to 10,000,000");
    for long in ["10000001", "1000000000000", "99999999999999999999999"] {
        let found = LengthFile::parse(long).unwrap_err().to_string();
        assert_eq!(found, format!("line 1 is `{long}`, and must be a whole number of tokens, from 1 to 10,000,000"));
    }
    assert_eq!(LengthFile::parse("10000000").unwrap().lengths(), [10_000_000]);
    assert!(LengthFile::parse(" \n").unwrap_err().to_string().starts_with("the file holds no length"));
    assert!(LengthFile::parse("0").is_err());
}
