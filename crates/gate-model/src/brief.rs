//! What is kept of a request in a long run.

use crate::{Arm, Nanos, Outcome, Sample, Series, Slo, TokenSource};

/// How many requests a run may have whose samples are all kept in memory; of a longer run every request is kept in
/// [`Brief`], and the first ones ([`crate::JournalSpec::tokens`]) as samples too.
pub const RAW_LIMIT: u32 = 100_000;

/// A request in short: what its metrics rest on, in about a fifth of a [`Sample`]'s memory.
///
/// When it was due is exact to the nanosecond; every other time is held relative to that in 32 bits of floating point,
/// to 6 parts in 100,000,000. Token counts are exact up to 4,294,967,294. What is not kept: texts, names, the times and
/// gaps of tokens.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Brief {
    /// Its place in the send order, from 0.
    pub index: u32,
    /// The scenario.
    pub scenario: u16,
    /// The turn.
    pub turn: u16,
    /// The arm.
    pub arm: Arm,
    /// How it ended.
    pub outcome: Outcome,
    /// Whether an error inside the stream was the server's own.
    pub embedded_server_error: bool,
    source: Option<TokenSource>,
    pair: u32,
    /// The output tokens the plan asked for at most.
    pub planned_output: u32,
    /// When the plan said to send.
    pub intended: Nanos,
    start: f32,
    cap_wait: f32,
    dns: f32,
    connect: f32,
    tls: f32,
    writing: f32,
    sent: f32,
    headers: f32,
    first_event: f32,
    first_token: f32,
    first_answer: f32,
    last_token: f32,
    end: f32,
    longest_gap: f32,
    output: u32,
    input: u32,
    cached: u32,
    reasoning: u32,
}

/// Stands for a number that is absent.
const NONE: u32 = u32::MAX;

fn kept(count: Option<u64>) -> u32 {
    count.map_or(NONE, |count| u32::try_from(count).unwrap_or(NONE - 1).min(NONE - 1))
}

fn count(kept: u32) -> Option<u64> {
    (kept != NONE).then_some(u64::from(kept))
}

impl From<&Sample> for Brief {
    fn from(sample: &Sample) -> Self {
        let since_due = |point: Option<Nanos>| point.map_or(f32::NAN, |point| (point - sample.intended).0 as f32);
        let time = |time: Option<Nanos>| time.map_or(f32::NAN, |time| time.0 as f32);
        let output = sample.output_tokens();
        let usage = sample.usage.unwrap_or_default();
        Self {
            index: sample.index,
            scenario: sample.scenario,
            turn: sample.turn,
            arm: sample.arm,
            outcome: sample.outcome,
            embedded_server_error: sample.embedded_server_error,
            source: output.map(|(_, source)| source),
            pair: sample.pair.unwrap_or(NONE),
            planned_output: sample.planned_output,
            intended: sample.intended,
            start: since_due(sample.start),
            cap_wait: time(sample.cap_wait),
            dns: time(sample.dns),
            connect: time(sample.connect),
            tls: time(sample.tls),
            writing: since_due(sample.writing),
            sent: since_due(sample.sent),
            headers: since_due(sample.headers),
            first_event: since_due(sample.first_event),
            first_token: since_due(sample.first_token),
            first_answer: since_due(sample.first_answer),
            last_token: since_due(sample.last_token),
            end: since_due(sample.end),
            longest_gap: time(sample.longest_gap),
            output: kept(output.map(|(tokens, _)| tokens)),
            input: kept(usage.input),
            cached: kept(usage.cached),
            reasoning: kept(usage.reasoning),
        }
    }
}

impl Brief {
    /// The pair.
    #[must_use]
    pub fn pair(&self) -> Option<u32> {
        (self.pair != NONE).then_some(self.pair)
    }

    /// Takes what the spec's tokenizer counted of its answer, where the server did not count it.
    pub fn count_output(&mut self, output: u64) {
        if self.source != Some(TokenSource::Usage) {
            (self.output, self.source) = (kept(Some(output)), Some(TokenSource::Tokenizer));
        }
    }

    fn point(&self, since_due: f32) -> Option<Nanos> {
        (!since_due.is_nan()).then(|| self.intended + Nanos(since_due as i64))
    }

    /// When the schedule took it up.
    #[must_use]
    pub fn start(&self) -> Option<Nanos> {
        self.point(self.start)
    }

    /// When it went out: it was taken up, and had its slot where there is a concurrency cap.
    #[must_use]
    pub fn went_out(&self) -> Option<Nanos> {
        self.point(self.start + if self.cap_wait.is_nan() { 0.0 } else { self.cap_wait })
    }

    /// When the last byte of the request was handed to the socket.
    #[must_use]
    pub fn sent(&self) -> Option<Nanos> {
        self.point(self.sent)
    }

    /// The first event with generated content.
    #[must_use]
    pub fn first_token(&self) -> Option<Nanos> {
        self.point(self.first_token)
    }

    /// The first event with visible text, a refusal or a tool call.
    #[must_use]
    pub fn first_answer(&self) -> Option<Nanos> {
        self.point(self.first_answer)
    }

