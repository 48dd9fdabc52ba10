//! `true`: ends with status 0. The smallest program; the benchmark of `spawn` starts it.
#![no_std]
#![no_main]
#![forbid(unsafe_code)]

runtime::entry!(main);

fn main() {}
