//! Ports, without labels of their own: order, room, limits, waits and ends. The effect of labels on messages is compared with the
//! specification by `rules`.

use alloc::vec::Vec;
use core::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use abi::rights::Kind;
use abi::{Control, Error, MAX_BADGE, MAX_MEMBERS, MESSAGE_BYTES, NEVER, rights};
use runtime::entry::Owned;
use runtime::idl::{Reply, Request};
use runtime::op::{self, LabelFrom, Schedule};
use runtime::port::{self, Options, Port, Received, Size};
use runtime::server::{self, Serve};
use runtime::thread::{self, Thread};
use runtime::{Entry, message};

use crate::check::{Check, frames, hold};
use crate::table::places::cpus;

pub const CHECKS: &[Check] = &[
    ("messages come in order, with their badge, as often as one likes", order),
    ("a message without room vanishes, and the sender is not notified", full),
    ("messages of any size, and of one too many", sizes),
    ("the limits of ports", limits),
    ("the uses of entries, and refused ones", refusals),
    ("a waiting thread takes the message, or its wait ends", waits),
    ("several wait: each message wakes one", several),
    ("a woken thread that ends leaves the message to the next", left),
    ("several ports are waited for at one, each in its turn", many),
    ("a receiver that dropped a message has all of its next operation done", nothing_left),
    ("a wait that drops messages ends at its deadline, and other ports have their turn", stormed),
    ("a wait that drops messages is cancelled", cancelled),
    ("a port goes before the receiver that it woke runs", gone_before),
    ("a receiver whose caller is gone takes its message", orphaned),
    ("a receiver whose right goes as it waits leaves the message to the next", right_gone),
    ("a port goes: with its messages, its members and its waiters", goes),
    ("a port and its messages cost their account, and come back", costs),
    ("the example of the book", || answered().map_err(text)),
    ("reply ports go before the message is taken, and after", reply_gone),
    ("an entry comes along, if it is there still and there is a place for it", along),
    ("delegated entries are refused as elsewhere", along_refused),
    ("a port full for ever loses nothing and keeps nothing", full_for_ever),
    ("a label lets messages in or not, and the sender is not notified", labelled),
    ("a message whose labels find no room vanishes, and the sender is not notified", crowded),
];

const SMALL: Size = Size { bytes: 64, messages: 4 };
const NONE: Options =
    Options { contaminate: None, decontaminate_send: None, verify: None, decontaminate_receive: None, along: None };

fn text(error: Error) -> &'static str {
    error.text()
}

fn port(size: Size, badge: u64) -> Result<Port, &'static str> {
    Port::new(Entry::OWN, size, None, None, badge).map_err(text)
}

/// Sends a word.
fn send(port: &Port, word: u64) -> Result<(), &'static str> {
    port::send(port.entry(), &[&word.to_le_bytes()], &NONE).map_err(text)
}

/// Takes what was sent so, without waiting: badge and word.
fn take(port: &Port) -> Result<(u64, u64), Error> {
    take_until(port.entry(), 0)
}

fn take_until(port: Entry, until: u64) -> Result<(u64, u64), Error> {
    port::receive(port, until, None, |Received { badge, .. }, bytes| {
        (badge, bytes.try_into().map_or(u64::MAX, u64::from_le_bytes))
    })
}

fn order() -> Result<(), &'static str> {
    let port = port(SMALL, 7)?;
    let (mut next, mut taken) = (0, 0);
    for round in 0..50 {
        for _ in 0..=round % SMALL.messages {
            send(&port, next)?;
            next += 1;
        }
        while taken < next {
            hold(take(&port) == Ok((7, taken)), "another message")?;
            taken += 1;
        }
        hold(take(&port) == Err(Error::Timeout), "one too many")?;
    }
    Ok(())
}

fn full() -> Result<(), &'static str> {
    let port = port(SMALL, 0)?;
    for round in 0..20 {
        for number in 0..10 {
            send(&port, round * 100 + number)?;
        }
        for number in 0..SMALL.messages as u64 {
            hold(take(&port) == Ok((0, round * 100 + number)), "not the oldest")?;
        }
        hold(take(&port) == Err(Error::Timeout), "more than there is room for")?;
        // So each round begins at another place.
        send(&port, 1)?;
        hold(take(&port) == Ok((0, 1)), "no room afterwards")?;
    }
    Ok(())
}

