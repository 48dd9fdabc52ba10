//! The flow of information between domains: those that raise labels, their partners, and owners of the handle. The others are this program again;
//! word 0 of a call says what they do, and the answer is the status of that and what came of it.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::sync::Arc;
use core::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use idl::{Reply, Request};
use protocols::names::NamesClient;
use protocols::net::NetClient;
use runtime::abi::level::{ONE, STAR, THREE, TWO};
use runtime::abi::{Control, Error, PAGE_BYTES, op as operations};
use runtime::connection::{Connection, Direct, Name};
use runtime::entry::Owned;
use runtime::server::{self, Serve};
use runtime::{Entry, message, op, program, thread};

use crate::case::{Case, text};
use crate::child::Child;
use crate::launch::Process;

/// All of them.
pub const ALL: &[Case] = &[
    Case::tried("label-tainted", "a tainted domain calls those that accept no taint", tainted),
    Case::tried("label-owned", "a tainted domain calls the owner of the handle", owned),
    Case::tried("label-floating", "a domain calls one that is tainted, and accepts that", floating),
    Case::tried("label-in-flight", "a domain is tainted while calls of it and by it are in flight", in_flight),
    Case::tried("label-inherited", "a child of a tainted domain calls for it", inherited),
    Case::tried("label-lowered", "a domain takes its own taint away, or accepts more", lowered),
    Case::tried("label-pager", "a domain is tainted that its pager does not accept", pager),
    Case::tried("label-large", "labels of hundreds of handles, which others own, or do not", large),
    Case::tried("label-huge", "labels of ten thousand handles, built separately, judged and combined", huge),
    Case::tried("label-hoard", "a domain is tainted with handles until its account ends", hoard_all),
];

// The requests to the others, with two operands.
const HANDLE: u64 = 1;
const SEND: u64 = 2;
const RECEIVE: u64 = 3;
const EXPLICIT: u64 = 4;
const LEVELS: u64 = 5;
const OPEN: u64 = 6;
const CALL: u64 = 7;
const BEGIN: u64 = 8;
const LAST: u64 = 9;
const WAIT: u64 = 10;
const HOARD: u64 = 11;
const SPAWN: u64 = 12;
const NETWORK: u64 = 13;
const NOTHING: u64 = 14;
const SPAWN_RECEIVES: u64 = 15;
const TAINT: u64 = 16;
const END: u64 = 17;
/// A page at which nothing is.
const NOWHERE: u64 = 0x6000_0000;

const MILLISECOND: u64 = 1_000_000;
const ACTIVATIONS: usize = 4;

static OTHER: AtomicUsize = AtomicUsize::new(0);
/// The status of the call that was begun last, plus one.
static ENDED: AtomicU64 = AtomicU64::new(0);

struct Victim;

fn answer(result: Result<u64, Error>) -> Reply {
    let (status, value) = match result {
        Ok(value) => (0, value),
        Err(error) => (error as u64, 0),
    };
    Reply { words: [status, value, 0, 0, 0], control: Control(0) }
}

fn done(result: Result<(), Error>) -> Reply {
    answer(result.map(|()| 0))
}

/// Calls the other one that was opened; the status and value of that call.
fn call_other(what: u64, operand: u64) -> Result<u64, Error> {
    ask(Entry(OTHER.load(Ordering::SeqCst)), what, operand, 0)
}

impl Serve for Victim {
    fn serve(request: &mut Request<'_>) -> Reply {
        let [what, first, second, ..] = request.words;
        match what {
            HANDLE => answer(op::label_handle()),
            SEND => done(op::label_send(first, second)),
            RECEIVE => done(op::label_receive(first, second)),
            EXPLICIT => done(op::label_explicit(first != 0)),
            LEVELS => answer(op::label_levels(first).map(|[send, receive]| send | receive << 3)),
            OPEN => answer(open(name_of(first)).map(|entry| {
                OTHER.store(entry.leak().0, Ordering::SeqCst);
                0
            })),
            CALL => answer(call_other(first, second)),
            BEGIN => {
                ENDED.store(0, Ordering::SeqCst);
                let begun = thread::spawn(move || {
                    let status = call_other(first, second).map_or_else(|error| error as u64, |_| 0);
                    ENDED.store(status + 1, Ordering::SeqCst);
                });
                done(begun.map(core::mem::forget))
            }
            LAST => answer(Ok(ENDED.load(Ordering::SeqCst))),
            WAIT => done(thread::sleep(first)),
            HOARD => answer(hoard(first)),
            TAINT => done(taint(first)),
            END => program::exit(0),
            SPAWN => answer(child_sets(operations::LABEL_SEND, first, second)),
            SPAWN_RECEIVES => answer(child_sets(operations::LABEL_RECEIVE, first, second)),
            NETWORK => done(match NetClient(Connection::<Name<'_>>::named("net")).interfaces(0, &mut [0; 8]) {
                Err(idl::Failure::Transport(error)) => Err(error),
                _ => Ok(()),
            }),
            _ => answer(Ok(what)),
        }
    }
}

