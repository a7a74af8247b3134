//! Every example of the documentation, run or checked; CONTRIBUTING.md says which block is what.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Mutex, OnceLock};
use std::time::Duration;

use serde_yaml::Value;

use crate::harness::{Ended, Place, binary, root};

/// Where the pages say that their server listens; a page's own free port stands in for it.
const LISTENS: &str = "127.0.0.1:8000";

/// What a fragment of a spec is put into, unless it says so itself.
const AROUND_FRAGMENT: &str = "
version: 1
name: fragment
target: {sim: {ttft: 5ms}}
slo: {ttft: 1s}
prices: {input: 1, output: 2}
require: [ttft.p50 < 10s]
";

/// A fenced block of a page.
struct Block {
    /// The page's name and the line of the fence.
    place: String,
    /// What is written behind the fence.
    info: String,
    /// The last line before it that says anything.
    before: String,
    text: String,
}

/// A page: its path below the checkout, and its blocks.
struct Page {
    name: String,
    text: String,
    blocks: Vec<Block>,
}

/// README.md and every page of docs/.
fn pages() -> &'static [Page] {
    static PAGES: OnceLock<Vec<Page>> = OnceLock::new();
    PAGES.get_or_init(|| {
        let mut paths: Vec<PathBuf> = std::fs::read_dir(root().join("docs"))
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .filter(|path| path.extension().is_some_and(|extension| extension == "md"))
            .collect();
        paths.push(root().join("README.md"));
        paths.sort();
        paths.iter().map(|path| page(path)).collect()
    })
}

fn page(path: &Path) -> Page {
    let name = path.strip_prefix(root()).unwrap().display().to_string();
    let text = std::fs::read_to_string(path).unwrap();
    let (mut blocks, mut before) = (Vec::new(), "");
    let mut lines = text.lines().enumerate();
    while let Some((number, line)) = lines.next() {
        let Some(info) = line.trim_start().strip_prefix("```") else {
            before = if line.trim().is_empty() { before } else { line.trim() };
            continue;
        };
        let inside = lines.by_ref().map(|(_, line)| line).take_while(|line| line.trim() != "```");
        let text = inside.fold(String::new(), |text, line| text + line + "\n");
        let place = format!("{name}:{}", number + 1);
        blocks.push(Block { place, info: info.trim().to_owned(), before: before.to_owned(), text });
        before = "";
    }
    Page { name, text, blocks }
}

/// What a block is, which says how it is tested.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Kind {
    /// A whole gate spec: planned.
    Spec,
    /// A part of one: put into a spec and planned.
    Fragment,
    /// A file of a CI system or another tool.
    Foreign,
    /// Commands with what they print: run.
    Session,
    /// Commands that are not run: every command and flag of gate in them exists.
    Commands,
    /// A template of the comment: rendered.
    Template,
    /// JSON: parsed.
    Json,
    /// Not tested, for the reason that the line before it gives.
    Untested,
}

fn kind(block: &Block) -> Kind {
    let is_spec = || block.text.lines().any(|line| line == "version: 1");
    match block.info.as_str() {
        "yaml" if is_spec() => Kind::Spec,
        "yaml fragment" => Kind::Fragment,
        "yaml" | "groovy" => Kind::Foreign,
        "console" => Kind::Session,
        "sh" => Kind::Commands,
        "jinja" => Kind::Template,
        "json" => Kind::Json,
        "text" if reason(block).is_some() => Kind::Untested,
        other => panic!(
            "{}: a block of `{other}` is none that the tests know; CONTRIBUTING.md lists them, and a block of `text` needs a line `<!-- not run: REASON -->` before it",
            block.place
        ),
    }
}

fn reason(block: &Block) -> Option<&str> {
    block.before.strip_prefix("<!-- not run: ")?.strip_suffix(" -->").filter(|reason| !reason.is_empty())
}

fn blocks(kind_is: Kind) -> impl Iterator<Item = &'static Block> {
    pages().iter().flat_map(|page| &page.blocks).filter(move |block| kind(block) == kind_is)
}

#[test]
fn no_block_is_skipped_silently() {
    let mut counted: BTreeMap<Kind, usize> = BTreeMap::new();
    for block in pages().iter().flat_map(|page| &page.blocks) {
        *counted.entry(kind(block)).or_default() += 1;
    }
    println!("blocks of the documentation: {counted:?}");
    for block in blocks(Kind::Untested) {
        println!("not run: {}: {}", block.place, reason(block).unwrap());
    }
    let tested: usize = counted.iter().filter(|(kind, _)| **kind != Kind::Untested).map(|(_, count)| count).sum();
    assert!(tested > 40 && counted[&Kind::Session] >= 8, "{counted:?}");
}

