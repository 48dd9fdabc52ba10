//! What a domain does to its own labels, and where handles come from.

use super::operands::{Operands, in_stretches};
use crate::control::flows::{self, CHANGE, Change};
use crate::memory::labels;
use crate::objects::{Outcome, Stop};
use crate::pointer::Nucleus;
use abi::{Error, op};
use core::cell::Cell;
use flow::rules::{self, Labels};
use flow::{Exhausted, Handle, Handles, Level, Next, Pool};

/// Where handles come from, once there is a key.
static HANDLES: Nucleus<Cell<Option<Handles>>> = Nucleus::new(Cell::new(None));

/// Entries that are written into a message area at once.
const ENTRIES: usize = 32;

pub fn set_key(operands: &Operands) -> Result<u64, Error> {
    let handles = HANDLES.get(operands.held());
    if handles.get().is_some() {
        return Err(Error::Busy);
    }
    // SAFETY: the message area is a page of the nucleus.
    handles.set(Some(Handles::new(unsafe { *(operands.0.message_kernel as *const [u64; 2]) })));
    Ok(0)
}

/// What a domain does to its labels.
#[derive(Clone, Copy)]
enum Deed {
    /// It owns a handle.
    Own(Handle),
    /// Its send label has another level.
    Send(Handle, Level),
    /// Its receive label has another level.
    Receive(Handle, Level),
    /// Explicit mode begins or ends.
    Explicit(bool),
}

impl Deed {
    /// What becomes of the labels.
    fn made(self, pool: &mut Pool, own: &Labels) -> Result<Result<Labels, Error>, Exhausted> {
        let (mut send, mut receive, mut is_explicit) = (None, None, own.is_explicit);
        match self {
            Self::Own(handle) => send = Some(pool.set(own.send, handle, Level::Star)?),
            Self::Send(handle, level) => match rules::raised_at(pool, own.send, handle, level)? {
                Some(raised) => send = Some(raised),
                None => return Ok(Err(Error::NoRight)),
            },
            Self::Receive(handle, level) => match rules::accepted_at(pool, own, handle, level)? {
                Some(accepted) => receive = Some(accepted),
                None => return Ok(Err(Error::NoRight)),
            },
            Self::Explicit(is) => is_explicit = is,
        }
        let send = send.unwrap_or_else(|| pool.keep(own.send));
        let receive = receive.unwrap_or_else(|| pool.keep(own.receive));
        Ok(Ok(Labels { send, receive, is_explicit }))
    }
}

pub fn label(operands: &Operands) -> Outcome {
    let own = operands.own().labels();
    match operands.word(0) {
        op::LABEL_HANDLE => {
            let handle = new_handle(operands)?;
            change(operands, Deed::Own(handle))?;
            Ok(handle.number())
        }
        op::LABEL_SEND => change(operands, Deed::Send(handle(operands)?, level(operands)?)),
        op::LABEL_RECEIVE => change(operands, Deed::Receive(handle(operands)?, level(operands)?)),
        op::LABEL_EXPLICIT => match operands.word(1) {
            is @ 0..=1 => change(operands, Deed::Explicit(is == 1)),
            _ => Err(Error::BadArgument.into()),
        },
        op::LABEL_LEVELS => {
            let handle = handle(operands)?;
            Ok(labels::with(operands.held(), operands.own().account, |pool| {
                let [send, receive] = [own.send, own.receive].map(|label| pool.get(label, handle) as u64);
                send | receive << 3
            }))
        }
        op::LABEL_READ => {
            let label = match operands.word(1) {
                0 => own.send,
                1 => own.receive,
                _ => return Err(Error::BadArgument.into()),
            };
            // SAFETY: the message area is a page of the nucleus.
            let area = unsafe { &mut *(operands.0.message_kernel as *mut [u64; ENTRIES]) };
            let position = u32::try_from(operands.word(2)).unwrap_or(u32::MAX);
            Ok(labels::with(operands.held(), operands.own().account, |pool| {
                pool.read(label, position, area);
                pool.entries(label) as u64 | (label.default as u64) << 32
            }))
        }
        _ => Err(Error::BadArgument.into()),
    }
}

fn handle(operands: &Operands) -> Result<Handle, Error> {
    Handle::new(operands.word(1)).ok_or(Error::BadArgument)
}

fn level(operands: &Operands) -> Result<Level, Error> {
    let level = usize::try_from(operands.word(2)).ok().and_then(|level| Level::ALL.get(level));
    level.copied().ok_or(Error::BadArgument)
}

/// Changes the labels of the caller's domain, in steps.
fn change(operands: &Operands, deed: Deed) -> Outcome {
    let mut outcome = Ok(Change::Goes);
    in_stretches(operands, || {
        outcome = flows::change_step(operands.0, &mut |pool, own| deed.made(pool, own));
        matches!(outcome, Ok(Change::Goes))
    });
    match outcome? {
        Change::Done => Ok(0),
        Change::Goes | Change::Cut => Err(Stop::Repeat),
    }
}

/// A handle that nobody had before. Who makes its operation again has the same one.
fn new_handle(operands: &Operands) -> Result<Handle, Stop> {
    let (progress, handles) = (&operands.0.progress, HANDLES.get(operands.held()));
    if let Some(handle) = (progress.get() & !CHANGE).checked_sub(1).and_then(Handle::new) {
        return Ok(handle);
    }
    let mut made = handles.get().ok_or(Error::Empty)?;
    let mut next = Next::Again;
    in_stretches(operands, || {
        made = handles.get().unwrap_or(made);
        next = made.step();
        handles.set(Some(made));
        next == Next::Again
    });
    let Next::Handle(handle) = next else { return Err(Error::LimitReached.into()) };
    progress.update(|progress| progress & CHANGE | (handle.number() + 1));
    Ok(handle)
}
