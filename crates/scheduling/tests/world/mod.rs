//! A machine of several CPUs, simulated: the nucleus's side of the protocol and threads that run, wait and wake each other.
//! Time goes in ticks, of which a slice has [`SLICE`]. After every step [`Machine::check`] looks for threads that were lost.

use abi::sched::{Event, IDLE, LoadTable, Notice, ThreadWord};
use abi::{Error, MAX_THREADS};
use scheduling::policy::{Instance, World};
use std::collections::VecDeque;
use std::sync::atomic::{AtomicU32, AtomicU64};

/// Ticks of a slice.
pub const SLICE: u64 = 10;

/// Ticks of a period of shares.
pub const PERIOD: u64 = 10 * SLICE;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum State {
    Running,
    Ready,
    Blocked,
    Ended,
}

#[derive(Clone, Debug)]
pub struct Thread {
    pub state: State,
    pub cpu: usize,
    pub priority: u8,
    /// Its share of time, in percent; 0 = all.
    pub share: u8,
    /// A bit for each CPU on which it may run.
    pub allowed: u64,
    /// Ticks left of its slice, and used in all.
    left: u64,
    pub used: u64,
    in_ring: bool,
    /// How often it went to another CPU.
    pub moves: u64,
}

/// The state of the nucleus.
pub struct Nucleus {
    pub threads: Vec<Thread>,
    rings: Vec<VecDeque<usize>>,
    running: Vec<Option<usize>>,
    cpus: usize,
    /// Ticks so far.
    pub now: u64,
    /// Hand-overs made and refused.
    pub handed: u64,
    pub refused: u64,
    /// Woken while an instance is at work, which then must look again.
    pub surprise: Option<usize>,
}

/// The whole machine.
pub struct Machine {
    pub nucleus: Nucleus,
    pub instances: Vec<Instance>,
    pub load_table: Box<LoadTable>,
}

struct View<'a> {
    cpu: usize,
    nucleus: &'a mut Nucleus,
    load_table: &'a LoadTable,
}

impl World for View<'_> {
    fn cpu(&self) -> usize {
        self.cpu
    }
    fn load_table(&self) -> &LoadTable {
        self.load_table
    }
    fn take_ready(&mut self) -> Option<ThreadWord> {
        let number = self.nucleus.rings[self.cpu].pop_front()?;
        self.nucleus.threads[number].in_ring = false;
        Some(self.nucleus.word(number))
    }
    fn time(&self) -> [u64; 2] {
        [self.nucleus.now, PERIOD]
    }
    fn hand(&mut self, cpu: usize, number: usize) -> u64 {
        self.nucleus.surprise();
        let outcome = self.nucleus.hand(cpu, number);
        match outcome {
            Ok(()) => self.nucleus.handed += 1,
            Err(_) => self.nucleus.refused += 1,
        }
        outcome.map_or_else(|error| error as u64, |()| 0)
    }
}

impl Nucleus {
    fn word(&self, number: usize) -> ThreadWord {
        let thread = &self.threads[number];
        let word = ThreadWord::new(number, thread.priority).with_share(thread.share);
        if thread.allowed.count_ones() == 1 { word.pinned() } else { word }
    }

    fn post(&mut self, number: usize) {
        if !self.threads[number].in_ring {
            self.threads[number].in_ring = true;
            self.rings[self.threads[number].cpu].push_back(number);
        }
    }

    fn surprise(&mut self) {
        if let Some(number) = self.surprise.take() {
            self.wake(number);
        }
    }

    pub fn wake(&mut self, number: usize) {
        if self.threads[number].state == State::Blocked {
            self.threads[number].state = State::Ready;
            self.post(number);
        }
    }

    fn hand(&mut self, cpu: usize, number: usize) -> Result<(), Error> {
        if number == 0 || number >= self.threads.len() {
            return Err(Error::NotRunnable);
        }
        let thread = &mut self.threads[number];
        if thread.state != State::Ready || thread.in_ring {
            return Err(Error::NotRunnable);
        }
        if cpu >= self.cpus || thread.allowed >> cpu & 1 == 0 {
            return Err(Error::OtherCpu);
        }
        thread.moves += u64::from(thread.cpu != cpu);
        thread.cpu = cpu;
        self.post(number);
        Ok(())
    }

