//! Fields: what a key may hold, in a form that checks values, fills in defaults and makes the JSON Schema.

/// A key of a map.
#[derive(Debug)]
pub(crate) struct Field {
    pub(crate) name: &'static str,
    pub(crate) kind: Kind,
    pub(crate) presence: Presence,
    pub(crate) doc: &'static str,
}

/// Whether a key must be there.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Presence {
    Required,
    Optional,
    /// What stands in, as it would be written; a map with nothing in it has its keys' defaults.
    Default(&'static str),
}

/// What a key holds.
#[derive(Debug)]
pub(crate) enum Kind {
    /// One value.
    Leaf(Leaf),
    /// A map with these keys.
    Map(&'static [Field]),
    /// A map, or one value that stands for the map with this one key.
    Short { key: &'static str, leaf: Leaf, fields: &'static [Field], absent: &'static [(&'static str, &'static str)] },
    /// Texts by name, each a credential.
    Headers,
    /// Any map.
    Free,
    /// A list of single values.
    List(Leaf),
    /// A map with these keys, of which only those that are written have a value.
    Part(&'static [Field]),
    /// A map with one of these keys, or the name of one that has a default.
    OneOf { fields: &'static [Field], bare: &'static [(&'static str, &'static str)] },
    /// A list of maps with these keys.
    Maps(&'static [Field]),
    /// Maps with these keys, by names of the spec's own.
    Named(&'static [Field]),
    /// A list of checks.
    Checks,
    /// Faults of the simulated engine, by request number or range of them.
    Script,
}

/// What one value is.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Leaf {
    /// The number 1.
    Version,
    /// The gate's name.
    Name,
    /// Any text; an empty one is none.
    Text,
    /// The name of a file; an empty one is none where a variable or a flag left it empty.
    File,
    /// A check; an empty one is none.
    Check,
    /// A text that must not be empty: why something is done.
    Reason,
    /// A day of the calendar, `YYYY-MM-DD`.
    Date,
    /// `true` or `false`.
    Flag,
    /// A text that is never shown; an empty one is none.
    Credential,
    /// The URL of an endpoint, or `sim`.
    Url,
    /// `auto`, or a path that starts with a slash.
    Path,
    /// A path that starts with a slash.
    Route,
    /// A JSON pointer to something inside the document.
    Pointer,
    /// The name of a header.
    HeaderName,
    /// A time; the unit that is likely meant where it is missing.
    Time { least: Least, unit: &'static str },
    /// A time, or `none`.
    TimeOrNone,
    /// A share in percent.
    Share,
    /// A share in percent, above one half and below all.
    Confidence,
    /// A number of bytes.
    Bytes,
    /// Requests per second.
    Rate { least: Least },
    /// Requests per second: `R`, or `A..B` for a straight line from one to the other.
    Rates,
    /// Tokens per second.
    TokenRate,
    /// Growth per hour, in percent.
    PerHour,
    /// US dollars.
    Dollars { least: Least },
    /// A whole number of tokens or requests, possibly a very large one.
    Amount,
    /// A number of tokens, with or without the word behind it.
    Tokens { most: u32 },
    /// The turns of a conversation: `N` or `A..B`.
    Turns,
    /// The distribution of times between arrivals.
    Arrivals,
    /// A URL, or a path on the target's host.
    Metrics,
    /// A URL, or the name of a file, of an image.
    Image,
    /// A number, possibly with decimals.
    Number { least: Least },
    /// A whole number.
    Count { least: u32, most: u32 },
    /// A whole number, or `none`.
    CountOrNone { most: u32 },
    /// Warm-up requests.
    Warmup,
    /// A seed.
    Seed,
    /// `A..B` or `N`.
    Iterations,
    /// Which baselines are asked for.
    From,
    /// Where baselines are kept.
    Store,
    /// One of these words.
    Word(&'static [&'static str]),
}

/// The least value of a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Least {
    Zero,
    AboveZero,
    One,
}

impl Least {
    pub(crate) fn allows(self, number: f64) -> bool {
        match self {
            Self::Zero => number >= 0.0,
            Self::AboveZero => number > 0.0,
            Self::One => number >= 1.0,
        }
    }
}

impl Field {
    pub(crate) const fn required(name: &'static str, kind: Kind, doc: &'static str) -> Self {
        Self { name, kind, presence: Presence::Required, doc }
    }

    pub(crate) const fn optional(name: &'static str, kind: Kind, doc: &'static str) -> Self {
        Self { name, kind, presence: Presence::Optional, doc }
    }

    pub(crate) const fn default(name: &'static str, leaf: Leaf, default: &'static str, doc: &'static str) -> Self {
        Self { name, kind: Kind::Leaf(leaf), presence: Presence::Default(default), doc }
    }

    pub(crate) const fn section(name: &'static str, fields: &'static [Self], doc: &'static str) -> Self {
        Self { name, kind: Kind::Map(fields), presence: Presence::Default("{}"), doc }
    }

    pub(crate) fn is_required(&self) -> bool {
        matches!(self.presence, Presence::Required)
    }

    /// The key that a single value stands for, if it is a map that may be written so.
    pub(crate) fn short(&self) -> Option<&'static str> {
        match self.kind {
            Kind::Short { key, .. } => Some(key),
            _ => None,
        }
    }

    /// The keys below, if it is a map of known keys.
    pub(crate) fn fields(&self) -> Option<&'static [Field]> {
        match self.kind {
            Kind::Map(fields) | Kind::Part(fields) | Kind::Short { fields, .. } | Kind::OneOf { fields, .. } => {
                Some(fields)
            }
            _ => None,
        }
    }

    /// The keys of the maps below, if it is a map of names of the spec's own.
    pub(crate) fn named(&self) -> Option<&'static [Field]> {
        match self.kind {
            Kind::Named(fields) => Some(fields),
            _ => None,
        }
    }
}

/// The field of this name.
pub(crate) fn find(fields: &'static [Field], name: &str) -> Option<&'static Field> {
    fields.iter().find(|field| field.name == name)
}
