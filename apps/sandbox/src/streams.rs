//! Files as streams of the program: it reads or writes its stream, and reaches no other file by it.

use idl::{Failure, Reply, Request};
use runtime::abi::Error;
use runtime::program::startup as reported;
use runtime::protocols::stream::{StreamError, StreamServer};
use runtime::server::{Serve, Service};
use runtime::stream::Stream;
use runtime::sync::Once;
use runtime::{Entry, op, table};

/// By number, each opened when it is first used.
static STREAMS: [Once<Stream<'static>>; 3] = [const { Once::new() }; 3];

static SERVICE: Service = Service::new();

/// Whether a stream of this description is a file.
pub fn is_file(description: &str) -> bool {
    description.starts_with("file:") || description.starts_with("append:")
}

/// A call entry of ours to the stream of this number.
pub fn entry(number: usize) -> Result<Entry, Error> {
    if SERVICE.entry() == Entry::OWN {
        SERVICE.make::<Streams>()?;
    }
    op::portal_new(Entry::OWN, SERVICE.entry(), number as u64, table::allocate()?, 0)
}

struct Streams;

impl Serve for Streams {
    fn serve(request: &mut Request<'_>) -> Reply {
        Streams.dispatch(request)
    }
}

fn stream(badge: u64) -> Option<&'static Stream<'static>> {
    let number = usize::try_from(badge).ok()?;
    let description = reported()?.streams.get(number)?;
    let make = || if number == 0 { Stream::input(description) } else { Stream::new(description) };
    Some(STREAMS.get(number)?.get_or_make(make))
}

fn refused(failure: Failure<StreamError>) -> StreamError {
    match failure {
        Failure::Refused(error) => error,
        _ => StreamError::Failed,
    }
}

impl StreamServer for Streams {
    fn read(&self, badge: u64, into: &mut [u8]) -> Result<usize, StreamError> {
        stream(badge).ok_or(StreamError::Failed)?.read(into).map_err(refused)
    }

    fn write(&self, badge: u64, bytes: &[u8]) -> Result<usize, StreamError> {
        stream(badge).ok_or(StreamError::Failed)?.write(bytes).map_err(refused)
    }
}
