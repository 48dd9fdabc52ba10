//! The records that `op::INFO` writes to the message area.
//!
//! `(machine, what, position) -> next position`; 0 = this was the last. `position` starts at 0 and is
//! otherwise what the call before returned. An object that came or went meanwhile may be reported twice or not at all.

/// One [`Domain`] record.
pub const DOMAIN: u64 = 0;
/// One [`Thread`] record.
pub const THREAD: u64 = 1;
/// One [`Frames`] record.
pub const FRAMES: u64 = 2;
/// Up to [`LOG_BYTES`] of the kernel log, of the part for nucleus and components; position counts bytes since boot, result = position after them
/// (also when nothing is new). The bytes at the position may be overwritten: then nothing is returned, and the result, from which to
/// go on, is more than so many bytes away.
pub const LOG: u64 = 3;
/// See [`LOG`].
pub const LOG_BYTES: usize = 256;
/// One [`Counters`] record.
pub const COUNTERS: u64 = 4;
/// One [`Portal`] record: of each domain, newest first, the entries that are calls, services left out. A position
/// is the domain's number times 262,144 and the index from which to look; what the call gives may report
/// nothing (`index` 0) after so many entries that lead nowhere, and goes on from there.
pub const PORTAL: u64 = 5;
/// One [`Cpu`] record.
pub const CPU: u64 = 6;
/// As [`LOG`], of the part for what programs say and die of.
pub const LOG_PROGRAMS: u64 = 7;
/// As [`LOG`], of the part for what labels forbade: `[TIME] FROM#NUMBER {0xHANDLE:LEVEL ...} -> TO#NUMBER`, and after that `: TEXT` of a
/// server that judged by itself. The braces have at most four entries of the send label, and are left out if it has none.
pub const LOG_REFUSED: u64 = 10;
/// Bytes of the log's parts, [`LOG`], [`LOG_PROGRAMS`] and [`LOG_REFUSED`]: each holds the last lines, as a ring. A debugger
/// finds them, and after them a word for each with the bytes ever written, at the nucleus's symbol `report::log::LOG`.
pub const LOG_PARTS: [usize; 3] = [12288, 12288, 4096];

/// Whether a list is a part of the log.
pub const fn is_log(list: u64) -> bool {
    matches!(list, LOG | LOG_PROGRAMS | LOG_REFUSED)
}
/// One [`Shape`] record, of the first shape from the position on.
pub const SHAPE: u64 = 8;
/// One [`Code`] record. A position is the shape's number times 1,024 and the byte from which on.
pub const CODE: u64 = 9;

/// Added to the list's number: domains that are tainted are left out, with their threads and entries.
pub const UNTAINTED: u64 = 1 << 32;
/// Added to [`DOMAIN`]: only domains that the caller's domain made, which are dead and not removed yet.
pub const ENDED: u64 = 1 << 33;

/// A record that [`crate::op::INFO`] returns.
pub trait Record: Sized {
    /// The operand of [`crate::op::INFO`] that asks for it.
    const WHAT: u64;

    /// From the bytes that the nucleus wrote: words of eight bytes, little-endian, in the order of the fields. `None` if there are
    /// fewer than it has.
    fn read(bytes: &[u8]) -> Option<Self>;
}

/// A field of a record.
trait Field: Sized {
    /// Takes it off the bytes.
    fn take(bytes: &mut &[u8]) -> Option<Self>;
}

impl Field for u64 {
    fn take(bytes: &mut &[u8]) -> Option<Self> {
        Field::take(bytes).map(u64::from_le_bytes)
    }
}

impl<const COUNT: usize> Field for [u8; COUNT] {
    fn take(bytes: &mut &[u8]) -> Option<Self> {
        let (first, rest) = bytes.split_first_chunk()?;
        *bytes = rest;
        Some(*first)
    }
}

