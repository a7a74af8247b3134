//! Prometheus' text format: one point a line, `name{label="value",…} value [timestamp]`. What OpenMetrics puts after the
//! value is not read.

/// The value of one metric under one set of labels.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Point<'a> {
    /// The metric's name.
    pub(super) name: &'a str,
    /// What stands between the braces.
    labels: &'a str,
    /// The value; of [`points`] a finite number.
    pub(super) value: f64,
}

impl<'a> Point<'a> {
    /// A label's value, as it is written.
    pub(super) fn label(&self, name: &str) -> Option<&'a str> {
        labels(self.labels).find(|(label, _)| *label == name).map(|(_, value)| value)
    }

    /// Whether it is a bucket of a histogram or a quantile of a summary: over those there is no sum.
    pub(super) fn is_part(&self) -> bool {
        self.label("le").or(self.label("quantile")).is_some()
    }
}

/// The points of a text. Comments, lines that are none, and values that are no finite numbers are passed over.
pub(super) fn points(text: &str) -> impl Iterator<Item = Point<'_>> {
    text.lines().filter_map(point).filter(|point| point.value.is_finite())
}

/// The points of a text that have a place, and no number for it: NaN or infinite.
pub(super) fn without_number(text: &str) -> impl Iterator<Item = Point<'_>> {
    text.lines().filter_map(point).filter(|point| !point.value.is_finite())
}

fn point(line: &str) -> Option<Point<'_>> {
    let line = line.trim();
    let name_end = line.find(|c: char| c == '{' || c.is_whitespace())?;
    let (name, rest) = line.split_at_checked(name_end)?;
    if name.is_empty() || name.starts_with('#') {
        return None;
    }
    let (labels, rest) = match rest.strip_prefix('{') {
        Some(inside) => inside.split_at_checked(closing_brace(inside)?)?,
        None => ("", rest),
    };
    let value: f64 = rest.strip_prefix('}').unwrap_or(rest).split_whitespace().next()?.parse().ok()?;
    Some(Point { name, labels, value })
}

/// Where the labels end: at the first brace that is not within quotes.
fn closing_brace(labels: &str) -> Option<usize> {
    let mut is_quoted = false;
    let mut is_escaped = false;
    for (at, symbol) in labels.char_indices() {
        match symbol {
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = is_quoted,
            '"' => is_quoted = !is_quoted,
            '}' if !is_quoted => return Some(at),
            _ => {}
        }
    }
    None
}

/// Each label with its value, up to one that is not written as it should be.
fn labels(mut rest: &str) -> impl Iterator<Item = (&str, &str)> {
    std::iter::from_fn(move || {
        let (name, after) = rest.split_once('=')?;
        let quoted = after.trim_start().strip_prefix('"')?;
        let (value, after) = quoted.split_at_checked(closing_quote(quoted)?)?;
        rest = after.strip_prefix('"')?.trim_start().trim_start_matches(',');
        Some((name.trim(), value))
    })
}

fn closing_quote(text: &str) -> Option<usize> {
    let mut is_escaped = false;
    for (at, symbol) in text.char_indices() {
        match symbol {
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = true,
            '"' => return Some(at),
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn only(line: &str) -> Point<'_> {
        let all: Vec<_> = points(line).collect();
        assert_eq!(all.len(), 1, "{line}");
        all[0]
    }

    #[test]
    fn a_point_has_a_name_labels_and_a_value() {
        assert_eq!((only("up 1").name, only("up 1").value), ("up", 1.0));
        assert_eq!(only("a_total 1.5e3 1395066363000").value, 1_500.0);
        assert_eq!(only("a -2").value, -2.0);
        let point = only(r#"vllm:n{engine="0", model_name="a}b,le=\"1\"\\" , x="" } 7 # {trace_id="t"} 1"#);
        assert_eq!((point.name, point.value), ("vllm:n", 7.0));
        assert_eq!(point.label("engine"), Some("0"));
        assert_eq!(point.label("model_name"), Some(r#"a}b,le=\"1\"\\"#));
        assert_eq!((point.label("x"), point.label("le"), point.is_part()), (Some(""), None, false));
        assert!(only(r#"h_bucket{a="1",le="+Inf",} 3"#).is_part());
        assert!(only(r#"s{quantile="0.5"} 3"#).is_part());
    }

    #[test]
    fn what_is_no_point_is_passed_over() {
        for line in [
            "",
            "# HELP a b",
            "# TYPE a gauge",
            "# EOF",
            "a",
            "a NaN",
            "a +Inf",
            "a -Inf",
            "a x",
            "a{b=\"c\" 1",
            "{\"utf8.name\"} 1",
            "<html>",
            "a{",
            "a{b=\"\\",
        ] {
            assert_eq!(points(line).next(), None, "{line}");
        }
        assert_eq!(points("a 1\nnot a point\n\nb 2\r\n").map(|point| point.value).collect::<Vec<_>>(), [1.0, 2.0]);
    }
}
