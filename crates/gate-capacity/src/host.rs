//! From how many tokens a day capacity at a fixed price is cheaper than paying by the token.

use serde::Serialize;

use crate::{CapacityError, Traffic};

/// Seconds of a day.
const DAY: f64 = 86_400.0;
/// Days of a month, as bills have them on average.
const MONTH: f64 = 365.0 / 12.0;

/// What a provider takes by the token, in dollars per million.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Price {
    /// Input tokens.
    pub input: f64,
    /// Input tokens from the cache; absent where they cost as much as the others.
    pub cached_input: Option<f64>,
    /// Output tokens.
    pub output: f64,
}

/// Capacity at a fixed price: provisioned or reserved throughput, or machines of one's own.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Offer {
    /// What it is called.
    pub name: &'static str,
    /// Dollars an hour for one unit, or for one instance with all its GPUs; paid around the clock.
    pub per_hour: f64,
    /// How many of them.
    pub units: u64,
    /// Output tokens a second that one of them serves; absent where that is not known.
    pub serves: Option<f64>,
    /// For how many months it is committed to, and so paid whatever is sent.
    pub months: Option<f64>,
}

/// How a workload is hosted.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Hosting {
    /// What is sent, as a mean over the whole day.
    pub traffic: Traffic,
    /// What is paid by the token.
    pub price: Price,
    /// What may be had instead.
    pub offers: Vec<Offer>,
}

/// What an offer comes to.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct OfferCost {
    /// The offer.
    pub offer: Offer,
    /// Dollars a day.
    pub a_day: f64,
    /// Dollars a month.
    pub a_month: f64,
    /// Dollars that are committed to.
    pub committed: Option<f64>,
    /// From how many tokens a day, input and output, of this mix it is cheaper than paying by the token; absent where the
    /// tokens cost nothing.
    pub break_even: Option<u64>,
    /// The most tokens a day of this mix that it serves, at the same rate around the clock.
    pub serves_a_day: Option<u64>,
    /// Whether it serves as many as the break-even needs; absent where one of them is not known.
    pub reaches_it: Option<bool>,
    /// Whether it serves today's traffic as a mean; a peak needs more.
    pub serves_today: Option<bool>,
    /// Whether it is cheaper at today's traffic.
    pub is_cheaper_today: bool,
}

/// What all of them come to.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Costs {
    /// Tokens a day: input that is not cached, cached input, output.
    pub tokens_a_day: [u64; 3],
    /// Dollars a day by the token.
    pub by_token_a_day: f64,
    /// Dollars a month by the token.
    pub by_token_a_month: f64,
    /// Dollars per million tokens of this mix, input and output together.
    pub blended: f64,
    /// Each offer.
    pub offers: Vec<OfferCost>,
}

/// Compares paying by the token with offers at a fixed price.
///
/// By the token a day costs `Σ tokens × price`. An offer costs `per_hour × units × 24`, and its break-even is that over the
/// price of a mean token of this mix: `fixed ÷ blended`.
///
/// # Errors
/// [`CapacityError::OutOfRange`] for prices, units or rates that are none, [`CapacityError::TooLarge`] beyond 2^53 tokens.
pub fn compare(hosting: &Hosting) -> Result<Costs, CapacityError> {
    let Hosting { traffic, price, offers } = hosting;
    traffic.check()?;
    let is_price = |what: &'static str, value: f64| match value.is_finite() && (0.0..1e12).contains(&value) {
        true => Ok(()),
        false => Err(CapacityError::range(what, value, "a price from 0, in dollars")),
    };
    is_price("the input price", price.input)?;
    is_price("the cached price", price.cached_input.unwrap_or(0.0))?;
    is_price("the output price", price.output)?;
    let [_, input, cached, output] = traffic.within(DAY);
    let by_token =
        (input * price.input + cached * price.cached_input.unwrap_or(price.input) + output * price.output) / 1e6;
    let all = input + cached + output;
    if all <= 0.0 {
        return Err(CapacityError::range("requests of", "0 tokens", "input or output tokens above 0"));
    }
    let cost = |offer: &Offer| -> Result<OfferCost, CapacityError> {
        is_price("the price an hour", offer.per_hour)?;
        if offer.units == 0 {
            return Err(CapacityError::range("units of", 0, "at least 1"));
        }
        let units = offer.units as f64;
        let a_day = offer.per_hour * units * 24.0;
        let blended = by_token / all;
        let break_even = (blended > 0.0).then(|| whole(a_day / blended)).transpose()?;
        // What is served is told in output tokens; the mix says how many of all that are.
        let served = offer.serves.filter(|_| output > 0.0).map(|serves| serves * units * DAY * (all / output));
        let serves_a_day = served.map(whole).transpose()?;
        Ok(OfferCost {
            a_day,
            a_month: a_day * MONTH,
            committed: offer.months.map(|months| a_day * MONTH * months),
            break_even,
            serves_a_day,
            reaches_it: break_even.zip(serves_a_day).map(|(needed, served)| served >= needed),
            serves_today: served.map(|served| served >= all),
            is_cheaper_today: a_day < by_token,
            offer: offer.clone(),
        })
    };
    Ok(Costs {
        tokens_a_day: [whole(input)?, whole(cached)?, whole(output)?],
        by_token_a_day: by_token,
        by_token_a_month: by_token * MONTH,
        blended: by_token / all * 1e6,
        offers: offers.iter().map(cost).collect::<Result<_, _>>()?,
    })
}

