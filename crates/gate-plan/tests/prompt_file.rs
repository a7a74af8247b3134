//! Prompt files: what a row may be, what is wrong with a bad one, and what is planned and sent from it.

#[cfg(test)]
mod support {
    use gate_model::{Endpoint, GateSpec, Iterations, Plan, PromptFormat};
    use gate_plan::{Extent, Files, PlanError, PromptFile};

    /// A gate of four measured requests and two for warm-up.
    pub(crate) fn spec() -> GateSpec {
        let mut spec = GateSpec::new("chat", Endpoint::Url("http://127.0.0.1:8000/v1".to_owned()));
        spec.load.iterations = Iterations::Fixed(4);
        spec.load.warmup = 2;
        spec
    }

    /// The plan of so many measured requests.
    pub(crate) fn plan(spec: &GateSpec, count: u32, file: Option<&PromptFile>) -> Result<Plan, PlanError> {
        let mut spec = spec.clone();
        spec.load.iterations = Iterations::Fixed(count);
        gate_plan::plans(&spec, Extent::Base, &only(file)).map(|mut plans| plans.remove(0))
    }

    /// A prompt file alone.
    pub(crate) fn only(file: Option<&PromptFile>) -> [Files; 1] {
        [Files { prompts: file.cloned(), ..Files::default() }]
    }

    /// A file of one row for each of these prompts.
    pub(crate) fn file(prompts: &[&str]) -> PromptFile {
        let rows = prompts.iter().map(|prompt| serde_json::json!({ "prompt": prompt }).to_string());
        PromptFile::parse(&rows.collect::<Vec<_>>().join("\n"), PromptFormat::Rows).unwrap()
    }
}

#[cfg(test)]
mod rows {
    use gate_model::{PromptFormat, Role};
    use gate_plan::PromptFile;

    use crate::support::{file, only, plan, spec};

    #[test]
    fn a_row_may_be_a_prompt_a_text_or_messages() {
        let text = "\u{feff}{\"prompt\": \"One\\ntwo\", \"id\": 7}\r\n\n  \n\
            {\"text\": \"Three\", \"prompt\": null, \"output_tokens\": 12}\n\
            {\"messages\": [{\"role\": \"system\", \"content\": \"S\"}, {\"role\": \"user\", \"content\": \"U\"}, \
            {\"role\": \"assistant\", \"content\": \"A\", \"name\": \"x\"}, {\"role\": \"user\", \"content\": \"V\"}]}";
        let file = PromptFile::parse(text, PromptFormat::Rows).unwrap();
        let said: Vec<Vec<(Role, &str)>> = file
            .rows()
            .iter()
            .map(|row| row.messages.iter().map(|message| (message.role, message.text.as_str())).collect())
            .collect();
        let expected = [
            vec![(Role::User, "One\ntwo")],
            vec![(Role::User, "Three")],
            vec![(Role::System, "S"), (Role::User, "U"), (Role::Assistant, "A"), (Role::User, "V")],
        ];
        assert_eq!(said, expected);
        assert_eq!(file.rows().iter().map(|row| row.output_tokens).collect::<Vec<_>>(), [None, Some(12), None]);
        assert_eq!(file.rows().iter().map(|row| row.input_tokens()).collect::<Vec<_>>(), [3, 1, 4]);
    }

    #[test]
    fn a_repeat_says_the_same_in_the_same_roles() {
        let file_of = file(&["a", "b", "a", "a", "b"]);
        let repeats = |file: &PromptFile, count| {
            let mut spec = spec();
            spec.load.warmup = 0;
            gate_plan::repeats(&spec, &plan(&spec, count, Some(file)).unwrap(), &only(Some(file)))
        };
        assert_eq!((1..=5).map(|count| repeats(&file_of, count)).collect::<Vec<_>>(), [0, 0, 1, 2, 3]);

        let rows = [
            r#"{"prompt": "a"}"#,
            r#"{"text": "a", "output_tokens": 3}"#,
            r#"{"messages": [{"role": "user", "content": "a"}]}"#,
            r#"{"messages": [{"role": "system", "content": "s"}, {"role": "user", "content": "a"}]}"#,
            r#"{"messages": [{"role": "assistant", "content": "s"}, {"role": "user", "content": "a"}]}"#,
        ];
        assert_eq!(repeats(&PromptFile::parse(&rows.join("\n"), PromptFormat::Rows).unwrap(), 5), 2);
    }