    fn run(&mut self, cpu: usize, number: usize) -> Result<(), Error> {
        self.surprise();
        if !self.rings[cpu].is_empty() {
            return Err(Error::Again);
        }
        if number == IDLE {
            self.running[cpu] = None;
            return Ok(());
        }
        match self.threads.get_mut(number) {
            Some(thread) if thread.state == State::Ready && thread.cpu == cpu => {
                thread.state = State::Running;
                self.running[cpu] = Some(number);
                Ok(())
            }
            _ => Err(Error::NotRunnable),
        }
    }
}

impl Machine {
    /// A machine on which nothing runs.
    pub fn new(cpus: usize) -> Self {
        let notice = || Notice {
            queued: AtomicU32::new(0),
            spares: std::array::from_fn(|_| AtomicU32::new(0)),
            round: AtomicU32::new(0),
            rank: AtomicU32::new(0),
            rests: AtomicU32::new(0),
        };
        let nobody = Thread {
            state: State::Ended,
            cpu: 0,
            priority: 0,
            share: 0,
            allowed: 0,
            left: 0,
            used: 0,
            in_ring: false,
            moves: 0,
        };
        let mut machine = Self {
            nucleus: Nucleus {
                threads: vec![nobody],
                rings: vec![VecDeque::new(); cpus],
                running: vec![None; cpus],
                cpus,
                now: 0,
                handed: 0,
                refused: 0,
                surprise: None,
            },
            instances: (0..cpus).map(|_| Instance::new()).collect(),
            load_table: Box::new(LoadTable {
                cpus: AtomicU64::new(u64::MAX >> (64 - cpus)),
                idle: AtomicU64::new(0),
                rounds: std::array::from_fn(|_| AtomicU32::new(0)),
                notices: std::array::from_fn(|_| notice()),
            }),
        };
        (0..cpus).for_each(|cpu| machine.enter(cpu, Event::Choose));
        machine
    }

    /// A new thread, which is blocked.
    pub fn thread(&mut self, cpu: usize, priority: u8, allowed: u64) -> usize {
        let number = self.nucleus.threads.len();
        assert!(number < MAX_THREADS && allowed >> cpu & 1 != 0);
        let nobody = self.nucleus.threads[0].clone();
        let thread = Thread { state: State::Blocked, cpu, priority, allowed, left: SLICE, ..nobody };
        self.nucleus.threads.push(thread);
        number
    }

    /// A thread that runs for ever.
    pub fn hog(&mut self, cpu: usize, priority: u8) -> usize {
        let number = self.thread(cpu, priority, u64::MAX);
        self.wake(number);
        number
    }

    /// So many of them on CPU 0.
    pub fn hogs(&mut self, count: usize, priority: u8) {
        for _ in 0..count {
            self.hog(0, priority);
        }
    }

    pub fn running(&self, cpu: usize) -> Option<usize> {
        self.nucleus.running[cpu]
    }

    fn enter(&mut self, cpu: usize, event: Event) {
        let Self { nucleus, instances, load_table } = self;
        let mut word = ThreadWord(0);
        if let Some(number) = nucleus.running[cpu].take()
            && event != Event::Choose
        {
            word = nucleus.word(number);
            nucleus.threads[number].state = State::Ready;
            if event != Event::Preempted {
                nucleus.threads[number].left = SLICE;
            }
        }
        let unread = !nucleus.rings[cpu].is_empty();
        let mut view = View { cpu, nucleus, load_table };
        let instance = &mut instances[cpu];
        let at_once = if event == Event::Yielded && !unread { instance.yielded(word, view.load_table) } else { None };
        let mut number = at_once.unwrap_or_else(|| instance.enter(&mut view, event as u64, word));
        // Each refusal takes a thread out of the queues.
        for _ in 0..2 * MAX_THREADS {
            match view.nucleus.run(cpu, number) {
                Ok(()) => return,
                Err(error) => number = instance.refused(&mut view, number, error as u64),
            }
        }
        panic!("CPU {cpu} finds nothing to dispatch");
    }

    /// Interrupts each CPU that has a new thread with precedence over the running one.
    pub fn deliver_interrupts(&mut self) {
        while let Some((cpu, event)) = (0..self.nucleus.cpus).find_map(|cpu| {
            let nucleus = &self.nucleus;
            let most = nucleus.rings[cpu].iter().map(|number| nucleus.threads[*number].priority).max()?;
            match nucleus.running[cpu] {
                None => Some((cpu, Event::Choose)),
                Some(number) => (most > nucleus.threads[number].priority).then_some((cpu, Event::Preempted)),
            }
        }) {
            self.enter(cpu, event);
        }
    }

