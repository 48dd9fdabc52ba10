//! Tests that follow from the table of operations (`abi::op`). Each operand that is an entry is given an entry of each other kind, one that
//! has every right but one that it needs, one that has just these, one that was revoked, and none; each that names an index to fill one
//! that is taken, and none when the table is full: nobody writes those cases by hand. Bounds are tried at the last value that is allowed
//! and the first that is refused, and what goes on in steps with more things than a step takes.

use abi::layout::{FIRST_FREE, FREE_START, MAX_TABLE_ENTRIES, PAGE_FAULT, PROGRAM_START};
use abi::op::{self as numbers, OperandKind, Operation};
use abi::rights::{ALL, COPY, Kind, MAP_EXECUTE, MAP_GRANT, MAP_READ, MAP_WRITE, UNMAP_SELF, USE};
use abi::{Control, Error, MAX_DERIVATION, NEVER, info};
use alloc::boxed::Box;
use alloc::format;
use core::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use idl::{Reply, Request};
use runtime::entry::Owned;
use runtime::server::{self, Serve, ServeWord};
use runtime::thread::Thread;
use runtime::{Entry, message, op};

use crate::check::{Check, hold};
use crate::raw::call;

/// See the module.
pub const CHECKS: &[Check] = &[
    ("an entry of another kind is refused, whatever the operation", || each(367, OperandKind::is_entry, kinds)),
    ("an entry without a right is refused, whatever the operation", || each(48, OperandKind::is_entry, rights)),
    ("an entry with these rights alone is enough, whatever the operation", || each(16, OperandKind::is_entry, enough)),
    ("an entry that is not there is refused, whatever the operation", || each(180, OperandKind::is_entry, absent)),
    ("an entry that was revoked is refused, whatever the operation", || each(40, OperandKind::is_entry, revoked)),
    ("an entry of a dead domain is refused, whatever the operation", || each(10, OperandKind::is_entry, dead)),
    ("an index that is taken or none is not filled, whatever the operation", || each(33, is_fill, taken)),
    ("a table does not grow without a frame for it, whatever the operation", || each(11, is_fill, without_room)),
    ("priorities end at the caller's highest", || in_world(priorities)),
    ("counts, orders and shares end where the contract says", || in_world(bounds)),
    ("a domain dies with the low 8 bits of what it is killed with", || in_world(status)),
    ("a revocation reaches every copy", || in_world(copies)),
    ("an unmapping reaches every mapping", || in_world(mappings)),
    ("a page that others have does not become code", || in_world(shared)),
    ("no call entry is minted from a service without the right", || in_world(minted)),
    ("derivations end where the contract says", || in_world(derived)),
    ("an entry of an answer comes only to a free index that the caller chose", || in_world(answered)),
    ("a full table takes nothing more, whatever the operation", full),
];

/// Indices that the runtime does not reach.
const FIRST: u64 = 1024;
const ACCOUNT: u64 = FIRST;
const VICTIM: u64 = FIRST + 1;
const SEMAPHORE: u64 = FIRST + 2;
const SERVICE: u64 = FIRST + 3;
const LINE: u64 = FIRST + 4;
const PORTS: u64 = FIRST + 5;
const LABEL: u64 = FIRST + 6;
const PORT: u64 = FIRST + 7;
/// The entry that is tried.
const TRIED: u64 = FIRST + 8;
/// The entry that an operation fills.
const FILLED: u64 = FIRST + 9;
/// Where more stands.
const MORE: u64 = FIRST + 64;
/// The entry in the victim's table.
const INSIDE: u64 = FIRST_FREE as u64;

const MACHINE: u64 = Entry::SPECIAL.0 as u64;
const MEMORY: u64 = system::MEMORY_INDEX as u64;
/// The line and the ports of the second serial device, which is not there.
const SPARE_LINE: u64 = 3;
const SPARE_PORTS: u64 = 0x2f8 | 8 << 16;
/// Those of the third one.
const MORE_PORTS: u64 = 0x3e8 | 8 << 16;
/// Of a shape.
const SPECIFICATION: &[u8] = b"npii>i";
/// Priority 0, slices of a millisecond.
const SCHEDULE: u64 = 1000 << 8;
/// A port for one message of 64 bytes.
const PORT_SIZE: u64 = 64 | 1 << 16;
/// Leaves a register as it is.
const AS_IT_IS: u64 = u64::MAX;

