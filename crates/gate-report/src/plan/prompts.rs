//! What is sent, in words.

use gate_model::{Cache, Latency, Nanos, OutputLength, PromptFormat, PromptSpec, SharedPrefix, TokenPolicy, Turns};

use crate::layout::counted;
use crate::words::{grouped, span};

/// Where prompts come from and what they do to a prefix cache.
pub(super) fn prompts(prompts: &PromptSpec) -> String {
    let source = prompts
        .file
        .as_ref()
        .map_or_else(|| "built-in prose".to_owned(), |file| format!("from {file}{}", format(prompts.format)));
    let cache = match prompts.cache {
        Cache::Bust if prompts.shared_prefix.is_some() => "nothing else shared",
        Cache::Bust => "no prefix shared",
        Cache::Natural => "sent as they are, each once, so that what they have in common is shared",
        Cache::Warm => "a warm prefix cache is meant",
    };
    let system =
        prompts.system.as_ref().map(|system| format!("a system prompt of {} characters", system.chars().count()));
    let exact = (prompts.output == OutputLength::Exact).then(|| "outputs go on to the planned length".to_owned());
    let tokenizer = prompts.tokenizer.as_ref().map(|file| format!("tokens without usage counted by {file}"));
    let estimate = (prompts.tokens == TokenPolicy::AcceptEstimate).then(|| "estimated tokens are accepted".to_owned());
    let lengths = [("input", &prompts.input_empirical), ("output", &prompts.output_empirical)];
    let lengths = lengths.map(|(what, file)| file.as_ref().map(|file| format!("{what} lengths drawn from {file}")));
    let images = (!prompts.images.is_empty()).then(|| format!("{} in each", counted(prompts.images.len(), "image")));
    let parts =
        [Some(source), prompts.shared_prefix.map(shared), Some(cache.to_owned()), system, turns(prompts), images];
    let parts = parts.into_iter().chain(lengths).chain([exact, tokenizer, estimate]);
    parts.flatten().collect::<Vec<_>>().join(", ")
}

/// What a file is, where it is not gate's own format.
fn format(format: PromptFormat) -> &'static str {
    match format {
        PromptFormat::Rows => "",
        PromptFormat::Sharegpt => " (ShareGPT)",
        PromptFormat::Openai => " (OpenAI's lines)",
        PromptFormat::Humaneval => " (HumanEval)",
        PromptFormat::Text => " (plain text)",
    }
}

/// `500 tokens shared by all`, or `500 tokens shared within each of 4 groups`.
fn shared(prefix: SharedPrefix) -> String {
    let SharedPrefix { tokens, groups } = prefix;
    let among =
        if groups > 1 { format!("within each of {} groups", grouped(u32::from(groups))) } else { "by all".to_owned() };
    format!("{} tokens shared {among}", grouped(tokens))
}

/// `3 to 5 turns, 2 s of thinking between them`.
fn turns(prompts: &PromptSpec) -> Option<String> {
    let Turns { min, max } = prompts.turns;
    if max <= 1 {
        return None;
    }
    let turns = if min == max { format!("{max} turns") } else { format!("{min} to {max} turns") };
    let Latency { mean, stddev, .. } = prompts.think;
    let spread = if stddev == Nanos::ZERO { String::new() } else { format!(" ± {}", span(stddev)) };
    let think =
        if mean == Nanos::ZERO { String::new() } else { format!(" with {}{spread} to think between them", span(mean)) };
    Some(format!("conversations of {turns}{think}"))
}
