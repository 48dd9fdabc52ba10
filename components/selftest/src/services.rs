//! The system's services, through the runtime's connections and streams.

use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;

use idl::{AllWords, Code, Delegate, Failure, Protocol, codes, interface};
use loader::startup::{Contents, write};
use protocols::file::{FileClient, FileError, FileSystemClient, Kind, TRUNCATE};
use protocols::listing::Listing;
use protocols::names::{NamesClient, NamesError};
use protocols::parent::{ParentClient, ParentError};
use protocols::pipes::PipeError;
use protocols::process::{Force, ProcessClient, ProcessError};
use protocols::sigma0::{Sigma0Client, Sigma0Error};
use protocols::stream::StreamError;
use protocols::vault::VaultError;
use runtime::child::Child;
use runtime::connection::Given;
use runtime::entry::Owned;
use runtime::pipes::{self, PIPES};
use runtime::server::{self, ServeAllWords, ServeShort, ServeWord};
use runtime::stream::{FILE_SYSTEM, Stream};
use runtime::vault::{self, ContentError, MAX_KEY};
use runtime::window::{self, Page};
use runtime::{Connection, Direct, Entry, message, op, table, thread};

use core::sync::atomic::{AtomicUsize, Ordering};

use abi::info::{self, Record};
use abi::window::MAX_PAGES;
use abi::{Control, Error, PAGE_BYTES, rights};

use crate::check::{Check, hold};

pub const CHECKS: &[Check] = &[
    ("names lists what is published", names),
    ("a file is made, written, read, renamed and removed", file),
    ("pages go to a file and come from it in windows, sixteen at once, and what is beside them in messages", paged),
    ("a file's errors arrive", errors),
    ("a path may have empty parts, and go up and nowhere", dotted),
    ("a file that was opened for reading is not written", read_only),
    ("a name belongs to its publisher", taken),
    ("names gives shapes, and portals of them work", shaped),
    ("an interface of words passes words, and nothing else", words),
    ("more callers than activations each get their own answer, whatever the portal", crowd),
    ("memory is drawn for nobody else, and never writable and executable", drawing),
    ("values and records are kept in a vault until it is full", kept),
    ("memory that the account has not is refused, and what was reserved is there", refused_memory),
    ("a component that does not come back is ended only by force", essential),
    ("calls go as deep as they may without floating point, too", crate::limits::depth),
    ("a pipe carries bytes and ends", pipe),
    ("pages go through a pipe by window, and meet bytes that come in messages", pages_through_a_pipe),
    ("streams append to a file and read it", streams),
    ("a program runs and its status arrives", program),
    ("a program that does not exist is refused", no_program),
    ("a server that was killed is reached again", killed),
    ("a client learns once that a killed server lost its state", forgotten),
];

/// How often, and at what intervals in nanoseconds, what may still be starting is looked for.
const PATIENCE: usize = 200;
const PAUSE: u64 = 5_000_000;

pub fn say<E: Code>(failure: Failure<E>) -> &'static str {
    match failure {
        Failure::Refused(error) => error.text(),
        Failure::Transport(error) => error.text(),
        Failure::Protocol(error) => error.text(),
    }
}

fn dotted() -> Result<(), &'static str> {
    let files = files();
    for path in
        ["/etc/motd", "//etc//motd", "/./etc/./motd", "/etc/../etc/motd", "/nothing/../etc/motd", "/../etc/motd"]
    {
        hold(files.stat(path).map_err(say)?.kind == Kind::File, "it is no file")?;
        drop(Owned::new(files.open(path, 0).map_err(say)?.into()));
    }
    hold(files.stat("/etc/.").map_err(say)?.kind == Kind::Directory, "it is no directory")?;
    hold(files.open("/etc/nothing/..", 0).err() == Some(Failure::Refused(FileError::IsADirectory)), "it is a file")?;
    files.make_directory("/tmp/nothing/../dots/.").map_err(say)?;
    let again = files.make_directory("/tmp/./dots");
    hold(again == Err(Failure::Refused(FileError::Exists)), "it is not where it was made")?;
    for name in ["/tmp/dots/..", "/tmp/dots/../.."] {
        hold(files.make_directory(name) == Err(Failure::Refused(FileError::Exists)), "the parent is not there")?;
    }
    hold(files.create("/tmp/dots/x/../..", 0).err() == Some(Failure::Refused(FileError::IsADirectory)), "it is made")?;
    let mut bytes = [0; 64];
    let (count, _) = files.read_directory("/tmp/dots", 0, &mut bytes).map_err(say)?;
    hold(count == 0, "something was made in it")?;
    files.remove("/tmp/dots/../dots/.").map_err(say)?;
    hold(files.stat("/tmp/dots").err() == Some(Failure::Refused(FileError::NotFound)), "it is still there")
}