/// The objects that operands name: a thread of ours that waits, and a shape. The rest is re-created for each case.
struct World {
    thread: Thread,
    shape: Owned,
}

impl World {
    fn new() -> Result<Self, Error> {
        let never = op::semaphore_new(Entry::OWN, 0)?;
        let thread = Thread::start(
            |never| {
                loop {
                    let _ = op::p(Entry(never), NEVER);
                }
            },
            never.0,
        )?;
        Ok(Self { thread, shape: Owned::new(op::shape_new(Entry::SPECIAL, SPECIFICATION)?) })
    }

    fn make(&self) -> Result<(), Error> {
        call(numbers::ACCOUNT_NEW, [0, 60, ACCOUNT, 0, 0, 0])?;
        call(numbers::DOMAIN_NEW, [ACCOUNT, 0, VICTIM, u64::from_le_bytes(*b"victim\0\0"), 0, 0])?;
        call(numbers::SEMAPHORE_NEW, [ACCOUNT, 0, SEMAPHORE, 0, 0, 0])?;
        call(numbers::SERVICE_NEW, [0, PROGRAM_START, 0, SERVICE, 0, 0])?;
        call(numbers::LABEL, [numbers::LABEL_NEW, 2, LABEL, 0, 0, 0])?;
        call(numbers::PORT_NEW, [ACCOUNT, PORT_SIZE, PORT, 0, 0, 0])?;
        call(numbers::MACHINE, [MACHINE, numbers::MACHINE_INTERRUPT, SPARE_LINE, LINE, 0, 0])?;
        // Machines without ports have no entry for them.
        let _ = call(numbers::MACHINE, [MACHINE, numbers::MACHINE_PORTS, SPARE_PORTS, PORTS, 0, 0]);
        call(numbers::ENTRY_COPY, [0, SEMAPHORE, VICTIM, INSIDE, ALL.into(), 0]).map(drop)
    }

    fn clear(&self) {
        // Accounts last: they pay for the others.
        for index in (VICTIM..=FILLED).chain([ACCOUNT]) {
            let _ = op::entry_remove(Entry::OWN, Entry(index as usize));
        }
    }

    /// The entry of a kind, with all rights; none on a machine without it.
    fn entry(&self, kind: OperandKind) -> Option<u64> {
        let index = match kind {
            OperandKind::Account => ACCOUNT,
            OperandKind::Domain => VICTIM,
            OperandKind::Thread => self.thread.entry().0 as u64,
            OperandKind::Service => SERVICE,
            OperandKind::Semaphore => SEMAPHORE,
            OperandKind::Shape => self.shape.entry().0 as u64,
            OperandKind::Interrupt => LINE,
            OperandKind::IoPorts => PORTS,
            OperandKind::Memory => MEMORY,
            OperandKind::Label => LABEL,
            OperandKind::Port => PORT,
            _ => MACHINE,
        };
        let (found, _) = op::entry_info(Entry::OWN, Entry(index as usize)).ok()?;
        (found != Kind::Empty).then_some(index)
    }

    /// Operands with which nothing is wrong.
    fn words(&self, row: &Operation, way: u64) -> Option<[u64; 6]> {
        let mut words = [0; 6];
        for (word, operand) in words.iter_mut().zip(row.operands) {
            *word = match (operand.kind, operand.name) {
                (kind, _) if kind.is_entry() => self.entry(kind)?,
                (OperandKind::Way, _) => way,
                (OperandKind::Index, _) => INSIDE,
                (OperandKind::Fill, _) => FILLED,
                (OperandKind::Address, "instruction" | "stack") => AS_IT_IS,
                (OperandKind::Address, _) => FREE_START,
                (OperandKind::Rights, _) => MAP_READ,
                (OperandKind::Number, "schedule") => SCHEDULE,
                (OperandKind::Number, "frames") => 1,
                (OperandKind::Number, "size") => PORT_SIZE,
                (OperandKind::Number, "ports") => MORE_PORTS,
                // It is in the message area since the shape was made.
                (OperandKind::Number, "bytes") => SPECIFICATION.len() as u64,
                _ => 0,
            };
        }
        Some(words)
    }
}