/// Plans a spec whose files, where it names any, are not there: only the text is judged.
#[track_caller]
fn plan(place: &Place, block: &Block, spec: &str) {
    place.write("spec.yaml", spec);
    let mut command = place.command(&["plan", "spec.yaml"]);
    command.env("GATE_TARGET", "http://127.0.0.1:9/v1").env("GATE_REFERENCE", "http://127.0.0.1:8/v1");
    let ended = Ended::of(command.output().unwrap());
    assert_eq!(ended.code, 0, "{}: {}\n{spec}", block.place, ended.stderr);
}

#[test]
fn specs_are_planned() {
    let place = Place::new();
    for file in ["prompts.jsonl", "sharegpt.json"] {
        let rows = (0..400).map(|row| format!("{{\"prompt\": \"Question number {row}?\"}}\n"));
        place.write(file, &rows.collect::<String>());
    }
    for block in blocks(Kind::Spec) {
        plan(&place, block, &block.text);
    }
}

#[test]
fn fragments_of_specs_are_planned() {
    let place = Place::new();
    for block in blocks(Kind::Fragment) {
        let fragment: Value =
            serde_yaml::from_str(&block.text).unwrap_or_else(|error| panic!("{}: {error}", block.place));
        let mut whole: Value = serde_yaml::from_str(AROUND_FRAGMENT).unwrap();
        if block.text.contains("reference +") {
            whole["reference"] = serde_yaml::from_str("{sim: {ttft: 5ms}}").unwrap();
        }
        for (key, value) in fragment.as_mapping().unwrap_or_else(|| panic!("{}: no keys", block.place)) {
            whole.as_mapping_mut().unwrap().insert(key.clone(), value.clone());
        }
        plan(&place, block, &serde_yaml::to_string(&whole).unwrap());
    }
}

#[test]
fn json_is_json() {
    for block in blocks(Kind::Json) {
        let value: Result<serde_json::Value, _> = serde_json::from_str(&block.text);
        assert!(value.is_ok(), "{}: {value:?}", block.place);
    }
}

#[test]
fn templates_are_rendered() {
    let place = Place::new();
    place.write(
        "gate.yaml",
        "version: 1\nname: chat\ntarget: {sim: {ttft: 90ms, tpot: 1ms}}\nload: {rps: 40, iterations: 20, warmup: 1}\nprompts: {output_tokens: 4}\nrequire: [ttft.p50 < 20ms]\n",
    );
    place.gate(&["check", "gate.yaml"]).expect_code(1);
    for block in blocks(Kind::Template) {
        place.write("comment.md.j2", &block.text);
        let words = ["report", ".gate/chat/verdict.json", "--template", "comment.md.j2", "--markdown", "-"];
        let ended = place.gate(&words);
        assert!(ended.code == 0 && !ended.stdout.is_empty(), "{}: {}", block.place, ended.stderr);
    }
}

/// Every command of the program with the long flags its help names, such as `baseline save`.
fn flags() -> &'static BTreeMap<String, Vec<String>> {
    static FLAGS: OnceLock<BTreeMap<String, Vec<String>>> = OnceLock::new();
    FLAGS.get_or_init(|| {
        let mut found = BTreeMap::new();
        let mut open = vec![String::new()];
        while let Some(command) = open.pop() {
            let words: Vec<&str> = command.split_whitespace().chain(["--help"]).collect();
            let help = Place::new().gate(&words);
            help.expect_code(0);
            let named = help.stdout.split_whitespace().filter(|word| word.starts_with("--"));
            let flags = named.map(|flag| flag.trim_end_matches(['.', ',', '`']).to_owned()).collect();
            let listed = help.stdout.split("\nCommands:\n").nth(1).and_then(|rest| rest.split("\n\n").next());
            let inner = listed.into_iter().flat_map(str::lines).filter(|line| !line.starts_with("   "));
            let inner = inner.filter_map(|line| line.split_whitespace().next()).filter(|name| *name != "help");
            open.extend(inner.map(|name| format!("{command} {name}").trim().to_owned()));
            found.insert(command, flags);
        }
        found
    })
}

