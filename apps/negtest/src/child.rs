//! A domain that obeys: it runs a few instructions of this program.

use alloc::sync::Arc;
use alloc::vec::Vec;

use protocols::process::ProcessError;
use runtime::abi::layout::{ENTRY_BYTES, PAGE_FAULT};
use runtime::abi::rights::{MAP_EXECUTE, MAP_READ};
use runtime::abi::{Error, PAGE_BYTES, info, rights};
use runtime::entry::Owned;
use runtime::op::{self, Schedule};
use runtime::sync::Mutex;
use runtime::{Entry, idl::Failure, thread};
use tool::inspect;

use crate::arch;

const PAGE: u64 = PAGE_BYTES as u64;
/// How long a child may take, in nanoseconds.
pub const PATIENCE: u64 = 50_000_000;

/// Below our own priority: it runs when we wait.
const SCHEDULE: Schedule = Schedule { priority: 8, slice: 1_000 };

/// The page that a child reads. One at a time: `reported` copies it before the child starts.
#[repr(C, align(4096))]
struct Reported([u64; PAGE_BYTES / 8]);
static mut REPORTED: Reported = Reported([0; PAGE_BYTES / 8]);

/// The child. It goes when this does.
pub struct Child {
    threads: Vec<Owned>,
    domain: Owned,
    died: Owned,
}

/// Maps this program's code for children, and what it reads, into a domain.
pub fn equip(domain: Entry) -> Result<(), Error> {
    for code in arch::CODE {
        let code = *code as *const () as u64;
        let first = code & !(PAGE - 1);
        // It may reach into the next page.
        for page in [first, first + PAGE] {
            // SAFETY: code, which may be read and executed.
            match unsafe { op::map(domain, page, page, 0, MAP_READ | MAP_EXECUTE) } {
                Ok(()) | Err(Error::Occupied | Error::NotMapped) => {}
                Err(error) => return Err(error),
            }
        }
    }
    let reported = &raw const REPORTED as u64;
    // SAFETY: words that are written between the runs of children only.
    unsafe { op::map(domain, reported, reported, 0, MAP_READ) }
}

/// Starts a thread that runs `code` in a domain that was [equipped](equip); it finds the address of `words` in word 0.
pub fn start_in(domain: Entry, code: unsafe extern "C" fn() -> !, words: &[u64]) -> Result<Owned, Error> {
    // SAFETY: no child reads it now; ours is the only thread.
    let reported = unsafe { (&raw mut REPORTED).as_mut_unchecked() };
    reported.0[..words.len()].copy_from_slice(words);
    // SAFETY: another domain; the code is made for this and uses no stack.
    unsafe { op::thread_new(domain, code as *const () as u64, 0, reported as *mut _ as u64, SCHEDULE) }.map(Owned::new)
}

/// A thread of a domain that was [equipped](equip) traverses the portal at `index`; the first thread of a domain would end it.
pub fn calls_in(domain: Entry, index: u64, words: [u64; 6]) -> Result<Owned, Error> {
    let [a, b, c, d, e, f] = words;
    start_in(domain, arch::one_call, &[index * ENTRY_BYTES as u64, a, b, c, d, e, f])
}

impl Child {
    /// A domain in which this program's code for children can run, on our account.
    pub fn new() -> Result<Self, Error> {
        Self::with_flags(0)
    }

    /// As [`Self::new`], with flags of `DOMAIN_NEW`.
    pub fn with_flags(flags: u64) -> Result<Self, Error> {
        let domain = Owned::new(op::domain_new(Entry::ACCOUNT, flags, "victim")?);
        let died = Owned::new(op::semaphore_new(Entry::ACCOUNT, 0)?);
        op::domain_set_death_semaphore(domain.entry(), died.entry())?;
        equip(domain.entry())?;
        Ok(Self { threads: Vec::new(), domain, died })
    }

    /// The domain.
    pub fn entry(&self) -> Entry {
        self.domain.entry()
    }

    /// Gives the child a copy of an entry of ours, and says where.
    pub fn give(&self, entry: Entry, rights: u8) -> Result<u64, Error> {
        op::entry_copy(Entry::OWN, entry, self.entry(), Entry::OWN, rights).map(|entry| entry.0 as u64)
    }

    /// Starts a child that runs `code`, which finds the address of `words` in word 0.
    pub fn start(&mut self, code: unsafe extern "C" fn() -> !, words: &[u64]) -> Result<(), Error> {
        self.threads.push(start_in(self.entry(), code, words)?);
        Ok(())
    }

