//! Whether labels are asked, by the table of operations: each operand that is judged is tried by a domain that is tainted and by one that is not, on what
//! has the same labels as the domain and on what has not. With labels switched off all of that is done; what is printed says which.

mod changes;
mod operations;
mod world;

use abi::layout::{EXCEPTION, FREE_START, PAGE_FAULT};
use abi::level::{ONE, STAR, THREE, TWO, ZERO};
use abi::op::{self as numbers, OperandKind};
use abi::rights::{ALL, MAP_EXECUTE, MAP_READ, MAP_WRITE, UNMAP_SELF};
use abi::{Error, info};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicU64, Ordering};
use runtime::Entry;
use runtime::entry::Owned;
use runtime::op::{self, LabelFrom};
use runtime::port::{self, Options};
use runtime::server::{self, ServeWord};

use self::changes::{
    both_change, call_cut, children, ended_meanwhile, handled, heard, label_at, owned_page, owned_semaphore, page_cut,
    page_kept, refused_by_another, removed, shown_and_written, taint, wait_cut, wait_kept, window_cut,
};
use self::operations::{Target, each, hoard, ports, semaphores, without_room};
use self::world::{COMMON, FRAMES, HAS, MACHINE, MADE, NOBODYS, Outcome, STEPS, Side, World, named, text};
pub use self::world::{child, does};
use crate::raw;
use crate::table::child::{Child, PLACE, Program, Step, Unit, on_semaphore, operation};
use crate::table::places::RETURN;

/// An untainted child at a port where others receive, too, with a message that would taint it.
fn taints_nobody(world: &World) -> Outcome<(String, u64)> {
    let port = Target::new(world, OperandKind::Port, Side::Usual)?.ok_or("no port")?;
    let (_account, child) = world.paid_child(Side::Usual)?;
    let takes = Entry(port.give(&child)? as usize);
    let taint = Owned::new(op::label_new(LabelFrom::Level(STAR)).map_err(text)?);
    op::label_put(taint.entry(), world.handle, TWO).map_err(text)?;
    let sends = port.entry.as_ref().ok_or("no port")?.entry();
    port::send(sends, &[], &Options { contaminate: Some(taint.entry()), ..Options::default() }).map_err(text)?;
    let receive = on_semaphore(takes, [numbers::RECEIVE, 0, 0, 0, 0, 0]);
    Ok((named(&[does(&child, &[receive])?]), number_of(&child)?))
}

/// P and V on an untainted semaphore that a tainted child got with a message.
fn came_along(world: &World) -> Outcome<String> {
    let mut ends = Vec::new();
    for way in [numbers::P, numbers::V] {
        let port = Target::new(world, OperandKind::Port, Side::Tainted)?.ok_or("no port")?;
        let semaphore = Owned::new(op::semaphore_new(Entry::OWN, 1).map_err(text)?);
        let (_account, child) = world.paid_child(Side::Tainted)?;
        let takes = Entry(port.give(&child)? as usize);
        let sends = port.entry.as_ref().ok_or("no port")?.entry();
        port::send(sends, &[], &Options { along: Some(semaphore.entry()), ..Options::default() }).map_err(text)?;
        let steps = [
            operation(numbers::ACTIVATION_SET, [numbers::ACTIVATION_RECEIVE, MADE, 0, 0, 0, 0]),
            on_semaphore(takes, [numbers::RECEIVE, 0, 0, 0, 0, 0]),
            on_semaphore(Entry(MADE as usize), [way, 0, 0, 0, 0, 0]),
        ];
        ends.push(does(&child, &steps)?);
    }
    Ok(named(&ends))
}

/// V on an untainted semaphore that a child was given before its labels, which are tainted.
fn given_before(world: &World) -> Outcome<String> {
    let target = Target::new(world, OperandKind::Semaphore, Side::Usual)?.ok_or("no semaphore")?;
    let semaphore = target.entry.as_ref().ok_or("no semaphore")?.entry();
    let account = world.account(Side::Usual).map_err(text)?;
    let child = Child::prepared(Unit::None, account.entry(), 1, 1, |domain| {
        op::entry_copy(Entry::OWN, semaphore, domain, Entry(MADE as usize), ALL)?;
        op::domain_set_labels(domain, world.send.entry(), world.receive.entry(), false)
    })
    .map_err(text)?;
    child.show(&STEPS, 1, false).map_err(text)?;
    Ok(named(&[does(&child, &[on_semaphore(Entry(MADE as usize), [numbers::V, 0, 0, 0, 0, 0])])?]))
}

