//! Which CPU runs what, when there are several: one [`Instance`] decides for one CPU, and the instances tell each other on
//! the [`Board`] what they could give away. Nobody decides for all.
//!
//! # Rules
//! 1. A thread that wakes stays on its CPU. So two threads that wake each other in turn stay together.
//! 2. *Push.* What is queued beyond the thread that is dispatched goes to a CPU that rests, or else to the one that runs what
//!    has the lowest rank, if that is lower. A thread that was preempted just now is kept: it is back in a moment, as a rule.
//! 3. *Pull.* Who runs out of threads, or would fall back to a lower rank, first takes the spare thread of highest rank of
//!    the others that ranks higher.
//! 4. *Rounds.* Among equals every thread has one slice per round, wherever it is: who ended its round takes what has its turn
//!    still before it on another CPU, and begins the next round only when there is nothing of the kind. This is the
//!    distributed weighted round robin of Li, Baumberger and Hahn (PPoPP 2009) with all weights equal: shares of time stay
//!    within one slice per round of each other, for any number of threads and CPUs, and nothing moves unless a CPU
//!    would otherwise be ahead. Rounds are counted in slices that were used up: who yields or waits moves nothing.
//! 5. *Together.* A thread that wakes its CPU from rest, alone, [`ALONE`] times in a row, while each time one and the same CPU
//!    of a lower number began a rest in between, moves to that CPU. So those that wake each other in turn on different CPUs
//!    end up on one. What is busy there, or rests all the time, does not attract.
//!
//! # Memory ordering
//! What is on the board is advice: stale values cost a refused hand-over, or a slice. One order matters: who rests says so
//! before it looks for spare threads, and who has a spare thread says so before it looks for who rests, both `SeqCst`; so one
//! of them sees the other. The bit in `Board::idle` is a claim: who clears it hands a thread to that CPU, nobody else does.

use crate::queues::{Queues, level_of};
use abi::sched::{Board, Event, IDLE, SPARES, Spare, ThreadWord};
use abi::{Error, MAX_CPUS, MAX_THREADS, PRIORITIES};
use core::sync::atomic::Ordering::{Relaxed, SeqCst};

/// Times that a thread wakes its CPU alone, in step with another CPU, before it moves there.
pub const ALONE: u32 = 64;

/// Queued threads among which one is looked for that may go to another CPU.
const LOOK: usize = 32;

/// Hand-overs that are tried at one entry.
const HAND_OVERS: usize = MAX_CPUS;

/// What an instance sees of the world.
pub trait World {
    /// The number of our CPU.
    fn cpu(&self) -> usize;
    /// The board of all instances.
    fn board(&self) -> &Board;
    /// Takes the next word out of our ring.
    fn hear(&mut self) -> Option<ThreadWord>;
    /// Hands a thread over to a CPU, which may be ours; gives a status.
    fn hand(&mut self, cpu: usize, number: usize) -> u64;
}

/// What one CPU's scheduler knows. The queues alone are enough where there is one CPU.
pub struct Instance {
    /// Threads that could run here.
    pub queues: Queues,
    /// Threads queued, by level and in all.
    count: [u16; PRIORITIES],
    queued: u32,
    /// Turns left in this round, by level, that of the running one included: whose are first in the queue.
    left: [u16; PRIORITIES],
    round: [u32; PRIORITIES],
    /// A bit for each thread that may not leave, and for each that others refused or took since a slice ended.
    pinned: Threads,
    refused: Threads,
    /// Rank of what was dispatched last: its level plus 1.
    rank: u32,
    rests: bool,
    /// The level at which a slice ended, until a thread runs.
    ended: Option<usize>,
    /// The spare threads that we published, as the board should have them.
    offered: [u32; SPARES],
    companion: Companion,
}

/// A bit for each thread.
struct Threads([u64; MAX_THREADS / 64]);

impl Threads {
    const NONE: Self = Self([0; MAX_THREADS / 64]);

    fn set(&mut self, number: usize, value: bool) {
        let word = &mut self.0[number % MAX_THREADS / 64];
        *word = *word & !(1 << (number % 64)) | u64::from(value) << (number % 64);
    }

    fn has(&self, number: usize) -> bool {
        self.0[number % MAX_THREADS / 64] >> (number % 64) & 1 != 0
    }
}

