//! What dialects send of a conversation with images, and of tools.

#[cfg(test)]
mod images {
    use gate_model::{
        Api, Custom, CustomFraming, Delivery, Image, MaxTokensField, Message, OutputLength, Prompt, Role, Secret,
    };
    use gate_wire::{Ask, EventKind, Keep, dialect};
    use serde_json::{Map, Value, json};
    use url::Url;

    const URL: &str = "https://example.com/a/cat.PNG?size=1";
    const DATA: &str = "data:image/jpeg;base64,/9j/4A==";

    /// Two images with a question, its answer, and a later turn of text alone.
    fn conversation() -> Prompt {
        let images = vec![
            Image::Url(URL.to_owned()),
            Image::Inline { media_type: "image/jpeg".to_owned(), base64: "/9j/4A==".into() },
        ];
        let messages = vec![
            Message::new(Role::System, "be brief"),
            Message { images, ..Message::new(Role::User, "what is it?") },
            Message::new(Role::Assistant, "a cat"),
            Message::new(Role::User, "sure?"),
        ];
        Prompt { messages }
    }

    fn sent_with(api: Api, custom: Option<&Custom>, prompt: &Prompt, extra_body: &Map<String, Value>) -> Value {
        let ask = Ask {
            model: Some("m"),
            prompt,
            max_output_tokens: 20,
            max_tokens_field: MaxTokensField::MaxTokens,
            output: OutputLength::AtMost,
            delivery: Delivery::Streamed,
            extra_body,
        };
        let url = Url::parse("http://h").unwrap();
        let request = dialect(api, custom).request(&url, Some(&Secret::new("sk-1")), &ask);
        serde_json::from_slice(&request.body).unwrap()
    }

    fn sent(api: Api, prompt: &Prompt) -> Value {
        sent_with(api, None, prompt, &Map::new())
    }

    /// Messages in which the one with images has this content.
    fn chat(content: &Value) -> Value {
        json!([
            {"role": "system", "content": "be brief"},
            {"role": "user", "content": content},
            {"role": "assistant", "content": "a cat"},
            {"role": "user", "content": "sure?"},
        ])
    }

    fn openai_parts() -> Value {
        json!([
            {"type": "text", "text": "what is it?"},
            {"type": "image_url", "image_url": {"url": URL}},
            {"type": "image_url", "image_url": {"url": DATA}},
        ])
    }

    #[test]
    fn openai_chat_has_parts() {
        assert_eq!(sent(Api::OpenaiChat, &conversation())["messages"], chat(&openai_parts()));
    }

    #[test]
    fn openai_responses_have_items() {
        let parts = json!([
            {"type": "input_text", "text": "what is it?"},
            {"type": "input_image", "image_url": URL},
            {"type": "input_image", "image_url": DATA},
        ]);
        assert_eq!(sent(Api::OpenaiResponses, &conversation())["input"], chat(&parts));
        // A single message is a text only where it is one.
        let mut messages = conversation().messages;
        messages.retain(|message| !message.images.is_empty());
        let only = sent(Api::OpenaiResponses, &Prompt { messages });
        assert_eq!(only["input"], json!([{"role": "user", "content": parts}]));
    }

    #[test]
    fn anthropic_has_blocks_on_bedrock_too() {
        let messages = json!([
            {"role": "user", "content": [
                {"type": "text", "text": "what is it?"},
                {"type": "image", "source": {"type": "url", "url": URL}},
                {"type": "image", "source": {"type": "base64", "media_type": "image/jpeg", "data": "/9j/4A=="}},
            ]},
            {"role": "assistant", "content": "a cat"},
            {"role": "user", "content": "sure?"},
        ]);
        for api in [Api::Anthropic, Api::BedrockInvoke] {
            let body = sent(api, &conversation());
            assert_eq!((&body["messages"], &body["system"]), (&messages, &json!("be brief")));
        }
    }

    #[test]
    fn gemini_has_parts() {
        let contents = json!([
            {"role": "user", "parts": [
                {"text": "what is it?"},
                {"fileData": {"mimeType": "image/png", "fileUri": URL}},
                {"inlineData": {"mimeType": "image/jpeg", "data": "/9j/4A=="}},
            ]},
            {"role": "model", "parts": [{"text": "a cat"}]},
            {"role": "user", "parts": [{"text": "sure?"}]},
        ]);
        assert_eq!(sent(Api::Gemini, &conversation())["contents"], contents);
        let mut prompt = conversation();
        prompt.messages[1].images = vec![Image::Url("https://example.com/picture".to_owned())];
        let unnamed = json!({"fileData": {"fileUri": "https://example.com/picture"}});
        assert_eq!(sent(Api::Gemini, &prompt)["contents"][0]["parts"][1], unnamed);
    }

