//! The network: Ethernet, ARP and NDP, IPv4 and IPv6, DHCP, DNS, ICMP, UDP and TCP (crate `smoltcp`) over a
//! [`interfaces::nic::Nic`].
//!
//! # Who does the work
//! The main thread waits in the driver for frames, until the next thing that time demands. Calls do their
//! work at once on their own activation, under one lock; what they have to send leaves with them. No call waits.
//!
//! # What may be trusted
//! Nothing that comes from the wire, and nothing that a client says. Buffers of connections are paid for by who
//! has them; everything else is bounded: see the constants.
#![no_std]
#![no_main]

extern crate alloc;

mod chance;
mod checksum;
mod datagram;
mod demux;
mod link;
mod pages;
mod service;
mod session;
mod sieve;
mod slots;
mod socket;
mod stack;
mod tcp;
mod text;

use alloc::string::{String, ToString};

runtime::entry!(main);

fn main() -> u8 {
    match start() {
        Ok(()) => stack::run(),
        Err(text) => {
            runtime::log!("{text}");
            1
        }
    }
}

fn start() -> Result<(), String> {
    stack::open().map_err(|error| error.to_string())?;
    service::publish()
}
