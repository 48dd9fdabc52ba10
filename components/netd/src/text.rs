//! What people are told: `ifconfig`, `netstat`.

use alloc::format;
use alloc::string::String;
use core::fmt::Write;

use crate::socket::{Kind, Stage, What};
use crate::stack::Stack;

/// What is told of that is held.
const HELD: [(&str, What); 4] =
    [("sessions", What::Session), ("connections", What::Flow), ("listeners", What::Listener), ("ports", What::Port)];

/// Interfaces, addresses, counters, and who holds how much of what there is.
pub fn interfaces(stack: &Stack) -> String {
    let mut text = String::new();
    let mut line = |arguments: core::fmt::Arguments<'_>| text.write_fmt(arguments).unwrap_or_default();
    line(format_args!("ethernet  {}\n", stack.ethernet.hardware_addr()));
    for address in stack.ethernet.ip_addrs() {
        line(format_args!("          {address}\n"));
    }
    line(format_args!(
        "          {} frames received, {} sent, {} lost; {} connections found no room\n",
        stack.counters.received, stack.link.outgoing.sent, stack.link.outgoing.lost, stack.counters.refused
    ));
    line(format_args!("local\n"));
    for address in stack.local.ip_addrs() {
        line(format_args!("          {address}\n"));
    }
    for (name, what) in HELD {
        let [(components, all), (programs, of)] = stack.holders.shares(what);
        line(format_args!("{name:<12} components {components:>4} of {all:<4}   programs {programs:>3} of {of}\n"));
    }
    text
}

/// A line for each socket from a place on; gives bytes and the next place, 0 = that was all.
pub fn sockets(stack: &mut Stack, place: u64, into: &mut [u8]) -> (usize, u64) {
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

fn line(stack: &mut Stack, number: u64) -> Option<String> {
    let socket = stack.sockets.get_mut(number)?;
    Some(match &mut socket.kind {
        Kind::Listener(listener) => {
            format!(
                "tcp  listening    {:<46} {} waiting\n",
                listener.port,
                listener.opening.len() + listener.ready.len()
            )
        }
        Kind::Flow(flow) => {
            let key = flow.key;
            let state = match flow.stage {
                Stage::Arriving(_) => "arriving".into(),
                Stage::Lingering => format!("{}, closed", flow.tcp().state()),
                _ => format!("{}", flow.tcp().state()),
            };
            format!("tcp  {state:<12} {} {}\n", key.local, key.remote)
        }
        Kind::Datagrams(port) => format!("udp  {:<12} {}\n", "open", port.port),
        Kind::Echo(echo) => format!("icmp {:<12} {}\n", "echo", echo.identifier),
        Kind::Query(_) => String::from("dns  asked\n"),
    })
}
