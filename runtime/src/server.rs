//! Serving: the entry for calls that arrive, and the making of services.
//!
//! A server makes activations, a service for each interface, and publishes it through its parent.
//! Each call runs on one activation, several at once if there are several: state lives in statics behind
//! mutexes. The main thread then has nothing more to do and [`park`]s.

use core::marker::PhantomData;
use core::sync::atomic::{AtomicUsize, Ordering};

use abi::{Control, Error, MESSAGE_BYTES, rights};
use idl::{Delegate, Delegated, Failure, Protocol, Reply, Request, Window};
use protocols::names::{NamesClient, NamesError};
use protocols::parent::{ParentClient, ParentError};

pub use crate::kept::is_short;

use crate::area::{StackTop, clear_rest_of_word};
use crate::connection::{Connection, Direct, NameService};
use crate::entry::Owned;
use crate::message::{AllWords, Words};
use crate::sync::{prepare_wait, private_semaphore};
use crate::thread::Slot;
use crate::window::OfCall;
use crate::{Entry, arch, message, op, table};

/// A service: one entry point of this domain.
///
/// State is shared by all activations, so it lives in statics behind a mutex; the type itself only
/// names the function.
pub trait Serve {
    /// Handles one call.
    fn serve(request: &mut Request<'_>) -> Reply;

    /// Whether this call may allocate. One that may is refused with [`Protocol::NoMemory`] while the part of the heap that
    /// is kept ([`keep_memory`]) is not there. Methods that free memory, or take none, should work then too.
    fn needs_memory(_request: &Request<'_>) -> bool {
        true
    }
}

/// Keeps so many bytes of the heap for calls that are under way when no page can be had any more: at least what all
/// activations together allocate in a call. False if they cannot be had.
#[cfg(feature = "alloc")]
pub fn keep_memory(bytes: usize) -> bool {
    crate::heap::keep(bytes)
}

/// Makes the heap so many bytes larger now, for what is allocated later: the account pays at once, and nothing else that it pays
/// for can take that away. False, and nothing changes, if the account has no room. A single allocation is refused without
/// this: see `try_reserve` of `Vec`.
#[cfg(feature = "alloc")]
pub fn reserve_memory(bytes: usize) -> bool {
    crate::heap::reserve(bytes)
}

/// Whether that part is used and cannot be had again.
pub fn is_memory_short() -> bool {
    crate::kept::is_short()
}

/// First Rust code of a call; the argument order is made by the entry code of the ISA. It leaves by
/// itself, so nothing is restored.
pub(crate) extern "C" fn serve<S: Serve>(
    word0: u64,
    word1: u64,
    word2: u64,
    badge: u64,
    word3: u64,
    word4: u64,
    control: u64,
    top: &StackTop,
) -> ! {
    let control = Control(control);
    let delegated = match control.delegated() {
        0 => None,
        index => {
            top.note_received(index);
            Some(Delegated(index))
        }
    };
    // SAFETY: the nucleus gave this page to the activation that runs, and to nobody else.
    let area = unsafe { &mut *(top.area.get() as *mut [u8; MESSAGE_BYTES]) };
    let words = [word0, word1, word2, word3, word4];
    let lent = &top.lent;
    let length = control.length().min(MESSAGE_BYTES);
    let window = if control.0 & Control::WINDOW != 0 { Window::new(word4, &OfCall) } else { None };
    let mut request = Request { badge, words, length, delegated, window, area, lent };
    let is_refused = is_short() && S::needs_memory(&request);
    let reply = if is_refused { Protocol::NoMemory.reply() } else { S::serve(&mut request) };
    if let Some(left) = request.delegated {
        remove(left.into());
    }
    if top.receive.get() == 0 {
        // Without an index left, callers that delegate get an error from the nucleus.
        let _ = message::prepare_receive();
    }
    clear_rest_of_word(request.area, reply.control.length());
    // SAFETY: nothing refers to this stack any more: the request is not used again.
    unsafe { arch::leave(reply.words, reply.control) };
    // The delegated entry could not be given: the caller takes none, or it is gone meanwhile.
    let reply = Protocol::NotDelivered.reply();
    // SAFETY: nothing refers to this stack any more: the request is not used again.
    unsafe { arch::leave(reply.words, reply.control) };
    op::exit(abi::info::status::PANICKED)
}

/// A service whose methods take words only and return one: the fastest call.
/// Words 1 to 4 of the answer are 0; no bytes and no entry come or go.
pub trait ServeWord {
    /// Handles one call.
    fn serve(badge: u64, words: Words) -> u64;
}

/// Such a service as a [`Serve`], for calls that bring more than words.
pub(crate) struct Whole<S>(PhantomData<S>);

impl<S: ServeWord> Serve for Whole<S> {
    fn serve(request: &mut Request<'_>) -> Reply {
        Reply::word(S::serve(request.badge, request.words))
    }
}

/// First Rust code of a call to a [`ServeWord`]; argument order as for [`serve`].
pub(crate) extern "C" fn serve_word<S: ServeWord>(
    word0: u64,
    word1: u64,
    word2: u64,
    badge: u64,
    word3: u64,
    word4: u64,
) -> u64 {
    S::serve(badge, [word0, word1, word2, word3, word4])
}

/// A service that runs `S` and answers with one word.
pub fn word_service<S: ServeWord>() -> Result<Entry, Error> {
    word_service_labelled::<S>(Entry::OWN)
}

/// The same; its portals have this label: a call by one of them ends with `Flow` unless the caller's send label is below it.
pub fn word_service_labelled<S: ServeWord>(label: Entry) -> Result<Entry, Error> {
    let address = arch::word_entry::<S> as *const () as u64;
    // SAFETY: the entry is made for this.
    table::fill(|index| unsafe { op::service_new_labelled(Entry::OWN, address, 0, Entry::OWN, index, label) })
}

/// A service behind portals that pass a constant and three words, and bring one word back: `npciii>i`. The constant is the badge.
pub trait ServeShort {
    /// Handles one call.
    fn serve(badge: u64, word1: u64, word2: u64, word3: u64) -> u64;
}

/// First Rust code of a call to a [`ServeShort`]; arguments where the words are.
pub(crate) extern "C" fn serve_short<S: ServeShort>(constant: u64, word1: u64, word2: u64, _: u64, word3: u64) -> u64 {
    S::serve(constant, word1, word2, word3)
}

/// A service that runs `S`. Its callers pass words 1 to 3; see [`message::call_short`].
pub fn short_service<S: ServeShort>() -> Result<Entry, Failure<NamesError>> {
    // SAFETY: the entry is made for this.
    unsafe { SHORT.service(arch::short_entry::<S>) }
}

/// A service behind portals that pass a constant, a window and two words, and bring one word back: `npcwii>i`. The constant is the badge.
pub trait ServeWindow {
    /// Handles one call.
    fn serve(badge: u64, window: Option<Window<'_>>, word2: u64, word3: u64) -> u64;
}

/// Such a service as a [`ServeShort`].
struct WithWindow<S>(PhantomData<S>);

impl<S: ServeWindow> ServeShort for WithWindow<S> {
    fn serve(badge: u64, window: u64, word2: u64, word3: u64) -> u64 {
        S::serve(badge, Window::new(window, &OfCall), word2, word3)
    }
}

/// A service that runs `S`. See [`window_service`] for what its domain pays, and [`window::call_short`](crate::window::call_short).
pub fn short_window_service<S: ServeWindow>() -> Result<Entry, Failure<NamesError>> {
    // SAFETY: the entry is made for this: word 1 is the window as this domain sees it, or 0.
    unsafe { SHORT_WINDOW.service(arch::short_entry::<WithWindow<S>>) }
}

/// A service behind portals of the specification [`idl::TORN_PORTAL`]. Word 1 names the page that came, with [`abi::MAX_TORN`] in
/// the low bits, word 2 is any word, and `S` answers with the page that goes back; 0 = none. The activation that serves must have a place
/// for a page ([`abi::op::ACTIVATION_TEAR`]).
///
/// # Safety
/// Nothing may refer to a page that `S` gives away.
pub unsafe fn torn_service<S: ServeShort>() -> Result<Entry, Failure<NamesError>> {
    // SAFETY: the entry is made for this, and our caller says that nothing refers to the pages.
    unsafe { TORN.service(arch::short_entry::<S>) }
}

/// A service of an interface of words: nothing but words comes and goes, in registers.
pub trait ServeAllWords {
    /// Handles one call.
    fn serve(badge: u64, words: &AllWords) -> AllWords;

