//! `memcpy`, `memmove` and `memset` for nucleus and components, on ISAs on which those that the compiler brings along are slow.
//! A crate that says `use memfuncs as _;` links them. Hosts have their own.
#![no_std]

#[cfg(all(target_arch = "aarch64", target_os = "none"))]
mod aarch64;
