//! Colour, added last: the words are the same without it.

/// Whether a text for people carries colours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// No control characters at all.
    Plain,
    /// ANSI colours around the same words.
    Colour,
}

/// What a piece of text is, so that it can be coloured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tone {
    Good,
    Bad,
    Doubtful,
    Strong,
    Faint,
    Plain,
}

impl Style {
    /// The text in the tone's colour; unchanged in [`Style::Plain`].
    pub(crate) fn paint(self, tone: Tone, text: &str) -> String {
        let code = match tone {
            // Nothing to colour: no codes.
            Tone::Plain => return text.to_owned(),
            Tone::Good => "32",
            Tone::Bad => "1;31",
            Tone::Doubtful => "33",
            Tone::Strong => "1",
            Tone::Faint => "2",
        };
        match self {
            Self::Plain => text.to_owned(),
            Self::Colour if text.is_empty() => String::new(),
            Self::Colour => format!("\u{1b}[{code}m{text}\u{1b}[0m"),
        }
    }
}
