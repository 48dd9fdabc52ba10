//! Threads that are in the nucleus most of the time: operations on them find them waiting for its lock, and no
//! interrupt reaches them. When such a thread goes on, the operation that it requested must not be done for a thread that is gone or
//! elsewhere.

use core::sync::atomic::Ordering;

use abi::{Control, Error, NEVER, op as abi_op};
use alloc::vec::Vec;
use runtime::entry::Owned;
use runtime::{Entry, op};

use super::case::{Case, text};
use super::child::{self, Child, Page, Program, Question, Service, block, call, set_block};
use super::places::{Turn, Victim, When, pause, pin_thread, until};
use super::programs::{MARK, word};
use crate::check::hold;

use When::{Asleep, Busy, Race};

pub const CASES: &[Case] = &[
    Case { name: "removal of a thread that asks", whens: &[Busy, Race], run: |turn| ended(turn, Ends::Thread) },
    Case { name: "death of a domain that asks", whens: &[Busy, Race], run: |turn| ended(turn, Ends::Domain) },
    Case { name: "new registers for a thread that asks", whens: &[Busy], run: registers },
    Case { name: "a thread moved while it asks", whens: &[Busy], run: moved },
    Case { name: "two orphans of one domain", whens: &[Busy, Asleep], run: orphans },
];

/// A child that asks, what it asks with, and its two pages of ours.
struct Asking {
    child: Child,
    /// One with a service that it can call.
    _callee: (Child, Owned),
    questions: [Question; 5],
    semaphore: Owned,
}

static SOURCE: Page = Page::new();
static BLOCKS: Page = Page::new();

impl Asking {
    /// One with so many activations for its own services, whose threads run on the CPUs `cpus`.
    fn new(activations: usize, cpus: u64) -> Result<Self, Error> {
        let child = Child::new(Entry::OWN, activations, cpus)?;
        child.show(&SOURCE, 0, true)?;
        child.show(&BLOCKS, 1, true)?;
        // One activation for each caller: one that was cut off must not keep the other one waiting.
        let callee = Child::new(Entry::OWN, 2, NEVER)?;
        let (service, portal) = callee.portal_for(&child)?;
        let semaphore = Owned::new(op::semaphore_new(Entry::OWN, 0)?);
        let its = child.give(semaphore.entry())?;
        let questions = [
            // A light operation, a full one, one that yields, a wait that is refused, and a call by the slow path.
            Question(abi_op::CLOCK, 0, 0, 0),
            Question(abi_op::ENTRY_INFO, 0, its.0 as u64, 0),
            Question(abi_op::YIELD, 0, 0, 0),
            Question(its.0, abi_op::P, 0, 0),
            Question(portal.0, 0, 0, Control::bytes(8).0),
        ];
        Ok(Self { child, _callee: (callee, service), questions, semaphore })
    }

    /// A thread of it that asks this, and has begun if it must.
    fn start(&self, question: Question, begun: bool) -> Result<Owned, &'static str> {
        set_block(&BLOCKS, 0, 0, Some(question));
        let thread = self.child.start(Program::Ask(0)).map_err(text)?;
        if begun {
            until(|| count(0) > 5, "the child does not ask")?;
        }
        Ok(thread)
    }
}

fn count(number: usize) -> u64 {
    block(&BLOCKS, number, word::COUNT).load(Ordering::SeqCst)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Ends {
    Thread,
    Domain,
}

/// It asks no more when the operation that ends it has come back.
fn ended(turn: &mut Turn, ends: Ends) -> Result<(), &'static str> {
    let mut asking = Asking::new(0, 1 << turn.victim).map_err(text)?;
    for number in 0..asking.questions.len() {
        if number > 0 && ends == Ends::Domain {
            drop(asking);
            asking = Asking::new(0, 1 << turn.victim).map_err(text)?;
        }
        let thread = asking.start(asking.questions[number], turn.when == Busy)?;
        turn.delay();
        match ends {
            Ends::Thread => drop(thread),
            Ends::Domain => {
                op::domain_kill(asking.child.domain.entry(), 5).map_err(text)?;
                hold(asking.child.has_died(), "it did not die")?;
            }
        }
        let before = count(0);
        pause();
        hold(count(0) == before, "it asks still")?;
    }
    Ok(())
}

