//! A service of our own, called through the generated stubs.

use alloc::vec;
use core::sync::atomic::{AtomicU64, Ordering};

use idl::{Answer, Delegate, Delegated, Failure, Protocol, Reply, Request, codes, interface};
use runtime::entry::Owned;
use runtime::server::{self, Serve, ServeWord};
use runtime::sync::Mutex;
use runtime::thread::{self, Thread};
use runtime::{Direct, Entry, message, op, table};

use abi::{Control, Error, MESSAGE_BYTES, NEVER, op as numbers, rights};

use crate::check::{Check, hold};
use crate::table::child::{Child, PLACE, Page, Program, operation};

pub const CHECKS: &[Check] = &[
    ("words arrive and come back", words),
    ("bytes arrive and come back", bytes),
    ("a nested call keeps the caller's bytes", nested),
    ("a method passes its caller's bytes on", passed_on),
    ("nothing of an earlier message stands after the bytes of a message, there and back", after_bytes),
    ("a minted entry carries its badge", minted),
    ("a delegated semaphore works on both sides", delegated),
    ("entries nobody asked for are removed", uninvited),
    ("a service of words answers", word_service),
    ("calls run side by side", concurrent),
    ("a wrong method is answered", protocol),
    ("a server that ends its thread is a dead peer", died),
    ("an entry and a page that a domain passed on go with it", passed_on_by_dead),
    ("no index is lost", indices),
];

codes! {
    /// Why not.
    pub enum TrialError {
        1 No "no"
    }
}

/// Something of everything.
#[interface]
pub trait Trial {
    /// Adds.
    fn add(&self, a: u64, b: u64, c: u64, d: u64) -> Result<u64, TrialError>;
    /// Reverses bytes.
    fn reverse(&self, bytes: &[u8], into: &mut [u8]) -> Result<usize, TrialError>;
    /// Makes another call with bytes, then says whether its own are still there.
    fn nest(&self, depth: u64, bytes: &[u8]) -> Result<bool, TrialError>;
    /// Passes its own bytes on, and its buffer for what comes back.
    fn pass_on(&self, first: &str, bytes: &[u8], into: &mut [u8]) -> Result<usize, TrialError>;
    /// A new entry to the same service.
    fn mint(&self, badge: u64) -> Result<Delegated, TrialError>;
    /// The badge it is called with.
    fn badge(&self) -> Result<u64, TrialError>;
    /// V on a semaphore.
    fn signal(&self, semaphore: Delegate) -> Result<(), TrialError>;
    /// Waits for others to come.
    fn meet(&self, others: u64) -> Result<(), TrialError>;
    /// Ends the server's thread.
    fn die(&self) -> Result<(), TrialError>;
}

struct Server;

impl Serve for Server {
    fn serve(request: &mut Request<'_>) -> Reply {
        Self.dispatch(request)
    }
}

static MET: AtomicU64 = AtomicU64::new(0);
static OPEN: Mutex<Option<(Entry, Entry)>> = Mutex::new(None);

