//! Derivation trees, which connect copies with their original, each in a list.
//!
//! The list is in preorder with depths: the descendants of a node are the nodes that follow it and are deeper. Revocation
//! removes the next node until it is not deeper, one step at a time, so it can stop between any two steps and go on later.

use abi::{Error, MAX_DERIVATION};
use core::cell::Cell;

#[cfg(test)]
mod tests;

/// A pointer to a node of a derivation tree.
pub trait Derived: Copy {
    /// The node before it in the list.
    fn previous(&self) -> &Cell<Option<Self>>;
    /// The node after it.
    fn next(&self) -> &Cell<Option<Self>>;
    /// How many nodes are above it.
    fn depth(&self) -> &Cell<u16>;

    /// Puts this node right below `parent`.
    fn derive_from(self, parent: Self) -> Result<(), Error> {
        if parent.is_last() {
            return Err(Error::TooDerived);
        }
        self.link_behind(parent, parent.depth().get() + 1);
        Ok(())
    }
    /// Puts this node after another one.
    #[inline(always)]
    fn link_behind(self, before: Self, depth: u16) {
        self.previous().set(Some(before));
        self.next().set(before.next().get());
        self.depth().set(depth);
        if let Some(next) = before.next().get() {
            next.previous().set(Some(self));
        }
        before.next().set(Some(self));
    }
    /// Whether nothing can be derived from this node.
    fn is_last(self) -> bool {
        self.depth().get() as usize + 1 >= MAX_DERIVATION
    }
    /// Puts this node in the place of another one, which has no descendants, and is in no tree afterwards.
    fn take_place_of(self, other: Self) {
        self.link_behind(other, other.depth().get());
        other.unlink();
    }
    /// Makes this node an original.
    fn root(self) {
        self.previous().set(None);
        self.next().set(None);
        self.depth().set(0);
    }
    /// A node derived from this one, if there is any.
    fn descendant(self) -> Option<Self> {
        self.after(self)
    }
    /// The node after this one, if it is derived from `ancestor`.
    fn after(self, ancestor: Self) -> Option<Self> {
        self.next().get().filter(|next| next.depth().get() > ancestor.depth().get())
    }
    /// Whether nothing was derived to make this.
    fn is_original(self) -> bool {
        self.depth().get() == 0
    }
    /// Takes this node, which has no descendants, out of its tree.
    fn unlink(self) {
        if let Some(next) = self.next().get() {
            next.previous().set(self.previous().get());
        }
        if let Some(previous) = self.previous().get() {
            previous.next().set(self.next().get());
        }
        self.previous().set(None);
        self.next().set(None);
    }
}
