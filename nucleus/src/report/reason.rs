//! Texts of errors for the log and panics.

use abi::Error;

/// The text of an error that is likely when the system starts, a handler is called, or a window is accessed. The texts of
/// all errors would make the nucleus larger by 2 KiB.
pub const fn reason(error: Error) -> &'static str {
    match error {
        Error::Empty => const { Error::Empty.text() },
        Error::Revoked => const { Error::Revoked.text() },
        Error::NoRight => const { Error::NoRight.text() },
        Error::NotMapped => const { Error::NotMapped.text() },
        Error::Reserved => const { Error::Reserved.text() },
        Error::Registers => const { Error::Registers.text() },
        Error::TooOften => const { Error::TooOften.text() },
        Error::AccountExhausted => const { Error::AccountExhausted.text() },
        Error::NoFrames => const { Error::NoFrames.text() },
        Error::Busy => const { Error::Busy.text() },
        Error::TooDeep => const { Error::TooDeep.text() },
        Error::PeerDied => const { Error::PeerDied.text() },
        Error::Cancelled => const { Error::Cancelled.text() },
        Error::Flow => const { Error::Flow.text() },
        Error::WindowGone => const { Error::WindowGone.text() },
        Error::Occupied => const { Error::Occupied.text() },
        _ => "refused for another reason",
    }
}
