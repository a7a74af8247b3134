//! What a run may use up, kept while it runs.
//!
//! Before a request is sent its worst case is claimed: the input it is planned to have, times the most that the server
//! has counted for one planned token so far, and the most output it asks for. When it ends, what the server counted
//! replaces the claim. An answer that has come to more than was claimed counts as it comes, so that a server which does
//! not heed the length it is asked for is cut off; what came of it then counts by its events. A request that asks for
//! no output, as one for embeddings, has none.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use gate_model::{Budget, EndReason, Outcome, PlannedRequest, Prices, Quantity, Sample, Spent, Unit, Usage};

/// What was used up, and what may be.
pub(crate) struct Ledger {
    budget: Budget,
    prices: Option<Prices>,
    books: Mutex<Books>,
}

/// Tokens both ways.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Tokens {
    input: u64,
    output: u64,
}

impl Tokens {
    fn plus(self, other: Self) -> Self {
        Self { input: self.input.saturating_add(other.input), output: self.output.saturating_add(other.output) }
    }

    fn minus(self, other: Self) -> Self {
        Self { input: self.input.saturating_sub(other.input), output: self.output.saturating_sub(other.output) }
    }
}

/// The state of a [`Ledger`].
struct Books {
    /// By earlier sections.
    before: Spent,
    spent: Spent,
    /// Of answers that the server did not count, as far as can be told.
    estimated: Tokens,
    /// The worst case of what is open.
    claimed: Tokens,
    /// What has come of it.
    live: Tokens,
    /// The most input tokens that the server counted for one that was planned.
    ratio: f64,
    /// The answer that went furthest beyond what was asked for.
    longest: Option<Longer>,
}

/// An answer that is longer than what was asked for, in output tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Longer {
    came: u64,
    asked: u64,
}

impl Books {
    /// Notes that an answer came to so many output tokens.
    fn note(&mut self, came: u64, asked: u64) {
        let excess = |longer: Longer| longer.came - longer.asked;
        let most = self.longest.map_or(0, excess);
        if came.saturating_sub(asked) > most {
            self.longest = Some(Longer { came, asked });
        }
    }

    /// A limit that output has passed, with what is wrong with the answers where they are too long.
    fn limit(&self, limit: String) -> String {
        let count = |count: u64| Quantity::count(count as f64);
        match self.longest {
            None => limit,
            Some(Longer { came, asked }) => {
                format!("{limit} (an answer came to {} where {} were asked for)", count(came), count(asked))
            }
        }
    }
}

/// A request's claim on the budget.
pub(crate) struct Claim {
    ledger: Arc<Ledger>,
    /// Its planned input.
    planned: u32,
    /// The output it asks for; none where nothing is generated.
    asked: u64,
    /// What the turns before it came to.
    context: u64,
    /// Its worst case, or what has come of it where that is more.
    claimed: Tokens,
    live: Tokens,
}

impl Ledger {
    /// The ledger of a section, before which so much was used up.
    pub(crate) fn new(budget: Budget, prices: Option<Prices>, before: Spent) -> Arc<Self> {
        let none = Tokens::default();
        let (spent, ratio) = (Spent::default(), 1.0);
        let books = Books { before, spent, estimated: none, claimed: none, live: none, ratio, longest: None };
        Arc::new(Self { budget, prices, books: Mutex::new(books) })
    }

    fn books(&self) -> MutexGuard<'_, Books> {
        self.books.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What this section used up; `None` where it sent nothing.
    pub(crate) fn spent(&self) -> Option<Spent> {
        let spent = self.books().spent;
        (spent.requests > 0).then_some(spent)
    }

    /// Claims the worst case of a request that follows on so many tokens of its conversation.
    ///
    /// # Errors
    /// The end of the run, where the budget does not allow it.
    pub(crate) fn claim(self: &Arc<Self>, planned: &PlannedRequest, context: u64) -> Result<Claim, EndReason> {
        let mut books = self.books();
        let input = (f64::from(planned.input_tokens) * books.ratio).ceil() as u64;
        let claimed = Tokens { input: input.saturating_add(context), output: u64::from(planned.output_tokens) };
        let open = books.claimed.plus(claimed);
        if let Some((key, limit)) = self.passed(&books, open, 1) {
            return Err(EndReason::BudgetSpent { key: key.to_owned(), limit });
        }
        books.claimed = open;
        books.spent.requests += 1;
        let (planned, asked) = (planned.input_tokens, planned.output_tokens.into());
        Ok(Claim { ledger: Arc::clone(self), planned, asked, context, claimed, live: Tokens::default() })
    }

