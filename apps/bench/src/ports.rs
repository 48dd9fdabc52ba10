//! Messages through ports.

use alloc::string::{String, ToString};

use idl::Delegate;
use runtime::abi::{NEVER, level, rights};
use runtime::entry::{Entry, Owned};
use runtime::op::{self, LabelFrom};
use runtime::port::{self, Port};

use crate::crossings::refused;
use crate::measure::{Row, average, dispatches};
use crate::peer::{self, PEER, PORT as SIZE};

const ROUNDS: u64 = 10_000;
const WARM_UP: u64 = 100;

/// Words of a message.
const WORDS: usize = SIZE.bytes / 8;
/// The content of a message.
const BLOCK: [u64; WORDS] = [0x5a5a; _];

fn text(error: impl ToString) -> String {
    error.to_string()
}

/// 64 bytes through a port of the peer's, and 64 back through one of ours; both wait.
pub fn ping_pong() -> Result<Row, String> {
    peer::start()?;
    let back = Port::new(Entry::OWN, SIZE, None, None, 0).map_err(text)?;
    let delegate = Delegate::entry(back.entry().0, rights::WRITE | rights::COPY);
    let there = Owned::new(PEER.port(delegate).map_err(text)?.into());
    PEER.echo(ROUNDS + WARM_UP).map_err(text)?;
    let mut block = BLOCK;
    let mut round = || {
        port::send_words(there.entry(), &block).unwrap_or_else(|_| refused());
        (_, block) = port::receive_words(back.entry(), NEVER).unwrap_or_else(|_| refused());
    };
    (0..WARM_UP).for_each(|_| round());
    let (value, switches) = dispatches(|| average(ROUNDS, round))?;
    if switches < 2 * ROUNDS {
        return Err(alloc::format!("{switches} switches in {ROUNDS} rounds"));
    }
    // There were even numbers of rounds, each of which inverts the first word.
    if block == BLOCK { Ok(Row::instructions(value).of(ROUNDS)) } else { Err("a wrong answer".into()) }
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
