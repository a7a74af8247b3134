//! Counting by a tokenizer file: what it counts, and what is refused.

#[cfg(not(feature = "tokenizer"))]
#[cfg(test)]
mod without {
    use gate_tokens::{Tokenizer, TokenizerError};

    #[test]
    fn every_file_is_refused_with_the_remedy() {
        let error = Tokenizer::from_json(b"{}").err().unwrap();
        assert_eq!(error, TokenizerError::NotBuiltIn);
        assert!(error.to_string().contains("feature `tokenizer`"), "{error}");
    }
}

#[cfg(feature = "tokenizer")]
#[cfg(test)]
mod tests {
    use gate_model::CountTokens;
    use gate_tokens::{Tokenizer, TokenizerError};
    use serde_json::{Value, json};

    /// Byte pairs with ten merges; it cuts to 4 tokens, pads to 64 and begins with `<s>` unless told otherwise.
    const TINY: &str = include_str!("../../../fixtures/tokenizers/tiny.json");

    fn refused(bytes: &[u8]) -> TokenizerError {
        match Tokenizer::from_json(bytes) {
            Ok(_) => panic!("{} is accepted", String::from_utf8_lossy(bytes)),
            Err(error) => error,
        }
    }

    #[test]
    fn tokens_are_those_of_the_text_alone() {
        let tokenizer = Tokenizer::from_json(TINY.as_bytes()).unwrap();
        for (text, tokens) in [
            ("", 0),
            ("hello", 1),
            ("hello hello world", 3),
            ("hello hello hello hello hello hello", 6),
            ("hell", 1),
            ("Hello", 4), // H, e, ll, o
            ("1234", 4),
            ("\u{e9}", 2),
            ("hello\n\n  hello", 5), // hello, two line breaks, a blank, a blank with hello
            ("<s>", 1),
        ] {
            assert_eq!(tokenizer.count(text), Some(tokens), "{text:?}");
        }
        let long = "hello world ".repeat(100_000);
        assert_eq!(tokenizer.count(&long), Some(200_001), "nothing is cut");
        // What pairs no characters of a run must not be quadratic, nor end early.
        assert_eq!(tokenizer.count(&" ".repeat(100_000)), Some(100_000));
        assert_eq!(tokenizer.count(&"\u{1F600}".repeat(10_000)), Some(40_000));
    }

    #[test]
    fn what_is_no_tokenizer_says_why() {
        let word_level = |unknown: &str| json!({"version": "1.0", "model": {"type": "WordLevel", "vocab": {"a": 0, "?": 1}, "unk_token": unknown}});
        assert!(Tokenizer::from_json(word_level("?").to_string().as_bytes()).is_ok());
        let refuses = word_level("[UNK]").to_string();
        for (bytes, expected) in [
            (
                &b"\x0a\x0e\x0a\x05<unk>"[..],
                "is not JSON (expected value at line 2 column 1): name the `tokenizer.json`",
            ),
            (b"", "is not JSON (EOF while parsing a value at line 1 column 0): name"),
            (b"{\"model\": ", "is not JSON (EOF while parsing a value at line 1 column 10): name"),
            (b"[1]", "is JSON but no tokenizer, since it has no `model`: name"),
            (b"{\"the\": 1}", "not its `tokenizer_config.json`"),
            (
                include_bytes!("../../../fixtures/tokenizers/tokenizer_config.json"),
                "is JSON but no tokenizer, since it has no `model`",
            ),
            (b"{\"model\": \"gpt-4\"}", "holds a tokenizer that cannot be read ("),
            (
                br#"{"version": "9.0", "model": {"type": "BPE", "vocab": {}, "merges": []}}"#,
                "save it again with a current",
            ),
            (refuses.as_bytes(), "holds a tokenizer that refuses text outside its vocabulary ("),
        ] {
            let error = refused(bytes).to_string();
            assert!(error.contains(expected), "{error}");
            assert!(error.starts_with(char::is_lowercase), "{error}");
        }
    }

    /// Every value of the tokenizer, one at a time, is replaced by something else.
    #[test]
    fn nothing_like_a_tokenizer_panics() {
        fn paths(value: &Value, path: &str, found: &mut Vec<String>) {
            found.push(path.to_owned());
            match value {
                // Of a long vocabulary a few stand for all.
                Value::Object(fields) => fields.iter().take(5).for_each(|(name, value)| {
                    let name = name.replace('~', "~0").replace('/', "~1");
                    paths(value, &format!("{path}/{name}"), found);
                }),
                Value::Array(items) => {
                    items.iter().take(2).enumerate().for_each(|(at, item)| paths(item, &format!("{path}/{at}"), found));
                }
                _ => {}
            }
        }
        let whole: Value = serde_json::from_str(TINY).unwrap();
        let mut found = Vec::new();
        paths(&whole, "", &mut found);
        let (mut read, mut refused) = (0, 0);
        for path in &found {
            for other in [
                json!(null),
                json!([]),
                json!({}),
                json!(-1),
                json!(u32::MAX),
                json!(""),
                json!("(?<=x"),
                json!(["", "zz"]),
            ] {
                let mut changed = whole.clone();
                *changed.pointer_mut(path).unwrap() = other;
                match Tokenizer::from_json(changed.to_string().as_bytes()) {
                    Ok(tokenizer) => {
                        tokenizer.count("hello <s> world \u{1F600}");
                        read += 1;
                    }
                    Err(_) => refused += 1,
                }
            }
        }
        assert!(read > 10 && refused > 100, "{read} read, {refused} refused");
    }
}
