//! Negative tests that the nucleus refuses: addresses that are not a user's, sizes of nothing and of everything, cycles,
//! and what is deeper than it may be.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::sync::atomic::Ordering;

use runtime::abi::rights::{MAP_EXECUTE, MAP_READ, MAP_WRITE, UNMAP_SELF};
use runtime::abi::{Error, MAX_DERIVATION, MESSAGE_BYTES, NEVER, PAGE_BYTES, layout, op, rights};
use runtime::entry::Owned;
use runtime::thread::{self, Thread};
use runtime::{Entry, op as operation, table};

use crate::arch::{KERNEL, NON_CANONICAL, START};
use crate::case::Case;
use crate::child::{Child, PATIENCE, calls_in, equip, newest_status};

type Outcome = Result<(), Error>;

const PAGE: u64 = PAGE_BYTES as u64;
const CODE: u64 = layout::PROGRAM_START;
/// Where victims get pages.
const PLACE: u64 = 0x5000_0000;
/// Where a child maps pages to us.
const OURS: u64 = 0x6000_0000;
const LOW: operation::Schedule = operation::Schedule { priority: 0, slice: 1_000 };

/// A page that is only read.
#[repr(align(4096))]
struct Constant {
    _words: [u64; PAGE_BYTES / 8],
}
static CONSTANT: Constant = Constant { _words: [7; PAGE_BYTES / 8] };

/// An address of ours that may only be read.
pub fn constant() -> u64 {
    &raw const CONSTANT as u64
}

