//! Whether a provider's rate limits are enough, and which of them binds.

use serde::{Deserialize, Serialize};

use crate::instances::up;
use crate::{CapacityError, Traffic};

const TEXT: &str = include_str!("../data/tiers.yaml");

/// What a minute of traffic needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Need {
    /// Requests a minute.
    pub rpm: u64,
    /// Input tokens a minute that do not come from the cache.
    pub itpm: u64,
    /// Input tokens a minute that do.
    pub cached_tpm: u64,
    /// Output tokens a minute.
    pub otpm: u64,
}

/// What traffic needs of a provider in a minute. It is a mean: limits that are enforced by the second, and bursts, need
/// more.
///
/// # Errors
/// [`CapacityError::OutOfRange`] where traffic is none, [`CapacityError::TooLarge`] beyond 2^53 a minute.
pub fn need(traffic: &Traffic) -> Result<Need, CapacityError> {
    traffic.check()?;
    let [requests, input, cached, output] = traffic.within(60.0).map(up);
    if [requests, input, cached, output].iter().any(|value| *value >= 2_f64.powi(53)) {
        return Err(CapacityError::TooLarge("this traffic"));
    }
    Ok(Need { rpm: requests as u64, itpm: input as u64, cached_tpm: cached as u64, otpm: output as u64 })
}

/// What a provider allows one of its customers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tier {
    /// The provider.
    pub provider: String,
    /// The model, or the family of models.
    pub model: String,
    /// The tier's name.
    pub tier: String,
    /// Requests a minute.
    #[serde(default)]
    pub rpm: Option<u64>,
    /// Input tokens a minute.
    #[serde(default)]
    pub itpm: Option<u64>,
    /// Output tokens a minute.
    #[serde(default)]
    pub otpm: Option<u64>,
    /// Input and output tokens a minute together.
    #[serde(default)]
    pub tpm: Option<u64>,
    /// Whether input tokens from the cache count.
    #[serde(default)]
    pub cached_counts: bool,
}

/// A file of tiers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tiers {
    /// When they were read, as `YYYY-MM-DD`.
    pub date: String,
    /// Where from.
    pub source: String,
    /// Each of them, those of one provider and model from the smallest.
    pub tiers: Vec<Tier>,
}

impl Tiers {
    /// Those that are compiled in: as their providers published them on the file's date. Providers change them, and agree on
    /// others with their customers.
    ///
    /// # Errors
    /// [`CapacityError::Tiers`], which they never bring about.
    pub fn built_in() -> Result<Self, CapacityError> {
        Self::parse(TEXT)
    }

    /// Those of a YAML file.
    ///
    /// # Errors
    /// [`CapacityError::Tiers`] where it is none, [`CapacityError::NoLimit`] without any tier or for one without a limit.
    pub fn parse(text: &str) -> Result<Self, CapacityError> {
        let tiers: Self = serde_yaml::from_str(text).map_err(CapacityError::Tiers)?;
        if tiers.tiers.is_empty() {
            return Err(CapacityError::NoLimit("there is none in `tiers`".to_owned()));
        }
        let is_bare =
            |tier: &&Tier| [tier.rpm, tier.itpm, tier.otpm, tier.tpm].iter().flatten().all(|limit| *limit == 0);
        match tiers.tiers.iter().find(is_bare) {
            Some(Tier { provider, model, tier, .. }) => Err(CapacityError::NoLimit(format!(
                "`{tier}` of {provider} {model} has no limit above 0: give it rpm, itpm, otpm or tpm"
            ))),
            None => Ok(tiers),
        }
    }
}

/// A limit beside what is needed of it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Binding {
    /// `rpm`, `itpm`, `otpm` or `tpm`.
    pub limit: &'static str,
    /// What is needed.
    pub needed: u64,
    /// What is allowed.
    pub allowed: u64,
}

impl Binding {
    /// What is needed over what is allowed.
    #[must_use]
    pub fn share(&self) -> f64 {
        self.needed as f64 / (self.allowed as f64).max(f64::MIN_POSITIVE)
    }
}

/// A tier beside a need.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TierFit {
    /// The tier.
    pub tier: Tier,
    /// Its limits, the one that binds first.
    pub limits: Vec<Binding>,
    /// Whether it allows all that is needed.
    pub suffices: bool,
}

