//! Each operand that is judged, by the table of operations; and P, V, RECEIVE and SEND.

use abi::layout::FREE_START;
use abi::level::{ONE, THREE};
use abi::op::{self as numbers, Judged, OperandKind, Operation};
use abi::rights::{ALL, MAP_READ};
use abi::{Control, Error, NEVER};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use runtime::entry::Owned;
use runtime::{Entry, message, op, table};

use super::world::{FRAMES, HAS, MACHINE, NOBODYS, Outcome, STEPS, Side, World, does, named, text};
use crate::raw;
use crate::table::child::{Child, Program, Service, on_semaphore, operation, word_address};

pub const SPARE_LINE: u64 = 3;
const SPARE_PORTS: u64 = 0x2f8 | 8 << 16;
const MORE_PORTS: u64 = 0x3e8 | 8 << 16;

/// Something that an operand may name.
pub struct Target {
    kind: OperandKind,
    pub entry: Option<Owned>,
    // It goes with these.
    _service: Option<Owned>,
    _thread: Option<Owned>,
    _child: Option<Child>,
    account: Owned,
}

impl Target {
    /// Nothing if the machine has none.
    pub fn new(world: &World, kind: OperandKind, side: Side) -> Outcome<Option<Self>> {
        let account = world.account(side).map_err(text)?;
        let mut target = Self { kind, entry: None, _service: None, _thread: None, _child: None, account };
        match kind {
            OperandKind::Domain | OperandKind::Thread | OperandKind::Service => {
                let child = world.child(side, &target.account).map_err(text)?;
                if kind == OperandKind::Thread {
                    let never = Owned::new(op::semaphore_new(target.account.entry(), 0).map_err(text)?);
                    let index = child.give(never.entry()).map_err(text)?;
                    STEPS.set_steps(256, &[on_semaphore(index, [numbers::P, NEVER, 0, 0, 0, 0])]);
                    target._thread = Some(never);
                    target.entry = Some(child.start(Program::Steps(256)).map_err(text)?);
                } else if kind == OperandKind::Service {
                    let service = raw::service(&child.domain, 0, Entry::OWN).map_err(text)?;
                    let copy = Owned::new(table::allocate().map_err(text)?);
                    op::entry_copy(child.domain.entry(), service, Entry::OWN, copy.entry(), ALL).map_err(text)?;
                    target.entry = Some(copy);
                }
                target._child = Some(child);
            }
            OperandKind::Account => {
                let account = match side {
                    Side::Usual => op::account_new(target.account.entry(), 8),
                    Side::Tainted => op::account_new_labelled(target.account.entry(), 8, 0, world.send.entry()),
                };
                target.entry = Some(Owned::new(account.map_err(text)?));
            }
            OperandKind::Semaphore => {
                target.entry = Some(Owned::new(op::semaphore_new(target.account.entry(), 1).map_err(text)?));
            }
            OperandKind::Port => {
                let port = op::port_new(target.account.entry(), (0, 1), Entry::OWN, Entry::OWN, 0);
                target.entry = Some(Owned::new(port.map_err(text)?));
            }
            OperandKind::Interrupt | OperandKind::IoPorts => {
                let way = match kind {
                    OperandKind::Interrupt => [numbers::MACHINE_INTERRUPT, SPARE_LINE],
                    _ => [numbers::MACHINE_PORTS, SPARE_PORTS],
                };
                let place = Owned::new(table::allocate().map_err(text)?);
                let words = [MACHINE.0 as u64, way[0], way[1], place.entry().0 as u64, 0, 0];
                if raw::call(numbers::MACHINE, words).is_err() {
                    return Ok(None);
                }
                target.entry = Some(place);
            }
            _ => {}
        }
        Ok(Some(target))
    }

    /// The index by which a child names it.
    pub fn give(&self, child: &Child) -> Outcome<u64> {
        let entry = match (&self.entry, &self._child) {
            (Some(entry), _) => entry.entry(),
            (None, Some(target)) => target.domain.entry(),
            (None, None) => MACHINE,
        };
        child
            .give(entry)
            .map(|entry| entry.0 as u64)
            .map_err(|error| format!("given {:?}: {}", self.kind, error.text()))
    }
}

/// A row of the table, and what it is entered by.
#[derive(Clone, Copy)]
struct Row {
    index: usize,
    way: u64,
    row: &'static Operation,
}

fn rows() -> impl Iterator<Item = Row> {
    numbers::TABLE.iter().enumerate().flat_map(|(index, base)| {
        let ways = numbers::ways(base.constant);
        let rows = if ways.is_empty() { core::slice::from_ref(base) } else { ways };
        (0..).zip(rows).map(move |(way, row)| Row { index, way, row })
    })
}

