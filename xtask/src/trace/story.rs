//! The story in the records of a trace: when each thread ran, its calls, and its wake-ups.

use std::collections::BTreeMap;

/// A domain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Domain {
    /// Unique since boot.
    pub number: u32,
    /// As its maker called it.
    pub name: String,
}

/// A thread, or the seat of a CPU's scheduler (number 0).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Thread {
    /// May come again for a later thread.
    pub number: u16,
    /// Number of the domain in which it began.
    pub home: u32,
    /// Of a seat: which CPU's; else 0.
    pub cpu: u8,
}

/// How a call ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// By its return.
    Returned,
    /// The chain was cut: a death, a deadline.
    Cut,
    /// It goes on after the window.
    Later,
}

/// From a domain into another and back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    /// Which thread, by its place in [`Story::threads`].
    pub thread: usize,
    /// Numbers of the domains.
    pub from: u32,
    /// See `from`.
    pub to: u32,
    /// Address at which the callee is entered.
    pub service: u64,
    /// Number of the method, for services that have one.
    pub method: u16,
    /// Low half of the badge: the method or part of the service.
    pub badge: u32,
    /// Pages that it shows in a window.
    pub pages: u8,
    /// Made by the nucleus for a thread that faulted.
    pub upcall: bool,
    /// It was open already when the window began.
    pub before: bool,
    /// Ticks; those of the window where it reaches beyond.
    pub begin: u64,
    /// See `begin`.
    pub end: u64,
    /// Ticks between them in which the thread had a CPU.
    pub ran: u64,
    /// How it ended.
    pub ended: Ended,
}

/// The activity of a CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Who {
    /// A thread (by its place), in the domain with this number.
    Thread(usize, u32),
    /// Nothing.
    Idle,
}

/// A time in which a CPU does one thing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// Number of the CPU.
    pub cpu: u8,
    /// Its activity.
    pub who: Who,
    /// Ticks.
    pub begin: u64,
    /// Ticks.
    pub end: u64,
    /// The thread is put onto this CPU, not only in another domain.
    pub switch: bool,
}

/// A thread became ready.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wake {
    /// When.
    pub time: u64,
    /// Span in which that happened.
    pub from: usize,
    /// By an interrupt, or from inside the nucleus.
    pub interrupt: bool,
    /// First span of the woken thread, if that is in the window.
    pub to: Option<usize>,
}

/// Something that takes no time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Happening {
    /// Address and the processor's code.
    PageFault(u64, u64),
    /// The vector.
    Exception(u64),
    /// The vector.
    Interrupt(u64),
    /// To the domain with this number, with this error.
    Refused(u32, u64),
    /// A line for the log.
    Log(String),
    /// The domain with this number was made.
    Domain(u32),
    /// It died with this status.
    Died(u32, u64),
}

/// An event that begins or ends, in the order in which it does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// A call, by its place.
    Enter(usize),
    /// See `Enter`.
    Leave(usize),
    /// A span, by its place.
    Start(usize),
    /// See `Start`.
    Stop(usize),
    /// Something on the CPU with this number, during the span that goes on there.
    Happens(u8, Happening),
}

/// See the module.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Story {
    /// All domains since boot, by number.
    pub domains: BTreeMap<u32, Domain>,
    /// All threads since boot.
    pub threads: Vec<Thread>,
    /// Numbers of the CPUs that left records, from the lowest on.
    pub cpus: Vec<u8>,
    /// Crossings.
    pub calls: Vec<Call>,
    /// Those of a CPU follow each other, all of them begin in the order of time.
    pub spans: Vec<Span>,
    /// Threads woken.
    pub wakes: Vec<Wake>,
    /// All steps with their ticks.
    pub steps: Vec<(u64, Step)>,
    /// First and last tick of the window.
    pub begin: u64,
    /// See `begin`.
    pub end: u64,
}

impl Story {
    /// How many CPUs there are to report, one at least.
    pub fn cpu_count(&self) -> usize {
        self.cpus.len().max(1)
    }

    /// The unit of ticks. The clock goes on with the instructions of all CPUs, which take turns: of one it counts what
    /// this one executes, of several not only that.
    pub fn unit(&self) -> &'static str {
        if self.cpu_count() > 1 { "ticks" } else { "instructions" }
    }

    /// The place of a CPU among those that left records.
    pub fn cpu_place(&self, cpu: u8) -> usize {
        self.cpus.iter().position(|number| *number == cpu).unwrap_or(0)
    }

    /// The name of a domain, for people.
    pub fn name(&self, domain: u32) -> &str {
        self.domains.get(&domain).map_or("?", |domain| &domain.name)
    }
}
