//! What a change does to its own gate: the parts of two specs that say what is demanded, side by side.

mod aligned;
mod engine;
mod sent;
mod traffic;

use gate_model::{
    BaselineFrom, BaselineSpec, Bound, Check, Decide, Direction, GateSpec, Importance, Metric, Nanos, Op, Origin,
    Place, Policy, Relative, Scalar, Slo, SpecChange, TokenPolicy, Waiver,
};

use crate::check::decided;

/// The base of a relative bound, as large as any quantity: two bounds differ there as their changes do.
const FAR: f64 = 1e18;

/// The gate of a change, judged by what its base demands: the head's endpoints, load, prompts and deadlines, and the
/// base's checks, objectives, outcomes, baselines, prices and accepted token counts.
///
/// A scenario that the change removed is measured all the same, as its base has it. Where the base had no scenarios its
/// demands hold for each of the head's. Reports point into the head's file, the only one there is: at what became of a
/// check, or at the first check of all where it was removed.
#[must_use]
pub fn judged_by(base: &GateSpec, head: &GateSpec) -> GateSpec {
    let mut spec = aligned::restored(base, head);
    let of_file = head.checks.iter().filter_map(Check::place).find(|place| place.file == head.file).cloned();
    let first = of_file.unwrap_or_else(|| Place { file: head.file.clone(), line: 1, column: 1 });
    let (demanded, own) = (aligned::demanded(base, head), aligned::own(base, head));
    let with_place = |(check, partner): (&Check, Option<usize>)| {
        let now = partner.and_then(|at| own.get(at)).and_then(Check::place);
        let origin = match (now, &check.origin) {
            (Some(now), _) => Origin::Declared(now.clone()),
            (None, Origin::Declared(_)) => Origin::Declared(first.clone()),
            (None, Origin::Implied) => Origin::Implied,
        };
        Check { origin, ..check.clone() }
    };
    spec.checks = demanded.iter().zip(partners(&demanded, &own)).map(with_place).collect();
    spec.checks.extend(aligned::added(base, head));
    spec.checks.sort_by_key(|check| check.scenario);
    spec.baseline.clone_from(&base.baseline);
    spec.prompts.tokens = base.prompts.tokens;
    let prices = base.prices.or(head.prices);
    GateSpec { slo: base.slo, outcomes: base.outcomes, prices, ..spec }
}

/// Everything in which the head demands something else than its base, in the base's order; checks that are new come
/// last of all checks. Then everything in which it measures something else. Credentials and prompts are not repeated.
#[must_use]
pub fn changes(base: &GateSpec, head: &GateSpec) -> Vec<SpecChange> {
    let names = aligned::names(base, head);
    let mut changes = checks(&aligned::demanded(base, head), &aligned::own(base, head), &names);
    if names.is_empty() {
        changes.extend(slo("", &base.slo, &head.slo));
        changes.extend(tokens("", base.prompts.tokens, head.prompts.tokens));
    }
    for (scenario, name) in (0_u16..).zip(&names) {
        // One that is gone or new is a change of its own.
        if let Some((before, now)) = aligned::places(base, head, scenario, name) {
            let prefix = format!("scenarios.{name}.");
            changes.extend(slo(&prefix, base.slo_of(before), head.slo_of(now)));
            let [before, now] = [base.prompts_of(before), head.prompts_of(now)].map(|prompts| prompts.tokens);
            changes.extend(tokens(&prefix, before, now));
        }
    }
    let outcomes = [
        ("outcomes.inconclusive", base.outcomes.inconclusive, head.outcomes.inconclusive),
        ("outcomes.no_baseline", base.outcomes.no_baseline, head.outcomes.no_baseline),
        ("outcomes.invalid", base.outcomes.invalid, head.outcomes.invalid),
    ];
    let shown = |policy: Policy| Some(if policy == Policy::Fail { "fail" } else { "pass" }.to_owned());
    for (what, base, head) in outcomes {
        changes.extend(change(what, shown(base), shown(head), head == Policy::Pass));
    }
    changes.extend(baseline(&base.baseline, &head.baseline, base.needs_baseline()));
    let is_priced = base.checks.iter().any(|check| check.metric == Metric::Scalar(Scalar::Cost));
    changes.extend(sent::prices(base.prices, head.prices, is_priced));
    changes.extend(sent::sent(base, head));
    changes
}

