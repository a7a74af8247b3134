//! What is written is a spec, whatever was answered.

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use gate_init::{
        Answers, Detects, Endpoint, Engine, Forge, Kind, Lengths, Prices, Sla, Workload, nightly, page, pull_request,
    };
    use gate_model::{Api, Nanos, PerSecond, Quantity};
    use proptest::prelude::*;

    fn lengths() -> impl Strategy<Value = Lengths> {
        (1_u32..5_000, 0_u32..2_000, 1_u32..5_000, 0_u32..9_000).prop_map(|(mean, stddev, low, more)| {
            // As a fit has them: the mean is between the least and the most, and the deviation at most half of what is between.
            let (min, max) = (low.min(mean), mean.saturating_add(more));
            Lengths { mean, stddev: stddev.min((max - min) / 2), min, max }
        })
    }

    fn answers() -> impl Strategy<Value = Answers> {
        let endpoint = (
            proptest::option::of("https?://[a-z]{1,8}\\.test(:[1-9][0-9]{1,3})?(/v1)?"),
            proptest::sample::select(Api::ALL.to_vec()),
            proptest::option::of("\\PC{1,20}"),
            proptest::option::of("[A-Z][A-Z_]{2,10}"),
            proptest::option::of("\\PC{0,20}"),
            proptest::option::of(any::<bool>()),
        );
        let sla = (50_i64..60_000, 1_i64..2_000, 0.001_f64..0.5, 0.1_f64..200.0);
        let workload = (proptest::sample::select(Kind::ALL.to_vec()), lengths(), lengths(), 1_u32..5, any::<bool>());
        (endpoint, sla, workload, "[a-z][a-z0-9-]{0,20}", any::<bool>()).prop_map(
            |(
                (url, api, model, key, name, streams),
                (ttft, tpot, errors, rps),
                (kind, input, output, turns, is_fitted),
                gate,
                is_priced,
            )| {
                let api = match api {
                    // Their specs need more than a URL, which `gate init` does not ask for.
                    Api::Custom | Api::OpenaiEmbeddings | Api::BedrockConverse | Api::BedrockInvoke | Api::Triton => {
                        Api::OpenaiChat
                    }
                    other => other,
                };
                Answers {
                    name: gate,
                    endpoint: Endpoint {
                        url,
                        api,
                        model: model.filter(|model| !model.trim().is_empty()).or_else(|| Some("m".to_owned())),
                        key,
                        engine: name.clone().map(|name| Engine {
                            name: name.clone(),
                            version: Some(name),
                            metrics: Some("/metrics"),
                        }),
                        streams,
                        usage: Some(true),
                        unknown: name,
                    },
                    workload: Workload {
                        input,
                        output,
                        turns: (1, if api == Api::OpenaiChat { turns } else { 1 }),
                        fitted: is_fitted.then(|| ("traffic.jsonl".to_owned(), 20)),
                        ..Workload::usual(kind)
                    },
                    sla: Sla {
                        ttft: Nanos::from_millis(ttft),
                        tpot: Nanos::from_millis(tpot),
                        errors: (errors * 1_000.0).round() / 1_000.0,
                        rps: PerSecond((rps * 10.0).round() / 10.0),
                    },
                    forge: Some(Forge::GitHub),
                    prices: is_priced.then_some(Prices { input: 3.0, output: 15.0 }),
                    runs_a_month: 400,
                }
            },
        )
    }

    #[track_caller]
    fn resolves(file: &str, text: &str) -> Result<(), TestCaseError> {
        let environment: BTreeMap<String, String> = text
            .split("key: ${")
            .skip(1)
            .map(|rest| (rest.split('}').next().unwrap().to_owned(), "a-key".to_owned()))
            .collect();
        match gate_spec::resolve(file, text, &environment, &[]) {
            Ok(resolved) => prop_assert!(resolved.warnings.is_empty(), "{:?}\n{text}", resolved.warnings),
            Err(diagnostics) => prop_assert!(false, "{diagnostics:#?}\n{text}"),
        }
        Ok(())
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn every_gate_is_a_spec(answers in answers()) {
            resolves("gates/x.yaml", &pull_request(&answers))?;
            resolves("gates/nightly/x.yaml", &nightly(&answers))?;
            let page = page(&answers, &Detects::default());
            prop_assert!(page.contains("## What so many requests can detect"));
        }
    }

    #[test]
    fn usual_work_of_every_kind_is_a_gate() {
        for kind in Kind::ALL {
            let answers = Answers {
                name: kind.name().to_owned(),
                endpoint: Endpoint {
                    url: Some("http://127.0.0.1:8000/v1".to_owned()),
                    api: Api::OpenaiChat,
                    model: Some("it's a \"model\": #1 ${HOME} $${A}".to_owned()),
                    key: None,
                    engine: None,
                    streams: Some(true),
                    usage: Some(true),
                    unknown: None,
                },
                workload: Workload::usual(kind),
                sla: Sla::usual(kind),
                forge: None,
                prices: None,
                runs_a_month: 400,
            };
            let text = pull_request(&answers);
            let spec = gate_spec::resolve("g.yaml", &text, &BTreeMap::new(), &[]).unwrap().spec;
            assert_eq!(spec.target.model.as_deref(), Some("it's a \"model\": #1 ${HOME} $${A}"));
            assert_eq!(spec.load.pace.rate(), Some(answers.sla.rps));
            assert_eq!(spec.slo.ttft, Some(answers.sla.ttft));
            let limit =
                spec.checks.iter().find(|check| check.metric.to_string() == "ttft.p95").unwrap().bound.absolute();
            assert_eq!(limit, Some(Quantity::time(answers.sla.ttft)));
            let night = gate_spec::resolve("n.yaml", &nightly(&answers), &BTreeMap::new(), &[]).unwrap().spec;
            assert_eq!(night.scenario_names(), ["capacity", "spike", "soak"]);
        }
    }
}
