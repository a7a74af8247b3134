//! `metrics.txt`: the verdicts in the OpenMetrics text format.

mod workload;

use std::collections::HashMap;
use std::fmt::Write as _;

use gate_model::{Arm, CheckOutcome, CheckVerdict, Comparison, Health, Quantity, Side, Unit, Verdict};

use crate::bounded::bounded;
use crate::escape::{self, label_value};
use crate::words::{comparison, http_version, status_word};

/// The outcomes of a check; one of them is 1.
const OUTCOMES: [&str; 8] =
    ["met", "within", "over", "blind", "violated", "could_not_measure", "no_baseline", "waived"];

/// The label of what is of the reference; what is of the target has none.
const REFERENCE: (&str, &str) = ("arm", "reference");

/// The verdicts as OpenMetrics 1.0, in base units, with `# EOF` at its end.
///
/// Every check has `gate_check_outcome` for each outcome, 1 for the one it had, so that no series comes and goes;
/// `gate_seen_UNIT` and `gate_limit_UNIT`; and `gate_check_requests`. Every figure of the run is in
/// `gate_figure_UNIT`, and what is known of the client in `gate_client_…`; `gate_run_info` says which run it was. What
/// patterns of load showed is in `gate_found_UNIT` with its bounds, TTFT by turn and by context in
/// `gate_ttft_by_…_seconds`, the server's own metrics in `gate_server_UNIT`, and what was used up in `gate_spent_…`. UNIT
/// is `seconds`, `ratio`, `per_second`, `tokens_per_second`, `ratio_per_hour`, `dollars`, `bytes` or, for plain counts,
/// absent. Times per token are in
/// seconds too.
#[must_use]
pub fn openmetrics(verdicts: &[Verdict]) -> String {
    let verdicts = bounded(verdicts);
    let mut families = Families::default();
    let mut names = Names::default();
    for verdict in verdicts.iter() {
        let gate = names.unique("gate", &verdict.name);
        run(&mut families, verdict, &gate);
        workload::workload(&mut families, verdict, &gate);
        for check in &verdict.checks {
            let scenario = scenario(verdict, check.check.scenario);
            let name = names.unique(&format!("{gate}\n{scenario}"), &check.check.to_string());
            self::check(&mut families, check, &[("gate", &gate), ("scenario", scenario), ("check", &name)]);
        }
        for figure in &verdict.figures {
            let scenario = scenario(verdict, figure.scenario);
            let of = format!("{gate}\n{scenario}\n{:?}", figure.arm);
            let metric = names.unique(&of, &figure.metric.to_string());
            let mut labels = vec![("gate", gate.as_str()), ("scenario", scenario), ("metric", &metric)];
            labels.extend((figure.arm == Arm::Reference).then_some(REFERENCE));
            if let Some(value) = figure.value {
                families.quantity("gate_figure", "A number of the run.", &labels, value);
            }
        }
    }
    families.text()
}

fn run(families: &mut Families, verdict: &Verdict, gate: &str) {
    let of_gate = [("gate", gate)];
    let facts = &verdict.run;
    let clock = if facts.imported_from.is_some() { "" } else { facts.health.clock.name() };
    let info = [
        ("gate", gate),
        ("run_id", &facts.run_id),
        ("started", &facts.started),
        ("version", &verdict.gate),
        ("status", &status_word(verdict.status).to_lowercase()),
        ("target", &facts.target),
        ("model", facts.model.as_deref().unwrap_or_default()),
        ("simulated", if verdict.simulated { "true" } else { "false" }),
        ("clock", clock),
        ("http", facts.reached.as_ref().map_or("", |reached| http_version(reached.http))),
    ];
    families.add("gate_run", Kind::Info, "", "The run and how its gate ended.", &info, 1.0);
    families.add("gate_exit_code", Kind::Gauge, "", "The exit code.", &of_gate, f64::from(verdict.exit.code()));
    let duration = facts.duration.as_secs_f64();
    let words = "From the first planned request to the last end.";
    families.add("gate_run_duration_seconds", Kind::Gauge, "seconds", words, &of_gate, duration);
    client(families, &facts.health, &of_gate);
    let words = "Judged requests by how they ended.";
    for way in &facts.outcomes {
        let labels = [("gate", gate), ("outcome", way.outcome.name())];
        families.add("gate_run_requests", Kind::Gauge, "", words, &labels, f64::from(way.count));
    }
    for way in facts.reference.iter().flat_map(|reference| &reference.outcomes) {
        let labels = [("gate", gate), ("outcome", way.outcome.name()), REFERENCE];
        families.add("gate_run_requests", Kind::Gauge, "", words, &labels, f64::from(way.count));
    }
}

/// The client's own health, as far as it was measured.
fn client(families: &mut Families, health: &Health, labels: &[(&str, &str)]) {
    let shares = [
        ("gate_client_cpu", "CPU time that gate used of what it may use.", health.cpu_share),
        ("gate_client_coalesced", "Content events that were read with later ones.", health.coalesced_share),
    ];
    let delays = [
        ("gate_client_loop_delay", "How late the I/O thread woke, P95.", health.loop_delay_p95),
        ("gate_client_read_delay", "How long received bytes lay in the kernel, P95.", health.read_delay_p95),
    ];
    let shares = shares.map(|(name, help, share)| (name, help, share.map(Quantity::share)));
    let delays = delays.map(|(name, help, delay)| (name, help, delay.map(Quantity::time)));
    for (name, help, quantity) in shares.into_iter().chain(delays) {
        if let Some(quantity) = quantity {
            families.quantity(name, help, labels, quantity);
        }
    }
}

