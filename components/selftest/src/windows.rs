//! Windows: pages that a caller shows for the length of a call. Most trials call a service of our own domain.

use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use abi::window::{MAX_HANDED_ON, MAX_PAGES, PAGES, SLOTS, WRITABLE};
use abi::{Control, Error, PAGE_BYTES, expect, layout, op as operations};
use idl::{Answer, Memory, Reply, Request};
use runtime::entry::Owned;
use runtime::server::{self, Serve};
use runtime::sync::Once;
use runtime::thread::{self, Thread};
use runtime::window::{self, Page, Window};
use runtime::{Entry, message, op, table};

use crate::arch::devices::machine;
use crate::check::{Check, frames, hold};
use crate::devices::take_back;
use crate::raw::{activation_in, call, call_showing, grant, service, service_here};
use crate::torn::{self, Keeper, THERE};

pub const CHECKS: &[Check] = &[
    ("a window shows whole pages of the caller, to be read, or read and written", shows),
    ("bad windows are refused", refused),
    ("registers of a device can be neither lent nor torn away", registers),
    ("safe code shows pages that it lends, and none by a word", only_lent),
    ("a callee sees concurrent writes", changes),
    ("a window is handed on three times, as wide and writable as it is at most", handed_on),
    ("as many windows at once as there are slots", many),
    ("an account too small for the tables of windows", || poor(1)),
    ("an account too small for those of a window of 16 pages", || poor(MAX_PAGES)),
    ("a receiver of windows has 32 activations at most", slots),
    ("a page that is granted in the middle of a call goes from the window", granted),
    ("a page that is torn away in the middle of a call goes from the window", torn_away),
    ("a callee cannot tear away pages that it is lent", not_torn_away),
    ("a page that goes also goes from where its window was handed on", gone_above),
    ("none of these loses a frame", balanced),
];

fn text(error: Error) -> &'static str {
    error.text()
}

/// Adds the bytes of its window, and writes so much more into each if word 1 says so. Answers with the sum, and whether it could write.
struct Adds;

static PASSED: AtomicU64 = AtomicU64::new(0);

impl Serve for Adds {
    fn serve(request: &mut Request<'_>) -> Reply {
        let more = request.words[1] as u8;
        let Some(window) = Window::of(request) else { return Reply::word(request.words[4]) };
        PASSED.store(window.word(), Ordering::Relaxed);
        let (mut sum, mut wrote, mut bytes) = (0, true, [0; 512]);
        for at in (0..window.len()).step_by(bytes.len()) {
            window.read(at, &mut bytes);
            sum += bytes.iter().map(|byte| u64::from(*byte)).sum::<u64>();
            bytes.iter_mut().for_each(|byte| *byte = byte.wrapping_add(more));
            wrote = window.write(at, &bytes);
        }
        Reply { words: [sum, wrote.into(), window.len() as u64, 0, 0], control: Control(0) }
    }
}

/// A portal to a service of ours that takes windows.
fn portal<S: Serve>() -> Result<(Owned, Owned), Error> {
    let shape = Owned::new(op::shape_new(Entry::SPECIAL, idl::WINDOW_PORTAL.as_bytes())?);
    let service = Owned::new(service_here::<S>(shape.entry())?);
    let portal = Owned::new(table::allocate()?);
    op::portal_new(Entry::OWN, service.entry(), 0, portal.entry(), 0)?;
    Ok((portal, service))
}

/// Activations for all trials, which stay.
fn activations() -> Result<(), &'static str> {
    static MADE: Once<Result<(), Error>> = Once::new();
    MADE.get_or_make(|| server::activations(10)).map_err(text)
}

fn pages(count: usize, byte: u8) -> Vec<Page> {
    vec![Page([byte; PAGE_BYTES]); count]
}

