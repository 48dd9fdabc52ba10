//! Negative tests of programs that have a server do what they may not do themselves (confused deputies).

use alloc::collections::VecDeque;
use alloc::format;
use alloc::string::{String, ToString};
use core::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use idl::{Delegate, Failure};
use loader::startup::{self, Contents};
use protocols::listing::Listing;
use protocols::parent::{ParentClient, ParentError};
use protocols::process::{ChildClient, Force, KEPT, OWN, ProcessClient, ProcessError};
use protocols::sigma0::{Sigma0Client, Sigma0Error};
use runtime::abi::info::{self, status};
use runtime::abi::rights::{ALL as ALL_RIGHTS, CONTROL, COPY, MAP_READ, MAP_WRITE, READ, UNMAP_SELF, WRITE};
use runtime::abi::{Error, PAGE_BYTES, layout, level};
use runtime::connection::{Connection, Direct, Name};
use runtime::entry::Owned;
use runtime::op::Schedule;
use runtime::server::{self, ServeWord};
use runtime::thread::{self, Thread};
use runtime::{Entry, op};
use tool::inspect;

use crate::case::{Case, text};
use crate::launch::Process;
use crate::leaks;

/// All of them.
pub const ALL: &[Case] = &[
    Case::tried("end-others", "has components, other programs and the machine ended", others),
    Case::tried("other-lists", "looks who else is there, and who calls whom", lists),
    Case::tried("admin-for-child", "with admin:0: gives the compartment to its child, at every level", admin),
    Case::tried("kept-part", "asks for the memory that is kept for a command of the shell", kept),
    Case::tried("too-much", "asks for more frames than the description allows a program", too_much),
    Case::tried("child-entries", "hands over what is no semaphore, and no domain", entries),
    Case::tried(
        "other-entries",
        "hands over what is no account, no domain and no service, or has not the right",
        kinds,
    ),
    Case::tried("other-ticket", "draws from, changes and drops another program's ticket", ticket),
    Case::tried("refused-entries", "hands over more entries that are refused than the servers have room for", many),
    Case::tried("child-swapped", "asks for its child's domain while that ends and another takes its place", swapped),
    Case::tried("ticket-swapped", "draws with a ticket that it gives back meanwhile", ticket_swapped),
    Case::tried("child-waits", "20 threads wait for a child, and the program ends with them", waits),
    Case::tried(
        "child-statuses",
        "has more children end than statuses are kept, while others are waited for",
        statuses,
    ),
    Case::tried("child-long-name", "a program with a name of 300 bytes", long_name),
    Case::tried("draw-orders", "blocks of memory of every size there can be, and larger", orders),
    Case::tried("child-late", "changes a program that runs, and asks for an end twice", late),
];

type Refused<T> = Result<T, Failure<ProcessError>>;

/// As everybody finds it.
fn proc() -> ProcessClient<Connection<Name<'static>>> {
    ProcessClient(Connection::named("proc"))
}

fn expect<T>(what: &str, is: Refused<T>, right: ProcessError) -> Result<(), String> {
    match is {
        Err(error) if error == Failure::Refused(right) => Ok(()),
        Err(error) => Err(format!("{what}: {error}")),
        Ok(_) => Err(format!("{what}: that must not be")),
    }
}

/// A program that sleeps, and does not run before it is let, if it waits for an entry.
fn child(input: &str, frames: u64) -> Refused<Owned> {
    let contents = Contents { schedule: 0, name: "sleep", streams: [input, "null", "null"], compartments: &[] };
    let mut page = [0; PAGE_BYTES / 8];
    let used = startup::write(&mut page, &contents, ["sleep", "1000"], [], [])
        .map_err(|_| Failure::Refused(ProcessError::TooLong))?;
    proc().spawn("/bin/sleep", &page[..used], frames, 0).map(|child| Owned::new(child.into()))
}

