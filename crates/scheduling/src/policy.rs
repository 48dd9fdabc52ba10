//! Which CPU runs what, when there are several: one [`Instance`] decides for one CPU, and the instances publish their loads on
//! the [`LoadTable`] what they could give away. Nobody decides for all.
//!
//! # Rules
//! 1. A thread that wakes stays on its CPU. So two threads that wake each other in turn stay together.
//! 2. *Push.* What is queued beyond the thread that is dispatched goes to a CPU that rests, or else to the one that runs what
//!    has the lowest rank, if that is lower. A thread that was preempted just now is kept: it is back in a moment, as a rule.
//!    Preempted once more before a slice ends, it is not kept: those above may leave it next to nothing, again and again.
//! 3. *Pull.* A CPU that runs out of threads, or would fall back to a lower rank, first takes the spare thread of highest rank of
//!    the others that ranks higher.
//! 4. *Rounds.* Among equals every thread has one slice per round, wherever it is: a CPU that ended its round takes a thread that has its
//!    turn still before it on another CPU, and begins the next round only when there is nothing of the kind. This is the
//!    distributed weighted round robin of Li, Baumberger and Hahn (PPoPP 2009) with all weights equal: shares of time stay
//!    within one slice per round of each other, for any number of threads and CPUs, and nothing moves unless a CPU
//!    would otherwise be ahead. Rounds are counted in slices that were used up: a thread that yields or waits moves nothing.
//! 5. *Together.* A thread that wakes its CPU from rest, alone, [`ALONE`] times in a row, while each time one and the same CPU
//!    of a lower number began a rest in between, moves to that CPU. So those that wake each other in turn on different CPUs
//!    end up on one. A CPU that is busy, or rests all the time, does not attract threads.
//!
//! # Memory ordering
//! The load table is advice: stale values cost a refused hand-over, or a slice. One order matters: a resting CPU says so
//! before it looks for spare threads, and one with a spare thread says so before it looks for resting CPUs, both `SeqCst`; so one
//! of them sees the other. The bit in `LoadTable::idle` is a claim: the CPU that clears it hands a thread to that CPU, nobody else does.

mod notes;
mod sharing;

use crate::level::level_of;
use crate::queues::Queues;
use abi::sched::{Event, IDLE, LoadTable, SPARES, ThreadWord};
use abi::{Error, MAX_CPUS, PRIORITIES};
use core::sync::atomic::Ordering::{Relaxed, SeqCst};
use notes::Companion;

/// Times that a thread wakes its CPU alone, in step with another CPU, before it moves there.
pub const ALONE: u32 = 64;

/// Queued threads among which one is looked for that may go to another CPU.
const LOOK: usize = 32;

/// Hand-overs that are tried at one entry.
const HAND_OVERS: usize = MAX_CPUS;

/// An instance's view of the world.
pub trait World {
    /// The number of our CPU.
    fn cpu(&self) -> usize;
    /// The load table of all instances.
    fn load_table(&self) -> &LoadTable;
    /// Takes the next word out of our ring.
    fn take_ready(&mut self) -> Option<ThreadWord>;
    /// The time, in ticks, and the ticks of a period of shares.
    fn time(&self) -> [u64; 2];
    /// Hands a thread over to a CPU, which may be ours; gives a status.
    fn hand(&mut self, cpu: usize, number: usize) -> u64;
}

/// The knowledge of one CPU's scheduler. The queues alone are enough where there is one CPU.
#[repr(C)]
pub struct Instance {
    /// Threads queued, by level and in all.
    count: [u16; PRIORITIES],
    queued: u32,
    /// Turns left in this round, by level, that of the running one included: whose are first in the queue.
    left: [u16; PRIORITIES],
    round: [u32; PRIORITIES],
    /// Rank of what was dispatched last: its level plus 1.
    rank: u32,
    rests: bool,
    /// The thread that was preempted last since a slice ended.
    kept: u16,
    /// The level at which a slice ended, until a thread runs.
    ended: Option<usize>,
    /// The spare threads that we published, as the load table should have them.
    offered: [u32; SPARES],
    companion: Companion,
    /// Threads that could run here. They come last: see there.
    pub queues: Queues,
}

impl Default for Instance {
    fn default() -> Self {
        Self::new()
    }
}

impl Instance {
    /// Knows of nothing.
    pub const fn new() -> Self {
        Self {
            count: [0; PRIORITIES],
            queued: 0,
            left: [0; PRIORITIES],
            round: [0; PRIORITIES],
            rank: 0,
            rests: false,
            kept: 0,
            ended: None,
            offered: [0; SPARES],
            companion: Companion { number: 0, cpu: 0, rests: 0, times: 0 },
            queues: Queues::new(),
        }
    }

    /// A thread yields while nothing is unread: gives the thread that runs next, if that can be said at once.
    #[inline(always)]
    pub fn yielded(&mut self, word: ThreadWord, load_table: &LoadTable) -> Option<usize> {
        if self.queues.is_watched() {
            return None;
        }
        // The running thread may be in a queue: see `Queues::prepend`.
        let is_queued = self.queues.level(word.number()).is_some();
        if load_table.idle.load(Relaxed) != 0 || self.rank != level_of(word.priority()) as u32 + 1 || is_queued {
            return None;
        }
        self.add(word, Queues::append_new);
        Some(self.take())
    }

