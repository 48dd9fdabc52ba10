//! Configuration space of PCI through the ports 0xcf8 and 0xcfc (PCI Local Bus 3.0, 3.2.2.3.2), bus 0. What stands in
//! it is judged by the crate `pci`.

use alloc::string::String;
use alloc::vec::Vec;

use pci::{Activity, Configuration, Copy, register};
use runtime::{Entry, op};

const ADDRESS: u64 = 0;
const DATA: u64 = 4;

/// One function of a device.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Function {
    device: u32,
    function: u32,
}

/// A function, and what its configuration said before anybody had it.
pub struct Found {
    /// Where it is.
    pub function: Function,
    /// What it said.
    pub configuration: Copy,
}

/// Every function there is on bus 0.
pub fn enumerate() -> Vec<Found> {
    const SEVERAL: u32 = 1 << 23;
    let mut found = Vec::new();
    for device in 0..32 {
        let first = Function { device, function: 0 };
        if !first.exists() {
            continue;
        }
        let functions = if first.read(register::HEADER) & SEVERAL != 0 { 8 } else { 1 };
        let all = (0..functions).map(|function| Function { device, function });
        found.extend(
            all.filter(|function| function.exists())
                .map(|function| Found { function, configuration: Copy::take(&function) }),
        );
    }
    found
}

impl Configuration for Function {
    fn read(&self, register: u8) -> u32 {
        self.select(register);
        op::port_read_long(Entry::IO_PORTS, DATA).unwrap_or(u32::MAX)
    }

    fn write(&self, register: u8, value: u32) {
        self.select(register);
        // The ports are ours, or nothing was found.
        let _ = op::port_write_long(Entry::IO_PORTS, DATA, value);
    }
}

impl Function {
    fn select(self, register: u8) {
        let address = 1 << 31 | self.device << 11 | self.function << 8 | u32::from(register & 0xfc);
        let _ = op::port_write_long(Entry::IO_PORTS, ADDRESS, address);
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

    /// Its line of the I/O APIC.
    pub fn line(self, configuration: &Copy) -> Option<u64> {
        pci::line(self.device, configuration.pin())
    }
}
