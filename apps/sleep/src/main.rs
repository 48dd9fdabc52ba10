//! `sleep SECONDS`: waits.
#![no_std]
#![no_main]
#![forbid(unsafe_code)]

use tool::Arguments;

runtime::entry!(main);

const HELP: &str = "\
usage: sleep SECONDS

Waits. SECONDS may have a fraction of up to nine digits.
";

fn main() -> u8 {
    let arguments = Arguments::new("sleep", HELP);
    let Some(word) = arguments.one("SECONDS") else { return tool::USAGE };
    let Some(nanoseconds) = nanoseconds(word) else {
        return arguments.wrong("SECONDS is a number");
    };
    match runtime::thread::sleep(nanoseconds) {
        Ok(()) => 0,
        Err(error) => arguments.fail("waiting", error),
    }
}

fn nanoseconds(text: &str) -> Option<u64> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    if fraction.len() > 9 || (whole.is_empty() && fraction.is_empty()) {
        return None;
    }
    let whole: u64 = if whole.is_empty() { 0 } else { whole.parse().ok()? };
    let part: u64 = if fraction.is_empty() { 0 } else { fraction.parse().ok()? };
    let unit = 10u64.pow(9 - fraction.len() as u32);
    whole.checked_mul(1_000_000_000)?.checked_add(part * unit)
}
