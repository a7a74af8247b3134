//! The comparison as Markdown.

use super::UNJUDGED;
use super::sides::{Number, Pair, Sides};
use crate::escape;
use crate::sparkline::READING;
use crate::words::SIMULATED;

pub(super) fn markdown(sides: &Sides) -> String {
    let [before, after] = &sides.headings;
    let mut text = String::new();
    if sides.simulated {
        text.push_str(&format!("> **{SIMULATED}**\n\n"));
    }
    text.push_str(&format!("**before**: {}\n\n**after**: {}\n\n", escape::markdown(before), escape::markdown(after)));
    text.push_str(&list("What differs beside the numbers, and may be why they do", &sides.apart));
    if !sides.numbers.is_empty() {
        text.push_str("| number | before | after | change |\n| :-- | --: | --: | --: |\n");
        text.extend(
            sides.numbers.iter().map(|Number { name, before, after, change }| row(name, [before, after, change])),
        );
        text.push('\n');
    }
    text.push_str(&checks("Checks that ended in another way", &sides.changed));
    text.push_str(&checks("Checks that ended alike", &sides.alike));
    if sides.left_out > 0 {
        text.push_str(&format!("{} more lines are left out.\n\n", sides.left_out));
    }
    text.push_str(&list("What each verdict said itself", &sides.causes));
    if let Some(pictures) = &sides.pictures {
        let block = escape::markdown_block(pictures);
        text.push_str(&format!("**How the requests are distributed**\n\n{block}\n\n{READING}\n\n"));
    }
    text.push_str(UNJUDGED);
    text.push('\n');
    text
}

fn row(name: &str, cells: [&String; 3]) -> String {
    let cells: String = cells.iter().map(|cell| format!(" {} |", escape::markdown(cell))).collect();
    format!("| {} |{cells}\n", escape::markdown_code(name))
}

fn list(heading: &str, items: &[String]) -> String {
    if items.is_empty() {
        return String::new();
    }
    let items: String = items.iter().map(|words| format!("- {}\n", escape::markdown(words))).collect();
    format!("**{heading}**\n\n{items}\n")
}

fn checks(heading: &str, pairs: &[Pair]) -> String {
    if pairs.is_empty() {
        return String::new();
    }
    let rows = pairs.iter().map(|Pair { check, before, after }| {
        format!("| {} | {} | {} |\n", escape::markdown_code(check), escape::markdown(before), escape::markdown(after))
    });
    let rows: String = rows.collect();
    format!("**{heading}**\n\n| check | before | after |\n| :-- | :-- | :-- |\n{rows}\n")
}
