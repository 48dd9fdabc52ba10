//! Queues of waiting activations, linked through them; FIFO.

use crate::activation::Activation;
use crate::pointer::{Link, Ref};

/// Head and tail.
#[repr(C)]
pub struct Queue {
    /// First to be served.
    pub head: Link<Activation>,
    tail: Link<Activation>,
}

impl Queue {
    /// Appends.
    pub fn append(&mut self, mut activation: Ref<Activation>) {
        (activation.next, activation.previous) = (None, self.tail);
        match self.tail {
            Some(mut tail) => tail.next = Some(activation),
            None => self.head = Some(activation),
        }
        self.tail = Some(activation);
    }
    /// Puts `activation` before the first for which `yields` holds, or at the end.
    pub fn insert(&mut self, mut activation: Ref<Activation>, yields: impl Fn(Ref<Activation>) -> bool) {
        let mut next = self.head;
        while let Some(other) = next.filter(|other| !yields(*other)) {
            next = other.next;
        }
        let Some(mut next) = next else { return self.append(activation) };
        (activation.next, activation.previous) = (Some(next), next.previous);
        match next.previous.replace(activation) {
            Some(mut previous) => previous.next = Some(activation),
            None => self.head = Some(activation),
        }
    }
    /// Takes the first.
    pub fn take(&mut self) -> Link<Activation> {
        let mut first = self.head?;
        self.head = first.next.take();
        match self.head {
            Some(mut next) => next.previous = None,
            None => self.tail = None,
        }
        Some(first)
    }
    /// Takes `activation` out.
    pub fn remove(&mut self, mut activation: Ref<Activation>) {
        match activation.previous {
            Some(mut previous) => previous.next = activation.next,
            None => self.head = activation.next,
        }
        match activation.next {
            Some(mut next) => next.previous = activation.previous,
            None => self.tail = activation.previous,
        }
        (activation.next, activation.previous) = (None, None);
    }
}
