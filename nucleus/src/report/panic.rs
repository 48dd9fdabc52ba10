//! Panics: prints the message and a symbolised backtrace, and stops the machine with a failing status.

use crate::arch::memory::{self, IMAGE};
use crate::arch::{processor, serial};
use crate::pointer::Boot;
use core::fmt::{self, Write};
use core::panic::PanicInfo;

/// Exit status of the machine after a panic.
const STATUS: u32 = 100;

/// The symbols of the boot archive: lines `address name`, sorted.
static SYMBOLS: Boot<&'static [u8]> = Boot::new(&[]);

/// Uses these symbols from now on.
pub fn set_symbols(symbols: &'static [u8]) {
    // SAFETY: the loader calls this at boot. There are no threads yet, and the other CPUs wait for the nucleus lock, so
    // nothing reads the symbols meanwhile.
    unsafe { *SYMBOLS.write() = symbols };
}

/// A text without padding: the `Display` of `str` takes more code than the rest of this module.
pub struct Text<'a>(pub &'a str);

impl fmt::Display for Text<'_> {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str(self.0)
    }
}

struct Line;

impl Write for Line {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        serial::write(text.as_bytes());
        Ok(())
    }
}

#[cfg_attr(target_os = "none", panic_handler)]
#[cfg_attr(not(target_os = "none"), expect(dead_code))]
fn panic(info: &PanicInfo) -> ! {
    let _ = Line.write_str("\nnucleus: panicked");
    if let Some(place) = info.location() {
        let _ = Line.write_str(" at ");
        let _ = Line.write_str(place.file());
        let _ = write!(Line, ":{}:{}", u64::from(place.line()), u64::from(place.column()));
    }
    let _ = writeln!(Line, ":\n{}", info.message());
    backtrace(processor::frame_pointer())
}

/// Reports a trap in the nucleus itself.
pub fn trap(vector: u64, code: u64, pc: u64, sp: u64, frame: u64, address: u64) -> ! {
    let _ = writeln!(Line, "\nnucleus: trap {vector}, code {code:#x}, pc {pc:#x}, sp {sp:#x}, address {address:#x}");
    name(pc as usize);
    backtrace(frame as usize)
}

fn backtrace(mut frame: usize) -> ! {
    for _ in 0..24 {
        if frame < IMAGE || !frame.is_multiple_of(8) {
            break;
        }
        // SAFETY: the nucleus is built with frame pointers, and this one is aligned and in the image's range: it points to a
        // frame of a mapped stack of the nucleus.
        let (next, pc) = unsafe { (*(frame as *const usize), *((frame + 8) as *const usize)) };
        if pc < IMAGE {
            break;
        }
        // A call may be the last instruction of its function: then the return address lies in the next one.
        name(pc - 1);
        frame = next;
    }
    memory::stop_machine(STATUS)
}

fn name(pc: usize) {
    let mut best: Option<(usize, &str)> = None;
    for line in SYMBOLS.get().split(|byte| *byte == b'\n') {
        let Ok(line) = core::str::from_utf8(line) else { continue };
        let Some((address, name)) = line.split_once(' ') else { continue };
        let Ok(address) = usize::from_str_radix(address, 16) else { continue };
        if address <= pc {
            best = Some((address, name));
        } else {
            break;
        }
    }
    let _ = match best {
        Some((address, name)) => writeln!(Line, "  {pc:#x} {} + {:#x}", Text(name), pc - address),
        None => writeln!(Line, "  {pc:#x}"),
    };
}
