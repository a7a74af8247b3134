//! `gate decode`: what the decoder sees in a saved stream, for people whose server is odd.

use std::io::Read;
use std::path::Path;

use gate_model::{Api, ExitCode};
use gate_wire::{Decoded, by_name, decode_names, decode_saved};

use crate::cli::Decode;
use crate::console::Console;
use crate::failure::Failure;
use crate::files;

pub(crate) fn decode(arguments: &Decode, console: &Console) -> Result<ExitCode, Failure> {
    let dialect = by_name(&arguments.api).ok_or_else(|| {
        let names = format!("they are {}", decode_names().join(", "));
        if arguments.api == Api::Custom.name() {
            Failure::usage("`custom` is described by a spec, and here is none: `gate run` decodes it").hint(names)
        } else {
            Failure::usage(format!("no dialect `{}`", arguments.api)).hint(names)
        }
    })?;
    let bytes = body(&arguments.file)?;
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

/// The body: a file's, or standard input where the file is `-`.
fn body(file: &Path) -> Result<Vec<u8>, Failure> {
    if file != Path::new("-") {
        return files::read_bytes(file, files::MEDIUM);
    }
    let name = Path::new("standard input");
    let mut bytes = Vec::new();
    let read = std::io::stdin().lock().take(files::MEDIUM).read_to_end(&mut bytes);
    read.map_err(|error| Failure::unreadable(name, error))?;
    if bytes.len() as u64 == files::MEDIUM {
        return Err(Failure::unreadable(name, format!("it is larger than {} MiB", files::MEDIUM >> 20)));
    }
    Ok(bytes)
}

/// What a person wants to know of a stream, one fact a line. Events are counted from 1, as messages count them.
fn page(decoded: &Decoded) -> String {
    let count = |number: Option<u64>| number.map_or_else(|| "not given".to_owned(), |number| number.to_string());
    let index = |event: Option<u64>| {
        event.map_or_else(|| "none".to_owned(), |event| format!("event {}", event.saturating_add(1)))
    };
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
    let reason = decoded.reason.as_ref().map(|reason| format!(": {}", gate_report::escape::terminal(reason)));
    lines.push(("outcome", format!("{}{}", decoded.outcome.name(), reason.unwrap_or_default())));
    lines.iter().map(|(name, value)| format!("{name:<14}{value}\n")).collect()
}
