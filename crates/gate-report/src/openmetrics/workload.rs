//! What is known of real workloads: scenarios, patterns, turns, prompts, the server's side, and what was used up.

use gate_model::{Quantity, ServerFacts, TtftBy, Unit, Verdict};

use super::{Families, Kind, scenario};

/// All of it that the verdict has.
pub(super) fn workload(families: &mut Families, verdict: &Verdict, gate: &str) {
    scenarios(families, verdict, gate);
    by(families, verdict, gate, "turn", &verdict.run.turns);
    by(families, verdict, gate, "context", &verdict.run.contexts);
    prompts(families, verdict, gate);
    for facts in &verdict.run.server {
        server(families, facts, gate);
    }
    spent(families, verdict, gate);
}

/// Each scenario's requests by how they ended, and what its pattern showed.
fn scenarios(families: &mut Families, verdict: &Verdict, gate: &str) {
    for part in &verdict.run.parts {
        let of = [("gate", gate), ("scenario", scenario(verdict, part.scenario))];
        for way in &part.outcomes {
            let labels: Vec<_> = of.into_iter().chain([("outcome", way.outcome.name())]).collect();
            let words = "Judged requests of a scenario by how they ended.";
            families.add("gate_scenario_requests", Kind::Gauge, "", words, &labels, f64::from(way.count));
        }
        for found in &part.found {
            let metric = found.metric.to_string();
            for (bound, value) in [("value", found.value), ("lower", found.lower), ("upper", found.upper)] {
                let labels: Vec<_> = of.into_iter().chain([("metric", metric.as_str()), ("bound", bound)]).collect();
                if let Some(value) = value {
                    families.quantity("gate_found", "What a pattern of load showed.", &labels, value);
                }
            }
        }
    }
}

/// TTFT by turn, from 1, or by the most input tokens of the context.
fn by(families: &mut Families, verdict: &Verdict, gate: &str, what: &str, rows: &[TtftBy]) {
    for row in rows {
        let place = if what == "turn" { row.from.saturating_add(1) } else { row.to }.to_string();
        let of = [("gate", gate), ("scenario", scenario(verdict, row.scenario)), (what, place.as_str())];
        for (quantile, value) in [("0.5", row.p50), ("0.95", row.p95)] {
            let labels: Vec<_> = of.into_iter().chain([("quantile", quantile)]).collect();
            let words = format!("TTFT by {what}.");
            families.quantity(&format!("gate_ttft_by_{what}"), &words, &labels, Quantity::time(value));
        }
    }
}

fn prompts(families: &mut Families, verdict: &Verdict, gate: &str) {
    for facts in &verdict.run.prompts {
        let labels = [("gate", gate), ("scenario", scenario(verdict, facts.scenario))];
        let words = "Different prompts among a scenario's requests.";
        families.add("gate_prompts_unique", Kind::Gauge, "", words, &labels, f64::from(facts.unique));
        let words = "The share of planned input tokens in common with other requests.";
        families.quantity("gate_prompts_overlap", words, &labels, Quantity::share(facts.overlap));
        if let Some(cached) = facts.cached {
            let words = "The share of input tokens that the server read from a cache.";
            families.quantity("gate_prompts_cached", words, &labels, Quantity::share(cached.min(1.0)));
        }
    }
}

fn server(families: &mut Families, facts: &ServerFacts, gate: &str) {
    let ServerFacts { metric, max, mean, last, delta, .. } = *facts;
    for (summary, value) in [("max", max), ("mean", mean), ("last", last), ("delta", delta)] {
        let labels = [("gate", gate), ("metric", metric.as_str()), ("summary", summary)];
        let value = Quantity { value, unit: metric.unit() };
        families.quantity("gate_server", "A metric of the server's own.", &labels, value);
    }
}

fn spent(families: &mut Families, verdict: &Verdict, gate: &str) {
    let of_gate = [("gate", gate)];
    if let Some(spent) = &verdict.run.spent {
        let words = "Requests that were sent, warm-up and both arms included.";
        families.add("gate_spent_requests", Kind::Gauge, "", words, &of_gate, spent.requests as f64);
        for (direction, tokens) in [("input", spent.input), ("cached", spent.cached), ("output", spent.output)] {
            let labels = [("gate", gate), ("direction", direction)];
            let words = "Tokens that the server counted; cached ones are part of the input.";
            families.add("gate_spent_tokens", Kind::Gauge, "", words, &labels, tokens as f64);
        }
    }
    if let Some(cost) = verdict.run.cost {
        let cost = Quantity { value: cost, unit: Unit::Dollars };
        families.quantity("gate_spent", "What that cost, by the spec's prices.", &of_gate, cost);
    }
    if let Some(footprint) = &verdict.run.footprint {
        let words = "Connections opened while the load was measured.";
        let opened = f64::from(footprint.connections);
        families.add("gate_client_connections", Kind::Gauge, "", words, &of_gate, opened);
        if let Some((_, memory)) = footprint.memory {
            let memory = Quantity { value: memory as f64, unit: Unit::Bytes };
            families.quantity("gate_client_memory", "Resident memory at the end.", &of_gate, memory);
        }
        let bytes = Quantity { value: footprint.journal_bytes as f64, unit: Unit::Bytes };
        families.quantity("gate_client_journal", "Bytes of the journal.", &of_gate, bytes);
    }
}