fn names() -> Result<(), &'static str> {
    // With several CPUs we may run before the others have published what they serve.
    let mut verdict = Ok(());
    for _ in 0..PATIENCE {
        verdict = names_now();
        if verdict.is_ok() {
            break;
        }
        thread::sleep(PAUSE).map_err(|error| error.text())?;
    }
    verdict
}

fn names_now() -> Result<(), &'static str> {
    let mut bytes = [0; 1024];
    let (count, next) = NamesClient(Direct(Entry::NAMES)).list(0, &mut bytes).map_err(say)?;
    let names: Vec<&[u8]> = Listing(&bytes[..count]).map(|record| record.name).collect();
    hold(next == 0, "the list goes on")?;
    hold(["ramfs", "pipes", "console", "proc"].iter().all(|name| names.contains(&name.as_bytes())), "one is missing")
}

fn files() -> &'static FileSystemClient<Connection<runtime::connection::Name<'static>>> {
    &FILE_SYSTEM
}

fn file() -> Result<(), &'static str> {
    let opened = Owned::new(files().create("/tmp/selftest", TRUNCATE).map_err(say)?.into());
    let file = FileClient(Direct(opened.entry()));
    let bytes: Vec<u8> = (0..4096u32).map(|number| (number % 251) as u8).collect();
    for page in 0..3 {
        hold(file.write(page * 4096, &bytes).map_err(say)? == 4096, "a short write")?;
    }
    let mut back = vec![0; 4096];
    for page in 0..3 {
        hold(file.read(page * 4096, &mut back).map_err(say)? == 4096, "a short read")?;
        hold(back == bytes, "other bytes")?;
    }
    hold(file.read(3 * 4096, &mut back).map_err(say)? == 0, "no end")?;
    let stat = files().stat("/tmp/selftest").map_err(say)?;
    hold(stat.size == 3 * 4096 && stat.kind == Kind::File, "a wrong size or kind")?;
    files().rename("/tmp/selftest", "/tmp/renamed").map_err(say)?;
    files().remove("/tmp/renamed").map_err(say)?;
    let stale = || file.stat() == Err(Failure::Refused(FileError::Stale));
    hold(stale(), "a removed file goes on")?;
    let next = Owned::new(files().create("/tmp/next", TRUNCATE).map_err(say)?.into());
    hold(stale(), "a removed file is the next one")?;
    drop(next);
    files().remove("/tmp/next").map_err(say)
}

static CONSTANT: [Page; 2] = [Page([7; PAGE_BYTES]), Page([8; PAGE_BYTES])];

