//! Configuration space of PCI, bus 0: through the ports 0xcf8 and 0xcfc (PCI Local Bus 3.0, 3.2.2.3.2), or, on machines with
//! a device tree, in memory (PCI Express 3.0, 7.2.2). The crate `pci` judges its content.

use alloc::string::String;
use alloc::vec::Vec;

use pci::place::place;
use pci::region::masks;
use pci::{Activity, Configuration, Copy, register};
use runtime::sync::Once;
use runtime::{Entry, op};

use crate::function::Function;
use crate::host::Host;

const CONFIG_ADDRESS: u64 = 0;
const CONFIG_DATA: u64 = 4;

/// A function, and what its configuration said before anybody had it.
pub struct Found {
    /// Where it is.
    pub function: Function,
    /// A copy of its configuration space.
    pub configuration: Copy,
}

/// How the machine's only host bridge is reached.
enum Bridge {
    Ports,
    Memory(Host),
}

static BRIDGE: Once<Bridge> = Once::new();

fn bridge() -> &'static Bridge {
    BRIDGE.get().unwrap_or(&Bridge::Ports)
}

/// Every function there is on bus 0.
pub fn enumerate() -> Result<Vec<Found>, String> {
    const SEVERAL: u32 = 1 << 23;
    let mut free = None;
    if let Some(host) = Host::find() {
        let host = host?;
        free = Some(host.free);
        BRIDGE.get_or_make(|| Bridge::Memory(host));
    }
    let mut found = Vec::new();
    for device in 0..32 {
        let first = Function { device, function: 0 };
        if !first.exists() {
            continue;
        }
        let functions = if first.read(register::HEADER) & SEVERAL != 0 { 8 } else { 1 };
        let all = (0..functions).map(|function| Function { device, function });
        for function in all.filter(|function| function.exists()) {
            if let Some(free) = &mut free {
                // No firmware did.
                place(&function, masks(&function), free);
            }
            found.push(Found { function, configuration: Copy::take(&function) });
        }
    }
    Ok(found)
}

impl Configuration for Function {
    fn read(&self, register: u8) -> u32 {
        if let Bridge::Memory(host) = bridge() {
            return host.read(*self, register);
        }
        self.select(register);
        op::io_read_long(Entry::IO_PORTS, CONFIG_DATA).unwrap_or(u32::MAX)
    }

    fn write(&self, register: u8, value: u32) {
        if let Bridge::Memory(host) = bridge() {
            return host.write(*self, register, value);
        }
        self.select(register);
        // The ports are ours, or nothing was found.
        let _ = op::io_write_long(Entry::IO_PORTS, CONFIG_DATA, value);
    }
}

impl Function {
    fn select(self, register: u8) {
        let address = 1 << 31 | self.device << 11 | self.function << 8 | u32::from(register & 0xfc);
        let _ = op::io_write_long(Entry::IO_PORTS, CONFIG_ADDRESS, address);
    }

    fn exists(self) -> bool {
        self.read(register::ID) != u32::MAX
    }

    /// For people.
    pub fn place(self) -> String {
        alloc::format!("00:{:02x}.{}", self.device, self.function)
    }

    /// It may do this and no more.
    pub fn set(self, activity: Activity) {
        activity.set(&self);
    }

    /// Its interrupt line.
    pub fn line(self, configuration: &Copy) -> Option<u64> {
        match bridge() {
            Bridge::Ports => pci::line(self.device, configuration.pin()),
            Bridge::Memory(host) => host.line(self.device, configuration.pin()),
        }
    }
}