/// Defines a record, and how it is read.
macro_rules! record {
    ($(#[$about:meta])* pub struct $name:ident = $what:ident { $($(#[$field_about:meta])* pub $field:ident: $type:ty,)* }) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug)]
        #[repr(C)]
        pub struct $name {
            $($(#[$field_about])* pub $field: $type,)*
        }

        impl Record for $name {
            const WHAT: u64 = $what;

            fn read(mut bytes: &[u8]) -> Option<Self> {
                Some(Self { $($field: Field::take(&mut bytes)?,)* })
            }
        }
    };
}

record! {
    /// A domain, as `ps` and `domains` show it. Frames are 4 KiB.
    pub struct Domain = DOMAIN {
        /// Number: unique since boot.
        pub number: u64,
        /// Number of the domain that created it.
        pub parent: u64,
        /// Name, padded with zeros.
        pub name: [u8; 16],
        /// 0 alive, 1 dead (waiting for its owner to remove it).
        pub state: u64,
        /// Status it died with (see [`status`]).
        pub status: u64,
        /// Frames charged to its account, those of its child accounts included.
        pub charged: u64,
        /// Frames its account may have.
        pub limit: u64,
        /// Threads that started in it.
        pub threads: u64,
        /// Activations.
        pub activations: u64,
        /// Calls it made.
        pub crossings: u64,
        /// Pages mapped.
        pub pages: u64,
        /// Version of its labels: how often they have changed, from 1.
        pub labels: u64,
        /// Entries of its table.
        pub table: u64,
    }
}

record! {
    /// A thread.
    pub struct Thread = THREAD {
        /// Number, as `THREAD_ID` returns it.
        pub number: u64,
        /// Number of the domain it started in.
        pub home: u64,
        /// Number of the domain it is in now.
        pub now: u64,
        /// 0 running, 1 ready (handed to sched, or in the ring), 3 blocked.
        pub state: u64,
        /// Priority.
        pub priority: u64,
        /// Activations in its chain.
        pub depth: u64,
        /// Nanoseconds of CPU time used.
        pub used: u64,
        /// Number of the CPU on which it runs or ran last, or whose scheduler has it.
        pub cpu: u64,
        /// A bit for each CPU on which it may run.
        pub cpus: u64,
    }
}

record! {
    /// A CPU that the machine has. Those that did not start have only `number`, `identity` and `state`.
    pub struct Cpu = CPU {
        /// Number, from 0.
        pub number: u64,
        /// Number that the machine gives it (x86-64: of its local APIC).
        pub identity: u64,
        /// See [`cpu_state`].
        pub state: u64,
        /// Number of the running thread; 0 = none, or with [`UNTAINTED`] one of a tainted domain.
        pub thread: u64,
        /// Number of the domain that has its scheduler's seat; 0 = none.
        pub scheduler: u64,
        /// Nanoseconds in which it had nothing to do.
        pub idle: u64,
        /// Dispatches by its scheduler.
        pub dispatches: u64,
        /// Interrupts taken, those from other CPUs included.
        pub interrupts: u64,
        /// Threads that were handed to it by others' schedulers or taken by its own.
        pub received: u64,
        /// Interrupts sent to other CPUs, to wake them.
        pub wakes: u64,
        /// Times it stopped another CPU, so that nothing changed during an operation, translations included.
        pub stops: u64,
        /// Times it waited for the nucleus lock.
        pub lock_waits: u64,
        /// Nanoseconds in which it waited for it, in all.
        pub lock_waited: u64,
        /// Nanoseconds of the longest wait.
        pub lock_longest: u64,
        /// In a nucleus built to measure it: the longest non-preemptible section, which is the longest it held the
        /// lock, in ticks; else 0.
        pub longest: u64,
        /// The cause of that section; see [`Counters::longest_by`].
        pub longest_by: u64,
    }
}

impl Cpu {
    /// One that did not start.
    pub const OFF: Self = Self {
        number: 0,
        identity: 0,
        state: cpu_state::OFFLINE,
        thread: 0,
        scheduler: 0,
        idle: 0,
        dispatches: 0,
        interrupts: 0,
        received: 0,
        wakes: 0,
        stops: 0,
        lock_waits: 0,
        lock_waited: 0,
        lock_longest: 0,
        longest: 0,
        longest_by: 0,
    };
}

/// States of a [`Cpu`].
pub mod cpu_state {
    /// It did not start.
    pub const OFFLINE: u64 = 0;
    /// It has nothing to do.
    pub const IDLE: u64 = 1;
    /// A thread runs.
    pub const BUSY: u64 = 2;
    /// Its scheduler runs.
    pub const SCHEDULES: u64 = 3;
}

record! {
    /// A call entry: whom a domain can call.
    pub struct Portal = PORTAL {
        /// Number of the domain in whose table it stands.
        pub from: u64,
        /// Its index there; 0 = none of the entries looked at is a call.
        pub index: u64,
        /// Number of the domain it leads to.
        pub to: u64,
        /// Where it enters that domain: the same for all call entries made from one service.
        pub service: u64,
        /// Its badge.
        pub badge: u64,
        /// The number of its shape.
        pub shape: u64,
    }
}

record! {
    /// A shape: code for a specification of portals.
    pub struct Shape = SHAPE {
        /// Its number; 0 = that with a control word.
        pub number: u64,
        /// Domains that serve through it, or did; and its entries, but for copies.
        pub uses: u64,
        /// Where a call begins in its code, in bytes.
        pub call: u64,
        /// Where a return begins.
        pub back: u64,
        /// Bytes of its code.
        pub length: u64,
        /// Its specification, padded with zeros.
        pub specification: [u8; 48],
    }
}

record! {
    /// A piece of the code of a shape.
    pub struct Code = CODE {
        /// As it is executed; bytes after the last one of the code mean nothing.
        pub bytes: [u8; 128],
    }
}

impl Code {
    /// The position of a byte of a shape's code.
    pub const fn position(shape: u64, byte: u64) -> u64 {
        shape << 10 | byte & 0x3ff
    }
    /// Shape and byte of a position.
    pub const fn place(position: u64) -> (u64, u64) {
        (position >> 10, position & 0x3ff)
    }
}

impl Portal {
    /// The position from which on to look at the entries of a domain.
    pub const fn position(domain: u64, index: u64) -> u64 {
        domain << 18 | index
    }
    /// Domain and index of a position.
    pub const fn place(position: u64) -> (u64, u64) {
        (position >> 18, position & 0x3_ffff)
    }
}

record! {
    /// Where every frame is. `charged + free = total`, to the frame.
    pub struct Frames = FRAMES {
        /// Frames of RAM, without the nucleus image and holes.
        pub total: u64,
        /// Charged to accounts.
        pub charged: u64,
        /// In nobody's account.
        pub free: u64,
        /// Of those charged: kept by the nucleus since boot (image, records, boot archive).
        pub boot: u64,
    }
}

record! {
    /// Counters of the nucleus since boot.
    pub struct Counters = COUNTERS {
        /// Nanoseconds since boot.
        pub uptime: u64,
        /// Page faults handled by upcall.
        pub faults: u64,
        /// Interrupts taken.
        pub interrupts: u64,
        /// Dispatches by `sched`.
        pub dispatches: u64,
        /// Domains that died.
        pub deaths: u64,
        /// Chains that were split.
        pub splits: u64,
        /// Times the standby took over.
        pub standby: u64,
        /// Domains created.
        pub domains: u64,
        /// Restarts of operations at preemption points.
        pub restarts: u64,
        /// Writes of the page-table root on slow paths.
        pub root_writes: u64,
        /// TLB invalidations.
        pub invalidations: u64,
        /// In a nucleus built to measure it: the longest non-preemptible section on any CPU, in ticks; else 0.
        pub longest: u64,
        /// The cause of that section: index of the operation times 64 (odd: from a preemption point on), or the vector of a trap
        /// below 32, or an interrupt's.
        pub longest_by: u64,
        /// Dispatches refused because the ring had something new, and because the thread could not run.
        pub again: u64,
        /// See [`Self::again`].
        pub not_runnable: u64,
    }
}

/// Status words of dead domains: below 256 an exit status, else a cause.
pub mod status {
    /// A program that panicked exits with this, as those of Rust do. The log then shows its stack.
    pub const PANICKED: u64 = 101;
    /// Killed: `KILLED + value` given to `DOMAIN_KILL` is its own.
    pub const KILLED: u64 = 0x100;
    /// Exception: `EXCEPTION + vector`.
    pub const EXCEPTION: u64 = 0x200;
    /// A page fault that nobody handled.
    pub const PAGE_FAULT: u64 = 0x300;
    /// A page fault on the page below a stack; the handler of the page fault says so.
    pub const STACK_OVERFLOW: u64 = 0x500;
    /// A page fault whose page the account has no room for; the handler of the page fault says so.
    pub const NO_ROOM: u64 = 0x600;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_are_read_in_the_order_of_their_fields() {
        let mut bytes = [0; 16 * 8];
        bytes.as_chunks_mut::<8>().0.iter_mut().zip(1_u64..).for_each(|(word, number)| *word = number.to_le_bytes());
        let domain = Domain::read(&bytes).unwrap();
        assert_eq!((domain.number, domain.parent, domain.name[0], domain.name[8]), (1, 2, 3, 4));
        assert_eq!((domain.state, domain.crossings, domain.table), (5, 11, 14));
        let counters = Counters::read(&bytes).unwrap();
        assert_eq!((counters.uptime, counters.restarts, counters.root_writes, counters.not_runnable), (1, 9, 10, 15));
        let portal = Portal::read(&bytes).unwrap();
        assert_eq!((portal.from, portal.index, portal.to, portal.service, portal.badge), (1, 2, 3, 4, 5));
        let thread = Thread::read(&bytes).unwrap();
        assert_eq!((thread.home, thread.priority, thread.used, thread.cpu, thread.cpus), (2, 5, 7, 8, 9));
        let frames = Frames::read(&bytes).unwrap();
        assert_eq!((frames.total, frames.boot), (1, 4));
        let cpu = Cpu::read(&bytes).unwrap();
        assert_eq!((cpu.number, cpu.idle, cpu.interrupts, cpu.received, cpu.longest_by), (1, 6, 8, 9, 16));
        // None of which a byte is missing.
        assert!(Domain::read(&bytes[..14 * 8 - 1]).is_none() && Counters::read(&bytes[..15 * 8 - 1]).is_none());
        assert!(Portal::read(&bytes[..5 * 8 - 1]).is_none() && Cpu::read(&bytes[..16 * 8 - 1]).is_none());
    }
}
