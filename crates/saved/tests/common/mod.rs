//! Memory that can stop after any number of stores.
#![allow(dead_code)]

use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind, panic_any, resume_unwind};
use std::rc::Rc;

use saved::{PAGE_BYTES, Pages};

/// Thrown when the stores are used up.
struct Killed;

/// The memory, which outlives a component that is killed.
#[derive(Clone, Default)]
struct Store {
    pages: Vec<Option<Box<[u8; PAGE_BYTES]>>>,
    /// Stores until the kill.
    left: u64,
    /// Pages that can be there at the same time.
    account: usize,
}

impl Store {
    fn step(&mut self) {
        if self.left == 0 {
            panic_any(Killed);
        }
        self.left -= 1;
    }

    fn page(&mut self, page: u32) -> &mut [u8; PAGE_BYTES] {
        self.pages[page as usize].as_mut().expect("page is present")
    }
}

/// A handle to it.
#[derive(Clone)]
pub struct Memory(Rc<RefCell<Store>>);

impl Memory {
    pub fn new(limit: usize) -> Self {
        Self(Rc::new(RefCell::new(Store { pages: vec![None; limit], left: u64::MAX, account: limit })))
    }

    /// One with the same content.
    pub fn copy(&self) -> Self {
        Self(Rc::new(RefCell::new(self.0.borrow().clone())))
    }

    /// At most so many pages from now on.
    pub fn set_account(&self, pages: usize) {
        self.0.borrow_mut().account = pages;
    }

    pub fn present(&self) -> usize {
        self.0.borrow().pages.iter().flatten().count()
    }

    /// Does something with a kill after so many stores; `None` if it was killed.
    pub fn with_kill<T>(&self, stores: u64, what: impl FnOnce() -> T) -> Option<T> {
        self.0.borrow_mut().left = stores;
        let outcome = catch_unwind(AssertUnwindSafe(what));
        self.0.borrow_mut().left = u64::MAX;
        outcome.map_err(|cause| if cause.is::<Killed>() { cause } else { resume_unwind(cause) }).ok()
    }
}

/// Kills are no failures to report.
pub fn silence_expected_panics() {
    let report = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        if !info.payload().is::<Killed>() {
            report(info)
        }
    }));
}

impl Pages for Memory {
    fn limit(&self) -> u32 {
        self.0.borrow().pages.len() as u32
    }

    fn is_present(&self, page: u32) -> bool {
        self.0.borrow().pages.get(page as usize).is_some_and(Option::is_some)
    }

    fn populate(&mut self, page: u32) -> bool {
        if self.is_present(page) {
            return true;
        }
        let present = self.present();
        let mut store = self.0.borrow_mut();
        if page as usize >= store.pages.len() || present >= store.account {
            return false;
        }
        store.step();
        store.pages[page as usize] = Some(Box::new([0; PAGE_BYTES]));
        true
    }

    fn release(&mut self, page: u32) {
        if self.is_present(page) {
            let mut store = self.0.borrow_mut();
            store.step();
            store.pages[page as usize] = None;
        }
    }

    fn load(&self, page: u32, word: usize) -> u64 {
        let mut bytes = [0; 8];
        self.read(page, word * 8, &mut bytes);
        u64::from_le_bytes(bytes)
    }

    fn store(&mut self, page: u32, word: usize, value: u64) {
        let mut store = self.0.borrow_mut();
        store.step();
        store.page(page)[word * 8..][..8].copy_from_slice(&value.to_le_bytes());
    }

    fn read(&self, page: u32, offset: usize, into: &mut [u8]) {
        into.copy_from_slice(&self.0.borrow_mut().page(page)[offset..][..into.len()]);
    }

    /// A kill may strike in the middle.
    fn write(&mut self, page: u32, offset: usize, bytes: &[u8]) {
        let (before, behind) = bytes.split_at(bytes.len() / 2);
        let mut store = self.0.borrow_mut();
        for (at, part) in [(offset, before), (offset + before.len(), behind)] {
            store.step();
            store.page(page)[at..][..part.len()].copy_from_slice(part);
        }
    }
}
