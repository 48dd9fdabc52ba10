#![no_std]
#![no_main]
use runtime::{Entry, op};
runtime::entry!(main);
fn main() -> u8 {
    runtime::log!("roottask runs");
    let _ = op::machine_stop(Entry::SPECIAL, 7);
    0
}