fn sizes() -> Result<(), &'static str> {
    let full: Vec<u8> = (0..MESSAGE_BYTES).map(|number| (number * 7 % 251) as u8).collect();
    for bytes in [0, 1, 7, 8, 63, 64, 65, 1000, 2048, 2049, MESSAGE_BYTES] {
        let port = port(Size { bytes, messages: 2 }, 3)?;
        for length in [bytes, bytes / 2, 0, bytes] {
            port::send(port.entry(), &[&full[..length]], &NONE).map_err(text)?;
            let is_same = port.receive(0, |received, came| {
                received == Received { badge: 3, bytes: length, entry: None } && came == &full[..length]
            });
            hold(is_same == Ok(true), "other bytes")?;
        }
        if bytes < MESSAGE_BYTES {
            let more = port::send(port.entry(), &[&full[..=bytes]], &NONE);
            hold(more == Err(Error::TooLong), "a byte more than the port takes")?;
            hold(take(&port) == Err(Error::Timeout), "it was sent all the same")?;
        }
    }
    Ok(())
}

fn limits() -> Result<(), &'static str> {
    let made = |bytes, messages, badge| Port::new(Entry::OWN, Size { bytes, messages }, None, None, badge).map(drop);
    hold(made(MESSAGE_BYTES + 1, 1, 0) == Err(Error::BadArgument), "a byte too many")?;
    hold(made(0, 0, 0) == Err(Error::BadArgument), "no messages")?;
    hold(made(0, 1, MAX_BADGE + 1) == Err(Error::BadArgument), "a badge too high")?;
    hold(made(0, 1, MAX_BADGE) == Ok(()), "the highest badge")?;
    for (bytes, most) in [(0, 31), (64, 31), (1024, 31), (1025, 15), (2048, 15), (2049, 7), (MESSAGE_BYTES, 7)] {
        hold(made(bytes, most, 0) == Ok(()), "as many messages as can be")?;
        hold(made(bytes, most + 1, 0) == Err(Error::TooManyMessages), "a message too many")?;
    }
    let inbox = port(SMALL, 0)?;
    let member = || Port::new(Entry::OWN, SMALL, None, Some(&inbox), 1);
    let mut members = (1..MAX_MEMBERS).map(|_| member()).collect::<Result<Vec<_>, _>>().map_err(text)?;
    hold(member().map(drop) == Err(Error::TooManyPorts), "a member too many")?;
    let inner = Port::new(Entry::OWN, SMALL, None, members.first(), 1).map(drop);
    hold(inner == Err(Error::NotInbox), "a member of a member")?;
    members.pop();
    hold(member().map(drop) == Ok(()), "a member in the place of another")?;
    let sender = Owned::new(op::entry_duplicate(inbox.entry(), rights::WRITE | rights::COPY).map_err(text)?);
    let by_sender = op::port_new(Entry::OWN, (64, 1), Entry::OWN, sender.entry(), 0);
    hold(by_sender.map(drop) == Err(Error::NoRight), "a sender may have others receive there")
}

fn refusals() -> Result<(), &'static str> {
    let port = port(SMALL, 0)?;
    let copy = |rights| op::entry_duplicate(port.entry(), rights).map(Owned::new).map_err(text);
    // While nobody else may receive labels are not asked, nor after that.
    let sends = copy(rights::WRITE)?;
    hold(take_until(sends.entry(), 0) == Err(Error::NoRight), "a sender receives")?;
    let receives = copy(rights::USE)?;
    hold(take_until(sends.entry(), 0) == Err(Error::NoRight), "a sender receives what several may")?;
    hold(port::send(receives.entry(), &[], &NONE) == Err(Error::NoRight), "a receiver sends")?;
    port::send(sends.entry(), &[&5u64.to_le_bytes()], &NONE).map_err(text)?;
    hold(take_until(receives.entry(), 0) == Ok((0, 5)), "copies do not do what they are for")?;
    let semaphore = Owned::new(op::semaphore_new(Entry::OWN, 0).map_err(text)?);
    hold(port::send(semaphore.entry(), &[&[1]], &NONE) == Err(Error::NoSuchWay), "a semaphore takes bytes")?;
    hold(port::send(Entry::SPECIAL, &[], &NONE) == Err(Error::WrongKind), "the machine is a port")?;
    // Labels of a message are entries like others.
    let with = |label| Options { verify: Some(label), ..NONE };
    hold(port::send(port.entry(), &[], &with(semaphore.entry())) == Err(Error::WrongKind), "a semaphore as label")?;
    hold(port::send(port.entry(), &[], &with(Entry(400))) == Err(Error::Empty), "nothing as label")?;
    hold(port::send(port.entry(), &[], &with(Entry(1 << 20))) == Err(Error::BadIndex), "an index beyond all as label")?;
    hold(
        port::receive(port.entry(), 0, Some(semaphore.entry()), |_, _| ()) == Err(Error::WrongKind),
        "a semaphore to be shown V",
    )?;
    let member = Port::new(Entry::OWN, SMALL, None, Some(&port), 0).map_err(text)?;
    hold(take(&member) == Err(Error::NotInbox), "messages are taken at a member")?;
    // Only the owner of a handle may decontaminate.
    let label = Owned::new(op::label_new(LabelFrom::Level(abi::level::THREE)).map_err(text)?);
    op::label_put(label.entry(), 0x1234, abi::level::ONE).map_err(text)?;
    let ds = Options { decontaminate_send: Some(label.entry()), ..NONE };
    hold(port::send(port.entry(), &[], &ds) == Err(Error::NotOwned), "a domain that owns nothing decontaminates")?;
    let dr = Options { decontaminate_receive: Some(label.entry()), ..NONE };
    hold(
        port::send(port.entry(), &[], &dr) == Err(Error::NotOwned),
        "a domain that owns nothing has others accept more",
    )?;
    let outcome = port.entry();
    drop(port);
    hold(port::send(sends.entry(), &[], &NONE) == Err(Error::Revoked), "a copy of a port that went")?;
    hold(take_until(outcome, 0) == Err(Error::Empty), "the original of a port that went")
}

