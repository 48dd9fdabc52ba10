//! Queues of waiting activations, linked through them; FIFO.

use super::Activation;
use crate::pointer::{Link, Ref};
use core::cell::Cell;

/// Head and tail.
#[repr(C)]
pub struct Queue {
    /// First to be served.
    pub head: Cell<Link<Activation>>,
    tail: Cell<Link<Activation>>,
}

impl Queue {
    /// Appends.
    pub fn append(&self, activation: Ref<Activation>) {
        activation.next.set(None);
        activation.previous.set(self.tail.get());
        match self.tail.get() {
            Some(tail) => tail.next.set(Some(activation)),
            None => self.head.set(Some(activation)),
        }
        self.tail.set(Some(activation));
    }
    /// Puts `activation` before the first for which `yields` holds, or at the end.
    pub fn insert(&self, activation: Ref<Activation>, yields: impl Fn(Ref<Activation>) -> bool) {
        let mut next = self.head.get();
        while let Some(other) = next.filter(|other| !yields(*other)) {
            next = other.next.get();
        }
        let Some(next) = next else { return self.append(activation) };
        activation.next.set(Some(next));
        activation.previous.set(next.previous.get());
        match next.previous.replace(Some(activation)) {
            Some(previous) => previous.next.set(Some(activation)),
            None => self.head.set(Some(activation)),
        }
    }
    /// Takes the first.
    pub fn take(&self) -> Link<Activation> {
        let first = self.head.get()?;
        self.head.set(first.next.take());
        match self.head.get() {
            Some(next) => next.previous.set(None),
            None => self.tail.set(None),
        }
        Some(first)
    }
    /// Takes `activation` out.
    pub fn remove(&self, activation: Ref<Activation>) {
        match activation.previous.get() {
            Some(previous) => previous.next.set(activation.next.get()),
            None => self.head.set(activation.next.get()),
        }
        match activation.next.get() {
            Some(next) => next.previous.set(activation.previous.get()),
            None => self.tail.set(activation.previous.get()),
        }
        activation.next.set(None);
        activation.previous.set(None);
    }
}
