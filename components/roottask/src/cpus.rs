//! The CPUs that run, and what may run on which.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::sync::atomic::{AtomicU64, Ordering};
use runtime::Entry;
use runtime::op;

/// The CPUs that run: a bit for each.
pub static CPUS: AtomicU64 = AtomicU64::new(1);

/// The CPUs that run: a bit for each.
pub fn cpus() -> u64 {
    CPUS.load(Ordering::Relaxed)
}

/// Whether there is one CPU: then its scheduler is alone, and there is no load table.
pub fn is_alone() -> bool {
    cpus().is_power_of_two()
}

/// The CPUs of a set.
pub fn numbers(cpus: u64) -> impl Iterator<Item = usize> {
    (0..abi::MAX_CPUS).filter(move |cpu| cpus >> cpu & 1 != 0)
}

/// Why what may run on these CPUs only can run nowhere. Those that are not there do not count.
pub fn impossible(wanted: u64) -> Option<String> {
    if wanted & cpus() != 0 {
        return None;
    }
    let numbers: Vec<String> = numbers(wanted).map(|cpu| cpu.to_string()).collect();
    Some(format!("it may run on CPU {} only, of which none is there", numbers.join(", ")))
}

/// The threads of a domain may run on these CPUs only.
pub fn restrict(domain: Entry, wanted: u64) -> Result<(), abi::Error> {
    let there = wanted & cpus();
    if there == cpus() { Ok(()) } else { op::domain_set_cpus(domain, there) }
}