fn paged() -> Result<(), &'static str> {
    const PATH: &str = "/tmp/paged";
    let opened = Owned::new(files().create(PATH, TRUNCATE).map_err(say)?.into());
    let file = FileClient(Direct(opened.entry()));
    let mut pages = vec![Page::ZERO; 20];
    Page::bytes_mut(&mut pages).iter_mut().enumerate().for_each(|(at, byte)| *byte = (at % 251) as u8);
    let bytes = Page::bytes(&pages);
    let most = MAX_PAGES * PAGE_BYTES;
    hold(file.write(0, bytes) == Ok(most), "as much as a call can show is not written at once")?;
    let mut room = vec![Page([0xff; PAGE_BYTES]); 20];
    hold(file.read(5, Page::bytes_mut(&mut room)) == Ok(most - 5), "it is not read at once")?;
    let back = Page::bytes(&room);
    hold(back[..most - 5] == bytes[5..most], "other bytes")?;
    hold(back[most - 5..].iter().all(|byte| *byte == 0xff), "more than there are")?;
    for (start, offset) in [(0, 3), (100, 0), (4095, 4097)] {
        let from = &bytes[start..];
        let mut done = 0;
        while done < from.len() {
            done += file.write((offset + done) as u64, &from[done..]).map_err(say)?;
        }
        room.fill(Page([0xff; PAGE_BYTES]));
        let back = &mut Page::bytes_mut(&mut room)[start..];
        let mut done = 0;
        while done < back.len() {
            done += match file.read((offset + done) as u64, &mut back[done..]).map_err(say)? {
                0 => return Err("an early end"),
                count => count,
            };
        }
        hold(*back == *from, "other bytes, piece by piece")?;
        hold(room[0].0[..start].iter().all(|byte| *byte == 0xff), "bytes before them were written")?;
    }
    hold(file.write(0, Page::bytes(&CONSTANT)) == Ok(2 * PAGE_BYTES), "memory that cannot be written")?;
    file.truncate(PAGE_BYTES as u64 / 2).map_err(say)?;
    file.truncate(3 * PAGE_BYTES as u64).map_err(say)?;
    hold(file.read(0, Page::bytes_mut(&mut room)) == Ok(3 * PAGE_BYTES), "a file with a hole")?;
    let (begin, rest) = Page::bytes(&room[..3]).split_at(PAGE_BYTES / 2);
    hold(begin.iter().all(|byte| *byte == 7) && rest.iter().all(|byte| *byte == 0), "a hole is not zeros")?;
    let tree = files().0.entry().map_err(Error::text)?;
    let refused = window::call_reading(tree, [FileSystemClient::ROOM, 0, 0, 0], &pages[..1]);
    hold(refused == Err(Error::BadControl), "a tree takes a window")?;
    let words = window::call_reading(opened.entry(), [FileClient::STAT, 0, 0, 0], &pages[..1]).map_err(Error::text)?;
    hold(words[0] == Protocol::BadWindow.code(), "a method takes a window that it does not know")?;
    let words = window::call_reading(opened.entry(), [FileClient::READ, 0, 0, 0], &pages[..1]).map_err(Error::text)?;
    hold(words[0] == Protocol::BadWindow.code(), "a window that may only be read is written")?;
    files().remove(PATH).map_err(say)
}

fn errors() -> Result<(), &'static str> {
    let refused = |result: Result<_, _>, error| result == Err(Failure::Refused(error));
    hold(refused(files().stat("/nowhere"), FileError::NotFound), "a file that does not exist")?;
    hold(refused(files().stat("/etc/nowhere/x"), FileError::NotFound), "a folder that does not exist")?;
    let made = files().make_directory("/etc");
    hold(made == Err(Failure::Refused(FileError::Exists)), "a folder that exists")
}

fn read_only() -> Result<(), &'static str> {
    let motd = || files().open("/etc/motd", 0);
    let file = FileClient(Direct(Owned::new(motd().map_err(say)?.into()).leak()));
    let refused = Err(Failure::Refused(FileError::ReadOnly));
    hold(file.write(0, b"x") == refused, "it was written")?;
    hold(file.truncate(0) == refused.map(drop), "it was cut")?;
    let mut byte = [0];
    hold(file.read(0, &mut byte) == Ok(1) && byte != *b"x", "it has changed")?;
    drop(Owned::new(file.0.0));
    Ok(())
}

/// A service that nobody calls.
struct Nobody;

impl ServeWord for Nobody {
    fn serve(_: u64, _: [u64; 5]) -> u64 {
        0
    }
}

/// Adds its words to its badge.
struct Adds;

impl ServeShort for Adds {
    fn serve(badge: u64, word1: u64, word2: u64, word3: u64) -> u64 {
        badge + 10 * word1 + 100 * word2 + 1_000 * word3
    }
}

fn shaped() -> Result<(), &'static str> {
    let names = NamesClient(Direct(Entry::NAMES));
    for (specification, reason) in [
        ("", "letter 1: the first letter is n "),
        ("npz", "letter 3: there is no such letter"),
        ("np>c", "letter 4: a return passes no constant"),
        ("smciii>i", "letter 1: shared stacks are not made"),
        ("nmciii>i", "m needs trust, and o is only for"),
    ] {
        let refused = names.shape(specification).err() == Some(Failure::Refused(NamesError::BadSpecification));
        hold(refused, "a bad specification is accepted")?;
        let line = alloc::format!("no shape of {specification}: {reason}");
        hold(log()?.contains(&line), "the log does not say what is wrong with a specification")?;
    }
    for specification in ["npkx2>x2", "npciii>i", "npciii>i"] {
        drop(server::shape(specification).map_err(say)?);
    }
    for number in 0..2 * abi::MAX_SHAPES {
        let letters = (0..6).map(|bit| if number >> bit & 1 == 0 { 'i' } else { 't' });
        drop(server::shape(&"np>".chars().chain(letters).collect::<String>()).map_err(say)?);
    }
    server::activations(1).map_err(|error| error.text())?;
    let service = Owned::new(server::short_service::<Adds>().map_err(say)?);
    let portal = Owned::new(table::allocate().map_err(|error| error.text())?);
    op::portal_new(Entry::OWN, service.entry(), 5, portal.entry(), 0).map_err(|error| error.text())?;
    hold(message::call_short(portal.entry(), [1, 2, 3]) == Ok(3_215), "another sum")?;
    drop(service);
    hold(message::call_short(portal.entry(), [1, 2, 3]) == Err(abi::Error::Revoked), "it goes on")?;
    // The portal manager is another one: its entries are gone.
    proc().kill_domain(domain("names")?, Force::Gentle).map_err(say)?;
    drop(server::short_service::<Adds>().map(Owned::new).map_err(say)?);
    drop(server::short_service::<Adds>().map(Owned::new).map_err(say)?);
    Ok(())
}

