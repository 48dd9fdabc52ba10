//! `dmesg`: the kernel log.

use alloc::vec::Vec;

use runtime::abi::info::{LOG, LOG_PROGRAMS};
use tool::{Arguments, inspect};

/// The text of `--help`.
pub const HELP: &str = "\
usage: dmesg [-f]

Writes the kernel log: what the nucleus, the components and the programs had to
say since boot, as far as it is kept: 12 KiB of nucleus and components, and
12 KiB of programs, which have the number of their domain after their name.

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
    let mut positions = [0; 2];
    loop {
        let mut texts = [Vec::new(), Vec::new()];
        for (place, part) in [LOG, LOG_PROGRAMS].into_iter().enumerate() {
            match inspect::log(part, positions[place], |bytes| texts[place].extend_from_slice(bytes)) {
                Ok(next) => positions[place] = next,
                Err(error) => return arguments.fail("kernel log", error),
            }
        }
        write_in_order(&texts);
        if !options.contains('f') {
            return 0;
        }
        let _ = runtime::stream::STDOUT.lock().flush();
        if runtime::thread::sleep(PAUSE).is_err() {
            return 0;
        }
    }
}

/// Writes the lines of both parts in the order of their times. The first one kept may have lost its beginning, and with it
/// its time: it is left out.
fn write_in_order(texts: &[Vec<u8>; 2]) {
    let lines = |text| <[u8]>::split_inclusive(text, |byte| *byte == b'\n').filter(|line| time(line).is_some());
    let [mut system, mut programs] = [&texts[0], &texts[1]].map(|text| lines(text).peekable());
    loop {
        let next = match (system.peek(), programs.peek()) {
            (Some(one), Some(other)) if time(other) < time(one) => programs.next(),
            (Some(_), _) => system.next(),
            (None, _) => programs.next(),
        };
        let Some(line) = next else { return };
        // A closed output ends the program by itself at its end.
        let _ = runtime::stream::write(line);
    }
}

/// Microseconds since boot: of `[12.345678] text`.
fn time(line: &[u8]) -> Option<u64> {
    let (seconds, rest) = core::str::from_utf8(line).ok()?.strip_prefix('[')?.split_once('.')?;
    let fraction: u64 = rest.split_once(']')?.0.parse().ok()?;
    Some(seconds.parse::<u64>().ok()? * 1_000_000 + fraction)
}
