//! Ports: queues of messages whose labels are judged when they are taken.

use super::{Entry, PLAIN, Semaphore};
use crate::pointer::{Link, Ref};
use core::cell::Cell;
use flow::Label;
use flow::rules::Optional;
use structures::queue::{Linked, Queue};

/// See the module.
#[repr(C)]
pub struct Port {
    /// Who waits for a message. Nobody gives it tokens.
    pub semaphore: Semaphore,
    /// What a message may be tainted with, at most.
    pub label: Cell<Label>,
    /// Shown with each message.
    pub badge: Cell<u64>,
    /// Bytes of a message, at most.
    pub bytes: Cell<u32>,
    /// Messages that wait, at most.
    pub capacity: Cell<u32>,
    /// Place of the oldest one.
    pub first: Cell<u32>,
    /// Messages that wait.
    pub count: Cell<u32>,
    /// In the direct map: a page of [`Message`]s, one more than can wait, 0 = there is none.
    pub messages: Cell<usize>,
    /// The port at which its messages are taken: itself, or another one; nothing once that is gone.
    pub inbox: Cell<Link<Port>>,
    /// Of a port at which messages are taken: those whose messages are.
    pub members: Queue<Ref<Port>>,
    /// How many.
    pub member_count: Cell<u32>,
    /// How many messages of all of them wait.
    pub pending: Cell<u32>,
    /// How many were taken, or dropped, before.
    pub taken: Cell<u64>,
    next: Cell<Link<Port>>,
    previous: Cell<Link<Port>>,
}

impl Linked for Ref<Port> {
    fn next(&self) -> &Cell<Link<Port>> {
        &self.next
    }
    fn previous(&self) -> &Cell<Link<Port>> {
        &self.previous
    }
}

impl Ref<Message> {
    /// The entry inside.
    pub fn entry(self) -> Ref<Entry> {
        // SAFETY: a field of a live object.
        unsafe { Ref::new(&raw mut (*self.pointer()).entry) }
    }
}

/// A place for a message.
#[repr(C, align(64))]
pub struct Message {
    /// Its labels, which are the port's account's, with E in the place of Cs; not of a plain one.
    pub labels: Cell<Optional>,
    /// Where its bytes are, in the direct map.
    pub data: Cell<usize>,
    /// How many they are.
    pub bytes: Cell<u32>,
    /// Its sender had the usual labels, and added nothing: it has those of [`PLAIN_MESSAGE`].
    pub is_plain: Cell<bool>,
    /// What comes along: a copy of an entry of the sender's, which nobody can traverse here.
    pub entry: Entry,
}

/// The labels of a plain message.
pub const PLAIN_MESSAGE: Optional = Optional { contaminate: PLAIN, ..Optional::NONE };

const _: () = assert!(size_of::<Message>() == 128);
