//! The library that a component links: entry, system call stubs, allocator, synchronisation, printing, serving.
//!
//! A program is `#![no_std] #![no_main]`, linked with `runtime/link.ld`, and says
//! `runtime::entry!(main)`. Everything a component needs of the nucleus is a safe function of this
//! crate, except what can pull memory away from under its own feet.
#![no_std]

// Editors check for the host: there crates that are shared with host tools may bring `std` along, and it is what panics.
#[cfg(not(target_os = "none"))]
extern crate std;

use memfuncs as _;

pub mod arch;
mod area;
pub mod child;
pub mod connection;
pub mod device;
pub mod entry;
#[cfg(feature = "alloc")]
pub mod fdt;
mod handle;
#[cfg(feature = "alloc")]
mod heap;
mod hooks;
mod kept;
pub mod label;
pub mod log;
pub mod message;
pub mod op;
#[cfg(target_os = "none")]
mod panic;
pub mod pipes;
pub mod port;
pub mod program;
mod raw;
pub mod serial;
pub mod server;
mod startup;
mod status;
pub mod stream;
pub mod sync;
pub mod table;
pub mod thread;
pub mod time;
#[cfg(feature = "alloc")]
pub mod vault;
pub mod window;

pub use abi;
pub use connection::{Connection, Direct};
pub use handle::Entry;
pub use idl;
pub use protocols;
pub use startup::Arguments;
