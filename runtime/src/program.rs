//! The start and the end of a program.

use core::sync::atomic::{AtomicU64, Ordering};

use crate::op;

static STARTUP: AtomicU64 = AtomicU64::new(0);

/// What `main` may return.
pub trait ExitStatus {
    /// The status, 0 = well.
    fn status(self) -> u64;
}

impl ExitStatus for () {
    fn status(self) -> u64 {
        0
    }
}

impl ExitStatus for u8 {
    fn status(self) -> u64 {
        self.into()
    }
}

impl ExitStatus for core::convert::Infallible {
    fn status(self) -> u64 {
        match self {}
    }
}

#[cfg(target_os = "none")]
unsafe extern "Rust" {
    safe fn cairn_program() -> u64;
}

#[cfg(not(target_os = "none"))]
fn cairn_program() -> u64 {
    0
}

/// First Rust code of a program.
pub(crate) extern "sysv64" fn start(startup: u64) -> ! {
    STARTUP.store(startup, Ordering::Relaxed);
    exit(cairn_program())
}

/// Ends the program with a status below 256.
pub fn exit(status: u64) -> ! {
    let _ = op::domain_kill(crate::Entry::OWN, status & 0xff);
    op::exit(status & 0xff)
}

/// Names the function with which the program starts. It may return `()`, `u8`, or never.
#[macro_export]
macro_rules! entry {
    ($main:path) => {
        #[cfg(target_os = "none")]
        #[unsafe(no_mangle)]
        extern "Rust" fn cairn_program() -> u64 {
            $crate::program::ExitStatus::status($main())
        }
    };
}
