//! Programs: started, waited for, killed; and the nucleus's records of the machine.

pub use crate::parent::Force;
use idl::{codes, interface};

codes! {
    /// Why `proc` refused.
    pub enum ProcessError {
        1 NotFound "no such program"
        2 NotAProgram "not a program for this machine"
        3 NoSuchProcess "no such process"
        4 NoMemory "too little memory is left for programs: end one (ps, kill), or give the machine more"
        5 TooMany "too many programs: end one (ps, kill)"
        6 BadLaunch "the page with its arguments, environment and streams is malformed"
        7 NotAllowed "only for the compartment admin: type `with admin:0` in front"
        8 Cancelled "the wait was interrupted"
        9 Unreadable "the program could not be read"
        10 NoSuchDomain "no program and no component has this domain"
        11 Essential "the machine stops without it (by force it is ended all the same)"
        12 StaysDead "nobody starts it again (by force it is ended all the same)"
        13 NotExecutable "not marked as a program"
        14 IsADirectory "a directory"
        15 NoCpu "none of these CPUs is there"
        16 NotASemaphore "not a semaphore that may be raised"
        19 Runs "it runs still"
        20 TooMuch "more frames than the system description allows this program"
        21 NoStandby "no scheduler stands by yet to take over its CPU: try again (by force it is ended all the same)"
        22 Confined "not for a program that may reach only what is on a list"
        23 TooSmall "it does not fit the memory that it gets: give it a larger `account` in the system description"
        24 Failed "it could not be done: dmesg says why"
        25 Flow "compartments forbid it: `explain` says why"
        26 TooManyThreads "programs have as many threads as they can have: end one (ps, kill)"
        27 NoSuchList "no such list"
        28 NoRoom "the caller has no room for an entry of this list"
        29 TooManyWaits "too many calls wait for programs: end one (ps, kill)"
        30 TooManyCompartments "more compartments than the 8 that a program may have"
        31 NotALevel "not a level that a program can have in a compartment"
        32 TooLong "arguments and environment are too long together"
        33 ZeroByte "an argument or a variable has a zero byte"
        34 HasEnded "it has ended"
        35 Unlogged "it could not be done, and compartments forbid a line in the log about it"
    }
}

/// `Process::spawn`, instead of a number of frames: the part of memory that is kept for one command in the foreground, so
/// that it starts whatever programs hold.
pub const KEPT: u64 = u64::MAX;

/// `Process::inspect`, beside a list of domains, threads or portals: only records of the caller, of domains that it made and that these made, of threads
/// of these, and of entries by which others can call it. For every program that is not tainted, on a thread of its own.
pub const OWN: u64 = 1 << 34;

/// Programs. The methods that end others or the machine, and [`KEPT`], are for components that the system description gives a portal to
/// `proc`, and for callers that have the compartment `admin`, at level 0 or as owners; the rest is for everybody.
#[interface]
pub trait Process {
    /// Loads a program from a file: a call entry of `Child`. `launch` holds arguments, environment, streams and portals
    /// (`loader::startup` writes it); `frames` is the limit of its account, 0 = what the
    /// system description allows this program (`TooMuch`: more than that), or [`KEPT`]; `cpus` has a bit for each
    /// CPU on which its threads may run, 0 = on all. It runs at once, unless `launch` names a stream or portal that is
    /// still to be made in its table: then `Child::start` lets it run. A portal that is to be at `layout::NAMES` or `layout::PARENT`
    /// stands in the place of the one that programs have there.
    ///
    /// `launch` names the compartments of the program, with its level in each: it is tainted with them (3), or owns them (★). It must be as tainted as
    /// the caller. The caller must be tainted with each, or own it and accept it: else `Flow`.
    fn spawn(&self, path: &str, launch: &[u8], frames: u64, cpus: u64) -> Result<Delegated, ProcessError>;
    /// Processes from a position on (0 at first), as [`crate::listing::Listing`] reads them: tag = 0
    /// running, 1 ended; value = number; name = program. Gives bytes and the next position, 0 after the last. Not for everybody.
    #[repeatable]
    fn list(&self, position: u64, into: &mut [u8]) -> Result<(usize, u64), ProcessError>;
    /// A record or bytes of `abi::info` (what, position as there). Gives bytes and the next position. For everybody only what is about the machine
    /// as a whole, or about the caller ([`OWN`]).
    #[repeatable]
    fn inspect(&self, what: u64, position: u64, into: &mut [u8]) -> Result<(usize, u64), ProcessError>;
    /// Stops the machine with an exit status, 0 to 127. Not for everybody.
    #[repeatable]
    fn stop_machine(&self, status: u64) -> Result<(), ProcessError>;
    /// Ends a program or a component by the number of its domain, as `ps` shows it. A component that is
    /// not started again is ended only by force. Not for everybody.
    fn kill_domain(&self, number: u64, force: Force) -> Result<(), ProcessError>;
    /// The compartments of a program or a component, by the number of its domain: 8 · handle + level each, as many as fit; 0 if it owns all. Gives their
    /// bytes. Not for everybody.
    #[repeatable]
    fn compartments(&self, number: u64, into: &mut [u8]) -> Result<usize, ProcessError>;
}

/// A program, for its loader: nobody else can wait for it, or end it by a number. The caller must be allowed to change what has the
/// program's send label, and to observe it: else `Flow`. No tainted caller is notified of an end by a semaphore.
#[interface]
pub trait Child {
    /// Its domain, with the rights to copy and to write, so that servers can make entries in its table. Only before it runs.
    fn domain(&self) -> Result<Delegated, ProcessError>;
    /// Lets it run. Once: else `Runs`, or `HasEnded`.
    fn start(&self) -> Result<(), ProcessError>;
    /// Waits until it ends; gives its status (`abi::info::status`) and forgets it.
    fn wait(&self) -> Result<u64, ProcessError>;
    /// The same without waiting: `Runs`.
    fn ended(&self) -> Result<u64, ProcessError>;
    /// Ends it.
    #[repeatable]
    fn kill(&self) -> Result<(), ProcessError>;
    /// V on this semaphore when it ends, at once if it has ended.
    fn notify(&self, semaphore: Delegate) -> Result<(), ProcessError>;
    /// As `wait`, and it does not outlive the caller: if that ends first, it is ended.
    fn wait_or_end(&self) -> Result<u64, ProcessError>;
}
