//! The block of a CPU, and what CPUs do to each other.
//!
//! On a slow path a CPU has the nucleus lock or waits for it. The lock holder can *stop* another CPU: it sends an IPI and
//! waits until that CPU is quiescent. The CPU stays quiescent until the lock is released, so the holder may change
//! whatever runs there. It leaves work for the CPU in its block (`flush`, `needs_recheck`), which the CPU does
//! when it gets the lock. A CPU that got the lock at once was not quiescent before: nothing was left for it.

use crate::arch::memory::DIRECT;
use crate::arch::{interrupts, processor};
use crate::objects::{Cpu, Domain, PerCpu, Runs, Thread};
use crate::pointer::{Held, Link, Nucleus, Ref};
use abi::{Error, MAX_CPUS};
use core::cell::Cell;
use core::sync::atomic::{Ordering, fence};

/// The CPU that boots.
static FIRST: Nucleus<Cpu> = Nucleus::new(Cpu::new(0, 0, 0, DIRECT));

struct All {
    cpus: [Cell<Link<Cpu>>; MAX_CPUS],
    /// What the machine calls them, those that did not start included.
    identities: [Cell<u32>; MAX_CPUS],
    present: Cell<usize>,
    /// More than one is there.
    several: Cell<bool>,
    /// Those that are there, one bit each.
    mask: Cell<u64>,
}

static ALL: Nucleus<All> = Nucleus::new(All {
    cpus: [const { Cell::new(None) }; MAX_CPUS],
    identities: [const { Cell::new(0) }; MAX_CPUS],
    present: Cell::new(1),
    several: Cell::new(false),
    mask: Cell::new(1),
});

/// Makes the block of the first CPU its own.
pub fn init_first(held: Held) {
    let first = FIRST.reference(held);
    first.own.set(Some(first));
    ALL.get(held).cpus[0].set(Some(first));
    processor::load_block(first);
}

/// The machine says that it has this CPU besides the first; gives its number, if there is one left.
pub fn announce(held: Held, identity: u32) -> Option<usize> {
    let all = ALL.get(held);
    let number = all.present.get();
    all.identities.get(number)?.set(identity);
    all.present.set(number + 1);
    Some(number)
}

/// The first CPU is called so.
pub fn name_first(held: Held, identity: u32) {
    ALL.get(held).identities[0].set(identity);
    FIRST.get(held).identity.set(identity);
}

/// A CPU that was announced is there; what it runs has begun to wait for the lock.
pub fn join(cpu: Ref<Cpu>) {
    let held = cpu.held();
    let all = ALL.get(held);
    all.cpus[cpu.number as usize].set(Some(cpu));
    all.mask.update(|mask| mask | 1 << cpu.number);
    all.several.set(true);
}

/// The block of this CPU.
#[inline(always)]
pub fn this(held: Held) -> Ref<Cpu> {
    processor::block(held)
}

/// The CPU with this number, if it is there.
pub fn of(held: Held, number: usize) -> Link<Cpu> {
    ALL.get(held).cpus.get(number)?.get()
}

/// CPUs that the machine has, and what it calls the one with this number.
pub fn present(held: Held) -> usize {
    ALL.get(held).present.get()
}

/// See [`present`].
pub fn identity_of(held: Held, number: usize) -> u32 {
    ALL.get(held).identities[number].get()
}

/// A bit for each CPU that is there.
pub fn mask(held: Held) -> u64 {
    ALL.get(held).mask.get()
}

/// Those of the `wanted` CPUs that are there; there must be one, and all must be among the `allowed`.
pub fn check_mask(held: Held, wanted: u64, allowed: u64) -> Result<u64, Error> {
    match wanted & mask(held) {
        0 => Err(Error::BadArgument),
        found if found & !allowed != 0 => Err(Error::NoRight),
        found => Ok(found),
    }
}

/// Whether there is more than one.
#[inline(always)]
pub fn several(held: Held) -> bool {
    ALL.get(held).several.get()
}

/// All CPUs that are there.
pub fn all(held: Held) -> impl Iterator<Item = Ref<Cpu>> {
    let all = ALL.get(held);
    all.cpus[..all.present.get()].iter().filter_map(Cell::get)
}

/// All but this one. What this CPU wrote before is seen by those of them that do not yet stand in its way: the fence
/// pairs with the write of the root, which is serialising, or of the domain, before which and the next system call's
/// first load nothing is reordered (`arch::entry`).
#[inline(always)]
pub fn others(held: Held) -> impl Iterator<Item = Ref<Cpu>> {
    let own = this(held);
    let several = several(held);
    if several {
        fence(Ordering::SeqCst);
    }
    let count = if several { ALL.get(held).present.get() } else { 0 };
    ALL.get(held).cpus[..count].iter().filter_map(Cell::get).filter(move |cpu| *cpu != own)
}

/// Interrupts another CPU, unless it was and has not noticed yet.
pub fn send_ipi(other: Ref<Cpu>) {
    if !other.ipi_pending.get() {
        other.ipi_pending.set(true);
        interrupts::send(other.identity.get());
    }
}

/// Stops another CPU until we release the lock.
#[cold]
pub fn stop(other: Ref<Cpu>) {
    let held = other.held();
    let send = || {
        this(held).counts.stops.update(|value| value + 1);
        send_ipi(other);
    };
    other.quiescent.stop(send, processor::relax);
    if let Some(semaphore) = other.unsettled.take() {
        semaphore.settle();
    }
}

/// Stops all others for which `stands_in_the_way` holds.
#[inline(always)]
pub fn stop_where(held: Held, stands_in_the_way: impl Fn(Ref<Cpu>) -> bool) {
    for other in others(held) {
        if stands_in_the_way(other) {
            stop(other);
        }
    }
}

/// Stops the CPU on which the thread runs, if that is another one.
#[inline(always)]
pub fn stop_cpu_of(thread: Ref<Thread>) {
    let held = thread.held();
    if several(held) && thread.runs.get() == Runs::Running {
        let home = thread.cpu.get();
        if home != this(held) {
            stop(home);
        }
    }
}

impl Ref<Cpu> {
    /// The CPU runs no thread any more; it finds out when it gets the lock.
    pub fn leave_thread(self) {
        let held = self.held();
        self.thread.set(None);
        if self != this(held) {
            self.needs_recheck.set(true);
        }
    }
}

impl Ref<Domain> {
    /// What it has on this CPU.
    pub fn per_cpu(self) -> Ref<PerCpu> {
        let held = self.held();
        self.per_cpu_on(this(held).number as usize)
    }
    /// What it has on all CPUs.
    pub fn per_cpus(self) -> impl Iterator<Item = Ref<PerCpu>> {
        let held = self.held();
        (0..present(held)).map(move |cpu| self.per_cpu_on(cpu))
    }
}
