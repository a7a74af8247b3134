//! The report's pictures, drawn as SVG: they are there without a script, on paper, and in a diff.

mod axis;
mod canvas;
mod check;
mod gaps;
mod lengths;
mod raster;
mod scale;
mod spread;

pub(super) use check::check;
pub(super) use gaps::gaps;
pub(super) use lengths::lengths;
pub(super) use raster::{Lot, rasters};
pub(super) use spread::{Names, spread};

#[cfg(test)]
mod tests;