/// Fails where a command line of gate in a text has a flag that its command does not know, or, with `strict`, where a
/// line that begins with `gate` names no command. Returns how many commands there were.
#[track_caller]
fn check_commands(place: &str, text: &str, strict: bool) -> usize {
    let text = text.replace("\\\n", " ");
    let mut seen = 0;
    for line in text.lines() {
        let code = line.split(" # ").next().unwrap();
        for part in code.split(['|', ';', '\'', '"', '`', '(']).flat_map(|part| part.split("&&")) {
            let words: Vec<&str> = part.split_whitespace().collect();
            let Some(at) = words.iter().position(|word| *word == "gate" || word.ends_with("/gate")) else { continue };
            let after = &words[at + 1..];
            let named = after.iter().take_while(|word| !word.starts_with('-')).copied();
            let named: Vec<&str> = named.take(2).collect();
            let command = (1..=named.len()).rev().map(|count| named[..count].join(" "));
            let Some(command) = command.into_iter().find(|command| flags().contains_key(command)) else {
                let is_bare = after.first().is_some_and(|word| ["--version", "--help"].contains(word));
                assert!(!strict || at > 0 || is_bare, "{place}: no such command: {part}");
                continue;
            };
            seen += 1;
            for flag in after.iter().filter(|word| word.starts_with("--")) {
                let name = flag.split('=').next().unwrap().trim_end_matches([')', ']', ',', '}']);
                let known = flags()[&command].iter().any(|known| known == name);
                assert!(known || name == "--", "{place}: `gate {command}` has no {name}: {part}");
            }
        }
    }
    seen
}

#[test]
fn commands_and_flags_that_are_shown_exist() {
    let mut seen = 0;
    for block in blocks(Kind::Commands) {
        seen += check_commands(&block.place, &block.text, true);
    }
    for block in blocks(Kind::Foreign) {
        seen += check_commands(&block.place, &block.text, false);
    }
    assert!(seen > 20, "{seen}");
}

/// Calls this with every mapping in a YAML value.
fn walk(value: &Value, look: &mut impl FnMut(&serde_yaml::Mapping)) {
    match value {
        Value::Mapping(mapping) => {
            look(mapping);
            mapping.iter().for_each(|(_, value)| walk(value, look));
        }
        Value::Sequence(sequence) => sequence.iter().for_each(|value| walk(value, look)),
        _ => {}
    }
}

/// Fails where a file of a CI system is no YAML, or gives the action or the component an input that it has not.
fn check_foreign(place: &str, text: &str) {
    let inputs = |file: &str, path: &[&str]| -> Vec<String> {
        let text = std::fs::read_to_string(root().join(file)).unwrap();
        let first = serde_yaml::Deserializer::from_str(&text).next().unwrap();
        let whole = <Value as serde::Deserialize>::deserialize(first).unwrap();
        let inputs = path.iter().fold(&whole, |value, key| &value[*key]);
        inputs.as_mapping().unwrap().keys().map(|key| key.as_str().unwrap().to_owned()).collect()
    };
    let (action, component) = (inputs("action.yml", &["inputs"]), inputs("templates/gate.yml", &["spec", "inputs"]));
    for document in serde_yaml::Deserializer::from_str(text) {
        let value = <Value as serde::Deserialize>::deserialize(document);
        let value = value.unwrap_or_else(|error| panic!("{place}: {error}"));
        walk(&value, &mut |mapping| {
            let (uses, includes) = (mapping.get("uses"), mapping.get("component"));
            let given = |key: &str| mapping.get(key).and_then(Value::as_mapping).cloned().unwrap_or_default();
            if uses.and_then(Value::as_str).is_some_and(|uses| uses.contains("/gate@")) {
                for key in given("with").keys().filter_map(Value::as_str) {
                    assert!(action.iter().any(|input| input == key), "{place}: action.yml has no input `{key}`");
                }
            }
            if includes.and_then(Value::as_str).is_some_and(|path| path.contains("/gate@")) {
                for key in given("inputs").keys().filter_map(Value::as_str) {
                    assert!(component.iter().any(|input| input == key), "{place}: the component has no input `{key}`");
                }
            }
        });
    }
}

