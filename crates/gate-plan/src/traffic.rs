//! What one scenario sends, conversation after conversation.

use gate_model::{Cache, GateSpec, Nanos, Turns};

use crate::draw::{Purpose, Stream};
use crate::error::PlanError;
use crate::files::Files;
use crate::lengths::{Lengths, MOST_TOKENS, Times, typical};
use crate::levels::whole;
use crate::nonce::Phase;
use crate::prompt_file::PromptRow;
use crate::rows::Rows;
use crate::trace::TraceRow;

/// The most turns of a conversation.
const MOST_TURNS: u32 = 1000;

/// What a question of its own takes after a shared prefix, in tokens: a nonce, the shortest sentence and the wish.
const ROOM: u32 = 16;

/// The kind of traffic of a scenario, as its spec asks for it.
pub(crate) struct Traffic {
    scenario: u16,
    seed: u64,
    warmup: u32,
    turns: Turns,
    think: Times,
    /// A shared prefix's tokens and number, where there is one.
    prefix: Option<(u32, u16)>,
    rows: Option<Rows>,
    /// Input lengths, where neither rows nor a trace has them.
    inputs: Option<Lengths>,
    /// The one input length of a warm cache.
    same: Option<u32>,
    /// Output lengths; none where nothing is generated.
    outputs: Option<Lengths>,
    /// Whether prompts may all be the same.
    one_is_meant: bool,
}

/// The draws of a scenario, on their way.
pub(crate) struct Flow<'a> {
    traffic: &'a Traffic,
    phase: Phase,
    turns: Option<Box<dyn Iterator<Item = u32>>>,
    groups: Option<Box<dyn Iterator<Item = u32>>>,
    thinks: Box<dyn Iterator<Item = Nanos> + 'a>,
    inputs: Option<Box<dyn Iterator<Item = u32> + 'a>>,
    outputs: Option<Box<dyn Iterator<Item = u32> + 'a>>,
    /// Conversations so far.
    pub(crate) conversations: u32,
    /// Requests so far.
    pub(crate) requests: u32,
}

/// A conversation that was begun.
#[derive(Clone, Copy)]
pub(crate) struct Conversation<'a> {
    /// How many turns it has.
    pub(crate) turns: u32,
    /// Which of the shared prefixes.
    pub(crate) group: u16,
    /// Its number among the scenario's.
    pub(crate) number: u32,
    row: Option<&'a PromptRow>,
}

impl Traffic {
    pub(crate) fn new(spec: &GateSpec, scenario: u16, files: &Files) -> Result<Self, PlanError> {
        let (load, prompts) = (spec.load_of(scenario), spec.prompts_of(scenario));
        let read = |key: &'static str, named: &Option<String>, is_read: bool| match named {
            Some(file) if !is_read => Err(PlanError::FileNotRead { key, file: file.clone() }),
            _ => Ok(()),
        };
        read("prompts.file", &prompts.file, files.prompts.is_some())?;
        let empirical = ("prompts.input_tokens.empirical", "prompts.output_tokens.empirical");
        read(empirical.0, &prompts.input_empirical, files.input_lengths.is_some())?;
        read(empirical.1, &prompts.output_empirical, files.output_lengths.is_some())?;

