use std::collections::HashSet;

use gate_model::{Cache, GateSpec, Image, Iterations, Message, PromptFormat, Prompts, Role, Turns};
use gate_plan::{Files, PromptFile, SpecPrompts};

use crate::support::{error, plan_of, spec};

fn said(file: &PromptFile) -> Vec<Vec<(Role, &str)>> {
    let messages = |messages: &'_ [Message]| messages.len();
    assert!(file.rows().iter().all(|row| messages(&row.messages) > 0));
    file.rows().iter().map(|row| row.messages.iter().map(|m| (m.role, m.text.as_str())).collect()).collect()
}

fn natural(count: u32, warmup: u32) -> GateSpec {
    let mut spec = spec(6);
    spec.load.iterations = Iterations::Fixed(count);
    spec.load.warmup = warmup;
    spec.prompts.cache = Cache::Natural;
    spec
}

#[test]
fn a_sharegpt_export_is_read() {
    let text = r#"[
        {"id": "a", "conversations": [{"from": "human", "value": "Hi"}, {"from": "gpt", "value": "Hello"},
            {"from": "human", "value": "Bye"}]},
        {"id": "b", "conversations": [{"from": "gpt", "value": "Alone"}]},
        {"conversations": [{"from": "system", "value": "S"}, {"from": "user", "value": "Q"},
            {"from": "tool", "value": "ignored"}, {"from": "human", "value": " "}]}
    ]"#;
    let expected = [
        vec![(Role::User, "Hi"), (Role::Assistant, "Hello"), (Role::User, "Bye")],
        vec![(Role::System, "S"), (Role::User, "Q")],
    ];
    let file = PromptFile::parse(text, PromptFormat::Sharegpt).unwrap();
    assert_eq!(said(&file), expected);
    let lines = r#"{"conversations": [{"from": "human", "value": "Q"}]} {"conversations": []}"#;
    assert_eq!(said(&PromptFile::parse(lines, PromptFormat::Sharegpt).unwrap()), [[(Role::User, "Q")]]);

    for (text, words) in [
        ("[", "the file is not a list of objects with `conversations`: EOF while parsing"),
        ("[{}]", "conversation 1: `conversations` is missing, and must be a list of what was said"),
        (
            r#"[{"conversations": []}, {"conversations": [{"from": "human", "value": 3}]}]"#,
            "conversation 2: `conversations[0].value` is 3, and must be a text",
        ),
        ("[]", "the file holds no prompt: it has a JSON list of objects with `conversations`"),
    ] {
        let found = PromptFile::parse(text, PromptFormat::Sharegpt).unwrap_err().to_string();
        assert!(found.starts_with(words), "{found}");
    }
}

