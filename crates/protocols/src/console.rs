//! The terminal. Its first two methods are those of `crate::stream::Stream`, number for number, so
//! that the same call entry serves as a program's stream.
//!
//! # Who may what
//! A client that opens `console` by its name may write and flush. A holder of a portal by the system description may do all of it,
//! and give others an entry that may write, flush, read cooked, read keys, and be given to others in turn. When the terminal changes hands, such an entry can only write and flush. The rest is `NotAllowed`.
//! A tainted program gives it to nobody: `Flow`.

use idl::{interface, scalar_enum};

pub use crate::stream::StreamError as ConsoleError;

scalar_enum! {
    /// The results of `read`.
    pub enum Mode {
        0 Cooked "whole lines, echoed, with erase and end of file"
        1 Raw "each byte as it comes, not echoed"
    }
}

/// The terminal.
#[interface]
pub trait Console {
    /// Waits until there is something and reads at most what fits: a line, or part of one; 0 is the end
    /// of file that the person typed. `Interrupted` if the terminal is raw, unless the caller has a portal.
    #[repeatable]
    #[of(Stream)]
    fn read(&self, into: &mut [u8]) -> Result<usize, ConsoleError>;
    /// Writes; gives how many bytes were taken, at least one.
    #[repeatable]
    #[of(Stream)]
    fn write(&self, bytes: &[u8]) -> Result<usize, ConsoleError>;
    /// As `read`, each byte as it comes and without echo. Other reads that wait end as interrupted. Gives 0 when others wrote, before
    /// which the row that the caller wrote last is erased: it is to be drawn again.
    #[repeatable]
    fn read_raw(&self, into: &mut [u8]) -> Result<usize, ConsoleError>;
    /// V on this semaphore whenever the person types the interrupt character in cooked mode; a
    /// semaphore given earlier is let go. `NotASemaphore` unless it is one with WRITE.
    #[repeatable]
    fn set_interrupt_semaphore(&self, semaphore: Delegate) -> Result<(), ConsoleError>;
    /// Whether the line discipline (echo, erase, interrupt character) is at work while nobody reads. The terminal
    /// changes hands: reads that wait end as interrupted, also those that go on for nobody since their program died.
    #[repeatable]
    fn set_mode(&self, mode: Mode) -> Result<(), ConsoleError>;
    /// Waits until all that was written has left the machine.
    #[repeatable]
    fn flush(&self) -> Result<(), ConsoleError>;
    /// Puts an entry of the terminal that may write, flush, read cooked and read keys at an index of a domain.
    #[repeatable]
    fn give(&self, domain: Delegate, index: u64) -> Result<(), ConsoleError>;
    /// As `read`, each byte as it comes and without echo, except that Ctrl-C interrupts as ever. The terminal stays so until its mode
    /// is set. Reads nothing if nothing fits: then it says whether this is a terminal. `Interrupted` if it is raw.
    #[repeatable]
    fn read_keys(&self, into: &mut [u8]) -> Result<usize, ConsoleError>;
}
