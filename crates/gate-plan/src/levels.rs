//! Draws that are spread evenly: every short stretch of them covers the whole range.

use crate::draw::Stream;

/// Draws per block. It divides the usual looks (30, 50, 100), and depends on nothing, so that a request depends on the
/// seed and its index alone.
pub(crate) const BLOCK: u32 = 10;

/// Levels between 0 and 1, without end: each block of [`BLOCK`] has one in every tenth, in random order.
///
/// Any run of blocks so has a mean much closer to the middle than free draws would.
pub(crate) fn levels(stream: Stream) -> impl Iterator<Item = f64> {
    (0..).flat_map(move |part| {
        let mut draws = stream.part(part);
        let mut strata: Vec<u32> = (0..BLOCK).collect();
        draws.shuffle(&mut strata);
        strata.into_iter().map(move |stratum| (f64::from(stratum) + draws.unit()) / f64::from(BLOCK))
    })
}

/// Blocks over which [`fine_levels`] are spread evenly too.
const BLOCKS: u64 = 5;

/// The same, of which moreover every five blocks have one in each fiftieth. Where a tenth is as wide as the longest of
/// a skewed distribution, a mean of 50 would else still wander by percents.
pub(crate) fn fine_levels(stream: Stream) -> impl Iterator<Item = f64> {
    (0_u64..).flat_map(move |part| {
        let mut draws = stream.part(part);
        let mut strata: Vec<u32> = (0..BLOCK).collect();
        draws.shuffle(&mut strata);
        // Five blocks share the order in which the parts of each tenth are used.
        let mut shared = stream.part((1 << 40) | (part / BLOCKS));
        let own: Vec<u64> = (0..BLOCK)
            .map(|_| {
                let mut order: Vec<u64> = (0..BLOCKS).collect();
                shared.shuffle(&mut order);
                order.into_iter().nth((part % BLOCKS) as usize).unwrap_or(0)
            })
            .collect();
        strata.into_iter().map(move |stratum| {
            let within = own.get(stratum as usize).copied().unwrap_or(0);
            (f64::from(stratum) + (within as f64 + draws.unit()) / BLOCKS as f64) / f64::from(BLOCK)
        })
    })
}

/// [`levels`] as whole numbers below `count`, which must be at least 1.
pub(crate) fn whole(stream: Stream, count: u32) -> impl Iterator<Item = u32> {
    levels(stream).map(move |level| ((level * f64::from(count)) as u32).min(count.saturating_sub(1)))
}
