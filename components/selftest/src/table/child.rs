//! Small domains without a stack, which run [`programs`].

use core::sync::atomic::{AtomicU64, Ordering};

use abi::layout::{ENTRY_BYTES, STACKS_START};
use abi::op::OperandKind;
use abi::rights::{self, MAP_EXECUTE, MAP_GRANT, MAP_READ, MAP_WRITE, UNMAP_SELF};
use abi::{Control, Error, PAGE_BYTES, op as abi_op};
use runtime::entry::Owned;
use runtime::op;
use runtime::{Entry, message, table};

use super::places::SCHEDULE;
pub use super::programs::PLACE;
use super::programs::{self, ANSWER, word};
use crate::raw;

const PAGE: u64 = PAGE_BYTES as u64;

/// A system call of a child: the system call register, and words 0 to 5.
pub type Step = (u64, [u64; 6]);

/// An operation of the nucleus as a step.
pub fn operation(index: usize, words: [u64; 6]) -> Step {
    ((index * ENTRY_BYTES) as u64, words)
}

/// An operation on the entry of a child as a step.
pub fn on_semaphore(entry: Entry, words: [u64; 6]) -> Step {
    operation(entry.0, words)
}

/// A page of words that several domains see.
#[repr(align(4096))]
pub struct Page(pub [AtomicU64; PAGE_BYTES / 8]);

impl Page {
    pub const fn new() -> Self {
        Self([const { AtomicU64::new(0) }; PAGE_BYTES / 8])
    }
    pub fn address(&'static self) -> u64 {
        core::ptr::from_ref(self) as u64
    }
    /// Writes steps for [`Program::Steps`] at this number of words from its start.
    pub fn set_steps(&self, first: usize, steps: &[Step]) {
        let words = steps.iter().flat_map(|(call, words)| core::iter::once(call).chain(words)).copied();
        for (place, word) in core::iter::once(steps.len() as u64).chain(words).enumerate() {
            self.0[first + place].store(word, Ordering::SeqCst);
        }
    }
    /// Sees to it that it is there. A store, because to add nothing to a word may be compiled to a fence that does not touch it.
    fn touch(&self) {
        self.0[511].store(0, Ordering::SeqCst);
    }
}

/// The program of a child's thread.
#[derive(Clone, Copy)]
pub enum Program {
    /// Calls the portal with words 0 and 1, and ends the domain with the status.
    Call(Entry, u64, Entry),
    /// Reads the first page for ever and writes to the second.
    Read,
    /// Writes to the first page for ever.
    Write,
    /// Makes the system calls that the block with this number says.
    Ask(usize),
    /// Keeps the floating-point registers that the block with this number says.
    Keep(usize),
    /// Uses a floating-point register.
    Touch,
    /// Makes the system calls on the second page, at this number of words from its start.
    Steps(usize),
}

impl Program {
    /// Where the code of [`Program::Steps`] is.
    pub fn steps() -> u64 {
        programs::steps as *const () as u64
    }
}

/// A system call as a block says it: index, words 0 and 1, control.
#[derive(Clone, Copy)]
pub struct Question(pub usize, pub u64, pub u64, pub u64);

/// Bytes from one block to the next.
const BLOCK: u64 = 128;

/// One word of a block on the second page of a child.
pub fn block(page: &'static Page, number: usize, word: usize) -> &'static AtomicU64 {
    &page.0[number * (BLOCK as usize / 8) + word]
}

/// Clears a block, and says what there is to do.
pub fn set_block(page: &'static Page, number: usize, seed: u64, question: Option<Question>) {
    for place in 0..BLOCK as usize / 8 {
        block(page, number, place).store(0, Ordering::SeqCst);
    }
    block(page, number, word::SEED).store(seed, Ordering::SeqCst);
    if let Some(Question(index, first, second, control)) = question {
        let words = [(index * ENTRY_BYTES) as u64, first, second, control];
        for (place, value) in [word::CALL, word::FIRST, word::SECOND, word::CONTROL].into_iter().zip(words) {
            block(page, number, place).store(value, Ordering::SeqCst);
        }
    }
}

/// Where a child sees a block: the argument of the thread that runs it, and word 0 of a call that does.
pub const fn block_address(number: usize) -> u64 {
    PLACE + PAGE + number as u64 * BLOCK
}

/// Where a child sees a word of its second page.
pub const fn word_address(word: usize) -> u64 {
    PLACE + PAGE + 8 * word as u64
}

/// Calls a service that does what a block says; 0, or the number of an error, or 1000 for a wrong answer.
pub fn call(portal: Entry, number: usize, control: Control) -> u64 {
    match message::call(portal, [block_address(number), 0, 0, 0, 0], control) {
        Ok((words, _)) if words[0] == ANSWER => 0,
        Ok(_) => 1000,
        Err(error) => error as u64,
    }
}

/// Whether the domains that are made have floating-point registers.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    None,
    Floating,
}