        let Turns { min, max } = prompts.turns;
        if min == 0 || min > max || max > MOST_TURNS {
            return Err(PlanError::Turns { min, max, most: MOST_TURNS });
        }
        let rows = files.prompts.as_ref().map(|file| Rows::new(spec, scenario, file));
        let seen = files.input_lengths.as_ref();
        let inputs = match rows {
            Some(_) => None,
            None => Some(Lengths::new("prompts.input_tokens", &prompts.input_tokens, seen)?),
        };
        let outputs = match spec.target.api.generates() {
            true => {
                let seen = files.output_lengths.as_ref();
                Some(Lengths::new("prompts.output_tokens", &prompts.output_tokens, seen)?)
            }
            false => None,
        };
        let prefix = prompts.shared_prefix.filter(|prefix| prefix.tokens > 0);
        if let (Some(prefix), Some(inputs)) = (prefix, &inputs) {
            let traced = files.trace.as_ref().and_then(|trace| trace.rows().iter().map(|row| row.input_tokens).min());
            let least = traced.unwrap_or_else(|| inputs.least());
            if least < prefix.tokens.saturating_add(ROOM) {
                return Err(PlanError::NoRoom { tokens: prefix.tokens, least, room: ROOM });
            }
        }
        let is_warm = prompts.cache == Cache::Warm;
        Ok(Self {
            scenario,
            seed: load.seed,
            warmup: load.warmup,
            turns: prompts.turns,
            think: Times::new("prompts.think", &prompts.think)?,
            prefix: prefix.map(|prefix| (prefix.tokens, prefix.groups)),
            same: inputs.is_some().then(|| typical(&prompts.input_tokens, seen)).filter(|_| is_warm),
            rows,
            inputs,
            outputs,
            one_is_meant: is_warm,
        })
    }

    /// How many requests warm up.
    pub(crate) fn warmup(&self) -> u32 {
        self.warmup
    }

    /// The draws of a phase, from their start.
    pub(crate) fn flow(&self, phase: Phase) -> Flow<'_> {
        let (inputs, outputs, groups) = match phase {
            Phase::Measured => (Purpose::InputLengths, Purpose::OutputLengths, Purpose::Groups),
            Phase::Warmup => (Purpose::WarmupInputLengths, Purpose::WarmupOutputLengths, Purpose::WarmupGroups),
        };
        let stream = |purpose| Stream::new(self.seed, purpose, self.scenario);
        let boxed = |purpose, count| Box::new(whole(stream(purpose), count)) as Box<dyn Iterator<Item = u32>>;
        let Turns { min, max } = self.turns;
        let is_measured = matches!(phase, Phase::Measured);
        Flow {
            traffic: self,
            phase,
            // The row may have fewer turns, so its draw is only scaled to them below.
            turns: (is_measured && max > 1).then(|| boxed(Purpose::Turns, max - min + 1)),
            groups: self.prefix.filter(|(_, groups)| *groups > 1).map(|(_, count)| boxed(groups, count.into())),
            thinks: Box::new(self.think.draw(stream(Purpose::Thinks))),
            inputs: self.inputs.as_ref().filter(|_| self.same.is_none()).map(|lengths| lengths.draw(stream(inputs))),
            outputs: self.outputs.as_ref().map(|lengths| lengths.draw(stream(outputs))),
            conversations: 0,
            requests: 0,
        }
    }

    /// Whether its prompt file is enough for so many measured conversations.
    pub(crate) fn check_rows(&self, conversations: u32) -> Result<(), PlanError> {
        self.rows.as_ref().map_or(Ok(()), |rows| rows.check(conversations, self.one_is_meant))
    }
}

impl<'a> Flow<'a> {
    /// Begins the next conversation.
    pub(crate) fn begin(&mut self) -> Conversation<'a> {
        let number = self.conversations;
        self.conversations += 1;
        let rows = self.traffic.rows.as_ref();
        let row = rows.and_then(|rows| match self.phase {
            Phase::Measured => rows.measured(number),
            Phase::Warmup => rows.warmup(number),
        });
        let drawn = self.turns.as_mut().and_then(Iterator::next);
        let drawn = drawn.map_or(1, |more| self.traffic.turns.min + more);
        let most = rows.zip(row).map_or(u32::MAX, |(rows, row)| rows.turns(row));
        let group = self.groups.as_mut().and_then(Iterator::next).unwrap_or(0);
        Conversation { turns: drawn.min(most).max(1), group: u16::try_from(group).unwrap_or(0), number, row }
    }

    /// The time from the answer before a later turn to it.
    pub(crate) fn think(&mut self) -> Nanos {
        self.thinks.next().unwrap_or(Nanos::ZERO)
    }

    /// Input and output tokens of a turn; `traced` is the row that a trace gives its conversation.
    pub(crate) fn lengths(
        &mut self,
        conversation: &Conversation<'_>,
        turn: u16,
        traced: Option<&TraceRow>,
    ) -> Result<(u32, u32), PlanError> {
        let index = self.requests;
        self.requests += 1;
        let traffic = self.traffic;
        let traced = traced.filter(|_| turn == 0);
        let drawn = self.inputs.as_mut().and_then(Iterator::next).or(traffic.same).unwrap_or(1);
        let prefix = traffic.prefix.filter(|_| turn == 0).map_or(0, |(tokens, _)| tokens);
        let input = match (traffic.rows.as_ref().zip(conversation.row), traced) {
            (Some((rows, row)), _) => rows.input_tokens(row, turn).saturating_add(prefix),
            (None, Some(row)) => row.input_tokens,
            (None, None) => drawn,
        };
        let output = match self.outputs.as_mut().and_then(Iterator::next) {
            None => 0,
            Some(drawn) => {
                let of_row = conversation.row.and_then(|row| row.output_tokens);
                of_row.or(traced.map(|row| row.output_tokens)).unwrap_or(drawn)
            }
        };
        if input > MOST_TOKENS && traffic.rows.is_none() {
            let key = if traced.is_some() { "load.trace" } else { "prompts.input_tokens" };
            return Err(PlanError::TooLarge { key, index, tokens: input, limit: MOST_TOKENS });
        }
        Ok((input, output))
    }
}
