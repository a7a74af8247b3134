//! The keys of the load.

use super::WAIT;
use crate::field::{Field, Kind, Leaf, Least};

/// The keys that say how long the load goes on and which shape it has: one choice, which a scenario makes anew.
pub(crate) const SHAPE: [&str; 6] = ["iterations", "extend", "duration", "pattern", "stages", "trace"];

pub(crate) const LOAD: &[Field] = &[
    Field::default(
        "rps",
        Leaf::Rate { least: Least::AboveZero },
        "2",
        "Requests per second of the open loop; under a spike the rate before and after it.",
    ),
    Field::optional(
        "concurrency",
        Kind::Leaf(Leaf::Count { least: 1, most: 100_000 }),
        "How many requests are open at once: alone, a closed loop, in which the end of one sends the next; with `rps`, a cap on the open loop, and waiting for a slot counts.",
    ),
    Field::default(
        "iterations",
        Leaf::Iterations,
        "30..50",
        "How many requests are measured: `A..B` is judged at A and at B (B at most 1000), `N` once. Of a `trace`, its first N rows.",
    ),
    Field::optional(
        "extend",
        Kind::Leaf(Leaf::CountOrNone { most: 2_000 }),
        "Where `A..B` goes on to when a required check is seen over its limit but not proven: a number above B (2·B where absent), or `none`.",
    ),
    Field::default("warmup", Leaf::Warmup, "5", "Warm-up requests, never scored."),
    Field::default(
        "arrivals",
        Leaf::Arrivals,
        "poisson",
        "The distribution of times between arrivals in an open loop: `poisson`, `constant`, or `gamma(SHAPE)`, which is burstier than `poisson` below a shape of 1 and more even above.",
    ),
    Field::default(
        "connections",
        Leaf::Word(&["pooled", "fresh"]),
        "pooled",
        "`pooled`: a connection at rest is used again; `fresh`: every request opens its own.",
    ),
    Field::default(
        "http",
        Leaf::Word(&["auto", "1", "2"]),
        "auto",
        "The version of HTTP; `auto`: what the server chooses over TLS, and HTTP/1.1 without it.",
    ),
    Field::default(
        "clock",
        Leaf::Word(&["auto", "kernel", "user"]),
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
    Field::optional(
        "duration",
        Kind::Leaf(WAIT),
        "How long an open loop goes on, instead of `iterations`: what is due within it is measured, and judged at its end.",
    ),
    Field::optional(
        "pattern",
        Kind::OneOf { fields: PATTERN, bare: &[("steady", "30m"), ("spike", "{}"), ("soak", "4h")] },
        "The shape of the load in time, instead of `iterations`, and so what can be learnt from it.",
    ),
    Field::optional(
        "stages",
        Kind::Maps(STAGE),
        "Stretches of rates, one after another, such as `[{rps: 1, for: 1m}, {rps: 1..4, for: 2m}]`.",
    ),
    Field::optional(
        "trace",
        Kind::Leaf(Leaf::File),
        "A file of times, input and output lengths to send by, as Azure's and Mooncake's traces are; relative to the folder of this spec.",
    ),
];

const PATTERN: &[Field] = &[
    Field::optional("steady", Kind::Leaf(WAIT), "One rate for this long, `30m` by the word alone: regressions."),
    Field::optional("ramp", Kind::Map(RAMP), "A rate that grows in a straight line: the capacity, as `knee.rate`."),
    Field::optional(
        "spike",
        Kind::Map(SPIKE),
        "A sudden rate, with `rps` before and after it: queueing and scaling, as `spike.ttft.p95` and `recovery`.",
    ),
    Field::optional(
        "soak",
        Kind::Leaf(WAIT),
        "One rate for a long time, `4h` by the word alone: leaks, as `drift.tpot`.",
    ),
];

const RAMP: &[Field] = &[
    Field::default("from", Leaf::Rate { least: Least::Zero }, "0", "Requests per second at its start."),
    Field::required(
        "to",
        Kind::Leaf(Leaf::Rate { least: Least::AboveZero }),
        "Requests per second at its end: at least 1.5 times the capacity that is looked for.",
    ),
    Field::default("over", WAIT, "15m", "How long it takes; a knee needs 2m or more."),
];

const SPIKE: &[Field] = &[
    Field::default("times", Leaf::Number { least: Least::One }, "5", "How many times `rps`."),
    Field::default("hold", WAIT, "2m", "How long it lasts."),
    Field::default("before", WAIT, "2m", "How long `rps` lasts before it."),
    Field::default("after", WAIT, "5m", "How long `rps` lasts after it."),
];

const STAGE: &[Field] = &[
    Field::required(
        "rps",
        Kind::Leaf(Leaf::Rates),
        "Requests per second: `R` throughout, or `A..B` for a straight line from one to the other.",
    ),
    Field::required("for", Kind::Leaf(WAIT), "How long it lasts."),
];
