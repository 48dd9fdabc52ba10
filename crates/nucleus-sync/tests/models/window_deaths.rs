//! The lender of a window, or its borrower, dies while another CPU makes the call, looks through the window, or returns. The frames freed
//! by that are used again only when no CPU translates through the slot: the lent page, and the table that has the slot's entry.
//!
//! In the nucleus: `die` (`control/death.rs`) marks the domain and stops all CPUs. A CPU in it leaves by `unwind`
//! (`control/dispatch.rs`), which closes the window of each activation it unlinks. `remove_own_step` (`control/removal.rs`) waits until no
//! CPU is in the domain. It then cuts the domain's activations out (`split_above` and `lend::cut`), unmaps its pages, and frees its tables
//! (`lend::free_tables`). A page fault shows the page as long as the record leads to it (`lend::fault`), else a page of scrap. The
//! borrower outlives its lender as an orphan; the lender outlives its borrower, and may unmap the page at once (`lend::withdraw`).

use crate::machine::{Fault, Machine, Plain, explore, relax};
use loom::sync::Arc;
use loom::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use loom::thread;

const ELSEWHERE: u32 = 0;
const LENDER: u32 = 1;
const BORROWER: u32 = 2;
/// Targets of an entry.
const NONE: u32 = 0;
const PAGE: u32 = 1;
const SCRAP: u32 = 2;

struct World {
    machine: Arc<Machine>,
    /// The domain that dies.
    dying: u32,
    /// Not 0: calls and returns take the slow path.
    slow: AtomicU32,
    /// The page's entry in the lender's space.
    page: AtomicU32,
    /// The entry for the slot, as CPU 1 sees it.
    slot: AtomicU32,
    /// The space that CPU 1 has loaded.
    root: AtomicU32,
    /// Domains of CPU 1's chain. The borrower's activation has a record, and its caller is below it. Without the lock only CPU 1
    /// changes it.
    chain: Plain<Vec<u32>>,
    /// Under the lock.
    is_dead: Plain<bool>,
    /// Frames that were released, and that others use.
    page_is_reused: AtomicBool,
    table_is_reused: AtomicBool,
}

/// CPU 1's translation of the slot, if it has one.
type Translation = Option<u32>;

impl World {
    fn domain(&self) -> u32 {
        self.machine.cpus[1].domain.load(Ordering::Relaxed)
    }

    fn is_lent(&self) -> bool {
        self.chain.read(|chain| *chain == [LENDER, BORROWER])
    }

    /// CPU 1 goes to another space.
    fn go(&self, domain: u32, translation: &mut Translation) {
        self.machine.go(1, domain);
        self.root.store(domain, Ordering::Relaxed);
        *translation = None;
    }

    /// A slow entry of CPU 1: it does what was left to it, and leaves a domain that is dead.
    fn enter(&self, translation: &mut Translation) {
        let left = self.machine.enter(1);
        if left.flush {
            *translation = None;
        }
        if left.needs_recheck && self.domain() == self.dying {
            self.unwind(translation);
        }
    }

    /// With the lock: CPU 1 goes on in the domain below the dead one.
    fn unwind(&self, translation: &mut Translation) {
        if self.dying == BORROWER {
            self.chain.change(Vec::pop);
            self.slot.store(NONE, Ordering::Relaxed);
        }
        self.go(if self.dying == BORROWER { LENDER } else { ELSEWHERE }, translation);
    }

    /// In user mode on CPU 1: takes an interrupt that came.
    fn user(&self, translation: &mut Translation) {
        if self.machine.is_interrupted(1) {
            self.enter(translation);
            self.machine.leave();
        }
    }