/// It is sent elsewhere, and goes on exactly there.
fn registers(turn: &mut Turn) -> Result<(), &'static str> {
    let asking = Asking::new(0, 1 << turn.victim).map_err(text)?;
    for question in asking.questions {
        let thread = asking.start(question, true)?;
        SOURCE.0[0].store(0, Ordering::SeqCst);
        turn.delay();
        child::send_to_mark(thread.entry()).map_err(text)?;
        until(|| SOURCE.0[0].load(Ordering::SeqCst) != 0 || asking.child.has_died(), "it goes on where it was")?;
        hold(SOURCE.0[0].load(Ordering::SeqCst) == MARK.into(), "it went on somewhere else")?;
        let before = count(0);
        pause();
        hold(count(0) == before, "it asks still")?;
    }
    Ok(())
}

/// It is moved to and fro, and each answer is one that its question has.
fn moved(turn: &mut Turn) -> Result<(), &'static str> {
    let asking = Asking::new(0, NEVER).map_err(text)?;
    for question in asking.questions {
        let thread = asking.start(question, false)?;
        for round in 0..4 {
            pin_thread(thread.entry(), if round % 2 == 0 { turn.victim } else { turn.actor }).map_err(text)?;
            let before = count(0);
            until(|| count(0) > before + 5, "it does not get on")?;
            turn.delay();
        }
        let status = block(&BLOCKS, 0, word::STATUS).load(Ordering::SeqCst);
        let refused = question.0 != abi_op::CLOCK && question.1 == abi_op::P && status == Error::Timeout as u64;
        hold(status == 0 || refused, "another answer")?;
    }
    Ok(())
}

/// Two calls to one domain lose their callers: the callees go on in turns, though neither ever waits.
fn orphans(turn: &mut Turn) -> Result<(), &'static str> {
    let asking = Asking::new(2, NEVER).map_err(text)?;
    let (_service, portal) = asking.child.portal_to(Service::Ask).map_err(text)?;
    let entry = portal.entry();
    let calls = |number, cpu| Victim::new(cpu, move || call(entry, number, Control(0)));
    let stop = |number| block(&BLOCKS, number, word::STOP).store(1, Ordering::SeqCst);
    let asleep = turn.when == Asleep;
    let mut questions = Vec::new();
    if asleep {
        questions.push(Question(asking.questions[WAIT].0, abi_op::P, NEVER, 0));
    } else {
        let first = turn.random.below(asking.questions.len() as u64) as usize;
        questions.extend(asking.questions.iter().cycle().skip(first).take(2));
    }
    for question in questions {
        let sides = [(0, calls(0, turn.actor)?), (1, calls(1, turn.victim)?)];
        for (number, side) in &sides {
            set_block(&BLOCKS, *number, 0, Some(question));
            side.go();
            until(|| count(*number) > if asleep { 0 } else { 5 }, "nobody is called")?;
            if asleep {
                side.is_inside(2, true)?;
            }
        }
        turn.delay();
        for (_, side) in &sides {
            op::thread_cancel(side.entry()).map_err(text)?;
        }
        let second = count(1);
        for (_, side) in sides {
            hold(side.finish()? == Error::Cancelled as u64, "not cancelled")?;
        }
        if asleep {
            // Each is woken, and ends.
            for number in 0..2 {
                stop(number);
                op::v(asking.semaphore.entry()).map_err(text)?;
            }
        } else {
            let first = count(0);
            until(|| count(0) > first + 5, "the first does not go on")?;
            until(|| count(1) > second + 5, "the second has no turn")?;
            let first = count(0);
            until(|| count(0) > first + 5, "the first has no second turn")?;
            stop(0);
            stop(1);
        }
        let ended = |number| block(&BLOCKS, number, word::ENDED).load(Ordering::SeqCst) != 0;
        until(|| ended(0) && ended(1), "one does not end")?;
        // Both activations are free again.
        set_block(&BLOCKS, 0, 0, Some(question));
        let again = calls(0, turn.victim)?;
        again.go();
        until(|| count(0) > 0, "the first activation is lost")?;
        set_block(&BLOCKS, 1, 0, None);
        stop(1);
        until(|| call(entry, 1, Control(Control::NO_WAIT)) == 0, "the second activation is lost")?;
        stop(0);
        if asleep {
            op::v(asking.semaphore.entry()).map_err(text)?;
        }
        hold(again.finish()? == 0, "another result")?;
    }
    Ok(())
}

/// Which of the questions is the wait.
const WAIT: usize = 3;
