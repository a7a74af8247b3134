//! Where the time of each request goes: a row a request, in the order they were due.

use gate_model::{Nanos, Outcome, Request, Sample, Unit};

use super::axis::Axis;
use super::canvas::{Anchor, Canvas};
use super::scale::Scale;
use crate::layout::counted;

/// More requests than this share rows.
const MOST_ROWS: usize = 300;

/// How many rows they share at most.
const MOST_BINS: usize = 150;

/// How high all rows together should be, and how high one may be.
const ROWS: f64 = 400.0;
const ROW: (f64, f64) = (4.0, 10.0);

/// Where the legend and the rows begin, from the top.
const LEGEND: f64 = 58.0;
const TOP: f64 = 90.0;

/// A stall is a gap this long, and so many times as long as the request's median gap.
const STALL: (f64, f64) = (20e6, 5.0);

/// The times of one row since it was due, in nanoseconds, in order.
#[derive(Clone, Debug, Default)]
struct Row {
    /// The request, where it is one.
    index: Option<u32>,
    connected: f64,
    /// Absent where there was no token.
    first: Option<f64>,
    end: f64,
    /// Where most requests of a row that stands for many had ended.
    late: Option<f64>,
    stalls: Vec<(f64, f64)>,
    /// How many of it failed.
    failed: usize,
}

/// Some requests of a gate, with the title of their picture.
pub(crate) struct Lot<'a> {
    pub(crate) gate: usize,
    pub(crate) requests: Vec<Request<'a>>,
    pub(crate) title: &'a str,
}

