//! The running system as data, for whoever draws it: see [`interfaces::status`].
//!
//! | module | what |
//! |---|---|
//! | [`look`] | asks the nucleus, `roottask` and `names` |
//!
//! # Snapshots
//! A snapshot is taken as a whole, under the lock, and kept as text until [`KEPT`] others were taken. All memory that
//! may be needed is reserved at the start: however many readers there are, this component does not grow.
//!
//! # Rights
//! It holds the machine to look and for nothing else (`special = "inspect"`): it cannot stop it, and cannot call the
//! services whose names it tells any more than others can.
#![no_std]
#![no_main]
#![forbid(unsafe_code)]

extern crate alloc;

mod look;

use alloc::vec::Vec;
use interface::{Reply, Request};
use interfaces::status::{StatusError, StatusServer};
use runtime::op;
use runtime::server::{self, Serve};
use runtime::sync::Mutex;

use look::Looked;

runtime::entry!(main);

/// Activations that serve.
const ACTIVATIONS: usize = 2;
/// Snapshots kept.
const KEPT: usize = 4;
/// Bytes of the longest text; what does not fit is left out, and the text says so.
const TEXT_BYTES: usize = 32 << 10;
/// Nanoseconds within which a snapshot is given to several readers.
const SHARED: u64 = 10_000_000;

const _: () = assert!(TEXT_BYTES >= snapshot::LEAST_BYTES);

struct Kept {
    /// Its number: the time at which it was begun. 0 = none.
    number: u64,
    text: Vec<u8>,
}

struct State {
    kept: [Kept; KEPT],
    looked: Looked,
}

static STATE: Mutex<Option<State>> = Mutex::new(None);

struct Status;

impl Serve for Status {
    fn serve(request: &mut Request<'_>) -> Reply {
        Status.dispatch(request)
    }
}

impl StatusServer for Status {
    fn take(&self, _badge: u64) -> Result<(u64, u64), StatusError> {
        let mut state = STATE.lock();
        let State { kept, looked } = state.as_mut().ok_or(StatusError::NotTold)?;
        let newest = kept.iter().map(|kept| kept.number).max().unwrap_or(0);
        let now = op::clock();
        let shared = kept.iter().find(|kept| kept.number == newest && newest != 0 && now - newest < SHARED);
        if let Some(shared) = shared {
            return Ok((shared.number, shared.text.len() as u64));
        }
        let oldest = kept.iter_mut().min_by_key(|kept| kept.number).ok_or(StatusError::NotTold)?;
        oldest.number = 0;
        if !looked.look(&mut oldest.text) {
            return Err(StatusError::NotTold);
        }
        oldest.number = now.max(newest + 1);
        Ok((oldest.number, oldest.text.len() as u64))
    }

    fn read(&self, _badge: u64, snapshot: u64, offset: u64, into: &mut [u8]) -> Result<usize, StatusError> {
        let state = STATE.lock();
        let kept = state.iter().flat_map(|state| &state.kept).find(|kept| kept.number == snapshot && snapshot != 0);
        let text = &kept.ok_or(StatusError::Gone)?.text;
        let rest = usize::try_from(offset).ok().and_then(|offset| text.get(offset..)).unwrap_or_default();
        let count = rest.len().min(into.len());
        into[..count].copy_from_slice(&rest[..count]);
        Ok(count)
    }
}

fn main() -> u8 {
    let kept = core::array::from_fn(|_| Kept { number: 0, text: Vec::with_capacity(TEXT_BYTES) });
    *STATE.lock() = Some(State { kept, looked: Looked::new() });
    match server::publish::<Status>("status", ACTIVATIONS) {
        Ok(_) => server::park(),
        Err(error) => {
            runtime::log!("cannot serve: {error}");
            1
        }
    }
}
