//! Prompts written from built-in prose.

use std::sync::OnceLock;

use gate_model::{GateSpec, PlannedRequest};

use crate::draw::{Draws, Purpose};
use crate::fit::Fit;
use crate::lengths::typical;
use crate::nonce::{Nonces, Phase};
use crate::prose::Prose;

const MEASURED: &str = include_str!("pride_and_prejudice.txt");
const WARMUP: &str = include_str!("persuasion.txt");

/// The most tokens that a chat template is taken to add. What a server counts beyond that is a prompt of its own.
const MOST_ADDED: f64 = 200.0;

/// A text of its own for each request.
pub(crate) struct ProseTexts {
    seed: u64,
    nonces: Nonces,
    measured: Prose,
    warmup: Prose,
    most_added: f64,
    fit: OnceLock<Fit>,
}

impl ProseTexts {
    pub(crate) fn new(spec: &GateSpec, run_id: &str) -> Self {
        Self {
            seed: spec.load.seed,
            nonces: Nonces::new(run_id),
            measured: Prose::new(MEASURED),
            warmup: Prose::new(WARMUP),
            // What a system prompt adds cannot be told from what a template does, and is not to be made up for.
            most_added: if spec.prompts.system.is_some() { 0.0 } else { MOST_ADDED },
            fit: OnceLock::new(),
        }
    }

    /// The text of a measured request, drawn by `number`.
    pub(crate) fn measured(&self, request: &PlannedRequest, number: u32) -> String {
        let planned = request.input_tokens;
        let goal = self.fit.get().map_or(unfitted(planned), |fit| fit.goal(planned));
        let head = format!("{}\n", self.nonces.get(Phase::Measured, number));
        let draws = Draws::new(self.seed, Purpose::Passage, number.into());
        text(&head, goal, request.output_tokens, &self.measured, draws)
    }

    /// The text of a warm-up request, drawn by `number`.
    pub(crate) fn warmup(&self, request: &PlannedRequest, number: u32) -> String {
        let head = format!("{}\n", self.nonces.get(Phase::Warmup, number));
        let draws = Draws::new(self.seed, Purpose::WarmupPassage, number.into());
        text(&head, unfitted(request.input_tokens), request.output_tokens, &self.warmup, draws)
    }

    /// Learns how the server counts, once.
    pub(crate) fn fit(&self, counted: &[(u32, u64)]) {
        if let Some(fit) = Fit::of(counted, self.most_added) {
            self.fit.get_or_init(|| fit);
        }
    }
}

/// The one text of a gate that measures a warm cache: of the mean length, and with the mean length in its wish.
pub(crate) fn repeated(spec: &GateSpec) -> String {
    let goal = unfitted(typical(&spec.prompts.input_tokens));
    let words = if spec.target.api.generates() { typical(&spec.prompts.output_tokens) } else { 0 };
    let draws = Draws::new(spec.load.seed, Purpose::Passage, 0);
    text("", goal, words, &Prose::new(MEASURED), draws)
}

/// So many tokens by the estimate, in thousandths.
fn unfitted(tokens: u32) -> u64 {
    1000 * u64::from(tokens)
}

/// A text of `goal` thousandths of a token: `head`, which is empty or ends in a line break, a passage, and the wish
/// for a continuation of so many words; without the wish where nothing is to be generated.
fn text(head: &str, goal: u64, words: u32, prose: &Prose, mut draws: Draws) -> String {
    if words == 0 {
        let room = goal.saturating_sub(gate_tokens::thousandths(head)).max(prose.shortest());
        return format!("{head}{}", prose.passage(&mut draws, room));
    }
    let left = |wish: &str| goal.checked_sub(gate_tokens::thousandths(&format!("{head}\n{wish}")));
    // A passage is worth its place from half the shortest on: the message is then closer to the goal with it.
    let room = |wish: &String| left(wish).filter(|&left| 2 * left >= prose.shortest());

    // A word is more than a token, so an answer of as many words is long enough to be cut where planned.
    let long = format!("Continue this text in about {words} words.");
    let short = format!("Write {words} words.");
    [long, short.clone()]
        .iter()
        .find_map(|wish| {
            let passage = prose.passage(&mut draws, room(wish)?);
            Some(format!("{head}{passage}\n{wish}"))
        })
        .unwrap_or_else(|| format!("{head}{short}"))
}
