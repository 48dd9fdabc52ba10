//! Semaphores: no token is lost or doubled, and nobody waits while there is one, whichever CPU is stopped on the way.

use crate::machine::{Fault, Machine, Plain, explore};
use crate::tokens::Tokens;
use loom::sync::Arc;
use loom::thread;

/// A semaphore with what the lock protects, and what CPUs have published.
struct Semaphore {
    machine: Arc<Machine>,
    tokens: Tokens,
    /// The waiting CPUs; under the lock.
    queue: Plain<Vec<usize>>,
    /// Tokens that were given to waiters; under the lock.
    granted: Plain<Vec<usize>>,
    /// By CPU: it has to settle. Written by that CPU, or by one that stopped it.
    unsettled: [Plain<bool>; 3],
}

/// A step of a CPU.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Step {
    /// P that waits.
    P,
    /// P that does not wait.
    TryP,
    /// V.
    V,
    /// Stops what CPU 1 runs.
    Kill,
}
use Step::{Kill, P, TryP, V};

/// The outcome of a step.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Outcome {
    Taken,
    Given,
    Waits,
    Nothing,
}

impl Semaphore {
    fn new(fault: Fault, tokens: i64, waiting: usize) -> Arc<Self> {
        let semaphore = Self {
            machine: Machine::new(fault),
            tokens: Tokens::new(tokens),
            queue: Plain::new((10..10 + waiting).collect()),
            granted: Plain::default(),
            unsettled: Default::default(),
        };
        (0..waiting).for_each(|_| semaphore.tokens.enlist());
        Arc::new(semaphore)
    }

    /// With the lock: waiters for which there is a token get it.
    fn settle(&self) {
        while self.tokens.owes_token(self.queue.read(Vec::len)) {
            let first = self.queue.change(|queue| queue.remove(0));
            self.granted.change(|granted| granted.push(first));
        }
    }

    /// The slow path of P and V: under the lock, unless this CPU was stopped while it waited. Whether it was not.
    fn settle_as(&self, me: usize, enlist: bool) -> bool {
        self.unsettled[me].change(|unsettled| *unsettled = true);
        let goes_on = !self.machine.enter(me).needs_recheck;
        if goes_on {
            if enlist {
                self.tokens.enlist();
                self.queue.change(|queue| queue.push(me));
            }
            self.settle();
            self.unsettled[me].change(|unsettled| *unsettled = false);
        }
        self.machine.leave();
        goes_on
    }

    fn run(&self, me: usize, step: Step) -> Outcome {
        let fault = self.machine.fault;
        let outcome = match step {
            P | TryP if self.tokens.take() => Outcome::Taken,
            TryP if fault == Fault::LeftOut => Outcome::Nothing,
            P if self.settle_as(me, true) => Outcome::Waits,
            TryP | P => {
                if step == TryP {
                    self.settle_as(me, false);
                }
                Outcome::Nothing
            }
            V => {
                if !self.tokens.give() {
                    self.settle_as(me, false);
                }
                Outcome::Given
            }
            Kill => {
                self.machine.enter(me);
                self.machine.stop(1);
                let unsettled = self.unsettled[1].change(std::mem::take);
                if unsettled && fault != Fault::Swapped {
                    self.settle();
                }
                self.machine.leave_to(1, |left| left.needs_recheck = true);
                self.machine.leave();
                Outcome::Nothing
            }
        };
        if me == 1 {
            // Where it can be stopped.
            self.machine.sleep(me);
        }
        outcome
    }
}

