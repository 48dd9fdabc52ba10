//! Every register that a user has, over everything that can come between two of its instructions: none may be lost, and none
//! may show what others had in it (Härtig and others, Asbestos on ARM, warn of the one register that a port forgets).
//!
//! Children fill all of their registers with numbers of their own (`arch::fill`), let one thing happen, and write down what
//! they find; and what they found when they began.

#[allow(unsafe_code)]
mod child;

use abi::layout::{EXCEPTION, FIRST_FREE, MAX_TABLE_ENTRIES, PAGE_FAULT, RETURN, WINDOWS, WINDOWS_END};
use abi::rights::{Kind, MAP_READ};
use abi::{Control, Error, NEVER, PAGE_BYTES, expect, op as abi_op};
use alloc::vec::Vec;
use core::sync::atomic::AtomicU64;
use idl::{Reply, Request};
use runtime::entry::Owned;
use runtime::server::{self, Serve};
use runtime::sync::Mutex;
use runtime::{Entry, message, op, table, thread};

use portalgen::{Letter, Letters, Specification};

use crate::arch::fill::{self, AREA, CONTROL, FLAGS, GENERAL, INDEX, MORE_AT, OWN, PRESERVED, STACK, WORDS_AT};
use crate::arch::vectors::set;
use crate::block::{BLOCK, State, area, event, word};
use crate::check::{Check, frames, hold};
use crate::devices;
use child::{CODE, Child, FAULT, Finds, RECEIVES, TEARS, TORN, call};

pub const CHECKS: &[Check] = &[
    ("a page fault keeps every register", || for_both(page_fault)),
    ("an exception that is handled keeps every register", || for_both(exception)),
    ("threads that take turns keep every register", turns),
    ("a new thread sees no register of others", || for_both(fresh)),
    ("system calls keep what they say and show nothing else", || for_both(system_calls)),
    ("a call shows nothing but words, either way", calls),
    ("a portal shows nothing but what its specification passes, either way", portals),
    ("a portal shows no thread pointer, and loses none", pointers),
    ("a window that was shown before shows nothing else", windows_again),
    ("an answer with a forged entry is refused, and nothing else is lost or shown", forged_answers),
    ("a portal passes nothing of a caller that does not expect it", unexpected),
    ("a callee of the nucleus sees nothing but its words", || for_both(upcall)),
    ("a fault does not go through a portal whose words it could forge", || for_both(forged)),
    ("a call that is cut off keeps every register of both", || for_both(cut_off)),
    ("a thread pointer is not another's to spoil", pointer),
];

fn text(error: Error) -> &'static str {
    error.text()
}

/// With and without floating-point registers, each twice: the second time no frame may be lost.
fn for_both(check: fn(bool) -> Result<(), &'static str>) -> Result<(), &'static str> {
    for unit in [false, true] {
        check(unit)?;
        let before = frames()?;
        check(unit)?;
        hold(frames()? == before, "frames were lost")?;
    }
    Ok(())
}

/// Another value in a register is an error that names it.
fn same(seen: &State, expected: &State, index: usize) -> Result<(), &'static str> {
    hold(fill::counts(seen, index) == fill::counts(expected, index), fill::name(index))
}

/// Everything is as it was filled.
fn kept(child: &Child) -> Result<(), &'static str> {
    hold(child.get(word::DONE) == 1, "a child did not come to its end")?;
    let (given, seen) = (child.state(area::GIVEN), child.state(area::SEEN));
    fill::compared(child.has_unit()).try_for_each(|index| same(&seen, &given, index))
}

/// Whether a register that is left with something holds the child's own: nothing, what it had there, where it is, its message
/// area, its flags.
fn is_own(value: u64, index: usize, given: &State) -> bool {
    let is_ours = Child::is_code(value) || Child::is_area(value) || fill::flags_are_own(value, given[FLAGS]);
    value == 0 || value == given[index] || is_ours
}

/// When it began there was nothing but these words, a control word, the message area and the stack.
fn reported(child: &Child, is_service: bool, words: [u64; 5], control: u64) -> Result<(), &'static str> {
    let (first, given) = (child.state(area::FIRST), child.state(area::GIVEN));
    hold(Child::is_place(first[AREA], first[STACK], is_service), "no message area, or another stack")?;
    let expected: State = core::array::from_fn(|index| match index {
        AREA | STACK => first[index],
        INDEX => {
            if is_service {
                BLOCK
            } else {
                0
            }
        }
        CONTROL => control,
        index if OWN.contains(&index) && is_own(first[index], index, &given) => first[index],
        index => WORDS_AT.iter().position(|at| *at == index).map_or(fill::clear(index), |word| words[word]),
    });
    fill::compared(child.has_unit()).try_for_each(|index| same(&first, &expected, index))
}

