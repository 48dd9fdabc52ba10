//! `df`: how much room files take.

use runtime::stream::FILE_SYSTEM;
use tool::{Arguments, println};

/// The text of `--help`.
pub const HELP: &str = "\
usage: df

Shows how many pages (4 KiB) files and directories take, and how many they can
take: what the system description gives to files alone. rm makes room. Files of
the boot archive take none until they are changed.
";

/// The program.
pub fn main(arguments: Arguments) -> u8 {
    if !arguments.none() {
        return tool::USAGE;
    }
    match FILE_SYSTEM.room() {
        Ok((used, limit)) => {
            println!("files {used:>8} of {limit} pages, {} free", limit.saturating_sub(used));
            0
        }
        Err(error) => arguments.fail("files", error),
    }
}
