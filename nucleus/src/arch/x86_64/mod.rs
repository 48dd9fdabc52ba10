//! x86-64.

pub mod boot;
mod entry;
mod firmware;
pub mod interrupts;
pub mod memory;
pub mod paging;
pub mod portals;
pub mod processor;
pub mod serial;
pub mod special;
pub mod start;
pub mod timer;
pub mod trap;
