//! The server as a client sees it: raw bytes over a socket, held against the truth.

#[cfg(test)]
mod buffering;
#[cfg(test)]
mod client;
#[cfg(test)]
mod dialects;
#[cfg(test)]
mod faults;
#[cfg(test)]
mod queue;
#[cfg(test)]
mod server;
#[cfg(test)]
mod speech;
