//! From answers to files: what an endpoint is, what its workload is like and what its users are owed become a gate for
//! pull requests, a nightly gate, the forge's CI file, and a page that explains them.
//!
//! Everything here is text from values. Asking people and endpoints, and writing files, is the command's.

mod answers;
mod ci;
mod dataset;
mod endpoint;
mod gate;
mod page;
mod workload;

pub use answers::{Answers, Forge, Prices, Sla};
pub use ci::{CI_GITHUB, CI_GITLAB, github, gitlab};
pub use dataset::{DatasetError, fitted};
pub use endpoint::{Endpoint, Engine, engine_of, models_in};
pub use gate::{literal, nightly, pull_request};
pub use page::{Detects, page};
pub use workload::{Kind, Lengths, Workload};