/// Each CPU makes its step; then nobody waits beside a token, and all tokens are somewhere.
fn model(fault: Fault, tokens: i64, waiting: usize, steps: &'static [Step]) {
    let semaphore = Semaphore::new(fault, tokens, waiting);
    let others: Vec<_> = (1..steps.len())
        .map(|me| {
            let semaphore = semaphore.clone();
            thread::spawn(move || semaphore.run(me, steps[me]))
        })
        .collect();
    let mut outcomes = vec![semaphore.run(0, steps[0])];
    outcomes.extend(others.into_iter().map(|other| other.join().unwrap()));
    semaphore.machine.enter(0);
    let granted = semaphore.granted.read(Vec::clone);
    let waits = semaphore.queue.read(Vec::len);
    let left = semaphore.tokens.count() + waits as i64;
    assert!(left >= 0, "{} tokens were taken that were not there", -left);
    assert!(waits == 0 || left == 0, "{waits} wait while there are {left} tokens");
    let count = |which: Outcome| outcomes.iter().filter(|outcome| **outcome == which).count() as i64;
    let (given, taken) = (count(Outcome::Given), count(Outcome::Taken));
    assert_eq!(tokens + given, taken + granted.len() as i64 + left, "tokens were lost or doubled: {outcomes:?}");
    assert_eq!(waits + granted.len(), waiting + count(Outcome::Waits) as usize);
    // Earlier waiters get theirs first, in the order in which they came.
    let ordered =
        granted.iter().filter(|who| **who >= 10).enumerate().all(|(at, who)| granted[at] == *who && *who == 10 + at);
    assert!(ordered, "out of order: {granted:?}");
}

macro_rules! mixes {
    ($($name:ident: $tokens:literal tokens, $waiting:literal wait, $steps:expr, $bound:expr;)*) => {
        $(
            #[test]
            fn $name() {
                explore($bound, || model(Fault::None, $tokens, $waiting, &$steps));
            }
        )*
    };
}

mixes! {
    p_against_v: 0 tokens, 0 wait, [P, V], None;
    p_against_v_while_one_waits: 0 tokens, 1 wait, [P, V], None;
    p_against_try: 1 tokens, 0 wait, [P, TryP], None;
    two_v_while_two_wait: 0 tokens, 2 wait, [V, V], None;
    try_against_v_while_one_waits: 0 tokens, 1 wait, [TryP, V], None;
    p_p_v: 0 tokens, 0 wait, [P, P, V], Some(3);
    p_p_v_with_a_token: 1 tokens, 0 wait, [P, P, V], Some(3);
    p_v_v: 0 tokens, 0 wait, [P, V, V], Some(3);
    p_v_v_while_one_waits: 0 tokens, 1 wait, [P, V, V], Some(3);
    try_p_v: 0 tokens, 0 wait, [P, TryP, V], Some(3);
    v_is_killed: 0 tokens, 1 wait, [Kill, V], None;
    p_is_killed: 0 tokens, 0 wait, [Kill, P], None;
    p_is_killed_against_v: 0 tokens, 1 wait, [Kill, P, V], Some(3);
    v_is_killed_against_p: 0 tokens, 1 wait, [Kill, V, P], Some(3);
    v_is_killed_against_v: 0 tokens, 2 wait, [Kill, V, V], Some(3);
}

#[test]
#[should_panic(expected = "1 wait while there are 1 tokens")]
fn a_try_p_that_does_not_settle_is_found() {
    explore(None, || model(Fault::LeftOut, 0, 1, &[TryP, V]));
}

#[test]
#[should_panic(expected = "1 wait while there are 1 tokens")]
fn a_killed_v_settled_in_the_wrong_order_is_found() {
    explore(None, || model(Fault::Swapped, 0, 1, &[Kill, V]));
}

#[test]
#[should_panic(expected = "1 wait while there are 1 tokens")]
fn a_killed_p_settled_in_the_wrong_order_is_found() {
    explore(Some(2), || model(Fault::Swapped, 0, 1, &[Kill, P, V]));
}

/// With one token it is a lock for CPUs that take it without waiting: each sees the writes of the one before.
pub fn as_a_lock() {
    explore(None, || {
        let shared = Arc::new((Tokens::new(1), Plain::new(0)));
        let work = |(tokens, data): &(Tokens, Plain<u32>)| {
            if tokens.take() {
                data.change(|data| *data += 1);
                tokens.give();
            }
        };
        let other = shared.clone();
        let other = thread::spawn(move || work(&other));
        work(&shared);
        work(&shared);
        other.join().unwrap();
    });
}

#[test]
fn writes_before_v_are_seen_after_p() {
    as_a_lock();
}
