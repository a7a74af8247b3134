//! Tests of whole verdicts.

#[cfg(test)]
mod a_a_runs;
#[cfg(test)]
mod answers;
#[cfg(test)]
mod calibration;
#[cfg(test)]
mod causes;
#[cfg(test)]
mod client;
#[cfg(test)]
mod decide;
#[cfg(test)]
mod engine;
#[cfg(test)]
mod family;
#[cfg(test)]
mod lengths;
#[cfg(test)]
mod means;
#[cfg(test)]
mod moved;
#[cfg(test)]
mod referee;
#[cfg(test)]
mod relative;
#[cfg(test)]
mod robustness;
#[cfg(test)]
mod rules;
#[cfg(test)]
mod sections;
#[cfg(test)]
mod server;
#[cfg(test)]
mod side_by_side;
#[cfg(test)]
mod spreads;
#[cfg(test)]
mod stored;
#[cfg(test)]
mod support;
#[cfg(test)]
mod validity;
#[cfg(test)]
mod whole_gate;
