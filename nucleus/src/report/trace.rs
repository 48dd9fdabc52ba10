//! With the feature `trace`: a record of each event, written to the emulator's debug console; the format is the
//! crate `trace`, the reader `./x trace`. Without it all of this is nothing.
//!
//! Writing takes time. What it took so far is subtracted from the time in each record, so that times are about those
//! of a nucleus that does not trace; slices and deadlines end by the clock, writing included.
//!
//! Short ways leave records too, without the nucleus lock: the records have a lock of their own, which is taken last.

use crate::arch::{memory, processor, timer};
use crate::cpus::cpu;
use crate::objects::{Activation, Domain, Entry, SavedFrame, Thread};
use crate::pointer::{Held, Link, Ref};
use abi::{Error, MAX_CPUS};
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use nucleus_sync::lock::Lock;
use trace::{Kind, Record, VERSION, text};

struct Own {
    /// Instructions spent on writing, by all CPUs: their clock is one, and counts the instructions of all.
    spent: AtomicU64,
    /// Time of the last record: those that follow each other at once are not in the wrong order.
    last: AtomicU64,
}

/// Of who writes a record.
static LOCK: Lock = Lock::new();
/// Reached under [`LOCK`], with interrupts off.
static OWN: Own = Own { spent: AtomicU64::new(0), last: AtomicU64::new(0) };
/// By CPU: an interrupt is being taken.
static INTERRUPT: [AtomicBool; MAX_CPUS] = [const { AtomicBool::new(false) }; MAX_CPUS];

/// Whether this CPU is taking an interrupt.
fn interrupted(held: Held) -> &'static AtomicBool {
    &INTERRUPT[cpu::this(held).number as usize % MAX_CPUS]
}

#[inline(always)]
fn record(held: Held, kind: Kind, thread: u16, domain: Link<Domain>, operands: [u64; 2]) {
    if cfg!(feature = "trace") {
        write(here(held, kind, thread, domain, operands), timer::UNSEEN[0]);
    }
}

/// The record of something on this CPU, still without its time.
fn here(held: Held, kind: Kind, thread: u16, domain: Link<Domain>, operands: [u64; 2]) -> Record {
    let domain = domain.map_or(0, |domain| domain.number as u32);
    Record { kind, cpu: cpu::this(held).number, thread, domain, time: 0, operands }
}

/// Writes a record, of now. `unseen`: ticks spent besides those between the two looks at the clock.
#[inline(never)]
fn write(mut record: Record, unseen: u64) {
    if !LOCK.announce() {
        LOCK.wait(processor::relax);
    }
    let (start, own) = (timer::instructions(), &OWN);
    let spent = own.spent.load(Ordering::Relaxed);
    record.time = own.last.load(Ordering::Relaxed).max(start.wrapping_sub(spent));
    own.last.store(record.time, Ordering::Relaxed);
    memory::debug_console(&record.encode());
    own.spent.store(spent + timer::instructions() - start + unseen, Ordering::Relaxed);
    LOCK.release();
}

fn number(thread: Link<Thread>) -> u16 {
    thread.map_or(0, |thread| thread.number)
}

/// The nucleus begins.
pub fn begin(held: Held) {
    record(held, Kind::Begin, 0, None, [VERSION, 0]);
}

/// The machine stops.
pub fn end(held: Held, status: u64) {
    record(held, Kind::End, 0, None, [status, 0]);
}

/// A domain was made.
#[inline(always)]
pub fn domain(domain: Ref<Domain>) {
    let held = domain.held();
    if cfg!(feature = "trace") {
        record(held, Kind::Domain, 0, Some(domain), text(&domain.name));
    }
}

/// A domain died.
#[inline(always)]
pub fn died(domain: Ref<Domain>) {
    let held = domain.held();
    record(held, Kind::DomainDied, 0, Some(domain), [domain.status(), 0]);
}

/// A thread was made.
#[inline(always)]
pub fn thread(thread: Ref<Thread>) {
    let held = thread.held();
    record(held, Kind::Thread, thread.number, Some(thread.home), [0, 0]);
}

/// A thread is gone.
#[inline(always)]
pub fn thread_gone(held: Held, number: u16) {
    record(held, Kind::ThreadGone, number, None, [0, 0]);
}

/// A call is made.
#[inline(always)]
pub fn call(caller: Ref<Activation>, entry: Ref<Entry>, word0: u64, upcall: bool) {
    if cfg!(feature = "trace") {
        write(of_call(caller, entry, word0, upcall), unseen(upcall));
    }
}

/// The call that is made next shows a window.
#[inline(always)]
pub fn window(caller: Ref<Activation>, word: u64) {
    record(caller.held(), Kind::Window, number(caller.thread.get()), Some(caller.domain), [word, 0]);
}

/// Instructions of a crossing that are not its own; an upcall takes the slow path anyway.
fn unseen(upcall: bool) -> u64 {
    if upcall { timer::UNSEEN[0] } else { timer::UNSEEN.iter().sum() }
}

fn of_call(caller: Ref<Activation>, entry: Ref<Entry>, word0: u64, upcall: bool) -> Record {
    let held = caller.held();
    let callee = callee_of(entry);
    let kind = if upcall { Kind::Upcall } else { Kind::Call };
    let service = entry.word0.get() << 16 | word0 & 0xffff;
    let callee = callee as u32 as u64 | entry.word1.get() << 32;
    here(held, kind, number(caller.thread.get()), Some(caller.domain), [callee, service])
}