codes! {
    /// Why there is no answer.
    pub enum BlockError {
        1 Odd "an odd number"
    }
}

/// Eight words.
#[interface(words)]
pub trait Block {
    /// Gives them back, each more by the badge.
    fn add(&self, block: [u64; 8]) -> Result<[u64; 8], BlockError>;
    /// Gives half of it.
    fn half(&self, number: u64) -> Result<u64, BlockError>;
}

struct Blocks;

impl ServeAllWords for Blocks {
    fn serve(badge: u64, words: &AllWords) -> AllWords {
        Self.dispatch(badge, words)
    }
}

impl BlockServer for Blocks {
    fn add(&self, badge: u64, block: [u64; 8]) -> Result<[u64; 8], BlockError> {
        Ok(block.map(|word| word + badge))
    }
    fn half(&self, _: u64, number: u64) -> Result<u64, BlockError> {
        if number % 2 == 1 { Err(BlockError::Odd) } else { Ok(number / 2) }
    }
}

fn words() -> Result<(), &'static str> {
    server::activations(1).map_err(|error| error.text())?;
    let service = Owned::new(server::all_words_service::<Blocks>().map_err(say)?);
    let portal = Owned::new(table::allocate().map_err(|error| error.text())?);
    op::portal_new(Entry::OWN, service.entry(), 5, portal.entry(), 0).map_err(|error| error.text())?;
    let client = BlockClient(Direct(portal.entry()));
    hold(client.add([10, 20, 30, 40, 50, 60, 70, 80]) == Ok([15, 25, 35, 45, 55, 65, 75, 85]), "other words")?;
    hold(client.half(12) == Ok(6), "another half")?;
    hold(client.half(13) == Err(Failure::Refused(BlockError::Odd)), "an odd number has a half")?;
    let unknown = Ok([Protocol::WrongInterface.code(), 0, 0, 0, 0, 0, 0, 0, 0]);
    hold(message::call_all_words(portal.entry(), [3; 9]) == unknown, "a method of no interface")?;
    // A client that takes it for an interface of messages, or of short calls, is refused.
    let message = |control| message::call(portal.entry(), [BlockClient::HALF, 12, 7, 7, 7], control);
    hold(message(Control(0)) == Err(Error::BadControl), "a message is called")?;
    let control = Control::bytes(64).delegate(Entry::OWN.0, rights::ALL);
    hold(message(control) == Err(Error::BadControl), "a message with all that it can have is called")?;
    hold(
        message::call_short(portal.entry(), [BlockClient::HALF, 12, 7]) == Err(Error::BadControl),
        "a short call is made",
    )?;
    hold(client.half(12) == Ok(6), "it does not go on")?;
    drop(service);
    hold(client.half(12) == Err(Failure::Transport(abi::Error::Revoked)), "it goes on")
}

/// Lets others come before it answers.
struct Patient;

impl ServeShort for Patient {
    fn serve(badge: u64, word1: u64, word2: u64, word3: u64) -> u64 {
        let _ = thread::sleep(SHORTLY);
        badge + word1 + 1_000 * word2 + 1_000_000 * word3
    }
}

impl ServeAllWords for Patient {
    fn serve(badge: u64, words: &AllWords) -> AllWords {
        let _ = thread::sleep(SHORTLY);
        words.map(|word| word + badge)
    }
}

