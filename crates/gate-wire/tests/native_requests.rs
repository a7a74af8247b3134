//! What the servers' own dialects send, and where.

#[cfg(test)]
mod requests {
    use gate_model::{Api, Delivery, MaxTokensField, Message, OutputLength, Prompt, Role, Secret};
    use gate_wire::{Ask, dialect};
    use serde_json::{Map, Value, json};
    use url::Url;

    const CLAUDE: &str = "anthropic.claude-3-haiku-20240307-v1:0";
    const TEXT: &str = "be brief\n\nhi\n\nhello\n\nthe sea?";

    /// What is asked, and where.
    #[derive(Clone, Copy)]
    struct Case<'a> {
        api: Api,
        url: &'a str,
        model: Option<&'a str>,
        delivery: Delivery,
        output: OutputLength,
    }

    impl<'a> Case<'a> {
        fn of(api: Api) -> Self {
            let (delivery, output) = (Delivery::Streamed, OutputLength::AtMost);
            Self { api, url: "http://h", model: Some("m"), delivery, output }
        }

        fn at(self, url: &'a str) -> Self {
            Self { url, ..self }
        }

        fn model(self, model: Option<&'a str>) -> Self {
            Self { model, ..self }
        }

        fn whole(self) -> Self {
            Self { delivery: Delivery::Whole, ..self }
        }

        fn exact(self) -> Self {
            Self { output: OutputLength::Exact, ..self }
        }

        /// The path, the body, and the headers `accept` and `authorization`.
        fn sent(self) -> (String, Value, [Option<String>; 2]) {
            let message = |role, text: &str| Message::new(role, text);
            let messages = vec![
                message(Role::System, "be brief"),
                message(Role::User, "hi"),
                message(Role::Assistant, "hello"),
                message(Role::User, "the sea?"),
            ];
            let ask = Ask {
                model: self.model,
                prompt: &Prompt { messages },
                max_output_tokens: 20,
                max_tokens_field: MaxTokensField::MaxTokens,
                output: self.output,
                delivery: self.delivery,
                extra_body: &Map::new(),
            };
            let key = Secret::new("sk-1");
            let request = dialect(self.api, None).request(&Url::parse(self.url).unwrap(), Some(&key), &ask);
            let header = |wanted: &str| {
                let found = request.headers.iter().find(|(name, _)| *name == wanted);
                found.map(|(_, value)| value.expose().to_owned())
            };
            let headers = [header("accept"), header("authorization")];
            (request.path.clone(), serde_json::from_slice(&request.body).unwrap(), headers)
        }

        fn body(self) -> Value {
            self.sent().1
        }

        fn path(self) -> String {
            self.sent().0
        }

        fn models_path(self) -> String {
            dialect(self.api, None).models_path(&Url::parse(self.url).unwrap())
        }
    }

    /// `streamed` with other or further fields.
    fn but(streamed: &Value, fields: Value) -> Value {
        let mut body = streamed.clone();
        body.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        body
    }

    #[test]
    fn bedrock_converse() {
        let case = Case::of(Api::BedrockConverse).model(Some(CLAUDE));
        let body = json!({
            "system": [{"text": "be brief"}],
            "messages": [
                {"role": "user", "content": [{"text": "hi"}]},
                {"role": "assistant", "content": [{"text": "hello"}]},
                {"role": "user", "content": [{"text": "the sea?"}]},
            ],
            "inferenceConfig": {"maxTokens": 20},
        });
        let headers = ["application/vnd.amazon.eventstream", "Bearer sk-1"].map(|value| Some(value.to_owned()));
        let path = "/model/anthropic.claude-3-haiku-20240307-v1%3A0/converse";
        assert_eq!(case.sent(), (format!("{path}-stream"), body.clone(), headers));
        assert_eq!((case.whole().path(), case.whole().body()), (path.to_owned(), body.clone()));
        assert_eq!(case.exact().body(), body, "nothing asks for an exact length");
    }

    #[test]
    fn a_model_is_one_segment_of_its_route() {
        const VERTEX: &str = "http://h/v1/projects/p/locations/l";
        for (api, url, model, path) in [
            (Api::Gemini, "http://h", "a?b#c", "/v1beta/models/a%3Fb%23c"),
            (Api::Gemini, "http://h", "../../x", "/v1beta/models/..%2F..%2Fx"),
            (Api::Gemini, "http://h/v1/models", "a%b c", "/v1/models/a%25b%20c"),
            (Api::Gemini, "http://h", "modèle", "/v1beta/models/mod%C3%A8le"),
            (Api::Gemini, "http://h", "models/gemini-2.0-flash:x@1", "/v1beta/models/gemini-2.0-flash:x@1"),
            (Api::Gemini, "http://h/v1beta", "tunedModels/t?", "/v1beta/tunedModels/t%3F"),
            (Api::Gemini, VERTEX, "g", "/v1/projects/p/locations/l/publishers/google/models/g"),
            (Api::Gemini, VERTEX, "models/g", "/v1/projects/p/locations/l/publishers/google/models/g"),
            (
                Api::Gemini,
                VERTEX,
                "publishers/a b/models/c@1",
                "/v1/projects/p/locations/l/publishers/a%20b/models/c@1",
            ),
            (Api::Triton, "http://h", "a?b#c", "/v2/models/a%3Fb%23c"),
            (Api::Triton, "http://h", "../../x", "/v2/models/..%2F..%2Fx"),
            (Api::Triton, "http://h/v2", "a%b c/é", "/v2/models/a%25b%20c%2F%C3%A9"),
        ] {
            let tail = if api == Api::Gemini { ":generateContent" } else { "/generate" };
            let case = Case::of(api).at(url).model(Some(model)).whole();
            assert_eq!(case.path(), format!("{path}{tail}"), "{model}");
        }
    }

    #[test]
    fn bedrock_invoke() {
        let case = Case::of(Api::BedrockInvoke).model(Some("arn:aws:bedrock:us-east-1:1:inference-profile/us.x"));
        let body = json!({
            "anthropic_version": "bedrock-2023-05-31",
            "max_tokens": 20,
            "system": "be brief",
            "messages": [
                {"role": "user", "content": "hi"},
                {"role": "assistant", "content": "hello"},
                {"role": "user", "content": "the sea?"},
            ],
        });
        let path = "/model/arn%3Aaws%3Abedrock%3Aus-east-1%3A1%3Ainference-profile%2Fus.x/invoke";
        let headers = ["application/vnd.amazon.eventstream", "Bearer sk-1"].map(|value| Some(value.to_owned()));
        assert_eq!(case.sent(), (format!("{path}-with-response-stream"), body.clone(), headers));
        assert_eq!((case.whole().path(), case.whole().body()), (path.to_owned(), body));
    }

    #[test]
    fn tgi() {
        let case = Case::of(Api::Tgi);
        let body = json!({"inputs": TEXT, "parameters": {"max_new_tokens": 20, "details": true}});
        let headers = ["text/event-stream", "Bearer sk-1"].map(|value| Some(value.to_owned()));
        assert_eq!(case.sent(), ("/generate_stream".to_owned(), body.clone(), headers));
        assert_eq!((case.whole().path(), case.whole().body()), ("/generate".to_owned(), body.clone()));
        assert_eq!(case.exact().body(), body, "nothing asks for an exact length");
    }

    #[test]
    fn llamacpp() {
        let case = Case::of(Api::Llamacpp);
        let body = json!({"model": "m", "prompt": TEXT, "n_predict": 20, "stream": true});
        let headers = ["text/event-stream", "Bearer sk-1"].map(|value| Some(value.to_owned()));
        assert_eq!(case.sent(), ("/completion".to_owned(), body.clone(), headers));
        assert_eq!(case.whole().body(), but(&body, json!({"stream": false})));
        assert_eq!(case.exact().body(), but(&body, json!({"ignore_eos": true})));
    }

    #[test]
    fn sglang() {
        let case = Case::of(Api::Sglang);
        let body = json!({"text": TEXT, "sampling_params": {"max_new_tokens": 20}, "stream": true});
        let headers = ["text/event-stream", "Bearer sk-1"].map(|value| Some(value.to_owned()));
        assert_eq!(case.sent(), ("/generate".to_owned(), body.clone(), headers));
        assert_eq!(case.whole().body(), but(&body, json!({"stream": false})));
        let sampling = json!({"max_new_tokens": 20, "ignore_eos": true, "min_new_tokens": 20});
        assert_eq!(case.exact().body(), but(&body, json!({"sampling_params": sampling})));
    }

    #[test]
    fn triton() {
        let case = Case::of(Api::Triton);
        let body = json!({"text_input": TEXT, "max_tokens": 20, "stream": true});
        let headers = ["text/event-stream", "Bearer sk-1"].map(|value| Some(value.to_owned()));
        assert_eq!(case.sent(), ("/v2/models/m/generate_stream".to_owned(), body.clone(), headers));
        assert_eq!(case.whole().path(), "/v2/models/m/generate");
        assert_eq!(case.whole().body(), json!({"text_input": TEXT, "max_tokens": 20}));
        assert_eq!(case.exact().body(), but(&body, json!({"min_tokens": 20, "min_length": 20})));
    }

    #[test]
    fn ollama_generates_where_the_url_says_so() {
        let case = Case::of(Api::Ollama).at("http://h/api/generate");
        let body = json!({
            "model": "m", "system": "be brief", "prompt": "hi\n\nhello\n\nthe sea?", "stream": true,
            "options": {"num_predict": 20},
        });
        let headers = ["application/x-ndjson", "Bearer sk-1"].map(|value| Some(value.to_owned()));
        assert_eq!(case.sent(), ("/api/generate".to_owned(), body.clone(), headers));
        assert_eq!(case.whole().body(), but(&body, json!({"stream": false})));
        assert_eq!(case.models_path(), "/api/tags");
    }

    #[test]
    fn a_path_may_name_the_route_or_what_stands_before_it() {
        for (api, url, streamed, whole) in [
            (Api::Tgi, "http://h/tgi/", "/tgi/generate_stream", "/tgi/generate"),
            (Api::Tgi, "http://h/generate_stream", "/generate_stream", "/generate"),
            (Api::Tgi, "http://h/generate?x=1", "/generate_stream?x=1", "/generate?x=1"),
            (Api::Tgi, "http://h/regenerate", "/regenerate/generate_stream", "/regenerate/generate"),
            (Api::Llamacpp, "http://h/v1", "/v1/completion", "/v1/completion"),
            (Api::Sglang, "http://h/a/generate", "/a/generate", "/a/generate"),
            (Api::Triton, "http://h/v2", "/v2/models/m/generate_stream", "/v2/models/m/generate"),
            (
                Api::Triton,
                "http://h/v2/models/other/versions/1/generate_stream",
                "/v2/models/other/versions/1/generate_stream",
                "/v2/models/other/versions/1/generate",
            ),
            (Api::BedrockConverse, "http://h/proxy", "/proxy/model/m/converse-stream", "/proxy/model/m/converse"),
            (Api::BedrockConverse, "http://h/model/x/converse", "/model/x/converse-stream", "/model/x/converse"),
            (
                Api::BedrockInvoke,
                "http://h/model/x/invoke-with-response-stream",
                "/model/x/invoke-with-response-stream",
                "/model/x/invoke",
            ),
        ] {
            let case = Case::of(api).at(url);
            assert_eq!([case.path(), case.whole().path()], [streamed, whole], "{url}");
        }
    }

    #[test]
    fn readiness_is_asked_beside_the_route() {
        for (api, url, path) in [
            (Api::Tgi, "http://h", "/info"),
            (Api::Tgi, "http://h/a/generate_stream", "/a/info"),
            (Api::Llamacpp, "http://h", "/v1/models"),
            (Api::Sglang, "http://h/a", "/a/v1/models"),
            (Api::Triton, "http://h", "/v2/health/ready"),
            (Api::Triton, "http://h/v2/models/x/generate_stream", "/v2/models/x/ready"),
            (Api::BedrockConverse, "http://h", "/foundation-models"),
        ] {
            assert_eq!(Case::of(api).at(url).models_path(), path, "{url}");
        }
    }

    #[test]
    fn what_is_absent_is_left_out() {
        let case = Case::of(Api::Llamacpp).model(None);
        assert_eq!(case.body(), json!({"prompt": TEXT, "n_predict": 20, "stream": true}));
    }
}
