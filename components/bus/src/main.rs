//! The bus: finds PCI devices and gives each driver its registers, its interrupt, memory that the device
//! may write, and nothing else.
//!
//! # Death of a driver
//! Frames that a device writes belong to this component and are never given back, only given again. Before a
//! new instance of a driver gets them, bus mastering is switched off and the device is reset.
#![no_std]
#![no_main]

extern crate alloc;

mod pci;
mod service;

use alloc::string::{String, ToString};
use runtime::server;

runtime::entry!(main);

/// Activations that serve: calls are short and hold one lock.
const ACTIVATIONS: usize = 2;

fn main() -> u8 {
    match start() {
        Ok(()) => server::park(),
        Err(text) => {
            runtime::log!("{text}");
            1
        }
    }
}

fn start() -> Result<(), String> {
    let found = pci::enumerate();
    for function in &found {
        runtime::log!("{}: device {:08x}", function.place(), function.id());
    }
    service::offer(found);
    server::publish::<service::BusService>("bus", ACTIVATIONS).map(drop).map_err(|error| error.to_string())
}
