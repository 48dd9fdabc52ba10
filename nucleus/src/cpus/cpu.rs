//! The block of a CPU, and how one CPU stops others.
//!
//! On a slow path, a CPU has the nucleus lock or waits for it. The lock holder can *stop* another CPU: it sends an IPI and
//! waits until that CPU is quiescent. The CPU stays quiescent until the lock is released, so the holder may change
//! whatever runs there. It leaves work for the CPU in its block (`flush`, `needs_recheck`). The CPU does this work
//! when it gets the lock. If a CPU gets the lock at once, it was not quiescent before, so no work was left for it.

use crate::arch::memory::DIRECT;
use crate::arch::{interrupts, processor};
use crate::objects::{Cpu, Domain, PerCpu, Runs, Thread};
use crate::pointer::{Held, Link, Nucleus, Ref};
use abi::{Error, MAX_CPUS};
use core::cell::Cell;
use core::sync::atomic::{Ordering, fence};

/// Block of the boot CPU.
static FIRST: Nucleus<Cpu> = Nucleus::new(Cpu::new(0, 0, 0, DIRECT));

struct All {
    cpus: [Cell<Link<Cpu>>; MAX_CPUS],
    /// Hardware identities, also of CPUs that did not start.
    identities: [Cell<u32>; MAX_CPUS],
    present: Cell<usize>,
    /// More than one CPU has joined.
    several: Cell<bool>,
    /// CPUs that have joined, one bit each.
    mask: Cell<u64>,
}

static ALL: Nucleus<All> = Nucleus::new(All {
    cpus: [const { Cell::new(None) }; MAX_CPUS],
    identities: [const { Cell::new(0) }; MAX_CPUS],
    present: Cell::new(1),
    several: Cell::new(false),
    mask: Cell::new(1),
});

/// Sets up the block of the boot CPU, and loads it.
pub fn init_first(held: Held) {
    let first = FIRST.reference(held);
    first.own.set(Some(first));
    ALL.get(held).cpus[0].set(Some(first));
    processor::load_block(first);
}

/// Adds another CPU that the machine reports; gives its number, or None if [`MAX_CPUS`] are known.
pub fn announce(held: Held, identity: u32) -> Option<usize> {
    let all = ALL.get(held);
    let number = all.present.get();
    all.identities.get(number)?.set(identity);
    all.present.set(number + 1);
    Some(number)
}

/// Sets the hardware identity of the boot CPU.
pub fn name_first(held: Held, identity: u32) {
    ALL.get(held).identities[0].set(identity);
    FIRST.get(held).identity.set(identity);
}

/// Registers an announced CPU, which has started and now waits for the lock.
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

/// The CPU with this number, if it has joined.
pub fn of(held: Held, number: usize) -> Link<Cpu> {
    ALL.get(held).cpus.get(number)?.get()
}

/// Number of CPUs that the machine has, also those that did not start.
pub fn present(held: Held) -> usize {
    ALL.get(held).present.get()
}

/// Hardware identity of the CPU with this number.
pub fn identity_of(held: Held, number: usize) -> u32 {
    ALL.get(held).identities[number].get()
}

/// CPUs that have joined, one bit each.
pub fn mask(held: Held) -> u64 {
    ALL.get(held).mask.get()
}

/// Those of the `wanted` CPUs that have joined: at least one, and all of them `allowed`.
pub fn check_mask(held: Held, wanted: u64, allowed: u64) -> Result<u64, Error> {
    match wanted & mask(held) {
        0 => Err(Error::NotThere),
        found if found & !allowed != 0 => Err(Error::CpuNotAllowed),
        found => Ok(found),
    }
}

/// Whether more than one CPU has joined.
#[inline(always)]
pub fn several(held: Held) -> bool {
    ALL.get(held).several.get()
}

/// All CPUs that have joined.
pub fn all(held: Held) -> impl Iterator<Item = Ref<Cpu>> {
    let all = ALL.get(held);
    all.cpus[..all.present.get()].iter().filter_map(Cell::get)
}

/// All CPUs but this one. The fence orders this CPU's earlier writes before its reads of their `domain`. So a CPU that is
/// not seen in a domain sees these writes once it enters the domain. That CPU writes `domain` before its later loads: on x86-64
/// it then loads the root, which is serialising; on AArch64 the write releases, and a system call's first load acquires.
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

/// Sends an IPI to another CPU, unless one is pending.
pub fn send_ipi(other: Ref<Cpu>) {
    if !other.ipi_pending.get() {
        other.ipi_pending.set(true);
        interrupts::send(other.identity.get());
    }
}

/// Stops another CPU until this CPU releases the lock.
#[cold]
pub fn stop(other: Ref<Cpu>) {
    let held = other.held();
    let send = || {
        this(held).counts.stops.update(|value| value + 1);
        send_ipi(other);
    };
    other.quiescent.stop(send, processor::relax);
    if let Some(semaphore) = other.unsettled.take() {
        semaphore.hand_out_tokens();
    }
}

/// Stops all other CPUs for which `stands_in_the_way` holds.
#[inline(always)]
pub fn stop_where(held: Held, stands_in_the_way: impl Fn(Ref<Cpu>) -> bool) {
    for other in others(held) {
        if stands_in_the_way(other) {
            stop(other);
        }
    }
}

/// Stops the CPU on which the thread runs, if it runs on another CPU.
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
    /// Removes the thread from the CPU. Another CPU rechecks what it runs when it gets the lock.
    pub fn leave_thread(self) {
        let held = self.held();
        self.thread.set(None);
        if self != this(held) {
            self.needs_recheck.set(true);
        }
    }
}

impl Ref<Domain> {
    /// Its state on this CPU.
    pub fn per_cpu(self) -> Ref<PerCpu> {
        let held = self.held();
        self.per_cpu_on(this(held).number as usize)
    }
    /// Its state on each CPU of the machine.
    pub fn per_cpus(self) -> impl Iterator<Item = Ref<PerCpu>> {
        let held = self.held();
        (0..present(held)).map(move |cpu| self.per_cpu_on(cpu))
    }
}
