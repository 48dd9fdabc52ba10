//! The system description: which components run, with which portals, devices, priority, account and
//! restart policy. It is written as `systems/NAME.toml` and is the only place that says so.
//!
//! The host tool reads the text (feature `host`: [`host::Description`]), checks all of it, with errors
//! that name file, line, cause and remedy, and compiles it to a few hundred bytes (`boot/system` of
//! the boot archive). `roottask` reads those with [`System`], which allocates nothing, trusts nothing
//! and never panics: [`System::parse`] walks every record once; the iterators cannot fail afterwards.
//!
//! # The compiled form
//! Little-endian, no alignment assumed.
//!
//! | bytes | header |
//! |---|---|
//! | 8 | `CAIRNSYS` |
//! | 4 | version ([`VERSION`]) |
//! | 4 | bytes of all of it |
//! | 2, 2 | components, programs |
//! | 2 | number of the shell's component, [`NOBODY`] if there is none |
//! | 2 | compartments |
//!
//! Then one record per compartment, which is its name; one per component, in the order in which they start (so that the
//! owner of a service precedes the holders of portals to it); and one per program. A record begins with its own length
//! in bytes (2); strings are a length byte and UTF-8.
//!
//! | bytes | component |
//! |---|---|
//! | 4 | account in frames |
//! | 1, 1 | priority, highest priority |
//! | 1 | flags: 1 = FPU, 2 = trusted, 4 = CPUs are given, 8 = a device of the device tree, 16 = it has a vault, 32 = it waits for nobody, 64 = it has a share, 128 = it sees the boot archive |
//! | 1 | special entry: 0 none, 1 scheduler, 2 machine, 3 memory, 4 standby, 5 trial, 6 inspect |
//! | 1, 1 | restart: 0 always, 1 never, 2 reboot; deaths per minute answered at once |
//! | 1 | interrupt line, 255 = none |
//! | 1 | order of its portal table |
//! | 2, 2 | first I/O port, number of ports |
//! | 1, 1, 1, 1 | portals, arguments, services, private ones of these |
//! | 2, 2 | longest slice in milliseconds, numbers of threads (0 = as many as there are) |
//! | 1, 1 | percent that its account and its vault get of what the machine has beyond all accounts |
//! | 8 | only if CPUs are given: a bit for each |
//! | 1 | only if it has a share: percent of a CPU's time |
//! | 4 | only if it has a vault: frames of its account |
//! | string, string | name, binary |
//! | 2, 2, string | each portal: index, component, service |
//! | string | each argument |
//! | string | each service, the private ones last |
//! | 1, 1 | to the end, each compartment that it has: number ([`ADMIN`] is that of `admin`), level in its send label |
//!
//! | bytes | program |
//! |---|---|
//! | 4 | account in frames, 0 = what `proc` gives |
//! | 1 | flags: 1 = may inspect the nucleus |
//! | string, string | name, binary |
//! | 1, 1 | to the end, each compartment that it has: number, level in its send label |
#![no_std]
#![forbid(unsafe_code)]

#[cfg(any(test, feature = "host"))]
extern crate std;

#[cfg(feature = "host")]
pub mod host;
pub mod restarts;
mod view;

pub use view::{
    Arguments, Compartments, Component, Components, Error, ErrorKind, Levels, Portal, Portals, Program, Programs,
    Services, System,
};

