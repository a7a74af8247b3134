//! How much memory a KV cache takes.

use gate_capacity::{Architecture, Attention, Dtype, Fit, Layer, Memory, Room};
use serde::Serialize;

use super::table::{bytes, facts, grouped, percent, table};
use super::{json, refused};
use crate::cli::Kv;
use crate::failure::Failure;
use crate::files;

/// Contexts and batches that a table shows beside those that were asked for.
const CONTEXTS: [u64; 4] = [2_048, 8_192, 32_768, 131_072];
const BATCHES: [u64; 4] = [1, 8, 32, 128];

/// The most contexts and batches that can be asked for.
const MOST: usize = 50;

#[derive(Serialize)]
struct Answer {
    model: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    source: Option<String>,
    architecture: Architecture,
    dtype: Dtype,
    weights_dtype: Dtype,
    parameters: Option<u64>,
    weights_bytes: Option<u64>,
    memory: Option<Memory>,
    cells: Vec<Cell>,
    /// The most sequences within 85 % of memory, by context.
    most_sequences: Vec<(u64, u64)>,
}

#[derive(Clone, Copy, Serialize)]
struct Cell {
    context: u64,
    batch: u64,
    /// Whether it was asked for; the others stand beside it in the table.
    asked: bool,
    cache_bytes: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    fit: Option<Fit>,
}

pub(super) fn answer(asked: &Kv) -> Result<String, Failure> {
    if asked.context.len() > MOST || asked.batch.len() > MOST {
        return Err(Failure::usage(format!("--context and --batch take at most {MOST} numbers each")));
    }
    let answer = work_out(asked)?;
    if asked.json { json(&answer) } else { Ok(page(&answer)) }
}

fn work_out(asked: &Kv) -> Result<Answer, Failure> {
    let (model, source, parameters, architecture) = match (&asked.which.model, &asked.which.config) {
        (Some(name), _) => {
            let known = gate_capacity::model(name).map_err(refused)?;
            (known.name, Some(known.source), Some(known.parameters), known.architecture)
        }
        (None, Some(file)) => {
            let read = gate_capacity::architecture(&files::read(file, files::SMALL)?).map_err(|error| {
                let failure = refused(error);
                Failure { message: format!("{}: {}", file.display(), failure.message), ..failure }
            })?;
            (gate_report::escape::terminal(&file.display().to_string()), None, None, read)
        }
        (None, None) => return Err(Failure::usage("name a model with --model, or its config.json with --config")),
    };
    let parameters = asked.parameters.map(|number| number.round() as u64).or(parameters);
    let weights_dtype = asked.weights_dtype.unwrap_or(asked.dtype);
    let weights =
        parameters.map(|count| gate_capacity::weight_bytes(count, weights_dtype)).transpose().map_err(refused)?;
    let memory = asked.gpu_memory.map(|per_gpu| Memory { per_gpu, gpus: asked.gpus });
    let with = |own: &[u64], usual: &[u64], most: u64| -> Vec<u64> {
        let usual = usual.iter().copied().filter(|number| *number <= most);
        let mut all: Vec<u64> = own.iter().copied().chain(usual).collect();
        all.sort_unstable();
        all.dedup();
        all
    };
    let contexts = with(&asked.context, &CONTEXTS, architecture.max_context.unwrap_or(u64::MAX));
    let batches = with(&asked.batch, &BATCHES, u64::MAX);
    let mut cells = Vec::new();
    for (context, batch) in contexts.iter().flat_map(|context| batches.iter().map(move |batch| (*context, *batch))) {
        let cache = gate_capacity::cache_bytes(&architecture, context, batch, asked.dtype).map_err(refused)?;
        let fit = memory.map(|memory| gate_capacity::fit(&architecture, cache, weights.unwrap_or(0), memory));
        let fit = fit.transpose().map_err(refused)?;
        let asked = asked.context.contains(&context) && asked.batch.contains(&batch);
        cells.push(Cell { context, batch, asked, cache_bytes: cache, fit });
    }
    let mut most_sequences = Vec::new();
    for (context, memory) in contexts.iter().zip(memory.iter().cycle()) {
        let most = gate_capacity::most_sequences(&architecture, *context, asked.dtype, weights.unwrap_or(0), *memory);
        most_sequences.push((*context, most.map_err(refused)?));
    }
    Ok(Answer {
        model,
        source,
        architecture,
        dtype: asked.dtype,
        weights_dtype,
        parameters,
        weights_bytes: weights,
        memory,
        cells,
        most_sequences,
    })
}

