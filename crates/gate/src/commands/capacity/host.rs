//! Paying by the token, provisioned throughput and machines of one's own, compared.

use gate_capacity::{Costs, Hosting, Offer, OfferCost, Price};
use serde::Serialize;

use super::table::{facts, grouped, money, percent, shortest};
use super::{json, measured, refused};
use crate::cli::Host;
use crate::failure::Failure;

#[derive(Serialize)]
struct Answer {
    hosting: Hosting,
    costs: Costs,
}

pub(super) fn answer(asked: &Host) -> Result<String, Failure> {
    let provisioned = asked.provisioned_price.map(|per_hour| Offer {
        name: "provisioned",
        per_hour,
        units: asked.provisioned_units,
        serves: asked.provisioned_tps,
        months: asked.commitment,
    });
    let own = asked.gpu_price.map(|price| Offer {
        name: "self-hosted",
        per_hour: price * asked.gpus as f64,
        units: asked.instances,
        serves: asked.instance_tps,
        months: None,
    });
    let offers: Vec<Offer> = provisioned.into_iter().chain(own).collect();
    if offers.is_empty() {
        return Err(Failure::usage("there is nothing to compare with paying by the token")
            .hint("give --provisioned-price DOLLARS an hour, --gpu-price DOLLARS an hour, or both"));
    }
    let price = Price { input: asked.input_price, cached_input: asked.cached_price, output: asked.output_price };
    let hosting = Hosting { traffic: measured::traffic(&asked.load)?, price, offers };
    let costs = gate_capacity::compare(&hosting).map_err(refused)?;
    let answer = Answer { hosting, costs };
    if asked.json { json(&answer) } else { Ok(page(&answer, asked)) }
}

fn page(answer: &Answer, asked: &Host) -> String {
    let Answer { hosting, costs } = answer;
    let [input, cached, output] = costs.tokens_a_day.map(grouped);
    let price = &hosting.price;
    let cached_price = price.cached_input.map_or_else(|| "as much".to_owned(), money);
    let lines = [
        (
            "load",
            format!(
                "{} requests a second, around the clock, × {} input and {} output tokens",
                shortest(hosting.traffic.rps),
                shortest(hosting.traffic.input_tokens),
                shortest(hosting.traffic.output_tokens)
            ),
        ),
        (
            "a day",
            format!(
                "{input} input tokens, {cached} cached ones ({}), {output} output tokens",
                percent(hosting.traffic.cached)
            ),
        ),
        (
            "prices",
            format!(
                "per million: {} input, {cached_price} cached, {} output; {} for a million of this mix",
                money(price.input),
                money(price.output),
                money(costs.blended)
            ),
        ),
    ];
    let mut text = facts(&lines);
    text.push_str(&format!(
        "\nby the token  {} a day, {} a month\n",
        money(costs.by_token_a_day),
        money(costs.by_token_a_month)
    ));
    text.extend(costs.offers.iter().map(|offer| told(offer, asked)));
    text.push_str("\nAssumed: the mix of tokens stays as it is; fixed capacity is paid around the clock, used or not; a month has\n30.4 days; people, networks and spare capacity are not counted.\n");
    text
}

fn told(cost: &OfferCost, asked: &Host) -> String {
    let offer = &cost.offer;
    let what = match offer.name {
        "self-hosted" => format!(
            "{} × {} GPUs at {} an hour each",
            grouped(offer.units),
            grouped(asked.gpus),
            money(asked.gpu_price.unwrap_or(0.0))
        ),
        _ => format!("{} units at {} an hour each", grouped(offer.units), money(offer.per_hour)),
    };
    let committed = cost
        .committed
        .zip(offer.months)
        .map(|(dollars, months)| format!("; {} are committed to for {} months", money(dollars), shortest(months)));
    let mut text = format!(
        "{:<14}{} a day, {} a month: {what}{}\n",
        offer.name,
        money(cost.a_day),
        money(cost.a_month),
        committed.unwrap_or_default()
    );
    let mut say = |words: String| text.push_str(&format!("{:14}{words}\n", ""));
    match cost.break_even {
        None => say("never cheaper: by the token it costs nothing".to_owned()),
        Some(tokens) => say(format!("break-even at {} tokens a day of this mix", grouped(tokens))),
    }
    match (cost.serves_a_day, cost.reaches_it) {
        (Some(serves), Some(true)) => say(format!("it serves up to {} a day, more than that", grouped(serves))),
        (Some(serves), Some(false)) => {
            say(format!("it serves only {} a day: never cheaper than by the token", grouped(serves)))
        }
        (Some(serves), None) => say(format!("it serves up to {} a day", grouped(serves))),
        (None, _) => say(format!(
            "whether it serves as many is not known: --{} says what one serves",
            if offer.name == "self-hosted" { "instance-tps" } else { "provisioned-tps" }
        )),
    }
    say(match (cost.is_cheaper_today, cost.serves_today) {
        (_, Some(false)) => "it does not serve this load: more of it is needed".to_owned(),
        (true, _) => "cheaper than by the token for this load".to_owned(),
        (false, _) => "dearer than by the token for this load".to_owned(),
    });
    text
}
