//! Loads against servers that are scripted byte by byte.

#[cfg(test)]
mod bench;
#[cfg(test)]
mod connections;
#[cfg(test)]
mod delivery;
#[cfg(test)]
mod ends;
#[cfg(test)]
mod engine;
#[cfg(test)]
mod journal;
#[cfg(test)]
mod outcomes;
#[cfg(test)]
mod readiness;
#[cfg(test)]
mod server;
#[cfg(test)]
mod stamps;
#[cfg(test)]
mod tls;
#[cfg(test)]
mod warmup;