/// A number of tokens, to the nearest.
fn whole(tokens: f64) -> Result<u64, CapacityError> {
    match tokens.is_finite() && tokens < 2_f64.powi(53) {
        true => Ok(tokens.round() as u64),
        false => Err(CapacityError::TooLarge("these tokens a day")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hosting(offers: Vec<Offer>) -> Hosting {
        Hosting {
            traffic: Traffic { rps: 1.0, input_tokens: 800.0, output_tokens: 200.0, cached: 0.5 },
            price: Price { input: 3.0, cached_input: Some(0.3), output: 15.0 },
            offers,
        }
    }

    fn machine(per_hour: f64, serves: Option<f64>) -> Offer {
        Offer { name: "self-hosted", per_hour, units: 2, serves, months: None }
    }

    #[test]
    fn break_even_is_what_fixed_costs_buy_by_the_token() {
        // A day: 34.56 M input, as much cached, 17.28 M output: $103.68 + $10.368 + $259.20.
        let costs = compare(&hosting(vec![machine(4.0, Some(500.0)), machine(40.0, Some(10.0))])).unwrap();
        assert_eq!(costs.tokens_a_day, [34_560_000, 34_560_000, 17_280_000]);
        assert!((costs.by_token_a_day - 373.248).abs() < 1e-9, "{}", costs.by_token_a_day);
        // 86.4 M tokens for $373.248: $4.32 a million.
        assert!((costs.blended - 4.32).abs() < 1e-12);
        let [cheap, dear] = &costs.offers[..] else { panic!() };
        // Two at $4 an hour: $192 a day, which buys 44,444,444 tokens.
        assert_eq!((cheap.a_day, cheap.break_even), (192.0, Some(44_444_444)));
        // 1,000 output tokens a second are 86.4 M a day, a fifth of all.
        assert_eq!(
            (cheap.serves_a_day, cheap.reaches_it, cheap.serves_today),
            (Some(432_000_000), Some(true), Some(true))
        );
        assert!(cheap.is_cheaper_today && !dear.is_cheaper_today);
        assert_eq!((dear.reaches_it, dear.serves_today), (Some(false), Some(false)));
        assert!((costs.by_token_a_month - 373.248 * 365.0 / 12.0).abs() < 1e-6);
    }

    #[test]
    fn a_commitment_is_paid_whatever_is_sent() {
        let offer = Offer { name: "provisioned", per_hour: 10.0, units: 3, serves: None, months: Some(6.0) };
        let costs = compare(&hosting(vec![offer])).unwrap();
        let one = &costs.offers[0];
        assert!((one.committed.unwrap() - 720.0 * 365.0 / 2.0).abs() < 1e-6);
        assert_eq!((one.serves_a_day, one.reaches_it, one.serves_today), (None, None, None));
    }

    #[test]
    fn what_is_no_price_says_so() {
        let mut wrong = hosting(vec![]);
        wrong.price.input = -1.0;
        assert!(compare(&wrong).unwrap_err().to_string().contains("the input price -1"));
        assert!(compare(&hosting(vec![machine(f64::NAN, None)])).is_err());
        assert!(compare(&hosting(vec![Offer { units: 0, ..machine(1.0, None) }])).is_err());
        let mut free = hosting(vec![machine(1.0, None)]);
        free.price = Price { input: 0.0, cached_input: None, output: 0.0 };
        assert_eq!(compare(&free).unwrap().offers[0].break_even, None);
        let mut empty = hosting(vec![]);
        (empty.traffic.input_tokens, empty.traffic.output_tokens) = (0.0, 0.0);
        assert!(compare(&empty).is_err());
    }
}
