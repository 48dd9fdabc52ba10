//! The client's side of SNTP version 4 (RFC 5905, section 14; RFC 4330, section 5): what to send, which replies to
//! accept and what follows from them, and when to ask again.
//!
//! A request says nothing about us: its transmit timestamp is a random number, and only a reply that repeats it is
//! looked at. The time at which it was really sent is remembered here instead. Since our two times are of a clock that
//! counts from the machine's start, what comes out is the time of day in terms of that clock.
#![no_std]
#![forbid(unsafe_code)]

#[cfg(test)]
extern crate std;

mod reply;
mod schedule;

pub use reply::{Bad, Request, Sample};
pub use schedule::{Outcome, Schedule};

/// Bytes of a request, and of a reply without what may follow (keys, extensions).
pub const PACKET_BYTES: usize = 48;
/// The port of servers.
pub const PORT: u16 = 123;
