//! Changes of labels: they end what they forbid, or are refused. A message that would taint leaves all that as it is.

use core::sync::atomic::Ordering;

use abi::layout::{ARCHIVE, EXCEPTION, FREE_START};
use abi::level::{ONE, STAR, THREE, TWO, ZERO};
use abi::op::{self as numbers, OperandKind};
use abi::rights::{MAP_READ, MAP_WRITE, READ, UNMAP_SELF, WRITE};
use abi::{Control, NEVER};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use runtime::Entry;
use runtime::entry::Owned;
use runtime::op::{self, LabelFrom, Schedule};
use runtime::port::Options;

use super::operations::SPARE_LINE;
use super::world::{
    COMMON, FRAMES, HAS, MACHINE, MADE, NOBODYS, Outcome, STEPS, Side, World, child, does, named, status_of, text,
};
use crate::raw;
use crate::table::child::{Child, PLACE, Program, Step, awaited, on_semaphore, operation, word_address};
use crate::table::places::{SCHEDULE, SLEEP};

/// A domain taints itself.
pub fn taint(world: &World) -> Step {
    operation(numbers::LABEL, [numbers::LABEL_SEND, world.handle, THREE, 0, 0, 0])
}

/// A thread waits for a semaphore, or at a port, when its domain is tainted, which it does itself.
pub fn wait_cut(world: &World, kind: OperandKind) -> Outcome<String> {
    let (_account, child) = world.paid_child(Side::Usual)?;
    let never = awaited(kind).map_err(text)?;
    let index = child.give(never.entry()).map_err(text)?;
    let until = op::clock() + 200_000_000;
    STEPS.set_steps(0, &[on_semaphore(index, [numbers::P, until, 0, 0, 0, 0])]);
    STEPS.set_steps(256, &[taint(world), operation(numbers::THREAD_ID, [0; 6])]);
    let _waits = child.start(Program::Steps(0)).map_err(text)?;
    runtime::thread::sleep(20_000_000).map_err(text)?;
    let _taints = child.start(Program::Steps(256)).map_err(text)?;
    Ok(named(&[status_of(&child)?]))
}

/// A thread writes to a page that we see, too, when its domain is tainted; it has no handler of faults.
pub fn page_cut(world: &World) -> Outcome<String> {
    let (_account, child) = world.paid_child(Side::Usual)?;
    child.show(&COMMON, 0, true).map_err(text)?;
    let _writes = child.start(Program::Write).map_err(text)?;
    let number = || COMMON.0[0].load(Ordering::SeqCst);
    let before = number();
    runtime::thread::sleep(20_000_000).map_err(text)?;
    if number() == before {
        return Err("it does not write".into());
    }
    STEPS.set_steps(0, &[taint(world)]);
    let _taints = child.start(Program::Steps(0)).map_err(text)?;
    runtime::thread::sleep(50_000_000).map_err(text)?;
    let outcome = if child.has_died() { "it may not write any more" } else { "it still writes" };
    Ok(outcome.into())
}

/// Taints the domain that does these steps, by a message to itself. Cs asks for no ownership.
fn tainted_by_message(world: &World) -> [Step; 5] {
    let label = |words: [u64; 4]| operation(numbers::LABEL, [words[0], words[1], words[2], words[3], 0, 0]);
    let port = Entry(MADE as usize + 1);
    [
        label([numbers::LABEL_NEW, STAR, MADE, 0]),
        label([numbers::LABEL_PUT, MADE, world.handle, TWO]),
        operation(numbers::PORT_NEW, [0, 1 << 16, MADE + 1, 0, 0, 0]),
        on_semaphore(port, [numbers::SEND, MADE, 0, 0, 0, 0]),
        on_semaphore(port, [numbers::RECEIVE, 0, 0, 0, 0, 0]),
    ]
}

