//! The keys of the simulated engine.

use super::{LIMIT, MS, SHAPES, WAIT};
use crate::field::{Field, Kind, Leaf, Least};

pub(super) const SIM: &[Field] = &[
    Field::optional(
        "ttft",
        Kind::Short {
            key: "mean",
            leaf: MS,
            fields: LATENCY,
            absent: &[("mean", "120ms"), ("stddev", "30ms"), ("shape", "lognormal")],
        },
        "Time from a request's arrival to its first token: a time, or a distribution.",
    ),
    Field::optional(
        "tpot",
        Kind::Short {
            key: "mean",
            leaf: MS,
            fields: LATENCY,
            absent: &[("mean", "10ms"), ("stddev", "1ms"), ("shape", "lognormal")],
        },
        "Time between tokens: a time, or a distribution.",
    ),
    Field::default("tokens_per_chunk", Leaf::Count { least: 1, most: 1_000 }, "1", "Tokens carried by one event."),
    Field::default(
        "role_chunk",
        Leaf::TimeOrNone,
        "0ms",
        "When a role-only chunk is sent after the request's arrival; `none`: there is none.",
    ),
    Field::section("faults", FAULTS, "The share of requests that end each way; together at most 100%."),
    Field::optional(
        "script",
        Kind::Script,
        "Faults of chosen requests, such as `{26: http_500, 30..40: stall}`: measured requests count from 1, the first line that fits happens, and it wins over `faults`.",
    ),
    Field::default(
        "slow_headers",
        LIMIT,
        "1s",
        "How late status and headers come where `faults` or `script` has `slow_headers`.",
    ),
    Field::optional(
        "retry_after",
        Kind::Leaf(WAIT),
        "When an answer with status 429 says to come back, in whole seconds; where absent: after one second.",
    ),
    Field::optional("warming_up", Kind::Map(WARMING_UP), "A server that is slow at first."),
    Field::default(
        "buffer",
        Leaf::Bytes,
        "0",
        "A proxy in front holds the stream back until it has this much, such as `16KiB`; 0: there is none.",
    ),
    Field::default(
        "dies_after",
        Leaf::CountOrNone { most: 1_000_000 },
        "none",
        "The engine stops serving when this many measured requests have arrived.",
    ),
    Field::default("ready_after", MS, "0ms", "How long after its start the engine answers 503."),
    Field::default("seed", Leaf::Seed, "0", "The seed of everything random in the engine."),
    Field::optional(
        "slots",
        Kind::Leaf(Leaf::Count { least: 1, most: 100_000 }),
        "How many requests are served at once; what comes beyond waits in order of arrival. Where absent: as many as come.",
    ),
    Field::optional(
        "prefill",
        Kind::Leaf(Leaf::TokenRate),
        "How fast prompts are read, such as `2000 tok/s`: the first token comes later by the input tokens that are not cached. Where absent: at once.",
    ),
    Field::optional(
        "prefix_cache",
        Kind::Map(PREFIX_CACHE),
        "A prefix cache: blocks of a prompt's tokens seen before, from its start on, are not read again.",
    ),
    Field::optional("scaling", Kind::Map(SCALING), "More `slots` where the queue grows, after a cold start."),
    Field::section("drift", DRIFT, "What grows while it runs, as a share of its value at the start per hour."),
];

const PREFIX_CACHE: &[Field] = &[
    Field::required(
        "blocks",
        Kind::Leaf(Leaf::Count { least: 1, most: 10_000_000 }),
        "How many blocks it holds; the least recently used goes first.",
    ),
    Field::default("block_tokens", Leaf::Count { least: 1, most: 4_096 }, "16", "Tokens of a block."),
];

const SCALING: &[Field] = &[
    Field::required("max_slots", Kind::Leaf(Leaf::Count { least: 1, most: 100_000 }), "The most slots it gets."),
    Field::default("step", Leaf::Count { least: 1, most: 100_000 }, "1", "Slots added at a time."),
    Field::required(
        "queue",
        Kind::Leaf(Leaf::Count { least: 1, most: 1_000_000 }),
        "How many requests must wait for slots to be asked for.",
    ),
    Field::required("cold_start", Kind::Leaf(WAIT), "From then to when the slots serve."),
];

const DRIFT: &[Field] = &[
    Field::default("ttft", Leaf::PerHour, "0%/h", "Of the time to the first token, such as `2%/h`."),
    Field::default("tpot", Leaf::PerHour, "0%/h", "Of the time between tokens."),
    Field::default("memory", Leaf::PerHour, "0%/h", "Of the memory it reports."),
];

pub(super) const LATENCY: &[Field] = &[
    Field::required("mean", Kind::Leaf(MS), "The mean."),
    Field::default("stddev", MS, "0ms", "The standard deviation; zero makes it constant."),
    Field::default("shape", SHAPES, "lognormal", "The shape."),
];

/// A fault that a script names.
pub(crate) const FAULT: Leaf = Leaf::Word(&[
    "http_401",
    "http_429",
    "http_500",
    "stream_error",
    "stall",
    "reset",
    "truncate",
    "empty",
    "html_200",
    "slow_headers",
]);

const WARMING_UP: &[Field] = &[
    Field::required(
        "requests",
        Kind::Leaf(Leaf::Count { least: 1, most: 1_000_000 }),
        "Over how many requests its latencies fall to normal.",
    ),
    Field::required(
        "slowdown",
        Kind::Leaf(Leaf::Number { least: Least::One }),
        "How many times slower the first request is.",
    ),
];

pub(crate) const FAULTS: &[Field] = &[
    Field::default("http_401", Leaf::Share, "0%", "Answered with status 401, as when credentials expire."),
    Field::default("http_429", Leaf::Share, "0%", "Answered with status 429."),
    Field::default("http_500", Leaf::Share, "0%", "Answered with status 500."),
    Field::default("stream_error", Leaf::Share, "0%", "An error event inside a 200 stream, after the first token."),
    Field::default("stall", Leaf::Share, "0%", "The stream stops in the middle and stays open."),
    Field::default("reset", Leaf::Share, "0%", "The connection is reset in the middle of the stream."),
    Field::default("truncate", Leaf::Share, "0%", "The stream is closed in the middle, with no end."),
    Field::default("empty", Leaf::Share, "0%", "The stream ends well, with no token."),
    Field::default("html_200", Leaf::Share, "0%", "An HTML page with status 200."),
    Field::default(
        "slow_headers",
        Leaf::Share,
        "0%",
        "Status and headers come late, by `slow_headers` beside `faults`.",
    ),
];