#[test]
fn files_of_other_programs_are_right() {
    for block in blocks(Kind::Foreign).filter(|block| block.info == "yaml") {
        check_foreign(&block.place, &block.text);
    }
    let mut files = 0;
    for forge in ["github", "gitlab", "kubernetes"] {
        for entry in std::fs::read_dir(root().join("docs/examples").join(forge)).unwrap() {
            let path = entry.unwrap().path();
            let text = std::fs::read_to_string(&path).unwrap();
            let place = path.strip_prefix(root()).unwrap().display().to_string();
            check_foreign(&place, &text);
            check_commands(&place, &text, false);
            files += 1;
        }
    }
    assert!(files >= 10, "{files}");
}

/// A command of a session, with the lines that are to follow.
struct Step {
    place: String,
    command: String,
    expected: Vec<String>,
}

fn steps(block: &Block) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    for line in block.text.lines() {
        match (line.strip_prefix("$ "), steps.last_mut()) {
            (Some(command), _) => {
                steps.push(Step { place: block.place.clone(), command: command.to_owned(), expected: Vec::new() });
            }
            (None, Some(step)) if step.expected.is_empty() && step.command.ends_with('\\') => {
                step.command += "\n";
                step.command += line;
            }
            (None, Some(step)) => step.expected.push(line.to_owned()),
            (None, None) => panic!("{}: a session begins with a command, `$ …`", block.place),
        }
    }
    steps
}

/// A line with each number as `#` and each run of blanks and dashes as one blank: what is the same in every run.
fn shape(line: &str) -> String {
    let mut shape = String::new();
    for word in line.split_whitespace() {
        let mut in_number = false;
        for letter in word.chars() {
            let goes_on = in_number && matches!(letter, '.' | ',');
            match (letter.is_ascii_digit(), goes_on) {
                (true, _) if !in_number => shape.push('#'),
                (true, _) | (false, true) => {}
                (false, false) => shape.push(letter),
            }
            in_number = letter.is_ascii_digit() || goes_on;
        }
        shape.push(' ');
    }
    shape.trim_end().to_owned()
}

/// Whether a printed line is as expected: `…` stands for anything.
fn is_alike(expected: &str, printed: &str) -> bool {
    let (expected, printed) = (shape(expected), shape(printed));
    let mut parts = expected.split('…').map(str::trim);
    let Some(mut rest) = printed.strip_prefix(parts.next().unwrap_or_default()) else { return false };
    let mut parts: Vec<&str> = parts.collect();
    let Some(last) = parts.pop() else { return rest.is_empty() };
    for part in parts {
        let Some(at) = rest.find(part) else { return false };
        rest = &rest[at + part.len()..];
    }
    rest.ends_with(last)
}

/// Whether printed lines are as expected: a line `…` stands for any number of lines.
fn are_alike(expected: &[&str], printed: &[&str]) -> bool {
    match expected.split_first() {
        None => printed.is_empty(),
        Some((first, rest)) if first.trim() == "…" => {
            (0..=printed.len()).any(|from| are_alike(rest, &printed[from..]))
        }
        Some((first, rest)) => {
            printed.split_first().is_some_and(|(line, after)| is_alike(first, line) && are_alike(rest, after))
        }
    }
}

#[test]
fn outputs_are_compared_by_their_shape() {
    assert!(is_alike("ttft.p95 < 800ms   203 ms  ≥ 188 ms", "ttft.p95 < 800ms  1,203.5 ms  ≥ 9 ms"));
    assert!(is_alike("tpot … holds", "tpot.p95 < 50ms 8 ms holds") && !is_alike("tpot … holds", "tpot is violated"));
    assert!(!is_alike("PASSED", "PASSED WITH WARNINGS") && !is_alike("203 ms", "203 µs"));
    assert!(are_alike(&["a", "…", "b"], &["a", "x", "y", "b"]) && !are_alike(&["a", "…", "b"], &["a", "x"]));
    assert!(are_alike(&["a", "…"], &["a"]) && !are_alike(&["a"], &["a", "x"]));
}

const MARK: &str = "\u{1}ended";

