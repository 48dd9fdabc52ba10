//! A host bridge whose configuration space lies in memory, as the device tree has it ("pci-host-ecam-generic").

use abi::PAGE_BYTES;
use alloc::string::{String, ToString};
use pci::place::Free;
use runtime::fdt::{self, MORE_REGISTERS, SHARED};
use runtime::{Entry, op};

use crate::function::Function;

/// The value of the node's `compatible` property.
const KIND: &str = "pci-host-ecam-generic";
/// Pages of the first bus: one for each function.
const PAGES: u64 = 32 * 8;
/// Kind of a window: memory below 4 GiB.
const MEMORY: u32 = 2;

/// See the module.
pub struct Host {
    /// Addresses for base registers.
    pub free: Free,
}

impl Host {
    /// Maps the space of the first bus; `None` on a machine without a device tree.
    pub fn find() -> Option<Result<Self, String>> {
        Some(fdt::tree()?.and_then(|tree| {
            let found = fdt::device(&tree, KIND)?;
            // Memory shared between drivers and devices is cached as all other (Devicetree Specification 0.4, 2.3.9).
            if found.property("dma-coherent").is_none() {
                return Err("devices behind the PCI host bridge do not see what caches hold (no dma-coherent)".into());
            }
            let space = found.registers(0).filter(|range| range.bytes >= PAGES * PAGE_BYTES as u64);
            let space = space.ok_or_else(|| String::from("the PCI host bridge has no configuration space"))?;
            // Addresses of the bus are those of the CPU: so drivers take them.
            let mut windows = found.windows().filter(|window| window.space == MEMORY && window.bus == window.cpu.start);
            let window = windows.next().ok_or_else(|| String::from("the PCI host bridge has no memory"))?;
            for page in 0..PAGES {
                let offset = page * PAGE_BYTES as u64;
                op::machine_device(Entry::SPECIAL, space.start + offset, MORE_REGISTERS + offset)
                    .map_err(|error| error.to_string())?;
            }
            Ok(Self { free: Free { start: window.bus, end: window.bus + window.cpu.bytes } })
        }))
    }

    fn place(&self, function: Function, register: u8) -> *mut u32 {
        let page = function.device % 32 * 8 + function.function % 8;
        (MORE_REGISTERS as usize + page as usize * PAGE_BYTES + usize::from(register & 0xfc)) as *mut u32
    }

    /// A word; all ones if there is no such function.
    pub fn read(&self, function: Function, register: u8) -> u32 {
        // SAFETY: within the pages that were mapped; nothing of the language lies there.
        unsafe { self.place(function, register).read_volatile() }
    }

    /// Writes a word.
    pub fn write(&self, function: Function, register: u8, value: u32) {
        // SAFETY: within the pages that were mapped; nothing of the language lies there. The driver that switches a device on answers for
        // what it does to memory.
        unsafe { self.place(function, register).write_volatile(value) }
    }

    /// The line to which a pin of a device is wired.
    pub fn line(&self, device: u32, pin: u32) -> Option<u64> {
        let tree = fdt::tree()?.ok()?;
        let [kind, line, _] = fdt::device(&tree, KIND).ok()?.interrupt_of(&tree, device, pin)?;
        (kind == SHARED).then_some(line.into())
    }
}
