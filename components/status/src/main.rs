//! The running system as data, for pages that draw it: see [`protocols::status`].
//!
//! | module | what |
//! |---|---|
//! | [`look`] | asks the nucleus, `roottask` and `names` |
//!
//! # Each status
//! A status is taken as a whole, under the lock, and kept as text until [`KEPT`] others were taken. One serves
//! for a second: however often it is asked, this component takes no more of them. All memory that may be needed is
//! reserved at the start: however many readers there are, it does not grow.
//!
//! # Rights
//! It holds the machine to look and for nothing else (`special = "inspect"`): it cannot stop it, and cannot call the
//! services whose names it reports any more than others can. With more rights than it needs it does not serve.
#![no_std]
#![no_main]
#![forbid(unsafe_code)]

extern crate alloc;

mod look;

use abi::rights::{self, Kind};
use idl::{Reply, Request};
use protocols::status::{StatusError, StatusServer};
use runtime::server::{self, Serve};
use runtime::sync::Mutex;
use runtime::{Entry, op};
use status_json::kept::{Kept, Missing};

use look::Looked;

runtime::entry!(main);

/// Activations that serve.
const ACTIVATIONS: usize = 2;
/// Texts kept: a reader has at least three seconds.
const KEPT: usize = 4;
/// Bytes of the longest text; the rest is left out, and the text says so.
const TEXT_BYTES: usize = 32 << 10;

const _: () = assert!(TEXT_BYTES >= status_json::LEAST_BYTES);

struct State {
    kept: Kept,
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
        let State { kept, looked } = state.as_mut().ok_or(StatusError::NotReported)?;
        kept.take(op::clock(), |text| looked.look(text)).map_err(|missing| match missing {
            Missing::NoMemory => StatusError::NoMemory,
            Missing::NotWritten => StatusError::NotReported,
        })
    }

    fn read(&self, _badge: u64, number: u64, offset: u64, into: &mut [u8]) -> Result<usize, StatusError> {
        let state = STATE.lock();
        state.as_ref().and_then(|state| state.kept.read(number, offset, into)).ok_or(StatusError::Gone)
    }
}

fn main() -> u8 {
    if op::entry_info(Entry::OWN, Entry::SPECIAL) != Ok((Kind::Machine, rights::READ)) {
        runtime::log!("the machine is to be held to look and for nothing else: write special = \"inspect\"");
        return 1;
    }
    *STATE.lock() = Some(State { kept: Kept::with_room(KEPT, TEXT_BYTES), looked: Looked::new() });
    match server::publish::<Status>("status", ACTIVATIONS) {
        Ok(_) => server::park(),
        Err(error) => {
            runtime::log!("cannot serve: {error}");
            1
        }
    }
}
