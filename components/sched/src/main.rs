//! The scheduler of one CPU: fixed priorities, round robin within one.
//!
//! The nucleus enters at `_start` with an event, a thread word, the number of the CPU, and the ring; every entry
//! begins again on the same stack and ends with `DISPATCH`. All state is in [`Instance`], which is complete after every
//! entry. A number whose thread ended meanwhile is refused by the nucleus and dropped here.
//!
//! Where there are several CPUs, each has an instance of its own, which is entered [`abi::sched::SEVERAL_CPUS`] bytes after `_start`
//! and shares threads out with the others by [`scheduling::policy`]. Where there is one, only the queues are used: nothing
//! is counted, and the load table is not even there.
//!
//! The domain has no thread of its own and may not wait, call, or fault: all of its memory is mapped
//! before it takes its seat. That is one page, with the stack at its start.
#![no_std]
#![no_main]

// For editors, which check for the host: see `runtime`.
#[cfg(not(target_os = "none"))]
extern crate std;

mod arch;

use abi::sched::{Event, IDLE, LoadTable, NOTES_AT, PERIOD, RING_SLOTS, RUN, Ring, STACK_BYTES, ThreadWord, hand_to};
use abi::{Error, layout, op};
use arch::{go_on_slowly, in_register, run, system_call};
use core::cell::UnsafeCell;
use core::mem::offset_of;
use core::sync::atomic::AtomicU32;
use scheduling::policy::{Instance, World};
use scheduling::queues::Queues;

/// All of the memory that this domain writes, for the only flow of control that it has. Of the notes on threads, which come last,
/// only those are mapped that this machine has numbers for.
#[repr(C, align(4096))]
struct Own {
    /// Below is the program: a thread that needs more dies.
    stack: UnsafeCell<[u8; STACK_BYTES as usize]>,
    /// How often it dispatched wrongly.
    #[cfg(feature = "trial")]
    round: core::sync::atomic::AtomicUsize,
    instance: UnsafeCell<Instance>,
}

const _: () = assert!(offset_of!(Own, instance) + offset_of!(Instance, queues) + Queues::NOTES_AT <= NOTES_AT);

// SAFETY: the scheduler is never entered while it runs.
unsafe impl Sync for Own {}

static OWN: Own = Own {
    stack: UnsafeCell::new([0; STACK_BYTES as usize]),
    #[cfg(feature = "trial")]
    round: core::sync::atomic::AtomicUsize::new(0),
    instance: UnsafeCell::new(Instance::new()),
};

/// Lets a thread run; comes back only with a refusal.
#[inline(always)]
fn dispatch(number: usize) -> u64 {
    system_call::<{ op::DISPATCH }>(RUN, number)
}

/// Adds to the counter of words that were read.
#[cfg(feature = "trial")]
fn move_on(ring: *mut Ring, words: u32) {
    // SAFETY: the nucleus mapped the ring for as long as we have the seat; it only reads this word, which is aligned.
    unsafe {
        let read = &raw mut (*ring).read;
        read.write_volatile(read.read_volatile().wrapping_add(words));
    }
}

/// Dispatches what may not run, hands a thread over to a CPU that is not there, yields, and sets its own priority, now and then: the nucleus
/// refuses all that and nothing changes. It does not always refuse a scheduler that has read many words: there may be no end of them.
#[cfg(feature = "trial")]
fn dispatch_wrongly(ring: *mut Ring, current: ThreadWord) {
    use abi::sched::MOST_READ;
    use core::sync::atomic::Ordering;
    /// The first thread there is carries orphans, of which there are none; the others are no threads.
    const NOBODY: [usize; 4] = [1, abi::MAX_THREADS, abi::MAX_THREADS + 88, usize::MAX];
    /// After so many rounds it does not read until somebody ran.
    const STUBBORN: usize = 16;
    const IS_SCHEDULER: u64 = Error::IsScheduler as u64;
    if [system_call::<{ op::YIELD }>(0, 0), system_call::<{ op::THREAD_SCHEDULE }>(0, 0)] != [IS_SCHEDULER; 2] {
        arch::die()
    }
    if system_call::<{ op::DISPATCH }>(hand_to(abi::MAX_CPUS), current.number()) != Error::NotThere as u64 {
        arch::die()
    }
    let round = OWN.round.fetch_add(1, Ordering::Relaxed);
    if !is_unread(ring) {
        dispatch(NOBODY[round % NOBODY.len()]);
    } else if round.is_multiple_of(STUBBORN) {
        // The slots behind are empty: it is as if it read these words between two dispatches.
        let mut status = Error::Again as u64;
        while status == Error::Again as u64 {
            move_on(ring, MOST_READ.wrapping_neg());
            dispatch(IDLE);
            move_on(ring, MOST_READ);
            status = dispatch(current.number());
        }
    } else {
        // Even to rest is refused while there is something new, however often.
        (0..3).for_each(|_| drop(dispatch(IDLE)));
    }
}

extern "C" fn enter(event: u64, word: u64, ring: *mut Ring) -> ! {
    #[cfg(feature = "trial")]
    dispatch_wrongly(ring, ThreadWord(word as u32));
    // SAFETY: the scheduler is never entered while it runs: this is the only use.
    let queues = unsafe { &mut (*in_register(OWN.instance.get())).queues };
    let current = ThreadWord(word as u32);
    if queues.is_watched() {
        // It takes a look at the time.
    } else if event == Event::SliceEnded as u64 || event == Event::Yielded as u64 {
        // There are others like it: it is the last of its queue. If something woke the nucleus says so.
        if let Some(number) = queues.rotate(current) {
            run(number, ring)
        }
    } else if event == Event::Choose as u64
        && let Some(woken) = take_ready(ring)
    {
        // One woke, and precedes all others.
        if !is_unread(ring)
            && let Some(number) = queues.pass(woken)
        {
            run(number, ring)
        }
        go_on_slowly(Event::Choose as u64, woken, ring, ThreadWord(0))
    }
    go_on_slowly(event, ThreadWord(0), ring, current)
}

