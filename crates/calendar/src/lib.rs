//! Dates of the Gregorian calendar, and what a PC's clock chip says.
//!
//! - [`Civil`]: a date and a time of day, from and to seconds since 1970-01-01 (UTC, leap seconds not counted).
//! - [`cmos`]: the chip's registers, read until they are steady and checked before they mean anything.
#![no_std]
#![forbid(unsafe_code)]

#[cfg(test)]
extern crate std;

mod civil;
pub mod cmos;

pub use civil::{Civil, LAST_SECOND, Long};
