//! Ports: queues of messages. The labels of a message are judged when a receiver takes it.

use super::{Entry, Labelled, PLAIN, Semaphore};
use crate::pointer::{Link, Ref};
use core::cell::Cell;
use flow::Label;
use flow::rules::Optional;
use structures::queue::{Linked, Queue};

/// See the module.
#[repr(C)]
pub struct Port {
    /// Queue of waiting receivers. It never gets tokens.
    pub semaphore: Semaphore,
    /// Highest taint of a message that a receiver may take.
    pub label: Cell<Label>,
    /// Shown with each message.
    pub badge: Cell<u64>,
    /// Maximum length of a message, in bytes.
    pub bytes: Cell<u32>,
    /// Maximum number of waiting messages.
    pub capacity: Cell<u32>,
    /// Index of the oldest message.
    pub first: Cell<u32>,
    /// Number of waiting messages.
    pub count: Cell<u32>,
    /// Page of [`Message`]s, in the direct map: one more than can wait. 0 = none.
    pub messages: Cell<usize>,
    /// Inbox: the port at which receivers take its messages, itself or another. None while it is removed.
    pub inbox: Cell<Link<Port>>,
    /// Inboxes: the ports whose messages are taken here.
    pub members: Queue<Ref<Port>>,
    /// Number of members.
    pub member_count: Cell<u32>,
    /// Number of waiting messages of all members.
    pub pending: Cell<u32>,
    /// Number of messages taken or dropped here so far.
    pub taken: Cell<u64>,
    /// Labels of domains that have lent it their send label.
    pub lenders: Queue<Ref<Labelled>>,
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
    /// The entry in this message.
    pub fn entry(self) -> Ref<Entry> {
        // SAFETY: a field of a live object, so it is not null and lives as long.
        unsafe { Ref::new(&raw mut (*self.pointer()).entry) }
    }
}

/// Room for a message.
#[repr(C, align(64))]
pub struct Message {
    /// Its labels, with E (the effective taint) in place of Cs. Charged to the port's account, unless lent. Not valid if it is plain.
    pub labels: Cell<Optional>,
    /// Address of its bytes, in the direct map.
    pub data: Cell<usize>,
    /// Number of bytes.
    pub bytes: Cell<u32>,
    /// It has no entry, and its labels are [`PLAIN_MESSAGE`].
    pub is_plain: Cell<bool>,
    /// E is the send label of a domain, lent by it. There are no other labels.
    pub is_lent: Cell<bool>,
    /// A copy of an entry of the sender, for the receiver. No domain can invoke it here.
    pub entry: Entry,
}

/// Labels of a plain message: the sender's S is {1}, with no optional labels.
pub const PLAIN_MESSAGE: Optional = Optional { contaminate: PLAIN, ..Optional::NONE };

const _: () = assert!(size_of::<Message>() == 128);
