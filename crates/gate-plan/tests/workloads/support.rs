use gate_model::{Endpoint, GateSpec, Iterations, Pace, PerSecond, Plan, Scenario};
use gate_plan::{Extent, Files};

pub(crate) fn spec(seed: u64) -> GateSpec {
    let mut spec = GateSpec::new("chat", Endpoint::Url("http://127.0.0.1:8000/v1".to_owned()));
    spec.load.seed = seed;
    spec
}

pub(crate) fn open(rate: f64) -> Pace {
    Pace::Open { rate: PerSecond(rate), cap: None }
}

pub(crate) fn plan(spec: &GateSpec) -> Plan {
    plan_of(spec, &Files::default())
}

pub(crate) fn plan_of(spec: &GateSpec, files: &Files) -> Plan {
    gate_plan::plans(spec, Extent::Extended, std::slice::from_ref(files)).unwrap().remove(0)
}

pub(crate) fn error(spec: &GateSpec, files: &Files) -> String {
    gate_plan::plans(spec, Extent::Extended, std::slice::from_ref(files)).unwrap_err().to_string()
}

/// A gate of scenarios with these weights, each as the gate itself.
pub(crate) fn mixed(seed: u64, weights: &[f64]) -> GateSpec {
    let mut spec = spec(seed);
    spec.load.iterations = Iterations::Range { first: 30, last: 50, extend: Some(100) };
    let scenario = |(place, weight): (usize, &f64)| Scenario {
        name: format!("s{place}"),
        load: spec.load.clone(),
        prompts: spec.prompts.clone(),
        slo: spec.slo,
        model: None,
        extra_body: serde_json::Map::new(),
        weight: *weight,
    };
    spec.scenarios = weights.iter().enumerate().map(scenario).collect();
    spec
}
