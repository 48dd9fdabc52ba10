//! With the feature `trace`: a record of each event, written to the emulator's debug console. The crate `trace` defines the
//! format, and `./x trace` reads it. Without the feature, these functions do nothing.
//!
//! Writing takes time. Each record's time is less by what writing took so far, so that times are about those of a nucleus
//! that does not trace. But slices and deadlines end by the clock, writing included.
//!
//! In such a build every crossing takes the slow path, where it is recorded (`objects::Domain`). Records have a lock of
//! their own, which is taken last.

use crate::arch::{memory, processor, timer};
use crate::cpus::cpu;
use crate::objects::{Activation, Domain, Entry, SavedFrame, Thread};
use crate::pointer::{Held, Link, Ref};
use abi::{Error, MAX_CPUS};
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use nucleus_sync::lock::Lock;
use trace::{Kind, Record, VERSION, text};

struct Own {
    /// Instructions spent on writing, by all CPUs: they share one clock, which counts the instructions of all.
    spent: AtomicU64,
    /// Time of the last record: the next one never gets an earlier time.
    last: AtomicU64,
}

/// Held while a record is written.
static LOCK: Lock = Lock::new();
/// Accessed under [`LOCK`], with interrupts off.
static OWN: Own = Own { spent: AtomicU64::new(0), last: AtomicU64::new(0) };
/// For each CPU: whether it is handling an interrupt.
static INTERRUPT: [AtomicBool; MAX_CPUS] = [const { AtomicBool::new(false) }; MAX_CPUS];

/// Whether this CPU is handling an interrupt.
fn interrupted(held: Held) -> &'static AtomicBool {
    &INTERRUPT[cpu::this(held).number as usize % MAX_CPUS]
}

#[inline(always)]
fn record(held: Held, kind: Kind, thread: u16, domain: Link<Domain>, operands: [u64; 2]) {
    if cfg!(feature = "trace") {
        write(here(held, kind, thread, domain, operands), timer::UNSEEN[0]);
    }
}

/// A record of an event on this CPU, without its time.
fn here(held: Held, kind: Kind, thread: u16, domain: Link<Domain>, operands: [u64; 2]) -> Record {
    let domain = domain.map_or(0, |domain| domain.number as u32);
    Record { kind, cpu: cpu::this(held).number, thread, domain, time: 0, operands }
}

/// Writes a record with the present time. `unseen`: instructions spent on it besides those between the two readings of the
/// clock.
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

/// The nucleus starts.
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

/// The next call shows a window.
#[inline(always)]
pub fn window(caller: Ref<Activation>, word: u64) {
    record(caller.held(), Kind::Window, number(caller.thread.get()), Some(caller.domain), [word, 0]);
}

/// Instructions that a crossing takes only because it is traced; an upcall takes the slow path anyway.
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

/// The number of a call's callee.
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

/// The top of a chain returns to its caller.
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

/// A thread's chain was cut: `top` is the top of what is left.
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

/// A thread takes over an activation of an orphaned chain, the top first.
#[inline(always)]
pub fn adopt(thread: Link<Thread>, activation: Ref<Activation>, is_top: bool) {
    let held = activation.held();
    if let Some(thread) = thread {
        record(held, Kind::Adopt, thread.number, Some(activation.domain), [is_top as u64, 0]);
    }
}

/// A thread runs, on its CPU.
#[inline(always)]
pub fn run(thread: Ref<Thread>) {
    let held = thread.held();
    if cfg!(feature = "trace") {
        let run = here(held, Kind::Run, thread.number, thread.top.get().map(|top| top.domain), [0, 0]);
        write(Record { cpu: thread.cpu.get().number, ..run }, timer::UNSEEN[0]);
    }
}

/// A thread stops; `event` is the one that `sched` gets, 0 if the thread waits.
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

/// This CPU begins to handle an interrupt.
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

/// The interrupt was handled.
#[inline(always)]
pub fn interrupt_over(held: Held) {
    if cfg!(feature = "trace") {
        interrupted(held).store(false, Ordering::Relaxed);
    }
}

/// A line is appended to the log.
pub fn log(activation: Ref<Activation>, line: &[u8]) {
    let held = activation.held();
    if cfg!(feature = "trace") {
        for (place, part) in line.chunks(16).enumerate() {
            let kind = if place == 0 { Kind::Log } else { Kind::LogMore };
            record(held, kind, number(activation.thread.get()), Some(activation.domain), text(part));
        }
    }
}