/// Threads that take a message each: the message that each of them found, plus 1, or its error, plus 1000.
static FOUND: [AtomicU64; 3] = [const { AtomicU64::new(0) }; 3];
static TAKES_AT: AtomicUsize = AtomicUsize::new(0);
static UNTIL: AtomicU64 = AtomicU64::new(NEVER);

fn takes(number: usize) {
    let found = take_until(Entry(TAKES_AT.load(Ordering::SeqCst)), UNTIL.load(Ordering::SeqCst));
    FOUND[number].store(found.map_or_else(|error| 1000 + error as u64, |(_, word)| word + 1), Ordering::SeqCst);
}

/// A thread that waits at the port when this returns.
fn taker(port: &Port, number: usize, until: u64) -> Result<Thread, &'static str> {
    taker_of(port, number, until, 12)
}

fn taker_of(port: &Port, number: usize, until: u64, priority: u8) -> Result<Thread, &'static str> {
    TAKES_AT.store(port.entry().0, Ordering::SeqCst);
    UNTIL.store(until, Ordering::SeqCst);
    FOUND[number].store(0, Ordering::SeqCst);
    let thread = Thread::start_with(takes, number, Schedule { priority, slice: 1_000 }).map_err(text)?;
    thread::sleep(1_000_000).map_err(text)?;
    Ok(thread)
}

fn found(number: usize) -> u64 {
    FOUND[number].load(Ordering::SeqCst)
}

fn failed(error: Error) -> u64 {
    1000 + error as u64
}

fn waits() -> Result<(), &'static str> {
    let port = port(SMALL, 0)?;
    let waiting = taker(&port, 0, NEVER)?;
    hold(found(0) == 0, "it does not wait")?;
    send(&port, 40)?;
    waiting.join();
    hold(found(0) == 41, "it did not take the message")?;
    let late = taker(&port, 0, op::clock() + 3_000_000)?;
    late.join();
    hold(found(0) == failed(Error::Timeout), "its deadline does not end the wait")?;
    // A message in time, and the deadline is forgotten.
    let early = taker(&port, 0, op::clock() + 5_000_000)?;
    send(&port, 41)?;
    early.join();
    hold(found(0) == 42, "a message before the deadline")?;
    let cancelled = taker(&port, 0, NEVER)?;
    op::thread_cancel(cancelled.entry()).map_err(text)?;
    cancelled.join();
    hold(found(0) == failed(Error::Cancelled), "it did not see the cancellation")?;
    send(&port, 42)?;
    hold(take(&port) == Ok((0, 42)), "a thread that waits no more took a message")?;
    let orphaned = taker(&port, 0, NEVER)?;
    drop(port);
    orphaned.join();
    hold(found(0) == failed(Error::Removed), "it did not see that the port went")
}

fn several() -> Result<(), &'static str> {
    let port = port(SMALL, 0)?;
    let threads = [taker_of(&port, 0, NEVER, 10)?, taker_of(&port, 1, NEVER, 14)?, taker_of(&port, 2, NEVER, 10)?];
    (1..=3).try_for_each(|word| send(&port, word))?;
    threads.into_iter().for_each(Thread::join);
    hold([found(0), found(1), found(2)] == [3, 2, 4], "not the highest first, then the longest waiter")?;
    hold(take(&port) == Err(Error::Timeout), "one message too many")?;
    // A receiver with a higher priority takes the message before the sender continues.
    let first = taker_of(&port, 0, NEVER, 18)?;
    send(&port, 4)?;
    let at_once = found(0);
    first.join();
    hold(at_once == 5 || cpus()? > 1, "it does not run at once")
}

