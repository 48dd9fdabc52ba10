//! P and V through entries that have not cached a verdict on labels. `entry.s` and `control::semaphore` do all others.

use super::finish;
use crate::control::flows;
use crate::cpus::assembly;
use crate::memory::labels;
use crate::objects::{Activation, Entry, Outcome, PLAIN, Reply, Semaphore, Stop};
use crate::pointer::Ref;
use crate::report::forbidden::{Against, refuse};
use abi::layout::ENTRY_BYTES;
use abi::{Error, op, rights};

/// Called by `entry.s`: P or V through an entry that has not cached a verdict. Judges it, and caches the verdict as the
/// entry's code: the restarted system call takes the fast path.
#[unsafe(no_mangle)]
extern "C" fn semaphore_judged(by: Ref<Activation>, entry: Ref<Entry>) -> Reply {
    finish(by, step(by, entry))
}

fn step(by: Ref<Activation>, entry: Ref<Entry>) -> Outcome {
    let own = by.domain;
    let index = entry.address().wrapping_sub(own.table.get()) / ENTRY_BYTES;
    let entry = own.place(index)?;
    let semaphore = entry.object::<Semaphore>().ok_or(Error::Revoked)?;
    // The use of an unshared object is no flow to another domain.
    if semaphore.is_shared.get() {
        let label = labels::of_object(semaphore);
        let is_plain = label == PLAIN && !own.is_barred.get();
        if by.registers.word(0) == op::V && !is_plain {
            // V alone may be allowed, as nothing flows back to the caller. This verdict is not cached.
            flows::go_on(by)?;
            entry.check_rights(rights::WRITE)?;
            if !flows::may_change_object(own, label)? {
                return Err(refuse(own, Against::Thing("an object")).into());
            }
            semaphore.signal();
            return Ok(0);
        }
        flows::judge_object(by, entry, label)?;
        if label != PLAIN {
            own.shares_labelled.set(true);
        }
    } else {
        flows::go_on(by)?;
    }
    entry.code.set(assembly::entry_semaphore as *const () as usize);
    Err(Stop::Repeat)
}
