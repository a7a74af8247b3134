//! What each request says.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use gate_model::{Cache, CountTokens, GateSpec, Image, Message, PlannedRequest, Prompt, Prompts, Role};

use crate::earlier::Earlier;
use crate::files::Files;
use crate::nonce::{Nonces, Phase};
use crate::rows::Rows;
use crate::ruler::Ruler;
use crate::texts::{Books, ProseTexts, Wanted};

/// The prompts of one run of a gate, as its spec asks for them, scenario by scenario.
///
/// **From built-in prose**, without a `prompts.file`: a nonce, a passage, and the wish for a continuation, in one
/// message of the user. The passage is cut from public-domain prose by (seed, scenario, number of the conversation,
/// turn); warm-up passages come from another book. The message has the planned input tokens by
/// [`gate_tokens::estimate`], or by a tokenizer ([`SpecPrompts::count_by`]), to one token from 25 tokens on and to four
/// below; the shortest has about 13. With `cache: warm` one text without a nonce is sent throughout, in warm-up too, so
/// that the cache is warm when it is measured.
///
/// **From a file**: the messages of each conversation's row, the first rows for measured requests and the last ones for
/// warm-up. Plain rows go as they are and in the file's order; data sets in an order drawn from the seed.
///
/// **A shared prefix** is a passage by (seed, scenario, group) at the very start of what the user says first, the same
/// in warm-up.
///
/// **The nonce**, only with `cache: bust`, comes after system prompt and shared prefix and before everything else. It
/// is drawn from (run id, index) and, against servers that count alike, is the only part that differs between two runs
/// of one plan. Both requests of a pair say the same, to the nonce: the pair's number stands for their index, in the
/// file and in all that is drawn.
///
/// **Later turns** carry the whole conversation: what the user said, word for word, and the answers that were really
/// given. They have no nonce of their own, so that they share with the turn before what real traffic shares.
///
/// `prompts.system` goes before all of this, except where a row of the file has a system message of its own: the row's
/// is then the only one. Its tokens come on top of the planned ones. `prompts.images` go with the last message of the
/// first turn.
///
/// # Fitted lengths
///
/// Servers count by tokenizers and templates of their own. [`Prompts::fit`] takes what they counted in warm-up, and
/// from then on a measured message of built-in prose is as long as makes the server count about the planned tokens:
/// its scale (0.5 to 2) and what its template adds (0 to 200 tokens) are a line of least squares, or only the latter
/// where the planned lengths hardly differ. With a system prompt, whose tokens the server counts too, only the scale
/// is fitted. A fit is of the scenarios that were warmed up since the one before (of all, where none was), and of each
/// the first one counts; with `cache: warm` or a file nothing is fitted. Servers that count alike get equal texts, and
/// the plan itself stays as it is. Before a fit, the template's tokens come on top.
pub struct SpecPrompts {
    nonces: Nonces,
    earlier: Earlier,
    voices: Vec<Voice>,
}

/// What a scenario says.
struct Voice {
    scenario: u16,
    system: Option<Message>,
    images: Vec<Image>,
    has_nonces: bool,
    texts: ProseTexts,
    /// The rows of a file, instead of prose.
    rows: Option<Rows>,
    /// Whether a warm-up prompt was asked for since the last fit.
    warmed: AtomicBool,
}

impl SpecPrompts {
    /// The prompts of one run; `files` are what the spec's files hold, as given to [`crate::plans`].
    #[must_use]
    pub fn new(spec: &GateSpec, run_id: &str, files: &[Files]) -> Self {
        let books = Arc::new(Books::new(Ruler::Estimate));
        let none = Files::default();
        let voice = |scenario: u16| {
            let files = files.get(usize::from(scenario)).unwrap_or(&none);
            let prompts = spec.prompts_of(scenario);
            Voice {
                scenario,
                system: prompts.system.clone().map(|text| Message::new(Role::System, text)),
                images: files.images.clone(),
                has_nonces: prompts.cache == Cache::Bust,
                texts: ProseTexts::new(spec, scenario, files, Arc::clone(&books)),
                rows: files.prompts.as_ref().map(|file| Rows::new(spec, scenario, file)),
                warmed: AtomicBool::new(false),
            }
        };
        let scenarios = 0..u16::try_from(spec.scenarios.len().max(1)).unwrap_or(u16::MAX);
        Self { nonces: Nonces::new(run_id), earlier: Earlier::new(spec, files), voices: scenarios.map(voice).collect() }
    }

