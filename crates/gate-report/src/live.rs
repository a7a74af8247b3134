//! What a person sees on a terminal while the load runs: a steady block of lines.
//!
//! The block has as many lines in every stage of a run, so that nothing below it moves. What does not fit is shortened or
//! left out, the least important first.

use gate_model::{Nanos, PerSecond, Quantity};
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use crate::bounded::NAME;
use crate::escape;
use crate::layout::counted;
use crate::style::{Style, Tone};
use crate::words::{grouped, rate};

/// Where a running section of a gate stands.
#[derive(Clone, Debug, Default)]
pub struct LiveBlock {
    /// The gate's name.
    pub name: String,
    /// The scenario that runs alone, of a gate with several.
    pub scenario: Option<String>,
    /// Which section runs, from 1, and of how many.
    pub section: (u16, u16),
    /// What it does.
    pub stage: LiveStage,
    /// Requests sent, those of both arms.
    pub sent: u32,
    /// Those of them that have not ended.
    pub in_flight: u32,
    /// Requests per second sent over the last seconds; absent before there are any.
    pub rate: Option<PerSecond>,
    /// Where it is judged; absent where that is only after its end.
    pub look: Option<LiveLook>,
    /// What the latest failed request ended as.
    pub last_error: Option<String>,
    /// The scenarios that run; one where the gate has one kind of traffic.
    pub scenarios: Vec<LiveScenario>,
}

/// What a section does.
#[derive(Clone, Debug, Default)]
pub enum LiveStage {
    /// It begins.
    #[default]
    Starting,
    /// The target, or the reference, is not ready yet.
    Waiting {
        /// Since the first question.
        elapsed: Nanos,
        /// What was last seen, in words.
        last: String,
    },
    /// It warms up.
    Warmup {
        /// Warm-up requests that ended.
        done: u32,
        /// Of how many.
        of: u32,
    },
    /// It measures.
    Measuring {
        /// Since the epoch.
        elapsed: Nanos,
        /// How long it will go on; absent where that is not known.
        left: Option<Nanos>,
    },
}

/// A look of an adaptive run, in requests of each arm.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LiveLook {
    /// The next one.
    Next {
        /// Which, from 1.
        number: usize,
        /// Of how many that the run takes unless a limit is seen exceeded.
        of: usize,
        /// At how many requests.
        at: u32,
    },
    /// A limit is seen exceeded and not proven, so the run goes on.
    GoesOn {
        /// To how many requests.
        to: u32,
        /// The metric that is over, where that is known.
        over: Option<String>,
    },
    /// Nothing more is sent: what is open only ends.
    Decided {
        /// At how many requests.
        at: u32,
    },
}

/// Where a scenario stands, both arms together.
#[derive(Clone, Debug, Default)]
pub struct LiveScenario {
    /// Its name; absent where one runs alone.
    pub name: Option<String>,
    /// Requests that ended.
    pub done: u32,
    /// Requests that the last look needs which it is on the way to.
    pub planned: u32,
    /// The looks before that one, in requests.
    pub looks: Vec<u32>,
    /// Requests that failed.
    pub errors: u32,
    /// The running median and 95th percentile of the target's TTFT.
    pub ttft: Option<(Nanos, Nanos)>,
    /// The same of TPOT.
    pub tpot: Option<(Nanos, Nanos)>,
}

/// The widest a block is.
const WIDEST: usize = 80;
/// The widest that lines are which could have any width. A terminal that becomes narrower breaks long lines anew, and may
/// push what is above the block, and of a block at its top the first line, out of reach.
const FILLED: usize = 60;
/// Where there are fewer columns, the block is one line.
const NARROW: usize = 40;
/// Between the parts of a line.
const GAP: &str = "   ";

/// The lines of the block, none wider than `columns` and fewer of them than `rows`.
#[must_use]
pub fn live_block(block: &LiveBlock, columns: usize, rows: usize, style: Style) -> Vec<String> {
    let columns = columns.min(WIDEST);
    let room = rows.saturating_sub(1);
    let scenarios = block.scenarios.len();
    if columns < NARROW || room < 4 {
        return vec![first_that_fits(short(block), columns).paint(style)];
    }
    let filled = columns.min(FILLED);
    let mut lines = vec![head(block, filled)];
    let name = block.scenarios.iter().filter_map(|scenario| scenario.name.as_deref());
    let name = name.map(|name| clean(name).width()).max().unwrap_or(0).min(filled / 4);
    if 2 * scenarios + 2 <= room {
        for scenario in &block.scenarios {
            lines.push(progress(block, scenario, name, filled));
            let indent = if name > 0 { 4 } else { 2 };
            let numbers = first_that_fits(numbers(scenario), columns - indent);
            lines.push(Line::of(Tone::Plain, " ".repeat(indent)).then(numbers));
        }
    } else {
        let shown = if scenarios + 2 <= room { scenarios } else { room.saturating_sub(3) };
        lines.extend(block.scenarios.iter().take(shown).map(|scenario| progress(block, scenario, name, filled)));
        if shown < scenarios {
            lines.push(Line::of(Tone::Faint, format!("  and {}", counted(scenarios - shown, "more scenario"))));
        }
    }
    lines.push(Line::of(Tone::Plain, "  ").then(first_that_fits(stage(block), columns - 2)));
    lines.iter().map(|line| line.paint(style)).collect()
}