impl TrialServer for Server {
    fn add(&self, _: u64, a: u64, b: u64, c: u64, d: u64) -> Result<u64, TrialError> {
        if d == 0 { Err(TrialError::No) } else { Ok(a + b + c + d) }
    }
    fn reverse(&self, _: u64, bytes: &[u8], into: &mut [u8]) -> Result<usize, TrialError> {
        let count = bytes.len().min(into.len());
        into.iter_mut().zip(bytes.iter().rev()).for_each(|(to, from)| *to = *from);
        Ok(count)
    }
    fn nest(&self, _: u64, depth: u64, bytes: &[u8]) -> Result<bool, TrialError> {
        let sum: u64 = bytes.iter().copied().map(u64::from).sum();
        // The nucleus writes into the area, nobody else does: the bytes must come back all the same.
        op::info(Entry::SPECIAL, abi::info::COUNTERS, 0, |_, _| ()).map_err(|_| TrialError::No)?;
        if sum != bytes.iter().copied().map(u64::from).sum() {
            return Ok(false);
        }
        runtime::log!("nested {depth} deep");
        let inner = match depth {
            0 => true,
            _ => {
                let inner = vec![depth as u8; bytes.len()];
                client().map_err(|_| TrialError::No)?.nest(depth - 1, &inner).map_err(|_| TrialError::No)?
            }
        };
        Ok(inner && sum == bytes.iter().copied().map(u64::from).sum())
    }
    fn pass_on(&self, _: u64, first: &str, bytes: &[u8], into: &mut [u8]) -> Result<usize, TrialError> {
        let count = client().map_err(|_| TrialError::No)?.reverse(bytes, into).map_err(|_| TrialError::No)?;
        if first == "first" { Ok(count) } else { Err(TrialError::No) }
    }
    fn mint(&self, _: u64, badge: u64) -> Result<Delegate, TrialError> {
        let (service, _) = open().map_err(|_| TrialError::No)?;
        Ok(Delegate::mint(service.0, badge))
    }
    fn badge(&self, badge: u64) -> Result<u64, TrialError> {
        Ok(badge)
    }
    fn signal(&self, _: u64, semaphore: Delegated) -> Result<(), TrialError> {
        let semaphore = Owned::new(semaphore.into());
        op::v(semaphore.entry()).map_err(|_| TrialError::No)
    }
    fn meet(&self, _: u64, others: u64) -> Result<(), TrialError> {
        MET.fetch_add(1, Ordering::SeqCst);
        let deadline = op::clock() + 2_000_000_000;
        while MET.load(Ordering::SeqCst) < others {
            thread::sleep(1_000_000).map_err(|_| TrialError::No)?;
            if op::clock() > deadline {
                return Err(TrialError::No);
            }
        }
        Ok(())
    }
    fn die(&self, _: u64) -> Result<(), TrialError> {
        op::exit(0)
    }
}

/// The service and a call entry to it, made when first needed.
fn open() -> Result<(Entry, Entry), Error> {
    let mut open = OPEN.lock();
    if let Some(entries) = *open {
        return Ok(entries);
    }
    server::activations(6)?;
    let service = server::service::<Server>()?;
    let portal = table::allocate()?;
    op::portal_new(Entry::OWN, service, 7, portal, 0)?;
    *open = Some((service, portal));
    Ok((service, portal))
}

fn client() -> Result<TrialClient<Direct>, &'static str> {
    open().map(|(_, portal)| TrialClient(Direct(portal))).map_err(|error| error.text())
}

fn say(failure: Failure<TrialError>) -> &'static str {
    match failure {
        Failure::Refused(error) => idl::Code::text(error),
        Failure::Transport(error) => error.text(),
        Failure::Protocol(error) => idl::Code::text(error),
    }
}

fn words() -> Result<(), &'static str> {
    let client = client()?;
    hold(client.add(1, 2, 3, 4).map_err(say)? == 10, "a wrong sum")?;
    hold(client.add(1, 2, 3, 0) == Err(Failure::Refused(TrialError::No)), "not refused")?;
    hold(client.badge().map_err(say)? == 7, "a wrong badge")
}

fn bytes() -> Result<(), &'static str> {
    let client = client()?;
    let mut into = [0; 5];
    hold(client.reverse(b"hello", &mut into).map_err(say)? == 5 && &into == b"olleh", "a small message")?;
    let big = vec![3; MESSAGE_BYTES / 2];
    let mut into = vec![0; MESSAGE_BYTES / 2];
    hold(client.reverse(&big, &mut into).map_err(say)? == big.len() && into == big, "a big message")
}

fn nested() -> Result<(), &'static str> {
    hold(client()?.nest(3, &[9; 1000]).map_err(say)?, "bytes changed under the method")
}

fn passed_on() -> Result<(), &'static str> {
    let mut into = [0; 6];
    let count = client()?.pass_on("first", b"second", &mut into).map_err(say)?;
    hold(count == 6 && &into == b"dnoces", "other bytes came back")
}

/// Answers with so many ones as word 0 says, as bytes, and with the first word of its message area.
struct Ones;

impl Serve for Ones {
    fn serve(request: &mut Request<'_>) -> Reply {
        let (first, count) = (first_word(request.area), request.words[0] as usize);
        request.area[..count].fill(1);
        Reply { words: [first, 0, 0, 0, 0], control: Control::bytes(count) }
    }
}

fn first_word(area: &[u8]) -> u64 {
    area.first_chunk().map_or(0, |word| u64::from_le_bytes(*word))
}

