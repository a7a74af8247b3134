//! All handling of YAML: text → events → a tree with places, under limits against hostile text.
//!
//! Only the event parser reads text. The tree it is built into keeps where everything stands and the source
//! text of every scalar, so that the type of a field decides what a scalar means.

mod reader;
mod remedy;
mod tree;

pub(crate) use reader::{TEXT_LIMIT, read};
pub(crate) use tree::{Content, Entry, Key, Node, Scalar, Site, Span, Style, core_value};
