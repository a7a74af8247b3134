use gate_model::PrefixCache;

use super::*;

fn engine(slots: Option<u32>, scaling: Option<Scaling>) -> Engine {
    Engine::new(&EngineParams { slots, scaling, ..EngineParams::default() })
}

fn started(engine: &mut Engine, now: i64) -> Vec<u64> {
    std::iter::from_fn(|| engine.start(Nanos(now))).collect()
}

#[test]
fn who_waited_longest_is_served_first_and_who_left_is_not() {
    let mut engine = engine(Some(2), None);
    (1..=5).for_each(|ticket| engine.arrive(Nanos(0), ticket));
    assert_eq!((started(&mut engine, 0), engine.waiting()), (vec![1, 2], 3));
    engine.leave(Nanos(3), 4);
    assert!(started(&mut engine, 3).is_empty());
    engine.leave(Nanos(4), 2);
    assert_eq!(started(&mut engine, 4), [3]);
    engine.leave(Nanos(5), 1);
    engine.leave(Nanos(5), 3);
    assert_eq!(started(&mut engine, 5), [5]);
    assert_eq!(engine.backlogs(), [Backlog { from: Nanos(0), to: Some(Nanos(5)), most: 3 }]);
}

#[test]
fn without_slots_nobody_waits() {
    let mut engine = engine(None, None);
    (0..100).for_each(|ticket| engine.arrive(Nanos(0), ticket));
    assert_eq!(started(&mut engine, 0).len(), 100);
    assert_eq!((engine.backlogs(), engine.next_event()), (vec![], None));
    assert!(engine.gauges(Nanos(0)).iter().all(|(name, _)| *name != "kv_cache_usage"));
}

#[test]
fn slots_are_added_after_a_cold_start_one_step_at_a_time() {
    let scaling = Scaling { max_slots: 4, step: 2, queue: 2, cold_start: Nanos(100) };
    let mut engine = engine(Some(1), Some(scaling));
    engine.arrive(Nanos(0), 1);
    assert_eq!(started(&mut engine, 0), [1]);
    engine.arrive(Nanos(10), 2);
    assert_eq!(engine.next_event(), None);
    engine.arrive(Nanos(20), 3);
    assert_eq!(engine.next_event(), Some(Nanos(120)));
    (4..=7).for_each(|ticket| engine.arrive(Nanos(30), ticket));
    assert_eq!(engine.next_event(), Some(Nanos(120)), "one request for slots at a time");
    engine.grow(Nanos(119));
    assert_eq!((started(&mut engine, 119), engine.slots()), (vec![], Some(1)));
    engine.grow(Nanos(120));
    assert_eq!((started(&mut engine, 120), engine.slots()), (vec![2, 3], Some(3)));
    assert_eq!(engine.next_event(), Some(Nanos(220)), "two still wait");
    engine.grow(Nanos(220));
    assert_eq!((started(&mut engine, 220), engine.slots(), engine.next_event()), (vec![4], Some(4), None));
}

#[test]
fn prompts_are_read_at_the_rate_of_prefill_but_for_what_is_cached() {
    let prefix_cache = Some(PrefixCache { blocks: 100, block_tokens: 16 });
    let params = EngineParams { prefill: Some(1_000.0), prefix_cache, ..EngineParams::default() };
    let mut engine = Engine::new(&params);
    assert_eq!(engine.read(&[1, 2], 40), Reading { cached: Some(0), takes: Nanos::from_millis(40) });
    assert_eq!(engine.read(&[1, 2], 40), Reading { cached: Some(32), takes: Nanos::from_millis(8) });
    engine.remember(&[1, 2, 3]);
    assert_eq!(engine.read(&[1, 2, 3, 4], 64).cached, Some(48));
    let gauges = engine.gauges(Nanos::ZERO);
    assert!(gauges.contains(&("prefix_cache_queries", 144.0)) && gauges.contains(&("prefix_cache_hits", 80.0)));
    let mut plain = Engine::new(&EngineParams::default());
    assert_eq!((plain.read(&[], 40), plain.block_tokens()), (Reading::default(), None));
}

#[test]
fn memory_grows_in_a_straight_line() {
    let drift = Drift { memory: 0.5, ..Drift::default() };
    let engine = Engine::new(&EngineParams { drift, ..EngineParams::default() });
    let memory = |hours: i64| {
        engine.gauges(Nanos::from_secs(3_600 * hours)).iter().find(|(name, _)| *name == "memory").unwrap().1
    };
    assert_eq!((memory(1) / memory(0), memory(4) / memory(0), memory(-1) / memory(0)), (1.5, 3.0, 1.0));
}

#[test]
fn the_longest_backlogs_are_remembered() {
    let mut engine = engine(Some(1), None);
    let mut ticket = 0;
    for round in 0..10_000_i64 {
        let at = round * 100_000;
        engine.arrive(Nanos(at), ticket);
        engine.arrive(Nanos(at), ticket + 1);
        started(&mut engine, at);
        let lasts = if round == 5 { 90_000 } else { 1 + round % 1_000 };
        engine.leave(Nanos(at + lasts), ticket);
        started(&mut engine, at + lasts);
        engine.leave(Nanos(at + 95_000), ticket + 1);
        ticket += 2;
    }
    let backlogs = engine.backlogs();
    assert!(backlogs.len() < 2_000 && backlogs.is_sorted_by_key(|backlog| backlog.from));
    assert_eq!(backlogs[0], Backlog { from: Nanos(500_000), to: Some(Nanos(590_000)), most: 1 });
}