/// The plain line that is left of a section: `nightly, ramp (1 of 3): 5,391 requests in 15 min 18 s, no errors`.
#[must_use]
pub fn live_end(block: &LiveBlock) -> String {
    let done: u32 = block.scenarios.iter().map(|scenario| scenario.done).sum();
    let took = match block.stage {
        LiveStage::Measuring { elapsed, .. } => format!(" in {}", clock(elapsed)),
        _ => String::new(),
    };
    format!("{}: {}{took}, {}", clip(&title(block), FILLED), counted(done as usize, "request"), errors(block.errors()))
}

/// How many columns a line of a block takes.
#[must_use]
pub fn live_columns(line: &str) -> usize {
    escape::strip_ansi(line).width()
}

impl LiveBlock {
    fn errors(&self) -> u32 {
        self.scenarios.iter().map(|scenario| scenario.errors).sum()
    }
}

/// A line in pieces, so that its width is known before it is coloured.
#[derive(Clone, Default)]
struct Line(Vec<(Tone, String)>);

impl Line {
    fn of(tone: Tone, text: impl Into<String>) -> Self {
        Self(vec![(tone, text.into())])
    }

    fn then(mut self, other: Self) -> Self {
        self.0.extend(other.0);
        self
    }

    /// Parts side by side.
    fn joined(parts: impl IntoIterator<Item = (Tone, String)>) -> Self {
        let mut line = Self::default();
        for part in parts.into_iter().filter(|(_, text)| !text.is_empty()) {
            if !line.0.is_empty() {
                line.0.push((Tone::Plain, GAP.to_owned()));
            }
            line.0.push(part);
        }
        line
    }

    fn width(&self) -> usize {
        self.0.iter().map(|(_, text)| text.width()).sum()
    }

    fn paint(&self, style: Style) -> String {
        self.0.iter().map(|(tone, text)| style.paint(*tone, text)).collect()
    }
}

/// The first line that is narrow enough; where none is, the last one cut.
fn first_that_fits(lines: Vec<Line>, columns: usize) -> Line {
    let last = lines.last().cloned().unwrap_or_default();
    let cut = || {
        let text: String = last.0.iter().map(|(_, text)| text.as_str()).collect();
        Line::of(last.0.first().map_or(Tone::Plain, |(tone, _)| *tone), clip(&text, columns))
    };
    lines.into_iter().find(|line| line.width() <= columns).unwrap_or_else(cut)
}

/// The text in at most so many columns; a cut is shown by `…`.
fn clip(text: &str, columns: usize) -> String {
    if text.width() <= columns {
        return text.to_owned();
    }
    let mut width = 0;
    let fits = |symbol: &char| {
        width += symbol.width().unwrap_or(0);
        width < columns
    };
    let mut clipped: String = text.chars().take_while(fits).collect();
    clipped.push_str(if columns > 0 { "…" } else { "" });
    clipped
}

/// A name from outside: one line, and not endless where its symbols take no room.
fn clean(name: &str) -> String {
    crate::layout::clip(&escape::terminal(name), NAME)
}

/// `nightly, ramp (1 of 3)`.
fn title(block: &LiveBlock) -> String {
    let scenario = block.scenario.as_deref().map(|name| format!(", {}", clean(name))).unwrap_or_default();
    format!("{}{scenario}{}", clean(&block.name), section(block))
}

/// ` (1 of 3)`, where there are several.
fn section(block: &LiveBlock) -> String {
    let (number, of) = block.section;
    if of > 1 { format!(" ({number} of {of})") } else { String::new() }
}

