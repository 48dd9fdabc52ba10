//! Starting another CPU; see `start::others`.

use abi::boot::{BootInfo, Region};

/// Where other CPUs begin.
pub fn code() -> Region {
    unimplemented!()
}

/// Whether [`code`] is a frame that comes back when all have begun.
pub const KEEPS_CODE: bool = false;

/// Calls `found` with what the machine calls each CPU that can be used; gives how many more there are than are ever reported. None: the
/// firmware has no list of them. `show` maps what the firmware left in memory.
pub fn list(info: &BootInfo, show: &dyn Fn(u64, usize) -> Option<()>, found: impl FnMut(u32)) -> Option<u64> {
    unimplemented!()
}

/// Puts the code where CPUs begin; they begin with these tables.
pub fn prepare(tables: [u64; 2]) -> Result<(), &'static str> {
    unimplemented!()
}

/// Has a CPU begin with these tables, this stack, and `begin(block)`; false if the firmware refuses. `wait` waits for microseconds, or
/// until the CPU is there, and says so.
pub fn start(identity: u32, tables: [u64; 2], words: [usize; 3], wait: &dyn Fn(u64) -> bool) -> bool {
    unimplemented!()
}

/// A CPU that did not come.
pub fn give_up(identity: u32) -> Result<(), &'static str> {
    unimplemented!()
}

/// The first thing that a CPU does of its own.
pub fn begun() {
    unimplemented!()
}
