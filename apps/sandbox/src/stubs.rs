//! Stubs: services of ours that stand where the program would have a portal, and what becomes of their calls.
//!
//! A stub knows nothing of interfaces. It passes words, bytes and entries on as they are, and what comes back. Of an entry that comes
//! along, there or back, the other side gets a copy; of a call entry, a stub.
//!
//! The nucleus does not report that a program lets go of an entry. So a thread asks now and then, in the nucleus's list of portals, which stubs somebody
//! still has ([`sweep`]).

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use idl::{AllWords, Answer, Delegate, Delegated, Protocol, Reply, Request, Transport, Words, is_of_window};
use runtime::abi::info::Portal;
use runtime::abi::rights::{CONTROL, Kind, WRITE};
use runtime::abi::{Control, Error, MESSAGE_BYTES, NEVER};
use runtime::connection::Direct;
use runtime::entry::Owned;
use runtime::idl::Again;
use runtime::server::{self, Serve, ServeAllWords};
use runtime::sync::{Mutex, Once};
use runtime::{Entry, message, op, thread, window};
use tool::{eprintln, inspect};

use crate::list::{self, Object};

/// The shape of services without one.
const PLAIN: u64 = 0;
/// Characters of a call's text that are shown.
const TEXT: usize = 40;

/// Stubs there can be. Each takes some hundred bytes, and an entry.
const MAX_STUBS: usize = 2048;
/// So many more, and it is asked which are still there.
const MANY: usize = 128;

struct Stub {
    /// Where its calls go.
    target: Entry,
    /// The kind of object there.
    object: Object,
    /// By which call it was made.
    origin: String,
    /// How often it was called.
    calls: u64,
    /// Calls that are under way.
    active: u32,
    /// Its target is an entry that we need ourselves.
    is_ours: bool,
    /// Somebody has been seen to have it, or has called it.
    is_known: bool,
    /// In the sweep that runs: nobody has been seen yet.
    is_lost: bool,
}

struct Stubs {
    /// A stub's badge is its place here.
    all: Vec<Option<Stub>>,
    /// Made since the last sweep.
    made: usize,
    /// Those that are gone, and their calls.
    gone: (usize, u64),
}

static STUBS: Mutex<Stubs> = Mutex::new(Stubs { all: Vec::new(), made: 0, gone: (0, 0) });

/// Raised when there are [`MANY`] more.
static MORE: Once<Result<Entry, Error>> = Once::new();

static MESSAGES: Mutex<Option<Entry>> = Mutex::new(None);
static WITH_WINDOWS: Mutex<Option<Entry>> = Mutex::new(None);
static IN_WORDS: Mutex<Option<Entry>> = Mutex::new(None);

static TRACED: AtomicBool = AtomicBool::new(false);

/// The number of the program's domain.
static WATCHED: AtomicU64 = AtomicU64::new(u64::MAX);

/// The program runs in the domain with this number.
pub fn watch(domain: u64) {
    WATCHED.store(domain, Ordering::Relaxed);
}

/// Whether each call is said.
pub fn trace(on: bool) {
    TRACED.store(on, Ordering::Relaxed);
}

/// The service of stubs for portals of this shape.
fn service(shape: u64) -> Result<Entry, Error> {
    let plain = || one(&MESSAGES, server::service::<Messages>);
    if shape == PLAIN {
        return plain();
    }
    let with_windows = one(&WITH_WINDOWS, || server::window_service::<Messages>().map_err(|_| Error::Full));
    // In a sandbox there is no shape for us. Clients then send messages where they would show windows.
    let Ok(with_windows) = with_windows else { return plain() };
    if op::shape_number(with_windows)? == shape {
        return Ok(with_windows);
    }
    let in_words = one(&IN_WORDS, || server::all_words_service::<InWords>().map_err(|_| Error::Full))?;
    if op::shape_number(in_words)? == shape { Ok(in_words) } else { Err(Error::WrongKind) }
}

/// A service that is made when it is needed first.
fn one(place: &Mutex<Option<Entry>>, make: impl FnOnce() -> Result<Entry, Error>) -> Result<Entry, Error> {
    let mut made = place.lock();
    let service = match *made {
        Some(service) => service,
        None => make()?,
    };
    *made = Some(service);
    Ok(service)
}

/// Makes a stub for an entry of ours: a service of the same shape, and the badge that an entry made from it must have.
fn make(target: Entry, object: Object, origin: String, is_ours: bool) -> Result<(Entry, u64), Error> {
    let service = service(op::shape_number(target)?)?;
    let mut stubs = STUBS.lock();
    stubs.made += 1;
    let place = match stubs.all.iter().position(Option::is_none) {
        Some(place) => place,
        None if stubs.all.len() < MAX_STUBS && stubs.all.try_reserve(1).is_ok() => {
            stubs.all.push(None);
            stubs.all.len() - 1
        }
        None => {
            let _ = more().map(op::v);
            return Err(Error::Full);
        }
    };
    let (calls, active, is_known, is_lost) = (0, 0, false, false);
    stubs.all[place] = Some(Stub { target, object, origin, calls, active, is_ours, is_known, is_lost });
    if stubs.made == MANY {
        let _ = more().map(op::v);
    }
    Ok((service, place as u64))
}

