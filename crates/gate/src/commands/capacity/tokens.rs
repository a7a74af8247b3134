//! What a load needs of a provider's rate limits.

use gate_capacity::{Need, TierFit, Tiers, Traffic};
use serde::Serialize;

use super::table::{facts, grouped, percent, shortest, table};
use super::{json, measured, refused};
use crate::cli::Tokens;
use crate::failure::Failure;
use crate::files;

#[derive(Serialize)]
struct Answer {
    traffic: Traffic,
    need: Need,
    tiers_date: String,
    tiers_source: String,
    tiers: Vec<TierFit>,
}

pub(super) fn answer(asked: &Tokens) -> Result<String, Failure> {
    let traffic = measured::traffic(&asked.load)?;
    let need = gate_capacity::need(&traffic).map_err(refused)?;
    let tiers = match &asked.tiers {
        Some(file) => Tiers::parse(&files::read(file, files::SMALL)?).map_err(|error| {
            let failure = refused(error);
            Failure { message: format!("{}: {}", file.display(), failure.message), ..failure }
        })?,
        None => Tiers::built_in().map_err(refused)?,
    };
    let is_meant = |provider: &str| asked.provider.as_ref().is_none_or(|wanted| provider.eq_ignore_ascii_case(wanted));
    let chosen: Vec<TierFit> = tiers
        .tiers
        .iter()
        .filter(|tier| is_meant(&tier.provider))
        .map(|tier| gate_capacity::against(&need, tier))
        .collect();
    if chosen.is_empty() {
        let mut names: Vec<&str> = tiers.tiers.iter().map(|tier| tier.provider.as_str()).collect();
        names.dedup();
        let words = format!("no tier is of the provider `{}`", asked.provider.as_deref().unwrap_or_default());
        return Err(Failure::usage(words).hint(format!("there are {}; --tiers names another file", names.join(", "))));
    }
    let answer =
        Answer { traffic, need, tiers_date: tiers.date.clone(), tiers_source: tiers.source.clone(), tiers: chosen };
    if asked.json { json(&answer) } else { Ok(page(&answer)) }
}

fn page(answer: &Answer) -> String {
    let Answer { traffic, need, .. } = answer;
    let load = format!(
        "{} requests a second × {} input and {} output tokens, {} of the input cached",
        shortest(traffic.rps),
        shortest(traffic.input_tokens),
        shortest(traffic.output_tokens),
        percent(traffic.cached)
    );
    let needed = format!(
        "{} RPM, {} ITPM (cached ones left out: {}), {} OTPM",
        grouped(need.rpm),
        grouped(need.itpm),
        grouped(need.cached_tpm),
        grouped(need.otpm)
    );
    let clean = gate_report::escape::terminal;
    let tiers =
        format!("{}, {}; an account's own page wins, and --tiers FILE too", answer.tiers_date, answer.tiers_source);
    let mut text = facts(&[("load", load), ("needed", needed), ("tiers", clean(&tiers))]) + "\n";
    let mut rows = vec![["tier", "rpm", "itpm", "otpm", "tpm", "binds", "used", ""].map(str::to_owned).to_vec()];
    rows.extend(answer.tiers.iter().map(row));
    text.push_str(&table(&rows));
    text.push('\n');
    text.push_str(&conclusion(answer));
    text.push_str(
        "A minute's mean is compared: limits that are enforced by the second, and bursts, need more. ITPM is input\n\
         tokens a minute, OTPM output tokens; * counts cached tokens too.\n",
    );
    text
}

fn row(fit: &TierFit) -> Vec<String> {
    let tier = &fit.tier;
    let clean = gate_report::escape::terminal;
    let limit = |limit: Option<u64>| limit.map_or_else(|| "–".to_owned(), grouped);
    let star = if tier.cached_counts { " *" } else { "" };
    let (binds, used) = match fit.limits.first() {
        Some(first) => (first.limit.to_owned(), percent(first.share())),
        None => ("–".to_owned(), "–".to_owned()),
    };
    vec![
        clean(&format!("{} {}, {}{star}", tier.provider, tier.model, tier.tier)),
        limit(tier.rpm),
        limit(tier.itpm),
        limit(tier.otpm),
        limit(tier.tpm),
        binds,
        used,
        if fit.suffices { "suffices" } else { "too small" }.to_owned(),
    ]
}

/// The smallest tier of each model that suffices, or that none does.
fn conclusion(answer: &Answer) -> String {
    let mut models: Vec<(&str, &str)> =
        answer.tiers.iter().map(|fit| (fit.tier.provider.as_str(), fit.tier.model.as_str())).collect();
    models.dedup();
    let said = models.into_iter().map(|(provider, model)| {
        let own: Vec<&TierFit> = answer
            .tiers
            .iter()
            .filter(|fit| (fit.tier.provider.as_str(), fit.tier.model.as_str()) == (provider, model))
            .collect();
        let name = gate_report::escape::terminal(&format!("{provider} {model}"));
        match own.iter().find(|fit| fit.suffices) {
            Some(fit) => format!("{name}: tier {} suffices.\n", gate_report::escape::terminal(&fit.tier.tier)),
            None => {
                // The largest is the one that is exceeded least.
                let share = |fit: &&&TierFit| fit.limits.first().map_or(f64::MAX, gate_capacity::Binding::share);
                let best = own.iter().min_by(|one, other| share(one).total_cmp(&share(other)));
                let limit = best.and_then(|fit| Some((&fit.tier.tier, fit.limits.first()?)));
                let why = limit.map(|(tier, limit)| {
                    format!(
                        ": {} of tier {} allows {}, and {} are needed",
                        limit.limit,
                        gate_report::escape::terminal(tier),
                        grouped(limit.allowed),
                        grouped(limit.needed)
                    )
                });
                format!(
                    "{name}: no tier suffices{}; ask for a higher limit, or for provisioned throughput.\n",
                    why.unwrap_or_default()
                )
            }
        }
    });
    said.collect()
}