    /// The nucleus entered with an event: gives the number to dispatch.
    pub fn enter(&mut self, world: &mut impl World, event: u64, word: ThreadWord) -> usize {
        let level = self.rank.checked_sub(1).map(|level| level as usize % PRIORITIES);
        let mut held = 0;
        self.ended = None;
        if event == Event::SliceEnded as u64 {
            self.queues.forget_refusals();
            self.kept = 0;
        }
        self.looks_after_offer(world);
        if event == Event::Preempted as u64 {
            let number = word.number();
            if core::mem::replace(&mut self.kept, number as u16) != number as u16 {
                held = number;
            }
            // Its own word in the ring, if there is one, is older, and must not send it behind others.
            self.read(world, number);
            self.add(word, Queues::prepend);
        } else {
            if event != Event::Yielded as u64
                && let Some(level) = level
            {
                // Its turn is over. A thread that left meanwhile has none.
                self.left[level] = self.left[level].saturating_sub(1).min(self.count[level]);
            }
            // Threads that woke earlier get their turn before the one that yields.
            self.read(world, 0);
            if event != Event::Choose as u64 {
                self.add(word, Queues::append);
            }
            self.ended = level.filter(|_| event == Event::SliceEnded as u64);
        }
        if self.rests {
            self.wakes(world);
            self.moves_together(world);
        }
        self.choose(world, held)
    }

    /// `dispatch` of this number was refused: gives another one.
    pub fn refused(&mut self, world: &mut impl World, number: usize, status: u64) -> usize {
        if number != IDLE && status == Error::Again as u64 {
            self.queues.put_back(number);
            if let Some(level) = self.queues.level(number) {
                self.count[level] += 1;
                self.queued += 1;
            }
        } else if let Some(level) = self.rank.checked_sub(1) {
            // It has no turn here.
            let left = &mut self.left[level as usize % PRIORITIES];
            *left = left.saturating_sub(1);
        }
        self.read(world, 0);
        if self.rests {
            self.wakes(world);
        }
        self.choose(world, 0)
    }

    /// Puts a thread into a queue in the given way.
    #[inline(always)]
    fn add(&mut self, word: ThreadWord, put: impl FnOnce(&mut Queues, ThreadWord)) {
        let number = word.number();
        self.queues.note(number, word.is_pinned());
        if let Some(level) = self.queues.level(number) {
            self.count[level] -= 1;
            self.queued -= 1;
        }
        put(&mut self.queues, word);
        if let Some(level) = self.queues.level(number) {
            self.count[level] += 1;
            self.queued += 1;
        }
    }

    fn remove(&mut self, number: usize) {
        if let Some(level) = self.queues.level(number)
            && self.queues.remove(number)
        {
            self.count[level] -= 1;
            self.queued -= 1;
        }
    }

    /// Takes the thread that runs next; 0 = none.
    #[inline(always)]
    fn take(&mut self) -> usize {
        let Some(level) = self.queues.top() else { return IDLE };
        self.count[level] -= 1;
        self.queued -= 1;
        self.queues.take()
    }

    /// Queues what the ring reports; `first` goes to the head of its queue.
    fn read(&mut self, world: &mut impl World, first: usize) {
        while let Some(word) = world.take_ready() {
            let is_first = first != 0 && word.number() == first;
            self.add(word, if is_first { Queues::prepend } else { Queues::append });
        }
    }

    fn rank_to_run(&self) -> u32 {
        self.queues.top().map_or(0, |level| level as u32 + 1)
    }

    /// Looks at the time that threads with a share used.
    #[inline(always)]
    fn look(&mut self, world: &impl World) {
        if self.queues.is_watched() {
            self.look_at_time(world);
        }
    }

    #[cold]
    fn look_at_time(&mut self, world: &impl World) {
        let [now, period] = world.time();
        if self.queues.look(now, period) {
            self.count = [0; PRIORITIES];
            self.queues.visit(usize::MAX, |_, level| {
                self.count[level] += 1;
                true
            });
        }
    }

    fn choose(&mut self, world: &mut impl World, held: usize) -> usize {
        self.look(world);
        let rank = self.rank_to_run();
        if rank == 0 {
            let (load_table, cpu) = (world.load_table(), world.cpu());
            load_table.idle.fetch_or(1 << cpu, SeqCst);
            let rests = &load_table.notices[cpu % MAX_CPUS].rests;
            rests.store(rests.load(Relaxed).wrapping_add(1), Relaxed);
            self.rests = true;
        }
        if rank == 0 || rank < self.rank {
            self.pull(world, |spare, _| spare > rank);
        } else if let Some(level) = self.ended.filter(|level| *level as u32 + 1 == rank && self.left[*level] == 0) {
            let round = self.round[level];
            let is_behind = |theirs: u32| (theirs.wrapping_sub(round) as i32) <= 0;
            if !self.pull(world, |spare, theirs| spare > rank || spare == rank && is_behind(theirs)) {
                self.begin_round(world, level);
            }
        }
        // Perhaps one came that has a share.
        self.look(world);
        let rank = self.rank_to_run();
        let number = self.take();
        self.rank = rank;
        if self.rests && number != IDLE {
            self.wakes(world);
        }
        self.publish(world, held);
        self.push(world, held);
        number
    }

    /// All that are queued have had their turn: the next round, or the latest that anybody began.
    fn begin_round(&mut self, world: &mut impl World, level: usize) {
        let latest = &world.load_table().rounds[level];
        let (next, known) = (self.round[level].wrapping_add(1), latest.load(Relaxed));
        if (known.wrapping_sub(next) as i32) < 0 {
            latest.store(next, Relaxed);
            self.round[level] = next;
        } else {
            self.round[level] = known;
        }
        self.left[level] = self.count[level];
    }

    /// We have something to do.
    fn wakes(&mut self, world: &mut impl World) {
        self.rests = false;
        world.load_table().idle.fetch_and(!(1 << world.cpu()), Relaxed);
    }
}