/// Of `sleep`, whose account the description gives, and of `true`, which has the usual one.
fn too_much() -> Result<String, String> {
    const OF_SLEEP: u64 = 256;
    const USUAL: u64 = 1024;
    let end = |child: Owned| ChildClient(Direct(child.entry())).kill();
    for (frames, right) in [(0, true), (OF_SLEEP, true), (OF_SLEEP + 1, false), (USUAL, false), (KEPT - 1, false)] {
        match child("entry", frames) {
            Ok(child) if right => end(child).map_err(text)?,
            outcome => expect("sleep", outcome, ProcessError::TooMuch)?,
        }
    }
    let contents = Contents { schedule: 0, name: "true", streams: ["entry", "null", "null"], compartments: &[] };
    let mut page = [0; PAGE_BYTES / 8];
    let used = startup::write(&mut page, &contents, ["true"], [], []).map_err(text)?;
    let spawn = |frames| proc().spawn("/bin/true", &page[..used], frames, 0).map(|child| Owned::new(child.into()));
    spawn(USUAL).and_then(end).map_err(text)?;
    expect("true", spawn(USUAL + 1), ProcessError::TooMuch)?;
    Ok(format!("refused: {}", ProcessError::TooMuch))
}

/// Ends it, and expects that it was not ended before.
fn end(child: ChildClient<Direct>) -> Result<(), String> {
    expect("its end", child.ended(), ProcessError::Runs)?;
    child.kill().map_err(text)?;
    match child.wait() {
        Ok(status::KILLED) => Ok(()),
        other => Err(format!("it ends with {other:?}")),
    }
}

fn others() -> Result<String, String> {
    let victim = child("null", 256).map_err(text)?;
    // It sees no numbers. These are components, programs, and nobody.
    for number in 1..=200 {
        for force in [Force::Gentle, Force::Forced] {
            expect(&number.to_string(), proc().kill_domain(number, force), ProcessError::NotAllowed)?;
        }
    }
    expect("the machine", proc().stop_machine(0), ProcessError::NotAllowed)?;
    end(ChildClient(Direct(victim.entry())))?;
    Ok(format!("refused: {}", ProcessError::NotAllowed))
}

fn lists() -> Result<String, String> {
    const LISTS: [u64; 6] = [info::DOMAIN, info::THREAD, info::PORTAL, info::CPU, info::LOG, info::LOG_PROGRAMS];
    let victim = child("null", 256).map_err(text)?;
    let mut bytes = [0; 256];
    for list in LISTS {
        expect("a list", proc().inspect(list, 0, &mut bytes), ProcessError::NotAllowed)?;
    }
    expect("programs", proc().list(0, &mut bytes), ProcessError::NotAllowed)?;
    expect("compartments", proc().compartments(2, &mut bytes), ProcessError::NotAllowed)?;
    // It is there alone, with one thread, and nobody can call it.
    expect("its log", proc().inspect(info::LOG | OWN, 0, &mut bytes), ProcessError::NoSuchList)?;
    let domains = inspect::own::<info::Domain>().map_err(text)?;
    let own = op::domain_number(Entry::DOMAIN).map_err(text)?;
    let is_alone = domains.len() == 1 && domains.iter().all(|domain| domain.number == own);
    let threads = inspect::own::<info::Thread>().map_err(text)?;
    // The nucleus keeps one for each domain besides, which does not run.
    let is_only = threads.len() == 2 && threads.iter().all(|thread| thread.home == own);
    let portals = inspect::own::<info::Portal>().map_err(text)?.len();
    let totals = inspect::frames().and_then(|_| inspect::counters()).and_then(|_| inspect::shapes());
    let shapes = totals.map_err(text)?.len();
    end(ChildClient(Direct(victim.entry())))?;
    if !is_alone || !is_only || portals != 0 || shapes == 0 {
        return Err(format!("{domains:?}, {threads:?}, {portals} portals and {shapes} shapes are listed"));
    }
    Ok(format!("refused: {}", ProcessError::NotAllowed))
}

fn admin() -> Result<String, String> {
    let Some((name, own)) = leaks::own().pop() else { return Err("use: with admin:0 negtest admin-for-child".into()) };
    inspect::domains().map_err(text)?;
    for level in [level::STAR, level::ZERO, level::ONE, level::THREE] {
        let compartments = &[(name, own >> 3 << 3 | level)];
        let contents = Contents { schedule: 0, name: "true", streams: ["null"; 3], compartments };
        let mut page = [0; PAGE_BYTES / 8];
        let used = startup::write(&mut page, &contents, ["true"], [], []).map_err(text)?;
        let child = proc().spawn("/bin/true", &page[..used], 0, 0).map(|child| Owned::new(child.into()));
        expect("a child", child, ProcessError::Flow)?;
    }
    inspect::domains().map_err(text)?;
    Ok(format!("refused: {}", ProcessError::Flow))
}

