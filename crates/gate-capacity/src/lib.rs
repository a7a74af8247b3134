//! Planning formulas: how much memory a KV cache takes, how many instances a peak needs, which provider limits bind, and
//! from how many tokens a day fixed capacity is cheaper than paying by the token.
//!
//! All of it is arithmetic on what the caller gives; nothing is measured here. Bytes and tokens are integers.

mod architecture;
mod error;
mod host;
mod instances;
mod kv;
mod limits;
mod models;
mod traffic;

pub use architecture::{Architecture, Attention, Layer, architecture};
pub use error::CapacityError;
pub use host::{Costs, Hosting, Offer, OfferCost, Price, compare};
pub use instances::{HEADROOM, Instances, instances};
pub use kv::{Dtype, Fit, Memory, Room, cache_bytes, fit, most_sequences, weight_bytes};
pub use limits::{Binding, Need, Tier, TierFit, Tiers, against, need};
pub use models::{MODELS_DATE, NamedModel, model, model_names};
pub use traffic::Traffic;