/// Nanoseconds.
const SHORTLY: u64 = 50_000;
/// Threads that call at once, and calls of each.
const CALLERS: usize = 24;
const CALLS: u64 = 20;
/// The portals, how many have ended, and how many answers were others.
static PORTALS: [AtomicUsize; 2] = [const { AtomicUsize::new(0) }; 2];
static ENDED: AtomicUsize = AtomicUsize::new(0);
static OTHERS: AtomicUsize = AtomicUsize::new(0);

fn caller(number: usize) {
    let [short, words] = [0, 1].map(|place| Entry(PORTALS[place].load(Ordering::Relaxed)));
    for round in 0..CALLS {
        let own = number as u64;
        let sum = message::call_short(short, [own, round, own + round]);
        let all = [own, round, 3, 4, 5, 6, 7, 8, own * round];
        let back = message::call_all_words(words, all);
        if sum != Ok(5 + own + 1_000 * round + 1_000_000 * (own + round)) || back != Ok(all.map(|word| word + 5)) {
            OTHERS.fetch_add(1, Ordering::Relaxed);
        }
    }
    ENDED.fetch_add(1, Ordering::Relaxed);
}

fn crowd() -> Result<(), &'static str> {
    server::activations(2).map_err(|error| error.text())?;
    let short = Owned::new(server::short_service::<Patient>().map_err(say)?);
    let words = Owned::new(server::all_words_service::<Patient>().map_err(say)?);
    let mut portals = Vec::new();
    for (place, service) in PORTALS.iter().zip([&short, &words]) {
        let portal = Owned::new(table::allocate().map_err(|error| error.text())?);
        op::portal_new(Entry::OWN, service.entry(), 5, portal.entry(), 0).map_err(|error| error.text())?;
        place.store(portal.entry().0, Ordering::Relaxed);
        portals.push(portal);
    }
    let mut callers = Vec::new();
    for number in 0..CALLERS {
        callers.push(thread::Thread::start(caller, number).map_err(|error| error.text())?);
    }
    callers.into_iter().for_each(thread::Thread::join);
    hold(ENDED.load(Ordering::Relaxed) == CALLERS, "a caller did not come back")?;
    hold(OTHERS.load(Ordering::Relaxed) == 0, "somebody got another answer")
}

fn taken() -> Result<(), &'static str> {
    let service = Owned::new(server::word_service::<Nobody>().map_err(|error| error.text())?);
    let delegate = || Delegate::entry(service.entry().0, server::SERVICE_RIGHTS);
    // As ourselves, and with the badge of clients that open it by its name.
    let names = NamesClient(Direct(Entry::NAMES));
    let opened = Owned::new(names.open("names").map_err(say)?.into());
    for names in [names, NamesClient(Direct(opened.entry()))] {
        for name in ["console", "selftest", "nobody"] {
            let not_allowed = Err(Failure::Refused(NamesError::NotAllowed));
            hold(names.register(name, delegate()) == not_allowed, "names gives it away")?;
            hold(names.unregister(name) == not_allowed, "names takes it back")?;
        }
    }
    let parent = ParentClient(Direct(Entry::PARENT));
    let refused = |name, error| parent.publish(name, delegate()) == Err(Failure::Refused(error));
    hold(refused("console", ParentError::Taken), "the parent gives it away")?;
    hold(refused("nobody", ParentError::NotAllowed), "the parent gives what the description does not")?;
    hold(refused("", ParentError::BadName) && refused("a b", ParentError::BadName), "a bad name is accepted")?;
    for name in ["console", "selftest", "nobody"] {
        hold(parent.publish_for_program(name, delegate()).is_err(), "it has programs")?;
    }
    let domain = Delegate::entry(Entry::DOMAIN.0, abi::rights::ALL);
    hold(parent.equip(domain) == Err(Failure::Refused(ParentError::NotHolder)), "it has domains")?;
    parent.publish("selftest", delegate()).map_err(say)?;
    parent.publish("selftest", delegate()).map_err(say)?;
    // The names are where they were.
    names_now()
}