fn kept() -> Result<String, String> {
    expect("the kept part", child("null", KEPT), ProcessError::NotAllowed)?;
    Ok(format!("refused: {}", ProcessError::NotAllowed))
}

/// The receiver checks an entry that is handed over: its kind, and its rights.
fn entries() -> Result<String, String> {
    let victim = child("null", 256).map_err(text)?;
    let client = ChildClient(Direct(victim.entry()));
    let semaphore = Owned::new(op::semaphore_new(Entry::ACCOUNT, 0).map_err(text)?);
    let wrong = [
        Delegate::entry(Entry::ACCOUNT.0, ALL_RIGHTS),
        Delegate::entry(Entry::DOMAIN.0, ALL_RIGHTS),
        Delegate::entry(semaphore.entry().0, COPY | READ),
    ];
    for entry in wrong {
        expect("notice of its end", client.notify(entry), ProcessError::NotASemaphore)?;
    }
    let refused = client.notify(Delegate::entry(semaphore.entry().0, ALL_RIGHTS));
    refused.map_err(|error| format!("a semaphore: {error}"))?;
    end(client)?;
    // It was notified, once.
    op::p(semaphore.entry(), op::clock() + 1_000_000_000).map_err(|error| format!("no notice: {error}"))?;
    if op::p(semaphore.entry(), op::clock()) != Err(Error::Timeout) {
        return Err("reported twice".to_string());
    }
    Ok(format!("refused: {}", ProcessError::NotASemaphore))
}

fn kinds() -> Result<String, String> {
    let semaphore = Owned::new(op::semaphore_new(Entry::ACCOUNT, 0).map_err(text)?);
    let account = Owned::new(op::account_new(Entry::ACCOUNT, 20).map_err(text)?);
    let domain = Owned::new(op::domain_new(account.entry(), 0, "victim").map_err(text)?);
    let service = Owned::new(server::word_service::<Nobody>().map_err(text)?);
    let all = [&semaphore, &account, &domain, &service].map(Owned::entry);
    let others = |one: &Owned| {
        let one = one.entry();
        all.into_iter().filter(move |other| *other != one).map(|other| (other, ALL_RIGHTS))
    };
    let sigma0 = Sigma0Client(Direct(Entry::SIGMA0));
    let ticket = sigma0.manage_account(Delegate::entry(account.entry().0, ALL_RIGHTS)).map_err(text)?;
    for (entry, rights) in others(&account).chain([(account.entry(), COPY | READ)]) {
        let refused = sigma0.manage_account(Delegate::entry(entry.0, rights));
        if refused != Err(Failure::Refused(Sigma0Error::NotAnAccount)) {
            return Err(format!("an account: {refused:?}"));
        }
    }
    for (entry, rights) in others(&domain).chain([(domain.entry(), COPY | WRITE), (domain.entry(), COPY | CONTROL)]) {
        let refused = sigma0.manage_domain(ticket, layout::PROGRAM_START, Delegate::entry(entry.0, rights));
        if refused != Err(Failure::Refused(Sigma0Error::NotADomain)) {
            return Err(format!("a domain: {refused:?}"));
        }
    }
    // The ticket is as it was.
    let managed = sigma0.manage_domain(ticket, layout::PROGRAM_START, Delegate::entry(domain.entry().0, ALL_RIGHTS));
    managed.map_err(text)?;
    let other = sigma0.manage_account(Delegate::entry(account.entry().0, ALL_RIGHTS)).map_err(text)?;
    let again = sigma0.manage_domain(other, layout::PROGRAM_START, Delegate::entry(domain.entry().0, ALL_RIGHTS));
    if again != Err(Failure::Refused(Sigma0Error::Equipped)) {
        return Err(format!("a domain that was handed over before: {again:?}"));
    }
    sigma0.forget(other).and_then(|()| sigma0.forget(ticket)).map_err(text)?;
    let parent = ParentClient(Direct(Entry::PARENT));
    for (entry, rights) in others(&service).chain([(service.entry(), COPY | READ)]) {
        let refused = parent.publish("kinds", Delegate::entry(entry.0, rights));
        if refused != Err(Failure::Refused(ParentError::NotAService)) {
            return Err(format!("a service: {refused:?}"));
        }
    }
    parent.publish("kinds", Delegate::entry(service.entry().0, ALL_RIGHTS)).map_err(text)?;
    let errors = [Sigma0Error::NotAnAccount, Sigma0Error::NotADomain, Sigma0Error::Equipped].map(idl::Code::text);
    Ok(format!("refused: {}; {}", errors.join("; "), ParentError::NotAService))
}

