//! Numbers and tables as text.

/// With a separator for thousands: `960,000`.
pub(super) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Bytes in the binary unit they fill: `2.5 GiB`.
pub(super) fn bytes(bytes: u64) -> String {
    let units = [("TiB", 1_u64 << 40), ("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)];
    match units.into_iter().find(|(_, size)| bytes >= *size) {
        Some((unit, size)) => format!("{} {unit}", shortest(bytes as f64 / size as f64)),
        None => format!("{bytes} B"),
    }
}

/// A number with at most two decimals, and no zeros at its end.
pub(super) fn shortest(number: f64) -> String {
    let text = format!("{number:.2}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    match text.split_once('.') {
        Some((whole, decimals)) => format!("{}.{decimals}", whole.parse().map_or_else(|_| whole.to_owned(), grouped)),
        None => text.parse().map_or_else(|_| text.to_owned(), grouped),
    }
}

/// A share in percent: `62.5 %`.
pub(super) fn percent(share: f64) -> String {
    let percent = share * 100.0;
    let text = if percent >= 100.0 { format!("{percent:.0}") } else { format!("{percent:.1}") };
    let text = if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text };
    format!("{} %", text.parse().map_or(text, grouped))
}

/// Money: `$373.25`.
pub(super) fn money(dollars: f64) -> String {
    let cents = (dollars * 100.0).round();
    let whole = (cents / 100.0).trunc();
    format!("${}.{:02}", grouped(whole as u64), (cents - whole * 100.0) as u64)
}

/// A table: the first column to the left, the others to the right.
pub(super) fn table(rows: &[Vec<String>]) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max();
    let widths: Vec<usize> = (0..columns).map(|column| width(column).unwrap_or(0)).collect();
    let line = |row: &Vec<String>| {
        let cells = row.iter().zip(&widths).enumerate().map(|(column, (cell, width))| match column {
            0 => format!("{cell:<width$}"),
            _ => format!("{cell:>width$}"),
        });
        let line = cells.collect::<Vec<_>>().join("  ");
        format!("{}\n", line.trim_end())
    };
    rows.iter().map(line).collect()
}

/// Facts, a line each.
pub(super) fn facts(facts: &[(&str, String)]) -> String {
    facts.iter().map(|(name, value)| format!("{name:<14}{value}\n")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short_and_exact() {
        assert_eq!(
            [0, 999, 1_000, 960_000, 2_684_354_560].map(grouped),
            ["0", "999", "1,000", "960,000", "2,684,354,560"]
        );
        assert_eq!([512, 5 << 29, 3 << 40].map(bytes), ["512 B", "2.5 GiB", "3 TiB"]);
        assert_eq!([0.625, 1.0, 0.004, 12.5].map(percent), ["62.5 %", "100 %", "0.4 %", "1,250 %"]);
        assert_eq!([373.248, 0.005, 1_234_567.0].map(money), ["$373.25", "$0.01", "$1,234,567.00"]);
        assert_eq!([1_300.0, 4.32, 0.5].map(shortest), ["1,300", "4.32", "0.5"]);
    }

    #[test]
    fn a_table_has_straight_columns() {
        let rows = [["a", "10", "x"], ["long", "1", ""]].map(|row| row.map(str::to_owned).to_vec());
        assert_eq!(table(&rows), "a     10  x\nlong   1\n");
    }
}
