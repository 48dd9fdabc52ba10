//! Shapes of portals: their makers, their number, and how long they last.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicU64, Ordering};

use abi::layout::MAX_TABLE_ENTRIES;
use abi::rights::{self, Kind};
use abi::{Control, Error, MAX_SHAPES, MESSAGE_BYTES, expect, info, op as operations};
use idl::{Code, Protocol, Reply, Request};
use runtime::entry::Owned;
use runtime::server::{self, Serve};
use runtime::{Entry, message, op, table};

use crate::check::{Check, frames, hold};
use crate::raw::{service, service_here};

pub const CHECKS: &[Check] = &[
    ("bad specifications of portals are refused, and so are domains without the right to make some", refused),
    ("a shape whose code is longer than its place is refused, and the others are made", too_long),
    ("there are so many shapes, one for each specification, and each place comes back", places),
    ("a shape lasts as long as a domain that had a service of it", lasts),
    ("a portal refuses lengths and entries that cannot go along, there and back", along),
];

fn text(error: Error) -> &'static str {
    error.text()
}

fn shape(specification: &str) -> Result<Owned, Error> {
    op::shape_new(Entry::SPECIAL, specification.as_bytes()).map(Owned::new)
}

/// Those with a window are longest. On x86-64 some have no room; the first one has everywhere.
fn too_long() -> Result<(), &'static str> {
    const PLACE: u64 = 1024;
    const FITS: &str = "npwb>b";
    let before = frames()?;
    for specification in [FITS, "npkwb>tb", "npwkgb>tbg", "nptttbw>tttbx8x4", "npwtttb>tttttttb"] {
        let made = match shape(specification) {
            Ok(shape) => shape,
            Err(Error::CodeTooLong) if specification != FITS => continue,
            Err(other) => return Err(text(other)),
        };
        let mut all = op::records::<info::Shape>(Entry::SPECIAL).filter_map(Result::ok);
        let found = all.find(|shape| shape.specification.starts_with(specification.as_bytes()));
        hold(found.is_some_and(|shape| shape.length < PLACE), "its code has no room")?;
        drop((made, shape("npciii>i").map_err(text)?));
    }
    hold(frames()? == before, "frames are missing")
}

fn refused() -> Result<(), &'static str> {
    let before = frames()?;
    let long = "np>".chars().chain(core::iter::repeat_n('i', 1000)).collect::<String>();
    let cannot_be = [
        "",
        "n",
        "ni",
        "sp",
        "npz",
        "npib>>",
        "npx9",
        "npbb",
        "np>k",
        "npiiiiiiiiiii",
        "npow",
        "npx5>o",
        "npox5>",
        "npiwa>ii",
        "npaiw>",
        &long,
    ];
    for specification in cannot_be {
        hold(shape(specification).err() == Some(Error::BadSpecification), "it is made, or refused otherwise")?;
    }
    for specification in ["nmi", "npkox4>ox5"] {
        hold(shape(specification).err() == Some(Error::NotOffered), "it is made for us, or refused otherwise")?;
    }
    let copy = Owned::new(table::allocate().map_err(text)?);
    let place = copy.entry();
    hold(op::shape_new(place, b"npi").err() == Some(Error::Empty), "without the machine")?;
    let others = rights::ALL & !rights::USE;
    op::entry_copy(Entry::OWN, Entry::SPECIAL, Entry::OWN, place, others).map_err(text)?;
    hold(op::shape_new(place, b"npi").err() == Some(Error::NoRight), "without the right")?;
    hold(op::shape_new(Entry::ACCOUNT, b"npi").err() == Some(Error::WrongKind), "with an account")?;
    drop(copy);
    let domain = Owned::new(op::domain_new(Entry::OWN, 0, "shapes").map_err(text)?);
    let made = shape("npi>").map_err(text)?;
    let deadline = operations::SERVICE_DEADLINE;
    hold(service(&domain, deadline, made.entry()).err() == Some(Error::BadArgument), "with deadlines")?;
    hold(service(&domain, 2, made.entry()).err() == Some(Error::BadArgument), "an unknown flag")?;
    hold(service(&domain, 0, Entry::ACCOUNT).err() == Some(Error::WrongKind), "an account is a shape")?;
    let read_only = Owned::new(table::allocate().map_err(text)?);
    let copied = op::entry_copy(Entry::OWN, made.entry(), Entry::OWN, read_only.entry(), rights::READ).map_err(text)?;
    hold(service(&domain, 0, copied).err() == Some(Error::NoRight), "a shape without USE")?;
    drop(made);
    hold(service(&domain, 0, copied).err() == Some(Error::Revoked), "a shape that is gone")?;
    drop((domain, read_only));
    hold(frames()? == before, "frames were lost")
}

