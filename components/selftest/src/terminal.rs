//! The terminal: its clients' rights, and its input.

use core::sync::atomic::{AtomicU64, Ordering};

use idl::{Delegate, Failure};
use protocols::console::{ConsoleClient, ConsoleError, Mode};
use runtime::connection::{Name, Source};
use runtime::entry::Owned;
use runtime::server::{self, ServeWord};
use runtime::{Direct, Entry, op, program, thread};

use abi::rights;

use crate::check::{Check, hold};
use crate::services::say;

pub const CHECKS: &[Check] = &[
    ("the console takes what it is given only if it is of the right kind and has the right", console),
    ("an entry that the console gives may write, read lines and keys, and give, nothing else", given),
];

/// How often, and at what intervals in nanoseconds, it is looked whether reads wait.
const PATIENCE: usize = 200;
const PAUSE: u64 = 5_000_000;

struct Nobody;

impl ServeWord for Nobody {
    fn serve(_: u64, _: [u64; 5]) -> u64 {
        0
    }
}

type Terminal = ConsoleClient<Direct>;

/// By the description, and by its name.
fn terminals() -> Result<(Terminal, Terminal, Owned), &'static str> {
    let portal = program::portal("console").ok_or("no portal")?;
    let name = Owned::new(Name("console").open().map_err(|error| error.text())?);
    Ok((ConsoleClient(Direct(portal)), ConsoleClient(Direct(name.entry())), name))
}

fn new_semaphore() -> Result<Owned, &'static str> {
    op::semaphore_new(Entry::ACCOUNT, 0).map(Owned::new).map_err(|error| error.text())
}

/// Other entries refuse the requests that only a portal of the description may make.
fn only_writes(terminal: &Terminal) -> Result<(), &'static str> {
    let refused = Failure::Refused(ConsoleError::NotAllowed);
    let semaphore = new_semaphore()?;
    let given = Delegate::entry(semaphore.entry().0, rights::ALL);
    hold(terminal.set_interrupt_semaphore(given) == Err(refused), "it takes a semaphore of anybody")?;
    for mode in [Mode::Raw, Mode::Cooked] {
        hold(terminal.set_mode(mode) == Err(refused), "anybody sets the mode")?;
    }
    hold(terminal.read_raw(&mut [0]) == Err(refused), "anybody reads raw")?;
    hold(terminal.write(b"").is_ok() && terminal.flush().is_ok(), "it does not write")
}

fn console() -> Result<(), &'static str> {
    let (terminal, by_name, _name) = terminals()?;
    only_writes(&by_name)?;
    let domain = Delegate::entry(Entry::DOMAIN.0, rights::ALL);
    hold(by_name.give(domain, GIVEN) == Err(Failure::Refused(ConsoleError::NotAllowed)), "anybody gives")?;
    hold(by_name.read_keys(&mut []) == Err(Failure::Refused(ConsoleError::NotAllowed)), "anybody reads keys")?;
    hold(by_name.read(&mut [0]) == Err(Failure::Refused(ConsoleError::NotAllowed)), "anybody reads")?;
    let service = Owned::new(server::word_service::<Nobody>().map_err(|error| error.text())?);
    let semaphore = new_semaphore()?;
    let own = semaphore.entry().0;
    let give = |index, rights| terminal.set_interrupt_semaphore(Delegate::entry(index, rights));
    let refused = Err(Failure::Refused(ConsoleError::NotASemaphore));
    // It would call a call entry instead of raising it.
    hold(terminal.set_interrupt_semaphore(Delegate::mint(service.entry().0, 7)) == refused, "a call entry")?;
    for index in [service.entry().0, Entry::DOMAIN.0, Entry::ACCOUNT.0] {
        hold(give(index, rights::ALL) == refused, "another kind")?;
    }
    hold(give(own, rights::ALL & !rights::WRITE) == refused, "a semaphore that may not be raised")?;
    hold(give(own, rights::COPY | rights::WRITE) == Ok(()), "a semaphore")?;
    let refused = Err(Failure::Refused(ConsoleError::NotADomain));
    for (index, rights) in
        [(own, rights::ALL), (Entry::ACCOUNT.0, rights::ALL), (Entry::DOMAIN.0, rights::ALL & !rights::WRITE)]
    {
        hold(terminal.give(Delegate::entry(index, rights), GIVEN) == refused, "no domain")?;
    }
    hold(terminal.give(Delegate::entry(Entry::DOMAIN.0, rights::ALL), 1 << 20) == refused, "no index")
}

