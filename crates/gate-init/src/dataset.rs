//! A sample of real traffic: how long its prompts and answers are, and how many turns it has.

use serde_json::Value;

use crate::{Kind, Lengths, Workload};

/// The fewest rows that a distribution is fitted to.
const LEAST: usize = 20;

/// Why nothing can be fitted to a file.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DatasetError {
    /// A line that is no JSON object.
    #[error("line {line} is no JSON object: {why}")]
    NotAnObject {
        /// Its number, from 1.
        line: usize,
        /// Why.
        why: String,
    },
    /// A row that says nothing of its prompt.
    #[error(
        "line {line} has no prompt: a row has `input_tokens`, `prompt`, `messages` or `conversations`, and for its answer \
         `output_tokens`, `response` or a last message of the assistant"
    )]
    NoPrompt {
        /// Its number, from 1.
        line: usize,
    },
    /// Too few rows.
    #[error("{rows} rows say how long {what} are, and {LEAST} are needed")]
    TooFew {
        /// How many there are.
        rows: usize,
        /// Prompts or answers.
        what: &'static str,
    },
}

/// A workload fitted to a JSON Lines file: means and standard deviations of its input and output tokens, and its turns.
///
/// A row is one request or conversation. Its tokens are what `input_tokens`, `prompt_tokens` and `output_tokens`,
/// `completion_tokens` say, at the top or in `usage`; else its texts are counted by `count`: `prompt` and `response`
/// (`completion`, `output`, `answer`), or `messages` and `conversations`, of which a turn's mean counts.
///
/// # Errors
/// [`DatasetError`], each with the line it is about.
pub fn fitted(name: &str, text: &str, kind: Kind, count: impl Fn(&str) -> u32) -> Result<Workload, DatasetError> {
    let (mut inputs, mut outputs, mut turns) = (Vec::new(), Vec::new(), Vec::new());
    for (line, row) in (1..).zip(text.lines()).filter(|(_, row)| !row.trim().is_empty()) {
        let value: Value =
            serde_json::from_str(row).map_err(|error| DatasetError::NotAnObject { line, why: error.to_string() })?;
        if !value.is_object() {
            return Err(DatasetError::NotAnObject { line, why: "it is another value".to_owned() });
        }
        let seen = read(&value, &count).ok_or(DatasetError::NoPrompt { line })?;
        inputs.push(seen.input);
        outputs.extend(seen.output);
        turns.push(seen.turns);
    }
    for (what, rows) in [("prompts", inputs.len()), ("answers", outputs.len())] {
        if rows < LEAST {
            return Err(DatasetError::TooFew { rows, what });
        }
    }
    let too_few = |what| DatasetError::TooFew { rows: 0, what };
    let usual = Workload::usual(kind);
    Ok(Workload {
        input: Lengths::of(&inputs).ok_or(too_few("prompts"))?,
        output: Lengths::of(&outputs).ok_or(too_few("answers"))?,
        turns: (turns.iter().copied().min().unwrap_or(1), turns.iter().copied().max().unwrap_or(1)),
        fitted: Some((name.to_owned(), inputs.len())),
        // What rows share is not looked for.
        shared_prefix: None,
        ..usual
    })
}

struct Row {
    input: u32,
    output: Option<u32>,
    turns: u32,
}

fn read(row: &Value, count: &impl Fn(&str) -> u32) -> Option<Row> {
    let number = |names: &[&str]| {
        let of = |value: &Value| names.iter().find_map(|name| value.get(*name)?.as_u64());
        let number = of(row).or_else(|| of(row.get("usage")?))?;
        Some(u32::try_from(number).unwrap_or(u32::MAX))
    };
    let text = |names: &[&str]| names.iter().find_map(|name| row.get(*name)?.as_str()).map(count);
    let talk = ["messages", "conversations"].iter().find_map(|name| row.get(*name)?.as_array());
    let spoken = talk.map(|talk| conversation(talk, count));
    let input = number(&["input_tokens", "prompt_tokens", "input_length"])
        .or_else(|| text(&["prompt", "input", "question", "instruction"]))
        .or_else(|| spoken.as_ref().filter(|spoken| spoken.turns > 0).map(|spoken| spoken.input))?;
    let output = number(&["output_tokens", "completion_tokens", "output_length"])
        .or_else(|| text(&["response", "completion", "output", "answer"]))
        .or_else(|| spoken.as_ref().and_then(|spoken| spoken.output));
    Some(Row { input, output, turns: spoken.map_or(1, |spoken| spoken.turns).max(1) })
}