/// A ticket is of use to its maker alone, also if another knows its number.
fn ticket() -> Result<String, String> {
    let account = Owned::new(op::account_new(Entry::ACCOUNT, 20).map_err(text)?);
    let sigma0 = Sigma0Client(Direct(Entry::SIGMA0));
    let ticket = sigma0.manage_account(Delegate::entry(account.entry().0, ALL_RIGHTS)).map_err(text)?;
    let ended = Process::start("thief", &["--ticket", &ticket.to_string()])?.wait()?;
    if ended != 0 {
        return Err(format!("another program is not refused, at step {ended}"));
    }
    drop(account);
    let drawn = sigma0.draw_for(ticket, layout::FREE_START, 0, MAP_READ | MAP_WRITE);
    if drawn != Err(Failure::Refused(Sigma0Error::AccountGone)) {
        return Err(format!("from an account that was removed: {drawn:?}"));
    }
    sigma0.forget(ticket).map_err(text)?;
    if sigma0.make_room(1000) != Err(Failure::Refused(Sigma0Error::NotRoottask)) {
        return Err("a program makes room for tickets".to_string());
    }
    let errors = [Sigma0Error::NotManaged, Sigma0Error::AccountGone, Sigma0Error::NotRoottask].map(idl::Code::text);
    Ok(format!("refused: {}", errors.join("; ")))
}

/// `negtest --ticket NUMBER`: uses a ticket of another program. Gives the step that was not refused.
pub fn thief(number: &str) -> u8 {
    let Ok(ticket) = number.parse() else { return 100 };
    let sigma0 = Sigma0Client(Direct(Entry::SIGMA0));
    let domain = Delegate::entry(Entry::DOMAIN.0, ALL_RIGHTS);
    let outcomes = [
        sigma0.draw_for(ticket, layout::FREE_START, 0, MAP_READ | MAP_WRITE),
        sigma0.manage_domain(ticket, layout::PROGRAM_START, domain),
        sigma0.forget(ticket),
    ];
    let refused = Err(Failure::Refused(Sigma0Error::NotManaged));
    outcomes.into_iter().position(|outcome| outcome != refused).map_or(0, |step| step as u8 + 1)
}

/// Nothing that is refused stays in the tables of the refusing servers.
fn many() -> Result<String, String> {
    /// More than a table can have.
    const TIMES: usize = 5_000;
    let parent = ParentClient(Direct(Entry::PARENT));
    let own = Delegate::entry(Entry::DOMAIN.0, ALL_RIGHTS);
    for _ in 0..TIMES {
        for refused in [parent.equip(own), parent.publish_for_program("many", own)] {
            if refused != Err(Failure::Refused(ParentError::NotForPrograms)) {
                return Err(format!("a domain: {refused:?}"));
            }
        }
        let refused = parent.publish("many", own);
        if refused != Err(Failure::Refused(ParentError::NotAService)) {
            return Err(format!("no service: {refused:?}"));
        }
    }
    end(ChildClient(Direct(child("null", 256).map_err(text)?.entry())))?;
    Ok(format!("refused: {}", ParentError::NotForPrograms))
}

/// Waits that were refused, and those that began.
static REFUSED: AtomicUsize = AtomicUsize::new(0);
static BEGUN: AtomicUsize = AtomicUsize::new(0);

/// Neither the child nor the waiters are ended here.
fn waits() -> Result<String, String> {
    const WAITERS: usize = 20;
    let child = child("null", 64).map_err(text)?.leak();
    for _ in 0..WAITERS {
        let waiter = thread::spawn(move || {
            BEGUN.fetch_add(1, Ordering::Relaxed);
            if ChildClient(Direct(child)).wait() == Err(Failure::Refused(ProcessError::TooManyWaits)) {
                REFUSED.fetch_add(1, Ordering::Relaxed);
            }
        });
        core::mem::forget(waiter.map_err(text)?);
    }
    while BEGUN.load(Ordering::Relaxed) < WAITERS {
        thread::sleep(1_000_000).map_err(text)?;
    }
    thread::sleep(100_000_000).map_err(text)?;
    let refused = REFUSED.load(Ordering::Relaxed);
    Ok(format!("{} wait, {refused} refused: {}", WAITERS - refused, ProcessError::TooManyWaits))
}

