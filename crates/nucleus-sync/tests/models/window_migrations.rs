//! A thread migrates while the window of its activation is open. Its CPU keeps the entries for the slot, and other threads of the borrower
//! run there. When the call has ended, or the page is unmapped, nobody reads the page through them.
//!
//! In the nucleus: a chain that migrates leaves its windows behind (`lend::leave_behind`, from `ready::go_to` and `chain::put_down`). The
//! activation records the CPU that has the entries, and a count of pages with which portal code leaves the return to the nucleus
//! (`note_left_behind`). The first page fault on the new CPU clears them (`lend::fault`, `come_here`), and so do the return
//! (`lend::close`) and unmapping (`lend::withdraw`): all find that CPU by `cpu_of`.

use crate::machine::{Fault, Left, Machine, Plain, explore};
use loom::sync::Arc;
use loom::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use loom::thread;

const ELSEWHERE: u32 = 0;
const LENDER: u32 = 1;
const BORROWER: u32 = 2;
/// Targets of an entry.
const NONE: u32 = 0;
const PAGE: u32 = 1;

struct World {
    machine: Arc<Machine>,
    /// The entry for the slot, on each CPU.
    slots: [AtomicU32; 2],
    record: Plain<Record>,
    /// Under the lock: the CPU of the thread, and whether the thread runs there.
    thread: Plain<(usize, bool)>,
    /// The page's frame was released, and others use it.
    is_reused: AtomicBool,
}

/// Of the activation that has the window. Without the lock only the CPU that runs its thread accesses it.
struct Record {
    is_open: bool,
    /// The CPU that has the entries, if that is another.
    left_behind: Option<usize>,
    /// The count of pages makes portal code leave the return to the nucleus.
    returns_slowly: bool,
}

/// A CPU knows this without the lock.
#[derive(Default)]
struct Here {
    /// Its translation of the slot, if it has one.
    translation: Option<u32>,
    /// It runs the thread.
    runs: bool,
}

/// A step of a CPU.
type Step = fn(&World, usize, &mut Here);

impl World {
    /// A slow entry.
    fn enter(&self, me: usize, here: &mut Here) {
        let left = self.machine.enter(me);
        self.take(left, here);
    }

    fn take(&self, left: Left, here: &mut Here) {
        if left.flush {
            here.translation = None;
        }
        if left.needs_recheck {
            here.runs = false;
        }
    }

    fn go(&self, me: usize, domain: u32, here: &mut Here) {
        self.machine.go(me, domain);
        here.translation = None;
    }

    /// Another thread of the borrower comes.
    fn come(&self, me: usize, here: &mut Here) {
        self.go(me, BORROWER, here);
    }

    /// In user mode: a thread of the borrower reads through the slot.
    fn read(&self, me: usize, here: &mut Here) {
        self.see(me, here);
    }

    fn see(&self, me: usize, here: &mut Here) -> u32 {
        self.take(self.machine.user(me), here);
        let is_reused = self.is_reused.load(Ordering::Relaxed);
        let seen = here.translation.unwrap_or_else(|| self.slots[me].load(Ordering::Relaxed));
        assert!(!is_reused || seen != PAGE, "a page that others have is read");
        here.translation = Some(seen).filter(|seen| *seen != NONE);
        seen
    }

    /// With the lock: the entries go, from the CPU that has them.
    fn clear(&self, me: usize, here: &mut Here) {
        let owner = self.record.read(|record| record.left_behind).unwrap_or(self.thread.read(|thread| thread.0));
        self.slots[owner].store(NONE, Ordering::Relaxed);
        if owner == me {
            here.translation = None;
            return;
        }
        for which in self.machine.stop_in(me, 1, BORROWER) {
            self.machine.leave_to(which, |left| left.flush = true);
        }
    }

    /// With the lock: the CPU of the thread is stopped. Gives it, and whether it ran the thread.
    fn stop_cpu_of_thread(&self, me: usize) -> (usize, bool) {
        let (cpu, runs) = self.thread.read(|thread| *thread);
        if runs && cpu != me {
            self.machine.stop(cpu);
        }
        (cpu, runs)
    }