/// Runs a page's sessions in one shell, in a folder that holds the files its blocks show.
fn run_page(page: &Page) -> Result<usize, String> {
    let place = Place::new();
    let port = std::net::TcpListener::bind((std::net::Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap().port();
    let here = |text: &str| text.replace(LISTENS, &format!("127.0.0.1:{port}"));
    std::fs::create_dir(place.path("bin")).unwrap();
    std::os::unix::fs::symlink(binary(), place.path("bin/gate")).unwrap();
    for gates in ["demo.yaml", "uniformity.yaml"] {
        place.write(&format!("gates/{gates}"), &std::fs::read_to_string(root().join("gates").join(gates)).unwrap());
    }
    let mut all: Vec<Step> = Vec::new();
    for block in &page.blocks {
        if let Some(path) = block.text.strip_prefix("# ").and_then(|rest| rest.lines().next()) {
            let is_path = block.info.starts_with("yaml") && path.ends_with(".yaml") && !path.contains(' ');
            if is_path {
                place.write(path, &here(&block.text));
            }
        }
        if kind(block) == Kind::Session {
            all.extend(steps(block));
        }
    }
    // `$?` is the command's own in the command after it, and a command that ends in `&` goes on until the page ends.
    let mut script = "exec 2>&1\ntrap 'kill $(jobs -p) 2>/dev/null' EXIT\n".to_owned();
    for step in &all {
        let is_server = step.command.ends_with('&');
        let command = here(&step.command);
        let wait = format!(
            "for _ in $(seq 200); do (exec 3<>/dev/tcp/127.0.0.1/{port}) 2>/dev/null && break; sleep .05; done"
        );
        match is_server {
            true => writeln!(script, "{} >server.log &\n{wait}; code=0", command.trim_end_matches('&')).unwrap(),
            false => writeln!(script, "(exit ${{code:-0}})\n{command}\ncode=$?").unwrap(),
        }
        writeln!(script, "printf '{MARK} %s\\n' $code").unwrap();
    }
    place.write("session.sh", &script);
    let command = place.command(&[]);
    let mut shell = Command::new("bash");
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => shell.env(name, value),
            None => shell.env_remove(name),
        };
    }
    let path = std::env::join_paths(
        std::iter::once(place.path("bin")).chain(std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default())),
    );
    let output = shell
        .arg("session.sh")
        .current_dir(place.path("."))
        .env("PATH", path.unwrap())
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let printed = String::from_utf8_lossy(&output.stdout).replace(&format!("127.0.0.1:{port}"), LISTENS);
    let mut outputs = printed.split(MARK);
    let mut printed = outputs.next().unwrap_or_default().to_owned();
    for (number, step) in all.iter().enumerate() {
        let Some((code, rest)) = outputs.next().and_then(|rest| rest.split_once('\n')) else {
            return Err(format!("{}: `{}` did not end:\n{printed}", step.place, step.command));
        };
        let asks_for_code = all.get(number + 1).is_some_and(|next| next.command == "echo $?");
        if code.trim() != "0" && !asks_for_code {
            return Err(format!("{}: `{}` ended with {code}:\n{printed}", step.place, step.command));
        }
        let expected: Vec<&str> = step.expected.iter().map(String::as_str).collect();
        let lines: Vec<&str> = printed.lines().collect();
        // What is not shown is not compared.
        if !expected.is_empty() && !are_alike(&expected, &lines) {
            let expected = expected.join("\n");
            return Err(format!("{}: `{}` does not print\n{expected}\nbut\n{printed}", step.place, step.command));
        }
        printed = rest.to_owned();
    }
    Ok(all.len())
}

#[test]
fn sessions_print_what_they_show() {
    let failed = Mutex::new(Vec::new());
    let ran = Mutex::new(0);
    let next = Mutex::new(pages().iter().filter(|page| page.blocks.iter().any(|block| kind(block) == Kind::Session)));
    // Most of a session is waiting for a simulated engine.
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                while let Some(page) = { next.lock().unwrap().next() } {
                    // A machine that is too busy to measure is no fault of a page.
                    let mut result = run_page(page);
                    for _ in 0..2 {
                        if result.is_err() {
                            std::thread::sleep(Duration::from_millis(500));
                            result = run_page(page);
                        }
                    }
                    match result {
                        Ok(count) => *ran.lock().unwrap() += count,
                        Err(error) => failed.lock().unwrap().push(format!("{}: {error}", page.name)),
                    }
                }
            });
        }
    });
    let failed = failed.into_inner().unwrap();
    assert!(failed.is_empty(), "{}", failed.join("\n\n"));
    let ran = ran.into_inner().unwrap();
    println!("{ran} commands of the documentation ran");
    assert!(ran >= 20, "{ran}");
}

fn text_of(name: &str) -> &'static str {
    let page = pages().iter().find(|page| page.name == name);
    &page.unwrap_or_else(|| panic!("there is no {name}")).text
}

