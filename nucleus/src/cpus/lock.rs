//! The nucleus lock. `entry.s` takes it at the start of a slow path, and releases it at the end.

use super::{assembly, cpu, root, special};
use crate::arch::{processor, timer};
use crate::objects::Cpu;
use crate::pointer::{Held, Ref};
use nucleus_sync::lock::Lock;

/// Held by the CPU that is on a slow path in the nucleus; see `cpus::cpu`.
#[unsafe(no_mangle)]
static NUCLEUS_LOCK: Lock = Lock::new();

/// Takes the lock on the boot CPU.
pub fn begin() -> Held {
    NUCLEUS_LOCK.announce();
    // SAFETY: no other CPU runs yet, so the lock was free and is ours.
    unsafe { Held::new() }
}

/// Takes the lock on a CPU that just started, after the CPU that started it.
pub fn join() -> Held {
    if !NUCLEUS_LOCK.announce() {
        wait();
    }
    // SAFETY: the lock is ours now.
    unsafe { Held::new() }
}

/// Waits, quiescent, for the lock, for which this CPU has announced itself. Then does the work that others left for it,
/// except for `Cpu::needs_recheck`.
#[unsafe(no_mangle)]
extern "C" fn lock_wait_here() {
    // SAFETY: no other CPU accesses this CPU's block or what runs here until this CPU is quiescent; after the wait the lock
    // is ours.
    let held = unsafe { Held::new() };
    let cpu = cpu::this(held);
    let start = timer::now();
    special::save(held);
    cpu.quiescent.wait(&NUCLEUS_LOCK, processor::relax);
    let waited = timer::now() - start;
    cpu.counts.lock_waits.update(|value| value + 1);
    cpu.counts.lock_waited.update(|value| value + waited);
    cpu.counts.lock_longest.set(cpu.counts.lock_longest.get().max(waited));
    // If the scheduler waited, the wait does not count against its patience.
    cpu.patience_ends.set(cpu.patience_ends.get().saturating_add(waited));
    catch_up(cpu);
}

/// Does the work left for a CPU that was quiescent, and now has the lock.
pub fn catch_up(cpu: Ref<Cpu>) {
    if cpu.flush.take()
        && let Some(domain) = cpu.domain.get()
    {
        root::load(cpu.held(), domain.per_cpu().root.get());
    }
}

/// As [`lock_wait_here`], through the symbols between which `./x bench` measures how long the lock is held.
pub fn wait() {
    // SAFETY: no borrow lives across this call; this CPU has announced itself for the lock.
    unsafe { assembly::lock_wait() }
}

/// Whether another CPU waits for the lock, which this CPU holds.
pub fn is_wanted() -> bool {
    NUCLEUS_LOCK.is_wanted()
}

/// Lets waiting CPUs have the lock first. Anything known about other objects may be stale afterwards.
pub fn pass() {
    // SAFETY: no borrow lives across this call, which releases the lock and takes it again.
    unsafe { assembly::pass_lock() }
}
