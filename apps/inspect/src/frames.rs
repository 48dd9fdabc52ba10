//! `frames`: where every frame of memory is.

use alloc::vec::Vec;

use tool::compartments::give_up_privileges;
use tool::{Arguments, inspect, println};

/// The text of `--help`.
pub const HELP: &str = "\
usage: frames [NAME...]

Shows where every frame (4 KiB) of memory is: charged to an account, or free.
The sum must be the total, to the frame; the status is 1 if it is not.

With names of domains it also shows how many frames are free or theirs: what
stays the same while those, and nobody else, keep more than before.
";

/// The program.
pub fn main(arguments: Arguments) -> u8 {
    let names = arguments.words();
    let frames = match inspect::frames() {
        Ok(frames) => frames,
        Err(error) => return arguments.fail("frames", error),
    };
    let domains = if names.is_empty() { Ok(Vec::new()) } else { inspect::domains() };
    give_up_privileges();
    println!("charged  {:>8}  (of these {} by the nucleus since boot)", frames.charged, frames.boot);
    println!("free     {:>8}", frames.free);
    println!("total    {:>8}", frames.total);
    let sum = frames.charged + frames.free;
    if !names.is_empty() {
        let domains = match domains {
            Ok(domains) => domains,
            Err(error) => return arguments.fail("domains", error),
        };
        let named = domains.iter().filter(|(name, _)| names.contains(&name.as_str()));
        let theirs: u64 = named.map(|(_, domain)| domain.charged).sum();
        println!("free or theirs {:>2}", frames.free + theirs);
    }
    if sum == frames.total {
        println!("charged + free = total");
        return 0;
    }
    println!("charged + free = {sum}, and that is not the total");
    1
}
