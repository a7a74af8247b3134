//! The field table: every key of a gate spec, once.

use crate::baseline::MOST_RUNS;
use crate::field::{Field, Kind, Leaf, Least};

const MS: Leaf = Leaf::Time { least: Least::Zero, unit: "ms" };
const LIMIT: Leaf = Leaf::Time { least: Least::AboveZero, unit: "ms" };
const WAIT: Leaf = Leaf::Time { least: Least::AboveZero, unit: "s" };
const SHAPES: Leaf = Leaf::Word(&["normal", "lognormal", "uniform"], &[]);
const POLICY: Leaf = Leaf::Word(&["pass", "fail"], &[]);

/// The top level.
pub(crate) const ROOT: &[Field] = &[
    Field::required("version", Kind::Leaf(Leaf::Version), "The version of this format: 1."),
    Field::required(
        "name",
        Kind::Leaf(Leaf::Name),
        "The gate's name: letters, digits, `-`, `_` and `.`; outputs go to `.gate/NAME/`.",
    ),
    Field::required("target", Kind::Map(TARGET), "The endpoint under test."),
    Field::optional(
        "reference",
        Kind::Map(TARGET),
        "What the target is compared with side by side: requests go out in pairs, one to each with the same prompt, and what `load` counts holds for each. It needs `url` or `sim`; every other key that is left out is the target's, but `custom`, `extra_body` and `max_tokens_field` only where `api` is the same, `tls` only over https, and `key`, `headers` and a body that names a credential only where scheme and host are the same, so that none is sent elsewhere unasked.",
    ),
    Field::section("load", LOAD, "How many requests are sent, and when."),
    Field::section("prompts", PROMPTS, "What is sent."),
    Field::section("slo", SLO, "The service level objective of one request, which `attainment` and `goodput` count."),
    Field::section("timeouts", TIMEOUTS, "Deadlines of each request, and of the run."),
    Field::section("outcomes", OUTCOMES, "What outcomes other than violated and met do to the exit code."),
    Field::section("baseline", BASELINE, "Which stored runs checks such as `ttft.p50 < baseline + 15%` compare with."),
    Field::optional("require", Kind::Checks, "Checks whose violation breaks the build, such as `ttft.p95 < 800ms`."),
    Field::optional("prefer", Kind::Checks, "Checks whose violation is a warning."),
    Field::later("scenarios"),
    Field::later("run"),
    Field::later("budget"),
    Field::later("prices"),
    Field::later("abort"),
    Field::later("journal"),
];

const TARGET: &[Field] = &[
    Field::optional(
        "url",
        Kind::Leaf(Leaf::Url),
        "Where requests go, such as `http://127.0.0.1:8000/v1`, or `unix:/run/server.sock` with `:/v1` behind it where there is a path; or the word `sim`, written literally, for the built-in simulated engine.",
    ),
    Field::optional("sim", Kind::Map(SIM), "The built-in simulated engine instead of a URL, with its parameters."),
    Field::default(
        "api",
        Leaf::Word(
            &[
                "openai-chat",
                "openai-completions",
                "openai-responses",
                "openai-embeddings",
                "anthropic",
                "gemini",
                "bedrock-converse",
                "bedrock-invoke",
                "cohere",
                "ollama",
                "tgi",
                "llamacpp",
                "sglang",
                "triton",
                "custom",
            ],
            &[],
        ),
        "openai-chat",
        "The dialect the endpoint speaks.",
    ),
    Field::optional("model", Kind::Leaf(Leaf::Text), "The model's name in requests."),
    Field::optional("custom", Kind::Map(CUSTOM), "The dialect's description, where `api` is `custom`."),
    Field::optional(
        "key",
        Kind::Leaf(Leaf::Credential),
        "The API key, such as `${OPENAI_API_KEY:-}`; sent in the header the dialect asks for, never shown. Where absent, Bedrock's dialects read the AWS variables.",
    ),
    Field::optional("headers", Kind::Headers, "Further headers of every request; their values are never shown."),
    Field::optional("extra_body", Kind::Free, "Fields merged into every request's body."),
    Field::default(
        "stream",
        Leaf::Flag,
        "true",
        "Whether answers are streamed; `false`: only e2e, errors, tokens and throughput are measured.",
    ),
    Field::default(
        "max_tokens_field",
        Leaf::Word(&["max_tokens", "max_completion_tokens"], &[]),
        "max_tokens",
        "The field of `openai-chat` requests that says how long an answer may be.",
    ),
    Field::optional(
        "replica_header",
        Kind::Leaf(Leaf::HeaderName),
        "A header of answers that names the replica which gave them, such as `x-served-by`.",
    ),
    Field::section("tls", TLS, "How the certificate of an https endpoint is checked, and which one is shown to it."),
    Field::section("ready", READY, "Waiting for the endpoint before the load starts."),
    Field::later("metrics"),
];

