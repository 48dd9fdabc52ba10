//! Buffers of sockets: pages drawn from the account of the socket's owner.
//!
//! The only module of this component with unsafe code.

use abi::PAGE_BYTES;
use abi::layout::FREE_START;
use abi::rights::{MAP_READ, MAP_WRITE, UNMAP_SELF};
use alloc::vec::Vec;
use core::sync::atomic::{AtomicU64, Ordering};
use idl::Failure;
use protocols::net::NetError;
use protocols::sigma0::{Sigma0Client, Sigma0Error};
use runtime::sync::Mutex;
use runtime::{Direct, Entry, op};
use smoltcp::iface::{SocketHandle, SocketSet, SocketStorage};
use smoltcp::socket::AnySocket;

use crate::failure::failed;

/// Pages of one direction, at most.
pub const MAX_PAGES: u64 = 4;
/// Virtual pages of a pair of buffers.
pub const BLOCK: u64 = 2 * MAX_PAGES;
const PAGE: u64 = PAGE_BYTES as u64;

/// Blocks that nobody has, and the first that nobody ever had.
static FREE: Mutex<Vec<u64>> = Mutex::new(Vec::new());
static NEXT: AtomicU64 = AtomicU64::new(0);

/// Two buffers. The pages go back when it is dropped.
pub struct Buffers {
    block: u64,
    receive: u64,
    send: u64,
    lent: bool,
}

/// So many pages in pieces of powers of two: where each begins, and its order.
fn pieces(pages: u64) -> impl Iterator<Item = (u64, u64)> {
    let mut done = 0;
    core::iter::from_fn(move || {
        let order = (pages - done).checked_ilog2()?;
        let first = done;
        done += 1 << order;
        Some((first, order.into()))
    })
}

impl Buffers {
    /// Draws pages, for the account of this ticket of sigma0's.
    pub fn draw(ticket: u64, receive: u64, send: u64) -> Result<Self, NetError> {
        if !(1..=MAX_PAGES).contains(&receive) || send > MAX_PAGES {
            return Err(NetError::BadSize);
        }
        let block = FREE.lock().pop().unwrap_or_else(|| NEXT.fetch_add(1, Ordering::Relaxed));
        // Pages that were drawn go back with it if the account has no more.
        let buffers = Self { block, receive, send, lent: false };
        let memory = Sigma0Client(Direct(Entry::SIGMA0));
        for (start, count) in [(buffers.start(), receive), (buffers.middle(), send)] {
            for (page, order) in pieces(count) {
                let drawn = memory.draw_for(ticket, start + page * PAGE, order, MAP_READ | MAP_WRITE);
                drawn.map_err(|error| match error {
                    Failure::Refused(Sigma0Error::AccountExhausted) => NetError::NoMemory,
                    // The session goes with it.
                    Failure::Refused(Sigma0Error::AccountGone) => NetError::NoSession,
                    error => failed("memory of a socket", error),
                })?;
            }
        }
        Ok(buffers)
    }

    const fn start(&self) -> u64 {
        FREE_START + self.block * BLOCK * PAGE
    }

    const fn middle(&self) -> u64 {
        self.start() + MAX_PAGES * PAGE
    }

    /// The buffer to receive into and the one to send from. Once; their user drops them before this.
    ///
    /// # Panics
    /// If they were given before.
    pub fn lend(&mut self) -> (&'static mut [u8], &'static mut [u8]) {
        assert!(!core::mem::replace(&mut self.lent, true), "buffers were lent before");
        // SAFETY: the pages were drawn for this block, stay mapped until the drop, and nobody else refers to them:
        // they are given once. That they are not used after the drop is kept by `Held` and `Common`, the only users.
        unsafe {
            (
                core::slice::from_raw_parts_mut(self.start() as *mut u8, (self.receive * PAGE) as usize),
                core::slice::from_raw_parts_mut(self.middle() as *mut u8, (self.send * PAGE) as usize),
            )
        }
    }
}

impl Drop for Buffers {
    fn drop(&mut self) {
        for (start, count) in [(self.start(), self.receive), (self.middle(), self.send)] {
            for (page, order) in pieces(count) {
                // SAFETY: nobody refers to these pages any more: see `lend`.
                let _ = unsafe { op::unmap(Entry::OWN, start + page * PAGE, order, MAP_READ | UNMAP_SELF) };
            }
        }
        FREE.lock().push(self.block);
    }
}

/// The parts of a connection's memory: the buffer to receive into, the one to send from, and the record of the protocol's side.
pub type Parts = (&'static mut [u8], &'static mut [u8], &'static mut [SocketStorage<'static>]);

/// Divides buffers for a connection: the record takes the end of the one to send from, of which whole segments of so many
/// bytes are used.
fn divide(buffers: &mut Buffers, segment: usize) -> Parts {
    let (receive, send) = buffers.lend();
    let record = size_of::<SocketStorage<'_>>();
    let (send, rest) = send.split_at_mut((send.len() - record) / segment * segment);
    let before = rest.len() - record;
    let record = &mut rest[before..];
    let place = record.as_mut_ptr().cast::<SocketStorage<'static>>();
    // The buffer ends with a page, so a record at its end is aligned.
    assert!(place.is_aligned());
    // SAFETY: as many bytes as it has, aligned, and nobody else's.
    let record = unsafe {
        place.write(SocketStorage::EMPTY);
        core::slice::from_raw_parts_mut(place, 1)
    };
    (receive, send, record)
}

/// Sockets in one set, some with buffers: those go after their sockets.
pub struct Common {
    /// The sockets. Those with buffers are put in and taken out by [`Common::add`] and [`Common::remove`] alone.
    pub set: SocketSet<'static>,
    buffers: Vec<(SocketHandle, Buffers)>,
}

impl Common {
    /// None.
    pub const fn new(set: SocketSet<'static>) -> Self {
        Self { set, buffers: Vec::new() }
    }

    /// Puts in a socket over buffers.
    pub fn add<T: AnySocket<'static>>(
        &mut self,
        mut buffers: Buffers,
        make: impl FnOnce(&'static mut [u8], &'static mut [u8]) -> T,
    ) -> SocketHandle {
        let (receive, send) = buffers.lend();
        let handle = self.set.add(make(receive, send));
        self.buffers.push((handle, buffers));
        handle
    }

    /// Takes a socket out, and then its buffers.
    pub fn remove(&mut self, handle: SocketHandle) {
        drop(self.set.remove(handle));
        self.buffers.retain(|(other, _)| *other != handle);
    }
}

/// A socket with the buffers in which it keeps its bytes: the socket is dropped first.
pub struct Held<S> {
    /// The socket. Dropped before the buffers, as fields are dropped in order.
    pub socket: S,
    _buffers: Buffers,
}

impl<S> Held<S> {
    /// Makes a socket over buffers.
    pub fn new(mut buffers: Buffers, make: impl FnOnce(&'static mut [u8], &'static mut [u8]) -> S) -> Self {
        let (receive, send) = buffers.lend();
        Self { socket: make(receive, send), _buffers: buffers }
    }

    /// Makes a connection over buffers of which each direction has a page at least.
    pub fn with_record(mut buffers: Buffers, segment: usize, make: impl FnOnce(Parts) -> S) -> Self {
        Self { socket: make(divide(&mut buffers, segment)), _buffers: buffers }
    }
}
