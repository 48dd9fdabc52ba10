//! Tries the runtime where it has to work: in the machine.
//!
//! Runs in the place of a shell, with the machine and the serial line's ports. Each check prints one line; the
//! machine stops with 0 if all hold. What a check must not do is hang: the boot test has a time limit.
#![no_std]
#![no_main]
#![forbid(unsafe_code)]

extern crate alloc;

mod calls;
mod threads;

use core::fmt::{self, Write};

use runtime::{Entry, op};

runtime::entry!(main);

/// The serial line, polled: nobody else uses it here.
struct Serial;

impl Write for Serial {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for byte in text.bytes() {
            while op::port_read(Entry::IO_PORTS, 5).map_err(|_| fmt::Error)? & 0x20 == 0 {}
            op::port_write(Entry::IO_PORTS, 0, byte).map_err(|_| fmt::Error)?;
        }
        Ok(())
    }
}

/// A check: its name and what it finds wrong.
type Check = (&'static str, fn() -> Result<(), &'static str>);

fn main() {
    let mut failed = 0;
    for (name, check) in threads::CHECKS.iter().chain(calls::CHECKS) {
        let result = check();
        failed += u64::from(result.is_err());
        let _ = match result {
            Ok(()) => writeln!(Serial, "{name}: ok"),
            Err(what) => writeln!(Serial, "{name}: FAILED: {what}"),
        };
    }
    let _ = op::machine_stop(Entry::SPECIAL, failed.min(100));
    runtime::server::park()
}

/// Says what is wrong unless it holds.
fn hold(condition: bool, what: &'static str) -> Result<(), &'static str> {
    if condition { Ok(()) } else { Err(what) }
}