/// A child that nobody but its maker knows works with what nobody else has, whatever its labels.
fn private(world: &World) -> Outcome<String> {
    let account = world.account(Side::Usual).map_err(text)?;
    let child = world.child(Side::Tainted, &account).map_err(text)?;
    let steps = [
        operation(numbers::SEMAPHORE_NEW, [0, 0, MADE, 0, 0, 0]),
        on_semaphore(Entry(MADE as usize), [numbers::V, 0, 0, 0, 0, 0]),
        on_semaphore(Entry(MADE as usize), [numbers::P, 0, 0, 0, 0, 0]),
    ];
    Ok(named(&[does(&child, &steps)?]))
}

/// A page of ours, which others have, too, for a tainted domain: to read, and to write.
fn pages(world: &World) -> Outcome<String> {
    let account = world.account(Side::Usual).map_err(text)?;
    let mut ends = Vec::new();
    for may_write in [false, true] {
        let child = world.child(Side::Tainted, &account).map_err(text)?;
        ends.push(child.show(&COMMON, 0, may_write).err().map_or(0, |error| error as u64));
    }
    Ok(named(&ends))
}

/// A page of ours with a taint: for an untainted domain to read, and for a tainted one to write.
fn tainted_pages(world: &World) -> Outcome<String> {
    const OURS: u64 = FREE_START + 0x1100_0000;
    let mut ends = Vec::new();
    for (who, rights) in [(Side::Usual, MAP_READ), (Side::Tainted, MAP_READ | MAP_WRITE)] {
        let accounts = [world.account(Side::Tainted).map_err(text)?, world.account(who).map_err(text)?];
        let child = world.child(who, &accounts[1]).map_err(text)?;
        op::draw(raw::MEMORY, accounts[0].entry(), Entry::OWN, OURS, 0, MAP_READ | MAP_WRITE).map_err(text)?;
        let shown = raw::call(numbers::MAP, [child.domain.entry().0 as u64, OURS, FREE_START, 0, rights, 0]);
        ends.push(shown.err().map_or(0, |error| error as u64));
        raw::give_up(OURS);
    }
    Ok(named(&ends))
}

/// A domain has a tainted page that nobody else has, which it gets without a check, and shows it to an owner of the handle: as an
/// owner, and as one that may not read it.
fn shown_unread(world: &World) -> Outcome<String> {
    const OURS: u64 = FREE_START + 0x1400_0000;
    let account = world.account(Side::Usual).map_err(text)?;
    let owner = || {
        let send = label_at(world, STAR)?;
        child(&account, Some([send.entry(), world.receive.entry()])).map_err(text)
    };
    let mut ends = Vec::new();
    for child in [owner()?, world.child(Side::Usual, &account).map_err(text)?] {
        let other = owner()?;
        let to = child.give(other.domain.entry()).map_err(text)?.0 as u64;
        let theirs = world.account(Side::Tainted).map_err(text)?;
        op::draw(raw::MEMORY, theirs.entry(), Entry::OWN, OURS, 0, MAP_READ | MAP_WRITE).map_err(text)?;
        raw::grant(child.domain.entry(), OURS, PLACE).map_err(text)?;
        ends.push(does(&child, &[operation(numbers::MAP, [to, PLACE, FREE_START, 0, MAP_READ, 0])])?);
    }
    Ok(named(&ends))
}

/// A tainted domain has an untainted page that nobody else has, and shows it to another tainted one: if it may write it itself, and if not.
fn shown_on(world: &World) -> Outcome<String> {
    const OURS: u64 = FREE_START + 0x1300_0000;
    let mut ends = Vec::new();
    for may_write in [true, false] {
        let account = world.account(Side::Tainted).map_err(text)?;
        let [child, other] = [world.child(Side::Tainted, &account), world.child(Side::Tainted, &account)];
        let (child, other) = (child.map_err(text)?, other.map_err(text)?);
        let to = child.give(other.domain.entry()).map_err(text)?.0 as u64;
        op::draw(raw::MEMORY, Entry::OWN, Entry::OWN, OURS, 0, MAP_READ | MAP_WRITE).map_err(text)?;
        raw::grant(child.domain.entry(), OURS, PLACE).map_err(text)?;
        let taken = if may_write { MAP_EXECUTE } else { MAP_WRITE };
        let steps = [
            operation(numbers::UNMAP, [0, PLACE, 0, taken | UNMAP_SELF, 0, 0]),
            operation(numbers::MAP, [to, PLACE, FREE_START, 0, MAP_READ, 0]),
        ];
        ends.push(does(&child, &steps)?);
    }
    Ok(named(&ends))
}

