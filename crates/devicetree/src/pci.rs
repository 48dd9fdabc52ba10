//! The node of a PCI host bridge ("PCI Bus Binding to Open Firmware", IEEE 1275; Devicetree Specification,
//! 2.4.3 for maps of interrupts).

use crate::Tree;
use crate::cells::{Range, cell, number};
use crate::walk::Found;

/// Cells of an address on a PCI bus.
const CELLS: usize = 3;

/// Addresses of a PCI bus that the CPU can reach.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Window {
    /// 1: ports; 2: memory below 4 GiB; 3: memory.
    pub space: u32,
    /// First address on the bus.
    pub bus: u64,
    /// Where the CPU sees it.
    pub cpu: Range,
}

impl<'a> Found<'a> {
    /// The windows of a host bridge.
    pub fn windows(&self) -> impl Iterator<Item = Window> + use<'a> {
        let value = self.property("ranges").unwrap_or_default();
        let (parent, size) = (self.parent_address_cells(), 2);
        let entry = 4 * (CELLS + parent + size);
        value.chunks_exact(entry).filter_map(move |window| {
            let cpu =
                Range { start: number(window, 4 * CELLS, parent)?, bytes: number(window, 4 * (CELLS + parent), size)? };
            cpu.start.checked_add(cpu.bytes)?;
            Some(Window { space: cell(window, 0)? >> 24 & 3, bus: number(window, 4, 2)?, cpu })
        })
    }

    /// To which interrupt of the controller above a pin (from 1) of a device (0 to 31) on the first bus is wired: the first three
    /// cells, as that controller counts.
    pub fn interrupt_of(&self, tree: &Tree<'_>, device: u32, pin: u32) -> Option<[u32; 3]> {
        let map = self.property("interrupt-map")?;
        let mask = |index| self.cell("interrupt-map-mask", index).unwrap_or(u32::MAX);
        let wanted = [device << 11 & mask(0), 0, 0, pin & mask(3)];
        let mut at = 0;
        // Each entry is longer than nothing.
        loop {
            let key = [0, 1, 2, 3].map(|index| cell(map, at + 4 * index));
            let controller = tree.with_phandle(cell(map, at + 16)?)?;
            let address = controller.cell("#address-cells", 0).unwrap_or(0).min(4) as usize;
            let cells = controller.cell("#interrupt-cells", 0)?.min(4) as usize;
            let start = at + 20 + 4 * address;
            if key == wanted.map(Some) {
                return (cells >= 3)
                    .then(|| Some([cell(map, start)?, cell(map, start + 4)?, cell(map, start + 8)?]))?;
            }
            at = start + 4 * cells;
        }
    }
}

impl<'a> Tree<'a> {
    /// The node with this handle.
    pub fn with_phandle(&self, handle: u32) -> Option<Found<'a>> {
        self.walk(|found| (found.cell("phandle", 0) == Some(handle)).then_some(*found))
    }
}