    /// When the connection took the request up.
    #[must_use]
    pub fn writing(&self) -> Option<Nanos> {
        self.point(self.writing)
    }

    /// The last event with generated content.
    #[must_use]
    pub fn last_token(&self) -> Option<Nanos> {
        self.point(self.last_token)
    }

    /// The terminal event, or the end of the body.
    #[must_use]
    pub fn end(&self) -> Option<Nanos> {
        self.point(self.end)
    }

    /// The output tokens and where the count comes from; `None` where there were none.
    #[must_use]
    pub fn output_tokens(&self) -> Option<(u64, TokenSource)> {
        count(self.output).zip(self.source)
    }

    /// One series' measurement of this request, as [`Sample::value`] has it; gaps are not kept.
    #[must_use]
    pub fn value(&self, series: Series) -> Option<f64> {
        let known = |time: f32| (!time.is_nan()).then_some(f64::from(time));
        let tokens = |kept: u32| count(kept).map(|tokens| tokens as f64);
        match series {
            Series::Ttft => known(self.first_token),
            Series::Ttfa => known(self.first_answer),
            Series::Ttfe => known(self.first_event),
            Series::E2e => known(self.last_token),
            Series::Tpot => {
                let tokens = tokens(self.output).filter(|tokens| *tokens >= 2.0)?;
                Some((known(self.last_token)? - known(self.first_token)?) / (tokens - 1.0))
            }
            Series::TpotE2e => {
                let tokens = tokens(self.output).filter(|tokens| *tokens >= 1.0)?;
                known(self.last_token).map(|e2e| e2e / tokens)
            }
            Series::Itl | Series::Icl => None,
            Series::Stall => known(self.longest_gap),
            Series::OutputTokens => tokens(self.output),
            Series::InputTokens => tokens(self.input),
            Series::CachedTokens => tokens(self.cached),
            Series::ReasoningTokens => tokens(self.reasoning),
            Series::SendLag => known(self.start),
            Series::CapWait => known(self.cap_wait),
            Series::Dns => known(self.dns),
            Series::Connect => known(self.connect),
            Series::Tls => known(self.tls),
            Series::Write => Some(known(self.sent)? - known(self.writing)?),
            Series::Headers => Some(known(self.headers)? - known(self.sent)?),
        }
    }
}

