//! Labels of programs, and what callers may do. Our own are S = {★} and R = {3}: everybody may call us, and we judge.

use core::sync::atomic::{AtomicU64, Ordering};

use abi::{Error, level};
use idl::Failure;
use loader::startup::{MAX_COMPARTMENTS, Startup};
use protocols::listing::{self, Record};
use protocols::parent::{ADMIN, ParentClient, ParentError};
use protocols::process::ProcessError;
use runtime::connection::Direct;
use runtime::entry::{Entry, Owned};
use runtime::label::{self, Compartments, Labels};
use runtime::op;

const _: () = assert!(MAX_COMPARTMENTS <= op::LABEL_ENTRIES);

/// Answers what the caller may do with a thing of a compartment.
pub static CALLERS: Compartments = Compartments::new();

/// The compartment `admin`, as things have it that it protects: 8 · handle + level 0. 0 if our parent names none, as when we are not trusted.
static PROTECTED: AtomicU64 = AtomicU64::new(0);

/// Learns which compartment `admin` is.
pub fn find_admin() -> Result<(), Failure<ParentError>> {
    let note = |record: Record<'_>| {
        if record.tag == ADMIN {
            PROTECTED.store(record.value, Ordering::Relaxed);
        }
    };
    match listing::each(|position, into| ParentClient(Direct(Entry::PARENT)).compartments(position, into), note) {
        Err(Failure::Refused(ParentError::NotTrusted)) => Ok(()),
        outcome => outcome,
    }
}

/// Whether the caller owns `admin` or has it at level 0, and is not tainted.
pub fn caller_is_admin() -> bool {
    let admin = PROTECTED.load(Ordering::Relaxed);
    admin != 0 && CALLERS.caller_may(admin).change
}

/// Whether the caller may change what everybody sees, and observe the result.
pub fn caller_is_untainted() -> bool {
    CALLERS.caller_may(0).both()
}

/// Writes a line into the log, which everybody reads, if the caller may inform everybody. Gives whether it did.
macro_rules! log_for_caller {
    ($($part:tt)*) => {{
        let may_log = $crate::labels::CALLERS.caller_may(0).change;
        if may_log {
            runtime::log_about_program!($($part)*);
        }
        may_log
    }};
}
pub(crate) use log_for_caller;

/// The refusal for an error that starting a program never meets if all is well. The log has the error, if the caller may add a line.
pub fn failed(who: &str, error: impl core::fmt::Display) -> ProcessError {
    if log_for_caller!("{who}: {error}") { ProcessError::Failed } else { ProcessError::Unlogged }
}

/// The labels of a program with the compartments of a launch. The caller may have a program that is as tainted as itself, or more, and with compartments
/// that it is in itself, or owns. At level 0 only an owner gives a compartment.
pub fn of_launch(launch: &Startup<'_>) -> Result<Option<Labels>, ProcessError> {
    let compartments = || launch.compartments().map(|(_, entry)| entry);
    if compartments().next().is_none() {
        return if CALLERS.caller_may(0).change { Ok(None) } else { Err(ProcessError::Flow) };
    }
    if compartments().count() > MAX_COMPARTMENTS {
        return Err(ProcessError::TooManyCompartments);
    }
    let labels = Labels::new(compartments()).map_err(refused)?;
    // A caller that may observe {h 3, ★} accepts h, and is tainted by it or owns it. One that may change what has {h ★, 3} owns it.
    let [accepted, owned] = [level::STAR, level::THREE].map(|elsewhere| label::label(0, 0, elsewhere).map_err(refused));
    let (accepted, owned) = (accepted?, owned?);
    for entry in compartments() {
        let (label, at) = if entry & 7 == level::ZERO { (&owned, level::STAR) } else { (&accepted, level::THREE) };
        op::label_put(label.entry(), entry >> 3, at).map_err(refused)?;
    }
    let [send, accepted, owned] = [&labels.send, &accepted, &owned].map(|label| label::may(label.entry()));
    if send.change && accepted.observe && owned.change { Ok(Some(labels)) } else { Err(ProcessError::Flow) }
}

/// The label by which a program or a component with these compartments is judged: as tainted as it may become. 0 stands for all compartments, which it owns.
pub fn judged(compartments: impl Iterator<Item = u64>) -> Result<Owned, Error> {
    let judged = label::label(0, 0, level::ONE)?;
    for compartment in compartments.filter(|compartment| *compartment != 0) {
        let level = if compartment & 7 == level::ONE { level::THREE } else { compartment & 7 };
        op::label_put(judged.entry(), compartment >> 3, level)?;
    }
    Ok(judged)
}

/// Of labels, which our own account pays for.
pub fn refused(error: Error) -> ProcessError {
    match error {
        Error::AccountExhausted | Error::NoFrames => ProcessError::NoMemory,
        Error::TableFull => ProcessError::TooMany,
        Error::BadArgument => ProcessError::NotALevel,
        error => failed("labels", error),
    }
}
