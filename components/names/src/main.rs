//! The name service: from a name to a call entry.
//!
//! A table of names, each with a copy of the service that was registered under it, or of which one is expected. `open` mints a call entry with
//! badge 0 from the copy. Only `roottask` registers, and is known by a badge that `open` never mints: whether a client may have a
//! name is decided there. It also is the *portal manager*: it has the nucleus make code for specifications of portals, and gives
//! servers what was made. Nothing here outlives the component: when it restarts, `roottask` registers again what was
//! published to it.
#![no_std]
#![no_main]
#![forbid(unsafe_code)]

extern crate alloc;

mod shapes;
mod table;

use abi::rights;
use idl::{Delegate, Delegated, Reply, Request};
use protocols::names::{NamesClient, NamesError, NamesServer, ROOTTASK};
use runtime::entry::Owned;
use runtime::server::{self, Serve};
use runtime::sync::Mutex;

use shapes::Shapes;
use table::Table;

runtime::entry!(main);

/// Activations that serve. Nothing here waits for anybody, so callers are served one after the other.
const ACTIVATIONS: usize = 1;

static TABLE: Mutex<Table> = Mutex::new(Table::new());

static SHAPES: Mutex<Shapes> = Mutex::new(Shapes::new());

struct Names;

impl Serve for Names {
    fn serve(request: &mut Request<'_>) -> Reply {
        Names.dispatch(request)
    }

    fn needs_memory(request: &Request<'_>) -> bool {
        matches!(request.method(), NamesClient::REGISTER | NamesClient::SHAPE | NamesClient::EXPECT)
    }
}

/// Refuses everyone but `roottask`.
fn allow(badge: u64) -> Result<(), NamesError> {
    if badge == ROOTTASK { Ok(()) } else { Err(NamesError::NotAllowed) }
}

impl NamesServer for Names {
    fn register(&self, badge: u64, name: &str, service: Delegated) -> Result<(), NamesError> {
        let service = Owned::new(service.into());
        allow(badge)?;
        TABLE.lock().register(name, service)
    }

    fn open(&self, _badge: u64, name: &str) -> Result<Delegate, NamesError> {
        TABLE.lock().open(name).map(|service| Delegate::mint(service.0, 0))
    }

    fn list(&self, _badge: u64, position: u64, into: &mut [u8]) -> Result<(usize, u64), NamesError> {
        Ok(TABLE.lock().list(position, into))
    }

    fn unregister(&self, badge: u64, name: &str) -> Result<(), NamesError> {
        allow(badge)?;
        TABLE.lock().unregister(name)
    }

    fn shape(&self, badge: u64, specification: &str) -> Result<Delegate, NamesError> {
        let shape = SHAPES.lock().find_or_make(specification, badge)?;
        // No copies of copies: else these could be made while it is removed.
        Ok(Delegate::entry(shape.0, rights::USE))
    }

    fn expect(&self, badge: u64, name: &str) -> Result<(), NamesError> {
        allow(badge)?;
        TABLE.lock().expect(name)
    }
}

/// Bytes kept for calls: a name, and the table of names when it grows.
const KEPT_BYTES: usize = 4096;

fn main() -> u8 {
    server::keep_memory(KEPT_BYTES);
    match server::publish::<Names>("names", ACTIVATIONS) {
        Ok(_) => server::park(),
        Err(error) => {
            runtime::log!("cannot serve: {error}");
            1
        }
    }
}
