//! Random messages to every service that there is.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use interface::{Answer, Delegate, Failure, Protocol, Transport};
use interfaces::listing::Listing;
use interfaces::names::NamesClient;
use runtime::abi::rights::{ALL as ALL_RIGHTS, COPY, READ};
use runtime::abi::{Control, Error, MESSAGE_BYTES};
use runtime::entry::Owned;
use runtime::interface::Again;
use runtime::server::{self, ServeWord};
use runtime::stream::FILE_SYSTEM;
use runtime::{Direct, Entry, message, op};
use tool::inspect;
use tool::random::Random;

use crate::crime::Crime;

/// All of them.
pub const ALL: &[Crime] = &[Crime::tried(
    "service-fuzz",
    "random words, bytes and entries to each service that has a name, and to a file",
    all,
)];

/// Messages to each service.
const MESSAGES: usize = 2000;
/// A method that no interface has.
const NO_METHOD: u64 = 0xffff;

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

/// The entries that messages carry: one of each kind that a program can make.
struct Entries {
    made: [Owned; 3],
}

impl Entries {
    fn new() -> Result<Self, Error> {
        let made = [
            op::semaphore_new(Entry::ACCOUNT, 0)?,
            op::account_new(Entry::ACCOUNT, 8)?,
            server::word_service::<Nobody>()?,
        ];
        Ok(Self { made: made.map(Owned::new) })
    }

    fn any(&self, random: &mut Random) -> Delegate {
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

/// One message. What comes of it is the server's answer, whatever that is; only whether there was one counts.
fn send(entry: Entry, random: &mut Random, entries: &Entries) -> Result<(), Error> {
    let mut lengths: [u64; 3] = core::array::from_fn(|_| random.one(&[0, 0, 1, 5, 9, 64, 4096, 0xffff]));
    // A method has none to three.
    lengths[random.below(4) as usize..].fill(0);
    let method = random.below(12);
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
        let given = entries.any(random);
        control = given.control();
        if control.0 & Control::MINT != 0 {
            words[4] = given.badge();
        }
    }
    // Mostly as many as the lengths may say.
    let length = random.one(&[lengths[0], lengths[0] + lengths[1], 0, 0, 8, 4096]) as usize;
    message::prepare_receive()?;
    let mut message = Answer { words, control };
    let sent = &bytes[..length.min(MESSAGE_BYTES)];
    let outcome = Direct(entry).call_bytes(&mut message, Again::Harmful, &[sent], &mut []);
    if outcome.is_ok() && message.control.delegated() != 0 {
        drop(Owned::new(Entry(message.control.delegated())));
    }
    // Any other error is the nucleus's: the entry could not be copied, there or back.
    match outcome {
        Err(error @ (Error::PeerDied | Error::Revoked | Error::Busy)) => Err(error),
        _ => Ok(()),
    }
}

/// Whether it answers as it should.
fn is_well(entry: Entry, is_of_words: bool) -> Result<(), String> {
    let word = if is_of_words {
        message::call_all_words(entry, [NO_METHOD, 0, 0, 0, 0, 0, 0, 0, 0]).map(|words| words[0])
    } else {
        message::call(entry, [NO_METHOD, 0, 0, 0, 0], Control(0)).map(|(words, _)| words[0])
    };
    match word {
        Ok(word)
            if Failure::<interfaces::names::NamesError>::from_word(word)
                == Failure::Protocol(Protocol::UnknownMethod) =>
        {
            Ok(())
        }
        outcome => Err(format!("{outcome:?}")),
    }
}

fn fuzz(entry: Entry, random: &mut Random, entries: &Entries) -> Result<(), String> {
    let is_of_words = op::shape_number(entry).map_err(|error| error.to_string())? != 0;
    for number in 0..MESSAGES {
        let outcome = if is_of_words {
            message::call_all_words(entry, core::array::from_fn(|_| word(random))).map(drop)
        } else {
            send(entry, random, entries)
        };
        outcome.map_err(|error| format!("message {number}: {error}"))?;
    }
    is_well(entry, is_of_words)
}

fn all() -> Result<String, String> {
    let text = |error: Error| error.to_string();
    let names = NamesClient(Direct(Entry::NAMES));
    let mut listed = [0; MESSAGE_BYTES];
    let (length, _) = names.list(0, &mut listed).map_err(|error| error.to_string())?;
    let listed = Listing(&listed[..length]).map(|record| String::from_utf8_lossy(record.name).into_owned());
    let listed: Vec<String> = listed.collect();
    let before = inspect::restarts().map_err(|error| error.to_string())?;
    let (mut random, entries) = (Random(listed.len() as u64), Entries::new().map_err(text)?);
    for name in &listed {
        let entry = Owned::new(names.open(name).map_err(|error| format!("{name}: {error}"))?.into());
        fuzz(entry.entry(), &mut random, &entries).map_err(|error| format!("{name}: {error}"))?;
    }
    let file = FILE_SYSTEM.open("/etc/motd", 0).map_err(|error| error.to_string())?;
    let file = Owned::new(file.into());
    for (what, entry) in [("a file", file.entry()), ("our parent", Entry::PARENT), ("sigma0", Entry::SIGMA0)] {
        fuzz(entry, &mut random, &entries).map_err(|error| format!("{what}: {error}"))?;
    }
    let after = inspect::restarts().map_err(|error| error.to_string())?;
    if before != after {
        return Err(format!("restarts: {before:?}, then {after:?}"));
    }
    Ok(format!("{} services, {MESSAGES} messages each: all answer", listed.len() + 3))
}