/// As many specifications as there can be shapes, and one more.
fn specifications() -> impl Iterator<Item = String> {
    let letters = |count| core::iter::repeat_n('i', count);
    (0..=MAX_SHAPES)
        .map(move |number| "npt".chars().chain(letters(number % 6)).chain(['>']).chain(letters(number / 6)).collect())
}

/// Makes shapes until there is no place.
fn fill() -> Result<Vec<Owned>, &'static str> {
    let mut made = Vec::new();
    for specification in specifications() {
        match shape(&specification) {
            Ok(shape) => made.push(shape),
            Err(Error::TooManyShapes) => return Ok(made),
            Err(error) => return Err(error.text()),
        }
    }
    Err("there is no end")
}

fn places() -> Result<(), &'static str> {
    let room = fill()?.len();
    // That with a control word has one, and the trials before this may have some for good.
    hold(room > MAX_SHAPES / 2 && room < MAX_SHAPES, "another number of places")?;
    for _ in 0..3 {
        let made = fill()?;
        hold(made.len() == room, "a place was lost")?;
        // A shape that is there takes no further place.
        let again =
            specifications().take(room).map(|specification| shape(&specification)).collect::<Result<Vec<_>, _>>();
        hold(again.map_err(text)?.len() == room, "a shape is made twice")?;
        hold(shape("npx8x8>x8x8").err() == Some(Error::TooManyShapes), "there is one more")?;
        drop(made);
    }
    Ok(())
}

/// Has the longest code made, and what takes longest to read; reports after each how long interrupts were off until then.
pub fn longest() -> impl Iterator<Item = Result<String, Error>> {
    let tables = [
        "npciii>i",
        "npkox5>ox5",
        "npx4x4x8>x4x4x8",
        "npx4x3bx8>x4x3bx8",
        "npttttttttb>ttttttttb",
        "nptdibiitti>tgibt",
    ];
    tables.into_iter().map(|specification| {
        drop(shape(specification)?);
        let (counters, _) = op::record::<info::Counters>(Entry::SPECIAL, 0)?;
        Ok(format!("{specification}: longest non-preemptible section {}\n", counters.longest))
    })
}

fn lasts() -> Result<(), &'static str> {
    let before = frames()?;
    let room = fill()?.len();
    let domain = Owned::new(op::domain_new(Entry::OWN, 0, "shapes").map_err(text)?);
    let made = shape("npkx3>x3").map_err(text)?;
    let ours = Owned::new(table::allocate().map_err(text)?);
    let theirs = service(&domain, 0, made.entry()).map_err(text)?;
    op::entry_copy(domain.entry(), theirs, Entry::OWN, ours.entry(), rights::ALL).map_err(text)?;
    for _ in 0..3 {
        op::entry_remove(domain.entry(), service(&domain, 0, made.entry()).map_err(text)?).map_err(text)?;
    }
    drop(made);
    let portal = Owned::new(table::allocate().map_err(text)?);
    op::portal_new(Entry::OWN, ours.entry(), 0, portal.entry(), 0).map_err(text)?;
    hold(op::entry_info(Entry::OWN, portal.entry()) == Ok((Kind::Call, rights::USE)), "there is no portal")?;
    hold(fill()?.len() == room - 1, "its place is free, or two are taken")?;
    op::entry_remove(domain.entry(), theirs).map_err(text)?;
    hold(fill()?.len() == room - 1, "its place is free while somebody could stand in it")?;
    drop((domain, ours, portal));
    hold(fill()?.len() == room, "its place does not come back")?;
    hold(frames()? == before, "frames were lost")
}