/// Accepts less of handles that nobody owns, until that is refused; how many there are then.
fn hoard(first: u64) -> Result<u64, Error> {
    for count in 0.. {
        match op::label_receive(spread(first + count), ONE) {
            Ok(()) => {}
            Err(Error::AccountExhausted) => return Ok(count),
            Err(error) => return Err(error),
        }
    }
    Ok(0)
}

/// Our send label gets so many handles that nobody owns, with a level that all accept.
fn taint(count: u64) -> Result<(), Error> {
    (0..count).try_for_each(|number| op::label_send(spread(number), TWO))
}

/// Numbers that are as handles are.
pub fn spread(number: u64) -> u64 {
    number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 3
}

/// The status that a child of ours gets when it sets a level of one of its labels.
fn child_sets(which: u64, handle: u64, level: u64) -> Result<u64, Error> {
    let sets = [which, handle, level, 0, 0, 0];
    let outcome = Child::new()?.calls(operations::LABEL as u64, sets);
    outcome.map_err(|why| if why == Error::Flow.text() { Error::Flow } else { Error::Cancelled })
}

fn name_of(number: u64) -> &'static str {
    ["negtest-label-0", "negtest-label-1"][number as usize & 1]
}

/// Is one of the others.
pub fn serve(name: &'static str) -> u8 {
    let publish = || -> Result<(), String> {
        server::activations(ACTIVATIONS).map_err(|error| error.to_string())?;
        let service = server::service::<Victim>().map_err(|error| error.to_string())?;
        server::publish_service(name, service).map_err(|error| error.to_string())
    };
    match publish() {
        Ok(()) => server::park(),
        Err(error) => {
            runtime::log!("cannot serve: {error}");
            1
        }
    }
}

fn open(name: &str) -> Result<Owned, Error> {
    for _ in 0..200 {
        if let Ok(entry) = NamesClient(Direct(Entry::NAMES)).open(name) {
            let entry = Owned::new(entry.into());
            if ask(entry.entry(), NOTHING, 0, 0) == Ok(NOTHING) {
                return Ok(entry);
            }
        }
        thread::sleep(MILLISECOND)?;
    }
    Err(Error::Timeout)
}

/// Calls one of the others; gives the value or the error of its answer.
fn ask(entry: Entry, what: u64, first: u64, second: u64) -> Result<u64, Error> {
    let (words, _) = message::call(entry, [what, first, second, 0, 0], Control(0))?;
    Error::from_status(words[0]).map(|()| words[1])
}

/// One of the others.
struct Other {
    process: Process,
    entry: Owned,
}

impl Other {
    fn start(number: u64) -> Result<Self, String> {
        Self::start_with(number, 0)
    }

    fn start_with(number: u64, frames: u64) -> Result<Self, String> {
        let process = Process::start_with("victim", &["--serve-labels", name_of(number)], frames)?;
        Ok(Self { process, entry: open(name_of(number)).map_err(|error| error.to_string())? })
    }

    fn ask(&self, what: u64, first: u64, second: u64) -> Result<u64, Error> {
        ask(self.entry.entry(), what, first, second)
    }

    /// Its levels of a handle, as it says.
    fn has(&self, handle: u64, send: u64, receive: u64) -> Result<(), String> {
        expect("its levels", self.ask(LEVELS, handle, 0), Ok(send | receive << 3))
    }

    fn end(self) -> Result<(), String> {
        self.process.kill().map(drop)
    }
}

fn expect<T: PartialEq + core::fmt::Debug>(what: &str, is: T, right: T) -> Result<(), String> {
    if is == right { Ok(()) } else { Err(format!("{what}: {is:x?} instead of {right:x?}")) }
}

