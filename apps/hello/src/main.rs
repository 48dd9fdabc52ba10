//! The smallest program: greets and ends.
#![no_std]
#![no_main]
#![forbid(unsafe_code)]

runtime::entry!(main);

fn main() {
    runtime::println!("Hello from thread {}.", runtime::op::thread_id());
}
