//! Outcomes of operations and traps.

use abi::Error;

/// Steps (pages, entries, activations) between two preemption points.
pub const STEPS: u32 = 5;

/// Why an operation does not complete.
pub enum Stop {
    /// It is refused.
    Refused(Error),
    /// It reached a preemption point, and is to be restarted.
    Repeat,
}

impl From<Error> for Stop {
    fn from(error: Error) -> Self {
        Self::Refused(error)
    }
}

/// Outcome of an operation that can be restarted.
pub type Outcome = Result<u64, Stop>;

/// Result of a light operation, for `entry.s`: status and word 0.
#[repr(C)]
pub struct Reply {
    status: u64,
    value: u64,
}

impl Reply {
    /// The status as a result.
    pub fn result(&self) -> Result<(), Error> {
        Error::from_status(self.status)
    }
}

impl From<Result<u64, Error>> for Reply {
    fn from(result: Result<u64, Error>) -> Self {
        match result {
            Ok(value) => Self { status: 0, value },
            Err(error) => Self { status: error as u64, value: 0 },
        }
    }
}

/// Meaning of a trap from user mode.
pub enum Trap {
    /// A page fault, with its address and code.
    PageFault(u64, u64),
    /// Another exception.
    Exception,
    /// An interrupt.
    Interrupt,
    /// Ignored.
    #[allow(dead_code, reason = "on some ISAs there is no such trap")]
    Nothing,
}

/// Meaning of an interrupt.
pub enum Interrupt {
    /// The timer of this CPU.
    Timer,
    /// An IPI.
    OtherCpu,
    /// The line with this number, which may not exist.
    Line(usize),
    /// Spurious: not acknowledged.
    Nothing,
}

/// Rate of the machine's clock, in 32.32 fixed point.
pub struct Rate {
    /// Nanoseconds per tick.
    pub nanoseconds: u64,
    /// Ticks per microsecond.
    pub microsecond: u64,
}
