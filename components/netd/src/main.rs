//! The network: Ethernet, ARP and NDP, IPv4 and IPv6, DHCP, DNS, ICMP, UDP and TCP (crate `smoltcp`) over a
//! [`protocols::nic`].
//!
//! # Who does the work
//! The main thread waits in the driver for frames, until the next thing that time demands. Calls do their
//! work at once on their own activation, under one lock; their packets leave with them. Neither a call nor the driver
//! waits for the device: frames for which it has no room stay with us, and the main thread comes back for them soon. What begins a
//! connection needs random numbers, and waits for them before it takes the lock.
//!
//! # What may be trusted
//! Nothing that comes from the wire, and nothing that a client says. Pages of sockets are paid for by the account that their
//! session was opened with; what else they take is bounded for each client and for all: see [`limits`].
#![no_std]
#![no_main]

extern crate alloc;

mod checksum;
mod client;
mod datagram;
mod demux;
mod failure;
mod ingress_filter;
mod limits;
mod link;
mod pages;
mod random;
mod service;
mod session;
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

/// Bytes kept for calls that are under way when the account is exhausted, which the limits prevent.
const KEPT_BYTES: usize = 4096;

fn start() -> Result<(), String> {
    let Some(frames) = client::open() else {
        return Err("the machine is to be held to look and for nothing else: write special = \"inspect\"".to_string());
    };
    if frames < limits::FRAMES {
        runtime::log!("the account does not pay for all that clients may have: some will be refused sooner");
    }
    runtime::server::keep_memory(KEPT_BYTES);
    runtime::thread::bring_main_stack(limits::STACK_PAGES);
    stack::open().map_err(|error| error.to_string())?;
    service::publish()
}