fn shows() -> Result<(), &'static str> {
    activations()?;
    let (portal, _service) = portal::<Adds>().map_err(text)?;
    for round in 0..3 {
        for count in [1, 2, 3, 15, 16] {
            let mut lent = pages(count, 3);
            let bytes = (count * PAGE_BYTES) as u64;
            let words = window::call_reading(portal.entry(), [0, 1, 0, 0], &lent).map_err(text)?;
            hold(words == [3 * bytes, 0, bytes, 0, 0], "what is read")?;
            hold(lent.iter().all(|page| page.0 == [3; PAGE_BYTES]), "it was written")?;
            let words = window::call_writing(portal.entry(), [0, 1 + round, 0, 0], &mut lent).map_err(text)?;
            hold(words == [3 * bytes, 1, bytes, 0, 0], "what is read to be written")?;
            hold(lent.iter().all(|page| page.0 == [4 + round as u8; PAGE_BYTES]), "it was not written")?;
            let passed = PASSED.load(Ordering::Relaxed);
            hold((layout::WINDOWS..layout::WINDOWS_END).contains(&passed), "it is elsewhere")?;
        }
        let words = message::call(portal.entry(), [1, 2, 3, 4, 5], Control(0)).map_err(text)?.0;
        hold(words[0] == 5, "a call without a window")?;
    }
    Ok(())
}

fn refused() -> Result<(), &'static str> {
    let (portal, _service) = portal::<Adds>().map_err(text)?;
    let mut lent = pages(MAX_PAGES, 3);
    let page = window::on_mut(&mut lent[..1]) & !1;
    let code = refused as *const () as u64 & !(PAGE_BYTES as u64 - 1);
    let call = |window: u64| call_showing(portal.entry(), [0; 5], window).err();
    let before = frames()?;
    for (window, error) in [
        (0, Error::BadArgument),
        (page, Error::BadArgument),
        (page + 17, Error::BadArgument),
        (page + 31, Error::BadArgument),
        (page | 1 << 6 | 1, Error::BadArgument),
        (page | 1 << 11 | 1, Error::BadArgument),
        (0x3900_0000 | 1, Error::NotMapped),
        (0x39_0000_0000 | 1, Error::NotMapped),
        (0x1000 | 1, Error::NotMapped),
        (code | WRITABLE | 1, Error::PageRights),
        (layout::MESSAGE_START | 1, Error::Reserved),
        (layout::USER_END | 1, Error::BadAddress),
        ((layout::WINDOWS - PAGE_BYTES as u64) | 2, Error::Reserved),
        ((layout::WINDOWS - PAGE_BYTES as u64) | 1, Error::NotMapped),
        ((layout::USER_END - PAGE_BYTES as u64) | 2, Error::BadAddress),
        (1 << 63 | 1, Error::BadAddress),
        (u64::MAX << 12 | 16, Error::BadAddress),
        (layout::WINDOWS | 1, Error::WindowGone),
        ((layout::WINDOWS_END - PAGE_BYTES as u64) | 1, Error::WindowGone),
    ] {
        hold(call(window) == Some(error), "a window that cannot be")?;
    }
    hold(call(code | 1).is_none(), "a page that may be read")?;
    for flag in [Control::MINT, Control::DEADLINE] {
        let outcome = crate::raw::call(portal.entry().0, [0, 0, 0, 0, page + 1, Control::WINDOW | flag]);
        hold(outcome.err() == Some(Error::BadControl), "two meanings of word 4")?;
    }
    hold(frames()? == before, "frames were lost")
}

fn registers() -> Result<(), &'static str> {
    let (portal, _service) = portal::<Adds>().map_err(text)?;
    let keeper = keeper().map_err(text)?;
    let registers = machine()?.registers;
    // In the lowest GiB, where portal code looks, and past it.
    for place in [0x3b00_0000, layout::FREE_START + (1 << 30)] {
        op::machine_device(Entry::SPECIAL, registers, place).map_err(text)?;
        for window in [place | 1, place | 1 | WRITABLE] {
            let refused = call_showing(portal.entry(), [0; 5], window).err();
            hold(refused == Some(Error::Registers), "they are lent")?;
        }
        hold(keeper.call(place | 1, 1) == Err(Error::Registers), "they are torn away")?;
        take_back(place)?;
    }
    Ok(())
}

/// A window on anything, of a caller that would have it handed on.
struct Anything;

impl Memory for Anything {
    fn read(&self, _: u64, _: usize, _: &mut [u8]) {}
    fn write(&self, _: u64, _: usize, _: &[u8]) {}
}