/// All of them, with what they are and the error that is right.
pub const ALL: &[Case] = &[
    // Addresses.
    Case::refusal("thread-kernel", "a thread that starts at a nucleus address", Error::BadAddress, || {
        with_victim(|victim| thread(victim, KERNEL, 0))
    }),
    Case::refusal("thread-non-canonical", "a thread that starts at a non-canonical address", Error::BadAddress, || {
        with_victim(|victim| thread(victim, NON_CANONICAL, 0))
    }),
    Case::refusal("thread-stack", "a thread whose stack is in the nucleus", Error::BadAddress, || {
        with_victim(|victim| thread(victim, CODE, KERNEL))
    }),
    Case::refusal("activation-stack", "an activation whose stack is in the nucleus", Error::BadAddress, || {
        // SAFETY: refused, and another domain's.
        with_victim(|victim| unsafe { operation::activation_new(victim, KERNEL, Entry::OWN) }.map(drop))
    }),
    Case::refusal("service-kernel", "a service at a nucleus address", Error::BadAddress, || {
        // SAFETY: refused.
        unsafe { operation::service_new(KERNEL, 0) }.map(drop)
    }),
    Case::refusal("pointer-kernel", "a thread pointer to a nucleus address", Error::BadAddress, || {
        operation::activation_set(op::ACTIVATION_THREAD_POINTER, KERNEL)
    }),
    Case::refusal("go-on-kernel", "a thread made to go on at a nucleus address", Error::BadAddress, || {
        with_thread(|thread| {
            // SAFETY: refused, and another domain's.
            unsafe { operation::thread_ex_regs(thread, KERNEL, NEVER) }.map(drop)
        })
    }),
    Case::refusal("go-on-stack", "a thread given a non-canonical stack", Error::BadAddress, || {
        with_thread(|thread| {
            // SAFETY: refused, and another domain's.
            unsafe { operation::thread_ex_regs(thread, NEVER, NON_CANONICAL) }.map(drop)
        })
    }),
    Case::refusal("range-kernel", "page faults claimed at nucleus addresses", Error::BadArgument, || {
        with_victim(|victim| operation::domain_set_fault_range(victim, 0, 0, KERNEL))
    }),
    Case::refusal("unmap-kernel", "unmapping of a nucleus address", Error::BadAddress, || {
        unmap(KERNEL, 0, MAP_READ | UNMAP_SELF)
    }),
    Case::refusal("unmap-messages", "unmapping of the own message areas", Error::Reserved, || {
        unmap(layout::MESSAGE_START, 0, MAP_READ | UNMAP_SELF)
    }),
    Case::refusal("map-null", "mapping to address 0", Error::BadAddress, || map_to(CODE, 0, 0, MAP_READ)),
    Case::refusal("map-messages", "mapping over message areas", Error::Reserved, || {
        map_to(CODE, layout::MESSAGE_START, 0, MAP_READ)
    }),
    Case::refusal("map-from-messages", "mapping of a message area", Error::Reserved, || {
        map_to(layout::MESSAGE_START, PLACE, 0, MAP_READ)
    }),
    Case::refusal("map-over-end", "flexpage that reaches over the end of the space", Error::BadAddress, || {
        map_to(CODE, layout::USER_END - PAGE, 1, MAP_READ)
    }),
    Case::refusal("map-behind-end", "flexpage past the end of the space", Error::BadAddress, || {
        map_to(CODE, layout::USER_END, 0, MAP_READ)
    }),
    Case::refusal("map-overflow", "flexpage whose end is smaller than its start", Error::BadAddress, || {
        map_to(CODE, NEVER & !(PAGE - 1), 0, MAP_READ)
    }),
    Case::refusal("map-crooked", "flexpage that is not aligned to its size", Error::NotAligned, || {
        map_to(CODE, PLACE + PAGE, 4, MAP_READ)
    }),
    Case::refusal("map-read-only", "page that may only be read mapped writable", Error::PageRights, || {
        map_to(constant(), PLACE, 0, MAP_READ | MAP_WRITE)
    }),
    Case::refusal("map-not-code", "page that may not be executed mapped executable", Error::PageRights, || {
        map_to(constant(), PLACE, 0, MAP_READ | MAP_EXECUTE)
    }),
    Case::refusal("map-write-execute", "page mapped writable and executable", Error::WritableCode, || {
        map_to(constant(), PLACE, 0, MAP_READ | MAP_WRITE | MAP_EXECUTE)
    }),
    Case::refusal("map-odd-rights", "mapping with rights that do not exist", Error::BadArgument, || {
        map_to(constant(), PLACE, 0, 1 << 40)
    }),
    Case::refusal("draw", "drawing memory without the right", Error::Empty, || {
        operation::draw(Entry(layout::SPECIAL), Entry::ACCOUNT, Entry::DOMAIN, PLACE, 0, MAP_READ)
    }),
    // Sizes.
    Case::refusal("map-endless", "mapping of 2^(2^64 - 1) pages", Error::BadArgument, || {
        map_to(CODE, PLACE, NEVER, MAP_READ)
    }),
    Case::refusal("unmap-huge", "unmapping of more than there can be", Error::BadArgument, || {
        unmap(PLACE, 36, MAP_READ | UNMAP_SELF)
    }),
    Case::refusal("unmap-nothing", "unmapping that takes no right away", Error::BadArgument, || unmap(PLACE, 0, 0)),
    Case::refusal("domain-flags", "domain with flags that do not exist", Error::BadArgument, || {
        operation::domain_new(Entry::ACCOUNT, 1 << 63, "victim").map(drop)
    }),
    Case::refusal("account-endless", "account of 2^64 - 1 frames", Error::AccountExhausted, || {
        operation::account_new(Entry::ACCOUNT, NEVER).map(drop)
    }),
    Case::refusal("account-zero", "semaphore on an account of no frames", Error::OtherExhausted, || {
        let account = Owned::new(operation::account_new(Entry::ACCOUNT, 0)?);
        operation::semaphore_new(account.entry(), 0).map(drop)
    }),
    Case::refusal("move-endless", "2^64 - 1 frames moved to another account", Error::AccountExhausted, || {
        let account = Owned::new(operation::account_new(Entry::ACCOUNT, 1)?);
        operation::account_move(Entry::ACCOUNT, account.entry(), NEVER)
    }),
    Case::refusal("semaphore-endless", "semaphore that counts 2^64 - 1", Error::BadArgument, || {
        operation::semaphore_new(Entry::ACCOUNT, NEVER).map(drop)
    }),
    Case::refusal("slice-endless", "a slice of 2^32 - 1 microseconds", Error::BadArgument, || {
        operation::thread_schedule(Entry::OWN, operation::Schedule { priority: 0, slice: u32::MAX }).map(drop)
    }),
    Case::refusal("log-endless", "a line of 2^64 - 1 bytes for the log", Error::BadArgument, || {
        operation::log(usize::MAX, 0)
    }),
    Case::refusal("log-page", "a line of a whole message area for the log", Error::BadArgument, || {
        operation::log(MESSAGE_BYTES, 0)
    }),
    Case::refusal("receive-endless", "entries accepted at index 2^64 - 1", Error::BadIndex, || {
        operation::activation_set(op::ACTIVATION_RECEIVE, NEVER)
    }),
    // Cycles.
    Case::refusal("move-self", "frames moved from an account to itself", Error::NotParent, || {
        operation::account_move(Entry::ACCOUNT, Entry::ACCOUNT, 1)
    }),
    Case::refusal("move-sibling", "frames moved past the parent", Error::NotParent, || {
        let [one, other] = [(); 2].map(|()| operation::account_new(Entry::ACCOUNT, 1));
        let [one, other] = [Owned::new(one?), Owned::new(other?)];
        operation::account_move(one.entry(), other.entry(), 1)
    }),
    Case::refusal("go-on-self", "the running thread made to go on elsewhere", Error::ThreadRuns, || {
        // SAFETY: refused.
        unsafe { operation::thread_ex_regs(Entry::OWN, CODE, NEVER) }.map(drop)
    }),
    Case::refusal("copy-onto-itself", "an entry copied to where it stands", Error::Occupied, || {
        operation::entry_copy(Entry::OWN, Entry::ACCOUNT, Entry::OWN, Entry::ACCOUNT, rights::ALL).map(drop)
    }),
    Case::refusal("remove-maker", "a domain that removes what it lives in", Error::RunsInIt, || {
        let child = Child::new()?;
        // It may change our table, and finds there the original of itself.
        let own = child.give(Entry::DOMAIN, rights::ALL)?;
        let original = child.entry().0 as u64;
        status(child.calls(op::ENTRY_REMOVE as u64, [own, original, 0, 0, 0, 0]))
    }),
    Case::refusal("child-return", "a thread that was never called returns", Error::NoCaller, || {
        status(Child::new()?.calls(layout::RETURN as u64, [0; 6]))
    }),
    Case::refusal("account-deep", "an account in an account in an account …", Error::AccountsTooNested, || {
        let mut accounts = Vec::new();
        let error = loop {
            let parent = accounts.last().map_or(Entry::ACCOUNT, Owned::entry);
            match operation::account_new(parent, 100 - 10 * accounts.len() as u64) {
                Ok(account) => accounts.push(Owned::new(account)),
                Err(error) => break error,
            }
        };
        // The innermost first.
        while accounts.pop().is_some() {}
        Err(error)
    }),
];

