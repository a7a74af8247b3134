//! What grows, and how often the engine is asked for it.

use gate_model::Drift;

use super::*;

#[test]
fn latencies_and_memory_grow_in_a_straight_line() {
    let drift = Drift { ttft: 0.5, tpot: 0.02, memory: 0.1 };
    let params = EngineParams { drift, slots: Some(8), ..steady() };
    let request = |index: u32| PlannedRequest {
        index,
        at: Nanos::from_secs(i64::from(index) * 60),
        output_tokens: 20,
        ..PlannedRequest::default()
    };
    let mut spec = GateSpec::new("soak", Endpoint::Sim(Box::new(params.clone())));
    spec.load.warmup = 2;
    let plan =
        Plan { warmup: requests(2, Nanos::ZERO), ..Plan::new(&spec, vec![121], (0..121).map(request).collect()) };
    let header = RunHeader::new(spec, &plan, "0.0.0", "run", "2026-01-01T00:00:00Z");
    let (run, truth) = simulate_with_truth(&params, None, &plan, header);
    assert_eq!(truth.drift, drift);
    for sample in &run.samples {
        let hours = f64::from(sample.index) / 60.0;
        let near = |value: Option<f64>, expected: f64| assert!((value.unwrap() - expected).abs() < 2.0, "{value:?}");
        near(sample.value(Series::Ttft), 100e6 * (1.0 + 0.5 * hours));
        near(sample.value(Series::Tpot), 10e6 * (1.0 + 0.02 * hours));
    }
    assert!(run.warmup.iter().all(|sample| sample.value(Series::Ttft) == Some(100e6)));

    // Two hours: every ten seconds.
    assert_eq!((run.scrapes.len(), run.scrapes[1].at), (721, Nanos::from_secs(10)));
    let memory = |place: usize| {
        let values = &run.scrapes[place].values;
        values.iter().find(|(name, _)| name.as_str() == "memory").unwrap().1
    };
    assert!((memory(360) / memory(0) - 1.1).abs() < 1e-6 && (memory(720) / memory(0) - 1.2).abs() < 1e-6);
}

#[test]
fn an_engine_without_slots_is_asked_only_where_the_target_has_metrics() {
    assert_eq!(run(&steady(), 30, 0, |_| ()).scrapes, []);
    let metrics = |spec: &mut GateSpec| spec.target.metrics = Some("http://sim/metrics".to_owned());
    let run = run_of(&steady(), 30, 0, metrics);
    let running =
        |scrape: &gate_model::Scrape| scrape.values.iter().find(|(name, _)| name.as_str() == "running").unwrap().1;
    // Requests at .8, .9 and 1.0 s are open at the first second: 290 ms each.
    assert_eq!(run.scrapes.iter().map(running).collect::<Vec<_>>(), [1.0, 3.0, 3.0, 2.0]);
}
