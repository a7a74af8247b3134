//! `gates/uniformity.yaml`: what a load test that asks one question again and again does not see.

use gate_model::{CheckOutcome, Importance, Metric};

use crate::harness::{Place, root};

#[test]
fn a_uniform_load_flatters_the_server() {
    let place = Place::new();
    std::fs::create_dir_all(place.path("gates")).unwrap();
    std::fs::copy(root().join("gates/uniformity.yaml"), place.path("gates/uniformity.yaml")).unwrap();
    place.gate(&["check", "gates/uniformity.yaml"]).expect_code(0).says("uniform").says("realistic");
    let verdict = place.verdict("uniformity");
    let preferred = verdict.checks.iter().find(|check| check.check.importance == Importance::Preferred).unwrap();
    assert_eq!(preferred.outcome, CheckOutcome::Violated, "the realistic load is slower by far");
    // Both numbers stand side by side for both scenarios.
    for metric in ["ttft.p50", "tpot.effective"] {
        let metric: Metric = metric.parse().unwrap();
        let shown = verdict.figures.iter().filter(|figure| figure.metric == metric && figure.value.is_some()).count();
        assert_eq!(shown, 2, "{metric}");
    }
}
