//! `gate capacity`: its figures, from first principles, and what it says of wrong input.

use serde_json::Value;

use crate::harness::{Ended, Place, quick_spec};

fn ask(place: &Place, words: &str) -> Ended {
    place.gate(&[&["capacity"], &words.split(' ').collect::<Vec<_>>()[..]].concat())
}

fn answer(place: &Place, words: &str) -> Value {
    let ended = ask(place, &format!("{words} --json"));
    ended.expect_code(0);
    serde_json::from_str(&ended.stdout).unwrap()
}

#[test]
fn a_kv_cache_is_as_large_as_its_formula_says() {
    let place = Place::new();
    let kv = answer(&place, "kv --model llama-3.1-70b --context 8192 --batch 1");
    let asked = kv["cells"].as_array().unwrap().iter().find(|cell| cell["asked"] == true).unwrap();
    assert_eq!(asked["cache_bytes"], 2_u64 * 80 * 8 * 128 * 8_192 * 2);
    assert!(ask(&place, "kv --model llama-3.1-70b").stdout.contains("8,192 tokens × 1: 2.5 GiB (2,684,354,560 bytes)"));
    // Every cell of the table is its context times its batch.
    for cell in kv["cells"].as_array().unwrap() {
        let [context, batch, bytes] = ["context", "batch", "cache_bytes"].map(|key| cell[key].as_u64().unwrap());
        assert_eq!(bytes, 327_680 * context * batch);
    }

    place.write(
        "config.json",
        r#"{"num_hidden_layers": 4, "num_attention_heads": 8, "num_key_value_heads": 2, "hidden_size": 256}"#,
    );
    let own =
        answer(&place, "kv --config config.json --context 100 --batch 3 --dtype fp8 --parameters 1B --gpu-memory 2GB");
    let asked = own["cells"].as_array().unwrap().iter().find(|cell| cell["asked"] == true).unwrap();
    assert_eq!(asked["cache_bytes"], 2 * 4 * 2 * 32 * 100 * 3);
    assert_eq!(
        (&own["weights_bytes"], &asked["fit"]["memory"]),
        (&1_000_000_000_u64.into(), &2_000_000_000_u64.into())
    );
    for (memory, words) in
        [("1.2GB", "fits"), ("1.1GB", "warning: over 85 %"), ("1.04GB", "warning: over 95 %"), ("1GB", "does not fit")]
    {
        let ended = ask(
            &place,
            &format!("kv --config config.json --dtype fp8 --context 100 --parameters 1B --gpu-memory {memory}"),
        );
        assert!(ended.stdout.contains(words), "{memory}: {}", ended.stdout);
    }
}

#[test]
fn limits_leave_out_what_is_cached_and_name_the_one_that_binds() {
    let place = Place::new();
    let load = "tokens --rps 50 --input-tokens 800 --output-tokens 200 --cached 60%";
    let tokens = answer(&place, load);
    assert_eq!(tokens["need"]["rpm"], 3_000);
    assert_eq!((&tokens["need"]["itpm"], &tokens["need"]["otpm"]), (&960_000.into(), &600_000.into()));
    assert!(ask(&place, load).stdout.contains("3,000 RPM, 960,000 ITPM"));
    // A file of one's own wins.
    let tiers = |otpm: u32| {
        format!("date: d\nsource: ours\ntiers:\n- {{provider: acme, model: big, tier: one, rpm: 4000, otpm: {otpm}}}\n")
    };
    place.write("tiers.yaml", &tiers(599_999));
    let own = answer(&place, &format!("{load} --tiers tiers.yaml"));
    let tier = &own["tiers"][0];
    assert_eq!((&tier["limits"][0]["limit"], &tier["suffices"]), (&"otpm".into(), &false.into()));
    let ended = ask(&place, &format!("{load} --tiers tiers.yaml"));
    assert!(
        ended.stdout.contains("acme big: no tier suffices: otpm of tier one allows 599,999, and 600,000 are needed")
    );
    place.write("tiers.yaml", &tiers(600_000));
    assert!(ask(&place, &format!("{load} --tiers tiers.yaml")).stdout.contains("acme big: tier one suffices"));
}