/// After a system call with this status: registers that are kept are, those that may be its own are, and the rest is words or nothing.
/// Words that are `None` are anything.
fn answered(child: &Child, status: u64, words: [Option<u64>; 5], control: u64) -> Result<(), &'static str> {
    hold(child.get(word::DONE) == 1, "a child did not come to its end")?;
    let (given, seen) = (child.state(area::GIVEN), child.state(area::SEEN));
    hold(fill::flags_are_own(seen[FLAGS], given[FLAGS]), "flags")?;
    let expected: State = core::array::from_fn(|index| match index {
        index if PRESERVED.contains(&index) || index > FLAGS => given[index],
        FLAGS => seen[FLAGS],
        INDEX => status,
        CONTROL => control,
        index if OWN.contains(&index) && is_own(seen[index], index, &given) => seen[index],
        index => match WORDS_AT.iter().position(|at| *at == index) {
            Some(word) => words[word].unwrap_or(seen[index]),
            None => 0,
        },
    });
    fill::compared(child.has_unit()).try_for_each(|index| same(&seen, &expected, index))
}

/// Domains of the children whose faults come to us, by number.
static FAULTING: Mutex<[Option<Entry>; 4]> = Mutex::new([None; 4]);

/// Mends what went wrong, and leaves registers that are its own.
struct Mender;

impl Serve for Mender {
    fn serve(request: &mut Request<'_>) -> Reply {
        set(request.badge + 1);
        let domain = FAULTING.lock().get(request.badge as usize).copied().flatten();
        let mended = match domain {
            Some(domain) if request.words[0] == FAULT => child::bring(domain),
            Some(domain) => child::mend(domain),
            None => Err(Error::Empty),
        };
        Reply::word(mended.is_err().into())
    }
}

fn mender() -> Result<Entry, Error> {
    static SERVICE: Mutex<Option<Entry>> = Mutex::new(None);
    let mut service = SERVICE.lock();
    if service.is_none() {
        server::activations(1)?;
        *service = Some(server::service::<Mender>()?);
    }
    service.ok_or(Error::Empty)
}

fn mended(unit: bool, event: u64, index: usize) -> Result<(), &'static str> {
    let mut child = Child::new(0, unit, event, |_| ()).map_err(text)?;
    child.points();
    FAULTING.lock()[0] = Some(child.domain.entry());
    child.handled_by(mender().map_err(text)?, index).map_err(text)?;
    child.start().map_err(text)?;
    child.ends()?;
    kept(&child)
}

fn page_fault(unit: bool) -> Result<(), &'static str> {
    mended(unit, event::FAULT, PAGE_FAULT[0])
}

fn exception(unit: bool) -> Result<(), &'static str> {
    mended(unit, event::TRAP, EXCEPTION)
}

/// Four that run without end, with and without floating-point registers and thread pointers, are interrupted again and again.
fn turns() -> Result<(), &'static str> {
    let mut children = Vec::new();
    for number in 0..4 {
        children.push(Child::new(number, number % 2 == 1, event::SPIN, |_| ()).map_err(text)?);
    }
    children[2..].iter().for_each(Child::points);
    for child in &mut children {
        child.start().map_err(text)?;
    }
    thread::sleep(20_000_000).map_err(text)?;
    hold(children.iter().all(|child| child.get(word::BEGUN) == 1), "one did not have its turn")?;
    children.iter().for_each(Child::release);
    for child in &children {
        child.ends()?;
        kept(child)?;
    }
    Ok(())
}

fn fresh(unit: bool) -> Result<(), &'static str> {
    let mut child = Child::new(0, unit, event::SPIN, |_| ()).map_err(text)?;
    child.release();
    child.start().map_err(text)?;
    child.ends()?;
    reported(&child, false, [BLOCK, 0, 0, 0, 0], 0)
}

/// One system call: its index and words as registers, control or word 5; its result.
fn asks(
    unit: bool,
    index: u64,
    words: [u64; 6],
    meanwhile: impl FnOnce(&Child) -> Result<(), Error>,
) -> Result<Child, &'static str> {
    let mut child = Child::new(0, unit, event::ASK, |given| {
        given[INDEX] = index;
        WORDS_AT.iter().zip(words).for_each(|(at, word)| given[*at] = word);
        given[CONTROL] = words[5];
    })
    .map_err(text)?;
    meanwhile(&child).map_err(text)?;
    child.start().map_err(text)?;
    Ok(child)
}

/// Checks an operation's answer: a status, a value, nothing else.
fn value(child: &Child, status: u64, value: Option<u64>) -> Result<(), &'static str> {
    child.ends()?;
    answered(child, status, [value, Some(0), Some(0), Some(0), Some(0)], 0)
}