/// A tainted domain pays from an account of its own, which has the domain's label, and wants one with the label {1}.
fn accounts(world: &World) -> Outcome<String> {
    let tries: [[Step; 2]; 2] = [
        [
            operation(numbers::ACCOUNT_NEW, [0, 4, MADE, 0, 0, 0]),
            operation(numbers::SEMAPHORE_NEW, [MADE, 0, MADE + 1, 0, 0, 0]),
        ],
        [
            operation(numbers::LABEL, [numbers::LABEL_NEW, ONE, MADE, 0, 0, 0]),
            operation(numbers::ACCOUNT_NEW, [0, 4, MADE + 1, 0, MADE, 0]),
        ],
    ];
    let mut ends = Vec::new();
    for steps in tries {
        let (_account, child) = world.paid_child(Side::Tainted)?;
        ends.push(does(&child, &steps)?);
    }
    Ok(named(&ends))
}

/// A usual domain calls another one by portals of a label without entries.
fn plain_portals(world: &World) -> Outcome<String> {
    let mut ends = Vec::new();
    for level in [THREE, ZERO] {
        let label = Owned::new(op::label_new(LabelFrom::Level(level)).map_err(text)?);
        let account = world.account(Side::Usual).map_err(text)?;
        let [child, other] = [world.child(Side::Usual, &account), world.child(Side::Usual, &account)];
        let (child, other) = (child.map_err(text)?, other.map_err(text)?);
        let (service, _portal) = other.portal_labelled(label.entry()).map_err(text)?;
        let portal = op::portal_new(child.domain.entry(), service.entry(), 0, Entry(0), 0).map_err(text)?;
        ends.push(does(&child, &[on_semaphore(portal, [RETURN, 0, 0, 0, 0, 0])])?);
    }
    Ok(named(&ends))
}

/// Calls by portals that ask for nothing.
fn calls(world: &World) -> Outcome<String> {
    let mut ends = Vec::new();
    for who in [Side::Usual, Side::Tainted] {
        for whom in [Side::Usual, Side::Tainted] {
            let accounts = [world.account(who).map_err(text)?, world.account(whom).map_err(text)?];
            let child = world.child(who, &accounts[0]).map_err(text)?;
            let other = world.child(whom, &accounts[1]).map_err(text)?;
            let (_service, portal) = other.portal_for(&child).map_err(text)?;
            ends.push(does(&child, &[on_semaphore(portal, [RETURN, 0, 0, 0, 0, 0])])?);
        }
    }
    Ok(named(&ends))
}

/// A domain runs into something that an untainted domain handles, and a tainted one. Its handler does not answer, so the domain lives if that is called.
fn upcalls(world: &World, index: usize, program: Program) -> Outcome<String> {
    let mut ends = Vec::new();
    COMMON.0[0].store(0, Ordering::SeqCst);
    for whom in [Side::Usual, Side::Tainted] {
        let (_account, child) = world.paid_child(Side::Usual)?;
        let (_other, handler) = world.paid_child(whom)?;
        handler.show(&COMMON, 0, false).map_err(text)?;
        let (service, _portal) = handler.portal().map_err(text)?;
        op::portal_new(child.domain.entry(), service.entry(), 0, Entry(index), 0).map_err(text)?;
        op::domain_set_fault_range(child.domain.entry(), 0, PLACE, PLACE + abi::PAGE_BYTES as u64).map_err(text)?;
        let _runs = child.start(program).map_err(text)?;
        runtime::thread::sleep(20_000_000).map_err(text)?;
        ends.push(if child.has_died() { "it dies" } else { "it is handled" });
    }
    Ok(ends.join(", "))
}

/// A line in the log, of no bytes.
fn log(world: &World) -> Outcome<String> {
    let mut ends = Vec::new();
    for who in [Side::Usual, Side::Tainted] {
        let (_account, child) = world.paid_child(who)?;
        ends.push(does(&child, &[operation(numbers::LOG, [0; 6])])?);
    }
    Ok(named(&ends))
}

