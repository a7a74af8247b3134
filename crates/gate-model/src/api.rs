//! The dialects an endpoint can speak.

use serde::{Deserialize, Serialize};

/// The dialect an endpoint speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Api {
    /// OpenAI chat completions.
    OpenaiChat,
    /// OpenAI completions, the older route.
    OpenaiCompletions,
    /// OpenAI responses.
    OpenaiResponses,
    /// OpenAI embeddings: one body, and no token is generated.
    OpenaiEmbeddings,
    /// Anthropic messages.
    Anthropic,
    /// Gemini, and Vertex AI.
    Gemini,
    /// Bedrock's `converse-stream`.
    BedrockConverse,
    /// Bedrock's `invoke-with-response-stream`, with Anthropic's messages inside.
    BedrockInvoke,
    /// Cohere's chat, version 2.
    Cohere,
    /// Ollama's own chat, or its `generate`.
    Ollama,
    /// Text Generation Inference's own `generate_stream`.
    Tgi,
    /// llama.cpp's own `completion`.
    Llamacpp,
    /// SGLang's own `generate`.
    Sglang,
    /// Triton's generate extension.
    Triton,
    /// A stream of JSON that the spec's `target.custom` describes.
    Custom,
}

impl Api {
    /// Every dialect.
    pub const ALL: [Self; 15] = [
        Self::OpenaiChat,
        Self::OpenaiCompletions,
        Self::OpenaiResponses,
        Self::OpenaiEmbeddings,
        Self::Anthropic,
        Self::Gemini,
        Self::BedrockConverse,
        Self::BedrockInvoke,
        Self::Cohere,
        Self::Ollama,
        Self::Tgi,
        Self::Llamacpp,
        Self::Sglang,
        Self::Triton,
        Self::Custom,
    ];

    /// The name as written in a spec.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::OpenaiChat => "openai-chat",
            Self::OpenaiCompletions => "openai-completions",
            Self::OpenaiResponses => "openai-responses",
            Self::OpenaiEmbeddings => "openai-embeddings",
            Self::Anthropic => "anthropic",
            Self::Gemini => "gemini",
            Self::BedrockConverse => "bedrock-converse",
            Self::BedrockInvoke => "bedrock-invoke",
            Self::Cohere => "cohere",
            Self::Ollama => "ollama",
            Self::Tgi => "tgi",
            Self::Llamacpp => "llamacpp",
            Self::Sglang => "sglang",
            Self::Triton => "triton",
            Self::Custom => "custom",
        }
    }

    /// Whether requests are signed with AWS credentials where no key is given.
    #[must_use]
    pub fn is_bedrock(self) -> bool {
        matches!(self, Self::BedrockConverse | Self::BedrockInvoke)
    }

    /// Whether messages may show images, by URL and by their bytes.
    #[must_use]
    pub fn takes_images(self) -> bool {
        matches!(self, Self::OpenaiChat | Self::OpenaiResponses | Self::Anthropic | Self::Gemini)
    }

    /// Whether a request is a list of messages with roles, and so can be a conversation of several turns; the other
    /// dialects are sent the messages' texts as one. Ollama's `generate` is one of those too, though its chat is not,
    /// and so is a custom body without `{{messages}}`.
    #[must_use]
    pub fn takes_turns(self) -> bool {
        !matches!(
            self,
            Self::OpenaiCompletions | Self::OpenaiEmbeddings | Self::Tgi | Self::Llamacpp | Self::Sglang | Self::Triton
        )
    }

    /// Whether answers carry generated tokens; embeddings don't.
    #[must_use]
    pub fn generates(self) -> bool {
        self != Self::OpenaiEmbeddings
    }
}

/// How a custom stream is cut into events.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CustomFraming {
    /// Server-sent events.
    #[default]
    Sse,
    /// One JSON document a line.
    Ndjson,
}

/// A dialect of the spec's own (`target.custom`): the request, and JSON pointers (RFC 6901) into each event.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Custom {
    /// The route, such as `/generate`; joined to the target's URL as a dialect's own route is.
    pub path: String,
    /// The request's body. In its strings `{{prompt}}` and `{{model}}` stand for the text and the model; a string that
    /// is `{{max_tokens}}` or `{{messages}}` and nothing else becomes the number, or the list of `{role, content}`.
    pub body: serde_json::Map<String, serde_json::Value>,
    /// Where an event's text is.
    pub text: String,
    /// Where the count of input tokens is.
    pub input_tokens: Option<String>,
    /// Where the count of output tokens is.
    pub output_tokens: Option<String>,
    /// Where an event says that it is the last: the value there is neither absent, null, false nor empty. A `[DONE]`
    /// is the last without it.
    pub end: Option<String>,
    /// How events are framed.
    pub framing: CustomFraming,
}