/// The rest of [`enter`]; `woken` was taken from the ring before.
#[inline(never)]
extern "C" fn enter_slowly(event: u64, woken: u64, ring: *mut Ring, current: u64) -> ! {
    let [woken, current] = [woken, current].map(|word| ThreadWord(word as u32));
    // SAFETY: the scheduler is never entered while it runs, and the caller uses its own reference no more.
    let queues = unsafe { &mut (*OWN.instance.get()).queues };
    queues.append(woken);
    if event == Event::Preempted as u64 {
        // Its own word in the ring, if there is one, is older.
        read(queues, ring);
        queues.prepend(current);
    } else {
        // Threads that woke earlier get their turn before the one that yields.
        read(queues, ring);
        if event != Event::Choose as u64 {
            queues.append(current);
        }
    }
    run(choose(queues, ring), ring)
}

/// Looks again until a thread runs.
#[inline(never)]
extern "C" fn refused(mut number: usize, mut status: u64, ring: *mut Ring) -> ! {
    // SAFETY: the scheduler is never entered while it runs, and whatever led here uses its reference no more.
    let queues = unsafe { &mut (*OWN.instance.get()).queues };
    loop {
        if status == Error::Again as u64 && number != IDLE {
            queues.put_back(number);
        }
        read(queues, ring);
        number = choose(queues, ring);
        status = dispatch(number);
    }
}

/// Takes the thread that runs next.
fn choose(queues: &mut Queues, ring: *mut Ring) -> usize {
    if queues.is_watched() {
        let [now, period] = time(ring);
        queues.look(now, period);
    }
    queues.take()
}

/// The time, in ticks, and the ticks of a period of shares.
fn time(ring: *mut Ring) -> [u64; 2] {
    // SAFETY: the nucleus mapped the ring for as long as we have the seat, and wrote this before it gave us that.
    let ticks = unsafe { (&raw const (*ring).ticks).read() };
    [arch::now(), u64::from(ticks) * PERIOD]
}

fn is_unread(ring: *mut Ring) -> bool {
    // SAFETY: the nucleus mapped the ring for as long as we have the seat; each word is aligned, and read once.
    unsafe { (&raw const (*ring).read).read_volatile() != (&raw const (*ring).written).read_volatile() }
}

/// Queues what the ring says became ready.
fn read(queues: &mut Queues, ring: *mut Ring) {
    while let Some(word) = take_ready(ring) {
        queues.append(word);
    }
}

/// Takes the next word out of the ring; number 0 = of nothing.
#[inline(always)]
fn take_ready(ring: *mut Ring) -> Option<ThreadWord> {
    // SAFETY: the ring is a page that the nucleus mapped for this domain, for as long as that has the seat. Both sides touch
    // its words atomically.
    let shared = unsafe {
        nucleus_sync::ring::Ring {
            written: AtomicU32::from_ptr(&raw mut (*ring).written),
            read: AtomicU32::from_ptr(&raw mut (*ring).read),
            slots: &*(&raw const (*ring).slots).cast::<[AtomicU32; RING_SLOTS]>(),
        }
    };
    shared.take().map(ThreadWord)
}

/// One of several CPUs, as the policy sees it.
struct Here {
    cpu: usize,
    ring: *mut Ring,
}

impl World for Here {
    fn cpu(&self) -> usize {
        self.cpu
    }
    fn load_table(&self) -> &LoadTable {
        // SAFETY: mapped before a seat with this entry is taken, for as long as the domain lives; all of it is atomic.
        unsafe { &*(layout::WINDOW as *const LoadTable) }
    }
    fn take_ready(&mut self) -> Option<ThreadWord> {
        take_ready(self.ring)
    }
    fn time(&self) -> [u64; 2] {
        time(self.ring)
    }
    fn hand(&mut self, cpu: usize, number: usize) -> u64 {
        system_call::<{ op::DISPATCH }>(hand_to(cpu), number)
    }
}

extern "C" fn enter_one_of_several(event: u64, word: u64, cpu: u64, ring: *mut Ring) -> ! {
    #[cfg(feature = "trial")]
    dispatch_wrongly(ring, ThreadWord(word as u32));
    // SAFETY: the scheduler is never entered while it runs: this is the only use.
    let instance = unsafe { &mut *OWN.instance.get() };
    let mut here = Here { cpu: cpu as usize % abi::MAX_CPUS, ring };
    let current = ThreadWord(word as u32);
    let at_once = if event == Event::Yielded as u64 && !is_unread(ring) {
        instance.yielded(current, here.load_table())
    } else {
        None
    };
    let mut number = match at_once {
        Some(number) => number,
        None => instance.enter(&mut here, event, current),
    };
    loop {
        let status = dispatch(number);
        number = instance.refused(&mut here, number, status);
    }
}

#[cfg_attr(target_os = "none", panic_handler)]
#[cfg_attr(not(target_os = "none"), expect(dead_code))]
fn panic(_: &core::panic::PanicInfo) -> ! {
    arch::die()
}
