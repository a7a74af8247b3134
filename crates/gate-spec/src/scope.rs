//! Where the values of one kind of traffic were written: in its scenario, or in the gate's own blocks.

use crate::context::Context;
use crate::table::SHAPE;
use crate::walk::reshapes;

/// The gate itself, or one of its scenarios.
pub(crate) struct Scope {
    /// The scenario; none is the gate.
    name: Option<String>,
    /// Whether it has a shape of load of its own, so that nothing the gate says of one holds.
    is_reshaped: bool,
}

impl Scope {
    /// The gate's own blocks.
    pub(crate) fn gate() -> Self {
        Self { name: None, is_reshaped: false }
    }

    /// A scenario of this name.
    pub(crate) fn scenario(context: &Context, name: &str) -> Self {
        let is_reshaped = reshapes(|key| context.is_written(&format!("scenarios.{name}.load.{key}")));
        Self { name: Some(name.to_owned()), is_reshaped }
    }

    /// The scenario's name.
    pub(crate) fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    /// The path of a key in this scope alone, whether or not it is written there.
    pub(crate) fn own(&self, key: &str) -> String {
        self.name.as_ref().map_or_else(|| key.to_owned(), |name| format!("scenarios.{name}.{key}"))
    }

    /// The path that a key's value comes from.
    pub(crate) fn path(&self, context: &Context, key: &str) -> String {
        let own = self.own(key);
        let is_shape = || key.strip_prefix("load.").is_some_and(|key| SHAPE.contains(&key));
        let is_own = (self.is_reshaped && is_shape()) || context.is_written(&own) || !context.is_sound(&own);
        if is_own { own } else { key.to_owned() }
    }

    /// Whether a value is given, here or by the gate where it holds here.
    pub(crate) fn is_written(&self, context: &Context, key: &str) -> bool {
        context.is_written(&self.path(context, key))
    }

    /// Whether a value means anything.
    pub(crate) fn is_sound(&self, context: &Context, key: &str) -> bool {
        context.is_sound(&self.path(context, key))
    }
}