fn only_lent() -> Result<(), &'static str> {
    let (portal, _service) = portal::<Adds>().map_err(text)?;
    let (entry, mut lent) = (portal.entry(), pages(1, 3));
    let word = window::on_mut(&mut lent);
    let mut message = Answer { words: [0, 1, 0, 0, word], control: Control(Control::WINDOW) };
    let refused = message::call(entry, message.words, message.control).err();
    hold(refused == Some(Error::BadControl), "a call with a control word")?;
    for what in [expect::WINDOW, expect::PAGES, expect::MORE_WORDS, expect::words(0b11) | expect::WINDOW] {
        let refused = message::call(entry, message.words, Control::expecting(what)).err();
        hold(refused == Some(Error::BadControl), "a call that expects another portal")?;
    }
    let refused = message::call_bytes(entry, &mut message, &[&[1]], &mut []).err();
    hold(refused == Some(Error::BadControl), "a call with bytes")?;
    let window = Window::new(word, &Anything).ok_or("no window")?;
    let refused = window::hand_on(entry, &mut message, window, &[], &mut []).err();
    hold(refused == Some(Error::BadArgument), "a window that nobody showed us")?;
    hold(lent[0].0 == [3; PAGE_BYTES], "it was written")
}

/// Reads the byte of its window that word 0 says, says so, and reads it again when it may go on; then writes the next one.
struct Waits;

static CAME: AtomicU64 = AtomicU64::new(0);
static GATE: AtomicU64 = AtomicU64::new(0);

impl Serve for Waits {
    fn serve(request: &mut Request<'_>) -> Reply {
        let at = request.words[0] as usize;
        let Some(window) = Window::of(request) else { return Reply::word(0) };
        let [mut first, mut last] = [[0; 1]; 2];
        window.read(at, &mut first);
        CAME.fetch_add(1, Ordering::SeqCst);
        while GATE.load(Ordering::SeqCst) == 0 {
            let _ = thread::sleep(100_000);
        }
        window.read(at, &mut last);
        let wrote = window.write(at + 1, &[last[0] + 1]);
        Reply { words: [first[0].into(), last[0].into(), wrote.into(), window.word(), 0], control: Control(0) }
    }
}

/// A call to [`Waits`] by another thread.
struct Called {
    caller: Thread,
    answer: Arc<[AtomicU64; 2]>,
}

impl Called {
    fn start(entry: Entry, window: u64) -> Result<Self, &'static str> {
        Self::start_with(entry, [0; 5], window)
    }

    fn start_with(entry: Entry, words: [u64; 5], window: u64) -> Result<Self, &'static str> {
        CAME.store(0, Ordering::SeqCst);
        GATE.store(0, Ordering::SeqCst);
        let answer = Arc::new([const { AtomicU64::new(99) }; 2]);
        let its = answer.clone();
        let caller = thread::spawn(move || {
            if let Ok(words) = call_showing(entry, words, window) {
                its[0].store(words[0], Ordering::SeqCst);
                its[1].store(words[1], Ordering::SeqCst);
            }
        })
        .map_err(text)?;
        until(&CAME, 1)?;
        Ok(Self { caller, answer })
    }
    /// The byte of the window as the callee read it before the gate opened, and after.
    fn answer(self) -> [u64; 2] {
        GATE.store(1, Ordering::SeqCst);
        self.caller.join();
        [0, 1].map(|word: usize| self.answer[word].load(Ordering::SeqCst))
    }
}

fn changes() -> Result<(), &'static str> {
    let (portal, _service) = portal::<Waits>().map_err(text)?;
    for count in [1, 2, MAX_PAGES] {
        let mut lent = pages(count, 3);
        let word = window::on_mut(&mut lent);
        let first = lent[0].0.as_mut_ptr() as u64;
        let called = Called::start(portal.entry(), word)?;
        crate::raw::poke(first, 7);
        hold(called.answer() == [3, 7], "what is read")?;
        hold(lent[0].0[1] == 8, "what is written")?;
    }
    Ok(())
}

fn until(count: &AtomicU64, so_many: u64) -> Result<(), &'static str> {
    for _ in 0..20_000 {
        if count.load(Ordering::SeqCst) >= so_many {
            return Ok(());
        }
        thread::sleep(1_000_000).map_err(text)?;
    }
    Err("they do not come")
}

/// Hands its window on to itself so often as word 0 says, one page less each time word 1 says so, and to be written with word 2. The last one
/// adds. Answers with the sum, or the error, and how often it was handed on.
struct Hands;

static HANDS: AtomicU64 = AtomicU64::new(0);

