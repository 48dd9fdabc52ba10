//! AArch64. The registers are those of `abi::registers`.

pub mod children;
pub mod devices;
pub mod programs;
pub mod vectors;
