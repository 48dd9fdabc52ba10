//! A small domain that runs the program of `arch::fill`, and its block.

use core::cell::Cell;
use core::sync::atomic::{AtomicU64, Ordering};

use abi::layout::{ENTRY_BYTES, STACKS_START};
use abi::rights::{self, MAP_EXECUTE, MAP_GRANT, MAP_READ, MAP_WRITE, UNMAP_SELF};
use abi::{Control, Error, PAGE_BYTES, layout, op as abi_op};
use alloc::boxed::Box;
use runtime::entry::Owned;
use runtime::op::{self, Schedule};
use runtime::sync::Once;
use runtime::{Entry, message, table};

use crate::arch::fill;
use crate::block::{BLOCK, NUMBERED, NUMBERS, State, WORDS, area, word};

const PAGE: u64 = PAGE_BYTES as u64;
/// Where a child sees the program, and where nothing is until it faults there.
pub const CODE: u64 = 0x6000_0000;
pub const FAULT: u64 = 0x5800_0000;
/// Where pages that are torn away arrive.
pub const TORN: u64 = 0x3800_0000;
/// Where a page is that is torn away.
pub const TEARS: u64 = 0x5900_0000;
/// Where a service takes entries.
pub const RECEIVES: Entry = Entry(layout::FIRST_FREE + 9);
/// Top of the stack of a service.
const STACK: u64 = STACKS_START + 0x1000;
/// All have the same priority, so that they take turns; slices are short.
const SCHEDULE: Schedule = Schedule { priority: 8, slice: 100 };
/// Nanoseconds after which what must happen has not happened.
pub const PATIENCE: u64 = 2_000_000_000;

// Of `arch::fill`.
unsafe extern "C" {
    static fill_broken: u8;
    static fill_mended: u8;
    static fill_thread: u8;
    static fill_service: u8;
}

/// The page of the program, with an instruction that there is not, and without it.
fn pages() -> [u64; 2] {
    [&raw const fill_broken as u64, &raw const fill_mended as u64]
}

/// Where in the page threads and services begin.
fn entries() -> [u64; 2] {
    [&raw const fill_thread as u64, &raw const fill_service as u64].map(|entry| entry - pages()[0])
}

/// Where a service finds its block: it is the constant of its entry, which arrives there.
#[derive(Clone, Copy)]
pub enum Finds {
    Badge,
    FirstWord,
}

/// A page that both a child and we see.
#[repr(align(4096))]
struct Page([AtomicU64; PAGE_BYTES / 8]);

/// As many as there are children at a time.
static BLOCKS: [Page; 4] = [const { Page([const { AtomicU64::new(0) }; PAGE_BYTES / 8]) }; 4];
/// The page that is brought where a child faults.
static BROUGHT: Page = Page([const { AtomicU64::new(0) }; PAGE_BYTES / 8]);

/// A domain with a block. Let go, its thread goes first.
pub struct Child {
    thread: Option<Owned>,
    pub domain: Owned,
    died: Owned,
    number: usize,
    unit: bool,
    /// Whether it has an activation that can be called.
    serves: Cell<bool>,
}

impl Child {
    /// A child whose registers are to be these: `change` adds what the event needs. With or without floating point.
    pub fn new(number: usize, unit: bool, event: u64, change: impl FnOnce(&mut State)) -> Result<Self, Error> {
        Self::paid(Entry::OWN, number, unit, event, change)
    }

    /// The same, for which this account pays.
    pub fn paid(
        account: Entry,
        number: usize,
        unit: bool,
        event: u64,
        change: impl FnOnce(&mut State),
    ) -> Result<Self, Error> {
        let domain = Owned::new(op::domain_new(account, if unit { abi_op::DOMAIN_FPU } else { 0 }, "victim")?);
        let died = Owned::new(op::semaphore_new(Entry::OWN, 0)?);
        op::domain_set_death_semaphore(domain.entry(), died.entry())?;
        let child = Self { thread: None, domain, died, number, unit, serves: Cell::new(false) };
        child.words().iter().for_each(|word| word.store(0, Ordering::SeqCst));
        (0..NUMBERED).for_each(|number| child.words()[NUMBERS / 8 + number].store(number as u64, Ordering::SeqCst));
        let mut given = fill::given(7 * number as u64 + 3, BLOCK);
        given[fill::PLACE] = FAULT;
        change(&mut given);
        child.give(&given);
        child.set(word::UNIT, unit.into());
        child.set(word::EVENT, event);
        child.map(child.words().as_ptr() as u64, BLOCK, MAP_READ | MAP_WRITE)?;
        child.map(pages()[0], CODE, MAP_READ | MAP_EXECUTE)?;
        Ok(child)
    }

