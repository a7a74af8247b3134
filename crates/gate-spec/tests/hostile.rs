//! Texts that nobody means well with: each ends in diagnostics, and none panics.

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::fmt::Write;
    use std::time::{Duration, Instant};

    use gate_model::Diagnostic;
    use gate_spec::{Overlay, resolve};
    use proptest::prelude::*;

    fn refused(text: &str) -> Vec<Diagnostic> {
        let start = Instant::now();
        let diagnostics = resolve("hostile.yaml", text, &BTreeMap::new(), &[]).unwrap_err();
        // A guard against hanging: the slowest takes far below a second, in a debug build too.
        assert!(start.elapsed() < Duration::from_secs(20));
        assert!(!diagnostics.is_empty() && diagnostics.len() <= 100);
        assert!(diagnostics.iter().all(|diagnostic| diagnostic.place.is_some() && diagnostic.hint.is_some()));
        for snippet in diagnostics.iter().filter_map(|diagnostic| diagnostic.snippet.as_ref()) {
            assert!(snippet.text.chars().count() <= 200);
        }
        diagnostics
    }

    fn first(text: &str) -> String {
        refused(text)[0].message.clone()
    }

    #[test]
    fn deep_nesting_is_refused() {
        for piece in ["{a: ", "[", "{", "- ", "? ", "[{a: "] {
            let message = first(&piece.repeat(200_000 / piece.len()));
            assert!(message.contains("nested"), "{piece:?}: {message}");
        }
        let block: String = (0..100).map(|depth| format!("{}a:\n", " ".repeat(depth))).collect();
        assert!(first(&block).contains("nested more than 64 deep"));
    }

    #[test]
    fn multiplying_aliases_are_refused() {
        let mut laughs = "a0: &a0 [lol, lol, lol, lol, lol, lol, lol, lol, lol]\n".to_owned();
        for level in 1..10 {
            let below = format!("*a{}", level - 1);
            writeln!(laughs, "a{level}: &a{level} [{}]", [below.as_str(); 9].join(", ")).unwrap();
        }
        assert!(refused(&laughs).iter().any(|one| one.message.contains("more than 20000 values")));

        let long = format!("a: &a {}\nb: [{}]\n", "x".repeat(200_000), ["*a"; 5_000].join(", "));
        assert!(refused(&long).iter().any(|one| one.message.contains("copy too much text")));

        let mut deep = "a0: &a0 [x]\n".to_owned();
        for level in 1..100 {
            writeln!(deep, "a{level}: &a{level} [*a{}]", level - 1).unwrap();
        }
        assert!(refused(&deep).iter().any(|one| one.message.contains("nested")));
        assert!(refused("a: &a [*a]\n").iter().any(|one| one.message.contains("refers to the value it stands in")));
    }

    #[test]
    fn large_texts_are_refused() {
        assert!(first(&"#".repeat((1 << 20) + 1)).contains("bytes long"));
        let keys: String = (0..30_000).map(|number| format!("key{number}: 1\n")).collect();
        assert!(refused(&keys).iter().any(|one| one.message.contains("more than 20000 values")));
        let keys: String = (0..9_000).map(|number| format!("key{number}: 1\n")).collect();
        assert!(refused(&keys).last().unwrap().message.contains("more problems"));
        for text in
            ["\n".repeat(1 << 20), " ".repeat(1 << 20), "a".repeat(1 << 20), format!("{}: 1", "k".repeat(1 << 19))]
        {
            refused(&text);
        }
        refused(&format!("a: \"{}", "\\n".repeat(500_000)));
        refused(&format!("version: 1\nname: {}\ntarget: {{url: {}}}\n", "n".repeat(400_000), "u".repeat(400_000)));
        refused(&format!("require: [{}]", ["ttft.p95 < 1"; 19_000].join(", ")));
        refused(&format!("target: {{url: '{}'}}", "${A:-".repeat(100_000)));
        refused(&format!("version: {}", "&a ".repeat(300_000)));
    }

    #[test]
    fn control_characters_are_refused() {
        for text in ["\0", "a: \0", "\u{7}: 1", "a: \"\u{1b}[31m\"", "\u{feff}\u{feff}a: 1", "a\u{feff}: 1"] {
            for diagnostic in refused(text) {
                let shown = diagnostic.snippet.map_or_else(String::new, |snippet| snippet.text);
                assert!(!shown.contains(char::is_control), "{shown:?}");
            }
        }
    }

    /// Pieces that texts near a gate spec are made of.
    fn piece() -> impl Strategy<Value = String> {
        let pieces = [
            "version: 1\n",
            "name: x\n",
            "target:\n",
            "  url: sim\n",
            "  sim: {ttft: 1ms}\n",
            "  key: ",
            "load: ",
            "{",
            "}",
            "[",
            "]",
            "rps: 2",
            "iterations: ",
            "30..50",
            ", ",
            ": ",
            "\n",
            "\n  ",
            "\n    ",
            "- ",
            "require:\n",
            "ttft.p95",
            " < ",
            ">= ",
            "800ms",
            "5%",
            "${",
            "}",
            ":-",
            ":?",
            "$${",
            "A",
            "'",
            "\"",
            "|\n",
            ">\n",
            "&a ",
            "*a",
            "!!str ",
            "<<: ",
            "? ",
            "#",
            " #",
            "\t",
            "\r\n",
            "---\n",
            "...\n",
            "é",
            "漢",
            "\u{feff}",
            "\\",
            "@",
            "`",
            "%",
            "~",
            "null",
            "\u{85}",
            "\u{2028}",
        ];
        prop_oneof![4 => proptest::sample::select(pieces.map(str::to_owned).to_vec()), 1 => any::<char>().prop_map(String::from)]
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn no_bytes_panic(bytes in proptest::collection::vec(any::<u8>(), 0..3000)) {
            let _ = resolve("any.yaml", &String::from_utf8_lossy(&bytes), &BTreeMap::new(), &[]);
        }

        #[test]
        fn nothing_like_a_spec_panics(pieces in proptest::collection::vec(piece(), 0..80)) {
            let environment = [("A".to_owned(), "value".to_owned())].into();
            let _ = resolve("near.yaml", &pieces.concat(), &environment, &[]);
        }

        #[test]
        fn no_check_panics(check in "[ -~]{0,30}|(ttft|errors|goodput|e2e)[.][a-z0-9.]{1,6} ?[<>=!]{1,2} ?[0-9.]{0,4}[a-z%/]{0,5}") {
            let check = check.replace('\'', "''");
            let text = format!("version: 1\nname: x\ntarget: {{url: sim}}\nrequire:\n  - '{check}'\n");
            let _ = resolve("check.yaml", &text, &BTreeMap::new(), &[]);
        }

        #[test]
        fn no_relative_check_panics(
            bound in "(baseline|reference|[a-zé−]{0,8}) ?[+−*-]? ?[0-9.]{0,12} ?(%|pp|ms|/s|%  of|of|é)?( ?or ?[0-9.+-]{0,3}[%a-z]{0,3})?",
            metric in "ttft.p50|ttft.max|attainment|goodput|errors.rate|errors.rate.count|itl.p99|output_tokens.mean",
            block in "[a-z:/._@-]{0,12}|(git|branch|last|pin|refs)[:/][a-z0-9/.*^~-]{0,8}",
        ) {
            let text = format!(
                "version: 1\nname: x\ntarget: {{url: sim}}\nreference: {{url: '{block}', key: k}}\n\
                 baseline: {{from: '{block}', store: '{block}', fallback: ['{block}']}}\nrequire:\n  - '{metric} < {bound}'\n"
            );
            let _ = resolve("check.yaml", &text, &BTreeMap::new(), &[]);
        }

        #[test]
        fn no_overlay_panics(path in "[a-z_.]{0,20}|(load|target|reference|baseline|slo|prompts)[.](rps|sim|ttft|key|extra_body|headers)([.][a-z]{1,5}){0,2}", value in ".{0,30}") {
            let text = "version: 1\nname: x\ntarget: {url: sim}\nrequire: [ttft.p95 < 1s]\n";
            let overlay = Overlay { flag: "--set".to_owned(), path, value };
            let _ = resolve("overlay.yaml", text, &BTreeMap::new(), &[overlay]);
        }
    }

    #[test]
    fn no_planted_key_is_shown() {
        for mistake in [
            "key: K",
            "key: 'K",
            "key: [K]",
            "key: {a: K}",
            "key: K: x",
            "headers: {\"Authorization: Bearer K\"}",
            "headers: [\"Authorization: Bearer K\"]",
            "\"key: K\"",
            "\"key: K\":",
            "ready: {key K}",
            "key K",
            "url: x\n  key K\n  model: y",
            "ready: key K",
            "ready: {\"key: K\": 1, \"key: K\": 2}",
            "Authorization: Bearer K",
            "model: {a: Bearer K",
            "key: >K",
            "key: |\n    K",
            "key: \"K\\q\"",
            "kye: K",
            "api_key: K",
            "headers: K",
            "headers: {X-A: K, bad name: K}",
            "headers: {X-A: K: x}",
            "headers:\n    X-A: K\n   bad",
            "headers: [X-A: K]",
            "url: http://u:K@h/",
            "url: http://h/?key=K#f",
            "url: 'http://u:K@h",
            "key: K\n  key: K",
            "headers: {X-A: K, X-A: K}",
            "headers: {? [K] : K}",
            "? {a: K}\n  : K",
            "&b key: K",
            "key: @K",
            "key: !!x K",
            "key: &a K\n  model: *b",
        ] {
            let mistake = mistake.replace('K', "sk-planted-5f3a");
            for block in ["target", "reference"] {
                let text = format!("version: 1\nname: x\n{block}:\n  {mistake}\n  modle: y\nrequire: [ttft.p95 < 1]\n");
                let diagnostics = resolve("mistake.yaml", &text, &BTreeMap::new(), &[]).unwrap_err();
                let shown = format!("{diagnostics:?}");
                assert!(!shown.contains("planted"), "{block}: {mistake}: {shown}");
            }
        }
    }
}