/// The kinds that are entries.
const KINDS: [OperandKind; 12] = {
    use OperandKind::*;
    [Account, Domain, Thread, Service, Semaphore, Shape, Interrupt, IoPorts, Memory, Machine, Label, Port]
};

/// A case: an operation, or one of its ways, and the operand that is tried.
struct Case<'a> {
    world: &'a World,
    index: usize,
    row: &'a Operation,
    way: u64,
    operand: usize,
}

impl Case<'_> {
    /// Makes the call with this in the operand's place; an original with all rights if nothing is said.
    fn call(&self, tried: u64) -> Result<Result<u64, Error>, &'static str> {
        let mut words = self.world.words(self.row, self.way).ok_or("nothing to call it with")?;
        words[self.operand] = tried;
        Ok(call(self.index, words))
    }

    /// Copies what the operand names, with these rights; false if that is not to be copied.
    fn copy(&self, rights: u8) -> Result<bool, &'static str> {
        let source = self.world.entry(self.row.operands[self.operand].kind).ok_or("nothing to copy")?;
        match call(numbers::ENTRY_COPY, [0, source, 0, TRIED, rights.into(), 0]) {
            Err(Error::NoRight) => Ok(false),
            outcome => outcome.map(|_| true).map_err(Error::text),
        }
    }

    fn wrong<T>(&self, what: &str, outcome: Result<u64, Error>) -> Result<T, &'static str> {
        let Operation { name, operands, .. } = self.row;
        let operand = operands[self.operand].name;
        Err(Box::leak(format!("{name}, {operand}, {what}: {outcome:?}").into_boxed_str()))
    }
}

const fn is_fill(kind: OperandKind) -> bool {
    matches!(kind, OperandKind::Fill)
}

/// Whether it is about ports, on a machine without: that refuses it whatever else is wrong.
fn lacks_ports(case: &Case<'_>) -> bool {
    case.row.name == "machine_ports" && case.world.entry(OperandKind::IoPorts).is_none()
}

/// Tries each operand of such a kind, in each operation. Each case has new objects.
fn each(
    least: usize,
    is_tried: fn(OperandKind) -> bool,
    try_one: fn(&Case<'_>) -> Result<usize, &'static str>,
) -> Result<(), &'static str> {
    let world = World::new().map_err(Error::text)?;
    let tried = each_in(&world, is_tried, try_one);
    core::mem::forget(world);
    match tried? {
        tried if tried >= least => Ok(()),
        tried => Err(Box::leak(format!("only {tried} were tried").into_boxed_str())),
    }
}

fn each_in(
    world: &World,
    is_tried: fn(OperandKind) -> bool,
    try_one: impl Fn(&Case<'_>) -> Result<usize, &'static str>,
) -> Result<usize, &'static str> {
    let mut tried = 0;
    for (index, base) in numbers::TABLE.iter().enumerate() {
        let ways = numbers::ways(base.constant);
        let rows = if ways.is_empty() { core::slice::from_ref(base) } else { ways };
        for (way, row) in (0..).zip(rows) {
            for (operand, _) in row.operands.iter().enumerate().filter(|(_, operand)| is_tried(operand.kind)) {
                world.make().map_err(Error::text)?;
                // A machine may lack what the operation is about.
                let outcome = match world.words(row, way) {
                    Some(_) => try_one(&Case { world, index, row, way, operand }),
                    None => Ok(0),
                };
                world.clear();
                tried += outcome?;
            }
        }
    }
    Ok(tried)
}