fn left() -> Result<(), &'static str> {
    let port = port(SMALL, 0)?;
    // Both are below us: they are woken and do not run.
    let (first, second) = (taker_of(&port, 0, NEVER, 14)?, taker_of(&port, 1, NEVER, 10)?);
    send(&port, 50)?;
    op::thread_cancel(first.entry()).map_err(text)?;
    first.join();
    second.join();
    hold(found(0) == failed(Error::Cancelled) && found(1) == 51, "the next one did not take the message")?;
    let (first, second) = (taker_of(&port, 0, NEVER, 14)?, taker_of(&port, 1, NEVER, 10)?);
    send(&port, 51)?;
    op::entry_remove(Entry::OWN, first.entry()).map_err(text)?;
    second.join();
    hold(found(0) == 0 && found(1) == 52, "the next one did not take that of a thread that went")
}

fn many() -> Result<(), &'static str> {
    let inbox = port(SMALL, 1)?;
    let member = |badge| Port::new(Entry::OWN, SMALL, None, Some(&inbox), badge).map_err(text);
    let (two, three) = (member(2)?, member(3)?);
    for word in 0..2 {
        send(&three, 30 + word)?;
        send(&inbox, 10 + word)?;
    }
    send(&two, 20)?;
    let mut taken: Vec<_> = core::iter::from_fn(|| take(&inbox).ok()).collect();
    hold(taken[..3].iter().map(|(badge, _)| badge).sum::<u64>() == 6, "one port twice before another")?;
    taken.sort_unstable();
    hold(taken == [(1, 10), (1, 11), (2, 20), (3, 30), (3, 31)], "not all messages, or others")?;
    let waiting = taker(&inbox, 0, NEVER)?;
    send(&two, 60)?;
    waiting.join();
    hold(found(0) == 61, "a message to a member wakes nobody")
}

/// A message that its own sender has refused: nobody takes it.
fn send_refused(port: &Port) -> Result<(), &'static str> {
    let zero = Owned::new(op::label_new(LabelFrom::Level(abi::level::ZERO)).map_err(text)?);
    let refused = Options { verify: Some(zero.entry()), ..NONE };
    port::send(port.entry(), &[&99u64.to_le_bytes()], &refused).map_err(text)
}

/// A domain in which the operation after a receive makes an entry, at the index that the nucleus finds; and the status of that.
static CHILD: AtomicUsize = AtomicUsize::new(0);
static MADE: AtomicU64 = AtomicU64::new(0);

fn takes_and_makes(number: usize) {
    takes(number);
    let [port, child] = [&TAKES_AT, &CHILD].map(|entry| Entry(entry.load(Ordering::SeqCst)));
    let made = op::entry_copy(Entry::OWN, port, child, Entry::OWN, rights::WRITE);
    MADE.store(made.map_or_else(failed, |_| 0), Ordering::SeqCst);
}

fn nothing_left() -> Result<(), &'static str> {
    let account = Owned::new(op::account_new(Entry::OWN, 32).map_err(text)?);
    let child = Owned::new(op::domain_new(account.entry(), 0, "child").map_err(text)?);
    CHILD.store(child.entry().0, Ordering::SeqCst);
    for until in [NEVER, 2_000_000] {
        let port = port(SMALL, 0)?;
        TAKES_AT.store(port.entry().0, Ordering::SeqCst);
        let deadline = if until == NEVER { NEVER } else { op::clock() + until };
        UNTIL.store(deadline, Ordering::SeqCst);
        let schedule = Schedule { priority: 12, slice: 1_000 };
        let thread = Thread::start_with(takes_and_makes, 0, schedule).map_err(text)?;
        thread::sleep(1_000_000).map_err(text)?;
        // It is woken for one that it drops, and the next one it takes at once.
        send_refused(&port)?;
        if until == NEVER {
            send(&port, 5)?;
        } else {
            while op::clock() < deadline {}
        }
        thread.join();
        let due = if until == NEVER { 6 } else { failed(Error::Timeout) };
        hold(found(0) == due, "another end of the wait")?;
        hold(MADE.load(Ordering::SeqCst) == 0, "a search for a free index began at its end")?;
    }
    Ok(())
}

/// Rounds of a storm of refused messages, and those that it has done.
const STORM: usize = 5_000;
static STORMED: AtomicUsize = AtomicUsize::new(0);

fn storms(port: usize) {
    let zero = op::label_new(LabelFrom::Level(abi::level::ZERO)).map(Owned::new);
    let Ok(zero) = zero else { return };
    let refused = Options { verify: Some(zero.entry()), ..NONE };
    for _ in 0..STORM {
        for _ in 0..SMALL.messages {
            let _ = port::send(Entry(port), &[], &refused);
        }
        STORMED.fetch_add(1, Ordering::SeqCst);
        let _ = thread::sleep(5_000);
    }
}

