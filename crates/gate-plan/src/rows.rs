//! Which row of a prompt file each conversation gets.

use std::collections::HashSet;
use std::sync::Arc;

use gate_model::{GateSpec, Message, PromptFormat, Role};

use crate::draw::{Purpose, Stream};
use crate::error::PlanError;
use crate::prompt_file::{PromptFile, PromptRow, identity};

/// A scenario's share of its prompt file: which rows may be sent, in which order, and how.
///
/// Plain rows keep the file's order; of data sets all rows that are long enough are sampled in an order drawn from the
/// seed, each once. The first are measured and the last are for warm-up, so that more measured ones change neither.
pub(crate) struct Rows {
    file: PromptFile,
    order: Arc<[u32]>,
    warmup: u32,
    /// Whether the user's messages are turns of a conversation, and the recorded answers are left out.
    in_turns: bool,
    least_turns: u32,
}

impl Rows {
    pub(crate) fn new(spec: &GateSpec, scenario: u16, file: &PromptFile) -> Self {
        let (load, prompts) = (spec.load_of(scenario), spec.prompts_of(scenario));
        let in_turns = prompts.turns.max > 1 || file.format() == PromptFormat::Sharegpt;
        let least_turns = if prompts.turns.max > 1 { prompts.turns.min } else { 1 };
        let long_enough = |row: &PromptRow| !in_turns || turns_of(row) >= least_turns;
        let rows = (0..).zip(file.rows()).filter(|(_, row)| long_enough(row));
        let mut order: Vec<u32> = rows.map(|(place, _)| place).collect();
        if file.format() != PromptFormat::Rows {
            Stream::new(load.seed, Purpose::Rows, scenario).part(0).shuffle(&mut order);
        }
        Self { file: file.clone(), order: order.into(), warmup: load.warmup, in_turns, least_turns }
    }

    fn at(&self, place: usize) -> Option<&PromptRow> {
        self.order.get(place).and_then(|row| self.file.rows().get(*row as usize))
    }

    /// The row of a measured conversation; past the last row, which no plan asks for, the last.
    pub(crate) fn measured(&self, conversation: u32) -> Option<&PromptRow> {
        self.at(conversation as usize).or_else(|| self.at(self.order.len().saturating_sub(1)))
    }

    /// The row of a warm-up request.
    pub(crate) fn warmup(&self, number: u32) -> Option<&PromptRow> {
        let start = self.order.len().saturating_sub(self.warmup as usize);
        self.at(start + number as usize).or_else(|| self.at(self.order.len().saturating_sub(1)))
    }

    /// How many turns a row has.
    pub(crate) fn turns(&self, row: &PromptRow) -> u32 {
        if self.in_turns { turns_of(row) } else { 1 }
    }

    /// What the first request of a row's conversation says.
    pub(crate) fn opening(&self, row: &PromptRow) -> Vec<Message> {
        if !self.in_turns {
            return row.messages.clone();
        }
        let system = row.messages.iter().filter(|message| message.role == Role::System);
        system.chain(user(row).take(1)).cloned().collect()
    }

    /// What the user says in a later turn.
    pub(crate) fn later(&self, row: &PromptRow, turn: u16) -> Option<Message> {
        user(row).nth(turn.into()).cloned()
    }

    /// The input tokens of a turn by the estimate.
    pub(crate) fn input_tokens(&self, row: &PromptRow, turn: u16) -> u32 {
        match turn {
            0 if !self.in_turns => row.input_tokens(),
            0 => estimate(&self.opening(row)),
            _ => self.later(row, turn).map_or(1, |message| estimate(&[message])),
        }
    }

    /// There are rows for every conversation, and more than one prompt among them where that is asked for.
    pub(crate) fn check(&self, measured: u32, one_is_meant: bool) -> Result<(), PlanError> {
        let (rows, warmup) = (self.order.len(), self.warmup);
        if (rows as u64) < u64::from(measured) + u64::from(warmup) {
            let all = self.file.rows().len();
            if rows < all {
                let turns = self.least_turns;
                return Err(PlanError::TooFewConversations { long: rows, turns, rows: all, measured, warmup });
            }
            return Err(PlanError::TooFewRows { rows, measured, warmup });
        }
        let distinct = || {
            let rows = (0..measured).filter_map(|conversation| self.measured(conversation));
            rows.map(identity).collect::<HashSet<_>>().len()
        };
        if measured > 1 && !one_is_meant && distinct() == 1 {
            return Err(PlanError::OnePrompt { measured });
        }
        Ok(())
    }
}

fn user(row: &PromptRow) -> impl Iterator<Item = &Message> {
    row.messages.iter().filter(|message| message.role == Role::User)
}

fn turns_of(row: &PromptRow) -> u32 {
    u32::try_from(user(row).count()).unwrap_or(u32::MAX)
}

fn estimate(messages: &[Message]) -> u32 {
    let texts: Vec<&str> = messages.iter().map(|message| message.text.as_str()).collect();
    gate_tokens::estimate(&texts.join(" "))
}
