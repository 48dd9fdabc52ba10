//! Accounts that have too little: everything that allocates is tried with 0, 1, 2 … frames until it is done.
//!
//! With every smaller number it must be refused as exhausted, and all frames must be in the account again
//! afterwards, to the frame: so each place where something is allocated fails in its turn.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::cell::Cell;

use idl::Failure;
use loader::startup::{self, Contents};
use protocols::file::{FileClient, FileError, FileSystemClient, TRUNCATE, WRITE};
use protocols::names::{NamesClient, NamesError};
use protocols::process::ProcessError;
use protocols::sigma0::{Sigma0Client, Sigma0Error};
use runtime::abi::level::{ONE, THREE, ZERO};
use runtime::abi::rights::{MAP_GRANT, MAP_READ, MAP_WRITE, UNMAP_SELF};
use runtime::abi::{Error, PAGE_BYTES, info, layout, op, rights};
use runtime::child::Child;
use runtime::connection::Direct;
use runtime::entry::Owned;
use runtime::op::LabelFrom;
use runtime::stream::FILE_SYSTEM;
use runtime::{Entry, op as operation};
use tool::inspect::{self, PROC};

use crate::case::{Case, text};
use crate::labels;

/// More frames than anything here takes.
const MOST: u64 = 300;
/// Where victims get pages: nothing is near, so tables of all levels are needed.
const FAR: u64 = 0x2345_4000_0000;
/// Where we draw pages.
const DRAWN: u64 = layout::FREE_START + 0x4000_0000;
const PAGE: u64 = PAGE_BYTES as u64;
const LOW: operation::Schedule = operation::Schedule { priority: 0, slice: 1_000 };

/// All of them.
pub const ALL: &[Case] = &[
    Case::tried("exhaust-domain", "a domain on an account with too few frames", domain),
    Case::tried("exhaust-table", "a domain with a large table, too few frames", large_table),
    Case::tried("exhaust-growth", "a table that grows in a domain with too few frames", || {
        in_domain(0, |victim| fill(victim, layout::TABLE_ENTRIES))
    }),
    Case::tried("exhaust-account", "an account filled from one with too few frames", || {
        object(|purse| operation::account_new(purse, 3))
    }),
    Case::tried("exhaust-semaphore", "a semaphore on an account with too few frames", || {
        object(|purse| operation::semaphore_new(purse, 0))
    }),
    Case::tried("exhaust-activation", "an activation in a domain with too few frames", || {
        // SAFETY: another domain's.
        in_domain(0, |victim| unsafe { operation::activation_new(victim, 0, Entry::OWN) }.map(drop))
    }),
    Case::tried("exhaust-thread", "a thread in a domain with too few frames", || in_domain(0, thread)),
    Case::tried("exhaust-activations", "many activations with floating point, too few frames", || {
        many(|victim| {
            // SAFETY: another domain's.
            unsafe { operation::activation_new(victim, 0, Entry::OWN) }.map(|_| None)
        })
    }),
    Case::tried("exhaust-labelled", "services with a label of many handles, too few frames", labelled),
    Case::tried("exhaust-threads", "many threads with floating point, too few frames", || {
        many(|victim| {
            // SAFETY: another domain. The thread does not run before we wait: its priority is the lowest.
            unsafe { operation::thread_new(victim, layout::PROGRAM_START, 0, 0, LOW) }
                .map(|thread| Some(Owned::new(thread)))
        })
    }),
    Case::tried("exhaust-map", "a page mapped into a domain with too few frames", || {
        in_domain(0, |victim| map(victim, layout::PROGRAM_START, FAR, MAP_READ))
    }),
    Case::tried("exhaust-grant", "a page given to a domain with too few frames", grant),
    Case::tried("exhaust-mappings", "pages mapped elsewhere by a domain with too few frames", mappings),
    Case::tried("exhaust-draw", "memory drawn with too few frames", draw),
    Case::tried("exhaust-memory", "many pages drawn with too few frames", memory),
    Case::tried("exhaust-nothing", "services, portals and copies without any frame", nothing),
    Case::tried("exhaust-spawn", "a program started with too few frames", spawn),
    Case::tried("exhaust-file", "a file that takes all the room for files", file),
    Case::tried("exhaust-open", "services opened by name until the table needs a frame that there is not", open),
    Case::death("exhaust-fault", "a page of the heap touched without any frame", fault),
];