/// Whether an operand of this kind is judged in this way, and it can be tried.
fn judged(row: Row, operand: usize, side: Side) -> Option<Judged> {
    let stops = row.index == numbers::MACHINE && row.way == numbers::MACHINE_STOP;
    // The memory is given to nobody else.
    let draws = row.index == numbers::DRAW;
    let judged = row.row.operands[operand].judged().filter(|_| !stops && !draws)?;
    let others_refuse =
        row.row.operands.iter().enumerate().any(|(number, other)| {
            number != operand && other.judged() == Some(Judged::Nucleus) && side == Side::Tainted
        });
    (!matches!(judged, Judged::Nothing(_)) && !others_refuse).then_some(judged)
}

/// Words with which nothing is wrong, as a child sees what they name.
fn words(
    world: &World,
    (child, who): (&Child, Side),
    row: Row,
    (tried, target): (usize, &Target),
    others: &mut Vec<Target>,
) -> Outcome<Option<[u64; 6]>> {
    let mut words = [0; 6];
    for (number, (word, operand)) in words.iter_mut().zip(row.row.operands).enumerate() {
        *word = match (operand.kind, operand.name) {
            _ if number == tried => target.give(child)?,
            // An account and its parent.
            (OperandKind::Account, "from" | "to") => child.give(target.account.entry()).map_err(text)?.0 as u64,
            (OperandKind::Semaphore, _) if row.index == numbers::MACHINE => HAS,
            (OperandKind::Number, "ports") => MORE_PORTS,
            (OperandKind::Domain | OperandKind::Account | OperandKind::Semaphore | OperandKind::Shape, _) => 0,
            (OperandKind::Label | OperandKind::Port, _) => 0,
            (OperandKind::Number, "size") => 1 << 16,
            (kind, _) if kind.is_entry() => match Target::new(world, kind, who)? {
                Some(other) => {
                    others.push(other);
                    others[others.len() - 1].give(child)?
                }
                None => return Ok(None),
            },
            (OperandKind::Way, _) => row.way,
            (OperandKind::Index, _) => HAS,
            (OperandKind::Address, "source") => word_address(0),
            (OperandKind::Address, _) => FREE_START,
            (OperandKind::Rights, _) => MAP_READ,
            (OperandKind::Number, "frames" | "microseconds") | (OperandKind::Flags, "cpus") => 1,
            _ => 0,
        };
    }
    Ok(Some(words))
}

/// Has one operand name something: the status that comes of it; nothing if the machine lacks what it takes.
fn status_with(world: &World, row: Row, operand: usize, [who, what]: [Side; 2]) -> Outcome<Option<u64>> {
    let Some(target) = Target::new(world, row.row.operands[operand].kind, what)? else { return Ok(None) };
    let (_account, child) = world.paid_child(who)?;
    // They go with what they are of.
    let mut others = Vec::new();
    let Some(words) = words(world, (&child, who), row, (operand, &target), &mut others)? else { return Ok(None) };
    does(&child, &[operation(row.index, words)]).map(Some)
}

/// Tries each operand that is judged: how many were done, or refused by labels, or refused by something else, which is looked at after
/// labels: these by name.
pub fn each(world: &World, who: Side, what: Side) -> Outcome<String> {
    let [mut done, mut refused] = [0; 2];
    let mut others = Vec::new();
    for row in rows() {
        for (number, operand) in row.row.operands.iter().enumerate() {
            // The nucleus has one label.
            let is_tried = |judged: Judged| judged != Judged::Nucleus || what == Side::Usual;
            if !judged(row, number, who).is_some_and(is_tried) {
                continue;
            }
            let name = |why: String| format!("{} {}: {why}", row.row.name, operand.name);
            let Some(status) = status_with(world, row, number, [who, what]).map_err(name)? else { continue };
            match Error::from_status(status) {
                Ok(()) => done += 1,
                Err(Error::Flow) => refused += 1,
                Err(error) => others.push(format!("{} {error:?}", row.row.name)),
            }
            if refused != 0 && done + others.len() != 0 {
                return Err(name(format!("{status}, unlike those before")));
            }
        }
    }
    Ok(match refused {
        0 => format!("{done} done, {}", others.join(", ")),
        _ => format!("all of {refused} refused"),
    })
}

/// An untainted domain that accepts taint, and whose account has no room, does steps for us.
struct Poor {
    account: Owned,
    child: Child,
    _service: Owned,
    portal: Owned,
}

impl Poor {
    fn new(world: &World) -> Outcome<Self> {
        let account = world.account(Side::Usual).map_err(text)?;
        let child = world.labelled_child(&account, Some([world.plain.entry(), world.receive.entry()])).map_err(text)?;
        let (service, portal) = child.portal_to(Service::Obey).map_err(text)?;
        Ok(Self { account, child, _service: service, portal })
    }

