//! Floating-point registers belong to an activation: wherever it goes on it finds its own, and nobody finds another's.

use core::sync::atomic::Ordering;

use abi::info::status::EXCEPTION;
use abi::{Control, Error, NEVER, op as abi_op};
use alloc::vec::Vec;
use runtime::entry::Owned;
use runtime::{Entry, op};

use super::case::{Case, text};
use super::child::{Child, Page, Program, Question, Service, Unit, block, block_address, call, set_block};
use super::places::{Turn, Victim, When, pin_thread, until};
use super::programs::{NOT_CLEAR, ROUNDING, word};
use crate::check::hold;
use crate::pagers::status;

use When::{After, Asleep, Busy, Race};

pub const CASES: &[Case] = &[
    Case { name: "floating-point registers of a thread that moves", whens: &[Asleep, Busy, Race], run: moved },
    Case { name: "floating-point registers of what was cut off", whens: &[Asleep, Busy], run: cut_off },
    Case { name: "floating-point registers of what is called from both sides", whens: &[After, Race], run: called },
    Case { name: "floating-point registers of what is removed", whens: &[Busy, Race], run: removed },
];

/// A number of its own for each that keeps registers, so that those of one are never those of another.
const STEP: u64 = 0x1_0001_0000_0100;

static SOURCE: Page = Page::new();
static BLOCKS: Page = Page::new();

fn word_of(number: usize, word: usize) -> u64 {
    block(&BLOCKS, number, word).load(Ordering::SeqCst)
}

fn count(number: usize) -> u64 {
    word_of(number, word::COUNT)
}

fn stop(number: usize) {
    block(&BLOCKS, number, word::STOP).store(1, Ordering::SeqCst);
}

fn begin(turn: &mut Turn, number: usize, question: Option<Question>) {
    set_block(&BLOCKS, number, STEP * (number as u64 + 1) + turn.random.below(4), question);
}

/// Each of them has found nothing but its own registers.
fn all_right(numbers: core::ops::Range<usize>) -> Result<(), &'static str> {
    for number in numbers {
        match word_of(number, word::WRONG) {
            0 => {}
            NOT_CLEAR => return Err("registers of others at the start"),
            ROUNDING => return Err("MXCSR is another's"),
            _ => return Err("a register changed"),
        }
    }
    Ok(())
}

/// A domain with floating-point registers that sees the blocks.
fn child(activations: usize) -> Result<Child, &'static str> {
    let child = Child::with(Unit::Floating, Entry::OWN, activations, NEVER).map_err(text)?;
    child.show(&SOURCE, 0, true).map_err(text)?;
    child.show(&BLOCKS, 1, true).map_err(text)?;
    Ok(child)
}

/// On each of the CPUs one that keeps registers of its own, so that those that are loaded there change all the time.
fn rivals(turn: &mut Turn, child: &Child, first: usize) -> Result<Vec<Owned>, &'static str> {
    let mut threads = Vec::new();
    for (number, cpu) in [turn.actor, turn.victim].into_iter().enumerate() {
        begin(turn, first + number, Some(Question(abi_op::YIELD, 0, 0, 0)));
        let thread = child.start(Program::Keep(first + number)).map_err(text)?;
        pin_thread(thread.entry(), cpu).map_err(text)?;
        threads.push(thread);
    }
    Ok(threads)
}

/// A thread is moved to and fro while it runs, waits, or yields all the time.
fn moved(turn: &mut Turn) -> Result<(), &'static str> {
    const MOVES: u64 = 4;
    let (child, others) = (child(0)?, child(0)?);
    let semaphore = Owned::new(op::semaphore_new(Entry::OWN, 0).map_err(text)?);
    let its = child.give(semaphore.entry()).map_err(text)?;
    let question = match turn.when {
        Asleep => Some(Question(its.0, abi_op::P, NEVER, 0)),
        Race => Some(Question(abi_op::YIELD, 0, 0, 0)),
        _ => None,
    };
    let rivals = rivals(turn, &others, 1)?;
    begin(turn, 0, question);
    let thread = child.start(Program::Keep(0)).map_err(text)?;
    until(|| count(0) > 0, "it does not begin")?;
    for round in 0..MOVES {
        pin_thread(thread.entry(), if round % 2 == 0 { turn.actor } else { turn.victim }).map_err(text)?;
        let before = count(0);
        if turn.when == Asleep {
            op::v(semaphore.entry()).map_err(text)?;
        }
        if turn.when != Race {
            until(|| count(0) > before || word_of(0, word::WRONG) != 0, "it does not get on")?;
        }
        turn.delay();
    }
    for number in 0..3 {
        let before = count(number);
        until(
            || {
                // It may wait.
                let woken = turn.when != Asleep || number != 0 || op::v(semaphore.entry()).is_ok();
                woken && (count(number) > before || word_of(number, word::WRONG) != 0)
            },
            "one does not get on",
        )?;
    }
    drop((thread, rivals));
    all_right(0..3)
}