/// Its status is kept for waiters, and for domains to be notified; of the others', those of the latest.
fn statuses() -> Result<String, String> {
    const ENDED: usize = 100;
    const KNOWN: usize = 32;
    const LOWEST: Schedule = Schedule { priority: 0, slice: 10_000 };
    let sleeper = || loop {
        match child("null", 64) {
            // Those that were ended are still there, with several CPUs: in places, and in memory.
            Err(Failure::Refused(ProcessError::TooMany | ProcessError::NoMemory)) => {
                thread::sleep(1_000_000).map_err(text)?
            }
            outcome => return outcome.map_err(text),
        }
    };
    let (waited, reported) = (sleeper()?, sleeper()?);
    let semaphore = Owned::new(op::semaphore_new(Entry::ACCOUNT, 0).map_err(text)?);
    let notice = Delegate::entry(semaphore.entry().0, COPY | WRITE);
    ChildClient(Direct(reported.entry())).notify(notice).map_err(text)?;
    let waits = |child| {
        BEGUN.fetch_add(1, Ordering::Relaxed);
        let is_reported = ChildClient(Direct(Entry(child))).wait().is_ok();
        REFUSED.store(usize::from(!is_reported), Ordering::Relaxed);
    };
    let waits = Thread::start_with(waits, waited.entry().0, LOWEST).map_err(text)?;
    while BEGUN.load(Ordering::Relaxed) == 0 {
        thread::sleep(1_000_000).map_err(text)?;
    }
    thread::sleep(10_000_000).map_err(text)?;
    for child in [&waited, &reported] {
        ChildClient(Direct(child.entry())).kill().map_err(text)?;
    }
    // From here on the thread that waits has no turn, with one CPU.
    let mut others = VecDeque::new();
    for _ in 0..ENDED {
        let other = sleeper()?;
        ChildClient(Direct(other.entry())).kill().map_err(text)?;
        others.push_back(other);
        if others.len() > KNOWN {
            others.pop_front();
        }
    }
    waits.join();
    thread::sleep(10_000_000).map_err(text)?;
    let known = others.iter().filter(|other| ChildClient(Direct(other.entry())).ended().is_ok()).count();
    let reported = ChildClient(Direct(reported.entry())).ended();
    match (REFUSED.load(Ordering::Relaxed), reported, known) {
        (0, Ok(_), KNOWN) => Ok(format!("both of those that are waited for, {known} of the others")),
        (refused, reported, known) => Err(format!("{refused} refused, {reported:?}, {known} of the others")),
    }
}

fn long_name() -> Result<String, String> {
    const NAME: &str = "x123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890123456789\
                        x123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890123456789\
                        x123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890123456789";
    let contents = Contents { schedule: 0, name: NAME, streams: ["null", "null", "null"], compartments: &[] };
    let mut page = [0; PAGE_BYTES / 4];
    let used = startup::write(&mut page, &contents, ["sleep", "1000"], [], []).map_err(text)?;
    let child = proc().spawn("/bin/sleep", &page[..used], 64, 0).map(|child| Owned::new(child.into())).map_err(text)?;
    let mut bytes = [0; PAGE_BYTES / 4];
    let (mut length, mut position) = (0, 0);
    loop {
        let (count, next) = proc().list(position, &mut bytes).map_err(text)?;
        length = Listing(&bytes[..count]).map(|record| record.name.len()).fold(length, usize::max);
        position = next;
        if next == 0 {
            break;
        }
    }
    end(ChildClient(Direct(child.entry())))?;
    Ok(format!("the list shows {length} bytes of {}", NAME.len()))
}

fn orders() -> Result<String, String> {
    const FAR: u64 = 1 << 40;
    let (mut drawn, mut last) = (0, None);
    for order in (0..64).chain([255, 1 << 32, u64::MAX]) {
        let outcome = Sigma0Client(Direct(Entry::SIGMA0)).draw(FAR, order, MAP_READ | MAP_WRITE);
        match outcome {
            Ok(()) => {
                drawn += 1;
                // SAFETY: nothing refers to what was drawn.
                unsafe { op::unmap(Entry::OWN, FAR, order, MAP_READ | MAP_WRITE | UNMAP_SELF).map_err(text)? }
            }
            Err(Failure::Refused(error)) => last = Some(error),
            Err(error) => return Err(format!("order {order}: {error}")),
        }
    }
    let unknown = Sigma0Client(Direct(Entry::SIGMA0)).draw(FAR, 0, u64::MAX);
    if unknown != Err(Failure::Refused(Sigma0Error::BadRights)) {
        return Err(format!("all rights: {unknown:?}"));
    }
    Ok(format!("{drawn} sizes, and then: {}", last.map_or("nothing", idl::Code::text)))
}

