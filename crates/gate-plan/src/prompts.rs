//! The text of each request.

use gate_model::{GateSpec, Message, PlannedRequest, Prompt, Prompts, Role};

use crate::draw::{Draws, Purpose};
use crate::nonce::Nonces;
use crate::prose::Prose;

const MEASURED: &str = include_str!("pride_and_prejudice.txt");
const WARMUP: &str = include_str!("persuasion.txt");

/// Nonces of warm-up requests count from here, past every index of a measured one.
const WARMUP_NONCES: u64 = 1 << 32;

/// Prompts of natural text: a nonce, a passage, and the wish for a continuation, one user message in all.
///
/// The passage is cut from public-domain prose by (seed, index); warm-up passages come from another book. The
/// nonce is drawn from (run id, index) and is the only part that differs between two runs of one plan. Both
/// arms of a pair get the same text.
///
/// The message has the planned input tokens by [`gate_tokens::estimate`], to one token from 25 tokens on
/// and to four below; the shortest message has about 13. The server's chat template adds its own.
pub struct ProsePrompts {
    seed: u64,
    nonces: Nonces,
    measured: Prose,
    warmup: Prose,
}

impl ProsePrompts {
    /// The prompts of one run of a gate.
    #[must_use]
    pub fn new(spec: &GateSpec, run_id: &str) -> Self {
        Self {
            seed: spec.load.seed,
            nonces: Nonces::new(run_id),
            measured: Prose::new(MEASURED),
            warmup: Prose::new(WARMUP),
        }
    }
}

impl Prompts for ProsePrompts {
    fn measured(&self, request: &PlannedRequest) -> Prompt {
        let number = number(request);
        prompt(request, &self.nonces.get(number), &self.measured, Draws::new(self.seed, Purpose::Passage, number))
    }

    fn warmup(&self, request: &PlannedRequest) -> Prompt {
        let number = number(request);
        let draws = Draws::new(self.seed, Purpose::WarmupPassage, number);
        prompt(request, &self.nonces.get(WARMUP_NONCES + number), &self.warmup, draws)
    }
}

/// What a request's text is drawn by: both arms of a pair say the same.
fn number(request: &PlannedRequest) -> u64 {
    u64::from(request.pair.unwrap_or(request.index))
}

fn prompt(request: &PlannedRequest, nonce: &str, prose: &Prose, mut draws: Draws) -> Prompt {
    let goal = 1000 * u64::from(request.input_tokens);
    // A word is more than a token, so an answer of as many words is long enough to be cut where planned.
    let words = request.output_tokens;
    let left = |wish: &str| goal.checked_sub(gate_tokens::thousandths(&format!("{nonce}\n\n{wish}")));
    // A passage is worth its place from half the shortest on: the message is then closer to the goal with it.
    let room = |wish: &String| left(wish).filter(|&left| 2 * left >= prose.shortest());

    let long = format!("Continue this text in about {words} words.");
    let short = format!("Write {words} words.");
    let text = [long, short.clone()]
        .iter()
        .find_map(|wish| {
            let passage = prose.passage(&mut draws, room(wish)?);
            Some(format!("{nonce}\n{passage}\n{wish}"))
        })
        .unwrap_or_else(|| format!("{nonce}\n{short}"));
    Prompt { messages: vec![Message { role: Role::User, text }] }
}
