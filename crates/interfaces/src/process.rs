//! Programs: started, waited for, killed; and what the nucleus tells about the machine.

pub use crate::parent::Force;
use interface::{codes, interface};

codes! {
    /// Why `proc` refused.
    pub enum ProcessError {
        1 NotFound "no such program"
        2 NotAProgram "not a program for this machine"
        3 NoSuchProcess "no such process"
        4 NoMemory "the account that should pay is exhausted"
        5 TooMany "too many processes"
        6 BadLaunch "arguments, environment or streams are malformed or too long"
        7 NotAllowed "not yours to do"
        8 Cancelled "the wait was interrupted"
        9 Unreadable "the program could not be read"
        10 NoSuchDomain "no such domain, or one that is neither a program nor a component"
        11 Essential "the machine stops without it (by force it is ended all the same)"
        12 StaysDead "nobody starts it again (by force it is ended all the same)"
        13 NotExecutable "not marked as a program"
        14 IsADirectory "a directory"
        15 NoCpu "none of these CPUs is there"
    }
}

/// `Process::spawn`, instead of a number of frames: the part of memory that is kept for one command in the foreground, so
/// that it starts whatever programs hold. Only for a component that the system description gives a portal to `proc`.
pub const KEPT: u64 = u64::MAX;

/// Programs.
#[interface]
pub trait Process {
    /// Starts a program from a file. `launch` holds arguments, environment and streams
    /// (`loader::startup` writes it); `frames` is the limit of its account, 0 = the usual, or [`KEPT`]; `cpus` has a bit for each
    /// CPU on which its threads may run, 0 = on all. Gives its number.
    fn spawn(&self, path: &str, launch: &[u8], frames: u64, cpus: u64) -> Result<u64, ProcessError>;
    /// Waits until the process ends; gives its status (`abi::info::status`) and forgets it.
    fn wait(&self, process: u64) -> Result<u64, ProcessError>;
    /// Ends a process.
    #[repeatable]
    fn kill(&self, process: u64) -> Result<(), ProcessError>;
    /// Processes from a position on (0 at first), as [`crate::listing::Listing`] reads them: tag = 0
    /// running, 1 ended; value = number; name = program. Gives bytes and the next position, 0 after the last.
    #[repeatable]
    fn list(&self, position: u64, into: &mut [u8]) -> Result<(usize, u64), ProcessError>;
    /// A record or bytes of `abi::info` (what, position as there). Gives bytes and the next position.
    #[repeatable]
    fn inspect(&self, what: u64, position: u64, into: &mut [u8]) -> Result<(usize, u64), ProcessError>;
    /// Stops the machine with an exit status, 0 to 127.
    #[repeatable]
    fn stop_machine(&self, status: u64) -> Result<(), ProcessError>;
    /// Ends a program or a component by the number of its domain, as `ps` shows it. A component that is
    /// not started again is ended only by force.
    fn kill_domain(&self, number: u64, force: Force) -> Result<(), ProcessError>;
}