/// Two calls lose their callers. One goes on where it is; the other waits until that one ends, and then goes on there.
fn cut_off(turn: &mut Turn) -> Result<(), &'static str> {
    let (child, others) = (child(2)?, child(0)?);
    let (_service, portal) = child.portal_to(Service::Keep).map_err(text)?;
    let entry = portal.entry();
    let semaphore = Owned::new(op::semaphore_new(Entry::OWN, 0).map_err(text)?);
    let its = child.give(semaphore.entry()).map_err(text)?;
    let asleep = turn.when == Asleep;
    let question = if asleep { Some(Question(its.0, abi_op::P, NEVER, 0)) } else { None };
    let rivals = rivals(turn, &others, 2)?;
    let mut sides = Vec::new();
    for (number, cpu) in [turn.actor, turn.victim].into_iter().enumerate() {
        begin(turn, number, question);
        let side = Victim::new(cpu, move || call(entry, number, Control(0)))?;
        side.go();
        until(|| count(number) > 0, "nobody is called")?;
        side.is_inside(2, asleep)?;
        sides.push(side);
    }
    turn.delay();
    for side in &sides {
        op::thread_cancel(side.entry()).map_err(text)?;
    }
    for side in sides {
        hold(side.finish()? == Error::Cancelled as u64, "not cancelled")?;
    }
    for number in 0..2 {
        let before = count(number);
        let gets_on = || {
            let woken = !asleep || op::v(semaphore.entry()).is_ok();
            woken && (count(number) > before || word_of(number, word::WRONG) != 0)
        };
        until(gets_on, "an orphan does not go on")?;
        stop(number);
    }
    drop((child, rivals));
    all_right(0..4)
}

/// One activation is called from both CPUs: it finds clear registers each time, and each caller its own afterwards.
fn called(turn: &mut Turn) -> Result<(), &'static str> {
    const CALLS: usize = 6;
    let child = child(1)?;
    let (service, portal) = child.portal_to(Service::Keep).map_err(text)?;
    begin(turn, 0, None);
    // It looks once, and returns with its registers as they are.
    stop(0);
    if turn.when == After {
        for round in 0..CALLS {
            super::places::pin(if round % 2 == 0 { turn.victim } else { turn.actor }).map_err(text)?;
            hold(call(portal.entry(), 0, Control(Control::NO_WAIT)) == 0, "another result")?;
        }
        super::places::pin(turn.actor).map_err(text)?;
        hold(count(0) == CALLS as u64, "not one round for each call")?;
        return all_right(0..1);
    }
    let callers = self::child(0)?;
    let its = op::portal_new(callers.domain.entry(), service.entry(), 0, Entry(0), 0).map_err(text)?;
    let mut threads = Vec::new();
    for (number, cpu) in [(1, turn.victim), (2, turn.actor)] {
        begin(turn, number, Some(Question(its.0, block_address(0), 0, 0)));
        let thread = callers.start(Program::Keep(number)).map_err(text)?;
        pin_thread(thread.entry(), cpu).map_err(text)?;
        threads.push(thread);
        turn.delay();
    }
    for number in 1..3 {
        until(|| count(number) > CALLS as u64 || word_of(number, word::WRONG) != 0, "a caller does not get on")?;
        hold(word_of(number, word::STATUS) == 0, "another result of a call")?;
    }
    drop(threads);
    all_right(0..3)
}

/// One whose registers are loaded goes: a thread without any sees nothing of them, the next one finds clear ones, and those
/// of all others stay.
fn removed(turn: &mut Turn) -> Result<(), &'static str> {
    let others = child(0)?;
    // With nobody else that has some, a thread without any comes next.
    for alone in [true, false] {
        let rivals = if alone { Vec::new() } else { rivals(turn, &others, 1)? };
        let child = child(0)?;
        begin(turn, 0, None);
        let thread = child.start(Program::Keep(0)).map_err(text)?;
        pin_thread(thread.entry(), turn.victim).map_err(text)?;
        if turn.when == Busy {
            until(|| count(0) > 0, "it does not begin")?;
        }
        turn.delay();
        // A domain keeps what its last thread had until it goes.
        let _kept = (!alone).then_some(child);
        drop(thread);
        let before = count(0);
        let without = Child::new(Entry::OWN, 0, 1 << turn.victim).map_err(text)?;
        without.show(&SOURCE, 0, true).map_err(text)?;
        let toucher = without.start(Program::Touch).map_err(text)?;
        // Its registers may lie where those of the removed thread lay.
        begin(turn, 3, None);
        let next = others.start(Program::Keep(3)).map_err(text)?;
        pin_thread(next.entry(), turn.victim).map_err(text)?;
        without.dies().map_err(|_| "a thread without floating-point registers can use them")?;
        hold(status()? == EXCEPTION + NOT_AVAILABLE, "it died of something else")?;
        until(|| count(3) > 0 || word_of(3, word::WRONG) != 0, "the next one does not begin")?;
        hold(count(0) == before, "a removed thread runs")?;
        drop((toucher, next, rivals));
        all_right(0..4)?;
    }
    Ok(())
}

/// Vector of the exception on use of a unit that is off.
const NOT_AVAILABLE: u64 = 7;