/// A message would taint a domain that writes a page that others have, too, and one that only reads it.
pub fn page_kept(world: &World) -> Outcome<String> {
    let mut ends = Vec::new();
    for may_write in [true, false] {
        let (_account, child) = world.paid_child(Side::Usual)?;
        child.show(&COMMON, 0, may_write).map_err(text)?;
        ends.push(does(&child, &tainted_by_message(world))?);
    }
    // Where other domains see the boot archive, this one has a page.
    let (_account, child) = world.paid_child(Side::Usual)?;
    let (to, page) = (child.domain.entry().0 as u64, COMMON.0.as_ptr() as u64);
    raw::call(numbers::MAP, [to, page, ARCHIVE, 0, MAP_READ | MAP_WRITE, 0]).map_err(text)?;
    ends.push(does(&child, &tainted_by_message(world))?);
    Ok(named(&ends))
}

/// A thread waits for a semaphore that others have, too, when another one of its domain takes a message that would taint it. The first one ends last.
pub fn wait_kept(world: &World) -> Outcome<String> {
    let (_account, child) = world.paid_child(Side::Usual)?;
    let never = Owned::new(op::semaphore_new(Entry::OWN, 0).map_err(text)?);
    let index = child.give(never.entry()).map_err(text)?;
    STEPS.set_steps(0, &[on_semaphore(index, [numbers::P, op::clock() + 200_000_000, 0, 0, 0, 0])]);
    STEPS.set_steps(256, &tainted_by_message(world));
    let _waits = child.start(Program::Steps(0)).map_err(text)?;
    runtime::thread::sleep(20_000_000).map_err(text)?;
    let _takes = child.start(Program::Steps(256)).map_err(text)?;
    Ok(named(&[status_of(&child)?]))
}

/// The steps with which a child makes something.
type Make<'a> = &'a dyn Fn(&Child) -> Outcome<[Step; 2]>;

/// A domain removes what it made: while it is not tainted, and when it is. That is a domain, a dead one, a thread of another domain, an interrupt line.
pub fn removed(world: &World) -> Outcome<String> {
    let mut ends = Vec::new();
    let never = Owned::new(op::semaphore_new(Entry::OWN, 0).map_err(text)?);
    for level in [ONE, THREE] {
        let domain = operation(numbers::DOMAIN_NEW, [0, 0, MADE, 0, 0, 0]);
        let dies = operation(numbers::DOMAIN_KILL, [MADE, 0, 0, 0, 0, 0]);
        let (_account, other) = world.paid_child(Side::Usual)?;
        let waits = on_semaphore(other.give(never.entry()).map_err(text)?, [numbers::P, NEVER, 0, 0, 0, 0]);
        STEPS.set_steps(256, &[waits, waits]);
        let made: [Make<'_>; 4] = [
            &|_| Ok([domain, domain]),
            &|_| Ok([domain, dies]),
            &|child| {
                let [to, schedule] = [child.give(other.domain.entry()).map_err(text)?.0 as u64, SCHEDULE.word()];
                let thread = [to, Program::steps(), 0, word_address(256), schedule, MADE];
                Ok([operation(numbers::THREAD_NEW, thread); 2])
            },
            &|child| {
                let machine = child.give(MACHINE).map_err(text)?.0 as u64;
                let line = [machine, numbers::MACHINE_INTERRUPT, SPARE_LINE, MADE, 0, 0];
                Ok([operation(numbers::MACHINE, line); 2])
            },
        ];
        for make in made {
            let (_account, child) = world.paid_child(Side::Usual)?;
            let [first, second] = make(&child)?;
            let taint = operation(numbers::LABEL, [numbers::LABEL_SEND, world.handle, level, 0, 0, 0]);
            ends.push(does(&child, &[first, second, taint, operation(numbers::ENTRY_REMOVE, [0, MADE, 0, 0, 0, 0])])?);
        }
    }
    Ok(named(&ends))
}

