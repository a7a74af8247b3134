//! One text from outside in every place that comparisons have for one.

use gate_model::{
    Against, Arm, BaselineFrom, BaselineRef, BaselineUse, Bound, CheckOutcome, Commit, Comparison, Difference,
    EndReason, Figure, Finding, HttpVersion, Moved, Nanos, NoBaseline, Outcome, OutcomeCount, PassedOver, Phase,
    PromptFacts, Quantity, Reached, ReferenceFacts, Rule, ScenarioFacts, SpecChange, TtftBy, Verdict, With,
};

/// The verdict with the text in its baseline, its reference, its commit and its findings, in what its check 3 is
/// compared with and in why its check 4 is not.
pub(crate) fn compared(verdict: &mut Verdict, text: &str) {
    scenarios(verdict, text);
    let text = || text.to_owned();
    let difference = || Difference { what: text(), baseline: text(), run: text() };
    let whys = [
        NoBaseline::Differs(vec![difference(), difference()]),
        NoBaseline::NoHistory(text()),
        NoBaseline::NoForkPoint(text()),
        NoBaseline::NotGiven,
    ];
    let from = [BaselineFrom::Pin(text()), BaselineFrom::Branch(text()), BaselineFrom::File(text())];
    let passed = whys.iter().zip(from.iter().cycle());
    let used =
        BaselineRef { id: text(), commit: Some(text()), started: text(), behind: Some(2), imported_from: Some(text()) };
    verdict.baseline = Some(BaselineUse {
        store: text(),
        by: Some(BaselineFrom::Branch(text())),
        fork: Some(text()),
        used: vec![used.clone(), BaselineRef { commit: None, ..used }],
        passed_over: passed.map(|(why, from)| PassedOver { from: from.clone(), why: why.clone() }).collect(),
        differences: vec![difference()],
    });
    verdict.run.commit = Some(Commit { id: text(), parents: vec![text()], branch: Some(text()), dirty: true });
    verdict.run.reference = Some(ReferenceFacts {
        target: text(),
        model: Some(text()),
        outcomes: vec![OutcomeCount { outcome: Outcome::Ok, count: 50 }],
        cold_ttft: Some(Nanos::from_millis(900)),
        reached: Some(Reached {
            addresses: vec![text()],
            proxy: Some(text()),
            http: HttpVersion::Http2,
            server: Some(text()),
        }),
    });
    let (from, to) = (Nanos::from_millis(10), Nanos::from_millis(14));
    verdict.moved = Some(Moved { phase: Phase::Decode, against: Against::Reference, from, to });
    let figures = verdict.figures.clone();
    verdict.figures.extend(figures.into_iter().map(|figure| Figure { arm: Arm::Reference, ..figure }));
    let change = |base, head, loosens| SpecChange { what: text(), base, head, loosens };
    verdict.findings.extend([
        Finding::NoisyBaseline { check: text(), noise: 0.09, tolerance: 0.05 },
        Finding::SharedServer { address: text() },
        Finding::ReferenceFailure { outcome: Outcome::Decode, count: 2, message: text() },
        Finding::Improved { check: text(), change: -0.7 },
        Finding::ModelMoved(difference()),
        Finding::NotAtBase { base: text() },
        Finding::SpecChanged {
            base: text(),
            changes: vec![
                change(Some(text()), Some(text()), true),
                change(None, Some(text()), false),
                change(Some(text()), None, false),
            ],
        },
    ]);
    let milliseconds = |value: f64| Some(Quantity { value: value * 1e6, unit: gate_model::Unit::Time });
    let share = &mut verdict.checks[3];
    share.rule = Rule::Bounds;
    share.check.bound = Bound::ShareOf { share: 0.4, scenario: text() };
    share.outcome = CheckOutcome::Violated;
    if let Some(evidence) = &mut share.evidence {
        evidence.comparison = Some(Comparison {
            with: With::Scenario(text()),
            base: milliseconds(10.0),
            limit: milliseconds(4.0),
            tolerance: Some(-0.6),
            change: Some(-0.5),
            lower: Some(-0.55),
            upper: None,
            n: 60,
            dropped: 1,
            statistic: None,
            deviation: None,
            freedom: None,
            cut: None,
            noise: None,
            detects: None,
        });
    }
    let [differs, ..] = whys;
    verdict.checks[4].outcome = CheckOutcome::NoBaseline { why: differs };
}

/// Two scenarios, with what is told of each.
fn scenarios(verdict: &mut Verdict, text: &str) {
    verdict.run.scenarios = vec![text.to_owned(), format!("{text}2")];
    let part = |scenario| ScenarioFacts {
        scenario,
        pattern: text.to_owned(),
        looks: vec![30, 50],
        decided_at: None,
        planned: 50,
        judged: 12,
        outcomes: Vec::new(),
        duration: Nanos::from_secs(12),
        reason: Some(EndReason::Quota(text.to_owned())),
        found: Vec::new(),
    };
    verdict.run.parts = vec![part(0), part(1)];
    let ttft = Nanos::from_millis(310);
    verdict.run.turns = vec![TtftBy { scenario: 1, from: 1, to: 1, n: 12, p50: ttft, p95: ttft, input: None }];
    verdict.run.prompts = vec![PromptFacts { scenario: 1, requests: 12, unique: 11, overlap: 0.5, cached: None }];
}