fn check(families: &mut Families, verdict: &CheckVerdict, labels: &[(&str, &str)]) {
    let had = outcome(&verdict.outcome);
    for name in OUTCOMES {
        let labels: Vec<_> = labels.iter().copied().chain([("outcome", name)]).collect();
        let words = "1 for the outcome that the check had.";
        families.add("gate_check_outcome", Kind::Gauge, "", words, &labels, f64::from(u8::from(name == had)));
    }
    if let Some(seen) = verdict.seen {
        families.quantity("gate_seen", "What the check saw.", labels, seen);
    }
    let comparison = comparison(verdict);
    let limit = verdict.check.bound.absolute().or_else(|| comparison.and_then(|comparison| comparison.limit));
    if let Some(limit) = limit {
        families.quantity("gate_limit", "What the check compares with.", labels, limit);
    }
    if let Some(comparison) = comparison {
        compared(families, comparison, labels);
    }
    if let Some(evidence) = &verdict.evidence {
        let words = "Requests that the check rests on.";
        families.add("gate_check_requests", Kind::Gauge, "", words, labels, f64::from(evidence.n));
    }
}

/// The base and the change from it, with its bounds.
fn compared(families: &mut Families, comparison: &Comparison, labels: &[(&str, &str)]) {
    if let Some(base) = comparison.base {
        families.quantity("gate_base", "What the same metric is in what the check is relative to.", labels, base);
    }
    let changes = [
        ("gate_change", "The change from the base, as a share of it; of shares, their difference.", comparison.change),
        ("gate_change_lower", "One-sided 95 % lower bound of the change.", comparison.lower),
        ("gate_change_upper", "One-sided 95 % upper bound of the change.", comparison.upper),
    ];
    for (name, help, change) in changes {
        if let Some(change) = change {
            families.quantity(name, help, labels, Quantity::share(change));
        }
    }
}

/// The name of what became of a check.
pub(crate) fn outcome(outcome: &CheckOutcome) -> &'static str {
    match outcome {
        CheckOutcome::Met => "met",
        CheckOutcome::Inconclusive { side: Side::Within } => "within",
        CheckOutcome::Inconclusive { side: Side::Over } => "over",
        CheckOutcome::Inconclusive { side: Side::Blind } => "blind",
        CheckOutcome::Violated => "violated",
        CheckOutcome::CouldNotMeasure { .. } => "could_not_measure",
        CheckOutcome::NoBaseline { .. } => "no_baseline",
        CheckOutcome::Waived { .. } => "waived",
    }
}

fn scenario(verdict: &Verdict, index: u16) -> &str {
    verdict.run.scenarios.get(usize::from(index)).unwrap_or(&verdict.name)
}

/// Names that are taken, by what they are names of.
#[derive(Default)]
struct Names(HashMap<(String, String), u32>);

impl Names {
    /// The name on one line, with a number where it was taken: two samples with equal labels are an error.
    fn unique(&mut self, of: &str, name: &str) -> String {
        let mut name = escape::terminal(name);
        loop {
            let count = self.0.entry((of.to_owned(), name.clone())).or_insert(0);
            *count += 1;
            if *count == 1 {
                return name;
            }
            name = format!("{name} #{count}");
        }
    }
}

#[derive(Clone, Copy)]
enum Kind {
    Gauge,
    Info,
}

/// Samples by family, since a family stands in one piece; in the order of the first sample of each.
#[derive(Default)]
struct Families(Vec<(String, String)>);

impl Families {
    /// A sample in the family of its unit.
    fn quantity(&mut self, name: &str, help: &str, labels: &[(&str, &str)], quantity: Quantity) {
        let (unit, value) = match quantity.unit {
            Unit::Time => ("seconds", quantity.value / 1e9),
            Unit::Share => ("ratio", quantity.value),
            Unit::PerSecond => ("per_second", quantity.value),
            Unit::TokensPerSecond => ("tokens_per_second", quantity.value),
            Unit::Count => ("", quantity.value),
            Unit::PerHour => ("ratio_per_hour", quantity.value),
            Unit::Dollars => ("dollars", quantity.value),
            Unit::Bytes => ("bytes", quantity.value),
        };
        let name = if unit.is_empty() { name.to_owned() } else { format!("{name}_{unit}") };
        self.add(&name, Kind::Gauge, unit, help, labels, value);
    }

    fn add(&mut self, family: &str, kind: Kind, unit: &str, help: &str, labels: &[(&str, &str)], value: f64) {
        let (word, suffix) = match kind {
            Kind::Gauge => ("gauge", ""),
            Kind::Info => ("info", "_info"),
        };
        let position = self.0.iter().position(|(name, _)| name == family).unwrap_or_else(|| {
            let unit = if unit.is_empty() { String::new() } else { format!("# UNIT {family} {unit}\n") };
            self.0.push((family.to_owned(), format!("# TYPE {family} {word}\n{unit}# HELP {family} {help}\n")));
            self.0.len() - 1
        });
        let labels = labels.iter().map(|(name, value)| format!("{name}=\"{}\"", label_value(&escape::terminal(value))));
        let labels = labels.collect::<Vec<_>>().join(",");
        if let Some((_, text)) = self.0.get_mut(position) {
            let _ = writeln!(text, "{family}{suffix}{{{labels}}} {}", number(value));
        }
    }

    fn text(self) -> String {
        self.0.into_iter().map(|(_, text)| text).chain(["# EOF\n".to_owned()]).collect()
    }
}

fn number(value: f64) -> String {
    if value.is_infinite() { if value > 0.0 { "+Inf" } else { "-Inf" }.to_owned() } else { value.to_string() }
}