/// The cases that take several steps.
pub const TRIED: &[Case] = &[
    Case::tried("map-cycle", "a page mapped to a child, and back to us by the child", map_cycle),
    Case::tried("own-removal", "a thread that removes the domain which owns the thread", own_removal),
    Case::tried("map-deep", "a page mapped to a child and back until it is too deep", map_deep),
    Case::tried("domain-deep", "a domain that a domain made that a domain made …", domain_deep),
];

pub fn status(status: Result<u64, &'static str>) -> Outcome {
    match status {
        Ok(status) => Error::from_status(status),
        Err(text) => {
            tool::println!("{text}");
            Err(Error::NotRunnable)
        }
    }
}

pub fn with_victim(work: impl FnOnce(Entry) -> Outcome) -> Outcome {
    let victim = Owned::new(operation::domain_new(Entry::ACCOUNT, 0, "victim")?);
    work(victim.entry())
}

fn with_thread(work: impl FnOnce(Entry) -> Outcome) -> Outcome {
    with_victim(|victim| {
        // SAFETY: another domain. The thread does not run before we wait: its priority is the lowest.
        let thread = Owned::new(unsafe { operation::thread_new(victim, CODE, 0, 0, LOW)? });
        work(thread.entry())
    })
}

fn thread(victim: Entry, code: u64, stack: u64) -> Outcome {
    // SAFETY: another domain.
    unsafe { operation::thread_new(victim, code, stack, 0, LOW) }.map(drop)
}