#[test]
fn every_command_and_every_page_is_in_the_book() {
    let page = text_of("docs/cli.md");
    for command in flags().keys().filter(|command| !command.is_empty()) {
        assert!(page.contains(&format!("$ gate {command} --help\n")), "docs/cli.md: run `cargo xtask docs`: {command}");
    }
    let summary = text_of("docs/SUMMARY.md");
    for page in pages().iter().filter(|page| page.name != "README.md" && page.name != "docs/SUMMARY.md") {
        let name = page.name.strip_prefix("docs/").unwrap();
        assert!(summary.contains(&format!("({name})")), "docs/SUMMARY.md lacks {name}");
    }
}

#[test]
fn the_reference_names_everything_there_is() {
    let schema: serde_json::Value =
        serde_json::from_str(&std::fs::read_to_string(root().join("docs/gate.schema.json")).unwrap()).unwrap();
    let spec = text_of("docs/spec.md");
    for (section, about) in schema["properties"].as_object().unwrap() {
        let inner = about["properties"].as_object().into_iter().flat_map(|inner| inner.keys());
        for key in std::iter::once(section).chain(inner) {
            let is_named = spec.contains(&format!("`{key}")) || spec.contains(&format!(".{key}`"));
            assert!(is_named, "docs/spec.md lacks `{key}` of `{section}`");
        }
    }
    let dialects = text_of("docs/dialects.md");
    let apis = schema["properties"]["target"]["properties"]["api"]["anyOf"][0]["enum"].as_array().unwrap();
    for api in apis.iter().map(|api| api.as_str().unwrap()) {
        assert!(dialects.contains(&format!("| `{api}` |")), "docs/dialects.md lacks {api}");
    }
    assert!(apis.len() > 10);
    let unknown = Place::new().gate(&["explain", "none-such"]);
    unknown.expect_code(2);
    let names = unknown.stderr.split("they are ").nth(1).expect("the metrics are listed").replace(" and ", ", ");
    let metrics = text_of("docs/metrics.md");
    for name in names.split(',').map(str::trim) {
        assert!(metrics.contains(&format!("`{name}")), "docs/metrics.md lacks `{name}`");
    }
    let codes = text_of("docs/exit-codes.md");
    use gate_model::ExitCode::{CouldNotMeasure, Inconclusive, Internal, Interrupted, Passed, Usage, Violated};
    for code in [Passed, Violated, Usage, CouldNotMeasure, Inconclusive, Internal, Interrupted] {
        assert!(codes.contains(&format!("\n| {} | ", code.code())), "docs/exit-codes.md lacks {code:?}");
    }
}

/// Every key of a JSON value, at any depth.
fn keys(value: &serde_json::Value, found: &mut Vec<String>) {
    match value {
        serde_json::Value::Object(object) => {
            for (key, value) in object {
                found.push(key.clone());
                keys(value, found);
            }
        }
        serde_json::Value::Array(array) => array.iter().for_each(|value| keys(value, found)),
        _ => {}
    }
}

#[test]
fn every_key_of_a_verdict_is_in_the_reference() {
    let place = Place::new();
    place.write(
        "gate.yaml",
        "version: 1\nname: keys\ntarget: {sim: {ttft: 5ms, tpot: 1ms}}\nreference: {sim: {ttft: 5ms, tpot: 1ms}}\nload: {rps: 40, iterations: 30, warmup: 1}\nprompts: {output_tokens: 4}\nrequire: [ttft.p50 < 10s, ttft.p50 < reference + 900%]\n",
    );
    place.gate(&["check", "gate.yaml"]).expect_code(0);
    let verdict: serde_json::Value = serde_json::from_str(&place.read(".gate/keys/verdict.json")).unwrap();
    let page = text_of("docs/json.md");
    let mut found = Vec::new();
    keys(&verdict, &mut found);
    let journal = place.read(".gate/keys/run.jsonl");
    for line in journal.lines() {
        let line: serde_json::Value = serde_json::from_str(line).unwrap();
        found.extend(line.as_object().unwrap().keys().cloned());
    }
    found.sort();
    found.dedup();
    let missing: Vec<_> = found.iter().filter(|key| !page.contains(&format!("`{key}`"))).collect();
    assert!(found.len() > 60 && missing.is_empty(), "docs/json.md lacks {missing:?}: run `cargo xtask docs`");
}
