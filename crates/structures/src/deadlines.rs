//! A queue of deadlines, in a leftist tree (Crane; Knuth, *The Art of Computer Programming* 3, 5.2.3): the earliest is the
//! root. Nothing is allocated, and every step takes time logarithmic in the number of deadlines, a removal from the
//! middle included.
//!
//! A tree is known by its root. There can be several; the caller keeps their roots.

use core::cell::Cell;

#[cfg(test)]
mod tests;

/// A pointer to an object that has a deadline, and room for its place in a tree.
pub trait Timed: Copy + PartialEq {
    /// When it is due.
    fn deadline(&self) -> u64;
    /// Where it is.
    fn place(&self) -> &Place<Self>;
}

/// A place in a tree.
#[repr(C)]
pub struct Place<P> {
    left: Cell<Option<P>>,
    right: Cell<Option<P>>,
    up: Cell<Option<P>>,
    /// In which of several trees it is; not used here.
    pub tree: Cell<u8>,
    /// Steps to the nearest missing child; the left one's is never smaller than the right one's.
    rank: Cell<u32>,
}

/// Adds `item`, which is in no tree, to the tree of `root`; gives the new root.
pub fn add<P: Timed>(root: Option<P>, item: P) -> Option<P> {
    let place = item.place();
    for link in [&place.left, &place.right, &place.up] {
        link.set(None);
    }
    place.rank.set(1);
    as_root(merge(root, Some(item)))
}

/// Takes `item` out of its tree; if it was the root, `set_root` gets the new one.
pub fn remove<P: Timed>(item: P, set_root: impl FnOnce(Option<P>)) {
    let rest = merge(item.place().left.get(), item.place().right.get());
    let Some(mut parent) = item.place().up.get() else { return set_root(as_root(rest)) };
    if let Some(rest) = rest {
        rest.place().up.set(Some(parent));
    }
    if parent.place().left.get() == Some(item) {
        parent.place().left.set(rest);
    } else {
        parent.place().right.set(rest);
    }
    // A rank that changes is one above the one below: as many steps as ranks.
    while restore(parent) {
        let Some(next) = parent.place().up.get() else { return };
        parent = next;
    }
}

fn as_root<P: Timed>(root: Option<P>) -> Option<P> {
    root.inspect(|root| root.place().up.set(None))
}

/// Joins two trees along their right spines, which are logarithmic.
fn merge<P: Timed>(a: Option<P>, b: Option<P>) -> Option<P> {
    let (Some(a), Some(b)) = (a, b) else { return a.or(b) };
    let (first, second) = if a.deadline() <= b.deadline() { (a, b) } else { (b, a) };
    let right = merge(first.place().right.get(), Some(second));
    if let Some(right) = right {
        right.place().up.set(Some(first));
    }
    first.place().right.set(right);
    restore(first);
    Some(first)
}

/// Puts children and rank right; true if the rank changed.
fn restore<P: Timed>(item: P) -> bool {
    let rank = |link: Option<P>| link.map_or(0, |child| child.place().rank.get());
    let place = item.place();
    if rank(place.left.get()) < rank(place.right.get()) {
        place.left.swap(&place.right);
    }
    let new = rank(place.right.get()) + 1;
    place.rank.replace(new) != new
}
