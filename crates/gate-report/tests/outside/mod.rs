//! One text from outside in every place that comparisons have for one.

use gate_model::{
    Against, Arm, BaselineFrom, BaselineRef, BaselineUse, Bound, CheckOutcome, Commit, Comparison, Difference, Figure,
    Finding, HttpVersion, Moved, Nanos, NoBaseline, Outcome, OutcomeCount, PassedOver, Phase, Quantity, Reached,
    ReferenceFacts, Rule, SpecChange, Verdict, With,
};

/// The verdict with the text in its baseline, its reference, its commit and its findings, in what its check 3 is
/// compared with and in why its check 4 is not.
pub(crate) fn compared(verdict: &mut Verdict, text: &str) {
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
