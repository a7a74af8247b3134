//! Series: what is measured of each request.

use serde::{Deserialize, Serialize};

use crate::Unit;

/// A per-request measurement that is summarised over the requests of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Series {
    /// Time to first token.
    Ttft,
    /// Time to first answer token (visible text, a refusal or a tool call).
    Ttfa,
    /// Time to first event of any kind.
    Ttfe,
    /// Time to last token.
    #[serde(rename = "e2e")]
    E2e,
    /// Time per output token after the first.
    Tpot,
    /// `e2e` ÷ output tokens: the LLMPerf convention.
    #[serde(rename = "tpot_e2e")]
    TpotE2e,
    /// The gap between content events over the tokens the later one carried; pooled over requests.
    Itl,
    /// The gap between content events; pooled over requests.
    Icl,
    /// The longest gap between content events of one request.
    Stall,
    /// Output tokens.
    OutputTokens,
    /// Input tokens.
    InputTokens,
    /// Input tokens read from a cache.
    CachedTokens,
    /// Output tokens spent on reasoning.
    ReasoningTokens,
    /// The client's own lateness.
    SendLag,
    /// Waiting for a slot under a concurrency cap.
    CapWait,
    /// Looking the host's name up.
    Dns,
    /// Opening the connection.
    Connect,
    /// The TLS handshake.
    Tls,
    /// Writing the request.
    Write,
    /// From the request to the answer's status and headers.
    Headers,
}

impl Series {
    /// Every series, in the order reports show them.
    pub const ALL: [Self; 20] = [
        Self::Ttft,
        Self::Ttfa,
        Self::Ttfe,
        Self::E2e,
        Self::Tpot,
        Self::TpotE2e,
        Self::Itl,
        Self::Icl,
        Self::Stall,
        Self::OutputTokens,
        Self::InputTokens,
        Self::CachedTokens,
        Self::ReasoningTokens,
        Self::SendLag,
        Self::CapWait,
        Self::Dns,
        Self::Connect,
        Self::Tls,
        Self::Write,
        Self::Headers,
    ];

    /// The name as written in a check.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Ttft => "ttft",
            Self::Ttfa => "ttfa",
            Self::Ttfe => "ttfe",
            Self::E2e => "e2e",
            Self::Tpot => "tpot",
            Self::TpotE2e => "tpot_e2e",
            Self::Itl => "itl",
            Self::Icl => "icl",
            Self::Stall => "stall",
            Self::OutputTokens => "output_tokens",
            Self::InputTokens => "input_tokens",
            Self::CachedTokens => "cached_tokens",
            Self::ReasoningTokens => "reasoning_tokens",
            Self::SendLag => "send_lag",
            Self::CapWait => "cap_wait",
            Self::Dns => "dns",
            Self::Connect => "connect",
            Self::Tls => "tls",
            Self::Write => "write",
            Self::Headers => "headers",
        }
    }

    /// The unit of one measurement.
    #[must_use]
    pub fn unit(self) -> Unit {
        match self {
            Self::OutputTokens | Self::InputTokens | Self::CachedTokens | Self::ReasoningTokens => Unit::Count,
            _ => Unit::Time,
        }
    }

    /// The definition, in one sentence.
    #[must_use]
    pub fn doc(self) -> &'static str {
        match self {
            Self::Ttft => "from the planned send time to the first event that carries generated content",
            Self::Ttfa => "from the planned send time to the first visible answer text, refusal or tool call",
            Self::Ttfe => "from the planned send time to the first event of any kind",
            Self::E2e => "from the planned send time to the last event that carries generated content",
            Self::Tpot => "(last token − first token) ÷ (output tokens − 1); absent under two tokens",
            Self::TpotE2e => "e2e ÷ output tokens, which includes TTFT (the LLMPerf convention)",
            Self::Itl => {
                "the gap between content events ÷ the tokens the later one carried, pooled over requests; absent where \
                 events do not carry one token each"
            }
            Self::Icl => "the gap between content events, pooled over requests",
            Self::Stall => "the longest gap between content events of one request",
            Self::OutputTokens => "output tokens, reasoning included, by the server's usage",
            Self::InputTokens => "input tokens, cached ones included, by the server's usage",
            Self::CachedTokens => "input tokens the server read from a cache, by its usage",
            Self::ReasoningTokens => "output tokens spent on reasoning, by the server's usage",
            Self::SendLag => "how long after its planned time the client took a request up",
            Self::CapWait => "waiting for a slot under `load.concurrency`, which is inside ttft; absent without a cap",
            Self::Dns => "looking the host's name up; absent where its address was known already",
            Self::Connect => "opening a new connection, a proxy's tunnel included; absent on a reused one",
            Self::Tls => "the TLS handshake of a new connection; absent on a reused one",
            Self::Write => "from taking the connection to handing the request's last byte to the socket",
            Self::Headers => "from the request's last byte to the answer's status and headers",
        }
    }

    /// Whether one request has many measurements, which are pooled over requests: gaps.
    #[must_use]
    pub fn is_pooled(self) -> bool {
        matches!(self, Self::Itl | Self::Icl)
    }

    /// Whether the measurement is counted in tokens, so that its source matters.
    #[must_use]
    pub fn needs_tokens(self) -> bool {
        matches!(
            self,
            Self::Tpot
                | Self::TpotE2e
                | Self::Itl
                | Self::OutputTokens
                | Self::InputTokens
                | Self::CachedTokens
                | Self::ReasoningTokens
        )
    }
}