/// Lines of the log about the death of a domain that has a fault: the cause, and the place.
fn reported(world: &World) -> Outcome<String> {
    let mut counts = Vec::new();
    for who in [Side::Usual, Side::Tainted] {
        let (_account, child) = world.paid_child(who)?;
        let begin = format!("] domain {} ", number_of(&child)?);
        let _writes = child.start(Program::Write).map_err(text)?;
        runtime::thread::sleep(20_000_000).map_err(text)?;
        if !child.has_died() {
            return Err("it does not die".into());
        }
        let log = String::from_utf8_lossy(&log_bytes()).into_owned();
        counts.push(log.lines().filter(|line| line.contains(&begin)).count());
    }
    Ok(format!("{} and {} lines", counts[0], counts[1]))
}

/// Lines about what labels forbid to a tainted domain: to write a line, to call an untainted one, and that a message taints an untainted one. Then
/// whether the first one is a V for whoever waits for lines of the log.
fn refused(world: &World) -> Outcome<String> {
    let notices = Owned::new(op::semaphore_new(Entry::OWN, 0).map_err(text)?);
    op::machine_log_semaphore(MACHINE, notices.entry()).map_err(text)?;
    let mut counts = Vec::new();
    let mut count = |from: &str, to: &str| {
        let log = String::from_utf8_lossy(&bytes_of(&[info::LOG_REFUSED])).into_owned();
        let line = format!("{from} -> {to}");
        counts.push(log.lines().filter(|known| known.ends_with(&line)).count());
    };
    let name = |number: u64| format!("victim#{number}");
    let handle = format!("{{{:#x}", world.handle);
    let (_account, child) = world.paid_child(Side::Tainted)?;
    does(&child, &[operation(numbers::LOG, [0; 6])])?;
    let notified = if op::p(notices.entry(), 0).is_ok() { "notified" } else { "not notified" };
    count(&format!("] {} {handle}:3}}", name(number_of(&child)?)), "the log");
    let (_account, child) = world.paid_child(Side::Tainted)?;
    let (_other, other) = world.paid_child(Side::Usual)?;
    let (_service, portal) = other.portal_for(&child).map_err(text)?;
    does(&child, &[on_semaphore(portal, [RETURN, 0, 0, 0, 0, 0])])?;
    count(&format!("] {} {handle}:3}}", name(number_of(&child)?)), &name(number_of(&other)?));
    count(&format!("] a message {handle}:2}}"), &name(taints_nobody(world)?.1));
    let [line, call, message] = counts[..] else { return Err("too few".into()) };
    Ok(format!("{line}, {call}, {message}, {notified}"))
}

/// The number of its domain.
fn number_of(child: &Child) -> Outcome<u64> {
    op::domain_number(child.domain.entry()).map_err(text)
}

/// The parts of the log for lines that everybody sees.
fn log_bytes() -> Vec<u8> {
    bytes_of(&[info::LOG, info::LOG_PROGRAMS])
}

/// Parts of the log.
fn bytes_of(parts: &[u64]) -> Vec<u8> {
    let mut log = Vec::new();
    for part in parts {
        let mut position = 0;
        while let Ok(next) = op::info(MACHINE, *part, position, |bytes, next| {
            log.extend_from_slice(bytes);
            next
        }) && next != position
        {
            position = next;
        }
    }
    log
}

/// A tainted domain that controls the machine stops it. That is tried only if labels forbid it to change what is untainted.
fn stopped(world: &World) -> Outcome<String> {
    let (_account, child) = world.paid_child(Side::Tainted)?;
    if does(&child, &[on_semaphore(Entry(HAS as usize), [numbers::V, 0, 0, 0, 0, 0])])? == 0 {
        return Ok("not tried".into());
    }
    let (_account, child) = world.paid_child(Side::Tainted)?;
    let machine = child.give(MACHINE).map_err(text)?.0 as u64;
    Ok(named(&[does(&child, &[operation(numbers::MACHINE, [machine, numbers::MACHINE_STOP, 0, 0, 0, 0])])?]))
}

/// Memory for us from an account of ours, and from one with a taint that we do not accept.
fn draws() -> Outcome<String> {
    let handle = op::label_handle().map_err(text)?;
    let label = Owned::new(op::label_new(LabelFrom::Level(ONE)).map_err(text)?);
    let mut ends = Vec::new();
    for level in [ONE, THREE] {
        op::label_put(label.entry(), handle, level).map_err(text)?;
        let account = Owned::new(op::account_new_labelled(Entry::OWN, FRAMES, 0, label.entry()).map_err(text)?);
        let place = FREE_START + 0x1000_0000 + 0x1000 * level;
        let words = [raw::MEMORY.0 as u64, account.entry().0 as u64, 0, place, 0, MAP_READ];
        ends.push(raw::call(numbers::DRAW, words).err().map_or(0, |error| error as u64));
        raw::give_up(place);
    }
    Ok(named(&ends))
}