fn slo(prefix: &str, base: &Slo, head: &Slo) -> Vec<SpecChange> {
    let bounds = [
        ("slo.ttft", base.ttft, head.ttft),
        ("slo.ttfa", base.ttfa, head.ttfa),
        ("slo.tpot", base.tpot, head.tpot),
        ("slo.e2e", base.e2e, head.e2e),
    ];
    let changes = bounds.into_iter().filter_map(|(what, base, head)| {
        // Without an objective there is nothing to keep.
        let loosens = base.is_some_and(|base| head.is_none_or(|head| head > base));
        change(&format!("{prefix}{what}"), base.map(time), head.map(time), loosens)
    });
    changes.collect()
}

fn tokens(prefix: &str, base: TokenPolicy, head: TokenPolicy) -> Option<SpecChange> {
    let shown = |tokens: TokenPolicy| {
        let word = if tokens == TokenPolicy::Usage { "usage" } else { "accept_estimate" };
        Some(word.to_owned())
    };
    let is_accepted = head == TokenPolicy::AcceptEstimate;
    change(&format!("{prefix}prompts.tokens"), shown(base), shown(head), is_accepted)
}

/// The change from one text to another, if it is one.
fn change(what: &str, base: Option<String>, head: Option<String>, loosens: bool) -> Option<SpecChange> {
    (base != head).then(|| SpecChange { what: what.to_owned(), base, head, loosens })
}

/// A time as it is written in a spec, in the largest unit that it is a whole number of.
fn time(time: Nanos) -> String {
    let units = [
        (86_400_000_000_000, "d"),
        (3_600_000_000_000, "h"),
        (60_000_000_000, "m"),
        (1_000_000_000, "s"),
        (1_000_000, "ms"),
        (1_000, "us"),
        (1, "ns"),
    ];
    let whole = units.into_iter().find(|(size, _)| time.0 != 0 && time.0 % size == 0);
    whole.map_or("0ms".to_owned(), |(size, unit)| format!("{}{unit}", time.0 / size))
}

fn percent(share: f64) -> String {
    format!("{}%", (share * 1e5).round() / 1e3)
}

/// What became of checks of scenarios of these names; none of a gate without.
fn checks(base: &[Check], head: &[Check], names: &[String]) -> Vec<SpecChange> {
    let partners = partners(base, head);
    let mut changes = Vec::new();
    for (check, partner) in base.iter().zip(&partners) {
        match partner.and_then(|at| head.get(at)) {
            Some(now) => changes.extend(of_check(check, now, names)),
            None => changes.extend(change(&name(check, names), Some(check.bound_text.clone()), None, true)),
        }
    }
    for (_, added) in head.iter().enumerate().filter(|(at, _)| !partners.contains(&Some(*at))) {
        changes.extend(change(&name(added, names), None, Some(added.bound_text.clone()), false));
    }
    changes
}

/// For each check of the base, which of the head's it became: the same one, else one as important, else any of the
/// same metric, operator and kind of bound.
fn partners(base: &[Check], head: &[Check]) -> Vec<Option<usize>> {
    let fits: [fn(&Check, &Check) -> bool; 3] = [
        |check, now| check.importance == now.importance && check.bound == now.bound,
        |check, now| check.importance == now.importance,
        |_, _| true,
    ];
    let mut partners = vec![None; base.len()];
    let mut free: Vec<_> = head.iter().enumerate().collect();
    for fits in fits {
        for (check, partner) in base.iter().zip(&mut partners).filter(|(_, partner)| partner.is_none()) {
            let found = free.iter().position(|(_, now)| is_same_kind(check, now) && fits(check, now));
            *partner = found.map(|found| free.remove(found).0);
        }
    }
    partners
}

fn is_same_kind(left: &Check, right: &Check) -> bool {
    let bounds = match (&left.bound, &right.bound) {
        (Bound::Absolute(_), Bound::Absolute(_)) => true,
        (Bound::Relative(left), Bound::Relative(right)) => left.to == right.to,
        (Bound::ShareOf { scenario: left, .. }, Bound::ShareOf { scenario: right, .. }) => left == right,
        _ => false,
    };
    bounds && (left.scenario, left.metric, left.op) == (right.scenario, right.metric, right.op)
}

/// The scenario of a check, where there are any, as it stands before it.
fn of_scenario(check: &Check, names: &[String]) -> String {
    names.get(usize::from(check.scenario)).map_or_else(String::new, |name| format!("{name}: "))
}

fn name(check: &Check, names: &[String]) -> String {
    format!("{}{} {}", of_scenario(check, names), check.metric, check.op.symbol())
}