    /// The CPU takes the thread over, which is ready or runs on the other one, and runs it.
    fn migrate(&self, me: usize, here: &mut Here) {
        self.enter(me, here);
        let fault = self.machine.fault;
        let (from, ran) = self.stop_cpu_of_thread(me);
        if !here.runs && self.record.read(|record| record.is_open) {
            if ran {
                self.machine.leave_to(from, |left| left.needs_recheck = true);
            }
            self.thread.change(|thread| *thread = (me, true));
            let is_left_out = fault == if ran { Fault::LeftOutAgain } else { Fault::LeftOut };
            self.record.change(|record| {
                let is_recorded = record.left_behind.is_some() && fault != Fault::Overwritten;
                if from != me && !is_recorded && !is_left_out {
                    record.left_behind = Some(from);
                    record.returns_slowly = fault != Fault::TooFast;
                }
            });
            here.runs = true;
            self.go(me, BORROWER, here);
        }
        self.machine.leave();
    }

    /// The thread reads through its window. If nobody disturbs it, a page fault shows it the page.
    fn look(&self, me: usize, here: &mut Here) {
        assert_eq!(self.see(me, here), NONE);
        self.page_fault(me, here);
        assert_eq!(self.see(me, here), PAGE);
    }

    /// As [`World::look`], while other CPUs may move the thread, or end its call.
    fn try_to_look(&self, me: usize, here: &mut Here) {
        if self.see(me, here) == NONE && here.runs {
            self.page_fault(me, here);
            self.see(me, here);
        }
    }

    fn page_fault(&self, me: usize, here: &mut Here) {
        self.enter(me, here);
        if here.runs {
            if self.record.read(|record| record.left_behind.is_some_and(|left| left != me)) {
                self.clear(me, here);
            }
            self.record.change(|record| {
                record.left_behind = None;
                record.returns_slowly = false;
            });
            if !self.is_reused.load(Ordering::Relaxed) {
                self.slots[me].store(PAGE, Ordering::Relaxed);
            }
        }
        self.machine.leave();
    }

    /// The thread returns.
    fn back(&self, me: usize, here: &mut Here) {
        self.take(self.machine.user(me), here);
        if !here.runs {
            return;
        }
        let close = || {
            self.record.change(|record| (record.is_open, record.left_behind) = (false, None));
            self.machine.go(me, LENDER);
        };
        if !self.record.read(|record| record.returns_slowly) {
            self.slots[me].store(NONE, Ordering::Relaxed);
            close();
        } else {
            self.enter(me, here);
            if here.runs {
                self.clear(me, here);
                close();
            }
            self.machine.leave();
        }
        here.translation = None;
    }

    /// Unmaps the page.
    fn unmap(&self, me: usize, here: &mut Here) {
        self.enter(me, here);
        self.stop_cpu_of_thread(me);
        if self.record.read(|record| record.is_open) {
            self.clear(me, here);
        }
        self.is_reused.store(true, Ordering::Relaxed);
        self.machine.leave();
    }
}