/// A need against a tier. Where the provider counts cached tokens, they are needed too.
#[must_use]
pub fn against(need: &Need, tier: &Tier) -> TierFit {
    let cached = if tier.cached_counts { need.cached_tpm } else { 0 };
    let input = need.itpm.saturating_add(cached);
    let limits = [
        ("rpm", need.rpm, tier.rpm),
        ("itpm", input, tier.itpm),
        ("otpm", need.otpm, tier.otpm),
        ("tpm", input.saturating_add(need.otpm), tier.tpm),
    ];
    let binding = |(limit, needed, allowed): (_, _, Option<u64>)| Some(Binding { limit, needed, allowed: allowed? });
    let mut limits: Vec<Binding> = limits.into_iter().filter_map(binding).collect();
    limits.sort_by(|one, other| other.share().total_cmp(&one.share()));
    let suffices = limits.iter().all(|limit| limit.needed <= limit.allowed);
    TierFit { tier: tier.clone(), limits, suffices }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn traffic() -> Traffic {
        Traffic { rps: 50.0, input_tokens: 800.0, output_tokens: 200.0, cached: 0.6 }
    }

    #[test]
    fn what_comes_from_the_cache_is_left_out() {
        // 50 × 60 = 3,000 requests; 3,000 × 800 × 40 % and 3,000 × 200 tokens.
        let needed = need(&traffic()).unwrap();
        assert_eq!(needed, Need { rpm: 3_000, itpm: 960_000, cached_tpm: 1_440_000, otpm: 600_000 });
        let all = need(&Traffic { cached: 0.0, ..traffic() }).unwrap();
        assert_eq!((all.itpm, all.cached_tpm), (2_400_000, 0));
        // A third of a token is a token more, what is one but for rounding is not.
        let odd = need(&Traffic { rps: 0.1, input_tokens: 10.0, output_tokens: 1.0, cached: 0.99 }).unwrap();
        assert_eq!(odd, Need { rpm: 6, itpm: 1, cached_tpm: 60, otpm: 6 });
        for wrong in [
            Traffic { rps: 0.0, ..traffic() },
            Traffic { rps: f64::NAN, ..traffic() },
            Traffic { cached: 1.1, ..traffic() },
            Traffic { input_tokens: -1.0, ..traffic() },
            Traffic { output_tokens: f64::INFINITY, ..traffic() },
            Traffic { rps: 1e12, input_tokens: 1e12, ..traffic() },
        ] {
            assert!(need(&wrong).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn the_limit_that_binds_is_the_one_most_used() {
        let tier = Tier {
            provider: "p".to_owned(),
            model: "m".to_owned(),
            tier: "t".to_owned(),
            rpm: Some(4_000),
            itpm: Some(2_000_000),
            otpm: Some(400_000),
            tpm: None,
            cached_counts: false,
        };
        let fit = against(&need(&traffic()).unwrap(), &tier);
        let shown: Vec<_> = fit.limits.iter().map(|limit| (limit.limit, limit.needed, limit.allowed)).collect();
        assert_eq!(shown, [("otpm", 600_000, 400_000), ("rpm", 3_000, 4_000), ("itpm", 960_000, 2_000_000)]);
        assert!(!fit.suffices);
        let counted = Tier { cached_counts: true, otpm: None, tpm: Some(3_000_000), ..tier };
        let fit = against(&need(&traffic()).unwrap(), &counted);
        // 2,400,000 in, cached ones too, and 600,000 out.
        assert_eq!((fit.limits[0].limit, fit.limits[0].needed, fit.suffices), ("itpm", 2_400_000, false));
        assert!(fit.limits.iter().any(|limit| (limit.limit, limit.needed) == ("tpm", 3_000_000)));
    }

    #[test]
    fn a_file_of_tiers_is_dated_and_limits_something() {
        let built_in = Tiers::built_in().unwrap();
        assert!(built_in.date.len() == 10 && built_in.tiers.len() >= 4);
        for (text, words) in [
            ("[]", "read the tiers"),
            ("{date: d, source: s, tiers: []}", "there is none in `tiers`"),
            ("{date: d, source: s, tiers: [{provider: p, model: m, tier: t}]}", "`t` of p m has no limit above 0"),
            ("{date: d, source: s, tiers: [{provider: p, model: m, tier: t, prm: 4}]}", "unknown field `prm`"),
        ] {
            let error = Tiers::parse(text).unwrap_err();
            let said = format!("{error}");
            assert!(said.contains(words), "{text}: {said}");
        }
    }
}