/// The outcome of a call that the labels forbid.
const FLOW: Result<u64, Error> = Err(Error::Flow);

fn tainted() -> Result<String, String> {
    let [one, other] = [Other::start(0)?, Other::start(1)?];
    expect("a call before", one.ask(OPEN, 1, 0), Ok(0))?;
    // We own nothing: any handle will do. The call in which it is tainted does not come back.
    expect("the taint", one.ask(SEND, spread(1), THREE), FLOW)?;
    expect("a call of the tainted one", one.ask(NOTHING, 0, 0), FLOW)?;
    expect("a call of the other one", other.ask(NOTHING, 0, 0), Ok(NOTHING))?;
    one.end()?;
    other.end()?;
    Ok(format!("its calls end: {}", Error::Flow))
}

fn owned() -> Result<String, String> {
    let [one, other] = [Other::start(0)?, Other::start(1)?];
    expect("a call before", one.ask(OPEN, 1, 0), Ok(0))?;
    let handle = op::label_handle().map_err(text)?;
    expect("a second handle", op::label_handle().map_err(text)? == handle, false)?;
    expect("our levels", op::label_levels(handle), Ok([STAR, TWO]))?;
    op::label_receive(handle, THREE).map_err(text)?;
    expect("the taint", one.ask(SEND, handle, THREE), Ok(0))?;
    one.has(handle, THREE, TWO)?;
    expect("its call of the other one", one.ask(CALL, NOTHING, 0), FLOW)?;
    expect("its call of the network", one.ask(NETWORK, 0, 0), FLOW)?;
    expect("the other one", other.ask(NOTHING, 0, 0), Ok(NOTHING))?;
    other.has(handle, ONE, TWO)?;
    // Without ownership we are a domain like the others.
    op::label_send(handle, ONE).map_err(text)?;
    expect("a call without ownership", one.ask(NOTHING, 0, 0), FLOW)?;
    one.end()?;
    other.end()?;
    Ok("it is heard by the owner, and by nobody else".to_string())
}

fn floating() -> Result<String, String> {
    let [one, other] = [Other::start(0)?, Other::start(1)?];
    let handle = op::label_handle().map_err(text)?;
    expect("opening", other.ask(OPEN, 0, 0), Ok(0))?;
    expect("the taint", one.ask(SEND, handle, TWO), Ok(0))?;
    expect("explicit mode", other.ask(EXPLICIT, 1, 0), Ok(0))?;
    expect("a call in explicit mode", other.ask(CALL, NOTHING, 0), FLOW)?;
    other.has(handle, ONE, TWO)?;
    expect("the usual mode", other.ask(EXPLICIT, 0, 0), Ok(0))?;
    expect("a call that floats", other.ask(CALL, NOTHING, 0), Ok(NOTHING))?;
    other.has(handle, TWO, TWO)?;
    expect("the next call", other.ask(CALL, NOTHING, 0), Ok(NOTHING))?;
    expect("its call of the network", other.ask(NETWORK, 0, 0), FLOW)?;
    one.end()?;
    other.end()?;
    op::label_send(handle, ONE).map_err(text)?;
    Ok("its caller is tainted before, or refused in explicit mode".to_string())
}

fn in_flight() -> Result<String, String> {
    let [one, other] = [Other::start(0)?, Other::start(1)?];
    let handle = op::label_handle().map_err(text)?;
    op::label_receive(handle, THREE).map_err(text)?;
    expect("opening", [one.ask(OPEN, 1, 0), other.ask(OPEN, 0, 0)], [Ok(0), Ok(0)])?;
    // Each calls the other one, which waits.
    for both in [&one, &other] {
        expect("a call", both.ask(BEGIN, WAIT, 60 * MILLISECOND), Ok(0))?;
    }
    let entry = Arc::new(AtomicUsize::new(one.entry.entry().0));
    let result = Arc::new(AtomicU64::new(0));
    let ours = thread::spawn({
        let (entry, result) = (entry.clone(), result.clone());
        move || {
            let status = ask(Entry(entry.load(Ordering::SeqCst)), WAIT, 60 * MILLISECOND, 0);
            result.store(status.map_or_else(|error| error as u64, |_| 0) + 1, Ordering::SeqCst);
        }
    })
    .map_err(text)?;
    thread::sleep(10 * MILLISECOND).map_err(text)?;
    expect("the taint", one.ask(SEND, handle, THREE), Ok(0))?;
    thread::sleep(5 * MILLISECOND).map_err(text)?;
    let flow = Error::Flow as u64 + 1;
    expect("the call of the tainted one", one.ask(LAST, 0, 0), Ok(flow))?;
    expect("the call by the tainted one", other.ask(LAST, 0, 0), Ok(flow))?;
    ours.join();
    expect("the owner's call", result.load(Ordering::SeqCst), 1)?;
    expect("what was cut off ends", one.ask(NOTHING, 0, 0), Ok(NOTHING))?;
    thread::sleep(100 * MILLISECOND).map_err(text)?;
    expect("both", [one.ask(NOTHING, 0, 0), other.ask(NOTHING, 0, 0)], [Ok(NOTHING), Ok(NOTHING)])?;
    one.end()?;
    other.end()?;
    op::label_send(handle, ONE).map_err(text)?;
    Ok(format!("they end: {}; the owner's goes on", Error::Flow))
}

