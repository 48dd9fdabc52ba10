//! The bus: finds PCI devices and gives each driver its registers, its interrupt, memory that the device
//! may write, and nothing else.
//!
//! # Death of a driver
//! A device reads and writes memory only while its driver lives: the driver leaves a semaphore of its own here,
//! which goes with it, and a thread of ours waits for that. Then bus mastering is switched off and the device is
//! reset, before a new instance of the driver gets it in any case. The frames that the device writes belong to
//! this component and are never given back, only given again to drivers of the same device.
#![no_std]
#![no_main]

extern crate alloc;

mod function;
mod host;
mod pci;
mod service;

use alloc::string::{String, ToString};
use runtime::server;

runtime::entry!(main);

/// Activations that serve: calls are short and hold one lock.
const ACTIVATIONS: usize = 2;

fn main() -> u8 {
    server::park_if(start())
}

fn start() -> Result<(), String> {
    let found = pci::enumerate()?;
    for found in &found {
        runtime::log!("{}: device {:08x}", found.function.place(), found.configuration.id());
    }
    service::offer(found);
    server::publish::<service::BusService>("bus", ACTIVATIONS).map(drop).map_err(|error| error.to_string())
}
