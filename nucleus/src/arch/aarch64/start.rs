//! Starting the other CPUs (PSCI CPU_ON, DEN 0022, 5.6).

use super::{firmware, interrupts};
use crate::cpu;
use crate::log::{self, Part};
use abi::boot::{BootInfo, Region};

/// What the first CPU keeps from the boot loader's memory for the others: nothing, they begin in the image.
pub fn page() -> Region {
    Region { start: 0, bytes: 0 }
}

/// Starts all CPUs that the firmware tells of; those that do not start are reported and left out.
#[unsafe(link_section = ".init")]
#[inline(never)]
pub fn start_others(_: &BootInfo) -> Result<(), &'static str> {
    let firmware = firmware::get();
    let own = interrupts::identity();
    let others = firmware.cpus[..firmware.cpu_count].iter().filter(|identity| interrupts::short(**identity) != own);
    let count = others.count() as u64 + firmware.left_out;
    if count != 0 {
        log::line(&[Part::Text("nucleus: CPUs that are not used: "), Part::Number(count)]);
    }
    let _ = cpu::present();
    Ok(())
}
