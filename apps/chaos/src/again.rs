//! Calls that are repeated, and what their errors are called.

use alloc::format;
use alloc::string::String;
use core::fmt::Display;

use runtime::abi::Error;
use runtime::idl::Failure;

/// An error as text, with what was tried.
pub fn report<E: Display>(what: &str) -> impl Fn(E) -> String {
    move |error| format!("{what}: {error}")
}

/// Repeats a call that the server died in. It is we who kill servers, so it is not the call's fault, however often.
pub fn again<R, E>(mut call: impl FnMut() -> Result<R, Failure<E>>) -> Result<R, Failure<E>> {
    loop {
        match call() {
            Err(Failure::Transport(Error::PeerDied)) => {}
            outcome => return outcome,
        }
    }
}
