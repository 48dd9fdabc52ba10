//! Reports for people: `ifconfig`, `netstat`.

use alloc::string::String;
use core::fmt::{Arguments, Write};

use crate::socket::{Kind, Stage, What};
use crate::stack::Stack;

/// The rows of the report on objects that are held.
const HELD: [(&str, What); 4] =
    [("sessions", What::Session), ("connections", What::Flow), ("listeners", What::Listener), ("ports", What::Port)];

/// Interfaces, addresses, counters, and the holders of limited objects.
pub fn interfaces(stack: &Stack) -> String {
    let mut text = String::new();
    let mut line = |arguments: Arguments<'_>| text.write_fmt(arguments).unwrap_or_default();
    line(format_args!("ethernet  {}\n", stack.links.ethernet.interface.hardware_addr()));
    for address in stack.links.ethernet.interface.ip_addrs() {
        line(format_args!("          {address}\n"));
    }
    line(format_args!(
        "          {} frames received, {} sent, {} lost; {} connections found no room\n",
        stack.counters.received,
        stack.links.ethernet.device.outgoing.sent,
        stack.links.ethernet.device.outgoing.lost,
        stack.counters.refused
    ));
    line(format_args!("local\n"));
    for address in stack.links.loopback.interface.ip_addrs() {
        line(format_args!("          {address}\n"));
    }
    for (name, what) in HELD {
        let [(components, all), (programs, of)] = stack.holders.shares(what);
        line(format_args!("{name:<12} components {components:>4} of {all:<4}   programs {programs:>3} of {of}\n"));
    }
    text
}

/// A line for each socket from a place on; gives bytes and the next place, 0 = that was all. Sockets of clients that are gone
/// end before they are listed.
pub fn sockets(stack: &mut Stack, place: u64, into: &mut [u8]) -> (usize, u64) {
    if place == 0 {
        stack.sweep();
    }
    let mut bytes = 0;
    let numbers: alloc::vec::Vec<_> =
        stack.sockets.from(place as usize).map(|(number, _)| number).take(into.len() / 16).collect();
    for number in numbers {
        let Some(line) = line(stack, number) else { continue };
        match into.get_mut(bytes..bytes + line.len()) {
            Some(room) => room.copy_from_slice(line.as_bytes()),
            None => return (bytes, u64::from(number as u32)),
        }
        bytes += line.len();
    }
    (bytes, 0)
}

/// Where columns of a line begin, if what stands before them is not too long: this end, the other end, the owner.
const COLUMNS: [usize; 3] = [18, 41, 64];

/// Protocol, state, this end, the other end, and the owner, unless its session has ended.
fn line(stack: &mut Stack, number: u64) -> Option<String> {
    let socket = stack.sockets.get_mut(number)?;
    let mut text = String::new();
    let mut put = |begin: usize, part: Arguments<'_>| {
        let spaces = begin.saturating_sub(text.len());
        text.extend(core::iter::repeat_n(' ', spaces));
        text.write_fmt(part).unwrap_or_default();
    };
    let [here, there, owner] = COLUMNS;
    match &mut socket.kind {
        Kind::Listener(listener) => {
            put(0, format_args!("tcp  listening"));
            put(here, format_args!("{} ", listener.port));
            put(there, format_args!("{} waiting ", listener.opening.len() + listener.ready.len()));
        }
        Kind::Flow(flow) => {
            match flow.stage {
                Stage::Arriving(_) => put(0, format_args!("tcp  arriving ")),
                Stage::Lingering => put(0, format_args!("tcp  {}, closed ", flow.tcp().state())),
                _ => put(0, format_args!("tcp  {} ", flow.tcp().state())),
            }
            put(here, format_args!("{} ", flow.key.local));
            put(there, format_args!("{} ", flow.key.remote));
        }
        Kind::Datagrams(port) => {
            put(0, format_args!("udp  open"));
            put(here, format_args!("{} ", port.port));
        }
        Kind::Echo(echo) => {
            put(0, format_args!("icmp echo"));
            put(here, format_args!("{} ", echo.identifier));
        }
        Kind::Query(..) => put(0, format_args!("dns  asked")),
    }
    let session = socket.session;
    match stack.sessions.get(session).and_then(|session| session.owner) {
        Some(client) => {
            put(owner, format_args!("{} ", client.number));
            text.extend(client.name());
        }
        None => put(owner, format_args!("-")),
    }
    text.push('\n');
    Some(text)
}
