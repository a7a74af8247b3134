//! What a run says of a load, and of what saturates its server.

use std::path::Path;

use gate_capacity::Traffic;
use gate_model::{Arm, Outcome, PatternFacts, Prior, Request, Run, Series, Unit};
use serde::Serialize;

use super::table::{facts, grouped, percent, shortest};
use super::{json, refused};
use crate::cli::Load;
use crate::failure::Failure;
use crate::journals;

/// A load as flags say it, and for the rest as a run measured it.
pub(super) fn traffic(load: &Load) -> Result<Traffic, Failure> {
    let Load { rps, input_tokens, output_tokens, cached, measured } = load;
    let seen = measured.from.as_deref().map(seen).transpose()?;
    let or_seen = |given: Option<f64>, of: fn(&Traffic) -> f64, flag: &str| {
        given.or(seen.as_ref().map(of)).ok_or_else(|| Failure::usage(format!("{flag} is missing")))
    };
    Ok(Traffic {
        rps: or_seen(*rps, |seen| seen.rps, "--rps")?,
        input_tokens: or_seen(*input_tokens, |seen| seen.input_tokens, "--input-tokens")?,
        output_tokens: or_seen(*output_tokens, |seen| seen.output_tokens, "--output-tokens")?,
        cached: cached.or(seen.map(|seen| seen.cached)).unwrap_or(0.0),
    })
}

