//! From values to places across or down a drawing, and the round numbers on an axis.

use gate_model::{Quantity, Unit};

use crate::words::number;

/// Values that differ by more than this are drawn by their logarithm.
pub(super) const WIDE: f64 = 20.0;

/// How values are spread over a stretch from 0 to 1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Scale {
    low: f64,
    high: f64,
    is_log: bool,
}

impl Scale {
    /// Evenly from `low` to `high`; `None` where that is no stretch. Equal values get a stretch around them.
    pub(super) fn linear(low: f64, high: f64) -> Option<Self> {
        let is_stretch = low.is_finite() && high.is_finite() && low <= high && (high - low).is_finite();
        is_stretch.then(|| {
            let least = low.abs().max(high.abs()).max(1e-9) * 1e-6;
            let (low, high) = if high - low < least { widened(low, high) } else { (low, high) };
            Self { low, high, is_log: false }
        })
    }

    /// By the logarithm, where both are above zero; else evenly.
    pub(super) fn log(low: f64, high: f64) -> Option<Self> {
        let even = Self::linear(low, high)?;
        let is_log = low > 0.0 && (high / low).is_finite();
        Some(if is_log { Self { low: low.min(high / 1.001), high, is_log } } else { even })
    }

    /// Whether it goes by the logarithm.
    pub(super) fn is_log(self) -> bool {
        self.is_log
    }

    /// Its ends.
    pub(super) fn ends(self) -> (f64, f64) {
        (self.low, self.high)
    }

    /// Whether a value is on it.
    pub(super) fn holds(self, value: f64) -> bool {
        value >= self.low && value <= self.high
    }

    /// Where a value is, from 0 to 1; those beyond the ends are at the ends.
    pub(super) fn at(self, value: f64) -> f64 {
        let value = value.clamp(self.low, self.high);
        let share = if self.is_log {
            (value / self.low).ln() / (self.high / self.low).ln()
        } else {
            (value - self.low) / (self.high - self.low)
        };
        if share.is_finite() { share.clamp(0.0, 1.0) } else { 0.0 }
    }

    /// At most so many round values on it, ascending.
    pub(super) fn ticks(self, most: usize) -> Vec<f64> {
        if self.is_log {
            let mantissas: [&[f64]; 3] = [&[1.0, 2.0, 5.0], &[1.0, 3.0], &[1.0]];
            let sets = mantissas.into_iter().map(|mantissas| self.decades(mantissas, 1));
            let sparse = (2..40).map(|step| self.decades(&[1.0], step));
            let fits = sets.chain(sparse).find(|ticks| ticks.len() <= most);
            if let Some(ticks) = fits.filter(|ticks| ticks.len() >= 3) {
                return ticks;
            }
        }
        self.even_ticks(most)
    }

    fn decades(self, mantissas: &[f64], step: i32) -> Vec<f64> {
        let (first, last) = (self.low.log10().floor() as i32, self.high.log10().ceil() as i32);
        let decades = (first..=last).filter(|decade| decade.rem_euclid(step) == 0);
        let values = decades.flat_map(|decade| mantissas.iter().map(move |one| one * 10_f64.powi(decade)));
        values.filter(|value| self.holds(*value)).collect()
    }

    fn even_ticks(self, most: usize) -> Vec<f64> {
        let rough = (self.high - self.low) / most.max(2) as f64;
        let decade = 10_f64.powf(rough.log10().floor());
        let steps = [1.0, 2.0, 2.5, 5.0, 10.0, 20.0, 25.0, 50.0].map(|one| one * decade);
        let of = |step: f64| -> Vec<f64> {
            let first = (self.low / step).ceil();
            (0..most.saturating_add(1))
                .map(|place| (first + place as f64) * step)
                .filter(|tick| self.holds(*tick))
                .collect()
        };
        let sets = steps.into_iter().filter(|step| step.is_normal()).map(of);
        sets.into_iter().find(|ticks| ticks.len() <= most).unwrap_or_default()
    }
}

fn widened(low: f64, high: f64) -> (f64, f64) {
    let by = (low.abs().max(high.abs()) * 0.1).max(1e-6);
    (low - by, high + by)
}

/// The most decimals of a tick.
const DECIMALS: usize = 6;

/// The ticks' texts, with as many digits as tell them apart: evenly spaced ones all in one unit, others each in its own.
pub(super) fn tick_texts(ticks: &[f64], unit: Unit, scale: Scale) -> Vec<String> {
    let largest = ticks.iter().fold(0.0_f64, |largest, tick| largest.max(tick.abs()));
    let short = |tick: f64| match unit {
        Unit::Time => {
            let (by, name) = time_unit(if scale.is_log() { tick.abs() } else { largest });
            format!("{} {name}", number(tick / by))
        }
        unit => crate::words::figure(Quantity { value: tick, unit }),
    };
    let long = |tick: f64, decimals: usize| {
        let (by, name) = if unit == Unit::Time { time_unit(largest) } else { (1.0, "") };
        format!("{:.decimals$} {name}", tick / by).trim_end().to_owned()
    };
    let differ = |texts: &Vec<String>| texts.iter().zip(texts.iter().skip(1)).all(|(one, next)| one != next);
    let texts: Vec<String> = ticks.iter().map(|tick| short(*tick)).collect();
    if differ(&texts) {
        return texts;
    }
    let mut longer = (1..=DECIMALS).map(|decimals| ticks.iter().map(|tick| long(*tick, decimals)).collect());
    longer.find(differ).unwrap_or(texts)
}

/// The unit of time in which a value is short.
fn time_unit(value: f64) -> (f64, &'static str) {
    match value {
        below if below < 1e3 => (1.0, "ns"),
        below if below < 1e6 => (1e3, "µs"),
        below if below < 1e9 => (1e6, "ms"),
        below if below < 600e9 => (1e9, "s"),
        _ => (60e9, "min"),
    }
}
