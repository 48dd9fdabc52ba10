//! Messages of a domain with labels of its own: they have the send label that they were sent with, whatever becomes of their sender.
//!
//! A message without optional labels refers to the sender's label until that changes or goes: `control::lent`.

use abi::rights::WRITE;
use abi::{Error, op as numbers};
use alloc::format;
use alloc::string::String;
use flow::specification::{Label, Labels};
use flow::{Handle, Level};
use runtime::Entry;
use runtime::entry::Owned;
use runtime::op;
use runtime::port::{self, Options, Port, Size};

use crate::check;
use crate::subject::{Outcome, Page, Subject, label_of, text};

const SIZE: Size = Size { bytes: 64, messages: 4 };
const FRAMES: u64 = 64;
const CODE_FRAMES: u64 = 8;
/// Where a subject has its own port.
const OWN_PORT: u64 = 124;
/// The handle that low ports do not admit at level 2, and another one, so that no sender has the usual labels.
const SECRET: u64 = 0x1234;
const OTHER: u64 = 0x5678;

fn hold(condition: bool, what: &str) -> Outcome<()> {
    if condition { Ok(()) } else { Err(what.into()) }
}

fn label(default: Level, entries: impl IntoIterator<Item = (u64, Level)>) -> Label {
    let mut label = Label::of(default);
    for (handle, level) in entries {
        if let Some(handle) = Handle::new(handle) {
            label.set(handle, level);
        }
    }
    label
}

/// Where subjects get their code from.
struct World {
    page: Page,
    free: Owned,
}

/// A subject that sends.
struct Sender<'a> {
    world: &'a World,
    subject: Subject,
}

impl World {
    fn new() -> Outcome<Self> {
        let (page, free) = Page::with_account(CODE_FRAMES)?;
        Ok(Self { page, free })
    }

    /// A domain with this level of the secret handle, and `more` handles at level 2.
    fn sender(&self, secret: Level, more: u64) -> Outcome<Sender<'_>> {
        let others = (0..more).map(|number| (OTHER + number * 0x9_1111, Level::Two));
        let send = label(Level::One, others.chain([(SECRET, secret)]));
        let labels = Labels { send, receive: Label::of(Level::Two), is_explicit: false };
        let subject = Subject::new(&self.page, self.free.entry(), FRAMES, &labels, &Label::of(Level::Three))?;
        Ok(Sender { world: self, subject })
    }
}

impl Sender<'_> {
    fn does(&self, what: &str, index: u64, words: [u64; 6]) -> Outcome<()> {
        match self.subject.enters(&self.world.page, index as usize, words)? {
            [0, ..] => Ok(()),
            [status, ..] => Err(format!("{what}: {:?}", Error::from_status(status).err())),
        }
    }

    /// Gets an entry to send to a port of ours.
    fn reaches(&self, port: &Port) -> Outcome<u64> {
        let to = self.subject.domain.entry();
        op::entry_copy(Entry::OWN, port.entry(), to, Entry::OWN, WRITE).map(|entry| entry.0 as u64).map_err(text)
    }

    fn sends(&self, port: u64) -> Outcome<()> {
        self.does("a message", port, [numbers::SEND, 0, 0, 0, 0, 0])
    }

    fn taints_itself(&self) -> Outcome<()> {
        self.does("a taint", numbers::LABEL as u64, [numbers::LABEL_SEND, SECRET, Level::Two as u64, 0, 0, 0])
    }

    /// Makes a port of its own, to which this leads.
    fn receiver(&self) -> Outcome<Owned> {
        self.does("a port", numbers::PORT_NEW as u64, [0, 1 << 16, OWN_PORT, 0, 0, 0])?;
        let given = Owned::new(runtime::table::allocate().map_err(text)?);
        let own = Entry(OWN_PORT as usize);
        op::entry_copy(self.subject.domain.entry(), own, Entry::OWN, given.entry(), WRITE).map_err(text)?;
        Ok(given)
    }

    /// The status with which it receives at that port, without waiting.
    fn receives(&self) -> Outcome<u64> {
        Ok(self.subject.enters(&self.world.page, OWN_PORT as usize, [numbers::RECEIVE, 0, 0, 0, 0, 0])?[0])
    }

    /// Loses the taint, by a message of ours.
    fn loses_taint(&self) -> Outcome<()> {
        let given = self.receiver()?;
        let less = label_of(&label(Level::Three, [(SECRET, Level::One)]))?;
        port::send(given.entry(), &[], &Options { decontaminate_send: Some(less.entry()), ..Options::default() })
            .map_err(text)?;
        hold(self.receives()? == 0, "it does not lose its taint")
    }
}

/// A port that admits the secret handle up to this level.
fn port_of(account: Entry, secret: Level) -> Outcome<Port> {
    let label = label_of(&label(Level::Three, [(SECRET, secret)]))?;
    Port::new(account, SIZE, Some(label.entry()), None, 0).map_err(text)
}

/// How many messages come, without waiting.
fn came(port: &Port) -> usize {
    core::iter::from_fn(|| port.receive(0, |_, _| ()).ok()).count()
}

fn raised(world: &World) -> Outcome<()> {
    let (sender, low) = (world.sender(Level::One, 1)?, port_of(Entry::OWN, Level::One)?);
    let to_low = sender.reaches(&low)?;
    sender.sends(to_low)?;
    sender.sends(to_low)?;
    sender.taints_itself()?;
    sender.sends(to_low)?;
    hold(came(&low) == 2, "not the two that were sent before the taint")
}