#[test]
fn openai_lines_are_read_with_their_images() {
    let text = r#"{"custom_id": "1", "body": {"max_tokens": 9, "messages": [{"role": "developer", "content": "S"}, {"role": "user", "content": [{"type": "text", "text": "What?"}, {"type": "image_url", "image_url": {"url": "https://x/y.png"}}, {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}]}]}}
{"messages": [{"role": "user", "content": "Q"}, {"role": "assistant", "content": null, "tool_calls": []}, {"role": "tool", "content": "T"}, {"role": "assistant", "content": "A"}, {"role": "user", "content": "R"}, {"role": "assistant", "content": "taught"}], "tools": []}"#;
    let file = PromptFile::parse(text, PromptFormat::Openai).unwrap();
    let expected = [
        vec![(Role::System, "S"), (Role::User, "What?")],
        vec![(Role::User, "Q"), (Role::Assistant, "A"), (Role::User, "R")],
    ];
    assert_eq!(said(&file), expected);
    assert_eq!(file.rows().iter().map(|row| row.output_tokens).collect::<Vec<_>>(), [Some(9), None]);
    let inline = Image::Inline { media_type: "image/png".to_owned(), base64: "AAAA".into() };
    assert_eq!(file.rows()[0].messages[1].images, [Image::Url("https://x/y.png".to_owned()), inline]);
    for (row, words) in [
        (r#"{"prompt": "a"}"#, "line 1: `messages` is missing, and must be a list of one message or more"),
        (
            r#"{"messages": [{"role": "user", "content": [{"type": "audio"}]}]}"#,
            "line 1: `messages[0].content[0].type` is \"audio\", and must be \"text\" or \"image_url\"",
        ),
        (r#"{"messages": [{"role": "assistant", "content": "a"}]}"#, "line 1: `messages` has none with the role"),
    ] {
        let found = PromptFile::parse(row, PromptFormat::Openai).unwrap_err().to_string();
        assert!(found.starts_with(words), "{found}");
    }
}

#[test]
fn problems_and_paragraphs_are_read() {
    let text = "{\"task_id\": \"HumanEval/0\", \"prompt\": \"def f():\\n\", \"test\": \"\"}\n";
    assert_eq!(said(&PromptFile::parse(text, PromptFormat::Humaneval).unwrap()), [[(Role::User, "def f():\n")]]);
    let found = PromptFile::parse("{\"text\": \"a\"}", PromptFormat::Humaneval).unwrap_err().to_string();
    assert_eq!(found, "line 1: `prompt` is missing, and must be a text");
    let paragraphs = PromptFile::parse("\r\nOne\r\ntwo\r\n \r\n\r\nthree\n", PromptFormat::Text).unwrap();
    assert_eq!(said(&paragraphs), [[(Role::User, "One\ntwo")], [(Role::User, "three")]]);
    assert!(PromptFile::parse(" \n", PromptFormat::Text).unwrap_err().to_string().contains("it has paragraphs"));
}

#[test]
fn a_data_set_is_sampled_without_repeats_in_the_seed_s_order() {
    let text: String = (0..60).map(|row| format!("paragraph {row}\n\n")).collect();
    let files = Files { prompts: Some(PromptFile::parse(&text, PromptFormat::Text).unwrap()), ..Files::default() };
    let sent = |spec: &GateSpec| {
        let plan = plan_of(spec, &files);
        let prompts = SpecPrompts::new(spec, "run", std::slice::from_ref(&files));
        let measured = plan.requests.iter().map(|request| prompts.measured(request, &[]));
        let warmup = plan.warmup.iter().map(|request| prompts.warmup(request));
        measured.chain(warmup).map(|prompt| prompt.messages[0].text.clone()).collect::<Vec<_>>()
    };
    let mut spec = natural(50, 10);
    let all = sent(&spec);
    assert_eq!(all.iter().collect::<HashSet<_>>().len(), 60);
    assert_ne!(all[0], "paragraph 0");
    assert_eq!(gate_plan::repeats(&spec, &plan_of(&spec, &files), std::slice::from_ref(&files)), 0);
    // More requests only add to the end, and warm-up stays.
    let fewer = sent(&natural(20, 10));
    assert_eq!((&fewer[..20], &fewer[20..]), (&all[..20], &all[50..]));
    spec.load.seed = 7;
    assert_ne!(sent(&spec), all);
    // Never wrapped.
    assert!(error(&natural(51, 10), &files).starts_with("`prompts.file` has 60 rows, and 51 measured requests and 10"));
}

#[test]
fn a_repeat_in_the_file_is_told() {
    let text = "a\n\nb\n\na\n\na\n\nc\n\n";
    let files = Files { prompts: Some(PromptFile::parse(text, PromptFormat::Text).unwrap()), ..Files::default() };
    let mut spec = natural(5, 0);
    let repeats = |spec: &GateSpec| gate_plan::repeats(spec, &plan_of(spec, &files), std::slice::from_ref(&files));
    assert_eq!(repeats(&spec), 2);
    spec.prompts.cache = Cache::Warm;
    assert_eq!(repeats(&spec), 0);
    assert_eq!(gate_plan::repeats(&natural(5, 0), &plan_of(&natural(5, 0), &Files::default()), &[]), 0);
}

#[test]
fn conversations_of_a_file_become_turns() {
    let conversation = |name: &str, turns: usize| {
        let say = |turn| format!(r#"{{"from": "human", "value": "{name}{turn}"}}, {{"from": "gpt", "value": "no"}}"#);
        format!(r#"{{"conversations": [{}]}}"#, (0..turns).map(say).collect::<Vec<_>>().join(", "))
    };
    let text = [conversation("a", 1), conversation("b", 2), conversation("c", 9), conversation("d", 3)].join("\n");
    let file = PromptFile::parse(&text, PromptFormat::Sharegpt).unwrap();
    let files = Files { prompts: Some(file), ..Files::default() };
    let mut spec = natural(7, 0);
    spec.prompts.turns = Turns { min: 2, max: 3 };
    let plan = plan_of(&spec, &files);
    let prompts = SpecPrompts::new(&spec, "run", std::slice::from_ref(&files));
    let mut openings = HashSet::new();
    for request in &plan.requests {
        let answers: Vec<String> = (0..request.turn).map(|turn| format!("answer {turn}")).collect();
        let messages = prompts.measured(request, &answers).messages;
        assert_eq!(messages.len(), 2 * usize::from(request.turn) + 1);
        let name = messages[0].text.trim_end_matches('0').to_owned();
        for (place, message) in messages.iter().enumerate() {
            let expected = match place % 2 {
                0 => (Role::User, format!("{name}{}", place / 2)),
                _ => (Role::Assistant, format!("answer {}", place / 2)),
            };
            assert_eq!((message.role, &message.text), (expected.0, &expected.1));
        }
        openings.insert(name);
    }
    assert!(!openings.contains("a") && openings.len() == 3, "{openings:?}");
    spec.load.iterations = Iterations::Fixed(10);
    let found = error(&spec, &files);
    assert!(found.starts_with("`prompts.file` has 3 conversations of at least 2 turns (of 4), and"), "{found}");
}