/// A domain taints itself: as we, who made it, accept, and as we do not.
pub fn heard(world: &World) -> Outcome<String> {
    let mut ends = Vec::new();
    for handle in [world.handle, NOBODYS] {
        let (_account, child) = world.paid_child(Side::Usual)?;
        ends.push(does(&child, &[operation(numbers::LABEL, [numbers::LABEL_SEND, handle, THREE, 0, 0, 0])])?);
    }
    Ok(named(&ends))
}

/// The label {handle `level`, 1}.
pub fn label_at(world: &World, level: u64) -> Outcome<Owned> {
    let label = Owned::new(op::label_new(LabelFrom::Level(ONE)).map_err(text)?);
    op::label_put(label.entry(), world.handle, level).map_err(text)?;
    Ok(label)
}

/// An owner of the handle, and a level that it gives itself.
fn owner(world: &World, level: u64, account: &Owned) -> Outcome<(Child, Step)> {
    let (send, receive) = (label_at(world, STAR)?, Owned::new(op::label_new(LabelFrom::Level(TWO)).map_err(text)?));
    let child = child(account, Some([send.entry(), receive.entry()])).map_err(text)?;
    Ok((child, operation(numbers::LABEL, [numbers::LABEL_SEND, world.handle, level, 0, 0, 0])))
}

/// An owner uses a semaphore of the label {handle 0, 1}, and again when it is an owner still, and when it is none. It may use all of {1} then, too.
pub fn owned_semaphore(world: &World) -> Outcome<String> {
    let mut ends = Vec::new();
    for level in [STAR, ONE] {
        let label = label_at(world, ZERO)?;
        let theirs = Owned::new(op::account_new_labelled(Entry::OWN, FRAMES, 0, label.entry()).map_err(text)?);
        let own = world.account(Side::Usual).map_err(text)?;
        let semaphore = Owned::new(op::semaphore_new(theirs.entry(), 2).map_err(text)?);
        let (child, change) = owner(world, level, &own)?;
        let p = on_semaphore(child.give(semaphore.entry()).map_err(text)?, [numbers::P, 0, 0, 0, 0, 0]);
        ends.push(does(&child, &[p, change, p])?);
    }
    Ok(named(&ends))
}

/// The same for a domain that writes a page of that label, which we show it.
pub fn owned_page(world: &World) -> Outcome<String> {
    written_by_owner(world, |child, page| {
        let to = child.domain.entry().0 as u64;
        raw::call(numbers::MAP, [to, page, PLACE, 0, MAP_READ | MAP_WRITE, 0]).map_err(text)?;
        Ok(None)
    })
}

/// The same of a page that it gets without a check, as nobody else has it, and shows another owner.
pub fn shown_and_written(world: &World) -> Outcome<String> {
    let account = world.account(Side::Usual).map_err(text)?;
    let (other, _) = owner(world, STAR, &account)?;
    written_by_owner(world, |child, page| {
        raw::grant(child.domain.entry(), page, PLACE).map_err(text)?;
        let to = child.give(other.domain.entry()).map_err(text)?.0 as u64;
        // Each time somewhere else.
        let place = FREE_START + to * 0x1000;
        Ok(Some(operation(numbers::MAP, [to, PLACE, place, 0, MAP_READ, 0])))
    })
}