    pub fn wake(&mut self, number: usize) {
        self.nucleus.wake(number);
        self.deliver_interrupts();
    }

    /// Blocks the thread that runs on this CPU.
    pub fn block(&mut self, cpu: usize) {
        self.stop(cpu, State::Blocked);
    }

    /// Ends the thread that runs on this CPU.
    pub fn end(&mut self, cpu: usize) {
        self.stop(cpu, State::Ended);
    }

    fn stop(&mut self, cpu: usize, state: State) {
        if let Some(number) = self.nucleus.running[cpu] {
            self.nucleus.threads[number].state = state;
            self.nucleus.threads[number].left = SLICE;
            self.enter(cpu, Event::Choose);
            self.deliver_interrupts();
        }
    }

    pub fn yields(&mut self, cpu: usize) {
        if self.nucleus.running[cpu].is_some() {
            self.enter(cpu, Event::Yielded);
            self.deliver_interrupts();
        }
    }

    /// The thread gets another priority.
    pub fn prioritize(&mut self, number: usize, priority: u8) {
        self.nucleus.threads[number].priority = priority;
        if self.nucleus.threads[number].state == State::Ready {
            self.nucleus.post(number);
        }
        self.deliver_interrupts();
    }

    /// The instance dies: the standby gets the ready threads of its CPU, and knows nothing else.
    pub fn kill_instance(&mut self, cpu: usize) {
        self.instances[cpu] = Instance::new();
        for number in 1..self.nucleus.threads.len() {
            if self.nucleus.threads[number].cpu == cpu && self.nucleus.threads[number].state == State::Ready {
                self.nucleus.post(number);
            }
        }
        if self.nucleus.running[cpu].is_none() {
            self.enter(cpu, Event::Choose);
        }
        self.deliver_interrupts();
    }

    /// The thread gets this share of time, or, with 0, all of it. Only the tests of shares call it.
    #[allow(dead_code)]
    pub fn give_share(&mut self, number: usize, percent: u8) {
        self.nucleus.threads[number].share = percent;
        if self.nucleus.threads[number].state == State::Ready {
            self.nucleus.post(number);
        }
        self.deliver_interrupts();
    }

    /// A tick on this CPU.
    pub fn tick(&mut self, cpu: usize) {
        let Some(number) = self.nucleus.running[cpu] else { return };
        let thread = &mut self.nucleus.threads[number];
        thread.used += 1;
        thread.left -= 1;
        if thread.left == 0 {
            self.enter(cpu, Event::SliceEnded);
            self.deliver_interrupts();
        }
    }

    /// So many ticks on all CPUs.
    pub fn run(&mut self, ticks: u64) {
        for _ in 0..ticks {
            self.nucleus.now += 1;
            (0..self.nucleus.cpus).for_each(|cpu| self.tick(cpu));
        }
        self.check();
    }

    /// Nothing is lost, nothing runs twice or where it may not, and no CPU rests that has something to do.
    pub fn check(&self) {
        let nucleus = &self.nucleus;
        for (number, thread) in nucleus.threads.iter().enumerate().skip(1) {
            let places = nucleus.running.iter().filter(|running| **running == Some(number)).count();
            assert_eq!(places, usize::from(thread.state == State::Running), "thread {number}: {thread:?}");
            assert!(thread.allowed >> thread.cpu & 1 != 0, "thread {number}: {thread:?}");
            if thread.state == State::Ready {
                let queued = self.instances[thread.cpu].queues.level(number).is_some();
                assert!(queued || thread.in_ring, "thread {number} is lost: {thread:?}");
                assert!(
                    nucleus.running[thread.cpu].is_some(),
                    "thread {number} waits for a CPU that rests: {thread:?}"
                );
            }
        }
    }

    /// Largest difference of the time that these threads used since `before`, over their mean.
    pub fn spread(&self, before: &[u64]) -> f64 {
        let used: Vec<u64> =
            before.iter().enumerate().map(|(at, old)| self.nucleus.threads[at + 1].used - old).collect();
        let mean = used.iter().sum::<u64>() as f64 / used.len() as f64;
        (used.iter().max().unwrap_or(&0) - used.iter().min().unwrap_or(&0)) as f64 / mean
    }

    /// Time used by all threads so far.
    pub fn used(&self) -> Vec<u64> {
        self.nucleus.threads.iter().skip(1).map(|thread| thread.used).collect()
    }
}