const CUSTOM: &[Field] = &[
    Field::required(
        "path",
        Kind::Leaf(Leaf::Route),
        "The route, such as `/generate`; appended to the URL unless it ends in it.",
    ),
    Field::required(
        "body",
        Kind::Free,
        "The request's body: `{{prompt}}` and `{{model}}` in its texts are filled in, and a text that is nothing but `{{messages}}` or `{{max_tokens}}` becomes the list of messages, or the number.",
    ),
    Field::required(
        "text",
        Kind::Leaf(Leaf::Pointer),
        "Where an event's text is, as a JSON pointer such as `/choices/0/text`.",
    ),
    Field::optional(
        "usage",
        Kind::Short { key: "output", leaf: Leaf::Pointer, fields: USAGE, absent: &[] },
        "Where the count of output tokens is, as a JSON pointer; or the pointers to both counts.",
    ),
    Field::optional(
        "end",
        Kind::Leaf(Leaf::Pointer),
        "Where an event says that it is the last, as a JSON pointer: the value there is neither absent, null, false nor empty. A `[DONE]` is the last without it.",
    ),
    Field::default(
        "framing",
        Leaf::Word(&["sse", "ndjson"], &[]),
        "sse",
        "`sse`: server-sent events; `ndjson`: one JSON document a line.",
    ),
];

const USAGE: &[Field] = &[
    Field::optional("input", Kind::Leaf(Leaf::Pointer), "Where the count of input tokens is, as a JSON pointer."),
    Field::optional("output", Kind::Leaf(Leaf::Pointer), "Where the count of output tokens is, as a JSON pointer."),
];

const TLS: &[Field] = &[
    Field::optional(
        "ca",
        Kind::Leaf(Leaf::File),
        "A PEM file of authorities to trust besides the usual ones; relative to the folder of this spec.",
    ),
    Field::default(
        "roots",
        Leaf::Word(&["webpki", "system"], &[]),
        "webpki",
        "The usual authorities: `webpki`, Mozilla's as compiled in, or `system`, those of this machine.",
    ),
    Field::default("insecure", Leaf::Flag, "false", "Accepts any certificate; every report says so."),
    Field::optional(
        "cert",
        Kind::Leaf(Leaf::File),
        "A PEM file of the client's own certificate, with the authorities between it and one the server trusts; relative to the folder of this spec.",
    ),
    Field::optional(
        "key",
        Kind::Leaf(Leaf::File),
        "A PEM file of that certificate's private key; relative to the folder of this spec.",
    ),
];

const READY: &[Field] = &[
    Field::default("within", WAIT, "10s", "How long the endpoint is waited for, at most."),
    Field::default(
        "path",
        Leaf::Path,
        "auto",
        "Where readiness is asked; `auto`: /health, then /v1/models, then one request that is not scored.",
    ),
];

const SIM: &[Field] = &[
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
    Field::later("slots"),
    Field::later("drift"),
];

const LATENCY: &[Field] = &[
    Field::required("mean", Kind::Leaf(MS), "The mean."),
    Field::default("stddev", MS, "0ms", "The standard deviation; zero makes it constant."),
    Field::default("shape", SHAPES, "lognormal", "The shape."),
];

/// A fault that a script names.
pub(crate) const FAULT: Leaf = Leaf::Word(
    &["http_429", "http_500", "stream_error", "stall", "reset", "truncate", "empty", "html_200", "slow_headers"],
    &[],
);

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