/// An owner writes a page of the label {handle 0, 1}, and again when it is an owner still, and when it is none. It gets the page by `give`, which
/// may want it to do a step before.
fn written_by_owner(world: &World, mut give: impl FnMut(&Child, u64) -> Outcome<Option<Step>>) -> Outcome<String> {
    const OURS: u64 = FREE_START + 0x1200_0000;
    let mut said = Vec::new();
    for level in [STAR, ONE] {
        let label = label_at(world, ZERO)?;
        let theirs = Owned::new(op::account_new_labelled(Entry::OWN, FRAMES, 0, label.entry()).map_err(text)?);
        let own = world.account(Side::Usual).map_err(text)?;
        let (child, change) = owner(world, level, &own)?;
        op::draw(raw::MEMORY, theirs.entry(), Entry::OWN, OURS, 0, MAP_READ | MAP_WRITE).map_err(text)?;
        let before = give(&child, OURS)?;
        let _writes = child.start(Program::Write).map_err(text)?;
        runtime::thread::sleep(20_000_000).map_err(text)?;
        if child.has_died() {
            return Err("it may not write".into());
        }
        // Steps that end end the domain.
        let never = Owned::new(op::semaphore_new(Entry::OWN, 0).map_err(text)?);
        let waits = on_semaphore(child.give(never.entry()).map_err(text)?, [numbers::P, NEVER, 0, 0, 0, 0]);
        STEPS.set_steps(0, &[before.unwrap_or(change), change, waits]);
        let _changes = child.start(Program::Steps(0)).map_err(text)?;
        runtime::thread::sleep(20_000_000).map_err(text)?;
        said.push(if child.has_died() { "it may not" } else { "it writes" });
        raw::give_up(OURS);
    }
    Ok(said.join(", "))
}

/// A call is in flight when the domain that was called is tainted, which it does itself.
pub fn call_cut(world: &World) -> Outcome<String> {
    let account = world.account(Side::Usual).map_err(text)?;
    let [child, other] = [world.child(Side::Usual, &account), world.child(Side::Usual, &account)];
    let (child, other) = (child.map_err(text)?, other.map_err(text)?);
    let [gate, never] = [op::semaphore_new(Entry::OWN, 0), op::semaphore_new(Entry::OWN, 0)];
    let (gate, never) = (Owned::new(gate.map_err(text)?), Owned::new(never.map_err(text)?));
    let (_service, portal) = other.portal_for(&child).map_err(text)?;
    let its = other.give(gate.entry()).map_err(text)?.0 as u64;
    STEPS.set_steps(0, &[on_semaphore(portal, [SLEEP, its, 0, 0, 0, 0])]);
    // Not its last step, with which its domain would end.
    let waits = on_semaphore(other.give(never.entry()).map_err(text)?, [numbers::P, NEVER, 0, 0, 0, 0]);
    STEPS.set_steps(256, &[taint(world), waits, waits]);
    let _calls = child.start(Program::Steps(0)).map_err(text)?;
    runtime::thread::sleep(20_000_000).map_err(text)?;
    let _taints = other.start(Program::Steps(256)).map_err(text)?;
    runtime::thread::sleep(20_000_000).map_err(text)?;
    op::v(gate.entry()).map_err(text)?;
    Ok(named(&[status_of(&child)?]))
}

/// The cause of a label change of a domain that calls an owner of the handle.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Cause {
    /// It taints itself: the outcome is that of the call.
    Itself,
    /// The same, when the owner is dead.
    AfterDeath,
    /// A message that would taint it: the outcome is whether it may use an untainted semaphore afterwards.
    Taint,
    /// A message that makes it an owner: the outcome is whether it is one.
    Gift,
}

