//! The keys of the prompts.

use super::engine::LATENCY;
use super::{MS, SHAPES};
use crate::field::{Field, Kind, Leaf, Least};

pub(crate) const PROMPTS: &[Field] = &[
    Field::optional(
        "input_tokens",
        Kind::Short {
            key: "mean",
            leaf: Leaf::Number { least: Least::AboveZero },
            fields: LENGTH,
            absent: &[("mean", "550"), ("stddev", "150"), ("min", "50"), ("max", "2000"), ("shape", "normal")],
        },
        "Input lengths in tokens: a number, or a distribution.",
    ),
    Field::optional(
        "output_tokens",
        Kind::Short {
            key: "mean",
            leaf: Leaf::Number { least: Least::AboveZero },
            fields: LENGTH,
            absent: &[("mean", "150"), ("stddev", "20"), ("min", "10"), ("max", "500"), ("shape", "normal")],
        },
        "Output lengths in tokens, the most a request asks for: a number, or a distribution.",
    ),
    Field::default(
        "cache",
        Leaf::Word(&["bust", "natural", "warm"]),
        "bust",
        "What prompts do to the server's prefix cache; `bust`: no prefix is ever shared but what the spec says; `natural`: prompts are sent as they are, each once; `warm`: they are sent as they are and may repeat.",
    ),
    Field::default(
        "output",
        Leaf::Word(&["at_most", "exact"]),
        "at_most",
        "`at_most`: the model may stop before the planned length; `exact`: the server is asked to go on to it.",
    ),
    Field::optional("system", Kind::Leaf(Leaf::Text), "A system prompt, sent before every prompt."),
    Field::optional(
        "file",
        Kind::Leaf(Leaf::File),
        "A file of prompts, each sent once, instead of built-in prose; relative to the folder of this spec.",
    ),
    Field::optional(
        "tokenizer",
        Kind::Leaf(Leaf::File),
        "A Hugging Face `tokenizer.json` that counts the tokens of answers without usage, after the load; relative to the folder of this spec.",
    ),
    Field::default(
        "tokens",
        Leaf::Word(&["usage", "accept_estimate"]),
        "usage",
        "What token counts a verdict may rest on; `usage`: the server's, or the tokenizer's; `accept_estimate`: also the number of events, where there is neither.",
    ),
    Field::default(
        "format",
        Leaf::Word(&["rows", "sharegpt", "openai", "humaneval", "text"]),
        "rows",
        "What `file` is; `rows`: a JSON object a line with `prompt` or `messages`; `sharegpt`: a ShareGPT export; `openai`: OpenAI's batch or fine-tuning lines; `humaneval`: HumanEval's lines; `text`: paragraphs of plain text.",
    ),
    Field::default(
        "turns",
        Leaf::Turns,
        "1",
        "How many turns a conversation has, `N` or `A..B`; later ones carry the history with the real answers, and each counts as an iteration.",
    ),
    Field::optional(
        "think",
        Kind::Short {
            key: "mean",
            leaf: MS,
            fields: LATENCY,
            absent: &[("mean", "0s"), ("stddev", "0s"), ("shape", "lognormal")],
        },
        "From the end of an answer to the next turn: a time, or a distribution.",
    ),
    Field::optional(
        "shared_prefix",
        Kind::Short { key: "tokens", leaf: Leaf::Tokens { most: LONGEST }, fields: SHARED_PREFIX, absent: &[] },
        "A beginning that prompts share, such as `500 tokens`, as part of their input tokens.",
    ),
    Field::optional(
        "images",
        Kind::List(Leaf::Image),
        "Images that every prompt carries: URLs, or files relative to the folder of this spec.",
    ),
];

const SHARED_PREFIX: &[Field] = &[
    Field::required(
        "tokens",
        Kind::Leaf(Leaf::Tokens { most: LONGEST }),
        "Its tokens, fewer than the mean of `input_tokens`.",
    ),
    Field::default(
        "groups",
        Leaf::Count { least: 1, most: 10_000 },
        "1",
        "How many different ones there are; each request has one of them.",
    ),
];

const LENGTH: &[Field] = &[
    Field::optional("mean", Kind::Leaf(Leaf::Number { least: Least::AboveZero }), "The mean before truncation."),
    Field::default(
        "stddev",
        Leaf::Number { least: Least::Zero },
        "0",
        "The standard deviation before truncation; zero makes it constant.",
    ),
    Field::default("min", Leaf::Count { least: 1, most: LONGEST }, "1", "The least; shorter draws are redrawn."),
    Field::optional(
        "max",
        Kind::Leaf(Leaf::Count { least: 1, most: LONGEST }),
        "The greatest; longer draws are redrawn. Where absent: the mean and five standard deviations.",
    ),
    Field::default("shape", SHAPES, "normal", "The shape."),
    Field::optional(
        "empirical",
        Kind::Leaf(Leaf::File),
        "Instead of all others: a file of lengths seen before, one a line, which are drawn from; relative to the folder of this spec.",
    ),
];

/// The most tokens a length can be.
pub(crate) const LONGEST: u32 = 2_000_000;
