//! Ports: messages with labels, one way. The sender learns nothing of the fate of a message.

use abi::{Error, MESSAGE_BYTES, rights};

use crate::entry::Owned;
use crate::{Entry, area, op, raw};

/// The additions of a sender to a message: labels of ours ([`op::label_new`]), and an entry.
#[derive(Clone, Copy, Default, Debug)]
pub struct Options {
    /// Cs: taints the message.
    pub contaminate: Option<Entry>,
    /// Ds: takes taint from the receiver; only where we own the handle.
    pub decontaminate_send: Option<Entry>,
    /// V: our credentials, shown to the receiver.
    pub verify: Option<Entry>,
    /// Dr: has the receiver accept more; only where we own the handle.
    pub decontaminate_receive: Option<Entry>,
    /// A copy of this entry of ours comes along.
    pub along: Option<Entry>,
}

impl Options {
    fn words(&self) -> [u64; 2] {
        let pair = |lower: Option<Entry>, upper: Option<Entry>| {
            let [lower, upper] = [lower, upper].map(|label| label.map_or(0, |label| label.0 as u64));
            lower | upper << 32
        };
        [pair(self.contaminate, self.decontaminate_send), pair(self.verify, self.decontaminate_receive)]
    }
}

/// How large a port is.
#[derive(Clone, Copy, Debug)]
pub struct Size {
    /// Bytes of a message, at most.
    pub bytes: usize,
    /// Messages that wait, at most.
    pub messages: usize,
}

/// A port whose messages we take. It goes when this does; messages sent to it then are refused.
#[derive(Debug)]
pub struct Port(Owned);

/// A received message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Received {
    /// The badge of the port that it was sent to.
    pub badge: u64,
    /// How many bytes came.
    pub bytes: usize,
    /// The entry that came along, which is ours from now on: see [`message::prepare_receive`](crate::message::prepare_receive).
    pub entry: Option<Entry>,
}

impl Received {
    fn of(reported: u64) -> Self {
        let entry = if reported & abi::op::ENTRY_CAME != 0 { area::top().take_received() } else { None };
        Self { badge: reported >> 16, bytes: (reported as usize & 0x7fff).min(MESSAGE_BYTES), entry }
    }
}

impl Port {
    /// A port, for which `account` pays. Only messages below `label` are taken, if there is one. If there is an `inbox`, its receivers take
    /// the messages of both.
    pub fn new(
        account: Entry,
        size: Size,
        label: Option<Entry>,
        inbox: Option<&Self>,
        badge: u64,
    ) -> Result<Self, Error> {
        let (label, inbox) = (label.unwrap_or(Entry::OWN), inbox.map_or(Entry::OWN, Self::entry));
        op::port_new(account, (size.bytes, size.messages), label, inbox, badge).map(|entry| Self(Owned::new(entry)))
    }

    /// Its entry, with all rights.
    pub fn entry(&self) -> Entry {
        self.0.entry()
    }

    /// A copy in the table of `domain`, with the right to send only.
    pub fn give_sender(&self, domain: Entry) -> Result<Entry, Error> {
        op::entry_copy(Entry::OWN, self.entry(), domain, Entry::OWN, rights::WRITE | rights::COPY)
    }

    /// See [`receive`].
    pub fn receive<T>(&self, until: u64, look: impl FnOnce(Received, &[u8]) -> T) -> Result<T, Error> {
        receive(self.entry(), until, None, look)
    }
}

/// Sends the bytes, one piece after the other, to a port by an entry of ours. Whether anybody takes them is not reported.
pub fn send(port: Entry, pieces: &[&[u8]], options: &Options) -> Result<(), Error> {
    let [taints, shows] = options.words();
    area::transfer(
        pieces,
        |bytes| {
            raw::send(port, bytes as u64, options.along.map_or(0, |entry| entry.0 as u64), taints, shows)
                .map(|_| ((), 0))
        },
        |(), _| (),
    )
}

/// Takes the oldest message that our labels let us take, and waits for one until this time, 0 = not at all, [`abi::NEVER`] = for ever. The label
/// `shown` becomes what the sender proves. Shows what came.
pub fn receive<T>(
    port: Entry,
    until: u64,
    shown: Option<Entry>,
    look: impl FnOnce(Received, &[u8]) -> T,
) -> Result<T, Error> {
    let enter = |_| {
        let reported = raw::receive(port, until, shown.map_or(0, |label| label.0 as u64))?;
        let received = Received::of(reported);
        Ok((received, received.bytes))
    };
    area::transfer(&[], enter, look)
}

/// As [`send`], of words, whose number is known when the program is built.
#[inline(always)]
pub fn send_words<const WORDS: usize>(port: Entry, words: &[u64; WORDS]) -> Result<(), Error> {
    if area::put(words) {
        return raw::send(port, (WORDS * 8) as u64, 0, 0, 0).map(drop);
    }
    let words = words.map(u64::to_ne_bytes);
    send(port, &[words.as_flattened()], &Options::default())
}

/// As [`receive`], of such words; those that did not come are what the area held.
#[inline(always)]
pub fn receive_words<const WORDS: usize>(port: Entry, until: u64) -> Result<(Received, [u64; WORDS]), Error> {
    match area::get(|| raw::receive(port, until, 0)) {
        Some(came) => came.map(|(reported, words)| (Received::of(reported), words)),
        None => receive(port, until, None, |received, bytes| {
            let mut words = [0; WORDS];
            words.iter_mut().zip(bytes.as_chunks::<8>().0).for_each(|(word, bytes)| *word = u64::from_ne_bytes(*bytes));
            (received, words)
        }),
    }
}
