//! End-to-end stories: one module each. They run the binary named by `GATE_BIN`, or build it.

#[cfg(test)]
mod action;
#[cfg(test)]
mod bad_servers;
#[cfg(test)]
mod bad_specs;
#[cfg(test)]
mod baselines;
#[cfg(test)]
mod browser;
#[cfg(test)]
mod capacity;
#[cfg(test)]
mod causes;
#[cfg(test)]
mod certificates;
#[cfg(test)]
mod decode;
#[cfg(test)]
mod demo;
#[cfg(test)]
mod dialects;
#[cfg(test)]
mod docs;
#[cfg(test)]
mod doctor;
#[cfg(test)]
mod faults;
#[cfg(test)]
mod forge;
#[cfg(test)]
mod forge_double;
#[cfg(test)]
mod harness;
#[cfg(test)]
mod hook;
#[cfg(test)]
mod imports;
#[cfg(test)]
mod init;
#[cfg(test)]
mod interrupts;
#[cfg(test)]
mod llama;
#[cfg(test)]
mod network;
#[cfg(test)]
mod offline;
#[cfg(test)]
mod reports;
#[cfg(test)]
mod secrets;
#[cfg(test)]
mod shards;
#[cfg(test)]
mod static_binary;
#[cfg(test)]
mod streams;
#[cfg(test)]
mod strictness;
#[cfg(test)]
mod terminal;
#[cfg(test)]
mod texts;
#[cfg(test)]
mod timing;
#[cfg(test)]
mod tls;
#[cfg(test)]
mod trust;
#[cfg(test)]
mod uniformity;
#[cfg(test)]
mod workloads;
