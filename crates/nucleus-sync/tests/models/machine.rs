//! CPUs that take the nucleus lock, get interrupts and are stopped: the base of all models.

use crate::lock::Lock;
use crate::quiescent::Quiescent;
use loom::sync::Arc;
use loom::sync::atomic::{AtomicBool, AtomicU32, Ordering, fence};
use loom::thread;
use std::cell::RefCell;

/// One step left out or put elsewhere.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fault {
    /// All is as it should be.
    None,
    /// The lock holder sends the interrupt and does not wait.
    DoesNotWait,
    /// A CPU takes back that it is quiescent before it has the lock.
    RunsTooEarly,
    /// A CPU says that it is quiescent before it announces itself.
    QuiescentTooEarly,
    /// A CPU looks for what was left to it before it has the lock.
    LooksTooEarly,
    /// A CPU that slept and got the lock at once looks for nothing.
    SleptAndForgets,
    /// A CPU does not do what was left to it.
    Forgets,
    /// A CPU that changes something and then asks where CPUs are has no fence between.
    NoFence,
    /// A CPU that goes elsewhere loads the root first, and then writes where it is.
    RootFirst,
    /// No CPU is stopped.
    StopsNone,
    /// Only CPUs in the domain are stopped.
    StopsTooFew,
    /// A model's own two steps, in the other order.
    Swapped,
    /// A model's own step, left out.
    LeftOut,
    /// The same, the second time only.
    LeftOutAgain,
    /// A model's own wait, left out.
    NotAwaited,
    /// A model's own fast path is taken where only the slow one is right.
    TooFast,
    /// A writer does not ask whether the slot of a ring, or a record, is free.
    Overwritten,
    /// A page of a window is taken for its first one.
    FirstPage,
}

/// The work that was left to a CPU.
#[derive(Default, Clone, Copy, PartialEq, Eq, Debug)]
pub struct Left {
    /// Forget translations.
    pub flush: bool,
    /// Look again at what it runs.
    pub needs_recheck: bool,
}

/// The block of a CPU.
pub struct Cpu {
    pub quiescent: Quiescent,
    /// An interrupt from another CPU that it has not taken.
    interrupt: AtomicBool,
    /// Which space it is in.
    pub domain: AtomicU32,
    /// Touched by the holder of the lock.
    left: Plain<Left>,
    /// Waits for the lock, and does not say so: who has the lock and waits for this CPU waits for ever.
    is_stuck: AtomicBool,
}

/// Ordinary memory: two that touch it at the same time, one of them to change it, are found out.
#[derive(Default)]
pub struct Plain<T> {
    accesses: loom::cell::UnsafeCell<()>,
    value: RefCell<T>,
}

impl<T> Plain<T> {
    pub fn new(value: T) -> Self {
        Self { accesses: loom::cell::UnsafeCell::new(()), value: RefCell::new(value) }
    }
    pub fn read<R>(&self, read: impl FnOnce(&T) -> R) -> R {
        self.accesses.with(|_| read(&self.value.borrow()))
    }
    pub fn change<R>(&self, change: impl FnOnce(&mut T) -> R) -> R {
        self.accesses.with_mut(|_| change(&mut self.value.borrow_mut()))
    }
}

/// See the module.
pub struct Machine {
    pub lock: Lock,
    pub cpus: [Cpu; 3],
    pub fault: Fault,
    /// Nobody sends an interrupt any more.
    is_over: AtomicBool,
}

/// Runs a model: the body is that of CPU 0, which starts the others.
pub fn explore(preemptions: Option<usize>, body: impl Fn() + Send + Sync + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = preemptions;
    builder.max_branches = 2_000;
    builder.check(body);
}

/// The pause of a CPU that waits. One round in vain is as good as many: after the second, the other ways to go on are left
/// out, and with nobody else to go on it is found out that the wait is for ever.
pub fn relax() -> impl FnMut() {
    let mut rounds = 0;
    move || {
        rounds += 1;
        if rounds > 1 {
            loom::skip_branch();
        }
        thread::yield_now();
    }
}

/// Waits for the flag.
pub fn wait_for(flag: &AtomicBool) {
    let mut relax = relax();
    while !flag.load(Ordering::Relaxed) {
        relax();
    }
}

impl Machine {
    /// All CPUs run in user mode.
    pub fn new(fault: Fault) -> Arc<Self> {
        let cpu = || {
            let (interrupt, domain) = (AtomicBool::new(false), AtomicU32::new(0));
            let (left, is_stuck) = (Plain::default(), AtomicBool::new(false));
            Cpu { quiescent: Quiescent::new(), interrupt, domain, left, is_stuck }
        };
        let is_over = AtomicBool::new(false);
        Arc::new(Self { lock: Lock::new(), cpus: [cpu(), cpu(), cpu()], fault, is_over })
    }

