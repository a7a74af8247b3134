//! `cargo xtask opchar`: how often the gate is right, simulated anew through `gate-judge` itself.

use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use crate::tool::{cargo, root, say};

/// The page that holds the table.
const PAGE: &str = "docs/how-sure.md";
/// What stands before and after it there.
const MARKS: (&str, &str) =
    ("<!-- from here on written by cargo xtask opchar -->\n", "<!-- up to here written by cargo xtask opchar -->\n");

/// Simulates all cases and writes their table into the page, or with options prints what they ask for.
pub(crate) fn command(options: &[&str]) -> Result<()> {
    let output = Command::new(cargo())
        .args(["bench", "--quiet", "--package", "gate-judge", "--bench", "opchar", "--"])
        .args(options)
        .current_dir(root())
        .stderr(Stdio::inherit())
        .output()
        .context("cannot start cargo")?;
    if !output.status.success() {
        bail!("the simulation failed: {}", output.status);
    }
    let table = String::from_utf8(output.stdout).context("the simulation did not print text")?;
    say(&table);
    if options.is_empty() {
        let path = root().join(PAGE);
        let page = std::fs::read_to_string(&path).with_context(|| format!("cannot read {PAGE}"))?;
        std::fs::write(&path, with_table(&page, &table)?).with_context(|| format!("cannot write {PAGE}"))?;
        say(&format!("wrote {PAGE}"));
    }
    Ok(())
}

/// The page with its table replaced.
fn with_table(page: &str, table: &str) -> Result<String> {
    let parts = page.split_once(MARKS.0).and_then(|(head, rest)| Some((head, rest.split_once(MARKS.1)?.1)));
    let (head, tail) = parts.with_context(|| format!("{PAGE} has no marks around its table"))?;
    Ok(format!("{head}{}\n{}\n{}{tail}", MARKS.0, table.trim(), MARKS.1))
}

#[cfg(test)]
mod tests {
    use super::{MARKS, with_table};

    #[test]
    fn only_the_table_is_replaced() {
        let page = format!("# Page\n{}old\n{}tail\n", MARKS.0, MARKS.1);
        let expected = format!("# Page\n{}\nnew\n\n{}tail\n", MARKS.0, MARKS.1);
        assert_eq!(with_table(&page, "new\n").unwrap(), expected.replace("new\n\n", "new\n"));
        assert!(with_table("# Page\n", "new").is_err());
    }
}
