//! The field table: every key of a gate spec, once.

mod engine;
mod load;
mod prompts;

use crate::baseline::MOST_RUNS;
use crate::field::{Field, Kind, Leaf, Least};

pub(crate) use engine::FAULT;
pub(crate) use load::{LOAD, SHAPE};
pub(crate) use prompts::{LONGEST, PROMPTS};

use engine::SIM;

const MS: Leaf = Leaf::Time { least: Least::Zero, unit: "ms" };
const LIMIT: Leaf = Leaf::Time { least: Least::AboveZero, unit: "ms" };
const WAIT: Leaf = Leaf::Time { least: Least::AboveZero, unit: "s" };
const SHAPES: Leaf = Leaf::Word(&["normal", "lognormal", "uniform"]);
const PRICE: Leaf = Leaf::Dollars { least: Least::Zero };
const POLICY: Leaf = Leaf::Word(&["pass", "fail"]);

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
    Field::optional(
        "scenarios",
        Kind::Named(SCENARIO),
        "Kinds of traffic by name, each with what it has otherwise than the gate. The gate's own checks hold for every scenario that has none of the same metric and operator itself.",
    ),
    Field::default(
        "run",
        Leaf::Word(&["in_turn", "together"]),
        "in_turn",
        "`in_turn`: scenarios run one after another, each with its own load and warm-up; `together`: all at once, one load split by weight.",
    ),
    Field::section("budget", BUDGET, "What a run may use up at most; checked before it, and kept during it."),
    Field::optional("prices", Kind::Map(PRICES), "What a million tokens cost, in dollars."),
    Field::section("abort", ABORT, "When a run is given up."),
    Field::section("journal", JOURNAL, "What the journal keeps."),
];

/// One kind of traffic.
const SCENARIO: &[Field] = &[
    Field::optional(
        "load",
        Kind::Part(LOAD),
        "Keys of the load, where they are not the gate's; one of `iterations`, `duration`, `pattern`, `stages` and `trace` replaces whichever the gate has.",
    ),
    Field::optional("prompts", Kind::Part(PROMPTS), "Keys of the prompts, where they are not the gate's."),
    Field::optional("slo", Kind::Part(SLO), "Keys of the service level objective, where they are not the gate's."),
    Field::optional("require", Kind::Checks, "Checks of this traffic whose violation breaks the build."),
    Field::optional("prefer", Kind::Checks, "Checks of this traffic whose violation is a warning."),
    Field::optional("target", Kind::Part(SCENARIO_TARGET), "What its requests ask of the endpoint otherwise."),
    Field::default(
        "weight",
        Leaf::Number { least: Least::AboveZero },
        "1",
        "Its share of the requests under `run: together`, relative to the others'.",
    ),
];

const SCENARIO_TARGET: &[Field] = &[
    Field::optional("model", Kind::Leaf(Leaf::Text), "The model's name in requests."),
    Field::optional("extra_body", Kind::Free, "Fields merged into its requests' bodies over the target's."),
];

const BUDGET: &[Field] = &[
    Field::optional("requests", Kind::Leaf(Leaf::Amount), "Requests, warm-up and both arms included."),
    Field::optional("input_tokens", Kind::Leaf(Leaf::Amount), "Input tokens."),
    Field::optional("output_tokens", Kind::Leaf(Leaf::Amount), "Output tokens."),
    Field::optional(
        "cost",
        Kind::Leaf(Leaf::Dollars { least: Least::AboveZero }),
        "Dollars by `prices`, such as `$0.40`.",
    ),
];

const PRICES: &[Field] = &[
    Field::required("input", Kind::Leaf(PRICE), "Of a million input tokens, such as `$2.50`."),
    Field::optional(
        "cached_input",
        Kind::Leaf(PRICE),
        "Of a million input tokens read from a cache; where absent they cost as much as others.",
    ),
    Field::required("output", Kind::Leaf(PRICE), "Of a million output tokens, reasoning included."),
];

const ABORT: &[Field] = &[
    Field::default(
        "connection_failures",
        Leaf::Count { least: 0, most: 1_000_000 },
        "5",
        "After so many failures to connect one after another; 0: never.",
    ),
    Field::default(
        "lost",
        Leaf::Flag,
        "true",
        "Where a required check can no longer be kept, whatever is still to come.",
    ),
];

const JOURNAL: &[Field] = &[
    Field::default(
        "tokens",
        Leaf::Count { least: 0, most: 1_000_000 },
        "1000",
        "The requests, the first in send order, whose tokens' times are kept.",
    ),
    Field::default("keep_text", Leaf::Flag, "false", "Whether the answers' texts are kept."),
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
        Leaf::Word(&[
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
        ]),
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
        Leaf::Word(&["max_tokens", "max_completion_tokens"]),
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
    Field::optional(
        "metrics",
        Kind::Leaf(Leaf::Metrics),
        "Where the target's own metrics are read during the run, in Prometheus' text format: a URL, or a path on the target's host such as `/metrics`. Checks on `server.…` need it.",
    ),
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
        Leaf::Word(&["sse", "ndjson"]),
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
        Leaf::Word(&["webpki", "system"]),
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
        Kind::Leaf(Leaf::Word(&["evidence", "point"])),
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
        let Leaf::Word(words) = leaf else { panic!("{leaf:?}") };
        words
    }

    #[test]
    fn the_table_names_what_the_model_knows() {
        assert_eq!(words(FAULT), Fault::ALL.map(Fault::name));
        let shares: Vec<_> = engine::FAULTS.iter().map(|field| field.name).collect();
        assert_eq!(shares, Fault::ALL.map(Fault::name));
        let api = TARGET.iter().find(|field| field.name == "api").unwrap();
        let Kind::Leaf(api) = api.kind else { panic!() };
        assert_eq!(words(api), Api::ALL.map(Api::name));
    }
}
