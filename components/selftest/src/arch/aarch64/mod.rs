//! AArch64. The registers are those of `abi::registers`.

pub mod children;
pub mod devices;
pub mod fill;
pub mod programs;
pub mod vectors;
