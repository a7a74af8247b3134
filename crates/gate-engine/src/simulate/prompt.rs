//! What prompts have in common, by the plan.

use gate_model::{Cache, PlannedRequest, PromptSpec};

use crate::mixed;

/// What a block's number begins with.
const SHARED: u64 = 1;
const WARM: u64 = 2;
const OWN: u64 = 3;
const OWN_OF_WARMUP: u64 = 4;

/// Whose text a prompt is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Author {
    /// That of the conversation whose first request has this index.
    Conversation(u32),
    /// That of the warm-up request of this index.
    Warmup(u32),
}

/// The whole blocks of so many tokens: of a prompt, its history included, or of that and its answer.
pub(super) fn blocks(
    request: &PlannedRequest,
    author: Author,
    prompts: &PromptSpec,
    tokens: u32,
    block_tokens: u32,
) -> Vec<u64> {
    let block_tokens = block_tokens.max(1);
    let beginning = mixed(u64::from(request.scenario), u64::from(request.group));
    let shared = prompts.shared_prefix.map_or(0, |prefix| prefix.tokens) / block_tokens;
    let own = match author {
        Author::Conversation(first) => mixed(OWN, u64::from(first)),
        Author::Warmup(index) => mixed(OWN_OF_WARMUP, u64::from(index)),
    };
    let block = |place: u32| {
        let text = match prompts.cache {
            Cache::Warm => mixed(WARM, beginning),
            _ if place < shared => mixed(SHARED, beginning),
            _ => own,
        };
        mixed(text, u64::from(place))
    };
    (0..tokens / block_tokens).map(block).collect()
}

#[cfg(test)]
mod tests {
    use gate_model::SharedPrefix;

    use super::*;

    fn common(left: &[u64], right: &[u64]) -> usize {
        left.iter().zip(right).take_while(|(left, right)| left == right).count()
    }

    #[test]
    fn prompts_share_what_the_spec_says() {
        let group = |group| PlannedRequest { group, ..PlannedRequest::default() };
        let of = |prompts: &PromptSpec, request, first, tokens| {
            blocks(&group(request), Author::Conversation(first), prompts, tokens, 16)
        };
        let bust = PromptSpec::default();
        assert_eq!(common(&of(&bust, 0, 1, 160), &of(&bust, 0, 2, 160)), 0);
        assert_eq!(common(&of(&bust, 0, 1, 160), &of(&bust, 0, 1, 320)), 10, "a conversation goes on");
        let warmup = blocks(&group(0), Author::Warmup(1), &bust, 160, 16);
        assert_eq!(common(&of(&bust, 0, 1, 160), &warmup), 0);

        let prefix = Some(SharedPrefix { tokens: 100, groups: 2 });
        let shared = PromptSpec { shared_prefix: prefix, ..PromptSpec::default() };
        assert_eq!(common(&of(&shared, 0, 1, 160), &of(&shared, 0, 2, 160)), 6, "96 of 100 tokens are whole blocks");
        assert_eq!(common(&of(&shared, 0, 1, 160), &of(&shared, 1, 2, 160)), 0);

        let warm = PromptSpec { cache: Cache::Warm, ..PromptSpec::default() };
        assert_eq!(common(&of(&warm, 0, 1, 160), &of(&warm, 0, 2, 200)), 10);
    }
}