/// The rule for a domain that has died: about it, and calls to it by an entry from before, of a domain that is tainted since and of one that is not.
fn dead(world: &World) -> Outcome<String> {
    let mut ends = Vec::new();
    for what in [Side::Usual, Side::Tainted] {
        let accounts = [world.account(what).map_err(text)?, world.account(Side::Usual).map_err(text)?];
        let target = world.child(what, &accounts[0]).map_err(text)?;
        let child = world.child(Side::Usual, &accounts[1]).map_err(text)?;
        // Nothing is derived from an entry of what is dead.
        let index = child.give(target.domain.entry()).map_err(text)?;
        does(&target, &[operation(numbers::THREAD_ID, [0; 6])])?;
        ends.push(does(&child, &[operation(numbers::ENTRY_INFO, [index.0 as u64, 0, 0, 0, 0, 0])])?);
    }
    for level in [ONE, THREE] {
        let account = world.account(Side::Usual).map_err(text)?;
        let [target, child] = [world.child(Side::Usual, &account), world.child(Side::Usual, &account)];
        let (target, child) = (target.map_err(text)?, child.map_err(text)?);
        let (_service, portal) = target.portal_for(&child).map_err(text)?;
        does(&target, &[operation(numbers::THREAD_ID, [0; 6])])?;
        let change = operation(numbers::LABEL, [numbers::LABEL_SEND, world.handle, level, 0, 0, 0]);
        ends.push(does(&child, &[change, on_semaphore(portal, [RETURN, 0, 0, 0, 0, 0])])?);
    }
    Ok(named(&ends))
}

/// The end of a domain is a V on a semaphore that others have, too.
fn deaths(world: &World) -> Outcome<String> {
    let mut said = Vec::new();
    for (who, what) in [(Side::Usual, Side::Usual), (Side::Tainted, Side::Usual), (Side::Tainted, Side::Tainted)] {
        let (_account, child) = world.paid_child(who)?;
        let ends = Target::new(world, OperandKind::Semaphore, what)?.ok_or("no semaphore")?;
        let entry = ends.entry.as_ref().ok_or("no semaphore")?.entry();
        op::p(entry, 0).map_err(text)?;
        child.give(entry).map_err(text)?;
        op::domain_set_death_semaphore(child.domain.entry(), entry).map_err(text)?;
        STEPS.set_steps(0, &[operation(numbers::THREAD_ID, [0; 6])]);
        let _thread = child.start(Program::Steps(0)).map_err(text)?;
        said.push(if op::p(entry, op::clock() + 50_000_000).is_ok() { "notified" } else { "not notified" });
    }
    Ok(said.join(", "))
}

/// A new domain's labels.
fn new_labels(world: &World) -> Outcome<String> {
    let account = world.account(Side::Usual).map_err(text)?;
    let set = |domain: Entry, send: &Owned, receive: &Owned| {
        op::domain_set_labels(domain, send.entry(), receive.entry(), false).err().map_or(0, |error| error as u64)
    };
    let fresh = || op::domain_new(account.entry(), 0, "victim").map(Owned::new).map_err(text);
    let foreign = Owned::new(op::label_new(LabelFrom::Level(TWO)).map_err(text)?);
    op::label_put(foreign.entry(), NOBODYS, THREE).map_err(text)?;
    let low = Owned::new(op::label_new(LabelFrom::Level(STAR)).map_err(text)?);
    let ours = op::label_handle().map_err(text)?;
    let unheard = Owned::new(op::label_new(LabelFrom::Level(ONE)).map_err(text)?);
    op::label_put(unheard.entry(), ours, THREE).map_err(text)?;
    // It accepts what its maker does not; it owns everything; its maker could not hear of its end.
    let mut ends = [(&world.send, &foreign), (&low, &world.receive), (&unheard, &world.receive)]
        .map(|(send, receive)| fresh().map(|domain| set(domain.entry(), send, receive)))
        .into_iter()
        .collect::<Outcome<Vec<u64>>>()?;
    let started = Child::new(account.entry(), 1, 1).map_err(text)?;
    ends.push(set(started.domain.entry(), &world.send, &world.receive));
    // Somebody else's, which has nothing yet.
    let child = world.child(Side::Usual, &account).map_err(text)?;
    let new = fresh()?;
    let index = child.give(new.entry()).map_err(text)?.0 as u64;
    let label = |level, place| operation(numbers::LABEL, [numbers::LABEL_NEW, level, place, 0, 0, 0]);
    let sets = operation(numbers::DOMAIN_SET, [index, numbers::SET_LABELS, MADE, MADE + 1, 0, 0]);
    ends.push(does(&child, &[label(ONE, MADE), label(TWO, MADE + 1), sets])?);
    Ok(named(&ends))
}

