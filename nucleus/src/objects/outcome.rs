//! How operations end.

use abi::Error;

/// Steps (pages, entries, activations) between two preemption points.
pub const STEPS: u32 = 5;

/// Why an operation stops.
pub enum Stop {
    /// It is refused.
    Refused(Error),
    /// It came to a preemption point and is restarted.
    Repeat,
}

impl From<Error> for Stop {
    fn from(error: Error) -> Self {
        Self::Refused(error)
    }
}

/// The outcome of an operation that can be repeated.
pub type Outcome = Result<u64, Stop>;

/// What a light operation gives back to `entry.s`: status and word 0.
#[repr(C)]
pub struct Reply {
    status: u64,
    value: u64,
}

impl From<Result<u64, Error>> for Reply {
    fn from(result: Result<u64, Error>) -> Self {
        match result {
            Ok(value) => Self { status: 0, value },
            Err(error) => Self { status: error as u64, value: 0 },
        }
    }
}

/// What a trap from user mode means.
pub enum Trap {
    /// A page fault, with its address and code.
    PageFault(u64, u64),
    /// Another exception.
    Exception,
    /// An interrupt.
    Interrupt,
    /// Nothing is to be done.
    #[allow(dead_code, reason = "on some ISAs there is no such trap")]
    Nothing,
}

/// What an interrupt means.
pub enum Interrupt {
    /// The timer of this CPU.
    Timer,
    /// Another CPU wants something.
    OtherCpu,
    /// A line, if there is one with this number.
    Line(usize),
    /// Nothing: it is not acknowledged.
    Nothing,
}

/// How fast the clock of the machine is.
pub struct Rate {
    /// Nanoseconds per tick, in 2^-32.
    pub nanoseconds: u64,
    /// Ticks per microsecond, in 2^-32.
    pub microsecond: u64,
}
