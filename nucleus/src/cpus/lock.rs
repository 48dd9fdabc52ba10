//! The one nucleus lock. `entry.s` takes it where the slow paths begin and gives it back where they end.

use super::{assembly, cpu, root, special};
use crate::arch::{processor, timer};
use crate::objects::Cpu;
use crate::pointer::{Held, Ref};
use nucleus_sync::lock::Lock;

/// Held by who runs in the nucleus beyond the fast paths; see `cpus::cpu`.
#[unsafe(no_mangle)]
static NUCLEUS_LOCK: Lock = Lock::new();

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

/// The lock was not free when it was announced that this CPU wants it: waits, quiescent, until it is ours. What others left
/// us to do is done then, but for `Cpu::needs_recheck`.
#[unsafe(no_mangle)]
extern "C" fn lock_wait_here() {
    // SAFETY: until it is quiescent nobody else touches the block of this CPU, nor what runs here; then the lock is ours.
    let held = unsafe { Held::new() };
    let cpu = cpu::this(held);
    let start = timer::now();
    special::save(held);
    cpu.quiescent.wait(&NUCLEUS_LOCK, processor::relax);
    let waited = timer::now() - start;
    cpu.counts.lock_waits.update(|value| value + 1);
    cpu.counts.lock_waited.update(|value| value + waited);
    cpu.counts.lock_longest.set(cpu.counts.lock_longest.get().max(waited));
    // Should it be the scheduler that waited, that is not its fault.
    cpu.patience_ends.set(cpu.patience_ends.get().saturating_add(waited));
    catch_up(cpu);
}

/// The CPU was quiescent and has the lock now: does what was left to it.
pub fn catch_up(cpu: Ref<Cpu>) {
    if cpu.flush.take()
        && let Some(domain) = cpu.domain.get()
    {
        root::load(cpu.held(), domain.per_cpu().root.get());
    }
}

/// As [`lock_wait_here`], seen by who counts how long the lock is held.
pub fn wait() {
    // SAFETY: nothing is borrowed over this.
    unsafe { assembly::lock_wait() }
}

/// Whether another CPU waits for the lock, which is ours.
pub fn is_wanted() -> bool {
    NUCLEUS_LOCK.is_wanted()
}

/// Lets those who wait have the lock first. Whatever was known of other objects may not be so any more.
pub fn pass() {
    // SAFETY: nothing is borrowed over this; it gives the lock back and takes it again.
    unsafe { assembly::pass_lock() }
}