fn stormed() -> Result<(), &'static str> {
    let inbox = port(SMALL, 1)?;
    let [one, two] = [2, 3].map(|badge| Port::new(Entry::OWN, SMALL, None, Some(&inbox), badge));
    let (one, two) = (one.map_err(text)?, two.map_err(text)?);
    STORMED.store(0, Ordering::SeqCst);
    let storm = Thread::start_with(storms, one.entry().0, Schedule { priority: 18, slice: 1_000 }).map_err(text)?;
    for _ in 0..20 {
        hold(take(&inbox) == Err(Error::Timeout), "a refused message")?;
        hold(take_until(inbox.entry(), op::clock() + 200_000) == Err(Error::Timeout), "a refused message in time")?;
        send(&two, 7)?;
        hold(take_until(inbox.entry(), NEVER) == Ok((3, 7)), "not that of the other port")?;
    }
    hold(STORMED.load(Ordering::SeqCst) < STORM, "the storm went first")?;
    drop(one);
    storm.join();
    hold(take(&inbox) == Err(Error::Timeout), "a message of a port that went")
}

fn cancelled() -> Result<(), &'static str> {
    let port = port(Size { bytes: 64, messages: 31 }, 0)?;
    for round in 0..60 {
        let waiting = taker_of(&port, 0, NEVER, 10)?;
        for _ in 0..31 {
            send_refused(&port)?;
        }
        // In most rounds it is dropping them as we cancel it.
        thread::sleep(2_000 * round).map_err(text)?;
        op::thread_cancel(waiting.entry()).map_err(text)?;
        thread::sleep(200_000).map_err(text)?;
        // It would end such a wait.
        send(&port, 1)?;
        waiting.join();
        hold(found(0) == failed(Error::Cancelled), "it goes on waiting")?;
        let _ = take(&port);
        hold(take(&port) == Err(Error::Timeout), "a message is left")?;
    }
    Ok(())
}

fn gone_before() -> Result<(), &'static str> {
    let port = port(SMALL, 0)?;
    let waiting = taker(&port, 0, NEVER)?;
    send(&port, 60)?;
    drop(port);
    waiting.join();
    hold(found(0) == failed(Error::Removed) || found(0) == 61 && cpus()? > 1, "not that the port went")
}

/// A service that receives in its calls.
struct Receives;

impl Serve for Receives {
    fn serve(_: &mut Request<'_>) -> Reply {
        takes(0);
        Reply::word(0)
    }
}

fn orphaned() -> Result<(), &'static str> {
    server::activations(1).map_err(text)?;
    let service = server::service_with::<Receives>(abi::op::SERVICE_DEADLINE).map_err(text)?;
    let call = Owned::new(runtime::table::allocate().map_err(text)?);
    op::portal_new(Entry::OWN, service, 0, call.entry(), 0).map_err(text)?;
    let port = port(SMALL, 0)?;
    TAKES_AT.store(port.entry().0, Ordering::SeqCst);
    UNTIL.store(NEVER, Ordering::SeqCst);
    FOUND[0].store(0, Ordering::SeqCst);
    let words = [0, 0, 0, 0, op::clock() + 2_000_000];
    let outcome = message::call(call.entry(), words, Control(Control::DEADLINE)).map(drop);
    hold(outcome == Err(Error::Timeout), "the call did not end at its deadline")?;
    send(&port, 80)?;
    for _ in 0..100 {
        if found(0) == 0 {
            thread::sleep(100_000).map_err(text)?;
        }
    }
    hold(found(0) == 81, "it got another message, or none")
}

fn right_gone() -> Result<(), &'static str> {
    let port = port(SMALL, 0)?;
    let copy = Owned::new(op::entry_duplicate(port.entry(), rights::USE).map_err(text)?);
    let second = taker_of(&port, 1, NEVER, 10)?;
    TAKES_AT.store(copy.entry().0, Ordering::SeqCst);
    let first = Thread::start_with(takes, 0, Schedule { priority: 14, slice: 1_000 }).map_err(text)?;
    thread::sleep(1_000_000).map_err(text)?;
    drop(copy);
    send(&port, 70)?;
    first.join();
    second.join();
    hold([found(0), found(1)] == [failed(Error::Removed), 71], "not the one whose right is there")
}

fn goes() -> Result<(), &'static str> {
    let inbox = port(SMALL, 1)?;
    let member = || Port::new(Entry::OWN, SMALL, None, Some(&inbox), 2).map_err(text);
    let (one, two) = (member()?, member()?);
    send(&one, 1)?;
    send(&two, 2)?;
    send(&one, 3)?;
    // A member goes with its messages; the others stay.
    drop(one);
    hold(take(&inbox) == Ok((2, 2)) && take(&inbox) == Err(Error::Timeout), "messages of a member that went")?;
    send(&two, 4)?;
    let waiting = taker(&inbox, 0, NEVER)?;
    waiting.join();
    hold(found(0) == 5, "the other member")?;
    send(&two, 6)?;
    hold(take(&two) == Err(Error::NotInbox), "messages are received at a member")?;
    drop(inbox);
    // From then on it is its own inbox, and its sender is not notified.
    for word in 0..10 {
        send(&two, word)?;
    }
    let taken: Vec<_> = core::iter::from_fn(|| take(&two).ok()).collect();
    hold(taken == [(2, 6), (2, 0), (2, 1), (2, 2)], "not the messages of a member whose inbox went")?;
    let waiting = taker(&two, 0, NEVER)?;
    send(&two, 7)?;
    waiting.join();
    hold(found(0) == 8, "a receiver at a member whose inbox went")?;
    drop(two);
    let again = port(SMALL, 0)?;
    send(&again, 1)?;
    hold(take(&again) == Ok((0, 1)), "another port")
}

