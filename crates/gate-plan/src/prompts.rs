//! What each request says.

use gate_model::{Cache, GateSpec, Message, PlannedRequest, Prompt, Prompts, Role};

use crate::nonce::{Nonces, Phase};
use crate::prompt_file::{PromptFile, PromptRow};
use crate::texts::{ProseTexts, repeated};

/// The prompts of one run of a gate, as its spec asks for them.
///
/// **From built-in prose**, without a `prompts.file`: a nonce, a passage, and the wish for a continuation, in one
/// message of the user. The passage is cut from public-domain prose by (seed, index); warm-up passages come from
/// another book. The message has the planned input tokens by [`gate_tokens::estimate`], to one token from 25 tokens
/// on and to four below; the shortest has about 13. With `cache: warm` one text without a nonce is sent throughout,
/// in warm-up too, so that the cache is warm when it is measured.
///
/// **From a file**: the messages of each request's row as they are, the first rows for measured requests and the last
/// ones for warm-up. With `cache: bust` the first message of the user begins with a nonce and a line break, which the
/// planned input tokens leave out; with `cache: warm` nothing is added.
///
/// The nonce is drawn from (run id, index) and, against servers that count alike, is the only part that differs
/// between two runs of one plan. Both requests of a pair say the same, to the nonce: the pair's number stands for their
/// index, in the file and in all that is drawn.
///
/// `prompts.system` goes before all of this, except where a row of the file has a system message of its own: the row's
/// is then the only one. Its tokens come on top of the planned ones.
///
/// # Fitted lengths
///
/// Servers count by tokenizers and templates of their own. [`Prompts::fit`] takes what they counted in warm-up, and
/// from then on a measured message of built-in prose is as long as makes the server count about the planned tokens:
/// its scale (0.5 to 2) and what its template adds (0 to 200 tokens) are a line of least squares, or only the latter
/// where the planned lengths hardly differ. With a system prompt, whose tokens the server counts too, only the scale
/// is fitted. The first fit counts; with `cache: warm` or a file nothing is fitted. Servers that count alike get equal
/// texts, and the plan itself stays as it is. Before a fit, the template's tokens come on top.
pub struct SpecPrompts {
    system: Option<Message>,
    source: Source,
}

enum Source {
    /// Prose, another passage in each request.
    Prose(Box<ProseTexts>),
    /// One text in all requests.
    Repeated(String),
    /// The rows of a file, with so many for warm-up.
    File { file: PromptFile, warmup: u32, nonces: Option<Nonces> },
}

impl SpecPrompts {
    /// The prompts of one run; `file` is what the spec's `prompts.file` holds, as given to [`crate::plan`].
    #[must_use]
    pub fn new(spec: &GateSpec, run_id: &str, file: Option<&PromptFile>) -> Self {
        let system = spec.prompts.system.clone().map(|text| Message { role: Role::System, text });
        let source = match (file, spec.prompts.cache) {
            (None, Cache::Bust) => Source::Prose(Box::new(ProseTexts::new(spec, run_id))),
            (None, Cache::Warm) => Source::Repeated(repeated(spec)),
            (Some(file), cache) => {
                let nonces = (cache == Cache::Bust).then(|| Nonces::new(run_id));
                Source::File { file: file.clone(), warmup: spec.load.warmup, nonces }
            }
        };
        Self { system, source }
    }

    /// The messages with the system prompt before them, unless they have their own.
    fn prompt(&self, mut messages: Vec<Message>) -> Prompt {
        if let Some(system) = &self.system
            && !messages.iter().any(|message| message.role == Role::System)
        {
            messages.insert(0, system.clone());
        }
        Prompt { messages }
    }
}

impl Prompts for SpecPrompts {
    fn measured(&self, request: &PlannedRequest) -> Prompt {
        let number = number(request);
        self.prompt(match &self.source {
            Source::Prose(texts) => vec![user(texts.measured(request, number))],
            Source::Repeated(text) => vec![user(text.clone())],
            Source::File { file, nonces, .. } => {
                let nonce = nonces.as_ref().map(|nonces| nonces.get(Phase::Measured, number));
                messages(file.rows(), number, nonce)
            }
        })
    }

    fn warmup(&self, request: &PlannedRequest) -> Prompt {
        let number = number(request);
        self.prompt(match &self.source {
            Source::Prose(texts) => vec![user(texts.warmup(request, number))],
            Source::Repeated(text) => vec![user(text.clone())],
            Source::File { file, warmup, nonces } => {
                let nonce = nonces.as_ref().map(|nonces| nonces.get(Phase::Warmup, number));
                messages(file.warmup(*warmup), number, nonce)
            }
        })
    }

    fn fit(&self, counted: &[(u32, u64)]) {
        if let Source::Prose(texts) = &self.source {
            texts.fit(counted);
        }
    }
}

/// What a request's text is drawn by: both arms of a pair say the same.
fn number(request: &PlannedRequest) -> u32 {
    request.pair.unwrap_or(request.index)
}

fn user(text: String) -> Message {
    Message { role: Role::User, text }
}

/// The messages of a row, with a nonce in front of what the user says first. A plan has a row for each request; for
/// one of another plan the last row stands in.
fn messages(rows: &[PromptRow], number: u32, nonce: Option<String>) -> Vec<Message> {
    let row = rows.get(number as usize).or(rows.last());
    let mut messages = row.map_or_else(Vec::new, |row| row.messages.clone());
    let first = messages.iter_mut().find(|message| message.role == Role::User);
    if let (Some(nonce), Some(first)) = (nonce, first) {
        first.text.insert_str(0, &format!("{nonce}\n"));
    }
    messages
}
