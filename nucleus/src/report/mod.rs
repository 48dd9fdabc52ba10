//! What the nucleus reports: its log, records of events, its last words.

pub mod log;
pub mod panic;
pub mod reason;
pub mod trace;
