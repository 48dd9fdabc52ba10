//! The scheduler: fixed priorities, round robin within one.
//!
//! The nucleus enters at `_start` with an event, a thread word, and the ring in rbx; every entry begins
//! anew on the same stack and ends with `DISPATCH`. All state is in [`Queues`], which is complete after
//! every entry. A number whose thread ended meanwhile is refused by the nucleus and dropped here.
//!
//! The domain has no thread of its own and may not wait, call, or fault: all of its memory is mapped
//! before it takes its seat.
#![no_std]
#![no_main]

mod queues;

use abi::sched::{Event, IDLE, Ring, ThreadWord};
use abi::{Error, layout, op};
use core::arch::{asm, global_asm};
use core::cell::UnsafeCell;
use queues::Queues;

global_asm!(
    ".globl _start",
    "_start:",
    "mov rdx, rbx",
    "jmp {enter}",
    enter = sym enter,
);

/// All queues, for the only flow of control that this domain has.
struct Own(UnsafeCell<Queues>);

// SAFETY: the scheduler is never entered while it runs.
unsafe impl Sync for Own {}

static QUEUES: Own = Own(UnsafeCell::new(Queues::new()));

/// Lets a thread run; comes back only with a refusal.
fn dispatch(number: usize) -> u64 {
    let status;
    // SAFETY: the system call touches no memory of this domain.
    unsafe {
        asm!(
            "syscall",
            inlateout("rax") op::DISPATCH * layout::ENTRY_BYTES => status,
            inlateout("rdi") 0 => _, inlateout("rsi") number => _,
            lateout("rdx") _, lateout("rcx") _, lateout("r8") _, lateout("r9") _, lateout("r10") _, lateout("r11") _,
            options(nostack),
        );
    }
    status
}

/// Dispatches what may not run, now and then: the nucleus refuses it and nothing changes.
#[cfg(feature = "trial")]
fn dispatch_wrongly(ring: *mut Ring) {
    use core::sync::atomic::{AtomicUsize, Ordering};
    static ROUND: AtomicUsize = AtomicUsize::new(0);
    /// The first thread there is carries orphans, of which there are none; the others are no threads.
    const NOBODY: [usize; 4] = [1, abi::MAX_THREADS, abi::MAX_THREADS + 88, usize::MAX];
    let round = ROUND.fetch_add(1, Ordering::Relaxed);
    if is_unread(ring) {
        // Even to rest is refused while there is something new.
        dispatch(IDLE);
    } else {
        dispatch(NOBODY[round % NOBODY.len()]);
    }
}

extern "C" fn enter(event: u64, word: u64, ring: *mut Ring) -> ! {
    #[cfg(feature = "trial")]
    dispatch_wrongly(ring);
    // SAFETY: the scheduler is never entered while it runs: this is the only use.
    let queues = unsafe { &mut *QUEUES.0.get() };
    let current = ThreadWord(word as u32);
    let gives_way = event == Event::SliceEnded as u64 || event == Event::Yielded as u64;
    if !gives_way || is_unread(ring) {
        enter_slowly(event, current, ring)
    }
    // Nothing woke: the one that gives way is the last of its queue.
    queues.append_new(current);
    let number = queues.take();
    let status = dispatch(number);
    refused(number, status, ring)
}

#[inline(never)]
fn enter_slowly(event: u64, current: ThreadWord, ring: *mut Ring) -> ! {
    // SAFETY: as above; who called this uses its reference no more.
    let queues = unsafe { &mut *QUEUES.0.get() };
    if event == Event::Preempted as u64 {
        queues.prepend(current);
        read(queues, ring);
    } else {
        // What woke before gets its turn before the one that gives way.
        read(queues, ring);
        if event != Event::Choose as u64 {
            queues.append(current);
        }
    }
    let number = queues.take();
    let status = dispatch(number);
    refused(number, status, ring)
}

/// Looks again until a thread runs.
#[inline(never)]
fn refused(mut number: usize, mut status: u64, ring: *mut Ring) -> ! {
    // SAFETY: as above.
    let queues = unsafe { &mut *QUEUES.0.get() };
    loop {
        if status == Error::Again as u64 && number != IDLE {
            queues.put_back(number);
        }
        read(queues, ring);
        number = queues.take();
        status = dispatch(number);
    }
}

fn is_unread(ring: *mut Ring) -> bool {
    // SAFETY: as in `read`.
    unsafe { (&raw const (*ring).read).read_volatile() != (&raw const (*ring).written).read_volatile() }
}

/// Queues what the ring says became ready.
fn read(queues: &mut Queues, ring: *mut Ring) {
    // SAFETY: the nucleus writes `written` and `slots` before it, and only while this domain is not
    // running or interrupted between two instructions.
    unsafe {
        let mut read = (&raw const (*ring).read).read_volatile();
        while read != (&raw const (*ring).written).read_volatile() {
            let slot = read as usize % abi::sched::RING_SLOTS;
            queues.append(ThreadWord((&raw const (*ring).slots[slot]).read_volatile()));
            read = read.wrapping_add(1);
            (&raw mut (*ring).read).write_volatile(read);
        }
    }
}

#[panic_handler]
fn panic(_: &core::panic::PanicInfo) -> ! {
    // SAFETY: an invalid instruction ends the domain; the standby takes over.
    unsafe { asm!("ud2", options(noreturn)) }
}