/// An account, and the one from which it gets frames.
struct Purse {
    account: Entry,
    from: Entry,
}

/// How an attempt with too few frames may end.
enum End {
    Done,
    Exhausted(Error),
    Wrong(String),
}

impl From<Result<(), Error>> for End {
    fn from(result: Result<(), Error>) -> Self {
        match result {
            Ok(()) => Self::Done,
            Err(error @ (Error::AccountExhausted | Error::OtherExhausted)) => Self::Exhausted(error),
            Err(error) => Self::Wrong(error.to_string()),
        }
    }
}

impl Purse {
    /// How an operation is refused that finds too few frames in it.
    fn refusal(&self) -> Error {
        if self.account == Entry::ACCOUNT { Error::AccountExhausted } else { Error::OtherExhausted }
    }

    fn give(&self, frames: u64) -> Result<(), Error> {
        operation::account_move(self.from, self.account, frames)
    }

    /// Takes frames back; false if there are fewer or more.
    fn take_back_exactly(&self, frames: u64) -> bool {
        operation::account_move(self.account, self.from, frames).is_ok()
            && operation::account_move(self.account, self.from, 1) == Err(self.refusal())
    }

    /// Takes all that is unused; gives how much that was.
    fn drain(&self) -> u64 {
        let mut taken = 0;
        for order in (0..24).rev() {
            while operation::account_move(self.account, self.from, 1 << order).is_ok() {
                taken += 1 << order;
            }
        }
        taken
    }

    /// Tries with 0, 1, 2 … frames. All is undone, which must leave so many frames as were given, and
    /// `more`. Gives how many it took.
    fn sweep(&self, more: u64, attempt: impl Fn() -> End, undo: impl Fn()) -> Result<Swept, String> {
        for frames in 0..=MOST {
            self.give(frames).map_err(text)?;
            match attempt() {
                End::Exhausted(error) if error != self.refusal() => {
                    return Err(format!("with {frames} frames: {error}"));
                }
                End::Exhausted(_) if self.take_back_exactly(frames) => {}
                End::Exhausted(_) => return Err(format!("of {frames} frames, not so many are there afterwards")),
                End::Done => {
                    undo();
                    let right = self.take_back_exactly(frames + more);
                    let swept = Swept { frames, refusal: self.refusal() };
                    return if right { Ok(swept) } else { Err(format!("done with {frames}, and not all came back")) };
                }
                End::Wrong(text) => return Err(format!("with {frames} frames: {text}")),
            }
        }
        Err(format!("{MOST} frames do not suffice"))
    }
}

/// How many frames it takes, and how it is refused with fewer.
struct Swept {
    frames: u64,
    refusal: Error,
}

fn reported(Swept { frames, refusal }: Swept) -> String {
    match frames {
        0 => "needs no frame".to_string(),
        1 => format!("refused without a frame: {refusal}; done with 1"),
        _ => format!("refused with 0 to {} frames: {refusal}; done with {frames}", frames - 1),
    }
}

/// An account without frames.
fn empty_account() -> Result<Owned, String> {
    operation::account_new(Entry::ACCOUNT, 0).map(Owned::new).map_err(text)
}

/// Something that goes when its entry is removed.
fn object(make: impl Fn(Entry) -> Result<Entry, Error>) -> Result<String, String> {
    let account = empty_account()?;
    let purse = Purse { account: account.entry(), from: Entry::ACCOUNT };
    let attempt = || make(purse.account).map(|made| drop(Owned::new(made))).into();
    purse.sweep(0, attempt, || {}).map(reported)
}

fn domain() -> Result<String, String> {
    object(|account| operation::domain_new(account, 0, "victim"))
}

