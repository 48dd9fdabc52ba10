//! States that must not hurt the nucleus.

use core::arch::asm;

use crate::Crime;
use crate::child::{Child, PATIENCE};
use runtime::abi::{Error, layout, op};
use runtime::op as operation;

/// All of them, with what they are. Which bits of the processor state a user can set depends on the processor.
pub const HARMLESS: &[Crime] = &[
    Crime::harmless("condition-flags", "all condition flags set across a system call", condition_flags),
    Crime::harmless("immediate", "a system call instruction with an operand", immediate),
    Crime::harmless("timing-flag", "data-independent timing asked for across a system call", || state(timing_flag)),
    Crime::harmless("bypass-flag", "speculative bypasses allowed across a system call", || state(bypass_flag)),
    Crime::harmless("tag-flag", "tag checks switched off across a system call", || state(tag_flag)),
    Crime::harmless("misaligned", "words that are not aligned, in memory that is no device's", misaligned),
    Crime::harmless("event-flood", "waits for events that never come", event_flood),
];

/// The status of a system call whose index register is no multiple of an entry.
pub fn odd_index() -> u64 {
    let status: u64;
    // SAFETY: the nucleus refuses what is no index.
    unsafe {
        asm!("svc #0", inout("x8") op::CLOCK * layout::ENTRY_BYTES + 1 => status, in("x3") 0, clobber_abi("C"));
    }
    status
}

/// The clock must have gone forward.
fn forward(before: u64, after: u64) -> Result<(), Error> {
    if after >= before { Ok(()) } else { Err(Error::BadArgument) }
}

fn condition_flags() -> Result<(), Error> {
    let before = operation::clock();
    let after: u64;
    // SAFETY: the clock operation touches no memory.
    unsafe {
        asm!("msr nzcv, {}", "svc #0", in(reg) 0xfu64 << 28, in("x8") op::CLOCK * layout::ENTRY_BYTES,
            lateout("x0") after, clobber_abi("C"));
    }
    forward(before, after)
}

fn immediate() -> Result<(), Error> {
    let before = operation::clock();
    let after: u64;
    // SAFETY: as above.
    unsafe {
        asm!("svc #0xffff", in("x8") op::CLOCK * layout::ENTRY_BYTES, lateout("x0") after, clobber_abi("C"));
    }
    forward(before, after)
}

/// A child runs `code`: that ends well, or the processor does not know such a bit.
fn state(code: unsafe extern "C" fn() -> !) -> Result<(), Error> {
    let mut child = Child::new()?;
    child.start(code, &[])?;
    match child.ends_within(PATIENCE) {
        Ok(Some(0 | super::UNDEFINED_STATUS)) => Ok(()),
        _ => Err(Error::NotRunnable),
    }
}

/// What a child runs: sets a bit, asks for the clock, and ends with the status of that.
macro_rules! with_bit {
    ($name:ident, $code:literal) => {
        /// # Safety
        /// Only for the first thread of a child.
        #[unsafe(naked)]
        pub unsafe extern "C" fn $name() -> ! {
            core::arch::naked_asm!(
                $code,
                "mov x8, {clock}",
                "svc #0",
                "mov x0, x8",
                "mov x8, {exit}",
                "svc #0",
                "udf #0",
                clock = const op::CLOCK * layout::ENTRY_BYTES,
                exit = const op::EXIT * layout::ENTRY_BYTES,
            )
        }
    };
}

// Arm ARM C6.2.229, MSR (immediate): DIT, SSBS and TCO, which assemblers know for some processors only.
with_bit!(timing_flag, ".inst 0xd503415f");
with_bit!(bypass_flag, ".inst 0xd503413f");
with_bit!(tag_flag, ".inst 0xd503419f");

fn misaligned() -> Result<(), Error> {
    let bytes = core::hint::black_box([1u8, 2, 3, 4, 5, 6, 7, 8, 9]);
    let word: u64;
    // SAFETY: within the array.
    unsafe { asm!("ldr {}, [{}]", out(reg) word, in(reg) bytes.as_ptr().wrapping_add(1), options(readonly, nostack)) };
    if word == 0x0908_0706_0504_0302 { Ok(()) } else { Err(Error::BadArgument) }
}

fn event_flood() -> Result<(), Error> {
    let before = operation::clock();
    for _ in 0..100 {
        // SAFETY: waits until something happens, the end of our slice at the latest.
        unsafe { asm!("sevl", "wfe", "wfe", options(nomem, nostack)) };
    }
    forward(before, operation::clock())
}