fn lowered(world: &World) -> Outcome<()> {
    let (sender, low) = (world.sender(Level::Two, 1)?, port_of(Entry::OWN, Level::One)?);
    let high = port_of(Entry::OWN, Level::Two)?;
    let (to_low, to_high) = (sender.reaches(&low)?, sender.reaches(&high)?);
    for port in [to_high, to_low] {
        sender.sends(port)?;
    }
    sender.loses_taint()?;
    hold(came(&low) == 0, "a message lost the taint that its sender had")?;
    hold(came(&high) == 1, "a message got lost where its taint is admitted")?;
    sender.sends(to_low)?;
    hold(came(&low) == 1, "a message has a taint that its sender lost before")
}

fn ended(world: &World) -> Outcome<()> {
    let (sender, low) = (world.sender(Level::Two, 1)?, port_of(Entry::OWN, Level::One)?);
    let high = port_of(Entry::OWN, Level::Two)?;
    for port in [&low, &high] {
        let port = sender.reaches(port)?;
        sender.sends(port)?;
        sender.sends(port)?;
    }
    drop(sender);
    hold(came(&low) == 0, "a message of a domain that ended lost its taint")?;
    hold(came(&high) == 2, "a message of a domain that ended got lost")
}

fn several(world: &World) -> Outcome<()> {
    let senders = [world.sender(Level::One, 1)?, world.sender(Level::Two, 1)?];
    let (low, high) = (port_of(Entry::OWN, Level::One)?, port_of(Entry::OWN, Level::Two)?);
    for sender in &senders {
        let (to_low, to_high) = (sender.reaches(&low)?, sender.reaches(&high)?);
        for port in [to_low, to_high, to_low, to_high] {
            sender.sends(port)?;
        }
    }
    let [first, _second] = senders;
    first.taints_itself()?;
    hold(came(&low) == 2, "not those of the one sender")?;
    hold(came(&high) == 4, "not those of both senders")
}

fn port_gone(world: &World) -> Outcome<()> {
    let (sender, gone) = (world.sender(Level::One, 1)?, port_of(Entry::OWN, Level::One)?);
    let to_gone = sender.reaches(&gone)?;
    sender.sends(to_gone)?;
    drop(gone);
    sender.taints_itself()?;
    let high = port_of(Entry::OWN, Level::Two)?;
    let to_high = sender.reaches(&high)?;
    sender.sends(to_high)?;
    hold(came(&high) == 1, "no message to another port")
}

fn crowded(world: &World) -> Outcome<()> {
    let made = |frames| {
        let account = op::account_new(Entry::OWN, frames).map(Owned::new).ok()?;
        port_of(account.entry(), Level::Two).ok().map(|port| (port, account))
    };
    // Just enough for the port.
    let (narrow, _account) = (0..10).find_map(made).ok_or("no port")?;
    let sender = world.sender(Level::One, 300)?;
    let to_narrow = sender.reaches(&narrow)?;
    sender.sends(to_narrow)?;
    hold(came(&narrow) == 1, "a message that needs no room got lost")?;
    sender.sends(to_narrow)?;
    sender.taints_itself()?;
    hold(came(&narrow) == 0, "a message whose label finds no room was received")?;
    sender.sends(to_narrow)?;
    hold(came(&narrow) == 1, "the next message got lost")
}

fn remembered(world: &World) -> Outcome<()> {
    let receiver = world.sender(Level::Two, 1)?;
    let given = receiver.receiver()?;
    let secret = label_of(&label(Level::Star, [(SECRET, Level::Two)]))?;
    let send = || port::send(given.entry(), &[], &Options { contaminate: Some(secret.entry()), ..Options::default() });
    for _ in 0..3 {
        send().map_err(text)?;
        hold(receiver.receives()? == 0, "a message with a taint that it has")?;
    }
    let lowers = [numbers::LABEL_RECEIVE, SECRET, Level::One as u64, 0, 0, 0];
    receiver.does("a lower receive label", numbers::LABEL as u64, lowers)?;
    send().map_err(text)?;
    hold(receiver.receives()? == Error::Timeout as u64, "it receives what it does not accept any more")
}

/// A check in a world.
type Check = (&'static str, fn(&World) -> Outcome<()>);

const CHECKS: [Check; 7] = [
    ("a waiting message does not get the taint that its sender gets", raised),
    ("a waiting message keeps the taint that its sender loses", lowered),
    ("a waiting message keeps its taint when its sender ends", ended),
    ("messages of two senders at two ports keep their labels", several),
    ("a port goes with messages whose labels were lent", port_gone),
    ("a waiting message whose label finds no room vanishes, and its sender is not notified", crowded),
    ("a receiver that accepts less refuses a message like the one before", remembered),
];

/// Makes all checks, twice: the second time, no frame is lost. Their lines.
pub fn lines() -> Outcome<String> {
    let world = World::new()?;
    let make_all = || CHECKS.iter().try_for_each(|(name, check)| check(&world).map_err(|why| format!("{name}: {why}")));
    make_all()?;
    let before = check::frames()?;
    make_all()?;
    hold(check::frames()? == before, "a check of lent labels keeps frames")?;
    Ok(CHECKS.iter().map(|(name, _)| format!("{name}: ok\n")).collect())
}
