//! The small tables of a run, which a report may fold away.

use gate_model::{Nanos, Quantity, ServerFacts, TtftBy, Verdict};

use crate::escape;
use crate::layout::{WIDTH, clip};
use crate::words::{figure, grouped, number, scenario_name};

/// How many lines of a table are shown.
const SHOWN: usize = 24;

/// How wide a name is shown.
const NAMED: usize = 18;

/// The tables, each with its heading; none without lines.
pub(crate) fn tables(verdict: &Verdict) -> Vec<(&'static str, String)> {
    let run = &verdict.run;
    let turns = rows(verdict, &run.turns, ("turn", 6), |by| grouped(whole(by.from.saturating_add(1))));
    let contexts = rows(verdict, &run.contexts, ("input tokens", 15), |by| {
        format!("{}–{}", grouped(whole(by.from)), grouped(whole(by.to)))
    });
    let tables = [
        ("TTFT by turn", turns),
        ("TTFT by the length of the context", contexts),
        ("The server's own metrics", server(&run.server)),
    ];
    tables.into_iter().filter(|(_, table)| !table.is_empty()).collect()
}

/// The same one below the other, as text.
pub(super) fn text(verdict: &Verdict) -> String {
    tables(verdict).into_iter().map(|(heading, table)| format!("\n{heading}:\n{table}")).collect()
}

fn whole(count: u64) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

/// A table by something, with how wide that is.
fn rows(verdict: &Verdict, of: &[TtftBy], (by, width): (&str, usize), cell: impl Fn(&TtftBy) -> String) -> String {
    let several = verdict.run.scenarios.len() > 1;
    let counts_input = by == "turn" && of.iter().any(|row| row.input.is_some());
    let line = |scenario: &str, cells: [&str; 5]| {
        let scenario = if several { format!("{:<NAMED$}  ", clip(scenario, NAMED)) } else { String::new() };
        let [first, n, p50, p95, input] = cells;
        let input = if counts_input { format!("  {input:>12}") } else { String::new() };
        format!("{}\n", format!("  {scenario}{first:<width$}  {n:>7}  {p50:>9}  {p95:>9}{input}").trim_end())
    };
    let head = line("scenario", [by, "n", "p50", "p95", "input tokens"]);
    let lines = of.iter().take(SHOWN).map(|row| {
        let name = scenario_name(verdict, row.scenario).unwrap_or_default();
        let input = row.input.map_or_else(|| "–".to_owned(), |input| number(input.round()));
        line(&escape::terminal(&name), [&cell(row), &grouped(row.n), &time(row.p50), &time(row.p95), &input])
    });
    table(&head, lines.collect(), of.len())
}

fn server(metrics: &[ServerFacts]) -> String {
    let line = |cells: [&str; 5]| {
        let [name, max, mean, last, delta] = cells;
        format!("{}\n", format!("  {:<30}  {max:>10}  {mean:>10}  {last:>10}  {delta:>10}", clip(name, 30)).trim_end())
    };
    let head = line(["metric", "max", "mean", "last", "change"]);
    let lines = metrics.iter().take(SHOWN).map(|facts| {
        let value = |value: f64| figure(Quantity { value, unit: facts.metric.unit() });
        let ServerFacts { max, mean, last, delta, .. } = *facts;
        line([facts.metric.as_str(), &value(max), &value(mean), &value(last), &value(delta)])
    });
    table(&head, lines.collect(), metrics.len())
}

/// The head and its lines, or nothing; what there is no room for is counted.
fn table(head: &str, lines: Vec<String>, all: usize) -> String {
    if lines.is_empty() {
        return String::new();
    }
    let more = all.saturating_sub(lines.len());
    let more = if more > 0 { format!("  and {more} more\n") } else { String::new() };
    let cut = |text: &str| text.lines().map(|line| format!("{}\n", clip(line, WIDTH))).collect::<String>();
    cut(head) + &cut(&lines.concat()) + &more
}

fn time(time: Nanos) -> String {
    figure(Quantity::time(time))
}
