//! A thread migrates while the window of its activation is open. Its CPU keeps the entries for the slot, and other threads of the borrower
//! run there. When the call has ended, or the page is unmapped, nobody reads the page through them.
//!
//! In the nucleus: a chain that migrates leaves its windows behind (`lend::leave_behind`, from `ready::go_to` and `chain::put_down`). The
//! activation records the CPU that has the entries, and a count of pages with which portal code leaves the return to the nucleus
//! (`note_left_behind`). The first page fault on the new CPU clears them (`lend::fault`, `come_here`), and so do the return
//! (`lend::close`) and unmapping (`lend::withdraw`): all find that CPU by `cpu_of`.

use crate::machine::{Fault, Machine, Plain, explore};
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
    /// The page's frame was released, and others use it.
    is_reused: AtomicBool,
}

/// Of the activation that has the window.
struct Record {
    is_open: bool,
    /// The CPU of its thread.
    cpu: usize,
    /// The CPU that has the entries, if that is another.
    left_behind: Option<usize>,
    /// The count of pages makes portal code leave the return to the nucleus.
    returns_slowly: bool,
}

/// A CPU's translation of the slot, if it has one.
type Translation = Option<u32>;

impl World {
    /// In user mode on CPU `me`: a thread of the borrower reads through the slot.
    fn read(&self, me: usize, translation: &mut Translation) -> u32 {
        if self.machine.user(me).flush {
            *translation = None;
        }
        let is_reused = self.is_reused.load(Ordering::Relaxed);
        let seen = translation.unwrap_or_else(|| self.slots[me].load(Ordering::Relaxed));
        assert!(!is_reused || seen != PAGE, "a page that others have is read");
        *translation = Some(seen).filter(|seen| *seen != NONE);
        seen
    }

    /// With the lock: the entries go, from the CPU that has them.
    fn clear(&self) {
        let owner = self.record.read(|record| record.left_behind.unwrap_or(record.cpu));
        self.slots[owner].store(NONE, Ordering::Relaxed);
        if owner == 1 {
            for which in self.machine.stop_in(0, 1, BORROWER) {
                self.machine.leave_to(which, |left| left.flush = true);
            }
        }
    }

    /// CPU 0 takes the thread over, which is ready, and runs it.
    fn migrate(&self) {
        self.machine.enter(0);
        self.record.change(|record| {
            record.cpu = 0;
            if self.machine.fault != Fault::LeftOut {
                record.left_behind = Some(1);
                record.returns_slowly = self.machine.fault != Fault::TooFast;
            }
        });
        self.machine.go(0, BORROWER);
        self.machine.leave();
    }

    /// The thread reads through its window: a page fault, and what that showed.
    fn look(&self) {
        let mut translation = None;
        assert_eq!(self.read(0, &mut translation), NONE);
        self.page_fault();
        assert_eq!(self.read(0, &mut translation), PAGE);
    }

    fn page_fault(&self) {
        self.machine.enter(0);
        if self.record.read(|record| record.left_behind.is_some()) {
            self.clear();
        }
        self.record.change(|record| {
            record.left_behind = None;
            record.returns_slowly = false;
        });
        self.slots[0].store(PAGE, Ordering::Relaxed);
        self.machine.leave();
    }

    /// It returns.
    fn back(&self) {
        let close = || self.record.change(|record| record.is_open = false);
        if self.record.read(|record| record.returns_slowly) {
            self.machine.enter(0);
            self.clear();
            close();
            self.machine.go(0, LENDER);
            self.machine.leave();
        } else {
            self.slots[0].store(NONE, Ordering::Relaxed);
            close();
            self.machine.go(0, LENDER);
        }
    }

    /// CPU 0 unmaps the page.
    fn unmap(&self) {
        self.machine.enter(0);
        if self.record.read(|record| record.is_open) {
            self.clear();
        }
        self.is_reused.store(true, Ordering::Relaxed);
        self.machine.leave();
    }
}

/// CPU 1, which is in the borrower or comes there, reads through the slot in another thread, while CPU 0 does these steps.
fn model(fault: Fault, from: u32, steps: &[fn(&World)]) {
    let world = Arc::new(World {
        machine: Machine::new(fault),
        slots: [AtomicU32::new(NONE), AtomicU32::new(PAGE)],
        record: Plain::new(Record { is_open: true, cpu: 1, left_behind: None, returns_slowly: false }),
        is_reused: AtomicBool::new(false),
    });
    world.machine.cpus[1].domain.store(from, Ordering::Relaxed);
    let other = world.clone();
    let other = thread::spawn(move || {
        let mut translation = None;
        if from != BORROWER {
            other.machine.go(1, BORROWER);
        }
        other.read(1, &mut translation);
        other.read(1, &mut translation);
        other.machine.sleep(1);
    });
    for step in steps {
        step(&world);
    }
    other.join().unwrap();
}

const LOOK_BACK_UNMAP: &[fn(&World)] = &[World::migrate, World::look, World::back, World::unmap];
const BACK_UNMAP: &[fn(&World)] = &[World::migrate, World::back, World::unmap];
const UNMAP: &[fn(&World)] = &[World::migrate, World::unmap];

#[test]
fn against_who_reads_there() {
    explore(Some(3), || model(Fault::None, BORROWER, LOOK_BACK_UNMAP));
    explore(Some(3), || model(Fault::None, BORROWER, BACK_UNMAP));
    explore(Some(3), || model(Fault::None, BORROWER, UNMAP));
}

#[test]
fn against_who_comes_and_reads() {
    explore(Some(3), || model(Fault::None, ELSEWHERE, LOOK_BACK_UNMAP));
    explore(Some(3), || model(Fault::None, ELSEWHERE, BACK_UNMAP));
    explore(Some(3), || model(Fault::None, ELSEWHERE, UNMAP));
}

#[test]
#[should_panic(expected = "a page that others have is read")]
fn not_recorded_and_looked_at() {
    explore(Some(3), || model(Fault::LeftOut, BORROWER, LOOK_BACK_UNMAP));
}

#[test]
#[should_panic(expected = "a page that others have is read")]
fn not_recorded_and_unmapped() {
    explore(Some(3), || model(Fault::LeftOut, BORROWER, UNMAP));
}

#[test]
#[should_panic(expected = "a page that others have is read")]
fn the_return_takes_the_fast_path() {
    explore(Some(3), || model(Fault::TooFast, BORROWER, BACK_UNMAP));
}

#[test]
#[should_panic(expected = "a page that others have is read")]
fn the_old_cpu_keeps_the_translation() {
    explore(Some(3), || model(Fault::Forgets, BORROWER, LOOK_BACK_UNMAP));
}

#[test]
#[should_panic(expected = "a page that others have is read")]
fn no_fence_before_asking_who_is_there() {
    explore(Some(3), || model(Fault::NoFence, ELSEWHERE, LOOK_BACK_UNMAP));
}
