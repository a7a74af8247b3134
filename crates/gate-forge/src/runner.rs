//! Texts for the files that GitHub's runner reads after a step: its outputs and its summary.
//!
//! Nothing is written here; the formats are those that GitHub documents for `GITHUB_OUTPUT` and `GITHUB_STEP_SUMMARY`.

/// The most bytes of a step's summary: a larger file is dropped whole.
const SUMMARY: u64 = 1 << 20;

/// What stands where a summary was cut.
const CUT: &str = "\n\n*The summary ends here: GitHub shows at most 1 MiB of it. The report file has all of it.*\n";

/// An output of a step, as it is appended to the file that `GITHUB_OUTPUT` names. The value may be any text, with lines
/// that look like outputs too: it ends at a line that is not in it. Of the name, letters, digits, `-` and `_` are kept.
/// `unique` is a text that the value's author cannot guess, such as a random number.
#[must_use]
pub fn output_entry(name: &str, value: &str, unique: &str) -> String {
    let is_plain = |symbol: &char| symbol.is_ascii_alphanumeric() || "-_".contains(*symbol);
    let name: String = name.chars().filter(is_plain).collect();
    let start: String = "gate_".chars().chain(unique.chars().filter(is_plain)).collect();
    let mut delimiter = start.clone();
    let mut attempt = 0_u64;
    while value.contains(&delimiter) {
        attempt += 1;
        delimiter = format!("{start}_{attempt}");
    }
    format!("{name}<<{delimiter}\n{value}\n{delimiter}\n")
}

/// As much of a summary, in whole lines, as GitHub shows below the bytes that the step's file holds already; where
/// lines are left out, it ends with a sentence that says so. `None` where not even that fits.
#[must_use]
pub fn fitting_summary(existing_bytes: u64, text: &str) -> Option<String> {
    let room = usize::try_from(SUMMARY.saturating_sub(existing_bytes)).unwrap_or(0);
    if text.len() <= room {
        return Some(text.to_owned());
    }
    let most = room.checked_sub(CUT.len())?;
    let mut ends = text.match_indices('\n').map(|(at, _)| at + 1).take_while(|end| *end <= most).collect::<Vec<_>>();
    // What the cut leaves open takes some bytes to close; each line fewer leaves fewer open, in the end none.
    while let Some(end) = ends.pop() {
        let kept = text.get(..end)?;
        let cut = format!("{}{}{CUT}", kept.trim_end_matches('\n'), closing(kept));
        if cut.len() <= room {
            return Some(cut);
        }
    }
    Some(CUT.trim_start().to_owned())
}

/// What closes the code block and the folded parts that a text leaves open.
fn closing(text: &str) -> String {
    let fences = text.lines().filter(|line| line.starts_with("```")).count();
    let open = text.matches("<details").count().saturating_sub(text.matches("</details>").count());
    let fence = if fences % 2 == 1 { "\n```" } else { "" };
    format!("{fence}{}", "\n\n</details>".repeat(open))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Reads outputs as the runner does: line by line, each entry up to its delimiter.
    fn read(file: &str) -> Vec<(String, String)> {
        let mut lines = file.strip_suffix('\n').unwrap().split('\n');
        let mut entries = Vec::new();
        while let Some(line) = lines.next() {
            assert!(line.find('=').is_none_or(|equals| line.find("<<").unwrap() < equals), "{line}");
            let (name, delimiter) = line.split_once("<<").unwrap();
            let value: Vec<&str> = lines.by_ref().take_while(|line| *line != delimiter).collect();
            entries.push((name.to_owned(), value.join("\n")));
        }
        entries
    }

    #[test]
    fn an_output_has_this_form() {
        assert_eq!(output_entry("verdict", "passed", "7f3a"), "verdict<<gate_7f3a\npassed\ngate_7f3a\n");
        let taken = "gate_7f3a\nexit-code=0\ngate_7f3a_1";
        assert_eq!(output_entry("report", taken, "7f3a"), format!("report<<gate_7f3a_2\n{taken}\ngate_7f3a_2\n"));
        assert_eq!(output_entry("a=b\nc<<d", "", "\n"), "abcd<<gate_\n\ngate_\n");
    }

    #[test]
    fn a_summary_that_fits_stays_as_it_is() {
        assert_eq!(fitting_summary(0, "# Passed\n").as_deref(), Some("# Passed\n"));
        let whole = "x".repeat(1 << 20);
        assert_eq!(fitting_summary(0, &whole).as_deref(), Some(whole.as_str()));
        assert_eq!(fitting_summary((1 << 20) - 3, "abc").as_deref(), Some("abc"));
        assert_eq!(fitting_summary((1 << 20) - 2, "abc"), None);
        assert_eq!(fitting_summary(u64::MAX, "abc"), None);
    }

    #[test]
    fn a_longer_one_is_cut_at_a_line_s_end_and_says_so() {
        let lines = "| chat | 1.23 s | é |\n".repeat(60_000);
        let cut = fitting_summary(1000, &lines).unwrap();
        assert!(cut.len() <= (1 << 20) - 1000 && cut.len() > (1 << 20) - 1000 - 30, "{}", cut.len());
        let kept = cut.strip_suffix(CUT).unwrap();
        assert!(kept.ends_with("| é |") && lines.starts_with(kept));
        assert_eq!(fitting_summary(0, &"x".repeat(2 << 20)).as_deref(), Some(CUT.trim_start()));
    }

    #[test]
    fn nothing_is_left_open_at_the_cut() {
        let lines = format!("<details><summary>a</summary>\n\n```text\n{}```\n\n</details>\n", "log\n".repeat(300_000));
        let cut = fitting_summary(0, &lines).unwrap();
        assert!(cut.ends_with(&format!("log\n```\n\n</details>{CUT}")) && cut.len() <= 1 << 20);
    }

    proptest! {
        #[test]
        fn the_runner_reads_back_what_was_written(
            values in prop::collection::vec("(\\PC|\n|\r|gate_x|<<|=){0,40}", 1..5),
        ) {
            let file: String = values.iter().map(|value| output_entry("name", value, "x")).collect();
            let expected: Vec<_> = values.into_iter().map(|value| ("name".to_owned(), value)).collect();
            prop_assert_eq!(read(&file), expected);
        }

        #[test]
        fn no_summary_is_too_large(existing in 0_u64..(1 << 20) + 9, line in "\\PC{0,60}", times in 1_usize..40_000) {
            let text = format!("{line}\n").repeat(times);
            if let Some(fitting) = fitting_summary(existing, &text) {
                prop_assert!(existing + fitting.len() as u64 <= 1 << 20);
            }
        }
    }
}