    /// CPU 1 calls the borrower with a window.
    fn call(&self, translation: &mut Translation) {
        if self.domain() != LENDER {
            return;
        }
        let is_slow = self.slow.load(Ordering::Relaxed) != 0;
        if is_slow {
            self.enter(translation);
        }
        let is_refused = is_slow && (self.domain() != LENDER || self.is_dead.read(|dead| *dead));
        let page = self.page.load(Ordering::Relaxed);
        if !is_refused && page != NONE {
            self.slot.store(page, Ordering::Relaxed);
            self.chain.change(|chain| chain.push(BORROWER));
            self.go(BORROWER, translation);
        }
        if is_slow {
            self.machine.leave();
        }
    }

    /// CPU 1 returns from the borrower, perhaps as an orphan, or to a lender that is dead.
    fn back(&self, translation: &mut Translation) {
        self.user(translation);
        if self.domain() != BORROWER {
            return;
        }
        let is_slow = self.slow.load(Ordering::Relaxed) != 0;
        if is_slow {
            self.enter(translation);
        }
        if self.domain() == BORROWER {
            self.slot.store(NONE, Ordering::Relaxed);
            self.chain.change(Vec::pop);
            let is_alone = is_slow && self.dying == LENDER && self.is_dead.read(|dead| *dead);
            self.go(if is_alone { ELSEWHERE } else { LENDER }, translation);
        }
        if is_slow {
            self.machine.leave();
        }
    }

    /// CPU 1 reads through the window, if it is in the borrower.
    fn look(&self, translation: &mut Translation) {
        self.user(translation);
        if self.domain() != BORROWER {
            return;
        }
        let page_is_reused = self.page_is_reused.load(Ordering::Relaxed);
        let table_is_reused = self.table_is_reused.load(Ordering::Relaxed);
        let seen = translation.unwrap_or_else(|| self.slot.load(Ordering::Relaxed));
        assert!(!page_is_reused || seen != PAGE, "a page that others have is read");
        assert!(!table_is_reused, "a table that others have is walked");
        if seen == NONE {
            self.page_fault(translation);
        } else {
            *translation = Some(seen);
        }
    }

    fn page_fault(&self, translation: &mut Translation) {
        self.enter(translation);
        if self.domain() == BORROWER {
            let is_there = self.is_lent() && !(self.dying == LENDER && self.is_dead.read(|dead| *dead));
            let page = if is_there { self.page.load(Ordering::Relaxed) } else { NONE };
            self.slot.store(if page == NONE { SCRAP } else { page }, Ordering::Relaxed);
        }
        self.machine.leave();
    }

    /// CPU 1 has nothing to run: it leaves the space, and sleeps.
    fn sleep(&self, translation: &mut Translation) {
        self.enter(translation);
        self.go(ELSEWHERE, translation);
        self.machine.cpus[1].quiescent.begin();
        self.machine.leave();
    }

    /// CPU 0 kills the domain.
    fn die(&self) {
        let machine = &self.machine;
        machine.enter(0);
        self.slow.store(1, Ordering::Relaxed);
        if machine.fault == Fault::StopsTooFew {
            machine.stop_in(0, 1, self.dying).for_each(drop);
        } else {
            machine.stop(1);
        }
        self.is_dead.change(|dead| *dead = true);
        if self.domain() == self.dying {
            machine.leave_to(1, |left| left.needs_recheck = true);
        }
        machine.leave();
    }

    /// CPU 0 removes the domain, which is dead.
    fn remove(&self) {
        let machine = &self.machine;
        let mut relax = relax();
        machine.enter(0);
        while machine.fault != Fault::NotAwaited && machine.cpus[1].domain.load(Ordering::Acquire) == self.dying {
            machine.send(1);
            machine.leave();
            relax();
            machine.enter(0);
        }
        if self.dying == LENDER && self.is_lent() {
            machine.stop(1);
            self.chain.change(|chain| chain.remove(0));
            self.clear();
        }
        machine.leave();
        machine.enter(0);
        if self.dying == LENDER {
            self.page_is_reused.store(true, Ordering::Relaxed);
        } else {
            let root = self.root.load(Ordering::Relaxed);
            assert!(root != BORROWER, "a table that a CPU has loaded is freed");
            self.table_is_reused.store(true, Ordering::Relaxed);
        }
        machine.leave();
    }