    fn does(&self, (index, words): (usize, [u64; 6])) -> Outcome<u64> {
        STEPS.set_steps(0, &[operation(index, words)]);
        // The count of steps stands before them.
        let answer = message::call(self.portal.entry(), [word_address(1), 0, 0, 0, 0], Control(0));
        answer.map(|(words, _)| words[0]).map_err(text)
    }

    /// It has no room left, not even in a frame of labels: as many labels as such a frame has places, and more, find none.
    fn spend_all(&self) -> Outcome<()> {
        const FIRST: u64 = 200;
        const COUNT: u64 = 16;
        for number in 0..COUNT {
            let made = self.does((numbers::LABEL, [numbers::LABEL_NEW, ONE, FIRST + number, 0, 0, 0]))?;
            Error::from_status(made).map_err(text)?;
        }
        for frames in (1..=FRAMES).rev() {
            let _ = op::account_move(self.account.entry(), Entry::OWN, frames);
        }
        for number in 0..COUNT {
            let put = [numbers::LABEL_PUT, FIRST + number, NOBODYS, THREE, 0, 0];
            match Error::from_status(self.does((numbers::LABEL, put))?) {
                Ok(()) => {}
                Err(Error::AccountExhausted) => return Ok(()),
                Err(error) => return Err(text(error)),
            }
        }
        Err("it has room for each label".into())
    }
}

/// A domain accepts less of one handle after the other, until its account ends. Then the account has everything back.
pub fn hoard(world: &World) -> Outcome<String> {
    let poor = Poor::new(world)?;
    let accepts = |number: u64| poor.does((numbers::LABEL, [numbers::LABEL_RECEIVE, spread(number), ONE, 0, 0, 0]));
    let mut count = 0;
    let ended = loop {
        match accepts(count)? {
            0 => count += 1,
            error => break error,
        }
    };
    let Poor { account, child, _service, portal } = poor;
    drop((portal, _service, child));
    let back = op::account_move(account.entry(), Entry::OWN, FRAMES).err().map_or(0, |error| error as u64);
    Ok(format!("{count} handles, {}", named(&[ended, back])))
}

/// Numbers that are spread as handles are.
fn spread(number: u64) -> u64 {
    number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 3
}

/// Tries each operand that may raise a floating domain on an object that would: by a domain without room for another label, then with room.
pub fn without_room(world: &World) -> Outcome<String> {
    let [mut exhausted, mut done, mut refused, mut others] = [0; 4];
    for row in rows() {
        for number in 0..row.row.operands.len() {
            if !matches!(judged(row, number, Side::Usual), Some(Judged::Domain | Judged::Object)) {
                continue;
            }
            let kind = row.row.operands[number].kind;
            let Some(target) = Target::new(world, kind, Side::Tainted)? else { continue };
            let poor = Poor::new(world)?;
            let mut its = Vec::new();
            let Some(words) = words(world, (&poor.child, Side::Usual), row, (number, &target), &mut its)? else {
                continue;
            };
            poor.spend_all()?;
            exhausted += usize::from(poor.does((row.index, words))? == Error::AccountExhausted as u64);
            op::account_move(Entry::OWN, poor.account.entry(), FRAMES / 2).map_err(text)?;
            *match Error::from_status(poor.does((row.index, words))?) {
                Ok(()) => &mut done,
                Err(Error::Flow) => &mut refused,
                Err(_) => &mut others,
            } += 1;
        }
    }
    Ok(format!("{exhausted} without room; with room {done} done, {refused} refused, {others} otherwise"))
}

/// P and V on a semaphore that the child is given.
pub fn semaphores(world: &World, who: Side, what: Side) -> Outcome<String> {
    ways(world, who, (OperandKind::Semaphore, what), [numbers::P, numbers::V])
}

/// RECEIVE and SEND at a port that the child is given.
pub fn ports(world: &World, who: Side, what: Side) -> Outcome<String> {
    ways(world, who, (OperandKind::Port, what), [numbers::RECEIVE, numbers::SEND])
}

fn ways(world: &World, who: Side, (kind, what): (OperandKind, Side), ways: [u64; 2]) -> Outcome<String> {
    let mut ends = Vec::new();
    for way in ways {
        let target = Target::new(world, kind, what)?.ok_or("no such thing")?;
        let (_account, child) = world.paid_child(who)?;
        let index = target.give(&child)?;
        ends.push(does(&child, &[on_semaphore(Entry(index as usize), [way, 0, 0, 0, 0, 0])])?);
    }
    Ok(named(&ends))
}