/// A call in flight to an owner of the handle when its caller's labels change: without a window, and with one.
pub fn window_cut(world: &World) -> Outcome<String> {
    use Cause::{AfterDeath, Gift, Itself, Taint};
    let mut ends = Vec::new();
    let window = Owned::new(op::shape_new(Entry::SPECIAL, idl::WINDOW_PORTAL.as_bytes()).map_err(text)?);
    let never = Owned::new(op::semaphore_new(Entry::OWN, 0).map_err(text)?);
    let account = world.account(Side::Usual).map_err(text)?;
    let causes = [(Itself, false), (Itself, true), (AfterDeath, true), (Taint, false), (Taint, true), (Gift, true)];
    for (cause, shows) in causes {
        let send = label_at(world, STAR)?;
        let callee = child(&account, Some([send.entry(), world.receive.entry()])).map_err(text)?;
        let child = world.child(Side::Usual, &account).map_err(text)?;
        child.show(&COMMON, 0, false).map_err(text)?;
        let gate = Owned::new(op::semaphore_new(Entry::OWN, 0).map_err(text)?);
        let its = callee.give(gate.entry()).map_err(text)?.0 as u64;
        let (service, _portal) =
            if shows { callee.portal_of(window.entry()) } else { callee.portal() }.map_err(text)?;
        let portal = op::portal_new(child.domain.entry(), service.entry(), 0, Entry(0), 0).map_err(text)?;
        let [page, control] = if shows { [PLACE | 1, Control::WINDOW] } else { [0; 2] };
        let call = on_semaphore(portal, [SLEEP, its, 0, 0, page, control]);
        let waits = on_semaphore(child.give(never.entry()).map_err(text)?, [numbers::P, NEVER, 0, 0, 0, 0]);
        let port = Entry(MADE as usize + 1);
        match cause {
            Itself | AfterDeath => {
                STEPS.set_steps(0, &[call]);
                // Not its last step, with which its domain would end.
                STEPS.set_steps(256, &[taint(world), waits, waits]);
            }
            Taint => {
                STEPS.set_steps(0, &[call, on_semaphore(Entry(HAS as usize), [numbers::V, 0, 0, 0, 0, 0])]);
                STEPS.set_steps(256, &tainted_by_message(world));
            }
            Gift => {
                let owns = operation(numbers::LABEL, [numbers::LABEL_RECEIVE, world.handle, THREE, 0, 0, 0]);
                STEPS.set_steps(0, &[call, owns]);
                let [_, _, makes, _, _] = tainted_by_message(world);
                STEPS.set_steps(256, &[makes, on_semaphore(port, [numbers::RECEIVE, NEVER, 0, 0, 0, 0]), waits]);
            }
        }
        let rest = || runtime::thread::sleep(20_000_000).map_err(text);
        let _calls = child.start(Program::Steps(0)).map_err(text)?;
        rest()?;
        if cause == AfterDeath {
            op::domain_kill(callee.domain.entry(), 0).map_err(text)?;
        }
        let _changes = child.start(Program::Steps(256)).map_err(text)?;
        rest()?;
        if cause == Gift {
            let to = Owned::new(runtime::table::allocate().map_err(text)?);
            op::entry_copy(child.domain.entry(), port, Entry::OWN, to.entry(), WRITE).map_err(text)?;
            let gift = Owned::new(op::label_new(LabelFrom::Level(THREE)).map_err(text)?);
            op::label_put(gift.entry(), world.handle, STAR).map_err(text)?;
            let options = Options { decontaminate_send: Some(gift.entry()), ..Options::default() };
            runtime::port::send(to.entry(), &[], &options).map_err(text)?;
            rest()?;
        }
        op::v(gate.entry()).map_err(text)?;
        ends.push(status_of(&child)?);
    }
    Ok(named(&ends))
}