/// The child of which the other thread asks for the domain; 0 = none at present.
static ASKED: AtomicUsize = AtomicUsize::new(0);
/// The entry whose copy stands in that child's table at an index where nobody else has anything.
static MARK: AtomicUsize = AtomicUsize::new(0);
/// The entry that it got instead.
static OTHERS: AtomicUsize = AtomicUsize::new(0);
static ENDS: AtomicBool = AtomicBool::new(false);
const MARKED: Entry = Entry(120);

/// A thread of the lowest priority asks, and is interrupted wherever it may be. Then the child ends, and another one is made.
fn swapped() -> Result<String, String> {
    const ROUNDS: u64 = 400;
    const LOWEST: Schedule = Schedule { priority: 0, slice: 10_000 };
    let mark = Owned::new(server::word_service::<Nobody>().map_err(text)?);
    MARK.store(mark.entry().0, Ordering::Relaxed);
    let asks = Thread::start_with(ask, 0, LOWEST).map_err(text)?;
    for round in 0..ROUNDS {
        let first = child("entry", 256).map_err(text)?;
        let client = ChildClient(Direct(first.entry()));
        let domain = Owned::new(client.domain().map_err(text)?.into());
        op::portal_new(domain.entry(), mark.entry(), 0, MARKED, 0).map_err(text)?;
        ASKED.store(first.entry().0, Ordering::Relaxed);
        let _ = thread::sleep(1_000 * (100 + round * 37 % 256));
        client.kill().map_err(text)?;
        client.wait().map_err(text)?;
        let second = child("entry", 256).map_err(text)?;
        ASKED.store(0, Ordering::Relaxed);
        // The entry that it asked for arrives.
        let _ = thread::sleep(300_000);
        end(ChildClient(Direct(second.entry())))?;
    }
    ENDS.store(true, Ordering::Relaxed);
    asks.join();
    match OTHERS.load(Ordering::Relaxed) {
        0 => Ok("nothing but its own".to_string()),
        others => Err(format!("{others} times another domain")),
    }
}

/// The ticket with which the other thread draws.
static DRAWN: AtomicU64 = AtomicU64::new(0);

/// A thread of the lowest priority draws, and is interrupted wherever it may be. Then its ticket is given back, and others are made,
/// of an account that is empty: a draw that is charged to that one is refused otherwise than one with a ticket that is gone.
fn ticket_swapped() -> Result<String, String> {
    const ROUNDS: u64 = 3_000;
    const LOWEST: Schedule = Schedule { priority: 0, slice: 10_000 };
    /// The source of memory may have one index at hand for each of its activations; a later one is the index that became free.
    const TICKETS: usize = 3;
    /// A slice of the other thread is twice as long. A thread that waits for it has its turn before, if the computer is not slow.
    const LATE: u64 = 5_000_000;
    const MOST_LATE: u64 = ROUNDS / 100;
    let memory = Sigma0Client(Direct(Entry::SIGMA0));
    let [full, empty] = [8, 0].map(|frames| op::account_new(Entry::ACCOUNT, frames).map(Owned::new));
    let (full, empty) = (full.map_err(text)?, empty.map_err(text)?);
    let ticket = |account: &Owned| memory.manage_account(Delegate::entry(account.entry().0, ALL_RIGHTS)).map_err(text);
    // Both on one CPU: an emulator's others may run for a slice while this one should.
    op::thread_schedule_on(Entry::OWN, Schedule { priority: 16, slice: 10_000 }, 1).map_err(text)?;
    let draws = Thread::start_with(draw_again, 0, LOWEST).map_err(text)?;
    op::thread_schedule_on(draws.entry(), LOWEST, 1).map_err(text)?;
    let mut late = 0;
    for round in 0..ROUNDS {
        let own = ticket(&full)?;
        DRAWN.store(own, Ordering::Relaxed);
        let _ = thread::sleep(1_000 * (20 + round * 37 % 64));
        let begun = op::clock();
        memory.forget(own).map_err(text)?;
        late += u64::from(op::clock() - begun > LATE);
        let others: [_; TICKETS] = core::array::from_fn(|_| ticket(&empty));
        // The entry that it asked for arrives.
        let _ = thread::sleep(20_000);
        for other in others {
            memory.forget(other?).map_err(text)?;
        }
    }
    ENDS.store(true, Ordering::Relaxed);
    draws.join();
    match OTHERS.load(Ordering::Relaxed) {
        0 if late <= MOST_LATE => Ok("nothing but its own, and no call waited for a slice".to_string()),
        others => Err(format!("{others} times from another account, {late} calls waited for a slice")),
    }
}

