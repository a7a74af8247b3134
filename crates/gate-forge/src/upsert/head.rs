//! The hidden lines at a comment's head.

/// What a comment's hidden lines say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Head<'b> {
    /// The first line: whose comment it is.
    pub(super) marker: Option<&'b str>,
    /// The run that posted it.
    pub(super) run: Option<u64>,
    /// The word that stands for what it says.
    digest: Option<&'b str>,
}

const STATE: &str = "<!-- gate:state ";

impl<'b> Head<'b> {
    pub(super) fn of(body: &'b str) -> Self {
        let mut lines = body.trim_start().lines().map(str::trim_end);
        let marker = lines.next();
        let (run, digest) = lines.next().map(state).unwrap_or_default();
        Self { marker, run, digest }
    }

    /// Whether it says what a state line stands for; the run may be another.
    pub(super) fn says_what(&self, line: &str) -> bool {
        let (_, digest) = state(line.trim());
        digest.is_some() && self.digest == digest
    }
}

/// A state line's run and digest: `<!-- gate:state run=N DIGEST -->`, the run optional.
fn state(line: &str) -> (Option<u64>, Option<&str>) {
    let Some(inner) = line.strip_prefix(STATE).and_then(|rest| rest.strip_suffix("-->")) else {
        return (None, None);
    };
    let run = inner.split_whitespace().find_map(|word| word.strip_prefix("run=")?.parse().ok());
    let digest = inner.split_whitespace().rfind(|word| !word.contains('='));
    (run, digest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_is_the_first_two_lines() {
        let body = "<!-- gate:comment job=a -->\r\n<!-- gate:state run=12 0123456789abcdef -->\r\n\r\n### red";
        let head = Head::of(body);
        assert_eq!((head.marker, head.run), (Some("<!-- gate:comment job=a -->"), Some(12)));
        assert!(head.says_what("<!-- gate:state run=13 0123456789abcdef -->"));
        assert!(head.says_what("<!-- gate:state 0123456789abcdef -->"));
        assert!(!head.says_what("<!-- gate:state run=12 fedcba9876543210 -->"));
        assert!(!head.says_what("0123456789abcdef"));
    }

    #[test]
    fn what_is_quoted_further_down_counts_for_nothing() {
        let head = Head::of("> quoted\n\n<!-- gate:state run=99 0123456789abcdef -->");
        assert_eq!(head, Head { marker: Some("> quoted"), run: None, digest: None });
        assert_eq!(Head::of(""), Head { marker: None, run: None, digest: None });
        let odd = Head::of("m\n<!-- gate:state run=-1 -->");
        assert_eq!((odd.run, odd.digest), (None, None));
    }
}