/// The program of a child's service.
#[derive(Clone, Copy)]
pub enum Service {
    /// See [`programs::serve`].
    Serve,
    /// As [`Program::Ask`] with the block at word 0, and returns when that says so.
    Ask,
    /// As [`Program::Keep`], in the same way.
    Keep,
    /// Makes the system call at word 0, and answers with its status: see [`programs::obey`].
    Obey,
}

/// A domain of ours. Let go, its threads go first.
pub struct Child {
    pub domain: Owned,
    died: Owned,
}

impl Child {
    /// With so many activations, whose threads run on the CPUs `cpus`.
    pub fn new(account: Entry, activations: usize, cpus: u64) -> Result<Self, Error> {
        Self::with(Unit::None, account, activations, cpus)
    }

    /// As [`Self::new`], with or without floating-point registers.
    pub fn with(unit: Unit, account: Entry, activations: usize, cpus: u64) -> Result<Self, Error> {
        Self::labelled(unit, account, activations, cpus, None)
    }

    /// As [`Self::with`], with a send label and a receive label.
    pub fn labelled(
        unit: Unit,
        account: Entry,
        activations: usize,
        cpus: u64,
        labels: Option<[Entry; 2]>,
    ) -> Result<Self, Error> {
        Self::prepared(unit, account, activations, cpus, |domain| match labels {
            Some([send, receive]) => op::domain_set_labels(domain, send, receive, false),
            None => Ok(()),
        })
    }

    /// As [`Self::with`], when something was done with the domain, which has nothing by then.
    pub fn prepared(
        unit: Unit,
        account: Entry,
        activations: usize,
        cpus: u64,
        prepare: impl FnOnce(Entry) -> Result<(), Error>,
    ) -> Result<Self, Error> {
        let flags = if unit == Unit::Floating { abi_op::DOMAIN_FPU } else { 0 };
        let domain = Owned::new(op::domain_new(account, flags, "victim")?);
        prepare(domain.entry())?;
        let died = Owned::new(op::semaphore_new(Entry::OWN, 0)?);
        op::domain_set_death_semaphore(domain.entry(), died.entry())?;
        op::domain_set_cpus(domain.entry(), cpus)?;
        for (code, bytes) in programs::all() {
            for page in [code, code + bytes] {
                let page = page & !(PAGE - 1);
                // SAFETY: code of ours, which may be read and executed.
                match unsafe { op::map(domain.entry(), page, page, 0, MAP_READ | MAP_EXECUTE) } {
                    Ok(()) | Err(Error::Occupied) => {}
                    Err(error) => return Err(error),
                }
            }
        }
        for number in 0..activations {
            // SAFETY: not in our domain; its code uses no stack.
            unsafe { op::activation_new(domain.entry(), STACKS_START + 0x1000 * number as u64, Entry(0))? };
        }
        Ok(Self { domain, died })
    }

    /// Shows it a page of ours, the first or the second.
    pub fn show(&self, page: &'static Page, number: u64, may_write: bool) -> Result<(), Error> {
        page.touch();
        let rights = if may_write { MAP_READ | MAP_WRITE } else { MAP_READ };
        // SAFETY: the page consists of atomic words.
        unsafe { op::map(self.domain.entry(), page.address(), PLACE + PAGE * number, 0, rights) }
    }

    /// Moves a page of ours to it; an access to ours then gets another one from the pager.
    pub fn grant(&self, page: &'static Page) -> Result<(), Error> {
        page.touch();
        // SAFETY: atomic words, whose values nobody needs.
        unsafe { op::map(self.domain.entry(), page.address(), PLACE, 0, MAP_READ | MAP_WRITE | MAP_GRANT) }
    }

    /// Whether something is mapped at an address. If not, now it sees this page of ours there.
    pub fn has(&self, address: u64, page: &'static Page) -> Result<bool, Error> {
        page.touch();
        // SAFETY: the page consists of atomic words.
        match unsafe { op::map(self.domain.entry(), page.address(), address, 0, MAP_READ) } {
            Ok(()) => Ok(false),
            Err(Error::Occupied) => Ok(true),
            Err(error) => Err(error),
        }
    }

    /// Its service, which needs activations, and a call entry of ours to it, which goes with what we have of the service.
    pub fn portal(&self) -> Result<(Owned, Owned), Error> {
        self.portal_to(Service::Serve)
    }

    /// As [`Self::portal`], to another service.
    pub fn portal_to(&self, service: Service) -> Result<(Owned, Owned), Error> {
        let code = match service {
            Service::Serve => programs::serve as *const (),
            Service::Ask => programs::ask as *const (),
            Service::Keep => programs::keep as *const (),
            Service::Obey => programs::obey as *const (),
        };
        // SAFETY: the code is made for this.
        let service = unsafe {
            op::service_new_at(self.domain.entry(), code as u64, abi_op::SERVICE_DEADLINE, Entry::OWN, Entry(0))?
        };
        self.portal_at(service)
    }

