//! A bounded channel: a ring of values, senders that wait while it is full, receivers while it is empty.

use abi::NEVER;

use super::{Condvar, Kernel, Mutex, Nucleus};

struct Ring<T, const N: usize> {
    slots: [Option<T>; N],
    first: usize,
    count: usize,
}

/// A channel for up to `N` values; usually a static.
pub struct Channel<T, const N: usize, K: Kernel = Nucleus> {
    ring: Mutex<Ring<T, N>, K>,
    filled: Condvar<K>,
    drained: Condvar<K>,
}

impl<T, const N: usize, K: Kernel> Channel<T, N, K> {
    /// An empty channel.
    pub const fn new() -> Self {
        const { assert!(N > 0, "a channel holds at least one value") };
        Self {
            ring: Mutex::new(Ring { slots: [const { None }; N], first: 0, count: 0 }),
            filled: Condvar::new(),
            drained: Condvar::new(),
        }
    }

    /// Waits for room and puts a value in.
    pub fn send(&self, value: T) {
        let mut ring = self.ring.lock();
        while ring.count == N {
            ring = self.drained.wait(ring);
        }
        ring.put(value);
        self.filled.notify_one();
    }

    /// Puts a value in if there is room, else gives it back.
    pub fn try_send(&self, value: T) -> Result<(), T> {
        let mut ring = self.ring.lock();
        if ring.count == N {
            return Err(value);
        }
        ring.put(value);
        self.filled.notify_one();
        Ok(())
    }

    /// Waits for a value.
    pub fn receive(&self) -> T {
        loop {
            if let Some(value) = self.receive_until(NEVER) {
                return value;
            }
        }
    }

    /// Waits for a value, at most until an absolute time.
    pub fn receive_until(&self, deadline: u64) -> Option<T> {
        let mut ring = self.ring.lock();
        let mut in_time = true;
        loop {
            if let Some(value) = ring.take() {
                self.drained.notify_one();
                return Some(value);
            }
            if !in_time {
                return None;
            }
            (ring, in_time) = self.filled.wait_until(ring, deadline);
        }
    }

    /// Takes a value if there is one.
    pub fn try_receive(&self) -> Option<T> {
        let value = self.ring.lock().take()?;
        self.drained.notify_one();
        Some(value)
    }
}

impl<T, const N: usize, K: Kernel> Default for Channel<T, N, K> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T, const N: usize> Ring<T, N> {
    /// There is room.
    fn put(&mut self, value: T) {
        self.slots[(self.first + self.count) % N] = Some(value);
        self.count += 1;
    }

    fn take(&mut self) -> Option<T> {
        let value = self.slots[self.first].take()?;
        self.first = (self.first + 1) % N;
        self.count -= 1;
        Some(value)
    }
}