impl Serve for Hands {
    fn serve(request: &mut Request<'_>) -> Reply {
        let [times, less, writable, depth, _] = request.words;
        let Some(window) = Window::of(request) else { return Reply::word(u64::MAX) };
        if times == 0 {
            let mut sum = 0;
            for at in (0..window.len()).step_by(PAGE_BYTES) {
                let mut byte = [0];
                window.read(at, &mut byte);
                sum += u64::from(byte[0]);
                window.write(at, &[byte[0] + 1]);
            }
            return Reply { words: [sum, depth, 0, 0, 0], control: Control(0) };
        }
        let word = if less == 0 { window.word() } else { window.word() + PAGE_BYTES as u64 - 1 } | writable;
        let entry = Entry(HANDS.load(Ordering::SeqCst) as usize);
        let words = [times - 1, less, writable, depth + 1, 0];
        let [sum, depth] = match call_showing(entry, words, word) {
            Ok(words) => [words[0], words[1]],
            Err(error) => [u64::MAX - error as u64, depth],
        };
        Reply { words: [sum, depth, 0, 0, 0], control: Control(0) }
    }
}

fn handed_on() -> Result<(), &'static str> {
    let (portal, _service) = portal::<Hands>().map_err(text)?;
    HANDS.store(portal.entry().0 as u64, Ordering::SeqCst);
    let before = frames()?;
    let most = MAX_HANDED_ON as u64;
    for (count, times, less, wants, sum, depth) in [
        (1, 0, 0, 0, 5, 0),
        (1, 1, 0, 0, 5, 1),
        (1, most, 0, 0, 5, most),
        (1, most + 1, 0, 0, u64::MAX - Error::TooOften as u64, most),
        (16, most, 0, 0, 80, most),
        (16, most, 1, 0, 80 - 5 * most, most),
        (1, 1, 1, 0, u64::MAX - Error::BadArgument as u64, 0),
        (2, 3, 1, 0, u64::MAX - Error::BadArgument as u64, 1),
        (2, 1, 0, WRITABLE, u64::MAX - Error::PageRights as u64, 0),
        // With this bit it has a page more, or two.
        (2, 1, 0, 1, u64::MAX - Error::WindowGone as u64, 0),
        (1, 1, 0, 2, u64::MAX - Error::WindowGone as u64, 0),
    ] {
        for lends in [0, WRITABLE] {
            if wants != 0 && lends != 0 {
                continue;
            }
            let lent = pages(count, 5);
            let word = window::on(&lent) | lends;
            let words = call_showing(portal.entry(), [times, less, wants, 0, 0], word).map_err(text)?;
            hold(words[..2] == [sum, depth], "what comes back")?;
            let shown = if sum > 1_000 { 0 } else { sum as usize / 5 };
            for (number, page) in lent.iter().enumerate() {
                let was_written = lends != 0 && number >= count - shown;
                hold(peek(page) == if was_written { 6 } else { 5 }, "what was written")?;
            }
        }
    }
    hold(frames()? == before, "frames were lost")
}

/// A byte that somebody else wrote.
fn peek(page: &Page) -> u8 {
    crate::raw::peek(page.0.as_ptr() as u64)
}

fn many() -> Result<(), &'static str> {
    // Each thread has an activation, too: as many pairs as there is room for.
    let (portal, _service) = portal::<Waits>().map_err(text)?;
    CAME.store(0, Ordering::SeqCst);
    GATE.store(0, Ordering::SeqCst);
    let right = Arc::new(AtomicU64::new(0));
    let lent = Arc::new(pages(1, 3));
    let mut callers = Vec::new();
    loop {
        let (entry, right, lent) = (portal.entry(), right.clone(), lent.clone());
        let caller = thread::spawn(move || {
            let words = window::call_reading(entry, [0; 4], &lent);
            if words.is_ok_and(|words| words[..3] == [3, 3, 0]) {
                right.fetch_add(1, Ordering::SeqCst);
            }
        });
        match caller {
            Ok(caller) => callers.push(caller),
            Err(Error::TooManyForWindows) => break,
            Err(error) => return Err(text(error)),
        }
        until(&CAME, (callers.len() as u64).min(8))?;
    }
    hold(callers.len() >= 10, "too few threads")?;
    GATE.store(1, Ordering::SeqCst);
    let count = callers.len() as u64;
    callers.into_iter().for_each(Thread::join);
    hold(right.load(Ordering::SeqCst) == count, "a call that saw something else")
}

