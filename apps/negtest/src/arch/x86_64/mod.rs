//! x86-64. The registers are those of `abi::registers`.

mod child;
mod deaths;
mod refusals;

pub use child::{
    CODE, exit_and_write, one_call, ping_pong, read, read_again, remove_ourselves, three_calls, wait_and_return,
};
pub use deaths::{BARE_RETURN, DEATHS, HALT_STATUS, halt, jump};
pub use refusals::{HARMLESS, odd_index};

/// The first address that belongs to the nucleus.
pub const KERNEL: u64 = 0xffff_8000_0000_0000;
/// The first address that no translation can have.
pub const NON_CANONICAL: u64 = 0x8000_0000_0000;
