//! The page beside the gates: why they are as they are, what they see, and what they do not.

use std::fmt::Write as _;

use crate::gate::{one_line, percent};
use crate::{Answers, Forge, Kind};

/// What a plan says: it is worked out by who can.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Detects {
    /// What each check can detect with the requests it has, as `gate plan` prints it.
    pub text: String,
    /// Input tokens of one run of the gate for pull requests, warm-up left out.
    pub input_tokens: u64,
    /// Output tokens of it, at most.
    pub output_tokens: u64,
}

/// The page, in Markdown.
#[must_use]
pub fn page(answers: &Answers, detects: &Detects) -> String {
    let Answers { name, endpoint, workload, sla, .. } = answers;
    let mut text = format!("# The gate `{name}`\n\n");
    let url = endpoint
        .url
        .as_ref()
        .map_or_else(|| "the built-in engine".to_owned(), |url| format!("`{}`", one_line(url).replace('`', "'")));
    let engine = endpoint.engine.as_ref().map(|engine| {
        let version = engine.version.as_ref().map(|version| format!(" {}", one_line(version))).unwrap_or_default();
        format!(", which answered as {}{version}", one_line(&engine.name))
    });
    let unknown = endpoint.unknown.as_ref().map(|why| format!(" Nothing is known of it yet: {}.", one_line(why)));
    let _ = writeln!(
        text,
        "It measures {url}{} with traffic like {}.{}\n",
        engine.unwrap_or_default(),
        workload.kind.words(),
        unknown.unwrap_or_default()
    );
    let lengths = match &workload.fitted {
        Some((file, rows)) => format!("fitted to {rows} rows of `{}`", one_line(file).replace('`', "'")),
        None => "as such work often has; `gate init --from-dataset FILE` fits them to a sample of your own".to_owned(),
    };
    let _ = write!(
        text,
        "| what | value |\n| :-- | :-- |\n| input tokens | {} ± {}, {lengths} |\n| output tokens | {} ± {} |\n\
         | TTFT, P95 | under {} |\n| TPOT, P95 | under {} |\n| failures | under {} |\n| usual rate | {}/s |\n\n",
        workload.input.mean,
        workload.input.stddev,
        workload.output.mean,
        workload.output.stddev,
        sla.ttft,
        sla.tpot,
        percent(sla.errors),
        sla.rps.0
    );
    text.push_str("## Which pattern catches which failure\n\n| failure | caught by |\n| :-- | :-- |\n");
    for (failure, caught) in [
        ("a build that is slower, or fails", format!("`gates/{name}.yaml`, on every pull request")),
        (
            "a build that is a little slower",
            format!(
                "`baseline + 15%` in `gates/{name}.yaml`, once the main branch's runs are stored; side by side (`gate check --reference URL`) sees smaller changes still"
            ),
        ),
        (
            "less capacity",
            format!("`capacity` in `gates/nightly/{name}.yaml`: a ramp finds the rate where requests stop being good"),
        ),
        (
            "a service that does not come back after a spike",
            "`spike`: recovery after four times the usual rate".to_owned(),
        ),
        ("leaks, and caches that fill", "`soak`: drift by the hour".to_owned()),
        (
            "a prefix cache that is no longer hit",
            "TTFT, with the cached tokens beside it as its likely cause".to_owned(),
        ),
    ] {
        let _ = writeln!(text, "| {failure} | {caught} |");
    }
    let _ = write!(
        text,
        "\n## What so many requests can detect\n\n```text\n{}```\n\nMore requests see smaller changes; a better question often helps more: P50 instead of P95, side by side instead of stored runs.\n\n",
        detects.text
    );
    text.push_str(&costs(answers, detects));
    text.push_str(&beside(answers));
    text.push_str(&next(answers));
    text
}

fn costs(answers: &Answers, detects: &Detects) -> String {
    let runs = u64::from(answers.runs_a_month);
    let million = |tokens: u64| format!("{:.2} M", tokens as f64 / 1e6);
    let (input, output) = (detects.input_tokens.saturating_mul(runs), detects.output_tokens.saturating_mul(runs));
    let mut text = format!(
        "## What it costs\n\nA run sends at most {} input and asks for at most {} output tokens; {runs} runs a month are {} and {}.",
        detects.input_tokens,
        detects.output_tokens,
        million(input),
        million(output)
    );
    match answers.prices {
        Some(prices) => {
            let dollars = (input as f64 * prices.input + output as f64 * prices.output) / 1e6;
            let _ = write!(
                text,
                " At ${} and ${} a million that is at most ${dollars:.2} a month.",
                prices.input, prices.output
            );
        }
        None => text.push_str(" `--input-price` and `--output-price` say what that comes to."),
    }
    let a_second = answers.sla.rps.0;
    let load = format!(
        "--rps {a_second} --input-tokens {} --output-tokens {}",
        answers.workload.input.mean, answers.workload.output.mean
    );
    let _ = write!(
        text,
        "\n\nThe service itself, at {a_second} requests a second: `gate capacity tokens {load}` says which of a provider's limits binds, and \
         `gate capacity host {load} --input-price … --output-price … --gpu-price …` from how many tokens a day provisioned throughput or machines of one's own pay.\n\n"
    );
    text
}

fn beside(answers: &Answers) -> String {
    let mut text = "## Which tool beside it\n\n- **A full benchmark** of an engine, over many rates and lengths: GuideLLM, AIPerf or vLLM's `bench serve`. `gate judge --from` judges vLLM's file, and others' once they are `samples`.\n- **A vendor's reference numbers**: the engine's own benchmark, with the engine's own settings; a gate compares with yourself.\n- **Plain HTTP saturation**, as of a proxy or a health route: k6, Locust or Vegeta. They see one call where a person sees a stream.\n".to_owned();
    if answers.workload.kind == Kind::Batch {
        text.push_str(
            "- **Throughput of offline batches**: the engine's own offline benchmark; a gate sends over HTTP.\n",
        );
    }
    text + "\n"
}

fn next(answers: &Answers) -> String {
    let name = &answers.name;
    let mut steps = vec![format!("`gate check gates/{name}.yaml` here.")];
    match answers.forge {
        Some(Forge::GitHub) => steps.push(format!(
            "In `{}`, put the repository and commit that gate is taken from for `OWNER/gate@REF`{}.",
            crate::CI_GITHUB,
            answers.endpoint.key.as_ref().map(|key| format!(", and add the secret `{key}`")).unwrap_or_default()
        )),
        Some(Forge::GitLab) => steps.push(format!(
            "Include `{}` in `.gitlab-ci.yml`, with your mirror for `OWNER/gate`{}.",
            crate::CI_GITLAB,
            answers
                .endpoint
                .key
                .as_ref()
                .map(|key| format!(", and add the masked variable `{key}`"))
                .unwrap_or_default()
        )),
        None => steps.push("No CI was found here; `--forge github` or `gitlab` writes its file.".to_owned()),
    }
    steps.push("`gate check --save-baseline` on the main branch; then ask for `tpot.p50 < baseline + 15%`.".to_owned());
    steps.push(
        "`gate calibrate gates/NAME.yaml --runs 5` says how often the gate is red for nothing.".replace("NAME", name),
    );
    let list: String = (1..).zip(steps).map(|(number, step)| format!("{number}. {step}\n")).collect();
    format!("## Next\n\n{list}")
}
