//! A window of two pages is opened, read and closed on CPU 1, while CPU 0 unmaps one of the pages, or one after the other.
//!
//! In the nucleus: portal code leaves such a window to `call_in` (`control/call.rs`), which has the lock when it checks the pages
//! (`lend::check`) and until it has written the entries (`lend::open`). Unmapping marks the page, takes it out of the windows that it finds
//! (`lend::withdraw`), and may release the lock before it goes on. A page of the window that stays is seen all the time.

use crate::machine::{Fault, Machine, Plain, explore};
use loom::sync::Arc;
use loom::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use loom::thread;

const CALLER: u32 = 1;
const CALLEE: u32 = 2;
/// Targets of an entry.
const NONE: u32 = 0;
const PAGE: u32 = 1;
const SCRAP: u32 = 2;

struct World {
    machine: Arc<Machine>,
    /// The pages' entries in the caller's space.
    pages: [AtomicU32; 2],
    /// The entries for the slot, as CPU 1 sees them.
    slots: [AtomicU32; 2],
    /// The record of the window: under the lock.
    is_open: Plain<bool>,
    /// The pages' frames were released, and others use them.
    are_reused: [AtomicBool; 2],
    /// The pages that CPU 0 unmaps, in this order.
    unmapped: &'static [usize],
}

/// CPU 1's translations of the slot, if it has any.
type Translations = [Option<u32>; 2];

impl World {
    /// CPU 1 calls with the window, and reads and returns if the call is not refused.
    fn call(&self) {
        let mut translations = [None; 2];
        let early = (self.machine.fault == Fault::Swapped).then(|| self.check());
        self.machine.enter(1);
        let shown = early.unwrap_or_else(|| self.check());
        if let Some(shown) = shown {
            self.slots.iter().zip(shown).for_each(|(slot, page)| slot.store(page, Ordering::Relaxed));
            self.is_open.change(|is_open| *is_open = true);
            self.machine.go(1, CALLEE);
        }
        self.machine.leave();
        if shown.is_some() {
            for page in [1, 0, 1] {
                self.look(page, &mut translations);
            }
            self.back();
        }
    }

    fn check(&self) -> Option<[u32; 2]> {
        let pages = [0, 1].map(|page: usize| self.pages[page].load(Ordering::Relaxed));
        pages.iter().all(|page| *page == PAGE).then_some(pages)
    }

    /// Takes an interrupt that came, and reads a page through the window.
    fn look(&self, page: usize, translations: &mut Translations) {
        if self.machine.user(1).flush {
            *translations = [None; 2];
        }
        let is_reused = self.are_reused[page].load(Ordering::Relaxed);
        let seen = translations[page].unwrap_or_else(|| self.slots[page].load(Ordering::Relaxed));
        assert!(!is_reused || seen != PAGE, "a page that others have is read");
        assert!(seen == PAGE || self.unmapped.contains(&page), "a page that stays is not seen");
        if seen == NONE {
            self.page_fault(page, translations);
        } else {
            translations[page] = Some(seen);
        }
    }

    fn page_fault(&self, page: usize, translations: &mut Translations) {
        if self.machine.enter(1).flush {
            *translations = [None; 2];
        }
        let mapped = self.pages[page].load(Ordering::Relaxed);
        self.slots[page].store(if mapped == PAGE { PAGE } else { SCRAP }, Ordering::Relaxed);
        self.machine.leave();
    }

    fn back(&self) {
        self.machine.enter(1);
        self.slots.iter().for_each(|slot| slot.store(NONE, Ordering::Relaxed));
        self.is_open.change(|is_open| *is_open = false);
        self.machine.go(1, CALLER);
        self.machine.leave();
    }

    /// CPU 0 unmaps a page, in two steps.
    fn unmap(&self, page: usize) {
        self.machine.enter(0);
        if self.machine.fault != Fault::LeftOut {
            self.pages[page].store(NONE, Ordering::Relaxed);
        }
        self.machine.stop_in(0, 1, CALLER).for_each(drop);
        if self.is_open.read(|is_open| *is_open) {
            let cleared = if self.machine.fault == Fault::FirstPage { 0 } else { page };
            self.slots[cleared].store(NONE, Ordering::Relaxed);
            for which in self.machine.stop_in(0, 1, CALLEE) {
                self.machine.leave_to(which, |left| left.flush = true);
            }
        }
        self.machine.leave();
        self.machine.enter(0);
        self.pages[page].store(NONE, Ordering::Relaxed);
        self.are_reused[page].store(true, Ordering::Relaxed);
        self.machine.leave();
    }
}

fn model(fault: Fault, unmapped: &'static [usize]) {
    let world = Arc::new(World {
        machine: Machine::new(fault),
        pages: [AtomicU32::new(PAGE), AtomicU32::new(PAGE)],
        slots: [AtomicU32::new(NONE), AtomicU32::new(NONE)],
        is_open: Plain::new(false),
        are_reused: [AtomicBool::new(false), AtomicBool::new(false)],
        unmapped,
    });
    world.machine.cpus[1].domain.store(CALLER, Ordering::Relaxed);
    let other = world.clone();
    let other = thread::spawn(move || {
        other.call();
        other.machine.sleep(1);
    });
    unmapped.iter().for_each(|page| world.unmap(*page));
    other.join().unwrap();
}

#[test]
fn against_unmapping_of_one_page() {
    explore(Some(3), || model(Fault::None, &[0]));
    explore(Some(3), || model(Fault::None, &[1]));
}

#[test]
fn against_unmapping_of_both_pages() {
    explore(Some(3), || model(Fault::None, &[1, 0]));
}

#[test]
#[should_panic(expected = "a page that others have is read")]
fn checked_before_the_lock() {
    explore(Some(3), || model(Fault::Swapped, &[1]));
}

#[test]
#[should_panic(expected = "a page that others have is read")]
fn not_marked_before_windows_are_sought() {
    explore(Some(3), || model(Fault::LeftOut, &[1]));
}

#[test]
#[should_panic(expected = "a page that others have is read")]
fn only_the_first_page_is_cleared() {
    explore(Some(3), || model(Fault::FirstPage, &[1]));
}

#[test]
#[should_panic(expected = "a page that others have is read")]
fn the_callee_keeps_the_translations() {
    explore(Some(3), || model(Fault::Forgets, &[1, 0]));
}
