//! FIFO queues, and queues ordered by rank, linked through what waits in them.

use core::cell::Cell;

#[cfg(test)]
mod tests;

/// A pointer to an object that has room for its neighbours in a queue.
pub trait Linked: Copy {
    /// The one after it.
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
    /// Puts `item` before `next`, or at the end.
    #[inline(never)]
    fn put_before(&self, item: P, next: Option<P>) {
        let Some(next) = next else { return self.append(item) };
        item.next().set(Some(next));
        item.previous().set(next.previous().get());
        match next.previous().replace(Some(item)) {
            Some(previous) => previous.next().set(Some(item)),
            None => self.head.set(Some(item)),
        }
    }
    /// All that are in this one are in `other` instead, which is empty.
    fn move_to(&self, other: &Self) {
        other.head.set(self.head.take());
        other.tail.set(self.tail.take());
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
    #[inline(never)]
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

/// An item of a [`Ranked`] queue.
pub trait Ranks: Linked + PartialEq {
    /// Higher ones are served first. It does not change in the queue.
    fn rank(&self) -> u8;
    /// Those after it that have its rank.
    fn behind(&self) -> &Queue<Self>;
}

/// The highest rank is served first, and those of one rank first come, first served. Linked are only the first of each rank; the
/// others wait behind them. So no operation takes more steps than there are ranks.
#[repr(C)]
pub struct Ranked<P> {
    firsts: Queue<P>,
}

impl<P: Ranks> Ranked<P> {
    /// First to be served.
    pub fn head(&self) -> Option<P> {
        self.firsts.head.get()
    }
    /// The first whose rank is not above this one.
    fn first_up_to(&self, rank: u8) -> Option<P> {
        let mut first = self.head();
        while let Some(other) = first.filter(|other| other.rank() > rank) {
            first = other.next().get();
        }
        first
    }
    /// As [`Self::append`], at once if nobody waits.
    #[inline(always)]
    pub fn append_soon(&self, item: P) {
        if self.head().is_none() {
            self.firsts.append(item);
        } else {
            self.append(item);
        }
    }
    /// Puts `item` after those of its rank.
    #[inline(never)]
    pub fn append(&self, item: P) {
        match self.first_up_to(item.rank()) {
            Some(first) if first.rank() == item.rank() => first.behind().append(item),
            next => self.firsts.put_before(item, next),
        }
    }
    /// Puts `item` before those of its rank.
    pub fn prepend(&self, item: P) {
        let next = self.first_up_to(item.rank());
        self.firsts.put_before(item, next);
        if let Some(first) = next.filter(|first| first.rank() == item.rank()) {
            self.firsts.remove(first);
            first.behind().move_to(item.behind());
            item.behind().put_before(first, item.behind().head.get());
        }
    }
    /// As [`Self::take`], at once if it is the only one of its rank.
    #[inline(always)]
    pub fn take_soon(&self) -> Option<P> {
        match self.head()?.behind().head.get() {
            None => self.firsts.take(),
            Some(_) => self.take(),
        }
    }
    /// Takes the first.
    #[inline(never)]
    pub fn take(&self) -> Option<P> {
        let first = self.head()?;
        self.remove_first(first);
        Some(first)
    }
    /// Takes `item` out.
    #[inline(never)]
    pub fn remove(&self, item: P) {
        match self.first_up_to(item.rank()) {
            Some(first) if first != item => first.behind().remove(item),
            _ => self.remove_first(item),
        }
    }
    /// Takes out the first of its rank: the next one has its place, with the others behind.
    #[inline(never)]
    fn remove_first(&self, item: P) {
        if let Some(heir) = item.behind().take() {
            item.behind().move_to(heir.behind());
            self.firsts.put_before(heir, Some(item));
        }
        self.firsts.remove(item);
    }
}