fn more() -> Result<Entry, Error> {
    *MORE.get_or_make(|| op::semaphore_new(Entry::OWN, 0))
}

/// Has a thread let go of stubs that nobody has.
pub fn keep_room() -> Result<(), Error> {
    let more = more()?;
    let own = op::domain_number(Entry::DOMAIN)?;
    thread::spawn(move || {
        while op::p(more, NEVER).is_ok() {
            // Without the list everything stays.
            let _ = sweep(own);
        }
    })
    .map(drop)
}

/// Lets go of stubs that nobody has. A call entry cannot be copied or moved, so one that is in no table is gone; but one that was made just now
/// may be on its way.
fn sweep(own: u64) -> Result<(), inspect::Refusal> {
    let each = |work: &mut dyn FnMut(&mut Stub)| STUBS.lock().all.iter_mut().flatten().for_each(work);
    STUBS.lock().made = 0;
    each(&mut |stub| stub.is_lost = !stub.is_ours && stub.is_known);
    inspect::each_own(|portal: Portal| {
        if portal.index != 0
            && portal.to == own
            && let Some(Some(stub)) = STUBS.lock().all.get_mut(portal.badge as usize)
        {
            stub.is_known = true;
            stub.is_lost = false;
        }
    })?;
    let mut stubs = STUBS.lock();
    let Stubs { all, gone, .. } = &mut *stubs;
    for stub in all {
        if let Some(lost) = stub.take_if(|stub| stub.is_lost && stub.active == 0) {
            *gone = (gone.0 + 1, gone.1 + lost.calls);
            drop(Owned::new(lost.target));
        }
    }
    Ok(())
}

/// Puts a stub for a portal of ours into the program's table at `index`.
pub fn put(domain: Entry, target: Entry, index: Entry, origin: &str) -> Result<(), Error> {
    let (service, badge) = make(target, Object::named(origin), String::from(origin), true)?;
    op::portal_new(domain, service, badge, index, 0).map(drop)
}

/// Shows each stub, with its number, calls and origin; gives how many there were besides, and their calls.
pub fn each(mut show: impl FnMut(usize, u64, &str)) -> (usize, u64) {
    let stubs = STUBS.lock();
    let there = stubs.all.iter().enumerate().filter_map(|(number, stub)| Some((number, stub.as_ref()?)));
    there.for_each(|(number, stub)| show(number, stub.calls, &stub.origin));
    stubs.gone
}

/// A call of a stub begins: where it goes, and to what.
fn begin(badge: u64, method: u64, text: &str) -> Option<(Entry, Object)> {
    let target = {
        let mut stubs = STUBS.lock();
        let stub = stubs.all.get_mut(usize::try_from(badge).ok()?)?.as_mut()?;
        stub.calls += 1;
        stub.active += 1;
        stub.is_known = true;
        (stub.target, stub.object)
    };
    if TRACED.load(Ordering::Relaxed) {
        eprintln!("sandbox: {}", call(badge, method, text));
    }
    Some(target)
}

/// A call that [began](begin) is over.
fn end(badge: u64) {
    if let Some(Some(stub)) = STUBS.lock().all.get_mut(badge as usize) {
        stub.active = stub.active.saturating_sub(1);
    }
}

/// A call, for people.
fn call(badge: u64, method: u64, text: &str) -> String {
    let quote = if text.is_empty() { "" } else { "\"" };
    let separator = if text.is_empty() { "" } else { ", " };
    format!("portal {badge}, {}{separator}{quote}{text}{quote}", list::name(method))
}

/// The text that a message begins with, if it does.
fn text(word0: u64, bytes: &[u8]) -> &str {
    let first = list::parameter(0, word0, bytes);
    let end = first.iter().position(|byte| !(b' '..=b'~').contains(byte)).unwrap_or(first.len());
    core::str::from_utf8(&first[..end.min(TEXT)]).unwrap_or_default()
}

/// The nucleus did not carry a call to where a stub leads. If nobody is there any more, the call ends as it would without us. The stub stays:
/// the maker of our portal may make it again.
fn fail(error: Error) -> Protocol {
    if matches!(error, Error::PeerDied | Error::Revoked | Error::Empty) {
        server::abandon();
    }
    Protocol::NotDelivered
}

/// The receiver of an entry that is passed on.
#[derive(Clone, Copy, PartialEq, Eq)]
enum To {
    Server,
    Program,
}