/// The number of the domain that a call leads to.
fn callee_of(entry: Ref<Entry>) -> u64 {
    entry.callee().map_or(0, |callee| callee.number)
}

/// A call is refused.
#[inline(always)]
pub fn refused(caller: Ref<Activation>, entry: Ref<Entry>, error: Error) {
    let held = caller.held();
    if cfg!(feature = "trace") {
        let operands = [callee_of(entry), error as u64];
        record(held, Kind::Refused, number(caller.thread.get()), Some(caller.domain), operands);
    }
}

/// The top of a chain goes back to its caller.
#[inline(always)]
pub fn back(thread: Link<Thread>, top: Ref<Activation>, caller: Ref<Activation>) {
    if cfg!(feature = "trace") {
        write(of_return(thread, top, caller), unseen(caller.frame.get() == SavedFrame::Full));
    }
}

fn of_return(thread: Link<Thread>, top: Ref<Activation>, caller: Ref<Activation>) -> Record {
    let held = top.held();
    here(held, Kind::Return, number(thread), Some(top.domain), [caller.domain.number, 0])
}

/// What is left of a thread's chain ends with `top`.
#[inline(always)]
pub fn cut(thread: Ref<Thread>, top: Link<Activation>) {
    let held = thread.held();
    if cfg!(feature = "trace") {
        let (mut count, mut next) = (0, top);
        while let Some(activation) = next {
            count += 1;
            next = activation.caller.get();
        }
        record(held, Kind::Cut, thread.number, top.map(|top| top.domain), [count, 0]);
    }
}

/// A thread takes over an activation of a chain, the top first.
#[inline(always)]
pub fn adopt(thread: Link<Thread>, activation: Ref<Activation>, is_top: bool) {
    let held = activation.held();
    if let Some(thread) = thread {
        record(held, Kind::Adopt, thread.number, Some(activation.domain), [is_top as u64, 0]);
    }
}

/// A thread goes on.
#[inline(always)]
pub fn run(thread: Ref<Thread>) {
    let held = thread.held();
    if cfg!(feature = "trace") {
        // A chain that is cut off while it runs on another CPU goes on there, with another thread.
        let run = here(held, Kind::Run, thread.number, thread.top.get().map(|top| top.domain), [0, 0]);
        write(Record { cpu: thread.cpu.get().number, ..run }, timer::UNSEEN[0]);
    }
}

/// A thread stops; `event` is what `sched` is told of it, 0 if it waits.
#[inline(always)]
pub fn stop(thread: Ref<Thread>, event: u64) {
    let held = thread.held();
    if cfg!(feature = "trace") {
        record(held, Kind::Stop, thread.number, thread.top.get().map(|top| top.domain), [event, 0]);
    }
}

/// The scheduler is entered.
#[inline(always)]
pub fn schedule(domain: Ref<Domain>, event: u64) {
    let held = domain.held();
    record(held, Kind::Schedule, 0, Some(domain), [event, 0]);
}

/// Nothing can run.
#[inline(always)]
pub fn idle(held: Held) {
    record(held, Kind::Idle, 0, None, [0, 0]);
}

/// A thread can run.
#[inline(always)]
pub fn wake(thread: Ref<Thread>) {
    let held = thread.held();
    if cfg!(feature = "trace") {
        let by = number(cpu::this(held).thread.get().filter(|_| !interrupted(held).load(Ordering::Relaxed)));
        record(held, Kind::Wake, thread.number, thread.top.get().map(|top| top.domain), [by as u64, 0]);
    }
}

/// A page fault.
#[inline(always)]
pub fn page_fault(activation: Ref<Activation>, address: u64, code: u64) {
    let held = activation.held();
    record(held, Kind::PageFault, number(activation.thread.get()), Some(activation.domain), [address, code]);
}

/// Another exception.
#[inline(always)]
pub fn exception(activation: Ref<Activation>, vector: u64, code: u64) {
    let held = activation.held();
    record(held, Kind::Exception, number(activation.thread.get()), Some(activation.domain), [vector, code]);
}

/// An interrupt is taken.
#[inline(always)]
pub fn interrupt(held: Held, vector: u64) {
    if cfg!(feature = "trace") {
        interrupted(held).store(true, Ordering::Relaxed);
        let cpu = cpu::this(held);
        let running = cpu.activation.get().filter(|_| !cpu.idle.get());
        let thread = running.and_then(|activation| activation.thread.get());
        record(held, Kind::Interrupt, number(thread), running.map(|activation| activation.domain), [vector, 0]);
    }
}

/// It was taken.
#[inline(always)]
pub fn interrupt_over(held: Held) {
    if cfg!(feature = "trace") {
        interrupted(held).store(false, Ordering::Relaxed);
    }
}

/// A line for the log.
pub fn log(activation: Ref<Activation>, line: &[u8]) {
    let held = activation.held();
    if cfg!(feature = "trace") {
        for (place, part) in line.chunks(16).enumerate() {
            let kind = if place == 0 { Kind::Log } else { Kind::LogMore };
            record(held, kind, number(activation.thread.get()), Some(activation.domain), text(part));
        }
    }
}
