//! Threads.

/// First Rust code of a thread.
pub(crate) extern "sysv64" fn start(_argument: u64) -> ! {
    crate::op::exit(0)
}