/// The answers since [`answers`], two bits each, the first ones highest, below a one.
static ANSWERS: AtomicU64 = AtomicU64::new(1);

/// Says what its caller may do with what has the label in word 0. That gets a level for the handle of word 1 before, one more than it, if word 2 is not 0.
struct Asked;

impl ServeWord for Asked {
    fn serve(_: u64, words: [u64; 5]) -> u64 {
        let label = Entry(words[0] as usize);
        if words[2] != 0 && op::label_put(label, words[1], words[2] - 1).is_err() {
            return 0;
        }
        if let Ok((observe, change)) = op::label_caller(label) {
            let answer = u64::from(observe) | u64::from(change) << 1;
            ANSWERS.store(ANSWERS.load(Ordering::SeqCst) << 2 | answer, Ordering::SeqCst);
        }
        0
    }
}

/// The access of a caller, by the answer of [`Asked`].
const MAY: [&str; 4] = ["nothing", "observe", "change", "both"];

/// The answers since the last time, by their names.
fn answers(names: [&str; 4]) -> String {
    let reported = ANSWERS.swap(1, Ordering::SeqCst);
    let count = (63 - reported.leading_zeros()) / 2;
    let names = (0..count).rev().map(|number| names[(reported >> (2 * number)) as usize & 3]);
    names.collect::<Vec<_>>().join(", ")
}

/// A service of ours, and a portal to it for a child.
fn asked_by(child: &Child, service: &Owned) -> Outcome<Entry> {
    op::portal_new(child.domain.entry(), service.entry(), 0, Entry(0), 0).map_err(text)
}

/// The access of callers to tainted and untainted objects.
fn caller_may(world: &World) -> Outcome<String> {
    server::activations(1).map_err(text)?;
    let service = Owned::new(server::word_service::<Asked>().map_err(text)?);
    for who in [Side::Usual, Side::Tainted] {
        for label in [&world.plain, &world.send] {
            let (_account, child) = world.paid_child(who)?;
            let portal = asked_by(&child, &service)?;
            does(&child, &[on_semaphore(portal, [label.entry().0 as u64, 0, 0, 0, 0, 0])])?;
        }
    }
    Ok(answers(MAY))
}

/// Says what the nucleus says of its caller: see `op::caller`.
struct Known;

impl ServeWord for Known {
    fn serve(_: u64, _: [u64; 5]) -> u64 {
        ANSWERS.store(ANSWERS.load(Ordering::SeqCst) << 2 | op::caller(), Ordering::SeqCst);
        0
    }
}

/// The answers of `op::caller` about four callers: with the usual labels, with S = {★} and R = {3}, with S alone, with R alone. Only a
/// trusted domain can make the last three.
pub fn callers() -> Outcome<String> {
    server::activations(1).map_err(text)?;
    let service = Owned::new(server::word_service::<Known>().map_err(text)?);
    let account = Owned::new(op::account_new(Entry::OWN, 4 * FRAMES).map_err(text)?);
    for levels in [None, Some([STAR, THREE]), Some([STAR, TWO]), Some([ONE, THREE])] {
        let labels = levels.map(|levels| levels.map(|level| op::label_new(LabelFrom::Level(level)).map(Owned::new)));
        let labels = match labels {
            Some([send, receive]) => Some([send.map_err(text)?, receive.map_err(text)?]),
            None => None,
        };
        let child = child(&account, labels.as_ref().map(|labels| labels.each_ref().map(Owned::entry))).map_err(text)?;
        let portal = asked_by(&child, &service)?;
        does(&child, &[on_semaphore(portal, [0; 6])])?;
    }
    let said = answers(["another", "usual", "owns all", "unknown"]);
    Ok(format!("callers that are usual, own and accept all, only own all, only accept all: {said}"))
}