/// Version of the compiled form.
pub const VERSION: u32 = 8;
/// Begins the compiled form.
pub const MAGIC: &[u8; 8] = b"CAIRNSYS";
/// Bytes of the header.
pub const HEADER_BYTES: usize = 24;
/// Number of no component.
pub const NOBODY: u16 = u16::MAX;
/// Bytes of the longest name: what `DOMAIN_NEW` takes.
pub const MAX_NAME_BYTES: usize = 16;
/// Milliseconds of the longest slice that a description can allow.
pub const MAX_SLICE: u16 = (abi::MAX_SLICE_MICROSECONDS / 1_000) as u16;
/// Most components of a system.
pub const MAX_COMPONENTS: usize = 64;
/// Most names of services that all components of a system have together; programs have as many besides.
pub const MAX_SERVICES: usize = 32;
/// Most compartments of a system.
pub const MAX_COMPARTMENTS: usize = 32;
/// Most compartments that a component or a program has: as many as its startup page names.
pub const MAX_LEVELS: usize = 8;
/// The compartment of the system's own files, which is there without being declared.
pub const SYSTEM_COMPARTMENT: &str = "system";
/// The compartment of what rules the machine, which is there without being declared: who owns it or has it at level 0 ends
/// components, stops the machine, and sees what others there are.
pub const ADMIN_COMPARTMENT: &str = "admin";
/// Its number in the compiled form, behind those that are declared.
pub const ADMIN: u8 = u8::MAX;
const _: () = assert!(MAX_COMPARTMENTS <= ADMIN as usize);
/// Interrupt lines there can be.
pub const INTERRUPT_LINES: u8 = 24;
/// Where a component with [`Special::Trial`] finds the memory: an index that is otherwise unused.
pub const MEMORY_INDEX: usize = 79;
/// No interrupt line.
pub const NO_INTERRUPT: u8 = 255;

/// Frames of all instances of a component on a machine with so many CPUs: a scheduler runs on each, and one more stands by.
pub fn frames_of_all(account: u32, special: Special, cpus: u32) -> u64 {
    let instances = if special == Special::Scheduler { u64::from(cpus) + 1 } else { 1 };
    u64::from(account) * instances
}

/// The entry at `layout::SPECIAL` of a component's portal table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Special {
    /// Nothing.
    None = 0,
    /// The scheduler's seat.
    Scheduler = 1,
    /// The machine: inspection and shutdown.
    Machine = 2,
    /// All free memory.
    Memory = 3,
    /// The standby of the scheduler's seat.
    Standby = 4,
    /// For trials of the nucleus: the machine without the right to choose who schedules, and all free memory
    /// at [`MEMORY_INDEX`].
    Trial = 5,
    /// The machine, to look at the nucleus's lists and nothing else.
    Inspect = 6,
}

impl Special {
    /// All of them, by number.
    pub const ALL: [Special; 7] = [
        Special::None,
        Special::Scheduler,
        Special::Machine,
        Special::Memory,
        Special::Standby,
        Special::Trial,
        Special::Inspect,
    ];

    /// As written in a description.
    pub const fn text(self) -> &'static str {
        match self {
            Special::None => "none",
            Special::Scheduler => "scheduler",
            Special::Machine => "machine",
            Special::Memory => "memory",
            Special::Standby => "standby",
            Special::Trial => "trial",
            Special::Inspect => "inspect",
        }
    }
}

/// The consequence of a component's death.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Restart {
    /// `roottask` starts it again, after a while if it dies again and again: see [`restarts`].
    Always = 0,
    /// It stays dead.
    Never = 1,
    /// The machine stops with a failing status: the system cannot go on without it.
    Reboot = 2,
}

impl Restart {
    /// All of them, by number.
    pub const ALL: [Restart; 3] = [Restart::Always, Restart::Never, Restart::Reboot];

    /// As written in a description.
    pub const fn text(self) -> &'static str {
        match self {
            Restart::Always => "always",
            Restart::Never => "never",
            Restart::Reboot => "reboot",
        }
    }
}

pub(crate) const FLAG_FPU: u8 = 1;
pub(crate) const FLAG_TRUSTED: u8 = 2;
pub(crate) const FLAG_CPUS: u8 = 4;
pub(crate) const FLAG_COMPATIBLE: u8 = 8;
pub(crate) const FLAG_VAULT: u8 = 16;
pub(crate) const FLAG_WAITS_FOR_NOBODY: u8 = 32;
pub(crate) const FLAG_SHARE: u8 = 64;
pub(crate) const FLAG_ARCHIVE: u8 = 128;
pub(crate) const FLAG_INSPECT: u8 = 1;