fn page(answer: &Answer) -> String {
    let known = answer
        .source
        .as_ref()
        .map(|source| format!(", as the config.json of {source} said on {}", gate_capacity::MODELS_DATE));
    let mut lines = vec![
        ("model", format!("{}{}", answer.model, known.unwrap_or_default())),
        ("cache", formula(&answer.architecture, answer.dtype)),
    ];
    lines.extend(windows(&answer.architecture).map(|words| ("windows", words)));
    if let (Some(parameters), Some(weights)) = (answer.parameters, answer.weights_bytes) {
        let words = format!("{} parameters in {}: {}", grouped(parameters), answer.weights_dtype, bytes(weights));
        lines.push(("weights", words));
    } else if answer.memory.is_some() {
        lines.push(("weights", "not counted: --parameters says how many there are".to_owned()));
    }
    if let Some(memory) = answer.memory {
        let gpus = if memory.gpus == 1 { "1 GPU".to_owned() } else { format!("{} GPUs", grouped(memory.gpus)) };
        lines.push(("memory", format!("{gpus} of {}", bytes(memory.per_gpu))));
    }
    let mut text = facts(&lines) + "\n";
    for cell in answer.cells.iter().filter(|cell| cell.asked) {
        text.push_str(&sentence(cell));
    }
    text.push('\n');
    text.push_str(&grid(answer));
    if answer.cells.iter().any(|cell| cell.fit.is_some()) {
        text.push_str("\n! over 85 % of memory, !! over 95 %, x more than there is; activations, CUDA graphs and\nfragmentation take their part beside weights and cache.\n");
    }
    let longest = answer.architecture.max_context;
    if let Some(longest) = longest.filter(|longest| answer.cells.iter().any(|cell| cell.context > *longest)) {
        text.push_str(&format!("\nwarning: the model takes at most {} tokens.\n", grouped(longest)));
    }
    text
}

/// `2 × 80 layers × 8 KV heads × 128 × context × batch × 2 bytes (fp16)`.
fn formula(model: &Architecture, dtype: Dtype) -> String {
    let layers = model.layers.len() - model.kinds()[2];
    let each = match dtype.bits() {
        8 => "1 byte".to_owned(),
        bits if bits < 8 => format!("{bits} bits"),
        bits => format!("{} bytes", bits / 8),
    };
    match model.attention {
        Attention::Heads { kv_heads, head_dim } => {
            format!("2 × {layers} layers × {kv_heads} KV heads × {head_dim} × context × batch × {each} ({dtype})")
        }
        Attention::Latent { rank, rope } => {
            format!("{layers} layers × ({rank} + {rope}) × context × batch × {each} ({dtype}): one latent, MLA")
        }
    }
}

fn windows(model: &Architecture) -> Option<String> {
    let [full, windowed, state] = model.kinds();
    let window = model.layers.iter().find_map(|layer| match layer {
        Layer::Window(window) => Some(*window),
        _ => None,
    });
    let mut parts = Vec::new();
    parts.extend(window.map(|window| {
        format!("{windowed} of {} layers keep the last {} tokens, {full} keep all", model.layers.len(), grouped(window))
    }));
    parts.extend((state > 0).then(|| format!("{state} layers keep a state of fixed size, not counted here")));
    (!parts.is_empty()).then(|| parts.join("; "))
}

fn sentence(cell: &Cell) -> String {
    let start = format!(
        "{} tokens × {}: {} ({} bytes)",
        grouped(cell.context),
        grouped(cell.batch),
        bytes(cell.cache_bytes),
        grouped(cell.cache_bytes)
    );
    let Some(fit) = cell.fit else { return start + "\n" };
    let copies =
        if fit.cache > cell.cache_bytes { format!(", {} on all GPUs", bytes(fit.cache)) } else { String::new() };
    let room = match fit.room {
        Room::Fits => "fits",
        Room::Tight => "warning: over 85 %, a longer prompt or a larger batch may not fit",
        Room::TooTight => "warning: over 95 %, activations and fragmentation will hardly fit beside it",
        Room::DoesNotFit => "does not fit",
    };
    format!("{start}{copies}, {} of memory with the weights: {room}\n", percent(fit.used))
}

/// The cache by context and batch.
fn grid(answer: &Answer) -> String {
    let mut batches: Vec<u64> = answer.cells.iter().map(|cell| cell.batch).collect();
    batches.sort_unstable();
    batches.dedup();
    let mut head = vec!["context \\ batch".to_owned()];
    head.extend(batches.iter().map(|batch| grouped(*batch)));
    let has_most = !answer.most_sequences.is_empty();
    head.extend(has_most.then(|| "most within 85 %".to_owned()));
    let mut rows = vec![head];
    for line in answer.cells.chunks(batches.len().max(1)) {
        let Some(first) = line.first() else { continue };
        let mark = |cell: &Cell| match cell.fit.map(|fit| fit.room) {
            None => "",
            Some(Room::Fits) => "  ",
            Some(Room::Tight) => " !",
            Some(Room::TooTight) => "!!",
            Some(Room::DoesNotFit) => " x",
        };
        let mut row = vec![grouped(first.context)];
        let kept = |cell: &Cell| cell.fit.map_or(cell.cache_bytes, |fit| fit.cache);
        row.extend(line.iter().map(|cell| format!("{}{}", bytes(kept(cell)), mark(cell))));
        let most = answer.most_sequences.iter().find(|(context, _)| *context == first.context);
        row.extend(most.map(|(_, most)| grouped(*most)));
        rows.push(row);
    }
    table(&rows)
}