fn large_table() -> Result<String, String> {
    object(|account| {
        let victim = Owned::new(operation::domain_new(account, 0, "victim")?);
        fill(victim.entry(), 4_095)?;
        Ok(victim.leak())
    })
}

fn fill(victim: Entry, index: usize) -> Result<(), Error> {
    operation::entry_copy(Entry::OWN, Entry::ACCOUNT, victim, Entry(index), rights::READ).map(drop)
}

/// A domain on an account that has nothing left. Gives the frames it has.
fn poor_domain(purse: &Purse, flags: u64) -> Result<(Owned, u64), String> {
    purse.give(MOST).map_err(text)?;
    let victim = operation::domain_new(purse.account, flags, "victim").map(Owned::new).map_err(text)?;
    let left = purse.drain();
    Ok((victim, MOST - left))
}

/// Something that a domain pays for, and that goes with it.
fn in_domain(flags: u64, attempt: impl Fn(Entry) -> Result<(), Error>) -> Result<String, String> {
    let account = empty_account()?;
    let purse = Purse { account: account.entry(), from: Entry::ACCOUNT };
    let (victim, frames) = poor_domain(&purse, flags)?;
    let entry = victim.entry();
    let victim = Cell::new(Some(victim));
    purse.sweep(frames, || attempt(entry).into(), || drop(victim.take())).map(reported)
}

/// Services whose portals have labels, of which each copy is paid by their domain.
fn labelled() -> Result<String, String> {
    const HANDLES: u64 = 200;
    const SERVICES: u64 = 3;
    let label = Owned::new(operation::label_new(LabelFrom::Level(THREE)).map_err(text)?);
    for number in 0..HANDLES {
        operation::label_put(label.entry(), labels::spread(number), ZERO).map_err(text)?;
    }
    object(|account| {
        let victim = Owned::new(operation::domain_new(account, 0, "victim")?);
        for number in 0..SERVICES {
            operation::label_put(label.entry(), labels::spread(number), ONE)?;
            // SAFETY: another domain, in which nothing runs.
            unsafe {
                operation::service_new_labelled(
                    victim.entry(),
                    layout::PROGRAM_START,
                    0,
                    Entry::OWN,
                    Entry(0),
                    label.entry(),
                )?
            };
        }
        Ok(victim.leak())
    })
}

fn thread(victim: Entry) -> Result<(), Error> {
    // SAFETY: another domain. The thread does not run before it goes: its priority is the lowest.
    let thread = unsafe { operation::thread_new(victim, layout::PROGRAM_START, 0, 0, LOW)? };
    drop(Owned::new(thread));
    Ok(())
}

/// Several things that go with a domain, which is re-created for each number of frames. So objects that share
/// pages are refused, too, wherever a page is full.
fn many(add: impl Fn(Entry) -> Result<Option<Owned>, Error>) -> Result<String, String> {
    const COUNT: usize = 24;
    object(|purse| {
        let victim = Owned::new(operation::domain_new(purse, op::DOMAIN_FPU, "victim")?);
        let mut added = Vec::with_capacity(COUNT);
        for _ in 0..COUNT {
            added.push(add(victim.entry())?);
        }
        Ok(victim.leak())
    })
}

fn map(victim: Entry, source: u64, destination: u64, rights: u64) -> Result<(), Error> {
    // SAFETY: code for reading, or a page drawn for this that nothing refers to.
    unsafe { operation::map(victim, source, destination, 0, rights) }
}

fn drawn(address: u64) -> Result<(), Failure<Sigma0Error>> {
    Sigma0Client(Direct(Entry::SIGMA0)).draw(address, 0, MAP_READ | MAP_WRITE)
}

fn grant() -> Result<String, String> {
    // The tables of both places are empty afterwards.
    let rich = operation::domain_new(Entry::ACCOUNT, 0, "rich").map(Owned::new).map_err(text)?;
    for (place, at) in [(DRAWN, FAR), (DRAWN + (4 << 20), FAR + PAGE)] {
        drawn(place).map_err(|error| error.to_string())?;
        map(rich.entry(), place, at, MAP_READ | MAP_GRANT).map_err(text)?;
    }
    drop(rich);
    drawn(DRAWN).map_err(|error| error.to_string())?;
    in_domain(0, |victim| map(victim, DRAWN, FAR, MAP_READ | MAP_GRANT))
}

