//! Random messages to every service that there is.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec;
use alloc::vec::Vec;

use idl::{AllWords, Answer, Code, Delegate, Protocol, Shown, Transport};
use protocols::METHODS;
use protocols::listing::Listing;
use protocols::names::NamesClient;
use runtime::abi::rights::{ALL as ALL_RIGHTS, COPY, READ};
use runtime::abi::window::MAX_PAGES;
use runtime::abi::{Control, Error, MESSAGE_BYTES};
use runtime::entry::Owned;
use runtime::idl::Again;
use runtime::server::{self, ServeAllWords, ServeWord};
use runtime::stream::FILE_SYSTEM;
use runtime::window::Page;
use runtime::{Direct, Entry, message, op};
use tool::inspect;
use tool::random::Random;

use crate::case::Case;

/// All of them.
pub const ALL: &[Case] = &[Case::tried(
    "service-fuzz",
    "random words, bytes, entries and windows to each service that has a name, and to a file",
    all,
)];

/// Messages to each service.
const MESSAGES: usize = 2000;
/// The bits of a method's number that are its place in the interface.
const PLACE: u64 = 0x3f;

/// A word of a message: mostly one at a bound of something.
fn word(random: &mut Random) -> u64 {
    let any = random.any();
    random.one(&[0, 1, 2, 8, 63, 64, 4096, 1 << 16, 1 << 32, 1 << 62, 1 << 63, u64::MAX, any, any & 0xffff])
}

struct Nobody;

impl ServeWord for Nobody {
    fn serve(_: u64, _: [u64; 5]) -> u64 {
        0
    }
}

impl ServeAllWords for Nobody {
    fn serve(_: u64, _: &AllWords) -> AllWords {
        [0; 9]
    }
}

/// The load of messages: entries of each kind that a program can make, and windows on pages.
struct Load {
    made: [Owned; 3],
    /// A service whose portals pass words alone.
    of_words: Owned,
    pages: Vec<Page>,
}

impl Load {
    fn new() -> Result<Self, String> {
        let text = |error: Error| error.to_string();
        let made = [
            op::semaphore_new(Entry::ACCOUNT, 0).map_err(text)?,
            op::account_new(Entry::ACCOUNT, 8).map_err(text)?,
            server::word_service::<Nobody>().map_err(text)?,
        ];
        let of_words = server::all_words_service::<Nobody>().map_err(|error| error.to_string())?;
        let pages = vec![Page::ZERO; MAX_PAGES];
        Ok(Self { made: made.map(Owned::new), of_words: Owned::new(of_words), pages })
    }

    /// Whether calls through an entry pass words alone.
    fn is_of_words(&self, entry: Entry) -> Result<bool, Error> {
        Ok(op::shape_number(entry)? == op::shape_number(self.of_words.entry())?)
    }

    fn entry(&self, random: &mut Random) -> Delegate {
        let [semaphore, account, service] = [0, 1, 2].map(|number: usize| self.made[number].entry());
        if random.below(4) == 0 {
            return Delegate::mint(service.0, word(random));
        }
        // Without WRITE to our own domain: a server could fill its table.
        let (entry, most) = random.one(&[
            (semaphore, ALL_RIGHTS),
            (account, ALL_RIGHTS),
            (service, ALL_RIGHTS),
            (Entry::DOMAIN, COPY | READ),
            (Entry::ACCOUNT, COPY | READ),
            (Entry(9_999), ALL_RIGHTS),
        ]);
        Delegate::entry(entry.0, most & random.one(&[ALL_RIGHTS, COPY | READ, READ, 0]))
    }
}

/// One message. Its result is the server's answer, whatever that is; only whether there was one counts.
fn send(entry: Entry, method: u64, random: &mut Random, load: &mut Load) -> Result<(), Error> {
    let mut lengths: [u64; 3] = core::array::from_fn(|_| random.one(&[0, 0, 1, 5, 9, 64, 4096, 0xffff]));
    // A method has none to three.
    lengths[random.below(4) as usize..].fill(0);
    let head = method | lengths[0] << 16 | lengths[1] << 32 | lengths[2] << 48;
    let mut words = [head, word(random), word(random), word(random), word(random)];
    let mut bytes = [b'.'; MESSAGE_BYTES];
    match random.below(3) {
        0 => bytes.fill_with(|| random.any() as u8 | 0x80),
        1 => bytes[..9].copy_from_slice(b"/tmp/fuzz"),
        _ => {}
    }
    let mut control = Control(0);
    if random.below(6) == 0 {
        let given = load.entry(random);
        control = given.control();
        if control.0 & Control::MINT != 0 {
            words[4] = given.badge();
        }
    }
    // Mostly as many as the lengths may say.
    let length = random.one(&[lengths[0], lengths[0] + lengths[1], 0, 0, 8, 4096]) as usize;
    message::prepare_receive()?;
    let mut message = Answer { words, control };
    let sent: &[&[u8]] = &[&bytes[..length.min(MESSAGE_BYTES)]];
    let outcome = if random.below(4) == 0 {
        let pages = &mut load.pages[..1 + random.below(MAX_PAGES as u64) as usize];
        let mut shown = match random.below(2) {
            0 => Shown::Read(Page::bytes(pages)),
            _ => Shown::Written(Page::bytes_mut(pages)),
        };
        Direct(entry).call_window(&mut message, Again::Harmful, sent, &mut shown)
    } else {
        Direct(entry).call_bytes(&mut message, Again::Harmful, sent, &mut [])
    };
    if outcome.is_ok() && message.control.delegated() != 0 {
        drop(Owned::new(Entry(message.control.delegated())));
    }
    // Any other error is the nucleus's: the entry could not be copied, there or back.
    match outcome {
        Err(error @ (Error::PeerDied | Error::Revoked | Error::Busy)) => Err(error),
        _ => Ok(()),
    }
}