    fn give(&self, given: &State) {
        for (place, value) in given.iter().enumerate() {
            self.words()[area::GIVEN / 8 + place].store(*value, Ordering::SeqCst);
        }
    }

    /// It sets a thread pointer of its own, also where that is a system call. From then on its domain's crossings take the slow path there.
    pub fn points(&self) {
        let mut given = self.state(area::GIVEN);
        given[fill::POINTER] = fill::pointer(self.number);
        self.give(&given);
    }

    /// Clears the states that it recorded.
    pub fn forget(&self) {
        for place in [area::FIRST, area::SEEN] {
            (0..size_of::<State>() / 8).for_each(|word| self.words()[place / 8 + word].store(0, Ordering::SeqCst));
        }
        self.set(word::DONE, 0);
    }

    /// Pages that are torn away for its service arrive at [`TORN`].
    pub fn takes_pages(&self) -> Result<(), Error> {
        let given = self.state(area::GIVEN);
        let mut asks = given;
        asks[fill::INDEX] = call(abi_op::ACTIVATION_SET);
        asks[fill::CONTROL] = 0;
        let words = [abi_op::ACTIVATION_TEAR, TORN, 0, 0, 0];
        fill::WORDS_AT.into_iter().zip(words).for_each(|(at, word)| asks[at] = word);
        self.give(&asks);
        self.enter()?;
        let status = self.state(area::SEEN)[fill::INDEX];
        self.give(&given);
        self.forget();
        Error::from_status(status)
    }

    /// It has a page at [`TEARS`] that nobody else has.
    pub fn has_page(&self) -> Result<(), Error> {
        // Of the heap, whose pager supplies another one then.
        static GIVEN: Once<&Page> = Once::new();
        let page = GIVEN.get_or_make(|| Box::leak(Box::new(Page([const { AtomicU64::new(0) }; PAGE_BYTES / 8]))));
        let rights = MAP_READ | MAP_WRITE | MAP_GRANT;
        self.map(page.0.as_ptr() as u64, TEARS, rights)
    }

    /// Whether something is mapped at an address. If not, a page is now.
    pub fn has(&self, address: u64) -> Result<bool, Error> {
        match self.map(BROUGHT.0.as_ptr() as u64, address, MAP_READ) {
            Ok(()) => Ok(false),
            Err(Error::Occupied) => Ok(true),
            Err(error) => Err(error),
        }
    }

    pub fn map(&self, source: u64, destination: u64, rights: u64) -> Result<(), Error> {
        // A page is there only once it was touched.
        // SAFETY: of ours, and may be read.
        unsafe { core::ptr::read_volatile(source as *const u8) };
        // SAFETY: code, or words that are atomic.
        unsafe { op::map(self.domain.entry(), source, destination, 0, rights) }
    }

