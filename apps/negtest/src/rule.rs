//! Negative tests of programs that want more than their makers allow: priority, time, numbers, silence.

use alloc::format;
use alloc::string::String;

use runtime::abi::{Error, layout, op as abi_op, rights};
use runtime::entry::Owned;
use runtime::op::{self, Schedule};
use runtime::{Entry, server};

use crate::bounds::{status, with_victim};
use crate::callees;
use crate::case::Case;
use crate::child::Child;

type Outcome = Result<(), Error>;

/// A program's own limits: see `proc`.
const HIGHEST: u8 = 16;
const LONGEST: u32 = 10_000;
const LOW: Schedule = Schedule { priority: 0, slice: 1_000 };

/// CPUs, a bit each.
const FIRST: u64 = 1;
const SECOND: u64 = 2;

/// With which error it was refused: another one on a machine of one CPU.
fn refused(tried: Outcome) -> Result<String, String> {
    tried.map_or_else(|error| Ok(format!("refused: {error}")), |()| Err("not refused".into()))
}

/// All of them, with the error that is right.
pub const ALL: &[Case] = &[
    Case::refusal("slice-long", "a slice longer than the domain's longest", Error::SliceTooLong, || {
        schedule(Entry(0), Schedule { priority: HIGHEST, slice: LONGEST + 1 })
    }),
    Case::refusal(
        "slice-thread",
        "a thread with a slice longer than the domain's longest",
        Error::SliceTooLong,
        || thread_in(Entry::DOMAIN, Schedule { priority: 0, slice: LONGEST + 1 }),
    ),
    Case::refusal(
        "slice-child",
        "a thread of another domain with a slice longer than ours",
        Error::SliceTooLong,
        || with_victim(|victim| thread_in(victim, Schedule { priority: 0, slice: LONGEST + 1 })),
    ),
    Case::refusal("slice-bound", "a child's slices bounded below what it asks for", Error::SliceTooLong, || {
        with_victim(|victim| {
            op::domain_set_max_slice(victim, 999)?;
            thread_in(victim, Schedule { priority: 0, slice: 999 })?;
            thread_in(victim, LOW)
        })
    }),
    Case::refusal("slice-more", "a domain's longest slice set above the setter's", Error::SliceTooLong, || {
        with_victim(|victim| op::domain_set_max_slice(victim, u64::from(LONGEST) + 1))
    }),
    Case::refusal("slice-own", "the own longest slice raised again", Error::SliceTooLong, || {
        let child = Child::new()?;
        op::domain_set_max_slice(child.entry(), 1_000)?;
        status(child.calls(abi_op::DOMAIN_SET as u64, [0, abi_op::SET_MAX_SLICE, 1_001, 0, 0, 0]))
    }),
    Case::refusal("slice-none", "a longest slice of nothing", Error::BadArgument, || {
        with_victim(|victim| op::domain_set_max_slice(victim, 0))
    }),
    Case::refusal("slice-second", "a longest slice of more than a second", Error::BadArgument, || {
        with_victim(|victim| op::domain_set_max_slice(victim, 1_000_001))
    }),
    Case::refusal("share-program", "a share of time for another domain", Error::Empty, || {
        with_victim(|victim| op::domain_set_share(victim, 50))
    }),
    Case::refusal("share-own", "a program's own share of time lifted", Error::Empty, || {
        op::domain_set_share(Entry::DOMAIN, 0)
    }),
    Case::refusal("lower-caller", "a callee that changes its caller's thread", Error::Borrowed, || {
        let before = op::thread_schedule(Entry::OWN, Schedule { priority: HIGHEST, slice: LONGEST })?;
        let refused = callees::lowers_caller();
        let after = op::thread_schedule(Entry::OWN, Schedule { priority: HIGHEST, slice: LONGEST })?;
        if before.priority == after.priority { refused } else { Ok(()) }
    }),
    Case::refusal("raise-other", "a thread raised above the caller's highest priority", Error::PriorityTooHigh, || {
        with_victim(|victim| {
            let thread = Owned::new(new_thread(victim, LOW)?);
            let child = Child::new()?;
            op::domain_set_max_priority(child.entry(), 8)?;
            let given = child.give(thread.entry(), rights::ALL)?;
            let schedule = Schedule { priority: 9, slice: 1_000 }.word();
            status(child.calls(abi_op::THREAD_SCHEDULE as u64, [given, schedule, 0, 0, 0, 0]))
        })
    }),
    Case::tried("cpus-more", "a thread on a CPU that its domain may not use", || {
        let tried = with_victim(|victim| {
            op::domain_set_cpus(victim, FIRST)?;
            let thread = Owned::new(new_thread(victim, LOW)?);
            op::thread_schedule_on(thread.entry(), LOW, SECOND).map(drop)
        });
        refused(tried)
    }),
    Case::tried("cpus-given", "a CPU given that the caller's domain may not use", || {
        let tried = with_victim(|victim| {
            let child = Child::new()?;
            op::domain_set_cpus(child.entry(), FIRST)?;
            let given = child.give(victim, rights::ALL)?;
            status(child.calls(abi_op::DOMAIN_SET as u64, [given, abi_op::SET_CPUS, SECOND, 0, 0, 0]))
        });
        refused(tried)
    }),
    Case::refusal("ceiling-high", "a portal with a ceiling above the highest priority", Error::PriorityTooHigh, || {
        with_portal(u64::from(HIGHEST) + 1)
    }),
    Case::refusal("ceiling-none", "a portal with a ceiling that is no priority", Error::BadArgument, || {
        with_portal(64)
    }),
    Case::refusal("death-own", "the own notice of death led elsewhere", Error::NotMaker, || {
        let semaphore = Owned::new(op::semaphore_new(Entry::ACCOUNT, 0)?);
        op::domain_set_death_semaphore(Entry::OWN, semaphore.entry())
    }),
    Case::refusal("death-by-name", "the same by the entry of the own domain", Error::NotMaker, || {
        let semaphore = Owned::new(op::semaphore_new(Entry::ACCOUNT, 0)?);
        op::domain_set_death_semaphore(Entry::DOMAIN, semaphore.entry())
    }),
    Case::refusal("death-by-child", "the same by a child that was given the entry", Error::NotMaker, || {
        let child = Child::new()?;
        let own = child.give(Entry::DOMAIN, rights::ALL)?;
        let semaphore = Owned::new(op::semaphore_new(Entry::ACCOUNT, 0)?);
        let given = child.give(semaphore.entry(), rights::ALL)?;
        status(child.calls(abi_op::DOMAIN_SET as u64, [own, abi_op::SET_DEATH_SEMAPHORE, given, 0, 0, 0]))
    }),
    Case::refusal("table-of-another", "another's table that grows for what is refused", Error::Empty, || {
        let account = Owned::new(op::account_new(Entry::ACCOUNT, 100)?);
        let victim = Owned::new(op::domain_new(account.entry(), 0, "victim")?);
        let empty = Owned::new(runtime::table::allocate()?);
        let refused = op::entry_copy(Entry::OWN, empty.entry(), victim.entry(), Entry(4_000), rights::ALL);
        // Nor does it grow as far as it can pay for, if that is not far enough.
        let poor = op::entry_copy(Entry::OWN, Entry::ACCOUNT, victim.entry(), Entry(200_000), rights::READ);
        if poor.map(drop) != Err(Error::OtherExhausted) {
            return Ok(());
        }
        op::account_move(account.entry(), Entry::ACCOUNT, 80)?;
        refused.map(drop)
    }),
    Case::refusal("numbers", "more threads than an account has numbers for", Error::AccountThreads, || {
        let account = Owned::new(op::account_new_with(Entry::ACCOUNT, 100, 3)?);
        // An account below has no more than the one above. Each round finds what the one before gave back.
        let below = Owned::new(op::account_new_with(account.entry(), 50, 100)?);
        for paying in [&account, &account, &below] {
            let outcome = use_up_numbers(paying.entry());
            if outcome != Ok([Err(Error::AccountThreads); 2]) {
                return Ok(());
            }
        }
        // The refused operations left nothing behind.
        drop(below);
        op::account_move(account.entry(), Entry::ACCOUNT, 100)?;
        Err(Error::AccountThreads)
    }),
];

