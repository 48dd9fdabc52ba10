//! A page is unmapped: when that returns, no CPU reads it through an old translation.
//!
//! A CPU has one translation, kept from the first access after the root was loaded or the translation forgotten. The value that a
//! translation is filled with may be old, as any load.

use crate::machine::{Fault, Machine, explore};
use loom::sync::Arc;
use loom::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use loom::thread;

const ELSEWHERE: u32 = 0;
const SPACE: u32 = 1;
/// The values of a page-table entry.
const MAPPED: u32 = 1;
const NONE: u32 = 0;

struct Space {
    machine: Arc<Machine>,
    /// Page-table entries of two pages.
    entries: [AtomicU32; 2],
    /// Unmapping the page has returned.
    gone: [AtomicBool; 2],
}

/// A CPU's cached translations of the two pages.
type Translations = [Option<u32>; 2];

impl Space {
    fn new(fault: Fault) -> Arc<Self> {
        let entry = || AtomicU32::new(MAPPED);
        let gone = || AtomicBool::new(false);
        Arc::new(Self { machine: Machine::new(fault), entries: [entry(), entry()], gone: [gone(), gone()] })
    }

    /// In user mode: takes an interrupt that came, and reads the page if there is one.
    fn read(&self, me: usize, page: usize, translations: &mut Translations) {
        self.forget(self.machine.user(me).flush, translations);
        let gone = self.gone[page].load(Ordering::Relaxed);
        let translation = *translations[page].get_or_insert_with(|| self.entries[page].load(Ordering::Relaxed));
        assert!(!gone || translation == NONE, "read through an old translation");
    }

    fn forget(&self, flush: bool, translations: &mut Translations) {
        if flush && self.machine.fault != Fault::LeftOut {
            *translations = [None; 2];
        }
    }

    /// To another space, on the fast path.
    fn go(&self, me: usize, domain: u32, translations: &mut Translations) {
        self.machine.go(me, domain);
        *translations = [None; 2];
    }

    /// Unmaps a page, as a system call of a CPU; `others` = how many other CPUs there are.
    fn unmap(&self, me: usize, others: usize, page: usize, translations: &mut Translations) {
        let left = self.machine.enter(me);
        self.forget(left.flush, translations);
        self.entries[page].store(NONE, Ordering::Relaxed);
        for which in self.machine.stop_in(me, others, SPACE) {
            self.machine.leave_to(which, |left| left.flush = true);
        }
        translations[page] = None;
        self.machine.leave();
        self.gone[page].store(true, Ordering::Relaxed);
    }
}

/// CPU 1 comes into the space and reads, goes and comes again; CPU 0, which is elsewhere, unmaps.
fn comes_and_goes(fault: Fault, inside: bool) {
    let space = Space::new(fault);
    let reader = space.clone();
    if inside {
        space.machine.cpus[1].domain.store(SPACE, Ordering::Relaxed);
    }
    let reader = thread::spawn(move || {
        let mut translations = [None; 2];
        if inside {
            reader.read(1, 0, &mut translations);
            reader.read(1, 0, &mut translations);
            reader.go(1, ELSEWHERE, &mut translations);
        }
        reader.go(1, SPACE, &mut translations);
        reader.read(1, 0, &mut translations);
        reader.read(1, 0, &mut translations);
        reader.machine.sleep(1);
    });
    space.unmap(0, 1, 0, &mut [None; 2]);
    reader.join().unwrap();
}

/// CPUs 0 and 1 are in the space and unmap a page each, while the other may be reading it.
fn both_unmap(fault: Fault) {
    let space = Space::new(fault);
    space.machine.cpus[..2].iter().for_each(|cpu| cpu.domain.store(SPACE, Ordering::Relaxed));
    let both = move |space: &Space, me: usize| {
        let mut translations = [None; 2];
        space.read(me, 1 - me, &mut translations);
        space.unmap(me, 1, me, &mut translations);
        space.read(me, 1 - me, &mut translations);
        space.machine.sleep(me);
    };
    let other = space.clone();
    let other = thread::spawn(move || both(&other, 1));
    both(&space, 0);
    other.join().unwrap();
}

/// CPU 1 sleeps in the space and is woken after CPU 0 has unmapped, or before, or meanwhile.
fn sleeps(fault: Fault) {
    let space = Space::new(fault);
    let reader = space.clone();
    space.machine.cpus[1].domain.store(SPACE, Ordering::Relaxed);
    let reader = thread::spawn(move || {
        let mut translations = [None; 2];
        reader.read(1, 0, &mut translations);
        reader.forget(reader.machine.sleep(1).flush, &mut translations);
        reader.forget(reader.machine.halt(1).flush, &mut translations);
        reader.machine.leave();
        reader.read(1, 0, &mut translations);
        reader.machine.sleep(1);
    });
    space.unmap(0, 1, 0, &mut [None; 2]);
    space.machine.enter(0);
    space.machine.send(1);
    space.machine.leave();
    reader.join().unwrap();
}

#[test]
fn against_who_comes() {
    explore(None, || comes_and_goes(Fault::None, false));
}

#[test]
fn against_who_is_there_goes_and_comes_back() {
    explore(Some(4), || comes_and_goes(Fault::None, true));
}

#[test]
fn two_at_once() {
    explore(Some(3), || both_unmap(Fault::None));
}

#[test]
fn against_who_sleeps() {
    explore(Some(4), || sleeps(Fault::None));
}

/// Two that read, one from the start, and one that comes.
#[test]
fn against_two() {
    explore(Some(2), || {
        let space = Space::new(Fault::None);
        space.machine.cpus[1].domain.store(SPACE, Ordering::Relaxed);
        let readers: Vec<_> = (1..3)
            .map(|me| {
                let space = space.clone();
                thread::spawn(move || {
                    let mut translations = [None; 2];
                    if me == 2 {
                        space.go(2, SPACE, &mut translations);
                    }
                    space.read(me, 0, &mut translations);
                    space.read(me, 0, &mut translations);
                    space.machine.sleep(me);
                })
            })
            .collect();
        space.unmap(0, 2, 0, &mut [None; 2]);
        readers.into_iter().for_each(|reader| reader.join().unwrap());
    });
}

#[test]
#[should_panic(expected = "read through an old translation")]
fn no_fence_before_asking_who_is_there() {
    explore(None, || comes_and_goes(Fault::NoFence, false));
}

#[test]
#[should_panic(expected = "read through an old translation")]
fn the_root_before_the_domain() {
    explore(None, || comes_and_goes(Fault::RootFirst, false));
}

#[test]
#[should_panic(expected = "read through an old translation")]
fn nobody_is_stopped() {
    explore(None, || comes_and_goes(Fault::StopsNone, true));
}

#[test]
#[should_panic(expected = "read through an old translation")]
fn an_interrupt_is_not_enough() {
    explore(None, || comes_and_goes(Fault::DoesNotWait, true));
}

#[test]
#[should_panic(expected = "read through an old translation")]
fn stopped_but_translations_kept() {
    explore(None, || comes_and_goes(Fault::LeftOut, true));
}

#[test]
#[should_panic(expected = "read through an old translation")]
fn slept_and_looked_for_nothing() {
    explore(Some(2), || sleeps(Fault::SleptAndForgets));
}
