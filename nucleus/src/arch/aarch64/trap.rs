//! The meaning of a trap (Arm ARM D19.2.37).

use super::processor::{self, read};
use crate::objects::Trap;

/// Vectors below this are classes of exceptions (ESR_EL1.EC); this one is an interrupt.
pub(super) const INTERRUPT: u64 = 64;
/// SError in the nucleus, where it is masked.
pub(super) const SYSTEM_ERROR: u64 = 65;

/// ESR_EL1.EC (Arm ARM D19.2.37): instruction and data aborts of users.
const FETCH_ABORT: u64 = 0x20;
const DATA_ABORT: u64 = 0x24;

/// Fault status codes without the level: translation, permission. Then the syndrome's WnR and CM.
const TRANSLATION: u64 = 1;
const PERMISSION: u64 = 3;
const ISS_WNR: u64 = 1 << 6;
const ISS_CM: u64 = 1 << 8;

/// Bits of a page fault's code (`abi`): the page is present; a write; by a user; an instruction fetch.
const CODE_PRESENT: u64 = 1;
const CODE_WRITE: u64 = 2;
const CODE_USER: u64 = 4;
const CODE_FETCH: u64 = 16;

/// The code of a page fault; None for other exceptions.
fn page_fault_code(vector: u64, syndrome: u64) -> Option<u64> {
    let fetches = match vector {
        FETCH_ABORT => CODE_FETCH,
        DATA_ABORT => 0,
        _ => return None,
    };
    let present = match syndrome >> 2 & 0xf {
        TRANSLATION => 0,
        PERMISSION => CODE_PRESENT,
        _ => return None,
    };
    let writes = fetches == 0 && syndrome & ISS_WNR != 0 && syndrome & ISS_CM == 0;
    Some(CODE_USER | present | fetches | if writes { CODE_WRITE } else { 0 })
}

/// The meaning of a trap from user mode.
#[inline(always)]
pub fn of_user(vector: u64, syndrome: u64) -> Trap {
    if cfg!(feature = "checked") {
        processor::audit();
    }
    if vector >= INTERRUPT {
        return Trap::Interrupt;
    }
    page_fault_code(vector, syndrome).map_or(Trap::Exception, |code| Trap::PageFault(fault_address(), code))
}

/// Whether it is an interrupt, which the nucleus accepts where it enables them.
pub fn is_interrupt(vector: u64) -> bool {
    vector == INTERRUPT
}

/// The address of the last page fault.
pub fn fault_address() -> u64 {
    read!("far_el1")
}