static CALLS: AtomicU64 = AtomicU64::new(0);
static ANSWER: AtomicU64 = AtomicU64::new(0);

/// Counts its calls. Its answer has a word, and what stands in [`ANSWER`].
struct Answers;

impl Serve for Answers {
    fn serve(_: &mut Request<'_>) -> Reply {
        CALLS.fetch_add(1, Ordering::Relaxed);
        Reply { words: [7, ANSWER.load(Ordering::Relaxed), 0, 0, 0], control: Control(0) }
    }
}

/// A call entry to [`Answers`] of a shape. The service goes with it.
fn answers(specification: &str) -> Result<(Owned, Owned), Error> {
    let made = shape(specification)?;
    let service = Owned::new(service_here::<Answers>(made.entry())?);
    let portal = Owned::new(table::allocate()?);
    op::portal_new(Entry::OWN, service.entry(), 0, portal.entry(), 0)?;
    Ok((portal, service))
}

/// Words 0 and 1 of the answer to a call with these words, and how often the service was entered.
fn asked((portal, what): (&Owned, u64), words: [u64; 2]) -> (Result<[u64; 2], Error>, u64) {
    let before = CALLS.load(Ordering::Relaxed);
    let answer = message::call(portal.entry(), [words[0], words[1], 0, 0, 0], Control::expecting(what));
    (answer.map(|(words, _)| [words[0], words[1]]), CALLS.load(Ordering::Relaxed) - before)
}

fn along() -> Result<(), &'static str> {
    server::activations(1).map_err(text)?;
    let (portal, _service) = answers("npkib>ib").map_err(text)?;
    let bytes = (&portal, 0b11 | expect::AREA);
    let too_long = MESSAGE_BYTES as u64 + 1;
    for length in [0, 1, too_long - 1] {
        ANSWER.store(length, Ordering::Relaxed);
        hold(asked(bytes, [3, length]) == (Ok([7, length]), 1), "a length that can be")?;
    }
    for length in [too_long, too_long + 7, 1 << 32, 1 << 63, u64::MAX] {
        ANSWER.store(0, Ordering::Relaxed);
        hold(asked(bytes, [3, length]) == (Err(Error::BadArgument), 0), "too many bytes are called with")?;
        ANSWER.store(length, Ordering::Relaxed);
        // The runtime answers that then.
        let instead = Ok([Protocol::NotDelivered.code(), 0]);
        hold(asked(bytes, [3, 0]) == (instead, 1), "too many bytes are answered with")?;
    }
    ANSWER.store(0, Ordering::Relaxed);
    hold(asked(bytes, [3, 8]) == (Ok([7, 0]), 1), "it does not go on")?;
    let (portal, _service) = answers("npkid>ii").map_err(text)?;
    let entry = (&portal, 0b11 | expect::ENTRIES);
    for (index, error) in [
        (MAX_TABLE_ENTRIES as u64, Error::BadIndex),
        (1 << 32, Error::BadIndex),
        (u64::MAX, Error::BadIndex),
        (MAX_TABLE_ENTRIES as u64 - 1, Error::Empty),
    ] {
        hold(asked(entry, [3, index]) == (Err(error), 0), "there is no such entry")?;
    }
    hold(asked(entry, [3, 0]) == (Ok([7, 0]), 1), "a call without an entry")
}
