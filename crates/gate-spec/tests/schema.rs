//! The JSON Schema: what it says of every key, and that it allows what the reader allows.

#[cfg(test)]
mod support {
    use std::path::{Path, PathBuf};

    use regex::Regex;
    use serde_json::{Map, Value};

    /// The paths and contents of the specs in a folder of fixtures.
    pub(crate) fn specs(folder: &str) -> Vec<(String, Value)> {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/specs").join(folder);
        let paths = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
        let mut paths: Vec<PathBuf> = paths.filter(|path| path.extension().is_some_and(|end| end == "yaml")).collect();
        paths.sort();
        let read = |path: PathBuf| {
            let text = std::fs::read_to_string(&path).unwrap();
            Some((path.file_name()?.to_str()?.to_owned(), json(serde_yaml::from_str(&text).ok()?)))
        };
        paths.into_iter().filter_map(read).collect()
    }

    /// A spec's text as an editor sees it.
    pub(crate) fn as_json(text: &str) -> Value {
        json(serde_yaml::from_str(text).unwrap())
    }

    /// YAML as an editor sees it: keys are texts.
    fn json(value: serde_yaml::Value) -> Value {
        match value {
            serde_yaml::Value::Mapping(entries) => {
                let key = |key: &serde_yaml::Value| match key {
                    serde_yaml::Value::String(text) => text.clone(),
                    key => serde_yaml::to_string(key).unwrap().trim().to_owned(),
                };
                Value::Object(entries.into_iter().map(|(name, value)| (key(&name), json(value))).collect())
            }
            serde_yaml::Value::Sequence(items) => items.into_iter().map(json).collect(),
            scalar => serde_json::to_value(scalar).unwrap(),
        }
    }

    /// What does not fit, with its place: a validator for the keywords this schema uses, and no others.
    pub(crate) fn misfits(root: &Value, schema: &Value, value: &Value, place: &str) -> Vec<String> {
        let Value::Object(schema) = schema else { panic!("{place}: not a schema: {schema}") };
        let fits = |schema: &Value| misfits(root, schema, value, place).is_empty();
        let mut found = Vec::new();
        for (keyword, wanted) in schema {
            let fits = match keyword.as_str() {
                "$schema" | "$id" | "title" | "description" | "default" | "examples" | "definitions" => true,
                "$ref" => {
                    let pointer = wanted.as_str().unwrap().strip_prefix('#').unwrap();
                    found.extend(misfits(root, root.pointer(pointer).unwrap(), value, place));
                    true
                }
                "anyOf" => wanted.as_array().unwrap().iter().any(fits),
                "allOf" => wanted.as_array().unwrap().iter().all(fits),
                "enum" => wanted.as_array().unwrap().contains(value),
                "const" => wanted == value,
                "type" => match wanted {
                    Value::Array(kinds) => kinds.iter().any(|kind| is(value, kind)),
                    kind => is(value, kind),
                },
                "minimum" => value.as_f64().is_none_or(|number| number >= wanted.as_f64().unwrap()),
                "maximum" => value.as_f64().is_none_or(|number| number <= wanted.as_f64().unwrap()),
                "exclusiveMinimum" => value.as_f64().is_none_or(|number| number > wanted.as_f64().unwrap()),
                "minProperties" => value.as_object().is_none_or(|map| map.len() as u64 >= wanted.as_u64().unwrap()),
                "maxProperties" => value.as_object().is_none_or(|map| map.len() as u64 <= wanted.as_u64().unwrap()),
                "minLength" => value.as_str().is_none_or(|text| text.len() as u64 >= wanted.as_u64().unwrap()),
                "pattern" => value.as_str().is_none_or(|text| pattern(wanted).is_match(text)),
                "required" => value.as_object().is_none_or(|object| {
                    wanted.as_array().unwrap().iter().all(|name| object.contains_key(name.as_str().unwrap()))
                }),
                "items" => {
                    for (at, item) in value.as_array().into_iter().flatten().enumerate() {
                        found.extend(misfits(root, wanted, item, &format!("{place}/{at}")));
                    }
                    true
                }
                "properties" | "patternProperties" => true,
                "additionalProperties" => {
                    found.extend(properties(root, schema, value, place));
                    true
                }
                keyword => panic!("{place}: the keyword `{keyword}` is new here"),
            };
            if !fits {
                found.push(format!("{place}: {keyword} {wanted}"));
            }
        }
        found
    }