    /// See [`Serve::needs_memory`].
    fn needs_memory(_words: &AllWords) -> bool {
        true
    }
}

/// First Rust code of a call to a [`ServeAllWords`]: the words of the call, in whose place those of the answer come.
pub(crate) extern "C" fn serve_all_words<S: ServeAllWords>(words: &mut AllWords, badge: u64, top: &StackTop) {
    let is_refused = is_short() && S::needs_memory(words);
    *words = if is_refused { Protocol::NoMemory.words() } else { S::serve(badge, words) };
    if top.receive.get() == 0 {
        // The method received an entry. The next call may bring one.
        let _ = message::prepare_receive();
    }
}

/// A service that runs `S`, behind portals of the specification [`idl::WORDS_PORTAL`].
pub fn all_words_service<S: ServeAllWords>() -> Result<Entry, Failure<NamesError>> {
    // SAFETY: the entry is made for this.
    unsafe { ALL_WORDS.service(arch::all_words_entry::<S>) }
}

/// The shape of a specification, once somebody here has asked for it.
struct Shape {
    specification: &'static str,
    /// 0 = nobody has.
    index: AtomicUsize,
}

static SHORT: Shape = Shape::new("npciii>i");
static ALL_WORDS: Shape = Shape::new(idl::WORDS_PORTAL);
static SHORT_WINDOW: Shape = Shape::new("npcwii>i");
static TORN: Shape = Shape::new(idl::TORN_PORTAL);
static WINDOWS: Shape = Shape::new(idl::WINDOW_PORTAL);

/// A service that runs `S`, whose calls may bring windows. Its domain has [`abi::window::SLOTS`] activations at most, and pays for some page
/// tables on each CPU on which a window came.
pub fn window_service<S: Serve>() -> Result<Entry, Failure<NamesError>> {
    // SAFETY: the entry is made for messages, and these are.
    unsafe { WINDOWS.service(arch::service_entry::<S>) }
}

impl Shape {
    const fn new(specification: &'static str) -> Self {
        Self { specification, index: AtomicUsize::new(0) }
    }