fn drawing() -> Result<(), &'static str> {
    let sigma0 = Sigma0Client(Direct(Entry::SIGMA0));
    let refused = |result: Result<(), _>, error| result == Err(Failure::Refused(error));
    // After the vault.
    let address = abi::layout::FREE_START + (1 << 30);
    // Ticket 1 is roottask's own.
    hold(refused(sigma0.draw_for(1, address, 0, 3), Sigma0Error::NotManaged), "another's account pays")?;
    hold(refused(sigma0.forget(1), Sigma0Error::NotManaged), "another's account is let go")?;
    hold(refused(sigma0.draw(address, 0, 7), Sigma0Error::WritableCode), "writable and executable")?;
    hold(refused(sigma0.draw(address + 8, 0, 3), Sigma0Error::NotAligned), "an address that is not that of a page")?;
    sigma0.draw(address, 0, 3).map_err(say)?;
    hold(refused(sigma0.draw(address, 0, 3), Sigma0Error::Occupied), "mapped twice")?;
    // An account of so many frames: pages, and what the nucleus needs to know of them.
    const FRAMES: u64 = 16;
    let account = Owned::new(op::account_new(Entry::ACCOUNT, FRAMES).map_err(|error| error.text())?);
    let ticket = sigma0.manage_account(Delegate::entry(account.entry().0, rights::ALL)).map_err(say)?;
    let page = |number: u64| sigma0.draw_for(ticket, address + (number + 1) * abi::PAGE_BYTES as u64, 0, 3);
    let drawn = (0..FRAMES).take_while(|number| page(*number).is_ok()).count() as u64;
    hold((FRAMES / 2..FRAMES).contains(&drawn), "another number of pages than the account has frames")?;
    hold(refused(page(drawn), Sigma0Error::AccountExhausted), "another error of an exhausted account")?;
    sigma0.forget(ticket).map_err(say)
}

fn kept() -> Result<(), &'static str> {
    // Of 16 frames one is for records and one page for the head; half of the others are for the copy.
    const ROOM: usize = 7 * PAGE_BYTES;
    const KEY: usize = 4;
    const VALUE: usize = 1000;
    let full = Err(ContentError::NoSpace);
    let mut values = vault::values(1).map_err(|_| "no vault")?;
    hold(values.is_empty(), "a new vault has values")?;
    let big = vec![1; ROOM];
    hold(values.set(b"big", &big) == full && values.is_empty(), "a value that does not fit is there")?;
    hold(values.set(&[0; MAX_KEY + 1], b"") == Err(ContentError::KeyTooLong), "a key is too long")?;
    let key = |number: usize| (number as u32).to_le_bytes();
    let count = (0..).take_while(|number| values.set(&key(*number), &[*number as u8; VALUE]).is_ok()).count();
    // A value has a length, two bytes more, and whole words.
    hold(count == ROOM / (8 + (2 + KEY + VALUE).next_multiple_of(8)), "more or fewer values than there is room for")?;
    // Removed values make room, once the others are copied.
    hold(values.remove(&key(0)) == Ok(true), "a value is not removed")?;
    hold(values.set(&key(count), &[count as u8; VALUE]).is_ok(), "a removed value takes room")?;
    hold(values.set(&key(0), &[0; VALUE]) == full, "more values than there is room for")?;
    hold((1..=count).all(|number| values.get(&key(number)) == Some(vec![number as u8; VALUE])), "a value is another")?;
    // Our pages are mapped already, and those of others are not ours.
    let again = vault::values(1).map(drop);
    hold(
        matches!(again, Err(vault::Error::Vault(Failure::Refused(VaultError::Occupied)))),
        "a second one has the pages",
    )
}

fn refused_memory() -> Result<(), &'static str> {
    // Our account has 8 MiB.
    let mut list = Vec::<u8>::new();
    hold(list.try_reserve(16 << 20).is_err(), "more is there than the account has")?;
    hold(!server::reserve_memory(16 << 20), "more is reserved than the account has")?;
    hold(server::reserve_memory(3 << 20), "a refused reservation keeps memory")?;
    // The rest of the account.
    let taken: Vec<Owned> =
        (0..16).rev().filter_map(|order| op::account_new(Entry::ACCOUNT, 1 << order).ok().map(Owned::new)).collect();
    hold(list.try_reserve(2 << 20).is_ok(), "reserved memory is not there")?;
    hold(Vec::<u8>::new().try_reserve(2 << 20).is_err(), "the account is not exhausted")?;
    drop(taken);
    hold(Vec::<u8>::new().try_reserve(2 << 20).is_ok(), "memory that the account has again is refused")
}

fn essential() -> Result<(), &'static str> {
    let proc = proc();
    let refused = |name, error| {
        proc.kill_domain(domain(name)?, Force::Gentle)
            .err()
            .map(|found| found == Failure::Refused(error))
            .ok_or("it was ended")
    };
    for name in ["sigma0", "roottask", "proc"] {
        hold(refused(name, ProcessError::Essential)?, "another error of what the machine needs")?;
    }
    hold(refused("selftest", ProcessError::StaysDead)?, "another error of what stays dead")?;
    let by_ourselves = ParentClient(Direct(Entry::PARENT)).kill(domain("console")?, Force::Forced);
    hold(by_ourselves == Err(Failure::Refused(ParentError::NotHolder)), "a component without the machine kills")
}