/// Who wakes us alone, and a CPU that rests in step with it.
struct Companion {
    number: usize,
    cpu: usize,
    /// What that CPU's count of rests was last, and how often in a row it had changed.
    rests: u32,
    times: u32,
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
            queues: Queues::new(),
            count: [0; PRIORITIES],
            queued: 0,
            left: [0; PRIORITIES],
            round: [0; PRIORITIES],
            pinned: Threads::NONE,
            refused: Threads::NONE,
            rank: 0,
            rests: false,
            ended: None,
            offered: [0; SPARES],
            companion: Companion { number: 0, cpu: 0, rests: 0, times: 0 },
        }
    }

    /// A thread yields while nothing is unread: gives who runs next, if that can be said at once.
    #[inline(always)]
    pub fn yielded(&mut self, word: ThreadWord, board: &Board) -> Option<usize> {
        if board.idle.load(Relaxed) != 0 || self.rank != level_of(word.priority()) as u32 + 1 {
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
            self.refused = Threads::NONE;
        }
        self.looks_after_offer(world);
        if event == Event::Preempted as u64 {
            held = word.number();
            self.add(word, Queues::prepend);
            self.read(world, 0);
        } else {
            if event != Event::Yielded as u64
                && let Some(level) = level
            {
                // Its turn is over. Whoever left meanwhile has none.
                self.left[level] = self.left[level].saturating_sub(1).min(self.count[level]);
            }
            // What woke before gets its turn before the one that gives way.
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
        self.pinned.set(number, word.is_pinned());
        self.refused.set(number, false);
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

    /// Takes who runs next; 0 = nobody.
    #[inline(always)]
    fn take(&mut self) -> usize {
        let Some(level) = self.queues.top() else { return IDLE };
        self.count[level] -= 1;
        self.queued -= 1;
        self.queues.take()
    }

    /// Queues what the ring tells of; `first` goes to the head of its queue.
    fn read(&mut self, world: &mut impl World, first: usize) {
        while let Some(word) = world.hear() {
            let is_first = first != 0 && word.number() == first;
            self.add(word, if is_first { Queues::prepend } else { Queues::append });
        }
    }

    fn rank_to_run(&self) -> u32 {
        self.queues.top().map_or(0, |level| level as u32 + 1)
    }

    fn choose(&mut self, world: &mut impl World, held: usize) -> usize {
        let rank = self.rank_to_run();
        if rank == 0 {
            let (board, cpu) = (world.board(), world.cpu());
            board.idle.fetch_or(1 << cpu, SeqCst);
            let rests = &board.notices[cpu % MAX_CPUS].rests;
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
        let latest = &world.board().rounds[level];
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
        world.board().idle.fetch_and(!(1 << world.cpu()), Relaxed);
    }

    /// The first queued thread that may go to another CPU, and its level.
    fn movable(&self, held: usize) -> Option<(usize, usize)> {
        self.queues.find(LOOK, |number| number != held && !self.pinned.has(number) && !self.refused.has(number))
    }

    /// What was taken from us is still in the queue, and dropped when it is refused. It is not offered again.
    fn looks_after_offer(&mut self, world: &impl World) {
        let spares = &world.board().notices[world.cpu() % MAX_CPUS].spares;
        for (offered, spare) in self.offered.iter().zip(spares).take_while(|(offered, _)| **offered != 0) {
            if *offered != spare.load(Relaxed) {
                self.refused.set(Spare(*offered).number(), true);
            }
        }
    }

    fn publish(&mut self, world: &impl World, held: usize) {
        let notice = &world.board().notices[world.cpu() % MAX_CPUS];
        notice.queued.store(self.queued, Relaxed);
        notice.rank.store(self.rank, Relaxed);
        let mut places = self.offered.iter_mut().zip(&notice.spares);
        let (mut top, mut due) = (None, 0);
        let (pinned, refused, left, rank) = (&self.pinned, &self.refused, &self.left, self.rank);
        self.queues.visit(LOOK, |number, level| {
            if top != Some(level) {
                if top.is_none() {
                    notice.round.store(self.round[level], Relaxed);
                }
                // The running one has a turn of this round, and then those at the head of the queue.
                due = left[level].saturating_sub(u16::from(rank as usize == level + 1));
                top = Some(level);
            }
            let is_later = due == 0;
            due = due.saturating_sub(1);
            if number == held || pinned.has(number) || refused.has(number) {
                return true;
            }
            let Some((offered, spare)) = places.next() else { return false };
            *offered = Spare::new(number, level as u32 + 1, is_later).0;
            spare.store(*offered, SeqCst);
            true
        });
        for (offered, spare) in places {
            if *offered == 0 && spare.load(Relaxed) == 0 {
                break;
            }
            *offered = 0;
            spare.store(0, Relaxed);
        }
    }

    /// Gives away what is queued to who has less to do.
    fn push(&mut self, world: &mut impl World, held: usize) {
        let (mut refusing, mut moved) = (0, false);
        for _ in 0..HAND_OVERS {
            let Some((number, level)) = self.movable(held) else { break };
            let Some((cpu, claimed)) = target(world, level as u32 + 1, refusing) else {
                if refusing == 0 {
                    break;
                }
                // Nobody may take this one for now.
                self.refused.set(number, true);
                (refusing, moved) = (0, true);
                continue;
            };
            let status = world.hand(cpu, number);
            if status == 0 {
                world.board().notices[cpu].rank.store(level as u32 + 1, Relaxed);
            } else if claimed {
                world.board().idle.fetch_or(1 << cpu, Relaxed);
            }
            if status == 0 || status == Error::NotRunnable as u64 {
                self.remove(number);
                self.left[level] = self.left[level].min(self.count[level] + 1);
                (refusing, moved) = (0, true);
            } else {
                refusing |= 1 << cpu;
            }
        }
        if moved {
            self.publish(world, held);
        }
    }

    /// Takes a spare thread of another CPU whose rank and round are `wanted`, and queues it first. True if one came.
    fn pull(&mut self, world: &mut impl World, wanted: impl Fn(u32, u32) -> bool) -> bool {
        // Of each CPU, how many spare threads may not run here.
        let mut passed = [0u8; MAX_CPUS];
        for _ in 0..MAX_CPUS {
            let (cpu, board) = (world.cpu(), world.board());
            let mut best: Option<((u32, u32), Spare, usize, usize)> = None;
            let mut others = board.cpus.load(Relaxed) & !(1 << cpu);
            while others != 0 {
                let theirs = others.trailing_zeros() as usize;
                others &= others - 1;
                let notice = &board.notices[theirs];
                let queued = notice.queued.load(Relaxed);
                if queued == 0 {
                    continue;
                }
                let first = notice.spares.iter().enumerate().map(|(at, spare)| (at, Spare(spare.load(SeqCst))));
                let Some((at, spare)) = first.skip(passed[theirs].into()).find(|(_, spare)| spare.0 != 0) else {
                    continue;
                };
                if !wanted(spare.rank(), notice.round.load(Relaxed).wrapping_add(spare.later())) {
                    continue;
                }
                let worth = (spare.rank(), queued);
                if best.is_none_or(|(known, ..)| known < worth) {
                    best = Some((worth, spare, theirs, at));
                }
            }
            let Some((_, spare, theirs, at)) = best else { return false };
            let status = world.hand(cpu, spare.number());
            if status == 0 || status == Error::NotRunnable as u64 {
                // It is not there to be taken a second time.
                let _ = world.board().notices[theirs].spares[at].compare_exchange(spare.0, 0, Relaxed, Relaxed);
            } else {
                passed[theirs] = at as u8 + 1;
            }
            if status == 0 {
                self.read(world, spare.number());
                return true;
            }
        }
        false
    }

    /// Counts how often one thread alone ends our rest in step with another CPU, and lets it move there.
    fn moves_together(&mut self, world: &mut impl World) {
        let (cpu, board) = (world.cpu(), world.board());
        let Some((number, _)) = self.movable(0).filter(|_| self.queued == 1 && cpu != 0) else { return };
        let companion = &mut self.companion;
        let rests = board.notices[companion.cpu % MAX_CPUS].rests.load(Relaxed);
        if companion.number == number && companion.rests != rests {
            (companion.rests, companion.times) = (rests, companion.times + 1);
            if companion.times >= ALONE {
                let to = companion.cpu;
                companion.times = 0;
                if world.hand(to, number) == 0 {
                    self.remove(number);
                }
            }
            return;
        }
        // Perhaps the next one.
        let next = (companion.cpu + 1) % cpu;
        let rests = board.notices[next % MAX_CPUS].rests.load(Relaxed);
        *companion = Companion { number, cpu: next, rests, times: 0 };
    }
}

/// A CPU that should get a thread of this rank, none of the `refusing`: one that rests, which is claimed, or the one that
/// runs what ranks lowest.
fn target(world: &impl World, rank: u32, refusing: u64) -> Option<(usize, bool)> {
    let board = world.board();
    let others = board.cpus.load(Relaxed) & !(1 << world.cpu()) & !refusing;
    let mut resting = board.idle.load(SeqCst) & others;
    while resting != 0 {
        let bit = resting & resting.wrapping_neg();
        if board.idle.fetch_and(!bit, SeqCst) & bit != 0 {
            return Some((resting.trailing_zeros() as usize, true));
        }
        resting &= !bit;
    }
    let mut busy = others;
    let mut lowest = (rank, None);
    while busy != 0 {
        let cpu = busy.trailing_zeros() as usize;
        let theirs = board.notices[cpu].rank.load(Relaxed);
        if theirs != 0 && theirs < lowest.0 {
            lowest = (theirs, Some((cpu, false)));
        }
        busy &= busy - 1;
    }
    lowest.1
}
