//! An ISA of stubs: nothing of it does anything. `./x test isa` compiles the portable nucleus against it, which so uses no
//! more of an ISA than stands here; a test (`xtask/src/test/parity.rs`) sees to it that what stands here is what x86-64 and
//! AArch64 have. A port to a third ISA may begin with a copy.
//!
//! Beside these modules an ISA has files of assembly and a link script, `link.ld`: entry of the loader, system call, traps,
//! and the fast paths of call, return and semaphore.

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
