//! What the nucleus's list says about domains: our own, and those that we made.

use abi::info::cpu_state;
use core::sync::atomic::{AtomicU64, Ordering};
use runtime::sync::Mutex;
use runtime::{Entry, op};

/// Our own domain's number; 0 = not looked up yet.
static OWN: AtomicU64 = AtomicU64::new(0);

/// What is used of `abi::info::Domain`.
#[derive(Clone, Copy)]
struct Domain {
    number: u64,
    parent: u64,
    is_named_as_we_are: bool,
    status: u64,
    charged: u64,
    limit: u64,
}

/// The record of the newest domain with a number below this (0: of all).
fn below(number: u64) -> Option<Domain> {
    let record = op::info(Entry::SPECIAL, abi::info::DOMAIN, number, |bytes, _| {
        let word = |index: usize| -> Option<u64> {
            Some(u64::from_le_bytes(bytes.get(index * 8..index * 8 + 8)?.try_into().ok()?))
        };
        // Words of the record: number, parent, name in 2 and 3, status in 5, charged in 6, limit in 7.
        Some(Domain {
            number: word(0)?,
            parent: word(1)?,
            is_named_as_we_are: bytes.get(16..24) == Some(b"roottask"),
            status: word(5)?,
            charged: word(6)?,
            limit: word(7)?,
        })
    });
    record.ok().flatten()
}

/// All records, the newest domain first.
fn all() -> impl Iterator<Item = Domain> {
    core::iter::successors(below(0), |domain| below(domain.number).filter(|next| next.number < domain.number))
}

/// Our own number. The nucleus made our domain before any other could have its name.
pub fn own() -> u64 {
    match OWN.load(Ordering::Relaxed) {
        0 => {
            let number = all().filter(|domain| domain.is_named_as_we_are).last().map_or(0, |domain| domain.number);
            OWN.store(number, Ordering::Relaxed);
            number
        }
        number => number,
    }
}

/// The number of `sigma0`, the domain that the nucleus made first.
pub fn first() -> u64 {
    all().last().map_or(0, |domain| domain.number)
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

/// The number of the domain that we made last.
pub fn newest_child() -> Option<u64> {
    let own = own();
    all().find(|domain| domain.parent == own).map(|domain| domain.number)
}

/// The CPUs that run, and those of them that have no scheduler: a bit for each.
pub fn cpus() -> (u64, u64) {
    let (mut cpus, mut vacant, mut position) = (0, 0, 0);
    loop {
        let record = op::info(Entry::SPECIAL, abi::info::CPU, position, |bytes, next| {
            // Words of the record: number in 0, state in 2, its scheduler's domain in 4.
            let word = |index: usize| bytes.get(index * 8..index * 8 + 8)?.try_into().ok().map(u64::from_le_bytes);
            Some((word(0)?, word(2)?, word(4)?, next))
        });
        let Ok(Some((number, state, scheduler, next))) = record else { break };
        if state != cpu_state::OFFLINE && number < abi::MAX_CPUS as u64 {
            cpus |= 1 << number;
            vacant |= u64::from(scheduler == 0) << number;
        }
        if next <= position {
            break;
        }
        position = next;
    }
    (cpus.max(1), vacant)
}

/// Bytes of the kernel log that a person is shown when the machine stops.
const TAIL: usize = 1200;

/// Where they are put together: the heap may have nobody behind it any more.
static LAST: Mutex<[u8; TAIL]> = Mutex::new([0; TAIL]);

/// Lends the end of the kernel log, from a line's begin on.
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