fn pipe() -> Result<(), &'static str> {
    let number = PIPES.create().map_err(say)?;
    let (reads, writes) = (pipes::end(number, 0).map_err(say)?, pipes::end(0, number).map_err(say)?);
    let writer = thread::spawn(move || {
        let output = Stream::entry(writes.entry());
        let mut left = 20_000usize;
        while left > 0 {
            let Ok(count) = output.write(&[b'x'; 1000][..left.min(1000)]) else { break };
            left -= count;
        }
        let _ = PIPES.close_write(number);
    })
    .map_err(|error| error.text())?;
    let input = Stream::entry(reads.entry());
    let mut total = 0;
    let mut bytes = [0; 700];
    loop {
        match input.read(&mut bytes).map_err(say)? {
            0 => break,
            count => {
                hold(bytes[..count].iter().all(|byte| *byte == b'x'), "other bytes")?;
                total += count;
            }
        }
    }
    writer.join();
    hold(total == 20_000, "bytes were lost")?;
    PIPES.close_read(number).map_err(say)?;
    hold(input.read(&mut bytes) == Err(Failure::Refused(StreamError::NotReadable)), "the pipe is still there")?;
    hold(PIPES.close_read(number) == Err(Failure::Refused(PipeError::NoSuchPipe)), "it can be closed again")
}

/// Buffers of pages, to which windows show, and beside them one of bytes, which goes in a message. Either side uses them in turn, each in its own
/// rhythm, so that readers wait with windows for messages, and without for windows.
fn pages_through_a_pipe() -> Result<(), &'static str> {
    const TOTAL: usize = 400_000;
    const SIZES: [usize; 7] = [4096, 8192, 700, 4096, 13, 12288, 5000];
    let number = PIPES.create().map_err(say)?;
    let (reads, writes) = (pipes::end(number, 0).map_err(say)?, pipes::end(0, number).map_err(say)?);
    // A number in each byte says where in the stream it stands.
    let put = move |pages: &mut [Page], from: usize, size: usize| {
        let bytes = &mut Page::bytes_mut(pages)[..size];
        (from..).zip(bytes.iter_mut()).for_each(|(at, byte)| *byte = (at % 251) as u8);
        Stream::entry(writes.entry()).write(bytes)
    };
    let get = |pages: &mut [Page], from: usize, size: usize| {
        let count = Stream::entry(reads.entry()).read(&mut Page::bytes_mut(pages)[..size]).map_err(say)?;
        let mut bytes = (from..).zip(&Page::bytes(pages)[..count]);
        hold(bytes.all(|(at, byte)| *byte == (at % 251) as u8), "other bytes")?;
        Ok::<_, &str>(count)
    };
    let mut pages = vec![Page::ZERO; 3];
    // The pages that are written last wrap round in the middle of one, and so do those that are read last.
    let mut done = 0;
    for size in [1_000, 12_288] {
        done += put(&mut pages, done, size).map_err(say)?;
    }
    let mut read = get(&mut pages, 0, 8_192)?;
    done += put(&mut pages, done, 8_192).map_err(say)?;
    for size in [4_096, 12_288] {
        read += get(&mut pages, read, size)?;
    }
    hold((done, read) == (21_480, 21_480), "bytes are left")?;
    let writer = thread::spawn(move || {
        let mut pages = vec![Page::ZERO; 3];
        for size in SIZES.into_iter().cycle() {
            match put(&mut pages, done, size.min(TOTAL - done)) {
                Ok(count) if done + count < TOTAL => done += count,
                _ => break,
            }
        }
        let _ = PIPES.close_write(number);
    })
    .map_err(|error| error.text())?;
    for size in SIZES[2..].iter().cycle() {
        match get(&mut pages, read, *size)? {
            0 => break,
            count => read += count,
        }
    }
    writer.join();
    hold(read == TOTAL, "bytes were lost")?;
    PIPES.close_read(number).map_err(say)
}