/// What runs, and at the right how long it has and will.
fn head(block: &LiveBlock, columns: usize) -> Line {
    let times = match &block.stage {
        LiveStage::Measuring { elapsed, left: Some(left) } => {
            let (elapsed, left) = (clock(*elapsed), clock(*left));
            vec![format!("{elapsed}, about {left} left"), format!("{elapsed}, {left} left"), elapsed]
        }
        LiveStage::Measuring { elapsed, left: None } | LiveStage::Waiting { elapsed, .. } => vec![clock(*elapsed)],
        LiveStage::Starting | LiveStage::Warmup { .. } => Vec::new(),
    };
    let title = title(block);
    let room = |time: &String| columns.saturating_sub(time.width() + 2);
    let time = times.iter().find(|time| title.width() <= room(time)).or(times.last()).cloned().unwrap_or_default();
    // What is cut of a long name is not which section it is.
    let section = section(block);
    let title = match title.width() <= room(&time) {
        true => title,
        false => clip(title.trim_end_matches(&section), room(&time).saturating_sub(section.width())) + &section,
    };
    let gap = columns.saturating_sub(title.width() + time.width());
    let gap = if time.is_empty() { 0 } else { gap };
    Line::of(Tone::Strong, title).then(Line::of(Tone::Plain, " ".repeat(gap))).then(Line::of(Tone::Plain, time))
}

/// `  chat ━━━━━━━━━━━╍╍╍────┼──────  22 of 50`: what ended, what is in flight, and the looks on the way.
fn progress(block: &LiveBlock, scenario: &LiveScenario, name: usize, columns: usize) -> Line {
    let mut start = "  ".to_owned();
    if let Some(own) = scenario.name.as_deref().filter(|_| name > 0) {
        let own = clip(&clean(own), name);
        start += &format!("{own}{} ", " ".repeat(name.saturating_sub(own.width())));
    }
    let planned = scenario.planned.max(scenario.done);
    let count = format!("{} of {}", grouped(scenario.done), grouped(planned));
    // The bar keeps its length while the count grows.
    let most = format!("{0} of {0}", grouped(planned)).width().max(8);
    let length = columns.saturating_sub(start.width() + 1 + most);
    let in_flight = if block.scenarios.len() == 1 { block.in_flight } else { 0 };
    let bar = bar(scenario, planned, in_flight, length);
    Line::of(Tone::Plain, start).then(bar).then(Line::of(Tone::Plain, format!(" {count:>most$}")))
}

fn bar(scenario: &LiveScenario, planned: u32, in_flight: u32, length: usize) -> Line {
    let cell = |requests: u32| {
        let share = u64::from(requests) * length as u64 / u64::from(planned.max(1));
        usize::try_from(share).unwrap_or(length).min(length)
    };
    let (done, sent) = (cell(scenario.done), cell(scenario.done.saturating_add(in_flight)));
    let looks: Vec<usize> = scenario.looks.iter().filter(|look| **look < planned).map(|look| cell(*look)).collect();
    let part = |from: usize, to: usize, line: char, look: char| -> String {
        (from..to).map(|at| if looks.contains(&at) { look } else { line }).collect()
    };
    Line::of(Tone::Good, part(0, done, '━', '╋'))
        .then(Line::of(Tone::Plain, part(done, sent, '╍', '┿')))
        .then(Line::of(Tone::Faint, part(sent, length, '─', '┼')))
}

/// What a scenario's requests took, and how many failed; the fuller lines first.
fn numbers(scenario: &LiveScenario) -> Vec<Line> {
    let tone = if scenario.errors > 0 { Tone::Bad } else { Tone::Faint };
    let errors = (tone, errors(scenario.errors));
    let wide = |name: &str, seen: Option<(Nanos, Nanos)>| {
        let [p50, p95] = both(seen);
        (Tone::Plain, format!("{name} p50 {p50:>7}  p95 {p95:>7}"))
    };
    let close = |name: &str, seen: Option<(Nanos, Nanos)>| {
        let [p50, p95] = both(seen);
        (Tone::Plain, format!("{name} p50 {p50}, p95 {p95}"))
    };
    let [median, _] = both(scenario.ttft);
    let ttft = scenario.ttft;
    vec![
        Line::joined([wide("ttft", ttft), wide("tpot", scenario.tpot), errors.clone()]),
        Line::joined([wide("ttft", ttft), errors.clone()]),
        Line::joined([close("ttft", ttft), errors.clone()]),
        Line::joined([(Tone::Plain, format!("ttft p50 {median}")), errors.clone()]),
        Line::joined([errors]),
    ]
}

fn both(seen: Option<(Nanos, Nanos)>) -> [String; 2] {
    seen.map_or(["–".to_owned(), "–".to_owned()], |(p50, p95)| {
        [p50, p95].map(|time| Quantity::time(time).to_string())
    })
}

