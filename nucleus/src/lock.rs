//! The one nucleus lock. `entry.s` takes it where the long ways begin and gives it back where they end.

use crate::arch::{entry, processor, special, timer};
use crate::pointer::Ref;
use crate::table::Entry;
use crate::{cpu, schedule};
use parallel::lock::Lock;

/// Held by who runs in the nucleus beyond the short ways; see `cpu`.
#[unsafe(no_mangle)]
static NUCLEUS_LOCK: Lock = Lock::new();

/// Where `entry.s` finds the number of hand-overs behind the count.
pub const BYTES_BEFORE_SERVED: usize = Lock::BYTES_BEFORE_SERVED;

/// The first CPU begins with the lock.
pub fn begin() {
    NUCLEUS_LOCK.announce();
}

/// A CPU that just began gets in line, behind the one that started it.
pub fn join() {
    if !NUCLEUS_LOCK.announce() {
        wait();
    }
}

/// The lock was not free when it was announced that this CPU wants it: waits, quiet, until it is ours. What others left
/// us to do is done then, but for `Cpu::disturbed`.
#[unsafe(no_mangle)]
extern "C" fn lock_wait_here() {
    let mut cpu = cpu::this();
    let start = timer::now();
    special::save();
    cpu.quiet.wait(&NUCLEUS_LOCK, processor::relax);
    let waited = timer::now() - start;
    cpu.counts.lock_waits += 1;
    cpu.counts.lock_waited += waited;
    cpu.counts.lock_longest = cpu.counts.lock_longest.max(waited);
    // Should it be the scheduler that waited, that is not its fault.
    cpu.patience_ends = cpu.patience_ends.saturating_add(waited);
    cpu.catch_up();
}

/// As [`lock_wait_here`], seen by who counts how long the lock is held.
fn wait() {
    // SAFETY: nothing is borrowed over this.
    unsafe { entry::lock_wait() }
}

/// As [`wait`], for a system call by `entry`, whose code this was: returns if it can go on. If not, what the activation
/// has saved makes the call anew.
#[unsafe(no_mangle)]
extern "C" fn lock_wait_with(entry: Ref<Entry>, code: usize) {
    wait_in_call();
    if entry.code != code {
        schedule::go_on()
    }
}

/// As [`wait`], for a V that was made already.
#[unsafe(no_mangle)]
extern "C" fn lock_wait_given() -> ! {
    wait_in_call();
    schedule::go_on()
}

fn wait_in_call() {
    let mut cpu = cpu::this();
    let published = cpu.settles.is_some();
    wait();
    let kept = cpu.settles.take();
    if let Some(semaphore) = kept {
        semaphore.settle();
    }
    // Who was held up looks at the entry anew: another semaphore may stand there, with other rights.
    if cpu.disturbed || published && kept.is_none() {
        schedule::go_on()
    }
}

/// Whether another CPU waits for the lock, which is ours.
pub fn is_wanted() -> bool {
    NUCLEUS_LOCK.is_wanted()
}

/// Lets those who wait have the lock first. Whatever was known of other objects may not be so any more.
pub fn pass() {
    // SAFETY: nothing is borrowed over this; it gives the lock back and takes it again.
    unsafe { entry::pass_lock() }
}
