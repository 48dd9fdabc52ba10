//! The nucleus's records of domains: our own, and those that we made.

use crate::memory::SIGMA0_DOMAIN;
use abi::info::{Cpu, Domain, cpu_state};
use runtime::sync::Mutex;
use runtime::{Entry, op};

/// The record of the newest domain with a number below this.
fn below(number: u64) -> Option<Domain> {
    op::record(Entry::SPECIAL, number).ok().map(|(domain, _)| domain)
}

/// Our own number.
pub fn own() -> u64 {
    op::domain_number(Entry::DOMAIN).unwrap_or(0)
}

/// The number of `sigma0`.
pub fn first() -> u64 {
    op::domain_number(SIGMA0_DOMAIN).unwrap_or(0)
}

/// Limit of the account of the domain with this number.
pub fn limit(number: u64) -> Option<u64> {
    below(number + 1).filter(|domain| domain.number == number).map(|domain| domain.limit)
}

/// The status with which the domain with this number died, while it is not removed.
pub fn status(number: u64) -> Option<u64> {
    below(number + 1).filter(|domain| domain.number == number).map(|domain| domain.status)
}

/// Frames left in our own account.
pub fn frames_left() -> Option<u64> {
    let own = below(own() + 1)?;
    Some(own.limit.saturating_sub(own.charged))
}

/// The CPUs that run, and those of them that have no scheduler: a bit for each.
pub fn cpus() -> (u64, u64) {
    let (mut cpus, mut vacant) = (0, 0);
    for cpu in op::records::<Cpu>(Entry::SPECIAL).map_while(Result::ok) {
        if cpu.state != cpu_state::OFFLINE && cpu.number < abi::MAX_CPUS as u64 {
            cpus |= 1 << cpu.number;
            vacant |= u64::from(cpu.scheduler == 0) << cpu.number;
        }
    }
    (cpus.max(1), vacant)
}

/// Bytes of the kernel log that a person is shown when the machine stops.
const TAIL: usize = 1200;

/// Where they are put together: the heap may have nobody behind it any more.
static LAST: Mutex<[u8; TAIL]> = Mutex::new([0; TAIL]);

/// Lends the end of the kernel log, from the start of a line on.
pub fn with_log_tail(look: impl FnOnce(&[u8])) {
    let mut last = LAST.lock();
    let mut used = 0;
    let mut position = 0;
    while let Ok(next) = op::info(Entry::SPECIAL, abi::info::LOG, position, |bytes, next| {
        for byte in bytes {
            if used == TAIL {
                last.copy_within(TAIL / 2.., 0);
                used = TAIL - TAIL / 2;
            }
            last[used] = *byte;
            used += 1;
        }
        next
    }) && next != position
    {
        position = next;
    }
    let all = last.get(..used).unwrap_or_default();
    look(match all.iter().position(|byte| *byte == b'\n') {
        // Cut off in front, unless the log is as short.
        Some(end) if position > TAIL as u64 => &all[end + 1..],
        _ => all,
    });
}
