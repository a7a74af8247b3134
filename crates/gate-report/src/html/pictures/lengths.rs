//! The time to first token by how long the prompt is.

use std::collections::BTreeMap;

use gate_model::{Quantity, Request, Series, Unit};

use super::axis::Axis;
use super::canvas::{Anchor, Canvas};
use super::scale::{Scale, WIDE, tick_texts};
use crate::layout::counted;

const PLOT: f64 = 190.0;

/// Where the dots begin, from the top.
const TOP: f64 = 44.0;

/// More requests than this share dots.
const MOST_DOTS: usize = 2_000;

/// How many dots that are shared there are, across and down.
const CELLS: (usize, usize) = (48, 24);

/// The dots; `None` where no two prompts differ in length, or nothing answered.
pub(crate) fn lengths(gate: usize, requests: &[Request<'_>]) -> Option<String> {
    let dots = requests.iter().filter_map(|request| {
        let planned = || request.sample().map(|sample| f64::from(sample.planned_input)).filter(|tokens| *tokens > 0.0);
        let tokens = request.value(Series::InputTokens).or_else(planned)?;
        let ttft = request.value(Series::Ttft)?.max(0.0);
        (tokens.is_finite() && ttft.is_finite()).then_some((tokens, ttft, request.index()))
    });
    let dots: Vec<(f64, f64, u32)> = dots.collect();
    let tokens = scale(dots.iter().map(|dot| dot.0)).filter(|(low, high)| low < high)?;
    let times = scale(dots.iter().map(|dot| dot.1))?;
    let axis = Axis { scale: spread_over(tokens)?, unit: Unit::Count };
    let up = spread_over(times)?;
    let bottom = TOP + PLOT;
    let down = |ttft: f64| bottom - 4.0 - (PLOT - 8.0) * up.at(ttft);
    let mut canvas = Canvas::default();
    canvas.text("p-title", (0.0, 14.0), Anchor::Start, "Time to first token by prompt length");
    let is_shared = dots.len() > MOST_DOTS;
    let reading = if is_shared { "A larger dot stands for more requests" } else { "A dot for each request" };
    canvas.text("p-note", (0.0, 32.0), Anchor::Start, reading);
    let ticks = up.ticks(5);
    let texts = tick_texts(&ticks, Unit::Time, up);
    for tick in &ticks {
        canvas.line("p-grid", (0.0, down(*tick)), (1.0, down(*tick)));
    }
    axis.draw(&mut canvas, TOP, bottom);
    if is_shared {
        draw_shared(&mut canvas, &dots, axis, up);
    } else {
        for (tokens, ttft, index) in &dots {
            canvas.dot("p-dot", (axis.at(*tokens), down(*ttft)), 3.0, Some(&format!("{gate}:{index}")));
        }
    }
    for (tick, text) in ticks.iter().zip(texts) {
        canvas.text("p-tick p-over", (0.0, down(*tick) - 3.0), Anchor::Start, &text);
    }
    canvas.text("p-tick", (0.5, bottom + 31.0), Anchor::Middle, "input tokens");
    let of = |(low, high): (f64, f64), unit: Unit| {
        let text = |value: f64| crate::words::figure(Quantity { value, unit });
        format!("{} to {}", text(low), text(high))
    };
    let (times, tokens) = (of(times, Unit::Time), of(tokens, Unit::Count));
    let requests = counted(dots.len(), "request");
    let label = format!("Time to first token by prompt length: {requests}, {times}, {tokens} input tokens. {reading}.");
    Some(canvas.finish(bottom + 38.0, &label))
}

/// The least and the most.
fn scale(values: impl Iterator<Item = f64>) -> Option<(f64, f64)> {
    values.fold(None, |ends: Option<(f64, f64)>, value| {
        Some(ends.map_or((value, value), |(low, high)| (low.min(value), high.max(value))))
    })
}

/// By the logarithm where they differ widely, else from zero where that is not far.
fn spread_over((low, high): (f64, f64)) -> Option<Scale> {
    match low {
        above if above > 0.0 && high / above > WIDE => Scale::log(low, high),
        near if near > 0.0 && near < high / 2.0 => Scale::linear(0.0, high * 1.02),
        _ => {
            let room = (high - low) * 0.05;
            Scale::linear((low - room).max(0.0), high + room)
        }
    }
}

/// Dots at the middles of cells, each as large as its requests are many.
fn draw_shared(canvas: &mut Canvas, dots: &[(f64, f64, u32)], axis: Axis, up: Scale) {
    let cell = |share: f64, cells: usize| ((share * cells as f64) as usize).min(cells - 1);
    let mut counts: BTreeMap<(usize, usize), u32> = BTreeMap::new();
    for (tokens, ttft, _) in dots {
        let place = (cell(axis.scale.at(*tokens), CELLS.0), cell(up.at(*ttft), CELLS.1));
        *counts.entry(place).or_default() += 1;
    }
    let most = counts.values().copied().max().unwrap_or(1);
    let (low, high) = axis.scale.ends();
    let (left, right) = (axis.at(low), axis.at(high));
    for ((across, above), count) in counts {
        let x = left + (right - left) * (across as f64 + 0.5) / CELLS.0 as f64;
        let y = TOP + PLOT - 4.0 - (PLOT - 8.0) * (above as f64 + 0.5) / CELLS.1 as f64;
        let radius = 1.0 + 3.5 * (f64::from(count) / f64::from(most)).sqrt();
        canvas.dot("p-dot", (x, y), radius, None);
    }
}
