//! Lines for the kernel log (`dmesg`): available before any server runs, and when none does any more.

use core::fmt::{self, Write};

use crate::area;

/// Collects text and hands it to the log line by line.
pub struct Log {
    line: [u8; 200],
    used: usize,
    about: u64,
}

impl Log {
    /// An empty line.
    pub const fn new() -> Self {
        Self { line: [0; 200], used: 0, about: 0 }
    }

    /// An empty line about what a program did: programs' lines make room for it, not those of components.
    pub const fn about_program() -> Self {
        Self { line: [0; 200], used: 0, about: abi::op::ABOUT_PROGRAM }
    }

    /// An empty line about what is refused to the caller for its label. Only programs with the compartment `admin` see it.
    pub const fn about_refused() -> Self {
        Self { line: [0; 200], used: 0, about: abi::op::ABOUT_REFUSED }
    }

    fn flush(&mut self) {
        if self.used > 0 {
            append(&self.line[..self.used], self.about);
            self.used = 0;
        }
    }
}

impl Default for Log {
    fn default() -> Self {
        Self::new()
    }
}

impl Write for Log {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for &byte in text.as_bytes() {
            if self.used == self.line.len() {
                self.flush();
            }
            self.line[self.used] = byte;
            self.used += 1;
        }
        Ok(())
    }
}

impl Drop for Log {
    fn drop(&mut self) {
        self.flush();
    }
}

/// Appends bytes to the kernel log; at most a message area of them.
pub fn bytes(bytes: &[u8]) {
    append(bytes, 0);
}

fn append(bytes: &[u8], about: u64) {
    let bytes = &bytes[..bytes.len().min(abi::MESSAGE_BYTES)];
    // A log that cannot be written leaves nowhere to report it.
    let _ = area::transfer(&[bytes], |count| crate::op::log(count, about).map(|()| ((), 0)), |(), _| ());
}

/// Writes a line to the kernel log; the domain's name is put before it.
#[macro_export]
macro_rules! log {
    ($($argument:tt)*) => {{
        use ::core::fmt::Write as _;
        let mut log = $crate::log::Log::new();
        let _ = ::core::writeln!(log, $($argument)*);
    }};
}

/// As [`log!`], for what a program did: a line of which it could cause many.
#[macro_export]
macro_rules! log_about_program {
    ($($argument:tt)*) => {{
        use ::core::fmt::Write as _;
        let mut log = $crate::log::Log::about_program();
        let _ = ::core::writeln!(log, $($argument)*);
    }};
}

/// As [`log!`], for what a component refuses to its caller because of its label.
#[macro_export]
macro_rules! log_refused {
    ($($argument:tt)*) => {{
        use ::core::fmt::Write as _;
        let mut log = $crate::log::Log::about_refused();
        let _ = ::core::writeln!(log, $($argument)*);
    }};
}
