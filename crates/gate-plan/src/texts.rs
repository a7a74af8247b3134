//! Prompts written from built-in prose.

use std::sync::{Arc, OnceLock};

use gate_model::{Cache, GateSpec, SharedPrefix};

use crate::draw::{Draws, Purpose, Stream};
use crate::files::Files;
use crate::fit::Fit;
use crate::lengths::typical;
use crate::nonce::Phase;
use crate::prose::Prose;
use crate::ruler::Ruler;

const MEASURED: &str = include_str!("pride_and_prejudice.txt");
const WARMUP: &str = include_str!("persuasion.txt");

/// The most tokens that a chat template is taken to add. What a server counts beyond that is a prompt of its own.
const MOST_ADDED: f64 = 200.0;

/// The books that passages are cut from, and what measures them.
pub(crate) struct Books {
    measured: Prose,
    warmup: Prose,
    ruler: Ruler,
}

impl Books {
    pub(crate) fn new(ruler: Ruler) -> Self {
        Self { measured: Prose::new(MEASURED, &ruler), warmup: Prose::new(WARMUP, &ruler), ruler }
    }
}

/// Which text is asked for.
#[derive(Clone, Copy)]
pub(crate) struct Wanted {
    /// The number of the conversation among its scenario's.
    pub(crate) conversation: u32,
    /// The turn.
    pub(crate) turn: u16,
    /// Which of the shared prefixes.
    pub(crate) group: u16,
    /// The planned input tokens.
    pub(crate) input_tokens: u32,
    /// The planned output tokens.
    pub(crate) output_tokens: u32,
}

/// A scenario's texts.
pub(crate) struct ProseTexts {
    seed: u64,
    scenario: u16,
    books: Arc<Books>,
    prefix: Option<SharedPrefix>,
    /// The length that a warm cache's one text wishes for.
    warm: Option<u32>,
    /// Whether each text has a number at its end: no nonce tells it from the others, and there are not many short ones.
    numbered: bool,
    most_added: f64,
    fit: OnceLock<Fit>,
}

impl ProseTexts {
    pub(crate) fn new(spec: &GateSpec, scenario: u16, files: &Files, books: Arc<Books>) -> Self {
        let prompts = spec.prompts_of(scenario);
        let wish = || match spec.target.api.generates() {
            true => typical(&prompts.output_tokens, files.output_lengths.as_ref()),
            false => 0,
        };
        Self {
            seed: spec.load_of(scenario).seed,
            scenario,
            books,
            prefix: prompts.shared_prefix.filter(|prefix| prefix.tokens > 0),
            warm: (prompts.cache == Cache::Warm).then(wish),
            numbered: prompts.cache == Cache::Natural,
            // What a system prompt adds cannot be told from what a template does, and is not to be made up for.
            most_added: if prompts.system.is_some() { 0.0 } else { MOST_ADDED },
            fit: OnceLock::new(),
        }
    }

    /// Measures by a tokenizer from now on.
    pub(crate) fn measure_by(&mut self, ruler: Ruler) {
        self.books = Arc::new(Books::new(ruler));
    }

    /// A text, with a nonce where one is given.
    pub(crate) fn text(&self, phase: Phase, wanted: &Wanted, nonce: Option<String>) -> String {
        let (book, purpose) = match (phase, self.warm) {
            (Phase::Warmup, None) => (&self.books.warmup, Purpose::WarmupPassage),
            _ => (&self.books.measured, Purpose::Passage),
        };
        let planned = wanted.input_tokens;
        let goal = match self.fit.get().filter(|_| self.warm.is_none() && matches!(phase, Phase::Measured)) {
            Some(fit) if wanted.turn == 0 => fit.goal(planned),
            Some(fit) => fit.goal_of_later(planned),
            None => 1000 * u64::from(planned),
        };
        let number = if self.warm.is_some() { 0 } else { wanted.conversation };
        let draws = self.stream(purpose).part(u64::from(wanted.turn) << 32 | u64::from(number));
        let words = self.warm.unwrap_or(wanted.output_tokens);
        let nonce = nonce.map_or_else(String::new, |nonce| format!("{nonce}\n"));
        let mark = match self.numbered {
            true => format!("Question {}.", wanted.conversation.saturating_add(1)),
            false => String::new(),
        };
        match self.prefix.filter(|_| wanted.turn == 0) {
            None => self.written((&nonce, &mark), goal, words, book, draws),
            Some(_) => {
                let (prefix, cost) = self.prefix(wanted.group).unwrap_or_default();
                let own = self.written((&nonce, &mark), goal.saturating_sub(cost), words, book, draws);
                format!("{prefix}{own}")
            }
        }
    }

    /// The shared prefix of a group with the line break after it, and their length in thousandths of a token. It is the
    /// same in warm-up, as a system prompt is.
    pub(crate) fn prefix(&self, group: u16) -> Option<(String, u64)> {
        let cost = 1000 * u64::from(self.prefix?.tokens);
        let mut draws = self.stream(Purpose::Prefix).part(group.into());
        let room = cost.saturating_sub(gate_tokens::LINE_BREAK);
        Some((format!("{}\n", self.books.measured.passage(&mut draws, room)), cost))
    }

    /// Learns how the server counts, once.
    pub(crate) fn fit(&self, counted: &[(u32, u64)]) {
        if let Some(fit) = Fit::of(counted, self.most_added) {
            self.fit.get_or_init(|| fit);
        }
    }

    fn stream(&self, purpose: Purpose) -> Stream {
        Stream::new(self.seed, purpose, self.scenario)
    }

    /// A text of `goal` thousandths of a token: `head`, which is empty or ends in a line break, a passage, the wish for a
    /// continuation of so many words, and `mark`, which may be empty; without the wish where nothing is to be generated.
    fn written(&self, (head, mark): (&str, &str), goal: u64, words: u32, prose: &Prose, mut draws: Draws) -> String {
        let ruler = &self.books.ruler;
        let marked = |text: String, between: &str| match mark {
            "" => text,
            mark => format!("{text}{between}{mark}"),
        };
        if words == 0 {
            let around = marked(head.to_owned(), "\n");
            let room = goal.saturating_sub(ruler.thousandths(&around)).max(prose.shortest());
            return marked(format!("{head}{}", prose.passage(&mut draws, room)), "\n");
        }
        let left = |wish: &str| goal.checked_sub(ruler.thousandths(&format!("{head}\n{wish}")));
        // A passage is worth its place from half the shortest on: the message is then closer to the goal with it.
        let room = |wish: &String| left(wish).filter(|&left| 2 * left >= prose.shortest());

        // A word is more than a token, so an answer of as many words is long enough to be cut where planned.
        let long = marked(format!("Continue this text in about {words} words."), " ");
        let short = marked(format!("Write {words} words."), " ");
        [long, short.clone()]
            .iter()
            .find_map(|wish| {
                let passage = prose.passage(&mut draws, room(wish)?);
                Some(format!("{head}{passage}\n{wish}"))
            })
            .unwrap_or_else(|| format!("{head}{short}"))
    }
}