/// The raster of each lot that has requests, all on one axis of time, so that they can be compared.
pub(crate) fn rasters(lots: &[Lot<'_>]) -> Vec<String> {
    let lots: Vec<(&Lot<'_>, usize, Vec<Row>)> = lots.iter().map(|lot| (lot, share(lot), rows(lot))).collect();
    let longest = lots.iter().filter_map(|(_, _, rows)| longest(rows)).reduce(f64::max);
    let Some(scale) = longest.and_then(|longest| Scale::linear(0.0, longest)) else { return Vec::new() };
    let axis = Axis { scale, unit: Unit::Time };
    let drawn = lots.iter().filter(|(_, _, rows)| !rows.is_empty());
    drawn.map(|(lot, share, rows)| raster(lot, *share, rows, axis)).collect()
}

/// How many requests share a row.
fn share(lot: &Lot<'_>) -> usize {
    let count = lot.requests.len();
    if count > MOST_ROWS { count.div_ceil(MOST_BINS) } else { 1 }
}

/// The rows in the order that requests were due.
fn rows(lot: &Lot<'_>) -> Vec<Row> {
    let mut sorted = lot.requests.clone();
    sorted.sort_by_key(|request| (request.intended(), request.index()));
    match share(lot) {
        1 => sorted.iter().map(|request| row(*request)).collect(),
        share => sorted.chunks(share).map(bin).collect(),
    }
}

fn raster(lot: &Lot<'_>, share: usize, rows: &[Row], axis: Axis) -> String {
    let pitch = (ROWS / rows.len() as f64).clamp(ROW.0, ROW.1);
    let bottom = TOP + pitch * rows.len() as f64 + 2.0;
    let mut canvas = Canvas::default();
    canvas.text("p-title", (0.0, 14.0), Anchor::Start, lot.title);
    let reading = if share == 1 {
        "A row for each request, from when it was due; the first on top".to_owned()
    } else {
        format!("Each row: medians of {} by time; the line: 95 % ended", counted(share, "request"))
    };
    canvas.text("p-note", (0.0, 32.0), Anchor::Start, &reading);
    legend(&mut canvas, share);
    axis.draw(&mut canvas, TOP - 4.0, bottom);
    for (place, row) in rows.iter().enumerate() {
        draw(&mut canvas, axis, (lot.gate, row), (TOP + pitch * place as f64, pitch));
    }
    canvas.text("p-tick", (0.5, bottom + 31.0), Anchor::Middle, "time since the request was due");
    let failed: usize = rows.iter().map(|row| row.failed).sum();
    let requests = counted(lot.requests.len(), "request");
    canvas.finish(bottom + 38.0, &format!("{}: {requests}, {failed} failed. {reading}.", lot.title))
}

fn row(request: Request<'_>) -> Row {
    let since_due = |point: Option<Nanos>| point.map(|point| ((point - request.intended()).0 as f64).max(0.0));
    let is_failed = request.outcome() != Outcome::Ok;
    let first = since_due(request.first_token());
    let before = since_due(request.had_connection()).or_else(|| since_due(request.went_out()));
    // One that never had its connection waited for nothing else.
    let ended = since_due(request.end());
    let connected = before.unwrap_or_else(|| if first.is_some() { 0.0 } else { ended.unwrap_or_default() });
    let connected = first.map_or(connected, |first| connected.min(first));
    let last = since_due(request.last_token());
    let end = if is_failed || last.is_none() { ended.or(last) } else { last };
    let end = end.unwrap_or(connected).max(first.unwrap_or(connected));
    let stalls = request.sample().map(stalls).unwrap_or_default();
    Row { index: Some(request.index()), connected, first, end, late: None, stalls, failed: usize::from(is_failed) }
}

/// The gaps of a request that stand out, from and to; none where its tokens' times are not kept.
fn stalls(sample: &Sample) -> Vec<(f64, f64)> {
    let times = sample.token_times.iter().map(|time| ((*time - sample.intended).0 as f64).max(0.0));
    let times: Vec<f64> = times.collect();
    let gaps = || times.iter().copied().zip(times.iter().copied().skip(1));
    let Some(median) = median(gaps().map(|(from, to)| to - from).collect()) else { return Vec::new() };
    let least = STALL.0.max(median * STALL.1);
    gaps().filter(|(from, to)| to - from > least).collect()
}

/// One row for many requests.
fn bin(requests: &[Request<'_>]) -> Row {
    let rows: Vec<Row> = requests.iter().map(|request| row(*request)).collect();
    let connected = median(rows.iter().map(|row| row.connected).collect()).unwrap_or_default();
    let first = median(rows.iter().filter_map(|row| row.first).collect()).map(|first| first.max(connected));
    let ends: Vec<f64> = rows.iter().map(|row| row.end).collect();
    let late = rank(ends.clone(), 0.95);
    let end = median(ends).unwrap_or_default().max(first.unwrap_or(connected));
    Row {
        index: None,
        connected,
        first,
        end,
        late,
        stalls: Vec::new(),
        failed: rows.iter().map(|row| row.failed).sum(),
    }
}

/// The end of the axis: the latest end, or half more than nearly all have taken.
fn longest(rows: &[Row]) -> Option<f64> {
    let ends: Vec<f64> = rows.iter().map(|row| row.late.unwrap_or(row.end).max(row.end)).collect();
    let latest = ends.iter().copied().reduce(f64::max)?;
    let most = rank(ends, 0.99)? * 1.5;
    Some(if most > 0.0 { latest.min(most) } else { latest }.max(1e3))
}

fn median(values: Vec<f64>) -> Option<f64> {
    rank(values, 0.5)
}

/// The value of a rank, by nearest rank.
fn rank(mut values: Vec<f64>, share: f64) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    let place = (values.len() as f64 * share).ceil() as usize;
    values.get(place.saturating_sub(1)).copied()
}

/// A row's bars. Each phase has its own height, so that they can be told apart without colour.
fn draw(canvas: &mut Canvas, axis: Axis, (gate, row): (usize, &Row), (top, pitch): (f64, f64)) {
    if let Some(index) = row.index {
        canvas.begin_request(&format!("{gate}:{index}"));
        canvas.rect("p-hit", (0.0, top), (1.0, pitch));
    }
    let full = (pitch - if pitch >= 6.0 { 2.0 } else { 1.0 }).max(2.0);
    let mut bar = |class: &str, (from, to): (f64, f64), height: f64| {
        let (from, to) = (axis.at(from), axis.at(to));
        if to > from {
            canvas.rect(class, (from, top + (pitch - full * height) / 2.0), (to - from, full * height));
        }
    };
    if let Some(late) = row.late {
        bar("p-late", (row.end, late), 0.15);
    }
    bar("p-wait", (0.0, row.connected), 0.4);
    bar("p-first", (row.connected, row.first.unwrap_or(row.end)), 1.0);
    if let Some(first) = row.first {
        bar("p-decode", (first, row.end), 0.65);
        for stall in &row.stalls {
            bar("p-gone", *stall, 1.0);
            bar("p-stall", *stall, 0.3);
        }
    }
    let end = row.late.unwrap_or(row.end).max(row.end);
    let (middle, size) = (top + pitch / 2.0, (full / 2.0).clamp(2.0, 3.5));
    if row.failed > 0 {
        canvas.shapes(axis.at(end), &cross(middle, size));
    } else if !axis.scale.holds(end) {
        let (up, down) = (middle - size, middle + size);
        let more = format!(r#"<path class="p-more" d="M2 {up:.2}L6 {middle:.2}L2 {down:.2}"/>"#);
        canvas.shapes(axis.at(end), &more);
    }
    if row.index.is_some() {
        canvas.end_request();
    }
}

/// A cross at the left end of its own drawing.
fn cross(y: f64, size: f64) -> String {
    let (up, down) = (y - size, y + size);
    format!(
        r#"<path class="p-failed" d="M-{size:.2} {up:.2}L{size:.2} {down:.2}M{size:.2} {up:.2}L-{size:.2} {down:.2}"/>"#
    )
}

/// What the bars stand for, drawn as they are.
fn legend(canvas: &mut Canvas, share: usize) {
    let boxes = [("p-wait", "to connection", 0.4), ("p-first", "to first token", 1.0), ("p-decode", "decode", 0.65)];
    for (place, (class, text, height)) in boxes.into_iter().enumerate() {
        let (x, height) = (place as f64 * 0.34, 9.0 * height);
        let y = LEGEND - 8.5 + (9.0 - height) / 2.0;
        canvas.shapes(x, &format!(r#"<rect class="{class}" x="0" y="{y:.2}" width="14" height="{height:.2}"/>"#));
        canvas.text_beside("p-key", (x, LEGEND), 19.0, text);
    }
    let y = LEGEND + 12.0;
    let second = if share == 1 { ("p-stall", "stall") } else { ("p-late", "to 95 % ended") };
    canvas.shapes(0.0, &format!(r#"<rect class="{}" x="0" y="{:.2}" width="14" height="3"/>"#, second.0, y - 1.5));
    canvas.text_beside("p-key", (0.0, y + 4.0), 19.0, second.1);
    canvas.shapes(0.34, &format!(r#"<g transform="translate(7 0)">{}</g>"#, cross(y, 3.5)));
    canvas.text_beside("p-key", (0.34, y + 4.0), 19.0, if share == 1 { "failed" } else { "some failed" });
}