/// An index of our table that is free: far behind those in use.
const GIVEN: u64 = 2_000;
/// Another one.
const HANDED_ON: u64 = 2_001;

fn given() -> Result<(), &'static str> {
    let (terminal, ..) = terminals()?;
    // A program that is given the terminal has it until the mode is set.
    let take = |mode| {
        terminal.set_mode(mode).map_err(say)?;
        terminal.give(Delegate::entry(Entry::DOMAIN.0, rights::ALL), GIVEN).map_err(say)?;
        let given = Owned::new(Entry(GIVEN as usize));
        let entry = ConsoleClient(Direct(given.entry()));
        only_writes(&entry).map(|()| (given, entry))
    };
    let interrupted = Err(Failure::Refused(ConsoleError::Interrupted));
    let refused = Err(Failure::Refused(ConsoleError::NotAllowed));
    let (given, entry) = take(Mode::Raw)?;
    // While the terminal is raw, input is for the domain that made it so.
    hold(entry.read(&mut [0]) == interrupted, "it reads what is typed to others")?;
    hold(entry.read_keys(&mut []) == interrupted, "it reads keys that are for others")?;
    terminal.set_mode(Mode::Cooked).map_err(say)?;
    hold(entry.read(&mut [0]) == refused, "it reads when the terminal has changed hands")?;
    hold(entry.read_keys(&mut []) == refused, "it reads keys when the terminal has changed hands")?;
    let own = || Delegate::entry(Entry::DOMAIN.0, rights::ALL);
    hold(entry.give(own(), HANDED_ON) == Err(Failure::Refused(ConsoleError::NotAllowed)), "it gives what it has not")?;
    only_writes(&entry)?;
    drop(given);
    let (given, entry) = take(Mode::Cooked)?;
    // A reader of keys takes the terminal from a reader of lines, until the mode is set.
    hold(entry.read_keys(&mut []) == Ok(0), "it reads no keys")?;
    hold(entry.read(&mut [0]) == interrupted, "lines come while keys are read")?;
    drop(given);
    let (_given, entry) = take(Mode::Cooked)?;
    entry.give(own(), HANDED_ON).map_err(say)?;
    let handed_on = Owned::new(Entry(HANDED_ON as usize));
    only_writes(&ConsoleClient(Direct(handed_on.entry())))?;
    // Of three reads one too many is refused. Those that wait come back when the mode is set. However many wait, the owner is served.
    let reads: [_; 3] = core::array::from_fn(|_| thread::Thread::start(read_given, 0));
    for _ in 0..PATIENCE {
        let _ = thread::sleep(PAUSE);
        if TOO_MANY.load(Ordering::SeqCst) == 1 {
            break;
        }
    }
    hold(
        TOO_MANY.load(Ordering::SeqCst) == 1 && INTERRUPTED.load(Ordering::SeqCst) == 0,
        "more than two wait, or fewer",
    )?;
    terminal.set_mode(Mode::Cooked).map_err(say)?;
    reads.into_iter().flatten().for_each(thread::Thread::join);
    hold(INTERRUPTED.load(Ordering::SeqCst) == 2, "not all came back as interrupted")
}

/// Reads that were refused as too many, and that were interrupted.
static TOO_MANY: AtomicU64 = AtomicU64::new(0);
static INTERRUPTED: AtomicU64 = AtomicU64::new(0);

fn read_given(_: usize) {
    let ended = match ConsoleClient(Direct(Entry(GIVEN as usize))).read(&mut [0]) {
        Err(Failure::Refused(ConsoleError::TooManyWaits)) => &TOO_MANY,
        Err(Failure::Refused(ConsoleError::Interrupted)) => &INTERRUPTED,
        _ => return,
    };
    ended.fetch_add(1, Ordering::SeqCst);
}
