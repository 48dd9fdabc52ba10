//! Interfaces that grew at their end: clients and servers of the shorter one and of the longer one call each other.

use idl::{AllWords, Failure, Protocol, Reply, Request};
use runtime::entry::Owned;
use runtime::server::{self, Serve, ServeAllWords};
use runtime::{Direct, Entry, op, table};

use crate::check::{Check, hold};
use crate::services::say;

pub const CHECKS: &[Check] = &[
    ("an interface of messages grows, and its old clients and servers go on", messages),
    ("an interface of words grows, and its old clients and servers go on", words),
];

/// As they were released.
mod old {
    idl::codes! {
        /// Why not.
        pub enum GrownError {
            1 Odd "an odd number"
        }
    }

    /// Of messages.
    #[idl::interface]
    pub trait Grown {
        /// Half of a number.
        fn half(&self, number: u64) -> Result<u64, GrownError>;
        /// Bytes in reverse.
        fn reverse(&self, bytes: &[u8], into: &mut [u8]) -> Result<usize, GrownError>;
    }

    /// Of words.
    #[idl::interface(words)]
    pub trait GrownWords {
        /// Half of a number.
        fn half(&self, number: u64) -> Result<u64, GrownError>;
    }
}

/// As they are, with more methods and more errors.
mod new {
    idl::codes! {
        /// Why not.
        pub enum GrownError {
            1 Odd "an odd number"
            2 Zero "zero"
        }
    }

    /// Of messages.
    #[idl::interface]
    pub trait Grown {
        /// Half of a number.
        fn half(&self, number: u64) -> Result<u64, GrownError>;
        /// Bytes in reverse.
        fn reverse(&self, bytes: &[u8], into: &mut [u8]) -> Result<usize, GrownError>;
        /// How many bytes there are.
        fn count(&self, bytes: &[u8]) -> Result<usize, GrownError>;
    }

    /// Of words.
    #[idl::interface(words)]
    pub trait GrownWords {
        /// Half of a number.
        fn half(&self, number: u64) -> Result<u64, GrownError>;
        /// Their sum.
        fn sum(&self, block: [u64; 8]) -> Result<u64, GrownError>;
    }
}

struct Old;
struct New;

fn reversed(bytes: &[u8], into: &mut [u8]) -> usize {
    into.iter_mut().zip(bytes.iter().rev()).map(|(to, from)| *to = *from).count()
}

impl old::GrownServer for Old {
    fn half(&self, _: u64, number: u64) -> Result<u64, old::GrownError> {
        if number % 2 == 1 { Err(old::GrownError::Odd) } else { Ok(number / 2) }
    }
    fn reverse(&self, _: u64, bytes: &[u8], into: &mut [u8]) -> Result<usize, old::GrownError> {
        Ok(reversed(bytes, into))
    }
}

impl old::GrownWordsServer for Old {
    fn half(&self, badge: u64, number: u64) -> Result<u64, old::GrownError> {
        old::GrownServer::half(self, badge, number)
    }
}

impl new::GrownServer for New {
    fn half(&self, _: u64, number: u64) -> Result<u64, new::GrownError> {
        match number {
            0 => Err(new::GrownError::Zero),
            number if number % 2 == 1 => Err(new::GrownError::Odd),
            number => Ok(number / 2),
        }
    }
    fn reverse(&self, _: u64, bytes: &[u8], into: &mut [u8]) -> Result<usize, new::GrownError> {
        Ok(reversed(bytes, into))
    }
    fn count(&self, _: u64, bytes: &[u8]) -> Result<usize, new::GrownError> {
        Ok(bytes.len())
    }
}

impl new::GrownWordsServer for New {
    fn half(&self, badge: u64, number: u64) -> Result<u64, new::GrownError> {
        new::GrownServer::half(self, badge, number)
    }
    fn sum(&self, _: u64, block: [u64; 8]) -> Result<u64, new::GrownError> {
        Ok(block.iter().sum())
    }
}

impl Serve for Old {
    fn serve(request: &mut Request<'_>) -> Reply {
        old::GrownServer::dispatch(&Self, request)
    }
}

impl Serve for New {
    fn serve(request: &mut Request<'_>) -> Reply {
        new::GrownServer::dispatch(&Self, request)
    }
}

impl ServeAllWords for Old {
    fn serve(badge: u64, words: &AllWords) -> AllWords {
        old::GrownWordsServer::dispatch(&Self, badge, words)
    }
}

impl ServeAllWords for New {
    fn serve(badge: u64, words: &AllWords) -> AllWords {
        new::GrownWordsServer::dispatch(&Self, badge, words)
    }
}

/// A portal to a service, which goes with it.
fn portal(service: Entry) -> Result<[Owned; 2], abi::Error> {
    let [service, portal] = [Owned::new(service), Owned::new(table::allocate()?)];
    op::portal_new(Entry::OWN, service.entry(), 0, portal.entry(), 0)?;
    Ok([portal, service])
}

fn messages() -> Result<(), &'static str> {
    let text = abi::Error::text;
    server::activations(1).map_err(text)?;
    let older = server::service::<Old>().and_then(portal).map_err(text)?;
    let newer = server::service::<New>().and_then(portal).map_err(text)?;
    let mut into = [0; 5];

    let client = old::GrownClient(Direct(newer[0].entry()));
    hold(client.half(12) == Ok(6), "an old client has another number")?;
    hold(client.reverse(b"hello", &mut into) == Ok(5) && &into == b"olleh", "an old client has other bytes")?;
    hold(client.half(13) == Err(Failure::Refused(old::GrownError::Odd)), "an old client has another error")?;
    hold(client.half(0) == Err(Failure::Protocol(Protocol::BadReply)), "an old client knows a new error")?;

    let client = new::GrownClient(Direct(older[0].entry()));
    hold(client.half(12) == Ok(6), "a new client has another number")?;
    let lacks = Err(Failure::Protocol(Protocol::UnknownMethod));
    hold(client.count(b"hello") == lacks, "an old server has a new method")?;
    hold(client.half(0) == Ok(0), "the old server does not go on")
}

fn words() -> Result<(), &'static str> {
    server::activations(1).map_err(abi::Error::text)?;
    let older = portal(server::all_words_service::<Old>().map_err(say)?).map_err(abi::Error::text)?;
    let newer = portal(server::all_words_service::<New>().map_err(say)?).map_err(abi::Error::text)?;

    let client = old::GrownWordsClient(Direct(newer[0].entry()));
    hold(client.half(12) == Ok(6), "an old client has another number")?;
    hold(client.half(13) == Err(Failure::Refused(old::GrownError::Odd)), "an old client has another error")?;
    hold(client.half(0) == Err(Failure::Protocol(Protocol::BadReply)), "an old client knows a new error")?;

    let client = new::GrownWordsClient(Direct(older[0].entry()));
    hold(client.half(12) == Ok(6), "a new client has another number")?;
    let lacks = Err(Failure::Protocol(Protocol::UnknownMethod));
    hold(client.sum([1; 8]) == lacks, "an old server has a new method")?;
    hold(client.half(0) == Ok(0), "the old server does not go on")
}
