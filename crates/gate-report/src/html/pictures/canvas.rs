//! A drawing as SVG text.
//!
//! It is as wide as the page lets it be: places across are shares of that width, places down are pixels, so that text
//! keeps its size on a narrow screen. Colours and strokes are classes of `pictures.css`; nothing has an id, since a page
//! holds many drawings.

use std::fmt::Write as _;

use crate::escape::{strip_ansi, xml_text};
use crate::layout::clip;

/// How much of a text a drawing shows, in characters.
const TEXT: usize = 80;

/// How much of its description is read aloud.
const LABEL: usize = 300;

/// Where a text is from its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Anchor {
    /// It begins there.
    Start,
    /// It is around it.
    Middle,
    /// It ends there.
    End,
}

/// A place: a share of the width, and pixels from the top.
pub(super) type Place = (f64, f64);

/// A drawing being written.
#[derive(Debug, Default)]
pub(super) struct Canvas {
    body: String,
}

impl Canvas {
    /// A filled box.
    pub(super) fn rect(&mut self, class: &str, (x, y): Place, (width, height): Place) {
        if let Some([x, y, width, height]) = numbers([x * 100.0, y, width.max(0.0) * 100.0, height.max(0.0)]) {
            let _ = write!(self.body, r#"<rect class="{class}" x="{x}%" y="{y}" width="{width}%" height="{height}"/>"#);
        }
    }

    /// A straight line.
    pub(super) fn line(&mut self, class: &str, from: Place, to: Place) {
        if let Some([x1, y1, x2, y2]) = numbers([from.0 * 100.0, from.1, to.0 * 100.0, to.1]) {
            let _ = write!(self.body, r#"<line class="{class}" x1="{x1}%" y1="{y1}" x2="{x2}%" y2="{y2}"/>"#);
        }
    }

    /// A dot; `request` is what it stands for, if one.
    pub(super) fn dot(&mut self, class: &str, (x, y): Place, radius: f64, request: Option<&str>) {
        if let Some([x, y, radius]) = numbers([x * 100.0, y, radius]) {
            let request = request.map(|name| format!(r#" data-r="{name}""#)).unwrap_or_default();
            let _ = write!(self.body, r#"<circle class="{class}"{request} cx="{x}%" cy="{y}" r="{radius}"/>"#);
        }
    }

    /// A line of text.
    pub(super) fn text(&mut self, class: &str, (x, y): Place, anchor: Anchor, text: &str) {
        let anchor = match anchor {
            Anchor::Start => "",
            Anchor::Middle => " p-middle",
            Anchor::End => " p-end",
        };
        if let Some([x, y]) = numbers([x * 100.0, y]) {
            let text = escaped(text, TEXT);
            let _ = write!(self.body, r#"<text class="{class}{anchor}" x="{x}%" y="{y}">{text}</text>"#);
        }
    }

    /// A line of text that begins so many pixels right of a place.
    pub(super) fn text_beside(&mut self, class: &str, (x, y): Place, pixels: f64, text: &str) {
        if let Some([x, y, pixels]) = numbers([x * 100.0, y, pixels]) {
            let text = escaped(text, TEXT);
            let _ = write!(self.body, r#"<text class="{class}" x="{x}%" dx="{pixels}" y="{y}">{text}</text>"#);
        }
    }

    /// A line through all of the places, in a drawing of this height.
    pub(super) fn path(&mut self, class: &str, places: &[Place], height: f64) {
        let mut path = String::new();
        for place in places {
            if let Some([x, y]) = numbers([place.0 * 1000.0, place.1]) {
                let _ = write!(path, "{}{x} {y}", if path.is_empty() { 'M' } else { 'L' });
            }
        }
        let Some([height]) = numbers([height]).filter(|_| !path.is_empty()) else { return };
        let _ = write!(
            self.body,
            r#"<svg width="100%" height="{height}" viewBox="0 0 1000 {height}" preserveAspectRatio="none"><path class="{class}" d="{path}"/></svg>"#
        );
    }

    /// Shapes at a place across, whose own places are pixels from there and from the top.
    pub(super) fn shapes(&mut self, x: f64, shapes: &str) {
        if let Some([x]) = numbers([x * 100.0]) {
            let _ = write!(self.body, r#"<svg class="p-free" x="{x}%">{shapes}</svg>"#);
        }
    }

    /// All that is drawn until [`Self::end_request`] stands for this request.
    pub(super) fn begin_request(&mut self, request: &str) {
        let _ = write!(self.body, r#"<g data-r="{request}">"#);
    }

    /// Ends what [`Self::begin_request`] began.
    pub(super) fn end_request(&mut self) {
        self.body.push_str("</g>");
    }

    /// The drawing, of this height, as it is described to who cannot see it.
    pub(super) fn finish(self, height: f64, label: &str) -> String {
        let (label, body) = (escaped(label, LABEL), self.body);
        let height = height.clamp(0.0, FURTHEST).round();
        format!(r#"<svg class="p-plot" role="img" aria-label="{label}" width="100%" height="{height}">{body}</svg>"#)
    }
}

/// Text for an element or between quotes, cut to so many characters.
pub(super) fn escaped(text: &str, most: usize) -> String {
    let text = clip(&xml_text(&strip_ansi(text)), most);
    quick_xml::escape::escape(text.as_str()).into_owned()
}

/// The furthest a shape reaches, in pixels.
const FURTHEST: f64 = 20_000.0;

/// The numbers with at most two decimals; `None` where one is not finite.
pub(super) fn numbers<const N: usize>(values: [f64; N]) -> Option<[String; N]> {
    values.iter().all(|value| value.is_finite()).then(|| {
        values.map(|value| {
            let text = format!("{:.2}", value.clamp(-FURTHEST, FURTHEST));
            let text = text.trim_end_matches('0').trim_end_matches('.');
            if text == "-0" { "0".to_owned() } else { text.to_owned() }
        })
    })
}