fn kinds(case: &Case<'_>) -> Result<usize, &'static str> {
    let operand = &case.row.operands[case.operand];
    let mut tried = 0;
    for kind in KINDS.into_iter().filter(|kind| *kind != operand.kind) {
        // A domain may stand for its account where memory is drawn.
        if (case.index, operand.kind, kind) == (numbers::DRAW, OperandKind::Account, OperandKind::Domain) {
            continue;
        }
        let Some(other) = case.world.entry(kind) else { continue };
        match case.call(other)? {
            Err(Error::WrongKind) => tried += 1,
            outcome => return case.wrong(&format!("{kind:?}"), outcome),
        }
    }
    Ok(tried)
}

fn rights(case: &Case<'_>) -> Result<usize, &'static str> {
    let needed = case.row.operands[case.operand].rights;
    let mut tried = 0;
    for right in (0..8).map(|bit| 1 << bit).filter(|right| needed & right != 0) {
        if !case.copy(ALL & !right)? {
            continue;
        }
        let outcome = case.call(TRIED)?;
        let _ = op::entry_remove(Entry::OWN, Entry(TRIED as usize));
        match outcome {
            Err(Error::NoRight) => tried += 1,
            outcome => return case.wrong(&format!("without right {right:#x}"), outcome),
        }
    }
    Ok(tried)
}

fn enough(case: &Case<'_>) -> Result<usize, &'static str> {
    // That would stop the machine, and take what the machine has one of. Some lack a right for another reason, too.
    let may_lack = case.row.refusals.iter().any(|refusal| refusal.error == Error::NoRight);
    if case.index == numbers::MACHINE || may_lack || !case.copy(case.row.operands[case.operand].rights)? {
        return Ok(0);
    }
    match case.call(TRIED)? {
        outcome @ Err(Error::NoRight | Error::WrongKind) => case.wrong("with just the rights it takes", outcome),
        _ => Ok(1),
    }
}

/// Tries the operand with these values, each of which is refused so.
fn refused<const COUNT: usize>(case: &Case<'_>, all: [(u64, Error); COUNT]) -> Result<usize, &'static str> {
    for (tried, error) in all {
        match case.call(tried)? {
            Err(other) if other == error => {}
            outcome => return case.wrong(&format!("{tried:#x}, not {error:?}"), outcome),
        }
    }
    Ok(COUNT)
}

fn absent(case: &Case<'_>) -> Result<usize, &'static str> {
    let none = [(u64::MAX, Error::BadIndex), (MAX_TABLE_ENTRIES as u64, Error::BadIndex), (TRIED, Error::Empty)];
    refused(case, none)
}

fn revoked(case: &Case<'_>) -> Result<usize, &'static str> {
    if !case.copy(ALL)? {
        return Ok(0);
    }
    let source = case.world.entry(case.row.operands[case.operand].kind).ok_or("nothing to revoke")?;
    call(numbers::ENTRY_REVOKE, [0, source, 0, 0, 0, 0]).map_err(Error::text)?;
    refused(case, [(TRIED, Error::Revoked)])
}

fn dead(case: &Case<'_>) -> Result<usize, &'static str> {
    if case.row.operands[case.operand].kind != OperandKind::Domain {
        return Ok(0);
    }
    call(numbers::DOMAIN_KILL, [VICTIM, 0, 0, 0, 0, 0]).map_err(Error::text)?;
    refused(case, [(VICTIM, Error::PeerDied)])
}

fn taken(case: &Case<'_>) -> Result<usize, &'static str> {
    if lacks_ports(case) {
        return Ok(0);
    }
    let reserved = [(1, Error::ReservedIndex), (PAGE_FAULT[0] as u64 - 1, Error::ReservedIndex)];
    refused(case, reserved)?;
    refused(case, [(INSIDE, Error::Occupied), (u64::MAX, Error::BadIndex), (MAX_TABLE_ENTRIES as u64, Error::BadIndex)])
}

/// A place in a page of a table that no test needs before [`full`].
const FAR: u64 = MAX_TABLE_ENTRIES as u64 - 1;

/// All frames that an account has left, in accounts of their own.
fn drained(account: u64) -> Result<Drained, Error> {
    let mut all = Drained { accounts: [const { None }; 64], count: 0 };
    let mut frames = 1 << 20;
    let exhausted = if account == 0 { Error::AccountExhausted } else { Error::OtherExhausted };
    while frames != 0 {
        match op::account_new(Entry(account as usize), frames) {
            Ok(one) => {
                *all.accounts.get_mut(all.count).ok_or(Error::TableFull)? = Some(Owned::new(one));
                all.count += 1;
            }
            Err(error) if error == exhausted => frames /= 2,
            Err(error) => return Err(error),
        }
    }
    Ok(all)
}

/// Without the heap, which may want a frame.
struct Drained {
    accounts: [Option<Owned>; 64],
    count: usize,
}

fn without_room(case: &Case<'_>) -> Result<usize, &'static str> {
    if lacks_ports(case) {
        return Ok(0);
    }
    let drained = [0, ACCOUNT].map(drained);
    let tried = case.call(FAR);
    for drained in drained {
        drained.map_err(Error::text)?;
    }
    // These fill an entry of another domain's table.
    let is_anothers = matches!(case.index, numbers::ENTRY_COPY | numbers::PORTAL_NEW | numbers::SERVICE_NEW);
    let exhausted = if is_anothers { Error::OtherExhausted } else { Error::AccountExhausted };
    match tried? {
        Err(error) if error == exhausted => Ok(1),
        outcome => case.wrong("without a frame", outcome),
    }
}

/// Fills our own table, for good.
fn full() -> Result<(), &'static str> {
    let world = World::new().map_err(Error::text)?;
    world.make().map_err(Error::text)?;
    // Not the world's semaphore: to remove an original revokes its copies.
    call(numbers::SEMAPHORE_NEW, [0, 0, MORE, 0, 0, 0]).map_err(Error::text)?;
    let fill = |index| call(numbers::ENTRY_COPY, [0, MORE, 0, index, ALL.into(), 0]);
    // By index: to seek a free one takes a search of the whole table for each page by which it grows.
    for index in FIRST_FREE..MAX_TABLE_ENTRIES {
        match fill(index as u64) {
            Ok(_) | Err(Error::Occupied) => {}
            Err(error) => return Err(error.text()),
        }
    }
    hold(fill(0) == Err(Error::TableFull), "the table is not full")?;
    world.clear();
    let tried = each_in(&world, is_fill, |case| {
        if lacks_ports(case) {
            return Ok(0);
        }
        let mut words = case.world.words(case.row, case.way).ok_or("nothing to call it with")?;
        for (word, operand) in words.iter_mut().zip(case.row.operands) {
            match operand.kind {
                OperandKind::Domain | OperandKind::Fill => *word = 0,
                OperandKind::Index => *word = SEMAPHORE,
                _ => {}
            }
        }
        for index in VICTIM..=FILLED {
            // Most are taken.
            let _ = fill(index);
        }
        match call(case.index, words) {
            Err(Error::TableFull) => Ok(1),
            outcome => case.wrong("with a full table", outcome),
        }
    });
    core::mem::forget(world);
    hold(tried? >= 11, "only a few were tried")
}

/// Runs a check with all objects re-created.
fn in_world(check: fn() -> Result<(), &'static str>) -> Result<(), &'static str> {
    let world = World::new().map_err(Error::text)?;
    world.make().map_err(Error::text)?;
    let outcome = check();
    world.clear();
    core::mem::forget(world);
    outcome
}

/// Makes the call with each of these words at `place`, and compares what comes of it.
fn ends(
    what: &str,
    (index, words, place): (usize, [u64; 6], usize),
    right: &[(u64, Result<(), Error>)],
) -> Result<(), &'static str> {
    for (value, right) in right {
        let mut words = words;
        words[place] = *value;
        let outcome = call(index, words).map(drop);
        let _ = op::entry_remove(Entry::OWN, Entry(FILLED as usize));
        if outcome != *right {
            return Err(Box::leak(format!("{what} {value:#x}: {outcome:?}").into_boxed_str()));
        }
    }
    Ok(())
}

/// As the system description of the test has it.
const HIGHEST: u64 = 18;

fn priorities() -> Result<(), &'static str> {
    use Error::{BadArgument, PriorityTooHigh};
    let last = abi::MAX_PRIORITY as u64;
    let of_caller = [
        (HIGHEST, Ok(())),
        (HIGHEST + 1, Err(PriorityTooHigh)),
        (last, Err(PriorityTooHigh)),
        (last + 1, Err(BadArgument)),
    ];
    let far = (u64::MAX, Err(BadArgument));
    let [a, b, c, d] = of_caller;
    let all = [a, b, c, d, far];
    ends(
        "a domain's highest priority",
        (numbers::DOMAIN_SET, [VICTIM, numbers::SET_MAX_PRIORITY, 0, 0, 0, 0], 2),
        &all,
    )?;
    ends("a portal's ceiling", (numbers::PORTAL_NEW, [0, SERVICE, 0, FILLED, 0, 0], 4), &[b, c, d, far])?;
    let of_thread = of_caller.map(|(priority, right)| (priority | SCHEDULE, right));
    ends("a thread's priority", (numbers::THREAD_SCHEDULE, [0; 6], 1), &of_thread)?;
    call(numbers::THREAD_SCHEDULE, [0, 16 | SCHEDULE, 0, 0, 0, 0]).map_err(Error::text)?;
    let new = [0, FREE_START, FREE_START, 0, 0, FILLED];
    ends("a new thread's priority", (numbers::THREAD_NEW, new, 4), &of_thread[1..])?;
    // The lower of both counts.
    call(numbers::DOMAIN_SET, [VICTIM, numbers::SET_MAX_PRIORITY, 3, 0, 0, 0]).map_err(Error::text)?;
    let new = [VICTIM, FREE_START, FREE_START, 0, 0, FILLED];
    ends(
        "a thread of a lower domain",
        (numbers::THREAD_NEW, new, 4),
        &[(4 | SCHEDULE, Err(PriorityTooHigh)), (3 | SCHEDULE, Ok(()))],
    )
}

fn bounds() -> Result<(), &'static str> {
    let bad = |value| (value, Err(Error::BadArgument));
    let count = abi::MAX_COUNT;
    let counts = [(count, Ok(())), bad(count + 1), bad(i64::MAX as u64), bad(1 << 63), bad(u64::MAX)];
    ends("a count", (numbers::SEMAPHORE_NEW, [ACCOUNT, 0, FILLED, 0, 0, 0], 1), &counts)?;
    let order = abi::MAX_ORDER;
    let orders = [bad(order + 1), bad(64), bad(u64::MAX)];
    ends("an order to map", (numbers::MAP, [VICTIM, 0, 0, 0, MAP_READ, 0], 3), &orders)?;
    ends("an order to unmap", (numbers::UNMAP, [VICTIM, 0, 0, MAP_READ, 0, 0], 2), &orders)?;
    let slice = abi::MAX_SLICE_MICROSECONDS;
    let slices = [(1, Ok(())), (slice, Ok(())), bad(0), bad(slice + 1), bad(u64::MAX)];
    ends("a longest slice", (numbers::DOMAIN_SET, [VICTIM, numbers::SET_MAX_SLICE, 0, 0, 0, 0], 2), &slices)?;
    let rights = [(ALL.into(), Ok(())), (u8::MAX.into(), Ok(())), bad(1 << 8), bad(u64::MAX)];
    ends("rights of a copy", (numbers::ENTRY_COPY, [0, SEMAPHORE, 0, FILLED, 0, 0], 4), &rights)?;
    let what = [numbers::ACTIVATION_TEAR + 1, 1 << 32, u64::MAX].map(|value| (value, Err(Error::NoSuchWay)));
    ends("a property of an activation", (numbers::ACTIVATION_SET, [0; 6], 0), &what)?;
    let flags = [(0, Ok(())), bad(2), bad(1 << 63)];
    ends("flags of a service", (numbers::SERVICE_NEW, [0, PROGRAM_START, 0, FILLED, 0, 0], 2), &flags)?;
    let slots = [(3, Ok(())), bad(4), bad(u64::MAX)];
    ends("a slot of faults", (numbers::DOMAIN_SET, [VICTIM, numbers::SET_FAULT_RANGE, 0, 0, 4096, 0], 2), &slots)
}

fn status() -> Result<(), &'static str> {
    for (killed, low) in [(0x1ff, 0xff), (1 << 8, 0), (u64::MAX, 0xff)] {
        let number = op::domain_number(Entry(VICTIM as usize)).map_err(Error::text)?;
        call(numbers::DOMAIN_KILL, [VICTIM, killed, 0, 0, 0, 0]).map_err(Error::text)?;
        let (record, _) = op::record::<info::Domain>(Entry::SPECIAL, number + 1).map_err(Error::text)?;
        hold(record.number == number && record.status == info::status::KILLED + low, "another status")?;
        let _ = op::entry_remove(Entry::OWN, Entry(VICTIM as usize));
        call(numbers::DOMAIN_NEW, [ACCOUNT, 0, VICTIM, 0, 0, 0]).map_err(Error::text)?;
    }
    Ok(())
}

/// More than a step takes.
const MANY: u64 = 23;

fn copies() -> Result<(), &'static str> {
    // Copies of copies, and beside each other.
    for copy in 0..MANY {
        let source = if copy % 2 == 0 { SEMAPHORE } else { MORE + copy - 1 };
        call(numbers::ENTRY_COPY, [0, source, 0, MORE + copy, ALL.into(), 0]).map_err(Error::text)?;
    }
    call(numbers::ENTRY_REVOKE, [0, SEMAPHORE, 0, 0, 0, 0]).map_err(Error::text)?;
    let kind = |index| op::entry_info(Entry::OWN, Entry(index as usize)).map(|(kind, _)| kind);
    let all = (0..MANY).all(|copy| kind(MORE + copy) == Ok(Kind::Revoked));
    for copy in 0..MANY {
        let _ = op::entry_remove(Entry::OWN, Entry((MORE + copy) as usize));
    }
    hold(all && kind(SEMAPHORE) == Ok(Kind::Semaphore), "not all, or the source")
}

fn mappings() -> Result<(), &'static str> {
    let page = |number: u64| FREE_START + (number << 12);
    call(numbers::DRAW, [MEMORY, ACCOUNT, 0, FREE_START, 0, MAP_READ | MAP_WRITE]).map_err(Error::text)?;
    for copy in 0..MANY {
        call(numbers::MAP, [VICTIM, FREE_START, page(copy), 0, MAP_READ, 0]).map_err(Error::text)?;
    }
    call(numbers::UNMAP, [0, FREE_START, 0, MAP_READ, 0, 0]).map_err(Error::text)?;
    // A place that is free again takes a page.
    let outcome = (0..MANY).try_for_each(|copy| {
        call(numbers::MAP, [VICTIM, FREE_START, page(copy), 0, MAP_READ, 0]).map(drop).map_err(Error::text)
    });
    call(numbers::UNMAP, [0, FREE_START, 0, MAP_READ | UNMAP_SELF, 0, 0]).map_err(Error::text)?;
    outcome
}

fn shared() -> Result<(), &'static str> {
    let grant =
        |rights| call(numbers::MAP, [VICTIM, FREE_START, FREE_START + (1 << 20), 0, rights | MAP_GRANT, 0]).map(drop);
    call(numbers::DRAW, [MEMORY, ACCOUNT, 0, FREE_START, 0, MAP_READ | MAP_WRITE]).map_err(Error::text)?;
    call(numbers::MAP, [VICTIM, FREE_START, FREE_START, 0, MAP_READ | MAP_WRITE, 0]).map_err(Error::text)?;
    let refused = grant(MAP_READ | MAP_EXECUTE);
    call(numbers::UNMAP, [VICTIM, FREE_START, 0, MAP_READ | UNMAP_SELF, 0, 0]).map_err(Error::text)?;
    let done = grant(MAP_READ | MAP_EXECUTE);
    let _ = call(numbers::UNMAP, [0, FREE_START, 0, MAP_READ | UNMAP_SELF, 0, 0]);
    hold(refused == Err(Error::Shared), "it does")?;
    done.map_err(|_| "and alone it does not")
}

struct Nobody;

impl ServeWord for Nobody {
    fn serve(_: u64, _: [u64; 5]) -> u64 {
        0
    }
}

fn minted() -> Result<(), &'static str> {
    server::activations(1).map_err(Error::text)?;
    let service = Owned::new(server::word_service::<Nobody>().map_err(Error::text)?);
    let portal = op::portal_new(Entry::OWN, service.entry(), 0, Entry((MORE - 1) as usize), 0).map_err(Error::text)?;
    let mint = |rights: u8| {
        let copied = call(numbers::ENTRY_COPY, [0, service.entry().0 as u64, 0, TRIED, rights.into(), 0]);
        let control = Control(0).delegate(TRIED as usize, ALL).with(Control::MINT);
        let outcome = copied.and_then(|_| message::call(portal, [0; 5], control).map(drop));
        let _ = op::entry_remove(Entry::OWN, Entry(TRIED as usize));
        outcome
    };
    let outcome = (mint(ALL & !USE), mint(USE | COPY));
    let _ = op::entry_remove(Entry::OWN, portal);
    hold(outcome == (Err(Error::NoRight), Ok(())), "without USE it is, or with USE it is not")
}

/// The entry that [`Answers`] sends along, and the number of the error that refused it, or 0.
static ALONG: AtomicUsize = AtomicUsize::new(0);
static CAME: AtomicU64 = AtomicU64::new(0);

/// Tries to answer with an entry. Refused, it answers without.
struct Answers;

impl Serve for Answers {
    fn serve(_: &mut Request<'_>) -> Reply {
        let control = Control(0).delegate(ALONG.load(Ordering::SeqCst), ALL);
        let refused = call(numbers::RETURN, [0, 0, 0, 0, 0, control.0]);
        CAME.store(refused.err().map_or(0, |error| error as u64), Ordering::SeqCst);
        Reply::word(0)
    }
}

fn derived() -> Result<(), &'static str> {
    server::activations(1).map_err(Error::text)?;
    let service = Owned::new(server::service::<Answers>().map_err(Error::text)?);
    let copy = |from, to| call(numbers::ENTRY_COPY, [0, from, 0, to, ALL.into(), 0]).map(drop);
    // Copies of copies.
    let (mut last, mut next) = (service.entry().0 as u64, MORE);
    let ended = loop {
        match copy(last, next) {
            Ok(()) => (last, next) = (next, next + 1),
            Err(error) => break error,
        }
    };
    let before = last - 1;
    let portal = |service, place| call(numbers::PORTAL_NEW, [0, service, 0, place, 0, 0]).map(drop);
    let portals = [portal(last, FILLED), portal(before, FILLED)];
    let called = portal(service.entry().0 as u64, TRIED);
    let mut answers = [Ok(0), Ok(0)];
    for (answer, along) in answers.iter_mut().zip([last, before]) {
        ALONG.store(along as usize, Ordering::SeqCst);
        CAME.store(0, Ordering::SeqCst);
        *answer = message::prepare_receive()
            .and_then(|()| message::call(Entry(TRIED as usize), [0; 5], Control(0)))
            .map(|(_, control)| control.delegated() as u64 | CAME.load(Ordering::SeqCst) << 32);
    }
    // All copies go with the first.
    let _ = op::entry_remove(Entry::OWN, Entry(MORE as usize));
    // The original counts.
    hold(ended == Error::TooDerived && next - MORE + 1 == MAX_DERIVATION as u64, "another number of copies")?;
    hold(portals == [Err(Error::TooDerived), Ok(())], "a portal from the last copy, or none from the one before")?;
    called.map_err(Error::text)?;
    hold(answers[0] == Ok((Error::TooDerived as u64) << 32), "a copy of the last copy comes along")?;
    hold(answers[1].is_ok_and(|came| came != 0 && came >> 32 == 0), "none of the one before comes along")
}

fn answered() -> Result<(), &'static str> {
    server::activations(1).map_err(Error::text)?;
    let service = Owned::new(server::service::<Answers>().map_err(Error::text)?);
    call(numbers::PORTAL_NEW, [0, service.entry().0 as u64, 0, TRIED, 0, 0]).map_err(Error::text)?;
    ALONG.store(SEMAPHORE as usize, Ordering::SeqCst);
    let nucleus = Error::ReservedIndex;
    for (place, error) in
        [(0, Error::NotAccepted), (1, nucleus), (PAGE_FAULT[0] - 1, nucleus), (TRIED as usize, Error::Occupied)]
    {
        CAME.store(0, Ordering::SeqCst);
        // Its activation ends with it, and so does the index that it chose.
        let ask = |place| {
            let _ = op::activation_set(numbers::ACTIVATION_RECEIVE, place as u64)
                .and_then(|()| message::call(Entry(TRIED as usize), [0; 5], Control(0)));
        };
        Thread::start(ask, place).map_err(Error::text)?.join();
        hold(CAME.load(Ordering::SeqCst) == error as u64, error.text())?;
    }
    op::v(Entry(SEMAPHORE as usize)).map_err(Error::text)
}