/// The same of one label, which changes, of a caller whose labels change, and of another one, whose labels have changed as often.
fn caller_may_again(world: &World) -> Outcome<String> {
    let service = Owned::new(server::word_service::<Asked>().map_err(text)?);
    let label = Owned::new(op::label_new(LabelFrom::Level(ONE)).map_err(text)?);
    let (account, child) = world.paid_child(Side::Usual)?;
    let portal = asked_by(&child, &service)?;
    let asks = |level| on_semaphore(portal, [label.entry().0 as u64, world.handle, level, 0, 0, 0]);
    let tainted = taint(world);
    does(&child, &[asks(0), asks(THREE + 1), asks(ONE + 1), tainted, asks(0)])?;
    let usual = [ONE, TWO].map(|level| op::label_new(LabelFrom::Level(level)).map(Owned::new));
    let [send, receive] = usual;
    let (send, receive) = (send.map_err(text)?, receive.map_err(text)?);
    for labels in [[&world.send, &world.receive], [&send, &receive]] {
        let labels = labels.map(Owned::entry);
        let child = self::child(&account, Some(labels)).map_err(text)?;
        let portal = asked_by(&child, &service)?;
        does(&child, &[on_semaphore(portal, [label.entry().0 as u64, 0, 0, 0, 0, 0])])?;
    }
    Ok(answers(MAY))
}

/// Calls of ours by portals that ask for nothing, and by portals that taint must not reach.
fn portals(world: &World) -> Outcome<String> {
    let mut ends = Vec::new();
    for level in [THREE, ONE] {
        let label = Owned::new(op::label_new(LabelFrom::Level(THREE)).map_err(text)?);
        op::label_put(label.entry(), world.handle, level).map_err(text)?;
        let service = Owned::new(server::word_service_labelled::<Asked>(label.entry()).map_err(text)?);
        for who in [Side::Usual, Side::Tainted] {
            let (_account, child) = world.paid_child(who)?;
            let portal = asked_by(&child, &service)?;
            ends.push(does(&child, &[on_semaphore(portal, [0; 6])])?);
        }
    }
    Ok(named(&ends))
}

/// A domain's portals get as many labels as they can, one of them again, and one more; then its account has everything back.
fn portal_labels() -> Outcome<String> {
    let account = Owned::new(op::account_new(Entry::OWN, FRAMES).map_err(text)?);
    let domain = Owned::new(op::domain_new(account.entry(), 0, "victim").map_err(text)?);
    let label = Owned::new(op::label_new(LabelFrom::Level(THREE)).map_err(text)?);
    let service = || {
        let made = raw::service_labelled(&domain, abi::layout::PROGRAM_START, label.entry());
        made.err().map_or(0, |error| error as u64)
    };
    for handle in 0..abi::MAX_PORTAL_LABELS as u64 {
        op::label_put(label.entry(), handle, TWO).map_err(text)?;
        Error::from_status(service()).map_err(text)?;
    }
    let again = service();
    op::label_put(label.entry(), 0, ONE).map_err(text)?;
    let more = service();
    drop(domain);
    let back = op::account_move(account.entry(), Entry::OWN, FRAMES).err().map_or(0, |error| error as u64);
    Ok(named(&[again, more, back]))
}

