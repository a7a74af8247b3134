//! The prefix cache: blocks of prompts that were read before.

use std::collections::{HashMap, VecDeque};

use gate_model::PrefixCache;

/// Which blocks are held, the least recently used first out. A block is known by a number that stands for all the text
/// up to its end, so equal numbers at one place mean equal beginnings.
#[derive(Clone, Debug)]
pub(crate) struct Blocks {
    size: PrefixCache,
    /// When each block that is held was last used.
    used: HashMap<u64, u64>,
    /// Uses, the oldest first; one that is not a block's last means nothing.
    uses: VecDeque<(u64, u64)>,
    clock: u64,
}

impl Blocks {
    pub(crate) fn new(size: PrefixCache) -> Self {
        Self { size, used: HashMap::new(), uses: VecDeque::new(), clock: 0 }
    }

    /// How many tokens of a prompt are held, from its start on, in whole blocks. At least one token is always read, as
    /// an engine must to give the next one.
    pub(crate) fn held(&self, blocks: &[u64], tokens: u32) -> u32 {
        let held = blocks.iter().take_while(|block| self.used.contains_key(block)).count();
        let per_block = self.size.block_tokens.max(1);
        let most = tokens.saturating_sub(1) / per_block;
        u32::try_from(held).unwrap_or(u32::MAX).min(most).saturating_mul(per_block)
    }

    /// Holds these blocks of one prompt, its beginning longest.
    pub(crate) fn hold(&mut self, blocks: &[u64]) {
        for block in blocks.iter().rev() {
            self.clock += 1;
            self.used.insert(*block, self.clock);
            self.uses.push_back((self.clock, *block));
        }
        let most = self.size.blocks as usize;
        while self.used.len() > most
            && let Some((at, block)) = self.uses.pop_front()
        {
            if self.used.get(&block) == Some(&at) {
                self.used.remove(&block);
            }
        }
        if self.uses.len() > 2 * most.max(32) {
            let used = &self.used;
            self.uses.retain(|(at, block)| used.get(block) == Some(at));
        }
    }
}

/// Two numbers made into one that depends on both (the finaliser of SplitMix64).
#[must_use]
pub fn mixed(left: u64, right: u64) -> u64 {
    let mut hash = left.rotate_left(32) ^ right.wrapping_add(0x9e37_79b9_7f4a_7c15);
    hash = (hash ^ (hash >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    hash = (hash ^ (hash >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    hash ^ (hash >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cache(blocks: u32) -> Blocks {
        Blocks::new(PrefixCache { blocks, block_tokens: 16 })
    }

    #[test]
    fn what_was_read_is_held_from_the_start_on_in_whole_blocks() {
        let mut cache = cache(100);
        assert_eq!(cache.held(&[1, 2, 3], 50), 0);
        cache.hold(&[1, 2, 3]);
        assert_eq!(cache.held(&[1, 2, 3, 4], 70), 48);
        assert_eq!(cache.held(&[1, 9, 3], 50), 16);
        assert_eq!(cache.held(&[9, 2, 3], 50), 0);
        // The last token is always read, so the last whole block is too.
        assert_eq!((cache.held(&[1, 2, 3], 48), cache.held(&[1, 2, 3], 49), cache.held(&[], 0)), (32, 48, 0));
    }

    #[test]
    fn the_least_recently_used_goes_first_and_ends_before_beginnings() {
        let mut cache = cache(4);
        cache.hold(&[1, 2, 3]);
        cache.hold(&[11, 12]);
        assert_eq!((cache.held(&[1, 2, 3], 99), cache.held(&[11, 12], 99)), (32, 32));
        cache.hold(&[1, 2]);
        cache.hold(&[21, 22]);
        assert_eq!((cache.held(&[1, 2], 99), cache.held(&[11, 12], 99), cache.held(&[21, 22], 99)), (32, 0, 32));
        let mut none = Blocks::new(PrefixCache { blocks: 0, block_tokens: 16 });
        none.hold(&[1]);
        assert_eq!(none.held(&[1], 99), 0);
    }

    #[test]
    fn it_stays_small_however_often_it_is_used() {
        let mut cache = cache(50);
        for round in 0..10_000_u64 {
            cache.hold(&[round % 7, 100 + round % 60]);
        }
        assert_eq!(cache.used.len(), 50);
        assert!(cache.uses.len() <= 102, "{}", cache.uses.len());
    }
}
