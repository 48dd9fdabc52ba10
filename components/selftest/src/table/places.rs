//! The circumstances of an action: CPUs, instants, the thread to which things happen.

use alloc::sync::Arc;
use core::fmt::Write;
use core::sync::atomic::{AtomicU64, Ordering};

use abi::{Error, info};
use runtime::op::{self, Schedule};
use runtime::serial::Serial;
use runtime::thread::{self, Thread};
use runtime::{Entry, table};

/// Priority and slice of all that take part. Slices are short: a thread that runs without end keeps others of its CPU waiting.
pub const PRIORITY: u8 = 8;
pub const SCHEDULE: Schedule = Schedule { priority: PRIORITY, slice: 100 };
/// Nanoseconds after which something that must happen has not happened.
pub const PATIENCE: u64 = 20_000_000_000;
const MICROSECOND: u64 = 1_000;

/// When the act takes place.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum When {
    /// Before the victim begins.
    Before,
    /// While it waits in what it began.
    Asleep,
    /// While it runs in what it began.
    Busy,
    /// After it has finished.
    After,
    /// Whenever it happens: both begin at once.
    Race,
}

impl When {
    pub const ALL: &[Self] = &[Self::Before, Self::Asleep, Self::Busy, Self::After, Self::Race];

    pub const fn name(self) -> &'static str {
        match self {
            When::Before => "before",
            When::Asleep => "asleep",
            When::Busy => "busy",
            When::After => "after",
            When::Race => "race",
        }
    }
}

/// Numbers that look random: xorshift64* (Vigna, "An experimental exploration of Marsaglia's xorshift generators").
pub struct Prng(u64);

impl Prng {
    pub const fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }
    pub fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) % limit
    }
}

/// One variant of a case, and its small delays.
pub struct Turn {
    /// CPU of the actor.
    pub actor: usize,
    /// CPU of the victim.
    pub victim: usize,
    pub when: When,
    pub random: Prng,
}

/// Word 0 of a call: the callee returns at once, sleeps, or runs.
pub const RETURN: u64 = 0;
pub const SLEEP: u64 = 1;
pub const RUN: u64 = 2;

impl Turn {
    /// Word 0 of the victim's call, so that it is where [`Self::when`] says when the actor acts.
    pub fn mode(&mut self) -> u64 {
        match self.when {
            When::Before | When::After => RETURN,
            When::Asleep => SLEEP,
            When::Busy => RUN,
            When::Race => self.random.below(3),
        }
    }
    /// Lets a little time pass: nothing, or up to 40 microseconds.
    pub fn delay(&mut self) {
        // Here and elsewhere no instruction that pauses: it would make the emulator slow.
        let end = op::clock() + self.random.below(2) * self.random.below(40 * MICROSECOND);
        while op::clock() < end {
            core::hint::black_box(());
        }
    }
}

/// From now on the running thread runs on that CPU only.
pub fn pin(cpu: usize) -> Result<(), Error> {
    op::thread_schedule_on(Entry::OWN, SCHEDULE, 1 << cpu).map(drop)
}

/// From now on the thread runs on that CPU only.
pub fn pin_thread(thread: Entry, cpu: usize) -> Result<(), Error> {
    op::thread_schedule_on(thread, SCHEDULE, 1 << cpu).map(drop)
}

/// Waits until something holds.
pub fn until(condition: impl Fn() -> bool, otherwise: &'static str) -> Result<(), &'static str> {
    let end = op::clock() + PATIENCE;
    // A sleeping thread leaves the nucleus lock, and this computer's time if it is an emulator, to those for whom it waits.
    let mut nap = 10 * MICROSECOND;
    op::yield_now();
    while !condition() {
        // Between the two an emulator may run other CPUs for longer than that.
        if op::clock() > end {
            if condition() {
                return Ok(());
            }
            print_threads();
            return Err(otherwise);
        }
        thread::sleep(nap).map_err(|error| error.text())?;
        nap = (2 * nap).min(160 * MICROSECOND);
    }
    Ok(())
}

/// Prints where all threads are: something has not happened.
fn print_threads() {
    let mut to = Serial::new();
    for thread in op::records::<info::Thread>(Entry::SPECIAL).flatten() {
        let _ = writeln!(to, "{thread:?}");
    }
    for cpu in op::records::<info::Cpu>(Entry::SPECIAL).flatten() {
        let _ = writeln!(to, "{cpu:?}");
    }
}

/// Lets so much time pass that whatever runs on another CPU does something.
pub fn pause() {
    let end = op::clock() + 30 * MICROSECOND;
    while op::clock() < end {
        core::hint::black_box(());
    }
}

/// State of a thread in its record.
pub const BLOCKED: u64 = 3;

/// The record of a thread in the nucleus.
#[derive(Clone, Copy, Debug)]
pub struct Reported {
    pub is_blocked: bool,
    pub priority: u64,
    pub depth: u64,
    pub cpu: u64,
}

/// The record of the thread with a number.
pub fn reported(number: u64) -> Option<Reported> {
    let (thread, _) = op::record::<info::Thread>(Entry::SPECIAL, number.checked_sub(1)?).ok()?;
    let is_blocked = thread.state == BLOCKED;
    let reported = Reported { is_blocked, priority: thread.priority, depth: thread.depth, cpu: thread.cpu };
    (thread.number == number).then_some(reported)
}

/// CPUs that run.
pub fn cpus() -> Result<usize, &'static str> {
    let mut count = 0;
    for cpu in op::records::<info::Cpu>(Entry::SPECIAL) {
        count += usize::from(cpu.map_err(|error| error.text())?.state != info::cpu_state::OFFLINE);
    }
    Ok(count)
}