fn costs() -> Result<(), &'static str> {
    let account = |count| op::account_new(Entry::OWN, count).map(Owned::new).map_err(text);
    let rich = account(40)?;
    let size = Size { bytes: MESSAGE_BYTES, messages: 7 };
    let before = frames()?;
    // A page of places, 8 of data, and one of small objects.
    let port = Port::new(rich.entry(), size, None, None, 0).map_err(text)?;
    hold(before - frames()? == 10, "not what a port takes")?;
    drop(port);
    hold(frames()? == before, "a port that went left something")?;
    for few in 0..10 {
        let poor = account(few)?;
        let before = frames()?;
        let made = Port::new(poor.entry(), size, None, None, 0).map(drop);
        hold(made == Err(Error::OtherExhausted), "a port for which there is no room")?;
        hold(frames()? == before, "a port that was not made left something")?;
    }
    Ok(())
}

/// Takes what comes along with a message without bytes.
fn take_entry(port: &Port) -> Result<Option<Owned>, Error> {
    message::prepare_receive()?;
    port.receive(0, |received, _| received.entry.map(Owned::new))
}

fn along() -> Result<(), &'static str> {
    let port = port(SMALL, 0)?;
    let with = |entry| port::send(port.entry(), &[], &Options { along: Some(entry), ..NONE }).map_err(text);
    let semaphore = || op::semaphore_new(Entry::OWN, 0).map(Owned::new).map_err(text);
    let first = semaphore()?;
    with(first.entry())?;
    let copy = take_entry(&port).map_err(text)?.ok_or("nothing came")?;
    op::v(copy.entry()).map_err(text)?;
    hold(op::p(first.entry(), 0) == Ok(()), "another message came")?;
    hold(op::entry_info(Entry::OWN, copy.entry()) == Ok((Kind::Semaphore, rights::ALL)), "it lost rights")?;
    // The next one comes only where its receiver says.
    let place = copy.entry();
    drop(copy);
    with(first.entry())?;
    hold(port.receive(0, |received, _| received.entry.is_some()) == Ok(false), "it came where the last one did")?;
    hold(op::entry_info(Entry::OWN, place) == Ok((Kind::Empty, 0)), "something stands there")?;
    let copy = op::entry_duplicate(first.entry(), rights::ALL).map(Owned::new).map_err(text)?;
    // Entries in all places, in order, twice round.
    for _ in 0..2 * SMALL.messages {
        with(copy.entry())?;
        with(first.entry())?;
        hold(take_entry(&port).is_ok_and(|entry| entry.is_some()), "an entry that did not come")?;
        hold(take_entry(&port).is_ok_and(|entry| entry.is_some()), "the next one that did not come")?;
    }
    // An entry that was removed meanwhile does not arrive; its message does.
    let second = semaphore()?;
    with(second.entry())?;
    with(first.entry())?;
    drop(second);
    hold(take_entry(&port) == Ok(None), "a semaphore that went")?;
    hold(take_entry(&port).is_ok_and(|entry| entry.is_some()), "the one after it")?;
    with(copy.entry())?;
    op::entry_revoke(Entry::OWN, first.entry()).map_err(text)?;
    hold(take_entry(&port) == Ok(None), "an entry that was revoked as it waited")?;
    // Nor where there is no place for it.
    with(first.entry())?;
    message::prepare_receive().map_err(text)?;
    let receive = op::entry_duplicate(first.entry(), rights::ALL).map(Owned::new).map_err(text)?;
    op::activation_set(abi::op::ACTIVATION_RECEIVE, receive.entry().0 as u64).map_err(text)?;
    let came = port.receive(0, |received, _| received.entry.is_some());
    hold(came == Ok(false), "it came where something stands")?;
    op::activation_set(abi::op::ACTIVATION_RECEIVE, 0).map_err(text)?;
    with(first.entry())?;
    hold(port.receive(0, |received, _| received.entry.is_some()) == Ok(false), "it came though none is accepted")?;
    // A dropped message keeps no entry, and a removed port releases those of its messages.
    let before = frames()?;
    for _ in 0..3 * SMALL.messages {
        with(first.entry())?;
    }
    drop((copy, receive, port));
    hold(op::entry_remove(Entry::OWN, first.leak()) == Ok(()) && frames()? >= before, "something is kept")
}