/// A request that is judged: with everything that was measured of it or, in a long run, in short.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Request<'a> {
    /// With everything.
    Sample(&'a Sample),
    /// In short.
    Brief(&'a Brief),
}

/// Takes the same field, or asks the same question, of either.
macro_rules! either {
    ($request:expr, $one:ident => $value:expr) => {
        match $request {
            Request::Sample($one) => $value,
            Request::Brief($one) => $value,
        }
    };
}

impl<'a> Request<'a> {
    /// Everything that was measured; `None` in a long run.
    #[must_use]
    pub fn sample(self) -> Option<&'a Sample> {
        match self {
            Self::Sample(sample) => Some(sample),
            Self::Brief(_) => None,
        }
    }

    /// Its place in the send order, from 0.
    #[must_use]
    pub fn index(self) -> u32 {
        either!(self, one => one.index)
    }

    /// The scenario.
    #[must_use]
    pub fn scenario(self) -> u16 {
        either!(self, one => one.scenario)
    }

    /// The arm.
    #[must_use]
    pub fn arm(self) -> Arm {
        either!(self, one => one.arm)
    }

    /// The turn.
    #[must_use]
    pub fn turn(self) -> u16 {
        either!(self, one => one.turn)
    }

    /// The pair.
    #[must_use]
    pub fn pair(self) -> Option<u32> {
        match self {
            Self::Sample(sample) => sample.pair,
            Self::Brief(brief) => brief.pair(),
        }
    }

    /// How it ended.
    #[must_use]
    pub fn outcome(self) -> Outcome {
        either!(self, one => one.outcome)
    }

    /// Whether an error inside the stream was the server's own.
    #[must_use]
    pub fn embedded_server_error(self) -> bool {
        either!(self, one => one.embedded_server_error)
    }

    /// The output tokens the plan asked for at most.
    #[must_use]
    pub fn planned_output(self) -> u32 {
        either!(self, one => one.planned_output)
    }

    /// When the plan said to send.
    #[must_use]
    pub fn intended(self) -> Nanos {
        either!(self, one => one.intended)
    }

    /// When the schedule took it up.
    #[must_use]
    pub fn start(self) -> Option<Nanos> {
        match self {
            Self::Sample(sample) => sample.start,
            Self::Brief(brief) => brief.start(),
        }
    }

    /// When it went out.
    #[must_use]
    pub fn went_out(self) -> Option<Nanos> {
        either!(self, one => one.went_out())
    }

    /// When the last byte of the request was handed to the socket.
    #[must_use]
    pub fn sent(self) -> Option<Nanos> {
        match self {
            Self::Sample(sample) => sample.sent,
            Self::Brief(brief) => brief.sent(),
        }
    }

    /// The first event with generated content.
    #[must_use]
    pub fn first_token(self) -> Option<Nanos> {
        match self {
            Self::Sample(sample) => sample.first_token,
            Self::Brief(brief) => brief.first_token(),
        }
    }

    /// The first event with visible text, a refusal or a tool call.
    #[must_use]
    pub fn first_answer(self) -> Option<Nanos> {
        match self {
            Self::Sample(sample) => sample.first_answer,
            Self::Brief(brief) => brief.first_answer(),
        }
    }

    /// When it had its connection: the one that took it up, or a new one that stood.
    #[must_use]
    pub fn had_connection(self) -> Option<Nanos> {
        match self {
            Self::Sample(sample) => sample.writing.or(sample.connected),
            Self::Brief(brief) => brief.writing(),
        }
    }

    /// The last event with generated content.
    #[must_use]
    pub fn last_token(self) -> Option<Nanos> {
        match self {
            Self::Sample(sample) => sample.last_token,
            Self::Brief(brief) => brief.last_token(),
        }
    }

    /// The terminal event, or the end of the body.
    #[must_use]
    pub fn end(self) -> Option<Nanos> {
        match self {
            Self::Sample(sample) => sample.end,
            Self::Brief(brief) => brief.end(),
        }
    }

    /// The output tokens and where the count comes from.
    #[must_use]
    pub fn output_tokens(self) -> Option<(u64, TokenSource)> {
        either!(self, one => one.output_tokens())
    }

    /// Where the token counts that a series needs come from; `None` where the series has no value here.
    #[must_use]
    pub fn token_source(self, series: Series) -> Option<TokenSource> {
        match series {
            Series::InputTokens | Series::CachedTokens | Series::ReasoningTokens => {
                self.value(series).map(|_| TokenSource::Usage)
            }
            _ => self.output_tokens().map(|(_, source)| source),
        }
    }

    /// One series' measurement of this request.
    #[must_use]
    pub fn value(self, series: Series) -> Option<f64> {
        either!(self, one => one.value(series))
    }

    /// Every value of a pooled series in this request; none in a long run.
    #[must_use]
    pub fn gap_values(self, series: Series) -> Vec<f64> {
        self.sample().map(|sample| sample.gap_values(series)).unwrap_or_default()
    }

    /// Whether the request is `ok` and holds every bound of `slo`.
    #[must_use]
    pub fn is_good(self, slo: &Slo) -> bool {
        self.outcome() == Outcome::Ok && slo.holds(|series| self.value(series))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{PlannedRequest, Usage};

    #[test]
    fn a_request_in_short_measures_as_its_sample_does() {
        let at = |millis| Some(Nanos::from_millis(millis));
        let planned = PlannedRequest { at: Nanos::from_secs(86_000), ..PlannedRequest::default() };
        let mut sample = Sample::unsent(&planned);
        let due = |millis| Some(planned.at + Nanos::from_millis(millis));
        (sample.start, sample.cap_wait, sample.writing, sample.sent) = (due(1), at(3), due(5), due(6));
        (sample.headers, sample.first_event, sample.first_token) = (due(20), due(21), due(123));
        (sample.first_answer, sample.last_token, sample.end) = (due(150), due(1_777), due(1_778));
        (sample.dns, sample.connect, sample.tls, sample.longest_gap) = (at(2), at(4), at(7), at(77));
        (sample.outcome, sample.content_events) = (Outcome::Ok, 90);
        let usage = Usage { input: Some(500), output: Some(100), cached: Some(32), reasoning: Some(5) };
        sample.usage = Some(usage);
        let brief = Brief::from(&sample);
        for series in Series::ALL {
            let (exact, kept) = (Request::Sample(&sample).value(series), Request::Brief(&brief).value(series));
            let close = exact.zip(kept).is_none_or(|(exact, kept)| (exact - kept).abs() <= 1e-7 * 2e9);
            assert!(exact.is_some() == kept.is_some() && close, "{series:?}: {exact:?} {kept:?}");
        }
        assert_eq!(brief.output_tokens(), sample.output_tokens());
        let late = Request::Brief(&brief).went_out().unwrap() - sample.went_out().unwrap();
        assert!(late.0.abs() < 100, "{late:?}");
        assert!(size_of::<Brief>() <= 112, "{}", size_of::<Brief>());
        let mut counted = brief;
        counted.count_output(7);
        assert_eq!(counted.output_tokens(), sample.output_tokens(), "the server's own count stands");
        let uncounted = Sample { usage: None, ..sample.clone() };
        let mut counted = Brief::from(&uncounted);
        assert_eq!(counted.output_tokens(), Some((90, TokenSource::Estimated)));
        counted.count_output(101);
        assert_eq!(counted.output_tokens(), Some((101, TokenSource::Tokenizer)));
        let nothing = Sample::unsent(&planned);
        let nothing = Brief::from(&nothing);
        assert!(Series::ALL.into_iter().all(|series| nothing.value(series).is_none()));
        assert_eq!((nothing.end(), nothing.went_out(), nothing.pair()), (None, None, None));
    }
}