/// All that is tried: the name, and what comes of it.
pub fn lines() -> Vec<(&'static str, Outcome<String>)> {
    let world = match World::new() {
        Ok(world) => world,
        Err(why) => return Vec::from([("a handle and its labels", Err(why))]),
    };
    use Side::{Tainted, Usual};
    Vec::from([
        ("operations of an untainted domain on untainted ones", each(&world, Usual, Usual)),
        ("operations of a tainted domain on tainted ones", each(&world, Tainted, Tainted)),
        ("operations of a tainted domain on untainted ones", each(&world, Tainted, Usual)),
        ("operations of an untainted domain on tainted ones", each(&world, Usual, Tainted)),
        ("operations on tainted ones that would raise an untainted domain", without_room(&world)),
        ("P and V of an untainted domain on an untainted semaphore", semaphores(&world, Usual, Usual)),
        ("P and V of a tainted domain on a tainted semaphore", semaphores(&world, Tainted, Tainted)),
        ("P and V of a tainted domain on an untainted semaphore", semaphores(&world, Tainted, Usual)),
        ("P and V of an untainted domain on a tainted semaphore", semaphores(&world, Usual, Tainted)),
        ("P and V of a tainted domain on its own semaphore", private(&world)),
        ("V of a tainted domain on an untainted semaphore from before its labels", given_before(&world)),
        ("RECEIVE and SEND of an untainted domain at an untainted port", ports(&world, Usual, Usual)),
        ("RECEIVE and SEND of a tainted domain at a tainted port", ports(&world, Tainted, Tainted)),
        ("RECEIVE and SEND of a tainted domain at an untainted port", ports(&world, Tainted, Usual)),
        ("RECEIVE and SEND of an untainted domain at a tainted port", ports(&world, Usual, Tainted)),
        ("a message that would taint one of several possible receivers", taints_nobody(&world).map(|(ends, _)| ends)),
        ("P and V of a tainted domain on an untainted semaphore that came with a message", came_along(&world)),
        ("a wait while its domain is tainted", wait_cut(&world, OperandKind::Semaphore)),
        ("a wait at a port while its domain is tainted", wait_cut(&world, OperandKind::Port)),
        ("a write while its domain is tainted", page_cut(&world)),
        ("an untainted page for a tainted domain, to read and to write", pages(&world)),
        ("a tainted page for an untainted domain to read, and for a tainted one to write", tainted_pages(&world)),
        ("an untainted page that a tainted domain shows, if it writes it, and if not", shown_on(&world)),
        (
            "a tainted page that an owner shows an owner, and that one shows a domain that may not read it",
            shown_unread(&world),
        ),
        ("a message that would taint the writer or the reader of a shared page", page_kept(&world)),
        ("a wait while a message would taint its domain", wait_kept(&world)),
        ("an account of a tainted domain, and one with the label {1}", accounts(&world)),
        ("to remove a domain, a dead one, a thread and an interrupt line, untainted and tainted", removed(&world)),
        ("to be tainted as the maker accepts, and as it does not", heard(&world)),
        ("a semaphore of {h 0, 1} for an owner of h that stays one, and that does not", owned_semaphore(&world)),
        ("a page of {h 0, 1} for a writer that stays an owner of h, and that does not", owned_page(&world)),
        (
            "a page of {h 0, 1} that an owner of h shows and writes, if it stays one, and if not",
            shown_and_written(&world),
        ),
        ("calls of a usual domain to a usual one by portals of {3} and of {0}", plain_portals(&world)),
        ("calls of an untainted domain to untainted and tainted ones, and of a tainted one", calls(&world)),
        (
            "a page fault for an untainted handler, and for a tainted one",
            upcalls(&world, PAGE_FAULT[0], Program::Write),
        ),
        ("an exception for an untainted handler, and for a tainted one", upcalls(&world, EXCEPTION, Program::Touch)),
        ("a call in flight to a domain that is tainted then", call_cut(&world)),
        (
            "a call in flight to a domain that taints itself and is killed, or removed, meanwhile",
            ended_meanwhile(&world),
        ),
        (
            "a refused change whose last steps another thread does, which then removes the cause",
            refused_by_another(&world),
        ),
        ("a call in flight while its caller is tainted and its callee accepts less", both_change(&world)),
        (
            "a call to an owner while its caller taints itself: without and with a window, to a dead one; while a message taints it: \
             without and with a window; while one makes it an owner",
            window_cut(&world),
        ),
        ("to be tainted as the handler of exceptions accepts, and as it does not", handled(&world)),
        ("a line of an untainted domain in the log, and of a tainted one", log(&world)),
        ("the log on a fault of an untainted domain, and of a tainted one", reported(&world)),
        ("lines about a line, a call and a message that labels forbid, and a notice of them", refused(&world)),
        ("to stop the machine, tainted", stopped(&world)),
        ("memory from an untainted account, and from a tainted one", draws()),
        ("a dead domain for an untainted one: untainted, and tainted; calls, untainted and tainted", dead(&world)),
        (
            "the end of an untainted domain on a semaphore of others, and of a tainted one on that and on a tainted one",
            deaths(&world),
        ),
        ("labels of a child: to accept more, to own all, not to be heard, too late, by another", new_labels(&world)),
        ("to accept a child's taint no more, with the child and without", children(&world)),
        ("what callers may do: untainted with {1} and with taint, tainted with both", caller_may(&world)),
        (
            "the same again: of a label, with taint, without, of the tainted caller; of a tainted one and another",
            caller_may_again(&world),
        ),
        ("calls by portals of {3} and of {1} for the handle, untainted and tainted by each", portals(&world)),
        ("a receive label that grows until the account ends, and the account afterwards", hoard(&world)),
        ("labels of portals: one that is there, one too many, and the account afterwards", portal_labels()),
    ])
}