/// What became of a check that is still there.
fn of_check(base: &Check, head: &Check, names: &[String]) -> Vec<SpecChange> {
    let part = |part: &str| format!("{}{base} ({part})", of_scenario(base, names));
    let mut changes = Vec::new();
    if base.bound != head.bound {
        let texts = [base, head].map(|check| Some(check.bound_text.clone()));
        let [from, to] = texts;
        let loosens = is_looser(base, &head.bound);
        changes.push(SpecChange { what: name(base, names), base: from, head: to, loosens });
    }
    let importance = |check: &Check| {
        let word = if check.importance == Importance::Required { "require" } else { "prefer" };
        Some(word.to_owned())
    };
    let is_preferred = head.importance == Importance::Preferred;
    changes.extend(change(&part("importance"), importance(base), importance(head), is_preferred));
    // A verdict has to be surer before it breaks the build.
    let confidence = |check: &Check| Some(percent(check.confidence));
    let is_surer = head.confidence > base.confidence;
    changes.extend(change(&part("confidence"), confidence(base), confidence(head), is_surer));
    let decide = |check: &Check| {
        let decide = check.decide.unwrap_or_else(|| decided(check.metric, &check.bound));
        Some(if decide == Decide::Evidence { "evidence" } else { "point" }.to_owned())
    };
    // What is seen over its bound breaks the build at once by its point, and not before it is proven by evidence.
    let is_by_evidence = decide(head).as_deref() == Some("evidence");
    changes.extend(change(&part("decide"), decide(base), decide(head), is_by_evidence));
    let waiver = |check: &Check| {
        let shown = |Waiver { until, reason }: &Waiver| format!("until {until}: {reason}");
        check.waive.as_ref().map(shown)
    };
    let is_longer = head.waive.as_ref().is_some_and(|now| {
        // Days compare as their texts do.
        base.waive.as_ref().is_none_or(|before| now.until > before.until)
    });
    changes.extend(change(&part("waiver"), waiver(base), waiver(head), is_longer));
    changes
}

/// Whether the check lets something through with this bound that it does not with its own.
fn is_looser(check: &Check, bound: &Bound) -> bool {
    let op = check.op;
    let allows_more = |before: f64, now: f64| match op {
        Op::Greater | Op::AtLeast => now < before,
        Op::Less | Op::AtMost => now > before,
        Op::Equal => match check.metric.direction() {
            Direction::Lower => now > before,
            Direction::Higher => now < before,
            Direction::Neutral => now != before,
        },
    };
    match (&check.bound, bound) {
        (Bound::Absolute(before), Bound::Absolute(now)) => allows_more(before.value, now.value),
        (Bound::ShareOf { share: before, .. }, Bound::ShareOf { share: now, .. }) => allows_more(*before, *now),
        (Bound::Relative(before), Bound::Relative(now)) => {
            let slack = |bound: &Relative, base: f64| bound.limit(base, op) - base;
            // Between these bases the two differ as along a straight line.
            let corners = [before, now].map(corner).into_iter().flatten();
            corners.chain([0.0, FAR]).any(|base| allows_more(slack(before, base), slack(now, base)))
        }
        _ => true,
    }
}

/// The base at which a bound's change and its step allow the same.
fn corner(bound: &Relative) -> Option<f64> {
    let base = bound.step?.value / bound.change?;
    (base.is_finite() && base > 0.0).then_some(base)
}

/// Where a check compares with stored runs, other runs may be slower ones, or none at all.
fn baseline(base: &BaselineSpec, head: &BaselineSpec, is_used: bool) -> Vec<SpecChange> {
    let list = |from: &[BaselineFrom]| {
        let texts: Vec<_> = from.iter().map(ToString::to_string).collect();
        (!texts.is_empty()).then(|| texts.join(", "))
    };
    let changes = [
        change("baseline.from", Some(base.from.to_string()), Some(head.from.to_string()), true),
        // Fewer runs tell less of the noise between them.
        change("baseline.runs", Some(base.runs.to_string()), Some(head.runs.to_string()), head.runs < base.runs),
        change("baseline.store", Some(base.store.to_string()), Some(head.store.to_string()), true),
        change("baseline.class", base.class.clone(), head.class.clone(), true),
        change(
            "baseline.fallback",
            list(&base.fallback),
            list(&head.fallback),
            !head.fallback.starts_with(&base.fallback),
        ),
    ];
    let changes = changes.into_iter().flatten();
    changes.map(|change| SpecChange { loosens: change.loosens && is_used, ..change }).collect()
}