fn after_bytes() -> Result<(), &'static str> {
    open().map_err(|error| error.text())?;
    let service = Owned::new(server::service::<Ones>().map_err(|error| error.text())?);
    let portal = Owned::new(table::allocate().map_err(|error| error.text())?);
    op::portal_new(Entry::OWN, service.entry(), 0, portal.entry(), 0).map_err(|error| error.text())?;
    let ask = |sent: &[u8], count: usize| {
        let mut answer = Answer { words: [count as u64, 0, 0, 0, 0], control: Control(0) };
        let asked = message::call_bytes(portal.entry(), &mut answer, &[sent], &mut [0; 64]);
        asked.map(|()| answer.words[0]).map_err(|error| error.text())
    };
    for count in 1..8 {
        let ones = u64::from_le_bytes([1; 8]) >> (64 - 8 * count);
        ask(&[0x5a; 64], 0)?;
        hold(ask(&[1; 8][..count], 0)? == ones, "more than was sent arrives")?;
        ask(&[0x5a; 64], 0)?;
        ask(&[], count)?;
        hold(message::with_area(first_word) == ones, "more than was answered comes back")?;
    }
    Ok(())
}

fn minted() -> Result<(), &'static str> {
    for badge in [1, u64::MAX] {
        let entry = Owned::new(client()?.mint(badge).map_err(say)?.into());
        hold(TrialClient(Direct(entry.entry())).badge().map_err(say)? == badge, "a wrong badge")?;
    }
    Ok(())
}

fn delegated() -> Result<(), &'static str> {
    let semaphore = Owned::new(op::semaphore_new(Entry::OWN, 0).map_err(|error| error.text())?);
    for _ in 0..20 {
        let delegate = Delegate::entry(semaphore.entry().0, rights::WRITE);
        client()?.signal(delegate).map_err(say)?;
        op::p(semaphore.entry(), 0).map_err(|error| error.text())?;
    }
    Ok(())
}

fn uninvited() -> Result<(), &'static str> {
    let (_, portal) = open().map_err(|error| error.text())?;
    let semaphore = Owned::new(op::semaphore_new(Entry::OWN, 0).map_err(|error| error.text())?);
    let control = Delegate::entry(semaphore.entry().0, rights::WRITE).control();
    for _ in 0..20 {
        let (words, _) =
            runtime::message::call(portal, [TrialClient::BADGE, 0, 0, 0, 0], control).map_err(|error| error.text())?;
        hold(words[0] == 0, "it disturbs the call")?;
    }
    Ok(())
}

fn word_service() -> Result<(), &'static str> {
    struct Sum;
    impl ServeWord for Sum {
        fn serve(badge: u64, words: [u64; 5]) -> u64 {
            words.iter().sum::<u64>() + badge
        }
    }
    let text = |error: Error| error.text();
    open().map_err(text)?;
    let service = Owned::new(server::word_service::<Sum>().map_err(text)?);
    let portal = Owned::new(table::allocate().map_err(text)?);
    op::portal_new(Entry::OWN, service.entry(), 100, portal.entry(), 0).map_err(text)?;
    let words = runtime::message::call(portal.entry(), [1, 2, 3, 4, 5], abi::Control(0)).map_err(text)?.0;
    hold(words == [115, 0, 0, 0, 0], "a wrong answer")?;
    let semaphore = Owned::new(op::semaphore_new(Entry::OWN, 0).map_err(text)?);
    let control = Delegate::entry(semaphore.entry().0, rights::WRITE).control();
    for _ in 0..20 {
        let words = runtime::message::call(portal.entry(), [1, 0, 0, 0, 0], control).map_err(text)?.0;
        hold(words[0] == 101, "a wrong answer to a call with an entry")?;
    }
    Ok(())
}

fn concurrent() -> Result<(), &'static str> {
    MET.store(0, Ordering::SeqCst);
    static FAILED: AtomicU64 = AtomicU64::new(0);
    let start = || {
        Thread::start(
            |_| {
                if client().map_or(true, |client| client.meet(3).is_err()) {
                    FAILED.fetch_add(1, Ordering::SeqCst);
                }
            },
            0,
        )
    };
    let threads = [start(), start(), start()];
    for thread in threads {
        thread.map_err(|error| error.text())?.join();
    }
    hold(FAILED.load(Ordering::SeqCst) == 0, "they did not meet")
}