/// Calls a domain with an account of 0, 1, 2 … frames, with a window of so many pages: refused as exhausted, until it has enough. It dies then,
/// for nothing is mapped there.
fn poor(pages_lent: usize) -> Result<(), &'static str> {
    let shape = Owned::new(op::shape_new(Entry::SPECIAL, idl::WINDOW_PORTAL.as_bytes()).map_err(text)?);
    let lent = pages(pages_lent, 1);
    let make = |frames: u64| -> Result<_, Error> {
        let account = Owned::new(op::account_new(Entry::OWN, frames)?);
        let domain = Owned::new(op::domain_new(account.entry(), 0, "poor")?);
        activation_in(domain.entry())?;
        let service = service(&domain, 0, shape.entry())?;
        let copy = Owned::new(table::allocate()?);
        op::entry_copy(domain.entry(), service, Entry::OWN, copy.entry(), abi::rights::ALL)?;
        let portal = Owned::new(table::allocate()?);
        op::portal_new(Entry::OWN, copy.entry(), 0, portal.entry(), 0)?;
        Ok((portal, copy, domain, account))
    };
    let call = |frames: u64| match make(frames) {
        Ok((portal, ..)) => window::call_reading(portal.entry(), [0; 4], &lent).map(drop),
        Err(Error::OtherExhausted) => Err(Error::Empty),
        Err(error) => Err(error),
    };
    let _ = call(0);
    let (before, mut refused) = (frames()?, 0);
    for count in 0..60 {
        let outcome = call(count);
        hold(frames()? == before, "frames were lost")?;
        match outcome {
            Err(Error::Empty) => {}
            Err(Error::OtherExhausted) => refused += 1,
            // A page of scrap, three tables, and with several CPUs a root.
            Err(Error::PeerDied) => return hold(refused == 4 || refused == 5, "another number of frames"),
            Err(error) => return Err(text(error)),
            Ok(()) => return Err("it is answered"),
        }
    }
    Err("60 frames are not enough")
}

fn slots() -> Result<(), &'static str> {
    let shape = Owned::new(op::shape_new(Entry::SPECIAL, idl::WINDOW_PORTAL.as_bytes()).map_err(text)?);
    let before = frames()?;
    for first in [SLOTS, SLOTS + 1] {
        let domain = Owned::new(op::domain_new(Entry::OWN, 0, "slots").map_err(text)?);
        for _ in 0..first {
            activation_in(domain.entry()).map_err(text)?;
        }
        let outcome = service(&domain, 0, shape.entry()).map(drop);
        if first > SLOTS {
            hold(outcome == Err(Error::TooManyForWindows), "a service with 33 activations")?;
            activation_in(domain.entry()).map_err(text)?;
        } else {
            hold(outcome.is_ok(), "a service with 32 activations")?;
            hold(activation_in(domain.entry()) == Err(Error::TooManyForWindows), "33 activations with a service")?;
            let to = domain.entry().0 as u64;
            let thread = [to, layout::PROGRAM_START, 0, 0, 0, 0];
            let refused = call(operations::THREAD_NEW, thread).map(drop);
            hold(refused == Err(Error::TooManyForWindows), "a thread more")?;
        }
    }
    hold(frames()? == before, "frames were lost")
}

fn granted() -> Result<(), &'static str> {
    let (portal, _service) = portal::<Waits>().map_err(text)?;
    for (count, gone) in [(1, 0), (MAX_PAGES, 0), (MAX_PAGES, MAX_PAGES - 1)] {
        let mut lent = pages(count, 3);
        let at = (gone * PAGE_BYTES) as u64;
        let called = Called::start_with(portal.entry(), [at, 0, 0, 0, 0], window::on_mut(&mut lent))?;
        grant_away(&mut lent[gone])?;
        hold(called.answer() == [3, 0], "what is read")?;
        // The pager brings a clear page.
        hold(peek(&lent[gone]) == 0, "another page came")?;
        hold(crate::raw::peek(lent[gone].0.as_ptr() as u64 + 1) == 0, "what is written")?;
    }
    Ok(())
}

/// Grants a page of ours to a domain, which is removed then.
fn grant_away(page: &mut Page) -> Result<(), &'static str> {
    let child = Owned::new(op::domain_new(Entry::OWN, 0, "granted").map_err(text)?);
    grant(child.entry(), page.0.as_mut_ptr() as u64, 0x5000_0000).map_err(text)
}