/// What a run sent and got: its requests a second, and the means of its `ok` requests' tokens.
fn seen(path: &Path) -> Result<Traffic, Failure> {
    let run = journals::read(path)?;
    let refuse = |what: &str| Failure::usage(format!("{}: {what}", path.display()));
    let ok: Vec<Request<'_>> = ok(&run).collect();
    let mean = |series: Series| {
        let values: Vec<f64> = ok.iter().filter_map(|one| one.value(series)).collect();
        (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
    };
    let input = mean(Series::InputTokens).ok_or_else(|| {
        refuse("no answer says how many input tokens it had").hint("give --input-tokens, --output-tokens and --rps")
    })?;
    let output = mean(Series::OutputTokens).unwrap_or(0.0);
    let counted = ok
        .iter()
        .filter_map(|one| Some((one.value(Series::CachedTokens).unwrap_or(0.0), one.value(Series::InputTokens)?)));
    let (cached, all) = counted.fold((0.0, 0.0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
    let due = run.requests().filter(|one| one.arm() == Arm::Target).map(|one| one.intended().0);
    let (first, last, count) =
        due.fold((i64::MAX, i64::MIN, 0_u32), |(first, last, count), at| (first.min(at), last.max(at), count + 1));
    let seconds = (last - first) as f64 / 1e9;
    if count < 2 || seconds <= 0.0 {
        return Err(refuse("it has too few requests to tell a rate").hint("give --rps"));
    }
    Ok(Traffic {
        rps: f64::from(count - 1) / seconds,
        input_tokens: input,
        output_tokens: output,
        cached: if all > 0.0 { (cached / all).min(1.0) } else { 0.0 },
    })
}

fn ok(run: &Run) -> impl Iterator<Item = Request<'_>> {
    run.requests().filter(|one| one.arm() == Arm::Target && one.outcome() == Outcome::Ok)
}

/// Output tokens a second that saturate an instance, by the knee of a ramp, and how that was worked out.
pub(super) fn saturation(path: &Path) -> Result<(f64, String), Failure> {
    let run = journals::read(path)?;
    let (rate, tokens) = knee(&run).map_err(|(what, remedy)| {
        Failure::usage(format!("{}: {what}", path.display())).hint(format!("{remedy}, or give --saturation TPS"))
    })?;
    let words = format!(
        "the knee of {} at {} requests a second × {} output tokens",
        gate_report::escape::terminal(&path.display().to_string()),
        shortest(rate),
        shortest(tokens)
    );
    Ok((rate * tokens, words))
}

/// The first knee of a run, in requests a second, and the mean output tokens of its scenario; or what is missing, and what
/// to do.
fn knee(run: &Run) -> Result<(f64, f64), (&'static str, &'static str)> {
    let verdict = gate_judge::judge(run, &Prior::default());
    let mut ramps = verdict.run.parts.iter().flat_map(|part| {
        let knees = part.found.iter().filter(|found| matches!(found.facts, PatternFacts::Knee { .. }));
        knees.map(|found| (part.scenario, found.value))
    });
    let Some((scenario, rate)) = ramps.next() else {
        return Err(("it is no run of a ramp, or one too short to have a knee", "measure a ramp (docs/workloads.md)"));
    };
    let Some(rate) = rate.filter(|value| value.unit == Unit::PerSecond) else {
        return Err(("the ramp found no knee, so nothing was saturated", "let the ramp go to a higher rate"));
    };
    let own = ok(run).filter(|one| one.scenario() == scenario);
    let tokens: Vec<f64> = own.filter_map(|one| one.value(Series::OutputTokens)).collect();
    match tokens.len() {
        0 => Err(("no answer says how many tokens it had", "give the scenario a tokenizer (`prompts.tokenizer`)")),
        count => Ok((rate.value, tokens.iter().sum::<f64>() / count as f64)),
    }
}

#[derive(Serialize)]
struct Answer {
    traffic: Traffic,
    need: gate_capacity::Need,
    /// Input tokens that are not cached, cached ones, and output tokens.
    tokens_a_day: [u64; 3],
    /// Output tokens a second that saturate the server, where the run is a ramp with a knee.
    saturation: Option<f64>,
}

/// What a run means for planning.
pub(super) fn answer(path: &Path, as_json: bool) -> Result<String, Failure> {
    let traffic = seen(path)?;
    let need = gate_capacity::need(&traffic).map_err(refused)?;
    let a_day = |a_minute: u64| a_minute.saturating_mul(1_440);
    let saturation = saturation(path).ok();
    let answer = Answer {
        traffic,
        need,
        tokens_a_day: [need.itpm, need.cached_tpm, need.otpm].map(a_day),
        saturation: saturation.as_ref().map(|(rate, _)| *rate),
    };
    if as_json {
        return json(&answer);
    }
    let [input, cached, output] = answer.tokens_a_day.map(grouped);
    let mut lines = vec![
        ("load", format!("{} requests a second", shortest(traffic.rps))),
        (
            "a request",
            format!(
                "{} input tokens, {} of them cached, and {} output tokens, as means",
                shortest(traffic.input_tokens),
                percent(traffic.cached),
                shortest(traffic.output_tokens)
            ),
        ),
        ("a minute", format!("{} RPM, {} ITPM, {} OTPM", grouped(need.rpm), grouped(need.itpm), grouped(need.otpm))),
        ("a day", format!("{input} input tokens, {cached} cached ones, {output} output tokens")),
    ];
    lines.extend(
        saturation.map(|(rate, words)| ("saturation", format!("{} output tokens a second: {words}", shortest(rate)))),
    );
    let run = gate_report::escape::shell_word(&path.display().to_string());
    let more = format!(
        "\ngate capacity tokens --from {run}   compares it with providers' limits\ngate capacity host --from {run} …   with what fixed capacity costs\n"
    );
    Ok(facts(&lines) + &more)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use gate_model::{Endpoint, RunHeader};
    use gate_plan::{Extent, Files};

    use super::*;

    /// A ramp against two slots, each of which answers in 2 s with 20 tokens: they serve 1 request a second.
    fn ramp(to: f64, over: &str) -> Run {
        let text = format!(
            "version: 1\nname: ramp\ntarget: {{sim: {{ttft: 100ms, tpot: 100ms, slots: 2}}}}\nslo: {{ttft: 1s}}\n\
             load: {{pattern: {{ramp: {{from: 0.2, to: {to}, over: {over}}}}}}}\n\
             prompts: {{input_tokens: 50, output_tokens: 20, output: exact}}\nrequire: [knee.rate >= 0.1/s]\n"
        );
        let spec = gate_spec::resolve("ramp.yaml", &text, &BTreeMap::new(), &[]).unwrap().spec;
        let plan = gate_plan::plans(&spec, Extent::Base, &[Files::default()]).unwrap().remove(0);
        let Endpoint::Sim(engine) = spec.target.endpoint.clone() else { panic!() };
        let header = RunHeader::new(spec, &plan, "0.1.0", "run", "2026-12-01T00:00:00Z");
        gate_engine::simulate(&engine, None, &plan, header)
    }

    #[test]
    fn a_ramp_tells_where_its_server_is_saturated() {
        let (rate, tokens) = knee(&ramp(2.0, "6m")).unwrap();
        assert!(tokens == 20.0 && (0.8..1.2).contains(&rate), "{rate} {tokens}");
        assert!(knee(&ramp(0.5, "20m")).unwrap_err().0.contains("found no knee"));
        assert!(knee(&ramp(2.0, "1m")).unwrap_err().0.contains("too short"));
    }
}
