//! Which part of a trace is of interest.

use super::story::Domain;
use std::collections::BTreeMap;
use trace::{Kind, Record};

/// The shell's note in the log when it begins to take commands.
const READY: &[u8] = b"ready after ";

/// See the module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Window {
    /// All of it, to the end of the machine.
    Everything,
    /// From where the component with this name, the shell, is ready, to the end of the machine.
    Commands(String),
    /// From one byte of the trace to another.
    Bytes(usize, usize),
}

impl Window {
    /// Whether it begins with this record, which is at this byte.
    pub fn begins_with(&self, at: usize, record: &Record, domains: &BTreeMap<u32, Domain>) -> bool {
        match self {
            Self::Everything => true,
            Self::Commands(shell) => {
                let from_shell = domains.get(&record.domain).is_some_and(|domain| domain.name == *shell);
                from_shell && record.kind == Kind::Log && record.text().starts_with(READY)
            }
            Self::Bytes(begin, _) => at >= *begin,
        }
    }

    /// Byte at which it ends; later parts of the trace are not looked at.
    pub fn end(&self) -> usize {
        match self {
            Self::Bytes(_, end) => *end,
            _ => usize::MAX,
        }
    }

    /// Whether the machine must have stopped by itself.
    pub fn needs_end(&self) -> bool {
        !matches!(self, Self::Bytes(..))
    }

    /// Why nothing may be in it.
    pub fn why_empty(&self) -> String {
        match self {
            Self::Everything => "the trace is empty".into(),
            Self::Commands(shell) => {
                format!("{shell} never said that it takes commands; ./x trace --boot shows how far it came")
            }
            Self::Bytes(begin, _) => format!("the trace ends before byte {begin}"),
        }
    }
}
