//! Whether there is more to read, or to write.

use gate_model::{Against, LikelyCause, Nanos, Phase, Request, Series, ServerMetric};

use super::{Growth, Likely};
use crate::base;
use crate::scraped;
use crate::slow::{Crowd, Slow, decoding, is_larger, ok};

/// By how much the share of input tokens from the cache has to fall to explain anything.
const LEAST_CACHE_LOSS: f64 = 0.10;

/// Answers have more tokens, and take longer for it.
pub(super) fn outputs(slow: &Slow<'_>) -> Option<Likely> {
    let tokens = more(slow, Series::OutputTokens)?;
    let longer = slow.grew(decoding)?;
    let pace = base::median(slow.base(|one| one.value(Series::Tpot)));
    let added = pace.map_or(longer.to - longer.from, |pace| pace * (tokens.to - tokens.from));
    Some(Likely { phase: Phase::Decode, cause: LikelyCause::LongerOutputs { tokens: tokens.counts() }, added })
}

/// The means of a number of tokens, where there are more of them by more than chance.
fn more(slow: &Slow<'_>, series: Series) -> Option<Growth> {
    let (here, there) = (slow.here.numbers(|one| one.value(series)), slow.base(|one| one.value(series)));
    let is_more = is_larger(&here, &there);
    let means = Growth { from: base::mean(there.into_iter())?, to: base::mean(here.into_iter())? };
    (is_more && means.is_marked()).then_some(means)
}

/// What there is more to read.
pub(super) struct Reading {
    prompts: Option<Growth>,
    cache: Option<Growth>,
    /// How many times as many tokens have to be read as there; 1 without more of them.
    pub(super) factor: f64,
}

impl Reading {
    pub(super) fn of(slow: &Slow<'_>) -> Self {
        let prompts = more(slow, Series::InputTokens);
        let cache = less_cached(slow);
        let longer = prompts.map_or(1.0, |tokens| tokens.to / tokens.from);
        let unread = cache.map_or(1.0, |share| (1.0 - share.to) / (1.0 - share.from).max(f64::MIN_POSITIVE));
        Self { prompts, cache, factor: (longer * unread).max(1.0) }
    }

    /// Longer prompts and a lost cache, where the first token comes later. Both add what it comes later by.
    pub(super) fn causes(&self, slow: &Slow<'_>) -> [Option<Likely>; 2] {
        let is_streamed = ok(&slow.here.requests).any(|one| one.first_token().is_some());
        let whole = |one: Request<'_>| one.value(Series::E2e);
        let later = if is_streamed { slow.grew(|one| slow.wait(one)) } else { slow.grew(whole) };
        let Some(later) = later.filter(Growth::is_marked) else { return [None, None] };
        let of = |cause| Likely { phase: Phase::FirstToken, cause, added: later.to - later.from };
        let prompts = self.prompts.map(|tokens| of(LikelyCause::LongerPrompts { tokens: tokens.counts() }));
        [prompts, self.cache.map(|cached| of(LikelyCause::CacheLost { cached: cached.shares() }))]
    }
}

/// The share of input tokens that was cached, where it fell: by the requests' own usage or, where that says nothing on
/// either side, by the server's counters, which are only read of the target.
///
/// Where usage tells of cached tokens on one side, those that it does not tell of are none: servers leave a 0 out.
fn less_cached(slow: &Slow<'_>) -> Option<Growth> {
    let is_told = |crowd: &Crowd<'_>| ok(&crowd.requests).any(|one| one.value(Series::CachedTokens).is_some());
    let share = |one: Request<'_>| Some((cached(one) / input(one)?).min(1.0));
    let shares = if !is_told(&slow.here) && !slow.there.iter().any(is_told) {
        let counted = slow.there.iter().map(by_counters).collect::<Option<Vec<f64>>>();
        let there = counted.filter(|_| slow.against == Against::Baseline)?;
        Growth { from: base::mean(there.into_iter())?, to: by_counters(&slow.here)? }
    } else {
        if !is_larger(&slow.base(share), &slow.here.numbers(share)) {
            return None;
        }
        let pooled = |crowds: &[&Crowd<'_>]| {
            let all = crowds.iter().flat_map(|crowd| ok(&crowd.requests));
            let counted = all.filter_map(|one| Some((cached(one), input(one)?)));
            let (cached, input) = counted.fold((0.0, 0.0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
            (input > 0.0).then(|| (cached / input).min(1.0))
        };
        let there: Vec<&Crowd<'_>> = slow.there.iter().collect();
        Growth { from: pooled(&there)?, to: pooled(&[&slow.here])? }
    };
    (shares.from - shares.to >= LEAST_CACHE_LOSS).then_some(shares)
}

fn cached(one: Request<'_>) -> f64 {
    one.value(Series::CachedTokens).unwrap_or(0.0)
}

fn input(one: Request<'_>) -> Option<f64> {
    one.value(Series::InputTokens).filter(|tokens| *tokens > 0.0)
}

/// The share that the server itself counted.
fn by_counters(crowd: &Crowd<'_>) -> Option<f64> {
    let counted = |name: &str| {
        let scrapes = crowd.setting.scrapes;
        let read = scrapes.iter().any(|scrape| scrape.at >= Nanos::ZERO && scrape.error.is_none());
        scraped::delta(scrapes, crowd.setting.shards, ServerMetric::new(name)?).filter(|_| read)
    };
    let queries = counted("prefix_cache_queries").filter(|queries| *queries > 0.0)?;
    Some((counted("prefix_cache_hits")? / queries).clamp(0.0, 1.0))
}