fn along_refused() -> Result<(), &'static str> {
    let port = port(SMALL, 0)?;
    let with = |entry| port::send(port.entry(), &[], &Options { along: Some(entry), ..NONE });
    let semaphore = Owned::new(op::semaphore_new(Entry::OWN, 0).map_err(text)?);
    let fixed = op::entry_duplicate(semaphore.entry(), rights::ALL & !rights::COPY).map(Owned::new).map_err(text)?;
    hold(with(Entry(abi::op::CLOCK)) == Err(Error::WrongKind), "a kernel operation")?;
    hold(with(fixed.entry()) == Err(Error::NoRight), "an entry that may not be copied")?;
    hold(with(Entry(400)) == Err(Error::Empty), "nothing")?;
    hold(with(Entry(1 << 20)) == Err(Error::BadIndex), "an index beyond all")?;
    let label = Owned::new(op::label_new(LabelFrom::Send).map_err(text)?);
    hold(with(label.entry()) == Err(Error::NoRight), "a label")?;
    let mut copies = Vec::new();
    let mut last = op::entry_duplicate(semaphore.entry(), rights::ALL).map_err(text)?;
    while let Ok(next) = op::entry_duplicate(last, rights::ALL) {
        copies.push(Owned::new(last));
        last = next;
    }
    hold(with(last) == Err(Error::TooDerived), "a copy of too many copies")?;
    hold(take(&port) == Err(Error::Timeout), "a message was sent all the same")?;
    drop(Owned::new(last));
    op::entry_revoke(Entry::OWN, semaphore.entry()).map_err(text)?;
    hold(with(fixed.entry()) == Err(Error::Revoked), "an entry that was revoked")
}

fn reply_gone() -> Result<(), &'static str> {
    let server = port(SMALL, 0)?;
    let with = |entry| port::send(server.entry(), &[], &Options { along: Some(entry), ..NONE }).map_err(text);
    let reply = || port(SMALL, 1);
    // Before: the message arrives alone, and the next entry comes where that one was to.
    let early = reply()?;
    with(early.entry())?;
    drop(early);
    hold(take_entry(&server) == Ok(None), "a reply port that went")?;
    let stays = reply()?;
    with(stays.entry())?;
    let copy = take_entry(&server).map_err(text)?.ok_or("no reply port")?;
    // After: an answer is refused, as by any entry that was revoked.
    let late = reply()?;
    with(late.entry())?;
    let other = take_entry(&server).map_err(text)?.ok_or("no second reply port")?;
    drop(late);
    hold(port::send(other.entry(), &[], &NONE) == Err(Error::Revoked), "an answer to a port that went")?;
    hold(port::send(copy.entry(), &[&3u64.to_le_bytes()], &NONE) == Ok(()), "an answer to the other")?;
    hold(take(&stays) == Ok((1, 3)), "another answer")?;
    // A right that did not come along is not there.
    let deaf = Owned::new(op::entry_duplicate(stays.entry(), rights::COPY).map_err(text)?);
    with(deaf.entry())?;
    let deaf = take_entry(&server).map_err(text)?.ok_or("no entry without rights")?;
    hold(port::send(deaf.entry(), &[], &NONE) == Err(Error::NoRight), "an answer without the right")?;
    // A port in its own queue goes with it.
    let before = frames()?;
    for _ in 0..SMALL.messages {
        port::send(stays.entry(), &[], &Options { along: Some(stays.entry()), ..NONE }).map_err(text)?;
    }
    drop(stays);
    hold(frames()? >= before, "a port in its own queue stays")?;
    hold(port::send(copy.entry(), &[], &NONE) == Err(Error::Revoked), "an answer to a port that went with its queue")
}

fn full_for_ever() -> Result<(), &'static str> {
    let port = port(SMALL, 0)?;
    let verify = Owned::new(op::label_new(LabelFrom::Level(abi::level::THREE)).map_err(text)?);
    for number in 0..100u64 {
        op::label_put(verify.entry(), number << 20, abi::level::TWO).map_err(text)?;
    }
    let semaphore = Owned::new(op::semaphore_new(Entry::OWN, 0).map_err(text)?);
    let more = Options { verify: Some(verify.entry()), along: Some(semaphore.entry()), ..NONE };
    let send_more = || port::send(port.entry(), &[&8u64.to_le_bytes()], &more).map_err(text);
    (0..SMALL.messages).try_for_each(|_| send_more())?;
    send_more()?;
    let before = frames()?;
    for _ in 0..1_000 {
        send(&port, 9)?;
        send_more()?;
    }
    hold(frames()? == before, "messages without room keep frames")?;
    op::entry_revoke(Entry::OWN, semaphore.entry()).map_err(text)?;
    for _ in 0..SMALL.messages {
        message::prepare_receive().map_err(text)?;
        let came = port.receive(0, |received, bytes| received.entry.is_none() && bytes == 8u64.to_le_bytes());
        hold(came == Ok(true), "not the first messages, without what was revoked")?;
    }
    hold(take(&port) == Err(Error::Timeout), "a message without room")
}

