//! The network: Ethernet, ARP, IPv4, DHCP and TCP (crate `smoltcp`) over a [`interfaces::nic::Nic`].
//!
//! # Who does the work
//! The main thread waits in the driver for frames, until the next thing that time demands. Calls do their
//! work at once on their own activation, under one lock; what they have to send leaves with them. Those that
//! must wait for the other side wait on a condition.
#![no_std]
#![no_main]
#![forbid(unsafe_code)]

extern crate alloc;

mod link;
mod service;
mod stack;

use alloc::string::{String, ToString};
use runtime::server;

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
    server::activations(service::ACTIVATIONS).map_err(|error| error.to_string())?;
    service::publish()
}