fn protocol() -> Result<(), &'static str> {
    let (_, portal) = open().map_err(|error| error.text())?;
    let word = |word| runtime::message::call(portal, [word, 0, 0, 0, 0], abi::Control(0)).map(|(words, _)| words[0]);
    hold(word(TrialClient::DIE + 1) == Ok(Protocol::UnknownMethod as u64), "an unknown method")?;
    hold(word(TrialClient::ADD + 64) == Ok(Protocol::WrongInterface as u64), "a method of another interface")?;
    hold(word(TrialClient::REVERSE | 5 << 16) == Ok(Protocol::BadLength as u64), "bytes that did not come")?;
    hold(word(TrialClient::SIGNAL) == Ok(Protocol::NoDelegation as u64), "a semaphore that did not come")
}

fn died() -> Result<(), &'static str> {
    let died = client()?.die();
    hold(died == Err(Failure::Transport(Error::PeerDied)), "not a dead peer")?;
    hold(client()?.badge().map_err(say)? == 7, "the service does not go on")
}

/// A domain gets an entry and a page of ours, and passes them on: the entry to us, the page to another domain.
fn passed_on_by_dead() -> Result<(), &'static str> {
    static SHOWN: Page = Page::new();
    static STEPS: Page = Page::new();
    static OTHER: Page = Page::new();
    let semaphore = Owned::new(op::semaphore_new(Entry::OWN, 0).map_err(Error::text)?);
    let giver = Child::new(Entry::OWN, 0, NEVER).map_err(Error::text)?;
    let receiver = Child::new(Entry::OWN, 0, NEVER).map_err(Error::text)?;
    let given = giver.give(semaphore.entry()).map_err(Error::text)?;
    let back = Owned::new(table::allocate().map_err(Error::text)?);
    op::entry_copy(giver.domain.entry(), given, Entry::OWN, back.entry(), rights::ALL).map_err(Error::text)?;
    let to = giver.give(receiver.domain.entry()).map_err(Error::text)?.0 as u64;
    giver.show(&SHOWN, 0, false).map_err(Error::text)?;
    giver.show(&STEPS, 1, false).map_err(Error::text)?;
    STEPS.set_steps(0, &[operation(numbers::MAP, [to, PLACE, PLACE, 0, rights::MAP_READ, 0])]);
    let thread = giver.start(Program::Steps(0)).map_err(Error::text)?;
    giver.dies()?;
    hold(receiver.has(PLACE, &OTHER) == Ok(true), "the page does not come")?;
    hold(op::v(back.entry()).is_ok(), "the entry does not come")?;
    drop(thread);
    drop(giver);
    hold(receiver.has(PLACE, &OTHER) == Ok(false), "the page stays")?;
    hold(op::v(back.entry()) == Err(Error::Revoked), "the entry stays")?;
    hold(op::p(semaphore.entry(), 0).is_ok(), "the semaphore goes, too")
}

/// Threads that entries came to, that are ready for another one, and that end.
fn in_threads() -> Result<(), &'static str> {
    static HELD: AtomicU64 = AtomicU64::new(0);
    HELD.store(0, Ordering::SeqCst);
    for _ in 0..4 {
        let thread = Thread::start(
            |_| {
                let is_ready = minted().is_ok() && runtime::message::prepare_receive().is_ok();
                HELD.fetch_add(is_ready.into(), Ordering::SeqCst);
            },
            0,
        );
        thread.map_err(|_| "no thread")?.join();
    }
    hold(HELD.load(Ordering::SeqCst) == 4, "an entry did not come to a thread")
}

fn indices() -> Result<(), &'static str> {
    // The objects of each activation (its receive index, its own semaphore) exist by now.
    let free = || {
        let mut entries = [const { None }; 1024];
        for place in &mut entries {
            *place = table::allocate().ok();
        }
        // The lowest that are free, always.
        let indices = entries.iter().flatten().map(|entry| entry.0).sum::<usize>();
        entries.into_iter().flatten().for_each(table::free);
        indices
    };
    // Nor what a thread keeps for those that come after it.
    in_threads()?;
    let before = free();
    for check in [minted, delegated, uninvited, word_service, in_threads] {
        check()?;
    }
    hold(free() == before, "indices went missing")
}
