//! `false`: ends with status 1.
#![no_std]
#![no_main]
#![forbid(unsafe_code)]

runtime::entry!(main);

fn main() -> u8 {
    1
}