/// Checks a call that ends before anything was saved: status, word 0, and the rest is as it was, or nothing.
fn short(child: &Child, status: u64, value: Option<u64>) -> Result<(), &'static str> {
    child.ends()?;
    let (given, mut seen) = (child.state(area::GIVEN), child.state(area::SEEN));
    hold(child.get(word::DONE) == 1 && seen[INDEX] == status, "another result of a short system call")?;
    hold(fill::flags_are_own(seen[FLAGS], given[FLAGS]), "flags")?;
    hold(value.is_none_or(|value| seen[WORDS_AT[0]] == value), "another value of a short system call")?;
    (seen[INDEX], seen[FLAGS], seen[WORDS_AT[0]]) = (given[INDEX], given[FLAGS], given[WORDS_AT[0]]);
    let is_right = |index: usize| {
        let may_be_clear = index < GENERAL && !PRESERVED.contains(&index);
        may_be_clear && (seen[index] == 0 || OWN.contains(&index) && is_own(seen[index], index, &given))
    };
    fill::compared(child.has_unit()).filter(|index| !is_right(*index)).try_for_each(|index| same(&seen, &given, index))
}

fn refused(child: &Child, error: Error) -> Result<(), &'static str> {
    short(child, error as u64, Some(child.state(area::GIVEN)[WORDS_AT[0]]))
}

fn system_calls(unit: bool) -> Result<(), &'static str> {
    let nothing = |_: &Child| Ok(());
    let ask = |index: usize, words: [u64; 6]| asks(unit, call(index), words, nothing);
    // Others fill their registers meanwhile.
    let mut other = Child::new(1, !unit, event::SPIN, |_| ()).map_err(text)?;
    other.start().map_err(text)?;
    short(&ask(abi_op::THREAD_ID, [1, 2, 3, 4, 5, 6])?, 0, None)?;
    value(&ask(abi_op::CLOCK, [1, 2, 3, 4, 5, 6])?, 0, None)?;
    value(&ask(abi_op::YIELD, [0; 6])?, 0, Some(0))?;
    value(&ask(abi_op::ENTRY_INFO, [0, abi_op::CLOCK as u64, 0, 0, 0, 0])?, 0, None)?;
    value(&ask(abi_op::MAP, [0, 1, 2, 0, 1, 0])?, Error::SameDomain as u64, Some(0))?;
    value(&ask(abi_op::UNMAP, [0, FAULT, 0, 1, 0, 0])?, 0, Some(0))?;
    value(&ask(RETURN, [0; 6])?, Error::NoCaller as u64, Some(0))?;
    refused(&ask(1 << 40, [0; 6])?, Error::BadIndex)?;
    refused(&ask(abi::layout::TABLE_ENTRIES - 1, [0; 6])?, Error::Empty)?;
    semaphores(unit)?;
    other.release();
    other.ends()?;
    kept(&other)
}

/// P and V: done at once, refused, and after a wait.
fn semaphores(unit: bool) -> Result<(), &'static str> {
    let semaphore = Owned::new(op::semaphore_new(Entry::OWN, 1).map_err(text)?);
    let ask = |words: [u64; 6]| {
        asks(unit, call(PLACE.0), words, |child| {
            let all = abi::rights::ALL;
            op::entry_copy(Entry::OWN, semaphore.entry(), child.domain.entry(), PLACE, all).map(drop)
        })
    };
    short(&ask([abi_op::P, NEVER, 0, 4, 5, 6])?, 0, None)?;
    value(&ask([abi_op::P, 0, 0, 0, 0, 0])?, Error::Timeout as u64, Some(0))?;
    short(&ask([abi_op::V, 2, 3, 4, 5, 6])?, 0, None)?;
    refused(&ask([9, 0, 0, 0, 0, 0])?, Error::NoSuchWay)?;
    op::p(semaphore.entry(), 0).map_err(text)?;
    let waits = ask([abi_op::P, NEVER, 0, 0, 0, 0])?;
    thread::sleep(1_000_000).map_err(text)?;
    hold(waits.get(word::BEGUN) == 1 && waits.get(word::DONE) == 0, "it does not wait")?;
    op::v(semaphore.entry()).map_err(text)?;
    value(&waits, 0, Some(0))
}

/// Calls between domains with and without floating-point registers; by the slow path, too.
fn calls() -> Result<(), &'static str> {
    for (caller, callee) in [(false, false), (false, true), (true, false), (true, true)] {
        for bytes in [0, 16] {
            called(caller, callee, bytes)?;
        }
    }
    Ok(())
}