/// An owner of the handle is called, and both sides change at the same time. Each change alone would allow the call: the caller taints
/// itself, which takes long, and meanwhile, each time a little later, the owner accepts less.
pub fn both_change(world: &World) -> Outcome<String> {
    const LATER: u64 = 20_000;
    const TIMES: u64 = 50;
    let account = world.account(Side::Usual).map_err(text)?;
    let never = Owned::new(op::semaphore_new(Entry::OWN, 0).map_err(text)?);
    let mut goes_on = 0;
    for time in 0..TIMES {
        let (callee, _) = owner(world, STAR, &account)?;
        let caller = world.child(Side::Usual, &account).map_err(text)?;
        let gate = Owned::new(op::semaphore_new(Entry::OWN, 0).map_err(text)?);
        let (_service, portal) = callee.portal_for(&caller).map_err(text)?;
        let its = callee.give(gate.entry()).map_err(text)?.0 as u64;
        let begin = op::clock() + 3_000_000;
        let changes = |child: &Child, at, label, level| {
            let semaphore = child.give(never.entry()).map_err(text)?;
            let wait = |until| on_semaphore(semaphore, [numbers::P, until, 0, 0, 0, 0]);
            Ok::<_, String>([wait(at), operation(numbers::LABEL, [label, world.handle, level, 0, 0, 0]), wait(NEVER)])
        };
        STEPS.set_steps(0, &[on_semaphore(portal, [SLEEP, its, 0, 0, 0, 0])]);
        STEPS.set_steps(128, &changes(&caller, begin, numbers::LABEL_SEND, TWO)?);
        STEPS.set_steps(256, &changes(&callee, begin + time * LATER, numbers::LABEL_RECEIVE, ONE)?);
        let _calls = caller.start(Program::Steps(0)).map_err(text)?;
        let slow = caller.start(Program::Steps(128)).map_err(text)?;
        let lower = Schedule { priority: SCHEDULE.priority - 1, ..SCHEDULE };
        op::thread_schedule(slow.entry(), lower).map_err(text)?;
        let _changes = callee.start(Program::Steps(256)).map_err(text)?;
        runtime::thread::sleep(5_000_000).map_err(text)?;
        // Its end would be refused, too.
        goes_on += u32::from(!caller.has_died());
        op::v(gate.entry()).map_err(text)?;
    }
    Ok(format!("{goes_on} of {TIMES} go on"))
}

/// A change of a domain whose table has so many entries takes longer than this, in nanoseconds.
const MANY_ENTRIES: usize = 40_000;
const PART_OF_IT: u64 = 300_000;
/// Frames for such a table.
const FOR_TABLE: u64 = 1_000;

/// The same child with a large table.
fn with_large_table(child: Child) -> Outcome<Child> {
    let last = Entry(MANY_ENTRIES);
    op::entry_copy(Entry::OWN, Entry::ACCOUNT, child.domain.entry(), last, READ).map_err(text)?;
    Ok(child)
}

/// A domain taints itself, which takes long, and is killed meanwhile, or removed. Whoever called it sees that, and not the taint.
pub fn ended_meanwhile(world: &World) -> Outcome<String> {
    let mut ends = Vec::new();
    for is_killed in [true, false] {
        let account = Owned::new(op::account_new(Entry::OWN, FOR_TABLE).map_err(text)?);
        let (_account, client) = world.paid_child(Side::Usual)?;
        let callee = with_large_table(world.child(Side::Usual, &account).map_err(text)?)?;
        let gate = Owned::new(op::semaphore_new(Entry::OWN, 0).map_err(text)?);
        let (_service, portal) = callee.portal_for(&client).map_err(text)?;
        let its = callee.give(gate.entry()).map_err(text)?.0 as u64;
        STEPS.set_steps(0, &[on_semaphore(portal, [SLEEP, its, 0, 0, 0, 0])]);
        STEPS.set_steps(256, &[taint(world)]);
        let _calls = client.start(Program::Steps(0)).map_err(text)?;
        runtime::thread::sleep(20_000_000).map_err(text)?;
        let _taints = callee.start(Program::Steps(256)).map_err(text)?;
        runtime::thread::sleep(PART_OF_IT).map_err(text)?;
        let described = op::entry_info(callee.domain.entry(), Entry(HAS as usize));
        described.map_err(text)?;
        if is_killed {
            op::domain_kill(callee.domain.entry(), 0).map_err(text)?;
        }
        drop(callee);
        ends.push(status_of(&client)?);
    }
    Ok(named(&ends))
}

