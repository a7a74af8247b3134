//! Images of messages, as dialects write them. In all of them an image stands after the text it is shown with: a
//! text may begin with a nonce, and what stands before that is a prefix that prompts share, which a cache may hold.
//!
//! A spec with images is refused where its dialect takes none ([`gate_model::Api::takes_images`]). Should one get here
//! all the same, it is sent as a server of that kind may understand it, or refuse it: it is never left out in silence.

use gate_model::{Image, Message};
use serde_json::{Value, json};

/// The URL of an image; its bytes as a `data:` URL.
pub(crate) fn url(image: &Image) -> String {
    match image {
        Image::Url(url) => url.clone(),
        Image::Inline { media_type, base64 } => format!("data:{media_type};base64,{base64}"),
    }
}

/// A part of OpenAI's chat, and of those that follow it.
pub(crate) fn openai_part(image: &Image) -> Value {
    json!({"type": "image_url", "image_url": {"url": url(image)}})
}

/// An item of OpenAI's responses.
pub(crate) fn responses_part(image: &Image) -> Value {
    json!({"type": "input_image", "image_url": url(image)})
}

/// A block of Anthropic's messages.
pub(crate) fn anthropic_part(image: &Image) -> Value {
    let source = match image {
        Image::Url(url) => json!({"type": "url", "url": url}),
        Image::Inline { media_type, base64 } => json!({"type": "base64", "media_type": media_type, "data": &**base64}),
    };
    json!({"type": "image", "source": source})
}

/// A part of Gemini's contents.
pub(crate) fn gemini_part(image: &Image) -> Value {
    match image {
        Image::Inline { media_type, base64 } => json!({"inlineData": {"mimeType": media_type, "data": &**base64}}),
        Image::Url(url) => match media_type(url) {
            Some(media_type) => json!({"fileData": {"mimeType": media_type, "fileUri": url}}),
            None => json!({"fileData": {"fileUri": url}}),
        },
    }
}

/// A block of Bedrock's converse, which has no place for a URL other than in the text.
pub(crate) fn converse_part(image: &Image) -> Value {
    match image {
        Image::Url(url) => json!({"text": url}),
        Image::Inline { media_type, base64 } => {
            let format = media_type.rsplit_once('/').map_or(media_type.as_str(), |(_, format)| format);
            json!({"image": {"format": format, "source": {"bytes": &**base64}}})
        }
    }
}

/// The text of a message, where it has any, then its images.
pub(crate) fn parts(message: &Message, of_image: fn(&Image) -> Value, of_text: fn(&str) -> Value) -> Value {
    let text = (!message.text.is_empty() || message.images.is_empty()).then(|| of_text(&message.text));
    text.into_iter().chain(message.images.iter().map(of_image)).collect()
}

/// The media type by the ending of a URL's path, which Vertex AI wants to know.
fn media_type(url: &str) -> Option<&'static str> {
    let path = url.split(['?', '#']).next().unwrap_or(url);
    let (_, ending) = path.rsplit_once('.')?;
    match ending.to_ascii_lowercase().as_str() {
        "png" => Some("image/png"),
        "jpg" | "jpeg" => Some("image/jpeg"),
        "webp" => Some("image/webp"),
        "gif" => Some("image/gif"),
        "heic" => Some("image/heic"),
        "heif" => Some("image/heif"),
        _ => None,
    }
}
