//! Labels of programs, and what callers may do. Our own are S = {★} and R = {3}: everybody may call us, and we judge.

use abi::{Error, level};
use interfaces::process::ProcessError;
use loader::startup::{MAX_COMPARTMENTS, Startup};
use runtime::entry::Owned;
use runtime::label::{self, Compartments};
use runtime::op;

const _: () = assert!(MAX_COMPARTMENTS <= op::LABEL_ENTRIES);

/// Answers what the caller may do with a thing of a compartment.
pub static CALLERS: Compartments = Compartments::new();

/// Whether the caller may change what everybody sees, and observe the result.
pub fn caller_is_untainted() -> bool {
    CALLERS.caller_may(0).both()
}

/// Writes a line into the log, which everybody reads, if the caller may tell everybody.
macro_rules! log_for_caller {
    ($($part:tt)*) => {
        if $crate::labels::CALLERS.caller_may(0).change {
            runtime::log_about_program!($($part)*);
        }
    };
}
pub(crate) use log_for_caller;

/// The labels of a program that has compartments.
pub struct Labels {
    /// Its taints, and the handles that it owns.
    pub send: Owned,
    /// The taint that it accepts.
    pub receive: Owned,
}

impl Labels {
    /// Those that the compartments of a launch say. The caller may have a program that is as tainted as itself, or more, and with compartments
    /// that it is in itself, or owns.
    pub fn new(launch: &Startup<'_>) -> Result<Option<Self>, ProcessError> {
        if launch.compartments().next().is_none() {
            return if CALLERS.caller_may(0).change { Ok(None) } else { Err(ProcessError::Flow) };
        }
        if launch.compartments().count() > MAX_COMPARTMENTS {
            return Err(ProcessError::BadLaunch);
        }
        let [send, receive, accepted] =
            [level::ONE, level::TWO, level::STAR].map(|elsewhere| label::label(0, 0, elsewhere));
        let (send, receive, accepted) = (send.map_err(refused)?, receive.map_err(refused)?, accepted.map_err(refused)?);
        for (_, entry) in launch.compartments() {
            let (handle, at) = (entry >> 3, entry & 7);
            let put = |label: &Owned, at| {
                op::label_put(label.entry(), handle, at).map_err(|error| match error {
                    Error::BadArgument => ProcessError::BadLaunch,
                    error => refused(error),
                })
            };
            put(&send, at)?;
            put(&receive, level::THREE)?;
            put(&accepted, level::THREE)?;
        }
        // A caller that may observe {h 3, ★} accepts h, and is tainted by it or owns it.
        if label::may(send.entry()).change && label::may(accepted.entry()).observe {
            Ok(Some(Self { send, receive }))
        } else {
            Err(ProcessError::Flow)
        }
    }

    /// Whether what a compartment contains may become a part of the program: it is tainted with it, or owns it.
    pub fn contain(&self, compartment: u64) -> bool {
        let handle = compartment >> 3;
        let mut is_there = false;
        // There are fewer than one answer tells.
        let _ = op::label_read(self.send.entry(), 0, |other, at| {
            is_there |= other == handle && matches!(at, level::STAR | level::THREE);
        });
        is_there
    }
}

/// Of labels, which our own account pays for.
fn refused(error: Error) -> ProcessError {
    match error {
        Error::AccountExhausted | Error::TableFull => ProcessError::NoMemory,
        _ => ProcessError::BadLaunch,
    }
}
