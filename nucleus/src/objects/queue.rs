//! Queues of waiting activations: `structures::queue`.

use super::Activation;
use crate::pointer::{Link, Ref};
use core::cell::Cell;
use structures::queue::{Linked, Ranks};

/// See [`structures::queue::Queue`].
pub type Queue = structures::queue::Queue<Ref<Activation>>;

/// Ordered by the priority with which each waits: see [`structures::queue::Ranked`].
pub type Ranked = structures::queue::Ranked<Ref<Activation>>;

impl Ranks for Ref<Activation> {
    fn rank(&self) -> u8 {
        self.amount.get()
    }
    fn behind(&self) -> &Queue {
        &self.behind
    }
}

impl Linked for Ref<Activation> {
    fn next(&self) -> &Cell<Link<Activation>> {
        &self.next
    }
    fn previous(&self) -> &Cell<Link<Activation>> {
        &self.previous
    }
}
