//! The limits of clients: each program, all programs together, and components besides. A program that takes all it can
//! meets its own limit; programs together leave the components' part; and all limits together fit the account of this
//! component, which is shown below.
//!
//! Pages of sockets are not counted here: the client's account pays for them.

use alloc::vec::Vec;
use protocols::net::{Endpoint, NetError};
use smoltcp::iface::SocketStorage;
use smoltcp::socket::dns;

use crate::client::{COMPONENTS, Client};
use crate::demux::Key;
use crate::session::Session;
use crate::slots::{self, Number};
use crate::socket::{Datagrams, Flow, INBOX, Listener, METADATA_BYTES, Socket, What};
use crate::{link, pages};

/// How many of each.
type Counts = [u16; 6];

const OF_PROGRAM: Counts = [4, 128, 32, 8, 8, 4];
const OF_PROGRAMS: Counts = [20, 512, 512, 32, 40, 12];
const OF_COMPONENTS: Counts = [8, 2592, 256, 16, 24, 4];

/// Connections of a client, its own and those to its listeners, from which on the next ones have a page each way: what a listener asks
/// for its connections is for when there are few.
const FEW: u16 = 16;

/// The limit of all clients together.
pub const fn all(what: What) -> usize {
    (OF_PROGRAMS[what as usize] + OF_COMPONENTS[what as usize]) as usize
}

/// Sockets of all clients together.
pub const SOCKETS: usize = all(What::Flow) + all(What::Listener) + all(What::Port) + all(What::Query);

/// The counts of what clients hold.
pub struct Holders {
    clients: Vec<(Client, Counts)>,
    programs: Counts,
}

impl Holders {
    /// Nobody has anything.
    pub const fn new() -> Self {
        Self { clients: Vec::new(), programs: [0; 6] }
    }

    /// How many of these a client has.
    fn count(&self, client: Client, what: What) -> u16 {
        self.clients.iter().find(|(other, _)| *other == client).map_or(0, |(_, counts)| counts[what as usize])
    }

    /// Whether a client has as many as it may have itself.
    pub fn has_all(&self, client: Client, what: What) -> bool {
        let limits = if client == COMPONENTS { OF_COMPONENTS } else { OF_PROGRAM };
        self.count(client, what) >= limits[what as usize]
    }

    /// Whether the next connection of a client has small buffers.
    pub fn is_crowded(&self, client: Client) -> bool {
        self.count(client, What::Flow) >= FEW
    }

    /// Whether a client can have no more.
    pub fn is_full(&self, client: Client, what: What) -> bool {
        self.check(client, what).is_err()
    }

    /// Refuses a client that has as many as it may have, and a program when all programs together have.
    pub fn check(&self, client: Client, what: What) -> Result<(), NetError> {
        let place = what as usize;
        if self.has_all(client, what) {
            return Err(NetError::TooMany);
        }
        if client != COMPONENTS && self.programs[place] >= OF_PROGRAMS[place] { Err(NetError::Full) } else { Ok(()) }
    }

    /// The counts and limits of components, and of all programs together.
    pub fn shares(&self, what: What) -> [(u16, u16); 2] {
        let place = what as usize;
        [(self.count(COMPONENTS, what), OF_COMPONENTS[place]), (self.programs[place], OF_PROGRAMS[place])]
    }

    /// A client has one more.
    pub fn add(&mut self, client: Client, what: What) {
        let known = self.clients.iter().position(|(other, _)| *other == client);
        let known = known.unwrap_or_else(|| {
            self.clients.push((client, [0; 6]));
            self.clients.len() - 1
        });
        self.clients[known].1[what as usize] += 1;
        self.programs[what as usize] += u16::from(client != COMPONENTS);
    }

    /// A client has one less.
    pub fn remove(&mut self, client: Client, what: What) {
        let Some(known) = self.clients.iter().position(|(other, _)| *other == client) else { return };
        let counts = &mut self.clients[known].1;
        counts[what as usize] -= 1;
        if *counts == [0; 6] {
            self.clients.swap_remove(known);
        }
        self.programs[what as usize] -= u16::from(client != COMPONENTS);
    }
}

/// Frames that the account has to have.
pub const FRAMES: u64 = (WORST as u64).div_ceil(abi::PAGE_BYTES as u64);
/// Bytes of the account in the default system.
const ACCOUNT: usize = 5 << 20;
/// Pages of stack that the deepest calls take, the protocols included: all stacks have them from the start.
pub const STACK_PAGES: u64 = 4;
/// Program, stacks, tables, and what is there without any client.
const BASE: usize = 768 << 10;
/// The allocator's overhead for a block, rounding included.
const BLOCK: usize = 32;
/// A vector may have twice the room that it needs, and while it grows half of that besides.
const GROWN: usize = 3;

/// Bytes of a node of a tree for each thing in it: nodes are nearly half full at least, and have room for eleven.
const fn in_tree(bytes: usize) -> usize {
    (11 * bytes + 16 + BLOCK) / 5 + 32
}

/// Memory that a connection takes besides the pages of its client: itself, and places where it is found.
const FLOW: usize =
    size_of::<Flow>() + BLOCK + in_tree(size_of::<Key>() + size_of::<Number>()) + in_tree(size_of::<(u64, Number)>());
/// Of the page tables for a pair of buffers: a table and its shadow, two frames, for 512 pages.
const MAPPED: usize = pages::BLOCK as usize * 2 * 4096 / 512;
const LISTENER: usize = size_of::<Listener>() + BLOCK + in_tree(16);
const PORT: usize = size_of::<Datagrams>()
    + 5 * BLOCK
    + in_tree(16)
    + GROWN * size_of::<SocketStorage<'_>>()
    + METADATA_BYTES
    + INBOX * (size_of::<Endpoint>() + 32);
const QUERY: usize = GROWN * size_of::<Option<dns::DnsQuery>>();

/// The most memory that all clients together can make this component keep, if each limit is reached.
const WORST: usize = BASE
    + all(What::Session) * (size_of::<Session>() + BLOCK)
    + SOCKETS * GROWN * slots::bytes::<Socket>()
    // Lists of events, connections to poll, lingering ones, queues of listeners, and blocks that were given back.
    + SOCKETS * GROWN * 5 * size_of::<Number>()
    + all(What::Flow) * FLOW
    + (all(What::Flow) + 2 * all(What::Port)) * MAPPED
    + all(What::Listener) * LISTENER
    + all(What::Port) * PORT
    + all(What::Query) * QUERY
    + link::LOOPBACK_BYTES;

const _: () = assert!(WORST <= ACCOUNT, "the account does not pay for the limits of all clients");