fn inherited() -> Result<String, String> {
    let one = Other::start(0)?;
    let handle = op::label_handle().map_err(text)?;
    op::label_receive(handle, THREE).map_err(text)?;
    let not_owned = Error::NotOwned as u64;
    expect("a child of ours, which owns nothing", child_sets(operations::LABEL_SEND, handle, STAR), Ok(not_owned))?;
    expect("a child of one without taint", one.ask(SPAWN, handle, ONE), Ok(0))?;
    let theirs = one.ask(HANDLE, 0, 0).map_err(text)?;
    expect("to accept its own", one.ask(RECEIVE, theirs, THREE), Ok(0))?;
    expect("a child of the owner, which does not", one.ask(SPAWN_RECEIVES, theirs, THREE), Ok(not_owned))?;
    expect("the taint", one.ask(SEND, handle, THREE), Ok(0))?;
    expect("a child that it could not talk to", one.ask(SPAWN, handle, THREE), Err(Error::Flow))?;
    let trusted = Child::with_flags(operations::DOMAIN_TRUSTED).map(drop);
    expect("a child that owns everything", trusted, Err(Error::NotTrusted))?;
    one.end()?;
    op::label_send(handle, ONE).map_err(text)?;
    Ok("it is as tainted, and owns nothing".to_string())
}

fn lowered() -> Result<String, String> {
    let one = Other::start(0)?;
    let handle = op::label_handle().map_err(text)?;
    let steps = [
        (SEND, TWO, Ok(0)),
        (SEND, ONE, Err(Error::NotOwned)),
        (SEND, STAR, Err(Error::NotOwned)),
        (SEND, TWO, Ok(0)),
        (SEND, THREE + 1, Err(Error::BadArgument)),
        (RECEIVE, THREE, Err(Error::NotOwned)),
        (RECEIVE, ONE, Ok(0)),
        (RECEIVE, TWO, Err(Error::NotOwned)),
        (RECEIVE, u64::MAX, Err(Error::BadArgument)),
    ];
    for (what, level, right) in steps {
        expect(&format!("operation {what} to {level}"), one.ask(what, handle, level), right)?;
    }
    expect("a handle of 62 bits", one.ask(SEND, 1 << 61, ONE), Err(Error::BadArgument))?;
    one.has(handle, TWO, ONE)?;
    expect("what it owns", one.ask(HANDLE, 0, 0).map(|handle| one.has(handle, STAR, TWO)), Ok(Ok(())))?;
    let unknown = Child::new().map_err(text)?.calls(operations::LABEL as u64, [99, 0, 0, 0, 0, 0])?;
    expect("no such way", unknown, Error::NoSuchWay as u64)?;
    one.end()?;
    op::label_send(handle, ONE).map_err(text)?;
    Ok(format!("refused: {}", Error::NotOwned))
}

fn pager() -> Result<String, String> {
    let service = Owned::new(server::service::<Victim>().map_err(text)?);
    let child = || -> Result<Child, Error> {
        let child = Child::new()?;
        child.pages_by(service.entry(), 0, NOWHERE, NOWHERE + PAGE_BYTES as u64)?;
        Ok(child)
    };
    let sends = |level| [operations::LABEL_SEND, spread(3), level, 0, 0, 0];
    let status = |level| child().map_err(text)?.calls(operations::LABEL as u64, sends(level)).map_err(String::from);
    expect("what the pager does not accept", status(THREE)?, Error::Flow as u64)?;
    expect("what would taint the pager", status(TWO)?, Error::Flow as u64)?;
    expect("what changes nothing", status(ONE)?, 0)?;
    Ok(format!("refused: {}", Error::Flow))
}

