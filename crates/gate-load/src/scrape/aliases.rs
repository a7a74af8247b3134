//! Under which names servers report what [`ServerMetric::COMMON`] names, and the values of a text by these names.

use gate_model::{ServerMetric, Unit};

use super::exposition::{Point, points, without_number};

/// What a server calls a common metric.
struct Alias {
    /// The common name.
    common: &'static str,
    /// The server's own, without `_total`.
    own: &'static str,
    /// A label that its points have, where the server puts several metrics under one name.
    label: Option<(&'static str, &'static str)>,
    /// What a value is multiplied by.
    times: f64,
}

const fn named(common: &'static str, own: &'static str) -> Alias {
    Alias { common, own, label: None, times: 1.0 }
}

const fn labelled(common: &'static str, own: &'static str, label: (&'static str, &'static str)) -> Alias {
    Alias { common, own, label: Some(label), times: 1.0 }
}

const MIB: f64 = 1_048_576.0;

/// Where a server has several names of one common metric, as while one of them is deprecated, the first counts.
const ALIASES: [Alias; 36] = [
    named("kv_cache_usage", "vllm:kv_cache_usage_perc"),
    named("kv_cache_usage", "vllm:gpu_cache_usage_perc"),
    named("kv_cache_usage", "sglang:token_usage"),
    named("kv_cache_usage", "llamacpp:kv_cache_usage_ratio"),
    named("kv_cache_usage", "trtllm_kv_cache_utilization"),
    labelled("kv_cache_usage", "nv_trt_llm_kv_cache_block_metrics", ("kv_cache_block_type", "fraction")),
    named("running", "vllm:num_requests_running"),
    named("running", "sglang:num_running_reqs"),
    named("running", "tgi_batch_current_size"),
    named("running", "llamacpp:requests_processing"),
    named("running", "trtllm_num_requests_running"),
    labelled("running", "nv_trt_llm_request_metrics", ("request_type", "scheduled")),
    named("waiting", "vllm:num_requests_waiting"),
    named("waiting", "sglang:num_queue_reqs"),
    named("waiting", "tgi_queue_size"),
    named("waiting", "llamacpp:requests_deferred"),
    named("waiting", "trtllm_num_requests_waiting"),
    labelled("waiting", "nv_trt_llm_request_metrics", ("request_type", "waiting")),
    named("waiting", "nv_inference_pending_request_count"),
    named("prefix_cache_queries", "vllm:prefix_cache_queries"),
    named("prefix_cache_queries", "vllm:gpu_prefix_cache_queries"),
    // What is not found in the cache is computed, so all prompt tokens were looked up.
    named("prefix_cache_queries", "sglang:prompt_tokens"),
    named("prefix_cache_hits", "vllm:prefix_cache_hits"),
    named("prefix_cache_hits", "vllm:gpu_prefix_cache_hits"),
    named("prefix_cache_hits", "sglang:cached_tokens"),
    named("preemptions", "vllm:num_preemptions"),
    // Of the last batch only is `sglang:num_retracted_reqs`.
    named("preemptions", "sglang:num_retracted_requests"),
    named("gpu_memory", "nv_gpu_memory_used_bytes"),
    Alias { common: "gpu_memory", own: "DCGM_FI_DEV_FB_USED", label: None, times: MIB },
    named("gpu_memory", "nvidia_smi_memory_used_bytes"),
    named("gpu_memory", "nvidia_gpu_memory_used_bytes"),
    named("memory", "process_resident_memory_bytes"),
    named("connections", "envoy_http_downstream_cx_active"),
    named("connections", "nginx_connections_active"),
    named("connections", "haproxy_frontend_current_sessions"),
    named("connections", "traefik_open_connections"),
];

impl Alias {
    fn is_of(&self, point: &Point<'_>) -> bool {
        is_name(point.name, self.own) && self.label.is_none_or(|(name, value)| point.label(name) == Some(value))
    }
}

