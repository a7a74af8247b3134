//! Plans of real workloads: patterns, traces, data sets, conversations, scenarios, shards and what they cost.

#[cfg(test)]
mod arrivals;
#[cfg(test)]
mod conversations;
#[cfg(test)]
mod datasets;
#[cfg(test)]
mod lengths;
#[cfg(test)]
mod scenarios;
#[cfg(test)]
mod shards;
#[cfg(test)]
mod support;
#[cfg(test)]
mod totals;
#[cfg(test)]
mod traces;