/// Hands its window on to itself so often as word 1 says, and then to [`Waits`].
struct Passes;

/// Portals to [`Passes`] and [`Waits`].
static PASSES: [AtomicUsize; 2] = [const { AtomicUsize::new(0) }; 2];

impl Serve for Passes {
    fn serve(request: &mut Request<'_>) -> Reply {
        let [at, times, ..] = request.words;
        let Some(window) = Window::of(request) else { return Reply::word(u64::MAX) };
        let next = Entry(PASSES[usize::from(times == 0)].load(Ordering::SeqCst));
        match call_showing(next, [at, times.saturating_sub(1), 0, 0, 0], window.word()) {
            Ok(words) => Reply { words, control: Control(0) },
            Err(error) => Reply::word(u64::MAX - error as u64),
        }
    }
}

fn gone_above() -> Result<(), &'static str> {
    let (waits, _waits) = portal::<Waits>().map_err(text)?;
    let (passes, _passes) = portal::<Passes>().map_err(text)?;
    PASSES[0].store(passes.entry().0, Ordering::SeqCst);
    PASSES[1].store(waits.entry().0, Ordering::SeqCst);
    for times in 0..MAX_HANDED_ON as u64 {
        for (count, gone) in [(1, 0), (2, 1)] {
            let mut lent = pages(count, 3);
            let at = (gone * PAGE_BYTES) as u64;
            let called = Called::start_with(passes.entry(), [at, times, 0, 0, 0], window::on_mut(&mut lent))?;
            grant_away(&mut lent[gone])?;
            hold(called.answer() == [3, 0], "what is read")?;
            hold(crate::raw::peek(lent[gone].0.as_ptr() as u64 + 1) == 0, "what is written")?;
        }
    }
    Ok(())
}

/// Each trial twice more: the first of these makes what stays, as heap that others have split. What threads had may be given back later.
fn balanced() -> Result<(), &'static str> {
    let [trials @ .., _] = CHECKS else { return Err("no trials") };
    for (name, trial) in trials {
        // Twice: the second time the heap is in pieces, and may grow.
        trial().and_then(|()| trial())?;
        let before = frames()?;
        trial()?;
        hold(frames()? >= before, name)?;
    }
    Ok(())
}

/// A domain that keeps the pages that it gets at [`THERE`].
fn keeper() -> Result<Keeper, Error> {
    let keeper = Keeper::new(64)?;
    keeper.call(0, THERE)?;
    Ok(keeper)
}

fn torn_away() -> Result<(), &'static str> {
    let (portal, _service) = portal::<Waits>().map_err(text)?;
    let keeper = keeper().map_err(text)?;
    let mut lent = pages(1, 3);
    let word = window::on_mut(&mut lent);
    let called = Called::start(portal.entry(), word)?;
    hold(keeper.call(word & !(PAGES | WRITABLE) | 1, 1) == Ok(0), "it is not torn away")?;
    hold(called.answer() == [3, 0], "what is read")?;
    hold(peek(&lent[0]) == 0, "another page came")?;
    hold(crate::raw::peek(lent[0].0.as_ptr() as u64 + 1) == 0, "what is written")
}

/// Tears the first page of its window away, to [`KEEPER`].
struct Tears;

static KEEPER: AtomicUsize = AtomicUsize::new(0);

impl Serve for Tears {
    fn serve(request: &mut Request<'_>) -> Reply {
        let Some(window) = Window::of(request) else { return Reply::word(0) };
        let keeper = Entry(KEEPER.load(Ordering::SeqCst));
        let torn = torn::call(keeper, window.word() & !(PAGES | WRITABLE) | 1, 1);
        Reply::word(torn.err().map_or(0, |error| error as u64))
    }
}

fn not_torn_away() -> Result<(), &'static str> {
    let (portal, _service) = portal::<Tears>().map_err(text)?;
    let keeper = keeper().map_err(text)?;
    KEEPER.store(keeper.portal.entry().0, Ordering::SeqCst);
    let mut lent = pages(1, 3);
    let words = call_showing(portal.entry(), [0; 5], window::on_mut(&mut lent)).map_err(text)?;
    hold(words[0] == Error::Reserved as u64, "it is torn away, or refused for another reason")?;
    hold(peek(&lent[0]) == 3, "the page changed")
}
