//! Other tools' files, judged by numbers that are worked out from the files themselves.

#[cfg(test)]
mod tests {
    use gate_import::{Format, FormatError, Import, ImportError, import};
    use gate_model::{Endpoint, GateSpec, Nanos, Outcome, Pattern, Run, Series};
    use serde_json::{Value, json};

    fn read(format: Format, text: &str) -> Result<Run, ImportError> {
        let spec = GateSpec::new("chat", Endpoint::Url("http://127.0.0.1:8000/v1".to_owned()));
        import(format, Import { spec, text, gate: "0.1.0", run_id: "r", started: "2026-12-01T00:00:00Z" })
    }

    fn values(run: &Run, series: Series) -> Vec<f64> {
        run.samples.iter().filter_map(|sample| sample.value(series)).map(|value| value / 1e6).collect()
    }

    #[track_caller]
    fn near(seen: &[f64], expected: &[f64]) {
        assert_eq!(seen.len(), expected.len(), "{seen:?} {expected:?}");
        for (seen, expected) in seen.iter().zip(expected) {
            assert!((seen - expected).abs() < 1e-3, "{seen} {expected}");
        }
    }

    /// A result as vLLM writes it, of two requests that were answered and one that was not.
    fn vllm() -> Value {
        json!({
            "date": "20261201-100000", "backend": "openai", "model_id": "m", "num_prompts": 3, "duration": 10.0,
            "completed": 2, "request_throughput": 0.2,
            "input_lens": [100, 200, 300], "output_lens": [5, 3, 0], "ttfts": [0.5, 0.25, 0.0],
            "itls": [[0.1, 0.1, 0.1, 0.1], [0.2, 0.4], []],
            "generated_texts": ["a", "b", ""], "errors": ["", "", "Service Unavailable"],
            "mean_tpot_ms": 200.0
        })
    }

    #[test]
    fn vllm_counts_tpot_as_gate_does_and_its_failures_are_failures() {
        let run = read(Format::Vllm, &vllm().to_string()).unwrap();
        assert_eq!(run.header.imported_from.as_deref(), Some("vllm"));
        near(&values(&run, Series::Ttft), &[500.0, 250.0]);
        near(&values(&run, Series::E2e), &[900.0, 850.0]);
        // (900 − 500) ÷ 4 and (850 − 250) ÷ 2: their mean is the file's own `mean_tpot_ms`.
        near(&values(&run, Series::Tpot), &[100.0, 300.0]);
        let outcomes: Vec<Outcome> = run.samples.iter().map(|sample| sample.outcome).collect();
        assert_eq!(outcomes, [Outcome::Ok, Outcome::Ok, Outcome::Http5xx]);
        // Without send times they are spread over the duration, less the longest answer.
        assert_eq!(run.samples[2].intended, Nanos::from_millis(9_100));
        // What a ramp shows depends on them.
        let mut spec = GateSpec::new("chat", Endpoint::Url("http://127.0.0.1:8000/v1".to_owned()));
        spec.load.pattern = Pattern::Soak;
        let text = vllm().to_string();
        let refused = import(
            Format::Vllm,
            Import { spec, text: &text, gate: "0.1.0", run_id: "r", started: "2026-12-01T00:00:00Z" },
        );
        assert!(refused.unwrap_err().to_string().starts_with("`start_times`: it is not there"));
        let mut timed = vllm();
        timed["start_times"] = json!([20.0, 17.5, 18.0]);
        let run = read(Format::Vllm, &timed.to_string()).unwrap();
        let sent: Vec<f64> = run.samples.iter().map(|sample| sample.intended.as_secs_f64()).collect();
        assert_eq!(sent, [0.0, 0.5, 2.5], "in send order, from the first");
        // Appended to others, the last counts.
        let appended = format!("{}\n{}\n", json!({"duration": 1}), vllm());
        assert_eq!(read(Format::Vllm, &appended).unwrap().samples.len(), 3);
    }

    #[test]
    fn the_same_answers_have_one_tpot_whatever_their_file_calls_it() {
        // The rows' own `tpot_ms` is e2e ÷ tokens, vLLM's (e2e − ttft) ÷ (tokens − 1): ours follows from the times alone.
        let by_vllm = read(Format::Vllm, &vllm().to_string()).unwrap();
        let rows = [(0.5, 0.9, 5), (0.25, 0.85, 3)].map(|(ttft, e2e, tokens): (f64, f64, u64)| {
            let with_ttft = e2e / tokens as f64;
            json!({"send_s": 0.0, "status": 200, "ttft_ms": ttft * 1e3, "tpot_ms": with_ttft * 1e3, "e2e_ms": e2e * 1e3, "output_tokens": tokens})
                .to_string()
        });
        let by_rows = read(Format::Samples, &rows.join("\n")).unwrap();
        near(&values(&by_vllm, Series::Tpot), &values(&by_rows, Series::Tpot));
        near(&values(&by_vllm, Series::TpotE2e), &[180.0, 850.0 / 3.0]);
    }