    fn words(&self) -> &'static [AtomicU64; PAGE_BYTES / 8] {
        &BLOCKS[self.number].0
    }

    /// A word of the block.
    pub fn get(&self, word: usize) -> u64 {
        self.words()[WORDS / 8 + word].load(Ordering::SeqCst)
    }

    fn set(&self, word: usize, value: u64) {
        self.words()[WORDS / 8 + word].store(value, Ordering::SeqCst);
    }

    /// A state of the block, by where it is.
    pub fn state(&self, place: usize) -> State {
        core::array::from_fn(|index| self.words()[place / 8 + index].load(Ordering::SeqCst))
    }

    /// Whether it has floating-point registers.
    pub fn has_unit(&self) -> bool {
        self.unit
    }

    /// Its thread begins.
    pub fn start(&mut self) -> Result<(), Error> {
        let [code, _] = entries();
        // SAFETY: another domain; the program is made for this.
        let thread = unsafe { op::thread_new(self.domain.entry(), CODE + code, 0, BLOCK, SCHEDULE)? };
        self.thread = Some(Owned::new(thread));
        Ok(())
    }

    /// Cancels its call or wait.
    pub fn cancel(&self) -> Result<(), Error> {
        self.thread.as_ref().map_or(Err(Error::Empty), |thread| op::thread_cancel(thread.entry()))
    }

    /// Lets a waiting child go on.
    pub fn release(&self) {
        self.set(word::GO, self.state(area::GIVEN)[fill::GO]);
    }

    /// Its service, whose badge is the place of the block; a call entry to it for `caller`, at this index or any.
    pub fn portal_for(&self, caller: &Child, index: Entry) -> Result<(Owned, Entry), Error> {
        self.shaped_portal_for(caller, index, Entry::OWN)
    }

    /// As [`Self::portal_for`], of this shape. The entry that comes along goes to [`RECEIVES`].
    pub fn shaped_portal_for(&self, caller: &Child, index: Entry, shape: Entry) -> Result<(Owned, Entry), Error> {
        self.portal_in(caller.domain.entry(), index, shape, Finds::Badge)
    }

    /// The same for the domain `caller`; says where the service finds its block.
    pub fn portal_in(&self, caller: Entry, index: Entry, shape: Entry, finds: Finds) -> Result<(Owned, Entry), Error> {
        let [first_word, badge] = entries();
        let code = match finds {
            Finds::Badge => badge,
            Finds::FirstWord => first_word,
        };
        // SAFETY: another domain's; the program is made for this and uses no stack.
        let service = unsafe {
            if !self.serves.replace(true) {
                op::activation_new(self.domain.entry(), STACK, RECEIVES)?;
            }
            op::service_new_at(self.domain.entry(), CODE + code, 0, shape, Entry::OWN)?
        };
        let copy = Owned::new(table::allocate()?);
        op::entry_copy(self.domain.entry(), service, Entry::OWN, copy.entry(), rights::ALL)?;
        let portal = op::portal_new(caller, copy.entry(), BLOCK, index, 0)?;
        Ok((copy, portal))
    }

    /// Runs its program in a service that we call: unlike its thread, that takes entries, at [`RECEIVES`].
    pub fn enter(&self) -> Result<(), Error> {
        let portal = Owned::new(table::allocate()?);
        let _service = self.portal_in(Entry::OWN, portal.entry(), Entry::OWN, Finds::Badge)?;
        message::call(portal.entry(), [0; 5], Control(0)).map(drop)
    }

    /// Its exceptions, or page faults, go to a service of ours.
    pub fn handled_by(&self, service: Entry, index: usize) -> Result<(), Error> {
        op::portal_new(self.domain.entry(), service, self.number as u64, Entry(index), 0)?;
        if index == layout::EXCEPTION { Ok(()) } else { self.faults_go(FAULT) }
    }

    /// Its page faults in the page go to its first pager.
    pub fn faults_go(&self, place: u64) -> Result<(), Error> {
        op::domain_set_fault_range(self.domain.entry(), 0, place, place + PAGE)
    }

    /// Waits for its end.
    pub fn ends(&self) -> Result<(), &'static str> {
        op::p(self.died.entry(), op::clock() + PATIENCE).map_err(|_| "a child does not end")
    }

    /// Whether an address is one of its program.
    pub fn is_code(address: u64) -> bool {
        (CODE..CODE + PAGE).contains(&address)
    }

    /// Whether an address is that of a message area.
    pub fn is_area(address: u64) -> bool {
        (layout::MESSAGE_START..layout::MESSAGE_END).contains(&address) && address.is_multiple_of(PAGE)
    }

    /// Whether its registers are those of an entry: the message area, and the top of the stack (0: of a thread).
    pub fn is_place(area: u64, stack: u64, is_service: bool) -> bool {
        Self::is_area(area) && stack == if is_service { STACK } else { 0 }
    }
}

/// Brings a page where a child of this domain faults.
pub fn bring(domain: Entry) -> Result<(), Error> {
    let page = BROUGHT.0.as_ptr() as u64;
    BROUGHT.0[0].fetch_add(1, Ordering::SeqCst);
    // SAFETY: atomic words.
    unsafe { op::map(domain, page, FAULT, 0, MAP_READ | MAP_WRITE) }
}

/// Puts the program without the instruction that there is not in place of the one with it.
pub fn mend(domain: Entry) -> Result<(), Error> {
    // SAFETY: another domain's page; the program is the same but for that instruction.
    unsafe {
        op::unmap(domain, CODE, 0, MAP_READ | UNMAP_SELF)?;
        core::ptr::read_volatile(pages()[1] as *const u8);
        op::map(domain, pages()[1], CODE, 0, MAP_READ | MAP_EXECUTE)
    }
}

/// The system call register for an index.
pub const fn call(index: usize) -> u64 {
    (index * ENTRY_BYTES) as u64
}
