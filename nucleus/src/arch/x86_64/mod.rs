//! x86-64.

pub mod boot;
pub mod descriptors;
pub mod entry;
pub mod interrupts;
pub mod memory;
pub mod paging;
pub mod serial;
pub mod special;
pub mod timer;
pub mod trap;