    fn properties(root: &Value, schema: &Map<String, Value>, value: &Value, place: &str) -> Vec<String> {
        let named = |name: &str| schema.get("properties")?.get(name);
        let matched = |name: &str| {
            let patterns = schema.get("patternProperties")?.as_object()?;
            patterns.iter().find(|(one, _)| Regex::new(one).unwrap().is_match(name)).map(|(_, schema)| schema)
        };
        let mut found = Vec::new();
        for (name, value) in value.as_object().into_iter().flatten() {
            match named(name).or_else(|| matched(name)).unwrap_or(&schema["additionalProperties"]) {
                Value::Bool(false) => found.push(format!("{place}/{name}: no such key")),
                schema => found.extend(misfits(root, schema, value, &format!("{place}/{name}"))),
            }
        }
        found
    }

    pub(crate) fn pattern(text: &Value) -> Regex {
        Regex::new(text.as_str().unwrap()).unwrap()
    }

    fn is(value: &Value, kind: &Value) -> bool {
        match kind.as_str().unwrap() {
            "object" => value.is_object(),
            "array" => value.is_array(),
            "string" => value.is_string(),
            "boolean" => value.is_boolean(),
            "number" => value.is_number(),
            "integer" => value.is_i64() || value.is_u64(),
            kind => panic!("the type `{kind}` is new here"),
        }
    }