fn called(caller: bool, callee: bool, bytes: u64) -> Result<(), &'static str> {
    let words = [11, 22, 33, 44, 55];
    let answer = [66, 77, 88, 99, 110];
    let callee = Child::new(1, callee, event::ASK, |given| {
        (given[INDEX], given[CONTROL]) = (call(RETURN), bytes);
        WORDS_AT.iter().zip(answer).for_each(|(at, word)| given[*at] = word);
    })
    .map_err(text)?;
    let mut service = None;
    let [a, b, c, d, e] = words;
    let caller = asks(caller, call(PLACE.0), [a, b, c, d, e, bytes], |caller| {
        service = Some(callee.portal_for(caller, PLACE)?);
        Ok(())
    })?;
    caller.ends()?;
    reported(&callee, true, words, bytes)?;
    answered(&caller, 0, answer.map(Some), bytes)
}

/// The badge, or else word 0, is where a child finds its block. There are no others with a control word.
const SPECIFICATIONS: [&str; 26] = [
    "npk",
    "npkiii>i",
    "npkx5>x5",
    "npki>x8",
    "npkx8i>",
    "npkix8>ix8",
    "npkx8x6>x8x4",
    "npkx5b>x5b",
    "npkbii>iib",
    "npkid>id",
    "npkig>ig",
    "npkit>ti",
    "npkox5>ox5",
    "npkox4w>ox5",
    "npciii>i",
    "npcx8>x8",
    "npcwi>i",
    "npkw>x8",
    "npkwx4>t",
    "npcai>a",
    "npkaii>iia",
    "npk>d",
    "npk>iig",
    "npcd>dx8",
    "npkg>g",
    "npcbw>db",
];

/// Portals of each kind, between domains with and without floating-point registers, for which the slow path is taken.
fn portals() -> Result<(), &'static str> {
    for specification in SPECIFICATIONS {
        for units in [[false, false], [true, false], [false, true], [true, true]] {
            let mut crossing = Crossing::new(specification, units, SENT.0)?;
            crossing.cross()?;
            crossing.arrived()?;
            crossing.came_back()?;
        }
    }
    Ok(())
}

/// The same between domains with thread pointers. A callee that is called again has its own from before, at most.
fn pointers() -> Result<(), &'static str> {
    for specification in SPECIFICATIONS {
        for points in [[true, false], [false, true], [true, true]] {
            let mut crossing = Crossing::with(specification, [false, false], SENT.0, BLOCK | 1)?;
            let sides = [&crossing.caller, &crossing.callee].into_iter().zip(points);
            sides.filter(|(_, points)| *points).for_each(|(side, _)| side.points());
            if specification.contains(['a', 'd', 'g']) {
                crossing.cross()?;
                crossing.arrived()?;
                crossing.came_back()?;
            } else {
                crossing.cross_again(2)?;
            }
        }
    }
    Ok(())
}

/// A window that was shown before, which the code of portals opens alone (row `window` of the benchmarks).
fn windows_again() -> Result<(), &'static str> {
    for specification in SPECIFICATIONS.into_iter().filter(|letters| letters.contains('w')) {
        Crossing::with(specification, [false, false], SENT.0, BLOCK | 1)?.cross_again(2)?;
    }
    Ok(())
}

/// Answers with an entry or a page that cannot go along are refused: their service keeps every register, and answers without then.
fn forged_answers() -> Result<(), &'static str> {
    const NOTHING: usize = FIRST_FREE + 20;
    let forged = [
        ("npk>d", abi_op::CLOCK, Error::WrongKind),
        ("npk>d", NO_COPY.0, Error::NoRight),
        ("npk>g", NO_COPY.0, Error::NoRight),
        ("npk>d", REVOKED.0, Error::Revoked),
        ("npk>g", REVOKED.0, Error::Revoked),
        ("npkaii>iia", usize::MAX << 48, Error::BadAddress),
        ("npkaii>iia", abi::layout::MESSAGE_START as usize, Error::Reserved),
        ("npkaii>iia", WINDOWS as usize, Error::Reserved),
        ("npkaii>iia", FAULT as usize, Error::NotMapped),
        ("npkaii>iia", BLOCK as usize, Error::Shared),
        ("npkaii>iia", CODE as usize, Error::ArchivePage),
        ("npkaii>iia", devices::SHOWN as usize, Error::Registers),
        ("npk>d", MAX_TABLE_ENTRIES, Error::BadIndex),
        ("npk>d", usize::MAX, Error::BadIndex),
        ("npk>d", NOTHING, Error::Empty),
        ("npk>g", usize::MAX, Error::BadIndex),
        ("npk>g", NOTHING, Error::Empty),
        ("npk>g", PLACE.0, Error::Empty),
        ("npkox5>ox5", NOTHING, Error::Empty),
    ];
    for units in [[false, false], [true, false], [false, true]] {
        for (specification, entry, error) in forged {
            let crossing = Crossing::new(specification, units, entry)?;
            if error == Error::Registers {
                devices::show()?;
                crossing.callee.map(devices::SHOWN, devices::SHOWN, MAP_READ).map_err(text)?;
            }
            crossing.caller.enter().map_err(text)?;
            crossing.answer_refused(error)?;
            if error == Error::Registers {
                devices::take_back(devices::SHOWN)?;
            }
            let took = op::entry_info(crossing.caller.domain.entry(), RECEIVES);
            hold(took == Ok((Kind::Empty, 0)), "an entry came along")?;
            if crossing.result.torn().is_some() {
                hold(crossing.callee.has(TORN).map_err(text)?, "the page that came is gone")?;
                hold(!crossing.caller.has(TORN).map_err(text)?, "a page came along")?;
            }
        }
        for specification in ["npk>d", "npk>g"] {
            // The thread of a child takes no entries.
            let mut crossing = Crossing::new(specification, units, SENT.0)?;
            crossing.caller.start().map_err(text)?;
            crossing.caller.ends()?;
            crossing.answer_refused(Error::NotAccepted)?;
        }
        let account = Owned::new(op::account_new(Entry::OWN, 64).map_err(text)?);
        let crossing = Crossing::paid(account.entry(), "npki>iia", units, TEARS as usize, 0)?;
        crossing.callee.has_page().map_err(text)?;
        // A call to the caller needs no more frames by now.
        for frames in (1..=64).rev() {
            let _ = op::account_move(account.entry(), Entry::OWN, frames);
        }
        crossing.caller.enter().map_err(text)?;
        crossing.answer_refused(Error::OtherExhausted)?;
        hold(crossing.callee.has(TEARS).map_err(text)?, "the page is gone")?;
    }
    Ok(())
}

