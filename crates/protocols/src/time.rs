//! The time of day.
//!
//! Time that passes is the nucleus's ([`abi::op::CLOCK`]): it goes on whatever happens here, and is what waits,
//! timeouts and ages of files use. The time of day is that plus an offset, which comes with how long it may be
//! used without asking again. So a program that needs it often asks seldom, and a correction is seen soon all the same.

use idl::{codes, interface, returns_struct};

codes! {
    /// Why not.
    pub enum TimeError {
        1 Unknown "the time of day is unknown: the machine's clock has no valid time, and nothing set one"
        2 NotAllowed "setting the clock needs a portal from the system description"
        3 BadTime "before 1970 or after the year 2499"
    }
}

/// How long an offset may be used without asking again, in nanoseconds.
pub const LEASE: u64 = 10_000_000_000;

returns_struct! {
    /// The time of day in terms of the nucleus's clock, both in nanoseconds.
    pub struct Offset {
        /// The time since 1970-01-01 (UTC, leap seconds not counted) minus the time since boot.
        pub offset: u64,
        /// How far off it may be, in nanoseconds; [`u64::MAX`] = nobody knows.
        pub error: u64,
        /// The time since boot at which it was set: greater with every change.
        pub version: u64,
        /// The time since boot until which it may be used without asking again.
        pub until: u64,
    }
}

/// The clock.
#[interface(words)]
pub trait Time {
    /// The offset.
    #[repeatable]
    fn offset(&self) -> Result<Offset, TimeError>;
    /// Sets the offset, which may be off by `error` nanoseconds. Only for a holder of a portal by the system
    /// description.
    #[repeatable]
    fn set(&self, offset: u64, error: u64) -> Result<(), TimeError>;
}