/// What it does; the fuller lines first.
fn stage(block: &LiveBlock) -> Vec<Line> {
    match &block.stage {
        LiveStage::Starting => vec![Line::of(Tone::Plain, "starting")],
        LiveStage::Waiting { last, .. } => {
            vec![Line::of(Tone::Doubtful, format!("waiting for the target: {}", escape::terminal(last)))]
        }
        LiveStage::Warmup { done, of } => {
            vec![Line::of(Tone::Plain, format!("warming up: {} of {}", grouped(*done), grouped(*of)))]
        }
        LiveStage::Measuring { .. } => {
            let sent = match block.rate {
                Some(seen) => (Tone::Plain, format!("{} sent", rate(rounded(seen)))),
                None => (Tone::Plain, format!("{} sent", grouped(block.sent))),
            };
            let in_flight = (Tone::Plain, format!("{} in flight", grouped(block.in_flight)));
            let [look, short] = block.look.as_ref().map(look).unwrap_or_default().map(|look| (Tone::Plain, look));
            let last = block.last_error.as_deref().map(|last| format!("last error: {}", escape::terminal(last)));
            let last = (Tone::Bad, last.unwrap_or_default());
            vec![
                Line::joined([sent.clone(), in_flight.clone(), look.clone(), last.clone()]),
                Line::joined([in_flight.clone(), look.clone(), last]),
                Line::joined([sent.clone(), in_flight.clone(), look.clone()]),
                Line::joined([in_flight.clone(), look]),
                Line::joined([sent, in_flight.clone(), short.clone()]),
                Line::joined([in_flight, short.clone()]),
                Line::joined([short]),
            ]
        }
    }
}

/// A running rate is not known to more than two digits.
fn rounded(rate: PerSecond) -> PerSecond {
    PerSecond(if rate.0 < 10.0 { (rate.0 * 10.0).round() / 10.0 } else { rate.0.round() })
}

/// The look in words, and shorter.
fn look(look: &LiveLook) -> [String; 2] {
    match look {
        LiveLook::Next { of: 1, at, .. } => [format!("judged at {}", grouped(*at)), String::new()],
        LiveLook::Next { number, of, at } => {
            let at = grouped(*at);
            [format!("look {number} of {of}: at {at}"), format!("look {number} of {of}: at {at}")]
        }
        LiveLook::GoesOn { to, over } => {
            let over = over.as_deref().map_or_else(|| "a limit".to_owned(), clean);
            let to = format!("goes on to {}", grouped(*to));
            [format!("{to}: {over} over, not proven"), to]
        }
        LiveLook::Decided { at } => {
            let decided = format!("decided at {}", grouped(*at));
            [format!("{decided}: open requests end"), decided]
        }
    }
}

/// The whole block in one line; the fuller lines first.
fn short(block: &LiveBlock) -> Vec<Line> {
    let name = clean(&block.name);
    let tone = if block.errors() > 0 { Tone::Bad } else { Tone::Plain };
    let (words, fewer) = match &block.stage {
        LiveStage::Starting => ("starting".to_owned(), "starting".to_owned()),
        LiveStage::Waiting { elapsed, .. } => {
            let time = clock(*elapsed);
            (format!("waiting for the target, {time}"), format!("waiting, {time}"))
        }
        LiveStage::Warmup { done, of } => {
            (format!("warming up: {} of {}", grouped(*done), grouped(*of)), "warming up".to_owned())
        }
        LiveStage::Measuring { elapsed, .. } => {
            let (done, planned) = block.scenarios.iter().fold((0_u32, 0_u32), |(done, planned), scenario| {
                (done.saturating_add(scenario.done), planned.saturating_add(scenario.planned))
            });
            let count = format!("{} of {}", grouped(done), grouped(planned.max(done)));
            let errors = match block.errors() {
                0 => String::new(),
                count => format!(", {}", errors(count)),
            };
            (format!("{count}, {}{errors}", clock(*elapsed)), format!("{count}{errors}"))
        }
    };
    [format!("{name}: {words}"), format!("{name}: {fewer}"), words, fewer]
        .map(|text| Line::of(tone, text))
        .into_iter()
        .collect()
}

/// `no errors`, `1 error`, `1,234 errors`.
fn errors(count: u32) -> String {
    if count == 0 { "no errors".to_owned() } else { counted(count as usize, "error") }
}

/// A time as a clock that runs shows it: `12 s`, `2 min 05 s`, `1 h 04 min`.
fn clock(time: Nanos) -> String {
    let seconds = time.0.max(0) / 1_000_000_000;
    match (seconds / 3_600, seconds / 60 % 60, seconds % 60) {
        (0, 0, seconds) => format!("{seconds} s"),
        (0, minutes, seconds) => format!("{minutes} min {seconds:02} s"),
        (hours, minutes, _) => format!("{} h {minutes:02} min", grouped(u32::try_from(hours).unwrap_or(u32::MAX))),
    }
}