fn schedule(thread: Entry, schedule: Schedule) -> Outcome {
    op::thread_schedule(thread, schedule).map(drop)
}

fn new_thread(domain: Entry, schedule: Schedule) -> Result<Entry, Error> {
    // SAFETY: of another domain, or refused. It does not run before we wait: its priority is the lowest.
    unsafe { op::thread_new(domain, layout::PROGRAM_START, 0, 0, schedule) }
}

fn thread_in(domain: Entry, schedule: Schedule) -> Outcome {
    new_thread(domain, schedule).map(Owned::new).map(drop)
}

/// Takes three numbers; gives what comes of one more, for a thread and for a domain.
fn use_up_numbers(account: Entry) -> Result<[Outcome; 2], Error> {
    let victim = Owned::new(op::domain_new(account, 0, "victim")?);
    let _threads = [Owned::new(new_thread(victim.entry(), LOW)?), Owned::new(new_thread(victim.entry(), LOW)?)];
    let one_more = [new_thread(victim.entry(), LOW), op::domain_new(account, 0, "victim")];
    Ok(one_more.map(|made| made.map(Owned::new).map(drop)))
}

struct Nothing;

impl server::Serve for Nothing {
    fn serve(_: &mut idl::Request<'_>) -> idl::Reply {
        idl::Reply::word(0)
    }
}

fn with_portal(ceiling: u64) -> Outcome {
    let service = Owned::new(server::service::<Nothing>()?);
    let place = Owned::new(runtime::table::allocate()?);
    op::portal_new(Entry::OWN, service.entry(), 0, place.entry(), ceiling).map(drop)
}