    /// Which limit is passed with these tokens of open requests, and so many more requests.
    fn passed(&self, books: &Books, open: Tokens, more: u64) -> Option<(&'static str, String)> {
        let Budget { requests, input_tokens, output_tokens, cost } = self.budget;
        let spent = books.before.plus(books.spent);
        let rest = books.estimated.plus(open);
        let (input, output) = (spent.input.saturating_add(rest.input), spent.output.saturating_add(rest.output));
        let is_over = |limit: Option<u64>, used: u64| limit.filter(|limit| used > *limit);
        let words = |limit: u64, of: &str| {
            let plural = if limit == 1 { "" } else { "s" };
            format!("{} {of}{plural}", Quantity::count(limit as f64))
        };
        if let Some(limit) = is_over(requests, spent.requests.saturating_add(more)) {
            return Some(("budget.requests", words(limit, "request")));
        }
        if let Some(limit) = is_over(input_tokens, input) {
            return Some(("budget.input_tokens", words(limit, "input token")));
        }
        if let Some(limit) = is_over(output_tokens, output) {
            return Some(("budget.output_tokens", books.limit(words(limit, "output token"))));
        }
        let (limit, prices) = cost.zip(self.prices)?;
        let is_over = prices.cost(input, spent.cached, output) > limit;
        is_over.then(|| ("budget.cost", books.limit(Quantity { value: limit, unit: Unit::Dollars }.to_string())))
    }

    /// Whether the answers of open requests must be counted as they come.
    fn is_live(&self) -> bool {
        self.budget.output_tokens.is_some() || self.budget.cost.is_some()
    }
}

impl Claim {
    /// The answer has come to so many output tokens. Gives the key of the budget that all open answers have passed
    /// together, and the end of the run.
    pub(crate) fn comes_to(&mut self, output: u64) -> Option<(&'static str, EndReason)> {
        if !self.ledger.is_live() || output <= self.live.output || self.asked == 0 {
            return None;
        }
        let mut books = self.ledger.books();
        books.note(output, self.asked);
        let live = Tokens { input: self.claimed.input, output };
        let claimed = Tokens { output: self.claimed.output.max(output), ..self.claimed };
        books.live = books.live.minus(self.live).plus(live);
        books.claimed = books.claimed.minus(self.claimed).plus(claimed);
        (self.live, self.claimed) = (live, claimed);
        let (key, limit) = self.ledger.passed(&books, books.live, 0)?;
        Some((key, EndReason::BudgetSpent { key: key.to_owned(), limit }))
    }

    /// Replaces the claim by what the request used up, and gives what its conversation came to.
    pub(crate) fn settle(self, sample: &Sample) -> u64 {
        let Self { ledger, planned, asked, context, claimed, live } = self;
        let mut books = ledger.books();
        books.claimed = books.claimed.minus(claimed);
        books.live = books.live.minus(live);
        let usage = counted(sample, asked);
        let events = u64::from(sample.content_events);
        if let Some(input) = usage.input.filter(|_| planned > 0) {
            let ratio = input.saturating_sub(context) as f64 / f64::from(planned);
            books.ratio = books.ratio.max(ratio);
        }
        if asked > 0 {
            books.note(usage.output.unwrap_or(events), asked);
        }
        let unknown = unknown(sample, usage, claimed);
        // Nobody will count what did not come to its end: so much there was at least.
        let broken_off = if sample.outcome == Outcome::Ok { 0 } else { events.min(unknown.output) };
        let spent = &mut books.spent;
        // What found no connection was not asked of the server.
        spent.requests = spent.requests.saturating_sub(u64::from(sample.writing.is_none()));
        spent.input = spent.input.saturating_add(usage.input.unwrap_or(0));
        spent.cached = spent.cached.saturating_add(usage.cached.unwrap_or(0));
        spent.output = spent.output.saturating_add(usage.output.unwrap_or(broken_off));
        spent.uncounted += u64::from(unknown != Tokens::default());
        books.estimated = books.estimated.plus(Tokens { output: unknown.output - broken_off, ..unknown });
        usage.input.unwrap_or(claimed.input).saturating_add(usage.output.unwrap_or(events))
    }
}

