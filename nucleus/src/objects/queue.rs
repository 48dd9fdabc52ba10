//! Queues of waiting activations: `structures::queue`.

use super::Activation;
use crate::pointer::{Link, Ref};
use core::cell::Cell;
use structures::queue::Linked;

/// See [`structures::queue::Queue`].
pub type Queue = structures::queue::Queue<Ref<Activation>>;

impl Linked for Ref<Activation> {
    fn next(&self) -> &Cell<Link<Activation>> {
        &self.next
    }
    fn previous(&self) -> &Cell<Link<Activation>> {
        &self.previous
    }
}
