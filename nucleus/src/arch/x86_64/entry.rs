//! The assembly of `entry.s` and `boot.s`, with the offsets and constants that it uses.

use crate::objects::{Activation, Cpu, Domain, Entry, PerCpu, SavedFrame, Semaphore, State, Thread};
use abi::{Error, rights};
use core::mem::offset_of;

core::arch::global_asm!(include_str!("boot.s"));

macro_rules! assembly {
    ($file:literal; $($name:ident = $value:expr),* $(,)?) => {
        core::arch::global_asm!($(concat!(".set ", stringify!($name), ", {", stringify!($name), "}\n")),*, include_str!($file), $($name = const $value),*);
    };
}

assembly! { "entry.s";
    CPU_ACTIVATION = offset_of!(Cpu, activation),
    CPU_TABLE = offset_of!(Cpu, table),
    CPU_LIMIT = offset_of!(Cpu, limit),
    CPU_DOMAIN = offset_of!(Cpu, domain),
    CPU_THREAD = offset_of!(Cpu, thread),
    CPU_STACK = offset_of!(Cpu, stack),
    CPU_SCRATCH = offset_of!(Cpu, scratch),
    CPU_ENTRY = offset_of!(Cpu, entry),
    CPU_PER_CPU = offset_of!(Cpu, per_cpu_at),
    CPU_QUIESCENT = offset_of!(Cpu, quiescent),
    CPU_NUMBER = offset_of!(Cpu, number),
    CPU_UNSETTLED = offset_of!(Cpu, unsettled),
    LOCK_SERVED = nucleus_sync::lock::Lock::BYTES_BEFORE_SERVED,
    SYSTEM_CALL_BYTES = super::memory::SYSTEM_CALL_BYTES,
    CPU_ENTERED = offset_of!(Cpu, entered),
    CPU_ENTERED_BY = offset_of!(Cpu, entered_by),
    CPU_LONGEST = offset_of!(Cpu, longest),
    CPU_LONGEST_BY = offset_of!(Cpu, longest_by),
    MEASURED = cfg!(feature = "measured") as u8,
    A_RIP = offset_of!(Activation, registers.pc),
    A_RSP = offset_of!(Activation, registers.sp),
    A_RBX = offset_of!(Activation, registers.rbx),
    A_RBP = offset_of!(Activation, registers.rbp),
    A_R12 = offset_of!(Activation, registers.r12),
    A_R13 = offset_of!(Activation, registers.r13),
    A_R14 = offset_of!(Activation, registers.r14),
    A_R15 = offset_of!(Activation, registers.r15),
    A_RAX = offset_of!(Activation, registers.rax),
    A_RCX = offset_of!(Activation, registers.rcx),
    A_RDX = offset_of!(Activation, registers.rdx),
    A_RSI = offset_of!(Activation, registers.rsi),
    A_RDI = offset_of!(Activation, registers.rdi),
    A_R8 = offset_of!(Activation, registers.r8),
    A_R9 = offset_of!(Activation, registers.r9),
    A_R10 = offset_of!(Activation, registers.r10),
    A_R11 = offset_of!(Activation, registers.r11),
    A_FLAGS = offset_of!(Activation, registers.flags),
    A_FRAME = offset_of!(Activation, frame),
    A_STATE = offset_of!(Activation, state),
    A_NEXT = offset_of!(Activation, next),
    A_CALLER = offset_of!(Activation, caller),
    A_BACK = offset_of!(Activation, back),
    A_DOMAIN = offset_of!(Activation, domain),
    A_ENTRY = offset_of!(Activation, entry),
    A_STACK = offset_of!(Activation, stack),
    A_MESSAGE = offset_of!(Activation, message),
    FRAME_LIGHT = SavedFrame::Light as u8,
    FRAME_WORDS = SavedFrame::Words as u8,
    FRAME_FULL = SavedFrame::Full as u8,
    STATE_FREE = State::Free as u8,
    STATE_TOP = State::Top as u8,
    S_POOL = offset_of!(PerCpu, pool),
    D_SLOW = crate::objects::SLOW_AT,
    D_TABLE = offset_of!(Domain, table),
    D_LIMIT = offset_of!(Domain, limit),
    S_ROOT = offset_of!(PerCpu, root),
    T_NUMBER = offset_of!(Thread, number),
    T_TOP = offset_of!(Thread, top),
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
    GS_BASE = super::processor::MSR_GS_BASE,
    USER_CS = super::processor::USER_CODE,
    USER_SS = super::processor::USER_DATA,
}

const _: () = assert!(
    offset_of!(Activation, state) == offset_of!(Activation, frame) + 1
        && offset_of!(Activation, depth) == offset_of!(Activation, frame) + 2
);
