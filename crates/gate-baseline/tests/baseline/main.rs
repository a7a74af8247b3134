//! Tests of stored runs, on real folders and real git repositories.

#[cfg(test)]
mod archives;
#[cfg(test)]
mod choices;
#[cfg(test)]
mod folders;
#[cfg(test)]
mod git_stores;
#[cfg(test)]
mod keys;
#[cfg(test)]
mod priors;
#[cfg(test)]
mod repositories;
#[cfg(test)]
mod support;
#[cfg(test)]
mod workloads;