    #[test]
    fn an_image_without_words_is_the_whole_content() {
        let mut prompt = conversation();
        prompt.messages[1].text.clear();
        let content = &sent(Api::OpenaiChat, &prompt)["messages"][1]["content"];
        assert_eq!(content.as_array().map(Vec::len), Some(2));
    }

    /// Every dialect, whether it takes images or not.
    #[test]
    fn no_image_is_left_out_in_silence() {
        let body = json!({"messages": "{{messages}}"});
        let Value::Object(body) = body else { panic!("an object") };
        let custom = Custom {
            path: "/x".to_owned(),
            body,
            text: "/text".to_owned(),
            input_tokens: None,
            output_tokens: None,
            end: None,
            framing: CustomFraming::Sse,
        };
        for api in Api::ALL {
            let body = sent_with(api, Some(&custom), &conversation(), &Map::new()).to_string();
            assert!(body.contains(URL) && body.contains("/9j/4A=="), "{}: {body}", api.name());
            assert_eq!(body.matches("what is it?").count(), 1, "{}: {body}", api.name());
            // What the text begins with may be all that tells a prompt from others.
            let text = body.find("what is it?").unwrap();
            assert!(body.find(URL).is_some_and(|at| at > text), "{}: {body}", api.name());
            assert!(body.find("/9j/4A==").is_some_and(|at| at > text), "{}: {body}", api.name());
        }
        assert_eq!(
            sent_with(Api::Custom, Some(&custom), &conversation(), &Map::new())["messages"],
            chat(&openai_parts())
        );
    }

    /// What [`Api`] says of its dialects is what they do.
    #[test]
    fn conversations_keep_their_roles_where_they_can() {
        let mut prompt = conversation();
        prompt.messages[1].images.clear();
        let joined = "be brief\n\nwhat is it?\n\na cat\n\nsure?";
        for api in Api::ALL.into_iter().filter(|api| *api != Api::Custom) {
            let body = sent(api, &prompt);
            let is_joined = body.as_object().unwrap().values().any(|value| value == joined);
            assert_eq!(is_joined, !api.takes_turns(), "{}: {body}", api.name());
            let turns = ["messages", "input", "contents"].into_iter().find_map(|name| body[name].as_array());
            assert_eq!(turns.is_some(), api.takes_turns(), "{}: {body}", api.name());
            let roles = turns.into_iter().flatten().filter_map(|turn| turn["role"].as_str());
            let roles: Vec<_> = roles.filter(|role| *role != "system").collect();
            match roles.as_slice() {
                [] => assert!(!api.takes_turns()),
                ["user", "assistant" | "model", "user"] => {}
                other => panic!("{}: {other:?}", api.name()),
            }
        }
    }

    #[test]
    fn tools_of_the_extra_body_are_sent_and_their_calls_are_generated() {
        let tools = json!([{"type": "function", "function": {"name": "weather", "parameters": {"type": "object"}}}]);
        let Value::Object(extra) = json!({"tools": tools, "tool_choice": "required"}) else { panic!("an object") };
        let prompt = conversation();
        let body = sent_with(Api::OpenaiChat, None, &prompt, &extra);
        assert_eq!((&body["tools"], &body["tool_choice"]), (&tools, &json!("required")));
        assert_eq!(body["messages"], chat(&openai_parts()));

        let stream = concat!(
            "data: {\"choices\":[{\"delta\":{\"role\":\"assistant\",\"content\":null}}]}\n\n",
            "data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":0,\"function\":{\"name\":\"weather\",\"arguments\":\"\"}}]}}]}\n\n",
            "data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":0,\"function\":{\"arguments\":\"{}\"}}]}}]}\n\n",
            "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"tool_calls\"}]}\n\ndata: [DONE]\n\n",
        );
        let (mut decoder, mut kinds) =
            (dialect(Api::OpenaiChat, None).decoder(Delivery::Streamed, Keep::Nothing), Vec::new());
        decoder.feed(stream.as_bytes(), &mut |event| kinds.push(event.kind));
        decoder.finish(&mut |event| kinds.push(event.kind));
        let expected = [EventKind::Bare, EventKind::ToolCall, EventKind::ToolCall, EventKind::Bare, EventKind::End];
        assert_eq!(kinds, expected);
        assert_eq!(decoder.state().finish_reason.as_deref(), Some("tool_calls"));
    }
}