/// Where the words of a portal stand in a state.
fn at(word: usize) -> usize {
    WORDS_AT.into_iter().chain(MORE_AT).nth(word).unwrap_or(INDEX)
}

/// Bytes that go along where some can.
const BYTES: usize = 24;

/// Words as they are given, but for what cannot be: these bytes, this entry, this window, and a page torn away from here.
fn give(given: &mut State, letters: &Letters, entry: usize, window: u64, torn: u64) {
    for (word, letter) in letters.iter() {
        match letter {
            Letter::Bytes => given[at(word)] = BYTES as u64,
            Letter::Delegated | Letter::Minted => given[at(word)] = entry as u64,
            Letter::Window => given[at(word)] = window,
            Letter::Torn => given[at(word)] = torn | 1,
            Letter::Control => given[CONTROL] = Control::bytes(BYTES).0,
            _ => {}
        }
    }
    if letters.has_control() && letters.window().is_some() && window != 0 {
        given[CONTROL] |= Control::WINDOW;
    }
}

/// The words that arrive, from those that were given.
fn arrives(given: &State, letters: &Letters, entry: usize, seen: &State) -> [u64; 9] {
    let mut words = core::array::from_fn(|word| given[at(word)]);
    let time = letters.iter().find(|(_, letter)| *letter == Letter::Time).map_or(0, |(word, _)| seen[at(word)]);
    let window = letters.window().map_or(0, |word| seen[at(word)]);
    letters.deliver(&mut words, BLOCK, entry as u64, time, window);
    if let Some(word) = letters.torn() {
        words[word] = TORN | 1;
    }
    words
}

/// A window is shown where windows are, as wide and as writable; none is none.
fn is_window(given: u64, seen: u64) -> bool {
    let is_shown = (WINDOWS..WINDOWS_END).contains(&seen) && seen % PAGE_BYTES as u64 == given % PAGE_BYTES as u64;
    if given == 0 { seen == 0 } else { is_shown }
}

/// Where a child has the portal, and an entry that it sends.
const PLACE: Entry = Entry(FIRST_FREE + 2);
const SENT: Entry = Entry(FIRST_FREE + 3);
/// The same without the rights that this takes, and revoked.
const NO_COPY: Entry = Entry(FIRST_FREE + 4);
const REVOKED: Entry = Entry(FIRST_FREE + 5);

/// Two children, and a portal from one to the other.
struct Crossing {
    call: Letters,
    result: Letters,
    caller: Child,
    callee: Child,
    _service: (Owned, Entry),
}