const RUNS: u64 = u64::MAX;

/// The state shared by a victim and its observer.
struct Side {
    number: AtomicU64,
    go: AtomicU64,
    began: AtomicU64,
    result: AtomicU64,
}

/// A thread of ours to which things happen.
pub struct Victim {
    side: Arc<Side>,
    thread: Thread,
}

impl Victim {
    /// One that will do something on a CPU; it gives a number below `u64::MAX`.
    pub fn new(cpu: usize, work: impl FnOnce() -> u64 + Send + 'static) -> Result<Self, &'static str> {
        Self::begin(cpu, false, work)
    }

    /// One that does not sleep until it may begin: it begins at once.
    fn alert(cpu: usize, work: impl FnOnce() -> u64 + Send + 'static) -> Result<Self, &'static str> {
        Self::begin(cpu, true, work)
    }

    fn begin(cpu: usize, is_alert: bool, work: impl FnOnce() -> u64 + Send + 'static) -> Result<Self, &'static str> {
        let side = Arc::new(Side {
            number: AtomicU64::new(0),
            go: AtomicU64::new(0),
            began: AtomicU64::new(0),
            result: AtomicU64::new(RUNS),
        });
        let its = side.clone();
        let thread = thread::spawn(move || {
            let pinned = pin(cpu);
            its.number.store(op::thread_id(), Ordering::SeqCst);
            while its.go.load(Ordering::SeqCst) == 0 {
                if is_alert {
                    op::yield_now();
                } else if thread::sleep(10 * MICROSECOND).is_err() {
                    break;
                }
            }
            its.began.store(1, Ordering::SeqCst);
            let result = pinned.map_or(9999, |()| work());
            its.result.store(result, Ordering::SeqCst);
        })
        .map_err(|error| error.text())?;
        let victim = Self { side, thread };
        until(|| victim.number() != 0, "the victim does not come")?;
        let at_home = reported(victim.number()).is_some_and(|reported| reported.cpu == cpu as u64);
        if at_home { Ok(victim) } else { Err("the victim is on another CPU") }
    }

    pub fn number(&self) -> u64 {
        self.side.number.load(Ordering::SeqCst)
    }

    pub fn entry(&self) -> Entry {
        self.thread.entry()
    }

    /// It may begin.
    pub fn go(&self) {
        self.side.go.store(1, Ordering::SeqCst);
    }

    pub fn is_done(&self) -> bool {
        self.side.result.load(Ordering::SeqCst) != RUNS
    }

    /// Waits until it is in a chain so deep, and waits or runs there.
    pub fn is_inside(&self, depth: u64, asleep: bool) -> Result<(), &'static str> {
        let number = self.number();
        let began = || self.side.began.load(Ordering::SeqCst) != 0;
        let is = || {
            began()
                && reported(number).is_some_and(|reported| reported.depth == depth && (!asleep || reported.is_blocked))
        };
        until(is, "the victim does not come to where it should be")
    }

    pub fn has_finished(&self) -> Result<(), &'static str> {
        until(|| self.is_done(), "the victim hangs")
    }

    /// Waits for its result, and clears it away.
    pub fn finish(self) -> Result<u64, &'static str> {
        self.has_finished()?;
        self.thread.join();
        Ok(self.side.result.load(Ordering::SeqCst))
    }
}

/// Lets a victim do `work` and somebody else `act`, in the order of the turn. `depth` is that of the victim's chain
/// while it is in what it does.
pub fn play(
    turn: &mut Turn,
    depth: u64,
    work: impl FnOnce() -> u64 + Send + 'static,
    act: impl FnOnce(&Victim) -> Result<(), &'static str>,
) -> Result<Victim, &'static str> {
    let victim =
        if turn.when == When::Race { Victim::alert(turn.victim, work) } else { Victim::new(turn.victim, work) }?;
    match turn.when {
        When::Before => act(&victim)?,
        When::Asleep | When::Busy => {
            victim.go();
            victim.is_inside(depth, turn.when == When::Asleep)?;
            turn.delay();
            act(&victim)?;
        }
        When::After => {
            victim.go();
            victim.has_finished()?;
            act(&victim)?;
        }
        When::Race => {
            victim.go();
            turn.delay();
            act(&victim)?;
        }
    }
    victim.go();
    Ok(victim)
}

/// 0 or the number of the error.
pub fn code(result: Result<(), Error>) -> u64 {
    result.map_or_else(|error| error as u64, |()| 0)
}

/// An index of ours that is given back, without what stands there.
pub fn vacant() -> Result<Entry, Error> {
    table::allocate()
}