fn map_to(source: u64, destination: u64, order: u64, rights: u64) -> Outcome {
    with_victim(|victim| map(victim, source, destination, order, rights))
}

fn map(to: Entry, source: u64, destination: u64, order: u64, rights: u64) -> Outcome {
    // SAFETY: mappings elsewhere are of code or constants, for reading, or refused.
    unsafe { operation::map(to, source, destination, order, rights) }
}

fn unmap(address: u64, order: u64, rights: u64) -> Outcome {
    // SAFETY: refused, or nothing of ours is there.
    unsafe { operation::unmap(Entry::OWN, address, order, rights) }
}

/// A page that we map to a child comes back to us by the child's doing: it is one more mapping derived from
/// ours, and goes with the others.
fn map_cycle() -> Result<String, String> {
    let text = |error: Error| error.to_string();
    let mut child = Child::new().map_err(text)?;
    map(child.entry(), constant(), PLACE, 0, MAP_READ).map_err(text)?;
    let [turn, done] = child.plays(PLACE, OURS).map_err(text)?;
    operation::v(turn.entry()).map_err(text)?;
    operation::p(done.entry(), operation::clock() + PATIENCE).map_err(text)?;
    // SAFETY: the child mapped a page of constants there.
    let seen = unsafe { core::ptr::read_volatile(OURS as *const u64) };
    if seen != 7 {
        return Err(format!("{seen} came back"));
    }
    // SAFETY: takes away what is derived from the page of constants, which is not this mapping.
    unsafe { operation::unmap(Entry::OWN, constant(), 0, MAP_READ) }.map_err(text)?;
    for (place, gone) in
        [(OURS, map_to(OURS, PLACE, 0, MAP_READ)), (constant(), map_to(constant(), PLACE, 0, MAP_READ))]
    {
        let right = if place == OURS { Err(Error::NotMapped) } else { Ok(()) };
        if gone != right {
            return Err(format!("{place:#x} is {gone:?} afterwards"));
        }
    }
    Ok("it came back, and went with the page it was derived from".to_string())
}

/// A child starts a thread of ours; that removes the child, and itself with it: it ends there, and the remover of the child
/// once more finishes the work.
fn own_removal() -> Result<String, String> {
    let text = |error: Error| error.to_string();
    START.store(0, Ordering::SeqCst);
    let mut child = Child::new().map_err(text)?;
    let domain = child.give(Entry::DOMAIN, rights::ALL).map_err(text)?;
    let code = crate::arch::remove_ourselves as *const () as u64;
    let schedule = 8 | 1_000 << 8;
    child.begins(op::THREAD_NEW as u64, [domain, code, 0, child.entry().0 as u64, schedule, 0]).map_err(text)?;
    match child.ends_within(PATIENCE)? {
        Some(0) => {}
        other => return Err(format!("the thread was not started: {other:?}")),
    }
    let works = || {
        Thread::start(|_| {}, 0).map(Thread::join).map_err(text)?;
        thread::sleep(1_000_000).map_err(text)
    };
    // Its end leaves a free activation, so that of the thread below is one too many.
    works()?;
    START.store(1, Ordering::SeqCst);
    works()?;
    if START.load(Ordering::SeqCst) != 2 {
        return Err("the thread did not come to its work".to_string());
    }
    drop(child);
    for _ in 0..4 {
        works()?;
    }
    Ok("it ends in the middle, and others finish the work".to_string())
}

const MILLISECOND: u64 = 1_000_000;

fn domain_deep() -> Result<String, String> {
    match nest().map_err(|error| error.to_string())? {
        (levels, error @ Error::TooNested) => Ok(format!("refused after {levels} levels: {error}")),
        (levels, error) => Err(format!("after {levels} levels: {error}")),
    }
}