impl Crossing {
    /// A portal of this specification, between domains with or without floating-point registers. If the answer names an entry, then this;
    /// if it tears a page away, that at this address, or for [`SENT`] the one that came.
    fn new(letters: &str, units: [bool; 2], answered: usize) -> Result<Self, &'static str> {
        // A callee's first window is opened on the slow path; without one there is the fast path, too.
        let window = if units == [false, false] { 0 } else { BLOCK | 1 };
        Self::with(letters, units, answered, window)
    }

    /// The same with this window, if the specification has one.
    fn with(letters: &str, units: [bool; 2], answered: usize, window: u64) -> Result<Self, &'static str> {
        Self::paid(Entry::OWN, letters, units, answered, window)
    }

    /// The same, where this account pays for the caller.
    fn paid(
        account: Entry,
        letters: &str,
        [caller, callee]: [bool; 2],
        answered: usize,
        window: u64,
    ) -> Result<Self, &'static str> {
        let specification = Specification::parse(letters.as_bytes()).map_err(|_| "no specification")?;
        let (calls, result) = (specification.call, specification.result);
        let callee = Child::new(1, callee, event::ASK, |given| {
            given[INDEX] = call(RETURN);
            give(given, &result, answered, 0, if answered == SENT.0 { TORN } else { answered as u64 });
            if result.has_control() && answered != SENT.0 {
                given[CONTROL] = Control(0).delegate(answered, abi::rights::ALL).0;
            }
        })
        .map_err(text)?;
        let shape = Owned::new(op::shape_new(Entry::SPECIAL, letters.as_bytes()).map_err(text)?);
        let caller = Child::paid(account, 0, caller, event::ASK, |given| {
            given[INDEX] = call(PLACE.0);
            if let Some(what) = specification.expects() {
                given[CONTROL] = Control::expecting(what).0;
            }
            give(given, &calls, SENT.0, window, TEARS);
        })
        .map_err(text)?;
        let finds = if calls.has_badge() { Finds::Badge } else { Finds::FirstWord };
        // The code lasts as long as the callee.
        let service = callee.portal_in(caller.domain.entry(), PLACE, shape.entry(), finds).map_err(text)?;
        if calls.torn().is_some() {
            caller.has_page().map_err(text)?;
        }
        for (child, takes) in [(&callee, &calls), (&caller, &result)] {
            if takes.torn().is_some() {
                child.takes_pages().map_err(text)?;
            }
        }
        for (child, letters) in [(&caller, &calls), (&callee, &result)] {
            if letters.entry().is_some() {
                // A service is copied, or minted from.
                let (source, domain) = (service.0.entry(), child.domain.entry());
                let few = abi::rights::ALL & !abi::rights::COPY & !abi::rights::USE;
                op::entry_copy(Entry::OWN, source, domain, SENT, abi::rights::ALL).map_err(text)?;
                op::entry_copy(Entry::OWN, source, domain, NO_COPY, few).map_err(text)?;
                let between = Owned::new(op::entry_duplicate(source, abi::rights::ALL).map_err(text)?);
                op::entry_copy(Entry::OWN, between.entry(), domain, REVOKED, abi::rights::ALL).map_err(text)?;
                op::entry_revoke(Entry::OWN, between.entry()).map_err(text)?;
            }
        }
        Ok(Self { call: calls, result, caller, callee, _service: service })
    }

    /// The caller calls: from its service, if it gets an entry or a page.
    fn cross(&mut self) -> Result<(), &'static str> {
        if self.result.entry().is_some() || self.result.torn().is_some() {
            return self.caller.enter().map_err(text);
        }
        self.caller.start().map_err(text)?;
        self.caller.ends()
    }

    /// The caller's service calls so many times, and each time both find what they ought to.
    fn cross_again(&self, times: usize) -> Result<(), &'static str> {
        for _ in 0..times {
            self.caller.forget();
            self.callee.forget();
            // An entry that came before would be in the way.
            let _ = op::entry_remove(self.caller.domain.entry(), RECEIVES);
            self.caller.enter().map_err(text)?;
            self.arrived()?;
            self.came_back()?;
        }
        Ok(())
    }

    /// The callee found what the specification passes, and nothing else.
    fn arrived(&self) -> Result<(), &'static str> {
        let (given, first) = (self.caller.state(area::GIVEN), self.callee.state(area::FIRST));
        let windows = self.call.window().map(at);
        hold(windows.is_none_or(|word| is_window(given[word], first[word])), "another window")?;
        let words = arrives(&given, &self.call, received(&self.callee, &self.call)?, &first);
        hold(Child::is_place(first[AREA], first[STACK], true), "no message area, or another stack")?;
        let control = if self.call.has_control() { given[CONTROL] } else { 0 };
        let given = self.callee.state(area::GIVEN);
        let expected: State = core::array::from_fn(|index| match index {
            AREA | STACK => first[index],
            INDEX if self.call.has_badge() => BLOCK,
            CONTROL => control,
            index if OWN.contains(&index) && is_own(first[index], index, &given) => first[index],
            index => (0..9).find(|word| at(*word) == index).map_or(fill::clear(index), |word| words[word]),
        });
        fill::compared(self.callee.has_unit()).try_for_each(|index| same(&first, &expected, index))
    }

    /// The caller found what the callee gave, and nothing else but what it had.
    fn came_back(&self) -> Result<(), &'static str> {
        let (given, seen) = (self.callee.state(area::GIVEN), self.caller.state(area::SEEN));
        let words = arrives(&given, &self.result, received(&self.caller, &self.result)?, &seen);
        self.has(words, if self.result.has_control() { given[CONTROL] } else { 0 })
    }

    /// The answer was refused so, and the callee found nothing else; the caller got nothing.
    fn answer_refused(&self, error: Error) -> Result<(), &'static str> {
        answered(&self.callee, error as u64, [Some(0); 5], 0)?;
        self.has([0; 9], 0)
    }

    /// The caller has these results, and nothing else but what it had.
    fn has(&self, words: [u64; 9], control: u64) -> Result<(), &'static str> {
        let (given, seen) = (self.caller.state(area::GIVEN), self.caller.state(area::SEEN));
        let passed = |index: usize| (0..self.result.in_registers()).find(|word| at(*word) == index);
        hold(self.caller.get(word::DONE) == 1, "a caller did not come to its end")?;
        hold(fill::flags_are_own(seen[FLAGS], given[FLAGS]), "flags")?;
        let expected: State = core::array::from_fn(|index| match (index, passed(index)) {
            (_, Some(word)) => words[word],
            (FLAGS, _) => seen[FLAGS],
            (CONTROL, _) => control,
            (index, _) if PRESERVED.contains(&index) || index > FLAGS => given[index],
            (index, _) if OWN.contains(&index) && is_own(seen[index], index, &given) => seen[index],
            _ => 0,
        });
        fill::compared(self.caller.has_unit()).try_for_each(|index| same(&seen, &expected, index))
    }
}

