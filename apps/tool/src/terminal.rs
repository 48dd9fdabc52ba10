//! The terminal, key by key, for programs that a person uses while they run.

use alloc::string::{String, ToString};
use alloc::vec::Vec;

use loader::startup::ENTRY;
use runtime::Entry;
use runtime::abi::layout::FIRST_FREE;
use runtime::connection::Direct;
use runtime::idl::Failure;
use runtime::program;
use runtime::protocols::console::{ConsoleClient, ConsoleError};

/// The name of standard output if it is the terminal.
const CONSOLE: &str = "console";
/// The shell's name for the entry to the terminal of a program whose standard input is another one.
const PORTAL: &str = "terminal";

/// The status of what Ctrl-C ended.
const INTERRUPTED: u64 = 130;
/// Keys that come at once.
const MOST: usize = 64;

/// The terminal that a program writes to.
pub struct Terminal {
    keys: ConsoleClient<Direct>,
    is_input: bool,
}

impl Terminal {
    /// The terminal, if standard output is one, and there is a person at it. It is not read by lines from now on.
    pub fn open() -> Option<Self> {
        let streams = program::startup()?.streams;
        if streams[1] != CONSOLE {
            return None;
        }
        let input = (streams[0] == ENTRY).then_some(Entry(FIRST_FREE));
        let portal = program::portal(PORTAL);
        let keys = ConsoleClient(Direct(portal.or(input)?));
        // A pipe has nothing of the kind.
        keys.read_keys(&mut []).ok()?;
        Some(Self { keys, is_input: portal.is_none() })
    }

    /// Whether standard input is the terminal.
    pub fn is_input(&self) -> bool {
        self.is_input
    }

    /// Waits for what a person types. `Err` = why nothing comes. Ctrl-C ends the program, as the shell does at the same time.
    pub fn read(&self) -> Result<Vec<u8>, String> {
        let mut bytes = [0; MOST];
        let count = match self.keys.read_keys(&mut bytes) {
            // Ctrl-C, or the shell has the terminal: a program killed for it ends with the same status.
            Err(Failure::Refused(ConsoleError::Interrupted)) => program::exit(INTERRUPTED),
            outcome => outcome.map_err(|error| error.to_string())?,
        };
        Ok(bytes.get(..count).unwrap_or_default().to_vec())
    }
}
