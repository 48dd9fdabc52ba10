//! Other threads write into the message areas of callers, at any time. A callee gets as many bytes as the call says, each word of them is one
//! that stood there, and it gets nothing beyond.

use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use abi::layout::{MAX_ACTIVATIONS, MESSAGE_START};
use abi::{Control, Error, MESSAGE_BYTES, PAGE_BYTES};
use idl::{Reply, Request};
use portalgen::Specification;
use runtime::entry::Owned;
use runtime::server::{self, Serve};
use runtime::thread::{self, Thread};
use runtime::{Entry, message, op, table};

use crate::check::{Check, frames, hold};
use crate::raw::{poke_word, service_here};

pub const CHECKS: &[Check] =
    &[("a callee gets the bytes that its caller says, though others change them meanwhile", changing)];

/// More than the activations of this domain: the others wait with their calls.
const CALLERS: usize = 8;
const ROUNDS: u64 = 40;
/// How long a callee keeps its activation, in nanoseconds.
const SHORTLY: u64 = 200_000;
/// The words of callers' areas by turns; as lengths, too many bytes and none.
const SENT: [u64; 2] = [u64::MAX, 0];
/// The words of callees' areas.
const OWN: u64 = 0x5555_5555_5555_5555;

/// Where the callers' areas are.
static AREAS: [AtomicU64; CALLERS] = [const { AtomicU64::new(0) }; CALLERS];
/// Which callees' areas hold [`OWN`].
static FILLED: [AtomicBool; MAX_ACTIVATIONS] = [const { AtomicBool::new(false) }; MAX_ACTIVATIONS];
static PORTAL: AtomicU64 = AtomicU64::new(0);
static CONTROL: AtomicU64 = AtomicU64::new(0);
static SERVED: AtomicU64 = AtomicU64::new(0);
static WRONG: AtomicU64 = AtomicU64::new(0);
/// Messages with words of each kind.
static SEEN: [AtomicU64; 2] = [const { AtomicU64::new(0) }; 2];
/// Callers that have all answers, and whether nobody writes to their areas any more.
static ENDED: AtomicU64 = AtomicU64::new(0);
static QUIET: AtomicBool = AtomicBool::new(false);

/// Word 1: it keeps its activation for a time. Word 2: bytes. The badge: there is a control word, which says so, too.
struct Watches;

impl Serve for Watches {
    fn serve(request: &mut Request<'_>) -> Reply {
        let [_, keeps, length, ..] = request.words;
        let is_filled = FILLED[message::activation()].swap(true, Ordering::SeqCst);
        let words = request.area.as_chunks_mut().0;
        // Words are copied whole.
        let (came, others) = words.split_at_mut((length as usize).min(MESSAGE_BYTES).div_ceil(8));
        let is_own = |word: &[u8; 8]| u64::from_le_bytes(*word) == OWN;
        let mut is_right = !is_filled || others.iter().all(is_own);
        is_right &= request.badge == 0 || request.length as u64 == length;
        is_right &= came.iter().all(|word| SENT.contains(&u64::from_le_bytes(*word)));
        for (kind, seen) in SENT.iter().zip(&SEEN) {
            seen.fetch_add(came.contains(&kind.to_le_bytes()).into(), Ordering::SeqCst);
        }
        words.fill(OWN.to_le_bytes());
        if keeps != 0 {
            let _ = thread::sleep(SHORTLY);
        }
        is_right &= request.area.as_chunks().0.iter().all(is_own);
        SERVED.fetch_add(1, Ordering::SeqCst);
        WRONG.fetch_add((!is_right).into(), Ordering::SeqCst);
        Reply::word(length)
    }
}

fn calls(number: usize) {
    let area = MESSAGE_START + (message::activation() * PAGE_BYTES) as u64;
    (0..MESSAGE_BYTES as u64).step_by(8).for_each(|place| poke_word(area + place, SENT[0]));
    AREAS[number].store(area, Ordering::SeqCst);
    let portal = Entry(PORTAL.load(Ordering::SeqCst) as usize);
    for round in 0..ROUNDS {
        let length = (577 * round + 1009 * number as u64) % (MESSAGE_BYTES as u64 + 1);
        let control = match CONTROL.load(Ordering::SeqCst) {
            0 => Control::bytes(length as usize),
            expected => Control(expected),
        };
        let answer = message::call(portal, [0, round % 4 / 3, length, 0, 0], control);
        let is_right = answer.is_ok_and(|(words, _)| words[0] == length);
        WRONG.fetch_add((!is_right).into(), Ordering::SeqCst);
    }
    ENDED.fetch_add(1, Ordering::SeqCst);
    while !QUIET.load(Ordering::SeqCst) {
        let _ = thread::sleep(SHORTLY);
    }
}

/// Writes to the callers' areas until they have all answers.
fn writes(_: usize) {
    for turn in 0_usize.. {
        for area in AREAS.iter().map(|area| area.load(Ordering::SeqCst)).filter(|area| *area != 0) {
            (0..MESSAGE_BYTES as u64).step_by(8).for_each(|place| poke_word(area + place, SENT[turn % 2]));
        }
        if ENDED.load(Ordering::SeqCst) == CALLERS as u64 {
            break;
        }
        op::yield_now();
    }
    QUIET.store(true, Ordering::SeqCst);
}

/// Calls to a service of this shape, which expect this; 0 = a message.
fn called(shape: Entry, expected: u64) -> Result<(), Error> {
    let service = Owned::new(service_here::<Watches>(shape)?);
    let portal = Owned::new(table::allocate()?);
    op::portal_new(Entry::OWN, service.entry(), u64::from(expected == 0), portal.entry(), 0)?;
    PORTAL.store(portal.entry().0 as u64, Ordering::SeqCst);
    CONTROL.store(expected, Ordering::SeqCst);
    for counter in AREAS.iter().chain(&SEEN).chain([&SERVED, &WRONG, &ENDED]) {
        counter.store(0, Ordering::SeqCst);
    }
    FILLED.iter().chain([&QUIET]).for_each(|flag| flag.store(false, Ordering::SeqCst));
    let callers = (0..CALLERS).map(|number| Thread::start(calls, number));
    let threads = callers.chain([Thread::start(writes, 0)]).collect::<Result<alloc::vec::Vec<_>, _>>()?;
    threads.into_iter().for_each(Thread::join);
    Ok(())
}

fn changing() -> Result<(), &'static str> {
    server::activations(1).map_err(Error::text)?;
    let specification = Specification::parse(b"npkiib>i").map_err(|_| "no specification")?;
    let expected = specification.expects().map_or(0, |what| Control::expecting(what).0);
    let shape = Owned::new(op::shape_new(Entry::SPECIAL, b"npkiib>i").map_err(Error::text)?);
    let mut before = None;
    for _ in 0..2 {
        for (shape, expected) in [(Entry::OWN, 0), (shape.entry(), expected)] {
            called(shape, expected).map_err(Error::text)?;
            hold(WRONG.load(Ordering::SeqCst) == 0, "other bytes, or more of them")?;
            hold(SERVED.load(Ordering::SeqCst) == CALLERS as u64 * ROUNDS, "another number of calls")?;
            hold(SEEN.iter().all(|seen| seen.load(Ordering::SeqCst) > 0), "nothing changed")?;
        }
        let now = frames()?;
        hold(before.replace(now).is_none_or(|before| before == now), "frames were lost")?;
    }
    Ok(())
}
