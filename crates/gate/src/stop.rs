//! SIGINT and SIGTERM.

use crate::failure::Failure;

/// Makes both signals do this, as often as they come.
pub(crate) fn on_signals(action: impl FnMut() + Send + 'static) -> Result<(), Failure> {
    ctrlc::set_handler(action).map_err(|error| Failure::internal(format!("cannot listen for interrupts: {error}")))
}
