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
    /// The node behind it.
    fn next(&self) -> &Cell<Option<Self>>;
    /// How many nodes are above it.
    fn depth(&self) -> &Cell<u16>;

    /// Puts this node right below `parent`.
    fn derive_from(self, parent: Self) -> Result<(), Error> {
        if parent.depth().get() as usize + 1 >= MAX_DERIVATION {
            return Err(Error::TooDerived);
        }
        self.previous().set(Some(parent));
        self.next().set(parent.next().get());
        self.depth().set(parent.depth().get() + 1);
        if let Some(next) = parent.next().get() {
            next.previous().set(Some(self));
        }
        parent.next().set(Some(self));
        Ok(())
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