/// Our own account, with nothing left: all is in another one. Nothing new may be touched meanwhile.
struct Poor {
    reserve: Owned,
}

impl Poor {
    fn new() -> Result<Self, String> {
        let poor = Self { reserve: empty_account()? };
        poor.purse().drain();
        Ok(poor)
    }

    fn purse(&self) -> Purse {
        Purse { account: Entry::ACCOUNT, from: self.reserve.entry() }
    }
}

/// Does it twice: the first time brings stack and heap that it needs.
fn twice<T>(work: impl Fn(&Purse) -> Result<T, String>) -> Result<T, String> {
    // The first time we are not poor: frames come from nowhere and go nowhere.
    let account = empty_account()?;
    let _ = work(&Purse { account: account.entry(), from: Entry::ACCOUNT });
    drop(account);
    let poor = Poor::new()?;
    work(&poor.purse())
}

/// The mapping domain pays for mappings, the receiving one for tables: a failed mapping leaves no table either.
fn mappings() -> Result<String, String> {
    /// More than fit in two pages of small objects: one may have room from before.
    const COUNT: u64 = 130;
    /// A table each.
    const APART: u64 = 512 * PAGE;
    let account = operation::account_new(Entry::ACCOUNT, MOST).map(Owned::new).map_err(text)?;
    let victim = operation::domain_new(account.entry(), 0, "victim").map(Owned::new).map_err(text)?;
    let rich = Purse { account: account.entry(), from: Entry::ACCOUNT };
    let left = rich.drain();
    rich.give(left).map_err(text)?;
    let attempt = || -> End {
        let place = |number| FAR + number * APART;
        let all = (0..COUNT).try_for_each(|number| map(victim.entry(), layout::PROGRAM_START, place(number), MAP_READ));
        // SAFETY: another domain.
        let clear = |number| unsafe { operation::unmap(victim.entry(), place(number), 0, MAP_READ | UNMAP_SELF) };
        if let Err(error) = (0..COUNT).try_for_each(clear) {
            return End::Wrong(text(error));
        }
        // To and fro: we have nothing to give.
        if !rich.take_back_exactly(left) || rich.give(left).is_err() {
            return End::Wrong("the tables did not all go".to_string());
        }
        all.into()
    };
    let swept = twice(|purse| purse.sweep(0, attempt, || {}))?;
    if swept.frames == 0 { Err(format!("{COUNT} mappings without a frame")) } else { Ok(reported(swept)) }
}

fn end_of(drawn: Result<(), Failure<Sigma0Error>>) -> End {
    match drawn {
        Ok(()) => End::Done,
        Err(Failure::Refused(Sigma0Error::AccountExhausted)) => End::Exhausted(Error::AccountExhausted),
        Err(error) => End::Wrong(error.to_string()),
    }
}

/// Gives up what was drawn at an address, if anything was.
fn give_up(address: u64) {
    // SAFETY: drawn for this; nothing refers to it.
    let _ = unsafe { operation::unmap(Entry::OWN, address, 0, MAP_READ | UNMAP_SELF) };
}

