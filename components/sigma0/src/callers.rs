//! Callers, and what the log says about them.

use runtime::label::Compartments;
use runtime::log_about_program;

/// Answers whether a caller is tainted.
pub static CALLERS: Compartments = Compartments::new();

/// Logs the cause of what never happens if all is well, unless everybody would learn of a tainted caller by that.
pub fn report(what: &str, error: impl core::fmt::Display) {
    if CALLERS.caller_may(0).change {
        log_about_program!("{what}: {error}");
    }
}
