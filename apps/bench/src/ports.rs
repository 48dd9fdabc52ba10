//! Messages through ports.

use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::sync::atomic::{AtomicU64, Ordering};

use idl::Delegate;
use runtime::abi::{NEVER, level, rights};
use runtime::arch::ticks;
use runtime::entry::{Entry, Owned};
use runtime::op::{self, LabelFrom, Schedule};
use runtime::port::{self, Port};
use runtime::thread::{self, Thread};

use crate::asked::taint;
use crate::crossings::refused;
use crate::measure::{Row, average, dispatches};
use crate::peer::{self, PEER, PORT as SIZE};

const ROUNDS: u64 = 10_000;
const WARM_UP: u64 = 100;

/// Words of a message.
const WORDS: usize = SIZE.bytes / 8;
/// Nanoseconds after which whoever is to wait does.
const PAUSE: u64 = 1_000_000;
/// The content of a message.
const BLOCK: [u64; WORDS] = [0x5a5a; _];

fn text(error: impl ToString) -> String {
    error.to_string()
}

/// A port of the peer's, one of ours, and the message that goes to the one and comes back to the other; both wait.
struct Exchange {
    there: Owned,
    back: Port,
    block: [u64; WORDS],
}

impl Exchange {
    /// With a peer that answers so many messages.
    fn new(messages: u64) -> Result<Self, String> {
        peer::start()?;
        let back = Port::new(Entry::OWN, SIZE, None, None, 0).map_err(text)?;
        let delegate = Delegate::entry(back.entry().0, rights::WRITE | rights::COPY);
        let there = Owned::new(PEER.port(delegate).map_err(text)?.into());
        PEER.echo(messages).map_err(text)?;
        Ok(Self { there, back, block: BLOCK })
    }

    #[inline(always)]
    fn round(&mut self) {
        port::send_words(self.there.entry(), &self.block).unwrap_or_else(|_| refused());
        (_, self.block) = port::receive_words(self.back.entry(), NEVER).unwrap_or_else(|_| refused());
    }

    /// The row, if there were even numbers of rounds, each of which inverts the first word.
    fn row(&self, value: u64, rounds: u64) -> Result<Row, String> {
        if self.block == BLOCK { Ok(Row::instructions(value).of(rounds)) } else { Err("a wrong answer".into()) }
    }
}

/// 64 bytes through a port of the peer's, and 64 back through one of ours; both wait.
pub fn ping_pong() -> Result<Row, String> {
    let mut exchange = Exchange::new(ROUNDS + WARM_UP)?;
    (0..WARM_UP).for_each(|_| exchange.round());
    let (value, switches) = dispatches(|| average(ROUNDS, || exchange.round()))?;
    if switches < 2 * ROUNDS {
        return Err(alloc::format!("{switches} switches in {ROUNDS} rounds"));
    }
    exchange.row(value, ROUNDS)
}

/// By how much the cost of sending differs: to a port with room, to one that is full, and to one whose label refuses the message. Nobody waits.
pub fn send() -> Result<Row, String> {
    let none = Owned::new(op::label_new(LabelFrom::Level(level::ZERO)).map_err(text)?);
    let port = |label| Port::new(Entry::OWN, SIZE, label, None, 0).map_err(text);
    let (open, full, shut) = (port(None)?, port(None)?, port(Some(none.entry()))?);
    let send = |port: &Port| port::send_words(port.entry(), &BLOCK).unwrap_or_else(|_| refused());
    (0..SIZE.messages).for_each(|_| send(&full));
    // So many find room at once.
    let rounds = SIZE.messages as u64;
    let cost = |port: &Port| {
        send(port);
        let _ = port.receive(0, |_, _| ());
        average(rounds, || send(port))
    };
    let (delivered, refused) = (cost(&open), cost(&shut));
    let dropped = average(rounds, || send(&full));
    let taken = core::iter::from_fn(|| open.receive(0, |_, _| ()).ok()).count();
    if taken != SIZE.messages || shut.receive(0, |_, _| ()).is_ok() {
        return Err(alloc::format!("{taken} messages came"));
    }
    let all = [delivered, refused, dropped];
    let spread = all.iter().max().zip(all.iter().min()).map_or(0, |(most, least)| most - least);
    Ok(Row::instructions(spread).with("delivered", delivered).with("refused", refused).with("full", dropped))
}

/// Messages that came to [`takes`].
static TAKEN: AtomicU64 = AtomicU64::new(0);

/// Takes messages of a port until it is gone.
fn takes(port: usize) {
    while port::receive_words::<WORDS>(Entry(port), NEVER).is_ok() {
        TAKEN.fetch_add(1, Ordering::Relaxed);
    }
}

/// By how much the cost of sending differs while a thread of lower priority waits for messages: to a port whose label admits the message, and to
/// one whose label refuses it. With an empty queue, as somebody waits.
pub fn send_waiting() -> Result<Row, String> {
    const SAMPLES: u64 = 20;
    const LOW: Schedule = Schedule { priority: 0, slice: 10_000 };
    TAKEN.store(0, Ordering::Relaxed);
    let none = Owned::new(op::label_new(LabelFrom::Level(level::ZERO)).map_err(text)?);
    let mut costs = [0; 2];
    for (cost, label) in costs.iter_mut().zip([None, Some(none.entry())]) {
        let port = Port::new(Entry::OWN, SIZE, label, None, 0).map_err(text)?;
        let waits = Thread::start_with(takes, port.entry().0, LOW).map_err(text)?;
        let mut samples = Vec::new();
        for _ in 0..SAMPLES {
            // It waits again.
            thread::sleep(PAUSE).map_err(text)?;
            let start = ticks();
            port::send_words(port.entry(), &BLOCK).map_err(text)?;
            samples.push(ticks() - start);
        }
        thread::sleep(PAUSE).map_err(text)?;
        samples.sort_unstable();
        *cost = samples[samples.len() / 2];
        drop(port);
        waits.join();
    }
    let taken = TAKEN.load(Ordering::Relaxed);
    if taken != SAMPLES {
        return Err(alloc::format!("{taken} messages came"));
    }
    let [delivered, refused] = costs;
    Ok(Row::instructions(delivered.abs_diff(refused)).with("delivered", delivered).with("refused", refused))
}

/// Handles in the labels of both.
const HANDLES: u64 = 1000;
/// Messages between two changes of labels.
const BETWEEN: u64 = 100;

/// As [`ping_pong`], of domains whose send labels have a thousand handles. Before every hundredth message ours gets one more, and so does the peer's by that message.
/// This program is started for it alone.
pub fn ping_pong_labelled() -> Result<Row, String> {
    const ROUNDS: u64 = 1000;
    let mut exchange = Exchange::new(ROUNDS + BETWEEN)?;
    let (mut count, mut handles) = (0, HANDLES);
    taint(0, HANDLES).map_err(text)?;
    let mut round = || {
        if count % BETWEEN == 0 {
            taint(handles, handles + 1).unwrap_or_else(|_| refused());
            handles += 1;
        }
        count += 1;
        exchange.round();
    };
    (0..BETWEEN).for_each(|_| round());
    let value = average(ROUNDS, round);
    exchange.row(value, ROUNDS)
}
