//! The gates: that of pull requests, and that of the night.

use std::fmt::Write as _;

use gate_model::Nanos;

use crate::{Answers, Kind, Lengths, Workload};

/// Measured requests of the gate for pull requests: looked at after the first number, ended at the second.
const ITERATIONS: (u32, u32) = (30, 50);

/// The gate that runs on every pull request.
#[must_use]
pub fn pull_request(answers: &Answers) -> String {
    let Answers { name, sla, workload, .. } = answers;
    let mut text = format!(
        "# What every pull request is measured by. `gate plan gates/{name}.yaml` says what these checks can detect,\n\
         # gates/{name}.md why they are as they are.\nversion: 1\nname: {name}\n"
    );
    text.push_str(&target(answers));
    let (first, last) = ITERATIONS;
    let _ = write!(
        text,
        "load:\n  rps: {rps}\n  iterations: {first}..{last}              # judged at {first}; goes on only where a limit is seen exceeded\n  warmup: 3\n",
        rps = sla.rps.0
    );
    text.push_str(&prompts(workload));
    text.push_str(&slo(answers));
    let (first_word, limit) = if has_tokens(answers) { ("ttft", sla.ttft) } else { ("e2e", whole(answers)) };
    let half = time(Nanos(limit.0 / 2));
    let _ = write!(
        text,
        "require:\n  - {first_word}.p50 < {half}               # {first} requests know a median within some 10 %\n  - {first_word}.p95 < {}\n",
        time(limit)
    );
    if has_tokens(answers) {
        let _ = writeln!(text, "  - tpot.p95 < {}", time(sla.tpot));
    }
    let _ = write!(
        text,
        "  - errors.rate < {errors}\n  - errors.5xx < {errors}\nprefer:\n  - attainment >= 95%              # of the requests, all of `slo` at once\n",
        errors = percent(sla.errors)
    );
    let compared = if has_tokens(answers) { "tpot.p50" } else { "e2e.p50" };
    let _ = write!(
        text,
        "# With stored runs of the main branch (`gate check --save-baseline` there), under `require`:\n#  - {compared} < baseline + 15%\n"
    );
    text
}

/// The gate of the night: a ramp, a spike and a soak, one after another.
#[must_use]
pub fn nightly(answers: &Answers) -> String {
    let Answers { name, sla, workload, .. } = answers;
    let usual = sla.rps.0;
    let to = usual * 8.0;
    // A knee needs 300 requests on the ramp, and two minutes.
    let over = (600.0_f64).max(2.0 * 300.0 / to).min(3_600.0).ceil() as i64;
    // What comes before a spike is what after it is held against.
    let around = ((150.0 / usual).ceil() as i64).clamp(120, 1_800);
    let mut text = format!(
        "# What a pull request's few requests cannot see: where the capacity ends, whether the service comes back after a\n\
         # spike, and what gets worse by the hour. Run it by night: gate check gates/nightly/{name}.yaml --long\n\
         version: 1\nname: {name}-nightly\n"
    );
    text.push_str(&target(answers));
    text.push_str(&prompts(workload));
    text.push_str(&slo(answers));
    let _ = write!(
        text,
        "require:\n  - errors.5xx < {errors}\nscenarios:\n  \
         capacity:                        # a ramp to 8 times the usual rate finds where the service is saturated\n    \
         load: {{pattern: {{ramp: {{from: 0, to: {to}, over: {over}s}}}}}}\n    require: [knee.rate >= {knee}/s]\n  \
         spike:                           # 4 times the usual rate, then back\n    \
         load: {{rps: {usual}, pattern: {{spike: {{times: 4, hold: {around}s, before: {around}s, after: {after}s}}}}}}\n    \
         require: [{recovery}spike.errors.rate < {errors}]\n  \
         soak:                            # an hour at the usual rate: leaks, and caches that fill\n    \
         load: {{rps: {usual}, pattern: {{soak: 1h}}}}\n    require: [{drift}]\n",
        errors = percent(sla.errors),
        knee = usual * 2.0,
        after = around * 2,
        recovery = if has_tokens(answers) { "recovery < 2m, " } else { "" },
        drift = if has_tokens(answers) { "drift.ttft < 5%/h, drift.tpot < 5%/h" } else { "drift.e2e < 5%/h" },
    );
    text
}

/// How long a whole answer may take: its first token, and as many more as it has at most.
fn whole(answers: &Answers) -> Nanos {
    Nanos(answers.sla.ttft.0.saturating_add(answers.sla.tpot.0.saturating_mul(i64::from(answers.workload.output.max))))
}

/// Whether answers have tokens with times between them.
fn has_tokens(answers: &Answers) -> bool {
    answers.endpoint.streams != Some(false)
}