#[test]
fn instances_and_hosts_are_counted() {
    let place = Place::new();
    // ⌈10,000 ÷ (2,000 × 0.65)⌉ = ⌈7.69⌉.
    assert_eq!(answer(&place, "instances --peak 10000 --saturation 2000")["instances"], 8);
    let host = answer(
        &place,
        "host --rps 1 --input-tokens 800 --output-tokens 200 --cached 50% --input-price 3 --cached-price 0.3 --output-price 15 \
         --gpu-price 2 --gpus 2 --instances 2",
    );
    // $192 a day buy as many tokens at $4.32 a million: (400 × $3 + 400 × $.30 + 200 × $15) ÷ 1,000.
    assert_eq!(host["costs"]["offers"][0]["break_even"], 44_444_444);
}

#[test]
fn a_run_answers_what_flags_do_not() {
    let place = Place::new();
    place.write(
        "run.yaml",
        &quick_spec("run", "http://127.0.0.1:9", 30)
            .replace("url: 'http://127.0.0.1:9', model: m, ready: {within: 2s}", "sim: {ttft: 20ms, tpot: 1ms}"),
    );
    place.gate(&["run", "run.yaml", "--output", "run.jsonl"]).expect_code(0);
    let run: Vec<Value> = place.read("run.jsonl").lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let samples: Vec<&Value> = run.iter().filter(|line| line["type"] == "sample").collect();
    let mean =
        |key: &str| samples.iter().map(|one| one["usage"][key].as_f64().unwrap()).sum::<f64>() / samples.len() as f64;
    let due: Vec<f64> = samples.iter().map(|one| one["intended"].as_f64().unwrap() / 1e9).collect();
    let span = due.iter().copied().fold(f64::MIN, f64::max) - due.iter().copied().fold(f64::MAX, f64::min);

    let seen = answer(&place, "--from run.jsonl");
    for (key, expected) in [("input_tokens", mean("input")), ("output_tokens", mean("output")), ("rps", 29.0 / span)] {
        let shown = seen["traffic"][key].as_f64().unwrap();
        assert!((shown / expected - 1.0).abs() < 1e-9, "{key}: {shown} {expected}");
    }
    assert!(seen["saturation"].is_null());
    let tokens = answer(&place, "tokens --from run.jsonl --rps 10 --output-tokens 16");
    assert_eq!((&tokens["need"]["rpm"], &tokens["need"]["otpm"]), (&600.into(), &9_600.into()));
    ask(&place, "instances --peak 10 --from run.jsonl").expect_code(2).says("it is no run of a ramp");
}

#[test]
fn wrong_input_names_what_is_wrong_and_what_helps() {
    let place = Place::new();
    place.write("bad.json", "{\"num_hidden_layers\": 2}");
    place.write("tiers.yaml", "date: d\nsource: s\ntiers: [{provider: p, model: m, tier: t, prm: 4}]\n");
    let load = "--rps 1 --input-tokens 1 --output-tokens 1";
    for (words, said) in [
        ("", "say what to plan"),
        ("kv", "--model <NAME>"),
        ("kv --model llama-3.1-71b", "is it `llama-3.1-70b`?"),
        ("kv --model llama-3.1-70b --context 0", "--context <TOKENS>"),
        ("kv --model llama-3.1-70b --context 99999999999999999 --batch 99999999999999999", "beyond 2^64"),
        ("kv --config bad.json", "bad.json: failed to read `num_attention_heads`"),
        ("kv --config absent.json", "absent.json"),
        ("instances --peak 5", "--saturation <TPS>"),
        ("instances --peak 5 --saturation 1 --headroom 200%", "--headroom <SHARE>"),
        (&format!("tokens {load} --tiers tiers.yaml"), "unknown field `prm`"),
        (&format!("tokens {load} --cached 160%"), "--cached <SHARE>"),
        (&format!("host {load} --input-price 1 --output-price 1"), "nothing to compare with"),
        ("--from absent.jsonl", "absent.jsonl"),
    ] {
        let words: Vec<&str> = words.split_whitespace().collect();
        let ended = place.gate(&[&["capacity"], &words[..]].concat());
        ended.expect_code(2).says(said);
        assert!(ended.stdout.is_empty());
    }
}