    /// A slow entry: the lock is ours. Takes the work left to this CPU meanwhile.
    pub fn enter(&self, me: usize) -> Left {
        let cpu = &self.cpus[me];
        if self.fault == Fault::QuiescentTooEarly {
            cpu.quiescent.begin();
        }
        if self.lock.announce() {
            if self.fault == Fault::QuiescentTooEarly {
                cpu.quiescent.end();
            }
            let nothing = cpu.left.read(|left| *left);
            let judged = matches!(self.fault, Fault::None | Fault::QuiescentTooEarly);
            assert!(!judged || nothing == Left::default(), "something was left to a CPU that did not wait");
            return Left::default();
        }
        if self.fault == Fault::RunsTooEarly {
            cpu.quiescent.begin();
            cpu.quiescent.end();
            cpu.is_stuck.store(true, Ordering::Relaxed);
            self.lock.wait(relax());
            cpu.is_stuck.store(false, Ordering::Relaxed);
            return cpu.take_left();
        }
        if self.fault == Fault::LooksTooEarly {
            let left = cpu.take_left();
            cpu.quiescent.wait(&self.lock, relax());
            return left;
        }
        cpu.quiescent.wait(&self.lock, relax());
        let left = cpu.take_left();
        if self.fault == Fault::Forgets { Left::default() } else { left }
    }

    /// Gives the lock back.
    pub fn leave(&self) {
        self.lock.release();
    }

    /// In user mode: whether an interrupt came, which the caller takes.
    pub fn is_interrupted(&self, me: usize) -> bool {
        self.cpus[me].interrupt.swap(false, Ordering::Relaxed)
    }

    /// A place in user mode: if an interrupt came, it is taken.
    pub fn user(&self, me: usize) -> Left {
        if !self.is_interrupted(me) {
            return Left::default();
        }
        let left = self.enter(me);
        self.leave();
        left
    }

    /// With the lock: sends an interrupt.
    pub fn send(&self, to: usize) {
        self.cpus[to].interrupt.store(true, Ordering::Relaxed);
    }

    /// With the lock: stops a CPU.
    pub fn stop(&self, which: usize) {
        match self.fault {
            Fault::StopsNone => {}
            Fault::DoesNotWait => self.send(which),
            Fault::RunsTooEarly => {
                let (cpu, mut relax) = (&self.cpus[which], relax());
                let look = || {
                    assert!(!cpu.is_stuck.load(Ordering::Relaxed), "two CPUs wait for each other");
                    relax()
                };
                cpu.quiescent.stop(|| self.send(which), look);
            }
            _ => self.cpus[which].quiescent.stop(|| self.send(which), relax()),
        }
    }

    /// With the lock, of a CPU that is stopped: leaves it something to do.
    pub fn leave_to(&self, which: usize, add: impl FnOnce(&mut Left)) {
        self.cpus[which].left.change(add);
    }

    /// After a change that CPUs in `domain` may not know of: stops those, and gives them.
    pub fn stop_in(&self, me: usize, others: usize, domain: u32) -> impl Iterator<Item = usize> {
        if self.fault != Fault::NoFence {
            fence(Ordering::SeqCst);
        }
        // Acquire: all that a CPU did there, before it said that it is elsewhere, is done.
        let inside = move |which: &usize| *which != me && self.cpus[*which].domain.load(Ordering::Acquire) == domain;
        (0..others + 1).filter(inside).inspect(|which| self.stop(*which))
    }

    /// On the fast path, without the lock: to another space. Loading the root is a serialising instruction.
    pub fn go(&self, me: usize, domain: u32) {
        if self.fault == Fault::RootFirst {
            fence(Ordering::SeqCst);
        }
        self.cpus[me].domain.store(domain, Ordering::Release);
        if self.fault != Fault::RootFirst {
            fence(Ordering::SeqCst);
        }
    }

    /// From user mode to sleep.
    pub fn sleep(&self, me: usize) -> Left {
        let left = self.enter(me);
        self.cpus[me].quiescent.begin();
        self.leave();
        left
    }

    /// From now on nobody sends an interrupt.
    pub fn end(&self) {
        self.is_over.store(true, Ordering::Release);
    }

    /// Does nothing until an interrupt comes.
    pub fn wait_for_interrupt(&self, me: usize) {
        let (interrupt, mut relax) = (&self.cpus[me].interrupt, relax());
        loop {
            let is_over = self.is_over.load(Ordering::Acquire);
            if interrupt.load(Ordering::Relaxed) {
                break;
            }
            assert!(!is_over, "nobody wakes it");
            relax();
        }
        interrupt.swap(false, Ordering::Relaxed);
    }

    /// Sleeps until an interrupt comes; then the lock is ours.
    pub fn halt(&self, me: usize) -> Left {
        let cpu = &self.cpus[me];
        self.wait_for_interrupt(me);
        if self.fault == Fault::SleptAndForgets {
            if self.lock.announce() {
                cpu.quiescent.end();
                return Left::default();
            }
            self.lock.wait(relax());
            cpu.quiescent.end();
            return cpu.take_left();
        }
        cpu.quiescent.wake(&self.lock, relax());
        cpu.take_left()
    }
}

impl Cpu {
    fn take_left(&self) -> Left {
        self.left.change(std::mem::take)
    }
}