/// A server that gets random messages.
struct Target {
    entry: Entry,
    /// Calls pass words alone.
    is_of_words: bool,
    /// Of the interface that the server speaks.
    methods: &'static [(u64, &'static str)],
}

impl Target {
    /// The server itself says which of all interfaces is its own: of that one it says that a method is unknown, of any other that it
    /// speaks another.
    fn new(entry: Entry, load: &Load) -> Result<Self, String> {
        let is_of_words = load.is_of_words(entry).map_err(|error| error.to_string())?;
        let mut found = None;
        for (name, methods) in METHODS {
            let target = Self { entry, is_of_words, methods };
            match target.answer() {
                Ok(word) if word == Protocol::WrongInterface.code() => {}
                Ok(word) if word == Protocol::UnknownMethod.code() && found.is_none() => found = Some(target),
                answer => return Err(format!("a client of {name} is answered {answer:?}")),
            }
        }
        found.ok_or_else(|| "speaks no interface".into())
    }

    /// A method, mostly one that the server has.
    fn method(&self, random: &mut Random) -> u64 {
        match random.below(8) {
            0 => random.any() & 0xffff,
            _ => self.methods[random.below(self.methods.len() as u64) as usize].0,
        }
    }

    /// The server's answer to a method that the interface does not have.
    fn answer(&self) -> Result<u64, Error> {
        let unknown = self.methods.last().map_or(0, |(number, _)| number & !PLACE);
        if self.is_of_words {
            message::call_all_words(self.entry, [unknown, 0, 0, 0, 0, 0, 0, 0, 0]).map(|words| words[0])
        } else {
            message::call(self.entry, [unknown, 0, 0, 0, 0], Control(0)).map(|(words, _)| words[0])
        }
    }

    fn fuzz(&self, random: &mut Random, load: &mut Load) -> Result<(), String> {
        for number in 0..MESSAGES {
            let outcome = if self.is_of_words {
                let mut words = core::array::from_fn(|_| word(random));
                words[0] = self.method(random);
                message::call_all_words(self.entry, words).map(drop)
            } else {
                send(self.entry, self.method(random), random, load)
            };
            outcome.map_err(|error| format!("message {number}: {error}"))?;
        }
        match self.answer() {
            Ok(word) if word == Protocol::UnknownMethod.code() => Ok(()),
            answer => Err(format!("then it answers {answer:?}")),
        }
    }
}

fn fuzz(entry: Entry, random: &mut Random, load: &mut Load) -> Result<(), String> {
    Target::new(entry, load)?.fuzz(random, load)
}

fn all() -> Result<String, String> {
    let names = NamesClient(Direct(Entry::NAMES));
    let mut listed = [0; MESSAGE_BYTES];
    let (length, _) = names.list(0, &mut listed).map_err(|error| error.to_string())?;
    let listed = Listing(&listed[..length]).map(|record| String::from_utf8_lossy(record.name).into_owned());
    let listed: Vec<String> = listed.collect();
    let before = inspect::restarts().map_err(|error| error.to_string())?;
    let (mut random, mut load) = (Random(listed.len() as u64), Load::new()?);
    for name in &listed {
        let entry = Owned::new(names.open(name).map_err(|error| format!("{name}: {error}"))?.into());
        fuzz(entry.entry(), &mut random, &mut load).map_err(|error| format!("{name}: {error}"))?;
    }
    let file = FILE_SYSTEM.open("/etc/motd", 0).map_err(|error| error.to_string())?;
    let file = Owned::new(file.into());
    for (what, entry) in [("a file", file.entry()), ("our parent", Entry::PARENT), ("sigma0", Entry::SIGMA0)] {
        fuzz(entry, &mut random, &mut load).map_err(|error| format!("{what}: {error}"))?;
    }
    let after = inspect::restarts().map_err(|error| error.to_string())?;
    if before != after {
        return Err(format!("restarts: {before:?}, then {after:?}"));
    }
    Ok(format!("{} services, {MESSAGES} messages each: all answer", listed.len() + 3))
}