/// Whether a name is this one: with or without `_total`, whatever stands for a colon, and as Ray puts it.
fn is_name(name: &str, own: &str) -> bool {
    let name = name.strip_prefix("ray_").unwrap_or(name);
    let name = name.strip_suffix("_total").unwrap_or(name);
    let bare = |byte: u8| if byte == b':' { b'_' } else { byte };
    name.len() == own.len() && name.bytes().map(bare).eq(own.bytes().map(bare))
}

/// What points come to together, one by one.
fn joined(metric: ServerMetric, before: Option<f64>, value: f64) -> f64 {
    match before {
        None => value,
        // The fullest replica is the one that preempts.
        Some(before) if metric.unit() == Unit::Share => before.max(value),
        Some(before) => before + value,
    }
}

/// The values in a text of Prometheus' format: of every common metric that is known there, in the order of
/// [`ServerMetric::COMMON`], then of those in `wanted` that are the server's own. Over labels, and so over replicas and
/// models, values are summed; of shares the largest counts. Buckets and quantiles are no values of their own.
pub(super) fn values(text: &str, wanted: &[ServerMetric]) -> Vec<(ServerMetric, f64)> {
    joined_of(points(text), wanted)
}

/// The metrics of which a text has points, and none of them has a number: NaN or infinite.
pub(super) fn numberless(text: &str, wanted: &[ServerMetric]) -> Vec<ServerMetric> {
    let numbers = values(text, wanted);
    let named = joined_of(without_number(text), wanted).into_iter().map(|(metric, _)| metric);
    named.filter(|metric| numbers.iter().all(|(known, _)| known != metric)).collect()
}

