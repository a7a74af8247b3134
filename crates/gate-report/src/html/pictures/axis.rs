//! The axis that most pictures have: values from left to right, with round numbers below.

use gate_model::Unit;

use super::canvas::{Anchor, Canvas};
use super::scale::{Scale, tick_texts};

/// How many round numbers fit on a narrow screen.
const TICKS: usize = 6;

/// Where values begin and end, as shares of the width: marks at the ends are whole.
const ENDS: (f64, f64) = (0.015, 0.985);

/// Values from left to right.
#[derive(Clone, Copy, Debug)]
pub(super) struct Axis {
    /// How they are spread.
    pub(super) scale: Scale,
    /// What they count.
    pub(super) unit: Unit,
}

impl Axis {
    /// Where a value is, as a share of the width.
    pub(super) fn at(self, value: f64) -> f64 {
        ENDS.0 + (ENDS.1 - ENDS.0) * self.scale.at(value)
    }

    /// Draws the lines of the round numbers from `top` to `bottom`, and the numbers below.
    pub(super) fn draw(self, canvas: &mut Canvas, top: f64, bottom: f64) {
        let ticks = self.scale.ticks(TICKS);
        let texts = tick_texts(&ticks, self.unit, self.scale);
        for (tick, text) in ticks.iter().zip(texts) {
            let x = self.at(*tick);
            canvas.line("p-grid", (x, top), (x, bottom));
            let (anchor, x) = match x {
                left if left < 0.06 => (Anchor::Start, ENDS.0.min(left)),
                right if right > 0.94 => (Anchor::End, right),
                middle => (Anchor::Middle, middle),
            };
            canvas.text("p-tick", (x, bottom + 15.0), anchor, &text);
        }
        canvas.line("p-axis", (0.0, bottom), (1.0, bottom));
    }

    /// A mark across the plot at a value, with its text at `y` on the side that has more room.
    pub(super) fn mark(self, canvas: &mut Canvas, class: &str, value: f64, text: &str, place: MarkPlace) {
        let x = self.at(value);
        canvas.line(class, (x, place.text - 10.0), (x, place.bottom));
        if x < 0.5 {
            canvas.text_beside("p-note p-over", (x, place.text), 4.0, text);
        } else {
            canvas.text_beside("p-note p-over p-end", (x, place.text), -4.0, text);
        }
    }
}

/// How far down a mark's text and its line reach.
#[derive(Clone, Copy, Debug)]
pub(super) struct MarkPlace {
    /// The text's own line.
    pub(super) text: f64,
    /// Where the line ends.
    pub(super) bottom: f64,
}