    #[test]
    fn vegeta_sees_calls() {
        let line = |seq: u64, code: u64, at: &str, millis: u64, error: &str| {
            json!({"attack": "", "seq": seq, "code": code, "timestamp": at, "latency": millis * 1_000_000, "bytes_out": 10,
                   "bytes_in": 20, "error": error, "body": null, "method": "POST", "url": "http://h", "headers": {}})
            .to_string()
        };
        let text = [
            line(0, 200, "2026-12-01T10:00:00.5+02:00", 120, ""),
            line(1, 200, "2026-12-01T08:00:00Z", 80, ""),
            line(2, 503, "2026-12-01T08:00:01Z", 5, "503 Service Unavailable"),
            line(3, 0, "2026-12-01T08:00:02Z", 30_000, "Post: context deadline exceeded (Client.Timeout exceeded)"),
            line(4, 0, "2026-12-01T08:00:03Z", 1, "dial tcp 127.0.0.1:9: connect: connection refused"),
            line(5, 0, "2026-12-01T08:00:04Z", 1, "dial tcp 127.0.0.1:9: i/o timeout"),
        ];
        let run = read(Format::Vegeta, &text.join("\n")).unwrap();
        let outcomes: Vec<Outcome> = run.samples.iter().map(|sample| sample.outcome).collect();
        assert_eq!(
            outcomes,
            [
                Outcome::Ok,
                Outcome::Ok,
                Outcome::Http5xx,
                Outcome::TimeoutTotal,
                Outcome::Connect,
                Outcome::TimeoutConnect
            ]
        );
        near(&values(&run, Series::E2e)[..2], &[80.0, 120.0]);
        assert!(values(&run, Series::Ttft).is_empty(), "no first token is seen");
        assert_eq!(run.samples[1].intended, Nanos::from_millis(500));
    }

    #[test]
    fn k6_sees_calls() {
        let point = |metric: &str, time: &str, value: f64, status: &str, code: &str| {
            json!({"metric": metric, "type": "Point", "data": {"time": time, "value": value,
                   "tags": {"status": status, "error_code": code, "url": "http://h", "expected_response": "true"}}})
            .to_string()
        };
        let text = [
            json!({"type": "Metric", "data": {"name": "http_req_duration", "type": "trend", "contains": "time"}, "metric": "http_req_duration"}).to_string(),
            point("http_req_duration", "2026-12-01T08:00:01Z", 500.0, "200", ""),
            point("http_req_waiting", "2026-12-01T08:00:01Z", 400.0, "200", ""),
            point("http_req_duration", "2026-12-01T08:00:02Z", 250.0, "429", "1429"),
            point("http_req_duration", "2026-12-01T08:00:03Z", 0.0, "0", "1212"),
        ];
        let run = read(Format::K6, &text.join("\n")).unwrap();
        let outcomes: Vec<Outcome> = run.samples.iter().map(|sample| sample.outcome).collect();
        assert_eq!(outcomes, [Outcome::Ok, Outcome::Http429, Outcome::Connect]);
        // A point's time is the end: 500 ms before 1 s, 250 ms before 2 s.
        let sent: Vec<f64> = run.samples.iter().map(|sample| sample.intended.as_secs_f64()).collect();
        assert_eq!(sent, [0.0, 1.25, 2.5]);
        near(&values(&run, Series::E2e)[..1], &[500.0]);
    }

    #[test]
    fn what_is_wrong_names_its_place_and_another_tools_file_is_known() {
        let error = |format: Format, text: &str| read(format, text).unwrap_err().to_string();
        let mut short = vllm();
        short["itls"] = json!([[0.1]]);
        assert_eq!(error(Format::Vllm, &short.to_string()), "`itls`: it has 1 requests, and `ttfts` has 3");
        let mut summary = vllm();
        summary.as_object_mut().unwrap().remove("ttfts");
        assert!(error(Format::Vllm, &summary.to_string()).contains("--save-detailed"));
        let mut timeless = vllm();
        timeless.as_object_mut().unwrap().remove("duration");
        assert!(error(Format::Vllm, &timeless.to_string()).contains("when requests were sent is not known"));
        let mut text = vllm();
        text["output_lens"] = json!(["five", 3, 0]);
        assert_eq!(error(Format::Vllm, &text.to_string()), "request 1: its `output_lens` is no count");
        let summary = json!({"root_group": {}, "metrics": {"http_req_duration": {"avg": 1.0, "p(95)": 2.0}}});
        let summary = serde_json::to_string_pretty(&summary).unwrap();
        assert!(error(Format::K6, &summary).contains("--out json=FILE"));
        assert!(error(Format::Vllm, &summary).ends_with("it looks like `--from k6`"));
        assert!(error(Format::Vllm, "{").starts_with("it is not the JSON that this tool writes"));
        assert_eq!(error(Format::K6, ""), "the file holds no request");
        assert!(
            error(Format::Vegeta, "{\"code\": 200}").starts_with("line 1 is none that this tool writes: missing field")
        );
        let vegeta = "{\"code\": 99, \"timestamp\": \"2026-12-01T08:00:00Z\", \"latency\": 1, \"error\": \"\"}";
        assert!(error(Format::Vegeta, vegeta).contains("`code` is 99"));
        let negative = vegeta.replace("99", "200").replace("\"latency\": 1", "\"latency\": -1");
        assert!(error(Format::Vegeta, &negative).starts_with("request 1: one of its times"));
        assert!(error(Format::Samples, &vllm().to_string()).ends_with("it looks like `--from vllm`"));
        assert!(error(Format::Vllm, vegeta).ends_with("it looks like `--from vegeta`"));
        let later: FormatError = "guidellm".parse::<Format>().unwrap_err();
        assert!(later.to_string().contains("not yet supported") && later.to_string().contains("`vllm`"));
    }
}