fn draw_again(_: usize) {
    let memory = Sigma0Client(Direct(Entry::SIGMA0));
    while !ENDS.load(Ordering::Relaxed) {
        match memory.draw_for(DRAWN.load(Ordering::Relaxed), layout::WINDOW, 0, MAP_READ | MAP_WRITE) {
            // SAFETY: nothing else is there.
            Ok(()) => drop(unsafe { op::unmap(Entry::OWN, layout::WINDOW, 0, MAP_READ | UNMAP_SELF) }),
            Err(Failure::Refused(Sigma0Error::NotManaged)) => {}
            Err(_) => drop(OTHERS.fetch_add(1, Ordering::Relaxed)),
        }
    }
}

fn ask(_: usize) {
    while !ENDS.load(Ordering::Relaxed) {
        let asked = ASKED.load(Ordering::Relaxed);
        if asked == 0 {
            continue;
        }
        let Ok(domain) = ChildClient(Direct(Entry(asked))).domain() else { continue };
        let domain = Owned::new(domain.into());
        let is_another = op::portal_new(domain.entry(), Entry(MARK.load(Ordering::Relaxed)), 0, MARKED, 0).is_ok();
        OTHERS.fetch_add(usize::from(is_another), Ordering::Relaxed);
    }
}

/// A service that nobody asks.
struct Nobody;

impl ServeWord for Nobody {
    fn serve(_: u64, _: [u64; 5]) -> u64 {
        0
    }
}

fn late() -> Result<String, String> {
    let runs = child("null", 256).map_err(text)?;
    let runs = ChildClient(Direct(runs.entry()));
    expect("its domain", runs.domain(), ProcessError::Runs)?;
    expect("its start", runs.start(), ProcessError::Runs)?;
    end(ChildClient(runs.0))?;
    expect("a list that is not there", proc().inspect(99, 0, &mut [0; 64]), ProcessError::NoSuchList)?;
    expect("a list without room", proc().inspect(info::FRAMES, 0, &mut [0; 8]), ProcessError::NoRoom)?;
    expect("a second wait", runs.wait(), ProcessError::NoSuchProcess)?;
    expect("a second look", runs.ended(), ProcessError::NoSuchProcess)?;
    expect("a second end", runs.kill(), ProcessError::NoSuchProcess)?;
    let held = child("entry", 256).map_err(text)?;
    let held = ChildClient(Direct(held.entry()));
    let domain = Owned::new(held.domain().map_err(text)?.into());
    // Only to put entries there: not to look, to change or to kill.
    if op::domain_kill(domain.entry(), 0) != Err(Error::NoRight) {
        return Err("ended by its domain: that must not be".to_string());
    }
    held.start().map_err(text)?;
    expect("a second start", held.start(), ProcessError::Runs)?;
    end(held)?;
    let killed = child("entry", 256).map_err(text)?;
    let killed = ChildClient(Direct(killed.entry()));
    let ended = Owned::new(op::semaphore_new(Entry::ACCOUNT, 0).map_err(|error| error.to_string())?);
    killed.notify(Delegate::entry(ended.entry().0, ALL_RIGHTS)).map_err(text)?;
    killed.kill().map_err(text)?;
    // Whether it is dead, being buried, or has ended by now.
    killed.kill().map_err(text)?;
    op::p(ended.entry(), runtime::abi::NEVER).map_err(|error| error.to_string())?;
    expect("a start after its end", killed.start(), ProcessError::HasEnded)?;
    killed.wait().map_err(text)?;
    Ok(format!("refused: {}, then: {}", ProcessError::Runs, ProcessError::NoSuchProcess))
}
