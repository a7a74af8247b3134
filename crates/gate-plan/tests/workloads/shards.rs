use gate_model::{Endpoint, Iterations, PlannedRequest, RunOrder, Shard, Target, Turns};
use gate_plan::{Extent, shard};
use proptest::prelude::*;

use crate::support::mixed;

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn the_union_of_shards_is_the_plan(
        seed in 0_u64..1000,
        of in 1_u32..12,
        count in 1_u32..60,
        warmup in 0_u32..14,
        turns in (1_u32..4, 0_u32..3),
        beside: bool,
        together: bool,
    ) {
        let mut spec = mixed(seed, &[2.0, 1.0]);
        spec.order = if together { RunOrder::Together } else { RunOrder::InTurn };
        spec.reference = beside.then(|| Target::new(Endpoint::Url("http://127.0.0.1:9000/v1".to_owned())));
        let of_scenarios = spec.scenarios.iter_mut().map(|scenario| (&mut scenario.load, &mut scenario.prompts));
        for (load, prompts) in of_scenarios.chain([(&mut spec.load, &mut spec.prompts)]) {
            (load.iterations, load.warmup) = (Iterations::Fixed(count), warmup);
            prompts.turns = Turns { min: turns.0, max: turns.0 + turns.1 };
        }
        for plan in gate_plan::plans(&spec, Extent::Base, &[]).unwrap() {
            let shards: Vec<_> = (1..=of).map(|index| shard(&plan, Shard { index, of })).collect();
            let mut union: Vec<PlannedRequest> = shards.iter().flat_map(|shard| shard.requests.clone()).collect();
            union.sort_by_key(|request| request.index);
            prop_assert_eq!(&union, &plan.requests);
            let sizes: Vec<usize> = shards.iter().map(|shard| shard.requests.iter().filter(|r| r.turn == 0).count()).collect();
            let arms = spec.arms() as usize;
            prop_assert!(sizes.iter().max().unwrap() - sizes.iter().min().unwrap() <= arms, "{:?}", sizes);
            for (index, part) in (1..).zip(&shards) {
                prop_assert_eq!(part.shard, Some(Shard { index, of }));
                prop_assert_eq!((&part.digest, part.whole, part.first), (&plan.digest, plan.whole, plan.first));
                prop_assert_eq!((&part.looks, &part.by_scenario), (&plan.looks, &plan.by_scenario));
                // Conversations and pairs are in one piece.
                for request in &part.requests {
                    let of_unit = |other: &&PlannedRequest| other.opening() == request.opening();
                    let whole = plan.requests.iter().filter(of_unit).count();
                    prop_assert_eq!(part.requests.iter().filter(of_unit).count(), whole);
                }
                for scenario in plan.warmup.iter().map(|request| request.scenario) {
                    let own = part.warmup.iter().filter(|request| request.scenario == scenario).count();
                    prop_assert!(own >= arms, "nothing warms up shard {}", index);
                }
            }
            let all = |request: &PlannedRequest| shards.iter().any(|shard| shard.warmup.contains(request));
            prop_assert!(plan.warmup.iter().all(all));
        }
    }
}

#[test]
fn a_shard_that_is_none_sends_nothing() {
    let plan = gate_plan::plans(&mixed(0, &[1.0]), Extent::Base, &[]).unwrap().remove(0);
    for (index, of) in [(0, 3), (4, 3), (1, 0), (0, 0)] {
        let part = shard(&plan, Shard { index, of });
        assert!(part.warmup.is_empty() && (part.requests.is_empty() || of == 0), "{index}/{of}");
    }
}
