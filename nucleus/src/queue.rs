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
    /// Puts `activation` before the first.
    pub fn prepend(&mut self, mut activation: Ref<Activation>) {
        (activation.next, activation.previous) = (self.head, None);
        match self.head {
            Some(mut head) => head.previous = Some(activation),
            None => self.tail = Some(activation),
        }
        self.head = Some(activation);
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
