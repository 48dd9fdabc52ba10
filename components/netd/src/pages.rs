//! Buffers of sockets: pages drawn from the account of who has the socket.
//!
//! The only module of this component with unsafe code.

use abi::PAGE_BYTES;
use abi::layout::FREE_START;
use abi::rights::{MAP_READ, MAP_WRITE, UNMAP_SELF};
use alloc::vec::Vec;
use core::sync::atomic::{AtomicU64, Ordering};
use interfaces::net::NetError;
use interfaces::sigma0::Sigma0Client;
use runtime::sync::Mutex;
use runtime::{Direct, Entry, op};

/// Pages of one direction, at most.
pub const MAX_PAGES: u64 = 4;
/// Virtual pages of a pair of buffers.
const BLOCK: u64 = 2 * MAX_PAGES;
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

impl Buffers {
    /// Draws pages, for the account of this ticket of sigma0's.
    pub fn draw(ticket: u64, receive: u64, send: u64) -> Result<Self, NetError> {
        if !(1..=MAX_PAGES).contains(&receive) || !(1..=MAX_PAGES).contains(&send) {
            return Err(NetError::Full);
        }
        let block = FREE.lock().pop().unwrap_or_else(|| NEXT.fetch_add(1, Ordering::Relaxed));
        // What was drawn goes back with it if the account has no more.
        let mut buffers = Self { block, receive: 0, send: 0, lent: false };
        let memory = Sigma0Client(Direct(Entry::SIGMA0));
        let draw = |address| memory.draw_for(ticket, address, 0, MAP_READ | MAP_WRITE).map_err(|_| NetError::NoMemory);
        for _ in 0..receive {
            draw(buffers.start() + buffers.receive * PAGE)?;
            buffers.receive += 1;
        }
        for _ in 0..send {
            draw(buffers.middle() + buffers.send * PAGE)?;
            buffers.send += 1;
        }
        Ok(buffers)
    }

    const fn start(&self) -> u64 {
        FREE_START + self.block * BLOCK * PAGE
    }

    const fn middle(&self) -> u64 {
        self.start() + MAX_PAGES * PAGE
    }

    /// The buffer to receive into and the one to send from. Once; whoever has them drops them before this.
    ///
    /// # Panics
    /// If they were given before.
    pub fn lend(&mut self) -> (&'static mut [u8], &'static mut [u8]) {
        assert!(!core::mem::replace(&mut self.lent, true), "buffers were lent before");
        // SAFETY: the pages were drawn for this block, stay mapped until the drop, and nobody else refers to them:
        // they are given once. That they are not used after the drop is kept by `Held`, the only user.
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
            for page in 0..count {
                // SAFETY: nobody refers to the page any more: see `lend`.
                let _ = unsafe { op::unmap(Entry::OWN, start + page * PAGE, 0, MAP_READ | UNMAP_SELF) };
            }
        }
        FREE.lock().push(self.block);
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
}
