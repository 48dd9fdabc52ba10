//! The one nucleus lock. `entry.s` takes it where the long ways begin and gives it back where they end.

use crate::arch::{entry, processor, special, timer};
use crate::pointer::{Held, Ref};
use crate::table::Entry;
use crate::{cpu, schedule};
use parallel::lock::Lock;

/// Held by who runs in the nucleus beyond the short ways; see `cpu`.
#[unsafe(no_mangle)]
static NUCLEUS_LOCK: Lock = Lock::new();

/// Where `entry.s` finds the number of hand-overs behind the count.
pub const BYTES_BEFORE_SERVED: usize = Lock::BYTES_BEFORE_SERVED;

/// The first CPU begins with the lock.
pub fn begin() -> Held {
    NUCLEUS_LOCK.announce();
    // SAFETY: nobody else runs yet.
    unsafe { Held::new() }
}

/// A CPU that just began gets in line, behind the one that started it.
pub fn join() -> Held {
    if !NUCLEUS_LOCK.announce() {
        wait();
    }
    // SAFETY: the lock is ours now.
    unsafe { Held::new() }
}

/// The lock was not free when it was announced that this CPU wants it: waits, quiet, until it is ours. What others left
/// us to do is done then, but for `Cpu::disturbed`.
#[unsafe(no_mangle)]
extern "C" fn lock_wait_here() {
    // SAFETY: until it is quiet nobody else touches the block of this CPU, nor what runs here; then the lock is ours.
    let held = unsafe { Held::new() };
    let cpu = cpu::this(held);
    let start = timer::now();
    special::save(held);
    cpu.quiet.wait(&NUCLEUS_LOCK, processor::relax);
    let waited = timer::now() - start;
    cpu.counts.lock_waits.update(|value| value + 1);
    cpu.counts.lock_waited.update(|value| value + waited);
    cpu.counts.lock_longest.set(cpu.counts.lock_longest.get().max(waited));
    // Should it be the scheduler that waited, that is not its fault.
    cpu.patience_ends.set(cpu.patience_ends.get().saturating_add(waited));
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
    let held = wait_in_call();
    if entry.code.get() != code {
        schedule::go_on(held)
    }
}

/// As [`wait`], for a V that was made already.
#[unsafe(no_mangle)]
extern "C" fn lock_wait_given() -> ! {
    schedule::go_on(wait_in_call())
}

fn wait_in_call() -> Held {
    // SAFETY: before the lock is ours this only looks at the block of this CPU, which does not yet wait.
    let held = unsafe { Held::new() };
    let cpu = cpu::this(held);
    let published = cpu.settles.get().is_some();
    wait();
    let kept = cpu.settles.take();
    if let Some(semaphore) = kept {
        semaphore.settle();
    }
    // Who was held up looks at the entry anew: another semaphore may stand there, with other rights.
    if cpu.disturbed.get() || published && kept.is_none() {
        schedule::go_on(held)
    }
    held
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