/// What the server counted; where no output was asked for there was none.
fn counted(sample: &Sample, asked: u64) -> Usage {
    let usage = sample.usage.unwrap_or_default();
    if asked == 0 { Usage { output: usage.output.or(Some(0)), ..usage } } else { usage }
}

/// What a request used up that the server did not count: nothing where it was not sent, or refused.
fn unknown(sample: &Sample, usage: Usage, claimed: Tokens) -> Tokens {
    let is_answered = sample.status.is_none_or(|status| (200..300).contains(&status));
    if !is_answered || sample.writing.is_none() {
        return Tokens::default();
    }
    let events = u64::from(sample.content_events);
    // What was not told to the end may have been given to the end.
    let output = if sample.outcome == Outcome::Ok { events } else { claimed.output.max(events) };
    Tokens {
        input: if usage.input.is_some() { 0 } else { claimed.input },
        output: if usage.output.is_some() { 0 } else { output },
    }
}

#[cfg(test)]
mod tests {
    use gate_model::Nanos;

    use super::*;

    fn planned() -> PlannedRequest {
        PlannedRequest { input_tokens: 100, output_tokens: 50, ..PlannedRequest::default() }
    }

    fn ended(outcome: Outcome, usage: Option<(u64, u64)>) -> Sample {
        let usage = usage.map(|(input, output)| Usage { input: Some(input), output: Some(output), ..Usage::default() });
        let mut sample = Sample::unsent(&planned());
        (sample.outcome, sample.usage, sample.writing, sample.status) =
            (outcome, usage, Some(Nanos::ZERO), Some(if outcome == Outcome::Http429 { 429 } else { 200 }));
        sample
    }