    /// Cuts a scenario's prose to its planned tokens by this tokenizer instead of the estimate. The sentences are
    /// counted once, here; while requests are sent only what stands around a passage is.
    #[must_use]
    pub fn count_by(mut self, scenario: u16, counter: Arc<dyn CountTokens>) -> Self {
        if let Some(voice) = self.voices.get_mut(usize::from(scenario)) {
            voice.texts.measure_by(Ruler::Counter(counter));
        }
        self
    }

    fn voice(&self, request: &PlannedRequest) -> Option<&Voice> {
        self.voices.get(usize::from(request.scenario)).or(self.voices.first())
    }

    /// What the first turn of a request's conversation says.
    fn opening(&self, voice: &Voice, phase: Phase, request: &PlannedRequest) -> Vec<Message> {
        let number = request.opening();
        let nonce = voice.has_nonces.then(|| self.nonces.get(phase, voice.scenario, number));
        let mut messages = match &voice.rows {
            Some(rows) => voice.row_messages(rows, phase, request, nonce),
            None => {
                let wanted = self.wanted(request, 0);
                vec![Message::new(Role::User, voice.texts.text(phase, &wanted, nonce))]
            }
        };
        if let Some(system) = &voice.system
            && !messages.iter().any(|message| message.role == Role::System)
        {
            messages.insert(0, system.clone());
        }
        if let Some(last) = messages.iter_mut().rfind(|message| message.role == Role::User) {
            last.images.extend(voice.images.iter().cloned());
        }
        messages
    }

    /// What the user says in a later turn.
    fn later(&self, voice: &Voice, request: &PlannedRequest, turn: u16) -> Option<Message> {
        match &voice.rows {
            Some(rows) => rows.later(rows.measured(request.conversation())?, turn),
            None => {
                let wanted = self.wanted(request, turn);
                Some(Message::new(Role::User, voice.texts.text(Phase::Measured, &wanted, None)))
            }
        }
    }

    /// The text of a turn of a request's conversation; its lengths are the request's own, or those that the plan has
    /// for the earlier turn.
    fn wanted(&self, request: &PlannedRequest, turn: u16) -> Wanted {
        let conversation = request.conversation();
        let own = (request.input_tokens, request.output_tokens);
        let earlier = || self.earlier.lengths(request.scenario, conversation, turn);
        let (input_tokens, output_tokens) = if turn == request.turn { own } else { earlier().unwrap_or(own) };
        Wanted { conversation, turn, group: request.group, input_tokens, output_tokens }
    }
}

impl Voice {
    /// A row's messages, with shared prefix and nonce in front of what the user says first.
    fn row_messages(&self, rows: &Rows, phase: Phase, request: &PlannedRequest, nonce: Option<String>) -> Vec<Message> {
        let conversation = request.conversation();
        let row = match phase {
            Phase::Measured => rows.measured(conversation),
            Phase::Warmup => rows.warmup(conversation),
        };
        let mut messages = row.map_or_else(Vec::new, |row| rows.opening(row));
        if let Some(first) = messages.iter_mut().find(|message| message.role == Role::User) {
            let prefix = self.texts.prefix(request.group).map_or_else(String::new, |(prefix, _)| prefix);
            let nonce = nonce.map_or_else(String::new, |nonce| format!("{nonce}\n"));
            first.text.insert_str(0, &format!("{prefix}{nonce}"));
        }
        messages
    }
}

impl Prompts for SpecPrompts {
    fn measured(&self, request: &PlannedRequest, answers: &[String]) -> Prompt {
        let Some(voice) = self.voice(request) else { return Prompt { messages: Vec::new() } };
        let mut messages = self.opening(voice, Phase::Measured, request);
        for turn in 1..=request.turn {
            let answer = answers.get(usize::from(turn) - 1);
            messages.extend(answer.map(|answer| Message::new(Role::Assistant, answer.as_str())));
            messages.extend(self.later(voice, request, turn));
        }
        Prompt { messages }
    }

    fn warmup(&self, request: &PlannedRequest) -> Prompt {
        let Some(voice) = self.voice(request) else { return Prompt { messages: Vec::new() } };
        voice.warmed.store(true, Ordering::Relaxed);
        Prompt { messages: self.opening(voice, Phase::Warmup, request) }
    }

    fn fit(&self, counted: &[(u32, u64)]) {
        let warmed: Vec<&Voice> =
            self.voices.iter().filter(|voice| voice.warmed.swap(false, Ordering::Relaxed)).collect();
        let voices = if warmed.is_empty() { self.voices.iter().collect() } else { warmed };
        for voice in voices {
            voice.texts.fit(counted);
        }
    }
}
