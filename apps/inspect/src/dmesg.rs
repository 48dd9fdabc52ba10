//! `dmesg`: the kernel log.

use tool::{Arguments, inspect};

/// What `--help` prints.
pub const HELP: &str = "\
usage: dmesg [-f]

Writes the kernel log: what the nucleus and the components had to say since
boot, as far as it is kept.

  -f  goes on writing what comes (Ctrl-C ends it)
";

/// Nanoseconds between two looks.
const PAUSE: u64 = 200_000_000;

/// The program.
pub fn main(mut arguments: Arguments) -> u8 {
    let Some(options) = arguments.options("f") else { return tool::USAGE };
    if !arguments.none() {
        return tool::USAGE;
    }
    let mut position = 0;
    loop {
        let told = inspect::log(position, |bytes| {
            // A closed output ends the program by itself at its end.
            let _ = runtime::stream::write(bytes);
        });
        match told {
            Ok(next) => position = next,
            Err(error) => return arguments.fail("kernel log", error),
        }
        if !options.contains('f') {
            return 0;
        }
        let _ = runtime::stream::STDOUT.lock().flush();
        if runtime::thread::sleep(PAUSE).is_err() {
            return 0;
        }
    }
}
