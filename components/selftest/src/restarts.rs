//! Components that do not last, for the boot tests of restarts: `restarts dies`, `restarts no-device`, `restarts fragile`;
//! and one that calls what is not there: `restarts seeks`.

use idl::{Failure, Input, Output, Reply, Request};
use protocols::file::{FileClient, FileError, FileServer, Image, Kind, Stat};
use runtime::connection::Connection;
use runtime::log;
use runtime::program::{self, STATUS_OF_NO_DEVICE};
use runtime::server::{self, Serve};

/// Is such a component.
pub fn run(how: &str) -> u8 {
    match how {
        "dies" => 3,
        "no-device" => program::exit(STATUS_OF_NO_DEVICE),
        "seeks" => {
            let seek = |name| FileClient(Connection::named(name)).stat().err();
            let is_right = seek("nobody") == Some(Failure::Transport(abi::Error::Empty))
                && seek("no-device") == Some(Failure::Transport(abi::Error::Empty))
                && seek("dies") == Some(Failure::Transport(abi::Error::Revoked));
            log!("seeks: {}", if is_right { "as it should be" } else { "another error" });
            u8::from(!is_right)
        }
        _ => server::park_if(server::publish::<Fragile>(program::name(), 2).map(drop)),
    }
}

/// A server that dies of some methods: of one that may be repeated, and of one that may not.
pub struct Fragile;

impl Serve for Fragile {
    fn serve(request: &mut Request<'_>) -> Reply {
        Fragile.dispatch(request)
    }
}

impl FileServer for Fragile {
    fn read(&self, _badge: u64, _offset: u64, _into: Output<'_>) -> Result<usize, FileError> {
        panic!("read")
    }

    fn write(&self, _badge: u64, _offset: u64, bytes: Input<'_>) -> Result<usize, FileError> {
        Ok(bytes.len())
    }

    fn append(&self, _badge: u64, _bytes: Input<'_>) -> Result<usize, FileError> {
        panic!("append")
    }

    fn stat(&self, _badge: u64) -> Result<Stat, FileError> {
        Ok(Stat { size: 0, kind: Kind::File, executable: false, modified: 0 })
    }

    fn truncate(&self, _badge: u64, _size: u64) -> Result<(), FileError> {
        Ok(())
    }

    fn image(&self, _badge: u64) -> Result<Image, FileError> {
        Err(FileError::Stale)
    }
}