    fn key(claim: Result<Claim, EndReason>) -> String {
        match claim.err() {
            Some(EndReason::BudgetSpent { key, limit }) => format!("{key}: {limit}"),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_worst_case_is_claimed_and_replaced_by_what_was_counted() {
        let budget = Budget { output_tokens: Some(1_120), ..Budget::default() };
        let ledger = Ledger::new(budget, None, Spent { output: 1_000, ..Spent::default() });
        let (one, _two) = (ledger.claim(&planned(), 0).unwrap(), ledger.claim(&planned(), 0).unwrap());
        assert_eq!(key(ledger.claim(&planned(), 0)), "budget.output_tokens: 1,120 output tokens");
        assert_eq!(one.settle(&ended(Outcome::Ok, Some((110, 20)))), 130);
        assert!(ledger.claim(&planned(), 0).is_ok());
        let spent = ledger.spent().unwrap();
        assert_eq!((spent.requests, spent.input, spent.output, spent.uncounted), (3, 110, 20, 0));
    }

    #[test]
    fn input_is_claimed_by_the_most_the_server_counted_and_with_its_context() {
        let budget = Budget { input_tokens: Some(1_000), ..Budget::default() };
        let ledger = Ledger::new(budget, None, Spent::default());
        ledger.claim(&planned(), 0).unwrap().settle(&ended(Outcome::Ok, Some((200, 1))));
        assert_eq!(key(ledger.claim(&planned(), 601)), "budget.input_tokens: 1,000 input tokens");
        assert!(ledger.claim(&planned(), 600).is_ok());
        assert_eq!(ledger.spent().unwrap().requests, 2);
    }

    #[test]
    fn a_refusal_costs_nothing_and_a_lost_answer_its_worst_case() {
        let budget = Budget { output_tokens: Some(100), ..Budget::default() };
        let ledger = Ledger::new(budget, None, Spent::default());
        for _ in 0..5 {
            ledger.claim(&planned(), 0).unwrap().settle(&ended(Outcome::Http429, None));
        }
        ledger.claim(&planned(), 0).unwrap().settle(&ended(Outcome::Reset, None));
        let claim = ledger.claim(&planned(), 0).unwrap();
        assert_eq!(key(ledger.claim(&planned(), 0)), "budget.output_tokens: 100 output tokens");
        claim.settle(&ended(Outcome::Ok, Some((100, 5))));
        assert_eq!(ledger.spent().unwrap().uncounted, 1);
    }

    #[test]
    fn an_answer_without_end_passes_the_budget_as_it_comes() {
        let prices = Prices { input: 0.0, cached_input: None, output: 1e6 };
        let budget = Budget { cost: Some(100.0), ..Budget::default() };
        let ledger = Ledger::new(budget, Some(prices), Spent::default());
        let mut claim = ledger.claim(&planned(), 0).unwrap();
        assert!(claim.comes_to(60).is_none());
        let words = "budget.cost: $100.00 (an answer came to 60 where 50 were asked for)";
        assert_eq!(key(ledger.claim(&planned(), 0)), words);
        assert!(claim.comes_to(100).is_none());
        let (key, reason) = claim.comes_to(101).unwrap();
        assert!(key == "budget.cost" && reason.is_abort());
        let words = "budget.cost: $100.00 (an answer came to 101 where 50 were asked for)";
        assert_eq!(self::key(Err(reason)), words);
        let mut cut = ended(Outcome::Cancelled, None);
        cut.content_events = 101;
        claim.settle(&cut);
        // What came of it is told, and that it is no whole count.
        let spent = ledger.spent().unwrap();
        assert_eq!((spent.output, spent.input, spent.uncounted), (101, 0, 1));
        assert!(ledger.claim(&PlannedRequest { output_tokens: 0, ..planned() }, 0).is_err());
    }

    #[test]
    fn what_came_of_a_broken_answer_is_not_counted_twice() {
        let budget = Budget { output_tokens: Some(100), ..Budget::default() };
        let ledger = Ledger::new(budget, None, Spent::default());
        let mut broken = ended(Outcome::Reset, None);
        broken.content_events = 20;
        ledger.claim(&planned(), 0).unwrap().settle(&broken);
        assert_eq!(ledger.spent().unwrap().output, 20);
        // The other 30 may have been given: 50 are left, and not one more.
        let rest = |output_tokens| PlannedRequest { output_tokens, ..planned() };
        assert!(ledger.claim(&rest(51), 0).is_err());
        assert!(ledger.claim(&rest(50), 0).is_ok());
    }

    #[test]
    fn answers_that_are_too_long_are_told() {
        let budget = Budget { output_tokens: Some(140), ..Budget::default() };
        let ledger = Ledger::new(budget, None, Spent::default());
        for output in [55, 40] {
            ledger.claim(&planned(), 0).unwrap().settle(&ended(Outcome::Ok, Some((100, output))));
        }
        let words = "budget.output_tokens: 140 output tokens (an answer came to 55 where 50 were asked for)";
        assert_eq!(key(ledger.claim(&planned(), 0)), words);
    }

    #[test]
    fn what_generates_nothing_takes_no_output() {
        let budget = Budget { output_tokens: Some(10), input_tokens: Some(2_000), ..Budget::default() };
        let ledger = Ledger::new(budget, None, Spent::default());
        let embedding = PlannedRequest { output_tokens: 0, ..planned() };
        for _ in 0..20 {
            let mut claim = ledger.claim(&embedding, 0).unwrap();
            // An embedding is one event.
            assert!(claim.comes_to(1).is_none());
            let mut sample = ended(Outcome::Ok, None);
            sample.usage = Some(Usage { input: Some(100), ..Usage::default() });
            sample.content_events = 1;
            assert_eq!(claim.settle(&sample), 100);
        }
        let spent = ledger.spent().unwrap();
        assert_eq!((spent.requests, spent.input, spent.output, spent.uncounted), (20, 2_000, 0, 0));
        assert_eq!(key(ledger.claim(&embedding, 0)), "budget.input_tokens: 2,000 input tokens");
        // Without a usage its input is not known.
        let ledger = Ledger::new(budget, None, Spent::default());
        ledger.claim(&embedding, 0).unwrap().settle(&ended(Outcome::Ok, None));
        assert_eq!(ledger.spent().unwrap().uncounted, 1);
    }

    #[test]
    fn requests_are_counted_by_themselves() {
        let ledger = Ledger::new(Budget { requests: Some(1), ..Budget::default() }, None, Spent::default());
        assert!(ledger.spent().is_none());
        assert!(ledger.claim(&planned(), 0).is_ok());
        assert_eq!(key(ledger.claim(&planned(), 0)), "budget.requests: 1 request");
    }
}