const FAULTS: &[Field] = &[
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

const LOAD: &[Field] = &[
    Field::default("rps", Leaf::Rate, "2", "Requests per second of the open loop."),
    Field::optional(
        "concurrency",
        Kind::Leaf(Leaf::Count { least: 1, most: 100_000 }),
        "How many requests are open at once: alone, a closed loop, in which the end of one sends the next; with `rps`, a cap on the open loop, and waiting for a slot counts.",
    ),
    Field::default(
        "iterations",
        Leaf::Iterations,
        "30..50",
        "How many requests are measured: `A..B` is judged at A and at B (B at most 1000), `N` once.",
    ),
    Field::optional(
        "extend",
        Kind::Leaf(Leaf::CountOrNone { most: 2_000 }),
        "Where `A..B` goes on to when a required check is seen over its limit but not proven: a number above B (2·B where absent), or `none`.",
    ),
    Field::default("warmup", Leaf::Warmup, "5", "Warm-up requests, never scored."),
    Field::default(
        "arrivals",
        Leaf::Word(&["poisson", "constant"], &["gamma"]),
        "poisson",
        "The distribution of times between arrivals in an open loop.",
    ),
    Field::default(
        "connections",
        Leaf::Word(&["pooled", "fresh"], &[]),
        "pooled",
        "`pooled`: a connection at rest is used again; `fresh`: every request opens its own.",
    ),
    Field::default(
        "http",
        Leaf::Word(&["auto", "1", "2"], &[]),
        "auto",
        "The version of HTTP; `auto`: what the server chooses over TLS, and HTTP/1.1 without it.",
    ),
    Field::default(
        "clock",
        Leaf::Word(&["auto", "kernel", "user"], &[]),
        "auto",
        "What stamps received bytes; `kernel`: the kernel, when the network hands them over; `user`: this process, when it reads them; `auto`: the kernel where it can.",
    ),
    Field::default(
        "workers",
        Leaf::Count { least: 1, most: 64 },
        "1",
        "Threads that send and receive; one is enough for about a thousand streams.",
    ),
    Field::default("seed", Leaf::Seed, "0", "The seed of the plan."),
    Field::later("duration"),
    Field::later("pattern"),
    Field::later("stages"),
    Field::later("trace"),
];

const PROMPTS: &[Field] = &[
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
        Leaf::Word(&["bust", "warm"], &["natural"]),
        "bust",
        "What prompts do to the server's prefix cache; `bust`: no prefix is ever shared; `warm`: prompts are sent as they are and may repeat.",
    ),
    Field::default(
        "output",
        Leaf::Word(&["at_most", "exact"], &[]),
        "at_most",
        "`at_most`: the model may stop before the planned length; `exact`: the server is asked to go on to it.",
    ),
    Field::optional("system", Kind::Leaf(Leaf::Text), "A system prompt, sent before every prompt."),
    Field::optional(
        "file",
        Kind::Leaf(Leaf::File),
        "A JSON Lines file of prompts, one row a request, instead of built-in prose; relative to the folder of this spec.",
    ),
    Field::optional(
        "tokenizer",
        Kind::Leaf(Leaf::File),
        "A Hugging Face `tokenizer.json` that counts the tokens of answers without usage, after the load; relative to the folder of this spec.",
    ),
    Field::default(
        "tokens",
        Leaf::Word(&["usage", "accept_estimate"], &[]),
        "usage",
        "What token counts a verdict may rest on; `usage`: the server's, or the tokenizer's; `accept_estimate`: also the number of events, where there is neither.",
    ),
    Field::later("format"),
    Field::later("turns"),
    Field::later("think"),
    Field::later("shared_prefix"),
];

const LENGTH: &[Field] = &[
    Field::required("mean", Kind::Leaf(Leaf::Number { least: Least::AboveZero }), "The mean before truncation."),
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
    Field::later("empirical"),
];

/// The most tokens a length can be.
pub(crate) const LONGEST: u32 = 2_000_000;