/// Our table is full, and has no frame to grow: nothing can be opened until there is one.
fn open() -> Result<String, String> {
    /// More than a page of the table has entries.
    const COUNT: usize = 100;
    let names = NamesClient(Direct(Entry::NAMES));
    let open = || names.open("ramfs").map(|entry| Owned::new(entry.into()));
    let mut opened = [const { None }; COUNT];
    // The first time brings the stack that it needs.
    drop(open().map_err(|error| error.to_string())?);
    let poor = Poor::new()?;
    let mut refusal = None;
    for place in &mut opened {
        match open() {
            Ok(entry) => *place = Some(entry),
            Err(error) => {
                refusal = Some(error);
                break;
            }
        }
    }
    let again = open().err();
    let lost = !poor.purse().take_back_exactly(0);
    let given = poor.purse().give(1);
    let works = open().and_then(|entry| {
        let files = FileSystemClient(Direct(entry.entry()));
        files.read_directory("/", 0, &mut [0; 64]).map(drop).map_err(|_| Failure::Refused(NamesError::Gone))
    });
    let took = poor.purse().take_back_exactly(0);
    drop(poor);
    given.map_err(text)?;
    works.map_err(|error| format!("with a frame: {error}"))?;
    match refusal {
        Some(Failure::Transport(Error::AccountExhausted)) if again == refusal && !lost && took => {
            Ok(reported(Swept { frames: 1, refusal: Error::AccountExhausted }))
        }
        _ => Err(format!("{refusal:?}, then {again:?}; lost: {lost}, the table took the frame: {took}")),
    }
}

/// One page, and tables of all levels.
fn draw() -> Result<String, String> {
    let place = DRAWN + (1 << 39);
    twice(|purse| purse.sweep(0, || end_of(drawn(place)), || give_up(place))).map(reported)
}

/// More pages than their records fit in a page.
fn memory() -> Result<String, String> {
    const COUNT: u64 = 70;
    let places = || (0..COUNT).map(|page| DRAWN + page * PAGE);
    let attempt = || {
        let end = end_of(places().try_for_each(drawn));
        if !matches!(end, End::Done) {
            places().for_each(give_up);
        }
        end
    };
    twice(|purse| purse.sweep(0, attempt, || places().for_each(give_up))).map(reported)
}

/// These live in portal tables, which are there.
fn nothing() -> Result<String, String> {
    twice(|purse| {
        let attempt = || {
            let made = || -> Result<(), Error> {
                // SAFETY: nobody calls it.
                let service = Owned::new(unsafe { operation::service_new(layout::PROGRAM_START, 0)? });
                let portal = Owned::new(runtime::table::allocate()?);
                operation::portal_new(Entry::OWN, service.entry(), 1, portal.entry(), 0)?;
                drop(Owned::new(operation::entry_duplicate(Entry::ACCOUNT, rights::READ)?));
                Ok(())
            };
            made().into()
        };
        purse.sweep(0, attempt, || {})
    })
    .map(reported)
}

/// Starting a program has many steps, each with its undoing in another component; the last frames it needs are
/// those of its stack, without which it dies when it runs.
fn spawn() -> Result<String, String> {
    let contents = Contents { schedule: 0, name: "poor", streams: ["null", "null", "null"], compartments: &[] };
    let mut page = [0; PAGE_BYTES / 8];
    let used = startup::write(&mut page, &contents, ["poor"], [], []).map_err(|error| error.to_string())?;
    // All frames that are charged, and those that `proc` has or gave to its programs.
    let charged = || -> Result<(u64, Option<u64>), String> {
        let reported = |error: inspect::Refusal| error.to_string();
        let domains = inspect::domains().map_err(reported)?;
        let proc = domains.iter().find(|(name, _)| name == "proc").map(|(_, proc)| proc.charged);
        Ok((inspect::frames().map_err(reported)?.charged, proc))
    };
    let round = || -> Result<(u64, u64), String> {
        let mut refused = 0;
        for frames in 1..=MOST {
            let before = charged()?;
            let end = match PROC.spawn("/bin/true", &page[..used], frames, 0) {
                Err(Failure::Refused(ProcessError::TooSmall)) => None,
                Err(error) => return Err(format!("with {frames} frames: {error}")),
                Ok(process) => Some(Child::from(process).wait().map_err(|error| error.to_string())?),
            };
            if charged()? != before {
                return Err(format!("with {frames} frames: not all came back"));
            }
            match end {
                None if refused + 1 == frames => refused = frames,
                None => return Err(format!("with {frames} frames it is refused, with fewer it was not")),
                Some(info::status::NO_ROOM) => {}
                Some(0) => return Ok((refused, frames)),
                Some(status) => return Err(format!("with {frames} frames it ends with {status:#x}")),
            }
        }
        Err(format!("{MOST} frames do not suffice"))
    };
    // The first time the components that are part of it may grow.
    let _ = round();
    let before = left()?;
    let (refused, frames) = round()?;
    if refused == 0 {
        return Err("never refused".to_string());
    }
    let after = left()?;
    if before != after {
        return Err(format!("{before} frames are left for programs before, {after} afterwards"));
    }
    Ok(format!(
        "refused with 1 to {refused} frames: {}; died for want of a stack with fewer than {frames}; done with {frames}",
        idl::Code::text(ProcessError::TooSmall)
    ))
}