    /// CPU 0, in another thread of the lender, unmaps the page.
    fn unmap(&self) {
        self.machine.enter(0);
        self.page.store(NONE, Ordering::Relaxed);
        self.machine.stop(1);
        if self.is_lent() {
            self.clear();
        }
        self.page_is_reused.store(true, Ordering::Relaxed);
        self.machine.leave();
    }

    /// With the lock: the slot shows nothing.
    fn clear(&self) {
        if self.machine.fault == Fault::LeftOut {
            return;
        }
        self.slot.store(NONE, Ordering::Relaxed);
        for which in self.machine.stop_in(0, 1, BORROWER) {
            self.machine.leave_to(which, |left| left.flush = true);
        }
    }
}

/// CPU 1 calls, looks twice and returns, while CPU 0 does these steps.
fn model(fault: Fault, dying: u32, steps: &[fn(&World)]) {
    let world = Arc::new(World {
        machine: Machine::new(fault),
        dying,
        slow: AtomicU32::new(0),
        page: AtomicU32::new(PAGE),
        slot: AtomicU32::new(NONE),
        root: AtomicU32::new(LENDER),
        chain: Plain::new(vec![LENDER]),
        is_dead: Plain::new(false),
        page_is_reused: AtomicBool::new(false),
        table_is_reused: AtomicBool::new(false),
    });
    world.machine.cpus[1].domain.store(LENDER, Ordering::Relaxed);
    let other = world.clone();
    let other = thread::spawn(move || {
        let mut translation = None;
        other.user(&mut translation);
        other.call(&mut translation);
        other.look(&mut translation);
        other.look(&mut translation);
        other.back(&mut translation);
        other.sleep(&mut translation);
    });
    for step in steps {
        step(&world);
    }
    other.join().unwrap();
}

const DIE_REMOVE: &[fn(&World)] = &[World::die, World::remove];
const DIE_UNMAP_REMOVE: &[fn(&World)] = &[World::die, World::unmap, World::remove];
const DIE_REMOVE_UNMAP: &[fn(&World)] = &[World::die, World::remove, World::unmap];

#[test]
fn of_the_lender() {
    explore(Some(3), || model(Fault::None, LENDER, DIE_REMOVE));
}

#[test]
fn of_the_borrower() {
    explore(Some(3), || model(Fault::None, BORROWER, DIE_REMOVE_UNMAP));
}

#[test]
fn of_the_borrower_while_the_page_goes() {
    explore(Some(3), || model(Fault::None, BORROWER, DIE_UNMAP_REMOVE));
}

#[test]
#[should_panic(expected = "a page that others have is read")]
fn the_split_leaves_the_slot() {
    explore(Some(3), || model(Fault::LeftOut, LENDER, DIE_REMOVE));
}

#[test]
#[should_panic(expected = "a page that others have is read")]
fn the_borrower_keeps_the_translation() {
    explore(Some(3), || model(Fault::Forgets, LENDER, DIE_REMOVE));
}

#[test]
#[should_panic(expected = "Causality violation")]
fn only_who_is_in_the_lender_is_stopped() {
    explore(Some(3), || model(Fault::StopsTooFew, LENDER, DIE_REMOVE));
}

#[test]
#[should_panic(expected = "a page that others have is read")]
fn the_dead_borrower_goes_on() {
    explore(Some(3), || model(Fault::Forgets, BORROWER, DIE_UNMAP_REMOVE));
}

#[test]
#[should_panic(expected = "a table that a CPU has loaded is freed")]
fn the_borrower_is_removed_while_a_cpu_is_in_it() {
    explore(Some(3), || model(Fault::NotAwaited, BORROWER, DIE_REMOVE_UNMAP));
}

#[test]
#[should_panic(expected = "a table that others have is walked")]
fn only_who_is_in_the_borrower_is_stopped() {
    explore(Some(3), || model(Fault::StopsTooFew, BORROWER, DIE_REMOVE_UNMAP));
}
