//! Errors that a client never meets if all is well.

use protocols::net::NetError;

/// The refusal for one. The log has the error.
pub fn failed(what: &str, error: impl core::fmt::Display) -> NetError {
    runtime::log_about_program!("{what}: {error}");
    NetError::Failed
}
