//! x86-64.

mod acpi;
pub mod boot;
pub mod descriptors;
pub mod entry;
pub mod interrupts;
pub mod memory;
pub mod paging;
pub mod serial;
pub mod special;
pub mod start;
pub mod timer;
pub mod trap;