/// Frames that are left for programs: as many as can be given to programs that never run.
fn left() -> Result<u64, String> {
    /// Of one program. Suffices to load it.
    const SOME: u64 = 256;
    let contents = Contents { schedule: 0, name: "held", streams: ["entry", "null", "null"], compartments: &[] };
    let mut page = [0; PAGE_BYTES / 8];
    let used = startup::write(&mut page, &contents, ["held"], [], []).map_err(|error| error.to_string())?;
    let hold = |frames: u64| match PROC.spawn("/bin/true", &page[..used], frames, 0) {
        Err(Failure::Refused(ProcessError::NoMemory | ProcessError::TooSmall)) => Ok(None),
        outcome => outcome.map(|child| Some(Child::from(child))).map_err(|error| error.to_string()),
    };
    let mut held = Vec::new();
    while let Some(child) = hold(SOME)? {
        held.push(child);
    }
    // In place of the last one, the largest that there is room for.
    let end = |child: Child| child.end().map(drop).map_err(|error| error.to_string());
    held.pop().map_or(Ok(()), end)?;
    let (mut fits, mut too_many) = (SOME, 2 * SOME);
    while too_many - fits > 1 {
        let middle = (fits + too_many) / 2;
        match hold(middle)? {
            Some(child) => {
                end(child)?;
                fits = middle;
            }
            None => too_many = middle,
        }
    }
    let total = held.len() as u64 * SOME + fits;
    held.into_iter().try_for_each(end)?;
    Ok(total)
}

/// One file takes all the room that files have: it is refused more, and so is every other; removing it gives all back.
fn file() -> Result<String, String> {
    const PATH: &str = "/tmp/exhausted";
    const OTHER: &str = "/tmp/other";
    let room = || FILE_SYSTEM.room().map_err(|error| error.to_string());
    let fill = |path: &str| -> Result<Failure<FileError>, String> {
        let file = FILE_SYSTEM.create(path, WRITE | TRUNCATE).map_err(|error| error.to_string())?;
        let file = Owned::new(file.into());
        let client = FileClient(Direct(file.entry()));
        let mut offset = 0;
        loop {
            match client.write(offset, &[b'x'; 2048]) {
                Ok(count) => offset += count as u64,
                Err(error) => return Ok(error),
            }
        }
    };
    let clear = || [PATH, OTHER].into_iter().try_for_each(|path| FILE_SYSTEM.remove(path));
    // The first time directories and tables grow.
    let _ = (fill(PATH)?, fill(OTHER)?);
    clear().map_err(|error| error.to_string())?;
    let before = room()?.0;
    let refusals = [fill(PATH)?, fill(OTHER)?];
    let (used, limit) = room()?;
    clear().map_err(|error| error.to_string())?;
    let after = room()?.0;
    if refusals != [Failure::Refused(FileError::NoSpace); 2] || used != limit || after != before {
        return Err(format!("{refusals:?} with {used} of {limit} pages; {before} pages before, {after} afterwards"));
    }
    Ok(format!("refused when files have all their pages: {}; all back when it was removed", refusals[0]))
}

fn fault() {
    let Ok(poor) = Poor::new() else { return };
    // SAFETY: an address of the heap that nothing uses; the pager cannot bring a page.
    unsafe { core::ptr::write_volatile((layout::PROGRAM_END + 0x80_0000) as *mut u8, 1) };
    drop(poor);
}