    /// Every property of a schema, at any depth, by its path.
    pub(crate) fn all_properties<'a>(schema: &'a Value, path: &str, found: &mut Vec<(String, &'a Value)>) {
        match schema {
            Value::Object(schema) => {
                for (keyword, inner) in schema {
                    if let ("properties", Value::Object(properties)) = (keyword.as_str(), inner) {
                        for (name, property) in properties {
                            found.push((format!("{path}/{name}"), property));
                            all_properties(property, &format!("{path}/{name}"), found);
                        }
                    } else if !["default", "examples", "enum"].contains(&keyword.as_str()) {
                        all_properties(inner, path, found);
                    }
                }
            }
            Value::Array(items) => items.iter().for_each(|item| all_properties(item, path, found)),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use gate_spec::json_schema;
    use serde_json::{Value, json};

    use super::support::*;

    fn wrong(value: &Value) -> Vec<String> {
        let schema = json_schema();
        misfits(&schema, &schema, value, "")
    }

    #[test]
    fn every_good_spec_is_allowed() {
        let specs = specs("good");
        assert!(specs.len() >= 7, "only {} good specs found", specs.len());
        for (name, spec) in specs {
            assert_eq!(wrong(&spec), Vec::<String>::new(), "{name}");
        }
    }

    #[test]
    fn bad_specs_are_marked_where_they_are_bad() {
        let specs = specs("bad");
        for (name, place) in [
            ("baseline-from.yaml", "/baseline/from: pattern"),
            ("baseline-from.yaml", "/baseline/runs: maximum"),
            ("baseline-from.yaml", "/baseline/fallback/0: pattern"),
            ("baseline-store.yaml", "/baseline/fallback: type"),
            ("baseline-text.yaml", "/baseline: type"),
            ("merge.yaml", "/common: no such key"),
            ("missing-keys.yaml", ": required"),
            ("load-shapes.yaml", "/load/pattern: anyOf"),
            ("load-shapes.yaml", "/load/stages/0: required"),
            ("scenario-names.yaml", "/scenarios/a b: no such key"),
            ("scenario-names.yaml", "/scenarios/chat/prompt: no such key"),
            ("prompt-values.yaml", "/prompts/think: anyOf"),
            ("prompt-values.yaml", "/prompts/format: anyOf"),
            ("money.yaml", "/prices: required"),
            ("money.yaml", "/budget/cost: exclusiveMinimum"),
            ("engine-growth.yaml", "/target/sim/prefix_cache: required"),
            ("engine-growth.yaml", "/target/sim/drift/ttft: pattern"),
            ("reference-both.yaml", "/reference/modell: no such key"),
            ("reference-text.yaml", "/reference: type"),
            ("relative.yaml", "/require/0: anyOf"),
            ("relative.yaml", "/require/3: anyOf"),
            ("root-list.yaml", ": type"),
            ("sim-values.yaml", "/target/sim/buffer: pattern"),
            ("sim-values.yaml", "/target/sim/slow_headers: type"),
            ("sim-values.yaml", "/target/sim/faults/slow_headers: pattern"),
            ("sim-values.yaml", "/target/sim/warming_up/slowdown: minimum"),
            ("sim-warming.yaml", "/target/sim/warming_up: required"),
            ("script.yaml", "/target/sim/script/first: no such key"),
            ("script.yaml", "/target/sim/script/50: anyOf"),
            ("shapes.yaml", "/rps: no such key"),
            ("shapes.yaml", "/load: type"),
            ("shapes.yaml", "/require: type"),
            ("decided.yaml", "/require/7: anyOf"),
            ("decided.yaml", "/require/8: anyOf"),
            ("waivers.yaml", "/require/0: anyOf"),
            ("waivers.yaml", "/require/3: anyOf"),
            ("tls-plain.yaml", "/target/tls/roots: anyOf"),
            ("tls-plain.yaml", "/target/tls/insecure: pattern"),
            ("file-and-lengths.yaml", "/prompts/output: anyOf"),
            ("unix.yaml", "/target/api: anyOf"),
            ("unix.yaml", "/target/custom/path: pattern"),
            ("unix.yaml", "/target/custom/text: pattern"),
            ("custom.yaml", "/target/custom: required"),
            ("custom.yaml", "/target/custom/usage: anyOf"),
            ("custom.yaml", "/target/custom/framing: anyOf"),
            ("dialects.yaml", "/target/replica_header: pattern"),
            ("load-values.yaml", "/load/concurrency: minimum"),
            ("load-values.yaml", "/load/connections: anyOf"),
            ("load-values.yaml", "/load/http: anyOf"),
            ("load-values.yaml", "/load/clock: anyOf"),
            ("load-values.yaml", "/load/workers: maximum"),
            ("load-values.yaml", "/prompts/tokens: anyOf"),
            ("load-values.yaml", "/prompts/tokenizer: type"),
        ] {
            let (_, spec) = specs.iter().find(|(file, _)| file == name).unwrap();
            let found = wrong(spec);
            assert!(found.iter().any(|misfit| misfit.starts_with(place)), "{name}: {place}: {found:#?}");
        }
    }

    #[test]
    fn values_with_variables_are_allowed_everywhere() {
        let spec = json!({
            "version": 1, "name": "${NAME:-x}",
            "target": {
                "url": "${URL}", "api": "${API}", "stream": "${STREAM:-true}", "tls": {"insecure": "${INSECURE}"},
                "sim": {"buffer": "${BUFFER}", "script": {"26": "${FAULT}"}, "warming_up": {"requests": "${N}", "slowdown": "${X}"}}
            },
            "load": {"rps": "${RPS}", "iterations": "${N:-30..50}", "seed": "${SEED}", "warmup": "${W}"},
            "prompts": {"cache": "${CACHE:-warm}", "input_tokens": "${LENGTH}"},
            "require": ["ttft.p95 < ${LIMIT}", {"check": "${CHECK}", "confidence": "${C}", "waive": {"until": "${U}", "reason": "${R}"}}]
        });
        assert_eq!(wrong(&spec), Vec::<String>::new());
    }

    /// Whether a spec with these keys reads, and what the schema says against it.
    fn both(keys: &str) -> (bool, Vec<String>) {
        let lines = ["version: '1'", "name: 5", "target: {url: https://h}", "require: [e2e.p50 < 1s]"];
        let kept = lines.into_iter().filter(|line| line.split(':').next() != keys.split(':').next());
        let text = kept.chain([keys]).collect::<Vec<_>>().join("\n");
        let reads = gate_spec::resolve("x", &text, &std::collections::BTreeMap::new(), &[]).is_ok();
        (reads, wrong(&as_json(&text)))
    }

    #[test]
    fn numbers_in_quotes_and_texts_like_numbers_are_allowed_where_they_read() {
        for keys in [
            "baseline: {runs: '5'}",
            "baseline: {store: 5}",
            "baseline: {store: true, class: 5}",
            "baseline: {store: /var/lib/gate}",
            "baseline: {from: 'last:05'}",
            "baseline: {from: ' merge-base '}",
            "baseline: {from: 'pin:01a229bf86ab', fallback: ['branch:release/1.2', ../main.json]}",
            "load: {rps: '0.5', warmup: '3', seed: '7', iterations: '30', workers: '1'}",
            "load: {extend: '200'}",
            "load: {duration: 30m, arrivals: gamma(0.5)}",
            "load: {pattern: soak}",
            "load: {pattern: {ramp: {from: '0', to: 8, over: 15m}}}",
            "load: {stages: [{rps: 1, for: 1m}, {rps: '1..4', for: 2m}, {rps: 4..1, for: 2m}]}",
            "load: {trace: azure.csv, iterations: 300}",
            "prompts: {turns: 3..5, think: {mean: 2s, stddev: 1s}, shared_prefix: 500 tokens, cache: natural}",
            "prompts: {shared_prefix: {tokens: '300', groups: 4}, input_tokens: {empirical: lengths.txt}}",
            "prompts: {images: [https://example.com/cat.png, cat.png]}",
            "target: {url: https://h, metrics: /metrics}",
            "scenarios: {chat: {slo: {ttft: 1s}}, batch: {load: {pattern: {spike: {}}}}}",
            "prices: {input: $2.50, output: 10, cached_input: '1'}",
            "budget: {requests: 500, input_tokens: 100000, output_tokens: '5000'}",
            "abort: {connection_failures: 0, lost: false}",
            "journal: {tokens: 0, keep_text: true}",
            "prompts: {input_tokens: '9'}",
            "target: {sim: {role_chunk: '0', ttft: '0', faults: {stall: '0'}, buffer: '0', dies_after: '9'}}",
            "target: {url: https://h, stream: 'false'}",
            "require: [{check: e2e.p50 < 1s, waive: {until: 2027-01-31, reason: true}}]",
        ] {
            assert_eq!(both(keys), (true, Vec::new()), "{keys}");
        }
    }

    #[test]
    fn what_no_baseline_can_be_asked_by_is_not_allowed() {
        for from in ["last:0", "last:21", "last:", "last:+5", "branch:", "branch:-x", "pin:", "pin:-x", "main", "5"] {
            let (reads, misfits) = both(&format!("baseline: {{from: '{from}'}}"));
            assert!(!reads && misfits.iter().any(|misfit| misfit.starts_with("/baseline/from: pattern")), "{from}");
        }
    }

    #[test]
    fn the_schema_has_a_name_and_an_object_at_its_root() {
        let schema = json_schema();
        assert_eq!(schema["$schema"], "http://json-schema.org/draft-07/schema#");
        assert_eq!(schema["$id"], "urn:gate:spec:1");
        assert_eq!(schema["title"], "gate spec");
        assert_eq!((&schema["type"], &schema["additionalProperties"]), (&json!("object"), &json!(false)));
        assert_eq!(schema["required"], json!(["version", "name", "target"]));
        let properties = schema["properties"].as_object().unwrap();
        assert!(properties.contains_key("scenarios"));
    }

    #[test]
    fn every_key_is_described_and_every_default_allowed() {
        let schema = json_schema();
        let mut properties = Vec::new();
        all_properties(&schema, "", &mut properties);
        assert!(properties.len() > 80, "only {} keys found", properties.len());
        for (path, property) in properties {
            assert!(property["description"].as_str().is_some_and(|text| text.ends_with('.')), "{path}");
            if let Some(default) = property.get("default") {
                assert_eq!(misfits(&schema, property, default, &path), Vec::<String>::new());
            }
        }
        let properties = &schema["properties"];
        assert_eq!(properties["load"]["properties"]["rps"]["default"], 2);
        assert_eq!(properties["load"]["properties"]["iterations"]["default"], "30..50");
        assert_eq!(properties["target"]["properties"]["stream"]["default"], true);
        assert_eq!(properties["prompts"]["properties"]["input_tokens"]["default"]["max"], 2000);
    }

    #[test]
    fn proposed_checks_read() {
        let schema = json_schema();
        let check = &schema["definitions"]["check"];
        let examples = check["examples"].as_array().unwrap();
        for name in [
            "ttft.p95 < 800ms",
            "itl.p99 < 800ms",
            "attainment >= 5%",
            "tpot.effective < 800ms",
            "ttft.p50 < baseline + 15% or 20ms",
        ] {
            assert!(examples.contains(&json!(name)), "{name}");
        }
        for example in examples {
            let example = example.as_str().unwrap();
            let shape = match example.split(['.', ' ']).next() {
                Some("knee") => "pattern: {ramp: {to: 9}}",
                Some("spike" | "recovery") => "rps: 1, pattern: spike",
                Some("drift") => "rps: 1, pattern: soak",
                _ => "iterations: 100, rps: 1",
            };
            let text = format!(
                "version: 1\nname: x\ntarget: {{url: https://h, metrics: /metrics}}\nprices: {{input: 1, output: 2}}\nreference: {{url: https://r}}\nslo: {{e2e: 1s}}\nload: {{{shape}, concurrency: 4}}\nrequire: ['{example}']\n"
            );
            let example = &json!(example);
            assert!(gate_spec::resolve("x", &text, &std::collections::BTreeMap::new(), &[]).is_ok(), "{example}");
            assert_eq!(misfits(&schema, check, example, ""), Vec::<String>::new());
        }
        // Other percentiles are allowed though nobody proposes them.
        assert_eq!(misfits(&schema, check, &json!("ttft.p99.9.all <= 1.5 s"), ""), Vec::<String>::new());
        assert!(!misfits(&schema, check, &json!("ttft.p95 = 1s"), "").is_empty());
    }
}
