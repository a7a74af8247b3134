//! Decodes every recorded and constructed stream of the dialects that exist, in many splits, and compares with an
//! independent decode.

#[cfg(test)]
mod streams {
    use std::path::{Path, PathBuf};

    use gate_model::{Api, Delivery, Outcome};
    use gate_wire::{BodyEnd, Event, EventKind, StreamState, Undecodable, conclude, dialect};
    use rand::{RngExt, SeedableRng};
    use rand_chacha::ChaCha8Rng;
    use serde_json::{Value, json};

    const RANDOM_SPLITS: u64 = 200;

    fn workspace() -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
    }

    /// How an entry's body is decoded and how it ended.
    #[derive(Clone, Copy)]
    struct Case {
        api: Api,
        delivery: Delivery,
        end: BodyEnd,
    }

    impl Case {
        /// `None` where the entry is of a dialect that does not exist here.
        fn of(entry: &Value) -> Option<Self> {
            let api = match entry["dialect"].as_str().unwrap() {
                "openai-chat" => Api::OpenaiChat,
                "openai-completions" => Api::OpenaiCompletions,
                "anthropic-messages" => Api::Anthropic,
                "ollama-chat" | "ollama-generate" => Api::Ollama,
                _ => return None,
            };
            let delivery = if entry["delivery"] == "whole" { Delivery::Whole } else { Delivery::Streamed };
            let end = if entry["end"] == "reset" { BodyEnd::Reset } else { BodyEnd::Clean };
            Some(Self { api, delivery, end })
        }
    }

    fn decode<'a>(parts: impl IntoIterator<Item = &'a [u8]>, case: Case) -> (Vec<Event>, StreamState) {
        let mut decoder = dialect(case.api).decoder(case.delivery);
        let mut events = Vec::new();
        for part in parts {
            decoder.feed(part, &mut |event| events.push(event));
        }
        if case.end == BodyEnd::Clean {
            decoder.finish(&mut |event| events.push(event));
        }
        (events, decoder.state().clone())
    }

    /// The body of a raw HTTP/1.1 response: headers and chunking removed.
    fn body_of(raw: &[u8]) -> Vec<u8> {
        let head = raw.windows(4).position(|window| window == b"\r\n\r\n").unwrap() + 4;
        let headers = String::from_utf8_lossy(&raw[..head]).to_lowercase();
        let (mut rest, mut body) = (&raw[head..], Vec::new());
        if !headers.contains("transfer-encoding: chunked") {
            return rest.to_vec();
        }
        while let Some(line) = rest.windows(2).position(|window| window == b"\r\n") {
            let size = usize::from_str_radix(std::str::from_utf8(&rest[..line]).unwrap(), 16).unwrap();
            body.extend(&rest[line + 2..line + 2 + size]);
            rest = &rest[line + 2 + size + 2..];
        }
        body
    }

    fn summary(events: &[Event], state: &StreamState) -> Value {
        let first = |wanted: fn(EventKind) -> bool| events.iter().position(|event| wanted(event.kind));
        let count = |wanted| events.iter().filter(|event| event.kind == wanted).count();
        json!({
            "events": state.events,
            "first_token_event": first(EventKind::is_content),
            "first_text_event": first(|kind| kind == EventKind::Text),
            "content_events": state.content_events,
            "text": count(EventKind::Text),
            "usage": state.usage,
            "finish_reason": state.finish_reason,
            "ended": state.ended,
            "error": state.error.as_ref().map(|error| json!({"type": error.kind, "message": error.message})),
        })
    }

    fn expected(expect: &Value) -> Value {
        let kinds = &expect["events_by_kind"];
        let own = expect["error"]["type"].as_str().is_some_and(|kind| kind.starts_with("gate:"));
        let mut wanted = json!({
            "text": kinds["text"].as_u64().unwrap() + kinds["refusal"].as_u64().unwrap(),
            "error": if own { &Value::Null } else { &expect["error"] },
        });
        let fields = "events first_token_event first_text_event content_events usage finish_reason ended";
        for field in fields.split(' ') {
            wanted[field] = expect[field].clone();
        }
        wanted
    }

    /// What the index's own rule makes of an expected decode.
    fn expected_outcome(entry: &Value) -> Outcome {
        if let Some(name) = entry["outcome"].as_str() {
            return Outcome::ALL.into_iter().find(|outcome| outcome.name() == name).unwrap();
        }
        let expect = &entry["expect"];
        let ended = expect["ended"] == true || !expect["finish_reason"].is_null();
        match expect["error"]["type"].as_str() {
            _ if entry["content_encoding"] == "gzip" => Outcome::Decode,
            Some(kind) if kind.starts_with("gate:") => Outcome::Decode,
            _ if !expect["error"].is_null() => Outcome::StreamError,
            _ if !ended => Outcome::Truncated,
            _ if expect["content_events"] == 0 => Outcome::Empty,
            _ => Outcome::Ok,
        }
    }

    fn check(folder: &Path, entry: &Value, case: Case) -> Result<(), String> {
        let raw = std::fs::read(folder.join(entry["file"].as_str().unwrap())).unwrap();
        assert_eq!(raw.len() as u64, entry["bytes"], "{} was changed on its way here", entry["file"]);
        let body = if entry["framing"] == "http" { body_of(&raw) } else { raw };
        let whole = decode([&body[..]], case);
        let (outcome, message) = conclude(&whole.1, entry["content_type"].as_str(), case.end);
        if outcome != expected_outcome(entry) {
            return Err(format!("outcome {outcome:?} ({message:?}), expected {:?}", expected_outcome(entry)));
        }
        if message.is_some() != (outcome != Outcome::Ok) {
            return Err(format!("{outcome:?} with message {message:?}"));
        }
        if entry["content_encoding"] == "gzip" {
            assert_eq!(whole.1.failure, Some(Undecodable::Compressed { encoding: "gzip" }));
        } else {
            let (seen, wanted) = (summary(&whole.0, &whole.1), expected(&entry["expect"]));
            if seen != wanted {
                return Err(format!("\n    seen     {seen}\n    expected {wanted}"));
            }
        }
        if decode(body.chunks(1), case) != whole {
            return Err("byte by byte it differs".to_owned());
        }
        for seed in 0..RANDOM_SPLITS {
            let mut random = ChaCha8Rng::seed_from_u64(seed);
            let count = random.random_range(1..20);
            let mut cuts: Vec<usize> = (0..count).map(|_| random.random_range(0..=body.len())).collect();
            cuts.extend([0, body.len()]);
            cuts.sort_unstable();
            if decode(cuts.windows(2).map(|cut| &body[cut[0]..cut[1]]), case) != whole {
                return Err(format!("split at {cuts:?} it differs"));
            }
        }
        Ok(())
    }

    fn run(folder: &Path) {
        let index: Value = serde_json::from_slice(&std::fs::read(folder.join("index.json")).unwrap()).unwrap();
        let entries = index["entries"].as_array().unwrap().iter();
        let entries: Vec<_> = entries.filter_map(|entry| Some((entry, Case::of(entry)?))).collect();
        for api in Api::ALL {
            assert!(entries.iter().any(|(_, case)| case.api == api), "nothing of {}", api.name());
        }
        let failures: Vec<_> = entries
            .iter()
            .filter_map(|(entry, case)| Some(format!("{}: {}", entry["file"], check(folder, entry, *case).err()?)))
            .collect();
        println!("{} of {} decoded as expected", entries.len() - failures.len(), entries.len());
        assert!(failures.is_empty(), "\n{}", failures.join("\n"));
    }

    #[test]
    fn own_fixtures() {
        run(&workspace().join("fixtures/wire"));
    }

    #[test]
    fn shared_corpus() {
        let folder =
            std::env::var_os("GATE_WIRE_CORPUS").map_or_else(|| workspace().join("../shared/wire"), PathBuf::from);
        if !folder.join("index.json").is_file() {
            println!("skipped: no streams in GATE_WIRE_CORPUS, nor in ../shared/wire beside the workspace");
            return;
        }
        run(&folder);
    }
}
