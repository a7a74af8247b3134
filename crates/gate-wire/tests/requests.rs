//! What each dialect sends.

#[cfg(test)]
mod requests {
    use std::sync::LazyLock;

    use gate_model::{
        Api, Custom, CustomFraming, Delivery, MaxTokensField, Message, OutputLength, Prompt, Role, Secret,
    };
    use gate_wire::{Ask, WireRequest, dialect};
    use serde_json::{Map, Value, json};
    use url::Url;

    static PROMPT: LazyLock<Prompt> = LazyLock::new(|| {
        let message = |role, text: &str| Message::new(role, text);
        let messages = vec![
            message(Role::System, "be brief"),
            message(Role::User, "hi"),
            message(Role::Assistant, "hello"),
            message(Role::User, "the sea?"),
        ];
        Prompt { messages }
    });
    static NOTHING: LazyLock<Map<String, Value>> = LazyLock::new(Map::new);

    fn ask() -> Ask<'static> {
        Ask {
            model: Some("m"),
            prompt: &PROMPT,
            max_output_tokens: 20,
            max_tokens_field: MaxTokensField::MaxTokens,
            output: OutputLength::AtMost,
            delivery: Delivery::Streamed,
            extra_body: &NOTHING,
        }
    }

    fn request(api: Api, ask: &Ask<'_>) -> WireRequest {
        dialect(api, None).request(&Url::parse("http://h").unwrap(), Some(&Secret::new("sk-1")), ask)
    }

    fn body(request: &WireRequest) -> Value {
        serde_json::from_slice(&request.body).unwrap()
    }

    fn headers(request: &WireRequest) -> Vec<(&str, &str)> {
        let shared = ["content-type", "accept-encoding", "user-agent"];
        let own = request.headers.iter().filter(|(name, _)| !shared.contains(name));
        own.map(|(name, value)| (*name, value.expose())).collect()
    }

    /// The messages as roles and contents, the system prompt first.
    fn chat() -> Value {
        json!([
            {"role": "system", "content": "be brief"},
            {"role": "user", "content": "hi"},
            {"role": "assistant", "content": "hello"},
            {"role": "user", "content": "the sea?"},
        ])
    }

    /// What a dialect sends where only `delivery` and `output` differ: streamed, whole, streamed at exact length.
    fn snapshots(api: Api, [streamed, whole, exact]: [Value; 3]) {
        assert_eq!(body(&request(api, &ask())), streamed);
        assert_eq!(body(&request(api, &Ask { delivery: Delivery::Whole, ..ask() })), whole);
        assert_eq!(body(&request(api, &Ask { output: OutputLength::Exact, ..ask() })), exact);
    }

    #[test]
    fn openai_chat() {
        let streamed = json!({
            "model": "m", "messages": chat(), "stream": true, "stream_options": {"include_usage": true}, "max_tokens": 20,
        });
        let whole = json!({"model": "m", "messages": chat(), "max_tokens": 20});
        let mut exact = streamed.clone();
        exact["ignore_eos"] = json!(true);
        exact["min_tokens"] = json!(20);
        snapshots(Api::OpenaiChat, [streamed, whole, exact]);

        let max_tokens_field = MaxTokensField::MaxCompletionTokens;
        let request = request(Api::OpenaiChat, &Ask { max_tokens_field, ..ask() });
        assert_eq!(
            (&body(&request)["max_completion_tokens"], &body(&request)["max_tokens"]),
            (&json!(20), &Value::Null)
        );
        assert_eq!(request.path, "/v1/chat/completions");
        assert_eq!(headers(&request), [("accept", "text/event-stream"), ("authorization", "Bearer sk-1")]);
    }

    #[test]
    fn openai_completions() {
        let prompt = "be brief\n\nhi\n\nhello\n\nthe sea?";
        let streamed = json!({
            "model": "m", "prompt": prompt, "stream": true, "stream_options": {"include_usage": true}, "max_tokens": 20,
        });
        let whole = json!({"model": "m", "prompt": prompt, "max_tokens": 20});
        let mut exact = streamed.clone();
        exact["ignore_eos"] = json!(true);
        exact["min_tokens"] = json!(20);
        snapshots(Api::OpenaiCompletions, [streamed.clone(), whole, exact]);

        let max_tokens_field = MaxTokensField::MaxCompletionTokens;
        let request = request(Api::OpenaiCompletions, &Ask { max_tokens_field, ..ask() });
        assert_eq!(body(&request), streamed, "there is one field only");
        assert_eq!(request.path, "/v1/completions");
        assert_eq!(headers(&request), [("accept", "text/event-stream"), ("authorization", "Bearer sk-1")]);
    }

    #[test]
    fn anthropic() {
        let messages = json!([
            {"role": "user", "content": "hi"},
            {"role": "assistant", "content": "hello"},
            {"role": "user", "content": "the sea?"},
        ]);
        let streamed =
            json!({"model": "m", "max_tokens": 20, "system": "be brief", "messages": messages, "stream": true});
        let whole = json!({"model": "m", "max_tokens": 20, "system": "be brief", "messages": messages});
        snapshots(Api::Anthropic, [streamed.clone(), whole, streamed]);

        let user_only = Prompt { messages: PROMPT.messages[3..].to_vec() };
        let body = body(&request(Api::Anthropic, &Ask { model: None, prompt: &user_only, ..ask() }));
        let messages = json!([{"role": "user", "content": "the sea?"}]);
        assert_eq!(body, json!({"max_tokens": 20, "messages": messages, "stream": true}));

        let request = request(Api::Anthropic, &ask());
        assert_eq!(request.path, "/v1/messages");
        let own = [("accept", "text/event-stream"), ("anthropic-version", "2023-06-01"), ("x-api-key", "sk-1")];
        assert_eq!(headers(&request), own);
        assert!(!format!("{request:?}").contains("sk-1"));
    }

    #[test]
    fn ollama() {
        let streamed = json!({"model": "m", "messages": chat(), "stream": true, "options": {"num_predict": 20}});
        let whole = json!({"model": "m", "messages": chat(), "stream": false, "options": {"num_predict": 20}});
        snapshots(Api::Ollama, [streamed.clone(), whole, streamed]);

        let Value::Object(extra) = json!({"options": {"seed": 1}, "think": false}) else { panic!("an object") };
        let body = body(&request(Api::Ollama, &Ask { extra_body: &extra, ..ask() }));
        assert_eq!((&body["options"], &body["think"]), (&json!({"num_predict": 20, "seed": 1}), &json!(false)));

        let request = request(Api::Ollama, &ask());
        assert_eq!(request.path, "/api/chat");
        assert_eq!(headers(&request), [("accept", "application/x-ndjson"), ("authorization", "Bearer sk-1")]);
    }

    #[test]
    fn openai_responses() {
        let streamed = json!({"model": "m", "input": chat(), "stream": true, "max_output_tokens": 20});
        let whole = json!({"model": "m", "input": chat(), "max_output_tokens": 20});
        let mut exact = streamed.clone();
        exact["ignore_eos"] = json!(true);
        exact["min_tokens"] = json!(20);
        snapshots(Api::OpenaiResponses, [streamed, whole, exact]);

        let user_only = Prompt { messages: PROMPT.messages[3..].to_vec() };
        assert_eq!(
            body(&request(Api::OpenaiResponses, &Ask { prompt: &user_only, ..ask() }))["input"],
            json!("the sea?")
        );
        let request = request(Api::OpenaiResponses, &ask());
        assert_eq!(request.path, "/v1/responses");
        assert_eq!(headers(&request), [("accept", "text/event-stream"), ("authorization", "Bearer sk-1")]);
    }

    #[test]
    fn openai_embeddings() {
        let one = json!({"model": "m", "input": "be brief\n\nhi\n\nhello\n\nthe sea?"});
        snapshots(Api::OpenaiEmbeddings, [one.clone(), one.clone(), one]);
        let request = request(Api::OpenaiEmbeddings, &ask());
        assert_eq!(request.path, "/v1/embeddings");
        assert_eq!(headers(&request), [("accept", "application/json"), ("authorization", "Bearer sk-1")]);
    }

    #[test]
    fn gemini() {
        let one = json!({
            "systemInstruction": {"parts": [{"text": "be brief"}]},
            "contents": [
                {"role": "user", "parts": [{"text": "hi"}]},
                {"role": "model", "parts": [{"text": "hello"}]},
                {"role": "user", "parts": [{"text": "the sea?"}]},
            ],
            "generationConfig": {"maxOutputTokens": 20},
        });
        snapshots(Api::Gemini, [one.clone(), one.clone(), one]);
        let streamed = request(Api::Gemini, &ask());
        assert_eq!(streamed.path, "/v1beta/models/m:streamGenerateContent?alt=sse");
        assert_eq!(headers(&streamed), [("accept", "text/event-stream"), ("x-goog-api-key", "sk-1")]);
        let whole = request(Api::Gemini, &Ask { delivery: Delivery::Whole, ..ask() });
        assert_eq!(whole.path, "/v1beta/models/m:generateContent");
        assert!(!format!("{streamed:?}").contains("sk-1"));

        let of = |url: &str, key: &str| {
            let request =
                dialect(Api::Gemini, None).request(&Url::parse(url).unwrap(), Some(&Secret::new(key)), &ask());
            let (name, value) = headers(&request)[1];
            (request.path.clone(), format!("{name}: {value}"))
        };
        let vertex = "https://us-aiplatform.googleapis.com/v1/projects/p/locations/l";
        let path = "/v1/projects/p/locations/l/publishers/google/models/m:streamGenerateContent?alt=sse";
        let bearer = "authorization: Bearer ya29.x";
        assert_eq!(of(vertex, "ya29.x"), (path.to_owned(), bearer.to_owned()));
        assert_eq!(of(vertex, "AIzax").1, "x-goog-api-key: AIzax");
        for (url, path) in [
            ("http://h/v1beta", "/v1beta/models/m:streamGenerateContent?alt=sse"),
            ("http://h/v1beta/models/", "/v1beta/models/m:streamGenerateContent?alt=sse"),
            ("http://h/v1beta/models/n", "/v1beta/models/n:streamGenerateContent?alt=sse"),
            ("http://h/v1/models/n:streamGenerateContent?alt=json", "/v1/models/n:streamGenerateContent?alt=json"),
            ("http://h/v1/models/n:generateContent?x=1", "/v1/models/n:streamGenerateContent?x=1&alt=sse"),
            (
                "http://h/v1/projects/p/locations/l/publishers/google/models/n",
                "/v1/projects/p/locations/l/publishers/google/models/n:streamGenerateContent?alt=sse",
            ),
            (
                "http://h/v1/projects/p/locations/l/endpoints/7",
                "/v1/projects/p/locations/l/endpoints/7:streamGenerateContent?alt=sse",
            ),
        ] {
            assert_eq!(of(url, "k").0, path, "{url}");
        }
    }

    #[test]
    fn cohere() {
        let streamed = json!({"model": "m", "messages": chat(), "stream": true, "max_tokens": 20});
        let whole = json!({"model": "m", "messages": chat(), "stream": false, "max_tokens": 20});
        snapshots(Api::Cohere, [streamed.clone(), whole, streamed]);
        let request = request(Api::Cohere, &ask());
        assert_eq!(request.path, "/v2/chat");
        assert_eq!(headers(&request), [("accept", "text/event-stream"), ("authorization", "Bearer sk-1")]);
    }

    #[test]
    fn custom() {
        let Value::Object(template) = json!({
            "inputs": "<{{prompt}}|{{model}}|{{max_tokens}}|{{other}}{{>",
            "parameters": {"max": "{{max_tokens}}", "chat": ["{{messages}}", " {{messages}}"], "n": 1, "x": null},
        }) else {
            panic!("an object")
        };
        let custom = Custom {
            path: "/generate?mode=raw".to_owned(),
            body: template,
            text: "/text".to_owned(),
            input_tokens: None,
            output_tokens: None,
            end: None,
            framing: CustomFraming::Ndjson,
        };
        // What the prompt holds is no template.
        let messages = vec![Message::new(Role::User, "hi {{model}}")];
        let prompt = Prompt { messages };
        let ask = Ask { prompt: &prompt, ..ask() };
        let dialect = dialect(Api::Custom, Some(&custom));
        let of = |url: &str| dialect.request(&Url::parse(url).unwrap(), Some(&Secret::new("sk-1")), &ask);
        let request = of("http://h");
        assert_eq!(
            body(&request),
            json!({
                "inputs": "<hi {{model}}|m|{{max_tokens}}|{{other}}{{>",
                "parameters": {
                    "max": 20,
                    "chat": [[{"role": "user", "content": "hi {{model}}"}], " {{messages}}"],
                    "n": 1,
                    "x": null,
                },
            })
        );
        assert_eq!(headers(&request), [("accept", "application/x-ndjson"), ("authorization", "Bearer sk-1")]);
        assert_eq!(request.path, "/generate?mode=raw");
        assert_eq!(of("http://h/api?a=1").path, "/api/generate?mode=raw&a=1");
    }

    #[test]
    fn azure_has_a_header_and_a_prefix_of_its_own() {
        let of = |url: &str, key: &str| {
            let url = Url::parse(url).unwrap();
            let request = dialect(Api::OpenaiChat, None).request(&url, Some(&Secret::new(key)), &ask());
            let (name, value) = headers(&request)[1];
            (request.path.clone(), format!("{name}: {value}"), dialect(Api::OpenaiChat, None).models_path(&url))
        };
        let deployment = "https://me.openai.azure.com/openai/deployments/d?api-version=2024-10-21";
        let path = "/openai/deployments/d/chat/completions?api-version=2024-10-21";
        let models = "/openai/models?api-version=2024-10-21";
        assert_eq!(of(deployment, "k"), (path.into(), "api-key: k".into(), models.into()));
        assert_eq!(of("http://proxy/openai/deployments/d", "k").1, "api-key: k");
        assert_eq!(of(deployment, "eyJx").1, "authorization: Bearer eyJx");
        let (path, header, models) = of("https://me.services.ai.azure.com", "k");
        assert_eq!((path.as_str(), models.as_str()), ("/openai/v1/chat/completions", "/openai/v1/models"));
        assert_eq!(header, "api-key: k");
    }

    #[test]
    fn a_whole_answer_is_asked_for_as_json() {
        for api in Api::ALL {
            let request = request(api, &Ask { delivery: Delivery::Whole, ..ask() });
            assert!(headers(&request).contains(&("accept", "application/json")), "{}", api.name());
        }
    }

    #[test]
    fn routes_are_joined() {
        for (api, url, path, models) in [
            (Api::OpenaiCompletions, "http://h/v1/", "/v1/completions", "/v1/models"),
            (Api::OpenaiCompletions, "http://h/v1/completions", "/v1/completions", "/v1/models"),
            (Api::Anthropic, "http://h", "/v1/messages", "/v1/models"),
            (Api::Anthropic, "http://h/v1", "/v1/messages", "/v1/models"),
            (
                Api::Anthropic,
                "http://h/anthropic/v1/messages?beta=true",
                "/anthropic/v1/messages?beta=true",
                "/anthropic/v1/models?beta=true",
            ),
            (Api::Ollama, "http://h/", "/api/chat", "/api/tags"),
            (Api::Ollama, "http://h/api", "/api/chat", "/api/tags"),
            (Api::OpenaiResponses, "http://h/v1", "/v1/responses", "/v1/models"),
            (Api::OpenaiEmbeddings, "http://h/v1/embeddings", "/v1/embeddings", "/v1/models"),
            (Api::Gemini, "http://h", "/v1beta/models/m:streamGenerateContent?alt=sse", "/v1beta/models"),
            (
                Api::Gemini,
                "http://h/v1/models/n?x=1",
                "/v1/models/n:streamGenerateContent?x=1&alt=sse",
                "/v1/models?x=1",
            ),
            (Api::Cohere, "http://h", "/v2/chat", "/v1/models"),
            (Api::Cohere, "http://h/cohere/v2/chat", "/cohere/v2/chat", "/cohere/v1/models"),
            (Api::Ollama, "http://h/ollama/api/chat", "/ollama/api/chat", "/ollama/api/tags"),
        ] {
            let url = Url::parse(url).unwrap();
            assert_eq!(dialect(api, None).request(&url, None, &ask()).path, path);
            assert_eq!(dialect(api, None).models_path(&url), models);
        }
    }

    #[test]
    fn only_a_refusal_that_names_the_other_field_wants_it() {
        let openai = r#"{"error":{"message":"Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.","type":"invalid_request_error","param":"max_tokens","code":"unsupported_parameter"}}"#;
        let too_large =
            r#"{"error":{"message":"'max_tokens' or 'max_completion_tokens' is too large: 1000000","code":400}}"#;
        let other = r#"{"error":{"message":"no such model","code":400}}"#;
        let wanted = Some(MaxTokensField::MaxCompletionTokens);
        for (api, status, body, field) in [
            (Api::OpenaiChat, 400, openai, wanted),
            (Api::OpenaiChat, 404, openai, None),
            (Api::OpenaiChat, 400, too_large, None),
            (Api::OpenaiChat, 400, other, None),
            (Api::OpenaiChat, 400, "", None),
            (Api::OpenaiCompletions, 400, openai, None),
            (Api::Anthropic, 400, openai, None),
            (Api::Ollama, 400, openai, None),
        ] {
            assert_eq!(
                dialect(api, None).wants_field(status, body.as_bytes()),
                field,
                "{} {status} {body}",
                api.name()
            );
        }
    }

    #[test]
    fn the_message_of_each_dialects_error() {
        for (api, body, message) in [
            (
                Api::Anthropic,
                r#"{"type":"error","error":{"type":"invalid_request_error","message":"max_tokens: field required"},"request_id":"r"}"#,
                "max_tokens: field required",
            ),
            (Api::Ollama, r#"{"error":"model 'm' not found"}"#, "model 'm' not found"),
            (Api::OpenaiCompletions, r#"{"detail":"Not Found"}"#, "Not Found"),
        ] {
            assert_eq!(dialect(api, None).error_message(body.as_bytes()).as_deref(), Some(message));
        }
    }
}