/// Makes what the other side gets for an entry that came along. That entry stays in our table, because the copy is derived from it.
fn pass_on(came: Delegated, to: To, object: Object, origin: impl FnOnce() -> String) -> Result<Delegate, Error> {
    let entry = Owned::new(came.into());
    let (kind, mut rights) = op::entry_info(Entry::OWN, entry.entry())?;
    let given = match kind {
        Kind::Call => {
            let (service, badge) = make(entry.entry(), object, origin(), false)?;
            Delegate::mint(service.0, badge)
        }
        // It could make portals to it that do not lead here.
        Kind::Service if to == To::Program => return Err(Error::WrongKind),
        _ => {
            // A server could put portals into its table; a confined program would get them out of that of a domain that it made.
            let is_closed = |number| list::is_there() || number == WATCHED.load(Ordering::Relaxed);
            if op::domain_number(entry.entry()).is_ok_and(is_closed) {
                rights &= !(WRITE | CONTROL);
            }
            Delegate::entry(entry.entry().0, rights)
        }
    };
    let _ = entry.leak();
    Ok(given)
}

/// Stubs for portals that pass messages.
struct Messages;

impl Serve for Messages {
    fn serve(request: &mut Request<'_>) -> Reply {
        // Until the answer is there, calls of our own leave this part of the message area alone.
        request.lent.set(request.length as u64);
        let outcome = pass(request);
        end(request.badge);
        request.lent.set(0);
        outcome.unwrap_or_else(|error| fail(error).reply())
    }
}

/// Counts the call, says it, and makes it, if no list refuses it.
fn pass(request: &mut Request<'_>) -> Result<Reply, Error> {
    let (badge, method) = (request.badge, request.method());
    // It is overwritten by the answer.
    let shown = String::from(text(request.words[0], &request.area[..request.length]));
    let (target, object) = begin(badge, method, &shown).ok_or(Error::BadArgument)?;
    if let Some((refusal, what)) = list::refusal(object, &request.words, &request.area[..request.length]) {
        if TRACED.load(Ordering::Relaxed) {
            eprintln!("sandbox: refused: {what}");
        }
        return Ok(refusal);
    }
    let hands_over = request.delegated.is_some();
    let brought = object.brings(method, &shown);
    match forward(request, target, brought, || call(badge, method, &shown)) {
        // It may be what was handed over that is gone.
        Err(Error::Revoked) if hands_over && target.is(Kind::Call, 0) => Err(Error::NotAccepted),
        // Its client makes the call again, with a message.
        Err(error) if request.window.is_some() && is_of_window(error) => Ok(Protocol::BadWindow.reply()),
        // Our table, or our account, has no room for another stub.
        Err(error @ (Error::Full | Error::AccountExhausted | Error::NotAccepted)) => {
            list::note_no_room();
            Err(error)
        }
        outcome => outcome.map(|mut reply| {
            list::filter(object, method, &mut reply, request.area);
            reply
        }),
    }
}

/// Makes the call, and answers with what it answered.
fn forward(
    request: &mut Request<'_>,
    target: Entry,
    brought: Object,
    origin: impl Fn() -> String,
) -> Result<Reply, Error> {
    let mut message = Answer { words: request.words, control: Control(0) };
    if let Some(came) = request.delegated.take() {
        let given = pass_on(came, To::Server, Object::Other, &origin)?;
        add(given, &mut message.words, &mut message.control);
    }
    // The answer may carry an entry.
    message::prepare_receive()?;
    let mut answered = [0; MESSAGE_BYTES];
    let sent = &request.area[..request.length];
    match request.window {
        Some(shown) => window::hand_on(target, &mut message, shown, &[sent], &mut answered)?,
        None => message::call_bytes(target, &mut message, &[sent], &mut answered)?,
    }
    let length = message.control.length().min(MESSAGE_BYTES);
    let mut reply = Reply { words: message.words, control: Control::bytes(length) };
    if message.control.delegated() != 0 {
        let given = pass_on(Delegated(message.control.delegated()), To::Program, brought, origin)?;
        add(given, &mut reply.words, &mut reply.control);
    }
    request.area[..length].copy_from_slice(&answered[..length]);
    Ok(reply)
}

/// Has an entry go along.
fn add(given: Delegate, words: &mut Words, control: &mut Control) {
    *control = Control(control.0 | given.control().0);
    if control.0 & Control::MINT != 0 {
        words[4] = given.badge();
    }
}

/// Stubs for portals that pass words alone.
struct InWords;

impl ServeAllWords for InWords {
    fn serve(badge: u64, words: &AllWords) -> AllWords {
        let Some((target, _)) = begin(badge, words[0], "") else { return Protocol::UnknownMethod.words() };
        let outcome = Direct(target).call_all_words(*words, Again::Harmful);
        end(badge);
        outcome.unwrap_or_else(|error| fail(error).words())
    }
}