/// Where a child got the entry that these letters pass, 0 = they pass none.
fn received(child: &Child, letters: &Letters) -> Result<usize, &'static str> {
    if letters.entry().is_none() {
        return Ok(0);
    }
    let kind = op::entry_info(child.domain.entry(), RECEIVES).map_err(text)?.0;
    let expected = if letters.minted_badge().is_some() { Kind::Call } else { Kind::Service };
    hold(kind == expected, "another entry came along")?;
    Ok(RECEIVES.0)
}

/// Portals of which a message knows nothing, and what their callers must expect.
const EXPECTING: [(&str, u64); 14] = [
    ("npk", 0),
    ("npciii>i", 0b01110),
    ("npkx6>", expect::ALL_FIVE | expect::MORE_WORDS),
    ("npki>x6", 1 | expect::MORE_WORDS),
    ("npkix8>ix8", expect::ALL_FIVE | expect::MORE_WORDS),
    ("npkb>", 1 | expect::AREA),
    ("npk>b", expect::AREA),
    ("npkd>", 1 | expect::ENTRIES),
    ("npk>d", expect::ENTRIES),
    ("npkg>", 0b11 | expect::ENTRIES),
    ("npk>g", expect::ENTRIES),
    ("npkx8x2>", expect::ALL_FIVE | expect::MORE_WORDS | expect::AREA),
    ("npkid>ib", 0b11 | expect::AREA | expect::ENTRIES),
    ("npkx5b>x4g", expect::ALL_FIVE | expect::MORE_WORDS | expect::AREA | expect::ENTRIES),
];

/// Callers that expect a message, or anything else than the portal passes, are refused, keep what they have, and nobody is called.
fn unexpected() -> Result<(), &'static str> {
    let message = |length| Control::bytes(length).0;
    let flags = Control::DEADLINE | Control::NO_WAIT;
    let others = [message(0), message(64), Control(0).delegate(Entry::OWN.0, abi::rights::ALL).0, flags, 1 << 63];
    for (specification, expected) in EXPECTING {
        let shape = Owned::new(op::shape_new(Entry::SPECIAL, specification.as_bytes()).map_err(text)?);
        let all = (0..8).map(|bit| Control::expecting(expected ^ 1 << bit).0);
        for (number, control) in all.chain(others).enumerate() {
            let words = [Entry::OWN.0 as u64, 8, 8, 8, 8, control];
            not_called(shape.entry(), number % 2 == 1, words, |caller| refused(caller, Error::BadControl))?;
        }
    }
    // A message is not what others expect, either.
    for what in 0..8 {
        let words = [1, 2, 3, 4, 5, Control::expecting(1 << what).0];
        not_called(Entry::OWN, what % 2 == 1, words, |caller| value(caller, Error::BadControl as u64, Some(0)))?;
    }
    Ok(())
}