fn target(answers: &Answers) -> String {
    let endpoint = &answers.endpoint;
    let Some(url) = &endpoint.url else {
        return "target:\n  sim: {ttft: {mean: 120ms, stddev: 30ms}, tpot: 8ms, slots: 8}   # the built-in engine; name a server with `url`\n".to_owned();
    };
    let mut text = "target:\n".to_owned();
    if let Some(engine) = &endpoint.engine {
        let version = engine.version.as_ref().map(|version| format!(" {}", one_line(version))).unwrap_or_default();
        let _ = writeln!(text, "  # It answered as {}{version}.", one_line(&engine.name));
    }
    if let Some(why) = &endpoint.unknown {
        let _ = writeln!(text, "  # Nothing is known of it: {}.", one_line(why));
    }
    // A default ends at its first brace.
    let target = if url.contains(['{', '}']) { literal(url) } else { quoted(&format!("${{GATE_TARGET:-{url}}}")) };
    let _ = writeln!(text, "  url: {target}");
    let _ = writeln!(text, "  api: {}", endpoint.api.name());
    match &endpoint.model {
        Some(model) => {
            let _ = writeln!(text, "  model: {}", literal(model));
        }
        None => text.push_str("  # model: NAME                   # which model is asked for\n"),
    }
    if let Some(key) = &endpoint.key {
        let _ = writeln!(text, "  key: ${{{key}}}");
    }
    if endpoint.streams == Some(false) {
        text.push_str("  stream: false                   # its answers came whole\n");
    }
    if let Some(metrics) = endpoint.engine.as_ref().and_then(|engine| engine.metrics) {
        let _ =
            writeln!(text, "  # metrics: {metrics}               # the server's own, where it has them switched on");
    }
    text
}

fn prompts(workload: &Workload) -> String {
    let from = match &workload.fitted {
        Some((name, rows)) => format!("fitted to {rows} rows of {}", one_line(name)),
        None => format!("as {} often has; `gate init --from-dataset` fits your own", workload.kind),
    };
    // Real lengths are skewed: cut at its bounds, a normal distribution of such a deviation has another mean.
    let shape = if workload.fitted.is_some() { ", shape: lognormal" } else { "" };
    let lengths = |of: &Lengths| match of.stddev {
        0 => of.mean.to_string(),
        stddev => format!("{{mean: {}, stddev: {stddev}, min: {}, max: {}{shape}}}", of.mean, of.min, of.max),
    };
    let mut text = format!(
        "prompts:                          # {from}\n  input_tokens: {}\n  output_tokens: {}\n",
        lengths(&workload.input),
        lengths(&workload.output)
    );
    if let (least, most @ 2..) = workload.turns {
        let turns = if least == most { most.to_string() } else { format!("{least}..{most}") };
        let _ = writeln!(text, "  turns: {turns}");
    }
    if let Some(prefix) = workload.shared_prefix.filter(|prefix| *prefix < workload.input.min) {
        let _ = writeln!(
            text,
            "  shared_prefix: {prefix}              # what all prompts begin with, such as instructions"
        );
    }
    text
}

fn slo(answers: &Answers) -> String {
    let sla = &answers.sla;
    let owed = match has_tokens(answers) {
        true => format!("ttft: {}, tpot: {}", time(sla.ttft), time(sla.tpot)),
        false => format!("e2e: {}", time(whole(answers))),
    };
    let why = if answers.workload.kind == Kind::Batch { "what is still good work" } else { "what users are owed" };
    format!("slo: {{{owed}}}     # {why}\n")
}

/// A time as a spec has it: `1500ms`.
fn time(time: Nanos) -> String {
    match time.0 {
        whole if whole % 1_000_000 == 0 => format!("{}ms", whole / 1_000_000),
        other => format!("{}us", other / 1_000),
    }
}

/// A share as a spec has it: `5%`.
pub(crate) fn percent(share: f64) -> String {
    format!("{}%", (share * 1e6).round() / 1e4)
}

/// A text from outside as a spec takes it: quoted, and with no variable read in it. A server that calls its model by the
/// name of a variable must not be sent what is in that.
#[must_use]
pub fn literal(text: &str) -> String {
    quoted(&text.replace("${", "$${"))
}

/// A text as YAML takes it.
pub(crate) fn quoted(text: &str) -> String {
    format!("'{}'", one_line(text).replace('\'', "''"))
}

/// A text from outside without what would end its line.
pub(crate) fn one_line(text: &str) -> String {
    text.chars().filter(|symbol| !symbol.is_control() && !['\u{2028}', '\u{2029}'].contains(symbol)).collect()
}