    /// As [`Self::portal`], to a service of this shape.
    pub fn portal_of(&self, shape: Entry) -> Result<(Owned, Owned), Error> {
        // SAFETY: the code is made for this.
        let service = unsafe {
            op::service_new_at(self.domain.entry(), programs::serve as *const () as u64, 0, shape, Entry(0))?
        };
        self.portal_at(service)
    }

    /// As [`Self::portal`], to a service whose portals have this label.
    pub fn portal_labelled(&self, label: Entry) -> Result<(Owned, Owned), Error> {
        self.portal_at(raw::service_labelled(&self.domain, programs::serve as *const () as u64, label)?)
    }

    fn portal_at(&self, service: Entry) -> Result<(Owned, Owned), Error> {
        portal_to(self.domain.entry(), service)
    }

    /// Its service, and the index of a call entry to it for another child.
    pub fn portal_for(&self, caller: &Child) -> Result<(Owned, Entry), Error> {
        let (service, _) = self.portal()?;
        let portal = op::portal_new(caller.domain.entry(), service.entry(), 0, Entry(0), 0)?;
        Ok((service, portal))
    }

    /// Gives it a semaphore of ours; the index there.
    pub fn give(&self, entry: Entry) -> Result<Entry, Error> {
        op::entry_copy(Entry::OWN, entry, self.domain.entry(), Entry(0), rights::ALL)
    }

    /// A thread of it.
    pub fn start(&self, program: Program) -> Result<Owned, Error> {
        let (code, argument) = match program {
            Program::Call(portal, word, index) => {
                (programs::call as *const (), portal.0 as u64 | word << 16 | (index.0 as u64) << 32)
            }
            Program::Read => (programs::read as *const (), PLACE),
            Program::Write => (programs::write as *const (), PLACE),
            Program::Ask(block) => (programs::ask as *const (), block_address(block)),
            Program::Keep(block) => (programs::keep as *const (), block_address(block)),
            Program::Touch => (programs::touch as *const (), PLACE),
            Program::Steps(word) => (programs::steps as *const (), word_address(word)),
        };
        // SAFETY: the code is made for this and uses no stack.
        unsafe { op::thread_new(self.domain.entry(), code as u64, 0, argument, SCHEDULE) }.map(Owned::new)
    }

    /// Waits until it has died.
    pub fn dies(&self) -> Result<(), &'static str> {
        op::p(self.died.entry(), op::clock() + super::places::PATIENCE).map_err(|_| "the child does not die")
    }

    /// Whether it has died; then never again.
    pub fn has_died(&self) -> bool {
        op::p(self.died.entry(), 0).is_ok()
    }
}

/// A semaphore of ours without tokens, or a port without messages. `P` waits for either until the time in word 1.
pub fn awaited(kind: OperandKind) -> Result<Owned, Error> {
    const { assert!(abi_op::P == abi_op::RECEIVE, "the same operation of both") };
    let made = match kind {
        OperandKind::Port => op::port_new(Entry::OWN, (8, 1), Entry::OWN, Entry::OWN, 0),
        _ => op::semaphore_new(Entry::OWN, 0),
    };
    made.map(Owned::new)
}

/// A service of another domain, which is an entry there, and a call entry of ours to it, which goes with what we have of the service.
pub fn portal_to(domain: Entry, service: Entry) -> Result<(Owned, Owned), Error> {
    let copy = Owned::new(table::allocate()?);
    op::entry_copy(domain, service, Entry::OWN, copy.entry(), rights::ALL)?;
    let portal = Owned::new(table::allocate()?);
    op::portal_new(Entry::OWN, copy.entry(), 0, portal.entry(), 0)?;
    Ok((copy, portal))
}

/// Lets a thread that runs [`Program::Read`] go on with [`Program::Write`].
pub fn send_to_write(thread: Entry) -> Result<(), Error> {
    // SAFETY: not in our domain; both use the same register.
    unsafe { op::thread_ex_regs(thread, programs::write as *const () as u64, abi::NEVER) }.map(drop)
}

/// Lets a thread go on with [`programs::mark`], wherever it was.
pub fn send_to_mark(thread: Entry) -> Result<(), Error> {
    // SAFETY: not in our domain; it counts on no register.
    unsafe { op::thread_ex_regs(thread, programs::mark as *const () as u64, abi::NEVER) }.map(drop)
}

/// Takes rights to a page of ours from all domains that got it from us.
pub fn take_away(page: &'static Page, rights: u64) -> Result<(), Error> {
    // SAFETY: our own mapping stays.
    unsafe { op::unmap(Entry::OWN, page.address(), 0, rights) }
}

/// Takes a page from a child and from all domains that got it from there.
pub fn take_from(child: &Child) -> Result<(), Error> {
    // SAFETY: not in our domain.
    unsafe { op::unmap(child.domain.entry(), PLACE, 0, MAP_READ | UNMAP_SELF) }
}

/// Sets the thread pointer of the running activation.
pub fn set_thread_pointer(word: &'static AtomicU64) -> Result<(), Error> {
    op::activation_set(abi_op::ACTIVATION_THREAD_POINTER, core::ptr::from_ref(word) as u64)
}
