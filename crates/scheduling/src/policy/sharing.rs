//! The exchange with other instances: what an instance publishes, gives them, and takes from them.

use super::notes::Companion;
use super::{ALONE, HAND_OVERS, Instance, LOOK, World};
use abi::sched::Spare;
use abi::{Error, MAX_CPUS};
use core::sync::atomic::Ordering::{Relaxed, SeqCst};

impl Instance {
    /// The first queued thread that may go to another CPU, and its level.
    pub(super) fn movable(&self, held: usize) -> Option<(usize, usize)> {
        self.queues.find(LOOK, |number| number != held && self.queues.may_leave(number))
    }

    /// A thread that was taken from us is still in the queue, and dropped when it is refused. It is not offered again.
    pub(super) fn looks_after_offer(&mut self, world: &impl World) {
        let spares = &world.load_table().notices[world.cpu() % MAX_CPUS].spares;
        for (offered, spare) in self.offered.iter().zip(spares).take_while(|(offered, _)| **offered != 0) {
            if *offered != spare.load(Relaxed) {
                self.queues.refuse(Spare(*offered).number());
            }
        }
    }

    pub(super) fn publish(&mut self, world: &impl World, held: usize) {
        let notice = &world.load_table().notices[world.cpu() % MAX_CPUS];
        notice.queued.store(self.queued, Relaxed);
        notice.rank.store(self.rank, Relaxed);
        let mut places = self.offered.iter_mut().zip(&notice.spares);
        let (mut top, mut due) = (None, 0);
        let (queues, left, rank) = (&self.queues, &self.left, self.rank);
        queues.visit(LOOK, |number, level| {
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
            if number == held || !queues.may_leave(number) {
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

    /// Gives queued threads away to a CPU with less to do.
    pub(super) fn push(&mut self, world: &mut impl World, held: usize) {
        let (mut refusing, mut moved) = (0, false);
        for _ in 0..HAND_OVERS {
            let Some((number, level)) = self.movable(held) else { break };
            let Some((cpu, claimed)) = target(world, level as u32 + 1, refusing) else {
                if refusing == 0 {
                    break;
                }
                // Nobody may take this one for now.
                self.queues.refuse(number);
                refusing = 0;
                moved = true;
                continue;
            };
            let status = world.hand(cpu, number);
            if status == 0 {
                world.load_table().notices[cpu].rank.store(level as u32 + 1, Relaxed);
            } else if claimed {
                world.load_table().idle.fetch_or(1 << cpu, Relaxed);
            }
            if status == 0 || status == Error::NotRunnable as u64 {
                self.remove(number);
                self.left[level] = self.left[level].min(self.count[level] + 1);
                refusing = 0;
                moved = true;
            } else {
                refusing |= 1 << cpu;
            }
        }
        if moved {
            self.publish(world, held);
        }
    }

    /// Takes a spare thread of another CPU whose rank and round are `wanted`, and queues it first. True if one came.
    pub(super) fn pull(&mut self, world: &mut impl World, wanted: impl Fn(u32, u32) -> bool) -> bool {
        // Of each CPU, how many spare threads may not run here.
        let mut passed = [0u8; MAX_CPUS];
        for _ in 0..MAX_CPUS {
            let (cpu, load_table) = (world.cpu(), world.load_table());
            let mut best: Option<((u32, u32), Spare, usize, usize)> = None;
            let mut others = load_table.cpus.load(Relaxed) & !(1 << cpu);
            while others != 0 {
                let theirs = others.trailing_zeros() as usize;
                others &= others - 1;
                let notice = &load_table.notices[theirs];
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
                let _ = world.load_table().notices[theirs].spares[at].compare_exchange(spare.0, 0, Relaxed, Relaxed);
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
    pub(super) fn moves_together(&mut self, world: &mut impl World) {
        let (cpu, load_table) = (world.cpu(), world.load_table());
        let Some((number, _)) = self.movable(0).filter(|_| self.queued == 1 && cpu != 0) else { return };
        let companion = &mut self.companion;
        let rests = load_table.notices[companion.cpu % MAX_CPUS].rests.load(Relaxed);
        if companion.number == number && companion.rests != rests {
            companion.rests = rests;
            companion.times += 1;
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
        let rests = load_table.notices[next % MAX_CPUS].rests.load(Relaxed);
        *companion = Companion { number, cpu: next, rests, times: 0 };
    }
}

/// A CPU that should get a thread of this rank, none of the `refusing`: one that rests, which is claimed, or the one that
/// runs what ranks lowest.
fn target(world: &impl World, rank: u32, refusing: u64) -> Option<(usize, bool)> {
    let load_table = world.load_table();
    let others = load_table.cpus.load(Relaxed) & !(1 << world.cpu()) & !refusing;
    let mut resting = load_table.idle.load(SeqCst) & others;
    while resting != 0 {
        let bit = resting & resting.wrapping_neg();
        if load_table.idle.fetch_and(!bit, SeqCst) & bit != 0 {
            return Some((resting.trailing_zeros() as usize, true));
        }
        resting &= !bit;
    }
    let mut busy = others;
    let mut lowest = (rank, None);
    while busy != 0 {
        let cpu = busy.trailing_zeros() as usize;
        let theirs = load_table.notices[cpu].rank.load(Relaxed);
        if theirs != 0 && theirs < lowest.0 {
            lowest = (theirs, Some((cpu, false)));
        }
        busy &= busy - 1;
    }
    lowest.1
}
