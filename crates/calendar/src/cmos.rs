//! A PC's clock chip (Motorola MC146818A data sheet; the century as ACPI 6.5, 5.2.9 has it by custom).
//!
//! The chip changes its registers once a second. [`read`] reads them until they are steady; [`Registers::civil`]
//! checks their values. The caller passes a function that accesses the chip, so both run anywhere.

use core::fmt;

use crate::Civil;

/// Registers of the chip.
pub mod register {
    /// Seconds.
    pub const SECONDS: u8 = 0x00;
    /// Minutes.
    pub const MINUTES: u8 = 0x02;
    /// Hours; with a clock of twelve hours the highest bit says afternoon.
    pub const HOURS: u8 = 0x04;
    /// Day of the month.
    pub const DAY: u8 = 0x07;
    /// Month.
    pub const MONTH: u8 = 0x08;
    /// Year of the century.
    pub const YEAR: u8 = 0x09;
    /// Century, where PCs keep it.
    pub const CENTURY: u8 = 0x32;
    /// Bit [`super::UPDATING`].
    pub const STATUS_A: u8 = 0x0a;
    /// How the others are to be understood, and which interrupts come.
    pub const STATUS_B: u8 = 0x0b;
    /// Which interrupt came; reading acknowledges it.
    pub const STATUS_C: u8 = 0x0c;
    /// Bit [`super::VALID`].
    pub const STATUS_D: u8 = 0x0d;
}

/// Status A: the registers change within the next 244 microseconds.
pub const UPDATING: u8 = 1 << 7;
/// Status B: numbers are binary, not two decimal digits.
pub const BINARY: u8 = 1 << 2;
/// Status B: hours are 0 to 23.
pub const HOURS_24: u8 = 1 << 1;
/// Status B: an interrupt after each update.
pub const INTERRUPT_AFTER_UPDATE: u8 = 1 << 4;
/// Status B: nothing is updated, since somebody sets the clock.
pub const SETTING: u8 = 1 << 7;
/// Status D: the battery held.
pub const VALID: u8 = 1 << 7;

/// Tries to find the registers steady; [`read`] pauses between two.
pub const TRIES: usize = 100;

/// The values of the registers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Registers {
    /// [`register::SECONDS`].
    pub seconds: u8,
    /// [`register::MINUTES`].
    pub minutes: u8,
    /// [`register::HOURS`].
    pub hours: u8,
    /// [`register::DAY`].
    pub day: u8,
    /// [`register::MONTH`].
    pub month: u8,
    /// [`register::YEAR`].
    pub year: u8,
    /// [`register::CENTURY`].
    pub century: u8,
    /// [`register::STATUS_B`].
    pub status: u8,
}

/// Why the chip gives no time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BadClock {
    /// There is no chip: everything reads as ones.
    Missing,
    /// Its battery failed.
    NoPower,
    /// It is always updating, or what it says changes all the time.
    Unsteady,
    /// Somebody sets it.
    Setting,
    /// A register holds what is no number in its form, or none that can stand there.
    BadRegister {
        /// Which.
        register: u8,
        /// Its value.
        value: u8,
    },
    /// Each number is possible, but together they are no date.
    NoDate,
}

impl fmt::Display for BadClock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing => f.write_str("there is no clock chip"),
            Self::NoPower => f.write_str("the clock chip's battery failed"),
            Self::Unsteady => f.write_str("the clock chip is never steady"),
            Self::Setting => f.write_str("the clock chip stands: it is being set"),
            Self::BadRegister { register, value } => {
                write!(f, "register {register:#04x} of the clock chip holds {value:#04x}")
            }
            Self::NoDate => f.write_str("the clock chip's value is no date"),
        }
    }
}

/// Reads the registers until two rounds without an update between them say the same. `pause` lets some tens of
/// microseconds pass, or more.
pub fn read(mut chip: impl FnMut(u8) -> u8, mut pause: impl FnMut()) -> Result<Registers, BadClock> {
    let valid = chip(register::STATUS_D);
    if valid & VALID == 0 {
        return Err(BadClock::NoPower);
    }
    let mut last = None;
    for _ in 0..TRIES {
        if chip(register::STATUS_A) & UPDATING != 0 {
            last = None;
            pause();
            continue;
        }
        let mut next = |register| chip(register);
        let registers = Registers {
            seconds: next(register::SECONDS),
            minutes: next(register::MINUTES),
            hours: next(register::HOURS),
            day: next(register::DAY),
            month: next(register::MONTH),
            year: next(register::YEAR),
            century: next(register::CENTURY),
            status: next(register::STATUS_B),
        };
        if last == Some(registers) {
            return Ok(registers);
        }
        last = Some(registers);
    }
    // Ones everywhere look like an update that never ends.
    let missing = chip(register::STATUS_A) == 0xff && valid == 0xff;
    Err(if missing { BadClock::Missing } else { BadClock::Unsteady })
}

impl Registers {
    /// The date and time.
    pub fn civil(self) -> Result<Civil, BadClock> {
        if self.status & SETTING != 0 {
            return Err(BadClock::Setting);
        }
        let afternoon = self.hours & 0x80 != 0 && self.status & HOURS_24 == 0;
        let hours = if afternoon { self.hours & 0x7f } else { self.hours };
        let hour = if self.status & HOURS_24 != 0 {
            self.number(register::HOURS, hours, 0..=23)?
        } else {
            // Twelve comes first: 12 at night, 1, 2, …
            self.number(register::HOURS, hours, 1..=12)? % 12 + if afternoon { 12 } else { 0 }
        };
        let year = self.number(register::YEAR, self.year, 0..=99)?;
        let civil = Civil {
            year: self.century(year) * 100 + u16::from(year),
            month: self.number(register::MONTH, self.month, 1..=12)?,
            day: self.number(register::DAY, self.day, 1..=31)?,
            hour,
            minute: self.number(register::MINUTES, self.minutes, 0..=59)?,
            second: self.number(register::SECONDS, self.seconds, 0..=59)?,
        };
        civil.seconds().map(|_| civil).ok_or(BadClock::NoDate)
    }

    /// The century: the register's value if that is one at all, else the one that PCs have lived in.
    fn century(self, year: u8) -> u16 {
        match self.number(register::CENTURY, self.century, 19..=29) {
            Ok(19) if year < 70 => 20,
            Ok(century) => century.into(),
            Err(_) if year < 70 => 20,
            Err(_) => 19,
        }
    }

    /// A number in the chip's form.
    fn number(self, register: u8, value: u8, range: core::ops::RangeInclusive<u8>) -> Result<u8, BadClock> {
        let bad = BadClock::BadRegister { register, value };
        let number = if self.status & BINARY != 0 {
            value
        } else if value & 15 > 9 || value >> 4 > 9 {
            return Err(bad);
        } else {
            (value >> 4) * 10 + (value & 15)
        };
        if range.contains(&number) { Ok(number) } else { Err(bad) }
    }
}

#[cfg(test)]
mod tests;
