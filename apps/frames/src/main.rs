//! `frames`: where every frame of memory is.
#![no_std]
#![no_main]
#![forbid(unsafe_code)]

use tool::{Arguments, inspect, println};

runtime::entry!(main);

const HELP: &str = "\
usage: frames

Shows where every frame (4 KiB) of memory is: charged to an account, or free.
The sum must be the total, to the frame; the status is 1 if it is not.
";

fn main() -> u8 {
    let arguments = Arguments::new("frames", HELP);
    if !arguments.none() {
        return tool::USAGE;
    }
    let frames = match inspect::frames() {
        Ok(frames) => frames,
        Err(error) => return arguments.fail("frames", error),
    };
    println!("charged  {:>8}  (of these {} by the nucleus since boot)", frames.charged, frames.boot);
    println!("free     {:>8}", frames.free);
    println!("total    {:>8}", frames.total);
    let sum = frames.charged + frames.free;
    if sum == frames.total {
        println!("charged + free = total");
        return 0;
    }
    println!("charged + free = {sum}, and that is not the total");
    1
}
