//! Decodes every recorded and constructed stream, in many splits, and compares with an independent decode.

#[cfg(test)]
mod streams {
    use std::fmt::Write as _;
    use std::io::Write as _;
    use std::path::{Path, PathBuf};
    use std::sync::Arc;

    use gate_model::{Api, Delivery, Outcome};
    use gate_wire::{
        BodyEnd, Decoded, Decoder, Dialect, Event, Keep, StreamState, Transcript, Undecodable, by_name, conclude,
        decode_saved,
    };
    use rand::{RngExt, SeedableRng};
    use rand_chacha::ChaCha8Rng;
    use serde_json::{Map, Value, json};

    /// How many random splits there are of a body.
    const RANDOM_SPLITS: u64 = 200;

    fn workspace() -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
    }

    /// The shared recordings, where they are.
    fn shared() -> Option<PathBuf> {
        let folder =
            std::env::var_os("GATE_WIRE_CORPUS").map_or_else(|| workspace().join("../shared/wire"), PathBuf::from);
        let is_there = folder.join("index.json").is_file();
        if !is_there {
            println!("skipped: no streams in GATE_WIRE_CORPUS, nor in ../shared/wire beside the workspace");
        }
        is_there.then_some(folder)
    }

    /// How an entry's body is decoded and how it ended.
    #[derive(Clone)]
    struct Case {
        dialect: Arc<dyn Dialect>,
        delivery: Delivery,
        end: BodyEnd,
    }

    impl Case {
        fn of(entry: &Value) -> Self {
            let name = entry["dialect"].as_str().unwrap();
            let dialect = by_name(name).unwrap_or_else(|| panic!("no dialect {name}"));
            let delivery = if entry["delivery"] == "whole" { Delivery::Whole } else { Delivery::Streamed };
            let end = if entry["end"] == "reset" { BodyEnd::Reset } else { BodyEnd::Clean };
            Self { dialect, delivery, end }
        }

        fn decode<'a>(&self, parts: impl IntoIterator<Item = &'a [u8]>, keep: Keep) -> (Vec<Event>, Box<dyn Decoder>) {
            let mut decoder = self.dialect.decoder(self.delivery, keep);
            let mut events = Vec::new();
            for part in parts {
                decoder.feed(part, &mut |event| events.push(event));
            }
            if self.end == BodyEnd::Clean {
                decoder.finish(&mut |event| events.push(event));
            }
            (events, decoder)
        }

        fn seen<'a>(&self, parts: impl IntoIterator<Item = &'a [u8]>, keep: Keep) -> Seen {
            let (events, decoder) = self.decode(parts, keep);
            Seen { events, state: decoder.state().clone(), transcript: decoder.transcript().cloned() }
        }
    }

    #[derive(PartialEq)]
    struct Seen {
        events: Vec<Event>,
        state: StreamState,
        transcript: Option<Transcript>,
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

    /// What differs from the expected decode, field by field.
    fn difference(decoded: &Decoded, entry: &Value) -> Option<String> {
        let Value::Object(mut seen) = serde_json::to_value(decoded).unwrap() else { panic!("an object") };
        let mut wanted: Map<String, Value> = entry["expect"].as_object().unwrap().clone();
        let kind = |error: &Value| error["type"].as_str().is_some_and(|kind| kind.starts_with("gate:"));
        // Types that begin with `gate:` only mean that it is no success; the project's own index gives an outcome.
        if kind(&wanted["error"]) && !seen["error"].is_null() || kind(&seen["error"]) && entry["outcome"].is_string() {
            seen.insert("error".to_owned(), Value::Null);
            wanted.insert("error".to_owned(), Value::Null);
        }
        // Entries of the project's own have fewer fields.
        if !wanted.contains_key("text_sha256") {
            seen.retain(|field, _| wanted.contains_key(field));
        }
        let mut difference = String::new();
        for field in seen.keys().chain(wanted.keys().filter(|field| !seen.contains_key(*field))) {
            if seen.get(field) != wanted.get(field) {
                let (seen, wanted) = (&seen.get(field), &wanted.get(field));
                write!(difference, "\n    {field}: seen {seen:?}, expected {wanted:?}").unwrap();
            }
        }
        (!difference.is_empty()).then_some(difference)
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

    fn check(folder: &Path, entry: &Value) -> Result<(), String> {
        let case = Case::of(entry);
        let raw = std::fs::read(folder.join(entry["file"].as_str().unwrap())).unwrap();
        assert_eq!(raw.len() as u64, entry["bytes"], "{} was changed on its way here", entry["file"]);
        let body = if entry["framing"] == "http" { body_of(&raw) } else { raw };
        let (events, decoder) = case.decode([&body[..]], Keep::Text);
        let (outcome, message) = conclude(decoder.state(), entry["content_type"].as_str(), case.end);
        if outcome != expected_outcome(entry) {
            return Err(format!("outcome {outcome:?} ({message:?}), expected {:?}", expected_outcome(entry)));
        }
        if message.is_some() != (outcome != Outcome::Ok) {
            return Err(format!("{outcome:?} with message {message:?}"));
        }
        if entry["content_encoding"] == "gzip" {
            assert_eq!(decoder.state().failure, Some(Undecodable::Compressed { encoding: "gzip" }));
        } else if let Some(difference) = difference(&Decoded::of(decoder.as_ref()), entry) {
            return Err(difference);
        }
        let restarts = entry["restarts"].as_u64().unwrap_or(0);
        if u64::from(decoder.state().restarts) != restarts {
            return Err(format!("began again {} times, expected {restarts}", decoder.state().restarts));
        }
        // What is saved is not known to have been asked for whole, nor to have been reset.
        if entry["delivery"].is_null()
            && case.end == BodyEnd::Clean
            && outcome != Outcome::NotStreamed
            && let Some(difference) = difference(&decode_saved(case.dialect.as_ref(), &body), entry)
        {
            return Err(format!("saved: {difference}"));
        }
        let text = Seen { events, state: decoder.state().clone(), transcript: decoder.transcript().cloned() };
        let nothing = case.seen([&body[..]], Keep::Nothing);
        if (&nothing.events, &nothing.state) != (&text.events, &text.state) || nothing.transcript.is_some() {
            return Err(format!("without its text it differs: {:?} and {:?}", nothing.state, text.state));
        }
        for (keep, whole) in [(Keep::Text, &text), (Keep::Nothing, &nothing)] {
            if case.seen(body.chunks(1), keep) != *whole {
                return Err("byte by byte it differs".to_owned());
            }
            for seed in 0..RANDOM_SPLITS {
                let mut random = ChaCha8Rng::seed_from_u64(seed);
                let count = random.random_range(1..20);
                let mut cuts: Vec<usize> = (0..count).map(|_| random.random_range(0..=body.len())).collect();
                cuts.extend([0, body.len()]);
                cuts.sort_unstable();
                if case.seen(cuts.windows(2).map(|cut| &body[cut[0]..cut[1]]), keep) != *whole {
                    return Err(format!("split at {cuts:?} it differs"));
                }
            }
        }
        Ok(())
    }

    fn run(folder: &Path) {
        let index: Value = serde_json::from_slice(&std::fs::read(folder.join("index.json")).unwrap()).unwrap();
        let entries = index["entries"].as_array().unwrap();
        let failures: Vec<_> = entries
            .iter()
            .filter_map(|entry| Some(format!("{}: {}", entry["file"], check(folder, entry).err()?)))
            .collect();
        let right = entries.len() - failures.len();
        // Not by `print`: the test runner keeps that for failures.
        writeln!(std::io::stderr(), "{right} of {} decoded as expected", entries.len()).unwrap();
        assert!(failures.is_empty(), "\n{}", failures.join("\n"));
    }

    #[test]
    fn own_fixtures() {
        run(&workspace().join("fixtures/wire"));
    }

    #[test]
    fn shared_corpus() {
        if let Some(folder) = shared() {
            run(&folder);
        }
    }

    /// What the recordings' own page says of a stream.
    struct Facts {
        events: Option<u64>,
        with_text: Option<u64>,
        finish_reason: Option<String>,
        has_usage: Option<bool>,
        has_done: bool,
    }

    impl Facts {
        /// The facts of a table's last column; `None` where it is not of a stream.
        fn read(column: &str) -> Option<Self> {
            let mut facts =
                Self { events: None, with_text: None, finish_reason: None, has_usage: None, has_done: false };
            for fact in column.split("; ").filter(|_| column.starts_with("200 OK; ")) {
                let before = |words: &str| fact.strip_suffix(words)?.parse().ok();
                facts.events = facts.events.or_else(|| before(" data lines"));
                facts.with_text = facts.with_text.or_else(|| before(" with text"));
                facts.finish_reason = facts.finish_reason.or_else(|| Some(fact.strip_prefix("finish ")?.to_owned()));
                facts.has_done |= fact == "[DONE]";
                match fact {
                    "no usage" => facts.has_usage = Some(false),
                    fact if fact.starts_with("usage: ") => facts.has_usage = Some(true),
                    _ => {}
                }
            }
            facts.events.is_some().then_some(facts)
        }
    }

    /// The dialect of a recording, by its case's name.
    fn dialect_of(case: &str) -> &'static str {
        for (prefix, name) in [
            ("completions-", "openai-completions"),
            ("responses-", "openai-responses"),
            ("anthropic-", "anthropic"),
            ("bedrock-converse-", "bedrock-converse"),
            ("bedrock-invoke-", "bedrock-invoke"),
            ("vertex-", "gemini"),
        ] {
            if case.starts_with(prefix) {
                return name;
            }
        }
        "openai-chat"
    }

    #[test]
    fn captured_streams_have_the_facts_of_their_page() {
        let Some(folder) = shared().map(|folder| folder.join("captured")) else { return };
        let page = std::fs::read_to_string(folder.join("README.md")).unwrap();
        let (mut engine, mut checked) = ("", 0);
        for line in page.lines() {
            engine = line.strip_prefix("## ").unwrap_or(engine);
            let columns: Vec<_> = line.split(" | ").collect();
            let [first, .., last] = &columns[..] else { continue };
            let Some(facts) = Facts::read(last.trim_end_matches([' ', '|'])) else { continue };
            let case = first.trim_start_matches("| ");
            let name = format!("{engine}-{case}");
            let raw = std::fs::read(folder.join(format!("{name}.http"))).unwrap();
            let body = body_of(&raw);
            let dialect = by_name(dialect_of(case)).unwrap();
            let decoded = decode_saved(dialect.as_ref(), &body);
            let mut decoder = dialect.decoder(Delivery::Streamed, Keep::Nothing);
            decoder.feed(&body, &mut |_| ());
            assert_eq!(decoder.state().restarts, 0, "{name} is one stream");
            if case.starts_with("bedrock-") {
                // An emulator that sends its events as if they were server-sent.
                assert!(decoded.error.is_some(), "{name} is no event stream");
                continue;
            }
            assert_eq!(Some(decoded.events), facts.events, "events of {name}");
            // The page knows the text of some dialects only.
            if let Some(with_text) = facts.with_text.filter(|count| *count > 0) {
                assert_eq!(decoded.events_by_kind.text, with_text, "text of {name}");
            }
            if facts.finish_reason.is_some() {
                assert_eq!(decoded.finish_reason, facts.finish_reason, "finish reason of {name}");
            }
            // The page knows the usage of chunks and messages only.
            if let Some(has_usage) =
                facts.has_usage.filter(|_| !case.starts_with("responses-") && !case.starts_with("vertex-"))
            {
                assert_eq!(decoded.usage.is_some(), has_usage, "usage of {name}");
            }
            // Some proxies send it after another terminator.
            let is_done = decoded.terminator.as_deref() == Some("[DONE]");
            assert_eq!(is_done, facts.has_done && (is_done || !decoded.ended), "end of {name}");
            checked += 1;
        }
        println!("{checked} captured streams decoded as their page says");
        assert!(checked > 50, "only {checked} streams found");
    }

    #[test]
    fn every_dialect_has_a_stream_of_the_projects_own() {
        let index = std::fs::read(workspace().join("fixtures/wire/index.json")).unwrap();
        let index: Value = serde_json::from_slice(&index).unwrap();
        let names: Vec<_> = index["entries"].as_array().unwrap().iter().map(|entry| &entry["dialect"]).collect();
        let missing: Vec<_> = Api::ALL
            .into_iter()
            .filter(|api| *api != Api::Custom)
            .map(|api| json!(api.name()))
            .filter(|name| !names.iter().any(|seen| seen.as_str().unwrap().starts_with(name.as_str().unwrap())))
            .collect();
        assert!(missing.is_empty(), "nothing of {missing:?}");
    }
}