/// Each domain makes two: one that is the next, and one that tries to make another, and dies of the outcome. Gives how many levels there
/// are, and the error of one more.
fn nest() -> Result<(usize, Error), Error> {
    /// Where a domain has those that it makes.
    const PLACES: [u64; 2] = [200, 201];
    let make = |account: Entry, place, name| [account.0 as u64, 0, place, u64::from_le_bytes(name), 0, 0];
    let give = |domain, entry| operation::entry_copy(Entry::OWN, entry, domain, Entry::OWN, rights::ALL);
    let asleep = Owned::new(operation::semaphore_new(Entry::ACCOUNT, 0)?);
    let mut threads = Vec::new();
    let mut makers = Vec::from([Owned::new(operation::domain_new(Entry::ACCOUNT, 0, "victim")?)]);
    equip(makers[0].entry())?;
    let refused = loop {
        let maker = makers.last().map_or(Entry::DOMAIN, Owned::entry);
        // The end of its first thread would be that of the domain.
        threads.push(calls_in(maker, give(maker, asleep.entry())?.0 as u64, [op::P, NEVER, 0, 0, 0, 0])?);
        thread::sleep(MILLISECOND)?;
        let account = give(maker, Entry::ACCOUNT)?;
        let mut made = Vec::new();
        for place in PLACES {
            threads.push(calls_in(maker, op::DOMAIN_NEW as u64, make(account, place, *b"victim\0\0"))?);
            let copy = Owned::new(table::allocate()?);
            within(PATIENCE, || {
                operation::entry_copy(maker, Entry(place as usize), Entry::OWN, copy.entry(), rights::ALL)
            })?;
            equip(copy.entry())?;
            made.push(copy);
        }
        let tries = made.pop().ok_or(Error::Empty)?;
        let words = make(give(tries.entry(), Entry::ACCOUNT)?, PLACES[0], *b"nested\0\0");
        threads.push(calls_in(tries.entry(), op::DOMAIN_NEW as u64, words)?);
        match Error::from_status(within(PATIENCE, newest_status).map_err(|_| Error::Timeout)?) {
            Ok(()) => makers.append(&mut made),
            Err(error) => break error,
        }
    };
    let levels = makers.len() + 1;
    // The innermost first.
    while makers.pop().is_some() {}
    Ok((levels, refused))
}

/// Tries every millisecond until it is done, so many nanoseconds at most.
fn within<T, E>(nanoseconds: u64, mut tries: impl FnMut() -> Result<T, E>) -> Result<T, E> {
    let end = operation::clock() + nanoseconds;
    loop {
        match tries() {
            Err(_) if operation::clock() < end => {
                let _ = thread::sleep(MILLISECOND);
            }
            outcome => return outcome,
        }
    }
}

/// Each mapping is derived from the one before; the nucleus ends that at a fixed depth.
fn map_deep() -> Result<String, String> {
    let text = |error: Error| error.to_string();
    let mut child = Child::new().map_err(text)?;
    let [turn, done] = child.plays(PLACE, OURS).map_err(text)?;
    let mut source = constant();
    let mut depth = 0;
    let refused = loop {
        if depth > 2 * MAX_DERIVATION as u64 {
            return Err("it never ends".to_string());
        }
        let at = depth * PAGE;
        if let Err(error) = map(child.entry(), source, PLACE + at, 0, MAP_READ) {
            break error as u64;
        }
        depth += 1;
        operation::v(turn.entry()).map_err(text)?;
        if operation::p(done.entry(), operation::clock() + PATIENCE).is_err() {
            break child.status()?;
        }
        depth += 1;
        source = OURS + at;
    };
    // SAFETY: takes away all that is derived from the page of constants.
    unsafe { operation::unmap(Entry::OWN, constant(), 0, MAP_READ) }.map_err(text)?;
    match Error::from_status(refused) {
        // The original is how the program was loaded.
        Err(error @ Error::TooDerived) => Ok(format!("refused after {depth} steps: {error}")),
        other => Err(format!("refused after {depth} steps: {other:?}")),
    }
}
