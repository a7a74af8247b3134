//! The end-to-end stories are in `stories/`; this crate has no code of its own.
