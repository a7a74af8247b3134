//! The reports a person opens: the page, the table of requests, two runs compared, a comment in one's own words.

use crate::harness::{Place, quick_spec};

/// A gate against the built-in engine with this time to the first token.
fn gate(name: &str, ttft: &str) -> String {
    quick_spec(name, "http://127.0.0.1:9", 30).replace(
        "url: 'http://127.0.0.1:9', model: m, ready: {within: 2s}",
        &format!("sim: {{ttft: {ttft}, tpot: 1ms}}"),
    )
}

fn checked() -> Place {
    let place = Place::new();
    place.write("one.yaml", &gate("one", "{mean: 20ms, stddev: 5ms}"));
    place.write("two.yaml", &gate("two", "{mean: 60ms, stddev: 5ms}"));
    let ended = place.gate(&["check", "one.yaml", "two.yaml", "--html", "all.html"]);
    assert!(ended.stderr.contains("gate two"), "{}", ended.stderr);
    place
}

#[test]
fn the_page_is_whole_and_is_rendered_again_byte_for_byte() {
    let place = checked();
    let page = place.read(".gate/one/report.html");
    assert!(page.starts_with("<!doctype html>") && page.trim_end().ends_with("</html>"), "{:.200}", page);
    place.gate(&["report", ".gate/one/verdict.json", "--html", "again.html"]).expect_code(0);
    assert!(place.read("again.html") == page, "rendered again it is another page");
    let all = place.read("all.html");
    assert!(all.contains(">one<") && all.contains(">two<") || (all.contains("one") && all.contains("two")));
    for page in [&page, &all] {
        assert!(page.contains("SIMULATED ENGINE"));
        for reference in ["src=\"http", "href=\"http", "url(http", "@import", "<link"] {
            assert!(!page.contains(reference), "the page asks for more: {reference}");
        }
    }
}

#[test]
fn a_page_goes_without_requests_where_the_journal_is_gone() {
    let place = checked();
    std::fs::remove_file(place.path(".gate/one/run.jsonl")).unwrap();
    let ended = place.gate(&["report", ".gate/one/verdict.json", "--html", "bare.html"]);
    ended.expect_code(0).says("goes without requests");
    assert!(place.read("bare.html").contains("SIMULATED ENGINE"));
    place.gate(&["report", ".gate/one/verdict.json", "--csv", "r.csv"]).expect_code(2).says("run.jsonl");
}

#[test]
fn requests_are_a_table_for_other_programs() {
    let place = checked();
    place.gate(&["report", ".gate/one/verdict.json", "--csv", "r.csv"]).expect_code(0);
    let table = place.read("r.csv");
    let mut lines = table.lines();
    let head: Vec<&str> = lines.next().unwrap().split(',').collect();
    let ttft = head.iter().position(|name| *name == "ttft_ms").unwrap();
    let rows: Vec<f64> = lines.map(|line| line.split(',').nth(ttft).unwrap().parse().unwrap()).collect();
    let run = place.run("one");
    let measured = run.samples.iter().map(|sample| (sample.first_token.unwrap() - sample.intended).0 as f64 / 1e6);
    assert_eq!(rows.len(), run.samples.len());
    assert!(rows.iter().zip(measured).all(|(row, measured)| (row - measured).abs() < 0.001));
}

#[test]
fn two_verdicts_are_compared() {
    let place = checked();
    let two = [".gate/one/verdict.json", ".gate/two/verdict.json"];
    let report = |words: &[&str]| place.gate(&[&["report"], &two[..], words].concat());
    let text = report(&[]);
    text.expect_code(0);
    for words in ["one", "two", "ttft"] {
        assert!(text.stdout.contains(words), "{}", text.stdout);
    }
    assert!(text.stdout.lines().all(|line| line.chars().count() <= 80), "{}", text.stdout);
    report(&["--markdown", "both.md", "--html", "both.html"]).expect_code(0);
    assert!(place.read("both.md").contains("ttft") && place.read("both.html").contains("ttft"));
    report(&["--junit", "j.xml"]).expect_code(2).says("--junit is of one verdict");
    report(&["--template", "t.j2"]).expect_code(2);
    place.gate(&["report", two[0], "absent.json"]).expect_code(2).says("absent.json");
}

#[test]
fn a_comment_is_in_the_users_own_words() {
    let place = checked();
    place.write("own.md.j2", "Of {{ gates | length }} gate: {{ gates[0].name | code }} {{ gates[0].rows[0].seen }}\n");
    let render = |template: &str| {
        let words = ["report", ".gate/one/verdict.json", "--markdown", "own.md", "--template", template];
        place.gate(&words)
    };
    render("own.md.j2").expect_code(0);
    let comment = place.read("own.md");
    assert!(comment.starts_with("<!-- gate:comment") && comment.contains("Of 1 gate: `one` "), "{comment}");
    for (text, told) in [("{% if %}", "broken.md.j2, line 1"), ("a\n{{ nmae }}\n", "broken.md.j2, line 2")] {
        place.write("broken.md.j2", text);
        render("broken.md.j2").expect_code(2).says(told).says("docs/template.md");
    }
    render("absent.md.j2").expect_code(2).says("absent.md.j2");
    // A template that is wrong is known before anything is sent.
    place.gate(&["check", "one.yaml", "--out", "again", "--template", "broken.md.j2"]).expect_code(2);
    let checked = place.gate(&["check", "one.yaml", "--out", "again", "--template", "own.md.j2"]);
    assert!(checked.stderr.contains("gate one"), "{}", checked.stderr);
    assert!(place.read("again/one/comment.md").contains("Of 1 gate: `one` "));
}