    #[test]
    fn a_wrong_row_is_named_by_line_and_field() {
        let user = r#"{"role": "user", "content": "a"}"#;
        let long = format!(r#"{{"messages": [{{"role": "{}", "content": "a"}}]}}"#, "x".repeat(1000));
        for (row, words) in [
            (
                "{",
                "line 3 is not a JSON object: EOF while parsing an object at column 1; write each prompt on one line",
            ),
            ("[1]", "line 3 is not a JSON object: it is a list; write each prompt on one line"),
            ("Hello", "line 3 is not a JSON object: expected value at column 1"),
            ("{}", "line 3 has no prompt: give it one of `prompt`, `text` and `messages`"),
            (r#"{"Prompt": "a"}"#, "line 3 has no prompt"),
            (r#"{"prompt": null}"#, "line 3 has no prompt"),
            (r#"{"text": "a", "prompt": "b"}"#, "line 3 has both `prompt` and `text`: keep the one to send"),
            (r#"{"prompt": " \n"}"#, "line 3: `prompt` is blank: give it a text, or take the line out"),
            (r#"{"text": ""}"#, "line 3: `text` is blank"),
            (r#"{"prompt": 7}"#, "line 3: `prompt` is 7, and must be a text"),
            (r#"{"prompt": ["a"]}"#, "line 3: `prompt` is a list, and must be a text"),
            (r#"{"messages": "a"}"#, "line 3: `messages` is \"a\", and must be a list of one message or more"),
            (r#"{"messages": []}"#, "line 3: `messages` is an empty list, and must be a list of one message or more"),
            (
                r#"{"messages": ["a"]}"#,
                "line 3: `messages[0]` is \"a\", and must be an object with `role` and `content`",
            ),
            (
                &format!(r#"{{"messages": [{user}, {{"role": "human", "content": "a"}}]}}"#),
                "line 3: `messages[1].role` is \"human\", and must be \"system\", \"user\" or \"assistant\"",
            ),
            (r#"{"messages": [{"content": "a"}]}"#, "line 3: `messages[0].role` is missing, and must be \"system\""),
            (r#"{"messages": [{"role": "user"}]}"#, "line 3: `messages[0].content` is missing, and must be a text"),
            (
                r#"{"messages": [{"role": "user", "content": [{"type": "text"}]}]}"#,
                "line 3: `messages[0].content` is a list, and must be a text",
            ),
            (r#"{"messages": [{"role": "user", "content": " "}]}"#, "line 3: `messages[0].content` is blank"),
            (
                r#"{"messages": [{"role": "system", "content": "a"}]}"#,
                "line 3: `messages` has none with the role \"user\": add what is asked",
            ),
            (
                r#"{"prompt": "a", "output_tokens": 0}"#,
                "line 3: `output_tokens` is 0, and must be a whole number of tokens, from 1 to 10,000,000",
            ),
            (r#"{"prompt": "a", "output_tokens": "9"}"#, "line 3: `output_tokens` is \"9\""),
            (r#"{"prompt": "a", "output_tokens": 1.5}"#, "line 3: `output_tokens` is 1.5"),
            (r#"{"prompt": "a", "output_tokens": 4294967296}"#, "line 3: `output_tokens` is 4294967296"),
            (
                r#"{"prompt": "a", "output_tokens": 1000000000000000000}"#,
                "line 3: `output_tokens` is 1000000000000000000, and must be a whole number of tokens, from 1 to 10,000,000",
            ),
            (&long, "line 3: `messages[0].role` is \"xxx"),
        ] {
            let text = format!("{{\"prompt\": \"good\"}}\n\n{row}\n{{\"prompt\": \"good\"}}\n");
            let found = PromptFile::parse(&text, PromptFormat::Rows).unwrap_err().to_string();
            assert!(found.starts_with(words), "{found}");
            assert!(found.chars().count() < 200, "{found}");
        }
        for empty in ["", "\n \r\n", "\u{feff}"] {
            let found = PromptFile::parse(empty, PromptFormat::Rows).unwrap_err().to_string();
            assert_eq!(found, "the file holds no prompt: it has one JSON object a line, such as `{\"prompt\": \"…\"}`");
        }
    }
}

#[cfg(test)]
mod plans {
    use gate_model::Cache;
    use gate_model::PromptFormat;
    use gate_plan::{PlanError, PromptFile};

    use crate::support::{file, plan, spec};

    #[test]
    fn measured_rows_come_first_and_warm_up_takes_the_last() {
        let file = file(&["a", "a b", "a b c", "a b c d", "unused", "a b c d e", "a b c d e f"]);
        let inputs =
            |requests: &[gate_model::PlannedRequest]| requests.iter().map(|r| r.input_tokens).collect::<Vec<_>>();
        let whole = plan(&spec(), 4, Some(&file)).unwrap();
        assert_eq!(inputs(&whole.requests), [1, 2, 3, 4]);
        assert_eq!(inputs(&whole.warmup), [5, 6]);
        let shorter = plan(&spec(), 2, Some(&file)).unwrap();
        assert_eq!(shorter.requests, whole.requests[..2]);
        assert_eq!(shorter.warmup, whole.warmup);
    }

    #[test]
    fn only_input_lengths_and_those_a_row_gives_differ_from_a_plan_without_a_file() {
        let rows = r#"{"prompt": "a"}
            {"prompt": "b", "output_tokens": 7}
            {"prompt": "c"}
            {"prompt": "d"}
            {"prompt": "e", "output_tokens": 8}
            {"prompt": "f"}"#;
        let with = plan(&spec(), 4, Some(&PromptFile::parse(rows, PromptFormat::Rows).unwrap())).unwrap();
        let mut expected = plan(&spec(), 4, None).unwrap();
        expected.requests.iter_mut().chain(&mut expected.warmup).for_each(|request| request.input_tokens = 1);
        expected.requests[1].output_tokens = 7;
        expected.warmup[0].output_tokens = 8;
        assert_ne!(with.digest, expected.digest);
        expected.digest.clone_from(&with.digest);
        assert_eq!(with, expected);

        // Lengths that are not used are not judged.
        let mut spec = spec();
        spec.prompts.input_tokens.min = 0;
        assert_eq!(plan(&spec, 4, Some(&PromptFile::parse(rows, PromptFormat::Rows).unwrap())).unwrap(), expected);
    }

    #[test]
    fn a_file_with_too_few_rows_says_how_many_are_needed() {
        let rows = ["a", "b", "c", "d", "e", "f"];
        assert!(plan(&spec(), 4, Some(&file(&rows))).is_ok());
        let error = plan(&spec(), 4, Some(&file(&rows[..5]))).unwrap_err();
        assert_eq!(
            error.to_string(),
            "`prompts.file` has 5 rows, and 4 measured requests and 2 for warm-up need 6: add rows, or lower \
             `load.iterations`, `load.extend` or `load.warmup`"
        );
        let error = plan(&spec(), 1, Some(&file(&rows[..1]))).unwrap_err().to_string();
        assert!(
            error.starts_with("`prompts.file` has 1 row, and 1 measured request and 2 for warm-up need 3"),
            "{error}"
        );
    }

    #[test]
    fn one_prompt_throughout_must_be_meant() {
        let mut spec = spec();
        let same = file(&["a", "a", "a", "a", "b", "c"]);
        let error = plan(&spec, 4, Some(&same)).unwrap_err();
        assert_eq!(error, PlanError::OnePrompt { measured: 4 });
        assert_eq!(
            error.to_string(),
            "the first 4 rows of `prompts.file`, those that are measured, are all the same prompt: vary them, or set \
             `prompts.cache: warm` where one prompt is meant"
        );
        assert!(plan(&spec, 4, Some(&file(&["a", "a", "a", "b", "b", "b"]))).is_ok());
        assert!(plan(&spec, 1, Some(&same)).is_ok());
        spec.prompts.cache = Cache::Warm;
        assert!(plan(&spec, 4, Some(&same)).is_ok());
    }

    #[test]
    fn a_file_that_was_not_read_is_not_replaced_by_prose() {
        let mut spec = spec();
        spec.prompts.file = Some("prompts.jsonl".to_owned());
        let error = plan(&spec, 4, None).unwrap_err().to_string();
        assert_eq!(error, "`prompts.file` is `prompts.jsonl`, and no plan is possible without its text: read it first");
    }
}

#[cfg(test)]
mod prompts {
    use std::collections::HashSet;

    use gate_model::PromptFormat;
    use gate_model::{Cache, GateSpec, Message, Prompts, Role};
    use gate_plan::{PromptFile, SpecPrompts};

    use crate::support::{file, only, plan, spec};

    /// The messages of every request, measured ones first.
    fn sent(spec: &GateSpec, run_id: &str, file: &PromptFile) -> Vec<Vec<Message>> {
        let plan = plan(spec, 4, Some(file)).unwrap();
        let prompts = SpecPrompts::new(spec, run_id, &only(Some(file)));
        prompts.fit(&[(400, 800), (600, 1200)]);
        let measured = plan.requests.iter().map(|request| prompts.measured(request, &[]));
        let warmup = plan.warmup.iter().map(|request| prompts.warmup(request));
        measured.chain(warmup).map(|prompt| prompt.messages).collect()
    }

    #[test]
    fn a_warm_cache_gets_the_rows_as_they_are() {
        let mut spec = spec();
        spec.prompts.cache = Cache::Warm;
        let file = file(&["a", "b", "c", "d", "unused", "e", "f"]);
        let texts: Vec<String> =
            sent(&spec, "run", &file).into_iter().map(|messages| messages[0].text.clone()).collect();
        assert_eq!(texts, ["a", "b", "c", "d", "e", "f"]);
    }

    #[test]
    fn a_nonce_goes_before_what_the_user_says_first() {
        let spec = spec();
        let conversation = r#"{"messages": [{"role": "system", "content": "S"}, {"role": "user", "content": "same"},
            {"role": "assistant", "content": "A"}, {"role": "user", "content": "V"}]}"#;
        let rows = [&conversation.replace('\n', " "), r#"{"prompt": "same"}"#, r#"{"prompt": "same"}"#];
        let file = PromptFile::parse(&[rows, rows].concat().join("\n"), PromptFormat::Rows).unwrap();
        let all = sent(&spec, "run", &file);

        let texts = |position: usize| all[position].iter().map(|m| m.text.as_str()).collect::<Vec<_>>();
        assert_eq!(texts(0).len(), 4);
        assert_eq!((texts(0)[0], texts(0)[2], texts(0)[3]), ("S", "A", "V"));
        let first_of_user = |messages: &Vec<Message>| {
            let text = &messages.iter().find(|message| message.role == Role::User).unwrap().text;
            let (nonce, text) = text.split_once('\n').unwrap();
            assert_eq!(text, "same");
            nonce.to_owned()
        };
        let nonces: HashSet<String> = all.iter().map(first_of_user).collect();
        assert_eq!(nonces.len(), 6);
        assert_eq!(all, sent(&spec, "run", &file));
        assert!(sent(&spec, "other", &file).iter().all(|messages| !nonces.contains(&first_of_user(messages))));
    }

    #[test]
    fn a_row_s_own_system_message_wins_over_the_spec_s() {
        let mut spec = spec();
        spec.prompts.system = Some("of the spec".to_owned());
        let own = r#"{"messages": [{"role": "system", "content": "of the row"}, {"role": "user", "content": "a"}]}"#;
        let file = PromptFile::parse(&[own, r#"{"prompt": "b"}"#].repeat(3).join("\n"), PromptFormat::Rows).unwrap();
        for (messages, system) in sent(&spec, "run", &file).iter().zip(["of the row", "of the spec"].repeat(3)) {
            assert_eq!(messages.iter().map(|message| message.role).collect::<Vec<_>>(), [Role::System, Role::User]);
            assert_eq!(messages[0].text, system);
        }
    }

    #[test]
    fn a_request_of_another_plan_gets_a_row_too() {
        let prompts = SpecPrompts::new(&spec(), "run", &only(Some(&file(&["a", "b"]))));
        let request = gate_model::PlannedRequest { index: u32::MAX, ..Default::default() };
        assert!(prompts.measured(&request, &[]).messages[0].text.ends_with("\nb"));
        assert!(prompts.warmup(&request).messages[0].text.ends_with("\nb"));
    }
}
