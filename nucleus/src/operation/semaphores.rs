//! P and V by entries that do not know whether labels allow that. All others are in `entry.s` and `control::semaphore`.

use super::finish;
use crate::control::flows;
use crate::cpus::assembly;
use crate::memory::labels;
use crate::objects::{Activation, Entry, Outcome, PLAIN, Reply, Semaphore, Stop};
use crate::pointer::Ref;
use abi::layout::ENTRY_BYTES;
use abi::{Error, op, rights};

/// P or V on a semaphore by an entry that does not know whether the domain's labels allow that. It learns it, and takes the fast path then.
#[unsafe(no_mangle)]
extern "C" fn semaphore_judged(by: Ref<Activation>, entry: Ref<Entry>) -> Reply {
    finish(by, step(by, entry))
}

fn step(by: Ref<Activation>, entry: Ref<Entry>) -> Outcome {
    let own = by.domain;
    let index = entry.address().wrapping_sub(own.table.get()) / ENTRY_BYTES;
    let entry = own.place(index)?;
    let semaphore = entry.object::<Semaphore>().ok_or(Error::Revoked)?;
    // An object that nobody else has is no flow to anybody.
    if semaphore.is_shared.get() {
        let label = labels::of_object(semaphore);
        let is_plain = label == PLAIN && !own.is_barred.get();
        if by.registers.word(0) == op::V && !is_plain {
            // V alone may be allowed: nothing flows back to the caller. That is asked each time.
            flows::go_on(by)?;
            entry.check_rights(rights::WRITE)?;
            if !flows::may_change_object(own, label)? {
                return Err(Error::Flow.into());
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