#[test]
fn a_change_that_the_base_judges_is_told_in_the_bases_words() {
    let place = Place::new();
    place.git(&["init", "--quiet"]);
    place.write(".gitignore", ".gate/\n");
    place.write("gates/one.yaml", &gate("one", "20ms"));
    place.write("own.md.j2", "In the words of the base.\n");
    place.commit("the gate");
    place.git(&["checkout", "--quiet", "-b", "change"]);
    place.write("own.md.j2", "All is well, merge this.\n");
    place.write("new.md.j2", "All is well, merge this.\n");
    place.commit("other words");
    let comment = |template: &str| {
        let ended = place.gate(&["check", "--trust", "base", "--template", template]);
        assert!(ended.stderr.contains("gate one"), "{}", ended.stderr);
        place.read(".gate/one/comment.md")
    };
    assert!(comment("own.md.j2").contains("In the words of the base."));
    assert!(comment("new.md.j2").contains("gate one"), "the base does not have it: the built-in words");
}

#[test]
fn no_report_is_written_over_what_it_is_made_from() {
    let place = checked();
    let (verdict, journal) = (".gate/one/verdict.json", ".gate/one/run.jsonl");
    place.write("words.j2", "{{ title }}");
    let kept = ["one.yaml", verdict, journal, "words.j2"];
    let before = kept.map(|path| place.read(path));
    for (command, words) in [
        (&["check", "one.yaml", "--html", "one.yaml"][..], "--html one.yaml would replace the spec"),
        (&["check", "one.yaml", "--junit", verdict], "would replace the verdict"),
        (&["check", "one.yaml", "--junit", journal], "would replace the run's journal"),
        (&["check", "one.yaml", "--html", "-", "--json"], "--html and --json would both go to stdout"),
        (&["check", "one.yaml", "--html", "a", "--junit", "./a"], "--junit and --html would both be a"),
        (&["check", "one.yaml", "--template", "words.j2", "--html", "words.j2"], "would replace the template"),
        (&["run", "one.yaml", "--output", "one.yaml"], "--output one.yaml would replace the spec"),
        (&["judge", journal, "--html", journal], "would replace the run that is judged"),
        (&["judge", journal, "--spec", "one.yaml", "--junit", "one.yaml"], "would replace the spec"),
        (&["report", verdict, "--html", verdict], "would replace the verdict"),
        (&["report", verdict, "--csv", journal], "would replace the journal that the verdict rests on"),
        (&["report", verdict, ".gate/two/verdict.json", "--html", verdict], "would replace the verdict"),
        (&["report", verdict, "--csv", "-", "--samples", "-"], "would both go to stdout"),
        (&["report", verdict, "--template", "words.j2", "--markdown", "words.j2"], "would replace the template"),
    ] {
        place.gate(command).expect_code(2).says(words);
    }
    assert_eq!(kept.map(|path| place.read(path)), before);
}

#[test]
fn what_can_be_written_without_the_journal_is() {
    let place = checked();
    std::fs::remove_file(place.path(".gate/one/run.jsonl")).unwrap();
    let all = ["--csv", "r.csv", "--html", "r.html", "--junit", "r.xml", "--markdown", "r.md"];
    let ended = place.gate(&[&["report", ".gate/one/verdict.json"], &all[..]].concat());
    ended.expect_code(2).says("run.jsonl");
    assert_eq!(ended.stderr.matches("cannot read").count(), 1, "it is said once: {}", ended.stderr);
    assert!(["r.html", "r.xml", "r.md"].iter().all(|name| place.path(name).is_file()));
    assert!(!place.path("r.csv").exists());
}

#[cfg(unix)]
#[test]
fn a_verdict_may_name_anything_and_nothing_waits_for_it() {
    let place = checked();
    let verdict = place.read(".gate/one/verdict.json");
    for device in ["/dev/zero", "/dev/stdin", "/"] {
        let named = verdict.replace("\"path\": \"run.jsonl\"", &format!("\"path\": \"{device}\""));
        assert!(named != verdict);
        place.write(".gate/one/other.json", &named);
        place.gate(&["report", ".gate/one/other.json", "--html", "page.html"]).expect_code(0).says("it is no file");
        place.gate(&["report", ".gate/one/other.json", "--csv", "r.csv"]).expect_code(2).says("it is no file");
    }
}

#[test]
fn a_verdict_of_more_parts_than_a_report_has_room_for_is_refused() {
    let place = checked();
    let mut verdict: serde_json::Value = serde_json::from_str(&place.read(".gate/one/verdict.json")).unwrap();
    let check = verdict["checks"][0].clone();
    verdict["checks"] = vec![check; 10_001].into();
    place.write("many.json", &verdict.to_string());
    place
        .gate(&["report", "many.json"])
        .expect_code(2)
        .says("it has 10001 checks, and a report is made of at most 10000");
    let spread = serde_json::json!({"scenario": 0, "series": "ttft", "n": 9, "quantiles": vec![1.0; 1_100_000]});
    verdict["checks"] = serde_json::json!([]);
    verdict["spreads"] = serde_json::json!([spread]);
    place.write("many.json", &verdict.to_string());
    place.gate(&["report", "many.json", "--html", "p.html"]).expect_code(2).says("spreads");
}