fn streams() -> Result<(), &'static str> {
    drop(Owned::new(files().create("/tmp/stream", TRUNCATE).map_err(say)?.into()));
    Stream::new("append:/tmp/stream").write_all(b"one ").map_err(say)?;
    Stream::new("append:/tmp/stream").write_all(b"two").map_err(say)?;
    let input = Stream::input("file:/tmp/stream");
    let mut bytes = [0; 5];
    hold(input.read(&mut bytes).map_err(say)? == 5 && &bytes == b"one t", "the first part")?;
    hold(input.read(&mut bytes).map_err(say)? == 2 && &bytes[..2] == b"wo", "the second part")?;
    hold(input.read(&mut bytes).map_err(say)? == 0, "no end")?;
    files().remove("/tmp/stream").map_err(say)
}

/// By the portal that the system description gives.
pub fn proc() -> ProcessClient<Connection<Given>> {
    ProcessClient(Connection::new(Given("proc")))
}

fn launch(path: &str) -> Result<Child, Failure<ProcessError>> {
    let mut launch = [0; 512];
    let contents = Contents { schedule: 0, name: "", streams: ["null", "console", "console"], compartments: &[] };
    let used = write(&mut launch, &contents, [path], [], []).unwrap_or(0);
    proc().spawn(path, &launch[..used], 0, 0).map(Child::from)
}

fn program() -> Result<(), &'static str> {
    let status = launch("/bin/hello").and_then(|child| child.wait()).map_err(say)?;
    hold(status == 0, "another status")
}

fn no_program() -> Result<(), &'static str> {
    hold(launch("/bin/nothing").err() == Some(Failure::Refused(ProcessError::NotFound)), "not refused")
}

/// The number of a living domain.
fn domain(name: &str) -> Result<u64, &'static str> {
    let mut position = 0;
    let proc = proc();
    loop {
        let mut bytes = [0; size_of::<info::Domain>()];
        let (_, next) = proc.inspect(info::DOMAIN, position, &mut bytes).map_err(say)?;
        match info::Domain::read(&bytes) {
            Some(found) if found.name.starts_with(name.as_bytes()) && found.state == 0 => return Ok(found.number),
            _ if next == 0 => return Err("no such domain"),
            _ => position = next,
        }
    }
}

/// The kernel log of components.
fn log() -> Result<String, &'static str> {
    let (mut log, mut position) = (Vec::new(), 0);
    loop {
        let mut bytes = [0; 1024];
        let (count, next) = proc().inspect(info::LOG, position, &mut bytes).map_err(say)?;
        if count == 0 {
            return String::from_utf8(log).map_err(|_| "the log is no text");
        }
        log.extend_from_slice(&bytes[..count]);
        position = next;
    }
}

/// A pipe goes with its server: a writer is notified, and so is its maker, which does not reach the pipe that
/// has its number by then.
fn forgotten() -> Result<(), &'static str> {
    let lost = PIPES.create().map_err(say)?;
    let end = pipes::end(lost, lost).map_err(say)?;
    hold(Stream::entry(end.entry()).write(b"lost").map_err(say)? == 4, "the pipe takes nothing")?;
    let before = PIPES.0.epoch();
    proc().kill_domain(domain("ramfs")?, Force::Gentle).map_err(say)?;
    let reported = Stream::entry(end.entry()).write(b"more");
    hold(
        matches!(reported, Err(Failure::Transport(abi::Error::Revoked | abi::Error::PeerDied))),
        "the end is still there",
    )?;
    let reported = PIPES.close_read(lost);
    hold(matches!(reported, Err(Failure::Transport(abi::Error::PeerDied))), "nobody says that the pipe is gone")?;
    hold(PIPES.0.epoch() == before + 1, "the server has no successor")?;
    let pipe = PIPES.create().map_err(say)?;
    let end = pipes::end(0, pipe).map_err(say)?;
    hold(Stream::entry(end.entry()).write(b"new").map_err(say)? == 3, "the next pipe takes nothing")?;
    PIPES.close_write(pipe).map_err(say)?;
    PIPES.close_read(pipe).map_err(say)
}

fn killed() -> Result<(), &'static str> {
    let proc = proc();
    for round in 0..3 {
        files().stat("/etc").map_err(say)?;
        for name in ["ramfs", "names"] {
            let number = domain(name)?;
            proc.kill_domain(number, Force::Gentle).map_err(say)?;
            let start = op::clock();
            let stat = files().stat("/etc").map_err(say)?;
            hold(stat.kind == Kind::Directory, "another kind")?;
            runtime::log!("round {round}: {name} was back after {} us", (op::clock() - start) / 1000);
        }
    }
    Ok(())
}