    /// Has the child traverse the portal at `index` with words 0 to 5; gives the status it got. It dies of it.
    pub fn calls(mut self, index: u64, words: [u64; 6]) -> Result<u64, &'static str> {
        self.begins(index, words).map_err(|error| error.text())?;
        op::p(self.died.entry(), op::clock() + PATIENCE).map_err(|_| "the child did not end")?;
        self.status()
    }

    /// As [`Self::calls`], and does not wait.
    pub fn begins(&mut self, index: u64, words: [u64; 6]) -> Result<(), Error> {
        self.threads.push(calls_in(self.entry(), index, words)?);
        Ok(())
    }

    /// Starts a child that for ever waits for a semaphore, maps its page at `source` into our domain at `destination`, goes on by
    /// two pages each, and raises another semaphore: gives both. When it is refused it dies with the error as status.
    pub fn plays(&mut self, source: u64, destination: u64) -> Result<[Owned; 2], Error> {
        let turn = Owned::new(op::semaphore_new(Entry::ACCOUNT, 0)?);
        let done = Owned::new(op::semaphore_new(Entry::ACCOUNT, 0)?);
        let domain = self.give(Entry::DOMAIN, rights::WRITE)?;
        let bytes = ENTRY_BYTES as u64;
        let indices = [self.give(turn.entry(), rights::ALL)? * bytes, self.give(done.entry(), rights::ALL)? * bytes];
        self.start(arch::ping_pong, &[indices[0], indices[1], domain, source, destination])?;
        Ok([turn, done])
    }

    /// Starts a child that reads a word and ends with it as status.
    pub fn reads(&mut self, address: u64) -> Result<(), Error> {
        self.start(arch::read, &[address])
    }

    /// Waits for its death, so many nanoseconds at most; gives what it died with, if it did.
    pub fn ends_within(&self, nanoseconds: u64) -> Result<Option<u64>, &'static str> {
        match op::p(self.died.entry(), op::clock() + nanoseconds) {
            Ok(()) => self.status().map(Some),
            Err(Error::Timeout) => Ok(None),
            Err(error) => Err(error.text()),
        }
    }

    /// Its page faults in this range go to a service of ours, with a badge.
    pub fn pages_by(&self, service: Entry, badge: u64, start: u64, end: u64) -> Result<(), Error> {
        op::portal_new(self.entry(), service, badge, Entry(PAGE_FAULT[0]), 0)?;
        op::domain_set_fault_range(self.entry(), 0, start, end)
    }

    /// Its page faults in this range go to itself, to so many activations, which read there, too.
    pub fn pages_itself(&self, activations: usize, start: u64, end: u64) -> Result<(), Error> {
        self.pages_by(self.reading_service(activations)?, start, start, end)
    }

    /// A service of the child, with so many activations: it reads at the address that its badge is.
    pub fn reading_service(&self, activations: usize) -> Result<Entry, Error> {
        self.service(arch::read_again, activations)
    }

    /// A service of the child, with so many activations: it does P on a semaphore and returns. Gives it with the badge for that.
    pub fn waiting_service(&self, semaphore: Entry, activations: usize) -> Result<(Entry, u64), Error> {
        let badge = self.give(semaphore, rights::ALL)? * ENTRY_BYTES as u64;
        Ok((self.service(arch::wait_and_return, activations)?, badge))
    }

    /// One activation more, for its services.
    pub fn activation(&self) -> Result<(), Error> {
        // SAFETY: another domain's; its code uses no stack.
        unsafe { op::activation_new(self.entry(), 0, Entry::OWN) }.map(drop)
    }

    fn service(&self, code: unsafe extern "C" fn() -> !, activations: usize) -> Result<Entry, Error> {
        for _ in 0..activations {
            self.activation()?;
        }
        // SAFETY: another domain's.
        let service = unsafe { op::service_new_at(self.entry(), code as *const () as u64, 0, Entry::OWN, Entry::OWN)? };
        let place = Owned::new(runtime::table::allocate()?);
        op::entry_copy(self.entry(), service, Entry::OWN, place.entry(), rights::ALL)?;
        // Portals are derived from our copy, which must stay as long as the child.
        Ok(place.leak())
    }

    /// The status that it died with.
    pub fn status(&self) -> Result<u64, &'static str> {
        newest_status()
    }
}

/// The domains that we made. Where we serve another's thread, one of ours asks; behind a sandbox it takes `with admin`.
fn domains() -> Result<Vec<info::Domain>, inspect::Refusal> {
    if let Ok(all) = inspect::domains() {
        return Ok(all.into_iter().map(|(_, domain)| domain).collect());
    }
    match inspect::own::<info::Domain>() {
        Err(Failure::Refused(ProcessError::NotAllowed)) => {
            let answer: Arc<Mutex<_>> = Arc::new(Mutex::new(Ok(Vec::new())));
            let place = answer.clone();
            thread::spawn(move || *place.lock() = inspect::own::<info::Domain>()).map_err(Failure::Transport)?.join();
            core::mem::replace(&mut *answer.lock(), Ok(Vec::new()))
        }
        reported => reported,
    }
}

/// The status of the newest dead domain that has the name of a child.
pub fn newest_status() -> Result<u64, &'static str> {
    let domains = domains().map_err(|error| match error {
        Failure::Transport(error) => error.text(),
        _ => "the domains are not reported",
    })?;
    let victims = domains.iter().filter(|domain| domain.name.starts_with(b"victim\0"));
    let newest = victims.max_by_key(|domain| domain.number).ok_or("the child is not listed")?;
    if newest.state == 1 { Ok(newest.status) } else { Err("the child lives") }
}