    /// A service behind such portals.
    ///
    /// # Safety
    /// `entry` must be made for what these portals leave in registers.
    unsafe fn service(&self, entry: unsafe extern "C" fn() -> !) -> Result<Entry, Failure<NamesError>> {
        loop {
            let known = self.index.load(Ordering::Relaxed);
            if known == 0 {
                let shape = shape(self.specification)?;
                if self.index.compare_exchange(0, shape.entry().0, Ordering::Relaxed, Ordering::Relaxed).is_ok() {
                    shape.leak();
                }
                continue;
            }
            // SAFETY: as the caller says.
            match unsafe { op::service_new_shaped(entry as *const () as u64, Entry(known)) } {
                // The portal manager is another one now, and perhaps others here know that already.
                Err(Error::Revoked) => {
                    if self.index.compare_exchange(known, 0, Ordering::Relaxed, Ordering::Relaxed).is_ok() {
                        remove(Entry(known));
                    }
                }
                // Another shape may stand at that index since.
                made if self.index.load(Ordering::Relaxed) != known => drop(made.map(Owned::new)),
                made => return made.map_err(Failure::Transport),
            }
        }
    }
}

/// The shape of a specification of portals, from the portal manager, for which this waits some time.
pub fn shape(specification: &str) -> Result<Owned, Failure<NamesError>> {
    let names = NamesClient(Connection::new(NameService));
    names.shape(specification).map(|shape| Owned::new(shape.into()))
}

#[cold]
fn remove(entry: Entry) {
    drop(crate::entry::Owned::new(entry));
}

/// Ends the call that is served without an answer: its caller gets `PeerDied`. Nothing that the stack holds is dropped.
pub fn abandon() -> ! {
    message::abandon();
    op::exit(0)
}

/// Adds activations to this domain: as many calls can be served at once.
pub fn activations(count: usize) -> Result<(), Error> {
    for _ in 0..count {
        activation()?;
    }
    Ok(())
}

/// As [`activations`], for calls that wait or need more stack than a page: so many pages of its stack, and the semaphore
/// on which it waits, an activation has from the start. So what a server has does not depend on which of its
/// activations have served. With several CPUs all have, in the end: a caller that returns on another CPU than it
/// called on takes an activation from pool to pool.
pub fn prepared_activations(count: usize, stack_pages: u64) -> Result<(), Error> {
    for _ in 0..count {
        let (slot, area) = activation()?;
        slot.bring(stack_pages);
        prepare_wait(area)?;
    }
    Ok(())
}

/// A new activation: its slot, and its message area.
fn activation() -> Result<(Slot, u64), Error> {
    let slot = Slot::allocate()?;
    match activation_in(slot) {
        Ok(area) => Ok((slot, area)),
        Err(error) => {
            slot.free();
            Err(error)
        }
    }
}

fn activation_in(slot: Slot) -> Result<u64, Error> {
    let receive = table::allocate()?;
    slot.record().receive.set(receive.word());
    // SAFETY: the slot is ours and free.
    let area = unsafe { op::activation_new(Entry::OWN, slot.top(), receive) }.inspect_err(|_| table::free(receive))?;
    slot.record().area.set(area);
    Ok(area)
}

/// A service that runs `S`.
pub fn service<S: Serve>() -> Result<Entry, Error> {
    service_with::<S>(0)
}

/// As [`service`], with flags of `SERVICE_NEW`.
pub fn service_with<S: Serve>(flags: u64) -> Result<Entry, Error> {
    // SAFETY: the entry is made for this.
    unsafe { op::service_new(arch::service_entry::<S> as *const () as u64, flags) }
}

/// A service that is made when the server starts, for minting call entries.
#[derive(Debug)]
pub struct Service(AtomicUsize);

impl Default for Service {
    fn default() -> Self {
        Self::new()
    }
}

impl Service {
    /// Not made yet.
    pub const fn new() -> Self {
        Self(AtomicUsize::new(0))
    }
    /// Makes it: it runs `S`.
    pub fn make<S: Serve>(&self) -> Result<(), Error> {
        self.0.store(service::<S>()?.0, Ordering::Relaxed);
        Ok(())
    }
    /// Its entry.
    pub fn entry(&self) -> Entry {
        Entry(self.0.load(Ordering::Relaxed))
    }
    /// A call entry to it with this badge, for a reply.
    pub fn mint(&self, badge: u64) -> Delegate {
        Delegate::mint(self.entry().0, badge)
    }
}

/// The rights with which a service is given to others: they may make call entries to it and pass it on.
pub const SERVICE_RIGHTS: u8 = rights::COPY | rights::READ | rights::USE;

/// Publishes a service under a name through our parent.
pub fn publish_service(name: &str, service: Entry) -> Result<(), Failure<ParentError>> {
    ParentClient(Direct(Entry::PARENT)).publish(name, Delegate::entry(service.0, SERVICE_RIGHTS))
}

/// Makes activations and a service, and publishes it. Gives the service, for minting call entries.
pub fn publish<S: Serve>(name: &str, count: usize) -> Result<Entry, Failure<ParentError>> {
    activations(count).map_err(Failure::Transport)?;
    publish_new::<S>(name)
}

/// As [`publish`], of a server that has its activations.
pub fn publish_new<S: Serve>(name: &str) -> Result<Entry, Failure<ParentError>> {
    let service = service::<S>().map_err(Failure::Transport)?;
    publish_service(name, service)?;
    Ok(service)
}

/// The end of `main` of a server whose start came out so: its calls are served from now on, or the log says why it ends.
pub fn park_if(outcome: Result<(), impl core::fmt::Display>) -> u8 {
    match outcome {
        Ok(()) => park(),
        Err(cause) => {
            crate::log!("{cause}");
            1
        }
    }
}

/// The main thread has nothing more to do.
pub fn park() -> ! {
    loop {
        match private_semaphore() {
            Ok(semaphore) => drop(op::p(semaphore, abi::NEVER)),
            Err(_) => op::yield_now(),
        }
    }
}
