//! `gate decode`: what the decoder sees in a saved stream, for people whose server is odd.

use gate_model::ExitCode;
use gate_wire::{Decoded, by_name, decode_names, decode_saved};

use crate::cli::Decode;
use crate::console::Console;
use crate::failure::Failure;
use crate::files;

pub(crate) fn decode(arguments: &Decode, console: &Console) -> Result<ExitCode, Failure> {
    let dialect = by_name(&arguments.api).ok_or_else(|| {
        Failure::usage(format!("no dialect `{}`", arguments.api))
            .hint(format!("they are {}", decode_names().join(", ")))
    })?;
    let bytes = files::read_bytes(&arguments.file, files::MEDIUM)?;
    let decoded = decode_saved(&*dialect, &bytes);
    let text = if arguments.json {
        let json = serde_json::to_string_pretty(&decoded);
        json.map_err(|error| Failure::internal(format!("cannot write what was decoded: {error}")))? + "\n"
    } else {
        page(&decoded)
    };
    console.data(&text)?;
    Ok(ExitCode::Passed)
}

/// What a person wants to know of a stream, one fact a line.
fn page(decoded: &Decoded) -> String {
    let count = |number: Option<u64>| number.map_or_else(|| "not given".to_owned(), |number| number.to_string());
    let index = |event: Option<u64>| event.map_or_else(|| "none".to_owned(), |event| format!("event {event}"));
    let kinds = &decoded.events_by_kind;
    let mut lines = vec![
        ("events", format!("{}, {} with content", decoded.events, decoded.content_events)),
        (
            "of a kind",
            format!(
                "{} text, {} reasoning, {} tool, {} refusal",
                kinds.text, kinds.reasoning, kinds.tool, kinds.refusal
            ),
        ),
        ("first token", index(decoded.first_token_event)),
        ("first text", index(decoded.first_text_event)),
        ("characters", format!("{} of text, {} of reasoning", decoded.text_chars, decoded.reasoning_chars)),
    ];
    if let Some(usage) = decoded.usage {
        let usage = format!(
            "{} in ({} cached), {} out ({} reasoning)",
            count(usage.input),
            count(usage.cached),
            count(usage.output),
            count(usage.reasoning)
        );
        lines.push(("tokens", usage));
    } else {
        lines.push(("tokens", "the stream gives no usage".to_owned()));
    }
    let reason = decoded.finish_reason.as_deref().unwrap_or("none");
    lines.push(("finish reason", gate_report::escape::terminal(reason)));
    lines.push(("ended", if decoded.ended { "yes, by its terminal event" } else { "no terminal event" }.to_owned()));
    if let Some(error) = &decoded.error {
        let kind = error.kind.as_deref().map(|kind| format!("{kind}: ")).unwrap_or_default();
        let message = error.message.as_deref().unwrap_or("without a message");
        lines.push(("error", gate_report::escape::terminal(&format!("{kind}{message}"))));
    }
    lines.iter().map(|(name, value)| format!("{name:<14}{value}\n")).collect()
}