/// The worked example of the book's chapter on ports, which a host test compares with this.
fn answered() -> Result<(), Error> {
    // [reply]
    // A server's port, for eight messages of 64 bytes, and a client's, for the answer.
    let server = Port::new(Entry::OWN, Size { bytes: 64, messages: 8 }, None, None, 7)?;
    let answers = Port::new(Entry::OWN, Size { bytes: 64, messages: 1 }, None, None, 0)?;

    // The client: the right to send to its port comes along with the question.
    let reply = Owned::new(op::entry_duplicate(answers.entry(), rights::WRITE | rights::COPY)?);
    port::send(server.entry(), &[b"how ", b"many?"], &Options { along: Some(reply.entry()), ..Options::default() })?;

    // The server: each message says by its badge at which port it came, and may bring an entry.
    message::prepare_receive()?;
    let (badge, reply) = server.receive(NEVER, |received, _question| (received.badge, received.entry))?;
    if let Some(reply) = reply.map(Owned::new) {
        port::send(reply.entry(), &[&badge.to_le_bytes()], &Options::default())?;
    }

    // The client again.
    let answer = answers.receive(NEVER, |_, bytes| bytes.to_vec())?;
    // [end]
    if answer == 7u64.to_le_bytes() { Ok(()) } else { Err(Error::BadArgument) }
}

fn labelled() -> Result<(), &'static str> {
    let label = |level| op::label_new(LabelFrom::Level(level)).map(Owned::new).map_err(text);
    let (zero, one) = (label(abi::level::ZERO)?, label(abi::level::ONE)?);
    let of = |label: &Owned| Port::new(Entry::OWN, SMALL, Some(label.entry()), None, 0).map_err(text);
    let (shut, open) = (of(&zero)?, of(&one)?);
    for port in [&shut, &open] {
        send(port, 9)?;
    }
    hold(take(&shut) == Err(Error::Timeout), "a message above the port's label")?;
    hold(take(&open) == Ok((0, 9)), "a message below the port's label")?;
    // A whole queue of them goes unseen.
    (0..9).try_for_each(|word| send(&shut, word))?;
    hold(take(&shut) == Err(Error::Timeout), "one of many messages above the port's label")?;
    // A waiting receiver does not learn of a message that it may not take.
    let waiting = taker(&shut, 0, op::clock() + 5_000_000)?;
    send(&shut, 1)?;
    waiting.join();
    hold(found(0) == failed(Error::Timeout), "it was notified of a message that it may not take")?;
    // V is shown.
    let (shown, proof) = (label(abi::level::ZERO)?, label(abi::level::TWO)?);
    op::label_put(proof.entry(), 77, abi::level::THREE).map_err(text)?;
    port::send(open.entry(), &[&1u64.to_le_bytes()], &Options { verify: Some(proof.entry()), ..NONE }).map_err(text)?;
    port::receive(open.entry(), 0, Some(shown.entry()), |_, _| ()).map_err(text)?;
    let mut entries = Vec::new();
    let reported = op::label_read(shown.entry(), 0, |handle, level| entries.push((handle, level))).map_err(text)?;
    hold(reported == (1, abi::level::TWO) && entries == [(77, abi::level::THREE)], "V is not what was shown")
}

fn crowded() -> Result<(), &'static str> {
    let verify = Owned::new(op::label_new(LabelFrom::Level(abi::level::THREE)).map_err(text)?);
    for number in 0..500u64 {
        let handle = number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 3;
        op::label_put(verify.entry(), handle, abi::level::TWO).map_err(text)?;
    }
    let proven = Options { verify: Some(verify.entry()), ..NONE };
    let account = |frames| op::account_new(Entry::OWN, frames).map(Owned::new);
    let made = |frames| {
        let account = account(frames).ok()?;
        Port::new(account.entry(), SMALL, None, None, 0).ok().map(|port| (port, account))
    };
    // Just enough for the port.
    let (narrow, _account) = (0..10).find_map(made).ok_or("no port")?;
    let wide = port(SMALL, 0)?;
    for (port, due) in [(&narrow, Err(Error::Timeout)), (&wide, Ok((0, 5)))] {
        port::send(port.entry(), &[&5u64.to_le_bytes()], &proven).map_err(text)?;
        hold(take(port) == due, "another message than there is room for")?;
    }
    send(&narrow, 6)?;
    hold(take(&narrow) == Ok((0, 6)), "no room for a message without labels")
}