fn large() -> Result<String, String> {
    const HANDLES: usize = 200;
    let one = Other::start(0)?;
    let mut handles = [0; HANDLES];
    for handle in &mut handles {
        *handle = op::label_handle().map_err(text)?;
        op::label_receive(*handle, THREE).map_err(text)?;
        expect("the taint", one.ask(SEND, *handle, THREE), Ok(0))?;
    }
    let mut reported = 0;
    for position in (0..HANDLES).step_by(op::LABEL_ENTRIES) {
        let label = op::label_read(Entry(0), position as u64, |handle, level| {
            reported += usize::from(handles.contains(&handle) && level == STAR);
        });
        expect("our send label", label, Ok((HANDLES as u64, ONE)))?;
    }
    expect("what we own", reported, HANDLES)?;
    expect("a call", one.ask(NOTHING, 0, 0), Ok(NOTHING))?;
    op::label_send(handles[HANDLES / 2], ONE).map_err(text)?;
    expect("a call without one of them", one.ask(NOTHING, 0, 0), FLOW)?;
    one.end()?;
    handles.iter().try_for_each(|handle| op::label_send(*handle, ONE)).map_err(text)?;
    expect("our send label in the end", op::label_read(Entry(0), 0, |_, _| ()), Ok((0, ONE)))?;
    Ok("each of them counts".to_string())
}

fn huge() -> Result<String, String> {
    const HANDLES: u64 = 10_000;
    // Handles that another label has, too, and as many more that it alone has.
    const COMMON: u64 = 100;
    const OTHERS: u64 = 2_000;
    let one = Other::start_with(0, 512)?;
    // The first handle ends the call, as its answer would taint us; the rest follows.
    expect("its taint", one.ask(TAINT, HANDLES, 0), FLOW)?;
    taint(HANDLES).map_err(text)?;
    let ends = op::clock() + 10_000 * MILLISECOND;
    while one.ask(NOTHING, 0, 0) == FLOW && op::clock() < ends {
        thread::sleep(MILLISECOND).map_err(text)?;
    }
    expect("a call of one as tainted", one.ask(NOTHING, 0, 0), Ok(NOTHING))?;
    let entries = |label: &Owned| op::label_read(label.entry(), 0, |_, _| ()).map(|(count, _)| count);
    let label = Owned::new(op::label_new(op::LabelFrom::Send).map_err(text)?);
    let other = Owned::new(op::label_new(op::LabelFrom::Level(ONE)).map_err(text)?);
    for number in HANDLES - COMMON..HANDLES + OTHERS {
        op::label_put(other.entry(), spread(number), THREE).map_err(text)?;
    }
    op::label_combine(label.entry(), other.entry(), false).map_err(text)?;
    expect("a least upper bound", entries(&label), Ok(HANDLES + OTHERS))?;
    let label = Owned::new(op::label_new(op::LabelFrom::Send).map_err(text)?);
    op::label_combine(label.entry(), other.entry(), true).map_err(text)?;
    expect("a greatest lower bound", entries(&label), Ok(COMMON))?;
    // `proc` ends nothing for one so tainted.
    expect("its end", one.ask(END, 0, 0), Err(Error::PeerDied))?;
    Ok("each of them counts".to_string())
}

fn hoard_all() -> Result<String, String> {
    let one = Other::start_with(0, 512)?;
    let count = one.ask(HOARD, 1_000, 0).map_err(text)?;
    // A change needs room for a path of the label before what was there is free.
    let more = one.ask(HOARD, 1_000_000, 0).map_err(text)?;
    expect("few more", more < count / 10, true)?;
    expect("a call", one.ask(NOTHING, 0, 0), Ok(NOTHING))?;
    expect("its first level", one.ask(LEVELS, spread(1_000), 0), Ok(ONE | ONE << 3))?;
    expect("its last level", one.ask(LEVELS, spread(1_000 + count - 1), 0), Ok(ONE | ONE << 3))?;
    one.end()?;
    if count < 1_000 {
        return Err(format!("only {count} handles have room"));
    }
    Ok(format!("refused: {}", Error::AccountExhausted))
}
