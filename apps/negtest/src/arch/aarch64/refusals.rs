//! States that must not hurt the nucleus.

use core::arch::asm;

use crate::case::Case;
use crate::child::{Child, PATIENCE};
use runtime::abi::{Error, NEVER, layout, op};
use runtime::{Entry, op as operation};

/// All of them, with what they are. Which bits of the processor state a user can set depends on the processor.
pub const HARMLESS: &[Case] = &[
    Case::harmless("condition-flags", "all condition flags set across a system call", condition_flags),
    Case::harmless("immediate", "a system call instruction with an operand", immediate),
    Case::harmless("timing-flag", "data-independent timing asked for across a system call", || state(timing_flag)),
    Case::harmless("bypass-flag", "speculative bypasses allowed across a system call", || state(bypass_flag)),
    Case::harmless("tag-flag", "tag checks switched off across a system call", || state(tag_flag)),
    Case::harmless("tags", "tags of memory made, written and read", || state(tags)),
    Case::harmless("pointer-keys", "pointers signed with keys that nobody gave", || state(pointer_keys)),
    Case::harmless("hints", "all instructions that are hints", || state(hints)),
    Case::harmless("unit-wide", "wide vectors in a domain that has floating point", wide_vectors),
    Case::harmless("misaligned", "words that are not aligned, in memory that is no device's", misaligned),
    Case::harmless("event-flood", "waits for events that never come", event_flood),
    Case::harmless("event-share", "waits for events by others, who get no more time for it", event_share),
    Case::harmless("event-noise", "events for all CPUs, without end", event_noise),
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
    // SAFETY: the clock operation touches no memory.
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
        Ok(Some(0 | super::deaths::UNDEFINED_STATUS)) => Ok(()),
        _ => Err(Error::NotRunnable),
    }
}

/// Code of a child: sets a bit, reads the clock, and ends with the status of that.
macro_rules! with_bit {
    ($name:ident, $code:literal) => {
        /// # Safety
        /// Only for the first thread of a child.
        #[unsafe(naked)]
        pub(super) unsafe extern "C" fn $name() -> ! {
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

/// Code of a child that ends with x0 as status, or at 2 with 1.
macro_rules! attempt {
    ($(#[$about:meta])* $name:ident, $($line:literal),* $(,)?) => {
        $(#[$about])*
        ///
        /// # Safety
        /// Only for the first thread of a child.
        #[unsafe(naked)]
        pub(super) unsafe extern "C" fn $name() -> ! {
            core::arch::naked_asm!(
                $($line,)*
                "b 3f",
                "2:",
                "mov x0, #1",
                "3:",
                "mov x8, {exit}",
                "svc #0",
                "udf #0",
                exit = const op::EXIT * layout::ENTRY_BYTES,
            )
        }
    };
}

attempt!(
    /// Ends with 0 if nothing that is a tag's has an effect: tags are switched off (SCTLR_EL1.ATA0), so that they read as zero, and
    /// writes of them do nothing. A processor without tags does not know the instructions. X6 = a page that may be written.
    tags,
    ".arch_extension memtag",
    "mov x9, #42",
    "str x9, [x6]",
    "irg x10, x6",
    "cmp x10, x6",
    "b.ne 2f",
    "addg x10, x6, #0, #5",
    "cmp x10, x6",
    "b.ne 2f",
    "stg x10, [x6]",
    "st2g x10, [x6]",
    "mov x11, x6",
    "ldg x11, [x6]",
    "cmp x11, x6",
    "b.ne 2f",
    "ldr x9, [x6]",
    "cmp x9, #42",
    "b.ne 2f",
    "stzg x10, [x6]",
    "ldr x0, [x6]",
);

attempt!(
    /// Ends with 0 if signing leaves a pointer as it is, so that nobody gets one signed with keys that others share.
    pointer_keys,
    ".arch_extension pauth",
    "mov x30, x6",
    "paciasp",
    "cmp x30, x6",
    "b.ne 2f",
    "autiasp",
    "mov x17, x6",
    "pacib1716",
    "cmp x17, x6",
    "b.ne 2f",
    // From here on unknown to processors without.
    "mov x9, x6",
    "pacia x9, x6",
    "pacib x9, x6",
    "pacda x9, x6",
    "pacdb x9, x6",
    "autia x9, x6",
    "cmp x9, x6",
    "b.ne 2f",
    "pacga x9, x6, x6",
    "mov x0, xzr",
);

attempt!(
    /// All hints but the two that wait for interrupts: 2 is tried elsewhere, 3 is WFI.
    hints,
    ".set number, 4",
    ".rept 124",
    "hint #number",
    ".set number, number + 1",
    ".endr",
    "mov x0, xzr",
);

attempt!(
    /// An instruction of the scalable vector extension (CNTB).
    wide,
    ".inst 0x0420e3e0",
    "mov x0, xzr",
);

/// Waits for events for ever.
///
/// # Safety
/// Only for the first thread of a child.
#[unsafe(naked)]
pub(super) unsafe extern "C" fn wait_for_events() -> ! {
    core::arch::naked_asm!("2:", "wfe", "b 2b")
}

/// Makes events for ever.
///
/// # Safety
/// Only for the first thread of a child.
#[unsafe(naked)]
pub(super) unsafe extern "C" fn make_events() -> ! {
    core::arch::naked_asm!("2:", "sev", "b 2b")
}

/// Vectors wider than those that are saved cannot be used, with the unit neither.
fn wide_vectors() -> Result<(), Error> {
    let mut child = Child::with_flags(op::DOMAIN_FPU)?;
    child.start(wide, &[])?;
    match child.ends_within(PATIENCE) {
        Ok(Some(super::deaths::UNDEFINED_STATUS | super::deaths::WIDE_STATUS)) => Ok(()),
        _ => Err(Error::NotRunnable),
    }
}

/// How far we come in some milliseconds, beside a thread that runs `code` on the same CPU at our priority, if there is one.
fn progress(code: Option<unsafe extern "C" fn() -> !>) -> Result<u64, Error> {
    const SCHEDULE: operation::Schedule = operation::Schedule { priority: 8, slice: 1_000 };
    const TIME: u64 = 10_000_000;
    const FIRST: u64 = 1;
    let mut child = Child::new()?;
    operation::domain_set_cpus(child.entry(), FIRST)?;
    let own = operation::thread_schedule_on(Entry::OWN, SCHEDULE, FIRST)?;
    let begun = code.map_or(Ok(()), |code| child.start(code, &[]));
    let end = operation::clock() + TIME;
    let mut count = 0;
    while operation::clock() < end {
        count += 1;
    }
    operation::thread_schedule_on(Entry::OWN, own, NEVER)?;
    begun.map(|()| count)
}

/// Beside a thread that waits for events, or makes them, we get a half at least, of which this takes a quarter for enough.
fn half(code: unsafe extern "C" fn() -> !) -> Result<(), Error> {
    let (alone, beside) = (progress(None)?, progress(Some(code))?);
    if beside >= alone / 4 { Ok(()) } else { Err(Error::Busy) }
}

fn event_share() -> Result<(), Error> {
    half(wait_for_events)
}

fn event_noise() -> Result<(), Error> {
    half(make_events)
}

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
