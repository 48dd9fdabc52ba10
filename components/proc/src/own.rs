//! What a program may know without the compartment `admin`: the records of itself, of domains that it made and that these made,
//! of threads of all these, and of entries by which others can call it.

use abi::info::{self, Domain, Portal, Record, Thread};
use protocols::process::ProcessError;
use runtime::entry::Entry;
use runtime::{log_refused, op};

use crate::labels;

/// Activations of a program's thread that calls us.
const DIRECT: u64 = 2;

/// Domains made by each other that are followed upwards.
const DEEPEST: usize = 32;
/// No record of these lists is longer.
const MAX_BYTES: usize = 256;

/// The domain that calls us, if it does so on a thread of its own: on another's it would ask about that.
fn caller() -> Result<u64, ProcessError> {
    let number = op::thread_id();
    let reported = op::record::<Thread>(Entry::SPECIAL, number - 1);
    let (thread, _) = reported.map_err(|error| labels::failed("a thread", error))?;
    if thread.number == number && thread.depth == DIRECT { Ok(thread.home) } else { Err(ProcessError::NotAllowed) }
}

/// The domain that made the one with this number.
fn parent(number: u64) -> Option<u64> {
    let (domain, _) = op::record::<Domain>(Entry::SPECIAL, number + 1).ok()?;
    (domain.number == number).then_some(domain.parent)
}

/// Whether a domain is another, or the other made it, or what made it.
fn descends(mut number: u64, from: u64) -> bool {
    for _ in 0..DEEPEST {
        // A domain is newer than its maker, and has a higher number.
        if number <= from {
            return number == from;
        }
        match parent(number) {
            Some(parent) if parent != 0 => number = parent,
            _ => return false,
        }
    }
    false
}

/// The position after a record of this list, if that is about a domain, or one that descends from it. The nucleus's own would say which domain
/// comes next, whoever that is.
fn after(domain: u64, what: u64, record: &[u8]) -> Option<u64> {
    match what {
        info::DOMAIN => Domain::read(record).filter(|it| descends(it.number, domain)).map(|it| it.number),
        info::THREAD => Thread::read(record).filter(|it| descends(it.home, domain)).map(|it| it.number),
        info::PORTAL => {
            let own = Portal::read(record).filter(|it| it.index != 0 && it.to == domain);
            own.map(|it| Portal::position(it.from, it.index + 1))
        }
        _ => None,
    }
}

/// Writes the next record of a list that is about the caller, from a position on. It passes over all others.
pub fn records(what: u64, mut position: u64, into: &mut [u8]) -> Result<(usize, u64), ProcessError> {
    if !matches!(what, info::DOMAIN | info::THREAD | info::PORTAL) {
        return Err(ProcessError::NoSuchList);
    }
    // Records of tainted domains are left out: a tainted caller would miss its own.
    if !labels::CALLERS.caller_may(0).change {
        log_refused!("records of its own");
        return Err(ProcessError::Flow);
    }
    let caller = caller()?;
    loop {
        // Copied first: the next question is answered in the same place.
        let mut record = [0; MAX_BYTES];
        let record = &mut record[..into.len()];
        let copy = |bytes: &[u8], next| {
            record.copy_from_slice(&bytes[..record.len()]);
            next
        };
        match op::info(Entry::SPECIAL, what | info::UNTAINTED, position, copy) {
            Ok(next) => match (after(caller, what, record), next) {
                (Some(after), _) => {
                    into.copy_from_slice(record);
                    return Ok((into.len(), after));
                }
                (None, 0) => return Ok((0, 0)),
                (None, next) => position = next,
            },
            Err(abi::Error::AtEnd) => return Ok((0, 0)),
            Err(error) => return Err(labels::failed("a list", error)),
        }
    }
}
