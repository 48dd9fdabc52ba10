//! The host's side: text, checks, and the encoder.
//!
//! [`Description::read`] turns TOML into a [`Description`] whose values know their lines;
//! [`Description::check`] compares it with itself and with its [`Surroundings`] and yields a [`Plan`];
//! [`Plan::encode`] makes the bytes that [`crate::System`] reads. Each mistake is a [`Problem`].

mod check;
mod encode;
mod keys;
mod read;

pub use check::{Plan, Surroundings};
pub use keys::{distance, size_in_frames};

use crate::{Restart, Special};
use std::string::String;
use std::vec::Vec;

/// A mistake in a description: where, what is wrong, what to do about it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Problem {
    /// Line of the file, from 1; 0 if the file as a whole is meant.
    pub line: usize,
    /// The cause.
    pub cause: String,
    /// The remedy.
    pub remedy: String,
}

impl Problem {
    /// The problem as a person reads it, with the name of the file.
    pub fn text(&self, file: &str) -> String {
        let place = if self.line == 0 { String::from(file) } else { std::format!("{file}:{}", self.line) };
        std::format!("{place}: {}\n  remedy: {}", self.cause, self.remedy)
    }
}

/// A value and the line it stands in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct At<T> {
    /// The value.
    pub value: T,
    /// The line, from 1.
    pub line: usize,
}

/// A description as it was written.
#[derive(Clone, Debug)]
pub struct Description {
    /// `[memory] size`: frames of the machine it is made for.
    pub memory_frames: At<u64>,
    /// `[memory] reserve`: frames kept for the nucleus, its records and the boot archive.
    pub reserved_frames: u64,
    /// `[[compartment]]`: names.
    pub compartments: Vec<At<String>>,
    /// `[[component]]`, in the order of the file.
    pub components: Vec<ComponentText>,
    /// `[[program]]`.
    pub programs: Vec<ProgramText>,
    /// `[files]`: path in the boot archive and path on the host, relative to the description.
    pub files: Vec<(At<String>, At<String>)>,
    /// `[boot] shell`: the component that runs commands.
    pub shell: Option<At<String>>,
    /// `[boot] run`: commands it runs at the start of the system, whatever comes then.
    pub run: Vec<At<String>>,
    /// `[boot] exec`: commands it runs when none are given.
    pub exec: Option<String>,
    /// `[boot] command_line`: words for the nucleus.
    pub command_line: String,
}

/// A component as it was written.
#[derive(Clone, Debug)]
pub struct ComponentText {
    /// Its name; the line is that of the name.
    pub name: At<String>,
    /// The crate it is built from.
    pub binary: At<String>,
    /// Cargo features of that crate.
    pub features: Vec<String>,
    /// Its quota.
    pub account: At<u32>,
    /// Percent of what the machine has beyond all accounts, which its account has besides.
    pub rest: At<u8>,
    /// The same of its vault.
    pub vault_rest: At<u8>,
    /// Priority of its first thread.
    pub priority: At<u8>,
    /// Highest priority of its threads.
    pub max_priority: At<u8>,
    /// Milliseconds of the longest slice of its threads.
    pub max_slice: u16,
    /// The share of a CPU's time that its threads have ahead of others, in percent; 0 = all.
    pub share: At<u8>,
    /// Numbers of threads that domains on its account may have; 0 = as many as there are.
    pub threads: u16,
    /// It uses floating point.
    pub fpu: bool,
    /// It is outside of the flow rules.
    pub trusted: bool,
    /// It sees the boot archive.
    pub archive: bool,
    /// The entry at `layout::SPECIAL`.
    pub special: At<Special>,
    /// The consequence of its death.
    pub restart: At<Restart>,
    /// Deaths within a minute that are answered at once.
    pub restarts_per_minute: u8,
    /// Interrupt line.
    pub interrupt: Option<At<u8>>,
    /// I/O ports: first, number.
    pub io_ports: Option<At<(u16, u16)>>,
    /// On a machine with a device tree: what its device is compatible with.
    pub compatible: Option<At<String>>,
    /// Portals: component and service.
    pub portals: Vec<At<(String, String)>>,
    /// The CPUs on which its threads may run: a bit for each. `None`: all.
    pub cpus: Option<At<u64>>,
    /// Frames of the account of what it keeps over its death.
    pub vault: Option<u32>,
    /// Arguments.
    pub arguments: Vec<String>,
    /// Names that it alone may publish services under.
    pub services: Vec<At<String>>,
    /// Those of them that only portals of the description lead to.
    pub private: Vec<At<String>>,
    /// It starts when what it has portals to is published.
    pub waits: bool,
    /// Its compartments.
    pub levels: Vec<Level>,
}

/// A program as it was written.
#[derive(Clone, Debug)]
pub struct ProgramText {
    /// Name typed to start it.
    pub name: At<String>,
    /// The crate it is built from.
    pub binary: At<String>,
    /// Frames it may have; 0 = what `proc` gives.
    pub account: u32,
    /// It may look at the nucleus's lists.
    pub inspect: bool,
    /// Its compartments.
    pub levels: Vec<Level>,
}

/// A compartment that a component or a program has when it starts.
#[derive(Clone, Debug)]
pub struct Level {
    /// Which it is.
    pub compartment: At<String>,
    /// The key that says so.
    pub key: &'static str,
    /// Its level in the send label: `abi::level`.
    pub level: u64,
}