/// Checks that such a call of a portal of this shape is refused.
fn not_called(
    shape: Entry,
    unit: bool,
    words: [u64; 6],
    refused: impl FnOnce(&Child) -> Result<(), &'static str>,
) -> Result<(), &'static str> {
    let callee = Child::new(1, !unit, event::ASK, |given| given[INDEX] = call(RETURN)).map_err(text)?;
    let mut service = None;
    let caller = asks(unit, call(PLACE.0), words, |caller| {
        service = Some(callee.shaped_portal_for(caller, PLACE, shape)?);
        Ok(())
    })?;
    refused(&caller)?;
    hold(callee.get(word::BEGUN) == 0, "it was called")
}

/// A page fault of one goes to another, which finds nothing but the words of the fault.
fn upcall(unit: bool) -> Result<(), &'static str> {
    let mut faulting = Child::new(0, !unit, event::FAULT, |_| ()).map_err(text)?;
    // It gives up.
    let pager = Child::new(1, unit, event::ASK, |given| {
        (given[INDEX], given[CONTROL], given[WORDS_AT[0]]) = (call(RETURN), 0, 1);
    })
    .map_err(text)?;
    let service = pager.portal_for(&faulting, Entry(PAGE_FAULT[0])).map_err(text)?;
    faulting.faults_go(FAULT).map_err(text)?;
    faulting.start().map_err(text)?;
    faulting.ends()?;
    drop(service);
    let first = pager.state(area::FIRST);
    let [address, pc, code] = [0, 1, 2].map(|word| first[WORDS_AT[word]]);
    // A write by a user where nothing is.
    hold(address == FAULT && Child::is_code(pc) && code == 6, "another page fault")?;
    reported(&pager, true, [address, pc, code, 0, 0], 0)
}

/// A page fault reports an address where `npciii>i` has the constant of its entry.
fn forged(unit: bool) -> Result<(), &'static str> {
    let shape = Owned::new(op::shape_new(Entry::SPECIAL, b"npciii>i").map_err(text)?);
    let mut faulting = Child::new(0, unit, event::FAULT, |_| ()).map_err(text)?;
    let pager = Child::new(1, false, event::ASK, |given| given[INDEX] = call(RETURN)).map_err(text)?;
    let place = Entry(PAGE_FAULT[0]);
    let service = pager.shaped_portal_for(&faulting, place, shape.entry()).map_err(text)?;
    faulting.faults_go(FAULT).map_err(text)?;
    faulting.start().map_err(text)?;
    faulting.ends()?;
    drop(service);
    hold(pager.get(word::BEGUN) == 0, "its pager was called")
}

/// A caller stops waiting for a callee that runs with all registers filled: both go on.
fn cut_off(unit: bool) -> Result<(), &'static str> {
    let callee = Child::new(1, unit, event::SPIN, |_| ()).map_err(text)?;
    let mut service = None;
    let caller = asks(unit, call(PLACE.0), [1, 2, 3, 4, 5, 0], |caller| {
        service = Some(callee.portal_for(caller, PLACE)?);
        Ok(())
    })?;
    thread::sleep(1_000_000).map_err(text)?;
    hold(callee.get(word::BEGUN) == 1, "it was not called")?;
    caller.cancel().map_err(text)?;
    value(&caller, Error::Cancelled as u64, Some(0))?;
    thread::sleep(1_000_000).map_err(text)?;
    callee.release();
    let end = op::clock() + child::PATIENCE;
    while callee.get(word::DONE) == 0 && op::clock() < end {
        thread::sleep(100_000).map_err(text)?;
    }
    kept(&callee)
}

static POINTED_TO: AtomicU64 = AtomicU64::new(42);

fn set_pointer() -> Result<(), Error> {
    op::activation_set(abi_op::ACTIVATION_THREAD_POINTER, POINTED_TO.as_ptr() as u64)
}

/// Has the thread pointer of its caller, and clobbers it.
struct Clobberer;

impl Serve for Clobberer {
    fn serve(_: &mut Request<'_>) -> Reply {
        let set = set_pointer();
        fill::clobber_pointer();
        Reply::word(set.is_err().into())
    }
}

/// Two have the same thread pointer; one of them clobbers its own.
fn pointer() -> Result<(), &'static str> {
    server::activations(1).map_err(text)?;
    let service = Owned::new(server::service::<Clobberer>().map_err(text)?);
    let portal = Owned::new(table::allocate().map_err(text)?);
    op::portal_new(Entry::OWN, service.entry(), 0, portal.entry(), 0).map_err(text)?;
    set_pointer().map_err(text)?;
    let spoilt = message::call(portal.entry(), [0; 5], Control(0)).map_err(text)?.0[0];
    hold(spoilt == 0, "the thread pointer was not set")?;
    hold(crate::arch::programs::pointed_to() == 42, "another's thread pointer is gone")?;
    op::activation_set(abi_op::ACTIVATION_THREAD_POINTER, 0).map_err(text)
}
