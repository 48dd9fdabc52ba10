//! Queues, linked through what waits in them; FIFO.

use core::cell::Cell;

#[cfg(test)]
mod tests;

/// A pointer to an object that has room for its neighbours in a queue.
pub trait Linked: Copy {
    /// The one behind it.
    fn next(&self) -> &Cell<Option<Self>>;
    /// The one before it.
    fn previous(&self) -> &Cell<Option<Self>>;
}

/// Head and tail; cleared memory is an empty one.
#[repr(C)]
pub struct Queue<P> {
    /// First to be served.
    pub head: Cell<Option<P>>,
    tail: Cell<Option<P>>,
}

impl<P: Linked> Queue<P> {
    /// Appends.
    pub fn append(&self, item: P) {
        item.next().set(None);
        item.previous().set(self.tail.get());
        match self.tail.get() {
            Some(tail) => tail.next().set(Some(item)),
            None => self.head.set(Some(item)),
        }
        self.tail.set(Some(item));
    }
    /// Puts `item` before the first for which `yields` holds, or at the end.
    pub fn insert(&self, item: P, yields: impl Fn(P) -> bool) {
        let mut next = self.head.get();
        while let Some(other) = next.filter(|other| !yields(*other)) {
            next = other.next().get();
        }
        let Some(next) = next else { return self.append(item) };
        item.next().set(Some(next));
        item.previous().set(next.previous().get());
        match next.previous().replace(Some(item)) {
            Some(previous) => previous.next().set(Some(item)),
            None => self.head.set(Some(item)),
        }
    }
    /// Takes the first.
    pub fn take(&self) -> Option<P> {
        let first = self.head.get()?;
        self.head.set(first.next().take());
        match self.head.get() {
            Some(next) => next.previous().set(None),
            None => self.tail.set(None),
        }
        Some(first)
    }
    /// Takes `item` out.
    pub fn remove(&self, item: P) {
        match item.previous().get() {
            Some(previous) => previous.next().set(item.next().get()),
            None => self.head.set(item.next().get()),
        }
        match item.next().get() {
            Some(next) => next.previous().set(item.previous().get()),
            None => self.tail.set(item.previous().get()),
        }
        item.next().set(None);
        item.previous().set(None);
    }
}