const SLO: &[Field] = &[
    Field::optional("ttft", Kind::Leaf(LIMIT), "Time to first token, at most."),
    Field::optional("ttfa", Kind::Leaf(LIMIT), "Time to first answer token, at most."),
    Field::optional("tpot", Kind::Leaf(LIMIT), "Time per output token, at most."),
    Field::optional("e2e", Kind::Leaf(LIMIT), "Time to last token, at most."),
];

const TIMEOUTS: &[Field] = &[
    Field::default("connect", WAIT, "5s", "For a new connection."),
    Field::default("first_token", WAIT, "60s", "From a request's start to its first token."),
    Field::default("stall", WAIT, "30s", "From one event to the next, after the first token."),
    Field::default("total", WAIT, "5m", "From a request's start to its end."),
    Field::optional("run", Kind::Leaf(WAIT), "For the whole run; where absent: the schedule, `total` and 60s."),
];

const OUTCOMES: &[Field] = &[
    Field::default(
        "inconclusive",
        POLICY,
        "pass",
        "A required check seen over its limit, but not proven; `fail` exits 4.",
    ),
    Field::default("no_baseline", POLICY, "pass", "A required check without a baseline; `fail` exits 4."),
    Field::default("invalid", POLICY, "fail", "A required check that could not be measured; `fail` exits 3."),
];

const BASELINE: &[Field] = &[
    Field::default(
        "from",
        Leaf::From,
        "merge-base",
        "Which baselines are used; `merge-base`: the newest at or before the commit where the change forked off; `branch:NAME`: the newest in that branch's history; `last:N`: the newest N, whatever they measured; `pin:ID`: the one whose id is, or begins so; a file's name with its folder, or ending in .json or .jsonl: that file.",
    ),
    Field::default(
        "runs",
        Leaf::Count { least: 1, most: MOST_RUNS },
        "5",
        "How many runs are used at most; `last:N` says so itself.",
    ),
    Field::default(
        "store",
        Leaf::Store,
        ".gate/baselines",
        "Where baselines are kept: a folder, absolute or relative to where gate runs, or `git:REF` for a ref of this repository, such as `git:refs/gate/baselines`.",
    ),
    Field::optional(
        "class",
        Kind::Leaf(Leaf::Text),
        "A label for the runner and its hardware; only baselines with the same one are used.",
    ),
    Field::optional(
        "fallback",
        Kind::List(Leaf::From),
        "What is asked for, in this order, where `from` gives none, such as `[branch:main, last:5]`.",
    ),
];

/// The long form of a check.
pub(crate) const CHECK: &[Field] = &[
    Field::required("check", Kind::Leaf(Leaf::Check), "The check, such as `ttft.p95 < 800ms`."),
    Field::optional(
        "confidence",
        Kind::Leaf(Leaf::Confidence),
        "How sure a verdict by evidence has to be, above 50% and at most 99.9%; 95% where absent.",
    ),
    Field::optional(
        "decide",
        Kind::Leaf(Leaf::Word(&["evidence", "point"], &[])),
        "`evidence`: by what the requests prove; `point`: by comparing the number seen. Where absent, the metric and the kind of bound decide.",
    ),
    Field::optional("waive", Kind::Map(WAIVE), "Lets the check through until a day; reports say so."),
];

const WAIVE: &[Field] = &[
    Field::required("until", Kind::Leaf(Leaf::Date), "The last day the waiver works, as YYYY-MM-DD in UTC."),
    Field::required("reason", Kind::Leaf(Leaf::Reason), "Why, such as `issue 412`."),
];

#[cfg(test)]
mod tests {
    use gate_model::{Api, Fault};

    use super::*;

    fn words(leaf: Leaf) -> &'static [&'static str] {
        let Leaf::Word(words, _) = leaf else { panic!("{leaf:?}") };
        words
    }

    #[test]
    fn the_table_names_what_the_model_knows() {
        assert_eq!(words(FAULT), Fault::ALL.map(Fault::name));
        let shares: Vec<_> = FAULTS.iter().map(|field| field.name).collect();
        assert_eq!(shares, Fault::ALL.map(Fault::name));
        let api = TARGET.iter().find(|field| field.name == "api").unwrap();
        let Kind::Leaf(api) = api.kind else { panic!() };
        assert_eq!(words(api), Api::ALL.map(Api::name));
    }
}
