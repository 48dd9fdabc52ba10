//! The assembly of `entry.s`, `boot.s` and `start.s`, with the offsets and constants that it uses.

use crate::objects::{Activation, Cpu, Domain, Entry, PerCpu, SavedFrame, Semaphore, State, Thread};
use abi::{Error, rights};
use core::mem::offset_of;

macro_rules! assembly {
    ($file:literal; $($name:ident = $value:expr),* $(,)?) => {
        core::arch::global_asm!($(concat!(".set ", stringify!($name), ", {", stringify!($name), "}\n")),*, include_str!($file), $($name = const $value),*);
    };
}

assembly! { "boot.s";
    BOOT_SCTLR = super::processor::SCTLR_OFF,
    SCTLR = super::processor::SCTLR,
    MAIR = super::paging::MAIR,
    TCR = super::paging::TCR,
    PMCR = super::processor::PMCR,
}

core::arch::global_asm!(include_str!("start.s"));

assembly! { "entry.s";
    CPU_ACTIVATION = offset_of!(Cpu, activation),
    CPU_TABLE = offset_of!(Cpu, table),
    CPU_LIMIT = offset_of!(Cpu, limit),
    CPU_THREAD = offset_of!(Cpu, thread),
    CPU_STACK = offset_of!(Cpu, stack),
    CPU_PER_CPU = offset_of!(Cpu, per_cpu_at),
    CPU_QUIESCENT = offset_of!(Cpu, quiescent),
    CPU_NUMBER = offset_of!(Cpu, number),
    CPU_UNSETTLED = offset_of!(Cpu, unsettled),
    CPU_ENTERED = offset_of!(Cpu, entered),
    CPU_ENTERED_BY = offset_of!(Cpu, entered_by),
    CPU_LONGEST = offset_of!(Cpu, longest),
    CPU_LONGEST_BY = offset_of!(Cpu, longest_by),
    LOCK_SERVED = nucleus_sync::lock::Lock::BYTES_BEFORE_SERVED,
    SYSTEM_CALL_BYTES = super::memory::SYSTEM_CALL_BYTES,
    INTERRUPT = super::trap::INTERRUPT,
    SYSTEM_ERROR = super::trap::SYSTEM_ERROR,
    MEASURED = cfg!(feature = "measured") as u8,
    A_PC = offset_of!(Activation, registers.pc),
    A_X = offset_of!(Activation, registers.x),
    A_FLAGS = offset_of!(Activation, registers.flags),
    A_POINTER = offset_of!(Activation, registers.pointer),
    A_FRAME = offset_of!(Activation, frame),
    A_STATE = offset_of!(Activation, state),
    A_NEXT = offset_of!(Activation, next),
    A_CALLER = offset_of!(Activation, caller),
    A_BACK = offset_of!(Activation, back),
    A_DOMAIN = offset_of!(Activation, domain),
    A_ENTRY = offset_of!(Activation, entry),
    A_STACK = offset_of!(Activation, stack),
    FRAME_LIGHT = SavedFrame::Light as u8,
    FRAME_WORDS = SavedFrame::Words as u8,
    FRAME_FULL = SavedFrame::Full as u8,
    STATE_TOP = State::Top as u8,
    D_SLOW = crate::objects::SLOW_AT,
    D_TABLE = offset_of!(Domain, table),
    S_ROOT = offset_of!(PerCpu, root),
    T_NUMBER = offset_of!(Thread, number),
    S_COUNT = offset_of!(Semaphore, count),
    E_OBJECT = offset_of!(Entry, object),
    E_RIGHTS = offset_of!(Entry, node.rights),
    R_USE = rights::USE,
    R_WRITE = rights::WRITE,
    E_BAD_INDEX = Error::BadIndex as u64,
    E_EMPTY = Error::Empty as u64,
    E_REVOKED = Error::Revoked as u64,
    E_WRONG_KIND = Error::WrongKind as u64,
    E_NO_RIGHT = Error::NoRight as u64,
    E_BAD_ARGUMENT = Error::BadArgument as u64,
    E_NO_SUCH_WAY = Error::NoSuchWay as u64,
    E_BAD_CONTROL = Error::BadControl as u64,
    ENTRY_BYTES = abi::layout::ENTRY_BYTES,
    MAX_TABLE_BYTES = crate::objects::MAX_TABLE_BYTES,
    MAX_TABLE_BITS = crate::objects::MAX_TABLE_BYTES.ilog2(),
}

/// Orders and offsets of fields on which `entry.s` relies: it accesses neighbours as pairs.
const _: () = assert!(
    State::Free as u8 == 0
        && offset_of!(Activation, state) == offset_of!(Activation, frame) + 1
        && offset_of!(Activation, depth) == offset_of!(Activation, frame) + 2
        && offset_of!(Activation, registers.sp) == offset_of!(Activation, registers.pc) + 8
        && offset_of!(Activation, registers.pointer) == offset_of!(Activation, registers.flags) + 8
        && offset_of!(Activation, message) == offset_of!(Activation, stack) + 8
        && offset_of!(Cpu, table) == offset_of!(Cpu, activation) + 8
        && offset_of!(Cpu, limit) == offset_of!(Cpu, table) + 8
        && offset_of!(Cpu, domain) == 0
        && offset_of!(Cpu, thread) == 8
        && offset_of!(Activation, frame) == 0
        && offset_of!(Activation, thread) == offset_of!(Activation, caller) + 8
        && offset_of!(Thread, top) == 0
        && offset_of!(Entry, code) == 0
        && offset_of!(PerCpu, pool) == 0
        && offset_of!(Domain, limit) == offset_of!(Domain, table) + 8
        && offset_of!(Entry, word1) == offset_of!(Entry, word0) + 8
);