/// A tainted domain that sees a tainted page wants to accept that taint no more, which takes long. Another thread of it does the last
/// steps, before it may do something else, and then unmaps the page.
pub fn refused_by_another(world: &World) -> Outcome<String> {
    const OURS: u64 = FREE_START + 0x1300_0000;
    let tainted = world.account(Side::Tainted).map_err(text)?;
    let account = Owned::new(op::account_new(Entry::OWN, FOR_TABLE).map_err(text)?);
    let child = with_large_table(world.child(Side::Tainted, &account).map_err(text)?)?;
    op::draw(raw::MEMORY, tainted.entry(), Entry::OWN, OURS, 0, MAP_READ | MAP_WRITE).map_err(text)?;
    let to = child.domain.entry().0 as u64;
    raw::call(numbers::MAP, [to, OURS, PLACE, 0, MAP_READ, 0]).map_err(text)?;
    let semaphore = |count| op::semaphore_new(tainted.entry(), count).map(Owned::new).map_err(text);
    let (never, gate) = (semaphore(0)?, semaphore(1)?);
    let waited = child.give(never.entry()).map_err(text)?;
    let wait = |until| on_semaphore(waited, [numbers::P, until, 0, 0, 0, 0]);
    let callee = world.child(Side::Tainted, &tainted).map_err(text)?;
    let (_service, portal) = callee.portal_for(&child).map_err(text)?;
    let its = callee.give(gate.entry()).map_err(text)?.0 as u64;
    let call = on_semaphore(portal, [SLEEP, its, 0, 0, 0, 0]);
    let meets = op::clock() + 3_000_000;
    let change = operation(numbers::LABEL, [numbers::LABEL_RECEIVE, world.handle, TWO, 0, 0, 0]);
    STEPS.set_steps(0, &[wait(meets - PART_OF_IT), change]);
    let unmaps = operation(numbers::UNMAP, [0, PLACE, 0, MAP_READ | UNMAP_SELF, 0, 0]);
    STEPS.set_steps(256, &[wait(meets), call, unmaps, wait(NEVER)]);
    let slow = child.start(Program::Steps(0)).map_err(text)?;
    let lower = Schedule { priority: SCHEDULE.priority - 1, ..SCHEDULE };
    op::thread_schedule(slow.entry(), lower).map_err(text)?;
    let _goes_on = child.start(Program::Steps(256)).map_err(text)?;
    let status = status_of(&child);
    raw::give_up(OURS);
    Ok(named(&[status?]))
}

/// A domain taints itself whose exceptions another one handles: so tainted that it accepts that, and not.
pub fn handled(world: &World) -> Outcome<String> {
    let mut ends = Vec::new();
    for by in [Side::Tainted, Side::Usual] {
        let accounts = [world.account(by).map_err(text)?, world.account(Side::Usual).map_err(text)?];
        let handler = world.child(by, &accounts[0]).map_err(text)?;
        let usual = label_at(world, ONE)?;
        let child = child(&accounts[1], Some([usual.entry(), world.receive.entry()])).map_err(text)?;
        let (service, _portal) = handler.portal().map_err(text)?;
        op::portal_new(child.domain.entry(), service.entry(), 0, Entry(EXCEPTION), 0).map_err(text)?;
        ends.push(does(&child, &[taint(world)])?);
    }
    Ok(named(&ends))
}

/// We have a tainted child, and want to accept its taint no more. Before it come another child, and more thread numbers than a
/// step looks at.
pub fn children(world: &World) -> Outcome<String> {
    const OTHERS: usize = 40;
    let other = |_| op::domain_new(Entry::ACCOUNT, 0, "child").map(Owned::new);
    let mut others = (0..OTHERS).map(other).collect::<Result<Vec<_>, _>>().map_err(text)?;
    let (_account, child) = world.paid_child(Side::Tainted)?;
    others.truncate(1);
    let with = op::label_receive(world.handle, TWO).err().map_or(0, |error| error as u64);
    drop(child);
    let without = op::label_receive(world.handle, TWO).err().map_or(0, |error| error as u64);
    op::label_receive(world.handle, THREE).map_err(text)?;
    Ok(named(&[with, without]))
}
