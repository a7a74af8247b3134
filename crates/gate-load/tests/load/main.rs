//! Loads against servers that are scripted byte by byte.

#[cfg(test)]
mod aborts;
#[cfg(test)]
mod bench;
#[cfg(test)]
mod certificates;
#[cfg(test)]
mod connections;
#[cfg(test)]
mod conversations;
#[cfg(test)]
mod delivery;
#[cfg(test)]
mod ends;
#[cfg(test)]
mod engine;
#[cfg(test)]
mod facts;
#[cfg(test)]
mod http2;
#[cfg(test)]
mod journal;
#[cfg(test)]
mod mtls;
#[cfg(test)]
mod network;
#[cfg(test)]
mod outcomes;
#[cfg(test)]
mod pace;
#[cfg(test)]
mod protocols;
#[cfg(test)]
mod proxies;
#[cfg(test)]
mod readiness;
#[cfg(test)]
mod replay;
#[cfg(test)]
mod sections;
#[cfg(test)]
mod server;
#[cfg(test)]
mod side_by_side;
#[cfg(test)]
mod stamps;
#[cfg(test)]
mod tls;
#[cfg(test)]
mod unix;
#[cfg(test)]
mod warmup;