/// What points come to by their metrics.
fn joined_of<'a>(points: impl Iterator<Item = Point<'a>>, wanted: &[ServerMetric]) -> Vec<(ServerMetric, f64)> {
    let common: Vec<_> = ServerMetric::COMMON.into_iter().filter_map(ServerMetric::new).collect();
    let own: Vec<_> = wanted.iter().filter(|metric| !common.contains(metric)).copied().collect();
    let mut of_aliases = [None; ALIASES.len()];
    let mut of_common = vec![None; common.len()];
    let mut of_own = vec![None; own.len()];
    for point in points.filter(|point| !point.is_part()) {
        for (found, alias) in of_aliases.iter_mut().zip(&ALIASES) {
            if let Some(metric) = ServerMetric::new(alias.common).filter(|_| alias.is_of(&point)) {
                *found = Some(joined(metric, *found, point.value * alias.times));
            }
        }
        let plainly = of_common.iter_mut().zip(&common).chain(of_own.iter_mut().zip(&own));
        for (found, metric) in plainly.filter(|(_, metric)| metric.as_str() == point.name) {
            *found = Some(joined(*metric, *found, point.value));
        }
    }
    // A server, or a gateway before it, may also use the common names themselves.
    let of_alias = |metric: ServerMetric| {
        let mut own = of_aliases.iter().zip(&ALIASES).filter(|(_, alias)| alias.common == metric.as_str());
        own.find_map(|(found, _)| *found)
    };
    let common = common.into_iter().zip(of_common).map(|(metric, plain)| (metric, of_alias(metric).or(plain)));
    let all = common.chain(own.into_iter().zip(of_own));
    all.filter_map(|(metric, found)| Some((metric, found?))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn metric(name: &str) -> ServerMetric {
        ServerMetric::new(name).unwrap()
    }

    fn read(text: &str, wanted: &[&str]) -> Vec<(String, f64)> {
        let wanted: Vec<_> = wanted.iter().map(|name| metric(name)).collect();
        values(text, &wanted).into_iter().map(|(metric, value)| (metric.to_string(), value)).collect()
    }

    fn are(text: &str, expected: &[(&str, f64)]) {
        let expected: Vec<_> = expected.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect();
        assert_eq!(read(text, &[]), expected, "{text}");
    }

    #[test]
    fn every_alias_is_of_a_common_name() {
        for alias in &ALIASES {
            assert!(ServerMetric::COMMON.contains(&alias.common), "{}", alias.common);
            assert!(!alias.own.ends_with("_total"), "{}", alias.own);
        }
        for common in ServerMetric::COMMON {
            assert!(ALIASES.iter().any(|alias| alias.common == common), "{common}");
        }
    }

    #[test]
    fn vllm_of_today_with_two_engines() {
        are(
            r#"# HELP vllm:num_requests_running Number of requests in model execution batches.
# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{engine="0",model_name="m"} 12.0
vllm:num_requests_running{engine="1",model_name="m"} 9.0
# TYPE vllm:num_requests_waiting gauge
vllm:num_requests_waiting{engine="0",model_name="m"} 3.0
vllm:num_requests_waiting{engine="1",model_name="m"} 0.0
# TYPE vllm:kv_cache_usage_perc gauge
vllm:kv_cache_usage_perc{engine="0",model_name="m"} 0.25
vllm:kv_cache_usage_perc{engine="1",model_name="m"} 0.75
# TYPE vllm:gpu_cache_usage_perc gauge
vllm:gpu_cache_usage_perc{engine="0",model_name="m"} 0.2
# TYPE vllm:prefix_cache_queries_total counter
vllm:prefix_cache_queries_total{engine="0",model_name="m"} 1000.0
# TYPE vllm:prefix_cache_queries_created gauge
vllm:prefix_cache_queries_created{engine="0",model_name="m"} 1.7e+09
# TYPE vllm:prefix_cache_hits_total counter
vllm:prefix_cache_hits_total{engine="0",model_name="m"} 400.0
vllm:gpu_prefix_cache_hits_total{engine="0",model_name="m"} 400.0
# TYPE vllm:num_preemptions_total counter
vllm:num_preemptions_total{engine="0",model_name="m"} 2.0
# TYPE vllm:time_to_first_token_seconds histogram
vllm:time_to_first_token_seconds_bucket{engine="0",le="0.001",model_name="m"} 0.0
vllm:time_to_first_token_seconds_count{engine="0",model_name="m"} 40.0
vllm:time_to_first_token_seconds_sum{engine="0",model_name="m"} 8.5
process_resident_memory_bytes 1.048576e+09
"#,
            &[
                ("kv_cache_usage", 0.75),
                ("running", 21.0),
                ("waiting", 3.0),
                ("prefix_cache_queries", 1_000.0),
                ("prefix_cache_hits", 400.0),
                ("preemptions", 2.0),
                ("memory", 1_048_576_000.0),
            ],
        );
    }

    #[test]
    fn vllm_of_before() {
        are(
            r#"vllm:num_requests_running{model_name="m"} 1.0
vllm:num_requests_swapped{model_name="m"} 0.0
vllm:gpu_cache_usage_perc{model_name="m"} 0.5
vllm:cpu_cache_usage_perc{model_name="m"} 0.9
vllm:gpu_prefix_cache_queries_total{model_name="m"} 10.0
vllm:gpu_prefix_cache_hits_total{model_name="m"} 4.0
"#,
            &[("kv_cache_usage", 0.5), ("running", 1.0), ("prefix_cache_queries", 10.0), ("prefix_cache_hits", 4.0)],
        );
        let through_ray = "ray_vllm_num_requests_waiting{WorkerId=\"w\"} 2\nray_vllm:num_requests_running 3\n";
        are(through_ray, &[("running", 3.0), ("waiting", 2.0)]);
    }

    #[test]
    fn sglang() {
        are(
            r#"# TYPE sglang:num_running_reqs gauge
sglang:num_running_reqs{engine_type="unified",model_name="m"} 7.0
sglang:num_used_tokens{model_name="m"} 123859.0
sglang:token_usage{model_name="m"} 0.28
sglang:num_queue_reqs{model_name="m"} 5.0
sglang:cache_hit_rate{model_name="m"} 0.42
sglang:num_retracted_reqs{model_name="m"} 1.0
sglang:num_retracted_requests_total{model_name="m"} 48.0
sglang:prompt_tokens_total{model_name="m"} 8128.0
sglang:cached_tokens_total{cache_source="device",model_name="m"} 4000.0
sglang:cached_tokens_total{cache_source="host",model_name="m"} 64.0
"#,
            &[
                ("kv_cache_usage", 0.28),
                ("running", 7.0),
                ("waiting", 5.0),
                ("prefix_cache_queries", 8_128.0),
                ("prefix_cache_hits", 4_064.0),
                ("preemptions", 48.0),
            ],
        );
    }

    #[test]
    fn tgi_and_llamacpp() {
        are(
            "# TYPE tgi_batch_current_size gauge\ntgi_batch_current_size 4\n\
             # TYPE tgi_queue_size gauge\ntgi_queue_size 7\ntgi_request_count 11\n",
            &[("running", 4.0), ("waiting", 7.0)],
        );
        are(
            "llamacpp:prompt_tokens_total 100\nllamacpp:kv_cache_usage_ratio 0.125\n\
             llamacpp:requests_processing 2\nllamacpp:requests_deferred 46\n",
            &[("kv_cache_usage", 0.125), ("running", 2.0), ("waiting", 46.0)],
        );
    }

    #[test]
    fn triton_with_tensorrt_llm() {
        are(
            r#"nv_inference_pending_request_count{model="ensemble",version="1"} 9
nv_gpu_memory_used_bytes{gpu_uuid="GPU-1"} 1000
nv_gpu_memory_used_bytes{gpu_uuid="GPU-2"} 2000
nv_trt_llm_request_metrics{model="tensorrt_llm",request_type="waiting",version="1"} 1
nv_trt_llm_request_metrics{model="tensorrt_llm",request_type="scheduled",version="1"} 3
nv_trt_llm_request_metrics{model="tensorrt_llm",request_type="max",version="1"} 512
nv_trt_llm_kv_cache_block_metrics{kv_cache_block_type="used",model="tensorrt_llm",version="1"} 10
nv_trt_llm_kv_cache_block_metrics{kv_cache_block_type="fraction",model="tensorrt_llm",version="1"} 0.1
"#,
            &[("kv_cache_usage", 0.1), ("running", 3.0), ("waiting", 1.0), ("gpu_memory", 3_000.0)],
        );
        are("nv_inference_pending_request_count{model=\"m\"} 9\n", &[("waiting", 9.0)]);
    }

    #[test]
    fn dcgm_counts_in_mebibytes() {
        are("DCGM_FI_DEV_FB_USED{gpu=\"0\"} 2\nDCGM_FI_DEV_FB_USED{gpu=\"1\"} 1\n", &[("gpu_memory", 3.0 * MIB)]);
    }

    #[test]
    fn what_a_check_names_comes_as_it_is() {
        let text = r#"my_queue{shard="a"} 1
my_queue{shard="b"} 2
my_queue{shard="c"} NaN
h_bucket{le="1"} 4
h_bucket{le="+Inf"} 5
h_sum 2.5
h_count 5
s{quantile="0.5"} 0.1
s_count 2
connections 3
tgi_queue_size 6
"#;
        let wanted =
            ["my_queue", "h_sum", "h_count", "h_bucket", "s", "s_count", "absent", "connections", "tgi_queue_size"];
        let expected = [
            ("waiting", 6.0),
            ("connections", 3.0),
            ("my_queue", 3.0),
            ("h_sum", 2.5),
            ("h_count", 5.0),
            ("s_count", 2.0),
        ];
        let mut expected: Vec<_> = expected.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect();
        expected.push(("tgi_queue_size".to_owned(), 6.0));
        assert_eq!(read(text, &wanted), expected);
        assert_eq!(read("my_queue NaN\n", &["my_queue"]), []);
    }
}
