//! What the engine reports of itself, in Prometheus' text format and under vLLM's names.

use std::fmt::Write as _;

use crate::ask::MODEL;

/// The content type of Prometheus' text format.
pub(crate) const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// One family: the name it is known under here, its own, its type, its help, and whether it names its model.
struct Family {
    common: &'static str,
    name: &'static str,
    kind: &'static str,
    help: &'static str,
    of_model: bool,
}

const fn gauge(common: &'static str, name: &'static str, help: &'static str) -> Family {
    Family { common, name, kind: "gauge", help, of_model: true }
}

const fn counter(common: &'static str, name: &'static str, help: &'static str) -> Family {
    Family { common, name, kind: "counter", help, of_model: true }
}

const fn of_process(common: &'static str, name: &'static str, help: &'static str) -> Family {
    Family { of_model: false, ..gauge(common, name, help) }
}

const FAMILIES: [Family; 8] = [
    gauge("running", "vllm:num_requests_running", "Number of requests in model execution batches."),
    gauge("waiting", "vllm:num_requests_waiting", "Number of requests waiting to be processed."),
    gauge("kv_cache_usage", "vllm:kv_cache_usage_perc", "KV-cache usage. 1 means 100 percent usage."),
    counter(
        "prefix_cache_queries",
        "vllm:prefix_cache_queries_total",
        "Prefix cache queries, in terms of number of queried tokens.",
    ),
    counter(
        "prefix_cache_hits",
        "vllm:prefix_cache_hits_total",
        "Prefix cache hits, in terms of number of cached tokens.",
    ),
    counter("preemptions", "vllm:num_preemptions_total", "Cumulative number of preemption from the engine."),
    of_process("memory", "process_resident_memory_bytes", "Resident memory size in bytes."),
    // vLLM has none of these; a proxy in front of it does.
    of_process("connections", "nginx_connections_active", "Active client connections."),
];

/// The text of these values, by their common names; what there is no value of is left out.
pub(crate) fn text(values: &[(&'static str, f64)]) -> String {
    let mut text = String::new();
    for Family { common, name, kind, help, of_model } in FAMILIES {
        let Some((_, value)) = values.iter().find(|(name, _)| *name == common) else { continue };
        let labels = if of_model { format!(r#"{{engine="0",model_name="{MODEL}"}}"#) } else { String::new() };
        // A string takes everything.
        let _ = write!(text, "# HELP {name} {help}\n# TYPE {name} {kind}\n{name}{labels} {value:?}\n");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_stand_under_vllms_names() {
        let text = text(&[("running", 3.0), ("prefix_cache_hits", 96.0), ("memory", 4e9), ("else", 1.0)]);
        let expected = r#"# HELP vllm:num_requests_running Number of requests in model execution batches.
# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{engine="0",model_name="gate-sim"} 3.0
# HELP vllm:prefix_cache_hits_total Prefix cache hits, in terms of number of cached tokens.
# TYPE vllm:prefix_cache_hits_total counter
vllm:prefix_cache_hits_total{engine="0",model_name="gate-sim"} 96.0
# HELP process_resident_memory_bytes Resident memory size in bytes.
# TYPE process_resident_memory_bytes gauge
process_resident_memory_bytes 4000000000.0
"#;
        assert_eq!(text, expected);
    }
}
