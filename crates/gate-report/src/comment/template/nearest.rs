//! Names that are like one that is not there.

/// How many are told.
const TOLD: usize = 3;

/// The known names that differ from this one by few letters, the nearest first.
pub(super) fn nearest(name: &str, known: &[String]) -> Vec<String> {
    let most = (name.chars().count() / 3).max(2);
    // Of names as near as each other, whoever mistypes one mostly has its first letter right.
    let is_other = |other: &str| other.chars().next() != name.chars().next();
    let ranked = known.iter().map(|other| (distance(name, other), is_other(other), other));
    let mut near: Vec<(usize, bool, &String)> = ranked.collect();
    near.retain(|(distance, ..)| *distance <= most);
    near.sort();
    near.dedup();
    near.into_iter().take(TOLD).map(|(.., name)| name.clone()).collect()
}

/// How many letters have to be changed, added or taken away to make one of the other (Levenshtein).
fn distance(one: &str, other: &str) -> usize {
    let mut row: Vec<usize> = (0..=other.chars().count()).collect();
    for (line, letter) in one.chars().enumerate() {
        let mut diagonal = line;
        let mut left = line + 1;
        for (cell, with) in row.iter_mut().skip(1).zip(other.chars()) {
            let changed = diagonal + usize::from(letter != with);
            diagonal = *cell;
            left = changed.min(diagonal + 1).min(left + 1);
            *cell = left;
        }
        if let Some(first) = row.first_mut() {
            *first = line + 1;
        }
    }
    row.last().copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_letters_apart_is_near() {
        for (one, other, letters) in
            [("naem", "name", 2), ("", "abc", 3), ("abc", "", 3), ("lead", "lead", 0), ("kitten", "sitting", 3)]
        {
            assert_eq!(distance(one, other), letters, "{one} {other}");
        }
        let known = ["name", "lead", "rows_left_out", "gates", "names"].map(str::to_owned);
        assert_eq!(nearest("naem", &known), ["name", "names"]);
        assert_eq!(nearest("rows_left", &known), Vec::<String>::new());
        assert_eq!(nearest("nmes", &known), ["names", "name"]);
    }
}