/// Each time that a person speaks is a turn; what a turn adds is its prompt, since the history is sent along anyway. Prompts
/// and answers are the means of a conversation's turns.
fn conversation(talk: &[Value], count: &impl Fn(&str) -> u32) -> Row {
    let field = |one: &Value, names: [&str; 2]| {
        names.iter().find_map(|name| one.get(*name)?.as_str()).unwrap_or_default().to_owned()
    };
    let said: Vec<(String, String)> =
        talk.iter().map(|one| (field(one, ["role", "from"]), field(one, ["content", "value"]))).collect();
    let is_answer = |who: &str| ["assistant", "gpt", "model", "chatgpt"].contains(&who);
    let (answers, asked): (Vec<_>, Vec<_>) = said.iter().partition(|(who, _)| is_answer(who));
    let turns = asked.iter().filter(|(who, _)| ["user", "human"].contains(&who.as_str())).count();
    let mean = |texts: &[&(String, String)], over: usize| {
        let all: u64 = texts.iter().map(|(_, text)| u64::from(count(text))).sum();
        let over = u64::try_from(over).unwrap_or(u64::MAX).max(1);
        u32::try_from((all + over / 2) / over).unwrap_or(u32::MAX)
    };
    let output = (!answers.is_empty()).then(|| mean(&answers, answers.len()));
    Row { input: mean(&asked, turns), output, turns: u32::try_from(turns).unwrap_or(u32::MAX) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> u32 {
        text.split_whitespace().count() as u32
    }

    fn fit(row: &str) -> Result<Workload, DatasetError> {
        fitted("f.jsonl", &format!("{row}\n").repeat(20), Kind::Chat, words)
    }

    #[test]
    fn rows_of_many_kinds_are_read() {
        for (row, input, output, turns) in [
            (r#"{"input_tokens": 40, "output_tokens": 9}"#, 40, 9, 1),
            (r#"{"prompt": "a b", "usage": {"prompt_tokens": 7, "completion_tokens": 3}}"#, 7, 3, 1),
            (r#"{"prompt": "a b c", "response": "d e"}"#, 3, 2, 1),
            (
                r#"{"messages": [{"role": "system", "content": "s"}, {"role": "user", "content": "a b"},
                 {"role": "assistant", "content": "c"}, {"role": "user", "content": "d"}, {"role": "assistant", "content": "e f g"}]}"#,
                2,
                2,
                2,
            ),
            (r#"{"conversations": [{"from": "human", "value": "a"}, {"from": "gpt", "value": "b c"}]}"#, 1, 2, 1),
        ] {
            let workload = fit(&row.replace('\n', " ")).unwrap();
            assert_eq!(
                (workload.input.mean, workload.output.mean, workload.turns),
                (input, output, (turns, turns)),
                "{row}"
            );
            assert_eq!(workload.fitted, Some(("f.jsonl".to_owned(), 20)));
        }
    }

    #[test]
    fn means_and_deviations_are_those_of_the_rows() {
        let rows: Vec<String> =
            (1..=100).map(|row| format!("{{\"input_tokens\": {}, \"output_tokens\": 10}}", row * 10)).collect();
        let workload = fitted("f", &rows.join("\n"), Kind::Batch, words).unwrap();
        // 10 … 1,000: mean 505, standard deviation 10 × √(100 × 101 ÷ 12).
        let stddev = (10.0 * (100.0_f64 * 101.0 / 12.0).sqrt()).round() as u32;
        assert_eq!(workload.input, Lengths { mean: 505, stddev, min: 10, max: 1_000 });
        assert_eq!(workload.output, Lengths { mean: 10, stddev: 0, min: 10, max: 10 });
    }

    #[test]
    fn what_is_wrong_names_its_line() {
        let good = r#"{"prompt": "a", "response": "b"}"#;
        let error = |text: &str| fitted("f", text, Kind::Chat, words).unwrap_err().to_string();
        assert!(error(&format!("{good}\n{{")).starts_with("line 2 is no JSON object"));
        assert!(error(&format!("{good}\n\n[]")).starts_with("line 3 is no JSON object: it is another value"));
        assert!(error(&format!("{good}\n{{\"x\": 1}}")).starts_with("line 2 has no prompt"));
        assert!(error(r#"{"messages": []}"#).starts_with("line 1 has no prompt"));
        assert_eq!(error(good), "1 rows say how long prompts are, and 20 are needed");
        let silent = "{\"prompt\": \"a\"}\n".repeat(30);
        assert_eq!(error(&silent), "0 rows say how long answers are, and 20 are needed");
    }
}
