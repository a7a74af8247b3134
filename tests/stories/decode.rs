//! `gate decode`: what a person sees of a saved stream.

use serde_json::Value;

use crate::harness::{Place, TWO_WORDS, root};

#[test]
fn a_saved_stream_is_shown_and_given_as_json() {
    let place = Place::new();
    place.write("saved.sse", TWO_WORDS);
    let ended = place.gate(&["decode", "saved.sse", "--api", "openai-chat"]);
    ended.expect_code(0);
    for fact in ["4, 2 with content", "event 1", "50 in", "2 out", "length", "terminal event", "outcome       ok\n"] {
        assert!(ended.stdout.contains(fact), "`{fact}` is not in:\n{}", ended.stdout);
    }
    let ended = place.gate(&["decode", "saved.sse", "--api", "openai-chat", "--json"]);
    let seen: Value = serde_json::from_str(&ended.expect_code(0).stdout).unwrap();
    assert_eq!((&seen["content_events"], &seen["usage"]["output"]), (&2.into(), &2.into()));
    assert_eq!((&seen["first_token_event"], &seen["ended"]), (&0.into(), &true.into()));
}

#[test]
fn wrong_input_says_what_is_right() {
    let place = Place::new();
    place.write("saved.sse", TWO_WORDS);
    place.write("empty", "");
    place.write("hostile", "data: {\"error\":{\"message\":\"\\u001b[31mred\\u0007\"}}\n\n");
    place.gate(&["decode", "saved.sse", "--api", "openai"]).expect_code(2).says("openai-chat").says("gemini");
    place.gate(&["decode", "saved.sse", "--api", "custom"]).expect_code(2).says("described by a spec");
    let ended = place.gate(&["decode", "saved.sse", "--api", "anthropic"]);
    let outcome = ended.expect_code(0).stdout.lines().last().unwrap_or_default();
    assert!(outcome.starts_with("outcome       decode: ") && outcome.ends_with("is `target.api` right?"), "{outcome}");
    let ended = place.gate(&["decode", "-", "--api", "openai-chat"]);
    assert!(
        ended.expect_code(0).stdout.contains("without a single event"),
        "standard input is empty: {}",
        ended.stdout
    );
    place.gate(&["decode", "absent.sse", "--api", "openai-chat"]).expect_code(2).says("absent.sse");
    let ended = place.gate(&["decode", "empty", "--api", "openai-chat", "--json"]);
    let seen: Value = serde_json::from_str(&ended.expect_code(0).stdout).unwrap();
    assert_eq!((&seen["events"], &seen["error"]), (&0.into(), &Value::Null));
    let ended = place.gate(&["decode", "hostile", "--api", "openai-chat"]);
    assert!(ended.expect_code(0).stdout.contains("red") && !ended.stdout.contains('\u{1b}'), "{}", ended.stdout);
}

/// Every entry of the shared index whose file is there, by the binary and its dialect's own name.
#[test]
fn the_shared_index_is_decoded_as_expected() {
    let folder = std::env::var_os("GATE_WIRE_CORPUS").map_or_else(|| root().join("../shared/wire"), Into::into);
    let Ok(index) = std::fs::read_to_string(folder.join("index.json")) else {
        println!("skipped: no index.json at GATE_WIRE_CORPUS or ../shared/wire");
        return;
    };
    let index: Value = serde_json::from_str(&index).unwrap();
    let place = Place::new();
    let (mut right, mut wrong) = (0, Vec::new());
    for entry in index["entries"].as_array().unwrap() {
        let file = folder.join(entry["file"].as_str().unwrap()).display().to_string();
        let ended = place.gate(&["decode", &file, "--api", entry["dialect"].as_str().unwrap(), "--json"]);
        let seen: Value = serde_json::from_str(&ended.expect_code(0).stdout).unwrap();
        let differs = entry["expect"].as_object().unwrap().iter().find(|(field, value)| match field.as_str() {
            // Of errors that are the index's own words, only that there is one.
            "error" if value["type"].as_str().is_some_and(|kind| kind.starts_with("gate:")) => seen["error"].is_null(),
            "error" => (&seen["error"]["type"], &seen["error"]["message"]) != (&value["type"], &value["message"]),
            // What was sent as usage is the provider's own.
            "usage_reported" | "terminator" => false,
            field => seen[field] != **value,
        });
        match differs {
            None => right += 1,
            Some((field, value)) => wrong.push(format!("{file}: {field}: {} instead of {value}", seen[field])),
        }
    }
    println!("{right} of {} decoded as expected", right + wrong.len());
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
