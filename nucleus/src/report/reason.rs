//! Texts of errors for the log and panics.

use abi::Error;

/// The text of an error that is likely when the system starts, a handler is called, or a window is accessed. The texts of
/// all errors would make the nucleus larger by 2 KiB.
pub const fn reason(error: Error) -> &'static str {
    match error {
        Error::NoHandler => const { Error::NoHandler.text_alone() },
        Error::Revoked => const { Error::Revoked.text_alone() },
        Error::NoRight => const { Error::NoRight.text_alone() },
        Error::PageRights => const { Error::PageRights.text_alone() },
        Error::NotMapped => const { Error::NotMapped.text_alone() },
        Error::Reserved => const { Error::Reserved.text_alone() },
        Error::Registers => const { Error::Registers.text_alone() },
        Error::TooOften => const { Error::TooOften.text_alone() },
        Error::AccountExhausted => const { Error::AccountExhausted.text_alone() },
        Error::NoFrames => const { Error::NoFrames.text_alone() },
        Error::Busy => const { Error::Busy.text_alone() },
        Error::TooDeep => const { Error::TooDeep.text_alone() },
        Error::PeerDied => const { Error::PeerDied.text_alone() },
        Error::Cancelled => const { Error::Cancelled.text_alone() },
        Error::Flow => const { Error::Flow.text_alone() },
        Error::WindowGone => const { Error::WindowGone.text_alone() },
        Error::IsScheduler => const { Error::IsScheduler.text_alone() },
        Error::WrongKind => const { Error::WrongKind.text_alone() },
        Error::Occupied => const { Error::Occupied.text_alone() },
        _ => "refused for another reason",
    }
}
