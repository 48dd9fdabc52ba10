//! `dmesg`: the kernel log.

use alloc::string::String;
use alloc::vec::Vec;

use runtime::abi::info::{LOG, LOG_PROGRAMS, LOG_REFUSED};
use tool::compartments::{Names, give_up_privileges};
use tool::{Arguments, inspect};

/// The text of `--help`.
pub const HELP: &str = "\
usage: dmesg [-f] [--refused]

Writes the kernel log: what the nucleus, the components and the programs had to
say since boot, as far as it is kept: 12 KiB of nucleus and components, and
12 KiB of programs, which have the number of their domain after their name.

  -f         goes on writing what comes (Ctrl-C ends it)
  --refused  writes instead what compartments forbade, as far as it is kept
             (4 KiB): who, {its compartments}, and whom it did not reach. After
             that, what a server refused
";

/// Nanoseconds between two looks.
const PAUSE: u64 = 200_000_000;

/// The program.
pub fn main(mut arguments: Arguments) -> u8 {
    let is_refused = arguments.flag("--refused");
    let Some(options) = arguments.options("f") else { return tool::USAGE };
    if !arguments.none() {
        return tool::USAGE;
    }
    let parts: &[u64] = if is_refused { &[LOG_REFUSED] } else { &[LOG, LOG_PROGRAMS] };
    let mut positions = [0; 2];
    loop {
        let mut texts = [Vec::new(), Vec::new()];
        for (place, part) in parts.iter().enumerate() {
            match inspect::log(*part, positions[place], |bytes| texts[place].extend_from_slice(bytes)) {
                Ok(next) => positions[place] = next,
                Err(error) => return arguments.fail("kernel log", error),
            }
        }
        if !options.contains('f') {
            give_up_privileges();
        }
        if is_refused {
            write_with_names(&texts[0]);
        } else {
            write_in_order(&texts);
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

/// Writes whole lines, with names of compartments instead of handles.
fn write_with_names(text: &[u8]) {
    if text.is_empty() {
        return;
    }
    let names = Names::new();
    for line in text.split_inclusive(|byte| *byte == b'\n').filter(|line| time(line).is_some()) {
        let line = names.in_line(&String::from_utf8_lossy(line));
        let _ = runtime::stream::write(line.as_bytes());
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
