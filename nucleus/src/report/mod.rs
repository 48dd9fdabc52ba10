//! The nucleus's reports: the kernel log, records of events, panics.

pub mod forbidden;
pub mod log;
pub mod panic;
pub mod reason;
pub mod refusals;
pub mod trace;
