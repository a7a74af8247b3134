//! The kept corpus, and the streams of the fixtures, through every target.

#[cfg(test)]
mod corpus {
    use std::path::{Path, PathBuf};

    type Target = fn(&[u8]);

    const TARGETS: [(&str, Target); 11] = [
        ("anthropic", gate_fuzz::anthropic),
        ("cohere", gate_fuzz::cohere),
        ("custom", gate_fuzz::custom),
        ("event_stream", gate_fuzz::event_stream),
        ("gemini", gate_fuzz::gemini),
        ("native", gate_fuzz::native),
        ("ollama", gate_fuzz::ollama),
        ("openai_chat", gate_fuzz::openai_chat),
        ("openai_responses", gate_fuzz::openai_responses),
        ("saved", gate_fuzz::saved),
        ("whole", gate_fuzz::whole),
    ];

    fn here() -> &'static Path {
        Path::new(env!("CARGO_MANIFEST_DIR"))
    }

    /// The names of what a folder holds, sorted.
    fn names(folder: &Path) -> Vec<String> {
        let entries = std::fs::read_dir(folder).unwrap();
        let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    fn files(folder: &Path) -> Vec<PathBuf> {
        names(folder).into_iter().map(|name| folder.join(name)).filter(|path| path.is_file()).collect()
    }

    #[test]
    fn every_target_has_a_file_and_a_corpus() {
        let wanted = TARGETS.map(|(name, _)| name);
        let targets = names(&here().join("fuzz_targets"));
        assert_eq!(targets, wanted.map(|name| format!("{name}.rs")));
        assert_eq!(names(&here().join("corpus")), wanted);
    }

    #[test]
    fn the_kept_corpus_passes() {
        for (name, target) in TARGETS {
            let files = files(&here().join("corpus").join(name));
            assert!(!files.is_empty(), "{name} has no corpus");
            files.iter().for_each(|file| target(&std::fs::read(file).unwrap()));
        }
    }

    #[test]
    fn the_fixtures_pass() {
        for file in files(&here().join("../../fixtures/wire")) {
            let body = std::fs::read(&file).unwrap();
            TARGETS.iter().for_each(|(_, target)| target(&body));
        }
    }
}
