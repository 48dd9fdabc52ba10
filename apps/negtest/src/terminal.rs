//! Negative tests of programs that want the terminal for themselves. They find `console` by its name.

use alloc::format;
use alloc::string::{String, ToString};

use core::sync::atomic::{AtomicU64, Ordering};
use idl::{Delegate, Failure};
use protocols::console::{ConsoleClient, ConsoleError, Mode};
use runtime::abi::layout::FIRST_FREE;
use runtime::abi::rights;
use runtime::connection::{Connection, Direct, Name};
use runtime::entry::Owned;
use runtime::server::{self, ServeWord};
use runtime::thread::{self, Thread};
use runtime::{Entry, op};

use tool::command::Command;
use tool::println;

use crate::case::{Case, text};

/// All of them.
pub const ALL: &[Case] = &[
    Case::tried("terminal-reads", "waits with all threads for what is typed, and dies so", reads),
    Case::tried("terminal-kept", "keeps the terminal, for when others type there", keep),
    Case::tried("terminal-tells", "sets what terminals keep, and type to whoever asks", tells),
    Case::tried("terminal-take", "takes Ctrl-C, the mode and what is typed, with entries of all kinds", take),
];

static CONSOLE: ConsoleClient<Connection<Name<'static>>> = ConsoleClient(Connection::named("console"));

/// A program that the console would run as part of itself.
struct Ours;

impl ServeWord for Ours {
    fn serve(_: u64, _: [u64; 5]) -> u64 {
        loop {
            op::yield_now();
        }
    }
}

fn refused<T: PartialEq>(what: &str, outcome: Result<T, Failure<ConsoleError>>) -> Result<(), String> {
    match outcome {
        Err(Failure::Refused(ConsoleError::NotAllowed)) => Ok(()),
        Err(error) => Err(format!("{what}: {error}")),
        Ok(_) => Err(format!("{what}: not refused")),
    }
}

/// The entry that the shell had made as our input.
const INPUT: ConsoleClient<Direct> = ConsoleClient(Direct(Entry(FIRST_FREE)));
static REFUSED: AtomicU64 = AtomicU64::new(0);

fn read(_: usize) {
    if INPUT.read(&mut [0]) == Err(Failure::Refused(ConsoleError::TooManyWaits)) {
        REFUSED.fetch_add(1, Ordering::SeqCst);
    }
}

fn reads() -> Result<String, String> {
    const THREADS: u64 = 5;
    /// Reads that may wait.
    const WAIT: u64 = 2;
    const PAUSE: u64 = 5_000_000;
    refused("to read raw", INPUT.read_raw(&mut [0]))?;
    refused("raw", INPUT.set_mode(Mode::Raw))?;
    for _ in 0..THREADS {
        core::mem::forget(Thread::start(read, 0).map_err(text)?);
    }
    for _ in 0..1000 {
        thread::sleep(PAUSE).map_err(text)?;
        if REFUSED.load(Ordering::SeqCst) == THREADS - WAIT {
            break;
        }
    }
    match REFUSED.load(Ordering::SeqCst) {
        refused if refused == THREADS - WAIT => {
            Ok(format!("{WAIT} wait, {refused} are refused: {}", ConsoleError::TooManyWaits))
        }
        refused => Err(format!("{refused} of {THREADS} are refused")),
    }
}

/// A colour of the palette, a mode, and the saved position; the last is shown by the screen alone.
fn tells() -> Result<String, String> {
    println!("\x1b]4;1;rgb:41/42/43\x07\x1b[?2004h\x1b7\x1b[31mred\x1b[0m");
    Ok("written".into())
}

/// Hands its terminal to a program that is there longer.
fn keep() -> Result<String, String> {
    Command::new(&["negtest", "--terminal-kept"]).spawn().map_err(text)?;
    Ok("another has it".to_string())
}

/// That program, after the terminal has changed hands.
pub fn kept() -> u8 {
    let _ = thread::sleep(500_000_000);
    match refused("to read", INPUT.read(&mut [0])) {
        Ok(()) => println!("terminal-kept: it reads nothing any more"),
        Err(cause) => println!("terminal-kept: {cause}: that must not be"),
    }
    0
}

fn take() -> Result<String, String> {
    server::activations(1).map_err(text)?;
    let service = Owned::new(server::word_service::<Ours>().map_err(text)?);
    let semaphore = Owned::new(op::semaphore_new(Entry::OWN, 0).map_err(text)?);
    let entry = |entry: Entry| Delegate::entry(entry.0, rights::ALL);
    let entries = [
        ("a call entry", Delegate::mint(service.entry().0, 7)),
        ("a service", entry(service.entry())),
        ("a semaphore", entry(semaphore.entry())),
        ("a domain", entry(Entry::DOMAIN)),
    ];
    for (what, entry) in entries {
        refused(what, CONSOLE.set_interrupt_semaphore(entry))?;
        refused(what, CONSOLE.give(entry, 100))?;
    }
    refused("raw", CONSOLE.set_mode(Mode::Raw))?;
    refused("cooked", CONSOLE.set_mode(Mode::Cooked))?;
    refused("to read raw", CONSOLE.read_raw(&mut [0]))?;
    refused("to read", CONSOLE.read(&mut [0]))?;
    CONSOLE.write(b"").and(CONSOLE.flush()).map_err(|error| format!("to write: {error}"))?;
    Ok(format!("refused: {}", ConsoleError::NotAllowed))
}