/// CPU 1 has the entries of a thread that is ready. In another thread it is in the borrower, or comes there. Both CPUs do these steps.
fn model(fault: Fault, from: u32, steps: [&'static [Step]; 2]) {
    let world = Arc::new(World {
        machine: Machine::new(fault),
        slots: [AtomicU32::new(NONE), AtomicU32::new(PAGE)],
        record: Plain::new(Record { is_open: true, left_behind: None, returns_slowly: false }),
        thread: Plain::new((1, false)),
        is_reused: AtomicBool::new(false),
    });
    world.machine.cpus[1].domain.store(from, Ordering::Relaxed);
    let run = move |world: Arc<World>, me: usize| {
        let mut here = Here::default();
        steps[me].iter().for_each(|step| step(&world, me, &mut here));
    };
    let other = world.clone();
    let other = thread::spawn(move || {
        run(other.clone(), 1);
        other.machine.sleep(1);
    });
    run(world.clone(), 0);
    world.machine.sleep(0);
    other.join().unwrap();
}

const LOOK_BACK_UNMAP: &[Step] = &[World::migrate, World::look, World::back, World::unmap];
const BACK_UNMAP: &[Step] = &[World::migrate, World::back, World::unmap];
const UNMAP: &[Step] = &[World::migrate, World::unmap];
const READ: &[Step] = &[World::read, World::read];
const COME_READ: &[Step] = &[World::come, World::read, World::read];

/// CPU 1 takes the thread back, whether CPU 0 has it by then or not.
const GONE_ONCE: &[Step] = &[World::migrate, World::read, World::read];
const LOOKED_ONCE: &[Step] = &[World::migrate, World::try_to_look, World::read];
const BACK_AGAIN: &[Step] = &[World::migrate, World::back, World::unmap, World::read];
const LOOK_AGAIN: &[Step] = &[World::migrate, World::try_to_look, World::back, World::unmap];

#[test]
fn against_who_reads_there() {
    explore(Some(3), || model(Fault::None, BORROWER, [LOOK_BACK_UNMAP, READ]));
    explore(Some(3), || model(Fault::None, BORROWER, [BACK_UNMAP, READ]));
    explore(Some(3), || model(Fault::None, BORROWER, [UNMAP, READ]));
}

#[test]
fn against_who_comes_and_reads() {
    explore(Some(3), || model(Fault::None, ELSEWHERE, [LOOK_BACK_UNMAP, COME_READ]));
    explore(Some(3), || model(Fault::None, ELSEWHERE, [BACK_UNMAP, COME_READ]));
    explore(Some(3), || model(Fault::None, ELSEWHERE, [UNMAP, COME_READ]));
}

#[test]
fn there_and_back() {
    explore(Some(3), || model(Fault::None, BORROWER, [GONE_ONCE, BACK_AGAIN]));
    explore(Some(3), || model(Fault::None, BORROWER, [LOOKED_ONCE, BACK_AGAIN]));
}

#[test]
fn there_and_back_and_looked_at() {
    explore(Some(3), || model(Fault::None, BORROWER, [GONE_ONCE, LOOK_AGAIN]));
    explore(Some(3), || model(Fault::None, BORROWER, [LOOKED_ONCE, LOOK_AGAIN]));
}

#[test]
#[should_panic(expected = "a page that others have is read")]
fn not_recorded_and_looked_at() {
    explore(Some(3), || model(Fault::LeftOut, BORROWER, [LOOK_BACK_UNMAP, READ]));
}

#[test]
#[should_panic(expected = "a page that others have is read")]
fn not_recorded_and_unmapped() {
    explore(Some(3), || model(Fault::LeftOut, BORROWER, [UNMAP, READ]));
}

#[test]
#[should_panic(expected = "a page that others have is read")]
fn the_return_takes_the_fast_path() {
    explore(Some(3), || model(Fault::TooFast, BORROWER, [BACK_UNMAP, READ]));
}

#[test]
#[should_panic(expected = "a page that others have is read")]
fn the_old_cpu_keeps_the_translation() {
    explore(Some(3), || model(Fault::Forgets, BORROWER, [LOOK_BACK_UNMAP, READ]));
}

#[test]
#[should_panic(expected = "a page that others have is read")]
fn no_fence_before_asking_who_is_there() {
    explore(Some(3), || model(Fault::NoFence, ELSEWHERE, [LOOK_BACK_UNMAP, COME_READ]));
}

#[test]
#[should_panic(expected = "a page that others have is read")]
fn the_second_migration_forgets_the_first() {
    explore(Some(3), || model(Fault::Overwritten, BORROWER, [GONE_ONCE, BACK_AGAIN]));
}

#[test]
#[should_panic(expected = "a page that others have is read")]
fn the_second_migration_is_not_recorded() {
    explore(Some(3), || model(Fault::LeftOutAgain, BORROWER, [LOOKED_ONCE, LOOK_AGAIN]));
}
