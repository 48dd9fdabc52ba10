//! The clock chip of a PC at its two ports, and its interrupt.

use alloc::format;
use alloc::string::{String, ToString};

use calendar::cmos::{self, INTERRUPT_AFTER_UPDATE, register};
use runtime::{Entry, op, thread};

/// Port where a register is chosen. Its highest bit stays clear: set, it would hold back non-maskable interrupts.
const INDEX: u64 = 0;
/// Port of the register that was chosen.
const DATA: u64 = 1;
/// Between two looks at a chip that is updating, in nanoseconds.
const PAUSE: u64 = 300_000;
/// How long the interrupt after an update is waited for, in nanoseconds: updates come once a second.
const PATIENCE: u64 = 2_500_000_000;

fn read(register: u8) -> u8 {
    // Registers that cannot be read have the value that stands where there is no chip.
    op::io_write(Entry::IO_PORTS, INDEX, register & 0x7f)
        .and_then(|()| op::io_read(Entry::IO_PORTS, DATA))
        .unwrap_or(0xff)
}

fn write(register: u8, value: u8) {
    let _ =
        op::io_write(Entry::IO_PORTS, INDEX, register & 0x7f).and_then(|()| op::io_write(Entry::IO_PORTS, DATA, value));
}

fn pause() {
    // Without a pause it is only looked again sooner.
    let _ = thread::sleep(PAUSE);
}

/// The time since 1970 in nanoseconds, whole seconds, and the time since boot at which the chip said so.
pub fn now() -> Result<(u64, u64), String> {
    let registers = cmos::read(read, pause).map_err(|error| error.to_string())?;
    let at = op::clock();
    let seconds = registers.civil().and_then(|civil| civil.seconds().ok_or(cmos::BadClock::NoDate));
    Ok((seconds.map_err(|error| error.to_string())? * 1_000_000_000, at))
}

/// As [`now`], at the moment at which the next second begins.
pub fn next_second() -> Result<(u64, u64), String> {
    let text = |error: abi::Error| format!("its interrupt: {error}");
    let semaphore = op::semaphore_new(Entry::OWN, 0).map_err(text)?;
    op::interrupt_bind(Entry::INTERRUPT, semaphore).map_err(text)?;
    // An old interrupt that nobody took would keep new ones away.
    read(register::STATUS_C);
    let status = read(register::STATUS_B);
    write(register::STATUS_B, status | INTERRUPT_AFTER_UPDATE);
    let waited = op::p(semaphore, op::clock() + PATIENCE);
    let at = op::clock();
    write(register::STATUS_B, status & !INTERRUPT_AFTER_UPDATE);
    read(register::STATUS_C);
    waited.map_err(text)?;
    now().map(|(time, _)| (time, at))
}
