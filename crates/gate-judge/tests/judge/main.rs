//! Tests of whole verdicts.

#[cfg(test)]
mod answers;
#[cfg(test)]
mod calibration;
#[cfg(test)]
mod client;
#[cfg(test)]
mod decide;
#[cfg(test)]
mod means;
#[cfg(test)]
mod referee;
#[cfg(test)]
mod robustness;
#[cfg(test)]
mod rules;
#[cfg(test)]
mod support;
#[cfg(test)]
mod validity;
#[cfg(test)]
mod whole_gate;
